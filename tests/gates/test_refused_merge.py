"""A refused fast-forward is put back where that touches no work of anybody; elsewhere its content is refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gitcoord.git.host import TICK_NS
from tests.cli.support import Done
from tests.gates.support import SHARED, Project, refused
from tests.races.support import wait_until
from tests.support import git

NEW = {"shared/a": "theirs\n", "shared/new": "theirs\n", "free/x": "theirs\n"}
PUT_BACK = "index and work tree are as before"
LEFT = "nothing was put back"
CONCLUDE = "hint: then go on: git commit --no-edit; or put everything back: git merge --abort\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """On main, with a branch `side` ahead of it that changes shared files without a claim: two changed, one new, one gone."""
    made = Project(tmp_path, SHARED)
    made.branch("side")
    made.commit({**NEW, "shared/b": None})
    made.switch("main")
    return made


def picture(project: Project) -> tuple[str, str, dict[str, str]]:
    files = {
        str(path.relative_to(project.top)): path.read_text()
        for path in sorted(project.top.rglob("*"))
        if path.is_file() and ".git/" not in f"{path}/"
    }
    return project.git("status", "--porcelain"), project.git("ls-files", "-s"), files


def halt(project: Project) -> None:
    assert project.as_person("halt").code == 0


MERGES = {
    "merge": ("merge", "-q", "side"), "ff-only": ("-c", "x.y=z", "merge", "--ff-only", "side"),
    "pull": ("pull", "-q", ".", "side"), "pull --rebase": ("pull", "-q", "--rebase", ".", "side"),
}  # fmt: skip


@pytest.mark.parametrize("words", MERGES.values(), ids=list(MERGES))
@pytest.mark.parametrize("who", ["alice", ""])
def test_it_is_put_back(project: Project, words: tuple[str, ...], who: str) -> None:
    before = picture(project)
    done = project.try_git(*words, agent=who)
    assert done.code != 0 and PUT_BACK in done.err, done
    assert picture(project) == before


@pytest.mark.parametrize("staged", [False, True])
def test_what_autostash_put_aside_is_brought_back(project: Project, *, staged: bool) -> None:
    """git dies at the refusal, and would leave it in a file of its own that nothing names."""
    project.commit({"free/y": "y\n"})
    project.unhooked("rebase", "-q", "main", "side")
    project.switch("main")
    project.write({"free/y": "not committed\n"})
    if staged:
        project.git("add", "free/y")
    done = project.try_git("merge", "-q", "--autostash", "side", agent="alice")
    assert done.code != 0 and PUT_BACK in done.err, done
    assert (project.top / "free/y").read_text() == "not committed\n"
    assert not (project.top / ".git/MERGE_AUTOSTASH").exists()


def test_what_autostash_put_aside_is_named_where_nothing_was_put_back(project: Project) -> None:
    project.commit({"free/y": "y\n"})
    project.unhooked("rebase", "-q", "main", "side")
    project.switch("main")
    project.write({"free/y": "not committed\n"})
    refuse_after(project, "echo mine >>shared/a")
    done = project.try_git("merge", "-q", "--autostash", "side", agent="alice")
    assert LEFT in done.err, done
    command = next(line for line in done.err.splitlines() if "git stash apply" in line).partition(
        "bring it back: git "
    )[2]
    project.git(*command.split())
    assert (project.top / "free/y").read_text() == "not committed\n"


def test_a_pull_from_the_remote_while_halted_is_put_back(project: Project) -> None:
    project.unhooked("push", "-q", "origin", "side:main")
    halt(project)
    before = picture(project)
    done = project.try_git("pull", "-q", "--ff-only", agent="alice")
    assert refused(done, "halted") and PUT_BACK in done.err, done
    assert picture(project) == before


def test_one_that_could_not_be_judged_is_put_back(project: Project) -> None:
    before = picture(project)
    refuse_after(project, "git -c core.hooksPath=/dev/null update-ref -d refs/heads/gitcoord")
    done = project.try_git("merge", "-q", "side", agent="alice")
    assert done.code != 0 and "could not be judged" in done.err and PUT_BACK in done.err, done
    assert picture(project) == before


def test_uncommitted_work_elsewhere_stays(project: Project) -> None:
    """Staged, unstaged and untracked, in files that the merge does not touch."""
    project.commit({"free/y": "y\n", "free/z": "z\n"})
    project.unhooked("rebase", "-q", "main", "side")
    project.switch("main")
    project.write({"free/y": "staged\n"})
    project.git("add", "-A")
    project.write({"free/z": "unstaged\n", "untracked": "mine\n"})
    before = picture(project)
    done = project.try_git("merge", "-q", "side", agent="alice")
    assert done.code != 0 and PUT_BACK in done.err, done
    assert picture(project) == before


def test_in_a_linked_work_tree(project: Project) -> None:
    project.switch("side")
    tree = project.place / "tree"
    project.unhooked("worktree", "add", "-q", str(tree), "main")
    done = project.try_git("merge", "-q", "side", agent="alice", cwd=tree)
    assert done.code != 0 and PUT_BACK in done.err, done
    assert git(tree, "status", "--porcelain") == b"" and (tree / "shared/a").read_text() == "a\n"


# --- not put back, because something may be somebody's own


def refuse_after(project: Project, command: str) -> None:
    """Something happens between the merge's checkout and the question whether the branch may move."""
    hook = project.top / ".git/hooks/reference-transaction"
    asked = hook.rename(hook.with_name("asked"))
    once = f'[ ! -f "{project.place}/once" ] && : >"{project.place}/once"'
    between = f"input=$(cat); case $input in *refs/heads/main*) {once} && (unset GIT_DIR; {command}) ;; esac"
    hook.write_text(f'#!/bin/sh\n{between}\nexec {asked} "$@" <<END\n$input\nEND\n')
    hook.chmod(0o755)


BETWEEN = {
    "a file was changed": "echo mine >>shared/a", "a file was staged": "echo mine >free/x; git add free/x",
    "a file was removed": "rm shared/new", "a file came back": "echo mine >shared/b",
    "the index is locked": ": >.git/index.lock",
}  # fmt: skip


@pytest.mark.parametrize("command", BETWEEN.values(), ids=list(BETWEEN))
def test_all_or_nothing(project: Project, command: str) -> None:
    refuse_after(project, command)
    done = project.try_git("merge", "-q", "side", agent="alice")
    (project.top / ".git/index.lock").unlink(missing_ok=True)
    assert done.code != 0 and LEFT in done.err and "git read-tree -m -u" in done.err, done
    for name, text in NEW.items():
        if name not in command:
            assert (project.top / name).read_text() == text, "nothing of it was put back"
    if "mine" in command:
        name = command.split(";")[0].rpartition(">")[2]
        assert "mine" in (project.top / name).read_text()


def test_content_that_was_there_before_is_nobodys_to_remove(project: Project) -> None:
    project.write({"shared/new": NEW["shared/new"]})
    project.git("add", "shared/new")
    written = (project.top / "shared/new").stat().st_ctime_ns
    wait_until("the kernel's clock of processes has moved on", lambda: time.time_ns() > written + 5 * TICK_NS)
    done = project.try_git("merge", "-q", "side", agent="alice")
    assert done.code != 0 and LEFT in done.err and "shared/new" in done.err, done
    assert (project.top / "shared/new").read_text() == NEW["shared/new"]


# --- what only looks like one


def refused_commit(project: Project, *words: str) -> Done:
    project.write({"shared/a": "mine\n", "free/x": "mine\n"})
    before = (project.top / "shared/a").read_text()
    done = project.try_git("commit", "-q", "-m", "x", *words, agent="alice")
    assert done.code != 0 and PUT_BACK not in done.err and LEFT not in done.err, done
    assert (project.top / "shared/a").read_text() == before
    return done


def test_a_commit_that_skips_pre_commit(project: Project) -> None:
    """Its index is that of the new tip, as after a fast-forward; and its author may still commit it properly."""
    project.write({"shared/a": "mine\n", "free/x": "mine\n"})
    project.git("add", "-A")
    assert refused(refused_commit(project, "--no-verify"), "unclaimed", "shared/a")
    assert project.git("diff", "--cached", "--name-only").split() == ["free/x", "shared/a"]
    project.claim("shared/a", agent="alice")
    assert project.try_git("commit", "-q", "-m", "x", agent="alice").code == 0


@pytest.mark.parametrize("words", [("-a",), ("-a", "--no-verify"), ("--no-verify", "shared/a")])
def test_a_commit_that_stages_by_itself(project: Project, words: tuple[str, ...]) -> None:
    refused_commit(project, *words)


def test_a_conflict_that_a_person_resolved(project: Project) -> None:
    """`git merge --continue` commits what was resolved: the tip is younger than the process."""
    project.commit({"shared/a": "ours\n"})
    assert project.try_git("-c", "core.hooksPath=/dev/null", "merge", "-q", "side").code != 0
    project.write({"shared/a": "resolved\n"})
    project.git("add", "-A")
    done = project.try_git("-c", "core.editor=true", "merge", "--continue", agent="alice")
    assert done.code != 0 and PUT_BACK not in done.err, done
    assert (project.top / "shared/a").read_text() == "resolved\n"


def test_a_true_merge(project: Project) -> None:
    project.commit({"free/y": "ours\n"})
    done = project.try_git("merge", "-q", "--no-edit", "side", agent="alice")
    assert done.code != 0 and PUT_BACK not in done.err and LEFT not in done.err, done


@pytest.mark.parametrize("gate", ["pre-merge-commit", "reference-transaction"])
@pytest.mark.parametrize("way", ["conclude", "abort"])
def test_a_refused_true_merge_says_how_it_ends(project: Project, gate: str, way: str) -> None:
    """git keeps MERGE_HEAD: the same merge again would say that it is not concluded."""
    if gate == "reference-transaction":
        (project.top / ".git/hooks/pre-merge-commit").unlink()
    project.commit({"free/y": "ours\n"})
    before = picture(project)
    done = project.try_git("merge", "-q", "--no-edit", "side", agent="alice")
    assert refused(done, "unclaimed", "shared/a") and done.err.count(CONCLUDE) == 1, done
    if way == "abort":
        project.git("merge", "--abort", agent="alice")
        assert picture(project) == before
    else:
        project.claim("shared", agent="alice")
        done = project.try_git("commit", "-q", "--no-edit", agent="alice")
        assert done.code == 0 and len(project.git("log", "-1", "--format=%P").split()) == 2, done


def test_only_a_refused_merge_commit_is_to_be_concluded(project: Project) -> None:
    """Neither a fast-forward nor another branch during a merge."""
    assert CONCLUDE not in project.try_git("merge", "-q", "side", agent="alice").err
    project.commit({"free/y": "ours\n"})
    assert CONCLUDE in project.try_git("merge", "-q", "--no-edit", "side", agent="alice").err
    done = project.try_git("reset", "-q", "--hard", "side", agent="alice")
    assert done.code != 0 and CONCLUDE not in done.err, done


def test_the_end_of_a_rebase(project: Project) -> None:
    project.commit({"shared/a": "ours\n"})
    project.try_git("-c", "core.hooksPath=/dev/null", "rebase", "-q", "side")
    halt(project)
    done = project.try_git("rebase", "--abort", agent="alice")
    assert PUT_BACK not in done.err and LEFT not in done.err, done
    project.try_git("-c", "core.hooksPath=/dev/null", "rebase", "--abort")


def test_a_reset(project: Project) -> None:
    """It has destroyed uncommitted work before any hook is asked; nothing can restore it."""
    before = picture(project)
    project.write({"free/x": "not committed\n"})
    done = project.try_git("reset", "-q", "--hard", "side", agent="alice")
    assert refused(done, "unclaimed") and "those of HEAD again" in done.err and "discards" in done.err, done
    assert picture(project) == before


MOVES = {
    "reset --hard": ("reset", "-q", "--hard"), "reset --keep": ("reset", "-q", "--keep"),
    "reset --merge": ("reset", "-q", "--merge"), "reset": ("reset", "-q"), "reset --soft": ("reset", "-q", "--soft"),
    "checkout -B": ("checkout", "-q", "-B", "main"), "switch -C": ("switch", "-q", "-C", "main"),
}  # fmt: skip


@pytest.fixture
def landed(project: Project) -> Project:
    """Bob's work on main, released."""
    project.claim("free/x", agent="bob")
    tip = project.commit({"free/x": "bob's\n", "free/new": "bob's\n"}, "bob's work", "bob")
    project.claim("release", "free/x", "--commit", tip, agent="bob")
    return project


@pytest.mark.parametrize("words", MOVES.values(), ids=list(MOVES))
def test_a_refused_move_back_leaves_nothing_of_the_old_commit(landed: Project, words: tuple[str, ...]) -> None:
    """Else the next `commit -a` would take back what was released."""
    before = picture(landed)
    done = landed.try_git(*words, "HEAD~1", agent="alice")
    assert refused(done, "lineage", "free/x"), done
    assert picture(landed) == before
    landed.write({"free/other": "mine\n"})
    landed.git("add", "free/other")
    assert landed.try_git("commit", "-q", "-am", "more", agent="alice").code == 0
    assert landed.git("show", "main:free/x").strip() == "bob's"


def test_a_refused_move_of_another_branch_leaves_nothing_of_it_here(landed: Project) -> None:
    landed.branch("work")
    landed.commit({"free/y": "alice's\n"}, "on a branch", "alice")
    before = picture(landed)
    done = landed.try_git("checkout", "-q", "-B", "main", "HEAD~2", agent="alice")
    assert refused(done, "lineage", "free/x") and PUT_BACK in done.err, done
    assert picture(landed) == before and landed.git("branch", "--show-current").strip() == "work"


def test_what_a_refused_move_back_left_is_not_committed(landed: Project) -> None:
    refuse_after(landed, "echo mine >>free/x")
    done = landed.try_git("reset", "-q", "--keep", "HEAD~1", agent="alice")
    assert LEFT in done.err and "git read-tree -m -u" in done.err and "git merge" not in done.err, done
    landed.git("restore", "free/x")
    done = landed.try_git("commit", "-q", "-am", "x", agent="alice")
    assert done.code != 0 and "left by a move to" in done.err, done
    landed.git("reset", "-q", "--hard", agent="alice")
    landed.claim("free/x", agent="alice")
    landed.git("checkout", "-q", "HEAD~1", "--", "free/x")
    done = landed.try_git("commit", "-q", "-am", "undone, under a claim", agent="alice")
    assert done.code == 0, "what is done after it was put back is one's own"


# --- content that stayed


@pytest.fixture
def left(project: Project) -> Project:
    """A refused merge that was not put back, because of a file of alice's."""
    refuse_after(project, "echo mine >>shared/a")
    assert LEFT in project.try_git("merge", "-q", "side", agent="alice").err
    return project


@pytest.mark.parametrize("words", [("-a",), (), ("free/x",)])
def test_refused_content_is_not_committed_as_ones_own(left: Project, words: tuple[str, ...]) -> None:
    done = left.try_git("commit", "-q", "-m", "x", *words, agent="alice")
    assert done.code != 0, done
    left.claim("shared", agent="alice")
    done = left.try_git("commit", "-q", "-m", "x", *words, agent="alice")
    assert done.code != 0 and "left by a merge of" in done.err and "free/x" in done.err, done


def test_other_work_is_committed_meanwhile(left: Project) -> None:
    left.git("reset", "-q")
    left.write({"free/other": "mine\n"})
    left.git("add", "free/other")
    assert left.try_git("commit", "-q", "-m", "x", agent="alice").code == 0
    left.git("add", "free/x")
    done = left.try_git("commit", "-q", "-m", "x", agent="alice")
    assert done.code != 0 and "left by a merge of" in done.err, "it is not forgotten by that"


def test_once_put_back_the_same_change_is_ones_own(left: Project) -> None:
    side = left.git("rev-parse", "--short=12", "side")
    assert left.try_git("read-tree", "-m", "-u", side, "HEAD").code != 0, "alice's line would be lost"
    left.write({"shared/a": NEW["shared/a"]})
    left.git("update-index", "-q", "--refresh", ok=False)
    left.git("read-tree", "-m", "-u", side, "HEAD")
    assert left.git("status", "--porcelain") == ""
    left.write({"free/other": "mine\n"})
    left.git("add", "-A")
    assert left.try_git("commit", "-q", "-m", "x", agent="alice").code == 0
    left.write({"free/x": NEW["free/x"]})
    assert left.try_git("commit", "-q", "-am", "x", agent="alice").code == 0


def test_once_landed_nothing_is_refused_any_more(left: Project) -> None:
    left.claim("shared", agent="alice")
    left.write({"shared/a": NEW["shared/a"]})
    done = left.try_git("merge", "-q", "side", agent="alice")
    assert done.code == 0, done
    left.write({"free/x": "mine\n"})
    done = left.try_git("commit", "-q", "-am", "x", agent="alice")
    assert done.code == 0, done

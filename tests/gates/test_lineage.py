"""Lineage: a change is refused unless it contains the last released work on its path, across branches. By real commits; each clause is
tested in test_lineage_rules.py, each way of landing work in test_histories.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gates.repository import GONE
from tests.gates.support import Project, refused
from tests.server.support import forge

LONG = "".join(f"line {n}\n" for n in range(30))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """bob released work on shared/a on his branch; alice holds it now, on a branch from before that work."""
    made = Project(tmp_path)
    made.commit({"shared/a": LONG, "shared/bin": "\0one", "shared/other": "o\n"})
    (made.top / "shared/link").symlink_to("a")
    made.commit({})
    made.unhooked("push", "-q", "origin", "main")
    return made


def released(project: Project, files: dict[str, str | None] | None = None) -> str:
    files = files or {"shared/a": LONG.replace("line 3\n", "bob's\n")}
    return project.work("bob", "bobs", files)


# --- refused: the work is missing ----------------------------------------------------------------------------------


def _text(top: Path) -> None:
    (top / "shared/a").write_text(LONG.replace("line 20\n", "alice's\n"))


def _binary(top: Path) -> None:
    (top / "shared/bin").write_bytes(b"\0alice")


def _symlink(top: Path) -> None:
    (top / "shared/link").unlink()
    (top / "shared/link").symlink_to("other")


def _rename(top: Path) -> None:
    (top / "shared/a").rename(top / "shared/renamed")


STALE: dict[str, tuple[str, Callable[[Project], str], Callable[[Path], None]]] = {
    "text": ("shared/a", released, _text),
    "binary": ("shared/bin", lambda p: released(p, {"shared/bin": "\0bob"}), _binary),
    "symbolic link": ("shared/link", lambda p: _released_link(p), _symlink),
    "rename": ("shared/a", released, _rename),
    "resurrection": ("shared/a", lambda p: released(p, {"shared/a": None}), _text),
}


def _released_link(project: Project) -> str:
    project.branch("bobs")
    project.claim("shared/link", agent="bob")
    (project.top / "shared/link").unlink()
    (project.top / "shared/link").symlink_to("bin")
    commit = project.commit({}, "link", "bob")
    project.claim("release", "shared/link", "--commit", commit, agent="bob")
    return commit


@pytest.mark.parametrize("kind", STALE)
def test_stale_work_is_refused_and_its_repair_passes(project: Project, kind: str) -> None:
    path, release, edit = STALE[kind]
    commit = release(project)
    project.branch("stale")
    project.claim("shared", agent="alice")
    edit(project.top)
    done = project.try_commit({}, "alice")
    assert refused(done, "lineage", path) and commit[:12] in done.err, done
    project.commit({}, "past the hooks", "alice")
    assert refused(project.push("stale", agent="alice"), "lineage", path)
    # Bring the released work in, then do one's own on top.
    project.branch("mended")
    project.git("merge", "-q", "--no-edit", commit, agent="alice")
    if kind == "resurrection":
        (project.top / "shared").mkdir(exist_ok=True)
    if kind != "rename" or (project.top / "shared/a").exists():
        edit(project.top)
    assert project.try_commit({}, "alice").code == 0
    assert project.push("mended", agent="alice").code == 0


def test_a_hint_foretells_the_conflict_that_it_leads_into(project: Project) -> None:
    """With what is staged, and with the commits of the branch; what git then says is no news."""
    commit = project.work("bob", "bobs", {"free/x": "bob's\n"})
    project.switch("main")
    done = project.try_commit({"free/x": "staged\n"}, "alice")
    assert f"bring it in, which conflicts in free/x: git merge --autostash {commit[:12]}\n" in done.err, done
    done = project.try_git("merge", "--autostash", commit, agent="alice")
    assert "conflict" in done.said.lower(), done
    project.unhooked("reset", "-q", "--hard", "origin/main")
    project.unhooked("stash", "drop", "-q")
    project.branch("mine", "origin/main")
    project.commit({"free/x": "alice's\n", "free/y": "y\n"}, agent="alice")
    said = project.claim("free/x", agent="alice").err
    assert f"bring it in before you change it, which conflicts in free/x: git merge --autostash {commit[:12]}\n" in said
    done = project.push("mine", agent="alice")
    assert f"bring it in, which conflicts in free/x: git merge {commit[:12]}\n" in done.err, done
    project.write({"free/x": "alice's\n"})
    assert "CONFLICT (content): Merge conflict in free/x" in project.try_git("merge", commit, agent="alice").out


def test_a_merge_above_it_brings_it_in(project: Project) -> None:
    """The repair that a refused push names."""
    commit = released(project)
    project.branch("mine")
    project.claim("shared/a", agent="alice")
    project.commit({"shared/a": LONG.replace("line 20\n", "alice's\n")}, agent="alice")
    project.commit({"free/x": "more\n"}, agent="alice")
    done = project.push("mine", agent="alice")
    assert refused(done, "lineage", "shared/a") and f"hint: bring it in: git merge {commit[:12]}\n" in done.err
    project.git("merge", "-q", "--no-edit", commit, agent="alice")
    assert project.push("mine", agent="alice").code == 0


def test_disowning_clears_it(project: Project) -> None:
    released(project)
    project.branch("stale")
    project.claim("shared/a", agent="alice")
    _text(project.top)
    assert refused(project.try_commit({}, "alice"), "lineage")
    project.claim("disown", "shared/a", "--reason", "abandoned", agent="alice")
    assert project.try_commit({}, "alice").code == 0


def test_a_refused_commit_names_a_command_that_helps(project: Project) -> None:
    released(project)
    project.branch("mine")
    project.claim("shared/a", agent="alice")
    _text(project.top)
    done = project.try_commit({}, "alice")
    (hint,) = [line for line in done.err.splitlines() if "bring it in: " in line]
    done = project.try_git(*hint.partition("bring it in: git ")[2].split(" "), agent="alice")
    assert done.code == 0, done
    assert project.try_commit({}, "alice").code == 0
    text = (project.top / "shared/a").read_text()
    assert "bob's\n" in text and "alice's\n" in text


def test_a_binary_that_cannot_be_merged_is_missing(project: Project) -> None:
    """git keeps our side of it, and tells by its exit code alone that it merged nothing."""
    released(project, {"shared/bin": "\0bob"})
    project.switch("main")
    project.commit({"shared/bin": "\0main"})
    project.unhooked("push", "-q", "origin", "main")
    project.branch("mine")
    project.claim("shared/bin", agent="alice")
    assert refused(project.try_commit({"shared/bin": "\0alice"}, "alice"), "lineage", "shared/bin")


def test_work_of_another_beginning_is_missing_too(project: Project) -> None:
    """Unrelated histories cannot be merged, so the released work is missing."""
    project.unhooked("checkout", "-q", "--orphan", "other")
    project.claim("shared/a", agent="bob")
    commit = project.commit({"shared/a": "bob's\n"}, agent="bob")
    project.claim("release", "shared/a", "--commit", commit, agent="bob")
    project.branch("mine")
    project.claim("shared/a", agent="alice")
    assert refused(project.try_commit({"shared/a": "mine\n"}, "alice"), "lineage", "shared/a")


# --- passes --------------------------------------------------------------------------------------------------------


def _land(project: Project, *words: str) -> None:
    project.switch("main")
    done = project.try_git(*words, agent="boss")
    assert done.code == 0, done


def test_missing_commits_cannot_be_judged(project: Project) -> None:
    commit = released(project)
    project.switch("main")
    project.unhooked("branch", "-q", "-D", "bobs")
    project.unhooked("reflog", "expire", "--expire=now", "--all")
    project.unhooked("-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now")
    project.branch("stale")
    project.claim("shared/a", agent="alice")
    _text(project.top)
    done = project.try_commit({}, "alice")
    assert done.code != 0 and commit[:12] in done.err and "could not be judged" in done.err and "disown" in done.err, (
        done
    )


def released_from_a_lost_base(project: Project) -> str:
    """A release that was judged from a lost commit, as an older client records it after a rewrite."""
    project.branch("bobs")
    project.claim("shared/a", agent="bob")
    token = project.world.claim("list", "--json", agent="bob").json["claims"][0]["token"]
    commit = project.commit({"shared/a": LONG.replace("line 3\n", "bob's\n")}, "work of bob", "bob")
    mode, _, blob = project.git("ls-tree", commit, "shared/a").partition("\t")[0].split(" ")
    entry = {
        "space": "path", "path": "shared/a", "token": token, "commit": commit, "base": GONE,
        "files": [["shared/a", mode, blob]], "landed": [],
    }  # fmt: skip
    forge(project, ("release", "bob", {"released": [entry]}, {}))
    return commit


def test_a_base_that_nobody_has_is_no_obstacle(project: Project) -> None:
    """The work is asked for, and may be landed and built upon."""
    commit = released_from_a_lost_base(project)
    project.branch("stale")
    project.claim("shared/a", agent="alice")
    _text(project.top)
    assert refused(project.try_commit({}, "alice"), "lineage", "shared/a")
    project.unhooked("reset", "-q", "--hard")
    project.claim("release", "shared/a", agent="alice")
    _land(project, "merge", "-q", "--squash", commit)
    assert project.try_commit({}, "boss").code == 0
    assert project.push("main", agent="boss").code == 0
    project.claim("shared/a", agent="alice")
    _text(project.top)
    assert project.try_commit({}, "alice").code == 0


def test_without_its_base_released_work_is_what_the_trunk_lacks(project: Project) -> None:
    """Content that others landed before is no part of the released work: going back to it needs a claim, always."""
    released_from_a_lost_base(project)
    project.switch("main")
    assert refused(project.try_commit({"shared/a": "a\n"}, "boss"), "unclaimed", "shared/a")
    project.unhooked("reset", "-q", "--hard")
    _land(project, "merge", "-q", "--squash", "bobs")
    assert project.try_commit({}, "boss").code == 0
    assert refused(project.try_commit({"shared/a": LONG}, "boss"), "unclaimed", "shared/a")


@pytest.mark.parametrize("way", ["go on", "go on released", "on main", "land", "deletion"])
def test_released_work_may_be_given_another_message(project: Project, way: str) -> None:
    """Amended without a change, it is still the released work, for any pusher and with any work on top."""
    changed: dict[str, str | None] = {"shared/a": None if way == "deletion" else LONG.replace("line 3\n", "bob's\n")}
    if way == "on main":
        project.claim("shared/a", agent="bob")
        assert project.try_commit(changed, "bob").code == 0
        project.claim("release", "shared/a", agent="bob")
    else:
        released(project, changed)
    done = project.try_git("commit", "-q", "--amend", "-m", "said better", agent="bob")
    assert done.code == 0, done
    if way.startswith("go on"):
        project.claim("shared/a", agent="bob")
        assert project.try_commit({"shared/a": "more\n"}, "bob").code == 0
        if way == "go on released":
            project.claim("release", "shared/a", agent="bob")
    branch = "main" if way == "on main" else "bobs"
    done = project.push(f"{branch}:main" if way == "land" else branch, agent="bob")
    assert done.code == 0, done


# --- a branch that goes back ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["free/x", "shared/a"])
def test_a_reset_drops_nothing_that_was_released(project: Project, path: str) -> None:
    """A claim does not help: its holder may undo the work by a commit of its own, or give it up on record."""
    project.claim(path, agent="bob")
    tip = project.commit({path: "bob's\n"}, "bob's work", "bob")
    project.claim("release", path, "--commit", tip, agent="bob")
    project.claim(path, agent="alice")
    done = project.try_git("reset", "-q", "--hard", "HEAD~1", agent="alice")
    assert refused(done, "lineage", path) and f"git revert {tip[:12]}" in done.err, done
    assert "those of HEAD again" in done.err and project.git("rev-parse", "main") == tip
    assert (project.top / path).read_text() == "bob's\n"
    assert project.push("+HEAD~1:main", agent="alice").code == 0, "the remote has nothing of it yet"
    assert project.try_git("revert", "--no-edit", tip, agent="alice").code == 0
    project.claim("disown", path, "--reason", "given up", agent="alice")
    assert project.try_git("reset", "-q", "--hard", "HEAD~2", agent="alice").code == 0


def test_what_nobody_released_is_reset_and_amended_as_before(project: Project) -> None:
    project.claim("shared/a", agent="alice")
    tip = project.commit({"shared/a": "alice's\n"}, "released", "alice")
    project.claim("release", "shared/a", "--commit", tip, agent="alice")
    project.claim("shared/a", agent="alice")
    assert project.try_git("commit", "-q", "--amend", "-m", "in better words", agent="alice").code == 0
    project.commit({"shared/b": "not released\n"}, "more", "alice")
    project.claim("shared/b", agent="alice")
    assert project.try_git("reset", "-q", "--hard", "HEAD~1", agent="alice").code == 0


def test_a_forced_push_drops_nothing_that_was_released(project: Project) -> None:
    project.claim("free/x", agent="bob")
    tip = project.commit({"free/x": "bob's\n"}, "bob's work", "bob")
    assert project.push("main", agent="bob").code == 0
    project.claim("release", "free/x", "--commit", tip, agent="bob")
    project.claim("free/x", agent="alice")
    assert refused(project.push("HEAD~1:main", agent="alice", force=True), "lineage", "free/x")


def test_many_files_go_back_together(project: Project) -> None:
    names = {f"free/{n}": "one\n" for n in range(20)}
    project.commit(dict(names), "nobody released these", "alice")
    assert project.try_git("reset", "-q", "--hard", "HEAD~1", agent="alice").code == 0
    project.claim("free/x", agent="bob")
    tip = project.commit({**names, "free/x": "bob's\n"}, "one is released", "bob")
    project.claim("release", "free/x", "--commit", tip, agent="bob")
    done = project.try_git("reset", "-q", "--hard", "HEAD~1", agent="alice")
    assert refused(done, "lineage", "free/x") and not refused(done, "lineage", "free/1:"), done


def test_trunk_that_is_rebased_onto_released_work_contains_it(project: Project) -> None:
    """As `git pull --rebase` does with a commit that nobody has yet: it would else stand there, refused, and `--continue` too."""
    project.commit({"free/x": LONG}, "there", "alice")
    project.branch("bobs")
    project.switch("main")
    project.commit({"free/x": LONG.replace("line 2\n", "alice's\n")}, "alice's", "alice")
    project.switch("bobs")
    project.claim("free/x", agent="bob")
    tip = project.commit({"free/x": LONG.replace("line 20\n", "bob's\n")}, "bob's", "bob")
    project.claim("release", "free/x", "--commit", tip, agent="bob")
    project.switch("main")
    done = project.try_git("rebase", "-q", "bobs", agent="alice")
    assert done.code == 0, done
    assert all(f"{name}'s" in (project.top / "free/x").read_text() for name in ("alice", "bob"))
    done = project.try_git("reset", "-q", "--hard", "HEAD~2", agent="alice")
    assert refused(done, "lineage", "free/x"), done


def test_a_branch_that_is_behind_drops_nothing(project: Project) -> None:
    """CI judges the commits of a branch against trunk, which goes on meanwhile."""
    project.branch("feature")
    project.commit({"free/x": "mine\n"}, "a feature", "alice")
    project.switch("main")
    project.claim("free/1", agent="bob")
    tip = project.commit({f"free/{n}": "bob's\n" for n in range(20)}, "bob's work", "bob")
    project.claim("release", "free/1", "--commit", tip, agent="bob")
    assert project.coord("gate", "main..feature", agent="alice").code == 0

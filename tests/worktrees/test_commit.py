"""`git coord commit`: exactly the named files, from a private index, with hooks; the user's index stays as it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import PERSON, Done, World
from tests.cli.test_json import holds, refused
from tests.support import COORD, git


@pytest.fixture
def world(plain: World) -> World:
    plain.commit({"one": "1\n", "two": "2\n", "dir/three": "3\n", ".gitignore": "*.log\n"})
    return plain.init()


def commit(world: World, *words: str, agent: str = "alice", message: str = "work on it", cwd: str = "") -> Done:
    return world.coord("commit", "-m", message, *words, agent=agent, cwd=cwd)


def done(world: World, *words: str, agent: str = "alice", cwd: str = "") -> str:
    """A commit that must succeed; gives its id."""
    found = world.coord("commit", "-m", "work on it", "--json", *words, agent=agent, cwd=cwd)
    assert found.code == 0, found
    row = holds(found, "commit")
    assert row["commit"] == world.git("rev-parse", "HEAD")
    assert world.git("diff-tree", "--no-commit-id", "-r", "--name-only", "--root", "HEAD").split("\n") == row["files"]
    return str(row["commit"])


def hook(world: World, name: str, script: str) -> None:
    path = world.top / ".git/hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)


def status(world: World) -> list[str]:
    return world.git("status", "--porcelain", "--untracked-files=all").split("\n")


def left_over(world: World) -> list[str]:
    return [path.name for path in (world.top / ".git").glob("gitcoord-new-*")]


# --- which files ---------------------------------------------------------------------------------------------------


def test_only_the_named_file(world: World) -> None:
    for name in ("one", "two", "new"):
        world.write(name, "mine\n")
    before = world.git("rev-parse", "HEAD")
    found = commit(world, "--", "one")
    head = world.git("rev-parse", "HEAD")
    assert found == Done(0, f"[main {head[:12]}] work on it\n  one\n", "")
    assert world.git("rev-parse", "HEAD^") == before
    assert world.git("diff", "--name-only", "HEAD^", "HEAD") == "one"
    assert status(world) == [" M two", "?? new"]
    assert world.git("reflog", "-1", "--format=%gs") == "commit: work on it"
    assert world.git("reflog", "-1", "--format=%gs", "main") == "commit: work on it"
    assert left_over(world) == []
    world.write("one", "more\n")
    assert commit(world, "-q", "--", "one") == Done(0, "", "")


def test_deletions_modes_links_and_new_files(world: World) -> None:
    (world.top / "one").unlink()
    (world.top / "two").chmod(0o755)
    (world.top / "dir/three").unlink()
    os.symlink("../two", world.top / "dir/three")
    world.write("deep/er/new", "n\n")
    done(world, "one", "two", "dir/three", "deep/er/new")
    tree = world.git("ls-tree", "-r", "HEAD", "--", "one", "two", "dir", "deep").split("\n")
    assert [(row.split()[0], row.split("\t")[1]) for row in tree] == [
        ("100644", "deep/er/new"), ("120000", "dir/three"), ("100755", "two"),
    ]  # fmt: skip
    assert status(world) == [""]


def test_a_file_becomes_a_directory_and_back(world: World) -> None:
    (world.top / "one").unlink()
    world.write("one/inside", "x\n")
    done(world, "one")
    assert status(world) == [""]
    (world.top / "one/inside").unlink()
    (world.top / "one").rmdir()
    world.write("one", "a file again\n")
    done(world, "one", "one/inside")
    assert status(world) == [""]


def test_a_directory_means_the_changed_files_below(world: World) -> None:
    world.write("src/a.py", "changed\n")
    world.write("src/new.py", "new\n")
    world.write("src/x.log", "ignored\n")
    world.write("one", "not named\n")
    done(world, "src")
    assert world.git("diff", "--name-only", "HEAD^", "HEAD").split() == ["src/a.py", "src/new.py"]
    world.write("two", "too\n")
    done(world, ".")
    assert world.git("diff", "--name-only", "HEAD^", "HEAD").split() == ["one", "two"]


def test_from_a_subdirectory_and_by_pattern(world: World) -> None:
    world.write("src/a.py", "changed\n")
    world.write("dir/three", "changed\n")
    done(world, "a.py", cwd="src")
    done(world, ":/dir/*", cwd="src")
    assert world.git("diff", "--name-only", "HEAD~2", "HEAD").split() == ["dir/three", "src/a.py"]


def test_a_file_without_change_is_refused(world: World) -> None:
    world.write("one", "changed\n")
    before = world.refs()
    row = refused(world.coord("commit", "-m", "x", "--json", "one", "two"), "no-change")
    assert row["message"] == "no change in two: nothing was committed"
    refused(world.coord("commit", "-m", "x", "--json", "src"), "no-change")
    assert world.refs() == before and status(world) == [" M one"]


def test_a_change_of_the_same_size_in_the_same_second_is_seen(world: World) -> None:
    """git tells unchanged files by size and time; a copied index must not look newer than the original."""
    world.git("config", "core.trustCtime", "false")
    stamp = (1_600_000_000, 1_600_000_000)
    os.utime(world.top / "one", stamp)
    world.git("update-index", "--refresh")
    os.utime(world.top / ".git/index", stamp)
    world.write("one", "5\n")
    os.utime(world.top / "one", stamp)
    done(world, "one")
    assert world.git("show", "HEAD:one") == "5"


def test_files_that_cannot_be_committed(world: World) -> None:
    before = world.refs()
    world.write("x.log", "ignored\n")
    row = refused(world.coord("commit", "-m", "x", "--json", "x.log"), "ignored")
    assert row["hints"] == ["commit it all the same: -f"]
    refused(world.coord("commit", "-m", "x", "--json", "../elsewhere"), "usage", 2)
    refused(world.coord("commit", "-m", "x", "--json", ".git/config"), "usage", 2)
    refused(world.coord("commit", "-m", "x", "--json", "nothing"), "usage", 2)
    refused(world.coord("commit", "-m", "x", "--json", "@gpu"), "usage", 2)
    os.symlink("src", world.top / "link")
    refused(world.coord("commit", "-m", "x", "--json", "link/a.py"), "no-change")  # of the file where the link leads
    assert world.coord("commit", "-m", "x").code == 2
    assert world.refs() == before and left_over(world) == []
    done(world, "-f", "x.log")


def test_submodules(world: World, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "sub")
    git(tmp_path / "sub", "commit", "-q", "--allow-empty", "-m", "x")
    world.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "sub"), "dir/sub")
    world.git("commit", "-q", "-m", "submodule")
    git(world.top / "dir/sub", "commit", "-q", "--allow-empty", "-m", "y")
    (world.top / "dir/sub/inside").write_text("x\n")
    world.write("dir/three", "changed\n")
    for words in (("dir/sub",), ("dir/sub/inside",)):
        refused(world.coord("commit", "-m", "x", "--json", *words), "submodule")
    done(world, "dir")
    assert world.git("diff", "--name-only", "HEAD^", "HEAD") == "dir/three"
    git(world.top, "init", "-q", "nested")
    git(world.top / "nested", "commit", "-q", "--allow-empty", "-m", "x")
    refused(world.coord("commit", "-m", "x", "--json", "nested"), "submodule")


def test_names_that_look_like_something_else(world: World) -> None:
    names = ["-x", "*", ":(top)", "a\nb", "ü ü", "'q'", "a\\b"]
    for name in names:
        world.write(name, "x\n")
    found = world.coord("commit", "-m", "x", "--json", "--", *(f"./{name}" for name in names))
    assert found.code == 0, found
    assert sorted(holds(found, "commit")["files"]) == sorted(names)
    assert status(world) == [""]


def test_filters_apply(world: World) -> None:
    world.commit({".gitattributes": "*.up filter=up\n*.txt text eol=crlf\n"})
    world.git("config", "filter.up.clean", "tr a-z A-Z")
    world.write("x.up", "loud\n")
    world.write("x.txt", "one\r\n")
    done(world, "x.up", "x.txt")
    assert world.git("show", "HEAD:x.up") == "LOUD"
    assert git(world.top, "show", "HEAD:x.txt") == b"one\n"


def test_a_sparse_checkout_loses_nothing(world: World) -> None:
    world.git("sparse-checkout", "set", "--no-cone", "/one", "/dir/")
    assert not (world.top / "src").exists()
    world.write("one", "changed\n")
    done(world, ".")
    assert world.git("diff", "--name-only", "HEAD^", "HEAD") == "one"
    assert status(world) == [""]


# --- whatever is staged --------------------------------------------------------------------------------------------


def test_what_others_staged_neither_gets_in_nor_changes(world: World) -> None:
    world.write("two", "staged by bob\n")
    world.write("bobs", "new\n")
    world.git("rm", "-q", "--cached", "dir/three")
    world.git("add", "two", "bobs")
    world.write("later", "x\n")
    world.git("add", "-N", "later")
    world.write("two", "and changed since\n")
    staged = world.git("diff", "--cached", "--raw")
    world.write("one", "mine\n")
    done(world, "one")
    assert world.git("diff", "--cached", "--raw") == staged
    assert world.git("diff", "--name-only").split() == ["later", "two"]


def test_add_all_and_stash_of_another_do_not_get_in(world: World) -> None:
    world.write("one", "mine\n")
    world.write("two", "bob's\n")
    world.git("add", "-A")
    done(world, "one")
    assert status(world) == ["M  two"]
    world.write("one", "mine again\n")
    world.git("stash")
    refused(world.coord("commit", "-m", "x", "--json", "one"), "no-change")
    world.git("stash", "pop", "--index")
    done(world, "one")
    assert world.git("show", "HEAD:one") == "mine again"
    assert status(world) == ["M  two"]


def test_another_content_of_the_same_file_stays_staged(world: World) -> None:
    world.write("one", "staged\n")
    world.git("add", "one")
    blob = world.git("rev-parse", ":one")
    world.write("one", "committed\n")
    found = commit(world, "one")
    assert (found.code, found.err) == (0, "note: something else is staged of one, and stays so\n")
    assert world.git("rev-parse", ":one") == blob
    assert world.git("show", "HEAD:one") == "committed"
    world.git("add", "one")
    world.write("one", "staged as it is committed\n")
    world.git("add", "one")
    assert "staged" not in world.coord("commit", "-m", "x", "--json", "one").json
    assert status(world) == [""]


def test_a_file_only_intended_to_be_added(world: World) -> None:
    world.write("new", "x\n")
    world.git("add", "-N", "new")
    done(world, "new")
    assert status(world) == [""]


def test_a_locked_index_does_not_stop_a_commit(world: World) -> None:
    """Another process has the lock. The commit is made, and the missing step is reported."""
    lock = world.top / ".git/index.lock"
    lock.touch()
    index = (world.top / ".git/index").read_bytes()
    world.write("one", "mine\n")
    found = commit(world, "one")
    assert found.code == 0 and "the index is locked" in found.err, found
    assert "git reset --quiet -- one" in found.err
    assert lock.exists() and (world.top / ".git/index").read_bytes() == index
    lock.unlink()
    assert world.git("show", "HEAD:one") == "mine"
    world.git("reset", "--quiet", "--", "one")
    assert status(world) == [""]


def test_what_a_killed_commit_left_is_swept(world: World) -> None:
    (world.top / ".git/gitcoord-new-index-123").touch()
    world.write("one", "mine\n")
    done(world, "one")
    assert left_over(world) == []


def test_a_file_with_conflicts_is_refused(world: World) -> None:
    world.write("one", "base\n")
    world.git("stash")
    world.commit({"one": "other\n"})
    world.git("stash", "pop", ok=False)
    assert status(world) == ["UU one"]
    refused(world.coord("commit", "-m", "x", "--json", "one"), "conflict")
    world.write("two", "mine\n")
    done(world, "two")
    assert status(world) == ["UU one"]


# --- HEAD ----------------------------------------------------------------------------------------------------------


def test_the_first_commit(git_repo: Path) -> None:
    top = git_repo
    world = World.__new__(World)
    world.top, world.coloured = top, False
    git(top, "symbolic-ref", "HEAD", "refs/heads/main")
    world.init()
    world.write("one", "1\n")
    world.write("two", "2\n")
    world.git("add", "two")
    done(world, "one")
    assert world.git("rev-list", "--count", "HEAD") == "1"
    assert status(world) == ["A  two"]
    assert world.git("reflog", "-1", "--format=%gs") == "commit (initial): work on it"


def test_a_detached_head(world: World) -> None:
    world.git("checkout", "-q", "--detach")
    main = world.git("rev-parse", "main")
    world.write("one", "mine\n")
    found = world.coord("commit", "-m", "x", "--json", "one")
    assert holds(found, "commit")["branch"] == ""
    assert world.git("rev-parse", "HEAD") == found.json["commit"]
    assert world.git("rev-parse", "main") == main


def test_in_a_linked_work_tree(world: World, tmp_path: Path) -> None:
    world.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    (tmp_path / "tree/one").write_text("there\n")
    found = world.run(COORD, ("commit", "-m", "x", "--json", "one"), "alice", cwd=str(tmp_path / "tree"))
    assert found.code == 0 and found.json["branch"] == "side", found
    assert git(tmp_path / "tree", "status", "--porcelain") == b""
    assert world.git("rev-parse", "side") == found.json["commit"]


def test_head_that_moves_meanwhile(world: World) -> None:
    """A plain `git commit` of another in the middle of ours: we go on top of it, and its change stays."""
    hook(
        world, "pre-commit",
        'test -e .git/once && exit 0\ntouch .git/once\nunset GIT_INDEX_FILE\n'
        "echo other >two; git commit -q --no-verify -m other -- two\n",
    )  # fmt: skip
    world.write("one", "mine\n")
    done(world, "one")
    assert world.git("log", "-2", "--format=%s").split("\n") == ["work on it", "other"]
    assert world.git("show", "HEAD:two") == "other"
    assert status(world) == [""]


PLAIN = "{git} commit -q --allow-empty -m other"
BARE = "{git} update-ref HEAD $({git} commit-tree -p HEAD -m other HEAD^{{tree}})"


def moving_git(place: Path, times: int, how: str = PLAIN) -> str:
    """A PATH on which git, asked to move a branch, lets somebody else commit just before."""
    real, count = shutil.which("git"), place / "count"
    shim = place / "git"
    other = f"echo >>{count}; {how.format(git=real)}"
    often = f"[ $(cat {count} 2>/dev/null | wc -l) -lt {times} ]"
    shim.write_text(f'#!/bin/sh\n[ "$1$2" = update-ref-m ] && {often} && {{ {other}; }}\nexec {real} "$@"\n')
    shim.chmod(0o755)
    return f"{place}:{os.environ['PATH']}"


def test_head_that_moves_at_the_last_moment(world: World, tmp_path: Path) -> None:
    """Another's commit just before git is asked to move the branch: the swap fails, and ours goes on top."""
    world.write("one", "mine\n")
    found = world.coord("commit", "-m", "mine", "one", env={"PATH": moving_git(tmp_path, times=2)})
    assert found.code == 0, found
    assert world.git("log", "-3", "--format=%s").split("\n") == ["mine", "other", "other"]
    assert status(world) == [""]


def test_a_branch_that_is_switched_meanwhile(world: World) -> None:
    hook(
        world, "pre-commit",
        "test -e .git/once && exit 0\ntouch .git/once\nunset GIT_INDEX_FILE\ngit checkout -q -b side\n",
    )  # fmt: skip
    main = world.git("rev-parse", "main")
    world.write("one", "mine\n")
    found = world.coord("commit", "-m", "x", "--json", "one")
    assert found.json["branch"] == "side"
    assert world.git("rev-parse", "main") == main and world.git("rev-parse", "side") == found.json["commit"]


def test_the_same_file_committed_by_another_meanwhile(world: World) -> None:
    """All files are compared again, and hooks run again."""
    hook(
        world, "pre-commit",
        "echo x >>.git/runs; test -e .git/once && exit 0\ntouch .git/once\nunset GIT_INDEX_FILE\n"
        "echo theirs >one; git commit -q --no-verify -m other -- one; echo mine >one\n",
    )  # fmt: skip
    world.write("one", "mine\n")
    done(world, "one")
    assert world.git("log", "-2", "--format=%s").split("\n") == ["work on it", "other"]
    assert (world.git("show", "HEAD:one"), world.git("show", "HEAD^:one")) == ("mine", "theirs")
    assert (world.top / ".git/runs").read_text() == "x\nx\n"


def test_plain_commits_without_end(world: World, tmp_path: Path) -> None:
    """Somebody commits in the plain way before every try of ours: after a few, we keep them out and have our turn."""
    world.write("one", "mine\n")
    found = world.coord("commit", "-m", "mine", "one", env={"PATH": moving_git(tmp_path, times=1000)})
    assert found.code == 0, found
    assert world.git("log", "-2", "--format=%s").split("\n") == ["mine", "other"]
    assert left_over(world) == [] and status(world) == [""]
    world.git("commit", "-q", "--allow-empty", "-m", "and on")


def test_a_branch_that_moves_for_ever(world: World, tmp_path: Path) -> None:
    path = moving_git(tmp_path, times=1000, how=BARE)
    world.write("one", "mine\n")
    refused(world.coord("commit", "-m", "x", "--json", "one", env={"PATH": path}), "contention", 3)
    assert world.git("log", "-1", "--format=%s") == "other"
    assert left_over(world) == [] and status(world) == [" M one"]


# --- what refuses --------------------------------------------------------------------------------------------------


def test_claims_of_others(world: World) -> None:
    world.take("dir", agent="bob")
    world.write("dir/three", "mine\n")
    world.write("one", "mine\n")
    before = world.git("rev-parse", "HEAD")
    row = refused(world.coord("commit", "-m", "x", "--json", "."), "held")
    assert [(held["path"], held["agent"]) for held in row["held"]] == [("dir", "bob")]
    found = commit(world, "dir/three")
    assert found.code == 1 and "held by bob" in found.err and "takeover" not in found.err
    assert world.git("rev-parse", "HEAD") == before
    done(world, "one")
    done(world, "dir/three", agent="bob")
    world.write("dir/three", "after bob fell silent\n")
    world.fall_silent("bob")
    done(world, "dir/three")


def test_a_claim_that_is_granted_while_a_hook_runs(world: World) -> None:
    program = " ".join(f"'{word}'" for word in [sys.executable, "-I", "-S", "-c", _claiming()])
    hook(world, "pre-commit", f"GITCOORD_AGENT=bob {program} one >/dev/null\n")
    world.write("one", "mine\n")
    before = world.git("rev-parse", "HEAD")
    refused(world.coord("commit", "-m", "x", "--json", "one"), "held")
    assert world.git("rev-parse", "HEAD") == before


def _claiming() -> str:
    from tests.support import CLAIM

    return CLAIM[-1].replace("'", '"')


def test_shared_and_unclaimed(world: World) -> None:
    world.commit({".gitattributes": "one gitcoord-claim\n"})
    world.write("one", "mine\n")
    row = refused(world.coord("commit", "-m", "x", "--json", "one"), "unclaimed")
    assert row["hints"] == ["git claim :/one"]
    world.take("one")
    done(world, "one")


def test_killed_and_halted(world: World) -> None:
    world.take("src")
    world.write("one", "mine\n")
    world.person("halt")
    refused(world.coord("commit", "-m", "x", "--json", "one"), "halted")
    world.person("unhalt")
    world.person("kill", "alice")
    refused(world.coord("commit", "-m", "x", "--json", "one"), "killed")
    done(world, "one", agent="bob")


def test_nobody_and_nothing_to_say(world: World) -> None:
    world.write("one", "mine\n")
    before = world.refs()
    refused(world.coord("commit", "-m", "x", "--json", "one", agent=""), "usage", 2)
    refused(world.coord("commit", "-m", " \n", "--json", "one"), "usage", 2)
    refused(world.coord("commit", "--json", "one"), "usage", 2)
    refused(world.coord("commit", "-m", "x", "-F", "x", "--json", "one"), "usage", 2)
    refused(world.coord("commit", "-F", "missing", "--json", "one"), "usage", 2)
    assert world.refs() == before


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ("merge", ("merge", "-q", "side")),
        ("rebase", ("rebase", "-q", "side")),
        ("rebase", ("rebase", "-q", "--apply", "side")),
        ("cherry-pick", ("cherry-pick", "side")),
        ("revert", ("revert", "HEAD~1")),
        ("bisect", ("bisect", "start")),
        ("am", ("am", "-q", ".git/patch")),
    ],
)
def test_operations_under_way(world: World, operation: str, words: tuple[str, ...]) -> None:
    world.git("checkout", "-q", "-b", "side")
    world.commit({"one": "side\n"})
    (world.top / ".git/patch").write_text(world.git("format-patch", "-1", "--stdout") + "\n")
    world.git("checkout", "-q", "main")
    world.commit({"one": "main\n"})
    world.commit({"one": "main again\n"})
    world.git(*words, ok=False)
    world.write("two", "mine\n")
    before = world.refs()
    row = refused(world.coord("commit", "-m", "x", "--json", "two"), "under-way")
    assert f"a {operation} " in row["message"] or f"an {operation} " in row["message"]
    assert world.refs() == before


# --- messages and hooks --------------------------------------------------------------------------------------------


def message(world: World) -> str:
    return world.git("log", "-1", "--format=%B")


def test_the_agents_trailer(world: World) -> None:
    world.write("one", "1a\n")
    done(world, "one")
    assert message(world) == "work on it\n\nAgent: alice"
    world.write("one", "1b\n")
    assert world.coord("commit", "-m", "x\n\nAgent: alice", "--trailer", "Fixes: 3", "one").code == 0
    assert message(world) == "x\n\nAgent: alice\nFixes: 3"
    world.write("one", "1c\n")
    found = world.coord("commit", "-m", "x", "--trailer", "Agent: bob", "one")
    assert found.code == 2 and "names 'bob' as its agent" in found.err


def test_people_sign_with_their_own_name_only(world: World) -> None:
    world.write("one", "mine\n")
    found = world.at_terminal("commit", "-m", "by hand", "one", argv=COORD)
    assert found.code == 0, found
    assert message(world) == "by hand"
    assert world.git("log", "-1", "--format=%an") == "Ada Tester"
    world.write("one", "again\n")
    done(world, "one", agent=PERSON)


def test_paragraphs_files_and_tidying(world: World) -> None:
    world.write("one", "1a\n")
    world.write("said", "\n\nfrom a file  \n\n\n# kept\n---\nmore\n")
    assert world.coord("commit", "-m", "one", "-m", "two", "one").code == 0
    assert message(world) == "one\n\ntwo\n\nAgent: alice"
    world.write("one", "1b\n")
    assert world.coord("commit", "-F", "said", "one").code == 0
    assert message(world) == "from a file\n\n# kept\n---\nmore\n\nAgent: alice"
    world.write("one", "1c\n")
    world.git("config", "commit.cleanup", "strip")
    assert world.coord("commit", "-F", "said", "one").code == 0
    assert "# kept" not in message(world)


def test_the_message_keeps_its_encoding(world: World) -> None:
    world.git("config", "i18n.commitEncoding", "ISO-8859-1")
    world.write("one", "mine\n")
    (world.top / "said").write_bytes("Grüße\n".encode("latin-1"))
    assert world.coord("commit", "-F", "said", "one").code == 0
    raw = git(world.top, "cat-file", "commit", "HEAD")
    assert b"encoding ISO-8859-1" in raw and "Grüße".encode("latin-1") in raw


def test_hooks_run_as_with_git_commit(world: World) -> None:
    log = world.top / ".git/log"
    for name in ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"):
        hook(
            world,
            name,
            f'echo "{name} $# $(pwd -P) $(git diff --cached --name-only HEAD)" >>{log}; echo said by {name}\n',
        )
    world.write("two", "staged\n")
    world.git("add", "two")
    world.write("one", "mine\n")
    found = commit(world, "../one", cwd="dir")
    assert found.code == 0
    top = world.top.resolve()
    assert log.read_text().split("\n")[:4] == [
        f"pre-commit 0 {top} one", f"prepare-commit-msg 2 {top} one", f"commit-msg 1 {top} one", f"post-commit 0 {top} two",
    ]  # fmt: skip
    names = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
    assert found.err == "".join(f"said by {name}\n" for name in names)


@pytest.mark.parametrize("name", ["pre-commit", "prepare-commit-msg", "commit-msg", "reference-transaction"])
def test_a_hook_that_fails_refuses(world: World, name: str) -> None:
    gate = 'grep -q refs/heads/main || exit 0; test "$1" = prepared || exit 0; ' if name[0] == "r" else ""
    hook(world, name, f"{gate}echo not so; exit 1\n")
    world.write("one", "mine\n")
    before = world.refs()
    found = commit(world, "--quiet", "one")
    assert found.code == 1 and f"error: the {name} hook said no" in found.err, found
    assert "not so" in found.err or name[0] == "r"
    assert world.refs() == before and status(world) == [" M one"]
    assert left_over(world) == []
    row = refused(world.coord("commit", "-m", "x", "--json", "one"), "hook")
    assert row["ok"] is False


def test_a_hook_may_correct_what_is_committed(world: World) -> None:
    hook(world, "pre-commit", "echo formatted >one; git add one\n")
    hook(world, "commit-msg", 'echo "Checked: yes" >>"$1"\n')
    world.write("one", "mine\n")
    done(world, "one")
    assert world.git("show", "HEAD:one") == "formatted"
    assert message(world).split("\n")[2:] == ["Agent: alice", "Checked: yes"]
    assert status(world) == [""]


def test_a_hook_may_not_bring_in_other_files(world: World) -> None:
    hook(world, "pre-commit", "git add -A\n")
    world.write("one", "mine\n")
    world.write("two", "bob's\n")
    row = refused(world.coord("commit", "-m", "x", "--json", "one"), "hook")
    assert "added two, which was not named" in row["message"]
    assert status(world) == [" M one", " M two"]


def test_a_hook_may_replace_the_whole_message(world: World) -> None:
    hook(world, "prepare-commit-msg", 'echo replaced >"$1"\n')
    world.write("one", "mine\n")
    done(world, "one")
    assert message(world) == "replaced\n\nAgent: alice"


def test_commits_are_signed_where_git_commit_would_sign(world: World, tmp_path: Path) -> None:
    key = tmp_path / "key"
    made = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=False)
    if made.returncode:
        pytest.skip("no ssh-keygen here")
    for name, value in (("gpg.format", "ssh"), ("user.signingKey", str(key)), ("commit.gpgSign", "yes")):
        world.git("config", name, value)
    world.write("one", "mine\n")
    done(world, "one")
    assert "BEGIN SSH SIGNATURE" in world.git("cat-file", "commit", "HEAD")


def test_a_commit_is_a_heartbeat(world: World) -> None:
    world.take("one")
    world.fall_silent("alice", 600)
    old = json.loads(world.git("cat-file", "blob", "refs/gitcoord/sessions/alice"))
    world.write("one", "mine\n")
    done(world, "one")
    assert json.loads(world.git("cat-file", "blob", "refs/gitcoord/sessions/alice"))["mono"] > old["mono"]


def test_a_release_with_it_says_what_has_not_landed(world: World) -> None:
    note = "note: {} has not landed on 'main' yet\nhint: bring it there: git coord land\n"
    for branch in ("main", "topic"):
        if branch != "main":
            world.git("switch", "-q", "-c", branch)
        world.take("one", "two")
        world.write("one", f"{branch}\n")
        found = commit(world, "--release", "one")
        assert found.out.endswith("released one\n")
        assert found.err == ("" if branch == "main" else note.format(world.git("rev-parse", "HEAD")[:12]))
        assert world.claims() == ["path/two/@alice"]

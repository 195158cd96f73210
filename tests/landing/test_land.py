"""Landing in one repository: ways, claims, tasks, conflicts, checks, and work trees that have trunk checked out."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import World
from tests.cli.test_json import holds
from tests.landing.support import Trunk
from tests.support import CLAIM, COORD, git, run_command


def _lines(**changed: str) -> str:
    return "".join(f"{changed.get(f'l{n}', f'line {n}')}\n" for n in range(20))


@pytest.mark.parametrize(
    ("way", "parents", "author"),
    [("--merge", 2, "merge"), ("--rebase", 1, "kept"), ("--squash", 1, "kept")],
)
def test_ways_to_land_beside_others(world: World, way: str, parents: int, author: str) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"text": _lines(l1="one")})
    trunk.commit("alice", {"new": "x\n"}, "more\n\nAgent: alice")
    world.commit({"text": _lines(l18="eighteen")}, "other work")
    before = trunk.tip
    done = trunk.land("alice", way, "--json")
    assert done.code == 0, done
    assert done.json["old"] == before and done.json["new"] == trunk.tip
    assert trunk.show("text") == _lines(l1="one", l18="eighteen").rstrip("\n") and trunk.show("new") == "x"
    assert len(world.git("log", "-1", "--format=%P", "main").split()) == parents
    assert "Agent: alice" in world.git("log", "-1", "--format=%B", "main")
    assert world.git("merge-base", "main", before) == before
    assert (trunk.top / "text").read_text() == _lines(l1="one", l18="eighteen"), "the work tree of trunk follows"
    assert world.git("status", "--porcelain", "--untracked-files=no") == ""
    again = trunk.land("alice", way, "--json")
    if way == "--merge":
        assert again.json["already"] and trunk.tip == done.json["new"], "nothing lands twice"
    trunk.nothing_left()


def test_answers_as_documented(world: World) -> None:
    trunk = Trunk(world, policy="[land]\n\tcheck = true\n", marks="text gitcoord-claim\n")
    trunk.branch("alice", {"text": _lines(l1="one")})
    holds(trunk.land("alice", "--dry-run", "--json"), "would land")
    holds(trunk.land("alice", "--json"), "landed")
    holds(trunk.land("alice", "--json"), "landed")
    holds(trunk.land("alice", "--list", "--json"), "landings")
    holds(trunk.land("alice", "--abort", "--json"), "landing given up")


def test_a_commit_that_releases_and_one_that_lands(world: World) -> None:
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"a": "1\n", "b": "1\n"})
    environ = world.environ("alice", {})
    assert run_command([*CLAIM, "a", "b"], tree, environ).returncode == 0
    (tree / "a").write_text("2\n")
    done = run_command([*COORD, "commit", "-m", "a", "--release", "--", "a"], tree, environ)
    assert done.returncode == 0 and b"released a\n" in done.stdout, done
    assert world.claims() == ["path/b/@alice"]
    (tree / "b").write_text("2\n")
    done = run_command([*COORD, "commit", "-m", "b", "--land", "--", "b"], tree, environ)
    assert done.returncode == 0 and b"landed alice on main" in done.stdout, done
    assert (trunk.show("a"), trunk.show("b")) == ("2", "2")
    trunk.nothing_left()


HISTORIES: dict[str, tuple[list[str], str, int, str]] = {
    "an empty commit": (["commit -q --allow-empty -m empty"], "--rebase", 0, "empty"),
    "a merge, rebased": (["merge -q --no-ff -m merged side"], "--rebase", 1, "cannot be rebased"),
    "a merge, squashed": (["merge -q --no-ff -m merged side"], "--squash", 0, "alice: "),
    "no common history": (
        ["checkout -q --orphan lone", "commit -q -m root", "branch -f alice", "switch -q alice"],
        "--merge",
        1,
        "no common",
    ),
    "a mode": (["update-index --chmod=+x text", "commit -q -m mode"], "--rebase", 0, "mode"),
    "a submodule": (["update-index --add --cacheinfo 160000,{head},sub", "commit -q -m sub"], "--rebase", 0, "sub"),
}


@pytest.mark.parametrize("kind", HISTORIES)
def test_kinds_of_history(world: World, kind: str) -> None:
    commands, way, code, words = HISTORIES[kind]
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"new": "x\n"})
    world.git("branch", "side", "main")
    git(tree, "switch", "-q", "side")
    git(tree, "commit", "-q", "--allow-empty", "-m", "side")
    git(tree, "switch", "-q", "alice")
    head = git(tree, "rev-parse", "HEAD").decode().strip()
    for command in commands:
        git(tree, *command.format(head=head).split())
    world.commit({"other": "x\n"})
    before = trunk.tip
    done = trunk.land("alice", way)
    assert done.code == code, done
    if code:
        assert words in done.err and trunk.tip == before
    else:
        assert words in world.git("log", "-1", "--format=%s", "main") and trunk.show("new") == "x"
    trunk.nothing_left()


def test_a_fast_forward_keeps_the_commit(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"new": "x\n"})
    tip = git(trunk.tree("alice"), "rev-parse", "HEAD").decode().strip()
    assert trunk.land("alice").out.startswith("landed alice on main: ")
    assert trunk.tip == tip


def test_what_is_not_committed_is_not_taken_for_landed(world: World) -> None:
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"a": "x\n"})
    assert "(fast-forward)" in trunk.land("alice").out
    (tree / "a").write_text("more\n")
    done = trunk.land("alice")
    assert done.out.startswith("nothing to land: ") and "note: not committed, and so not landed: a\n" in done.err, done


def test_marked_paths_are_claimed_for_the_turn_and_released_with_it(world: World) -> None:
    trunk = Trunk(world, marks="text gitcoord-claim\n")
    trunk.branch("alice", {"text": _lines(l1="one"), "free": "x\n"})
    assert trunk.land("alice", "--dry-run", "--json").json["claims"] == ["text"]
    world.take("text", agent="bob")
    late = trunk.land("alice", "--wait", "0", "--json")
    assert late.code == 1 and late.json["error"] == "held"
    world.free("bob")
    done = trunk.land("alice", "--json")
    assert done.code == 0, done
    assert done.json["released"] == ["text"]
    trunk.nothing_left()
    lineage = world.git("ls-tree", "-r", "--name-only", "gitcoord", "lineage/")
    assert "text" in lineage and "free" not in lineage, "released work is on record"
    told = world.coord("why", "text").out
    assert f"alice landed alice on main ({trunk.tip[:12]}) and released it" in told, told


def test_the_landed_claims_of_the_agent_go_and_uncommitted_ones_stay(world: World) -> None:
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"a": "1\n", "dir/b": "2\n", "c": "3\n"})
    for agent, *paths in (("alice", "a", "dir", "c", "src/a.py"), ("alice.helper", "src/b.py")):
        assert run_command([*CLAIM, *paths], tree, world.environ(agent, {})).returncode == 0
    (tree / "c").write_text("not committed\n")
    done = trunk.land("alice", "--json")
    assert done.code == 0, done
    assert sorted(done.json["released"]) == ["a", "dir"]
    assert world.claims() == ["path/c/@alice", "path/src/a.py/@alice", "path/src/b.py/@alice.helper"]


def test_a_task_is_done_when_its_code_is_on_trunk(world: World) -> None:
    trunk = Trunk(world, policy="[land]\n\tcheck = test ! -e broken\n")
    trunk.branch("alice", {"broken": "x\n"})
    task = world.coord("task", "add", "do it", "--json", agent="alice").json["tasks"][0]["id"]
    assert world.coord("task", "take", task, agent="alice").code == 0
    failed = trunk.land("alice", "--task", task, "--json")
    assert failed.code == 1 and failed.json["error"] == "check"
    assert Path(failed.json["output"]).exists()
    assert world.coord("task", "show", task, "--json").json["task"]["state"] == "active"
    trunk.commit("alice", {"broken": None, "fine": "x\n"})
    assert trunk.land("alice", "--task", task).code == 0
    shown = world.coord("task", "show", task, "--json").json["task"]
    assert shown["state"] == "done" and shown["result"]["commits"] == [trunk.tip]
    assert trunk.land("alice", "--task", task, "--json").json["error"] == "not-yours"
    trunk.nothing_left()


CONFLICTS: dict[str, tuple[dict[str, str | None], dict[str, str | None]]] = {
    "content": ({"text": _lines(l5="mine")}, {"text": _lines(l5="theirs")}),
    "delete and modify": ({"text": None}, {"text": _lines(l5="theirs")}),
    "rename and rename": ({"text": None, "mine": _lines()}, {"text": None, "theirs": _lines()}),
    "both add": ({"new": "mine\n"}, {"new": "theirs\n"}),
    "binary": ({"bin": "\0mine"}, {"bin": "\0theirs"}),
    "file and directory": ({"new": "mine\n"}, {"new/inside": "theirs\n"}),
    "line ends": ({"text": _lines().replace("\n", "\r\n")}, {"text": _lines(l5="theirs")}),
}


@pytest.mark.parametrize("kind", CONFLICTS)
def test_a_conflict_stands_in_the_agents_work_tree_and_nothing_lands(world: World, kind: str) -> None:
    trunk = Trunk(world)
    mine, theirs = CONFLICTS[kind]
    tree = trunk.branch("alice", mine)
    trunk.branch("bob", theirs)
    assert trunk.land("bob").code == 0
    before = trunk.tip, git(tree, "rev-parse", "HEAD")
    done = trunk.land("alice", "--json")
    assert done.code == 1 and done.json["error"] == "conflict", done
    assert done.json["files"] and done.json["stands"] == str(tree)
    assert (trunk.tip, git(tree, "rev-parse", "HEAD")) == before
    assert git(tree, "diff", "--name-only", "--diff-filter=U") or git(tree, "ls-files", "-u")
    assert world.claims() == ["resource/land/main/@alice"], "the turn is kept"
    unresolved = trunk.land("alice", "--continue", "--json")
    assert unresolved.code == 1 and unresolved.json["error"] == "unresolved"
    if kind == "content":
        (tree / "text").write_text(_lines(l5="both"))
        git(tree, "add", "-A")
        assert trunk.land("alice", "--continue").code == 0
        assert trunk.show("text") == _lines(l5="both").rstrip("\n")
    else:
        assert trunk.land("alice", "--abort").code == 0
        assert (trunk.tip, git(tree, "rev-parse", "HEAD")) == before and not git(tree, "status", "--porcelain")
    trunk.nothing_left()


def test_a_rebase_that_conflicts_is_resolved_commit_by_commit(world: World) -> None:
    trunk = Trunk(world)
    tree = trunk.branch("alice", {"text": _lines(l5="mine")})
    world.commit({"text": _lines(l5="theirs")})
    assert trunk.land("alice", "--rebase").code == 1
    (tree / "text").write_text(_lines(l5="both"))
    git(tree, "add", "-A")
    done = trunk.land("alice", "--continue", "--json")
    assert done.code == 0 and done.json["how"] == "rebase", done
    assert len(world.git("log", "-1", "--format=%P", "main").split()) == 1
    trunk.nothing_left()


EVIL = {
    "edits the tree": ("echo evil > text; echo evil > more; git add -A; exit 0", 0),
    "reads its input": ("cat", 0),
    "leaves processes": ("setsid sleep 1000 & (sleep 1000 &) ; echo $$ > /dev/null", 0),
    "never ends": ("sleep 1000", 1),
    "prints much": ("yes | head -c 20000000; exit 3", 1),
    "makes itself unreadable": ("mkdir -p x/y && chmod 000 x; exit 1", 1),
    "knows who it is for": ("env | grep -E '^(GITCOORD_|SSH_|GIT_|CLAUDECODE)' && exit 1; exit 0", 0),
}


@pytest.mark.parametrize("kind", EVIL)
def test_evil_checks(world: World, kind: str) -> None:
    command, code = EVIL[kind]
    trunk = Trunk(world, policy="[land]\n\ttimeout = 2s\n")
    trunk.branch("alice", {"new": "x\n"})
    env = {"SSH_AUTH_SOCK": "/nowhere", "CLAUDECODE": "1", "GITCOORD_AGENT": "alice"}
    before = trunk.tip
    done = trunk.land("alice", "--check", command, "--json", env=env)
    assert done.code == code, done
    assert (trunk.tip != before) == (code == 0)
    assert trunk.show("text") == _lines().rstrip("\n")
    if code:
        assert os.path.getsize(done.json["output"]) < 3 << 20
    trunk.nothing_left()


def test_a_branch_that_changes_the_check_is_checked_by_trunks(world: World) -> None:
    trunk = Trunk(world, policy="[land]\n\tcheck = false\n")
    trunk.branch("alice", {".gitcoord/config": "[land]\n\tcheck = true\n", "new": "x\n"})
    done = trunk.land("alice", "--check", "true", "--json")
    assert done.code == 1 and (done.json["error"] == "refused" or done.json["command"] == "false")
    trunk.nothing_left()


def test_a_work_tree_of_trunk_with_changes_of_its_own(world: World) -> None:
    """Elsewhere they stay, and it follows; where the landing touches them, the work tree is left at the old commit."""
    trunk = Trunk(world)
    trunk.branch("alice", {"new": "x\n"})
    (trunk.top / "text").write_text("mine\n")
    assert trunk.land("alice", "--json").json["followed"] == [str(trunk.top)]
    assert (trunk.top / "text").read_text() == "mine\n" and (trunk.top / "new").read_text() == "x\n"
    assert world.git("status", "--porcelain") == " M text"
    old = trunk.tip
    trunk.branch("bob", {"text": _lines(l1="one")})
    done = trunk.land("bob", "--json")
    assert done.json["left"] == [str(trunk.top)] and trunk.tip != old
    assert (trunk.top / "text").read_text() == "mine\n"
    assert world.git("rev-parse", "HEAD") == old and world.git("status", "--porcelain") == " M text"
    trunk.nothing_left()


def test_trunk_moved_behind_the_queues_back_is_done_again_in_the_same_turn(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"new": "x\n"})
    git(trunk.top, "branch", "spare", "main")
    behind = f"cd {trunk.top} && test -e .git/once || {{ touch .git/once; git commit -q --allow-empty -m behind; }}"
    done = trunk.land("alice", "--check", behind, "--json")
    assert done.code == 0, done
    assert world.git("log", "--format=%s", "main").splitlines().count("behind") == 1
    assert done.err.count("checking") == 2 and trunk.show("new") == "x"
    assert [kind for kind in world.events() if kind.startswith("claim @land")] == ["claim @land/main by alice"]
    trunk.nothing_left()


def test_done_removes_the_work_tree_unless_one_stands_in_it(world: World) -> None:
    Trunk(world)
    trees = {}
    for name in ("one", "two"):
        trees[name] = Path(world.coord("worktree", "add", name, "--json").json["path"])
        (trees[name] / name).write_text("x\n")
        git(trees[name], "add", "-A")
        git(trees[name], "commit", "-q", "-m", "work")
    done = world.coord("land", "one", "--done", "--json")
    assert holds(done, "landed")["removed"] == str(trees["one"]) and not trees["one"].exists()
    inside = run_command([*COORD, "land", "--done"], trees["two"], world.environ("alice", {}))
    assert inside.returncode == 0 and b"git coord worktree done two" in inside.stderr, inside
    assert trees["two"].exists() and world.git("show", "main:two") == "x"


def test_who_may_land_is_who_may_claim_the_turn(world: World) -> None:
    trunk = Trunk(world, policy='[resource "land/main"]\n\twrite = bob\n')
    trunk.branch("alice", {"a": "x\n"})
    trunk.branch("bob", {"b": "x\n"})
    for words in ((), ("--check", "true")):
        refusal = trunk.land("alice", *words, "--json")
        assert refusal.code == 1 and refusal.json["error"] == "access", refusal
    assert trunk.land("bob").code == 0
    trunk.nothing_left()


def test_it_is_judged_in_the_state_in_which_trunk_moves(world: World) -> None:
    """bob claims the file while the check runs: the judgement of before does not count any more."""
    trunk = Trunk(world)
    trunk.branch("alice", {"src/a.py": "new\n"})
    before = trunk.tip
    claims = f"cd {trunk.top} && GITCOORD_AGENT=bob {shlex.join(CLAIM)} src/a.py"
    done = trunk.land("alice", "--check", claims)
    assert done.code == 1 and "src/a.py: bob holds it" in done.err, done
    assert trunk.tip == before and world.claims() == ["path/src/a.py/@bob"]
    world.free("bob")
    assert trunk.land("alice").code == 0
    trunk.nothing_left()


def test_two_land_at_once_one_after_the_other(world: World) -> None:
    """The second waits for its turn, in the queue, while the first one's check runs."""
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "x\n"})
    trunk.branch("bob", {"b": "x\n"})
    gate = trunk.top / ".git/open"
    wait = f"while ! test -e {gate}; do sleep 0.05; done"
    first = subprocess.Popen(
        [*COORD, "land", "--check", wait], cwd=trunk.tree("alice"), env=world.environ("alice", {}),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert first.stderr is not None and b"checking" in first.stderr.readline()
    second = subprocess.Popen(
        [*COORD, "land"],
        cwd=trunk.tree("bob"),
        env=world.environ("bob", {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert second.stderr is not None and b"waiting" in second.stderr.readline()
    rows = world.coord("land", "--list", "--json").json
    assert [row["agent"] for row in rows["landing"]] == ["alice"] and [row["agent"] for row in rows["waiting"]] == [
        "bob"
    ]
    gate.write_text("")
    for process in (first, second):
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert trunk.show("a") == trunk.show("b") == "x"
    trunk.nothing_left()

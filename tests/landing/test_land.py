"""Landing in one repository: ways, claims, tasks, conflicts, checks, and work trees that have trunk checked out."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import World
from tests.cli.test_json import holds
from tests.landing.support import Trunk, lines
from tests.support import CLAIM, COORD, git, run_command


@pytest.mark.parametrize(
    ("way", "parents", "author"),
    [("--merge", 2, "merge"), ("--rebase", 1, "kept"), ("--squash", 1, "kept")],
)
def test_ways_to_land_beside_others(world: World, way: str, parents: int, author: str) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"text": lines(l1="one")})
    trunk.commit("alice", {"new": "x\n"}, "more\n\nAgent: alice")
    world.commit({"text": lines(l18="eighteen")}, "other work")
    before = trunk.tip
    done = trunk.land("alice", way, "--json")
    assert done.code == 0, done
    assert done.json["old"] == before and done.json["new"] == trunk.tip
    assert trunk.show("text") == lines(l1="one", l18="eighteen").rstrip("\n") and trunk.show("new") == "x"
    assert len(world.git("log", "-1", "--format=%P", "main").split()) == parents
    assert "Agent: alice" in world.git("log", "-1", "--format=%B", "main")
    assert world.git("merge-base", "main", before) == before
    assert (trunk.top / "text").read_text() == lines(l1="one", l18="eighteen"), "the work tree of trunk follows"
    assert world.git("status", "--porcelain", "--untracked-files=no") == ""
    for other in (way, "--merge", "--squash", "--rebase"):
        again = trunk.land("alice", other, "--json")
        assert again.json["already"] and trunk.tip == done.json["new"], "nothing lands twice"
    world.commit({"text": lines(l1="one", l10="ten", l18="eighteen")}, "trunk goes on")
    before = trunk.tip
    world.coord("task", "add", "form", agent="alice")
    id = world.coord("task", "list", "--json").json["tasks"][0]["id"]
    assert world.coord("task", "take", id, agent="alice").code == 0
    refused = trunk.land("alice", way, "--task", id, "--json")
    assert (refused.code, refused.json["error"], trunk.tip) == (1, "no-work", before), refused
    trunk.nothing_left()


def test_answers_as_documented(world: World) -> None:
    trunk = Trunk(world, policy="[land]\n\tcheck = true\n", marks="text gitcoord-claim\n")
    trunk.branch("alice", {"text": lines(l1="one")})
    holds(trunk.land("alice", "--dry-run", "--json"), "would land")
    holds(trunk.land("alice", "--json"), "landed")
    holds(trunk.land("alice", "--json"), "landed")
    holds(trunk.land("alice", "--list", "--json"), "landings")
    holds(trunk.land("alice", "--abort", "--json"), "landing given up")


def test_a_dry_run_says_who_lands_and_waits(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "x\n"})
    assert "now:" not in trunk.land("alice", "--dry-run").out
    world.take("@land/main", agent="bob")
    world.claim("--queue", "@land/main", agent="carol")
    told = trunk.land("alice", "--dry-run")
    assert told.code == 0 and "now: bob has the turn, and 1 more: git coord land --list\n" in told.out, told
    assert trunk.land("alice", "--dry-run", "--json").json["before"] == ["bob", "carol"]


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
    trunk.branch("alice", {"text": lines(l1="one"), "free": "x\n"})
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
    assert trunk.land("alice", "--task", task, "--json").json["already"], "asked twice"
    trunk.nothing_left()


def test_a_task_with_review_waits_for_it(world: World) -> None:
    trunk = Trunk(world)
    for number, words in enumerate((["--review"], [])):
        trunk.branch(f"a{number}", {f"new{number}": "x\n"})
        task = world.coord("task", "add", "do it", *words, "--json").json["tasks"][0]["id"]
        assert world.coord("task", "take", task, agent=f"a{number}").code == 0
        done = trunk.land(f"a{number}", "--task", task)
        assert done.out.endswith(f"{task} waits for review\n" if words else f"{task} is done\n"), done
    trunk.branch("a2", {"new2": "x\n"})
    task = world.coord("task", "add", "do it", "--review", "--json").json["tasks"][0]["id"]
    assert world.coord("task", "take", task, agent="a2").code == 0
    assert holds(trunk.land("a2", "--task", task, "--json"), "landed")["task_state"] == "review"


@pytest.mark.parametrize(("task", "code"), [("t99", "no-task"), ("bobs", "not-yours")])
def test_a_task_that_is_not_the_agents_is_refused_before_anything_runs(world: World, task: str, code: str) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"new": "x\n"})
    if task == "bobs":
        task = world.coord("task", "add", "do it", "--json", agent="bob").json["tasks"][0]["id"]
        assert world.coord("task", "take", task, agent="bob").code == 0
    ran = world.top / ".git/ran"
    done = trunk.land("alice", "--task", task, "--check", f"touch {ran}", "--json")
    assert done.json["error"] == code and not ran.exists(), done
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
    trunk.branch("bob", {"text": lines(l1="one")})
    done = trunk.land("bob", "--json")
    assert done.json["left"] == [str(trunk.top)] and trunk.tip != old
    assert (trunk.top / "text").read_text() == "mine\n"
    assert world.git("rev-parse", "HEAD") == old and world.git("status", "--porcelain") == " M text"
    trunk.nothing_left()


def test_trunk_moved_behind_the_queues_back_is_done_again_in_the_same_turn(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"new": "x\n"})
    git(trunk.top, "branch", "spare", "main")
    behind = f"cd {trunk.top} && test -e .git/once || {{ touch .git/once; echo x >more; git add more; git commit -q -m behind; }}"
    done = trunk.land("alice", "--check", behind, "--json")
    assert done.code == 0, done
    assert world.git("log", "--format=%s", "main").splitlines().count("behind") == 1
    assert done.err.count("checking") == 2 and trunk.show("new") == "x"
    assert [kind for kind in world.events() if kind.startswith("claim @land")] == ["claim @land/main by alice"]
    trunk.nothing_left()


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


def test_waiting_says_how_long_how_to_leave_and_how_to_wait_longer(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "x\n"})
    world.take("@land/main", "-m", "lands other", agent="bob")
    late = trunk.land("alice", "--wait", "1s")
    assert late.code == 3 and late.err.startswith('waiting: 1st of 1; bob holds it: "lands other"\n'), late
    assert (
        "you wait up to 1s for your turn on 'main'; ending this command leaves the queue; who is in it: git coord land --list\n"
        in late.err
    )
    with world.terminal("land", "alice", argv=COORD, agent="carol") as terminal:
        terminal.until(lambda shown: b"Ctrl-C leaves the queue" in shown and b"of 30m: 1st of 1; bob holds it" in shown)
    assert world.claim("--leave", agent="carol").code == 0
    world.free("bob")
    words = late.err.rpartition("git coord land ")[2].split()
    assert words == ["alice", "--wait", "2s"] and trunk.land(*words[:1], *words).code == 0
    assert trunk.show("a") == "x"


def test_a_landing_that_waits_without_a_terminal_can_be_left_from_elsewhere(world: World) -> None:
    """Its agent cannot press Ctrl-C: what refuses a second command under its name says how the first one ends."""
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "x\n"})
    world.take("@land/main", agent="bob")
    first = subprocess.Popen(
        [*COORD, "land"], cwd=trunk.tree("alice"), env=world.environ("alice", {}),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert first.stderr is not None and b"waiting: 1st of 1; bob holds it" in first.stderr.readline()
    done = world.coord("land", "--abort", agent="alice")
    assert done.code == 1 and "another process lands under the name of 'alice'" in done.err, done
    command = done.err.partition("gives back its turn: ")[2].splitlines()[0].split()
    subprocess.run(command, check=True)
    _, err = first.communicate(timeout=60)
    assert first.returncode == 130 and b"left the queue" in err, err
    assert world.coord("land", "--list", "--json").json["waiting"] == []
    assert "gives back" not in trunk.land("alice", "--wait", "0").err, "nobody lands by now"


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


def test_one_that_waited_meanwhile_puts_a_dead_landing_on_record(world: World) -> None:
    """alice's process dies when trunk has moved, while bob waits already."""
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "x\n"})
    trunk.branch("bob", {"b": "x\n"})
    trunk.interrupt("alice", moved=False)
    environ, pipe = world.environ("bob", {}), subprocess.PIPE
    with subprocess.Popen([*COORD, "land"], cwd=trunk.tree("bob"), env=environ, stdout=pipe, stderr=pipe) as second:
        assert second.stderr is not None and b"waiting" in second.stderr.readline()
        world.git("merge", "-q", "--ff-only", "alice")
        assert world.person("kill", "alice").code == 0  # her turn is over
        _, err = second.communicate(timeout=60)
        assert second.returncode == 0, err
    landed = [row["event"]["branch"] for row in world.coord("log", "--json", "--kind", "land").json["events"]]
    assert sorted(landed) == ["alice", "bob"], landed
    assert trunk.show("a") == trunk.show("b") == "x"


def test_a_task_is_not_done_by_a_landing_that_brings_nothing(world: World) -> None:
    """Its agent chained `git commit; git coord land --task`, and the commit was refused."""
    trunk = Trunk(world)
    tree = trunk.branch("alice", {})
    task = world.coord("task", "add", "do it", "--json", agent="alice").json["tasks"][0]["id"]
    assert world.coord("task", "take", task, agent="alice").code == 0
    (tree / "new").write_text("not committed\n")
    done = trunk.land("alice", "--task", task, "--json")
    assert done.code == 1 and done.json["error"] == "no-work", done
    assert world.coord("task", "show", task, "--json").json["task"]["state"] == "active"
    trunk.commit("alice", {"new": "committed\n"})
    assert trunk.land("alice", "--task", task).code == 0
    assert world.coord("task", "show", task, "--json").json["task"]["state"] == "done"
    trunk.nothing_left()


def test_a_landing_that_had_landed_before_its_answer_is_complete(world: World) -> None:
    """Its process was killed in between, or its agent asks twice. Other work does not complete the task once more."""
    trunk = Trunk(world)
    trunk.branch("alice", {"a": "x\n"})
    task = world.coord("task", "add", "do it", "--json").json["tasks"][0]["id"]
    assert world.coord("task", "take", task, agent="alice").code == 0
    first = trunk.land("alice", "--squash", "--task", task, "--json")
    again = trunk.land("alice", "--squash", "--task", task, "--json")
    assert again.code == 0 and again.json["already"] and again.json["new"] == first.json["new"] == trunk.tip, again
    assert trunk.land("alice", "--squash", "--task", task).out == f"alice on main already: {trunk.tip[:12]}\n"
    trunk.branch("bob", {"b": "x\n"})
    assert trunk.land("bob", "--task", task, "--json").json["error"] == "not-yours"
    assert trunk.land("bob", "alice", "--task", task, "--json").json["error"] == "not-yours"
    trunk.commit("alice", {"more": "x\n"})
    assert trunk.land("alice", "--task", task, "--json").json["error"] == "not-yours"
    world.git("reset", "-q", "--hard", "main~1")
    world.git("branch", "-q", "-f", "side", "alice~1")
    git(trunk.tree("alice"), "reset", "-q", "--hard", "alice~1")
    assert trunk.land("alice", "--task", task, "--json").json["error"] == "not-yours", "trunk went back"


def test_a_person_lands_at_a_terminal(world: World) -> None:
    """Under the name of git's settings, and no commit is said to be an agent's. An editor of `gitcoord.person` may commit, not land."""
    trunk = Trunk(world)
    trunk.branch("topic", {"a": "x\n"})
    world.commit({"other": "x\n"})
    world.git("config", "gitcoord.person", "ada@example.com")
    editor = world.coord("land", "topic", agent="")
    assert editor.code == 2 and "GITCOORD_AGENT" in editor.err, editor
    done = world.person("land", "topic")
    assert done.code == 0 and "landed topic on main" in done.out, done
    assert world.git("log", "-1", "--format=%B", "main") == "Merge branch 'topic'"
    assert world.events()[-1] == "land topic on main by ada_at_example.com"
    trunk.nothing_left()


def test_the_queue_tells_how_long_the_last_check_took(world: World) -> None:
    trunk = Trunk(world)
    for agent in ("alice", "bob"):
        trunk.branch(agent, {agent: "x\n"})
    assert trunk.land("alice", "--check", "sleep 1.1").code == 0
    world.take("@land/main", agent="bob")
    assert world.coord("land", "--list").out.endswith("  the last check took 1s\n")
    assert world.coord("land", "--list", "--json").json["check_seconds"] == 1
    assert "landing on main, the last check took 1s" in world.coord("status").out

"""Lanes in one repository: branches that do not meet are checked at the same time, each on top of those before it, and land in order."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import World
from tests.landing.support import Trunk
from tests.support import COORD, git

POLICY = "[land]\n\tlanes = 3\n"


class Lander:
    """One `git coord land` that runs. Its check waits until `go`, unless it says otherwise."""

    def __init__(self, trunk: Trunk, agent: str, check: str, *words: str) -> None:
        self.gate = trunk.top / f".git/go-{agent}"
        check = check.replace("WAIT", f"while ! test -e {self.gate}; do sleep 0.02; done")
        self.process = subprocess.Popen(
            [*COORD, "land", *(("--check", check) if check else ()), *words],
            cwd=trunk.tree(agent), env=trunk.world.environ(agent, {}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def reads(self, words: str) -> None:
        """Wait for a line on stderr that has these words."""
        assert self.process.stderr is not None
        seen = []
        while line := self.process.stderr.readline():
            seen.append(line)
            if words in line:
                return
        raise AssertionError(f"no '{words}': {seen}")

    def go(self) -> None:
        self.gate.write_text("")

    def ends(self, code: int = 0) -> str:
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == code, (self.process.returncode, out, err)
        return out + err


@pytest.fixture
def trunk(world: World) -> Trunk:
    return Trunk(world, policy=POLICY)


@pytest.fixture
def landers(trunk: Trunk) -> Iterator[dict[str, Lander]]:
    """Those that a test starts; none lives longer than it."""
    found: dict[str, Lander] = {}
    yield found
    for lander in found.values():
        lander.process.kill()
        lander.process.communicate()


def _start(trunk: Trunk, landers: dict[str, Lander], agent: str, check: str, *words: str) -> Lander:
    trunk.branch(agent, {agent: "x\n"})
    landers[agent] = Lander(trunk, agent, check, *words)
    return landers[agent]


def _landed(trunk: Trunk) -> set[str]:
    return {"alice", "bob", "carol"}.intersection(trunk.world.git("ls-tree", "--name-only", "main").split())


def test_they_are_checked_at_the_same_time_and_land_in_order(trunk: Trunk, landers: dict[str, Lander]) -> None:
    ways = {"alice": "--merge", "bob": "--rebase", "carol": "--squash"}
    for number, (agent, how) in enumerate(ways.items()):
        before = " && ".join(f"test -e {other}" for other in list(ways)[:number]) or "true"
        _start(trunk, landers, agent, f"{before} && echo {agent} >>{trunk.top}/.git/runs && WAIT", how).reads(
            "checking"
        )
    for agent in ("carol", "bob"):
        landers[agent].go()  # it is done first, and waits for its place
    assert trunk.world.git("log", "-1", "--format=%s", "main") == "policy"
    landers["alice"].go()
    for agent in ways:
        landers[agent].ends()
    assert (trunk.top / ".git/runs").read_text().split() == ["alice", "bob", "carol"], "each was checked once"
    merged = trunk.world.git("log", "--first-parent", "--reverse", "--format=%s", "main").splitlines()[-3:]
    assert merged == ["work of alice", "work of bob", "work of carol"]
    trunk.nothing_left()


def test_one_in_the_middle_fails(trunk: Trunk, landers: dict[str, Lander]) -> None:
    _start(trunk, landers, "alice", "WAIT").reads("checking")
    _start(trunk, landers, "bob", "WAIT; exit 1").reads("checking")
    carol = _start(trunk, landers, "carol", "if test -e bob; then sleep 1000; fi; test -e alice && WAIT")
    carol.reads("checking")
    landers["bob"].go()
    landers["bob"].reads("the check failed on top of what lands before")
    landers["alice"].go()
    landers["alice"].ends()
    assert "the check ended with 1" in landers["bob"].ends(1)
    carol.reads("checked again")
    carol.reads("checking")
    carol.go()
    carol.ends()
    assert _landed(trunk) == {"alice", "carol"}
    trunk.nothing_left()


def test_those_behind_one_that_breaks_them_are_not_to_blame(trunk: Trunk, landers: dict[str, Lander]) -> None:
    """The check of bob fails on top of alice, whose check fails too: without her it passes."""
    _start(trunk, landers, "alice", "WAIT; exit 1").reads("checking")
    bob = _start(trunk, landers, "bob", "! test -e alice")
    bob.reads("that is waited for")
    landers["alice"].go()
    landers["alice"].ends(1)
    bob.ends()
    trunk.nothing_left()


def test_trunk_that_moves_from_outside_voids_all_checks(trunk: Trunk, landers: dict[str, Lander]) -> None:
    for agent in ("alice", "bob"):
        _start(trunk, landers, agent, f"ls | grep -c outside >>{trunk.top}/.git/{agent}; WAIT").reads("checking")
    trunk.world.commit({"outside": "x\n"}, "a person's")
    for agent in ("alice", "bob"):
        landers[agent].go()
    for agent in ("alice", "bob"):
        landers[agent].ends()
        assert (trunk.top / f".git/{agent}").read_text().split() == ["0", "1"]
    trunk.nothing_left()


def test_branches_that_meet_wait_and_others_do_not(trunk: Trunk, landers: dict[str, Lander]) -> None:
    _start(trunk, landers, "alice", "WAIT").reads("checking")
    trunk.branch("bob", {"alice/below": "x\n"})
    bob = landers["bob"] = Lander(trunk, "bob", "true")
    bob.reads("alice lands alice")
    carol = _start(trunk, landers, "carol", "test -e alice && WAIT")
    carol.reads("checking")
    rows = trunk.world.coord("land", "--list", "--json").json
    assert [row["agent"] for row in rows["landing"]] == ["alice", "carol"]
    assert [row["agent"] for row in rows["waiting"]] == ["bob"] and rows["waiting"][0]["paths"] == []
    landers["alice"].go()
    landers["alice"].ends()
    assert "conflicts with main" in bob.ends(1)
    carol.go()
    carol.ends()


def test_one_that_dies_keeps_the_others_no_longer_than_its_turn(trunk: Trunk, landers: dict[str, Lander]) -> None:
    _start(trunk, landers, "alice", "WAIT").reads("checking")
    bob = _start(trunk, landers, "bob", "WAIT")
    bob.reads("checking")
    carol = _start(trunk, landers, "carol", "true")
    carol.reads("checking")
    for agent in ("alice", "bob"):
        landers[agent].process.kill()
        landers[agent].process.wait()
        trunk.world.fall_silent(agent)
    carol.ends()
    assert _landed(trunk) == {"carol"}
    assert trunk.land("alice").code == 0 and trunk.land("bob").code == 0
    trunk.nothing_left()


def test_nothing_is_said_of_one_that_failed_in_a_lane(trunk: Trunk) -> None:
    """Its record stays until the next landing; it has nothing to finish."""
    trunk.branch("alice", {"alice": "x\n"})
    assert trunk.land("alice", "--check", "false").code == 1
    assert "interrupted" not in trunk.world.coord("status").out
    assert trunk.land("alice", "--check", "true").code == 0
    trunk.nothing_left()


def test_a_conflict_lets_the_others_land(trunk: Trunk) -> None:
    trunk.branch("alice", {"text": "alice\n"})
    trunk.world.commit({"text": "other\n"}, "other work")
    done = trunk.land("alice", "--check", "true")
    assert done.code == 1 and "within 5m, then others may land first" in done.err
    trunk.branch("bob", {"bob": "x\n"})
    assert trunk.land("bob", "--check", "true", "--wait", "0").code == 0
    (trunk.tree("alice") / "text").write_text("both\n")
    git(trunk.tree("alice"), "add", "text")
    assert trunk.land("alice", "--continue").code == 0
    assert trunk.show("text") == "both"
    trunk.nothing_left()


def test_a_conflict_of_one_that_has_its_place_lets_those_behind_it_land(
    world: World, landers: dict[str, Lander]
) -> None:
    trunk = Trunk(world, policy=f"{POLICY}\tresolve = 1h\n")
    _start(trunk, landers, "alice", "WAIT").reads("checking")
    trunk.branch("bob", {"text": "bob\n"})
    landers["bob"] = Lander(trunk, "bob", "WAIT")
    landers["bob"].reads("checking")
    _start(trunk, landers, "carol", "WAIT").reads("checking")
    trunk.world.commit({"text": "a person's\n"}, "a person's")
    for lander in landers.values():
        lander.go()
    landers["alice"].ends()
    assert "within 1h, then others may land first" in landers["bob"].ends(1)
    landers["carol"].ends()
    assert _landed(trunk) == {"alice", "carol"}
    (trunk.tree("bob") / "text").write_text("both\n")
    git(trunk.tree("bob"), "add", "text")
    assert trunk.land("bob", "--continue").code == 0
    trunk.nothing_left()


def test_a_landing_without_a_check_is_one_step_unless_others_have_a_place(
    trunk: Trunk, landers: dict[str, Lander]
) -> None:
    trunk.branch("bob", {"bob": "x\n"})
    assert trunk.land("bob").code == 0
    assert [subject.split()[0] for subject in trunk.world.events()][-4:] == ["start", "claim", "landing", "land"]
    _start(trunk, landers, "alice", "WAIT").reads("checking")
    trunk.branch("carol", {"carol": "x\n"})
    carol = landers["carol"] = Lander(trunk, "carol", "")
    landers["alice"].go()
    landers["alice"].ends()
    carol.ends()
    assert Path(trunk.top / "carol").exists()
    trunk.nothing_left()


def test_views_leave_out_the_places_of_landings(world: World) -> None:
    world.take("@land/main", "@lane/src/a.py", "src/a.py")
    for shown in (world.claim("list").out, world.coord("status").out):
        assert "src/a.py" in shown and "@lane/" not in shown, shown
    assert "@lane/src/a.py" in world.claim("list", "--all").out

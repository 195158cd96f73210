"""SIGKILL at any step of a landing, here and at a remote: the next landing, by the same agent or another, makes trunk and ledger agree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.support import Done, World
from tests.faults.test_kill_sweep import STRACE, WHY_NOT, Point, _killing
from tests.landing.support import Trunk
from tests.ledger.remote.support import Fleet
from tests.support import COORD, git

SOAK = os.environ.get("GITCOORD_SOAK") == "1"
pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-"),
    pytest.mark.timeout(7200 if SOAK else 300),
]
# A child of git, a ref or a note: what a step of a landing is made of.
_STEPS = ("vfork", "clone", "clone3", "rename", "unlink", "flock", "mkdir", "rmdir", "wait4")


class Here:
    """One repository: a check, a marked path, a merge, and trunk checked out."""

    points = 400 if SOAK else 6
    killed_after = 0

    def __init__(self, place: Path, lanes: int) -> None:
        (place / "repo").mkdir()
        self.world = World(place / "repo", ledger=True)
        self.trunk = Trunk(
            self.world, policy=f"[land]\n\tcheck = test -e text\n\tlanes = {lanes}\n", marks="text gitcoord-claim\n"
        )
        self.words, self.env = COORD, self.world.environ("alice", {})
        for agent in ("alice", "bob"):
            self.trunk.branch(agent, {agent: "\n"})
        self.tree = self.trunk.tree("alice")

    def coord(self, *words: str) -> Done:
        return self.world.coord(*words, agent="alice")

    def begin(self, number: int) -> None:
        """Branches of alice and bob, and trunk that has moved on."""
        for agent, name in (("alice", "text"), ("bob", "bob")):
            git(self.trunk.tree(agent), "switch", "-q", "-C", agent, "main")
            self.trunk.commit(agent, {name: f"{number}\n"}, f"{agent} {number}")
        self.world.commit({"other": f"{number}\n"}, "other work")

    def landed(self, number: int) -> bool:
        return self.trunk.show("text") == str(number)

    def waits(self, number: int) -> bool:
        return False  # alice falls silent

    def bob_lands(self) -> Done:
        self.world.fall_silent("alice")
        return self.trunk.land("bob", "--wait", "20s")

    def subjects(self) -> list[str]:
        return self.world.git("log", "--format=%s", "main").splitlines()

    def landings(self) -> int:
        return len([words for words in self.world.events() if words.startswith("land alice on main")])

    def asked(self) -> list[str]:
        return []

    def assert_sound(self) -> None:
        assert self.world.git("status", "--porcelain") == ""
        assert (self.trunk.top / "text").read_text() == self.trunk.show("text") + "\n"
        self.trunk.nothing_left()


class There:
    """Two clones of a server, which alone has trunk: ledger and trunk move in one push."""

    points = 400 if SOAK else 5
    atomic = True
    killed_after = 0  # points at which it had landed when it was killed

    def __init__(self, place: Path, lanes: int) -> None:
        self.fleet = Fleet(place)
        self.one, self.two = self.fleet.machines
        self.lanes = lanes
        if lanes > 1:
            self.one.commit({".gitcoord/config": f"[land]\n\tcheck = true\n\tlanes = {lanes}\n"})
            self.one.git("push", "-q", "origin", "main")
            self.two.git("pull", "-q")
        for machine in self.fleet.joined():
            machine.git("config", "gitcoord.atomic", str(self.atomic).lower())
        self.env = {**self.one.env, "GITCOORD_AGENT": "alice"}
        self.words = [shutil.which("git-coord", path=self.env["PATH"]) or "git-coord"]
        self.tree = self.one.repo

    def coord(self, *words: str) -> Done:
        return self.one.run("git-coord", *words, agent="alice")

    def begin(self, number: int) -> None:
        for machine, agent in ((self.one, "alice"), (self.two, "bob")):
            machine.git("fetch", "-q")
            machine.git("switch", "-q", "-C", agent, "origin/main")
            machine.commit({f"{agent}{number}": "x\n"})
            machine.git("commit", "-q", "--amend", "-m", f"{agent} {number}")

    def landed(self, number: int) -> bool:
        return f"alice{number}" in self.fleet.git("ls-tree", "--name-only", "main").splitlines()

    def waits(self, number: int) -> bool:
        """Would bob wait for a minute, until the turn that alice left is over?"""
        return self.lanes > 1

    def bob_lands(self) -> Done:
        done = self.two.run("git-coord", "land", "--wait", "20s", agent="bob")
        ended = self.two.run("git-coord", "stop", agent="bob")  # beside his session alice asks before each landing
        assert ended.code == 0, ended
        return done

    def subjects(self) -> list[str]:
        return self.fleet.git("log", "--format=%s", "main").splitlines()

    def landings(self) -> int:
        return len([event for event in self.fleet.events("land") if event["branch"] == "alice"])

    def asked(self) -> list[str]:
        """The services of the server called since the last call of this, by a landing that is one push."""
        found = self.fleet.connections()
        return found if self.atomic and self.lanes == 1 else []

    def assert_sound(self) -> None:
        assert self.two.claim("list", "--json").json["claims"] == []
        left = [ref for ref in self.fleet.refs() if ref.startswith("refs/gitcoord/lanes/")]
        assert len(left) <= self.killed_after, "only one that is killed after it has landed may leave its commit there"
        self.fleet.assert_sound()


class Apart(There):
    """The same at a server that takes one ref at a time: the announcement, trunk and the record follow one after the other."""

    points = 400 if SOAK else 4
    atomic = False

    def waits(self, number: int) -> bool:
        return not self.landed(number) and self.one.claim("list", "--json").json["claims"] != []


def _play(place: Here | There, tracer: list[str], task: str) -> int:
    """alice's landing under the tracer, until all its processes have ended."""
    reader, writer = os.pipe()
    try:
        done = subprocess.run(
            [*tracer, *place.words, "land", "alice", "--task", task], cwd=place.tree, env=place.env,
            stdin=subprocess.DEVNULL, capture_output=True, check=False, pass_fds=(writer,), timeout=100,
        )  # fmt: skip
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        pipe.read()
    assert b"Traceback" not in done.stderr, done.stderr
    return done.returncode


def _task(place: Here | There, number: int) -> str:
    """A task of alice's, and the branches to land."""
    task = str(place.coord("task", "add", f"do {number}", "--json").json["tasks"][0]["id"])
    assert place.coord("task", "take", task).code == 0
    place.begin(number)
    return task


def _points(place: Here | There, trace: Path) -> list[Point]:
    """Steps of a landing, evenly spread."""
    assert _play(place, [STRACE, "-o", str(trace)], _task(place, 0)) == 0
    seen: Counter[str] = Counter()
    found = []
    for line in trace.read_text(errors="replace").splitlines():
        call = re.match(r"(\w+)\(", line)
        if call:
            seen[call[1]] += 1
            found += [Point(call[1], seen[call[1]])] if call[1] in _STEPS else []
    count = min(place.points, len(found))
    return [found[round(i * (len(found) - 1) / (count - 1))] for i in range(count)]


@pytest.mark.parametrize(("kind", "lanes"), [(Here, 1), (Here, 2), (There, 1), (There, 2), (Apart, 1)])
def test_a_landing_is_killed(tmp_path: Path, kind: type[Here | There], lanes: int) -> None:
    place = kind(tmp_path, lanes)
    for number, point in enumerate(_points(place, tmp_path / "trace"), 1):
        task, where = _task(place, number), f"killed at {point}"
        place.asked()
        _play(place, _killing(point), task)
        assert "upload-pack" not in place.asked(), f"{where}: it is to be killed in its one push"
        place.killed_after += place.landed(number)

        def done(task: str = task) -> bool:
            return str(place.coord("task", "show", task, "--json").json["task"]["state"]) == "done"

        assert place.landed(number) or not done(), f"{where}: the task is done, and its commit is not on trunk"
        # Also where it was on record already: what such a landing leaves in this clone, the next one removes.
        if (number % 2 or done()) and not place.waits(number):
            other = place.bob_lands()
            assert other.code == 0 and f"bob {number}" in place.subjects(), f"{where}: {other}"
            assert place.landed(number) == done(), f"{where}: trunk and ledger do not agree: {other}"
        again = place.coord("land", "alice", "--task", task)
        assert again.code == 0, f"{where}: {again}"
        assert place.landed(number) and done(), where
        assert place.landings() == number + 1, f"{where}: landed twice, or not at all"
        assert git(place.tree, "log", "-1", "--format=%s", "alice") == f"alice {number}\n".encode(), where
        place.assert_sound()

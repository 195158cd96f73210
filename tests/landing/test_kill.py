"""SIGKILL at any step of a landing: the next landing, by the same agent or another, makes trunk and ledger agree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.support import World
from tests.faults.test_kill_sweep import STRACE, WHY_NOT, Point, _killing
from tests.landing.support import Trunk
from tests.support import COORD, git

SOAK = os.environ.get("GITCOORD_SOAK") == "1"
pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-"),
    pytest.mark.timeout(7200 if SOAK else 300),
]
_POINTS = 400 if SOAK else 14
# A child of git, a ref or a note: what a step of a landing is made of.
_STEPS = ("vfork", "clone", "clone3", "rename", "unlink", "flock", "mkdir", "rmdir", "wait4")


class Stage:
    """alice is about to land a branch that completes a task, bob another; trunk is checked out."""

    def __init__(self, place: Path) -> None:
        self.place = place / "stage"
        (self.place / "repo").mkdir(parents=True)
        self.world = World(self.place / "repo").init()
        self.trunk = Trunk(self.world, policy="[land]\n\tcheck = test -e text\n", marks="text gitcoord-claim\n")
        self.trunk.branch("alice", {"text": "alice\n"})
        self.trunk.branch("bob", {"bob": "bob\n"})
        self.world.commit({"other": "x\n"}, "other work")
        self.task = self.world.coord("task", "add", "do it", "--json").json["tasks"][0]["id"]
        assert self.world.coord("task", "take", self.task).code == 0
        self.saved = place / "saved"
        shutil.copytree(self.place, self.saved, symlinks=True)

    def restore(self) -> None:
        """Put all work trees back, in the same directories: a copy elsewhere would be no authority."""
        for entry in [*self.trunk.top.iterdir(), *(self.trunk.top / ".git").iterdir(), *self.place.iterdir()]:
            if entry in (self.trunk.top, self.trunk.top / ".git"):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        shutil.copytree(self.saved, self.place, symlinks=True, dirs_exist_ok=True)
        for tree in (self.trunk.top, self.trunk.tree("alice"), self.trunk.tree("bob")):
            git(tree, "update-index", "-q", "--refresh")

    def play(self, tracer: list[str]) -> int:
        """Run alice's landing under the tracer, and wait until all its processes have ended."""
        reader, writer = os.pipe()
        try:
            done = subprocess.run(
                [*tracer, *COORD, "land", "--task", self.task], cwd=self.trunk.tree("alice"),
                env=self.world.environ("alice", {}), stdin=subprocess.DEVNULL, capture_output=True, check=False,
                pass_fds=(writer,), timeout=100,
            )  # fmt: skip
        finally:
            os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            pipe.read()
        assert b"Traceback" not in done.stderr, done.stderr
        return done.returncode

    def points(self) -> list[Point]:
        trace = self.place.parent / "trace"
        assert self.play([STRACE, "-o", str(trace)]) == 0
        seen: Counter[str] = Counter()
        found = []
        for line in trace.read_text(errors="replace").splitlines():
            call = re.match(r"(\w+)\(", line)
            if call:
                seen[call[1]] += 1
                if call[1] in _STEPS:
                    found.append(Point(call[1], seen[call[1]]))
        count = min(_POINTS, len(found))
        return [found[round(i * (len(found) - 1) / (count - 1))] for i in range(count)]

    def done(self) -> bool:
        return str(self.world.coord("task", "show", self.task, "--json").json["task"]["state"]) == "done"

    def landed(self) -> bool:
        return self.trunk.show("text") == "alice"


def test_a_landing_is_killed(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for turn, point in enumerate(stage.points()):
        stage.restore()
        stage.play(_killing(point))
        where = f"killed at {point}"
        assert stage.landed() or not stage.done(), f"{where}: the task is done, and its commit is not on trunk"
        if turn % 2:
            stage.world.fall_silent("alice")
            other = stage.trunk.land("bob", "--wait", "20s")
            assert other.code == 0 and stage.trunk.show("bob") == "bob", f"{where}: {other}"
            assert stage.landed() == stage.done(), f"{where}: trunk and ledger do not agree: {other}"
        if not stage.done():
            again = stage.trunk.land("alice", "--task", stage.task)
            assert again.code == 0, f"{where}: {again}"
        assert stage.landed() and stage.done(), where
        subjects = stage.world.git("log", "--format=%s", "main").splitlines()
        assert subjects.count("work of alice") == 1 and subjects.count("Merge branch 'alice'") == 1, (
            f"{where}: {subjects}"
        )
        assert stage.world.git("status", "--porcelain") == "", where
        assert (stage.trunk.top / "text").read_text() == "alice\n", where
        assert git(stage.trunk.tree("alice"), "log", "-1", "--format=%s") == b"work of alice\n", where
        if not turn % 2:
            assert stage.trunk.land("bob").code == 0
        stage.trunk.nothing_left()

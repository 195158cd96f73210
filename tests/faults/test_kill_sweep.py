"""SIGKILL at every system call of take, release, expire, wait, leave, init and of accepting a handoff.

Three ways to die: the command alone (its git children live on), its `git update-ref` alone (the command lives on), and
both together. strace counts system calls by name, so that a point means the same thing in each run. A run without
GITCOORD_SOAK=1 samples the points, most of them where something is written; a run with it takes every point of the first
two ways and a sample of the third.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.support import Done
from tests.faults.world import DRIVER, GIT, SOAK, Mirror, World, make_world
from tests.support import CLAIM, HANDOFF

STRACE = shutil.which("strace") or ""


def _can_trace() -> str:
    """'' where strace can kill at a system call; else why not."""
    if not STRACE:
        return "strace is not installed"
    argv = [STRACE, "-o", "/dev/null", "-e", "trace=exit_group", "-e", "inject=exit_group:signal=SIGKILL", "true"]
    done = subprocess.run(argv, capture_output=True, check=False)
    return (
        ""
        if done.returncode in (-9, 137)
        else f"strace cannot trace here: {done.stderr.decode(errors='replace').strip()}"
    )


WHY_NOT = _can_trace()
pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-"),
    pytest.mark.timeout(7200 if SOAK else 300),
]

_CHANGES = {
    "rename",
    "unlink",
    "link",
    "mkdir",
    "rmdir",
    "write",
    "fsync",
    "flock",
    "vfork",
    "clone",
    "clone3",
    "execve",
    "exit_group",
}
_SOME_CHANGES, _SOME_OTHERS = (60, 20) if SOAK else (4, 1)

# Stands in PATH as `git`. The first child of the verb in VICTIM is run by strace, in its own process (-D), so that the
# note of its locks names the right one.
_WRAPPER = f"""#!/bin/sh
case " $* " in
*" $VICTIM "*) if mkdir "$ONCE" 2>/dev/null; then exec {STRACE} -D -o "$TRACE" -e "$POINT" -e "$INJECT" {GIT} "$@"; fi ;;
esac
exec {GIT} "$@"
"""


class Point(NamedTuple):
    """The n-th system call of this name."""

    name: str
    n: int

    def __str__(self) -> str:
        return f"{self.name}#{self.n}"


class Scene(NamedTuple):
    """A command to kill, and what may come of it."""

    argv: list[str]
    agent: str
    prepare: Callable[[World], None]
    # (was it done?) -> exit code of the same command given again / of a rival who asks for the path
    again: dict[bool, int]
    rival: dict[bool, int]
    meanwhile: Callable[[World], None] | None = None  # done when the command has said something, or has ended


def _hold(world: World) -> None:
    assert world.claim("src/app.py", agent="alice").code == 0


def _work(world: World) -> None:
    _hold(world)
    world.commit("src/app.py", "second\n")


def _fall_silent(world: World) -> None:
    _hold(world)
    world.silence("alice")


def _hand_over(world: World) -> None:
    """A task with its path: event 2 adds it, 6 is the handoff."""
    assert world.coord("task", "add", "build", "--path", "src/app.py", agent="boss").code == 0
    assert world.coord("task", "take", "t2", agent="alice").code == 0
    said = [word for key in ("state", "changed", "remaining", "next") for word in (f"--{key}", f"the {key} of it")]
    done = world.run([*HANDOFF, "new", "--task", "t2", *said], "alice")
    assert done.code == 0 and done.out.startswith("h6 "), done


def _queue(world: World) -> None:
    _hold(world)
    assert world.claim("--queue", "src/app.py", agent="bob").code == 3


def _release(world: World) -> None:
    assert world.claim("release", "src/app.py", agent="alice").code == 0


def _nothing(world: World) -> None:
    pass


SCENES = {
    "take": Scene([*CLAIM, "src/app.py"], "alice", _nothing, {True: 0, False: 0}, {True: 1, False: 0}),
    "release": Scene([*CLAIM, "release", "src/app.py"], "alice", _work, {True: 1, False: 0}, {True: 0, False: 1}),
    "expire": Scene([*CLAIM, "src/app.py"], "bob", _fall_silent, {True: 0, False: 0}, {True: 1, False: 0}),
    "accept": Scene([*HANDOFF, "accept", "h6"], "bob", _hand_over, {True: 0, False: 0}, {True: 1, False: 1}),
    "grant": Scene([*CLAIM, "release", "src/app.py"], "alice", _queue, {True: 1, False: 0}, {True: 1, False: 1}),
    "leave": Scene([*CLAIM, "--leave", "src/app.py"], "bob", _queue, {True: 0, False: 0}, {True: 1, False: 1}),
    "wait": Scene(
        [*CLAIM, "--wait", "60s", "src/app.py"], "bob", _hold, {True: 0, False: 0}, {True: 3, False: 0}, _release
    ),
    "init": Scene([*DRIVER, "init"], "", _nothing, {True: 0, False: 0}, {True: 0, False: 0}),
}


class Stage:
    """A scene on its repository: run it, kill it, put it back."""

    def __init__(self, name: str, place: Path) -> None:
        self.name = name
        self.scene = SCENES[name]
        self.place = place
        self.world = make_world(place / "repo", ledger=name != "init")
        self.scene.prepare(self.world)
        self.mirror = Mirror(self.world, place / "mirror")
        if self.scene.meanwhile is not None:
            self.scene.meanwhile(self.world)
        self.before = self.world.observe()
        self.bin = place / "bin"
        self.bin.mkdir()
        (self.bin / "git").write_text(_WRAPPER)
        (self.bin / "git").chmod(0o755)
        calls = self.profile("")
        self.points = calls
        swap = next(i for i, (_, line) in enumerate(calls) if line.startswith("write(") and '"start\\n' in line)
        # In an undisturbed run nobody waits for update-ref: the next wait after the swap began sees how it died.
        self.finds_out = Point("wait4", 1 + sum(line.startswith("wait4(") for _, line in calls[:swap]))
        self.after = self.world.observe()
        assert _state(self.after) != _state(self.before)

    def profile(self, victim: str) -> list[tuple[Point, str]]:
        """Every system call of the command ('') or of its git child of this verb, in order."""
        self.mirror.restore()
        trace = self.place / "trace"
        done = self.play([], victim=victim, trace=trace) if victim else self.play([STRACE, "-o", str(trace)])
        assert done.code == 0, done.err
        seen: Counter[str] = Counter()
        calls = []
        for line in trace.read_text(errors="replace").splitlines():
            call = re.match(r"(\w+)\(", line)
            if call:
                seen[call[1]] += 1
                calls.append((Point(call[1], seen[call[1]]), line))
        return calls

    def play(
        self, tracer: list[str], *, victim: str = "-", trace: Path | None = None, point: Point | None = None
    ) -> Done:
        """Run the scene's command and wait until every process of it is gone."""
        once = self.place / "once"
        if once.exists():
            once.rmdir()
        env = self.world.env(self.scene.agent) | {
            "VICTIM": victim,
            "ONCE": str(once),
            "TRACE": str(trace or "/dev/null"),
        }
        env["PATH"] = f"{self.bin}{os.pathsep}{env['PATH']}"
        env["POINT"] = f"trace={point.name}" if point else "trace=all"
        env["INJECT"] = _inject(point) if point else "trace=all"
        reader, writer = os.pipe()
        try:
            process = subprocess.Popen(
                [*tracer, *self.scene.argv], cwd=self.world.top, env=env, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(writer,),
            )  # fmt: skip
        finally:
            os.close(writer)
        first = b""
        if self.scene.meanwhile is not None:
            assert process.stderr is not None
            first = process.stderr.readline()
            self.scene.meanwhile(self.world)
        out, said = process.communicate()
        with os.fdopen(reader, "rb") as pipe:
            pipe.read()  # ends when the last process that inherited it has ended
        err = (first + said).decode(errors="replace")
        assert "Traceback" not in err, err
        return Done(process.returncode, out.decode(errors="replace"), err)


def _inject(point: Point) -> str:
    return f"inject={point.name}:signal=SIGKILL:when={point.n}"


def _killing(point: Point) -> list[str]:
    return [STRACE, "-o", "/dev/null", "-e", f"trace={point.name}", "-e", _inject(point)]


def _state(seen: Any) -> tuple[int, frozenset[tuple[str, str, str, int]]]:
    return seen["seq"], frozenset((c["path"], c["agent"], c["mode"], c["token"]) for c in seen["claims"])


def _sample(stage: Stage, calls: list[tuple[Point, str]], *, every: bool = SOAK) -> list[Point]:
    """All of them, or some: most of those that change something, a few of the others.

    The scenes have one transaction and its `git update-ref` in common, so each scene takes points between those of the others.
    """
    part = list(SCENES).index(stage.name) / len(SCENES)
    if every:
        return [point for point, _ in calls]
    changes = [p for p, line in calls if p.name in _CHANGES or "O_CREAT" in line]
    others = [p for p, line in calls if not (p.name in _CHANGES or "O_CREAT" in line)]
    return [*_evenly(changes, _SOME_CHANGES, part), *_evenly(others, _SOME_OTHERS, part)]


def _evenly(points: list[Point], count: int, part: float) -> list[Point]:
    """So many at equal distances, the first one `part` of a distance from the beginning."""
    if len(points) <= count:
        return points
    return [points[int((i + part) * len(points) / count)] for i in range(count)]


def _judge(stage: Stage, done: Done, where: str, turn: int) -> None:
    """Old or new, the next command works, one holder, fsck clean."""
    world, scene = stage.world, stage.scene
    seen = world.observe()
    new = _state(seen) == _state(stage.after)
    assert new or _state(seen) == _state(stage.before), f"{where}: neither old nor new: {seen}"
    assert all(line.startswith("refs/") for line in seen["differences"]), f"{where}: {seen['differences']}"
    if done.code == 0 or "claimed" in done.out or "released" in done.out or "accepted h6" in done.out:
        assert new, f"{where}: said to be done, and is not: {done}"
    first, second = ("again", "rival") if turn % 2 else ("rival", "again")
    waits = ["--queue"] if stage.name == "wait" else []  # both, so that none of them blocks
    answers = {
        "again": lambda: (
            world.claim(*waits, "src/app.py", agent="bob") if waits else world.run(scene.argv, scene.agent)
        ),
        "rival": lambda: world.claim(*waits, "src/app.py", agent="carol"),
    }
    if stage.name == "init":
        first, second = "again", "rival"
    answer = answers[first]()
    assert answer.code == getattr(scene, first)[new], f"{where}: {first}: {answer}"
    if waits and answer.code == 3 and not world.confirms("bob"):
        world.pass_reservations()
        assert answers["rival"]().code == 0, f"{where}: blocked longer than a reservation"
    assert answers[second]().code in (0, 1, 3), where
    seen = world.observe()
    if not seen["clean"]:
        mended = world.drive("repair")
        assert mended.code == 0 and mended.json["clean"], f"{where}: {mended}"
        seen = world.observe()
    assert seen["clean"], f"{where}: {seen['differences']}"
    assert world.seqs() == list(range(1, seen["seq"] + 1)), where
    assert [c["path"] for c in seen["claims"]].count("src/app.py") <= 1, f"{where}: two hold it: {seen['claims']}"
    world.git("fsck", "--strict", "--no-dangling")


@pytest.fixture(scope="module", params=list(SCENES))
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(request.param, tmp_path_factory.mktemp("stage"))


def test_command_is_killed(stage: Stage) -> None:
    """The command dies at each of its system calls; its git children finish, or see the end of their input."""
    for turn, point in enumerate(_sample(stage, stage.points)):
        stage.mirror.restore()
        done = stage.play(_killing(point))
        _judge(stage, done, f"command at {point}", turn)


def test_update_ref_is_killed(stage: Stage) -> None:
    """git dies in the middle of the swap: the command finds out what came of it, clears the locks and tries again."""
    for turn, point in enumerate(_sample(stage, stage.profile("update-ref"))):
        stage.mirror.restore()
        done = stage.play([], victim="update-ref", point=point)
        assert done.code == 0 or stage.name == "init" and done.code == 4, f"update-ref at {point}: {done}"
        _judge(stage, done, f"update-ref at {point}", turn)


def test_both_are_killed(stage: Stage) -> None:
    """No process is left that knows: the next writer finds the locks, their note and the torn refs."""
    for turn, point in enumerate(_sample(stage, stage.profile("update-ref"), every=False)):
        stage.mirror.restore()
        done = stage.play(_killing(stage.finds_out), victim="update-ref", point=point)
        _judge(stage, done, f"both at {point} of update-ref", turn)


@pytest.mark.parametrize("stage", list(SCENES) if SOAK else ["expire"], indirect=True)
@pytest.mark.parametrize("victim", ["cat-file", "config"])
def test_reader_is_killed(stage: Stage, victim: str) -> None:
    """A reader that dies is an error, never an empty answer."""
    points = _sample(stage, stage.profile(victim), every=False)
    assert points, f"git {victim} was not asked"
    for turn, point in enumerate(points):
        stage.mirror.restore()
        done = stage.play([], victim=victim, point=point)
        assert done.code in (0, 4), f"{victim} at {point}: {done}"
        _judge(stage, done, f"{victim} at {point}", turn)

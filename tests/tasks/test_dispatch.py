"""`git coord dispatch`: one dispatcher, workers up to the cap, and what becomes of them when something is killed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from gitcoord.tasks.cli_dispatch import backoff
from tests.cli.support import Done, World
from tests.races.support import wait_until
from tests.support import COORD, ROOT
from tests.tasks.test_tasks import add, task

WORKER = """
while id=$({coord} task next --json | {python} -c 'import json,sys; t=json.load(sys.stdin)["task"]; print(t["id"] if t else "")') && [ "$id" ]; do
    echo "$GITCOORD_AGENT $id" >> "$OUT"
    # Not `tail -f`: that ends by itself once nobody reads what it would print.
    [ "$1" = stuck ] && exec {python} -I -S -c 'import signal; signal.pause()'
    {coord} task complete $id -m done --not-done none -q || exit 1
done
"""


def dispatch(world: World, *words: str, out: Path, agent: str = "boss", ok: str = "") -> subprocess.Popen[bytes]:
    coord = shlex.join(COORD)
    script = world.top / ".git" / "worker.sh"
    script.write_text(WORKER.format(coord=coord, python=sys.executable))
    return subprocess.Popen(
        [*COORD, "dispatch", *words, "--", "sh", str(script), *([ok] if ok else [])], cwd=world.top, stdin=subprocess.DEVNULL,
        env=world.environ(agent, {"OUT": str(out)}), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def finished(process: subprocess.Popen[bytes]) -> Done:
    out, err = process.communicate(timeout=120)
    return Done(process.returncode, out.decode(), err.decode())


def test_dispatch_until_the_queue_is_empty(world: World, tmp_path: Path) -> None:
    ids = [add(world, f"task {n}") for n in range(4)]
    done = finished(dispatch(world, "--max", "2", "--until-empty", "--as", "helper", out=tmp_path / "out"))
    assert done.code == 0, done
    rows = [line.split() for line in (tmp_path / "out").read_text().splitlines()]
    assert sorted(id for _, id in rows) == ids and {name for name, _ in rows} <= {"helper-1", "helper-2"}
    assert not world.claims() and world.coord("fsck").code == 0


def test_there_is_one_dispatcher_and_it_needs_a_number(world: World, tmp_path: Path) -> None:
    assert finished(dispatch(world, out=tmp_path / "out")).code == 2
    add(world, "a")
    first = dispatch(world, "--max", "1", out=tmp_path / "out", ok="stuck")
    wait_until("a worker is at work", lambda: (tmp_path / "out").exists())
    for agent in ("other", "boss"):  # the same name in another process is another dispatcher
        second = finished(dispatch(world, "--max", "1", out=tmp_path / "out", agent=agent))
        assert second.code == 1 and "held by boss" in second.err, second
    first.send_signal(signal.SIGTERM)
    done = finished(first)
    assert done.code == 143, done
    assert not world.claims() and task(world, "t2")["state"] == "open" and task(world, "t2")["attempts"] == 1


def test_waiting_for_tasks_is_said_once(world: World, tmp_path: Path) -> None:
    process = dispatch(world, "--max", "1", out=tmp_path / "out")
    assert process.stderr is not None
    assert process.stderr.readline() == b"waiting for tasks\n"
    add(world, "a")
    seen = b""
    while b" ended " not in seen:
        line = process.stderr.readline()
        assert line, seen
        seen += line
    process.send_signal(signal.SIGTERM)  # it counts at the next wait, which has no task either
    seen += process.stderr.read()
    assert finished(process).code == 143 and b"waiting" not in seen, seen


def worker_of(world: World, name: str) -> tuple[int, int]:
    """The launcher of a worker, and the worker."""
    notes = world.top / ".git" / "gitcoord"
    launcher = int((notes / "runs" / name).read_text().split("\n")[0])
    (child,) = (int(path.name) for path in (notes / "procs").iterdir())
    return launcher, child


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return True


def test_a_worker_whose_launcher_was_killed_ends_and_is_replaced(world: World, tmp_path: Path) -> None:
    """SIGKILL to the launcher: the worker gets no heartbeats any more, so it ends too, and another does the task."""
    world.commit({".gitcoord/config": "[workers]\n\tcap = 1\n\theartbeat = 1s\n"})
    add(world, "a")
    out = tmp_path / "out"
    process = dispatch(world, "--until-empty", out=out, ok="stuck")
    wait_until("a worker is at work", out.exists)
    script = world.top / ".git" / "worker.sh"
    script.write_text(script.read_text().replace("= stuck", "= never"))
    launcher, child = worker_of(world, "worker-1")
    os.kill(launcher, signal.SIGKILL)
    wait_until("the worker is gone", lambda: is_gone(child))
    done = finished(process)
    assert done.code == 0, done
    assert [line.split()[0] for line in out.read_text().splitlines()] == ["worker-1", "worker-2"]
    assert task(world, "t2")["attempts"] == 1 and task(world, "t2")["state"] == "done"


def test_a_worker_that_does_not_want_to_end_is_ended(world: World) -> None:
    """Its launcher is still there to release its claims. The grace period is shortened, to save ten seconds."""
    add(world, "a", "--path", "src/a.py")
    stubborn = f"trap '' TERM; {shlex.join(COORD)} task next -q; while :; do sleep 60; done"
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from gitcoord.cli.entry import main; "
        "from gitcoord.tasks import cli_dispatch; cli_dispatch.GRACE = 0.2; sys.exit(main('coord', sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "dispatch", "--max", "1", "--", "sh", "-c", stubborn],
        cwd=world.top, stdin=subprocess.DEVNULL, env=world.environ("boss", {}), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_until("it is at work", lambda: task(world, "t2")["state"] == "active")
    _, child = worker_of(world, "worker-1")
    process.send_signal(signal.SIGTERM)
    assert finished(process).code == 143
    assert is_gone(child) and not world.claims()
    assert task(world, "t2")["state"] == "open" and task(world, "t2")["attempts"] == 1


def test_the_next_dispatcher_goes_on_after_one_that_was_killed(world: World, tmp_path: Path) -> None:
    """Its worker lives on and counts: no more are at work than may be, and no name is used twice."""
    add(world, "a")
    out = tmp_path / "out"
    first = dispatch(world, "--max", "1", out=out, ok="stuck")
    wait_until("a worker is at work", out.exists)
    launcher, _ = worker_of(world, "worker-1")
    first.kill()
    first.wait()
    for pipe in (first.stdout, first.stderr):  # its worker has them too, and lives
        assert pipe is not None
        pipe.close()
    other = add(world, "b")
    second = dispatch(world, "--max", "2", "--until-empty", out=out)
    wait_until("the other task is done", lambda: task(world, other)["state"] == "done")
    os.kill(launcher, signal.SIGTERM)
    done = finished(second)
    assert done.code == 0, done
    assert "started worker-1" not in done.err and task(world, "t2")["state"] == "done"


def test_who_lost_the_place_dispatches_no_longer(world: World, tmp_path: Path) -> None:
    """This happens to a dispatcher that was stopped for a while, and continues."""
    add(world, "a")
    first = dispatch(world, "--max", "1", out=tmp_path / "out", ok="stuck")
    wait_until("a worker is at work", (tmp_path / "out").exists)
    first.send_signal(signal.SIGSTOP)
    assert world.claim("release", "@dispatcher", agent="boss").code == 0
    assert world.claim("@dispatcher", agent="other").code == 0
    first.send_signal(signal.SIGCONT)
    done = finished(first)
    assert done.code == 1 and "held by other" in done.err
    assert task(world, "t2")["state"] == "open", "its worker ended with it"


def test_a_worker_that_ends_at_once_does_not_spin() -> None:
    """Each one that did nothing makes the next wait longer, up to a minute; one that worked makes it short again."""
    delays = [0.0]
    for _ in range(10):
        delays.append(backoff(delays[-1], lived=0.1))
    assert delays[1:5] == [0.25, 0.5, 1, 2] and delays[-1] == 60
    assert backoff(60, lived=30) == 0

"""`git coord watch`: every event once and in order, also when it is stopped in between."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import World
from tests.races.support import wait_until
from tests.support import COORD


@pytest.fixture
def world(world: World) -> World:
    world.take("src/a.py")
    world.take("docs", agent="bob")
    world.free("alice")
    return world


@contextmanager
def watching(world: World, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*COORD, "watch", *words], cwd=world.top, env=world.environ("", {}), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def line(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def seqs(out: str) -> list[int]:
    return [json.loads(row)["seq"] for row in out.splitlines()]


def last(world: World) -> int:
    return len(world.events())


def test_from_the_beginning_as_the_log_has_it(world: World) -> None:
    done = world.coord("watch", "--since", "1", "--until", str(last(world)), "--json")
    assert done.code == 0 and done.out.isascii()
    log = world.coord("log", "-n", "0", "--json").json["events"]
    assert [json.loads(row) for row in done.out.splitlines()] == log[::-1]
    done = world.coord("watch", "--since", "4", "--count", "2")
    assert [row.split()[0] for row in done.out.splitlines()] == ["4", "5"]


def test_what_comes_is_given_when_it_comes(world: World) -> None:
    with watching(world, "--since", str(last(world)), "--json") as process:
        assert line(process)["kind"] == "release"
        token = world.take("src/b.py")
        row = line(process)
        assert (row["seq"], row["kind"], row["event"]["items"]) == (token, "claim", [["path", "src/b.py"]])
        world.take("x", "y", agent="carol")
        assert [line(process)["kind"] for _ in range(2)] == ["start", "claim"], "a chain, event by event"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_without_since_only_what_is_new(world: World) -> None:
    with watching(world, "--name", "n", "--json", "--count", "1") as process:
        wait_until("it is there", (world.top / ".git/gitcoord/watch/n").exists)
        token = world.take("src/b.py")
        assert line(process)["seq"] == token and process.wait(60) == 0


def test_ctrl_c(world: World) -> None:
    with watching(world, "--since", "1", "--json") as process:
        line(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_filters(world: World) -> None:
    until = ("--since", "1", "--until", str(last(world)), "--json")
    kinds = [
        json.loads(row)["kind"]
        for row in world.coord("watch", *until, "--kind", "claim", "--kind", "release").out.splitlines()
    ]
    assert kinds == ["claim", "claim", "release"]
    found = world.coord("watch", *until, "--path", "src", "--path", "docs/x").out.splitlines()
    assert [(row["kind"], row["agent"]) for row in map(json.loads, found)] == [
        ("claim", "alice"), ("claim", "bob"), ("release", "alice"),
    ]  # fmt: skip
    assert world.coord("watch", *until, "--path", "elsewhere").out == ""
    assert world.coord("watch", "--kind", "nonsense").code == 2
    assert world.coord("watch", "--since", "999").code == 2


def test_case_is_folded_as_the_ledger_does(git_repo: Path) -> None:
    world = World(git_repo, ledger=True, fold=True)
    world.take("src/a.py")
    done = world.coord("watch", "--since", "1", "--until", str(last(world)), "--path", "SRC/A.py", "--json")
    assert len(seqs(done.out)) == 1


# --- going on ------------------------------------------------------------------------------------------------------


def test_a_named_watcher_goes_on_where_it_was(world: World) -> None:
    first = seqs(world.coord("watch", "--name", "n", "--since", "1", "--count", "2", "--json").out)
    world.take("src/b.py")
    rest = seqs(world.coord("watch", "--name", "n", "--since", "1", "--until", str(last(world)), "--json").out)
    assert first + rest == list(range(1, last(world) + 1))
    other = seqs(world.coord("watch", "--name", "m", "--since", "3", "--count", "1", "--json").out)
    assert other == [3], "each name for itself"


def test_what_did_not_match_is_not_looked_at_again(world: World) -> None:
    end = last(world)
    assert (
        world.coord("watch", "--name", "n", "--since", "1", "--until", str(end), "--kind", "halt", "--json").out == ""
    )
    assert (world.top / ".git/gitcoord/watch/n").read_text().split()[1] == str(end)


def test_stops_at_any_moment_lose_and_repeat_nothing(world: World) -> None:
    """Ended again and again while events come: together each of them, once, in order."""
    found: list[int] = []
    for index in range(8):
        for name in ("f", "g", "h"):
            world.take(f"{name}{index}")
        with watching(world, "--name", "n", "--since", "1", "--json") as process:
            for _ in range(index % 3 + 1):
                found.append(line(process)["seq"])
            process.send_signal(signal.SIGTERM)
            assert process.stdout is not None
            found += seqs(process.stdout.read().decode())
            assert process.wait(60) == 0
    world.take("last")
    found += seqs(world.coord("watch", "--name", "n", "--until", str(last(world)), "--json").out)
    assert found == list(range(1, last(world) + 1))


def _noted(world: World) -> int:
    file = world.top / ".git/gitcoord/watch/n"
    return int(file.read_text().split()[1]) if file.exists() else 0


def test_two_of_one_name(world: World) -> None:
    with watching(world, "--name", "n", "--since", "1", "--json") as process:
        line(process)
        done = world.coord("watch", "--name", "n", "--json")
        assert (done.code, done.json["error"]) == (1, "watched")
    done = world.coord("watch", "--name", "../x")
    assert done.code == 2


# --- commands ------------------------------------------------------------------------------------------------------


def test_a_command_for_each_event(world: World) -> None:
    command = 'echo "$GITCOORD_SEQ $GITCOORD_KIND $(cat)" >>.git/given'
    done = world.coord("watch", "--since", "1", "--until", str(last(world)), "--exec", command)
    assert (done.code, done.out) == (0, "")
    rows = [row.split(" ", 2) for row in (world.top / ".git/given").read_text().splitlines()]
    assert [(int(seq), kind) for seq, kind, _ in rows] == [
        (json.loads(data)["seq"], json.loads(data)["kind"]) for _, _, data in rows
    ]
    assert [int(seq) for seq, _, _ in rows] == list(range(1, last(world) + 1))


def test_a_failing_command_stops_before_its_event(world: World) -> None:
    words = ("watch", "--name", "n", "--since", "1", "--until", str(last(world)), "--exec")
    done = world.coord(*words, 'echo "$GITCOORD_SEQ" >>.git/given; [ "$GITCOORD_SEQ" != 3 ] || exit 9')
    assert done.code == 9 and "at event 3" in done.err
    assert world.coord(*words, 'echo "$GITCOORD_SEQ" >>.git/given').code == 0
    given = (world.top / ".git/given").read_text().split()
    assert given == ["1", "2", "3", *map(str, range(3, last(world) + 1))], "event 3 is tried again, and nothing else"


def test_a_signal_goes_to_the_command_too(world: World, tmp_path: Path) -> None:
    script = f"trap 'exit 0' TERM; echo >{tmp_path}/began; while :; do sleep 0.01; done"
    with watching(world, "--name", "n", "--since", "2", "--exec", script) as process:
        wait_until("the command runs", (tmp_path / "began").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert _noted(world) == 2, "it succeeded, so event 2 was delivered, and event 3 was not"


def test_a_command_that_does_not_read(world: World) -> None:
    """More than a pipe holds."""
    names = [f"{index:04}-{'x' * 100}" for index in range(1200)]
    world.take(*names)
    done = world.coord("watch", "--since", str(last(world)), "--count", "1", "--exec", "exec <&-; exit 0")
    assert done.code == 0


# --- what must not be ----------------------------------------------------------------------------------------------


def test_a_rewound_ledger_is_an_error(world: World) -> None:
    assert world.coord("watch", "--name", "n", "--since", "1", "--until", str(last(world)), "--json").code == 0
    old = world.git("rev-parse", "gitcoord~2")
    world.git("update-ref", "refs/heads/gitcoord", old)
    done = world.coord("watch", "--name", "n")
    assert done.code == 4 and "rewound" in done.err
    world.git("update-ref", "refs/gitcoord/tip", old)
    done = world.coord("watch", "--name", "n", "--json")
    assert done.code == 4 and "rewound" in done.json["message"], "also where the witness went with it"
    world.take("elsewhere", agent="bob")
    world.take("elsewhere2", agent="bob")
    world.take("elsewhere3", agent="bob")
    done = world.coord("watch", "--name", "n")
    assert done.code == 4 and "rewound" in done.err, "and where it has grown again since"


def test_a_ledger_that_is_rewound_while_it_is_watched(world: World) -> None:
    with watching(world, "--since", str(last(world)), "--json") as process:
        line(process)
        world.git("update-ref", "refs/heads/gitcoord", world.git("rev-parse", "gitcoord~2"))
        assert process.wait(60) == 4
        assert "rewound" in line(process)["message"]


def test_a_closed_pipe_ends_it_and_the_event_stays_undelivered(world: World) -> None:
    with watching(world, "--name", "n", "--since", str(last(world)), "--json") as process:
        seq = line(process)["seq"]
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        wait_until("the first one was noted", lambda: _noted(world) == seq)
        world.take("src/b.py")
        assert process.wait(60) == 141
    assert _noted(world) == seq

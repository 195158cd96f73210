"""Power cuts: no ref leads to an object before the redo log is on the disk, and no answer comes before both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.faults.test_kill_sweep import STRACE, WHY_NOT
from tests.faults.world import LEDGER, World, make_world
from tests.support import CLAIM

pytestmark = [pytest.mark.faults, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-")]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = make_world(tmp_path / "repo", ledger=True)
    world.git("config", "gitcoord.fsync", "true")
    assert world.claim("docs", agent="alice").code == 0
    return world


def _traced(world: World, *words: str, inject: str = "", alone: bool = False) -> tuple[Done, list[str]]:
    """The command's own system calls and, unless it is looked at alone, those of its git, in one order."""
    trace = world.scrap / "trace"
    argv = [
        STRACE,
        *([] if alone else ["-f"]),
        "-y",
        "-s",
        "8",
        "-o",
        str(trace),
        "-e",
        "trace=fsync,rename,write,sync_file_range",
    ]
    done = world.run([*argv, *(["-e", f"inject={inject}"] if inject else []), *CLAIM, *words], "alice")
    return done, trace.read_text().splitlines()


def _objects(world: World) -> set[str]:
    return {f"{path.parent.name}/{path.name}" for path in world.git_dir.glob("objects/??/*")}


def _logged(world: World) -> set[str]:
    return {f"{oid[:2]}/{oid[2:]}" for oid in world.logged()}


def _only(lines: list[str], pattern: str) -> int:
    (found,) = [i for i, line in enumerate(lines) if re.search(pattern, line)]
    return found


@pytest.mark.parametrize("words", [["src/app.py"], ["release", "docs"]])
def test_the_log_then_the_ledger_then_the_answer(world: World, words: list[str]) -> None:
    before = _objects(world)
    done, lines = _traced(world, *words)
    assert done.code == 0, done
    made, commit = _objects(world) - before, world.git("rev-parse", LEDGER)
    assert f"{commit[:2]}/{commit[2:]}" in made <= _logged(world)
    noted = _only(lines, r" write\(\d+<[^>]*/gitcoord/redo/")
    flushed = _only(lines, r" fsync\(\d+<[^>]*/gitcoord/redo/")
    moves = {
        i: found[1] for i, line in enumerate(lines) if (found := re.search(r"rename\(.*/objects/(../\w+)\"", line))
    }
    placed = list(moves)
    sent = _only(lines, r'"commit\\n"')
    moved = _only(lines, rf'rename\(.*{LEDGER}"\) = 0')
    kept = _only(lines, rf"fsync\(\d+<[^>]*/{LEDGER}>")
    told = max(i for i, line in enumerate(lines) if re.search(r" write\(1<", line))
    assert {*moves.values()} == made
    assert noted < min(placed) and noted < flushed and max(flushed, *placed) < sent < moved < kept < told


def test_what_a_transaction_rests_on_is_in_its_log(world: World) -> None:
    """A release leads back to earlier trees, which their writer may not have flushed to the disk."""
    assert world.claim("src/app.py", agent="alice").code == 0
    for log in world.git_dir.glob("gitcoord/redo/*"):
        log.unlink()
    before = _objects(world)
    assert world.claim("release", "src/app.py", agent="alice").code == 0
    assert _logged(world) & before


def test_a_log_that_does_not_reach_the_disk_stops_the_swap(world: World) -> None:
    before = world.refs()
    done, _ = _traced(world, "src/app.py", inject="fsync:error=EIO:when=1")
    assert done.code == 4 and "Input/output error" in done.err, done
    assert world.refs() == before
    assert not list((world.git_dir / "refs").rglob("*.lock"))
    world.git("fsck", "--strict")
    world.assert_works("src/app.py", agent="alice")


@pytest.mark.parametrize("when", [3, 4, 6, 8])
def test_an_object_that_cannot_be_put_in_its_place_stops_the_swap(world: World, when: int) -> None:
    """The swap stops even when git has its locks already."""
    for number in range(256):
        (world.git_dir / f"objects/{number:02x}").mkdir(exist_ok=True)  # no other renames than of objects
    before = world.refs()
    done, _ = _traced(world, "src/app.py", inject=f"rename:error=ENOSPC:when={when}+", alone=True)
    assert done.code == 4 and "No space left" in done.err, done
    assert world.refs() == before
    assert not list((world.git_dir / "refs").rglob("*.lock")) and not list(world.git_dir.glob("objects/*/tmp_obj_*"))
    world.git("fsck", "--strict")
    world.assert_works("src/app.py", agent="alice")


@pytest.mark.parametrize("when", [3, 5, 8])
def test_whoever_is_killed_between_two_objects_troubles_nobody(world: World, when: int) -> None:
    """The commit is in its place first, and its tree may not be: nothing leads there, and git does not look."""
    before = world.refs()
    done, _ = _traced(world, "src/app.py", inject=f"rename:signal=SIGKILL:when={when}", alone=True)
    assert done.code in (-9, 137), done
    assert world.refs() == before
    world.git("fsck", "--strict")
    world.git("gc", "-q")
    world.git("fsck", "--strict")
    world.assert_works("src/app.py", agent="alice")


@pytest.mark.parametrize("when", [3, 5, 8])
def test_a_ledger_is_not_restored_to_half_an_event(world: World, when: int) -> None:
    """With every ref gone, the newest event is searched among all objects: it may be an unfinished one."""
    assert _traced(world, "src/app.py", inject=f"rename:signal=SIGKILL:when={when}", alone=True)[0].code in (-9, 137)
    for name in world.refs():
        if "gitcoord" in name or "claims" in name:
            world.git("update-ref", "-d", name)
    assert world.fsck(repair=True).code == 0
    world.git("fsck", "--strict")
    world.assert_works(agent="bob")

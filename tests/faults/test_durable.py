"""What a power cut may find: no ref leads to an object before that object is on the disk, and no answer comes before both."""

import re
from pathlib import Path

import pytest

from tests.faults.test_kill_sweep import STRACE, WHY_NOT
from tests.faults.world import LEDGER, Done, World, make_world
from tests.support import CLAIM

pytestmark = [pytest.mark.faults, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-")]


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = make_world(tmp_path / "repo", ledger=True)
    world.git("config", "gitcoord.fsync", "true")
    assert world.claim("docs", agent="alice").code == 0
    return world


def _traced(world: World, *words: str, inject: str = "") -> "tuple[Done, list[str]]":
    """The command's own system calls and those of its git, in one order."""
    trace = world.scrap / "trace"
    argv = [STRACE, "-f", "-y", "-s", "8", "-o", str(trace), "-e", "trace=fsync,rename,write,sync_file_range"]
    done = world.run([*argv, *(["-e", f"inject={inject}"] if inject else []), *CLAIM, *words], "alice")
    return done, trace.read_text().splitlines()


def _objects(world: World) -> set[str]:
    return {f"{path.parent.name}/{path.name}" for path in world.git_dir.glob("objects/??/*")}


@pytest.mark.parametrize("words", [["src/app.py"], ["release", "docs"]])
def test_objects_then_the_ledger_then_the_answer(world: World, words: list[str]) -> None:
    before = _objects(world)
    done, lines = _traced(world, *words)
    assert done.code == 0, done
    (moved,) = [i for i, line in enumerate(lines) if "rename(" in line and f'{LEDGER}"' in line and "= 0" in line]
    flushed = {
        found[1]: i for i, line in enumerate(lines) if (found := re.search(r"fsync\(\d+<[^>]*/objects/(../\w+)>", line))
    }
    made = _objects(world) - before
    commit = world.git("rev-parse", LEDGER)
    assert f"{commit[:2]}/{commit[2:]}" in made
    assert made <= set(flushed), made - set(flushed)
    (sent,) = [i for i, line in enumerate(lines) if '"commit\\n"' in line]  # by the process that flushed, one by one
    assert all(i < sent < moved for i in flushed.values())
    (kept,) = [i for i, line in enumerate(lines) if re.search(rf"fsync\(\d+<[^>]*/{LEDGER}>", line)]
    told = max(i for i, line in enumerate(lines) if re.search(r" write\(1<", line))
    assert moved < kept < told


def test_an_object_that_does_not_reach_the_disk_stops_the_swap(world: World) -> None:
    before, ledger = _objects(world), world.git("rev-parse", LEDGER)
    done, _ = _traced(world, "src/app.py", inject="fsync:error=EIO:when=2")
    assert done.code == 4 and "Input/output error" in done.err, done
    assert world.git("rev-parse", LEDGER) == ledger and not world.git("for-each-ref", "refs/claims/path/src")
    assert _objects(world) <= before, "what may not be on the disk is not met by the next writer"
    assert world.claim("src/app.py", agent="alice").code == 0
    assert not list((world.git_dir / "refs").rglob("*.lock"))


def test_what_was_there_before_outlives_a_failure(world: World) -> None:
    """Releasing leads back to trees that the ledger had before: they are flushed again, and never removed."""
    assert world.claim("src/app.py", agent="alice").code == 0
    before = _objects(world)
    done, _ = _traced(world, "release", "src/app.py", inject="fsync:error=EIO:when=1")
    assert done.code == 4, done
    assert before <= _objects(world)
    assert world.claim("release", "src/app.py", agent="alice").code == 0
    assert world.coord("fsck").code == 0

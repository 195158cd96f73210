"""A power cut takes what the disk had not written yet: any of the last objects, in any way. The redo log has them."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from tests.faults.test_storage import DAMAGES
from tests.faults.world import LEDGER, World, make_world, thin
from tests.support import ROOT

pytestmark = pytest.mark.faults


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = make_world(tmp_path / "repo")
    assert world.claim("src/app.py", agent="alice").code == 0
    assert world.claim("--", "docs", "lib/a.py", agent="bob").code == 0
    assert world.claim("release", "docs", agent="bob").code == 0
    return world


def _log(world: World) -> Path:
    (log,) = world.git_dir.glob("gitcoord/redo/*")
    return log


def _reboot(world: World) -> Path:
    """The log is one of an earlier boot now."""
    log = _log(world)
    return log.rename(log.with_name("11111111-2222-3333-4444-555555555555"))


def _objects(world: World) -> list[Path]:
    return [world.object_file(oid) for oid in world.logged()]


def _sound(world: World) -> None:
    world.git("fsck", "--strict")
    world.assert_sound()


_FIRST = ["writer", "reader", "check", "log"]


@pytest.mark.parametrize(
    ("damage", "first"), thin([(d, f) for f in _FIRST for d in ("missing", "empty", "flipped")], 2)
)
def test_everything_comes_back_by_itself(world: World, damage: str, first: str) -> None:
    lost = [path for path in _objects(world) if path.exists()]
    assert len(lost) > 15
    log = _reboot(world)
    for path in lost:
        DAMAGES[damage](path)
    if first == "writer":
        assert world.claim("src/app.py", agent="carol").code == 1
        assert world.claim("--", "lib/b.py", agent="carol").code == 0
    elif first == "reader":
        held = world.claim("list", "--json", agent="carol").json["claims"]
        assert {(c["path"], c["agent"]) for c in held} == {("src/app.py", "alice"), ("lib/a.py", "bob")}
    elif first == "log":
        done = world.coord("log")
        assert done.code == 0 and "claim src/app.py" in done.out, done
    else:
        assert world.claim("check", "src/app.py", agent="alice").code == 0
        assert world.claim("check", "src/app.py", agent="bob").code == 1
    assert not log.exists()
    _sound(world)


def test_one_object_that_nobody_reads_comes_back_too(world: World) -> None:
    """An old tree that only the history has: the first writer after the boot puts back all that the log has."""
    old = world.object_file(world.rev(f"{LEDGER}~1^{{tree}}"))
    _reboot(world)
    old.unlink()
    assert world.claim("other", agent="carol").code == 0
    _sound(world)


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9])
def test_what_is_left_of_a_torn_log_counts(world: World, keep: float) -> None:
    log = _reboot(world)
    data = log.read_bytes()
    cut = int(len(data) * keep)
    left = data[:cut] + b"\0" * 300 + data[cut + 50 :]
    log.write_bytes(left)
    whole = set(world.logged(left))
    for oid in whole:
        world.object_file(oid).unlink(missing_ok=True)
    assert 1 < len(whole) < len(set(world.logged(data)))
    assert world.claim("other", agent="carol").code == 0
    _sound(world)


def test_made_up_records_are_none(world: World) -> None:
    head = world.rev(LEDGER)
    content = zlib.compress(b"blob 5\0wrong")
    log = _reboot(world)
    log.write_bytes(
        b"object %s %d\n%s\n" % (head.encode(), len(content), content) + b"object ../../x 3\nabc\nobject 12 -1\n"
    )
    world.object_file(head).unlink()
    done = world.claim("other", agent="carol")
    assert done.code == 4, done
    assert not world.object_file(head).exists()


def test_within_a_boot_a_missing_object_is_an_error_that_repair_mends(world: World) -> None:
    """There was no power cut, so something else is wrong: it is an error, and the log is kept for a repair."""
    world.object_file(world.rev(LEDGER)).unlink()
    assert world.claim("other", agent="carol").code == 4
    assert world.claim("check", "src/app.py", agent="bob").code == 4
    assert world.fsck(repair=True).code == 0
    assert world.claim("src/app.py", agent="bob").code == 1
    _sound(world)


def test_a_ledger_whose_every_ref_and_object_is_gone(world: World) -> None:
    for name in world.refs():
        if "gitcoord" in name or "claims" in name:
            world.git("update-ref", "-d", name)
    world.git("reflog", "expire", "--expire=now", "--all")
    world.git("gc", "-q", "--prune=now")
    assert world.claim("other", agent="carol").code == 4
    assert world.fsck(repair=True).code == 0
    assert world.claim("src/app.py", agent="bob").code == 1
    _sound(world)


def test_a_log_that_cannot_be_written_grants_nothing(world: World) -> None:
    log = _log(world)
    log.unlink()
    log.mkdir()
    before = world.refs()
    done = world.claim("other", agent="carol")
    assert done.code == 4 and "redo log" in done.err, done
    assert world.refs() == before
    log.rmdir()
    world.assert_works()


@pytest.mark.parametrize("words", [["init"], ["fsck"]])
@pytest.mark.parametrize("damage", ["missing", "empty"])
def test_whoever_asks_only_where_the_ledger_is_finds_it(world: World, words: list[str], damage: str) -> None:
    DAMAGES[damage](world.object_file(world.rev(LEDGER)))
    _reboot(world)
    done = world.coord(*words)
    assert done.code == 0, done
    _sound(world)


def test_repair_does_not_go_back_where_fsync_was_turned_off(world: World) -> None:
    """The claims were acknowledged with it on."""
    head = world.rev(LEDGER)
    world.object_file(head).unlink()
    world.git("config", "gitcoord.fsync", "false")
    assert world.fsck(repair=True).code == 0
    assert world.rev(LEDGER) == head


@pytest.mark.skipif(os.geteuid() != 0, reason="several users")
def test_objects_of_several_users_in_one_log(tmp_path: Path) -> None:
    """A user cannot set the times of another user's file; after a reboot each must still be able to write."""
    place = tmp_path / "repo"
    (place / "objects").mkdir(parents=True)
    place.chmod(0o777)
    (place / "objects").chmod(0o777)
    for parent in (tmp_path, *tmp_path.parents):
        parent.chmod(parent.stat().st_mode | 0o011)
    script = (
        "import os, sys; user, boot, *words = sys.argv[1:]; os.umask(0)\n"
        "from gitcoord.git.redo_log import DurableObjects\n"
        f"objects = DurableObjects('{place}/objects', 40, '{place}/redo', boot, shared=True, durable=True)\n"
        "os.setuid(int(user))\n"
        "for word in words: objects.write('blob', word.encode())\n"
        "objects.flush()"
    )
    for user, boot, *words in (
        ("2001", "a-1", "x"),
        ("2002", "a-1", "y", "x"),
        ("2001", "b-2", "z"),
        ("2002", "b-2", "v"),
    ):
        argv = [sys.executable, "-c", script, user, boot, *words]
        done = subprocess.run(argv, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert [log.name for log in (place / "redo").iterdir()] == ["b-2"]

"""The redo log: one flush for all, or one for each; full logs go once everything is on the disk."""

from __future__ import annotations

import os
import zlib
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcoord.base.errors import StoreError
from gitcoord.claims.model import Item
from gitcoord.claims.service import release, take
from gitcoord.claims.take import Take
from gitcoord.git import redo_log as durable_module
from gitcoord.git.files import read_if_file
from gitcoord.git.redo_log import DurableObjects, records
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import init
from gitcoord.world.open import environ, open_repository
from tests.races.support import wait_until
from tests.support import git

BOOT = "aaaaaaaa-1111"


def _record(content: bytes) -> tuple[str, bytes]:
    full = b"blob %d\0%s" % (len(content), content)
    return sha1(full).hexdigest(), zlib.compress(full)


def _bytes(record: tuple[str, bytes]) -> bytes:
    return b"object %s %d\n%s\n" % (record[0].encode(), len(record[1]), record[1])


def _found(data: bytes) -> list[str]:
    return [oid for oid, _, _ in records(data, lambda full: sha1(full).hexdigest())]


@given(st.lists(st.tuples(st.one_of(st.integers(0, 99), st.binary(max_size=60)), st.binary(max_size=80)), max_size=8))
def test_every_whole_record_is_found_whatever_was_torn(rows: list[tuple[int | bytes, bytes]]) -> None:
    """Before each whole record stands the beginning of one that was torn (so many hundredths of it), or anything."""
    data, whole = b"", []
    for before, content in rows:
        torn = _bytes(_record(b"torn" + content * 3))
        data += (torn[: len(torn) * before // 100] if isinstance(before, int) else before) + _bytes(_record(content))
        whole.append(_record(content)[0])
    assert _found(data) == whole


def _objects(place: Path, boot: str = BOOT, *, durable: bool = True) -> DurableObjects:
    (place / "objects").mkdir(exist_ok=True)
    return DurableObjects(str(place / "objects"), 40, str(place / "redo"), boot, shared=False, durable=durable)


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each object that is flushed by itself."""
    seen: list[str] = []
    monkeypatch.setattr(durable_module, "flush_file", seen.append)
    return seen


def test_one_flush_for_all(tmp_path: Path, flushed: list[str]) -> None:
    objects = _objects(tmp_path)
    oids = [objects.write("blob", b"%d" % n) for n in range(5)]
    objects.flush()
    assert not flushed
    assert _found((tmp_path / "redo" / BOOT).read_bytes()) == oids


@pytest.mark.parametrize("boot", ["unknown", "unknown/4026531834"])
def test_where_boots_cannot_be_told_apart_there_is_no_log(tmp_path: Path, flushed: list[str], boot: str) -> None:
    objects = _objects(tmp_path, boot)
    objects.write("blob", b"x")
    objects.flush()
    assert len(flushed) == 1 and not (tmp_path / "redo").exists()


def test_much_at_once_is_not_written_twice(tmp_path: Path, flushed: list[str]) -> None:
    objects = _objects(tmp_path)
    for n in range(3):
        objects.write("blob", os.urandom(500_000) + b"%d" % n)
    objects.flush()
    assert len(flushed) == 3


def test_a_log_that_was_updated_away_meanwhile_vouches_for_nothing(tmp_path: Path, flushed: list[str]) -> None:
    """A process that flushes a log's objects may have finished before the log was renamed."""
    objects = _objects(tmp_path)
    objects.write("blob", b"x")
    assert objects.log()
    objects.publish()
    (tmp_path / "redo" / BOOT).rename(tmp_path / "redo" / f"{BOOT}.full")
    objects.sync()
    assert len(flushed) == 1
    objects.write("blob", b"y")
    objects.flush()
    assert len(flushed) == 1 and (tmp_path / "redo" / BOOT).exists()


def test_another_users_log_is_left_alone(tmp_path: Path, flushed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refusing(path: str, flags: int, mode: int = 0o777) -> int:
        if "/redo/" in path:
            raise PermissionError(13, "Permission denied")
        return real(path, flags, mode)

    monkeypatch.setattr("posix.open", refusing)
    objects = _objects(tmp_path)
    objects.write("blob", b"x")
    objects.flush()
    assert len(flushed) == 1


def test_half_a_batch_on_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = _objects(tmp_path)
    oid = objects.write("blob", b"x")
    monkeypatch.setattr("posix.write", lambda fd, data: len(data) - 1)
    with pytest.raises(StoreError, match="No space left"):
        objects.flush()
    assert not (tmp_path / "objects" / oid[:2]).exists()


def test_full_logs_are_removed_once_all_is_on_the_disk(git_repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = git_repo
    git(top, "commit", "-q", "--allow-empty", "-m", "one")
    git(top, "config", "gitcoord.fsync", "true")
    monkeypatch.chdir(top)
    monkeypatch.setattr(durable_module, "_FULL", 4096)
    ctx = open_repository(environ(), writing=True)
    init(ctx, Actor("setup"), sync="main")
    ctx.store.close()
    logs = top / ".git/gitcoord/redo"
    told: list[list[str]] = []
    ctx = open_repository(environ(), writing=True)
    really = DurableObjects.outgrown

    def noting(self: DurableObjects) -> list[str]:
        told.append(really(self))
        return told[-1]

    monkeypatch.setattr(DurableObjects, "outgrown", noting)
    for _ in range(6):
        take(ctx, Take(Actor("alice"), (Item("path", "x"),)))
        release(ctx, Actor("alice"), (Item("path", "x"),), dirty=True)
    ctx.store.close()
    assert sum(map(bool, told)) >= 2
    wait_until("full logs are gone", lambda: not [log for log in logs.iterdir() if "." in log.name])
    git(top, "fsck", "--strict")


def test_only_what_its_name_says_is_put_back(tmp_path: Path, flushed: list[str]) -> None:
    good, bad = _record(b"good"), (_record(b"bad")[0], _record(b"worse")[1])
    log = tmp_path / "redo" / "another-boot"
    log.parent.mkdir()
    log.write_bytes(
        _bytes(bad) + _bytes(good) + _bytes((good[0], b"no zlib")) + b"object ../../x 3\nabc\nobject 12 -1\n"
    )
    objects = _objects(tmp_path)
    assert objects.replay_redo_log() and not objects.replay_redo_log()
    assert [path.name for path in (tmp_path / "objects").glob("*/*")] == [good[0][2:]]
    assert flushed == [str(tmp_path / "objects" / good[0][:2] / good[0][2:])] and not log.exists()


@pytest.mark.parametrize("kind", ["pipe", "directory", "unreadable"])
def test_what_is_no_log_of_ours_stays(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe of that name would block its reader; an unreadable file is left for its owner."""
    place = tmp_path / "redo"
    place.mkdir()
    if kind == "pipe":
        os.mkfifo(place / "another-boot")
    elif kind == "directory":
        (place / "another-boot").mkdir()
    else:
        (place / "another-boot").write_bytes(_bytes(_record(b"x")))
        refused = PermissionError(13, "Permission denied")
        monkeypatch.setattr("gitcoord.git.files.posix.fstat", lambda fd: (_ for _ in ()).throw(refused))
    objects = _objects(tmp_path)
    assert not objects.replay_redo_log()
    assert len(list(place.glob("another-boot*"))) == 1


def test_a_log_of_another_machine_that_is_written_just_now(
    tmp_path: Path, flushed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LXC and nspawn give each container a boot id of its own: another boot's log may have a living writer."""
    writer = _objects(tmp_path)
    writer.write("blob", b"first")
    writer.flush()
    other = _objects(tmp_path, "bbbbbbbb-2222")
    late = []

    def slowly(*given: Any) -> Any:
        found = read_if_file(*given)
        late.append(writer.write("blob", b"second"))
        writer.flush()
        return found

    monkeypatch.setattr(durable_module, "read_if_file", slowly)
    assert other.replay_redo_log()
    logged = [oid for log in (tmp_path / "redo").iterdir() for oid in _found(log.read_bytes())]
    assert late[0] in logged or any(path.endswith(late[0][2:]) for path in flushed)


def test_two_who_end_a_log_at_once_lose_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In two containers processes may have the same number."""
    monkeypatch.setattr(durable_module, "_FULL", 1)
    writers = [_objects(tmp_path) for _ in range(3)]
    oids = [writer.write("blob", b"%d" % n) for n, writer in enumerate(writers)]
    assert writers[0].log() and writers[1].log()
    writers[0].outgrown()
    assert writers[2].log()
    writers[1].outgrown()
    there = [oid for log in (tmp_path / "redo").iterdir() for oid in _found(log.read_bytes())]
    assert sorted(there) == sorted(oids)


def test_what_was_logged_comes_back_also_where_nothing_is_flushed_any_more(tmp_path: Path) -> None:
    """gitcoord.fsync may be turned off afterwards."""
    objects = _objects(tmp_path)
    oid = objects.write("blob", b"x")
    objects.flush()
    place = tmp_path / "objects" / oid[:2] / oid[2:]
    place.unlink()
    careless = _objects(tmp_path, "bbbbbbbb-2222", durable=False)
    assert careless.replay_redo_log() and place.exists()
    careless.write("blob", b"y")
    careless.flush()
    assert not list((tmp_path / "redo").iterdir())


def test_a_store_that_is_closed_leaves_no_descriptor(git_repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(git_repo)
    counts = []
    for n in range(3):
        ctx = open_repository(environ(), writing=True)
        ctx.store.write("blob", b"%d" % n)
        ctx.store.flush()
        ctx.store.close()
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[0] == counts[-1]

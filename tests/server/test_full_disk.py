"""The server's disk is full, or that part of it where notes lie: nothing lands by half, and afterwards work goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.server.process import program
from tests.server.realm import Realm
from tests.server.servers import Served, serving

pytestmark = [pytest.mark.faults, pytest.mark.namespaces]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Served]:
    """A server with a small disk of its own."""
    with serving("git") as server:
        bare = server.repositories / "small.git"
        bare.mkdir()
        with small_disk(bare, "4m"):
            try:
                yield server.create("small")
            finally:
                server.stop()


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[None]:
    words = [program("mount"), "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no disk of its own: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run([program("umount"), "-l", str(place)], check=True)


def free(place: Path) -> int:
    found = os.statvfs(place)
    return found.f_bavail


def fill(place: Path, left: int) -> None:
    """Fill the disk until so many blocks are left."""
    with open(place / "ballast", "ab") as ballast:
        while (more := free(place) - left) > 0:
            ballast.write(bytes(4096 * more))
            ballast.flush()


def test_the_servers_disk_is_full(small: Served, tmp_path: Path) -> None:
    """Each number of free blocks, from none on, fails at another step, or not at all."""
    realm = Realm(small, tmp_path)
    one, two = realm.clone("one", "alice"), realm.clone("two", "bob")
    answers = []
    for left in (0, 1, 2, 4, 8, 16, 32):
        fill(realm.bare, left)
        before = realm.refs()
        done = one.take("shared/a", "alice")
        answers.append(done.code)
        if done.code == 0:
            break
        assert done.code in (1, 4, 5) and realm.refs() == before, done
        assert done.json["error"] in ("store", "unknown-outcome", "host"), done
        (realm.bare / "ballast").unlink()
    assert answers[0] != 0 and answers[-1] == 0, answers
    (realm.bare / "ballast").unlink()
    realm.assert_sound()
    assert two.take("shared/a", "bob").code == 1 and two.take("shared/b", "bob").code == 0
    realm.assert_sound()


@pytest.mark.parametrize("server", ["git"], indirect=True)
def test_the_disk_of_the_notes_is_full(served: Served, tmp_path: Path) -> None:
    """There is room for the push, but none for its entry: other pushes could not wait for it, so it does not land."""
    realm = Realm(served, tmp_path)
    one = realm.clone("one", "alice")
    assert one.take("shared/a", "alice").code == 0
    one.work("shared/a", "alice")
    before = realm.refs()
    with small_disk(realm.bare / "gitcoord/inflight", "64k"):
        fill(realm.bare / "gitcoord/inflight", 0)
        pushed, done = one.push(option="alice"), one.take("shared/b", "alice")
        assert pushed.code != 0 and "cannot note that this push is landing" in pushed.err, pushed
        assert (done.code, done.json["error"]) == (1, "host") and "cannot note" in done.json["message"], done
        assert realm.refs() == before
    assert one.push(option="alice").code == 0 and one.take("shared/b", "alice").code == 0
    realm.assert_sound()

"""Locks of a living git that is not gitcoord's, beside notes of a dead one that covers them: nothing of it is touched."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitcoord.base.errors import LockHeld
from gitcoord.git.host import Host
from gitcoord.git.locks import stale
from gitcoord.git.locks.owners import ANY, LockNotes
from gitcoord.git.locks.running import running_gits
from tests.faults.test_kill_sweep import STRACE, WHY_NOT
from tests.faults.world import GIT, World
from tests.races.support import wait_until
from tests.support import CLAIM

pytestmark = [pytest.mark.faults, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-")]

STARTED: list[
    subprocess.Popen[bytes]
] = []  # ended with their test: one that stays would count as an owner of locks in the others
BRANCHES = [f"topic-{number}" for number in range(4)]


class Packing:
    """A real `git pack-refs --all`, stopped while it writes `packed-refs.new`."""

    def __init__(self, world: World) -> None:
        stop = ["-e", "trace=write", "-e", "inject=write:signal=SIGSTOP:when=1"]
        argv = [STRACE, "-D", "-qq", "-o", str(world.scrap / "trace"), *stop, GIT, "pack-refs", "--all"]
        self.process = subprocess.Popen(argv, cwd=world.top, env=world.env())
        STARTED.append(self.process)
        self.files = [world.git_dir / "packed-refs.lock", world.git_dir / "packed-refs.new"]
        wait_until("pack-refs is stopped", lambda: self._state() in "Tt")

    def _state(self) -> str:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return stat.rpartition(") ")[2][0] if all(file.exists() for file in self.files) else " "

    def which(self) -> list[int]:
        return [os.stat(file).st_ino for file in self.files]

    def go_on(self) -> int:
        os.kill(self.process.pid, signal.SIGCONT)
        return self.process.wait()


@pytest.fixture
def busy(world: World) -> Iterator[World]:
    """Branches and a claim that are packed, and changed since; an agent was killed when it was about to release."""
    for branch in BRANCHES:
        world.git("branch", branch)
    assert world.claim("src/app.py", "other.txt", agent="alice").code == 0
    world.git("pack-refs", "--all")
    world.commit("src/app.py", "second\n")
    for branch in BRANCHES:
        world.git("branch", "-f", branch)
    world.git("config", "core.packedRefsTimeout", "1")
    yield world
    for process in STARTED:
        process.kill()
        process.wait()
    STARTED.clear()


def dead_note(world: World, *, taken: bool = False) -> LockNotes:
    """A killed process said that it would lock packed-refs."""
    known = LockNotes(str(world.git_dir), f"{world.git_dir}/gitcoord", Host().boot)
    gone = subprocess.Popen(["true"])
    note = known.note(gone.pid, ["refs/claims/path/src/app.py/@alice"])
    if taken:
        note.taken(str(world.git_dir), [])
    gone.wait()
    return known


def test_a_living_pack_refs_keeps_its_lock_and_every_branch_is_there(busy: World) -> None:
    """If the lock is taken away, pack-refs renames another's file into place and prunes refs that are not in it."""
    dead_note(busy)
    before = busy.refs()
    packing = Packing(busy)
    files = packing.which()
    done = busy.claim("release", "src/app.py", agent="alice")
    assert done.code == 4 and f"process {packing.process.pid}" in done.err, done
    assert str(packing.files[0]) in done.err and f"kill -CONT {packing.process.pid}" in done.err
    assert packing.which() == files
    assert packing.go_on() == 0
    assert busy.refs() == before
    assert busy.claim("release", "src/app.py", agent="alice").code == 0
    busy.git("fsck", "--strict")
    busy.assert_works()


def test_a_release_waits_for_a_pack_refs_that_goes_on(busy: World) -> None:
    dead_note(busy)
    packing = Packing(busy)
    files = packing.which()
    notes = busy.git_dir / "gitcoord/locks"
    before = notes.stat().st_mtime_ns
    release = subprocess.Popen([*CLAIM, "release", "src/app.py"], cwd=busy.top, env=busy.env("alice"))
    STARTED.append(release)

    def has_tried() -> bool:
        """Its git has met the lock and was ended by it: a note came and went."""
        return notes.stat().st_mtime_ns != before and len(list(notes.glob("[0-9]*"))) == 1

    wait_until("the release has tried", has_tried)
    assert packing.which() == files
    assert packing.go_on() == 0
    assert release.wait() == 0
    assert {busy.rev(branch) for branch in BRANCHES} == {busy.rev("HEAD")}
    busy.assert_works()


def test_a_lock_that_was_there_before_the_note_is_another_ones(busy: World) -> None:
    """The note is younger than the lock, so the dead process did not make it."""
    lock = busy.git_dir / "packed-refs.lock"
    lock.touch()
    known = dead_note(busy)
    (note,) = (busy.git_dir / "gitcoord/locks").glob("[0-9]*")
    later = lock.stat().st_ctime_ns + 3 * 10**9
    os.utime(note, ns=(later, later))
    with pytest.raises(LockHeld, match="does not know its owner"):
        known.remove_stale_locks(["refs/heads/any"])
    assert lock.exists()


def test_a_lock_that_came_after_those_that_were_noted_is_another_ones(busy: World) -> None:
    """The dead process had all its locks, and this file was not among them."""
    known = dead_note(busy, taken=True)
    lock = busy.git_dir / "packed-refs.lock"
    lock.touch()
    with pytest.raises(LockHeld, match="does not know its owner"):
        known.remove_stale_locks(["refs/heads/any"])
    assert lock.exists()


def test_the_same_name_is_not_the_same_file(busy: World) -> None:
    lock = busy.git_dir / "packed-refs.lock"
    lock.touch()
    known = dead_note(busy, taken=True)
    lock.rename(lock.with_suffix(".old"))
    lock.touch()
    with pytest.raises(LockHeld):
        known.remove_stale_locks(["refs/heads/any"])
    assert lock.exists()


@pytest.mark.parametrize("view", ["no /proc", "a container"])
def test_where_not_all_processes_can_be_seen_nothing_is_removed_by_exclusion(
    busy: World, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    known = dead_note(busy)
    lock = busy.git_dir / "packed-refs.lock"
    lock.touch()
    monkeypatch.setattr(stale, "running_gits", lambda common: None)
    with pytest.raises(LockHeld, match="cannot be seen here"):
        known.remove_stale_locks(["refs/heads/any"])
    assert lock.exists()
    lock.unlink()
    lock.touch()
    taken = dead_note(busy, taken=True)  # but a file that was noted is known everywhere
    assert taken.remove_stale_locks(["refs/heads/any"]) and not lock.exists()


def test_a_leftover_packed_refs_without_its_lock_is_removed(busy: World) -> None:
    """It stops every deletion of a packed ref, by git too, and has no owner while its lock is free."""
    new = busy.git_dir / "packed-refs.new"
    new.write_text("half a line")
    assert busy.claim("release", "src/app.py", agent="alice").code == 0
    assert not new.exists() and not (busy.git_dir / "packed-refs.lock").exists()
    busy.git("pack-refs", "--all")


def _loader() -> str:
    """The program that runs other programs: what `readelf` calls their interpreter."""
    return next(str(path) for path in sorted(Path("/lib64").glob("ld-linux*")) + sorted(Path("/lib").glob("ld-linux*")))


def test_a_lock_that_a_living_git_holds_is_not_noted_as_ones_own(busy: World) -> None:
    """A swap that deletes nothing takes no lock of packed-refs: one that is there is another's."""
    packing = Packing(busy)
    files = packing.which()
    known = LockNotes(str(busy.git_dir), f"{busy.git_dir}/gitcoord", Host().boot)
    swap = subprocess.Popen(["sleep", "99"])
    known.note(swap.pid, ["refs/heads/gitcoord"], deletes=False).taken(str(busy.git_dir), ["refs/heads/gitcoord"])
    swap.kill()
    swap.wait()
    assert busy.claim("another.txt", agent="bob").code == 0
    assert packing.which() == files
    assert packing.go_on() == 0


def test_which_gits_count(busy: World, tmp_path: Path) -> None:
    """Those that may move refs of this repository, wherever they are started from; not those that read, nor those elsewhere."""
    other = tmp_path / "other"
    subprocess.run([GIT, "init", "-q", str(other)], check=True)
    common = str(busy.git_dir)
    reading = subprocess.Popen([GIT, "cat-file", "--batch"], cwd=busy.top, stdin=subprocess.PIPE)
    argv, env = [GIT, "update-ref", "--stdin"], {**busy.env(), "GIT_DIR": str(other / ".git")}
    elsewhere = [
        subprocess.Popen(argv, cwd=other, stdin=subprocess.PIPE),
        subprocess.Popen(argv, cwd=busy.top, stdin=subprocess.PIPE, env=env),
    ]
    link, copy = tmp_path / "g", tmp_path / ".git-wrapped"
    link.symlink_to(GIT)
    shutil.copy(GIT, copy)
    quiet = ["-c", "core.hooksPath=/dev/null", "-c", "hook.gitcoord-reference-transaction.enabled=false"]
    here = [
        subprocess.Popen([GIT, "update-ref", "--stdin"], cwd=busy.top / "src", stdin=subprocess.PIPE),
        subprocess.Popen([GIT, *quiet, "update-ref", "--stdin"], cwd=busy.top, stdin=subprocess.PIPE),
        subprocess.Popen([str(link), "update-ref", "--stdin"], cwd=busy.top, stdin=subprocess.PIPE),
        subprocess.Popen([str(copy), "update-ref", "--stdin"], cwd=busy.top, stdin=subprocess.PIPE),
        subprocess.Popen([_loader(), GIT, "update-ref", "--stdin"], cwd=busy.top, stdin=subprocess.PIPE),
        subprocess.Popen(
            [GIT, "--git-dir=../.git", "--work-tree=..", "update-ref", "--stdin"],
            cwd=busy.top / "src",
            stdin=subprocess.PIPE,
        ),
        subprocess.Popen(["unshare", "-m", GIT, "update-ref", "--stdin"], cwd=other, stdin=subprocess.PIPE),
        subprocess.Popen([GIT, "--git-dir", common, "update-ref", "--stdin"], cwd=other, stdin=subprocess.PIPE),
        subprocess.Popen(
            [GIT, "update-ref", "--stdin"], cwd=other, stdin=subprocess.PIPE, env={**busy.env(), "GIT_DIR": common}
        ),
    ]
    try:
        pids = {str(process.pid) for process in here}

        def found() -> set[str]:
            return {key.partition(".")[0] for key in running_gits(common) or {}}

        wait_until("all are seen", lambda: pids <= found())
        assert not {str(process.pid) for process in (reading, *elsewhere)} & found()
    finally:
        for process in (reading, *elsewhere, *here):
            process.communicate()


def test_all_that_a_git_of_ours_may_lock_is_cleared_by_the_next_command(busy: World) -> None:
    """A fetch, a merge or a `gc` says only that it locks refs: what it leaves is found wherever it is."""
    gone = subprocess.Popen(["true"])
    LockNotes(str(busy.git_dir), f"{busy.git_dir}/gitcoord", Host().boot).note(gone.pid, ANY)
    gone.wait()
    (busy.git_dir / "refs/remotes/origin").mkdir(parents=True)
    left = [
        "HEAD.lock",
        "packed-refs.lock",
        "packed-refs.new",
        "refs/remotes/origin/gitcoord.lock",
        "refs/heads/main.lock",
    ]
    for name in left:
        (busy.git_dir / name).touch()
    assert busy.claim("another.txt", agent="bob").code == 0
    assert not [name for name in left if (busy.git_dir / name).exists()]
    busy.assert_works()


def test_the_new_file_goes_before_the_lock_under_which_it_was_made(busy: World) -> None:
    """Once the lock is gone, a `packed-refs.new` may belong to a later process."""
    lock, new = busy.git_dir / "packed-refs.lock", busy.git_dir / "packed-refs.new"
    lock.touch()
    new.touch()
    dead_note(busy, taken=True)
    trace = busy.scrap / "trace"
    argv = [STRACE, "-o", str(trace), "-e", "trace=unlink,rename", *CLAIM, "release", "src/app.py"]
    assert busy.run(argv, "alice").code == 0
    calls = trace.read_text().splitlines()
    went = {name: next(n for n, call in enumerate(calls) if f'"{name}"' in call) for name in (str(lock), str(new))}
    assert went[str(new)] < went[str(lock)] and not lock.exists() and not new.exists()

"""Lock files that a dead git left behind: removed where their owner was noted and is dead, never otherwise."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitcoord.git.host import Host, start_time
from gitcoord.git.locks import owners as locks_module
from gitcoord.git.locks import stale
from gitcoord.git.locks.owners import LockNotes
from gitcoord.git.locks.stale import StaleLocks
from tests.faults.world import GIT, LEDGER, SESSIONS, SOAK, TIP, World

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
BOOT = Host().boot.replace("/", "_")  # as names of notes have it
NAMESPACE = os.readlink("/proc/self/ns/pid").strip("pid:[]")

CLAIM_REF = "refs/claims/path/src/app.py/@alice"
# What is locked -> the lock files that a git which dies after `prepare` leaves, and a command that they stop.
PLACES = {
    "ledger": (LEDGER, [f"{LEDGER}.lock"], ["other.txt"], "bob"),
    "tip": (TIP, [f"{TIP}.lock"], ["other.txt"], "bob"),
    "session": (SESSIONS + "alice", [f"{SESSIONS}alice.lock"], ["renew", "--ttl", "1m"], "alice"),
    "claim": (CLAIM_REF, [f"{CLAIM_REF}.lock"], ["release", "src/app.py"], "alice"),
    "packed": (
        CLAIM_REF,
        [f"{CLAIM_REF}.lock", "packed-refs.lock", "packed-refs.new"],
        ["release", "src/app.py"],
        "alice",
    ),
}


class Holder:
    """A real git that holds the locks: stopped between `prepare` and `commit`."""

    def __init__(self, world: World, place: str) -> None:
        ref, locks, self.words, self.agent = PLACES[place]
        self.world = world
        self.refs = [ref]
        for key in ("core.filesRefLockTimeout", "core.packedRefsTimeout"):
            world.git("config", key, "1")  # nobody lets go in these tests: do not wait for it
        if place == "packed":
            world.git("pack-refs", "--all")
        value = world.rev(ref)
        order = f"delete {ref} {value}" if place == "packed" else f"update {ref} {value} {value}"
        self.process = subprocess.Popen(
            [GIT, "update-ref", "--no-deref", "--stdin"], cwd=world.top, env=world.env(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"start\n{order}\nprepare\n".encode())
        self.process.stdin.flush()
        assert [self.process.stdout.readline() for _ in "12"] == [b"start: ok\n", b"prepare: ok\n"]
        self.locks = [world.git_dir / name for name in locks]
        assert all(lock.exists() for lock in self.locks), [str(lock) for lock in self.locks]

    @property
    def pid(self) -> int:
        return self.process.pid

    def end(self, *, signal_number: int = signal.SIGKILL) -> None:
        if self.process.returncode is None:
            os.kill(self.pid, signal_number)
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def left(self) -> list[str]:
        return [str(lock) for lock in self.locks if lock.exists()]


def notes(world: World, boot: str = "") -> LockNotes:
    return LockNotes(str(world.git_dir), f"{world.git_dir}/gitcoord", boot or Host().boot)


def path_of(known: LockNotes, pid: int, refs: list[str]) -> str:
    """Make a note; gives its file."""
    directory = Path(known.directory)
    before = set(directory.iterdir()) if directory.exists() else set()
    known.note(pid, refs)
    (path,) = set(directory.iterdir()) - before
    return str(path)


def _only(*places: str) -> pytest.MarkDecorator:
    """The locks that a quick run tries: some of them in each test."""
    return pytest.mark.parametrize("holder", list(PLACES) if SOAK else places, indirect=True)


@pytest.fixture(params=list(PLACES))
def holder(world: World, request: pytest.FixtureRequest) -> Iterator[Holder]:
    held = Holder(world, request.param)
    yield held
    held.end()


def _stops(holder: Holder) -> str:
    """The command fails with exit 4, changes nothing and leaves the lock; gives what it said."""
    world = holder.world
    before = world.refs()
    done = world.claim(*holder.words, agent=holder.agent)
    assert done.code == 4, done
    assert any(str(lock) in done.err for lock in holder.locks), done.err
    assert holder.left() == [str(lock) for lock in holder.locks]
    assert world.refs() == before
    return done.err


def _works(holder: Holder) -> None:
    done = holder.world.claim(*holder.words, agent=holder.agent)
    assert done.code == 0, done
    assert not holder.left()
    assert not list(holder.world.git_dir.rglob("*.stale"))
    holder.world.assert_works()


def test_a_noted_dead_owner_loses_its_locks(holder: Holder) -> None:
    notes(holder.world).note(holder.pid, holder.refs).taken(str(holder.world.git_dir), holder.refs)
    holder.end()
    _works(holder)


def test_a_dead_owner_that_was_killed_while_it_took_its_locks_loses_them(holder: Holder) -> None:
    """Its note names the refs, but not yet the files; no other git of that time is running."""
    notes(holder.world).note(holder.pid, holder.refs)
    holder.end()
    _works(holder)


def test_without_a_note_nothing_is_removed(holder: Holder) -> None:
    holder.end()
    said = _stops(holder)
    assert "hint:" in said
    for lock in holder.locks:
        lock.unlink()
    _works(holder)


def test_a_living_owner_keeps_its_locks(holder: Holder) -> None:
    notes(holder.world).note(holder.pid, holder.refs)
    assert str(holder.pid) in _stops(holder)
    holder.end(signal_number=signal.SIGTERM)  # git removes its own locks
    _works(holder)


@_only("ledger")
def test_a_stopped_owner_keeps_its_locks(holder: Holder) -> None:
    notes(holder.world).note(holder.pid, holder.refs)
    os.kill(holder.pid, signal.SIGSTOP)
    os.waitpid(holder.pid, os.WUNTRACED)
    said = _stops(holder)
    assert "stopped" in said and f"kill -CONT {holder.pid}" in said
    os.kill(holder.pid, signal.SIGCONT)


@_only("ledger", "packed")
def test_a_note_of_another_boot_is_of_the_dead(holder: Holder) -> None:
    """This holds even if a living process has that number now."""
    holder.end()
    notes(holder.world, boot="another-boot").note(os.getpid(), holder.refs)
    _works(holder)


def _alter(path: str, old: str, new: str) -> None:
    """Another process's note: in its content and its name."""
    text = Path(path).read_text()
    assert old in path and text.count(old) == 1
    os.unlink(path)
    Path(path.replace(old, new)).write_text(text.replace(old, new))


@_only("ledger", "packed")
def test_a_number_given_again_is_not_the_owner(holder: Holder) -> None:
    holder.end()
    start = start_time(os.getpid())
    _alter(path_of(notes(holder.world), os.getpid(), holder.refs), start, str(int(start) - 1))
    _works(holder)


@_only("claim")
def test_a_process_of_another_namespace_is_not_judged(holder: Holder) -> None:
    """A container's processes cannot be seen from here: its locks stay."""
    holder.end()
    _alter(path_of(notes(holder.world), holder.pid, holder.refs), NAMESPACE, "1")
    _stops(holder)


@_only("claim")
def test_a_process_of_another_time_namespace_is_not_judged(holder: Holder) -> None:
    """Since when it runs reads differently there."""
    holder.end()
    boot = Host().boot.partition("/")[0]
    notes(holder.world, boot=f"{boot}/1").note(holder.pid, holder.refs)
    _stops(holder)


@_only("ledger")
def test_an_owner_dead_before_its_note_is_dead(holder: Holder) -> None:
    """git may die before it is noted: then the note has no start time, and that is no sign of life."""
    living = notes(holder.world)
    living.note(holder.pid, holder.refs)
    holder.end()
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert not start_time(gone.pid)
    living.note(gone.pid, holder.refs)
    _works(holder)


@_only("ledger")
def test_a_note_outlives_its_number(holder: Holder) -> None:
    """The same process number, after a reboot or a wrap, must not overwrite the note of a lock that is still there."""
    notes(holder.world, boot="another-boot").note(holder.pid, holder.refs)
    holder.end()
    notes(holder.world).note(holder.pid, ["refs/heads/unrelated"]).forget()
    _works(holder)


@_only("claim")
def test_two_noted_dead_owners(holder: Holder) -> None:
    known = notes(holder.world)
    known.note(holder.pid, holder.refs)
    holder.end()
    gone = subprocess.Popen(["true"])
    known.note(gone.pid, [*holder.refs, "refs/heads/unrelated"])
    gone.wait()
    _works(holder)


def test_notes_of_the_dead_do_not_pile_up(world: World) -> None:
    """Each killed command leaves a note; somebody has to take them away once their locks are gone."""
    known = notes(world)
    for _ in range(40):
        gone = subprocess.Popen(["true"])
        known.note(gone.pid, [LEDGER])
        gone.wait()
    for number in range(3):
        assert world.claim(f"path-{number}", agent="bob").code == 0
    assert world.fsck(repair=True).code == 0
    assert len(os.listdir(world.git_dir / "gitcoord/locks")) < 40


def _for_all_users(place: Path) -> None:
    """Notes lie in `place`/locks, where every user may write."""
    for parent in (place, *place.parents):
        parent.chmod(parent.stat().st_mode | 0o011)
    (place / "locks").mkdir()
    (place / "locks").chmod(0o777)


def _as_another(place: Path, script: str, *before: str) -> subprocess.CompletedProcess[str]:
    """Run this on `known`, the notes in `place`, as another user; `before` starts it."""
    begin = (
        "import os; from gitcoord.base.errors import LockHeld; from gitcoord.git.locks import stale; from gitcoord.git.locks.owners import LockNotes\n"
        "os.setgroups([]); os.setgid(2001); os.setuid(2001)\n"
        f"known = LockNotes({str(place)!r}, {str(place)!r}, 'boot')\n"
    )
    return subprocess.run(
        [*before, sys.executable, "-c", begin + script],
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False,
    )  # fmt: skip


_RECOVER = "try: known.remove_stale_locks(['x'])\nexcept LockHeld as held: print(held.message)"


def _dead() -> int:
    gone = subprocess.Popen(["true"])
    gone.wait()
    return gone.pid


@_only("ledger")
def test_a_note_that_was_forgotten_vouches_for_nothing(holder: Holder) -> None:
    note = notes(holder.world).note(holder.pid, holder.refs)
    holder.end()
    note.forget()
    note.forget()  # harmless to repeat
    assert os.listdir(holder.world.git_dir / "gitcoord/locks") == []
    _stops(holder)


@_only("claim")
def test_half_a_note_vouches_for_nothing(holder: Holder) -> None:
    """A kill may cut a note that takes several pages."""
    many = [f"refs/heads/{'x' * 90}{number}" for number in range(100)]
    path = Path(path_of(notes(holder.world), holder.pid, [*many, *holder.refs]))
    holder.end()
    data, name = path.read_bytes(), path
    path.write_bytes(data[:-1])
    _stops(holder)
    name.write_bytes(data)
    _works(holder)


def test_what_says_nothing_yet_stays_while_its_maker_lives(world: World) -> None:
    directory, start, me = world.git_dir / "gitcoord/locks", start_time(os.getpid()), os.getpid()
    boot, shifted = BOOT, BOOT.replace("_", "_9")
    names = [f"{me}.{start}.{boot}.{NAMESPACE}", f"{me}.1.{boot}.1", f"{me}.1.{shifted}.{NAMESPACE}"]
    living = [directory / name for name in names]
    dead = [f"{me}.1.{boot}.{NAMESPACE}", f"{_dead()}.1.{boot}.{NAMESPACE}", f"{me}.{start}.x.{NAMESPACE}", "7", "7.8"]
    dead += [f"{'9' * 99}.1.{boot}.{NAMESPACE}", f"{'9' * 99}.-1.{boot}.{NAMESPACE}"]
    others = [directory / name for name in dead]
    aside = directory / "stale-1"  # a lock that is just being moved aside
    for file in (*living, aside, *others):
        file.write_bytes(f"{_dead()}.1.{BOOT}.{NAMESPACE}\nrefs/heads/old\0".encode())
    notes(world).sweep()
    assert all(file.exists() for file in (*living, aside)) and not any(file.exists() for file in others)


@_only("claim")
def test_a_note_under_anothers_name_is_not_believed(holder: Holder) -> None:
    """A late writer may write into a file that belongs to another process by then."""
    path = path_of(notes(holder.world), holder.pid, holder.refs)
    holder.end()
    os.rename(path, path.replace(f"/{holder.pid}.", f"/{_dead()}."))
    _stops(holder)


@pytest.mark.skipif(os.geteuid() != 0, reason="several users")
def test_a_note_that_cannot_be_read_stays(tmp_path: Path) -> None:
    _for_all_users(tmp_path)
    known = LockNotes(str(tmp_path), str(tmp_path), "boot")
    note = Path(path_of(known, _dead(), [LEDGER]))
    note.chmod(0o600)
    assert _as_another(tmp_path, "known.sweep()").returncode == 0
    assert note.exists()
    known.sweep()
    assert not note.exists()


def test_half_a_note_is_none(world: World) -> None:
    """A full disk: what was written of it is taken back."""
    known = notes(world)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, limits[1]))
    try:
        with pytest.raises(OSError, match="No space"):
            known.note(os.getpid(), [LEDGER])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(world.git_dir / "gitcoord/locks") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
def test_a_process_that_cannot_be_looked_at_is_not_dead(tmp_path: Path) -> None:
    """Some systems hide the processes of other users."""
    _for_all_users(tmp_path)
    (tmp_path / "x.lock").touch()
    Path(path_of(LockNotes(str(tmp_path), str(tmp_path), "boot"), os.getpid(), ["x"])).chmod(0o666)
    hidden = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    done = _as_another(tmp_path, _RECOVER, "unshare", "-m", "sh", "-c", hidden, "sh")
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert f"is held by process {os.getpid()}" in done.stdout, done


@pytest.mark.skipif(os.geteuid() != 0, reason="several users")
def test_a_lock_that_may_not_be_removed_is_named(tmp_path: Path) -> None:
    _for_all_users(tmp_path)
    (tmp_path / "x.lock").touch()
    (tmp_path / "locks.lock").touch()
    (tmp_path / "locks.lock").chmod(0o666)
    LockNotes(str(tmp_path), str(tmp_path), "boot").note(_dead(), ["x"]).taken(str(tmp_path), ["x"])
    done = _as_another(tmp_path, _RECOVER)
    assert f"{tmp_path}/x.lock" in done.stdout and "Permission denied" in done.stdout, done


def test_a_note_too_long_to_read_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = path_of(notes(world), _dead(), ["refs/heads/unrelated" + "x" * 100])
    monkeypatch.setattr(locks_module, "_LIMIT", 100)
    notes(world).sweep()
    assert os.path.exists(path)


def test_broken_notes_are_no_notes(world: World) -> None:
    """Scratch files may hold anything: they remove no lock and stop no command."""
    directory = world.git_dir / "gitcoord/locks"
    directory.mkdir(exist_ok=True)
    lock = world.git_dir / f"{LEDGER}.lock"
    for number, data in enumerate(
        [b"", b"\xff\xfe", b"1 2 3", b"x y z w\n" + LEDGER.encode(), b"1" * 5000, b"99999999999999999999999 1 2 3\n"]
    ):
        (directory / str(number)).write_bytes(data)
    (directory / "a-directory").mkdir()
    (directory / "8").mkdir()
    lock.touch()
    done = world.claim("other.txt", agent="bob")
    assert done.code == 4 and str(lock) in done.out + done.err and lock.exists()
    lock.unlink()
    world.assert_works()


def test_repair_clears_noted_locks(holder: Holder) -> None:
    """`fsck --repair` is the way back also where it is a claim's or a session's ref that is locked."""
    world = holder.world
    notes(world).note(holder.pid, holder.refs)
    ref = holder.refs[0]
    holder.end()
    if ref != LEDGER:
        world.git_dir.joinpath(ref).unlink(missing_ok=True)  # a torn transaction: the ref is behind
    done = world.fsck(repair=True)
    assert done.code == 0, done
    _works(holder)


def test_repair_names_a_lock_without_a_note(world: World) -> None:
    lock = world.git_dir / f"{LEDGER}.lock"
    lock.touch()
    done = world.fsck(repair=True)
    assert done.code == 4 and str(lock) in done.out + done.err and lock.exists()


@_only("ledger", "packed")
def test_check_and_list_need_no_lock(holder: Holder) -> None:
    world = holder.world
    assert world.claim("check", "src/app.py", agent="alice").code == 0
    assert world.claim("check", "src/app.py", agent="bob").code == 1
    assert world.claim("list", agent="bob").code == 0


@pytest.mark.parametrize("third", [False, True])
def test_a_lock_that_was_taken_anew_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, third: bool) -> None:
    """Another git took the lock just before it was moved aside; and a third one perhaps just after, whose lock stays."""
    lock = tmp_path / "x.lock"
    lock.touch()
    known = LockNotes(str(tmp_path), str(tmp_path), Host().boot)
    known.note(_dead(), ["x"]).taken(str(tmp_path), ["x"])

    def after_another(path: str, aside: str) -> None:
        (tmp_path / "new").write_text("second")
        os.replace(tmp_path / "new", lock)
        os.rename(path, aside)
        if third:
            lock.write_text("third")

    monkeypatch.setattr(stale, "rename", after_another)
    StaleLocks(known).remove_stale_locks(["x"])
    assert lock.read_text() == ("third" if third else "second")
    assert not [name for name in os.listdir(tmp_path / "locks") if name.startswith("stale-")]

"""Loose objects: git's own format, put in place by rename, durable before any ref names them."""

import posix
from zlib import compress

from gitcoord.errors import StoreError
from gitcoord.names import Oid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable, Sequence
    from typing import Any

    from gitcoord.store.interface import Object


_THREADS = 4
_TRIES = 100


def hasher(oid_length: int) -> "Callable[[bytes], Any]":
    """The hash of this repository, from C, without hashlib's search for OpenSSL."""
    name, modules = ("sha1", ("_sha1", "hashlib")) if oid_length == 40 else ("sha256", ("_sha2", "_sha256", "hashlib"))
    for module in modules:  # _sha2 is Python 3.12's; hashlib is for builds without their own
        try:
            chosen: Callable[[bytes], Any] = getattr(__import__(module), name)
            return chosen
        except ImportError:
            continue
    raise StoreError(f"this Python has no {name}")


def framed(kind: str, data: bytes) -> bytes:
    return f"{kind} {len(data)}\0".encode() + data


class Scales:
    """A store that only weighs: it tells the id that an object would have."""

    def __init__(self, oid_length: int) -> None:
        self.oid_length = oid_length
        self._hash = hasher(oid_length)

    def read(self, names: "Sequence[str]") -> "list[Object | None]":
        return [None for _ in names]

    def write(self, kind: str, data: bytes) -> Oid:
        oid: Oid = self._hash(framed(kind, data)).hexdigest()
        return oid


class LooseObjects:
    """Writes below one `objects` directory. Files are pending, under git's name for temporary objects, until `flush`."""

    def __init__(self, directory: str, oid_length: int, *, durable: bool, shared: bool) -> None:
        self._directory = directory
        self._hash = hasher(oid_length)
        self._durable = durable
        self._shared = shared
        self._pending: list[tuple[int, str, str]] = []
        self._written: set[Oid] = set()
        self._count = 0

    def write(self, kind: str, data: bytes) -> Oid:
        full = framed(kind, data)
        oid: Oid = self._hash(full).hexdigest()
        if oid in self._written:
            return oid
        folder = f"{self._directory}/{oid[:2]}"
        final = f"{folder}/{oid[2:]}"
        if not self._touch(final):
            self._write_new(folder, final, compress(full, 1))
        self._written.add(oid)
        return oid

    def _touch(self, final: str) -> bool:
        """Where it is there, keep it from being pruned as old. An empty file is what a power cut left of one."""
        try:
            if not posix.stat(final).st_size:
                return False
            posix.utime(final)
            return True
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreError(f"cannot touch {final}: {error.strerror}") from None

    def _write_new(self, folder: str, final: str, packed: bytes) -> None:
        self._count += 1
        temporary = f"{folder}/tmp_obj_{posix.getpid()}_{self._count}"
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC
        try:
            fd = self._open(folder, temporary, flags)
            self._pending.append((fd, temporary, final))
            view = memoryview(packed)
            while view:
                view = view[posix.write(fd, view) :]
        except OSError as error:
            self.abandon()
            raise StoreError(f"cannot write an object in {folder}: {error.strerror}") from None

    def _open(self, folder: str, temporary: str, flags: int) -> int:
        """A new file; its directory is made on the way, again and again if `git gc` removes it as empty in between."""
        for _ in range(_TRIES):
            try:
                return posix.open(temporary, flags, 0o444)
            except FileNotFoundError:
                self._make(folder)
        return posix.open(temporary, flags, 0o444)

    def _make(self, folder: str) -> None:
        try:
            posix.mkdir(folder)
            if self._shared:
                posix.chmod(folder, 0o2775)
        except FileExistsError:
            pass

    def flush(self) -> None:
        """The objects of one transaction become visible after their bytes are safe, each after what it refers to."""
        try:
            if self._durable:
                _sync_all([fd for fd, _, _ in self._pending])
            for _, temporary, final in self._pending:
                posix.rename(temporary, final)
        except OSError as error:
            self.abandon()
            raise StoreError(f"cannot store an object: {error.strerror}") from None
        for fd, _, _ in self._pending:
            posix.close(fd)
        self._pending.clear()
        self._written.clear()

    def abandon(self) -> None:
        """Remove what is pending, after a failure."""
        for fd, temporary, _ in self._pending:
            posix.close(fd)
            try:
                posix.unlink(temporary)
            except OSError:
                pass  # in place already, or git prunes tmp_obj_* by itself
        self._pending.clear()
        self._written.clear()

    def discard(self, oid: Oid) -> None:
        try:
            posix.unlink(f"{self._directory}/{oid[:2]}/{oid[2:]}")
        except OSError:
            pass  # packed, or gone already


def _sync_all(fds: list[int]) -> None:
    """Flush files four at a time: the file system commits them together, which takes half as long as in turn."""
    from _thread import allocate_lock, start_new_thread

    failures: list[OSError] = []

    def sync(mine: list[int], done: "LockType | None") -> None:
        try:
            for fd in mine:
                posix.fsync(fd)
        except OSError as error:
            failures.append(error)
        finally:
            if done is not None:
                done.release()

    waiting = []
    for start in range(1, min(_THREADS, len(fds))):
        done = allocate_lock()
        done.acquire()
        try:
            start_new_thread(sync, (fds[start::_THREADS], done))
        except RuntimeError:  # no thread to be had
            sync(fds[start::_THREADS], done)
        waiting.append(done)
    sync(fds[::_THREADS], None)
    for done in waiting:
        done.acquire()
    if failures:
        raise failures[0]

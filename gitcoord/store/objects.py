"""Loose objects: git's own format, put in place by rename, durable before any ref leads to them."""

import posix
from zlib import adler32, compress, decompress
from zlib import error as ZlibError

from gitcoord.errors import StoreError
from gitcoord.names import Oid
from gitcoord.store.files import read_up_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gitcoord.store.interface import Object


_TRIES = 100
_LIMIT = 1 << 20
_MOST_OPEN = 128
_BLOCK = 4000
_ADVISE = getattr(posix, "posix_fadvise", None)  # macOS has none


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
        self._open: list[int] = []  # files that may not be on the disk yet
        self._pending: list[tuple[str, str]] = []  # under which name, and which they will have
        self._published: list[str] = []  # in their places since the last `settle`
        self._written: set[Oid] = set()
        self._count = 0

    def write(self, kind: str, data: bytes) -> Oid:
        full = framed(kind, data)
        oid: Oid = self._hash(full).hexdigest()
        if oid in self._written:
            return oid
        folder = f"{self._directory}/{oid[:2]}"
        final = f"{folder}/{oid[2:]}"
        if not self._is_there(final, full):
            self._write_new(folder, final, _packed(full))
        self._written.add(oid)
        return oid

    def _is_there(self, final: str, full: bytes) -> bool:
        """Where it is there and whole, keep it from being pruned as old.

        A power cut leaves damaged files, and another writer's may not have reached the disk yet: it is read, and flushed again.
        """
        fd = -1
        try:
            fd = posix.open(final, posix.O_RDONLY | posix.O_CLOEXEC)
            if not _holds(fd, full):
                posix.close(fd)
                return False
            posix.utime(final)
            self._begin(fd)
        except FileNotFoundError:  # or pruned just now
            if fd >= 0:
                posix.close(fd)
            return False
        except OSError as error:
            raise StoreError(f"cannot keep {final}: {error.strerror}") from None
        return True

    def _write_new(self, folder: str, final: str, packed: bytes) -> None:
        self._count += 1
        temporary = f"{folder}/tmp_obj_{posix.getpid()}_{self._count}"
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC
        try:
            fd = self._create(folder, temporary, flags)
            self._pending.append((temporary, final))
            view = memoryview(packed)
            while view:
                view = view[posix.write(fd, view) :]
            self._begin(fd)
        except OSError as error:
            self.abandon()
            raise StoreError(f"cannot write an object in {folder}: {error.strerror}") from None

    def _begin(self, fd: int) -> None:
        """Let the disk begin with this file now, so that `settle` has less to wait for."""
        self._open.append(fd)
        if self._durable and _ADVISE is not None:
            _ADVISE(fd, 0, 0, posix.POSIX_FADV_DONTNEED)
        if not self._durable or len(self._open) >= _MOST_OPEN:
            self._drain()

    def _drain(self) -> None:
        fds, self._open = self._open, []
        try:
            for fd in fds if self._durable else ():
                posix.fsync(fd)
        finally:
            for fd in fds:
                posix.close(fd)

    def _create(self, folder: str, temporary: str, flags: int) -> int:
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
        """What is pending becomes readable for all, and durable."""
        self.publish()
        self.settle()

    def publish(self) -> None:
        """Put what is pending in its place, each object after what it refers to.

        Readable, but not yet durable: no ref may lead to it before `settle`.
        """
        try:
            for temporary, final in self._pending:
                posix.rename(temporary, final)
        except OSError as error:
            self.abandon()
            raise StoreError(f"cannot store an object: {error.strerror}") from None
        self._published += [final for _, final in self._pending]
        self._pending.clear()
        self._written.clear()

    def settle(self) -> None:
        """Wait until all that was published is on the disk. Harmless to repeat."""
        published, self._published = self._published, []
        try:
            self._drain()
        except OSError as error:
            for final in published:  # or the next writer would take it for safe
                _remove(final)
            raise StoreError(f"cannot store an object: {error.strerror}") from None

    def abandon(self) -> None:
        """Remove what is pending, after a failure."""
        for fd in self._open:
            posix.close(fd)
        for temporary, _ in self._pending:
            _remove(temporary)  # in place already, or git prunes tmp_obj_* by itself
        self._open.clear()
        self._pending.clear()
        self._written.clear()

    def discard(self, oid: Oid) -> None:
        _remove(f"{self._directory}/{oid[:2]}/{oid[2:]}")  # or it is packed, or gone already


def _remove(path: str) -> None:
    try:
        posix.unlink(path)
    except OSError:
        pass


def _packed(full: bytes) -> bytes:
    """As zlib's format has it; what fits into a block of the disk anyway is stored as it is, which is quicker for all."""
    size = len(full)
    if size > _BLOCK:
        return compress(full, 1)
    sizes = size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little")
    return b"\x78\x01\x01" + sizes + full + adler32(full).to_bytes(4, "big")


def _holds(fd: int, full: bytes) -> bool:
    """Does this file hold this object, whoever compressed it? A larger one than we write is taken at git's word."""
    packed = read_up_to(fd, _LIMIT)
    try:
        return len(packed) == _LIMIT or decompress(packed) == full
    except ZlibError:
        return False

"""Loose objects: git's own format, put in place by rename."""

from __future__ import annotations

from zlib import adler32, compress, decompress
from zlib import error as ZlibError

from gitcoord.base.errors import StoreError
from gitcoord.base.names import Oid
from gitcoord.git.files import (
    chmod,
    close,
    mkdir,
    open_new,
    open_to_read,
    random_hex,
    read_up_to,
    remove_file,
    rename,
    utime,
    write_all,
)
from gitcoord.git.store import Object
from gitcoord.startup.annotations import Any, Callable, Collection, Sequence

_TEMPORARY = "tmp_obj_"  # git's name for what its gc may remove later
_TRIES = 100
_LIMIT = 1 << 20
_BLOCK = 4000


def hasher(oid_length: int) -> Callable[[bytes], Any]:
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


class ObjectHasher:
    """A store without objects: it gives the id that an object would have."""

    def __init__(self, oid_length: int) -> None:
        self.oid_length = oid_length
        self._hash = hasher(oid_length)

    def read(self, names: Sequence[str]) -> list[Object | None]:
        return [None for _ in names]

    def write(self, kind: str, data: bytes) -> Oid:
        oid: Oid = self._hash(framed(kind, data)).hexdigest()
        return oid


class LooseObjects:
    """Writes below one `objects` directory. Objects are pending until `publish`, and not durable: see `redo_log`."""

    def __init__(self, directory: str, oid_length: int, *, shared: bool) -> None:
        self._directory = directory
        self._hash = hasher(oid_length)
        self._shared = shared
        self.written: dict[Oid, bytes] = {}  # objects of the next transaction, as the bytes of their files
        self._pending: dict[Oid, bytes] = {}  # those of them that are not in place yet
        self._mark = ""
        self._count = 0

    def write(self, kind: str, data: bytes) -> Oid:
        full = framed(kind, data)
        oid = self.oid_of(full)
        if oid not in self.written:
            self.written[oid] = packed = _packed(full)
            if not self._is_there(oid, full):
                self._pending[oid] = packed
        return oid

    def oid_of(self, full: bytes) -> Oid:
        oid: Oid = self._hash(full).hexdigest()
        return oid

    def place(self, oid: Oid) -> str:
        return f"{self._directory}/{oid[:2]}/{oid[2:]}"

    def _is_there(self, oid: Oid, full: bytes) -> bool:
        """Return whether the object exists, undamaged. Its time is renewed; another user's object is written again."""
        path = self.place(oid)
        try:
            if not self.is_whole(oid, full):
                return False
            utime(path)
            return True
        except (FileNotFoundError, PermissionError):  # pruned just now, or another user's
            return False
        except OSError as error:
            raise StoreError(f"cannot keep {path}: {error.strerror}") from None

    def is_whole(self, oid: Oid, full: bytes) -> bool:
        """Return whether a file has this object. It is read, because a power cut leaves damaged files. OSError."""
        try:
            fd = open_to_read(self.place(oid))
        except FileNotFoundError:
            return False
        try:
            return _holds(fd, full)
        finally:
            close(fd)

    def publish(self, first: Collection[Oid] | None = None) -> None:
        """Put pending objects in place, each after those that it refers to. `first`: only these."""
        for oid in [oid for oid in self._pending if first is None or oid in first]:
            try:
                self.put(oid, self._pending[oid])
            except OSError as error:
                self.forget()
                raise StoreError(f"cannot write an object in {self._directory}: {error.strerror}") from None
            del self._pending[oid]

    def put(self, oid: Oid, packed: bytes) -> None:
        """Write its file, whole or not at all. OSError.

        `git gc` removes directories as empty, and with --prune=now what is just being written: then once more.
        """
        folder = f"{self._directory}/{oid[:2]}"
        for _ in range(_TRIES):
            try:
                return self._try_file(oid, packed, folder)
            except FileNotFoundError:
                self._make(folder)
        self._try_file(oid, packed, folder)

    def _try_file(self, oid: Oid, packed: bytes, folder: str) -> None:
        # A name that only this writer has: numbers of processes are the same in several containers, and for several threads.
        self._mark = self._mark or random_hex(6)
        self._count += 1
        temporary = f"{folder}/{_TEMPORARY}{self._mark}_{self._count}"
        fd = open_new(temporary, 0o444)
        try:
            try:
                write_all(fd, packed)
            finally:
                close(fd)
            rename(temporary, self.place(oid))
        except OSError:
            remove_file(temporary)
            raise

    def _make(self, folder: str) -> None:
        try:
            mkdir(folder)
            if self._shared:
                chmod(folder, 0o2775)
        except FileExistsError:
            pass

    def forget(self) -> None:
        """Forget the pending objects. Those that are in place stay: they do no harm, and another process may use them."""
        self.written, self._pending = {}, {}

    def discard(self, oid: Oid) -> None:
        remove_file(self.place(oid))  # or it is packed, or gone already


def _packed(full: bytes) -> bytes:
    """The object in zlib's format. One that fits into a disk block is not compressed: faster to write and to read."""
    size = len(full)
    if size > _BLOCK:
        return compress(full, 1)
    sizes = size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little")
    return b"\x78\x01\x01" + sizes + full + adler32(full).to_bytes(4, "big")


def _holds(fd: int, full: bytes) -> bool:
    """Return whether this file has this object, of any compressor. A larger file than we write is trusted to git."""
    packed = read_up_to(fd, _LIMIT)
    try:
        return len(packed) == _LIMIT or decompress(packed) == full
    except ZlibError:
        return False

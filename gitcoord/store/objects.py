"""Loose objects: git's own format, put in place by rename, safe from a power cut before any ref leads to them."""

import posix
from zlib import adler32, compress, decompress
from zlib import error as ZlibError

from gitcoord.errors import StoreError
from gitcoord.names import Oid
from gitcoord.store.files import flush_file, read_up_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Any

    from gitcoord.store.interface import Object
    from gitcoord.store.redo import Redo


_TEMPORARY = "tmp_obj_"  # git's name for what its gc may remove later
_TRIES = 100
_LIMIT = 1 << 20
_BLOCK = 4000


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
    """Writes below one `objects` directory. Objects are pending until `publish`, and a power cut may take them until `settle`.

    With a redo log all of them are written down there before the first is put in its place; then the order in which that is
    done does not matter. Without one each object comes after what it refers to.
    """

    def __init__(
        self, directory: str, oid_length: int, *, durable: bool, shared: bool, log: "Redo | None" = None
    ) -> None:
        self._directory = directory
        self._hash = hasher(oid_length)
        self._durable = durable
        self._shared = shared
        self._log = log
        self._logged = False
        self._unsettled: dict[Oid, bytes] = {}  # all that the next transaction rests on, as their files hold it
        self._pending: dict[Oid, bytes] = {}  # of these, what is not in its place yet
        self._mark = ""
        self._count = 0

    def write(self, kind: str, data: bytes) -> Oid:
        full = framed(kind, data)
        oid = self._oid(full)
        if oid not in self._unsettled:
            self._unsettled[oid] = packed = _packed(full)
            if not self._is_there(oid, full):
                self._pending[oid] = packed
        return oid

    def _oid(self, full: bytes) -> Oid:
        oid: Oid = self._hash(full).hexdigest()
        return oid

    def _place(self, oid: Oid) -> str:
        return f"{self._directory}/{oid[:2]}/{oid[2:]}"

    def _is_there(self, oid: Oid, full: bytes) -> bool:
        """Where it is there and whole, keep it from being pruned as old: another user's is written again, as git does."""
        path = self._place(oid)
        try:
            if not self._is_whole(oid, full):
                return False
            posix.utime(path)
            return True
        except (FileNotFoundError, PermissionError):  # pruned just now, or another user's
            return False
        except OSError as error:
            raise StoreError(f"cannot keep {path}: {error.strerror}") from None

    def _is_whole(self, oid: Oid, full: bytes) -> bool:
        """A power cut leaves damaged files, so it is read. OSError."""
        try:
            fd = posix.open(self._place(oid), posix.O_RDONLY | posix.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return _holds(fd, full)
        finally:
            posix.close(fd)

    def flush(self) -> None:
        """What is pending becomes readable for all, and durable."""
        self.log()
        self.publish()
        self.settle()

    def log(self) -> bool:
        """Write all that is pending into the redo log; False where there is none."""
        if self._log is None or not self._durable or not self._unsettled:
            return False
        try:
            if self._log.of_other_boots():
                self.mend()
            self._logged = self._log.append(self._unsettled.items())
        except OSError as error:
            self._forget()
            raise StoreError(f"cannot write the redo log: {error.strerror}") from None
        return self._logged

    def publish(self, first: "Collection[Oid] | None" = None) -> None:
        """Put what is pending in its place; of it only `first` where that is given.

        Readable, but not yet durable: no ref may lead to it before `settle`.
        """
        for oid in [oid for oid in self._pending if first is None or oid in first]:
            try:
                self._write_file(oid, self._pending[oid])
            except OSError as error:
                self._forget()
                raise StoreError(f"cannot write an object in {self._directory}: {error.strerror}") from None
            del self._pending[oid]

    def _write_file(self, oid: Oid, packed: bytes) -> None:
        """`git gc` removes directories as empty, and with --prune=now what is just being written: then once more."""
        folder = f"{self._directory}/{oid[:2]}"
        for _ in range(_TRIES):
            try:
                return self._try_file(oid, packed, folder)
            except FileNotFoundError:
                self._make(folder)
        self._try_file(oid, packed, folder)

    def _try_file(self, oid: Oid, packed: bytes, folder: str) -> None:
        # A name that only this writer has: numbers of processes are the same in several containers, and for several threads.
        self._mark = self._mark or posix.urandom(6).hex()
        self._count += 1
        temporary = f"{folder}/{_TEMPORARY}{self._mark}_{self._count}"
        fd = posix.open(temporary, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o444)
        try:
            try:
                view = memoryview(packed)
                while view:
                    view = view[posix.write(fd, view) :]
            finally:
                posix.close(fd)
            posix.rename(temporary, self._place(oid))
        except OSError:
            _remove(temporary)
            raise

    def _make(self, folder: str) -> None:
        try:
            posix.mkdir(folder)
            if self._shared:
                posix.chmod(folder, 0o2775)
        except FileExistsError:
            pass

    def settle(self) -> None:
        """Wait until all that was published is safe from a power cut. Harmless to repeat."""
        if self._durable and self._unsettled:
            try:
                if not (self._logged and self._log is not None and self._log.settle()):
                    for oid in self._unsettled:
                        flush_file(self._place(oid))
            except OSError as error:
                self._forget()
                raise StoreError(f"cannot store an object: {error.strerror}") from None
        self._forget()

    def _forget(self) -> None:
        """All is done, or nothing came of it: what is in its place already is in nobody's way, and may be another's too."""
        self._unsettled, self._pending, self._logged = {}, {}, False

    def outgrown(self) -> list[str]:
        """Logs that are full, to be removed after the whole file system has been flushed."""
        return self._log.set_aside() if self._log is not None and self._durable else []

    def mend(self, *, own: bool = False) -> bool:
        """Put back what logs of other boots have, and remove those; or what every log has. True if there was one.

        Another boot may be another machine's or container's, which writes just now: its log is moved away before it is read, so
        that whoever appends to it afterwards knows that it vouches for nothing.
        """
        if self._log is None:
            return False
        from gitcoord.store.restore import read_logs

        paths = self._log.every() if own else self._log.take_others()
        logs = read_logs(paths, self._oid)
        try:
            for path, found in logs:
                try:
                    for oid, full, packed in found:
                        if not self._is_whole(oid, full):
                            self._write_file(oid, packed)
                    for oid, _, _ in found:
                        flush_file(self._place(oid))
                except PermissionError:
                    continue  # what is another user's is put back by that user: the log stays
                if not own:
                    _remove(path)
        except OSError as error:
            raise StoreError(f"what a power cut took cannot be put back: {error.strerror}") from None
        return bool(logs)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def discard(self, oid: Oid) -> None:
        _remove(self._place(oid))  # or it is packed, or gone already


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

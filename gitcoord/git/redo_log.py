"""Durable loose objects: a redo log makes all objects of a transaction durable with one flush.

A claim writes about eight loose objects, and flushing each of them takes about as long as flushing all at once. So the objects are
appended to the log first, and only the log is flushed before a ref points at them. Loose files that a power cut destroys are
restored from the log: by the first writer after the boot, and by a reader that misses an object. The name of a log is the boot in
which it was written, so logs of earlier boots are recognised. A full log is replaced by a new one and removed after a flush of the
whole file system, in the background.

A record is an object's id, the size of its file and the bytes of its file.
"""

from __future__ import annotations

from zlib import decompress
from zlib import error as ZlibError

from gitcoord.base.errors import StoreError
from gitcoord.base.names import Oid
from gitcoord.git.files import (
    close,
    flush_file,
    fstat,
    fsync,
    is_readable,
    is_regular,
    list_files,
    lstat,
    make_directory,
    open_to_append,
    random_hex,
    read_if_file,
    remove_file,
    rename,
    stat,
    write_at_once,
)
from gitcoord.git.loose_writer import LooseObjects
from gitcoord.startup.annotations import Callable, Iterator

_FULL = 1 << 18
_MOST = 1 << 20  # more than this at a time is not written twice
_HEAD = b"object "
_LONGEST_HEAD = 100


class DurableObjects(LooseObjects):
    """Writes loose objects, and the redo logs below one directory. Any number of processes append to one log, each batch in one write.

    Calling order: `write`, `log`, `publish`, `sync`. Only then may a ref point at the objects. With a log the objects may be
    put in place in any order; without one each object follows those that it refers to.
    """

    def __init__(self, objects: str, oid_length: int, logs: str, boot: str, *, shared: bool, durable: bool) -> None:
        """`durable`: False flushes nothing; existing logs are replayed all the same."""
        super().__init__(objects, oid_length, shared=shared)
        self._logs = logs
        self._boot = boot.partition("/")[0]
        self._path = f"{logs}/{self._boot}"
        self._durable = durable
        self._fd = -1
        self._logged = False

    # --- writing

    def flush(self) -> None:
        """Make all pending objects readable for every process, and durable."""
        self.log()
        self.publish()
        self.sync()

    def log(self) -> bool:
        """Append all pending objects to the log. False: there is no log for them, and `sync` flushes each object."""
        self._logged = False
        if not self._durable or not self.written:
            return False
        try:
            if self._of_other_boots():
                self.replay_redo_log()
            self._logged = self._append(self.written)
        except OSError as error:
            self.forget()
            raise StoreError(f"cannot write the redo log: {error.strerror}") from None
        return self._logged

    def sync(self) -> None:
        """Wait until all published objects are durable. Harmless to repeat."""
        try:
            if self._durable and self.written and not (self._logged and self._is_on_disk()):
                for oid in self.written:
                    flush_file(self.place(oid))
        except OSError as error:
            raise StoreError(f"cannot store an object: {error.strerror}") from None
        finally:
            self.forget()

    def close(self) -> None:
        if self._fd >= 0:
            close(self._fd)
            self._fd = -1

    # --- this boot's log

    def _append(self, objects: dict[Oid, bytes]) -> bool:
        """False: they are too many, or there is no log. OSError."""
        data = b"".join(
            [b"object %s %d\n%s\n" % (oid.encode(), len(packed), packed) for oid, packed in objects.items()]
        )
        if len(data) > _MOST or self._boot == "unknown":
            return False
        if not self._is_in_place():
            self._open()
        if self._fd < 0:
            return False
        write_at_once(self._fd, data)  # in one write: another process appends to the same file
        return True

    def _open(self) -> None:
        self.close()
        try:
            try:
                self._fd = open_to_append(self._path)
            except FileNotFoundError:
                make_directory(self._logs)
                self._fd = open_to_append(self._path)
        except PermissionError:
            pass  # another user's

    def _is_on_disk(self) -> bool:
        """Flush the log. False: another process has moved it away, and may have restored its objects before this record was there."""
        fsync(self._fd)
        return self._is_in_place()

    def _is_in_place(self) -> bool:
        try:
            return self._fd >= 0 and stat(self._path).st_ino == fstat(self._fd).st_ino
        except FileNotFoundError:
            return False

    def outgrown(self) -> list[str]:
        """Rename a full log. Gives the files to remove after the file system was flushed."""
        if not self._durable or not self._is_in_place() or fstat(self._fd).st_size < _FULL:
            return []
        try:
            rename(self._path, _aside(self._path))
        except FileNotFoundError:
            return []  # another process did it
        return [path for path in self._every() if path.startswith(f"{self._path}.")]

    # --- putting back

    def replay_redo_log(self, *, every: bool = False) -> bool:
        """Put back what logs of other boots have, and remove those. True if there was one. `every`: what logs of this boot have, too.

        Another boot may be that of another machine or container, which is writing now: its log is moved away before it is read, so
        that a process that appends to it afterwards knows that the log is no longer read.
        """
        if every:
            return bool(self._put_back(self._every()))
        taken = self._put_back(self._take_others())
        for path in taken:
            if path is not None:
                remove_file(path)
        return bool(taken)

    def _put_back(self, paths: list[str]) -> list[str | None]:
        """Restore the objects in these logs. Gives each log that was read; None for one with an object that only another user may write."""
        read = [(path, data) for path in paths if (data := read_if_file(path)) is not None]
        done: list[str | None] = []
        for path, data in read:
            try:
                oids = []
                for oid, full, packed in records(data, self.oid_of):
                    if not self.is_whole(oid, full):
                        self.put(oid, packed)
                    oids.append(oid)
                for oid in oids:
                    flush_file(self.place(oid))
                done.append(path)
            except PermissionError:
                done.append(None)
            except OSError as error:
                raise StoreError(f"objects that a power cut destroyed cannot be restored: {error.strerror}") from None
        return done

    def _every(self) -> list[str]:
        return [f"{self._logs}/{name}" for name in list_files(self._logs)]

    def _of_other_boots(self) -> list[str]:
        return [path for path in self._every() if path != self._path and not path.startswith(f"{self._path}.")]

    def _take_others(self) -> list[str]:
        """The logs of other boots, moved away from the name under which their writers append, where that is permitted."""
        stuck = set()
        for path in self._of_other_boots():
            if _is_current(path):
                try:
                    if is_regular(lstat(path)) and is_readable(path):
                        rename(path, _aside(path))
                except FileNotFoundError:
                    pass  # another process moved it, or has restored all of it
                except OSError:
                    stuck.add(path)
        # A log that is new since then has a living writer.
        return [path for path in self._of_other_boots() if path in stuck or not _is_current(path)]


def _is_current(path: str) -> bool:
    return "." not in path.rpartition("/")[2]


def _aside(path: str) -> str:
    """A name that no file has."""
    return f"{path}.{random_hex(8)}"


def records(data: bytes, oid_of: Callable[[bytes], Oid]) -> Iterator[tuple[Oid, bytes, bytes]]:
    """Every valid record of a log, in order: the object's id, the object, the bytes of its file.

    A record that is torn or forged is left out: its hash differs from its id.
    """
    at = 0
    while (at := data.find(_HEAD, at)) >= 0:
        record = _record(data, at, oid_of)
        if record is not None:
            yield record
        # The size in a torn record may reach beyond the start of the next record.
        at += len(_HEAD) if record is None else len(record[2])


def _record(data: bytes, at: int, oid_of: Callable[[bytes], Oid]) -> tuple[Oid, bytes, bytes] | None:
    end = data.find(b"\n", at, at + _LONGEST_HEAD)
    words = data[at:end].split(b" ") if end >= 0 else []
    if len(words) != 3 or not words[2].isdigit():
        return None
    packed = data[end + 1 : end + 1 + int(words[2])]
    try:
        full = decompress(packed)
    except ZlibError:
        return None
    oid = oid_of(full)
    return (oid, full, packed) if oid.encode() == words[1] else None

"""Reading redo logs: what a power cut took of the loose objects, or a killed writer left half done, is put back from them."""

import posix
from zlib import decompress, error

from gitcoord.names import Oid
from gitcoord.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HEAD = b"object "
_LONGEST_HEAD = 100


class Record(NamedTuple):
    oid: Oid
    full: bytes
    packed: bytes  # as its file holds it


def read_logs(paths: list[str], oid_of: "Callable[[bytes], Oid]") -> "list[tuple[str, list[Record]]]":
    """The logs that can be read, each with its objects. Another user's may not be ours to read: that user will."""
    logs = []
    for path in paths:
        data = _content(path)
        if data is not None:
            logs.append((path, list(records(data, oid_of))))
    return logs


def _content(path: str) -> "bytes | None":
    """None for what cannot be read, or is no file: a pipe would keep its reader waiting."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = posix.fstat(fd)
        return posix.read(fd, found.st_size) if found.st_mode & 0o170000 == 0o100000 else None
    except OSError:
        return None
    finally:
        posix.close(fd)


def records(data: bytes, oid_of: "Callable[[bytes], Oid]") -> "Iterator[Record]":
    """Every whole object in a log, in order. What a crash tore, or somebody made up, does not have the hash it is named by."""
    at = 0
    while (at := data.find(_HEAD, at)) >= 0:
        record = _record(data, at, oid_of)
        if record is not None:
            yield record
        # What is torn may reach over the beginning of the next one.
        at += len(_HEAD) if record is None else len(record.packed)


def _record(data: bytes, at: int, oid_of: "Callable[[bytes], Oid]") -> "Record | None":
    end = data.find(b"\n", at, at + _LONGEST_HEAD)
    words = data[at:end].split(b" ") if end >= 0 else []
    if len(words) != 3 or not words[2].isdigit():
        return None
    packed = data[end + 1 : end + 1 + int(words[2])]
    try:
        full = decompress(packed)
    except error:
        return None
    oid = oid_of(full)
    return Record(oid, full, packed) if oid.encode() == words[1] else None

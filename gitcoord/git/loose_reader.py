"""Reads loose objects, and refs in files, without git.

Most of what an everyday command reads was written a moment ago and lies loose. A `None` from `object` and `UNSURE` from
`ref` mean that git must be asked: packed objects, objects of an alternate, anything odd or damaged, other ref formats.
"""

from __future__ import annotations

from zlib import decompress, error

from gitcoord.base.names import Oid, RefName, is_oid
from gitcoord.git.files import close, fingerprint, fstat, open_to_read, pread, read, read_up_to
from gitcoord.git.loose_writer import framed, hasher
from gitcoord.git.reader import UNSURE
from gitcoord.git.repo import Repo
from gitcoord.git.store import Object
from gitcoord.startup.annotations import Iterable, Sequence

_LINKS = 5
_LIMIT = 1 << 20
_PART = 1 << 16
_LINES = 1 << 13
_KEPT = 1000


class LooseReader:
    def __init__(self, repo: Repo, oid_length: int) -> None:
        self._repo = repo
        self._hash = hasher(oid_length)
        self._length = oid_length
        self._objects: dict[Oid, Object] = {}
        self._packed: tuple[tuple[int, ...], bytes] = ((), b"")

    def ids(self, names: Sequence[str]) -> list[Oid | None] | None:
        """The ids of all these names, refs in the order asked; None where git must be asked."""
        found: list[Oid | None] = []
        for name in names:
            oid = name if is_oid(name, self._length) else UNSURE if ":" in name else self.ref(name)
            if oid == UNSURE:
                return None
            found.append(oid)
        return found

    def keep(self, objects: Iterable[Object | None]) -> None:
        """Cache objects whose content has the hash of their id. git does not check that, and a repair relies on it."""
        if len(self._objects) >= _KEPT:
            self._objects.clear()
        for found in objects:
            if found is not None and self._hash(framed(found.kind, found.data)).hexdigest() == found.oid:
                self._objects[found.oid] = found

    def forget(self) -> None:
        self._objects.clear()

    def ref(self, name: RefName) -> Oid | None:
        """The target of a ref; None where there is none; UNSURE where only git can tell."""
        for _ in range(_LINKS):
            found = self._text(name)
            if found is None:
                found = self._in_packed(name)
            if found is None or is_oid(found, self._length):
                return found
            if not found.startswith("ref: refs/"):
                break
            name = found.removeprefix("ref: ")
        return UNSURE

    def _text(self, name: RefName) -> str | None:
        """The content of the ref's file; None where there is no such file."""
        place = self._repo.common_dir if name.startswith("refs/") else self._repo.git_dir
        try:
            fd = open_to_read(f"{place}/{name}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError):
            return ""
        try:
            return read(fd, 4096).decode("ascii", "replace").rstrip("\n")
        except IsADirectoryError:
            return None
        except OSError:
            return ""
        finally:
            close(fd)

    def _in_packed(self, name: RefName) -> str | None:
        path = self._repo.common_dir + "/packed-refs"
        now = fingerprint(path)
        if not now:
            return None
        if now != self._packed[0]:
            self._packed = now, _part(path, b"")
        data, word = self._packed[1], name.encode("utf-8", "surrogateescape")
        if len(data) >= _PART:
            data = _part(path, word)
        end = data.find(b" " + word + b"\n")
        return data[end - self._length : end].decode("ascii", "replace") if end >= 0 else None

    def object(self, oid: Oid) -> Object | None:
        """An object that lies loose and is whole."""
        if oid not in self._objects:
            self.keep([self._read(oid)])
        return self._objects.get(oid)

    def _read(self, oid: Oid) -> Object | None:
        try:
            fd = open_to_read(f"{self._repo.objects}/{oid[:2]}/{oid[2:]}")
        except OSError:
            return None
        try:
            packed = read_up_to(fd, _LIMIT)
            raw = decompress(packed) if len(packed) < _LIMIT else b""
        except (OSError, error):
            return None
        finally:
            close(fd)
        head, _, data = raw.partition(b"\0")
        kind = head.partition(b" ")[0].decode("ascii", "replace")
        return Object(oid, kind, data) if framed(kind, data) == raw else None


def _part(path: str, name: bytes) -> bytes:
    """The lines of packed-refs among which this ref must be: all of a small file, few of a large one that is sorted."""
    try:
        fd = open_to_read(path)
    except FileNotFoundError:
        return b""  # `git pack-refs` or a deletion is at work; what was there is loose or gone
    try:
        begin = read(fd, _PART)
        if len(begin) < _PART or not name:
            return begin
        size = fstat(fd).st_size
        low, high = _between(fd, name, size) if b" sorted" in begin.partition(b"\n")[0] else (0, size)
        return pread(fd, high - low, low)
    finally:
        close(fd)


def _between(fd: int, name: bytes, size: int) -> tuple[int, int]:
    """Halve the lines until few are left. `low` and `high` are where lines begin, or the ends of the file."""
    low, high = 0, size
    while high - low > _LINES:
        middle = (low + high) // 2
        data = pread(fd, _LINES, middle)
        start = data.find(b"\n") + 1
        while start and data[start : start + 1] == b"^":  # what the tag before it leads to
            start = data.find(b"\n", start) + 1
        end = data.find(b"\n", start)
        if not start or end < 0 or middle + start >= high:
            break
        if data[start:end].partition(b" ")[2] <= name:
            low = middle + start
        else:
            high = middle + start
    return low, high

"""Packing refs, as the reference-transaction hook sees it: recognised by the locks that git holds meanwhile.

`git pack-refs`, and gc with it, first announces every ref as made (it writes them to packed-refs), then each one as deleted
(it drops the loose file). No value changes. Writers go on meanwhile, so the values alone tell nothing. git's own files do:
they stay as they are until the hook has ended, and only those of another process may come, change and go.

made      A real change holds `<ref>.lock`, which says the new value. Packing holds no lock of the ref, and its
          `packed-refs.new` is whole and has the line.
deleted   A real deletion of a packed ref holds a whole `packed-refs.new` without it. Packing has put the ref into
          packed-refs and holds its lock, so that nobody else takes it out.
"""

from __future__ import annotations

from gitcoord.base.names import Oid, RefName
from gitcoord.git.files import exists, is_link, read_file
from gitcoord.startup.annotations import Callable

_LIMIT = 1 << 28
_LOOKS, _SECONDS = 40, 0.05  # another process may be writing its packed-refs.new


def is_packing(common: str, ref: RefName, old: Oid, new: Oid, pause: Callable[[float], None]) -> bool:
    """Return whether this row of a prepared transaction is only a change of storage. '' stands for no id."""
    if is_link(f"{common}/packed-refs"):
        return False  # git keeps its new file beside the target of the link
    line = f"{old or new} {ref}\n".encode("utf-8", "surrogateescape")
    if new and not old:
        held = read_file(f"{common}/{ref}.lock").decode("ascii", "replace").strip()
        return held != new and line in read_file(f"{common}/packed-refs.new", _LIMIT)
    if new or not old or line not in read_file(f"{common}/packed-refs", _LIMIT):
        return False
    for _ in range(_LOOKS):
        place = f"{common}/packed-refs.new"
        rows = read_file(place, _LIMIT)
        if line in rows or not exists(place):
            return True
        if _is_past(rows, line):
            return False
        pause(_SECONDS)
    return False


def _is_past(rows: bytes, line: bytes) -> bool:
    """Return whether a ref after this one is written already. The file is sorted by name."""
    last = rows.rpartition(b"\n")[0].rpartition(b"\n")[2].partition(b" ")[2]
    return last > line.partition(b" ")[2].rstrip(b"\n")

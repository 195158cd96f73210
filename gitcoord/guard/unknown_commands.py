"""Counts the commands of which the guard could not tell what they write: a line for each in the scratch directory."""

from __future__ import annotations

from gitcoord.base.names import printable
from gitcoord.git.files import append_file, read_file, write_file
from gitcoord.ledger.context import Context

_LARGEST = 1 << 16


def count(ctx: Context, what: str) -> None:
    file = ctx.scratch("guard/unknown")
    known = read_file(file, _LARGEST + 1)
    if len(known) > _LARGEST:
        write_file(file, known[_LARGEST // 2 :].partition(b"\n")[2])
    append_file(file, f"{printable(what)[:100]}\n".encode("utf-8", "surrogateescape"))


def tally(ctx: Context) -> list[tuple[int, str]]:
    """How often each was unknown, the most frequent first. Of a great many only the last are known."""
    rows = read_file(f"{ctx.repo.scratch}/guard/unknown", 2 * _LARGEST).decode("utf-8", "replace").splitlines()
    return sorted(((rows.count(what), what) for what in dict.fromkeys(rows)), key=lambda row: (-row[0], row[1]))

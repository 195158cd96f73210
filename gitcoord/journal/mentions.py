"""An index of the ledger for `why`: which paths each event names. It is a cache; git and the ledger can make it again at any time.

    gitcoord mentions 1 <the ledger commit that it was made for> <checksum of the rest>
    <commit> "<path>" ...        a line for each event, oldest first, in lower case; one that may concern any path ends in 0x01

Nobody locks it: it is replaced at once, and each of two writers at the same time leaves an index that is right for its own commit.
"""

from __future__ import annotations

from zlib import crc32

from gitcoord.base.errors import StoreError
from gitcoord.base.names import Oid
from gitcoord.git.commands.objects import first_parent_messages
from gitcoord.git.files import read_file, write_file
from gitcoord.journal.story import UNNAMED
from gitcoord.ledger.context import Context
from gitcoord.startup.annotations import Sequence

_FILE = "mentions"
_MAGIC = b"gitcoord mentions 1"
ANY = b"\x01"  # never in JSON, which escapes it
_UNNAMED = [kind.encode() for kind in UNNAMED]


def commits_that_mention(ctx: Context, head: Oid, marks: Sequence[str]) -> list[Oid]:
    """The commits of the ledger up to `head` whose events have one of these texts in whatever case, or may concern any path.
    Oldest first."""
    index = _index(ctx, head)
    top = index.find(b"\n")
    found: dict[int, None] = {}  # where lines begin
    for text in (ANY, *(mark.lower().encode() for mark in marks)):
        at = index.find(text, top)
        while at >= 0:
            found[index.rfind(b"\n", 0, at) + 1] = None
            end = index.find(b"\n", at)
            at = index.find(text, end)
    return [index[start : start + len(head)].decode() for start in sorted(found)]


def _index(ctx: Context, head: Oid) -> bytes:
    """The index for this commit: the cached lines, and those of the events since."""
    kept = read_file(f"{ctx.repo.scratch}/{_FILE}", 1 << 62)
    known = _known(kept)
    if known == head:
        return kept
    new = _lines(ctx, head, known) if known else None
    lines = kept[kept.find(b"\n") + 1 :] + new if new is not None else _lines(ctx, head, "") or b""
    index = _top(head.encode(), lines) + lines
    try:
        write_file(ctx.scratch(_FILE), index)
    except (OSError, StoreError):
        pass  # it is made again each time
    return index


def _top(head: bytes, lines: bytes | memoryview) -> bytes:
    return b"%s %s %08x\n" % (_MAGIC, head, crc32(lines))


def _known(kept: bytes) -> Oid:
    """The commit for which the index was made; '' if it is missing or broken."""
    end = kept.find(b"\n") + 1
    head = kept[len(_MAGIC) + 1 : end].partition(b" ")[0]
    return head.decode("ascii", "replace") if kept[:end] == _top(head, memoryview(kept)[end:]) else ""


def _lines(ctx: Context, head: Oid, known: Oid) -> bytes | None:
    """The lines of the events above `known`; None where the ledger does not build on it, since it was rewritten."""
    answer = first_parent_messages(ctx.repo.env, head, known)
    if answer.code and not known and ctx.store.replay_redo_log():
        answer = first_parent_messages(ctx.repo.env, head, known)
    if not known:
        answer.require("git cannot walk the ledger")
    entries = [entry.split(b"\n", 2) for entry in answer.out.split(b"\0\n") if entry]
    if known and (answer.code or not entries or entries[0][1].split(b" ")[0] != known.encode()):
        return None
    return b"".join(b"%s %s\n" % (top[len(b"commit ") :], named(message)) for top, _, message in entries)


def named(message: bytes) -> bytes:
    """The texts in an event that can be a path: values of "path", and texts in lists. One with an escape is kept whole."""
    parts = message.split(b"\n\n")
    if len(parts) != 3:
        return b""  # no event
    kind = parts[2].rpartition(b"Kind: ")[2].strip()
    line = parts[1].replace(b"\n", b" ").lower()
    concerns_any = ANY if kind in _UNNAMED or b"\\u" in line else b""
    if b"\\" not in line:
        words = line.split(b'"')  # outside of texts and inside of them, in turns
        found = {
            words[at]: None
            for at in range(1, len(words) - 1, 2)
            if not words[at + 1].lstrip().startswith(b":")  # a key
            and (words[at - 1].strip() != b":" or words[at - 2] == b"path")
        }
        line = b" ".join(b'"%s"' % name for name in found)
    return line + concerns_any

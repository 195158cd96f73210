"""Counts of an agent's tool calls in a session, for `spiral` and `budget`: small, bounded, and harmless to lose."""

from __future__ import annotations

from zlib import crc32

from gitcoord.base.codec import Malformed, Record, Shape, dumps, record_of, values_of
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.validators.tool_event import ToolEvent

KEPT = 64  # different tool calls that are remembered
_ASKED = 16  # last events that are remembered, to count none twice
_SHAPE: dict[str, Shape] = {
    "session": str, "since": int, "calls": int, "bytes": int, "tokens": int, "edits": [(str, int)],
    "failures": [(str, int)], "asked": [str],
}  # fmt: skip


class Tally(NamedTuple):
    session: str
    since: int  # seconds since 1970
    calls: int = 0
    bytes: int = 0
    tokens: int = 0
    edits: tuple[tuple[str, int], ...] = ()  # the last ones, newest last, with how often each came
    failures: tuple[tuple[str, int], ...] = ()  # commands, by how often each failed with nothing changed in between
    asked: tuple[str, ...] = ()  # the last events that were counted


def fingerprint(event: ToolEvent) -> str:
    """Equal for two tool calls with the same files and arguments, whatever the tool calls the action.

    A command is compared without its files, which are found out only before it runs, not afterwards.
    """
    text = "\0".join([event.command, *(() if event.command else event.writes), argument(event)])
    data = text.encode("utf-8", "surrogatepass")
    return f"{crc32(data):08x}{len(data):x}"


def is_counted(tally: Tally, event: ToolEvent) -> bool:
    """Return whether this event was counted: a tool may run two hooks for one action, a project's and a user's."""
    return bool(event.id) and _word(event) in tally.asked


def _counted(tally: Tally, event: ToolEvent) -> Tally:
    return tally._replace(asked=(*tally.asked, _word(event))[-_ASKED:]) if event.id else tally


def _word(event: ToolEvent) -> str:
    """A hash of id, phase and arguments. The id alone may be no more than a time."""
    text = "\0".join([event.id, event.phase, argument(event)])
    return f"{crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def argument(event: ToolEvent) -> str:
    try:
        return dumps(event.input)
    except (TypeError, Malformed):
        return repr(event.input)  # for example a fraction, which a record cannot contain


def parse(record: object, session: str, now: int) -> Tally:
    """The tally of this session; an empty one where the record is of another session or invalid."""
    try:
        named, since, calls, size, tokens, edits, failures, asked = values_of(record, _SHAPE, "tally")
    except Malformed:
        return Tally(session, now)
    if named != session or min(since, calls, size, tokens) < 0:
        return Tally(session, now)
    rows = [tuple((key, count) for key, count in rows) for rows in (edits, failures)]
    return Tally(session, min(since, now), calls, size, tokens, rows[0], rows[1], tuple(asked))


def to_record(tally: Tally) -> Record:
    return record_of(_SHAPE, tally)


def times(rows: tuple[tuple[str, int], ...], key: str) -> int:
    return dict(rows).get(key, 0)


def _plus(rows: tuple[tuple[str, int], ...], key: str) -> tuple[tuple[str, int], ...]:
    rest = tuple(row for row in rows if row[0] != key)
    return (*rest, (key, times(rows, key) + 1))[-KEPT:]


def began(tally: Tally, event: ToolEvent) -> Tally:
    """Count one more tool call.

    After a change a failed command may succeed, so the failures are forgotten: after an edit that is new, or a command that writes
    and has not failed itself.
    """
    tally = _counted(tally, event)
    tally = tally._replace(calls=tally.calls + 1, bytes=tally.bytes + len(argument(event).encode("utf-8", "replace")))
    if not event.writes:
        return tally
    key = fingerprint(event)
    if event.command:
        return tally if times(tally.failures, key) else tally._replace(failures=())
    fresh = not times(tally.edits, key)
    return tally._replace(edits=_plus(tally.edits, key), failures=() if fresh else tally.failures)


def ended(tally: Tally, event: ToolEvent) -> Tally:
    """Count the tokens and the outcome of a tool call. An unknown outcome changes no failures."""
    if is_counted(tally, event):
        return tally
    tally = _counted(tally, event)
    tally = tally._replace(tokens=tally.tokens + max(0, event.spent))
    if not event.command or event.failed is None:
        return tally
    key = fingerprint(event)
    if event.failed:
        return tally._replace(failures=_plus(tally.failures, key))
    return tally._replace(failures=tuple(row for row in tally.failures if row[0] != key))

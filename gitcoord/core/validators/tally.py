"""What an agent did so far in its session, counted for `spiral` and `budget`: small, bounded, and harmless to lose."""

from zlib import crc32

from gitcoord.core.codec import Malformed, dumps
from gitcoord.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.codec import Record
    from gitcoord.core.toolevents import ToolEvent

KEPT = 64  # different deeds that are remembered
_COUNTS = ("calls", "bytes", "tokens", "since")


class Tally(NamedTuple):
    session: str
    since: int  # seconds since 1970
    calls: int = 0
    bytes: int = 0
    tokens: int = 0
    edits: "tuple[tuple[str, int], ...]" = ()  # the last ones, newest last, with how often each came
    failures: "tuple[tuple[str, int], ...]" = ()  # commands, by how often each failed with nothing changed in between


def fingerprint(event: "ToolEvent") -> str:
    """What makes two deeds the same: the action, its files and all that was said to it."""
    text = "\0".join([event.action, event.command, *event.writes, argument(event)])
    data = text.encode("utf-8", "surrogatepass")
    return f"{crc32(data):08x}{len(data):x}"


def argument(event: "ToolEvent") -> str:
    try:
        return dumps(event.input)
    except (TypeError, Malformed):
        return repr(event.input)  # a fraction, say: not for a record, but to be compared all the same


def parse(record: object, session: str, now: int) -> Tally:
    """What is remembered of this session; what is of another one, or cannot be read, counts for nothing."""
    if not isinstance(record, dict) or record.get("session") != session:
        return Tally(session, now)
    numbers = [record.get(key) for key in _COUNTS]
    if not all(type(number) is int and number >= 0 for number in numbers):
        return Tally(session, now)
    rows = [_rows(record.get(key)) for key in ("edits", "failures")]
    calls, size, tokens, since = (int(str(number)) for number in numbers)
    return Tally(session, min(since, now), calls, size, tokens, rows[0], rows[1])


def _rows(rows: object) -> "tuple[tuple[str, int], ...]":
    if not isinstance(rows, list):
        return ()
    sound = [row for row in rows if isinstance(row, list) and [type(part) for part in row] == [str, int]]
    return tuple((row[0], row[1]) for row in sound[-KEPT:])


def record_of(tally: Tally) -> "Record":
    return {
        **tally._asdict(),
        "edits": [list(row) for row in tally.edits],
        "failures": [list(r) for r in tally.failures],
    }


def times(rows: "tuple[tuple[str, int], ...]", key: str) -> int:
    return dict(rows).get(key, 0)


def _plus(rows: "tuple[tuple[str, int], ...]", key: str) -> "tuple[tuple[str, int], ...]":
    rest = tuple(row for row in rows if row[0] != key)
    return (*rest, (key, times(rows, key) + 1))[-KEPT:]


def began(tally: Tally, event: "ToolEvent") -> Tally:
    """One more deed. An edit that was not made before is a change: what failed before it may work now."""
    tally = tally._replace(calls=tally.calls + 1, bytes=tally.bytes + len(argument(event).encode("utf-8", "replace")))
    if not event.writes or event.command:
        return tally
    key = fingerprint(event)
    fresh = not times(tally.edits, key)
    return tally._replace(edits=_plus(tally.edits, key), failures=() if fresh else tally.failures)


def ended(tally: Tally, event: "ToolEvent") -> Tally:
    """How it came out."""
    tally = tally._replace(tokens=tally.tokens + max(0, event.spent))
    if not event.command:
        return tally
    key = fingerprint(event)
    if event.failed:
        return tally._replace(failures=_plus(tally.failures, key))
    return tally._replace(failures=tuple(row for row in tally.failures if row[0] != key))

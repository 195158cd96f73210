"""The use cases of the journal: write an entry, read entries and events in order."""

from __future__ import annotations

from datetime import UTC

from gitcoord.base.codec import Record
from gitcoord.base.durations import parse_duration
from gitcoord.base.errors import UsageError
from gitcoord.base.names import quote
from gitcoord.ledger.context import Context
from gitcoord.ledger.log import events
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.transaction import transact
from gitcoord.startup.namedtuple import NamedTuple

_SKEW = 86_400  # clocks of different machines may be so far apart; the order is the ledger's
_HINT = ("an event's number (120), a duration (2h) or a date (2030-01-31, 2030-01-31T14:30; UTC)",)


def write(ctx: Context, actor: Actor, text: str, paths: tuple[str, ...] = (), task: str = "") -> Record:
    """One more entry. Not harmless to repeat: each is an entry of its own. Refused where a validator says no to the text."""
    from gitcoord.gates.validation import publish
    from gitcoord.journal.events.journal import Write, decide

    ahead = (("file", "halt"), ("file", f"agents/{actor.agent}"))
    command = Write(actor, text, paths, task)
    return publish(ctx, actor, "journal", {"": text}, lambda: transact(ctx, decide, command, prefetch=ahead))


class Since(NamedTuple):
    """The start: a Seq, or a time; 0: not given."""

    seq: int = 0
    at: int = 0


def parse_since(word: str, now: int) -> Since:
    """A Seq, a duration before now, or a date."""
    if not word:
        return Since()
    if word.isascii() and word.isdecimal() and len(word) < 16:
        return Since(seq=int(word))
    if word[:4].isdecimal() and word[4:5] == "-":
        return Since(at=_date(word))
    try:
        return Since(at=max(1, now - parse_duration(word)))
    except UsageError:
        raise UsageError(f"{quote(word[:40])} is no point in the story", hints=_HINT) from None


def _date(word: str) -> int:
    """Seconds since 1970 of a date with or without hour and minute; UTC, like the dates of the ledger."""
    from datetime import datetime

    for form in ("%Y-%m-%d", "%Y-%m-%dT%H", "%Y-%m-%dT%H:%M") if word.isascii() else ():
        try:
            found = datetime.strptime(word.replace(" ", "T"), form).replace(tzinfo=UTC)
        except ValueError:
            continue
        if found.year >= 1970:
            return int(found.timestamp())
    raise UsageError(f"{quote(word[:40])} is no date", hints=_HINT)


class Filter(NamedTuple):
    """A filter of entries and events. `grep`: plain text, case ignored."""

    agent: str = ""
    path: str = ""
    grep: str = ""
    prose: bool = False
    since: Since = Since()
    limit: int = 50


def story(ctx: Context, wanted: Filter) -> Record:
    """Entries and events, oldest first: of those that fit, the last `limit` (0: all)."""
    rows: list[Record] = []
    kind = "journal" if wanted.prose else ""
    for row in events(ctx, path=wanted.path, agent=wanted.agent, kind=kind, since=wanted.since.seq):
        at = int(str(row["at"]))
        if "error" not in row and at < wanted.since.at - _SKEW:
            break
        if at >= wanted.since.at and _contains(row, wanted.grep):
            rows.append(_row(row))
            if wanted.limit and len(rows) >= wanted.limit:
                break
    return {"entries": rows[::-1]}


def _contains(row: Record, words: str) -> bool:
    if not words:
        return True
    event = row.get("event")
    prose = str(event.get("text", "")) if isinstance(event, dict) else ""
    return words.casefold() in f"{row['subject']}\n{prose}".casefold()


def _row(row: Record) -> Record:
    """One row of the story: prose has its text, an event of the machine its subject."""
    event = row.get("event")
    body = event if isinstance(event, dict) else {}
    prose = row["kind"] == "journal"
    row_of = {key: row[key] for key in ("seq", "kind", "agent", "at", "subject")}
    text = str(body["text"]) if prose else str(row.get("error") or body.get("reason") or "")
    return {
        **row_of, "prose": prose, "text": text,
        "paths": body["paths"] if prose else [], "task": body["task"] if prose else "",
    }  # fmt: skip

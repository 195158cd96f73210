"""The use cases of notes on paths: leave one, show those that an agent has still to see, take one away."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import covers, fold
from gitcoord.journal.model import all_notes, unseen
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.transaction import transact
from gitcoord.startup.annotations import Iterable

_AHEAD = (("file", "halt"), ("names", "notes"))


def leave(ctx: Context, actor: Actor, path: str, text: str, lasts: int) -> Record:
    """One more note. Not harmless to repeat: each is a note of its own. Refused where a validator says no to the text."""
    from gitcoord.gates.validation import publish
    from gitcoord.journal.events.note import DEFAULT_LASTS, LeaveNote, decide

    command = LeaveNote(actor, path, text, lasts or DEFAULT_LASTS)
    return publish(ctx, actor, "journal", {"": text}, lambda: transact(ctx, decide, command, prefetch=_AHEAD))


def end(ctx: Context, actor: Actor, note: int) -> Record:
    """Take a note away. Refused for all but its author and people."""
    from gitcoord.journal.events.seen import End, decide_end

    return transact(ctx, decide_end, End(actor, note), prefetch=_AHEAD)


def record_seen(ctx: Context, actor: Actor, notes: list[Record]) -> None:
    """Put on record that the agent was shown these notes. Where that cannot be recorded they are shown once more, so no error is raised."""
    from gitcoord.journal.events.seen import Seen, decide

    command = Seen(actor, tuple((str(note["path"]), int(note["seq"])) for note in notes))
    try:
        transact(ctx, decide, command, prefetch=_AHEAD)
    except GitcoordError:
        pass


def unseen_below(ctx: Context, agent: str, claims: list[Record]) -> list[Record]:
    """The notes on what these claims cover that the agent has still to see."""
    return unseen_on(ctx, agent, [str(claim["path"]) for claim in claims if claim["kind"] == "path"])


def unseen_on(ctx: Context, agent: str, paths: Iterable[str]) -> list[Record]:
    """The notes on these paths, above and below them, that the agent has still to see."""
    state = (ctx.snapshot or read_snapshot(ctx, prefetch=_AHEAD)).state  # as the command read it
    return [note.to_json() for note in unseen(state, agent, paths, ctx.host.wall())]


def listed(ctx: Context, path: str = "") -> Record:
    """All notes that are shown now, or those on this path, above it and below it."""
    state, now = read_snapshot(ctx).state, ctx.host.wall()
    case = folds_case(state)
    key = fold(path, case=case)
    found = [note for note in all_notes(state) if note.until > now]
    if path:
        found = [n for n in found if covers(key, fold(n.path, case=case)) or covers(fold(n.path, case=case), key)]
    return {"notes": [note.to_json() for note in found]}

"""The ledger's commits in a list, so that any event is found at once: for the timeline and for time travel."""

from __future__ import annotations

from gitcoord.base.codec import Malformed
from gitcoord.base.errors import UsageError
from gitcoord.base.names import LEDGER, Oid
from gitcoord.git.commands.objects import first_parents
from gitcoord.ledger.commit import Commit, read_commits
from gitcoord.ledger.context import Context
from gitcoord.ledger.log import agents_of, event_row, event_words, paths_of, shown_from

Row = dict[str, object]
_LOOKED_AT = 20_000  # events in which those about an agent are searched
_BATCH = 500
_NO_WALK = "git cannot walk the ledger"
_LONGEST = 500  # characters of the words of an event


class History:
    """Kept between requests, and extended by what is new."""

    def __init__(self) -> None:
        self._oids: list[Oid] = []  # oldest first

    def page(self, ctx: Context, before: int, most: int) -> Row:
        """Up to `most` events before this number (0: the last ones), newest first; and whether there are more."""
        if before:
            self._extend(ctx)
            end = self._index(ctx, before)
            oids = self._oids[max(0, end - most - 1) : end][::-1]
        else:  # for these the whole ledger need not be walked
            oids = first_parents(ctx.repo.env, shown_from(ctx), most=most + 1).require(_NO_WALK).lines
        rows = [timeline_row(commit) for commit in read_commits(ctx.store, oids[:most])]
        return {"events": rows, "more": len(oids) > most}

    def about(self, ctx: Context, agent: str, most: int) -> list[Row]:
        """Up to `most` events by or about an agent, newest first, among the last ones: a long ledger is not read whole."""
        self._extend(ctx)
        found: list[Row] = []
        for end in range(len(self._oids), max(0, len(self._oids) - _LOOKED_AT), -_BATCH):
            for commit in [*read_commits(ctx.store, self._oids[max(0, end - _BATCH) : end])][::-1]:
                if _is_about(commit, agent):
                    found.append(timeline_row(commit))
            if len(found) >= most:
                break
        return found[:most]

    def commit_at(self, ctx: Context, seq: int) -> Oid:
        """The ledger's commit after the event of this number, or the last one before it."""
        self._extend(ctx)
        at = self._index(ctx, seq + 1)
        if at == 0:
            raise UsageError(f"there is no event {seq}")
        return self._oids[at - 1]

    def _extend(self, ctx: Context) -> None:
        head = ctx.store.resolve([shown_from(ctx)])[0] or LEDGER
        if self._oids and self._oids[-1] == head:
            return
        last = self._oids[-1] if self._oids else ""
        new = first_parents(ctx.repo.env, head, until=last, oldest_first=True)
        if last and (new.code or not new.lines or _parent(ctx, new.lines[0]) != last):
            self._oids = []  # rewound, or replaced
            new = first_parents(ctx.repo.env, head, oldest_first=True)
        self._oids += new.require(_NO_WALK).lines

    def _index(self, ctx: Context, seq: int) -> int:
        """The number of events before this one. Numbers grow by one, but for gaps that an epoch may leave."""
        low, high = 0, len(self._oids)
        guess = seq - self._seq(ctx, 0) if self._oids else 0
        if 0 <= guess < high and self._seq(ctx, guess) == seq:
            return guess
        while low < high:
            middle = (low + high) // 2
            if self._seq(ctx, middle) < seq:
                low = middle + 1
            else:
                high = middle
        return low

    def _seq(self, ctx: Context, at: int) -> int:
        oid = self._oids[at]
        return Commit(ctx.store.read([oid])[0], oid).event.seq


def _is_about(commit: Commit, agent: str) -> bool:
    try:
        return agent in agents_of(commit.event)
    except Malformed:
        return False


def _parent(ctx: Context, oid: Oid) -> Oid:
    return next(iter(Commit(ctx.store.read([oid])[0], oid).parents), "")


def timeline_row(commit: Commit) -> Row:
    """An event as the timeline shows it."""
    try:
        event = commit.event
    except Malformed as error:
        return {"seq": 0, "at": 0, "agent": "", "kind": "?", "words": error.message, "paths": []}
    words = event_words(event_row(commit, event))
    return {
        "seq": event.seq, "at": event.at, "agent": event.agent, "kind": event.kind, "words": words[:_LONGEST],
        "paths": list(dict.fromkeys(paths_of(event)))[:5],
    }  # fmt: skip

"""Following the ledger: each event once and in order, from any event on, and from where a named follower stopped."""

from __future__ import annotations

from gitcoord.base.codec import Malformed
from gitcoord.base.errors import CouldNotJudge, UsageError
from gitcoord.base.names import LEDGER, Oid, is_oid
from gitcoord.git.commands.objects import first_parents
from gitcoord.git.files import list_files, read_file, write_file
from gitcoord.ledger.commit import REPAIR, Commit, read_commits, refuse_newer
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Event
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.startup.annotations import Iterator
from gitcoord.startup.namedtuple import NamedTuple


class Place(NamedTuple):
    """A follower's place in the ledger: the last commit that it saw, and its Seq. ('', 0): nothing yet."""

    oid: Oid
    seq: int


class Follower:
    """Gives the events after its place. A ledger that was rewound or replaced is an error."""

    def __init__(self, ctx: Context, place: Place) -> None:
        self._ctx = ctx
        self.place = place

    def new(self) -> Iterator[tuple[Commit, Event]]:
        """The events after `place`, oldest first; `place` moves with each. CouldNotJudge where the ledger was rewound."""
        head = self._ctx.store.resolve([LEDGER])[0]
        if head is None:
            raise CouldNotJudge(f"the ledger ({LEDGER}) is missing", hints=REPAIR)
        if head == self.place.oid:
            return
        for commit in read_commits(self._ctx.store, self._between(head)):
            yield self._step(commit)

    def _between(self, head: Oid) -> list[Oid]:
        if self.place.oid:
            if Commit(self._ctx.store.read([head])[0], LEDGER).parents == [self.place.oid]:
                return [head]  # the usual case, without another process
        answer = first_parents(self._ctx.repo.env, head, until=self.place.oid, oldest_first=True)
        gone = (
            self.place.oid and self._ctx.store.read([self.place.oid])[0] is None
        )  # the ledger was rewound, and git has pruned it
        if not gone:
            answer.require("git cannot walk the ledger", hints=REPAIR)
        if not answer.lines:
            raise rewound(self.place)
        return answer.lines

    def _step(self, commit: Commit) -> tuple[Commit, Event]:
        """Move to this commit. CouldNotJudge unless its parent is the last place."""
        if commit.parents != ([self.place.oid] if self.place.oid else []):
            raise rewound(self.place)
        try:
            event = commit.event
        except Malformed as error:
            refuse_newer(self._ctx.store, commit.oid)
            raise CouldNotJudge(
                f"commit {commit.oid[:12]} of the ledger is no event: {error.message}", hints=error.hints + REPAIR
            ) from None
        self.place = Place(commit.oid, event.seq)
        return commit, event


def rewound(place: Place) -> CouldNotJudge:
    return CouldNotJudge(
        f"the ledger was rewound or replaced: event {place.seq} ({place.oid[:12]}), which was seen, is not in it",
        hints=REPAIR,
    )


def place_now(ctx: Context) -> Place:
    """After the last event. NotInitialised, or CouldNotJudge, where the ledger cannot be followed."""
    snapshot = read_snapshot(ctx)
    return Place(snapshot.head, snapshot.event.seq)


def place_before(ctx: Context, seq: int) -> Place:
    """Before the first event of this number or a higher one."""
    now = place_now(ctx)
    if seq > now.seq + 1:
        raise UsageError(f"there is no event {seq} yet: the last one is {now.seq}")
    answer = first_parents(ctx.repo.env, now.oid, oldest_first=True).require("git cannot walk the ledger", hints=REPAIR)
    oids = answer.lines
    low, high = 0, len(oids)  # an epoch may leave gaps in the numbers, but they only grow
    while low < high:
        middle = (low + high) // 2
        if _seq(ctx, oids[middle]) < seq:
            low = middle + 1
        else:
            high = middle
    return Place(oids[low - 1], _seq(ctx, oids[low - 1])) if low else Place("", 0)


def _seq(ctx: Context, oid: Oid) -> int:
    return Commit(ctx.store.read([oid])[0], oid).event.seq


# --- the cursor of a named follower -------------------------------------------------------------------------------


def load_cursor(ctx: Context, name: str) -> Place | None:
    words = read_file(f"{ctx.repo.scratch}/watch/{name}").decode("ascii", "replace").split()
    if not words:
        return None
    if (
        len(words) != 2
        or not words[1].isdecimal()
        or len(words[1]) > 15
        or not (is_oid(words[0]) or words == ["-", "0"])
    ):
        raise CouldNotJudge(
            f"where '{name}' has come to cannot be read",
            hints=(f"begin anew: remove {ctx.repo.scratch}/watch/{name}, and say --since",),
        )
    return Place("" if words[0] == "-" else words[0], int(words[1]))


def cursors(ctx: Context) -> dict[str, Place]:
    """The place of every named follower in this clone."""
    names = [name for name in list_files(f"{ctx.repo.scratch}/watch") if not name.endswith(".lock")]
    return {name: place for name in names if (place := load_cursor(ctx, name)) is not None}


def save_cursor(ctx: Context, name: str, place: Place) -> None:
    write_file(ctx.scratch(f"watch/{name}"), f"{place.oid or '-'} {place.seq}\n".encode())

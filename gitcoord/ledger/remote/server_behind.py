"""A server that lacks events this clone has seen: it was restored from a backup, rewound, or its ledger was deleted.

`refs/gitcoord/tip` is the newest event that this clone has seen. It only goes forward, except by `fsck --repair`. The mirror of
the ledger shows the server as it is; while the tip is not in it, nobody here writes, and looking shows the tip.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, ServerBehind
from gitcoord.base.names import LEDGER, TIP, printable
from gitcoord.git.commands.objects import first_parents, is_ancestor, merge_base
from gitcoord.git.store import Delete, SwapFailed, Update, Verify
from gitcoord.ledger.snapshot import Commit, Snapshot
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.names import Oid
    from gitcoord.git.store import Object, Reader
    from gitcoord.ledger.context import Context

WORDS = ServerBehind.words
HINTS = (
    "see what is missing there: git coord fsck",
    "bring it back, first in the clone that has seen the most: git coord fsck --repair",
)
_BATCH = 500
_SHOWN = 20


class Comparison(NamedTuple):
    """The events that this clone has seen, compared with the server's ledger. Events are oldest first."""

    seen: Commit
    there: Commit | None  # None: no ledger there
    related: bool  # both begin with the same event
    lacking: list[Commit]  # seen here, and not there
    added: list[Commit]  # there, and never seen here
    rewritten: bool = False  # the same events in other commits

    @property
    def follows(self) -> bool:
        """Nothing is lacking; or only epochs, which grant nobody anything, and numbers go on above them."""
        there = self.there
        if there is None or not self.related:
            return False
        return not self.lacking or (_only_epochs(self.lacking) and there.event.seq > self.seen.event.seq)

    @property
    def replaceable(self) -> bool:
        """Nobody has written there since but epochs: what is lacking can be brought back, and nothing is lost by that."""
        return self.related and _only_epochs(self.added)

    @property
    def leapt(self) -> bool:
        """The server has begun an epoch above all that was seen here."""
        return any(commit.event.kind == "epoch" and commit.event.seq > self.seen.event.seq for commit in self.added)


def _only_epochs(commits: list[Commit]) -> bool:
    return all(commit.event.kind == "epoch" for commit in commits)


def compare(ctx: Context, seen: Oid, there: Oid | None) -> Comparison:
    reader = ctx.local
    if there is None:
        return Comparison(_commit(reader, seen), None, True, _above(ctx, seen, None), [])
    if merge_base(ctx.repo.env, seen, there).code:
        return _compare_events(ctx, seen, there)
    return Comparison(
        _commit(reader, seen), _commit(reader, there), True, _above(ctx, seen, there), _above(ctx, there, seen)
    )


def _compare_events(ctx: Context, seen: Oid, there: Oid) -> Comparison:
    """Nothing in common but, perhaps, the events: a tool may have rewritten the commits."""
    mine, theirs = _above(ctx, seen, None), _above(ctx, there, None)
    pairs = zip(mine, theirs)
    same = next((index for index, (a, b) in enumerate(pairs) if a.event != b.event), min(len(mine), len(theirs)))
    here, other = _commit(ctx.local, seen), _commit(ctx.local, there)
    return Comparison(here, other, same > 0, mine[same:], theirs[same:], rewritten=True)


def _commit(reader: Reader, oid: Oid) -> Commit:
    return Commit(reader.read([oid])[0], "the ledger's history")


def _above(ctx: Context, head: Oid, other: Oid | None) -> list[Commit]:
    """The commits below `head` that `other` does not have. What is no event is left out."""
    answer = first_parents(ctx.repo.env, head, until=other or "", oldest_first=True)
    oids = answer.require("git cannot walk the ledger").lines
    found = []
    for start in range(0, len(oids), _BATCH):
        for row in ctx.local.read(oids[start : start + _BATCH]):
            commit = Commit(row, "the ledger's history")
            try:
                _ = commit.event
            except CouldNotJudge:
                continue
            found.append(commit)
    return found


# --- looking ------------------------------------------------------------------------------------------------------


def check_behind(ctx: Context) -> None:
    """The mirror was fetched, and lacks the tip. ServerBehind, unless nothing but an epoch is missing."""
    tip, ledger = ctx.local.resolve([TIP, LEDGER])
    if tip is None or ledger is None:
        return
    comparison = compare(ctx, tip, ledger)
    if comparison.rewritten or not comparison.follows:
        raise behind_error(ctx, comparison)
    try:
        ctx.local.swap([Verify(LEDGER, ledger), Update(TIP, tip, ledger)])
    except SwapFailed:
        pass  # another look was quicker


def check_gone(ctx: Context) -> None:
    """The server has no ledger. ServerBehind where one was seen here; then the mirror shows none either, so that no gate
    goes on with it, and the tip keeps what was seen."""
    tip, ledger = ctx.local.resolve([TIP, LEDGER])
    if tip is None and ledger is None:
        return
    if tip is not None and ledger == tip:
        try:
            ctx.local.swap([Delete(LEDGER, tip)])
        except SwapFailed:
            pass  # somebody here writes or looks at this moment
    seen = tip or ledger
    assert seen is not None
    raise behind_error(ctx, Comparison(_commit(ctx.local, seen), None, True, [], []))


def behind_error(ctx: Context, comparison: Comparison) -> CouldNotJudge:
    name, seen, there = printable(ctx.remote), comparison.seen.event.seq, comparison.there
    if there is None:
        return ServerBehind(f"{WORDS}: the ledger is gone from '{name}'", hints=HINTS)
    if not comparison.related:
        return foreign_error(ctx)
    if comparison.rewritten and not comparison.lacking:
        return ServerBehind(f"the ledger was rewritten, here or at '{name}': its commits are others", hints=HINTS)
    if not comparison.added:
        return ServerBehind(
            f"{WORDS}: '{name}' ends at event {there.event.seq}, and event {seen} was seen here", hints=HINTS
        )
    first = comparison.lacking[0].event.seq if comparison.lacking else seen
    here, other = len(comparison.lacking), len(comparison.added)
    return ServerBehind(
        f"{ServerBehind.differs}: the two histories differ from event {first} on; "
        f"this clone has {here} event(s) that '{name}' lacks, and '{name}' has {other} that this clone lacks",
        hints=HINTS,
    )


def foreign_error(ctx: Context) -> CouldNotJudge:
    name = printable(ctx.remote)
    return ServerBehind(
        f"{WORDS}: '{name}' has another ledger now, which has nothing in common with it",
        hints=(
            f"to use the one that is there: git coord teardown, then git coord init --remote {name}",
            "to bring the one that was seen here back, take the branch 'gitcoord' away at the server first",
        ),
    )


def differences(ctx: Context) -> list[str]:
    """For `fsck`: the events that were seen here and are not at the server, by the last look."""
    tip, ledger = ctx.local.resolve([TIP, LEDGER])
    if tip is None or (ledger is not None and is_ancestor(ctx.repo.env, tip, ledger) is not False):
        return []
    comparison = compare(ctx, tip, ledger)
    return [behind_error(ctx, comparison).message, *event_lines("not there", comparison.lacking)]


def event_lines(what: str, commits: list[Commit]) -> list[str]:
    """Events in words, a line each."""
    found = [f"{what}: event {commit.event.seq}: {subject(commit)}" for commit in commits[-_SHOWN:]]
    if len(commits) > _SHOWN:
        found.insert(0, f"{what}: {len(commits) - _SHOWN} earlier event(s), from event {commits[0].event.seq} on")
    return found


def subject(commit: Commit) -> str:
    return printable(commit.message.split(b"\n", 1)[0].decode("utf-8", "replace"))


# --- what is shown ------------------------------------------------------------------------------------------------


def lacks(reader: Reader, ledger: Object, tip: Object) -> bool:
    """Is the tip missing from this ledger? Numbers only grow, so nobody has to look below the tip's own."""
    try:
        commit, floor = Commit(ledger, LEDGER), Commit(tip, TIP).event.seq
        while commit.oid != tip.oid:
            if len(commit.parents) != 1 or commit.event.seq <= floor:
                return True
            commit = Commit(reader.read(commit.parents)[0], "the ledger's history")
    except CouldNotJudge:
        return False  # something else is wrong with it, and is said elsewhere
    return False


def server_snapshot(ctx: Context, shown: Snapshot) -> Snapshot | None:
    """The server's own ledger, where it has events that the shown one lacks."""
    assert shown.server is not None
    if is_ancestor(ctx.repo.env, shown.server.oid, shown.head):
        return None
    return Snapshot(ctx.store, shown.tip, Commit(shown.server, LEDGER))


def newest_seen(ctx: Context) -> str:
    """From where the history is shown: the ledger, or the tip where the server's lacks it."""
    tip, ledger = ctx.local.read([TIP, LEDGER])
    if (
        not ctx.remote
        or tip is None
        or (ledger is not None and (ledger.oid == tip.oid or not lacks(ctx.local, ledger, tip)))
    ):
        return LEDGER
    return TIP

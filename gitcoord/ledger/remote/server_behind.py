"""A server that lacks events which this clone has seen: restored from a backup, rewound, or its ledger was deleted.

`refs/gitcoord/tip` is the newest event that this clone has seen. Only `fsck --repair` moves it back. The mirror of the ledger is
the server's ledger as it is. While it lacks the tip, this clone writes nothing, and commands that read show the tip.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, ServerBehind
from gitcoord.base.names import LEDGER, TIP, Oid, printable
from gitcoord.git.commands.objects import first_parents, is_ancestor, merge_base
from gitcoord.git.store import Delete, Object, Reader, SwapFailed, Update, Verify
from gitcoord.ledger.commit import Commit, read_commits
from gitcoord.ledger.context import Context
from gitcoord.startup.namedtuple import NamedTuple

WORDS = ServerBehind.words
HINTS = (
    "see what is missing there: git coord fsck",
    "bring it back, first in the clone that has seen the most: git coord fsck --repair",
)
_SHOWN = 20


class Comparison(NamedTuple):
    """The history that this clone has seen, compared with the server's ledger. Events are oldest first."""

    seen: Commit
    there: Commit | None  # None: no ledger there
    related: bool  # both histories begin with the same event
    lacking: list[Commit]  # seen here, not on the server
    added: list[Commit]  # on the server, never seen here
    rewritten: bool = False  # the same events in other commits

    @property
    def follows(self) -> bool:
        """The server lacks nothing, or only epochs (which grant nothing) while its numbers go on above them."""
        there = self.there
        if there is None or not self.related:
            return False
        return not self.lacking or (_only_epochs(self.lacking) and there.event.seq > self.seen.event.seq)

    @property
    def replaceable(self) -> bool:
        """Return whether the server only added epochs: then the missing events can be pushed again."""
        return self.related and _only_epochs(self.added)

    @property
    def leapt(self) -> bool:
        """The server has begun an epoch above every number that was seen here."""
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
    """Compare event by event: the histories share no commit, but a tool may have rewritten the commits."""
    mine, theirs = _above(ctx, seen, None), _above(ctx, there, None)
    pairs = zip(mine, theirs)
    same = next((index for index, (a, b) in enumerate(pairs) if a.event != b.event), min(len(mine), len(theirs)))
    here, other = _commit(ctx.local, seen), _commit(ctx.local, there)
    return Comparison(here, other, same > 0, mine[same:], theirs[same:], rewritten=True)


def _commit(reader: Reader, oid: Oid) -> Commit:
    return Commit(reader.read([oid])[0], "the ledger's history")


def _above(ctx: Context, head: Oid, other: Oid | None) -> list[Commit]:
    """The events below `head` that `other` does not contain. Commits that are no events are left out."""
    answer = first_parents(ctx.repo.env, head, until=other or "", oldest_first=True)
    oids = answer.require("git cannot walk the ledger").lines
    return [commit for commit in read_commits(ctx.local, oids) if commit.is_event]


# --- checks after a fetch ------------------------------------------------------------------------------------------


def check_behind(ctx: Context) -> None:
    """Raise ServerBehind for a mirror that lacks the tip, unless it lacks only epochs; then the tip moves to it."""
    tip, ledger = ctx.local.resolve([TIP, LEDGER])
    if tip is None or ledger is None:
        return
    comparison = compare(ctx, tip, ledger)
    if comparison.rewritten or not comparison.follows:
        raise behind_error(ctx, comparison)
    try:
        ctx.local.swap([Verify(LEDGER, ledger), Update(TIP, tip, ledger)])
    except SwapFailed:
        pass  # another fetch was quicker


def check_gone(ctx: Context) -> None:
    """Raise ServerBehind for a server without a ledger, if one was seen here.

    The mirror's ledger is deleted too, so that no gate relies on it; the tip keeps what was seen.
    """
    tip, ledger = ctx.local.resolve([TIP, LEDGER])
    if tip is None and ledger is None:
        return
    if tip is not None and ledger == tip:
        try:
            ctx.local.swap([Delete(LEDGER, tip)])
        except SwapFailed:
            pass  # another process of this clone writes or fetches at this moment
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
    """For `fsck`: the events that were seen here and that the server lacked at the last fetch."""
    tip, ledger = ctx.local.resolve([TIP, LEDGER])
    if tip is None or (ledger is not None and is_ancestor(ctx.repo.env, tip, ledger) is not False):
        return []
    comparison = compare(ctx, tip, ledger)
    return [behind_error(ctx, comparison).message, *event_lines("not there", comparison.lacking)]


def event_lines(what: str, commits: list[Commit]) -> list[str]:
    """A line for each of the last events."""
    found = [f"{what}: event {commit.event.seq}: {subject(commit)}" for commit in commits[-_SHOWN:]]
    if len(commits) > _SHOWN:
        found.insert(0, f"{what}: {len(commits) - _SHOWN} earlier event(s), from event {commits[0].event.seq} on")
    return found


def subject(commit: Commit) -> str:
    return printable(commit.message.split(b"\n", 1)[0].decode("utf-8", "replace"))


# --- the history that is shown -------------------------------------------------------------------------------------


def lacks(reader: Reader, ledger: Object, tip: Object) -> bool:
    """Return whether the tip is missing from this ledger. Numbers only grow, so the search ends at the tip's own."""
    try:
        commit, floor = Commit(ledger, LEDGER), Commit(tip, TIP).event.seq
        while commit.oid != tip.oid:
            if len(commit.parents) != 1 or commit.event.seq <= floor:
                return True
            commit = Commit(reader.read(commit.parents)[0], "the ledger's history")
    except CouldNotJudge:
        return False  # a damaged ledger is reported elsewhere
    return False


def newest_seen(ctx: Context) -> str:
    """The ref whose history is shown: the ledger, or the tip if the server's ledger lacks it."""
    tip, ledger = ctx.local.read([TIP, LEDGER])
    if tip is None or (ledger is not None and (ledger.oid == tip.oid or not lacks(ctx.local, ledger, tip))):
        return LEDGER
    return TIP

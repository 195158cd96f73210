"""A push that brings lost events back: the missing events, and an epoch on top by a person who vouches for them.

The events were accepted once, and cannot be judged again as new ones are: the heartbeats, the commits and the clock that they were
judged by are gone. So they are judged as a history: each legal after the one before, written and with the tree that gitcoord makes.
That everybody may be named in it is why it takes a person's account; where signatures are required, each event needs its own.
"""

from __future__ import annotations

from gitcoord.base.codec import UPGRADE_SERVER
from gitcoord.base.errors import CouldNotJudge, refused
from gitcoord.base.names import Oid
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import FORMAT_MINOR, format_record
from gitcoord.ledger.fsck import Replay
from gitcoord.ledger.log import commits
from gitcoord.ledger.state import Changes
from gitcoord.server.signatures import require_signature, signing_on
from gitcoord.startup.annotations import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.server.accounts import Pusher
    from gitcoord.server.receive_ledger import Pushed

    RequireTree = Callable[["Oid | None", Pushed, Changes], Oid]


def floors(ctx: Context, head: Oid) -> list[Oid]:
    """The commits on which a push may build: the ledger's last event, and those below it while they are epochs."""
    found = [head]
    while True:
        commit = Commit(ctx.store.read([found[-1]])[0], "the ledger's history")
        try:
            if commit.event.kind != "epoch" or len(commit.parents) != 1:
                return found
        except CouldNotJudge:
            return found
        found.append(commit.parents[0])


def require_person(pusher: Pusher, agent: str) -> None:
    if not pusher.actor(agent).person:
        raise refused(
            "person",
            "only a person's account may bring events back that the server has lost",
            "a person runs it, in this clone: git coord fsck --repair",
        )


def require_above(ctx: Context, old: Oid, last: Pushed) -> None:
    """Raise Refused unless the last pushed number is above that of the ledger's head, an epoch or not."""
    seq = Commit(ctx.store.read([old])[0], "the ledger's history").event.seq
    if last.event.seq <= seq:
        raise refused("ledger", f"event {last.event.seq} does not leap above event {seq}, which is here")


def replay_below(ctx: Context, base: Oid) -> Replay:
    outcome = Replay()
    for commit in commits(ctx, ctx.store, oldest_first=True, start=base):
        outcome.take(commit)
    newer = outcome.newer is not None
    if newer or (outcome.last is not None and format_record(outcome.state).minor > FORMAT_MINOR):
        raise CouldNotJudge("this ledger has a newer format", hints=(UPGRADE_SERVER,))
    return outcome


def judge_history(outcome: Replay, tree: Oid | None, rows: list[Pushed], check: RequireTree) -> None:
    """Raise Refused unless these events are a legal history on top of the replayed ones, whose tree is `tree`."""
    for pushed in rows:
        changes = outcome.take(pushed.commit)
        if changes is None:
            raise refused("ledger", f"event {pushed.event.seq} is not legal: {outcome.differences[-1]}")
        if pushed.event.kind == "repair":  # it makes the whole tree again
            tree, changes = None, {key: record for key, record in outcome.state.files.items() if record is not None}
        tree = check(tree, pushed, changes)
    if outcome.differences:
        raise refused("ledger", outcome.differences[0])


def require_signatures(ctx: Context, rows: list[Pushed]) -> None:
    if signing_on(ctx):
        for pushed in rows:
            require_signature(ctx, pushed.payload, pushed.signature, pushed.event.agent, pushed.event.seq)

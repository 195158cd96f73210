"""Effects outside that happen at most once: beginning one, recording how it ended, forgetting it."""

from __future__ import annotations

from gitcoord.base.errors import NotInitialised, OutcomeUnknown, Refused, TimedOut
from gitcoord.effects.once import UNDER_WAY, UNKNOWN, all_effects, check_key, once_record, runs
from gitcoord.git.files import remove_file
from gitcoord.git.locks import flock
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.transaction import transact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.effects.once import Effect
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.sessions import Actor
    from gitcoord.ledger.state import State
    from gitcoord.ledger.world import World


class Runner:
    """One process that may run an effect. It is known by its nonce, and holds a file of that name while it lives."""

    def __init__(self, ctx: Context, actor: Actor, key: str) -> None:
        self._ctx = ctx
        self._actor = actor
        self._key = check_key(key)
        self._nonce = ctx.host.random()
        self._held = -1
        self._open = False  # our beginning is on record without an end, or may be
        self.token = 0

    def begin(self) -> dict[str, object]:
        """Held before it is on record: whoever finds the record finds the runner alive, or dead.

        TimedOut where another runs it (as if the time to wait were over), OutcomeUnknown where its runner died.
        """
        from gitcoord.effects.events.once import Once, decide

        if self._held < 0:
            self._held = flock.acquire(self._ctx.scratch(f"once/{self._nonce}"))
        self._open = True
        try:
            result = transact(self._ctx, decide, Once(self._actor, self._key, self._nonce))
        except Refused as refused:
            self._open = False
            if refused.code == UNDER_WAY:
                raise TimedOut(refused.message, hints=refused.hints) from None
            if refused.code == UNKNOWN:
                raise OutcomeUnknown(refused.message, hints=refused.hints) from None
            raise
        self._open = bool(result["begun"])
        self.token = int(str(result["token"])) if self._open else 0
        return result

    def end(self, code: int) -> dict[str, object]:
        from gitcoord.effects.events.done import Done, decide

        result = transact(self._ctx, decide, Done(self._actor, self._key, self.token, code))
        self._open = False
        return result

    def let_go(self) -> None:
        """The file stays where no end is on record: found and held by nobody, it says that the runner is gone."""
        if self._held >= 0:
            flock.release(self._held, "" if self._open else self._ctx.scratch(f"once/{self._nonce}"))
            self._held = -1


def runner_of(ctx: Context, nonce: str) -> str:
    """What this machine knows of a runner: 'alive', 'gone' or '' for nothing."""
    held = flock.is_locked(f"{ctx.repo.scratch}/once/{nonce}")
    return "" if held is None else "alive" if held else "gone"


def forget(ctx: Context, actor: Actor, key: str, reason: str) -> dict[str, object]:
    from gitcoord.effects.events.forget import Forget, decide

    record = once_record(read_snapshot(ctx).state, check_key(key))
    result = transact(ctx, decide, Forget(actor, key, reason))
    if record is not None and record.token == result["token"]:
        remove_file(f"{ctx.repo.scratch}/once/{record.nonce}")
    return result


def listing(ctx: Context) -> dict[str, object]:
    """Every effect on record, oldest first, and whether the outcome of one that has no end can still come."""
    try:
        snapshot = read_snapshot(ctx, trusting=True)
    except NotInitialised:
        return {"initialised": False, "effects": []}
    state, world = snapshot.state, ctx.world(snapshot)
    found = sorted(all_effects(state), key=lambda record: record.token)
    return {"initialised": True, "effects": [_shown(state, world, record) for record in found]}


def _shown(state: State, world: World, record: Effect) -> dict[str, object]:
    row = record.to_json()
    if record.state == "running" and not runs(state, world, record):
        row["state"] = "unknown"
    return row

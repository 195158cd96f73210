"""The use cases of effects that happen at most once, and of numbers that are reserved."""

from __future__ import annotations

from gitcoord.base.errors import OutcomeUnknown, Refused, TimedOut, refused
from gitcoord.claims.facts import project_settings
from gitcoord.claims.work_facts import usual_remote
from gitcoord.effects.events.number import LAST, check_sequence, exhausted, next_number
from gitcoord.effects.once import UNDER_WAY, UNKNOWN, Effect, all_effects, check_key, once_record, runs
from gitcoord.effects.sequences import Sequence, number_in, sequences
from gitcoord.git.commands.objects import diff_names, empty_tree
from gitcoord.git.commands.worktrees import ls_files
from gitcoord.git.files import remove_file
from gitcoord.git.locks import flock
from gitcoord.git.process import Answer
from gitcoord.landing.model import rules_of
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import transact
from gitcoord.ledger.world import World
from gitcoord.startup.namedtuple import NamedTuple

# --- effects ---------------------------------------------------------------------------------------------------------


class Runner:
    """A process that may run an effect. Its nonce identifies it; it locks a file of that name while it lives."""

    def __init__(self, ctx: Context, actor: Actor, key: str) -> None:
        self._ctx = ctx
        self._actor = actor
        self._key = check_key(key)
        self._nonce = ctx.host.random()
        self._lock = -1
        self._open = False  # an event without an end may be in the ledger
        self.token = 0

    def begin(self) -> dict[str, object]:
        """Record the beginning, or give the known outcome.

        The file is locked before the record is written, so the state of the lock always tells whether the runner lives.
        TimedOut if another process runs it, OutcomeUnknown if its runner died.
        """
        from gitcoord.effects.events.once import Once, decide

        if self._lock < 0:
            self._lock = flock.acquire(self._ctx.scratch(f"once/{self._nonce}"))
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

    def unlock(self) -> None:
        """Unlock the file. It stays if no end was recorded: an unlocked file shows that the runner is gone."""
        if self._lock >= 0:
            flock.release(self._lock, "" if self._open else self._ctx.scratch(f"once/{self._nonce}"))
            self._lock = -1


def runner_of(ctx: Context, nonce: str) -> str:
    """'alive' or 'gone' for a runner of this machine, '' for one that is not known here."""
    locked = flock.is_locked(f"{ctx.repo.scratch}/once/{nonce}")
    return "" if locked is None else "alive" if locked else "gone"


def forget(ctx: Context, actor: Actor, key: str, reason: str) -> dict[str, object]:
    from gitcoord.effects.events.forget import Forget, decide

    record = once_record(read_snapshot(ctx).state, check_key(key))
    result = transact(ctx, decide, Forget(actor, key, reason))
    if record is not None and record.token == result["token"]:
        remove_file(f"{ctx.repo.scratch}/once/{record.nonce}")
    return result


def listing(ctx: Context) -> dict[str, object]:
    """All recorded effects, oldest first; `unknown` is the state of one whose runner is gone."""
    snapshot = read_snapshot(ctx, trusting=True)
    state, world = snapshot.state, ctx.world(snapshot)
    found = sorted(all_effects(state), key=lambda record: record.token)
    return {"effects": [_effect_row(state, world, record) for record in found]}


def _effect_row(state: State, world: World, record: Effect) -> dict[str, object]:
    row = record.to_json()
    if record.state == "running" and not runs(state, world, record):
        row["state"] = "unknown"
    return row


# --- numbers ---------------------------------------------------------------------------------------------------------


class Floor(NamedTuple):
    """The highest number in use outside the ledger, and the file that has it."""

    number: int
    file: str = ""


def reserve(ctx: Context, actor: Actor, name: str, count: int, file: str = "") -> dict[str, object]:
    """Reserve the next numbers for this agent. `file`: a path to claim in the same step, '{n}' in it stands for the number."""
    from gitcoord.effects.events.number import Number, decide

    sequence, floor = _find(ctx, read_snapshot(ctx), name)
    try:
        order = Number(actor, sequence.name, count, floor.number, file=file, width=sequence.width)
        if file:
            order = order._replace(base=ctx.store.target("HEAD") or "")
        result = transact(ctx, decide, order)
    except Refused as refused:
        raise _with_file(refused, floor) from None
    return {**result, **_number_row(sequence, floor, int(str(result["first"])), count)}


def peek(ctx: Context, name: str) -> dict[str, object]:
    """The next number, without reserving it."""
    snapshot = read_snapshot(ctx)
    sequence, floor = _find(ctx, snapshot, name)
    first = next_number(snapshot.state, sequence.name, floor.number)
    if first > LAST:
        raise _with_file(Refused(exhausted(sequence.name, first - 1)), floor)
    return {"sequence": sequence.name, "first": first, "count": 1, **_number_row(sequence, floor, first, 1)}


def _with_file(refused: Refused, floor: Floor) -> Refused:
    if refused.code == "exhausted" and floor.file:
        refused.hints = (f"the highest number is in the name of {floor.file}: is that meant so?",)
    return refused


def _number_row(sequence: Sequence, floor: Floor, first: int, count: int) -> dict[str, object]:
    numbers = [sequence.written(number) for number in range(first, first + count)]
    return {"numbers": numbers, "declared": sequence.declared, "floor": floor.number, "floor_file": floor.file}


def _find(ctx: Context, snapshot: Snapshot, name: str) -> tuple[Sequence, Floor]:
    check_sequence(name)
    pairs = project_settings(ctx, snapshot)
    if name in rules_of(pairs).renumber:
        raise refused(
            "renumber",
            f"files of '{name}' get their numbers when they land ([land] renumber)",
            "take any number that is free here, commit, and: git coord land",
        )
    sequence = sequences(pairs).get(name, Sequence(name))
    return sequence, floor_of(ctx, snapshot, sequence)


def floor_of(ctx: Context, snapshot: Snapshot, sequence: Sequence) -> Floor:
    """The highest number in the work tree (tracked or not), in HEAD and on the trunk, local and as last fetched."""
    floor = Floor(sequence.start - 1)
    if not sequence.patterns:
        return floor
    specs = [f":(top,glob){pattern}" for pattern in sequence.patterns]
    files: set[str] = set()
    if ctx.repo.worktree:
        files |= _listed(ls_files(ctx.repo.env, *specs, show="all"))
    for commit in _commits(ctx, snapshot):
        files |= _listed(diff_names(ctx.repo.env, empty_tree(ctx.repo.env), commit, *specs))
    for file in sorted(files):
        if number_in(file) > floor.number:
            floor = Floor(number_in(file), file)
    return floor


def _commits(ctx: Context, snapshot: Snapshot) -> list[str]:
    sync = format_record(snapshot.state).sync
    remote = usual_remote(ctx, snapshot)
    refs = ["HEAD", f"refs/heads/{sync}", *([f"refs/remotes/{remote}/{sync}"] if remote else [])]
    return list(dict.fromkeys(oid for ref in refs if (oid := ctx.store.target(ref))))


def _listed(answer: Answer) -> set[str]:
    return set(answer.require("git cannot list the numbers in use", hints=("git fsck tells more",)).entries)

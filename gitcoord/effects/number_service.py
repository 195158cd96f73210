"""Reserving numbers of a sequence: the ledger remembers those that it gave, files tell which were in use before."""

from __future__ import annotations

from gitcoord.base.errors import Refused
from gitcoord.claims.facts import project_settings
from gitcoord.claims.model import format_record
from gitcoord.claims.work_facts import usual_remote
from gitcoord.effects.events.number import LAST, check_sequence, exhausted, next_number
from gitcoord.effects.sequences import Sequence, number_in, sequences
from gitcoord.git.commands.objects import diff_names, empty_tree
from gitcoord.git.commands.worktrees import ls_files
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.transaction import transact
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.process import Answer
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.sessions import Actor
    from gitcoord.ledger.snapshot import Snapshot


class Floor(NamedTuple):
    """The highest number in use outside the ledger, and the file that has it."""

    number: int
    file: str = ""


def reserve(ctx: Context, actor: Actor, name: str, count: int) -> dict[str, object]:
    """The next numbers, from now on this agent's."""
    sequence, floor = _look(ctx, read_snapshot(ctx), name)
    from gitcoord.effects.events.number import Number, decide

    try:
        result = transact(ctx, decide, Number(actor, sequence.name, count, floor.number))
    except Refused as refused:
        raise _with_file(refused, floor) from None
    return {**result, **_shown(sequence, floor, int(str(result["first"])), count)}


def peek(ctx: Context, name: str) -> dict[str, object]:
    """What the next number would be; it is not reserved."""
    snapshot = read_snapshot(ctx)
    sequence, floor = _look(ctx, snapshot, name)
    first = next_number(snapshot.state, sequence.name, floor.number)
    if first > LAST:
        raise _with_file(Refused(exhausted(sequence.name, first - 1)), floor)
    return {"sequence": sequence.name, "first": first, "count": 1, **_shown(sequence, floor, first, 1)}


def _with_file(refused: Refused, floor: Floor) -> Refused:
    if refused.code == "exhausted" and floor.file:
        refused.hints = (f"the highest number is in the name of {floor.file}: is that meant so?",)
    return refused


def _shown(sequence: Sequence, floor: Floor, first: int, count: int) -> dict[str, object]:
    numbers = [sequence.written(number) for number in range(first, first + count)]
    return {"numbers": numbers, "declared": sequence.declared, "floor": floor.number, "floor_file": floor.file}


def _look(ctx: Context, snapshot: Snapshot, name: str) -> tuple[Sequence, Floor]:
    check_sequence(name)
    sequence = sequences(project_settings(ctx, snapshot)).get(name, Sequence(name))
    return sequence, floor_of(ctx, snapshot, sequence)


def floor_of(ctx: Context, snapshot: Snapshot, sequence: Sequence) -> Floor:
    """Looked for in the work tree, tracked or not, in HEAD and on the sync branch, here and as it was last fetched."""
    floor = Floor(sequence.start - 1)
    if not sequence.patterns:
        return floor
    specs = [f":(top,glob){pattern}" for pattern in sequence.patterns]
    files: set[str] = set()
    if ctx.repo.worktree:
        files |= _listed(ls_files(ctx.repo.env, *specs, untracked=True))
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
    return set(answer.require("which numbers are in use cannot be told", hints=("git fsck tells more",)).entries)

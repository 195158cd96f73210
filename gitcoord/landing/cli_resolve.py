"""`git coord land --continue` and `--abort`: going on after a conflict, and giving up."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import Unreachable, UsageError
from gitcoord.base.names import shell_word
from gitcoord.landing import resolve
from gitcoord.landing.cli_land import Command, checks_of, task_of, wait_of
from gitcoord.landing.cli_order import order_of
from gitcoord.landing.model import WAYS
from gitcoord.landing.trunk import Trunk
from gitcoord.landing.turn import Turn
from gitcoord.landing.unfinished import conflicts
from gitcoord.ledger.sessions import Actor
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values


def go_on(call: Call, given: Values, actor: Actor, trunk: Trunk) -> int:
    """Finish what stands here, and land it. What is given counts beside, or in place of, what was asked for at first."""
    record = resolve.kept(call.ctx, actor.agent)
    if call.ctx.repo.worktree != record["tree"]:
        raise _elsewhere(record)
    how = str(record["how"])
    other = next((way for way in WAYS if given.get(way) and way != how), "")
    if other:
        raise UsageError(
            f"this landing began with --{how}, and goes on so",
            hints=("git coord land --continue", f"or begin anew with --{other}, after: git coord land --abort"),
        )
    record["task"] = task_of(given) or record["task"]
    record["wait"] = wait_of(given) if given.get("wait") else record["wait"]
    record["checks"] = [*dict.fromkeys([*record["checks"], *checks_of(given)])]
    record["done"] = bool(given.get("done") or record.get("done"))  # one that an older version kept has none
    resolve.keep(call.ctx, actor.agent, record)  # where it is refused now, the options count for the next time
    resolve.finish(call.ctx, str(record["branch"]), how, trunk.known())
    values: Values = {"check": list(record["checks"]), how: True, "done": record["done"]}
    if record["task"]:
        values["task"] = record["task"]
    values["wait"] = f"{record['wait']}s" if record["wait"] else "0"
    try:
        trunk.look()
        order = order_of(call, values, [str(record["branch"])], actor, trunk)
        return Command(call, values, actor, trunk, order, int(record["again"]) + 1).run()
    except Unreachable as error:
        resolve.keep(call.ctx, actor.agent, record)
        error.hints = (*error.hints, "then again, the conflict stays resolved: git coord land --continue")
        raise


def _elsewhere(record: Record) -> UsageError:
    return UsageError("the conflict stands in another work tree", hints=(f"cd {shell_word(str(record['tree']))}",))


def give_up(call: Call, actor: Actor, trunk: Trunk) -> int:
    """Give the landing up: out of the work tree, out of the queue, the turn back."""
    ctx = call.ctx
    try:
        record = resolve.kept(ctx, actor.agent)
    except UsageError:
        record = None
    if record is not None and ctx.repo.worktree == record["tree"]:
        resolve.abort(ctx)
    elif record is not None and any(row.agent == actor.agent for row in conflicts(ctx)):
        raise _elsewhere(record)
    turn = Turn(ctx, actor, trunk.name, "")
    turn.items = turn.all_items()
    had = turn.give_back() or record is not None
    resolve.forget(ctx, actor.agent)
    call.screen.answer({"aborted": had})
    call.screen.say("given up: the branch is as it was" if had else "there was no landing of yours to give up")
    return 0

"""`git coord land`: its verbs, and the lock of an agent that lands."""

from __future__ import annotations

import _signal as signal  # the whole module takes milliseconds to load

from gitcoord.base.errors import GitcoordError, UsageError, refused
from gitcoord.git.files import pwrite, read_file
from gitcoord.git.host import getpid, interrupt, start_time
from gitcoord.git.locks import flock
from gitcoord.landing.trunk import Trunk
from gitcoord.ledger.context import Context
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.world.open import preload

_OF_A_LANDING = ("merge", "rebase", "squash", "check", "task", "wait", "done")


def land(call: Call, values: Values, words: list[str]) -> int:
    """0: it has landed. 1: a conflict, a failed check or a rule. 3: waited as long as asked."""
    modes = [name for name in ("list", "continue", "abort", "dry-run") if values.get(name)]
    if len(modes) > 1 or (words and modes in (["list"], ["continue"], ["abort"])):
        raise UsageError("--list, --continue, --abort and --dry-run stand alone", hints=("git coord land -h",))
    beside = [name for name in _OF_A_LANDING if values.get(name)]
    if beside and modes in (["list"], ["abort"]):
        raise UsageError(f"--{modes[0]} takes no --{beside[0]}", hints=("git coord land -h",))
    if values.get("list"):
        from gitcoord.landing.cli_look import list_queue

        return list_queue(call)
    trunk = Trunk(call.ctx, read_snapshot(call.ctx))  # NotInitialised before anything is written
    if values.get("dry-run"):
        from gitcoord.landing.cli_look import dry_run
        from gitcoord.landing.cli_order import order_of

        actor = call.actor()
        try:
            trunk.look()
            return dry_run(call, values, actor, trunk, order_of(call, values, words, actor, trunk))
        finally:
            trunk.fetch_along(on=False)  # for a process that lives on
    actor = call.actor()
    preload("landing")
    lock = -1
    # As Ctrl-C: what was begun is given back.
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        lock = flock.acquire(call.ctx.scratch(f"landing/{actor.agent}.lock"))
        if lock < 0:
            why = f"another process lands under the name of '{actor.agent}'"
            raise refused("landing", why, *_end_of_other(call.ctx, actor.agent), "git coord land --list")
        pwrite(lock, f"{getpid()} {start_time(getpid())} ".encode(), 0)
        return _in_lock(call, values, words, trunk)
    finally:
        if lock >= 0:
            flock.release(lock)
        # For a process that lives on:
        for number, handler in before.items():
            signal.signal(number, handler)
        trunk.fetch_along(on=False)


def _end_of_other(ctx: Context, agent: str) -> list[str]:
    """The hint that ends the process which lands under this name; none where it cannot be told, as in another container."""
    pid, _, rest = read_file(f"{ctx.repo.scratch}/landing/{agent}.lock").decode("ascii", "replace").partition(" ")
    if not pid.isdecimal() or start_time(int(pid)) != rest.partition(" ")[0]:
        return []
    return [f"end that one, which leaves the queue and gives back its turn: kill {pid}"]


def _in_lock(call: Call, values: Values, words: list[str], trunk: Trunk) -> int:
    """Land, go on or give up, as the only process of this agent that does."""
    from gitcoord.landing import resolve
    from gitcoord.landing.cli_answer import say_finished
    from gitcoord.landing.cli_finish import note_finished
    from gitcoord.landing.cli_land import Command
    from gitcoord.landing.cli_order import order_of
    from gitcoord.landing.service import finish_open

    actor = call.actor()
    if values.get("abort"):
        from gitcoord.landing.cli_resolve import give_up

        return give_up(call, actor, trunk)
    finished = finish_open(call.ctx, actor, trunk)
    note_finished(call, finished)
    if values.get("continue"):
        from gitcoord.landing.cli_resolve import go_on

        return go_on(call, values, actor, trunk)
    resolve.require_none(call.ctx, actor.agent)
    if not finished:
        code = _unasked(call, values, words, trunk)
        if code is not None:
            return code
    trunk.look()
    order = order_of(call, values, words, actor, trunk)
    if any((row.agent, row.branch, row.tip) == (actor.agent, order.branch, order.tip) for row in finished):
        return say_finished(call, order, finished, done=bool(values.get("done")))
    return Command(call, values, actor, trunk, order).run()


def _unasked(call: Call, values: Values, words: list[str], trunk: Trunk) -> int | None:
    """Land by what this clone knows of the remote, in one push, which finds out whether that was too old. None: it was, or is not enough; nothing was
    done, and no answer was given."""
    from gitcoord.landing.cli_land import Command
    from gitcoord.landing.cli_order import order_of
    from gitcoord.landing.service import AskFirst

    actor = call.actor()
    if not trunk.assume(actor.agent):
        return None
    command: Command | None = None
    try:
        command = Command(call, values, actor, trunk, order_of(call, values, words, actor, trunk))
        return command.run(asked=False)
    except AskFirst:
        return None
    except GitcoordError as error:
        if command.pushed if command is not None else isinstance(error, UsageError):
            raise
        return None

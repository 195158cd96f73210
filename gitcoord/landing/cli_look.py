"""`git coord land --list` and `--dry-run`: who lands and waits, and what would land."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.base.names import printable
from gitcoord.claims.model import overlapping, turn_item
from gitcoord.claims.queue import Queue
from gitcoord.claims.requests import directory_of, requests_around
from gitcoord.landing.bring import Order, bring, names_of
from gitcoord.landing.cli_answer import say_lost, say_refused
from gitcoord.landing.cli_order import renumber_of
from gitcoord.landing.model import landing_queue, open_landings
from gitcoord.landing.records import check_seconds
from gitcoord.landing.service import Landing, NotAllowed
from gitcoord.landing.trunk import RECENT, Trunk
from gitcoord.landing.turn import needed
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row
from gitcoord.views.render import since_words


def dry_run(call: Call, values: Values, actor: Actor, trunk: Trunk, order: Order) -> int:
    """Show what would land, judged as a landing that has its turn, with the claims that it takes."""
    from gitcoord.landing.cli_check import require_few
    from gitcoord.landing.cli_land import checks_of, require_allowed, task_of, wait_of

    task, _ = task_of(values), wait_of(values)
    require_allowed(call.ctx, actor, trunk, task)
    require_few(trunk.rules(), checks_of(values))
    ctx, snapshot = call.ctx, read_snapshot(call.ctx)
    old = trunk.known()
    brought = bring(ctx, order, old)
    renumber = renumber_of(call, order, trunk, looks=True)
    names = renumber.plan(old, brought.new) if renumber is not None else {}
    rows = [{"from": path, "to": name} for path, name in names.items()]
    items = needed(ctx, snapshot, trunk.source(), actor.agent, order, old, names.values())
    landing = Landing(ctx, actor, trunk, order, task, renumber)
    landing.excused = {item.name for item in items}
    try:
        new = "" if brought.conflicts else landing.prepare(RECENT)[1]
    except NotAllowed as error:
        return say_refused(call, actor, error, records=False)
    checks = [*trunk.rules().checks, *checks_of(values)]
    if new == old:
        items, checks = (), []
    queue = listing(ctx)
    before = [row for row in (*queue["landing"], *queue["waiting"]) if row["agent"] != actor.agent]
    result: Row = {
        "branch": order.branch, "trunk": order.trunk, "tip": order.tip, "old": old, "how": order.how,
        "conflicts": list(brought.conflicts), "claims": [item.name for item in items], "checks": checks,
        "before": [row["agent"] for row in before], "already": new == old, "dry_run": True, **({"renumbered": rows} if rows else {}),
    }  # fmt: skip
    call.screen.answer(result, ok=not brought.conflicts)
    what = f"{' on '.join(names_of(order, ctx.remote))} ({order.how})"
    if brought.conflicts:
        call.screen.say(f"would not land {what}: conflicts in {printable(', '.join(brought.conflicts[:10]))}")
        _say_before(call, before)
        call.screen.hint("to resolve them in your turn: git coord land")
        return 1
    say_lost(call, order, landing.lost)
    call.screen.say(f"{what}: already there" if result["already"] else f"would land {what}")
    call.screen.say(*(f"{printable(path)} would be {printable(name)} there" for path, name in names.items()))
    call.screen.say(*(f"would claim {printable(item.name)}" for item in items))
    call.screen.say(*(f"would run: {printable(command)}" for command in checks))
    _say_before(call, before)
    return 0


def _say_before(call: Call, rows: list[Row]) -> None:
    for row in rows[:1]:
        more = f", and {len(rows) - 1} more" if rows[1:] else ""
        does = printable(str(row["reason"])) or "has the turn"
        call.screen.say(f"now: {row['agent']} {does}{more}: git coord land --list")


def list_queue(call: Call) -> int:
    result = call.show(lambda: listing(call.ctx), trunk="", landing=[], open=[], waiting=[], check_seconds=0)
    if result is None:
        return 0
    seconds = result["check_seconds"]
    took = f"the last check took {format_duration(seconds)}" if seconds else ""
    rows = [("now", row, took) for row in result["landing"]]
    rows += [(str(row["position"]), row, "") for row in result["waiting"]]
    cells = [
        [place, str(row["agent"]), printable(str(row["reason"])), since_words(row), more] for place, row, more in rows
    ]
    call.screen.say(*call.screen.table(cells, ["bold", "cyan", "", "dim", ""]))
    if not rows and not call.screen.json:
        call.screen.note("nobody lands, and nobody waits to")
    return 0


def listing(ctx: Context) -> Row:
    """The agent that lands, and those that wait for a turn, in order; and how long the checks of the last landing took."""
    snapshot = read_snapshot(ctx, trusting=True)
    state, world = snapshot.state, ctx.world(snapshot)
    item = turn_item(format_record(state).sync)
    near = requests_around(state, directory_of(state, item))
    queue = landing_queue(
        format_record(state).sync,
        overlapping(state, item),
        sorted(near, key=Queue(state, world).rank),
        open_landings(state),
    )
    return {**queue, "check_seconds": check_seconds(ctx, snapshot) if queue["landing"] else 0}

"""`git coord contention`: where agents wait for each other, and what helps."""

from __future__ import annotations

from gitcoord.base.codec import MAX_EVENT, Malformed, Record, loads
from gitcoord.base.durations import format_duration
from gitcoord.base.names import printable
from gitcoord.git.commands.objects import first_parent_messages
from gitcoord.journal.contention import Contention
from gitcoord.journal.service import Since, parse_since
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.terminal.call import Call, number, text
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, counted

_DEFAULT = "7d"
_EARLIER = 30 * 86_400  # a wait or hold that is counted may have begun so long before


def contention(call: Call, values: Values, words: list[str]) -> int:
    since = parse_since(text(values, "since") or _DEFAULT, call.ctx.host.wall())
    most = number(values, "number", 20)
    empty: Row = {"since": 0, "events": 0, "paths": [], "agents": [], "hot": []}

    def counted_rows() -> Row:
        result = measure(call.ctx, since)
        cut = {key: result[key][:most] for key in ("paths", "agents")} if most else {}
        return {**result, **cut}

    result = call.show(counted_rows, **empty)
    if result is None:
        return 0
    if not result["paths"]:
        call.screen.say("nobody claimed or waited for anything in this time")
        return 0
    for key, name in (("paths", "path"), ("agents", "agent")):
        rows = [[name, *_HEADS], *([str(row[name]), *_cells(row)] for row in result[key])]
        call.screen.say(*call.screen.table(rows, ["bold", *[""] * len(_HEADS)]), "")
    call.screen.say(counted(result["events"], "event"))
    for spot in result["hot"]:
        call.screen.say(f"hot: {printable(spot['path'])} ({spot['words']})", *(f"  {line}" for line in spot["help"]))
    return 0


_HEADS = (
    "grants", "waits", "p50", "p95", "longest", "waiting", "holds p50", "p95", "longest", "refused", "expired",
    "overtaken",
)  # fmt: skip


def _cells(row: Row) -> list[str]:
    waits, holds = row["waits"], row["holds"]
    lengths = ("p50", "p95", "longest")
    return [
        str(row["grants"]), str(waits["count"]),
        *(format_duration(waits[key]) if waits["count"] else "-" for key in lengths), str(row["waiting"]),
        *(format_duration(holds[key]) if holds["count"] else "-" for key in lengths),
        *(str(row[key]) for key in ("refusals", "expiries", "overtaken")),
    ]  # fmt: skip


def measure(ctx: Context, since: Since) -> Record:
    """The figures from `since` on. Events are read as they are; `fsck` is there to doubt them."""
    snapshot = read_snapshot(ctx, trusting=True)
    start = since.at - _EARLIER if since.at else 0
    answer = first_parent_messages(ctx.repo.env, snapshot.head, since=max(0, start))
    if answer.code and ctx.store.replay_redo_log():
        answer = first_parent_messages(ctx.repo.env, snapshot.head, since=max(0, start))
    answer.require("git cannot walk the ledger")
    found = Contention(since.at, seq=since.seq, case=folds_case(snapshot.state))
    for entry in answer.out.split(b"\0\n"):
        parts = entry.split(b"\n\n")
        try:
            found.read(loads(parts[1], MAX_EVENT))
        except (IndexError, KeyError, TypeError, ValueError, AttributeError, Malformed):
            continue  # no event, or a broken one: fsck names it
    return {"since": since.at, **found.result()}

"""`git coord contention`: where agents wait for each other, and what helps."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.base.names import printable
from gitcoord.journal.measure import measure
from gitcoord.journal.service import parse_since
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.terminal.call import Call, number, text
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, counted

_DEFAULT = "7d"


def contention(call: Call, values: Values, words: list[str]) -> int:
    since = parse_since(text(values, "since") or _DEFAULT, call.ctx.host.wall())
    most = number(values, "number", 20)
    empty: Row = {"since": 0, "events": 0, "paths": [], "agents": [], "hot": []}

    def counted_rows() -> Row:
        result = measure(call.ctx, read_snapshot(call.ctx, trusting=True), since)
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
    "grants", "waits", "p50", "p95", "longest", "waiting", "refused", "holds p50", "p95", "longest", "expired",
    "overtaken",
)  # fmt: skip


def _cells(row: Row) -> list[str]:
    waits, holds = row["waits"], row["holds"]
    lengths = ("p50", "p95", "longest")
    return [
        str(row["grants"]), str(waits["count"]),
        *(format_duration(waits[key]) if waits["count"] else "-" for key in lengths), str(row["waiting"]), str(row["refusals"]),
        *(format_duration(holds[key]) if holds["count"] else "-" for key in lengths),
        *(str(row[key]) for key in ("expiries", "overtaken")),
    ]  # fmt: skip

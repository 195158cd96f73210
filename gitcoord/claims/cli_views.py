"""The verbs of `git claim` that change nothing: list, show, check."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.base.names import IN_LANE, printable
from gitcoord.claims import pathspec as paths
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.admission import Halted
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row

_WAITERS = 20
_NARROW = 12  # columns for paths, however narrow the terminal is
_CHECK_SECONDS = 30  # `check` runs before every edit, and the gates fetch again


def list_(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.claims.query import listing

    mine = bool(values.get("mine"))
    actor = call.actor_if_set_up() if mine else call.actor_or_none()
    result = call.read(lambda: listing(call.ctx, actor, mine=mine, expired=bool(values.get("all"))), claims=[])
    halt: Halted | None = result.pop("halt", None)
    call.screen.answer(result)
    if not result["initialised"]:
        return 0
    if halt is not None:
        why = f": {printable(halt.reason)}" if halt.reason else ""
        call.screen.note(call.screen.paint(f"HALTED by {halt.by}{why}", "red", 2))
    claims = result["claims"]
    # One landing has a place in the lanes for each path that it changes.
    shown = [claim for claim in claims if values.get("all") or not str(claim["path"]).startswith(IN_LANE)]
    call.screen.say(
        *call.screen.claim_lines(shown), *waiting_lines(result, call.screen.width()), *call.screen.server_lines(result)
    )
    if not call.screen.json:
        if not claims and not result.get("server_claims"):
            call.screen.note("no claims")
        if result["hidden"]:
            call.screen.hint(f"{result['hidden']} expired: git claim list --all")
    return 0


def waiting_lines(result: Row, width: int = 0) -> list[str]:
    """A line for each of the first requests in the queue, of at most `width` columns; 0: as long as they are."""
    from gitcoord.terminal.screen import ago

    lines = []
    rows: list[Row] = result.get("waits", [])
    for row in rows[:_WAITERS]:
        paths = printable(", ".join(row["paths"][:3])) + f" and {len(row['paths']) - 3} more" * (len(row["paths"]) > 3)
        said = [f"{row['position']} of {row['of']}"] if "position" in row else []
        said += [f"since {ago(row['since'])}", f"ticket {row['ticket']}"]
        said += [row["priority"]] * (row["priority"] != "normal") + [printable(row["reason"])] * bool(row["reason"])
        line = f"{row['agent']} waits for {paths} ({', '.join(said)})"
        if width and len(line) > width // 2:  # wide characters take two columns
            from gitcoord.terminal.fit import columns, cut, shortened

            room = width - columns(line) + columns(paths)
            line = line.replace(paths, shortened(paths, max(_NARROW, room)), 1)
            line = cut(line, width)
        lines.append(line)
    return lines + [f"{len(rows) - _WAITERS} more wait"] * (len(rows) > _WAITERS)


def place_lines(rows: list[Row]) -> list[str]:
    """A line for each of the reader's own requests: what it waits for, and where it stands."""
    from gitcoord.terminal.screen import ago

    lines = []
    for row in rows:
        before = f", after {printable(', '.join(row['before'][:3]))}" if row["before"] else ""
        place = f"{row['position']} of {row['of']}{before}"
        lines.append(
            f"{printable(', '.join(row['paths'][:3]))}: {place}, ticket {row['ticket']}, since {ago(row['since'])}"
        )
    return lines


def show(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.claims.query import overlapping_claims

    item = paths.one(call.ctx.repo, words[0])
    result = call.show(lambda: overlapping_claims(call.ctx, call.actor_or_none(), item), claims=[])
    if result is None:
        return 0
    claims = result["claims"]
    for claim in claims:
        call.screen.say(*_details(call, claim))
    call.screen.say(*waiting_lines(result, call.screen.width()))
    call.screen.say(*call.screen.server_lines(result))
    if not claims and not result.get("server_claims") and not call.screen.json:
        kept = f"; it is kept for {result['kept_for']}" if "kept_for" in result else ""
        call.screen.note(f"no claim on, above or below {printable(words[0])}{kept}")
    return 0


def _details(call: Call, claim: Row) -> list[str]:
    from gitcoord.terminal.screen import ago, expected, expiry

    rows = [
        ("agent", f"{claim['agent']} (session {claim['session']})"),
        ("mode", claim["mode"]),
        ("token", claim["token"]),
        (
            "expires",
            f"{expiry(claim).removeprefix('expires ')} (ttl {format_duration(int(str(claim['ttl_seconds'])))})",
        ),
        ("expects", expected(claim).removeprefix("expected ")),
        ("since", ago(claim["since"])),
        ("reason", claim["reason"]),
        ("task", claim["task"]),
        ("base", claim["base"]),
    ]
    lines = [f"  {name + ':':9}{printable(str(value))}" for name, value in rows if value != ""]
    return [call.screen.paint(printable(str(claim["path"])), "bold"), *lines]


def check(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.claims.query import Unseen
    from gitcoord.claims.query import check as app_check

    items = paths.items(call.ctx.repo, words)
    actor = call.actor_if_set_up() or Actor("")
    age = call.recent(_CHECK_SECONDS)
    seconds: int | None = age.get("as_of_seconds")  # type: ignore[assignment]
    unseen = Unseen(str(age["offline"]), seconds) if "offline" in age else None
    result = {**call.read(lambda: app_check(call.ctx, actor, items, unseen), None, allowed=True, paths=[]), **age}
    call.screen.answer(result, ok=result["allowed"])
    if "message" in result:
        call.screen.note(f"no: {printable(result['message'])}")
    for row in result["paths"]:
        _say_verdict(call, row, f", as of {format_duration(seconds or 0)} ago" if seconds or unseen is not None else "")
    if "lost" in result:
        from gitcoord.claims.cli import lost_line

        call.screen.note(*(f"note: {lost_line(row)}" for row in result["lost"]))
    mine = [row for row in result["paths"] if row["verdict"] == "mine"]
    if mine and not call.screen.json:
        from gitcoord.claims.cli import lacked_lines, say_lacked

        say_lacked(call, lacked_lines(call, mine))
    return 0 if result["allowed"] else 1


def _say_verdict(call: Call, row: Row, age: str) -> None:
    name = printable(str(row["path"]))
    words = {"mine": "yes, yours", "free": "yes, free", "unclaimed": "no, shared and not claimed", "held": "no, held"}
    kept = f", but kept for {row['kept_for']}" if "kept_for" in row and row["verdict"] in ("free", "unclaimed") else ""
    if "by" in row:
        words["mine"] = f"yes, {row['by']}, whose subagent you are, holds it"
    call.screen.say(f"{name}: {words.get(str(row['verdict'])) or 'no, ' + printable(str(row['message']))}{kept}{age}")
    held: list[Row] = row["held"]
    call.screen.say(
        *("  " + line for line in [*call.screen.claim_lines(held), *waiting_lines(row, call.screen.width())])
    )
    if row["verdict"] == "unclaimed" and not call.screen.json:
        call.screen.hint(f"git claim {'--wait 10m ' * bool(kept)}{call.typed(str(row['path']))}")

"""The history checker: what processes logged about their own requests, held against real time and against the ledger.

It shares no rule with gitcoord: overlap, modes and capacity are written out again here, so that a mistake there is not
repeated. Times are CLOCK_MONOTONIC in nanoseconds, which every process of a machine shares.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]
FOREVER = 1 << 63


class Request(NamedTuple):
    """One call that asked for something, as its process saw it."""

    agent: str
    items: tuple[str, ...]
    mode: str
    units: int
    start: int
    end: int
    outcome: str
    token: int
    held: tuple[tuple[str, str, int], ...]
    round: int
    message: str


class Span(NamedTuple):
    """A grant, from its answer to the request that releases it (and its answer)."""

    grant: Request
    ending: int
    ended: int


def read_logs(files: Iterable[Path]) -> list[Row]:
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def requests(rows: Iterable[Row]) -> list[Request]:
    return [_request(row) for row in rows if row["op"] == "take"]


def _request(row: Row) -> Request:
    held = tuple((path, agent, token) for path, agent, token in row["held"])
    words = (row["start"], row["end"], row["outcome"], row["token"], held, row["round"], row["message"])
    return Request(row["agent"], tuple(row["items"]), row["mode"], row["units"], *words)


def spans(rows: Iterable[Row]) -> list[Span]:
    """Each grant with its end. A grant that was never given back lasts for ever."""
    found: list[Span] = []
    live: dict[tuple[str, tuple[str, ...]], Request] = {}
    for row in sorted(rows, key=lambda row: int(row["start"])):
        key = (row["agent"], tuple(row["items"]))
        if row["op"] == "take" and row["outcome"] == "granted":
            live[key] = _request(row)
        elif row["op"] == "release" and row["outcome"] == "released" and key in live:
            found.append(Span(live.pop(key), row["start"], row["end"]))
    return found + [Span(grant, FOREVER, FOREVER) for grant in live.values()]


def overlap(one: str, other: str) -> bool:
    """The same thing, or one lies below the other; '.' is the whole work tree."""
    if "." in (one, other):
        return not (one + other).count("@")
    a, b = one.split("/"), other.split("/")
    shorter = min(len(a), len(b))
    return a[:shorter] == b[:shorter]


def conflict(one: Request, other: Request, capacity: Mapping[str, int]) -> bool:
    if one.agent == other.agent or "write" not in (one.mode, other.mode):
        return False
    return any(overlap(a, b) for a in one.items for b in other.items if capacity.get(a, 1) == 1)


def check_history(rows: list[Row], capacity: Mapping[str, int] | None = None) -> list[str]:
    """Everything that is wrong with this history, in words; empty if it could have happened one after the other."""
    units = capacity or {}
    asked, held = requests(rows), spans(rows)
    problems = [f"{r.agent} got no answer but {r.outcome}: {r.message}" for r in asked if _is_failure(r)]
    problems += [f"{row['agent']} could not release: {row['message']}" for row in rows if _is_failed_release(row)]
    problems += _tokens(asked)
    problems += _overlaps(held, units)
    problems += _capacity(held, units)
    problems += _unfounded(asked, held)
    return problems


def _is_failure(request: Request) -> bool:
    return request.outcome not in ("granted", "refused", "renewed")


def _is_failed_release(row: Row) -> bool:
    return bool(row["op"] == "release" and row["outcome"] != "released")


def _tokens(asked: list[Request]) -> list[str]:
    """Check that each grant has its own token, and that tokens grow in real time."""
    grants = [r for r in asked if r.outcome == "granted"]
    seen: dict[int, Request] = {}
    problems = []
    for grant in grants:
        if grant.token in seen:
            problems.append(f"token {grant.token} was given to {seen[grant.token].agent} and to {grant.agent}")
        seen[grant.token] = grant
    told = sorted(grants, key=lambda r: r.end)
    highest, place = 0, 0
    for grant in sorted(grants, key=lambda r: r.start):
        while place < len(told) and told[place].end < grant.start:
            highest = max(highest, told[place].token)
            place += 1
        if grant.token <= highest:
            problems.append(f"{grant.agent} got token {grant.token} after {highest} had been told")
    return problems


def _overlaps(held: list[Span], capacity: Mapping[str, int]) -> list[str]:
    """Check that no two conflicting grants were held at one moment."""
    problems = []
    active: list[Span] = []
    for span in sorted(held, key=lambda s: s.grant.end):
        active = [other for other in active if other.ending > span.grant.end]
        for other in active:
            if conflict(span.grant, other.grant, capacity):
                a, b = other.grant, span.grant
                problems.append(f"{a.agent} ({a.mode} {a.items}) and {b.agent} ({b.mode} {b.items}) held both at once")
        active.append(span)
    return problems


def _capacity(held: list[Span], capacity: Mapping[str, int]) -> list[str]:
    problems = []
    for name, most in capacity.items():
        edges = []
        for span in held:
            if name in span.grant.items:
                edges += [(span.grant.end, span.grant.units), (span.ending, -span.grant.units)]
        used = 0
        for _, change in sorted(edges):
            used += change
            if used > most:
                problems.append(f"{used} units of {name} were held at once, there are {most}")
    return problems


def most_at_once(rows: list[Row], name: str) -> int:
    """The largest number of units of a resource that were held together."""
    low, high = 0, 1 << 20
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _capacity(spans(rows), {name: middle}) else (low, middle)
    return low


def _unfounded(asked: list[Request], held: list[Span]) -> list[str]:
    """Every refusal names grants that may have been held while it was asked."""
    grants = {span.grant.token: span for span in held}
    problems = []
    for refusal in (r for r in asked if r.outcome == "refused"):
        if not refusal.held:
            problems.append(f"{refusal.agent} was refused without a holder: {refusal.message}")
        for path, agent, token in refusal.held:
            span = grants.get(token)
            if span is None or span.grant.agent != agent:
                problems.append(
                    f"{refusal.agent} was refused because of token {token} of {agent}, which nobody was told"
                )
            elif span.ended < refusal.start or span.grant.start > refusal.end:
                problems.append(
                    f"{refusal.agent} was refused because of token {token} of {agent}, held at another time"
                )
            elif not any(overlap(path, mine) for mine in refusal.items):
                problems.append(f"{refusal.agent} was refused {refusal.items} because of {path}")
    return problems


# --- rounds -------------------------------------------------------------------------------------------------------


def check_round(answers: list[Row]) -> list[str]:
    """Check one round in which all asked and none released: each loser conflicts with a winner."""
    asked = requests(answers)
    winners = [r for r in asked if r.outcome == "granted"]
    problems = [] if winners else ["nobody won"]
    for request in asked:
        rivals = [w for w in winners if conflict(request, w, {})]
        if request.outcome == "granted" and rivals:
            problems.append(f"{request.agent} and {rivals[0].agent} both won")
        if request.outcome == "refused" and not rivals:
            problems.append(f"{request.agent} lost {request.items} to nobody")
    return problems


# --- the ledger ---------------------------------------------------------------------------------------------------


def read_ledger(repo: Path, env: Mapping[str, str]) -> list[Row]:
    """Every event, oldest first, as plain git shows them."""
    argv = ["git", "-C", str(repo), "log", "--reverse", "--format=%B%x00", "refs/heads/gitcoord"]
    text = subprocess.run(argv, env=env, check=True, capture_output=True, text=True).stdout
    return [json.loads(message.split("\n\n")[1]) for message in text.split("\0") if message.strip()]


def check_ledger(events: list[Row], rows: list[Row], *, expiring: bool = False) -> list[str]:
    """Check that Seq has no gaps, and that the ledger has exactly the grants that were answered."""
    problems = []
    if [e["seq"] for e in events] != list(range(1, len(events) + 1)):
        problems.append(f"Seq has gaps: {[e['seq'] for e in events][:20]}...")
    recorded = {
        e["seq"]: (e["agent"], tuple(map(_word, e["items"])), e["mode"]) for e in events if e["kind"] == "claim"
    }
    told = {r.token: (r.agent, r.items, r.mode) for r in requests(rows) if r.outcome == "granted"}
    for token in sorted(recorded.keys() | told.keys()):
        if recorded.get(token) != told.get(token):
            problems.append(f"token {token}: the ledger has {recorded.get(token)}, told was {told.get(token)}")
    if not expiring and any(e["kind"] == "expire" for e in events):
        problems.append("somebody was expired though nobody was silent")
    return problems


def _word(pair: list[str]) -> str:
    return pair[1] if pair[0] == "path" else "@" + pair[1]

"""Refusals are counted locally, and an agent's next event carries them, by path and holder. Losing a count is harmless."""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, dumps, loads
from gitcoord.base.errors import Refusal
from gitcoord.git.files import append_file, read_file, remove_file
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.gates.judge import Verdict

_MOST = 32


def count_refusal(ctx: Context, agent: str, refusal: Refusal) -> None:
    """One line for each conflicting claim."""
    _count(ctx, agent, [[held["path"], held["agent"]] for held in refusal.blocking_claims])


def count_verdicts(ctx: Context, agent: str, verdicts: list[Verdict]) -> None:
    """A gate's refusals, by path, and by each holder or by the rule."""
    told = [verdict for verdict in verdicts[:_MOST] if verdict.rule != "private"]
    rows = [[v.path, holder] for v in told for holder in dict.fromkeys(c["agent"] for c in v.held) or (f"[{v.rule}]",)]
    _count(ctx, agent, rows)


def _count(ctx: Context, agent: str, rows: list[list[object]]) -> None:
    if not rows:
        return
    lines = [dumps(row) + "\n" for row in rows]
    try:
        append_file(ctx.scratch(f"refusals/{agent}"), "".join(lines).encode())
    except OSError:
        pass  # a refusal stands, counted or not


def pending_refusals(ctx: Context, agent: str) -> tuple[Record, ...]:
    counts: dict[tuple[str, str], int] = {}
    for line in read_file(f"{ctx.repo.scratch}/refusals/{agent}").split(b"\n"):
        try:
            path, holder = loads(line)
        except (Malformed, ValueError, TypeError):
            continue  # empty, or cut off
        counts[path, holder] = counts.get((path, holder), 0) + 1
    rows = sorted(counts.items(), key=lambda row: -row[1])[:_MOST]
    return tuple({"path": path, "holder": holder, "count": count} for (path, holder), count in rows)


def forget_refusals(ctx: Context, agent: str, event: Event) -> None:
    """The event carried them: forget them."""
    if event.refused:
        remove_file(f"{ctx.repo.scratch}/refusals/{agent}")

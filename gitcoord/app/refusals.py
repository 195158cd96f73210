"""Refusals are counted locally, and an agent's next event carries them, by path and holder. Losing a count is harmless."""

from gitcoord.core.codec import Malformed, dumps, loads
from gitcoord.store.files import append_file, read_file, remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context
    from gitcoord.core.codec import Record
    from gitcoord.core.events import Event
    from gitcoord.errors import Refusal

_MOST = 32


def count_refusal(ctx: "Context", agent: str, refusal: "Refusal") -> None:
    """One line for each claim that was in the way."""
    if not refusal.held:
        return
    lines = [dumps([held["path"], held["agent"]]) + "\n" for held in refusal.held]
    try:
        append_file(ctx.scratch(f"refusals/{agent}"), "".join(lines).encode())
    except OSError:
        pass  # a refusal stands, counted or not


def pending_refusals(ctx: "Context", agent: str) -> "tuple[Record, ...]":
    counts: dict[tuple[str, str], int] = {}
    for line in read_file(f"{ctx.repo.scratch}/refusals/{agent}").split(b"\n"):
        try:
            path, holder = loads(line)
        except (Malformed, ValueError, TypeError):
            continue  # empty, or cut off
        counts[path, holder] = counts.get((path, holder), 0) + 1
    rows = sorted(counts.items(), key=lambda row: -row[1])[:_MOST]
    return tuple({"path": path, "holder": holder, "count": count} for (path, holder), count in rows)


def settle_refusals(ctx: "Context", agent: str, event: "Event") -> None:
    """The event carried them: forget them."""
    if event.refused:
        remove_file(f"{ctx.repo.scratch}/refusals/{agent}")

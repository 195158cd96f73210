"""Refusals are counted locally, and an agent's next event carries them, by path and holder. Losing a count is harmless."""

import posix

from gitcoord.store.files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context
    from gitcoord.core.codec import Record
    from gitcoord.core.events import Event
    from gitcoord.errors import Refusal

_MOST = 32


def count_refusal(ctx: "Context", agent: str, refusal: "Refusal") -> None:
    """One line for each claim that was in the way."""
    lines = [f"{held['path']}\t{held['agent']}\n" for held in refusal.held]
    if not lines:
        return
    try:
        fd = posix.open(
            ctx.scratch(f"refusals/{agent}"), posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC, 0o666
        )
        try:
            posix.write(fd, "".join(lines).encode("utf-8", "surrogateescape"))
        finally:
            posix.close(fd)
    except OSError:
        pass  # a refusal stands, counted or not


def pending_refusals(ctx: "Context", agent: str) -> "tuple[Record, ...]":
    data = read_file(f"{ctx.repo.scratch}/refusals/{agent}")
    if not data:
        return ()
    counts: dict[tuple[str, str], int] = {}
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        path, tab, holder = line.rpartition("\t")
        if tab:
            counts[path, holder] = counts.get((path, holder), 0) + 1
    rows = sorted(counts.items(), key=lambda row: -row[1])[:_MOST]
    return tuple({"path": path, "holder": holder, "count": count} for (path, holder), count in rows)


def settle_refusals(ctx: "Context", agent: str, event: "Event") -> None:
    """The event carried them: forget them."""
    if event.refused:
        try:
            posix.unlink(f"{ctx.repo.scratch}/refusals/{agent}")
        except OSError:
            pass

"""Heartbeats that were replaced: their objects are removed, but only after a while.

Left to pile up, they make git's own maintenance give up; removed at once, a `git gc` or a fetch that is under way would
miss an object it has just been promised.
"""

from __future__ import annotations

from gitcoord.git.files import read_file, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.names import Oid
    from gitcoord.ledger.context import Context

KEEP_MS = 10 * 60 * 1000


def retire(ctx: Context, agent: str, oid: Oid | None) -> None:
    """Note that this heartbeat's object is no longer needed, and discard those noted long enough ago."""
    if oid is None:
        return
    path = ctx.scratch(f"beats/{agent}")
    now, boot = ctx.host.mono(), ctx.host.boot
    kept = [f"{oid} {now} {boot}"]
    for line in read_file(path).decode("ascii", "replace").split("\n"):
        words = line.split(" ")
        if len(words) != 3 or not words[1].isdecimal():
            continue
        if words[2] == boot and now - int(words[1]) < KEEP_MS:
            kept.append(line)
        else:
            ctx.store.discard(words[0])
    try:
        write_file(path, "\n".join(kept).encode())
    except OSError:
        pass  # a note that is lost costs one object until git prunes it

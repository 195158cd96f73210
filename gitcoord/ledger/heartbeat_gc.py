"""Removing the objects of heartbeats that were replaced, some time later.

If none were removed, they would make git's own maintenance give up. An object that is removed at once may be missing for a
`git gc` or a fetch that has just found it.
"""

from __future__ import annotations

from gitcoord.base.names import Oid
from gitcoord.git.files import read_file, write_file
from gitcoord.ledger.context import Context

KEEP_MS = 10 * 60 * 1000


def retire(ctx: Context, agent: str, oid: Oid | None) -> None:
    """Note that this heartbeat was replaced, and discard the objects that were noted more than KEEP_MS ago."""
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
        pass  # the object stays until git prunes it

"""Does a finding still stand? Told from refs and files alone, without git."""

from __future__ import annotations

from gitcoord.git.files import read_file
from gitcoord.ledger.context import Context
from gitcoord.radar.look import stamp
from gitcoord.radar.model import Conflict, Side
from gitcoord.radar.work import trunk_tips
from gitcoord.startup.annotations import Iterable


def standing(ctx: Context, trunk: str, tip: str, conflicts: Iterable[Conflict]) -> list[Conflict]:
    """Those of these conflicts that stand: trunk (its name) is at the same commit, and so are both sides, and the file is as it was there."""
    rows = list(conflicts)
    if not rows or trunk_tips(ctx, trunk)[:1] != [tip]:
        return []
    return [row for row in rows if all(_stands(ctx, side, row.path) for side in row.sides)]


def _stands(ctx: Context, side: Side, path: str) -> bool:
    if side.ref and ctx.local.target(side.ref) != side.head:
        return False
    if not side.tree:
        return True
    head = read_file(f"{side.git_dir}/HEAD").decode("utf-8", "surrogateescape").strip()
    return head == (f"ref: {side.ref}" if side.ref else side.head) and stamp(side.tree, path) == side.stamp

"""Conflict markers that an operation of git left: a file that was in conflict in it is not committed with them.

Only while that operation is under way, only files that its index notes as resolved, and only lines that neither side had: so
nothing else that looks like a marker is refused.
"""

from __future__ import annotations

from gitcoord.base.errors import Refusal
from gitcoord.base.names import listed, shell_word
from gitcoord.git.commands.worktrees import ls_files, with_index
from gitcoord.ledger.context import Context

_BEGINS, _ENDS = b"<<<<<<< ", b">>>>>>> "


def find_markers(ctx: Context, index: str = "") -> Refusal | None:
    """The refusal of a commit of this index ('': the shared one). The caller knows that an operation is under way."""
    env = with_index(ctx.repo.env, index) if index else ctx.repo.env
    sides = _blobs(ls_files(env, tree=ctx.repo.worktree, show="resolved").entries)
    if not sides:
        return None
    specs = (f":(top,literal){path}" for path in sides)
    staged = _blobs(ls_files(env, *specs, tree=ctx.repo.worktree, show="staged").entries)
    found = {path: lines for path, oids in staged.items() if (lines := _left(ctx, oids[0], sides[path]))}
    if not found:
        return None
    where = [f"{path}:{line}" for path, lines in found.items() for line in lines]
    words = " ".join(shell_word(path) for path in list(found)[:5])
    return Refusal(
        "markers",
        f"conflict markers are still there: {listed(where)}",
        hints=(f"edit what conflicts, then: git add {words}",),
    )


def _blobs(entries: list[str]) -> dict[str, list[str]]:
    """The blobs of each path, from lines of mode, blob, stage and path."""
    found: dict[str, list[str]] = {}
    for entry in filter(None, entries):
        meta, _, path = entry.partition("\t")
        found.setdefault(path, []).append(meta.split(" ")[1])
    return found


def _left(ctx: Context, staged: str, sides: list[str]) -> list[int]:
    """The numbers of the lines that are markers and stand on no side; none where a conflict does not begin and end with them."""
    blob, *others = (
        row.data if row is not None and row.kind == "blob" else b"" for row in ctx.store.read([staged, *sides])
    )
    before = {line for other in others for line in other.split(b"\n") if line.startswith((_BEGINS, _ENDS))}
    rows = [(number, line) for number, line in enumerate(blob.split(b"\n"), 1) if line.startswith((_BEGINS, _ENDS))]
    new = [(number, line) for number, line in rows if line not in before]
    whole = any(line.startswith(_BEGINS) for _, line in new) and any(line.startswith(_ENDS) for _, line in new)
    return [number for number, _ in new] if whole else []

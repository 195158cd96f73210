"""Paths of `git claim` that do not exist: new ones are claimed and marked, mistakes refused with the command that was meant."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import quote, shell_word
from gitcoord.claims.model import Item
from gitcoord.claims.query import overlapping_claims
from gitcoord.git.files import lstat
from gitcoord.ledger.format import format_record
from gitcoord.ledger.snapshot import read_snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.terminal.call import Call


def not_committed(call: Call, paths: list[str]) -> list[str]:
    """Those of the paths, none of which is in the work tree, that HEAD has not either."""
    return [path for path in paths if not _is_in(call, "HEAD", path)]


def refuse_mistakes(call: Call, new: list[str], words: list[str]) -> None:
    """UsageError for a word that is like a verb, and for a path whose directory does not exist; a claim there excuses both."""
    prefix = call.ctx.repo.prefix
    for at, word in enumerate(words):
        if prefix + word in new:
            _refuse_verb(call, prefix + word, words, at)
    for path in new:
        parents = _missing_parents(call, path)
        if parents and not _is_claimed(call, path):
            raise UsageError(
                f"{quote(path[:80])}: neither this path nor its directory exists",
                hints=(
                    f"to claim a new directory: git claim {call.typed(parents[-1])}",
                    f"to claim this path all the same: git claim -- {call.typed(path)}",
                ),
            )


def _refuse_verb(call: Call, path: str, words: list[str], at: int) -> None:
    from gitcoord.cli.meant import meant

    command = meant(words[at], words[1:] if at == 0 else [])
    if command and not _is_claimed(call, path):
        raise UsageError(
            f"{quote(words[at][:80])} is no path here, and looks like a verb",
            hints=(command, f"to claim a new path of that name: git claim -- {shell_word(words[at])}"),
        )


def _missing_parents(call: Call, path: str) -> list[str]:
    """The directories above the path that exist neither here nor on trunk, the innermost first; none where the innermost exists."""
    found: list[str] = []
    parent = path.rpartition("/")[0]
    while parent and not _exists(call, parent):
        found.append(parent)
        parent = parent.rpartition("/")[0]
    return found


def _exists(call: Call, path: str) -> bool:
    try:
        lstat(f"{call.ctx.repo.worktree}/{path}")
        return True
    except OSError:
        trunk = format_record(read_snapshot(call.ctx).state).sync
        return _is_in(call, "HEAD", path) or _is_in(call, f"refs/heads/{trunk}", path)


def _is_in(call: Call, ref: str, path: str) -> bool:
    """Does the commit have this path? No such question can be asked for a name with a line end."""
    return "\n" not in path and call.ctx.store.read([f"{ref}:{path}"])[0] is not None


def _is_claimed(call: Call, path: str) -> bool:
    return bool(overlapping_claims(call.ctx, None, Item("path", path))["claims"])

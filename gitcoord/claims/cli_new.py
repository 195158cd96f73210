"""Paths of `git claim` that do not exist: new ones are claimed and marked, mistakes refused with the command that was meant."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import printable, quote, shell_word
from gitcoord.claims.model import Item
from gitcoord.claims.pathspec import items
from gitcoord.claims.query import check, overlapping_claims
from gitcoord.git.files import list_files, lstat
from gitcoord.ledger.format import format_record
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.terminal.call import Call


def new_paths(call: Call, missing: list[str], words: list[str]) -> list[str]:
    """The paths, none of which is in the work tree, without those that are committed although their directory is not there, or
    although they are called like a verb. UsageError for one of these that is not committed, unless somebody has a claim there.
    `words` are those to judge.
    """
    prefix = call.ctx.repo.prefix
    verbs = {prefix + word: at for at, word in enumerate(words) if "/" not in word and _command(words, at)}
    judged = {item.name for item in items(call.ctx.repo, words)}
    new = []
    for path in missing:
        lonely = not _is_here(call, path.rpartition("/")[0])
        if (path in verbs or lonely) and _is_in(call, "HEAD", path):
            continue
        new.append(path)
        parents = _missing_parents(call, path) if lonely else []
        if path in judged and path in verbs and not _is_claimed(call, path):
            raise _mistaken_verb(words, verbs[path])
        if path in judged and parents and _is_free(call, path):
            raise _mistaken_path(call, path, parents[-1])
    return new


def like_others(call: Call, new: list[str]) -> list[str]:
    """A line for each new path that is named nearly like a file beside it."""
    return [
        f"note: {printable(path)} does not exist, {other} does; to give a slip back: git claim release {call.typed(path)}"
        for path in new
        if (other := _like(call, path))
    ]


def like_declared(call: Call, resources: list[str]) -> list[str]:
    """A line for each undeclared resource that is named nearly like a declared one, or like the turn of landing."""
    from gitcoord.claims.facts import declared_resources
    from gitcoord.cli.meant import is_slip

    snapshot = read_snapshot(call.ctx)
    known = [*declared_resources(call.ctx, snapshot), f"land/{format_record(snapshot.state).sync}"]
    undeclared = [name for name in resources if name.removeprefix("@") not in known]
    return [
        f"note: {printable(name)} is not declared, @{printable(other)} is; to give a slip back: git claim release {shell_word(name)}"
        for name in undeclared
        for other in known
        if is_slip(name.removeprefix("@"), other)
    ]


def absent_lines(call: Call, path: str) -> list[str]:
    """A line about a path that is not in this work tree; none for one that is."""
    if not call.ctx.repo.worktree or _is_here(call, path):
        return []
    other = _like(call, path)
    return [f"note: there is no {printable(path)} here" + (f"; did you mean {other}?" if other else "")]


def _like(call: Call, path: str) -> str:
    """A file beside this path whose name is nearly the same, as one types it; '' for none."""
    from gitcoord.cli.meant import is_slip

    directory, _, name = path.rpartition("/")
    beside = [each for each in list_files(f"{call.ctx.repo.worktree}/{directory}") if is_slip(name, each)]
    return call.typed(f"{directory}/{min(beside)}".lstrip("/")) if beside else ""


def _command(words: list[str], at: int) -> str:
    """The command that is meant where this word is like a verb."""
    from gitcoord.cli.meant import meant

    return meant(words[at], words[1:] if at == 0 else [])


def _mistaken_verb(words: list[str], at: int) -> UsageError:
    return UsageError(
        f"{quote(words[at][:80])} is no path here, and looks like a verb",
        hints=(_command(words, at), f"to claim a new path of that name: git claim -- {shell_word(words[at])}"),
    )


def _mistaken_path(call: Call, path: str, parent: str) -> UsageError:
    return UsageError(
        f"{quote(path[:80])}: neither this path nor its directory exists",
        hints=(
            f"to claim a new directory: git claim {call.typed(parent)}",
            f"to claim this path all the same: git claim -- {call.typed(path)}",
        ),
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
    trunk = format_record(read_snapshot(call.ctx).state).sync
    return _is_here(call, path) or _is_in(call, "HEAD", path) or _is_in(call, f"refs/heads/{trunk}", path)


def _is_here(call: Call, path: str) -> bool:
    try:
        lstat(f"{call.ctx.repo.worktree}/{path}")
        return True
    except OSError:
        return False


def _is_in(call: Call, ref: str, path: str) -> bool:
    """Does the commit have this path? No such question can be asked for a name with a line end."""
    return "\n" not in path and call.ctx.store.read([f"{ref}:{path}"])[0] is not None


def _is_free(call: Call, path: str) -> bool:
    """Neither claimed nor marked as shared: gates and guard name the path of a marked file that is yet to be made."""
    rows = check(call.ctx, call.actor(), (Item("path", path),))["paths"]
    return bool(rows) and all(row["verdict"] == "free" for row in rows)  # type: ignore[attr-defined]


def _is_claimed(call: Call, path: str) -> bool:
    return bool(overlapping_claims(call.ctx, None, Item("path", path))["claims"])

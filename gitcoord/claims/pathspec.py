"""Turns words of the command line into items: paths, git's pathspecs with globs, @resources."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import ROOT, check_path, check_resource, quote, shell_word
from gitcoord.claims.model import Item
from gitcoord.git.files import is_symlink, lstat, same_file
from gitcoord.git.repo import Repo


class InSubmodule(UsageError):
    """The path is in another repository below this work tree."""


def items(repo: Repo, words: list[str]) -> tuple[Item, ...]:
    """Each item once, in the given order."""
    found: dict[Item, None] = {}
    for word in words:
        for item in _expand(repo, word):
            found[item] = None
    return tuple(found)


def missing(repo: Repo, items: tuple[Item, ...]) -> list[str]:
    """The paths among the items that are not in the work tree."""
    paths = [item.name for item in items if item.space == "path"] if repo.worktree else []
    return [path for path in paths if not _exists(f"{repo.worktree}/{path}")]


def one(repo: Repo, word: str) -> Item:
    found = _expand(repo, word)
    if len(found) != 1:
        raise UsageError(f"{quote(word[:80])} stands for {len(found)} paths, one is needed")
    return found[0]


def _expand(repo: Repo, word: str) -> list[Item]:
    if not word:
        raise UsageError("a path is empty", hints=("the whole repository is '.'",))
    if word[0] == "@":
        return [Item("resource", check_resource(word[1:]))]
    if word.startswith(":/") and {"*", "?", "["}.isdisjoint(word):
        path = check_path(word[2:])
    elif word.startswith(":(literal)"):
        path = check_path(_below_top(repo, word.removeprefix(":(literal)")))
    elif _is_pattern(word) and repo.worktree and not _exists(word):
        found = _glob(repo, word)
        if found or "*" in word or "?" in word or word[0] == ":":
            return found or _no_match(word)
        path = check_path(_below_top(repo, word))  # a new file whose name has brackets in it
    else:
        path = check_path(_below_top(repo, word))
    return [Item("path", _as_tracked(repo, path))]


def _is_pattern(word: str) -> bool:
    return word.startswith(":") or not {"*", "?", "["}.isdisjoint(word)


def _no_match(word: str) -> list[Item]:
    raise UsageError(
        f"no tracked file matches {quote(word[:80])}",
        hints=(f"a new file of that name: git claim {shell_word(':(literal)' + word)}",),
    )


def _exists(word: str) -> bool:
    try:
        lstat(word)
        return True
    except (OSError, ValueError):
        return False


def _below_top(repo: Repo, word: str) -> str:
    if not word.startswith("/"):
        return repo.prefix + word
    top = repo.worktree
    if not top:
        raise UsageError(f"{quote(word[:80])} is absolute, and this repository has no work tree")
    base = top.rstrip("/")
    if word == top or word.startswith(base + "/"):
        return word[len(base) + 1 :] or ROOT
    # The path may lead to the work tree through a symbolic link.
    end = len(word)
    inside = ""
    while end > 0:
        if same_file(word[:end] or "/", top):
            inside = word[end + 1 :] or ROOT
        end = word.rfind("/", 0, end)
    if inside:
        return inside
    raise UsageError(
        f"{quote(word[:80])} is outside the repository",
        hints=("give a path inside this work tree; each repository has its own claims",),
    )


def _as_tracked(repo: Repo, path: str) -> str:
    """The path as git tracks it: one below a linked directory is a path where the link leads. UsageError where git tracks nothing
    there: outside of the work tree, or in a submodule."""
    here = repo.worktree
    for part in path.split("/")[:-1] if here else ():
        here += "/" + part
        try:
            if is_symlink(lstat(here)) or _exists(f"{here}/.git"):
                return _where_it_leads(repo, path, here[len(repo.worktree) + 1 :])
        except (OSError, ValueError):
            break
    return path


def _where_it_leads(repo: Repo, path: str, above: str) -> str:
    from gitcoord.git.locate import locate, resolve

    try:
        place = locate(resolve(f"{repo.worktree}/{path}", last=False))
    except OSError:
        raise UsageError(f"{quote(path[:80])} leads nowhere: a symbolic link above it leads to itself") from None
    if place.top and not place.inner and same_file(place.top, repo.worktree):
        return place.path
    if place.top and same_file(place.top, f"{repo.worktree}/{above}"):
        raise InSubmodule(
            f"{quote(path[:80])} is in the submodule or repository {quote(above)}, which has claims of its own",
            hints=(
                f"claim it as a whole: git claim {shell_word(':/' + above)}",
                f"claim the file in there, where gitcoord is set up: git -C {shell_word(above)} claim {shell_word(path[len(above) + 1 :])}",
            ),
        )
    raise UsageError(f"{quote(path[:80])} leads out of the work tree through a symbolic link")


def _glob(repo: Repo, word: str) -> list[Item]:
    from gitcoord.git.commands.worktrees import ls_files

    answer = ls_files(repo.env, word)
    if answer.code:
        raise UsageError(answer.complaint)
    return [Item("path", check_path(name)) for name in answer.entries]

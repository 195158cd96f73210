"""The agent tools in `git coord setup` and `teardown`: choosing them, printing the changes and the problems."""

from __future__ import annotations

import os

from gitcoord.base.errors import UsageError
from gitcoord.base.names import printable
from gitcoord.guard.setup.known import KNOWN, Known
from gitcoord.guard.setup.plan import SetupChange, SetupPlace, in_use
from gitcoord.terminal.call import Call

_TITLES = {known.name: known.title for known in KNOWN}


def place_of(call: Call, *, user: bool) -> SetupPlace:
    return SetupPlace(call.ctx.repo.worktree, os.environ, user)


def places(call: Call, *, user: bool) -> list[SetupPlace]:
    """The project, and with `user` the person's own settings, which serve other projects too."""
    return [place_of(call, user=False), *([place_of(call, user=True)] if user else [])]


def chosen(names: list[str], place: SetupPlace, *, no_tools: bool) -> list[Known]:
    """The tools that were named; otherwise those in use."""
    if no_tools and (names or place.user):
        raise UsageError("--no-tools goes with neither --tool nor --user")
    unknown = [name for name in names if name not in _TITLES]
    if unknown:
        raise UsageError(f"no agent tool is called '{printable(unknown[0])}'", hints=(f"known: {', '.join(_TITLES)}",))
    if names:
        return [known for known in KNOWN if known.name in names]
    return [] if no_tools else in_use(place)


_VERBS = {
    ("hooks", "written"): "write {file} with the hooks of {tool}",
    ("hooks", "changed"): "add the hooks of {tool} to {file}",
    ("instructions", "changed"): "add a section to {file}",
}


def lines(changes: list[SetupChange]) -> list[str]:
    """One line for each file that setup will change."""
    rows = [change for change in changes if change.action in ("written", "changed")]
    return [
        _VERBS.get((change.what, change.action), "write {file}").format(
            file=printable(change.shown), tool=_TITLES[change.tool]
        )
        for change in rows
    ]


def ready(changes: list[SetupChange]) -> bool:
    return bool(changes) and all(change.action == "unchanged" for change in changes)


def of_project(changes: list[SetupChange], place: SetupPlace) -> list[str]:
    """The files of the project that have gitcoord's part."""
    return [] if place.user else [change.shown for change in changes if not change.problem]


def leaving(changes: list[SetupChange]) -> list[str]:
    """One line for each file that teardown will change."""
    words = {"removed": "remove", "changed": "take the part of gitcoord out of"}
    return [f"{words[change.action]} {printable(change.shown)}" for change in changes if change.action in words]


def tell_problems(call: Call, changes: list[SetupChange], *, snippets: bool) -> None:
    """Print the files that were not changed and why, with text that a person can add by hand."""
    for change in changes:
        if not change.problem:
            continue
        call.screen.note(f"note: {printable(change.shown)} was left as it is: {printable(change.problem)}")
        if snippets and change.snippet:
            call.screen.note("  to add by hand:", *("  " + line for line in change.snippet.rstrip("\n").split("\n")))


def tell(call: Call, tools: list[Known], changes: list[SetupChange], *, user: bool) -> None:
    """Print the steps left to a person: edits by hand, trusting new hooks in the tool, the effect of committing them."""
    tell_problems(call, changes, snippets=True)
    hooked = {change.tool for change in changes if change.what == "hooks" and change.action in ("written", "changed")}
    if hooked and not user:
        call.screen.hint(
            "committed, the hooks of the agent tools are for all who clone this; without gitcoord they do nothing",
            "to have them in your own settings instead, for all your projects: git coord setup --user",
        )
    notes = [known.own_note if user else known.note for known in tools if known.name in hooked]
    call.screen.hint(*filter(None, notes))

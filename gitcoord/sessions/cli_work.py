"""The part of `git coord start` that says how work goes in this project: commands to copy, with the project's own names."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.names import printable, shell_word

_SHOWN = 5
_OWN = "gitcoord's own files"


def work_lines(result: Record, remote: str, most: int = _SHOWN) -> list[str]:
    """The commands of one piece of work, from the claim to the end; `most` of one kind have a line of their own. `remote`: the one that decides."""
    project = result["project"]
    trunk = printable(project["trunk"])
    rows = [("git coord task next", "your next task, with its claims")] if result["tasks"] else []
    rows.append((_new_branch(remote, project["trunk"]), f"work lands on '{trunk}' from a branch of yours"))
    rows.append(
        (
            'git claim <path> -m "why"',
            f"before you change what is shared: {_listed(project['shared'])}{', ' * bool(project['shared'])}{_OWN}; the rest is free",
        )
    )
    most = min(_SHOWN, max(1, most))
    for sequence in project["sequences"][:most]:
        rows.append(
            (
                f"git coord number {shell_word(sequence['name'])}",
                f"a number of your own for {printable(sequence['pattern']) or 'it'}; --file {_example(sequence['pattern'])} claims its file too",
            )
        )
    more = [sequence["name"] for sequence in project["sequences"][most:]]
    rows += [("git coord number <sequence>", f"the others: {_listed(more)}")] if more else []
    rows.append(('git coord commit -m "..." -- <file>...', "exactly your files, whatever others have staged"))
    check = f", after {printable(project['checks'][0])}" if project["checks"] else ""
    task = " --task <id>" if result["tasks"] or result["interrupted"]["tasks"] else ""
    ends = "; it releases your claims" + (", and the task is done" if task else "")
    rows.append((f"git coord land{task}", f"your branch onto '{trunk}'{check}{ends}"))
    if project["landing"]:
        rows.append(("", f"it claims {_listed(project['landing'])} itself: change these freely on your branch"))
    if project["renumbered"]:
        rows.append(
            ("", f"it gives new files of {_listed(project['renumbered'])} their numbers: take any that is free here")
        )
    rows.append(
        (
            "git coord land --continue",
            "where it conflicts with what landed before: correct the files, git add, then this",
        )
    )
    rows.append(("git claim release <path>", "what has landed otherwise, or what you did not change"))
    for target in project["targets"][:most]:
        rows.append((f"git coord deploy {shell_word(target)} -- <command>", "one at a time, never from a stale copy"))
    more = project["targets"][most:]
    rows += [("git coord deploy <target> -- <command>", f"the others: {_listed(more)}")] if more else []
    if project["resources"]:
        rows.append(("git claim @<resource>", f"before you use it: {_listed(project['resources'])}"))
    rows.append(("git handoff new, git coord stop", "when you stop; a handoff only for unfinished work"))
    width = max(len(command) for command, _ in rows)
    return ["how work goes here:", *(f"  {command.ljust(width)}  {words}" for command, words in rows)]


def _new_branch(remote: str, trunk: str) -> str:
    """The command that begins a branch at trunk as it is now."""
    if not remote:
        return f"git switch -c <branch> {shell_word(trunk)}"
    there = shell_word(f"{remote}/{trunk}")
    return f"git fetch -q {shell_word(remote)} && git switch --no-track -c <branch> {there}"


def _example(pattern: str) -> str:
    """A name for `--file` of a sequence with these patterns: in its directory, with its ending."""
    place, slash, name = pattern.partition(", ")[0].rpartition("/")
    place = "<directory>" if set(place) & set("*?[\\") else place
    between = "-" if "-" in name.replace("[0-9]", "") else "_"
    dot, ending = ("", "") if name.endswith("*") else name.rpartition(".")[1:]
    return shell_word(f"{place}{slash}{{n}}{between}<name>{dot}{ending}")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return printable(", ".join(names[:_SHOWN])) + more

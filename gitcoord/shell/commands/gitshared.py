"""git's commands that change the index or HEAD of a work tree, which all agents in it share."""

from __future__ import annotations

from gitcoord.shell.commands.gitpaths import behind, each, is_file
from gitcoord.shell.effects import CAREFUL, COMMIT, HOOK, STAGE, SWITCH
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import Given
from gitcoord.shell.state import Arg

_ENDS = ("--abort", "--quit", "-h", "--help")
_GOES_ON = ("--abort", "--continue", "--skip", "--quit", "--show-current-patch", "--edit-todo", "-h", "--help")


def stage(run: Run, args: list[Arg], detail: str) -> None:
    """Record the files and directories that these pathspecs name."""

    def tell(arg: Arg, detail: str) -> None:
        for path in run.resolve(arg):
            run.record(STAGE, path, arg.raw, detail)

    each(run, args, detail, tell, new=True)


def _here(run: Run, kind: str, word: str, detail: str) -> None:
    for cwd in run.state.cwds:
        run.record(kind, run.fs.top(cwd) or cwd, word, detail)


def hooked(run: Run, call: Call, name: str, given: Given) -> None:
    """Record that git's hooks judge the command."""
    if not given.has("--dry-run", *_ENDS):
        _here(run, HOOK, call.raw, f"git {name} is judged by git's hooks")


def _add(run: Run, call: Call, given: Given) -> None:
    if given.has("-n", "--dry-run", "--refresh", "-h", "--help"):
        return
    stage(run, given.operands, "git add stages it")
    if not given.operands and given.has("-A", "--all", "-u", "--update", "--pathspec-from-file"):
        _here(run, STAGE, call.raw, "git add stages all changes")


def _commit(run: Run, call: Call, given: Given) -> None:
    if given.has("--dry-run", "-h", "--help"):
        return
    stage(run, given.operands, "git commit takes it")
    if given.has("-a", "--all", "--pathspec-from-file"):
        _here(run, STAGE, call.raw, "git commit takes all changes")
    if not given.operands or given.has("-i", "--include"):
        _here(run, COMMIT, call.raw, "git commit takes what is staged")


def _checkout(run: Run, call: Call, given: Given) -> None:
    made = given.has("-b", "-B", "--orphan")
    named = [] if behind(call) else given.operands
    if made or len(named) == 1 and not is_file(run, named[0]) and not given.has("-p", "--patch"):
        _here(run, SWITCH, call.raw, "git checkout moves HEAD")


def _switch(run: Run, call: Call, given: Given) -> None:
    if not given.has("-h", "--help"):
        _here(run, SWITCH, call.raw, "git switch moves HEAD")


def _rebase(run: Run, call: Call, given: Given) -> None:
    if not given.has(*_GOES_ON):
        _here(run, SWITCH, call.raw, "git rebase moves HEAD")


def _merge(run: Run, call: Call, given: Given) -> None:
    """git stops before it overwrites uncommitted changes; not where it stashes them first, or resets."""
    if not given.has("--autostash", "--abort", "--quit", "--skip"):
        _here(run, CAREFUL, call.raw, "git leaves files with uncommitted changes alone")


VERBS = {
    "merge": _merge,
    "pull": _merge,
    "cherry-pick": _merge,
    "revert": _merge,
    "add": _add,
    "stage": _add,
    "commit": _commit,
    "checkout": _checkout,
    "switch": _switch,
    "rebase": _rebase,
}

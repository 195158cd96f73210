"""git's commands on refs and settings: which of them touch what only gitcoord moves."""

from __future__ import annotations

from gitcoord.shell import bypass
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import Given


def _branch(run: Run, call: Call, name: str, given: Given) -> None:
    moves = given.has("-d", "-D", "-m", "-M", "-f", "-c", "-C", "--delete", "--move", "--force", "--copy")
    if moves and any(bypass.is_own_ref(arg.text) for arg in given.operands):
        run.bypass(call.raw, "moves or deletes the ledger by hand")
    elif moves and not all(arg.known for arg in given.operands):
        run.unknown(call.raw, "moves or deletes a branch that cannot be told")


def _update_ref(run: Run, call: Call, name: str, given: Given) -> None:
    changes = name == "update-ref" or len(given.operands) > 1 or given.has("-d", "--delete")
    if changes and any(bypass.is_own_ref(arg.text) for arg in given.operands):
        run.bypass(call.raw, "moves refs that only gitcoord moves")
    elif changes and (given.has("--stdin") or not all(arg.known for arg in given.operands)):
        run.unknown(call.raw, "moves refs that cannot be told")


def _replace(run: Run, call: Call, name: str, given: Given) -> None:
    if given.operands and not given.has("-l", "--list"):
        run.bypass(call.raw, "makes git show other objects than there are")


def _read_tree(run: Run, call: Call, name: str, given: Given) -> None:
    if given.has("-u", "--reset"):
        run.unknown_worktree(call.raw, "git read-tree changes files of the work tree")


def _init(run: Run, call: Call, name: str, given: Given) -> None:
    if given.has("--template", "--separate-git-dir"):
        run.bypass(call.raw, "sends git to other settings or files than the hooks watch")
    for arg in given.operands[:1]:
        run.make_directory(arg, "git init makes the directory")


_LOOKS = ("--get", "--get-all", "--get-regexp", "--get-urlmatch", "-l", "--list", "--get-color", "--get-colorbool")


def _config(run: Run, call: Call, name: str, given: Given) -> None:
    operands = given.operands
    if not given.has(*_LOOKS) and len(operands) > 1:
        run.write_all(given.values("-f", "--file"), "git config writes it")
    if given.has(*_LOOKS) or operands and operands[0].text in ("get", "list"):
        return
    if given.has("-e", "--edit") or operands and operands[0].text == "edit":
        run.unknown(call.raw, "git's settings are edited by hand")
        return
    verbs = ("set", "unset", "rename-section", "remove-section")
    if operands and operands[0].text in verbs:
        operands = operands[1:]
        changes = True
    else:
        changes = len(operands) > 1 or given.has(
            "--unset", "--unset-all", "--remove-section", "--rename-section", "--add", "--replace-all"
        )
    for arg in operands[:1] if changes else []:
        shown = f"git config {arg.raw}"
        bypass.setting(run, arg.text if "." in arg.text else arg.text + ".", shown)
        if arg.text.lower().startswith("alias."):
            bypass.alias(run, " ".join(other.text for other in operands[1:]), shown)
            if any(other.text.startswith("!") for other in operands[1:]):
                run.unknown(shown, "an alias of git that runs a command")
        if not arg.known:
            run.unknown(shown, "changes a setting of git that cannot be told")


def _push(run: Run, call: Call, name: str, given: Given) -> None:
    if name != "fetch" and given.has("--mirror"):
        run.bypass(call.raw, "overwrites the other side's refs, the ledger and claims with them")
    deletes = given.has("-d", "--delete")
    for arg in given.operands[1:]:
        source, colon, target = arg.text.removeprefix("+").partition(":")
        ref = target if colon else "" if name == "fetch" else source
        wide = ref in ("refs/*", "refs/heads/*", "*")
        forced = arg.text.startswith("+") or given.has("-f", "--force", "--prune", "--delete") or name == "fetch"
        if ref and bypass.is_own_ref(ref) and (not wide or forced):
            run.bypass(call.raw, "moves refs that only gitcoord moves")
        elif not arg.known and (deletes or forced):
            run.unknown(call.raw, "moves refs that cannot be told")
    if name != "fetch" and given.has("--prune") and len(given.operands) < 2:
        run.bypass(call.raw, "deletes refs of the other side that are not here")


VERBS = {
    "branch": _branch, "config": _config, "fetch": _push, "init": _init, "push": _push, "read-tree": _read_tree, "replace": _replace,
    "send-pack": _push, "symbolic-ref": _update_ref, "update-ref": _update_ref,
}  # fmt: skip

"""git: files of the work tree, refs and settings that its commands change; bypasses of its hooks; gitcoord's own commands."""

from __future__ import annotations

from gitcoord.shell import bypass
from gitcoord.shell.commands import gitpaths, gitshared
from gitcoord.shell.commands.builtins import change_directory
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import Given, parse
from gitcoord.shell.state import Arg

# Global options with a value.
_GLOBAL = "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env --attr-source"

# They change whichever files of the work tree differ.
_WHOLE = {
    "merge": "", "rebase": "", "pull": "", "am": "", "cherry-pick": "", "revert": "", "bisect": "", "subtree": "",
    "sparse-checkout": "list", "filter-branch": "", "filter-repo": "", "submodule": "status summary", "lfs": "ls-files "
    "status env track untrack locks lock unlock install version", "quiltimport": "", "checkout-index": "", "merge-file": "",
    "fast-import": "", "p4": "", "svn": "log info",
}  # fmt: skip
_JUDGED = ("commit", "merge", "push", "am", "rebase", "pull", "cherry-pick", "revert", "send-pack", "update-ref")
_HOOKED = ("commit", "merge", "push", "am", "rebase", "pull")
_VALUED = {
    "commit": "-m -F -C -c -t --message --file --author --date --reuse-message --reedit-message --template --fixup --squash --trailer "
    "--cleanup --pathspec-from-file",
    "push": "-o --push-option --repo --receive-pack --exec --recurse-submodules",
    "checkout": "-b -B --orphan --conflict --pathspec-from-file",
    "switch": "-c -C --create --force-create --orphan --conflict",
    "restore": "-s --source --conflict --pathspec-from-file",
    "branch": "-u --set-upstream-to --sort --format --contains --no-contains --merged --no-merged --points-at --color --column",
    "reset": "--pathspec-from-file", "clean": "-e --exclude", "stash": "-m --message --pathspec-from-file",
    "clone": "-b -o -j -u -c --branch --origin --depth --config --reference --template --jobs --filter --upload-pack "
    "--separate-git-dir --shallow-since",
    "archive": "-o --output --format --prefix --remote", "format-patch": "-o --output-directory -v --subject-prefix --to --cc --base",
    "apply": "-p -C --directory --exclude --include --build-fake-ancestor --whitespace", "worktree": "-b -B --reason --expire",
    "config": "-f --file --blob --default --type", "merge": "-m -F -s -X --strategy --strategy-option --message --file",
    "init": "-b --initial-branch --object-format --ref-format",
    "mv": "", "rm": "--pathspec-from-file", "show": "--format --pretty -n --output", "diff": "-S -G -O --output -U --stat",
    "log": "-n -S -G -L --format --pretty --since --until --author --grep --output", "bundle": "", "update-ref": "-m",
    "fetch": "-o -j --depth --upload-pack --refmap --filter --jobs", "symbolic-ref": "-m", "add": "--chmod --pathspec-from-file",
    "stage": "--chmod --pathspec-from-file", "rebase": "-s -X -x -C --onto --strategy --strategy-option --exec",
    "grep": "-e -f -A -B -C -m -O --max-depth --threads --open-files-in-pager", "blame": "-L -S --contents --date --since",
    "annotate": "-L -S --contents --date --since",
}  # fmt: skip


def perform(run: Run, call: Call) -> None:
    if call.name == "gh":
        if [arg.text for arg in call.args[:2]] == ["pr", "checkout"]:
            run.unknown_worktree(call.raw, "gh pr checkout changes the work tree")
    elif call.name != "git":
        _own(run, call.name.removeprefix("git-"), call.args)
    else:
        run.apart(lambda: _git(run, call))


def _git(run: Run, call: Call) -> None:
    args = _globals(run, call.args)
    if args:
        _verb(run, call, args[0], args[1:])


def _globals(run: Run, args: list[Arg]) -> list[Arg]:
    """The words behind git's own options, which are applied."""
    while args and args[0].text.startswith("-"):
        name, equals, text = args[0].text.partition("=")
        value = args[0]._replace(text=text) if equals else args[1] if len(args) > 1 else None
        if name == "-C" and value is not None:
            change_directory(run, value)
        elif name in ("-c", "--config-env") and value is not None:
            bypass.setting(run, value.text, f"{name} {value.raw}" if not equals else args[0].raw)
            if value.text.lower().startswith("alias."):
                bypass.alias(run, value.text, value.raw)
                run.unknown(value.raw, "an alias of git runs a command")
        elif name in ("--git-dir", "--work-tree", "--namespace", "--exec-path") and value is not None:
            if name != "--exec-path" or equals:
                run.bypass(args[0].raw, "sends git to other settings or files than the hooks watch")
        valued = name in _GLOBAL.split() and not equals and name != "--exec-path"
        args = args[2:] if valued else args[1:]
    return args


def _verb(run: Run, call: Call, verb: Arg, args: list[Arg]) -> None:
    name = verb.text
    if not verb.known:
        run.unknown(verb.raw, "runs a command of git that cannot be told")
        return
    given = parse(args, _VALUED.get(name, ""))
    _unhooked(run, name, given)
    if name in _JUDGED:
        gitshared.hooked(run, call, name, given)
    if name in gitshared.VERBS:
        gitshared.VERBS[name](run, call, given)
    if name in ("claim", "coord", "handoff"):
        _own(run, name, args)
    elif name in _WHOLE:
        verbs = _WHOLE[name].split()
        if not (given.operands and given.operands[0].text in verbs) and not given.has("--help", "-h"):
            run.unknown_worktree(call.raw, f"git {name} changes files of the work tree")
    elif name in gitpaths.VERBS:
        gitpaths.VERBS[name](run, call, given)
    elif name in _REFS:
        _REFS[name](run, call, name, given)
    elif name not in _QUIET:
        run.unknown(f"git {name}", f"what 'git {name}' does is not known")


def _unhooked(run: Run, name: str, given: Given) -> None:
    for option, value in given.options:
        short = option == "-n" and name == "commit"
        long = value is None and option.startswith("--no-ver") and "--no-verify".startswith(option)
        if name in _HOOKED and (short or long):
            run.bypass(f"git {name} {option}", "skips the hooks")


def _own(run: Run, program: str, args: list[Arg]) -> None:
    verbs = [arg.text for arg in args if not arg.text.startswith("-")]
    shown = f"git {program} {' '.join(verbs[:2])}".strip()
    if program == "claim" and verbs[:1] == ["takeover"]:
        run.bypass(shown, "takes a claim away from its holder")
    elif program == "coord" and (
        verbs[:1] in (["uninstall-hooks"], ["teardown"]) or verbs[:2] == ["server", "uninstall"]
    ):
        run.bypass(shown, "takes gitcoord's gates away")
    elif program == "coord" and verbs[:1] == ["commit"]:
        gitshared.stage(run, parse(args, "-m -F --message --file --trailer").operands[1:], "git coord commit takes it")
    elif program == "coord" and verbs[:1] == ["run"]:
        rest = args[next((i for i, arg in enumerate(args) if arg.text == "--"), len(args) - 1) + 1 :]
        if rest:
            run.call(Call(rest[0].text, rest[1:], shown), rest[0])


# --- refs and settings: what only gitcoord moves, and what the hooks depend on ------------------------------------------


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


_REFS = {
    "branch": _branch, "config": _config, "fetch": _push, "init": _init, "push": _push, "read-tree": _read_tree, "replace": _replace,
    "send-pack": _push, "symbolic-ref": _update_ref, "update-ref": _update_ref,
}  # fmt: skip
# They change no file of the work tree; what they commit is judged by the hooks.
_QUIET = frozenset(
    """
add stage commit status tag pack-refs for-each-ref rev-list describe ls-tree ls-remote remote reflog shortlog name-rev merge-base
whatchanged help version var check-attr check-ignore check-mailmap count-objects fsck show-ref show-branch diff-tree diff-index
diff-files range-diff cherry notes gc maintenance repack prune prune-packed hash-object commit-tree mktree write-tree mktag
verify-commit verify-tag verify-pack interpret-trailers patch-id stripspace column credential merge-tree update-index rerere
difftool mergetool instaweb request-pull send-email bugreport diagnose hook daemon upload-pack receive-pack update-server-info
index-pack unpack-objects pack-objects fetch-pack multi-pack-index commit-graph get-tar-commit-id sh-i18n citool gui gitk
for-each-repo show-index sh-setup backfill last-modified --version --help
""".split()  # noqa: SIM905
)

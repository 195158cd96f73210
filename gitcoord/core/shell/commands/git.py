"""What git's commands do to the files of a work tree; ways around its hooks; gitcoord's own commands."""

from gitcoord.core.shell import bypass
from gitcoord.core.shell.options import Given, parse
from gitcoord.core.shell.paths import base_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.shell.run import Call, Run
    from gitcoord.core.shell.state import Arg

# Global options with a value.
_GLOBAL = "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env --attr-source"

# They change whichever files of the work tree differ.
_WHOLE = {
    "merge": "", "rebase": "", "pull": "", "am": "", "cherry-pick": "", "revert": "", "bisect": "", "subtree": "",
    "sparse-checkout": "list", "filter-branch": "", "filter-repo": "", "submodule": "status summary", "lfs": "ls-files "
    "status env track untrack locks lock unlock install version", "quiltimport": "", "checkout-index": "", "merge-file": "",
    "fast-import": "", "p4": "", "svn": "log info",
}  # fmt: skip
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
    "mv": "", "rm": "--pathspec-from-file", "show": "--format --pretty -n --output", "diff": "-S -G -O --output -U --stat",
    "log": "-n -S -G -L --format --pretty --since --until --author --grep --output", "bundle": "", "update-ref": "-m",
    "fetch": "-o -j --depth --upload-pack --refmap --filter --jobs", "symbolic-ref": "-m", "add": "--chmod --pathspec-from-file",
}  # fmt: skip


def perform(run: "Run", call: "Call") -> None:
    name = call.name
    if name == "gh":
        if [arg.text for arg in call.args[:2]] == ["pr", "checkout"]:
            whole(run, call.raw, "gh pr checkout changes the work tree")
        return
    args = call.args
    if name in ("git-claim", "git-coord", "git-handoff"):
        _own(run, name[4:], args)
        return
    before = run.state
    run.state = before.copy()
    args = _globals(run, args)
    if args:
        _verb(run, call, args[0], args[1:])
    run.state = before


def _globals(run: "Run", args: "list[Arg]") -> "list[Arg]":
    """Options before the command; answers the rest."""
    from gitcoord.core.shell.commands.builtins import goes

    while args and args[0].text.startswith("-"):
        name, equals, text = args[0].text.partition("=")
        value = args[0]._replace(text=text) if equals else args[1] if len(args) > 1 else None
        if name == "-C" and value is not None:
            goes(run, value)
        elif name in ("-c", "--config-env") and value is not None:
            bypass.setting(run, value.text, f"{name} {value.raw}" if not equals else args[0].raw)
            if value.text.lower().startswith("alias."):
                run.unknown(value.raw, "an alias of git runs a command")
        elif name in ("--git-dir", "--work-tree", "--namespace", "--exec-path") and value is not None:
            if name != "--exec-path" or equals:
                run.bypass(args[0].raw, "sends git to other settings or files than the hooks watch")
        valued = name in _GLOBAL.split() and not equals and name != "--exec-path"
        args = args[2:] if valued else args[1:]
    return args


def _verb(run: "Run", call: "Call", verb: "Arg", args: "list[Arg]") -> None:
    name = verb.text
    if not verb.known:
        run.unknown(verb.raw, "runs a command of git that cannot be told")
        return
    given = parse(args, _VALUED.get(name, ""))
    _unhooked(run, name, given)
    if name in ("claim", "coord", "handoff"):
        _own(run, name, args)
    elif name in _WHOLE:
        verbs = _WHOLE[name].split()
        if not (given.operands and given.operands[0].text in verbs) and not given.has("--help", "-h"):
            whole(run, call.raw, f"git {name} changes files of the work tree")
    elif name in _REFS:
        from gitcoord.core.shell.commands import gitrefs

        gitrefs.perform(run, call, name, given)
    elif name in _PATHS:
        _PATHS[name](run, call, given)
    elif name not in _QUIET:
        run.unknown(f"git {name}", f"what 'git {name}' does is not known")


def _unhooked(run: "Run", name: str, given: Given) -> None:
    for option, value in given.options:
        short = option == "-n" and name == "commit"
        long = value is None and option.startswith("--no-ver") and "--no-verify".startswith(option)
        if name in _HOOKED and (short or long):
            run.bypass(f"git {name} {option}", "skips the hooks")


def whole(run: "Run", word: str, detail: str) -> None:
    """Some files of the work tree, nobody can say which."""
    for cwd in run.state.cwds or ("",):
        run.unknown(word, detail, (run.look.top(cwd) or cwd) if cwd else "")


def _own(run: "Run", program: str, args: "list[Arg]") -> None:
    verbs = [arg.text for arg in args if not arg.text.startswith("-")]
    shown = f"git {program} {' '.join(verbs[:2])}".strip()
    if program == "claim" and verbs[:1] == ["takeover"]:
        run.bypass(shown, "takes a claim away from whoever holds it")
    elif program == "coord" and (verbs[:1] in (["uninstall-hooks"], ["teardown"]) or verbs[:2] == ["server", "uninstall"]):
        run.bypass(shown, "takes gitcoord's gates away")
    elif program == "coord" and verbs[:1] == ["run"]:
        rest = args[next((i for i, arg in enumerate(args) if arg.text == "--"), len(args) - 1) + 1 :]
        if rest:
            from gitcoord.core.shell.run import Call

            run.call(Call(rest[0].text, rest[1:], shown), rest[0])


# --- commands that name paths ----------------------------------------------------------------------------------------


def _write_all(run: "Run", args: "list[Arg]", detail: str) -> None:
    for arg in args:
        run.write(arg, detail)


def _checkout(run: "Run", call: "Call", given: Given) -> None:
    words = [arg.text for arg in call.args]
    if "--" in words:
        after = call.args[words.index("--") + 1 :]
        if after:
            _write_all(run, after, "git checkout writes it")
            return
    operands = given.operands
    made = given.has("-b", "--orphan", "-B")
    for arg in given.values("-B"):
        if bypass.is_own_ref(arg.text):
            run.bypass(call.raw, "moves the ledger by hand")
    if made and not operands or given.has("-h", "--help"):
        return
    if len(operands) == 1 and not made and _is_file(run, operands[0]):
        _write_all(run, operands, "git checkout writes it")
    elif len(operands) > 1 and not made:
        _write_all(run, operands[1:], "git checkout writes it")
    elif given.has("-p", "--patch") or operands or given.has("-f", "--force"):
        whole(run, call.raw, "git checkout changes files of the work tree")


def _is_file(run: "Run", arg: "Arg") -> bool:
    return arg.text in (".", "..") or any(map(run.look.exists, run.resolve(arg)))


def _switch(run: "Run", call: "Call", given: Given) -> None:
    made = given.values("-c", "-C", "--create", "--force-create", "--orphan")
    if given.has("-C", "--force-create") and any(bypass.is_own_ref(arg.text) for arg in made):
        run.bypass(call.raw, "moves the ledger by hand")
    if not made or given.operands:
        whole(run, call.raw, "git switch changes files of the work tree")


def _restore(run: "Run", call: "Call", given: Given) -> None:
    if given.has("-S", "--staged") and not given.has("-W", "--worktree"):
        return
    _write_all(run, given.operands, "git restore writes it")
    if given.has("--pathspec-from-file", "-p", "--patch") and not given.operands:
        whole(run, call.raw, "git restore changes files of the work tree")


def _reset(run: "Run", call: "Call", given: Given) -> None:
    if given.has("--hard", "--merge", "--keep"):
        whole(run, call.raw, "git reset changes files of the work tree")


def _stash(run: "Run", call: "Call", given: Given) -> None:
    verb = given.operands[0].text if given.operands else "push"
    if verb in ("list", "show", "drop", "clear", "create", "store"):
        return
    paths = given.operands[1:] if verb == "push" else []
    _write_all(run, paths, "git stash takes its changes away")
    if not paths:
        whole(run, call.raw, f"git stash {verb} changes files of the work tree")


def _clean(run: "Run", call: "Call", given: Given) -> None:
    if given.has("-n", "--dry-run"):
        return
    for arg in given.operands:
        for path in run.resolve(arg) or arg.below or ("",):
            run.unknown(call.raw, "git clean deletes files there that are not tracked", path)
    if not given.operands:
        run.here(call.raw, "git clean deletes files that are not tracked")


def _remove(run: "Run", call: "Call", given: Given) -> None:
    if not given.has("--cached", "-n", "--dry-run"):
        for arg in given.operands:
            run.delete(arg, "git rm deletes it")


def _move(run: "Run", call: "Call", given: Given) -> None:
    from gitcoord.core.shell.commands.files import perform as files

    if not given.has("-n", "--dry-run"):
        files(run, call._replace(name="mv", args=given.operands))


def _apply(run: "Run", call: "Call", given: Given) -> None:
    for arg in given.operands:
        if arg.text != "-":
            run.read(arg, "git apply reads it")
    looks = given.has("--check", "--stat", "--numstat", "--summary", "--cached")
    if not looks or given.has("--apply"):
        whole(run, call.raw, "git apply changes the files that the patch names")


def _archive(run: "Run", call: "Call", given: Given) -> None:
    for arg in given.values("-o", "--output", "--output-directory"):
        run.write(arg, "git writes it")
    if given.operands and "bundle" in call.raw and given.operands[0].text == "create":
        _write_all(run, given.operands[1:2], "git bundle writes it")


def _format_patch(run: "Run", call: "Call", given: Given) -> None:
    places = given.values("-o", "--output-directory")
    for arg in places:
        run.write(arg, "git format-patch writes files there")
    if not places and not given.has("--stdout"):
        run.here(call.raw, "git format-patch writes files here")


def _clone(run: "Run", call: "Call", given: Given) -> None:
    for arg in given.values("-c", "--config"):
        bypass.setting(run, arg.text, f"-c {arg.raw}")
    if len(given.operands) == 1:
        arg = given.operands[0]
        name = base_name(arg.text.rstrip("/").removesuffix(".git").rstrip("/").replace(":", "/"))
        run.write(arg._replace(text=name) if arg.known else arg, "git clone makes the directory")
        run.made.update(run.resolve(arg._replace(text=name)))
    else:
        _write_all(run, given.operands[1:2], "git clone makes the directory")
        run.made.update(path for arg in given.operands[1:2] for path in run.resolve(arg))


def _worktree(run: "Run", call: "Call", given: Given) -> None:
    verb = given.operands[0].text if given.operands else ""
    if verb == "add":
        _write_all(run, given.operands[1:2], "git worktree add makes the directory")
        run.made.update(path for arg in given.operands[1:2] for path in run.resolve(arg))
    elif verb in ("remove", "move"):
        for arg in given.operands[1:2]:
            run.delete(arg, f"git worktree {verb} takes it away")
        _write_all(run, given.operands[2:3] if verb == "move" else [], "git worktree move makes it")


def _show(run: "Run", call: "Call", given: Given) -> None:
    """`git show HEAD:path` prints a file's content."""
    for arg in given.values("--output"):
        run.write(arg, "git writes it")
    for arg in given.operands:
        revision, colon, path = arg.text.partition(":")
        if colon and revision and path and arg.known:
            top = next((run.look.top(cwd) for cwd in run.state.cwds), "")
            whole_path = path if path.startswith("./") or not top else f"{top}/{path}"
            run.read(arg._replace(text=whole_path), "git prints its content")


def _rev_parse(run: "Run", call: "Call", given: Given) -> None:
    from gitcoord.core.shell.state import value_of

    tops = tuple(filter(None, map(run.look.top, run.state.cwds)))
    if given.has("--show-toplevel") and tops:
        run.output = value_of(*dict.fromkeys(tops))
    elif given.has("--git-dir", "--git-common-dir", "--absolute-git-dir") and tops:
        run.output = value_of(*(f"{top}/.git" for top in dict.fromkeys(tops)))


def _ls_files(run: "Run", call: "Call", given: Given) -> None:
    from gitcoord.core.shell.state import Value

    # Names of tracked files, from where it runs or, of diff, from the top.
    tops = tuple(filter(None, (run.look.top(cwd) or cwd for cwd in run.state.cwds)))
    run.output = Value((), run.state.cwds if call.raw.find("ls-files") >= 0 else tops)
    for arg in given.values("--output"):
        run.write(arg, "git writes it")


_PATHS = {
    "checkout": _checkout, "switch": _switch, "restore": _restore, "reset": _reset, "stash": _stash, "clean": _clean, "rm": _remove,
    "mv": _move, "apply": _apply, "archive": _archive, "bundle": _archive, "format-patch": _format_patch, "clone": _clone,
    "worktree": _worktree, "show": _show, "cat-file": _show, "rev-parse": _rev_parse, "ls-files": _ls_files, "diff": _ls_files,
    "log": _show,
}  # fmt: skip
_REFS = ("update-ref", "symbolic-ref", "branch", "push", "fetch", "config", "replace", "read-tree", "for-each-ref", "tag", "pack-refs",
         "send-pack", "init")  # fmt: skip
# They change no file of the work tree; what they commit is judged by the hooks.
_QUIET = frozenset(
    """
add commit status rev-list describe blame annotate ls-tree ls-remote remote reflog shortlog name-rev merge-base grep
whatchanged help version var check-attr check-ignore check-mailmap count-objects fsck show-ref show-branch diff-tree diff-index
diff-files range-diff cherry notes gc maintenance repack prune prune-packed hash-object commit-tree mktree write-tree mktag
verify-commit verify-tag verify-pack interpret-trailers patch-id stripspace column credential merge-tree update-index rerere
difftool mergetool instaweb request-pull send-email bugreport diagnose hook daemon upload-pack receive-pack update-server-info
index-pack unpack-objects pack-objects fetch-pack multi-pack-index commit-graph get-tar-commit-id sh-i18n citool gui gitk
for-each-repo show-index sh-setup cherry backfill last-modified --version --help
""".split()
)

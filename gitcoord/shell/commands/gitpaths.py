"""git's commands that change files of the work tree, or print what is in them: which files."""

from __future__ import annotations

from gitcoord.shell import bypass, glob
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import Given
from gitcoord.shell.paths import base_name
from gitcoord.shell.state import Arg, Value, value_of
from gitcoord.startup.annotations import Callable


def _each(run: Run, args: list[Arg], detail: str, tell: Callable[[Arg, str], None] | None = None) -> None:
    """Record each pathspec, as a write or as `tell` does. git expands quoted patterns too, and a '*' matches slashes."""
    tell = tell or run.write
    only_left_out = bool(args)
    for arg in args:
        magic, path = pathspec(arg.text) if arg.known else ((), arg.text)
        if "exclude" in magic:
            continue
        only_left_out = False
        if "top" in magic:
            path = f"{next((run.fs.top(cwd) for cwd in run.state.cwds), '') or '.'}/{path}"
        spelled = arg._replace(text=path or ".")
        vague = "icase" in magic or any(word.startswith("attr") for word in magic)
        if not arg.known or not vague and (not glob.is_pattern(path) or "literal" in magic):
            tell(spelled, detail)
            continue
        for one in dict.fromkeys((path, path.replace("**/", ""))) if not vague else ():
            for cwd in run.state.cwds:
                for name in (one, *(glob.find(one, cwd, run.listing) or ())):
                    if any(map(run.fs.exists, run.resolve(spelled._replace(text=name)))):
                        tell(spelled._replace(text=name), detail)
        run.unknown_write(
            spelled._replace(below=run.resolve(spelled._replace(text=glob.fixed_part(path) or "."))), detail
        )
    if only_left_out:
        run.unknown_worktree(args[0].raw, f"{detail}: all but what is left out")


def pathspec(text: str) -> tuple[tuple[str, ...], str]:
    """':(top,icase)a' and the short ':/a', ':!a': the words, and the path or pattern."""
    if not text.startswith(":"):
        return (), text
    if text.startswith(":("):
        words, _, path = text[2:].partition(")")
        return tuple(words.split(",")), path
    rest = text[1:].lstrip("/!^")
    marks = text[1 : len(text) - len(rest)]
    found = ("top",) * ("/" in marks or not rest) + ("exclude",) * ("!" in marks or "^" in marks)
    return found, rest.removeprefix(":")


def _checkout(run: Run, call: Call, given: Given) -> None:
    after, operands = behind(call), given.operands
    if after:
        _each(run, after, "git checkout writes it")
        return
    made = given.has("-b", "--orphan", "-B")
    for arg in given.values("-B"):
        if bypass.is_own_ref(arg.text):
            run.bypass(call.raw, "moves the ledger by hand")
    if made and not operands or given.has("-h", "--help"):
        return
    if len(operands) == 1 and not made and is_file(run, operands[0]):
        _each(run, operands, "git checkout writes it")
    elif len(operands) > 1 and not made:
        _each(run, operands[1:], "git checkout writes it")
    elif given.has("-p", "--patch") or operands or given.has("-f", "--force"):
        run.unknown_worktree(call.raw, "git checkout changes files of the work tree")


def is_file(run: Run, arg: Arg) -> bool:
    return arg.text in (".", "..") or any(map(run.fs.exists, run.resolve(arg)))


def _switch(run: Run, call: Call, given: Given) -> None:
    made = given.values("-c", "-C", "--create", "--force-create", "--orphan")
    if given.has("-C", "--force-create") and any(bypass.is_own_ref(arg.text) for arg in made):
        run.bypass(call.raw, "moves the ledger by hand")
    if not made or given.operands:
        run.unknown_worktree(call.raw, "git switch changes files of the work tree")


def _restore(run: Run, call: Call, given: Given) -> None:
    if given.has("-S", "--staged") and not given.has("-W", "--worktree"):
        return
    _each(run, given.operands, "git restore writes it")
    if given.has("--pathspec-from-file", "-p", "--patch") and not given.operands:
        run.unknown_worktree(call.raw, "git restore changes files of the work tree")


def _reset(run: Run, call: Call, given: Given) -> None:
    if given.has("--hard", "--merge", "--keep"):
        run.unknown_worktree(call.raw, "git reset changes files of the work tree")


def _stash(run: Run, call: Call, given: Given) -> None:
    verb = given.operands[0].text if given.operands else "push"
    if verb in ("list", "show", "drop", "clear", "create", "store"):
        return
    paths = given.operands[1:] if verb == "push" else []
    if verb not in ("push", "save", "apply", "pop", "branch"):
        paths = behind(call)  # `git stash -- file`
    _each(run, paths, "git stash takes its changes away")
    if not paths:
        run.unknown_worktree(call.raw, f"git stash {verb} changes files of the work tree")


def _clean(run: Run, call: Call, given: Given) -> None:
    if given.has("-n", "--dry-run"):
        return

    def record(arg: Arg, detail: str) -> None:
        for path in run.resolve(arg) or arg.below or ("",):
            run.unknown(call.raw, detail, path)

    _each(run, given.operands, "git clean deletes files there that are not tracked", record)
    if not given.operands:
        run.unknown_here(call.raw, "git clean deletes files that are not tracked")


def _remove(run: Run, call: Call, given: Given) -> None:
    if given.has("--cached", "-n", "--dry-run"):
        return
    _each(run, given.operands, "git rm deletes it", run.delete)
    if given.has("--pathspec-from-file"):
        run.unknown_worktree(call.raw, "git rm deletes files of the work tree")


def _move(run: Run, call: Call, given: Given) -> None:
    from gitcoord.shell.commands.files import perform as files

    if not given.has("-n", "--dry-run"):
        files(run, call._replace(name="mv", args=given.operands))


def _apply(run: Run, call: Call, given: Given) -> None:
    run.read_all(given.operands, "git apply reads it")
    looks = given.has("--check", "--stat", "--numstat", "--summary", "--cached")
    if not looks or given.has("--apply"):
        run.unknown_worktree(call.raw, "git apply changes the files that the patch names")


def _archive(run: Run, call: Call, given: Given) -> None:
    run.write_all(given.values("-o", "--output", "--output-directory"), "git writes it")
    if given.operands and "bundle" in call.raw and given.operands[0].text == "create":
        _each(run, given.operands[1:2], "git bundle writes it")
    elif "archive" in call.raw:
        run.read_all(given.operands[1:], "git archive packs its content")


def _format_patch(run: Run, call: Call, given: Given) -> None:
    places = given.values("-o", "--output-directory")
    run.write_all(places, "git format-patch writes files there")
    if not places and not given.has("--stdout"):
        run.unknown_here(call.raw, "git format-patch writes files here")


def _clone(run: Run, call: Call, given: Given) -> None:
    for arg in given.values("-c", "--config"):
        bypass.setting(run, arg.text, f"-c {arg.raw}")
    places = given.operands[1:2]
    for arg in given.operands if len(given.operands) == 1 else ():
        name = base_name(arg.text.rstrip("/").removesuffix(".git").rstrip("/").replace(":", "/"))
        places = [arg._replace(text=name) if arg.known else arg]
    _new_directories(run, places, "git clone makes the directory")


def _new_directories(run: Run, places: list[Arg], detail: str) -> None:
    _each(run, places, detail)
    run.made.update(path for arg in places for path in run.resolve(arg))


def _worktree(run: Run, call: Call, given: Given) -> None:
    verb = given.operands[0].text if given.operands else ""
    if verb == "add":
        if any(bypass.is_own_ref(arg.text) for arg in given.values("-B")):
            run.bypass(call.raw, "moves the ledger by hand")
        _new_directories(run, given.operands[1:2], "git worktree add makes the directory")
    elif verb in ("remove", "move"):
        for arg in given.operands[1:2]:
            run.delete(arg, f"git worktree {verb} takes it away")
        _each(run, given.operands[2:3] if verb == "move" else [], "git worktree move makes it")


def _show(run: Run, call: Call, given: Given) -> None:
    """`git show HEAD:path` prints a file's content."""
    run.write_all(given.values("--output"), "git writes it")
    for arg in given.operands:
        revision, colon, path = arg.text.partition(":")
        if colon and revision and path and arg.known:
            top = next((run.fs.top(cwd) for cwd in run.state.cwds), "")
            whole_path = path if path.startswith("./") or not top else f"{top}/{path}"
            run.read(arg._replace(text=whole_path), "git prints its content")


def _grep(run: Run, call: Call, given: Given) -> None:
    run.read_all(given.values("-f"), "git grep reads it")
    operands = given.operands if given.has("-e", "-f") else given.operands[1:]
    named = behind(call) if "--" in [arg.text for arg in call.args] else [a for a in operands if is_file(run, a)]
    _each(run, named, "git grep reads it", run.read)
    if not named and (given.operands or given.has("-e", "-f")):
        for cwd in run.state.cwds:
            run.record("read", cwd, call.raw, "git grep reads all below")


def _blame(run: Run, call: Call, given: Given) -> None:
    """The file comes last, behind a revision if there is one."""
    run.read_all(behind(call) or given.operands[-1:], "git prints its content")


def behind(call: Call) -> list[Arg]:
    """The words behind '--'."""
    words = [arg.text for arg in call.args]
    return call.args[words.index("--") + 1 :] if "--" in words else []


def _rev_parse(run: Run, call: Call, given: Given) -> None:
    tops = tuple(filter(None, map(run.fs.top, run.state.cwds)))
    if given.has("--show-toplevel") and tops:
        run.output = value_of(*dict.fromkeys(tops))
    elif given.has("--git-path") and tops and given.operands and given.operands[0].known:
        run.output = value_of(*(f"{top}/.git/{given.operands[0].text}" for top in dict.fromkeys(tops)))
    elif given.has("--git-dir", "--git-common-dir", "--absolute-git-dir") and tops:
        run.output = value_of(*(f"{top}/.git" for top in dict.fromkeys(tops)))


def _ls_files(run: Run, call: Call, given: Given) -> None:
    # Names of tracked files, from where it runs or, of diff, from the top.
    tops = tuple(filter(None, (run.fs.top(cwd) or cwd for cwd in run.state.cwds)))
    run.output = Value((), run.state.cwds if call.raw.find("ls-files") >= 0 else tops)
    run.write_all(given.values("--output"), "git writes it")
    run.read_all(given.operands if given.has("--no-index") else (), "git diff reads it")


VERBS = {
    "checkout": _checkout, "switch": _switch, "restore": _restore, "reset": _reset, "stash": _stash, "clean": _clean, "rm": _remove,
    "mv": _move, "apply": _apply, "archive": _archive, "bundle": _archive, "format-patch": _format_patch, "clone": _clone,
    "worktree": _worktree, "show": _show, "cat-file": _show, "rev-parse": _rev_parse, "ls-files": _ls_files, "diff": _ls_files,
    "log": _show, "grep": _grep, "blame": _blame, "annotate": _blame,
}  # fmt: skip

"""git's commands that change files of the work tree, or print what is in them: which files."""

from __future__ import annotations

from gitcoord.shell import bypass, glob
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import Given
from gitcoord.shell.paths import base_name
from gitcoord.shell.state import NOT_KNOWN, Arg, Value, names_of, value_of
from gitcoord.shell.walk import listed, search, searcher
from gitcoord.startup.annotations import Callable


def each(
    run: Run, args: list[Arg], detail: str, tell: Callable[[Arg, str], None] | None = None, *, new: bool = False
) -> None:
    """Record each pathspec, as a write or as `tell` does. Patterns, and words behind ':', are resolved by git. `new`: untracked files too."""
    tell = tell or run.write
    if not any(arg.known and is_special(arg.text) for arg in args):
        for arg in args:
            tell(arg, detail)
        return
    more = ["--cached", "--others", "--exclude-standard"] if new else []
    names = _git_names(run, ["ls-files", "-z", *more, "--", *_words(args)], args)
    for name in names or ():
        tell(args[0]._replace(text=name), detail)
    if names is None:
        run.unknown_worktree(args[0].raw, f"{detail}: which files cannot be told")


def is_special(text: str) -> bool:
    return text.startswith(":") or glob.is_pattern(text)


def _taken_back(run: Run, args: list[Arg], source: list[Arg], detail: str) -> None:
    """Files that become as a commit or the index has them: of directories and patterns those that differ from that."""
    whole = [arg for arg in args if arg.known and (is_special(arg.text) or any(map(run.is_dir, run.resolve(arg))))]
    words = ["diff", "--name-only", "-z", *_words(source), "--", *_words(args)]
    names = _git_names(run, words, [*source, *args]) if whole else None
    if names is None:
        each(run, args, detail)
    else:
        top = run.fs.top(run.state.cwds[0])
        run.write_all([whole[0]._replace(text=f"{top}/{name}") for name in names], detail)


def _checkout(run: Run, call: Call, given: Given) -> None:
    after, operands = behind(call), given.operands
    if after:
        source = operands[: len(operands) - len(after)]
        _taken_back(run, after, source[:1], "git checkout writes it")
        return
    made = given.has("-b", "--orphan", "-B")
    for arg in given.values("-B"):
        if bypass.is_own_ref(arg.text):
            run.bypass(call.raw, "moves the ledger by hand")
    if made and not operands or given.has("-h", "--help"):
        return
    if len(operands) == 1 and not made and is_file(run, operands[0]):
        _taken_back(run, operands, [], "git checkout writes it")
    elif len(operands) > 1 and not made:
        _taken_back(run, operands[1:], operands[:1], "git checkout writes it")
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
    source = given.values("-s", "--source") or [Arg("HEAD", call.raw)] * given.has("-S", "--staged")
    _taken_back(run, given.operands, source[:1], "git restore writes it")
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
    each(run, paths, "git stash takes its changes away")
    if not paths:
        run.unknown_worktree(call.raw, f"git stash {verb} changes files of the work tree")


def _clean(run: Run, call: Call, given: Given) -> None:
    if given.has("-n", "--dry-run"):
        return

    def record(arg: Arg, detail: str) -> None:
        for path in run.resolve(arg) or arg.below or ("",):
            run.unknown(call.raw, detail, path)

    each(run, given.operands, "git clean deletes files there that are not tracked", record)
    if not given.operands:
        run.unknown_here(call.raw, "git clean deletes files that are not tracked")


def _remove(run: Run, call: Call, given: Given) -> None:
    if given.has("--cached", "-n", "--dry-run"):
        return
    each(run, given.operands, "git rm deletes it", run.delete)
    if given.has("--pathspec-from-file"):
        run.unknown_worktree(call.raw, "git rm deletes files of the work tree")


def _move(run: Run, call: Call, given: Given) -> None:
    from gitcoord.shell.commands.files import perform as files

    if not given.has("-n", "--dry-run"):
        files(run, call._replace(name="mv", args=given.operands))


def _apply(run: Run, call: Call, given: Given) -> None:
    from gitcoord.shell.commands.text import patched

    run.read_all(given.operands, "git apply reads it")
    looks = given.has("--check", "--stat", "--numstat", "--summary", "--cached")
    if not looks or given.has("--apply"):
        tops = [Arg(top, call.raw) for top in dict.fromkeys(run.fs.top(cwd) or cwd for cwd in run.state.cwds)]
        tops = [
            tops[0]._replace(text=f"{tops[0].text}/{arg.text}") for arg in given.values("--directory") if tops
        ] or tops
        strip = next((arg.text for arg in given.values("-p") if arg.text.isdigit()), "1")
        sources = [arg for arg in given.operands if arg.text != "-"]
        patched(run, call, sources, tops[:1], strip, "git apply changes the files that the patch names")


def _archive(run: Run, call: Call, given: Given) -> None:
    from gitcoord.shell.commands.archives import packed

    run.write_all(given.values("-o", "--output", "--output-directory"), "git writes it")
    if given.operands and "bundle" in call.raw and given.operands[0].text == "create":
        each(run, given.operands[1:2], "git bundle writes it")
    elif "archive" in call.raw:
        run.read_all(given.operands[1:], "git archive packs its content")
        run.output = packed(run, given.operands[1:])


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
    each(run, places, detail)
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
        each(run, given.operands[2:3] if verb == "move" else [], "git worktree move makes it")


def _show(run: Run, call: Call, given: Given) -> None:
    """`git show HEAD:path` prints a file's content; `git show` and `git diff` a patch, or the names in it."""
    run.write_all(given.values("--output"), "git writes it")
    run.read_all(given.operands if given.has("--no-index") else (), "git diff reads it")
    for arg in given.operands:
        revision, colon, path = arg.text.partition(":")
        if colon and revision and path and arg.known:
            top = next((run.fs.top(cwd) for cwd in run.state.cwds), "")
            whole_path = path if path.startswith("./") or not top else f"{top}/{path}"
            run.read(arg._replace(text=whole_path), "git prints its content")
    names = given.has("--name-only", "--name-status")
    verb = next((arg.text for arg in call.args if arg.text in ("diff", "show", "log", "stash")), "")
    if (
        run.is_used
        and verb in ("diff", "show")
        and not given.has("--no-index", "--stat", "--numstat", "--name-status", "--raw")
    ):
        words = [verb, "--name-only", "-z", *(["--format="] if verb == "show" else [])]
        words += [
            name for name, value in given.options if value is None and name in ("--cached", "--staged", "--merge-base")
        ]
        words += [
            f"{name}={value.text}" for name, value in given.options if name == "--diff-filter" and value is not None
        ]
        paths = behind(call)
        revisions = given.operands[: len(given.operands) - len(paths)]
        found = _git_names(run, [*words, *_words(revisions), "--", *_words(paths)] if paths else [*words, *_words(revisions)],
                           [*revisions, *paths])  # fmt: skip
        tops = tuple(filter(None, (run.fs.top(cwd) or cwd for cwd in run.state.cwds)))
        if found is None:
            run.output = Value((), tops)
        else:
            run.output = listed(run, found, True, tops) if names else names_of(found)._replace(is_patch=True)


def _words(args: list[Arg]) -> list[str]:
    return [arg.text for arg in args]


def _git_names(run: Run, words: list[str], args: list[Arg]) -> list[str] | None:
    """A listing of git's own, where its words are known and none of them is an option."""
    if len(run.state.cwds) != 1 or not all(arg.known and arg.text[:1] != "-" for arg in args):
        return None
    return run.fs.git_names(run.state.cwds[0], words)


def _grep(run: Run, call: Call, given: Given) -> None:
    run.read_all(given.values("-f"), "git grep reads it")
    operands = given.operands if given.has("-e", "-f") else given.operands[1:]
    named = behind(call) if "--" in [arg.text for arg in call.args] else [a for a in operands if is_file(run, a)]
    each(run, named, "git grep reads it", run.read)
    run.output = _grepped(run, call, given, operands, named)
    if not named and (given.operands or given.has("-e", "-f")):
        for cwd in run.state.cwds:
            run.record("read", cwd, call.raw, "git grep reads all below")


def _grepped(run: Run, call: Call, given: Given, operands: list[Arg], named: list[Arg]) -> Value:
    """The tracked files of which a line has the pattern."""
    if not run.is_used or not given.has("-l", "-L", "--files-with-matches", "--name-only", "--files-without-match"):
        return NOT_KNOWN
    patterns = given.values("-e") or given.operands[:1]
    files = _git_names(run, ["ls-files", "-z", "--", *_words(named)], [*named, *patterns])
    has = searcher(
        patterns[0].text, fixed=given.has("-F"), basic=not given.has("-E", "-P"), folds=given.has("-i"), words=given.has("-w")
    ) if patterns else None  # fmt: skip
    if files is None or has is None:
        return Value((), run.state.cwds)
    found, complete = search(
        run, [Arg(name, name) for name in files], has, lacking=given.has("-L", "--files-without-match")
    )
    return listed(run, found, complete, run.state.cwds)


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


_LISTS = (
    "-c",
    "-m",
    "-o",
    "-d",
    "--cached",
    "--modified",
    "--others",
    "--deleted",
    "--exclude-standard",
    "--full-name",
)


def _ls_files(run: Run, call: Call, given: Given) -> None:
    """Names of tracked files, from where it runs."""
    odd = not run.is_used or [name for name, _ in given.options if name not in (*_LISTS, "-z")]
    options = [name for name, _ in given.options if name in _LISTS]
    names = (
        _git_names(run, ["ls-files", "-z", *options, "--", *_words(given.operands)], given.operands)
        if not odd
        else None
    )
    run.output = listed(run, names, True, run.state.cwds) if names is not None else Value((), run.state.cwds)


VERBS = {
    "checkout": _checkout, "switch": _switch, "restore": _restore, "reset": _reset, "stash": _stash, "clean": _clean, "rm": _remove,
    "mv": _move, "apply": _apply, "archive": _archive, "bundle": _archive, "format-patch": _format_patch, "clone": _clone,
    "worktree": _worktree, "show": _show, "cat-file": _show, "rev-parse": _rev_parse, "ls-files": _ls_files, "diff": _show,
    "log": _show, "grep": _grep, "blame": _blame, "annotate": _blame,
}  # fmt: skip

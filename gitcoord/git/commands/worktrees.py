"""Commands in a work tree: status, index, hooks and messages, as the user's git runs them. `tree`: its directory."""

from __future__ import annotations

from gitcoord.git.process import GIT, ORIGINAL, Answer, Child, Env, run
from gitcoord.startup.annotations import Iterable

_STATUS = ("--porcelain", "-z", "--no-renames", "--untracked-files=all")
_LOCATION = (b"GIT_DIR", b"GIT_WORK_TREE", b"GIT_COMMON_DIR")


def without_location(env: Env) -> Env:
    """The environment for a git that finds the repository by its directory."""
    return {key: value for key, value in env.items() if key not in _LOCATION}


def with_index(env: Env, index: str) -> Env:
    """The environment for a git that uses another index."""
    return {**env, b"GIT_INDEX_FILE": index.encode("utf-8", "surrogateescape")}


def _in(tree: str) -> list[str]:
    return [*GIT, *(["-C", tree] if tree else [])]


# --- status and files ----------------------------------------------------------------------------------------------


def start_status(env: Env, pathspecs: Iterable[str], tree: str = "") -> Child:
    """Start listing uncommitted files. Each entry: two letters, a blank, the path."""
    child = Child([*_in(tree), "status", *_STATUS, "--", *pathspecs], env)
    child.close_input()
    return child


def status_in(env: Env, tree: str, *pathspecs: str) -> Answer:
    """The status; changes in submodules count, whatever the settings say."""
    return run([*_in(tree), "status", *_STATUS, "--ignore-submodules=none", "--", *pathspecs], env)


def status_original(env: Env) -> Answer:
    """The status, without the effect of refs/replace on the checked-out commit."""
    return run([*ORIGINAL, "status", *_STATUS], env)


def status_with_branch(env: Env, pathspecs: Iterable[str]) -> Answer:
    """The status in git's second format, with the checked-out branch and commit."""
    words = ("--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all")
    return run([*ORIGINAL, "status", *words, "--", *pathspecs], env)


_SHOWN = {
    "tracked": ("--full-name",),
    "all": ("--full-name", "--cached", "--others"),
    "visible": ("--full-name", "--cached", "--others", "--exclude-standard"),
    "here": ("--cached", "--others", "--deleted"),
    "marked": ("-v",),
    "unmerged": ("-u",),
    "resolved": ("--resolve-undo",),
    "staged": ("--stage",),
    "ignored": ("--others", "--ignored", "--exclude-standard"),
}


def ls_files(env: Env, *pathspecs: str, tree: str = "", show: str = "tracked") -> Answer:
    """Files, named from the top of the work tree.

    `show`: 'all', untracked ones too; 'visible', these without ignored ones; 'here', all and deleted ones, named from the current
    directory, as `update_index_from_files` reads them; 'marked', each with a letter before it: lower case where it is assumed unchanged, S where it is skipped;
    'unmerged', 'resolved' (those that were unmerged, by their sides) and 'staged' with mode, blob and stage before each.
    """
    return run([*_in(tree), "ls-files", "-z", *_SHOWN[show], "--", *pathspecs], env)


def listed(tree: str, words: Iterable[str], seconds: float) -> Answer:
    """The files that a listing of the user's own names, ended by NUL. `words`: its verb and options, which only look."""
    from gitcoord.git.long_process import run_all_bounded
    from gitcoord.git.process import clean_environ, environ

    return run_all_bounded([[*_in(tree), *words]], without_location(clean_environ(environ)), seconds)[0]


def check_attribute(env: Env, attribute: str, paths: Iterable[str], tree: str) -> Answer:
    """The value of an attribute by the files of the work tree: path, attribute and value of each path, each ended by NUL."""
    data = "".join(path + "\0" for path in paths).encode("utf-8", "surrogateescape")
    return run([*_in(tree), "check-attr", "-z", "--stdin", attribute], env, data)


def check_ignore(env: Env, paths: Iterable[str], tree: str) -> Answer:
    """The paths that are ignored. Exit code 1: none."""
    data = "".join(path + "\0" for path in paths).encode("utf-8", "surrogateescape")
    return run([*_in(tree), "check-ignore", "-z", "--stdin"], env, data)


def restore_file(env: Env, tree: str, path: str) -> Answer:
    """The file as HEAD has it; the index stays. It fails where HEAD has none."""
    return run([*_in(tree), "restore", "--source=HEAD", "--worktree", "--", f":(top,literal){path}"], env)


# --- the index -----------------------------------------------------------------------------------------------------

# A split index would leave parts of itself behind in the git directory.
_WHOLE_INDEX = (*GIT, "-c", "core.splitIndex=false")


def read_tree(env: Env, commit: str, *, reset: bool = False) -> Answer:
    """Read a commit into the index; '': make the index empty."""
    how = [*(["--reset"] if reset else []), commit] if commit else ["--empty"]
    return run([*_WHOLE_INDEX, "read-tree", *how], env)


def switch_tree(env: Env, old: str, new: str, tree: str, *, files: bool = True) -> Answer:
    """Switch index and files from `old` to `new`. git refuses, and changes nothing, where they differ from `old`."""
    return run([*_in(tree), "read-tree", "-m", "-u" if files else "-i", old, new], without_location(env))


def apply_stash(env: Env, oid: str, tree: str) -> Answer:
    """Bring what a stash has into this work tree; it stays where it is."""
    return run([*_in(tree), "stash", "apply", "-q", oid], without_location(env))


def write_tree(env: Env, *, whole: bool = False) -> Answer:
    """Write the index as a tree. `whole`: a private index, which is never split."""
    return run([*(_WHOLE_INDEX if whole else GIT), "write-tree"], env)


def update_index(env: Env, entries: bytes, *, whole: bool = False) -> Answer:
    """Change the index. `entries`: mode, id, a tab, the path, NUL. `whole`: a private index, which is never split."""
    return run([*(_WHOLE_INDEX if whole else GIT), "update-index", "-z", "--index-info"], env, entries)


def update_index_from_files(env: Env, names: bytes) -> Answer:
    """Make the index equal to the work tree for these files, new and deleted ones too."""
    return run([*GIT, "update-index", "--add", "--remove", "-z", "--stdin"], env, names)


def unmark_files(env: Env, tree: str, flag: str, names: Iterable[str]) -> Answer:
    """Remove a flag of these files: assume-unchanged or skip-worktree."""
    data = "".join(name + "\0" for name in names).encode("utf-8", "surrogateescape")
    return run([*_in(tree), "update-index", f"--no-{flag}", "-z", "--stdin"], env, data)


def add_files(env: Env, pathspecs: Iterable[str], *, force: bool) -> Answer:
    """Stage all of these paths as the work tree has them, or none; `force`: ignored ones too."""
    how = ("-c", "add.ignoreErrors=false", "-c", "advice.addEmbeddedRepo=false", "add", "-A")
    argv = [*_WHOLE_INDEX, *how, *(["-f"] if force else []), "--pathspec-from-file=-", "--pathspec-file-nul"]
    return run(argv, env, "".join(spec + "\0" for spec in pathspecs).encode("utf-8", "surrogateescape"))


def staged_raw(env: Env, base: str) -> Answer:
    """The differences between a commit or tree and the index. A file that was added with `add -N` is not staged."""
    raw = ("--raw", "-z", "--no-renames", "--no-abbrev", "--ignore-submodules=none", "--ita-invisible-in-index")
    return run([*GIT, "diff-index", "--cached", *raw, base, "--"], env)


def differing_files(env: Env, tree: str) -> Answer:
    """The files that differ from the index, by name."""
    return run([*_in(tree), "diff-files", "--name-only", "-z"], without_location(env))


def changed_files(env: Env, commit: str, tree: str) -> Answer:
    """The files that differ from a commit, in the index or in the work tree, by name."""
    return run([*_in(tree), "diff-index", "--name-only", "-z", commit, "--"], without_location(env))


# --- commits and their messages ------------------------------------------------------------------------------------


def commit_tree(env: Env, tree: str, parent: str, message: bytes, *, sign: bool) -> Answer:
    """Make a commit; `parent` '': the first one."""
    argv = [*GIT, "commit-tree", *(["-S"] if sign else []), *(["-p", parent] if parent else []), "-F", "-", tree]
    return run(argv, env, message)


def strip_message(env: Env, message: bytes, *, comments: bool) -> Answer:
    """The message without needless blanks; `comments`: also without comment lines."""
    return run([*GIT, "stripspace", *(["-s"] if comments else [])], env, message)


def parse_trailers(env: Env, message: bytes) -> Answer:
    return run([*GIT, "interpret-trailers", "--no-divider", "--parse"], env, message)


def add_trailers(env: Env, message: bytes, trailers: Iterable[str]) -> Answer:
    """Add trailers at the place that the user's settings name."""
    words = [word for trailer in trailers for word in ("--trailer", trailer)]
    return run([*GIT, "interpret-trailers", "--no-divider", *words], env, message)


def add_trailer(env: Env, trailer: str, *, message: bytes = b"", file: str = "") -> Answer:
    """Add a trailer at the end of the message; in a file in place, unless it has one of that name.

    A line '---' in a message is not the start of a patch here, as for `git log`.
    """
    where = ("--no-divider", "--where", "end", "--if-missing", "add")
    # git applies such a rule to the trailers behind it.
    exists, place = ("doNothing", ("--in-place", file)) if file else ("add", ())
    return run([*GIT, "interpret-trailers", *where, "--if-exists", exists, "--trailer", trailer, *place], env, message)


def run_hook(env: Env, name: str, *words: str) -> Answer:
    """Run a commit hook of the user, with the terminal for its questions; nothing happens if there is none."""
    return run([*GIT, "hook", "run", "--ignore-missing", name, "--", *words], env, shares_terminal=True)


def editor(env: Env) -> Answer:
    """The command of git's editor."""
    return run([*GIT, "var", "GIT_EDITOR"], env)


# --- work trees ----------------------------------------------------------------------------------------------------


def list_worktrees(env: Env) -> Answer:
    return run([*GIT, "worktree", "list", "--porcelain", "-z"], env)


def remove_worktree(env: Env, path: str, *, force: bool = False) -> Answer:
    return run([*GIT, "worktree", "remove", *(["--force"] if force else []), path], env)


def fill_worktree(env: Env, tree: str) -> Answer:
    """Write the files of HEAD into a work tree that was made without any."""
    return run([*_in(tree), "read-tree", "--reset", "-u", "HEAD"], without_location(env))


def restore_in(env: Env, tree: str, commit: str, paths: list[str]) -> Answer:
    """Put these files of a commit into a work tree and its index; those that the commit does not have are removed there."""
    names = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    how = [f"--source={commit}", "--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul"]
    return run([*_in(tree), "--literal-pathspecs", "restore", *how], without_location(env), names)


def prune_worktrees(env: Env) -> Answer:
    """Forget work trees whose directories are gone."""
    return run([*GIT, "worktree", "prune", "--expire=now"], env)

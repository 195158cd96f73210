"""Commands about objects: ancestry, logs, merges, trees, differences, and the attributes of paths."""

from __future__ import annotations

from gitcoord.base.errors import StoreError
from gitcoord.base.names import Oid
from gitcoord.git.process import GIT, LITERAL, ORIGINAL, WHOLE, Answer, Child, Env, run
from gitcoord.startup.annotations import Iterable

_RAW = ("--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=none")
# -c: of a merge, the files that differ from every parent.
_STEPS = (
    "log", "--no-show-signature", "--encoding=UTF-8", "--root", "-c", *_RAW,
    "--format=%x01%H %P%x02%(trailers:key=Agent,valueonly,separator=%x0A)",
)  # fmt: skip
_NOBODY = ("-c", "user.name=gitcoord", "-c", "user.email=gitcoord@gitcoord.invalid", "-c", "commit.gpgSign=false")
_NEVER = {b"GIT_AUTHOR_DATE": b"@0 +0000", b"GIT_COMMITTER_DATE": b"@0 +0000"}


def compare_ancestry(env: Env, old: str, new: str) -> Answer:
    """Exit code 0: `old` is part of the history of `new`; 1: it is not; any other: git cannot tell."""
    return run([*ORIGINAL, "merge-base", "--is-ancestor", old, new], env)


def is_ancestor(env: Env, old: str, new: str) -> bool | None:
    """Return whether `old` is part of the history of `new`; None if git cannot tell, since an object is missing."""
    return {0: True, 1: False}.get(compare_ancestry(env, old, new).code)


def merge_base(env: Env, *commits: str, how: str = "") -> Answer:
    """Exit code 1: they have nothing in common. `how`: 'octopus', the base of all of them; 'independent', the commits that no
    other one of them contains."""
    return run([*ORIGINAL, "merge-base", *([f"--{how}"] if how else []), *commits], env)


def first_parents(env: Env, head: str, *, until: str = "", oldest_first: bool = False, most: int = 0) -> Answer:
    """The chain of first parents from `head` back to, without, `until`."""
    argv = [*ORIGINAL, "rev-list", "--first-parent", *(["--reverse"] if oldest_first else [])]
    return run([*argv, *([f"--max-count={most}"] if most else []), head, *([f"^{until}"] if until else []), "--"], env)


def first_parent_messages(env: Env, head: str, until: str = "", *, since: int = 0, most: int = 0) -> Answer:
    """The chain of first parents, oldest first, in lines: 'commit' and the id, the parents, the message and a NUL.

    `since`: without the commits before the first one, from `head` on, that is older than this time. `most`: the last ones."""
    argv = [*ORIGINAL, "rev-list", "--first-parent", "--reverse", "--encoding=UTF-8", "--format=%P%n%B%x00", head]
    bounds = [*([f"--since=@{since}"] if since else []), *([f"--max-count={most}"] if most else [])]
    return run([*argv, *([f"^{until}"] if until else []), *bounds, "--"], env)


def rev_list(env: Env, *revisions: str, most: int = 0) -> Answer:
    """The commits that these revisions of git-rev-list(1) name, at most `most` of them."""
    return run([*ORIGINAL, "rev-list", *([f"--max-count={most}"] if most else []), *revisions], env)


def list_outside(env: Env, commits: Iterable[str], within: str, *, ancestry_path: bool = False) -> Answer:
    """These commits and their ancestors without `within` and its ancestors; `ancestry_path`: only descendants of `within`."""
    argv = [*ORIGINAL, "rev-list", *(["--ancestry-path"] if ancestry_path else []), "--stdin"]
    return run(argv, env, "".join(f"{line}\n" for line in [*commits, f"^{within}"]).encode())


def count_commits(env: Env, *revisions: str, tree: str = "") -> Answer:
    """The number of commits that these revisions of git-rev-list(1) name. `tree`: with the refs of that work tree."""
    return run([*ORIGINAL, *(["-C", tree] if tree else []), "rev-list", "--count", *revisions, "--"], env)


def count_changes(env: Env, tips: Iterable[str], *known: str, paths: Iterable[str] = ()) -> int:
    """The number of commits of these tips that the known commits lack, of those that changed one of these paths; 0 where git cannot tell."""
    specs = [f":(top,literal){'' if path == '.' else path}" for path in paths]
    revisions = [*tips, *(f"^{commit}" for commit in known)]
    return int(run([*ORIGINAL, "rev-list", "--count", *revisions, "--", *specs], env).text or 0)


def author_names(env: Env, *revisions: str) -> Answer:
    """The author's name of each commit and the agents that its trailers name, a line each, with a tab between; both may be empty."""
    form = (
        "--no-commit-header",
        "--encoding=UTF-8",
        "--format=%aN%x09%(trailers:key=Agent,valueonly,unfold,separator=%x2C )",
    )
    return run([*ORIGINAL, "rev-list", *form, *revisions, "--"], env)


def list_objects(env: Env) -> Answer:
    """Type and id of every object that git has, in any order, also of those that no ref reaches."""
    argv = [*ORIGINAL, "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objecttype) %(objectname)"]
    return run(argv, env)


def count_loose(env: Env) -> int:
    """The number of loose objects."""
    answer = run([*GIT, "count-objects"], env).require("git cannot count its objects")
    return int(answer.text.split()[0])


def has_commit(env: Env, oid: str) -> bool:
    return not run([*ORIGINAL, "cat-file", "-e", f"{oid}^{{commit}}"], env).code


# --- logs ----------------------------------------------------------------------------------------------------------


def start_steps(env: Env, new: str, known: Iterable[str]) -> Child:
    """Start listing the commits of `new` outside the known ones' histories, parents first, with the changes of each."""
    child = Child([*ORIGINAL, *_STEPS, "--topo-order", "--stdin"], {**env, **WHOLE})
    child.send("".join(f"{line}\n" for line in [new, *(f"^{oid}" for oid in known)]).encode())
    child.close_input()
    return child


def log_steps(env: Env, revisions: Iterable[str], pathspecs: Iterable[str]) -> Answer:
    """The same list for all commits that touch these paths, also where a merge left no trace of them."""
    return run([*ORIGINAL, *_STEPS, "--full-history", *revisions, "--", *pathspecs], env)


def first_rules(env: Env, tip: str) -> Answer:
    """The commits that changed settings or attributes of gitcoord, the first one last, a line each."""
    places = (".gitcoord/config", ":(glob)**/.gitattributes")
    form = (
        "--topo-order",
        "--root",
        "--no-show-signature",
        "--no-patch",
        "--format=%H",
        r"-Ggitcoord-|^[[:space:]]*\[",
    )
    return run([*ORIGINAL, "log", *form, tip, "--", *places], {**env, **WHOLE})


def log_subjects(env: Env, revisions: str, most: int) -> Answer:
    """The log, newest first, with NUL between: the commit, a blank, its subject."""
    argv = [*ORIGINAL, "log", "-z", f"--max-count={most}", "--no-show-signature", "--format=%H %s", revisions, "--"]
    return run(argv, env)


def log_changes(env: Env, since: str, most: int) -> Answer:
    """The last commits that are no merges, each: \\x01, time, \\x02, author's address, \\x02, agents of its trailers, \\x03, then the
    files that it changed, each ended by NUL."""
    form = "--format=%x01%at%x02%aE%x02%(trailers:key=Agent,valueonly,separator=%x2C)%x03"
    how = [
        "--no-show-signature",
        "--no-merges",
        "--no-renames",
        "--name-only",
        "-z",
        f"--since={since}",
        f"--max-count={most}",
    ]
    return run([*ORIGINAL, "log", *how, form, "HEAD", "--"], env)


def last_agent(env: Env, path: str, since: object) -> Answer:
    """The agents that trailers name, of the last commit since then that changed the path."""
    argv = [*LITERAL, "log", "-1", f"--since={since}", "--format=%(trailers:key=Agent,valueonly)", "--", path]
    return run(argv, env)


def log_agents(env: Env, old: str, new: str) -> Answer:
    """The agents that trailers name, a line each, of the commits that `new` contains and `old` does not."""
    form = "--format=%(trailers:key=Agent,valueonly)"
    return run([*ORIGINAL, "log", "--no-show-signature", form, new, f"^{old}", "--"], env)


def log_on_branches(env: Env, path: str, since: int, *outside: str) -> Answer:
    """The commits of local branches, but the ledger's, since then and outside of these, that change the path: a line each with a branch
    that has it, \\x02, and the agents that its trailers name."""
    form = "--format=%S%x02%(trailers:key=Agent,valueonly,separator=%x2C)"
    branches = ["--exclude=gitcoord", "--exclude=gitcoord-sessions/*", "--branches", "--not", *outside]
    argv = [*ORIGINAL, "log", "--no-show-signature", "--source", "--no-merges", f"--since={since}", form, *branches]
    return run([*argv, "--", f":(top,literal,icase){path}"], env)


# --- merges --------------------------------------------------------------------------------------------------------


def merge_tree(env: Env, ours: str, theirs: str) -> Answer:
    """The tree of their merge and the names of conflicting files, each ended by NUL. Exit code 1: it is not clean."""
    argv = [*ORIGINAL, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs]
    return run(argv, env)


def commit_stand_in(env: Env, tree: str, *parents: str) -> Answer:
    """A temporary commit for a comparison; its author and date are fixed, so it has the same id each time."""
    words = [word for parent in parents for word in ("-p", parent)]
    return run([*ORIGINAL, *_NOBODY, "commit-tree", tree, *words, "-m", "stand-in"], {**env, **_NEVER})


def commit_like(
    env: Env, commit: str, tree: str, parents: Iterable[str], *, sign: bool, message: bytes | None = None
) -> Answer:
    """A commit with another tree and other parents, and the author and message of this one. The committer is who runs this."""
    form = "--format=%an%x00%ae%x00%ad%x00%B"
    found = run(
        [*ORIGINAL, "log", "-1", "--no-show-signature", "--date=raw", "--encoding=UTF-8", form, commit, "--"], env
    )
    if found.code:
        return found
    name, email, date, text = found.out.removesuffix(b"\n").split(b"\0", 3)
    author = {b"GIT_AUTHOR_NAME": name or b"-", b"GIT_AUTHOR_EMAIL": email, b"GIT_AUTHOR_DATE": b"@" + date}
    words = [word for parent in parents for word in ("-p", parent)]
    argv = [
        *ORIGINAL,
        "-c",
        "i18n.commitEncoding=UTF-8",
        "commit-tree",
        *(["-S"] if sign else []),
        tree,
        *words,
        "-F",
        "-",
    ]
    return run(argv, {**env, **author}, text if message is None else message)


def commit_merge(env: Env, tree: str, parents: Iterable[str], message: bytes, *, sign: bool) -> Answer:
    """A commit by who runs this, with these parents."""
    words = [word for parent in parents for word in ("-p", parent)]
    return run([*ORIGINAL, "commit-tree", *(["-S"] if sign else []), tree, *words, "-F", "-"], env, message)


def list_new(env: Env, tip: str, old: str) -> Answer:
    """The commits of `tip` outside `old`, parents first, a line each: the commit, its parents."""
    return run([*ORIGINAL, "rev-list", "--topo-order", "--reverse", "--parents", tip, f"^{old}", "--"], env)


def messages(env: Env, tip: str, old: str) -> Answer:
    """The messages of these commits, oldest first, each ended by NUL."""
    form = ("--no-commit-header", "--encoding=UTF-8", "--format=%B%x00")
    return run([*ORIGINAL, "rev-list", "--topo-order", "--reverse", *form, tip, f"^{old}", "--"], env)


# --- trees and blobs ---------------------------------------------------------------------------------------------------


def empty_tree(env: Env) -> Oid:
    """The id of the empty tree."""
    answer = run([*ORIGINAL, "hash-object", "-t", "tree", "/dev/null"], env)
    return answer.require("git hash-object failed", StoreError).text


def write_blob(env: Env, data: bytes) -> Answer:
    return run([*ORIGINAL, "hash-object", "-w", "--stdin"], env, data)


def staged_blob(env: Env, path: str) -> Answer:
    """The content of this path in the index."""
    return run([*ORIGINAL, "cat-file", "blob", f":{path}"], env)


def ls_tree(env: Env, tree: str, *below: str, names: bool = False) -> Answer:
    """Every file: mode, type and id, a tab, the path. `names`: only the path."""
    form = ["--name-only"] if names else []
    return run([*ORIGINAL, "ls-tree", "-r", "-z", *form, "--full-tree", tree, "--", *below], env)


def ls_tree_entry(env: Env, tree: str, path: str) -> Answer:
    """The tree entry at this very path, in the form of `ls_tree`."""
    return run([*LITERAL, "ls-tree", "-z", "--full-tree", tree, "--", path], env)


def diff_raw(env: Env, old: str, new: str, *pathspecs: str, since_fork: bool = False) -> Answer:
    """The modes and ids of each changed file, before and after, and its path.

    `since_fork`: from the merge base of the two on. It fails where they have none.
    """
    start = ["--merge-base"] if since_fork else []
    return run([*ORIGINAL, "diff-tree", "-r", *_RAW, *start, old, new, "--", *pathspecs], env)


def diff_index_raw(env: Env, commit: str) -> Answer:
    """The differences between a commit and the index."""
    return run([*ORIGINAL, "diff-index", "--cached", *_RAW, commit, "--"], env)


def diff_names(env: Env, old: str, new: str, *pathspecs: str) -> Answer:
    how = ("-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none")
    return run([*ORIGINAL, "diff-tree", *how, old, new, "--", *pathspecs], env)


def grep_tree(env: Env, tree: str, words: Iterable[str], paths: Iterable[str], *, files: bool = False) -> Answer:
    """The lines of these files that have one of these words, as `path:number:line`; `files`: only their names, each ended by NUL. Exit code 1: none."""
    what = [word for each in words for word in ("-e", each)]
    how = ["-l", "-z"] if files else ["-n"]
    specs = [f":(top,literal){path}" for path in paths]
    return run([*ORIGINAL, "grep", "--no-color", "-I", "-F", *how, *what, tree, "--", *specs], env)


def diff_counts(env: Env, old: str, new: str) -> Answer:
    """The number of added and removed lines of each changed file."""
    argv = [*ORIGINAL, "diff-tree", "-r", "--numstat", "-z", "--no-renames", "--no-commit-id", old, new]
    return run(argv, env)


def diff_blobs(env: Env, old: str, new: str) -> Answer:
    """The lines that differ between two blobs, independent of the user's settings for diffs."""
    return run([*ORIGINAL, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--text", old, new], env)


def check_attr(env: Env, attributes: Iterable[str], paths: Iterable[str], file: str = "/dev/null") -> Answer:
    """Path, attribute and value for each path and attribute: by the index, and by `file` instead of the user's own."""
    data = "".join(path + "\0" for path in paths).encode("utf-8", "surrogateescape")
    argv = [*ORIGINAL, "-c", f"core.attributesFile={file}", "check-attr", "--cached", "--stdin", "-z", *attributes]
    return run(argv, env, data)

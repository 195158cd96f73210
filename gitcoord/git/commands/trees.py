"""Trees, blobs, what differs between them, and what attributes say of paths."""

from __future__ import annotations

from gitcoord.base.errors import StoreError
from gitcoord.git.process import LITERAL, ORIGINAL, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitcoord.base.names import Oid
    from gitcoord.git.process import Answer, Env

_RAW = ("--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=none")
_NAMES = ("-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none")


def empty_tree(env: Env) -> Oid:
    """The id of the tree without files, by which all files of a commit differ."""
    answer = run([*ORIGINAL, "hash-object", "-t", "tree", "/dev/null"], env)
    return answer.require("git hash-object failed", StoreError).text


def write_blob(env: Env, data: bytes) -> Answer:
    return run([*ORIGINAL, "hash-object", "-w", "--stdin"], env, data)


def staged_blob(env: Env, path: str) -> Answer:
    """What the index has of this path."""
    return run([*ORIGINAL, "cat-file", "blob", f":{path}"], env)


def ls_tree(env: Env, tree: str) -> Answer:
    """Every file: mode, type and id, a tab, the path."""
    return run([*ORIGINAL, "ls-tree", "-r", "-z", "--full-tree", tree], env)


def ls_tree_names(env: Env, tree: str, *below: str) -> Answer:
    return run([*ORIGINAL, "ls-tree", "-r", "-z", "--name-only", "--full-tree", tree, "--", *below], env)


def ls_tree_entry(env: Env, tree: str, path: str) -> Answer:
    """What lies at this very path, as `ls_tree` says it."""
    return run([*LITERAL, "ls-tree", "-z", "--full-tree", tree, "--", path], env)


def diff_raw(env: Env, old: str, new: str, *pathspecs: str) -> Answer:
    """Of each changed file the modes and ids before and after, and its path."""
    return run([*ORIGINAL, "diff-tree", "-r", *_RAW, old, new, *(["--", *pathspecs] if pathspecs else [])], env)


def diff_raw_since_fork(env: Env, old: str, new: str, *pathspecs: str) -> Answer:
    """The same from the merge base of the two on. It fails where they have none."""
    argv = [*ORIGINAL, "diff-tree", "-r", *_RAW, "--merge-base", old, new]
    return run([*argv, *(["--", *pathspecs] if pathspecs else [])], env)


def diff_index_raw(env: Env, commit: str) -> Answer:
    """What the index has otherwise than a commit."""
    return run([*ORIGINAL, "diff-index", "--cached", *_RAW, commit, "--"], env)


def diff_names(env: Env, old: str, new: str, *pathspecs: str) -> Answer:
    return run([*ORIGINAL, "diff-tree", *_NAMES, old, new, "--", *pathspecs], env)


def diff_counts(env: Env, old: str, new: str) -> Answer:
    """Of each changed file how many lines came and went."""
    argv = [*ORIGINAL, "diff-tree", "-r", "--numstat", "-z", "--no-renames", "--no-commit-id", old, new]
    return run(argv, env)


def diff_blobs(env: Env, old: str, new: str) -> Answer:
    """The lines that differ, in a form that no setting of anybody's can turn."""
    return run([*ORIGINAL, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--text", old, new], env)


def check_attr(env: Env, attributes: Iterable[str], paths: Iterable[str], file: str = "/dev/null") -> Answer:
    """For each path and attribute: path, attribute, value. By the index, and by `file` instead of the user's own."""
    data = "".join(path + "\0" for path in paths).encode("utf-8", "surrogateescape")
    argv = [*ORIGINAL, "-c", f"core.attributesFile={file}", "check-attr", "--cached", "--stdin", "-z", *attributes]
    return run(argv, env, data)

"""Commands about work that has not landed: what it changed, and a merge in memory that writes to a directory of its own.

All of them are bounded in time: whoever looks may be waiting for the answer.
"""

from __future__ import annotations

from gitcoord.git.commands.worktrees import without_location
from gitcoord.git.process import GIT, ORIGINAL, Answer, Env, run, without_grafts
from gitcoord.git.several import TimeLimit, run_several
from gitcoord.startup.annotations import Iterable

_STATUS = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all")
_ROW = "%00".join(
    (
        "%(objectname)",
        "%(refname)",
        "%(committerdate:unix)",
        "%(authorname)",
        "%(contents:trailers:key=Agent,valueonly,unfold,separator=%2C)",
    )
)
_PLAIN = ("-c", "core.splitIndex=false", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false")


def branches_ahead(env: Env, tips: Iterable[str], patterns: Iterable[str], limit: TimeLimit) -> Answer:
    """The refs with commits that none of these tips contains, newest commit first, a line each with NUL between: commit, ref, time,
    author, agents of its trailers."""
    without = [f"--no-merged={tip}" for tip in tips]
    argv = [*ORIGINAL, "for-each-ref", "--sort=-committerdate", *without, f"--format={_ROW}", *patterns]
    return run_several([argv], env, limit)[0]


def changed_since_fork(env: Env, trunk: str, commits: list[str], limit: TimeLimit) -> list[Answer]:
    """The files that each commit's history changed since it left trunk. It fails where the two have nothing in common."""
    how = ("-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none", "--merge-base")
    argvs = [[*ORIGINAL, "diff-tree", *how, trunk, commit, "--"] for commit in commits]
    return run_several(argvs, without_grafts(env), limit)


def statuses(env: Env, trees: list[str], limit: TimeLimit) -> list[Answer]:
    """The uncommitted files of each work tree: two letters, a blank, the path."""
    return run_several([[*GIT, "-C", tree, *_STATUS] for tree in trees], without_location(env), limit)


def check_attributes(env: Env, attributes: Iterable[str], paths: Iterable[str], tree: str) -> Answer:
    """The values of these attributes by the files of a work tree: path, attribute and value, each ended by NUL."""
    data = "".join(path + "\0" for path in paths).encode("utf-8", "surrogateescape")
    return run([*GIT, "-C", tree, "check-attr", "-z", "--stdin", *attributes], without_location(env), data)


# --- objects that go again ------------------------------------------------------------------------------------------


def own_objects(env: Env, git_dir: str, tree: str, place: str) -> Env:
    """The environment for a git that writes objects below `place`, reads those of the repository too, and fetches none that lack there."""
    words = {"GIT_DIR": git_dir, "GIT_WORK_TREE": tree, "GIT_OBJECT_DIRECTORY": f"{place}/objects"}
    found = {key.encode(): value.encode("utf-8", "surrogateescape") for key, value in words.items()}
    return {
        **without_location(without_grafts(env)),
        **found,
        b"GIT_ALLOW_PROTOCOL": b"none",
        b"GIT_NO_LAZY_FETCH": b"1",
    }


def add_to_index(env: Env, tree: str, names: Iterable[str]) -> Answer:
    """Make the private index equal to the work tree for these files, new and deleted ones too."""
    data = "".join(name + "\0" for name in names).encode("utf-8", "surrogateescape")
    argv = [*GIT, "-C", tree, *_PLAIN, "-c", "core.safecrlf=false", "update-index", "--add", "--remove", "--replace"]
    return run([*argv, "-z", "--stdin"], env, data)


def merge_trees(env: Env, tree: str, pairs: list[tuple[str, str]], limit: TimeLimit) -> list[Answer]:
    """Merge each pair of commits in memory. Exit code 0: clean, the tree; 1: not clean. Then, each ended by NUL: the tree; mode, id, stage, a tab
    and the path of each conflicting entry; nothing; and messages: the number of paths, the paths, the kind, the words.

    git runs the user's own merge drivers, as a merge would, in `tree`.
    """
    argv = [*ORIGINAL, "-C", tree, "merge-tree", "--write-tree", "-z", "--messages"]
    return run_several([[*argv, one, other] for one, other in pairs], env, limit)


def diff_lines(env: Env, pairs: list[tuple[str, str]], limit: TimeLimit) -> list[Answer]:
    """The lines that differ between the blobs of each pair, without lines around them."""
    how = ("--no-color", "--no-ext-diff", "--no-textconv", "--text", "--unified=0")
    return run_several([[*ORIGINAL, "diff", *how, old, new] for old, new in pairs], env, limit)

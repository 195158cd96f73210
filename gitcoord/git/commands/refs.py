"""Commands about refs, names of objects, and git's directories. A process that moves refs is noted for its locks."""

from __future__ import annotations

from gitcoord.git.process import GIT, ORIGINAL, UNHOOKED, Answer, Env, finish, run, without_grafts
from gitcoord.git.repo import Repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.locks.owners import LockNotes


def _in(tree: str) -> list[str]:
    return ["-C", tree] if tree else []


def rev_parse(env: Env, name: str, tree: str = "") -> Answer:
    """The id of the object of this name; it fails without a message where there is none. `tree`: as named in that work tree."""
    return run([*ORIGINAL, *_in(tree), "rev-parse", "--verify", "--quiet", "--end-of-options", name], env)


def rev_parse_commit(env: Env, name: str) -> Answer:
    return rev_parse(env, f"{name}^{{commit}}")


def symbolic_ref(env: Env, ref: str = "HEAD") -> Answer:
    """The target of a symbolic ref. Exit code 1: it is none."""
    return run([*GIT, "symbolic-ref", "--quiet", ref], env)


def upstream_ref(env: Env) -> str:
    """The full name of the ref that the current branch follows; '' where it follows none."""
    answer = run([*GIT, "rev-parse", "--symbolic-full-name", "--verify", "--quiet", "@{upstream}"], env)
    return "" if answer.code else answer.text.strip()


def for_each_ref(env: Env, *patterns: str, most: int = 0) -> Answer:
    """The refs in lines: id, a blank, name."""
    argv = [*ORIGINAL, "for-each-ref", "--format=%(objectname) %(refname)", *([f"--count={most}"] if most else [])]
    return run([*argv, *patterns], env)


def has_ref(env: Env, ref: str) -> bool:
    return not run([*GIT, "show-ref", "--verify", "--quiet", ref], env).code


def is_branch_name(env: Env, name: str) -> bool:
    return not name.startswith("-") and not run([*GIT, "check-ref-format", f"refs/heads/{name}"], env).code


def reflog(env: Env, ref: str) -> Answer:
    """The former values of the ref, newest first."""
    return run([*GIT, "reflog", "show", "--format=%H", ref, "--"], env)


# --- moves ---------------------------------------------------------------------------------------------------------


def _run_noted(repo: Repo, notes: LockNotes, argv: list[str], env: Env | None = None) -> Answer:
    from gitcoord.git.locks.owners import ANY

    own = f"{repo.git_dir}/HEAD".removeprefix(f"{repo.common_dir}/")  # of a linked work tree
    return finish(notes.start(argv, env or repo.env, (*ANY, own)))


def update_ref(repo: Repo, notes: LockNotes, ref: str, new: str, expected: str, reason: str) -> Answer:
    """Move a ref from its expected value (zeros: it must not exist). HEAD itself is moved, no branch with it."""
    target = ["--no-deref", ref] if ref == "HEAD" else [ref]
    return _run_noted(repo, notes, [*GIT, "update-ref", "-m", reason, *target, new, expected])


def delete_ref(repo: Repo, notes: LockNotes, ref: str, expected: str = "") -> Answer:
    """Delete a ref with its expected value; '': any value, for a ref that only this process uses."""
    return _run_noted(repo, notes, [*GIT, "update-ref", "-d", ref, *([expected] if expected else [])])


def merge(repo: Repo, notes: LockNotes, commit: str, message: str) -> Answer:
    """Merge into the checked-out branch, without replaced objects and grafts. Hooks run."""
    words = ("--ff", "--commit", "--no-squash", "--no-autostash", "--no-edit", "--no-stat", "--quiet")
    argv = [*ORIGINAL, "merge", *words, "-m", message, commit]
    return _run_noted(repo, notes, argv, without_grafts(repo.env))


def abort_merge(repo: Repo, notes: LockNotes) -> Answer:
    return _run_noted(repo, notes, [*ORIGINAL, "merge", "--abort"], without_grafts(repo.env))


def rebase(repo: Repo, notes: LockNotes, onto: str) -> Answer:
    """Rebase the checked-out branch. Exit code 1: it conflicts, and stands still. Hooks run."""
    return _run_noted(repo, notes, [*GIT, "rebase", "--no-autostash", "--no-stat", "--quiet", "--keep-empty", onto])


def continue_operation(repo: Repo, notes: LockNotes, verb: str) -> Answer:
    """Go on with a merge or a rebase whose conflicts are resolved and staged; with the message that git has prepared. Hooks run."""
    argv = [*GIT, "-c", "core.editor=true", verb, "--continue"]
    return _run_noted(repo, notes, argv, {**repo.env, b"GIT_EDITOR": b"true"})


def abort_rebase(repo: Repo, notes: LockNotes) -> Answer:
    return _run_noted(repo, notes, [*GIT, "rebase", "--abort"])


def add_worktree(repo: Repo, notes: LockNotes, path: str, branch: str) -> Answer:
    return _run_noted(repo, notes, [*GIT, "worktree", "add", "--quiet", path, branch])


def add_detached_worktree(repo: Repo, notes: LockNotes, path: str, commit: str) -> Answer:
    """Make a work tree of a commit, on no branch and still without files: so no hook runs."""
    return _run_noted(repo, notes, [*GIT, "worktree", "add", "--quiet", "--detach", "--no-checkout", path, commit])


def detach_head(env: Env, git_dir: str, commit: str) -> Answer:
    """Take HEAD of a work tree off its branch, to this commit. Index and files stay."""
    argv = [*UNHOOKED, "--git-dir", git_dir, "update-ref", "-m", "landing: left", "--no-deref", "HEAD", commit]
    return run(argv, {key: value for key, value in env.items() if key not in (b"GIT_DIR", b"GIT_WORK_TREE")})


# --- places --------------------------------------------------------------------------------------------------------


def git_dir(env: Env, tree: str = "") -> Answer:
    """The git directory. It fails where git does not trust the repository (safe.directory)."""
    return run([*GIT, *_in(tree), "rev-parse", "--absolute-git-dir"], env)


def top_of(env: Env, tree: str) -> Answer:
    return run([*GIT, "-C", tree, "rev-parse", "--show-toplevel"], env)


def superproject(env: Env) -> str:
    """The work tree of the repository that this one is a submodule of; '' where it is none."""
    return run([*GIT, "rev-parse", "--show-superproject-working-tree"], env).text


def common_dir(env: Env, tree: str = "") -> Answer:
    """The common directory: absolute, links followed."""
    return run([*GIT, *_in(tree), "rev-parse", "--path-format=absolute", "--git-common-dir"], env)


def hooks_dir(env: Env, tree: str = "", configured: str = "") -> Answer:
    """The directory in which git looks for hooks: absolute, links followed. `configured`: core.hooksPath names it."""
    where = ["-c", f"core.hooksPath={configured}"] if configured else []
    return run([*GIT, *_in(tree), *where, "rev-parse", "--path-format=absolute", "--git-path", "hooks"], env)


def version(env: Env) -> Answer:
    return run([*GIT, "version"], env)

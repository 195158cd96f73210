"""git's settings: written, and read where the cache of `git/config.py` does not have them."""

from __future__ import annotations

from gitcoord.git.process import GIT, ORIGINAL, Answer, Env, run
from gitcoord.git.repo import Repo
from gitcoord.startup.annotations import Callable

_TRIES = 60


def list_settings(env: Env, *, file: str = "", blob: str = "") -> Answer:
    """All settings of a file or a blob, else of the repository itself; `parse_settings` reads them."""
    where = ["--file", file] if file else ["--blob", blob] if blob else ["--local"]
    return run([*ORIGINAL, "config", *where, "--list", "-z"], env)


def match_settings(env: Env, pattern: str) -> Answer:
    """The settings whose keys match a regular expression."""
    return run([*GIT, "config", "-z", "--get-regexp", pattern], env)


def get_setting(env: Env, key: str, *, file: str = "", kind: str = "") -> Answer:
    """The last value. `kind`: bool or path, as git understands these."""
    where = [*(["--file", file] if file else []), *([f"--type={kind}"] if kind else [])]
    return run([*GIT, "config", *where, "--get", key], env)


def set_in_file(env: Env, key: str, value: str, *, file: str) -> Answer:
    """Replace all values of this key; other lines of the file stay as they are."""
    return run([*GIT, "config", "--file", file, "--replace-all", key, value], env)


def unset_in_file(env: Env, keys: str, values: str, *, file: str) -> None:
    """Take the values that match out of every key that matches; both are regular expressions."""
    where = [*GIT, "config", "--file", file]
    found = run([*where, "-z", "--name-only", "--get-regexp", keys, values], env)
    for key in dict.fromkeys(found.entries):
        run([*where, "--unset-all", key, values], env)


def scope_of_setting(env: Env, key: str, tree: str) -> str:
    """The scope of the setting: 'local', 'worktree', 'global', 'system' or 'command'; '' where it is not set."""
    return run([*GIT, "-C", tree, "config", "--show-scope", "--get", key], env).text.partition("\t")[0]


def set_in_worktree(env: Env, key: str, value: str, tree: str) -> Answer:
    return run([*GIT, "-C", tree, "config", "--worktree", key, value], env)


def forget_branch_settings(env: Env, branch: str) -> Answer:
    return run([*GIT, "config", "--remove-section", f"branch.{branch}"], env)


def change_settings(repo: Repo, words: list[str], pause: Callable[[float], None]) -> tuple[int, str]:
    """`git config <words>`: its exit code, and what it said. git takes the file's lock or fails at once: another writer of the
    same file is waited for here, some seconds."""
    for number in range(1, _TRIES):
        code, _, complaint = run([*GIT, "config", *words], repo.env)
        if not code or "could not lock config file" not in complaint or "File exists" not in complaint:
            return code, complaint
        pause(min(0.01 * number, 0.1))
    return code, f"{complaint} (if no git process is running here, remove its lock file)"

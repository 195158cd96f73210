"""Cost of the hooks: one commit, one push, a large push, and a repository in which gitcoord is not set up."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.bench.measure import Result, Target, compare, interleave, p50
from tests.bench.place import Place

_SHARED = "src/** gitcoord-claim\n"
_ZERO = "0" * 40


def hooks(place: Place, rounds: int, *, commits: int = 2000, paths: int = 20_000) -> list[Result]:
    return [
        *_small(place, rounds),
        *_commit(place, rounds),
        *_pull_and_gc(place, rounds),
        *_large(place, max(3, rounds // 6), commits, paths),
        *_nowhere(place, rounds),
    ]


def _repository(place: Place, name: str) -> Path:
    where = place.repository(name, ["src/a.txt", "free.txt"])
    (where / ".gitattributes").write_text(_SHARED)
    for words in (("add", "-A"), ("commit", "-q", "-m", "policy")):
        place.run(where, "git", *words)
    return where


def _small(place: Place, rounds: int) -> list[Result]:
    """pre-commit with one staged file, pre-push of one commit: the hook's own program, as the hook calls it."""
    where = _repository(place, "gated")
    place.run(where, "git", "claim", "src")
    place.run(where, "git", "branch", "base")
    (where / "src/a.txt").write_text("changed\n")
    place.run(where, "git", "checkout", "-q", "-b", "work")
    place.run(where, "git", "commit", "-q", "-am", "one")
    new = place.run(where, "git", "rev-parse", "HEAD").strip()
    (where / "src/a.txt").write_text("staged\n")
    place.run(where, "git", "add", "-A")
    line = f"refs/heads/work {new} refs/heads/work {_ZERO}\n".encode()
    claim = str(place.commands / "git-claim")

    samples = interleave(
        rounds,
        {
            "pre-commit": Call(place, where, (claim, "--gate", "pre-commit")),
            "pre-push": Call(place, where, (claim, "--gate", "pre-push", "origin", ""), line),
            "python": lambda _: place.bare_python(),
        },
    )
    return [
        compare("pre-commit", "pre-commit, 1 file / python3 -I -S -c pass", samples, "pre-commit", "python", Target(4)),
        compare("pre-push", "pre-push, 1 commit / python3 -I -S -c pass", samples, "pre-push", "python", Target(4)),
    ]


def _commit(place: Place, rounds: int) -> list[Result]:
    """A whole `git commit` of one claimed file, with all hooks and without any."""
    hooked, plain = _repository(place, "committed"), place.repository("uncommitted", ["src/a.txt"], ledger=False)
    place.run(hooked, "git", "coord", "install-hooks")
    place.run(hooked, "git", "claim", "src")

    def commit(where: Path, number: int) -> float:
        (where / "src/a.txt").write_text(f"{number}\n")
        return Call(place, where, ("git", "commit", "-q", "-am", "work"))(number)

    steps = {"hooks": lambda n: commit(hooked, n), "none": lambda n: commit(plain, n)}
    samples = interleave(rounds, {**steps, "python": lambda _: place.bare_python()})
    allowance = [p50(samples["none"]) + 4 * p50(samples["python"])]
    what = "git commit with all hooks / without + 4 python3 -I -S"
    return [compare("commit", what, {**samples, "allowance": allowance}, "hooks", "allowance", Target(1))]


def _pull_and_gc(place: Place, rounds: int) -> list[Result]:
    """`git pull` of one landed commit, and `git gc` afterwards, with all hooks and without any."""
    hooked = _repository(place, "pulling")
    place.run(hooked, "git", "coord", "install-hooks")
    remote = place.directory / "pulled.git"
    place.run(hooked, "git", "init", "-q", "--bare", str(remote))
    place.run(hooked, "git", "remote", "add", "origin", str(remote))
    place.run(hooked, "git", "push", "-q", "-u", "origin", "HEAD")
    clones = {name: place.directory / name for name in ("pulling-plain", "pulling-writer")}
    for where in clones.values():
        place.run(hooked, "git", "clone", "-q", str(remote), str(where))
    landed: set[int] = set()

    def pull(where: Path, number: int) -> float:
        if number not in landed:
            landed.add(number)
            (clones["pulling-writer"] / "src/a.txt").write_text(f"{number}\n")
            place.run(clones["pulling-writer"], "git", "commit", "-q", "-am", "work")
            place.run(clones["pulling-writer"], "git", "push", "-q")
        return Call(place, where, ("git", "pull", "-q", "--ff-only"))(number)

    samples = interleave(
        rounds,
        {"hooks": lambda n: pull(hooked, n), "none": lambda n: pull(clones["pulling-plain"], n)},
        {
            "gc-hooks": Call(place, hooked, ("git", "gc", "-q")),
            "gc-none": Call(place, clones["pulling-plain"], ("git", "gc", "-q")),
            "python": lambda _: place.bare_python(),
        },
    )
    found = []
    for name, what, with_hooks, without in (
        ("pull", "git pull of landed work", "hooks", "none"),
        ("gc", "git gc", "gc-hooks", "gc-none"),
    ):
        allowance = [1.1 * p50(samples[without]) + 2 * p50(samples["python"])]
        words = f"{what} with all hooks / 1.1 of without + 2 python3 -I -S"
        found.append(compare(name, words, {**samples, "allowance": allowance}, with_hooks, "allowance", Target(1)))
    return found


class Call:
    """A command with something on its input, timed."""

    def __init__(self, place: Place, where: Path, words: tuple[str, ...], data: bytes = b"", git_dir: str = "") -> None:
        self._where, self._words, self._data = where, words, data
        self._env = {**place.env, **({"GIT_DIR": git_dir} if git_dir else {})}

    def __call__(self, _: int) -> float:
        start = time.perf_counter()
        done = subprocess.run(
            self._words, cwd=self._where, env=self._env, input=self._data, capture_output=True, check=False
        )
        spent = time.perf_counter() - start
        assert done.returncode == 0, done.stderr.decode()
        return spent


def _large(place: Place, rounds: int, commits: int, paths: int) -> list[Result]:
    where = _repository(place, "large")
    place.run(where, "git", "claim", "src")
    old = place.run(where, "git", "rev-parse", "HEAD").strip()
    each = paths // commits
    stream = []
    for number in range(commits):
        stream.append(f"commit refs/heads/work\ncommitter a <a@b> {1_700_000_000 + number} +0000\ndata 1\nx\n")
        stream.append(f"from {old}\n" if not number else "")
        for file in range(each):
            name = f"src/d{(number * each + file) % 500}/f{number}-{file}.txt"
            stream.append(f"M 100644 inline {name}\ndata 2\n{number % 10}\n\n")
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=where, env=place.env, input="".join(stream).encode(), check=True
    )
    new = place.run(where, "git", "rev-parse", "work").strip()
    line = f"refs/heads/work {new} refs/heads/work {_ZERO}\n".encode()
    push = Call(place, where, (str(place.commands / "git-claim"), "--gate", "pre-push", "origin", ""), line)
    log = Call(place, where, ("git", "log", "--raw", "-z", f"{old}..{new}"))
    samples = interleave(rounds, {"pre-push": push, "log": log})
    what = f"pre-push, {commits:,} commits and {commits * each:,} paths / git log --raw"
    return [compare("pre-push-large", what, samples, "pre-push", "log", Target(3))]


def _nowhere(place: Place, rounds: int) -> list[Result]:
    where = place.repository("nowhere", ["a.txt"], ledger=False)
    hooks = _repository(place, "hooked")
    place.run(hooks, "git", "coord", "install-hooks")
    hook = str(hooks / ".git/hooks/pre-commit")
    git_dir = str(where / ".git")
    samples = interleave(
        rounds,
        {
            "hook": Call(place, where, (hook,), git_dir=git_dir),
            "sh": Call(place, where, ("sh", "-c", ":"), git_dir=git_dir),
        },
    )
    return [
        compare("hook-nowhere", "the hook where gitcoord is not set up / sh -c :", samples, "hook", "sh", Target(4))
    ]

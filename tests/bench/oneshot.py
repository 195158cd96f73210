"""One command at a time, without contention: against git-lfs, and against the bare interpreter."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.bench.lfs_server import running
from tests.bench.measure import Result, Samples, Target, compare, interleave
from tests.bench.place import ROOT, Place

_LISTED = 20
_PLAIN = "git claim release / git lfs unlock, the standard library's http server as it comes"
_TUNED = "git claim release / git lfs unlock, the same server with TCP_NODELAY"


def _files(rounds: int) -> list[str]:
    """Enough to take a fresh one each round, spread over a few directories."""
    return [f"src/part{n % 7}/file{n}.txt" for n in range(rounds + 4)]


def _configure_lfs(place: Place, url: str) -> None:
    for key, value in (("lfs.url", url), (f"lfs.{url}.locksverify", "true"), (f"lfs.{url}.access", "none")):
        place.run(place.directory, "git", "config", "--global", key, value)


def claim_and_release(place: Place, rounds: int) -> list[Result]:
    files = _files(rounds)
    ours, theirs = place.repository("ours", files), place.repository("theirs", files, ledger=False)
    plain = place.repository("plain", files, ledger=False)
    with running(str(ROOT)) as url, running(str(ROOT), tuned=False) as plain_url:
        _configure_lfs(place, url)
        place.run(plain, "git", "config", "lfs.url", plain_url)
        place.run(plain, "git", "config", f"lfs.{plain_url}.locksverify", "true")
        place.run(plain, "git", "config", f"lfs.{plain_url}.access", "none")

        def step(where: os.PathLike[str], *words: str) -> Step:
            return Step(place, where, words, files)

        samples = interleave(
            rounds,
            {
                "claim": step(ours, "git", "claim"),
                "lfs lock": step(theirs, "git", "lfs", "lock"),
                "lfs lock, plain": step(plain, "git", "lfs", "lock"),
            },
            {
                "release": step(ours, "git", "claim", "release"),
                "lfs unlock": step(theirs, "git", "lfs", "unlock"),
                "lfs unlock, plain": step(plain, "git", "lfs", "unlock"),
            },
            {"python": lambda _: place.bare_python()},
        )
    return [
        compare("claim", "git claim / git lfs lock", samples, "claim", "lfs lock", Target(1)),
        compare("release", _PLAIN, samples, "release", "lfs unlock, plain", Target(0.45)),
        compare("release-tuned", _TUNED, samples, "release", "lfs unlock", None),
        compare("claim-python", "git claim / python3 -I -S -c pass", samples, "claim", "python", None),
    ]


class Step:
    """A command on the round's own file, in its repository."""

    def __init__(self, place: Place, where: os.PathLike[str], words: tuple[str, ...], files: list[str]) -> None:
        self._place = place
        self._where = where
        self._words = words
        self._files = files

    def __call__(self, number: int) -> float:
        os.chdir(self._where)
        return self._place.timed(*self._words, self._files[number])


def listing(place: Place, rounds: int) -> list[Result]:
    files = _files(_LISTED)
    ours, theirs = place.repository("listed", files), place.repository("lfs-listed", files, ledger=False)
    with running(str(ROOT)) as url:
        _configure_lfs(place, url)
        place.run(ours, "git", "claim", *files[:_LISTED])
        for file in files[:_LISTED]:
            place.run(theirs, "git", "lfs", "lock", file)

        def at(where: os.PathLike[str], *words: str) -> float:
            os.chdir(where)
            return place.timed(*words)

        samples = interleave(
            rounds,
            {
                "list": lambda _: at(ours, "git", "claim", "list"),
                "lfs locks": lambda _: at(theirs, "git", "lfs", "locks"),
            },
        )
    return [
        compare("list", f"git claim list / git lfs locks, {_LISTED} each", samples, "list", "lfs locks", Target(1.2))
    ]


def check(place: Place, rounds: int) -> list[Result]:
    """Time `git claim check` of a free path, and of one's own."""
    where = place.repository("checked", _files(4))
    place.run(where, "git", "claim", "src/part0/file0.txt")
    os.chdir(where)
    # The heartbeat that rides on a command is due once in half a minute; it should not fall on some rounds only.
    samples: Samples = interleave(
        rounds,
        {
            "free": lambda _: place.timed("git", "claim", "check", "src/part1/file1.txt"),
            "own": lambda _: place.timed("git", "claim", "check", "src/part0/file0.txt"),
            "python": lambda _: place.bare_python(),
        },
        warm=2,
    )
    return [
        compare(
            "check-free", "git claim check (free path) / python3 -I -S -c pass", samples, "free", "python", Target(2.5)
        ),
        compare(
            "check-own", "git claim check (own path) / python3 -I -S -c pass", samples, "own", "python", Target(2.5)
        ),
    ]


def views(place: Place, rounds: int) -> list[Result]:
    """Time `status` and `log`."""
    where = place.repository("viewed", _files(_LISTED))
    place.run(where, "git", "claim", *_files(_LISTED)[:_LISTED])
    os.chdir(where)
    samples = interleave(
        rounds,
        {
            "status": lambda _: place.timed("git", "coord", "status"),
            "log": lambda _: place.timed("git", "coord", "log"),
            "python": lambda _: place.bare_python(),
        },
        warm=2,
    )
    return [
        compare(name, f"git coord {name} / python3 -I -S -c pass", samples, name, "python", Target(5))
        for name in ("status", "log")
    ]


_LINES = 60  # of `start`
_POLICY = {
    ".gitcoord/rules.md": "# Rules\n\n" + "".join(f"{n}. This is rule {n}.\n" for n in range(1, 11)),
    ".gitcoord/config": "[start]\n\tstate = docs/state.md\n\tlessons = docs/lessons.md\n[land]\n\tcheck = make test\n"
    '[sequence "migrations"]\n\tpattern = db/[0-9]*.sql\n[resource "gpu"]\n\tcapacity = 2\n'
    '[deploy "prod"]\n\tref = refs/heads/prod\n',
    ".gitattributes": "src/part1/** gitcoord-claim\nsrc/part2/** gitcoord-claim=landing\n",
    "docs/state.md": "It is being written.\n" * 40,
    "docs/lessons.md": "It was tried before.\n" * 40,
}
_SECTIONS = ("--state", "it parses", "--changed", "the lexer", "--remaining", "the printer", "--next", "print")


def _loaded(place: Place) -> Path:
    """A small project in which an agent holds files that it has changed, and three others hold files, hand over and leave notes."""
    files = _files(_LISTED)
    where = place.repository("started", files, ledger=False)
    for name, text in _POLICY.items():
        (where / name).parent.mkdir(exist_ok=True)
        (where / name).write_text(text)
    place.run(where, "git", "add", ".")
    place.run(where, "git", "commit", "--quiet", "-m", "policy")
    place.run(where, "git", "coord", "init")
    place.run(where, "git", "claim", *files[:_LISTED])
    for number, agent in enumerate(("ada", "bob", "eve")):
        env = {**place.env, "GITCOORD_AGENT": agent}
        place.run(where, "git", "claim", "--", f"of/{agent}", env=env)
        place.run(where, "git", "handoff", "new", "--to", "bench", *_SECTIONS, env=env)
        place.run(where, "git", "coord", "note", files[number], "-m", "Mind the tests.", env=env)
        place.run(where, "git", "coord", "task", "add", f"task {number}", env=env)
    for file in files[:_LISTED]:
        (where / file).write_text("changed\n")
    return where


def start(place: Place, rounds: int) -> list[Result]:
    """Time `start` in a loaded small project, and count its lines."""
    where = _loaded(place)
    lines = place.run(where, "git", "coord", "start").count("\n")
    os.chdir(where)
    samples = interleave(
        rounds,
        {
            "start": lambda _: place.timed("git", "coord", "start"),
            "python": lambda _: place.bare_python(),
        },
        warm=2,
    )
    return [
        compare("start", "git coord start / python3 -I -S -c pass", samples, "start", "python", Target(8)),
        Result("start-lines", "git coord start: lines", lines, Target(_LINES), {"lines": lines}),
    ]


def fsync_cost(place: Place) -> float:
    """Milliseconds for one fsync of a small new file here: half of what a durable claim costs hangs on it."""
    times = []
    for n in range(20):
        fd = os.open(place.directory / f"fsync{n}", os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(fd, b"x" * 200)
        start = time.perf_counter()
        os.fsync(fd)
        times.append(time.perf_counter() - start)
        os.close(fd)
    return sorted(times)[10] * 1000

"""Repositories with many live claims or a long ledger, built by the library's own transaction and kept in a cache."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gitcoord.base.names import LEDGER
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.model import Item
from gitcoord.claims.service import release, take, wait
from gitcoord.claims.take import Take
from gitcoord.git.config import Settings
from gitcoord.git.host import Host
from gitcoord.git.repo import Repo
from gitcoord.journal.service import write
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import init
from gitcoord.tasks.events.task import New
from gitcoord.tasks.service import add
from gitcoord.world.client import ClientWorld
from tests.bench.packed import PackStore
from tests.bench.place import Place, empty_repository

# Claims of a built repository must outlive the cache.
_TTL = 7 * 24 * 3600
_CACHE_SECONDS = _TTL // 2
_AGENTS = 40
_BATCH = 200
_STAMP = "bench-built"


class Views(NamedTuple):
    claims: int
    agents: int
    tasks: int
    events: int


def spread_paths(count: int) -> list[str]:
    """Paths as in a large repository: a few big subsystems, many small ones, two to seven levels, odd sizes."""
    draw = random.Random(20)
    directories = [f"{area}{n}" for area in ("drivers", "lib", "services", "docs") for n in range(4)]
    paths: list[str] = []
    while len(paths) < count:
        # Few directories get most of what is new: the earlier, the larger.
        parent = directories[int(len(directories) * draw.random() ** 2)]
        if parent.count("/") < 5 and draw.random() < 0.35:
            parent = f"{parent}/part{len(directories)}"
            directories.append(parent)
        paths += [f"{parent}/module_{len(paths) + n}.c" for n in range(draw.choice((1, 2, 3, 5, 8, 20)))]
    return paths[:count]


def flat_paths(count: int) -> list[str]:
    return [f"generated/table_{n}.sql" for n in range(count)]


class Builder:
    """A repository below a directory, and a context on it that writes into a pack."""

    def __init__(self, place: Place, where: Path) -> None:
        empty_repository(place, where, ["README"])
        self._place = place
        self.where = where
        git_dir = where / ".git"
        env = {os.fsencode(k): os.fsencode(v) for k, v in place.env.items()} | {b"GIT_DIR": os.fsencode(git_dir)}
        head = place.run(where, "git", "rev-parse", "HEAD").strip()
        self._store = PackStore(git_dir, {"HEAD": head, "refs/heads/main": head})
        # No work tree: the builder changes no file, so nothing need be looked up there.
        repo = Repo(str(git_dir), str(git_dir), "", "", env)
        self._ctx = Context(repo, Settings([("gitcoord.gc", "false")]), self._store, Host(), ClientWorld)
        self.events = 1
        init(self._ctx, Actor("setup"), sync="main")

    def take(self, agent: str, paths: Sequence[str]) -> None:
        self._count(take(self._ctx, Take(Actor(agent), tuple(Item("path", p) for p in paths), ttl=_TTL)))

    def release(self, agent: str, paths: Sequence[str]) -> None:
        release(self._ctx, Actor(agent), tuple(Item("path", p) for p in paths))
        self.events += 1

    def wait(self, agent: str, paths: Sequence[str]) -> None:
        """A place in the queue, without a process that waits."""
        wait(self._ctx, Wait(Actor(agent), tuple(Item("path", p) for p in paths), ttl=_TTL, blocking=False))
        self.events += 1

    def write(self, agent: str, text: str) -> None:
        write(self._ctx, Actor(agent), text)
        self.events += 1

    def add_tasks(self, agent: str, titles: Sequence[str]) -> None:
        self.events += len(add(self._ctx, Actor(agent), tuple(New(title) for title in titles))["tasks"])  # type: ignore[arg-type]

    def _count(self, result: dict[str, object]) -> None:
        self.events = int(str(result["token"]))

    def trim(self) -> None:
        self._store.forget_history(self._store.refs[LEDGER])

    def finish(self) -> None:
        self._store.finish(self._place.env)
        (self.where / ".git" / _STAMP).write_text(f"{time.time():.0f}\n")


def with_claims(place: Place, where: Path, paths: Sequence[str]) -> None:
    """These claims are live, in the hands of up to forty agents."""
    builder, progress = Builder(place, where), Progress(where.name, len(paths))
    batch = min(_BATCH, max(1, len(paths) // _AGENTS))
    for n, start in enumerate(range(0, len(paths), batch)):
        builder.take(f"agent{n % _AGENTS}", paths[start : start + batch])
        builder.trim()
        progress.show(start + batch)
    builder.finish()


def with_events(place: Place, where: Path, events: int) -> None:
    """A ledger with so many events; ten claims live, all others taken and given back by twenty agents."""
    builder, progress = Builder(place, where), Progress(where.name, events)
    paths = spread_paths(500)
    for path in paths[:10]:
        builder.take("agent0", [path])
    _go_on(builder, progress, paths[10:], events)


def _go_on(builder: Builder, progress: Progress, paths: Sequence[str], events: int) -> None:
    """Twenty agents take and give back these paths until there are so many events."""
    n = 0
    while builder.events < events:
        agent, path = f"agent{n % 20}", paths[n % len(paths)]
        builder.take(agent, [path])
        builder.release(agent, [path])
        n += 1
        if n % 500 == 0:
            builder.trim()
            progress.show(builder.events)
    builder.finish()


def with_journal(place: Place, where: Path, entries: int) -> None:
    """A journal with so many entries, written by twenty agents."""
    builder, progress = Builder(place, where), Progress(where.name, entries)
    for n in range(entries):
        builder.write(f"agent{n % 20}", f"entry {n}: the parser reads numbers, strings still fail")
        if n % 1000 == 999:
            builder.trim()
            progress.show(n)
    builder.finish()


def with_views(place: Place, where: Path, size: Views) -> None:
    """Many of everything that is shown: live claims of many agents, tasks, events."""
    builder, progress = Builder(place, where), Progress(where.name, size.events)
    paths = spread_paths(size.claims + 300)
    each = size.claims // size.agents
    for n in range(size.agents):
        builder.take(f"agent{n}", paths[n * each : (n + 1) * each])
    builder.trim()
    for n in range(0, size.tasks, 50):
        builder.add_tasks("agent0", [f"task number {m}" for m in range(n, min(n + 50, size.tasks))])
    _go_on(builder, progress, paths[size.claims :], size.events)


def with_waiters(place: Place, where: Path, waiters: int) -> None:
    """One agent holds a directory; so many wait for it, for directories below it and for those below them."""
    builder, progress = Builder(place, where), Progress(where.name, waiters)
    builder.take("holder", ["src"])
    for n in range(waiters):
        parts = ("src", f"part{n % 7}", f"module{n % 50}", f"file{n}")
        builder.wait(f"waiter{n}", ["/".join(parts[: 1 + n % 4])])
        if n % 50 == 49:
            builder.trim()
            progress.show(n)
    builder.finish()


def with_contention(place: Place, where: Path, events: int) -> None:
    """A ledger with so many events: one agent takes a path, two wait for it, and each has it in turn."""
    builder, progress = Builder(place, where), Progress(where.name, events)
    paths, n = spread_paths(500), 0
    while builder.events < events:
        path, agents = [paths[n % len(paths)]], [f"agent{(n + each) % _AGENTS}" for each in range(3)]
        builder.take(agents[0], path)
        for agent in agents[1:]:
            builder.wait(agent, path)
        for agent in agents:
            builder.release(agent, path)
        n += 1
        if n % 200 == 0:
            builder.trim()
            progress.show(builder.events)
    builder.finish()


class Progress:
    """A line every few seconds."""

    def __init__(self, name: str, total: int) -> None:
        self._name = name
        self._total = total
        self._start = self._last = time.monotonic()

    def show(self, done: int) -> None:
        now = time.monotonic()
        if now - self._last > 5:
            self._last = now
            words = f"  building {self._name}: {done} of {self._total} ({now - self._start:.0f} s)"
            print(words, file=sys.stderr, flush=True)


def is_fresh(where: Path) -> bool:
    """Was it built whole, and do its claims still live?"""
    try:
        return time.time() - float((where / ".git" / _STAMP).read_text()) < _CACHE_SECONDS
    except (OSError, ValueError):
        return False


def settle(place: Place, where: Path) -> None:
    """Pack everything, refs too, as git's own maintenance does: the same for all compared commands."""
    place.run(where, "git", "gc", "--quiet", "--prune=now")
    os.sync()

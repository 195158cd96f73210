"""The same window, raced: many rounds, both pushes paused at random between their check and their ref lock."""

from __future__ import annotations

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from gitcoord.claims.model import Item
from gitcoord.claims.service import take
from gitcoord.claims.take import Take
from gitcoord.git.config import Settings
from gitcoord.git.host import Host
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.transaction import transact
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.kill import decide as decide_kill
from gitcoord.sessions.events.revive import Revive
from gitcoord.sessions.events.revive import decide as decide_revive
from gitcoord.world.client import ClientWorld
from tests.races.support import git_version, keep_figures, long_timeout, soak
from tests.server.support import Site
from tests.support import git, plumbing_store, repo_at

# `pauses` says for each push how long it is held up before it is judged, and after it was found good.
_BEFORE = """#!/bin/sh
read -r code ledger _ <"{place}/pauses"
while read -r _ _ ref; do
    case $ref in
    refs/heads/main) exec sleep "$code" ;;
    refs/heads/gitcoord) exec sleep "$ledger" ;;
    esac
done
"""
_AFTER = """#!/bin/sh
read -r _ _ code ledger <"{place}/pauses"
case $1 in
refs/heads/main) exec sleep "$code" ;;
refs/heads/gitcoord) exec sleep "$ledger" ;;
esac
"""
AGENTS, BOB = ("alice", "carol"), Actor("bob", person=True)
CHUNK = 200  # rounds on one server: after so many it would be slow with loose objects
# The first two rounds of each: the code is far ahead, then the kill is, so that both outcomes occur on any machine.
SURE: list[tuple[list[float], list[int]]] = [([0, 1, 0, 0], [0, 1]), ([1, 0, 0, 0], [1, 0])]
LANES = 3  # servers at the same time, so that one works while another pauses


class Race:
    """A push of code by the holder of a path against a push in which bob kills it and the other agent takes the path.

    What the ledger says when the dust settles binds main. The loser of one round is revived for the next.
    """

    def __init__(self, place: Path) -> None:
        place.mkdir(exist_ok=True)
        self.site = Site(place).setup()
        repo = repo_at(self.site.top / ".git", worktree=self.site.top)
        self.ctx = Context(repo, Settings([("gitcoord.gc", "false")]), plumbing_store(repo, 40), Host(), ClientWorld)
        for name, text in (("pre-receive.before-gitcoord", _BEFORE), ("update", _AFTER)):
            hook = self.site.bare / "hooks" / name
            hook.write_text(text.format(place=place))
            hook.chmod(0o755)
        self.pause(0, 0, 0, 0)
        self.landed = self.refused = 0
        self.take(AGENTS[0])
        done = self.site.sync()
        assert done.code == 0, done

    def run(self, rounds: int, chance: Random) -> Race:
        for number, tree in enumerate(self.trees(rounds)):
            pauses = [chance.choice((0, 0.05, 0.1, 0.2)), chance.choice((0, 0, 0.03, 0.06))]
            pauses += [chance.choice((0, 0, 0.03, 0.1, 0.3)) for _ in range(2)]
            order = chance.sample((0, 1), 2)
            if number < len(SURE):
                pauses, order = SURE[number]
            self.round(number, tree, pauses, order)
        return self

    def round(self, number: int, tree: str, pauses: list[float], order: list[int]) -> None:
        site, holder, heir = self.site, AGENTS[number % 2], AGENTS[(number + 1) % 2]
        message = f"round {number}\n\nAgent: {holder}\n"
        commit = git(site.top, "commit-tree", "-p", self.main(), tree, data=message.encode()).decode().strip()
        transact(self.ctx, decide_kill, Kill(BOB._replace(person=True), holder))
        if number:
            transact(self.ctx, decide_revive, Revive(BOB, heir))
        self.take(heir)
        self.pause(*pauses)
        pushes = [["-o", f"agent={holder}", "origin", f"{commit}:main"], ["--atomic", "origin", *site.refspecs()]]
        running = {one: self.start(one, pushes[one]) for one in order}
        assert running[1].wait(60) == 0, "the kill did not land: " + (site.place / "said-1").read_text()
        at_kill = self.main()
        landed = running[0].wait(60) == 0
        assert self.main() == at_kill, (
            f"round {number}: main moved after {holder} was killed (pauses {pauses}, first {order[0]})"
        )
        assert (at_kill == commit) == landed, (site.place / "said-0").read_text()
        self.landed, self.refused = self.landed + landed, self.refused + (not landed)

    def trees(self, count: int) -> list[str]:
        """As many trees of main, each with its own content at the path."""
        blobs = [f"blob\nmark :{n + 1}\ndata 5\n{n:05}\n" for n in range(count)]
        git(self.site.top, "fast-import", "--quiet", "--export-marks=marks", data="".join(blobs).encode())
        marks = dict(line.split() for line in (self.site.top / "marks").read_text().splitlines())
        files = [f"100644 blob {marks[f':{n + 1}']}" for n in range(count)]
        below = [f"040000 tree {tree}" for tree in self.replaced("main:shared", "a", files)]
        return self.replaced("main", "shared", below)

    def replaced(self, tree: str, name: str, entries: list[str]) -> list[str]:
        """A tree for each of these entries at a name."""
        lines = git(self.site.top, "ls-tree", tree).decode().splitlines()
        others = "".join(f"{line}\n" for line in lines if line.partition("\t")[2] != name)
        data = "".join(f"{others}{entry}\t{name}\n\n" for entry in entries)
        return git(self.site.top, "mktree", "--batch", data=data.encode()).decode().split()

    def take(self, agent: str) -> None:
        take(self.ctx, Take(Actor(agent), (Item("path", "shared/a"),)))

    def pause(self, *seconds: float) -> None:
        (self.site.place / "pauses").write_text(" ".join(map(str, seconds)) + "\n")

    def start(self, one: int, words: list[str]) -> subprocess.Popen[bytes]:
        with open(self.site.place / f"said-{one}", "wb") as said:
            argv = ["git", "-c", "core.hooksPath=/dev/null", "push", "-q", *words]
            return subprocess.Popen(argv, cwd=self.site.top, stderr=said)

    def main(self) -> str:
        return (self.site.bare / "refs/heads/main").read_text().strip()


@long_timeout
def test_no_stale_write_lands(tmp_path: Path) -> None:
    rounds, seed = soak(8, 3000), os.environ.get("GITCOORD_SEED", "48")
    began = time.monotonic()
    parts = [(first, min(CHUNK, rounds - first)) for first in range(0, rounds, CHUNK)]
    with ThreadPoolExecutor(LANES) as lanes:
        races = list(
            lanes.map(lambda part: Race(tmp_path / str(part[0])).run(part[1], Random(f"{seed}-{part[0]}")), parts)
        )
    landed, refused = sum(race.landed for race in races), sum(race.refused for race in races)
    print(f"{rounds} rounds: {landed} pushes landed before the kill, {refused} were refused after it")
    figures = {"rounds": rounds, "landed before": landed, "refused after": refused, "stale writes": 0}
    keep_figures(f"no window, {git_version()}", {**figures, "seconds": round(time.monotonic() - began, 1)})
    assert landed + refused == rounds
    assert landed and refused, "both outcomes must occur, or nothing was raced"


@long_timeout
def test_without_the_registry_it_is_found(tmp_path: Path) -> None:
    """The race finds the window where it is open: the code, once checked, is held up longer from round to round."""
    race = Race(tmp_path)
    race.site.setting("inflight", "false")
    with pytest.raises(AssertionError, match="main moved after"):
        for number, tree in enumerate(race.trees(7)):
            race.round(number, tree, [0, 0.2, 0.3 * 2**number, 0], [0, 1])
    print(f"a stale write landed in round {race.landed + race.refused}")

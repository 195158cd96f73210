"""The same window, raced: many rounds, both pushes paused at random between their check and their ref lock."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from random import Random
from typing import Any

from gitcoord.app.claims import take
from gitcoord.app.context import Context
from gitcoord.app.transact import transact
from gitcoord.core.claims import Item
from gitcoord.core.kinds.claim import Take
from gitcoord.core.kinds.kill import Kill
from gitcoord.core.kinds.kill import decide as decide_kill
from gitcoord.core.kinds.revive import Revive
from gitcoord.core.kinds.revive import decide as decide_revive
from gitcoord.core.sessions import Actor
from gitcoord.hot.host import Host
from gitcoord.store.settings import Settings
from tests.race.support import long_timeout, soak
from tests.server.support import Site
from tests.support import git, plumbing_store, repo_at

# `pauses` says for each ref how long its push is held up after it was found good.
_PAUSES = """#!/bin/sh
read -r code ledger <"{place}/pauses"
case $1 in
refs/heads/main) exec sleep "$code" ;;
refs/heads/gitcoord) exec sleep "$ledger" ;;
esac
"""
ALICE, BOB = Actor("alice"), Actor("bob")


class Race:
    """alice's push of code against bob's kill of alice: what the ledger says when the dust settles binds main."""

    def __init__(self, place: Path) -> None:
        self.site = Site(place).setup()
        repo = repo_at(self.site.top / ".git", worktree=self.site.top)
        self.ctx = Context(repo, Settings([("gitcoord.gc", "false")]), plumbing_store(repo, 40), Host())
        hook = self.site.bare / "hooks/update"
        (place / "pauses").write_text("0 0\n")
        hook.write_text(_PAUSES.format(place=place))
        hook.chmod(0o755)
        self.landed = self.refused = 0

    def do(self, decide: Any, command: Any) -> None:
        transact(self.ctx, decide, command)

    def sync(self) -> None:
        done = self.site.sync()
        assert done.code == 0, done

    def round(self, number: int, chance: Random) -> None:
        site = self.site
        take(self.ctx, Take(ALICE, (Item("path", "shared/a"),)))
        self.sync()
        base = site.world.git("rev-parse", "main")
        site.commit({"shared/a": f"{number}\n"}, "alice")
        self.do(decide_kill, Kill(BOB, "alice"))
        pauses = [chance.choice((0, 0, 0.03, 0.1, 0.3)) for _ in range(2)]
        (site.place / "pauses").write_text(f"{pauses[0]} {pauses[1]}\n")
        pushes = [["-o", "agent=alice", "origin", "main"], ["--atomic", "origin", *site.refspecs()]]
        order = chance.sample((0, 1), 2)
        running = {one: self.start(one, pushes[one]) for one in order}
        assert running[1].wait(60) == 0, "the kill did not land: " + (site.place / "said-1").read_text()
        at_kill = self.main()
        landed = running[0].wait(60) == 0
        assert self.main() == at_kill, (
            f"round {number}: main moved after alice was killed (pauses {pauses}, first {order[0]})"
        )
        self.landed, self.refused = self.landed + landed, self.refused + (not landed)
        (site.place / "pauses").write_text("0 0\n")
        if not landed:
            site.world.git("reset", "-q", "--hard", base)
        self.do(decide_revive, Revive(BOB._replace(person=True), "alice"))
        self.sync()

    def start(self, one: int, words: list[str]) -> "subprocess.Popen[bytes]":
        with open(self.site.place / f"said-{one}", "wb") as said:
            return subprocess.Popen(["git", "push", "-q", *words], cwd=self.site.top, stderr=said)

    def main(self) -> str:
        return git(self.site.bare, "rev-parse", "main").decode().strip()


@long_timeout
def test_no_stale_write_lands(tmp_path: Path) -> None:
    race, chance = Race(tmp_path), Random(os.environ.get("GITCOORD_SEED", "48"))
    rounds = soak(12, 3000)
    for number in range(rounds):
        race.round(number, chance)
    assert race.landed + race.refused == rounds
    assert race.landed and race.refused, "both outcomes must occur, or nothing was raced"


@long_timeout
def test_without_the_registry_it_is_found(tmp_path: Path) -> None:
    """The race finds the window where it is open."""
    race, chance = Race(tmp_path), Random(48)
    race.site.setting("inflight", "false")
    for number in range(100):
        try:
            race.round(number, chance)
        except AssertionError as error:
            assert "main moved after alice was killed" in str(error)
            return
    raise AssertionError("no stale write in 100 rounds")

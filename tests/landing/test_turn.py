"""The turn while a check runs: taken again where somebody waits for it, on this machine or another; lost ones are noticed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitcoord.base.errors import Refused
from gitcoord.claims.model import Item, own_claim
from gitcoord.claims.service import take, wait
from gitcoord.claims.take import Take
from gitcoord.landing.model import AGAIN, own_turn
from gitcoord.landing.turn import Turn
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.world.open import environ, open_repository
from tests.cli.support import World
from tests.ledger.remote.support import Fleet


def test_a_long_check_keeps_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Fleet(tmp_path).joined()
    monkeypatch.chdir(one.repo)
    for name, value in one.env.items():
        monkeypatch.setenv(name, value)
    ctx = open_repository(environ(), writing=True)
    try:
        turn = Turn(ctx, Actor("alice"), "main", "topic")
        turn.ask((), lambda command: wait(ctx, command))
        first = own_turn(read_snapshot(ctx).state, "main", "alice")
        assert first is not None and turn.tick() > 0
        turn._taken -= 30_000  # as if half of the lease were over
        turn.tick()
        assert own_turn(read_snapshot(ctx).state, "main", "alice") == first, "nobody waits: no event"
        assert two.claim("--queue", "@land/main", agent="bob").code == 3
        turn.tick()
        again = own_turn(read_snapshot(ctx).state, "main", "alice")
        assert again is not None and again.token > first.token and again.ttl == again.expected == AGAIN
        assert two.claim("--queue", "@land/main", agent="bob").code == 3
        assert turn.give_back()
        turn._taken -= 30_000
        with pytest.raises(Refused, match="is over"):
            turn.tick()
        assert not turn.give_back()
    finally:
        ctx.store.close()
        os.chdir(tmp_path)


def test_a_turn_that_is_given_back_leaves_a_weaker_claim_from_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    World(tmp_path).init()
    monkeypatch.chdir(tmp_path)
    ctx = open_repository(environ(), writing=True)
    alice, src, new = Actor("alice"), Item("path", "src"), Item("path", "new")

    def mode(item: Item) -> str:
        own = own_claim(read_snapshot(ctx).state, item, "alice")
        return own.mode if own is not None else ""

    try:
        take(ctx, Take(alice, (src,), "intent"))
        turn = Turn(ctx, alice, "main", "topic")
        turn.ask((src, new), lambda command: wait(ctx, command))
        assert (mode(src), mode(new)) == ("write", "write")
        turn.extend(AGAIN)
        assert turn.give_back()
        assert (mode(src), mode(new)) == ("intent", "")
        assert not turn.give_back() and mode(src) == "intent"
    finally:
        ctx.store.close()

"""The use cases on the memory store: the same transactions as on a disk, and a tree that is what replay makes of the events."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from gitcoord.base.codec import decode_file
from gitcoord.base.errors import GitcoordError, Refused
from gitcoord.base.names import LEDGER, claim_file
from gitcoord.claims import service as claims
from gitcoord.claims.events import expire
from gitcoord.claims.model import Item
from gitcoord.claims.take import Take
from gitcoord.git.tree import Trees
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import effects
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import transact
from gitcoord.sessions import service as sessions
from tests.support import FakeHost, memory_ledger

ALICE, BOB = Actor("alice"), Actor("bob")


def take(ctx: Context, who: Actor, *names: str) -> dict[str, object]:
    return claims.take(ctx, Take(who, tuple(Item("path", name) for name in names)))


def check_tree(ctx: Context) -> None:
    """Every event from the first on, applied, gives the files of the tip's tree and its claim refs."""
    commits: list[Commit] = []
    oid = ctx.store.resolve([LEDGER])[0]
    while oid is not None:
        commits.append(Commit(ctx.store.read([oid])[0], oid))
        oid = commits[-1].parents[0] if commits[-1].parents else None
    state = State()
    granted: dict[int, str] = {}
    for commit in reversed(commits):
        event = commit.event
        state.patch(effects(state, event))
        state.seq = event.seq
        granted[event.seq] = commit.oid
    files = dict(Trees(ctx.store).files(("", commits[0].tree)))
    stored = {
        key: decode_file(key, found.data) for key, found in zip(files, ctx.store.read(list(files.values()))) if found
    }
    assert stored == state.files
    live = {
        "refs/" + claim_file(c["space"], c["path"], c["agent"]): granted[c["token"]]
        for c in state.below("claims").values()
    }
    assert ctx.store.list_refs("refs/claims/") == live


def test_take_refuse_release(tmp_path: Path) -> None:
    ctx = memory_ledger(tmp_path)
    take(ctx, ALICE, "src/app.py", "docs")
    with pytest.raises(Refused) as caught:
        take(ctx, BOB, "src")
    assert caught.value.code == "held"
    check_tree(ctx)
    claims.release(ctx, ALICE, ())
    take(ctx, BOB, "src")
    check_tree(ctx)


@pytest.mark.parametrize("seed", range(3))
def test_the_tree_is_the_history_applied(tmp_path: Path, seed: int) -> None:
    host, chance = FakeHost(), Random(seed)
    ctx = memory_ledger(tmp_path, host)
    names = [f"d{number % 3}/f{number}" for number in range(150)] + ["d0", "d1", "."]
    for _ in range(60):
        who = Actor(chance.choice(["alice", "bob", "carol"]))
        step = chance.random()
        try:
            if step < 0.6:
                take(ctx, who, *chance.sample(names, chance.choice([1, 2, 40])))
            elif step < 0.8:
                claims.release(ctx, who, ())
            elif step < 0.9:
                host.advance(chance.choice([10, 4000]))
            elif step < 0.95:
                sessions.stop(ctx, who)
            else:
                transact(ctx, expire.decide, expire.Sweep(who))
        except GitcoordError as error:
            assert isinstance(error, Refused)
    check_tree(ctx)

"""A client of the minor format before the queue: once somebody has waited, it is told to upgrade, and overtakes nobody."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitcoord.base.errors import CouldNotJudge, Refusal
from gitcoord.base.names import LEDGER
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.release import decide as decide_release
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.events.wait import decide as decide_wait
from gitcoord.claims.take import Take
from gitcoord.claims.take import decide as decide_take
from gitcoord.ledger import commit as ledger_commit
from gitcoord.ledger import transaction
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Decision
from gitcoord.ledger.fsck import fsck
from gitcoord.ledger.kinds import KINDS
from gitcoord.ledger.repair.service import repair
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import init
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import transact
from tests.gates.repository import Repository
from tests.ledger.world import World, paths
from tests.server.test_retrace import judged

ALICE, BOB, OLD = Actor("alice"), Actor("bob"), Actor("old")


def _release_what_bob_waits_for(ctx: Context) -> None:
    transact(ctx, decide_release, Release(ALICE, paths("a"), dirty=True))


LATER: dict[str, Callable[[Context], object]] = {
    "the wait is on top": lambda ctx: None,
    "a kind that it knows is on top": lambda ctx: transact(ctx, decide_take, Take(ALICE, paths("other"))),
    "a release that grants is on top": _release_what_bob_waits_for,
}


@pytest.fixture
def waited(tmp_path: Path) -> Context:
    """A ledger in which bob waits for alice's path, and which both clients have used before."""
    ctx = Repository(tmp_path / "here").ctx
    init(ctx, Actor("setup"), sync="main", fold=False)
    transact(ctx, decide_take, Take(OLD, paths("mine")))
    transact(ctx, decide_take, Take(ALICE, paths("a")))
    transact(ctx, decide_wait, Wait(BOB, paths("a")))
    return ctx


def _become_old(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (transaction, ledger_commit):
        monkeypatch.setattr(module, "FORMAT_MINOR", 0)
    for kind in ("wait", "leave", "promote"):
        monkeypatch.delitem(KINDS, kind, raising=False)


@pytest.mark.parametrize("later", LATER)
def test_it_is_told_to_upgrade_and_changes_nothing(
    waited: Context, monkeypatch: pytest.MonkeyPatch, later: str
) -> None:
    LATER[later](waited)
    before = waited.store.resolve([LEDGER])
    _become_old(monkeypatch)
    for attempt in (
        lambda: transact(waited, decide_take, Take(OLD, paths("a"))),
        lambda: transact(waited, decide_release, Release(OLD, paths("mine"), dirty=True)),
        lambda: fsck(waited, waited.store, None),
        lambda: repair(waited, OLD),
    ):
        with pytest.raises(CouldNotJudge) as error:
            attempt()
        assert any("upgrade gitcoord on this side" in hint for hint in error.value.hints), error.value.hints
        assert not any("--repair" in hint for hint in error.value.hints), "unknown events are no damage"
    assert waited.store.resolve([LEDGER]) == before
    monkeypatch.undo()
    assert fsck(waited, waited.store, None)["differences"] == [] and read_snapshot(waited)


def _without_requests(state: State) -> State:
    """The state as a client sees it that knows of no requests."""
    return State({key: record for key, record in state.files.items() if not key.startswith("waits/")}, seq=state.seq)


def test_at_a_server_it_overtakes_nobody() -> None:
    """It has decided on what it knows, and its push comes after somebody's wait."""
    world = World()
    for actor, name in ((ALICE, "a"), (Actor("carol"), "c")):
        world.must("claim", Take(actor, paths(name)))
    world.must("wait", Wait(BOB, paths("a", "b")))
    seen, outside = _without_requests(world.state), world.outside()
    answers = {
        "passes bob and does not count it": decide_take(seen, Take(OLD, paths("b")), outside),
        "frees and does not grant": decide_release(seen, Release(ALICE, paths("a")), outside),
    }
    for what, answer in answers.items():
        assert isinstance(answer, Decision) and not any(event.granted or event.past for event in answer.events)
        refusal = judged(world, answer.events)
        assert isinstance(refusal, Refusal), what
        assert any("upgrade gitcoord on this side" in hint for hint in refusal.hints), (what, refusal)
    world.must("release", Release(ALICE, paths("a")))
    assert {claim.path for claim in world.claims("bob")} == {"a", "b"}

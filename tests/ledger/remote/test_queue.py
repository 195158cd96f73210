"""The queue between clones, with and without a gate on the server, and on a host that takes nothing but branches."""

from __future__ import annotations

import subprocess
from contextlib import chdir
from types import SimpleNamespace
from typing import Any

import pytest

from gitcoord.base.names import LEDGER
from gitcoord.claims.cli_sleep import Rest
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.model import WRITE, Item
from gitcoord.claims.service import wait
from gitcoord.ledger.remote import transaction
from gitcoord.ledger.sessions import Actor
from gitcoord.world.open import environ, open_repository
from tests.ledger.remote.support import Fleet, Machine
from tests.support import CLAIM, COORD


@pytest.fixture(params=["no gate", "gate", "branches"])
def machines(request: pytest.FixtureRequest, fleet: Fleet) -> list[Machine]:
    if request.param == "gate":
        request.getfixturevalue("gated")
    elif request.param == "branches":
        fleet.take_only_branches()
        for machine in fleet.machines:
            machine.join()
        return fleet.machines
    return fleet.joined()


def _holders(machine: Machine) -> list[str]:
    return [row["agent"] for row in machine.claim("list", "--json").json["claims"]]


def test_a_release_on_one_machine_grants_to_the_first_waiter_of_another(fleet: Fleet, machines: list[Machine]) -> None:
    one, two = machines
    assert one.claim("a", agent="alice").code == 0
    first = two.claim("--queue", "a", "--json", agent="bob")
    assert (first.code, first.json["position"]) == (3, 1), first
    second = one.claim("--queue", "a", "--json", agent="carol")
    assert (second.code, second.json["position"], second.json["before"]) == (3, 2, ["bob"]), second
    assert two.claim("--queue", "a", "--json", agent="bob").json["ticket"] == first.json["ticket"]
    assert one.claim("release", "a", agent="alice").code == 0
    assert _holders(two) == ["bob"]
    assert two.claim("--queue", "a", agent="bob").code == 0
    assert one.claim("a", agent="alice").code == 1
    assert two.claim("release", "a", agent="bob").code == 0
    assert _holders(one) == ["carol"]
    assert one.claim("--wait", "10s", "a", agent="carol").code == 0
    fleet.assert_sound()


def test_waiting_and_leaving(fleet: Fleet, machines: list[Machine]) -> None:
    one, two = machines
    assert one.claim("a", agent="alice").code == 0
    assert two.claim("--wait", "1s", "a", agent="bob").code == 3
    assert "waits" not in one.claim("list", "--json").json
    assert two.claim("--queue", "a", agent="bob").code == 3
    assert two.claim("--leave", "a", agent="bob").code == 0
    assert one.claim("release", "a", agent="alice").code == 0
    assert _holders(two) == []
    fleet.assert_sound()


@pytest.mark.parametrize(
    "words", [(*CLAIM, "--wait", "4s", "a"), (*COORD, "task", "next", "--wait", "4s")], ids=["claim", "task"]
)
def test_a_wait_that_ends_while_the_remote_is_cut_says_that_its_place_stays(
    fleet: Fleet, words: tuple[str, ...]
) -> None:
    one, two = fleet.joined()
    assert one.claim("a", agent="alice").code == 0
    env = {**two.env, "GITCOORD_AGENT": "bob"}
    with subprocess.Popen(
        words, cwd=two.repo, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as waiter:
        assert waiter.stderr is not None and waiter.stderr.readline().startswith("waiting: ")
        fleet.bare.rename(fleet.place / "away")
        said = waiter.stderr.read()
    assert waiter.returncode == 5 and "error: waited 4s, and your place in the queue stays at the remote: " in said
    assert "hint: to leave it when the remote answers: git claim --leave" in said
    (fleet.place / "away").rename(fleet.bare)
    assert [row["agent"] for row in one.claim("list", "--json").json["waits"]] == ["bob"]
    assert two.claim("--leave", agent="bob").code == 0
    assert "waits" not in one.claim("list", "--json").json


def test_the_server_goes_by_the_settings_of_its_own_trunk(fleet: Fleet, gated: Fleet) -> None:
    one, two = fleet.joined()
    assert one.claim("a", agent="alice").code == 0
    one.commit({".gitcoord/config": "[queue]\n\treserveQueued = 5m\n"})
    one.git("push", "-q", "origin", "main")
    done = two.claim("--queue", "a", agent="bob")
    assert done.code == 1 and "not what the rules make of it on the server (in reserve)" in done.err
    assert "hint: fetch and try again" in done.err
    two.git("pull", "-q")
    assert two.claim("--queue", "a", agent="bob").code == 3
    assert one.claim("release", "a", agent="alice").code == 0
    fleet.assert_sound()


def test_a_waiter_on_another_machine_is_told_and_its_confirmation_reaches_the_server(
    fleet: Fleet, machines: list[Machine]
) -> None:
    one, two = machines
    assert one.claim("a", agent="alice").code == 0
    assert two.claim("--queue", "a", agent="bob").code == 3
    assert "note: bob waits for a, which you hold" in one.claim("list", agent="alice").err
    assert one.claim("release", "a", agent="alice").code == 0
    assert [row.get("reserved") for row in one.claim("list", "--json").json["claims"]] == [True]
    assert "note: a is yours, token " in two.claim("list", agent="bob").err
    assert [row.get("reserved") for row in one.claim("list", "--json").json["claims"]] == [None]
    fleet.assert_sound()


def test_a_waiter_that_looks_again_does_not_yield_to_other_machines(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place cost lost races, and then it would let others go first for so long that it missed its grant."""
    one, two = fleet.joined()
    assert one.claim("a", agent="alice").code == 0
    yielded: list[object] = []
    monkeypatch.setattr(transaction, "wait_for_turn", yielded.append)
    command = Wait(Actor("bob"), (Item("path", "a"),), WRITE, 60, 60, "")
    with chdir(two.repo):
        ctx = open_repository(environ(), writing=True)
        try:
            assert "waiting" in wait(ctx, command) and yielded
            yielded.clear()
            assert "waiting" in wait(ctx, command, again=True) and not yielded
            assert one.claim("release", "a", agent="alice").code == 0
            assert "claims" in wait(ctx, command, again=True) and not yielded
        finally:
            ctx.store.close()
    assert _holders(one) == ["bob"]


@pytest.mark.parametrize(("machines", "looks"), [("no gate", 2), ("branches", 1)], indirect=["machines"])
def test_the_first_in_the_queue_asks_for_its_grant_alone(machines: list[Machine], looks: int) -> None:
    """An event of others does not make it read the ledger; its own grant ends its sleep at once. A host that takes nothing but branches
    has no ref of the grant: there the waiter reads the ledger each time."""
    one, two = machines
    assert one.claim("a", agent="alice").code == 0
    assert two.claim("--queue", "a", agent="bob").code == 3
    steps = [("other",), ("release", "a")]
    waited: list[float] = []

    def wait_for(seconds: float) -> tuple[int, int]:
        waited.append(seconds)
        assert one.claim(*steps[len(waited) - 1], agent="alice").code == 0
        return 0, 0

    with chdir(two.repo):
        ctx = open_repository(environ(), writing=True)
        try:
            call: Any = SimpleNamespace(ctx=ctx)
            rest = Rest(call, (Item("path", "a"),), "bob", eager=True)
            rest.stands(1)
            before = ctx.store.target(LEDGER)
            bell: Any = SimpleNamespace(wait=wait_for)
            rest(bell, 3600)
            ctx.store.refresh()
            assert len(waited) == looks and max(waited) < 1, "two looks: it saw nothing the first time"
            assert ctx.store.target(LEDGER) == before, "no fetch"
        finally:
            ctx.store.close()

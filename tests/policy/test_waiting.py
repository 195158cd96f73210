"""The settings of the queue: their values, and which class a role may ask for."""

from __future__ import annotations

import pytest

from gitcoord.base.errors import CouldNotJudge
from gitcoord.ledger import world as ledger_world
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.world import Waiting
from gitcoord.policy.model import Policy
from gitcoord.policy.parse import parse_policy
from gitcoord.policy.waiting import highest_priority, parse_waiting
from tests.ledger.world import World

PAIRS = [
    ("queue.overtake", "5"), ("queue.reserve", "1m"), ("queue.reservequeued", "10m"), ("queue.priority", "normal"),
    ("role.ops.priority", "critical"), ("agent.olga.role", "ops"),
]  # fmt: skip


def test_the_settings() -> None:
    assert parse_waiting([]) == Waiting(3, 15, 120, "high")
    assert parse_waiting(PAIRS) == Waiting(5, 60, 600, "normal", (("ops", "critical"),))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("queue.overtake", "-1"), ("queue.overtake", "many"), ("queue.reserve", "0s"), ("queue.reserve", "2h"),
        ("queue.reservequeued", "soon"), ("queue.priority", "low"), ("role.ops.priority", "urgent"),
    ],
)  # fmt: skip
def test_an_unusable_value_is_no_default(key: str, value: str) -> None:
    with pytest.raises(CouldNotJudge, match=rf"\.gitcoord/config: {key} is '{value}'"):
        parse_waiting([(key, value)])


class _Settings(ledger_world.World):
    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        super().__init__(0, 0, "")
        self.pairs = pairs

    def waiting(self) -> Waiting:
        return parse_waiting(self.pairs)

    def policy(self) -> Policy:
        return parse_policy(self.pairs)


@pytest.mark.parametrize(
    ("actor", "highest"),
    [(Actor("ann"), "normal"), (Actor("olga"), "critical"), (Actor("olga.sub"), "critical"), (Actor("ann", person=True), "critical")],
)  # fmt: skip
def test_the_class_that_a_role_may_ask_for(actor: Actor, highest: str) -> None:
    assert highest_priority(World().state, actor, _Settings(PAIRS)) == highest
    assert highest_priority(World().state, Actor("ann"), _Settings([])) == "high"

"""Roles, clause by clause: which one an agent has, where it writes, and who may approve."""

from __future__ import annotations

import pytest

from gitcoord.ledger import world as ledger_world
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import State
from gitcoord.policy.model import Attributes, Policy, Role
from gitcoord.policy.parse import parse_policy
from gitcoord.policy.roles import (
    GivenRole,
    is_free,
    may_approve,
    may_not_claim,
    not_an_approver,
    not_an_overseer,
    out_of_role,
    role_of,
)  # fmt: skip
from tests.ledger.world import World

ADA = Actor("ada", person=True)
POLICY = parse_policy([("gitcoord.approver", "ada")])._replace(
    roles={
        "code": Role(),
        "explore": Role(readonly=True, scratch="notes/{agent}"),
        "verify": Role(readonly=True),
        "boss": Role(overseer=True),
        "draft": Role(scratch="drafts"),
    },
    agents={"eve": "explore", "val": "verify", "cyd": "code", "max": "boss", "don": "draft"},
    attributes={"a": Attributes(), "of-code": Attributes(writers=("code", "boss"))},
)
PRIVATE = POLICY._replace(attributes={"of-code": Attributes(writers=("code",), private=True)})


@pytest.fixture
def state() -> State:
    return World().state


class Settings(ledger_world.World):
    """A world of settings: without `classes`, these may not be asked for."""

    def __init__(
        self, policy: Policy = POLICY, classes: dict[str, dict[str, Attributes]] | None = None, *, approvers: list[str] | None = None
    ) -> None:  # fmt: skip
        super().__init__(0, 0, "")
        self._policy, self._classes, self._approvers = policy, classes, approvers

    def approvers(self) -> list[str]:
        assert self._approvers is not None
        return self._approvers

    def policy(self) -> Policy:
        return self._policy

    def restrictions(self) -> Policy | None:
        return self._policy

    def classes(self, paths: list[str]) -> dict[str, dict[str, Attributes]]:
        assert self._classes is not None
        return self._classes


def given(state: State, agent: str, role: str) -> State:
    state.load_file(f"roles/{agent}", GivenRole(agent, role, "ada", 1).to_record())
    return state


@pytest.mark.parametrize(
    ("actor", "approvers", "expected"),
    [
        (ADA, [], True),
        (ADA, ["ada"], True),
        (ADA, ["eve"], False),
        (Actor("ada"), ["ada"], False),
        (Actor("ada"), [], False),
    ],
)
def test_who_may_approve(actor: Actor, approvers: list[str], expected: bool) -> None:
    assert may_approve(actor, approvers) is expected
    refusal = not_an_approver(actor, Settings(approvers=approvers), "do it", "ask")
    assert (refusal is None) == expected
    if refusal is not None:
        listed = " whom the settings list as approver" if approvers else ""
        assert refusal.message == f"only a person at a terminal{listed} may do it" and refusal.hints == ("ask",)


@pytest.mark.parametrize(
    ("actor", "approvers", "expected"),
    [
        (ADA, (), True),
        (ADA, ("ada",), True),
        (ADA, ("eve",), False),
        (Actor("max"), ("ada",), True),  # an overseer by role
        (Actor("cyd"), ("ada",), False),
        (Actor("cyd"), (), False),
        (Actor("zoe"), (), True),  # by the usual role, which people do not have
        (Actor("zoe", person=True), ("ada",), False),
    ],
)
def test_who_may_oversee(state: State, actor: Actor, approvers: tuple[str, ...], expected: bool) -> None:
    policy = POLICY._replace(approvers=approvers, default_role="boss")
    refusal = not_an_overseer(state, actor, Settings(policy), "do it")
    assert (refusal is None) == expected
    if refusal is not None:
        listed = " whom the settings list as approver" if approvers else ""
        assert refusal.message == f"only a person at a terminal{listed} may do it"


def test_which_role(state: State) -> None:
    usual = POLICY._replace(default_role="code")
    assert role_of(state, usual, "eve") == "explore", "by the settings"
    assert role_of(state, usual, "eve.sub.sub") == "explore", "of its parent"
    assert role_of(state, usual, "zoe") == "code", "the usual one"
    assert role_of(state, usual, "zoe", person=True) == "", "which people do not have"
    assert role_of(state, usual, "eve", person=True) == "explore", "unless they are given one"
    assert role_of(given(state, "eve", "verify"), usual, "eve") == "verify", "the ledger comes first"
    assert role_of(given(state, "eve", ""), usual, "eve") == "explore", "where it gives one"
    assert role_of(given(state, "eve.sub", "code"), usual, "eve.sub.sub") == "code", "the nearest"


def test_which_roles_write_wherever_no_path_says_otherwise(state: State) -> None:
    for agent, expected in (("cyd", True), ("eve", False), ("zoe", True)):
        assert is_free(state, POLICY, Actor(agent), agent) is expected
    usual = POLICY._replace(default_role="verify")
    assert not is_free(state, usual, Actor("zoe"), "zoe")
    assert is_free(state, usual, Actor("zoe", person=True), "zoe"), "a person has no role"
    assert not is_free(state, usual, Actor("zoe", person=True), "ann"), "an agent that a person lands has"


@pytest.mark.parametrize(
    ("actor", "agent", "path", "expected"),
    [
        (Actor("cyd"), "cyd", "a", ""),
        (Actor("cyd"), "cyd", "of-code", ""),
        (Actor("zoe"), "zoe", "a", ""),
        (Actor("zoe"), "zoe", "of-code", "it is written by code, boss; 'zoe' is without a role"),
        (Actor("don"), "don", "of-code", "it is written by code, boss; 'don' is 'draft'"),
        (ADA, "don", "of-code", ""),  # whoever may approve lands anything
        (Actor("eve"), "eve", "a", "the role 'explore' of 'eve' does not write here: it writes only below notes/eve"),
        (Actor("val"), "val", "a", "the role 'verify' of 'val' does not write here"),
    ],
)
def test_where_a_role_writes(state: State, actor: Actor, agent: str, path: str, expected: str) -> None:
    assert out_of_role(state, POLICY, actor, agent, path) == expected


def test_scratch(state: State) -> None:
    policy = POLICY._replace(attributes={})
    for path in ("notes/eve", "notes/eve/x"):
        assert out_of_role(state, policy, Actor("eve"), "eve", path) == ""
    for path in ("notes/eves", "notes", "notes/ann/x"):
        assert "only below notes/eve" in out_of_role(state, policy, Actor("eve"), "eve", path)
    guarded = POLICY._replace(attributes={"drafts/x": Attributes(writers=("code",))})
    assert out_of_role(state, guarded, Actor("don"), "don", "drafts/x") == "", "whoever else writes there"


def test_scratch_is_folded_like_any_path() -> None:
    folds = World(fold_case=True).state
    assert out_of_role(folds, POLICY._replace(attributes={}), Actor("eve"), "eve", "Notes/EVE/x") == ""


def test_a_private_rule_is_not_told(state: State) -> None:
    assert out_of_role(state, PRIVATE, Actor("don"), "don", "of-code") == "a private rule of this machine says no"
    assert out_of_role(state, PRIVATE, Actor("cyd"), "cyd", "of-code") == ""


def test_the_usual_role_is_no_persons(state: State) -> None:
    usual = POLICY._replace(default_role="verify")
    zoe = Actor("zoe", person=True)
    assert out_of_role(state, usual, zoe, "zoe", "a") == ""
    assert "'verify' of 'ann'" in out_of_role(state, usual, zoe, "ann", "a")


# --- claims --------------------------------------------------------------------------------------------------------


def claimed(
    state: State, actor: Actor, *paths: str, policy: Policy = POLICY, classes: dict[str, dict[str, Attributes]] | None = None
) -> str:  # fmt: skip
    """The refusal of a write claim, '' where there is none; asked only for as much as is needed."""
    refusal = may_not_claim(state, actor, Settings(policy, classes), paths)
    if refusal is None:
        return ""
    assert refusal.code == "role" and f"--mode read {paths[-1]}" in refusal.hints[0]
    return refusal.message


def test_what_a_role_does_not_write_it_does_not_claim(state: State) -> None:
    assert claimed(state, Actor("cyd"), "a") == ""
    assert claimed(state, Actor("val"), "a") == (
        "'a' may not be claimed for writing: the role 'verify' of 'val' does not write here"
    )
    assert claimed(state, Actor("eve"), "notes/eve") == ""
    assert "'b' may not" in claimed(state, Actor("eve"), "notes/eve", "b")


def test_only_where_the_rule_is_enforced(state: State) -> None:
    gentle = POLICY._replace(stages={"role": "warn"})
    assert claimed(state, Actor("val"), "a", policy=gentle) == ""
    assert claimed(state, Actor("don"), "d", policy=gentle._replace(writers=True)) == ""


def test_what_a_claim_covers_counts(state: State) -> None:
    writers = POLICY._replace(writers=True)
    classes = {"d": {"d/a": Attributes(), "d/x": Attributes(writers=("code",))}}
    assert claimed(state, Actor("cyd"), "d", policy=writers, classes=classes) == ""
    assert claimed(state, Actor("don"), "d", policy=writers, classes=classes) == (
        "'d' may not be claimed for writing: 'd/x' below it: it is written by code; 'don' is 'draft'"
    )
    assert "below it" not in claimed(
        state, Actor("don"), "d", policy=writers, classes={"d": {"d": classes["d"]["d/x"]}}
    )


def test_a_person_by_the_word_of_another_machine_is_an_agent(state: State) -> None:
    usual = POLICY._replace(default_role="verify", approvers=())
    zoe = Actor("zoe", person=True)
    assert claimed(state, zoe, "a", policy=usual) == ""
    assert "'verify' of 'zoe'" in claimed(state, zoe._replace(unchecked=True), "a", policy=usual)

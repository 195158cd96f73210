"""The private overlay adds to a policy and never loosens it."""

from __future__ import annotations

import pytest

from gitcoord.base.errors import CouldNotJudge
from gitcoord.policy.overlay import NOBODY, parse_overlay, problems, stricter, tightened
from gitcoord.policy.parse import attributes_of, parse_policy

POLICY = [("rollout.lineage", "warn"), ("rollout.changelog", "warn"), ("validator.changelog.path", "src/**")]


def test_stages_only_rise() -> None:
    pairs = [("rollout.lineage", "enforce"), ("rollout.held", "monitor"), ("rollout.changelog", "monitor")]
    policy = tightened(parse_policy(POLICY), parse_overlay(pairs))
    assert [policy.stage(rule) for rule in ("lineage", "held", "changelog")] == ["enforce", "enforce", "warn"]
    assert [v.stage for v in policy.validators] == ["warn"]
    assert problems(parse_policy(POLICY), parse_overlay(pairs)) == [
        "rollout.held would loosen the policy, and does not count",
        "rollout.changelog would loosen the policy, and does not count",
    ]


def test_a_validator_runs_beside_the_policys_own() -> None:
    pairs = [
        ("validator.changelog.path", "lib/**"),
        ("validator.changelog.enabled", "true"),
        ("rollout.changelog", "enforce"),
    ]
    policy = tightened(parse_policy(POLICY), parse_overlay(pairs))
    assert [(v.every("path"), v.stage, v.private) for v in policy.validators] == [
        (["src/**"], "enforce", False),
        (["lib/**"], "enforce", True),
    ]
    off = parse_overlay([("validator.changelog.enabled", "false")])
    assert len(tightened(parse_policy(POLICY), off).validators) == 1


def test_a_validator_of_its_own_begins_as_gently_as_it_likes() -> None:
    pairs = [("validator.names.command", "x"), ("validator.names.secret", "true"), ("rollout.names", "warn")]
    (found,) = tightened(parse_policy([]), parse_overlay(pairs)).validators
    assert (found.stage, found.secret, found.private) == ("warn", True, True)
    assert problems(parse_policy([]), parse_overlay(pairs)) == []


def test_a_policy_cannot_make_its_own_validators_secret() -> None:
    (found,) = parse_policy([("validator.lint.command", "x"), ("validator.lint.secret", "true")]).validators
    assert not found.secret


def test_duties_are_added_and_none_taken_away() -> None:
    policy = parse_policy([("gitcoord.attribution", "require"), ("rules.ack", "true"), ("gitcoord.approver", "ada")])
    pairs = [
        ("gitcoord.attribution", "off"), ("rules.ack", "false"), ("gitcoord.approver", "mallory"),
        ("role.code.readonly", "false"), ("agent.bob.role", "admin"), ("validator.changelog.comand", "x"),
    ]  # fmt: skip
    overlay = parse_overlay(pairs)
    after = tightened(policy, overlay)
    assert after.attribution and after.ack and after.approvers == ("ada",) and after.agents == {} and after.roles == {}
    assert len(problems(policy, overlay)) == 6
    bare = parse_policy([])
    more = parse_overlay([("gitcoord.attribution", "require"), ("rules.ack", "true")])
    assert tightened(bare, more).attribution and tightened(bare, more).ack
    assert not tightened(bare, overlay).attribution and not tightened(bare, overlay).ack
    assert problems(bare, more) == []


@pytest.mark.parametrize(
    ("old", "added", "now"),
    [
        ({}, {"gitcoord-claim": "set"}, {"gitcoord-claim": "set"}),
        ({"gitcoord-claim": "unset"}, {"gitcoord-claim": "set"}, {"gitcoord-claim": "set"}),
        ({"gitcoord-guard": "block"}, {"gitcoord-guard": "warn"}, {"gitcoord-guard": "block"}),
        ({"gitcoord-guard": "warn"}, {"gitcoord-guard": "checkpoint"}, {"gitcoord-guard": "checkpoint"}),
        ({"gitcoord-guard": "odd"}, {"gitcoord-guard": "checkpoint"}, {"gitcoord-guard": "odd"}),
        ({"gitcoord-read": "ask"}, {"gitcoord-read": "deny"}, {"gitcoord-read": "deny"}),
        ({"gitcoord-read": "deny"}, {"gitcoord-read": "ask"}, {"gitcoord-read": "deny"}),
        ({"gitcoord-writers": "a,b"}, {"gitcoord-writers": "b,c"}, {"gitcoord-writers": "b"}),
        ({"gitcoord-writers": "a"}, {"gitcoord-writers": "c"}, {"gitcoord-writers": NOBODY}),
        ({"gitcoord-writers": "unspecified"}, {"gitcoord-writers": "c"}, {"gitcoord-writers": "c"}),
    ],
)
def test_the_stricter_answer_counts(old: dict[str, str], added: dict[str, str], now: dict[str, str]) -> None:
    assert stricter(old, added) == now


def test_rules_for_paths() -> None:
    pairs = [("path.keys/**.guard", "block"), ("path.keys/**.secret", "true"), ("path.lib.writers", "code")]
    overlay = parse_overlay(pairs)
    assert [(rule.attribute, rule.value, rule.secret) for rule in overlay.paths] == [
        ("gitcoord-guard", "block", True),
        ("gitcoord-writers", "code", False),
    ]
    policy = tightened(parse_policy([]), overlay)
    assert policy.writers and policy.present and problems(parse_policy([]), overlay) == []
    assert attributes_of({"gitcoord-guard": "block", "gitcoord-secret": "set"}).private


@pytest.mark.parametrize(
    "pair",
    [
        ("path.a.guard", "maybe"),
        ("path.a.claim", "no"),
        ("path.a.read", "x"),
        ("path.a.writers", "a b"),
        ("rollout.held", "x"),
    ],
)
def test_values_that_mean_nothing(pair: tuple[str, str]) -> None:
    with pytest.raises(CouldNotJudge):
        parse_overlay([pair])

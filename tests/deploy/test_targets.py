"""Deploy targets as the settings name them, the words for a stale commit, and the event that records a deploy."""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.errors import CouldNotJudge
from gitcoord.claims.take import Take
from gitcoord.deploy.events.deploy import Deploy, subject
from gitcoord.deploy.model import Deployed, Deploys, all_deploys, deploy_file, deploys_of
from gitcoord.deploy.targets import Staleness, Target, details, first_names, match, refusal, targets, to_json
from gitcoord.ledger.event import Decision, Event, Illegal, apply
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.kill import Kill
from tests.ledger.world import World, paths

ALICE, BOB = Actor("alice"), Actor("bob")
ONE, TWO = "1" * 40, "2" * 40


# --- settings


def test_targets() -> None:
    pairs = [
        ("deploy.production.remote", "origin"), ("deploy.production.ref", "refs/heads/production"),
        ("resource.gpu.capacity", "2"), ("deploy.production.ref", "refs/heads/release/*"),
        ("deploy.production.tag", "v*"), ("deploy.production.verify", "curl -f https://example.com/health"),
        ("deploy.production.timeout", "10m"), ("deploy.Staging.eu.verify", "true"), ("deploy.production.later", ""),
    ]  # fmt: skip
    assert targets(pairs) == {
        "production": Target(
            "production",
            "origin",
            ("refs/heads/production", "refs/heads/release/*", "refs/tags/v*"),
            "curl -f https://example.com/health",
            600,
        ),
        "Staging.eu": Target("Staging.eu", verify="true"),
    }
    assert targets([]) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("deploy.remote", "origin"), ("deploy..remote", "origin"), ("deploy.a b.remote", "origin"),
        ("deploy.a/b.remote", "origin"), ("deploy.-x.remote", "origin"), (f"deploy.{'x' * 200}.remote", "origin"),
        ("deploy.p.remote", ""), ("deploy.p.remote", "-x"), ("deploy.p.remote", "a b"), ("deploy.p.remote", "a\x1b"),
        ("deploy.p.ref", ""), ("deploy.p.ref", "production"), ("deploy.p.ref", "refs/heads/*/*"),
        ("deploy.p.ref", "refs/heads/a..b"), ("deploy.p.ref", "refs/heads/"), ("deploy.p.ref", "refs/heads/a b"),
        ("deploy.p.ref", "refs/heads/x.lock"), ("deploy.p.ref", "refs/heads/.x"), ("deploy.p.tag", ""),
        ("deploy.p.tag", "v^"), ("deploy.p.tag", "*v*"), ("deploy.p.verify", ""), ("deploy.p.verify", "a\0b"),
        ("deploy.p.timeout", "soon"), ("deploy.p.timeout", "0"), ("deploy.p.timeout", "-1"), ("deploy.p.timeout", ""),
    ],
)  # fmt: skip
def test_bad_settings_name_the_file_and_the_key(key: str, value: str) -> None:
    with pytest.raises(CouldNotJudge) as caught:
        targets([(key, value)])
    assert caught.value.message.startswith(f".gitcoord/config: {key}: ")
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("pattern", "ref", "fits"),
    [
        ("refs/heads/production", "refs/heads/production", True),
        ("refs/heads/production", "refs/heads/production/x", False),
        ("refs/heads/production", "refs/heads/production2", False),
        ("refs/heads/release/*", "refs/heads/release/1.0", True),
        ("refs/heads/release/*", "refs/heads/release/1/0", True),
        ("refs/heads/release/*", "refs/heads/release", False),
        ("refs/heads/*-live", "refs/heads/eu-live", True),
        ("refs/heads/*-live", "refs/heads/eu-dead", False),
        ("refs/heads/ab*ba", "refs/heads/aba", False),
        ("refs/tags/v*", "refs/heads/v1", False),
    ],
)
def test_a_pattern_matches_as_in_a_refspec(pattern: str, ref: str, fits: bool) -> None:
    assert match(Target("p", "origin", (pattern,)), "origin", ref) is fits
    assert match(Target("p", "", (pattern,)), "anywhere", ref) is fits
    assert not match(Target("p", "origin", (pattern,)), "other", ref)


def test_a_target_without_a_ref_matches_nothing() -> None:
    assert not match(Target("p"), "origin", "refs/heads/p")


# --- words


FRESH = Staleness("production", ONE, "main", ())
LAST = Deployed(1, 0, "bob", TWO, "ok", 0, 0, 1)


def test_a_fresh_commit_is_not_refused() -> None:
    assert not FRESH.stale and refusal(FRESH) is None and details(FRESH) == []
    assert refusal(FRESH._replace(last=LAST)) is None


def test_a_stale_one_is_refused_with_all_that_helps() -> None:
    found = FRESH._replace(
        tips=(TWO,), behind=3, authors=(("A\x1b", 2), ("B", 1)), rollback=("a\n",), rollback_total=5, conflict=True,
        conflicting=("b",), last=LAST, contains_last=False,
    )  # fmt: skip
    no = refusal(found)
    assert no is not None and no.code == "stale"
    assert "lacks 3 commits of 'main'" in no.message and f"lacks {TWO[:12]}, which bob deployed last" in no.message
    assert len(no.hints) == 2
    assert details(found) == [
        "by A\\x1b (2), B (1)",
        "a deploy from here would take back: a\\n and 4 more",
        "a merge would conflict in b",
    ]
    assert to_json(found)["rollback_total"] == 5 and to_json(found)["contains_last"] is False


def test_either_reason_is_enough() -> None:
    assert refusal(FRESH._replace(behind=1)) is not None
    assert refusal(FRESH._replace(last=LAST, contains_last=False)) is not None


def test_not_all_names_are_named() -> None:
    assert first_names(str(number) for number in range(100, 130)) == tuple(str(number) for number in range(100, 120))


# --- the event


@pytest.fixture
def world() -> World:
    return World()


def claim(world: World, actor: Actor, target: str = "production") -> int:
    return int(str(world.must("claim", Take(actor, paths(f"@deploy/{target}"))).result["token"]))


def made(actor: Actor, token: int, commit: str = ONE, **more: Any) -> Deploy:
    return Deploy(actor, "production", commit, **{"outcome": "ok", "code": 0, "verify_code": 0, **more}, token=token)


def record(world: World) -> Deploys:
    found = deploys_of(world.state, "production")
    assert found is not None
    return found


def good_commit(world: World) -> str:
    good = record(world).good
    return good.commit if good is not None else ""


def test_a_deploy_is_recorded_and_given_back_in_one_step(world: World) -> None:
    answer = world.must("deploy", made(ALICE, claim(world, ALICE)))
    assert [event.kind for event in answer.events] == ["deploy", "release"] and answer.result["held"] is True
    assert world.claims() == []
    assert (record(world).last.commit, record(world).good) == (ONE, record(world).last)
    assert subject(answer.events[0]) == f"deploy {ONE[:12]} to production by alice"
    assert all_deploys(world.state) == [record(world)]
    world.check()
    world.check_replay()


@pytest.mark.parametrize(
    ("more", "good"),
    [
        ({"outcome": "failed", "code": 1, "verify_code": -1}, False),
        ({"outcome": "interrupted", "code": 130, "verify_code": -1}, False),
        ({"outcome": "interrupted", "code": -1, "verify_code": -1}, False),
        ({"outcome": "interrupted", "verify_code": 143}, False),
        ({"outcome": "unverified", "verify_code": 1}, False),
        ({"outcome": "unverified", "verify_code": -1}, True),
        ({"outcome": "ok", "verify_code": -1}, True),
    ],
)
def test_what_counts_as_successful(world: World, more: dict[str, Any], good: bool) -> None:
    world.must("deploy", made(ALICE, claim(world, ALICE)))
    world.must("deploy", made(BOB, claim(world, BOB), TWO, **more))
    assert record(world).last.commit == TWO
    assert good_commit(world) == (TWO if good else ONE)


def test_who_lost_the_claim_still_records_and_frees_nobody_elses(world: World) -> None:
    token = claim(world, ALICE)
    world.host.advance(100_000)
    claim(world, BOB)
    answer = world.must("deploy", made(ALICE, token))
    assert answer.result["held"] is False and [event.kind for event in answer.events] == ["deploy"]
    assert [c.agent for c in world.claims()] == ["bob"]


def test_a_late_record_does_not_replace_a_newer_success(world: World) -> None:
    token = claim(world, ALICE)
    world.host.advance(100_000)
    world.must("deploy", made(BOB, claim(world, BOB), TWO))
    assert world.must("deploy", made(ALICE, token, ONE)).result["good"] is False
    assert record(world).last.commit == ONE and good_commit(world) == TWO


def test_halted_and_killed(world: World) -> None:
    token = claim(world, ALICE)
    world.must("halt", Halt(BOB._replace(person=True)))
    world.must("deploy", made(ALICE, token))
    assert record(world).last.agent == "alice"
    world.must("kill", Kill(BOB._replace(person=True), "alice"))
    assert world.refused("deploy", made(ALICE, token)).code == "killed"
    assert world.refused("deploy", made(Actor("stranger"), 1)).code == "not-held"


def test_targets_become_file_names(world: World) -> None:
    assert deploy_file("x.lock") == "deploys/x%2Elock"
    assert not isinstance(world.do("deploy", made(ALICE, 1)), Decision)


BODY: dict[str, object] = {
    "target": "production", "commit": ONE, "outcome": "ok", "code": 0, "verify_code": 0, "token": 3,
}  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        {"target": "../x"}, {"target": ""}, {"target": "a/b"}, {"commit": "HEAD"}, {"commit": ""}, {"outcome": "fine"},
        {"token": 0}, {"token": 999}, {"code": -2}, {"verify_code": -2},
    ],
)  # fmt: skip
def test_apply_judges_what_it_is_given(world: World, more: dict[str, object]) -> None:
    claim(world, ALICE)
    sound = Event("deploy", world.state.seq + 1, "alice", 0, "n", 0, BODY)
    apply(world.state, sound)
    with pytest.raises(Illegal):
        apply(world.state, sound._replace(body={**BODY, **more}))
    with pytest.raises(Illegal):
        apply(world.state, sound._replace(agent="nobody"))

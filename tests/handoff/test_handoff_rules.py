"""Handoffs as rules: what may be handed over, who accepts it, and that it passes whole or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.codec import dumps
from gitcoord.base.errors import Refusal, UsageError
from gitcoord.claims.events.release import Release
from gitcoord.claims.take import Take
from gitcoord.gates.events.role import SetRole
from gitcoord.handoff.events.accept import Accept
from gitcoord.handoff.events.close import Close
from gitcoord.handoff.events.handoff import New
from gitcoord.handoff.model import SECTIONS, document, parse_document, template
from gitcoord.ledger.event import Decision, Illegal, apply
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.start import Start
from gitcoord.sessions.events.stop import Stop
from tests.ledger.world import World, paths
from tests.server.test_retrace import judged

SAID = {"state": "the parser works", "changed": "the lexer", "remaining": "the printer", "next": "write print_tree()"}
ALICE, BOB, CAROL = Actor("alice"), Actor("bob"), Actor("carol")


@pytest.fixture
def world() -> World:
    """alice holds 'a' to write and 'r' to read; bob is there."""
    world = World()
    world.must("claim", Take(ALICE, paths("a"), ttl=600, reason="parsing", base="0" * 40))
    world.must("claim", Take(ALICE, paths("r"), "read"))
    world.must("claim", Take(BOB, paths("b")))
    return world


def offered(world: World, **said: Any) -> str:
    answer = world.must("handoff", New(**{"actor": ALICE, "sections": SAID, **said}))
    return str(answer.result["id"])


def accepted(world: World, id: str, actor: Actor = BOB) -> Decision:
    """Accept it, judged by a server before it counts."""
    command = Accept(actor, id)
    answer = world.decide("accept", command)
    assert isinstance(answer, Decision), answer
    found = judged(world, answer.events, person=actor.person)
    assert not isinstance(found, Refusal), found
    world.commit(answer)
    world.check()
    return answer


def test_accepting_is_one_event_and_everything_passes(world: World) -> None:
    id = offered(world, to="bob")
    world.check()
    assert id == f"h{world.state.seq}" and world.held() >= {("a", "alice", "write"), ("r", "alice", "read")}
    answer = accepted(world, id)
    assert [event.kind for event in answer.events] == ["accept"]
    assert world.held() == {("a", "bob", "write"), ("r", "bob", "read"), ("b", "bob", "write")}
    claim = next(c for c in world.claims("bob") if c.path == "a")
    assert (claim.token, claim.ttl, claim.reason, claim.base) == (world.state.seq, 600, "parsing", "0" * 40)
    record = world.agent("alice")
    assert record is not None
    assert [(row["path"], row["by"], row["cause"]) for row in record["lost"]] == [
        ("a", "bob", "accept"),
        ("r", "bob", "accept"),
    ]
    assert not world.state.leaves("waiting")
    world.check_replay()


def test_the_document_is_a_file_with_front_matter(world: World) -> None:
    id = offered(world, to="bob", facts={"branch": "topic", "head": "1" * 40, "commits": [["1" * 40, "lexer"]]})
    record = world.state.get(f"handoffs/{id}.md")
    assert record is not None
    assert record["text"] == document({**SAID, "blockers": "none", "assumptions": "none"})
    assert (record["branch"], record["commits"], record["from"], record["to"]) == (
        "topic",
        [["1" * 40, "lexer"]],
        "alice",
        "bob",
    )
    assert [claim["path"] for claim in record["claims"]] == ["a", "r"]


def test_only_what_is_named_goes_along(world: World) -> None:
    world.must("claim", Take(ALICE, paths("d/x", "d/y")))
    id = offered(world, items=paths("d"))
    accepted(world, id)
    assert {(p, w) for p, w, _ in world.held()} >= {("d/x", "bob"), ("d/y", "bob"), ("a", "alice")}
    assert world.refused("handoff", New(ALICE, SAID, items=paths("b"))).code == "not-held"


def test_who_may_accept(world: World) -> None:
    id = offered(world, to="bob")
    assert world.refused("accept", Accept(CAROL, id)).code == "not-addressed"
    assert world.refused("accept", Accept(ALICE, id)).code == "own"
    assert world.refused("accept", Accept(BOB, "h999")).code == "no-handoff"
    with pytest.raises(UsageError):
        world.decide("accept", Accept(BOB, "../h1"))
    accepted(world, id)
    assert world.refused("accept", Accept(CAROL, id)).code == "closed"
    again = world.must("accept", Accept(BOB, id))
    assert not again.events and again.result["repeated"] is True


def test_a_role_and_anyone(world: World) -> None:
    id = offered(world, role="tester")
    assert world.refused("accept", Accept(BOB, id)).code == "not-addressed"
    world.must("role", SetRole(Actor("ada", person=True), "bob", "tester"))
    accepted(world, id)
    other = str(world.must("handoff", New(BOB, SAID)).result["id"])
    answer = accepted(world, other, CAROL)
    assert [event.kind for event in answer.events] == ["start", "accept"]
    assert {w for _, w, _ in world.held()} == {"carol"}


def test_what_expired_and_is_free_is_granted(world: World) -> None:
    id = offered(world)
    world.host.advance(700)
    world.must("claim", Take(CAROL, paths("a/below")))  # expires alice's claim on 'a'
    assert world.refused("accept", Accept(BOB, id)).code == "held"
    world.must("release", Release(CAROL))
    accepted(world, id)
    assert ("a", "bob", "write") in world.held()


def test_a_third_holder_is_named_and_nothing_changes(world: World) -> None:
    world.must("claim", Take(ALICE, paths("c"), ttl=600))
    id = offered(world)
    world.host.advance(700)
    world.must("claim", Take(CAROL, paths("a")))
    world.must("claim", Take(Actor("dave"), paths("c")))
    before = dumps(world.state.files)
    refusal = world.refused("accept", Accept(BOB, id))
    assert {row["agent"] for row in refusal.blocking_claims} == {"carol", "dave"}
    assert dumps(world.state.files) == before


def test_a_silent_third_is_expired_on_the_way(world: World) -> None:
    id = offered(world)
    world.host.advance(700)
    world.must("claim", Take(CAROL, paths("a"), ttl=60))
    world.host.advance(200)
    world.heartbeat("bob")
    answer = accepted(world, id)
    assert [event.kind for event in answer.events] == ["expire", "accept"]


def test_what_one_took_oneself_meanwhile_is_joined(world: World) -> None:
    id = offered(world)
    world.host.advance(700)
    world.must("claim", Take(BOB, paths("a"), ttl=60, base="9" * 40))
    accepted(world, id)
    claim = next(c for c in world.claims("bob") if c.path == "a")
    assert (claim.base, claim.ttl) == ("0" * 40, 600)


def test_units_pass_too(world: World) -> None:
    world.must("claim", Take(ALICE, paths("@gpu"), units=2))
    world.must("claim", Take(BOB, paths("@gpu"), units=1))
    accepted(world, offered(world))
    assert [c.units for c in world.claims("bob") if c.path == "gpu"] == [3]


def test_a_resource_goes_only_to_whom_the_settings_allow(world: World) -> None:
    world.must("claim", Take(ALICE, paths("@db")))
    id = offered(world)
    assert world.refused("accept", Accept(Actor("eve"), id)).code == "access"
    accepted(world, id, BOB)


def test_nothing_is_offered_twice(world: World) -> None:
    id = offered(world, items=paths("a"))
    refusal = world.refused("handoff", New(ALICE, SAID))
    assert refusal.code == "handed-over" and id in refusal.message
    offered(world, items=paths("r"))


def test_declining_and_taking_back(world: World) -> None:
    id = offered(world, to="bob")
    assert world.refused("close", Close(CAROL, id, "declined", "no time")).code == "not-addressed"
    assert world.refused("close", Close(BOB, id, "withdrawn")).code == "not-yours"
    with pytest.raises(UsageError):
        world.decide("close", Close(BOB, id, "declined"))
    world.must("close", Close(BOB, id, "declined", "no time"))
    assert world.refused("accept", Accept(BOB, id)).message.endswith("declined by bob: no time")
    other = offered(world)
    assert world.refused("close", Close(BOB, other, "declined", "no")).code == "for-anyone"
    answer = world.must("close", Close(ALICE, other, "withdrawn"))
    assert answer.result["changed"] is True
    assert world.must("close", Close(ALICE, other, "withdrawn")).result["changed"] is False
    assert ("a", "alice", "write") in world.held()
    third = offered(world)
    world.must("close", Close(Actor("ada", person=True), third, "withdrawn"))
    world.check_replay()


def test_a_session_that_ends_leaves_what_it_handed_over(world: World) -> None:
    """It stays, dirty or not, and belongs to the next session if it was not accepted."""
    world.dirty = {"a"}
    id = offered(world, items=paths("a"))
    answer = world.must("stop", Stop(ALICE))
    assert (answer.result["handed_over"], answer.result["released"]) == (["a"], ["r"])
    world.check()
    world.must("start", Start(ALICE))
    assert [(c.path, c.session) for c in world.claims("alice")] == [("a", 2)]
    world.must("stop", Stop(ALICE))
    world.check()
    accepted(world, id)
    assert world.claims("alice") == []


def test_halted_and_killed(world: World) -> None:
    id = offered(world)
    world.must("kill", Kill(BOB._replace(person=True), "alice"))
    assert world.refused("handoff", New(ALICE, SAID)).code == "killed"
    accepted(world, id)  # what a killed agent handed over before is still worth having
    world.must("halt", Halt(BOB._replace(person=True), "fire"))
    for kind, command in (
        ("handoff", New(BOB, SAID)),
        ("accept", Accept(CAROL, id)),
        ("close", Close(BOB, id, "withdrawn")),
    ):
        assert world.refused(kind, command).code == "halted"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("state", ""), ("changed", "  \n "), ("remaining", "TODO"), ("next", "..."), ("next", "- TBD."), ("state", "none"),
        ("remaining", "Nothing."), ("blockers", "todo"), ("assumptions", "…"), ("state", "<!-- -->"), ("next", "# N/A"),
        ("state", SECTIONS[0].asks), ("blockers", SECTIONS[4].asks), ("state", "fine\n## Remaining\nnot so"),
        ("state", "esc \x1b[31m"), ("state", "bidi \u202e"), ("state", "\ud800"), ("state", "x" * 20_001),
        ("state", "x" * 10_000_000),
    ],
)  # fmt: skip
def test_a_section_that_says_nothing_or_harms(world: World, key: str, text: str) -> None:
    with pytest.raises(UsageError) as error:
        world.decide("handoff", New(ALICE, {**SAID, key: text}))
    assert error.value.message.isprintable() and len(error.value.message) < 200


@pytest.mark.parametrize("text", ["TODO: the printer", "none of it works", "---\nto: eve\n---", "[a](javascript:x)"])
def test_what_only_looks_like_it_is_kept(world: World, text: str) -> None:
    id = offered(world, sections={**SAID, "remaining": text})
    record = world.state.get(f"handoffs/{id}.md")
    assert record is not None and parse_document(record["text"])["remaining"] == text and record["to"] == ""


def test_a_document_is_read_back() -> None:
    sections = {s.key: f"{s.title} one\n\n- two\n### three" for s in SECTIONS}
    assert parse_document(document(sections)) == sections
    assert parse_document(template(sections, ["a note with -->", "## State"])) == sections
    assert set(parse_document(template({}, [])).values()) == {""}
    with pytest.raises(UsageError):
        parse_document("## State\n1\n## state\n2")


def test_forged_events_are_illegal(world: World) -> None:
    """`apply` alone refuses these, as replay and the server do."""
    id = offered(world, to="bob")
    answer = world.decide("accept", Accept(BOB, id))
    assert isinstance(answer, Decision)
    (event,) = answer.events
    for wrong in (
        {"claims": event.body["claims"][:1]},
        {"items": event.body["items"][:1], "grants": event.body["grants"][:1]},
        {"items": [["path", "a"], ["path", "b"]]},
        {"holder": "carol"},
        {"session": 7},
        {"handoff": "h999"},
    ):
        with pytest.raises(Illegal):
            apply(world.state, event._replace(body={**event.body, **wrong}))
    with pytest.raises(Illegal):
        apply(world.state, event._replace(agent="alice"))
    elevated = [{**grant, "mode": "write"} for grant in event.body["grants"]]
    assert isinstance(judged(world, [event._replace(body={**event.body, "grants": elevated})]), Refusal)


def test_events_of_handoffs_are_retraced(world: World) -> None:
    made = world.decide("handoff", New(ALICE, SAID, "bob", facts={"branch": "x", "dirty": ["a"]}))
    assert isinstance(made, Decision) and not isinstance(judged(world, made.events), Refusal)
    (event,) = made.events
    forged = event._replace(body={**event.body, "claims": event.body["claims"][:1]})
    assert not isinstance(judged(world, [forged]), Refusal)  # fewer paths may be handed over
    wrong = event._replace(body={**event.body, "claims": [{**event.body["claims"][0], "token": 99}]})
    assert isinstance(judged(world, [wrong]), Refusal)
    world.commit(made)
    closed = world.decide("close", Close(BOB, f"h{event.seq}", "declined", "busy"))
    assert isinstance(closed, Decision) and not isinstance(judged(world, closed.events), Refusal)
    assert isinstance(judged(world, [closed.events[0]._replace(agent="carol")]), Refusal)

"""Claims, one rule at a time: modes, overlap, all or nothing, resources, nonces, release, takeover, disown, halt."""

from __future__ import annotations

from typing import Any

import pytest

from gitcoord.base.errors import UsageError
from gitcoord.claims.events.disown import Disown
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.takeover import Takeover
from gitcoord.claims.model import some_claims
from gitcoord.claims.take import Take
from gitcoord.ledger.event import Decision, Event, Illegal, apply
from gitcoord.ledger.events.adopt import Adopt
from gitcoord.ledger.nonces import day
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import Part, State
from gitcoord.ledger.world import Resource
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.start import Start
from gitcoord.sessions.events.unhalt import Unhalt
from tests.ledger.world import World, paths

ALICE, BOB, CAROL = Actor("alice"), Actor("bob"), Actor("carol")
ADA = Actor("ada", person=True)


@pytest.fixture
def world() -> World:
    return World()


def take(world: World, who: Actor, *names: str, **more: Any) -> Decision:
    return world.must("claim", Take(who, paths(*names), **more))


# --- modes and overlap

GRANTED = {("read", "read"), ("read", "intent"), ("intent", "read"), ("intent", "intent")}


@pytest.mark.parametrize("held", ["read", "intent", "write"])
@pytest.mark.parametrize("asked", ["read", "intent", "write"])
@pytest.mark.parametrize(
    ("first", "second"), [("a", "a"), ("a", "a/b/c"), ("a/b/c", "a"), (".", "x"), ("x", "."), (".", ".")]
)
def test_the_matrix(world: World, held: str, asked: str, first: str, second: str) -> None:
    take(world, ALICE, first, mode=held)
    command = Take(BOB, paths(second), asked)
    if (held, asked) in GRANTED:
        world.must("claim", command)
        assert world.held() == {(first, "alice", held), (second, "bob", asked)}
    else:
        refusal = world.refused("claim", command)
        assert refusal.code == "held"
        assert [(h["path"], h["agent"], h["mode"]) for h in refusal.blocking_claims] == [(first, "alice", held)]


@pytest.mark.parametrize("other", ["src2", "src.py", "sr", "lib/src", "SRC", "src%2Fapp.py"])
def test_overlap_is_by_whole_components(world: World, other: str) -> None:
    take(world, ALICE, "src")
    take(world, BOB, other)


@pytest.mark.parametrize(
    ("one", "twin", "folds"), [("README", "readme", True), ("é", "e\u0301", False), ("É/x", "e\u0301", True)]
)
def test_twins_are_one_path(one: str, twin: str, folds: bool) -> None:
    world = World(fold_case=folds)
    take(world, ALICE, one)
    assert world.refused("claim", Take(BOB, paths(twin))).blocking_claims[0]["path"] == one
    assert take(world, ALICE, one).events == []


def test_a_resource_is_no_path(world: World) -> None:
    take(world, ALICE, "db")
    take(world, BOB, "@db")
    assert world.held() == {("db", "alice", "write"), ("db", "bob", "write")}


def test_nobody_is_in_his_own_way(world: World) -> None:
    take(world, ALICE, "src")
    take(world, ALICE, "src/app.py", "src/lib", mode="read")
    assert len(world.claims("alice")) == 3


# --- all or nothing


def test_all_or_nothing_names_every_holder(world: World) -> None:
    take(world, ALICE, "a")
    take(world, BOB, "b/x", "b/y")
    refusal = world.refused("claim", Take(CAROL, paths("free", "a", "b")))
    assert {(h["path"], h["agent"]) for h in refusal.blocking_claims} == {
        ("a", "alice"),
        ("b/x", "bob"),
        ("b/y", "bob"),
    }
    assert world.agent("carol") is None


def test_several_paths_are_one_event_with_one_token(world: World) -> None:
    decision = take(world, ALICE, "a", "b", "@gpu")
    assert [event.kind for event in decision.events] == ["start", "claim"]
    assert {claim.token for claim in world.claims()} == {decision.result["token"]} == {world.state.seq}


def test_a_silent_holder_is_not_expired_for_a_request_that_fails(world: World) -> None:
    take(world, ALICE, "a", ttl=60)
    world.host.advance(1000)
    take(world, BOB, "b")
    world.refused("claim", Take(CAROL, paths("a", "b")))
    assert ("a", "alice", "write") in world.held()


# --- taking again, upgrading, downgrading


def test_taking_again_is_a_heartbeat(world: World) -> None:
    first = take(world, ALICE, "a", ttl=600, reason="why", task="t1")
    world.host.advance(300)
    again = take(world, ALICE, "a")
    assert again.events == [] and [beat.agent for beat in again.beats] == ["alice"]
    assert again.result["token"] == first.result["token"] and again.result["renewed"]
    assert take(world, ALICE, "a").beats == []  # one beat a slot


@pytest.mark.parametrize(
    "change", [{"ttl": 60}, {"reason": "other"}, {"task": "t2"}, {"mode": "read"}, {"expected": 60}]
)
def test_whatever_changes_is_an_event_with_a_new_token(world: World, change: dict[str, object]) -> None:
    first = take(world, ALICE, "a", ttl=600, reason="why", task="t1")
    again = take(world, ALICE, "a", **change)
    assert [event.kind for event in again.events] == (["release", "claim"] if "mode" in change else ["claim"])
    assert world.state.seq == again.result["token"] != first.result["token"]
    kept = {"ttl": 600, "reason": "why", "task": "t1", "mode": "write", "expected": 0} | change
    assert {key: getattr(world.claims()[0], key) for key in kept} == kept


def test_terms_that_are_not_given_stay_as_they_were(world: World) -> None:
    take(world, ALICE, "a", ttl=7200, expected=3600)
    take(world, ALICE, "a", reason="other")
    assert [(c.ttl, c.expected, c.reason) for c in world.claims()] == [(7200, 3600, "other")]
    take(world, ALICE, "@gpu", units=2)
    assert take(world, ALICE, "@gpu").events == []
    take(world, ALICE, "@gpu", reason="more")
    assert {c.path: c.units for c in world.claims()} == {"a": 1, "gpu": 2}


def test_new_paths_get_the_defaults_and_held_ones_keep_their_terms(world: World) -> None:
    """Each claim event has one ttl: paths whose terms differ are granted by an event each, in one chain."""
    take(world, ALICE, "a", ttl=7200, expected=3600)
    take(world, ALICE, "@gpu", units=2)
    again = take(world, ALICE, "new", "a", "@gpu", "@db", "newer")
    assert [[name for _, name in event.body["items"]] for event in again.events] == [
        ["new", "newer"],
        ["a"],
        ["gpu"],
        ["db"],
    ]
    found = {c.path: (c.ttl, c.expected, c.units) for c in world.claims()}
    assert found == {
        "new": (1800, 0, 1), "newer": (1800, 0, 1), "a": (7200, 3600, 1), "gpu": (1800, 0, 2), "db": (60, 0, 1),
    }  # fmt: skip
    assert again.result["token"] == max(c.token for c in world.claims()) == world.state.seq


def test_units_that_are_not_given_are_no_more_than_there_are(world: World) -> None:
    take(world, ALICE, "@gpu", units=3)
    world.resources["gpu"] = Resource(capacity=2)
    take(world, ALICE, "@gpu")
    assert world.claims()[0].units == 2


def test_upgrade_and_downgrade(world: World) -> None:
    take(world, ALICE, "a", mode="read")
    take(world, ALICE, "a", mode="write")
    world.refused("claim", Take(BOB, paths("a"), "read"))
    take(world, ALICE, "a", mode="intent")
    take(world, BOB, "a", mode="read")


def test_two_intents_that_both_want_to_write(world: World) -> None:
    """Both keep their claims: the older agent reads whom it waits for, the younger that it should release."""
    take(world, ALICE, "a", mode="intent")
    take(world, BOB, "a", mode="intent")
    older = world.refused("claim", Take(ALICE, paths("a")))
    younger = world.refused("claim", Take(BOB, paths("a")))
    assert "wait until bob releases" in older.hints[0]
    assert "release yours" in younger.hints[0] and "alice" in younger.hints[0]
    assert world.held() == {("a", "alice", "intent"), ("a", "bob", "intent")}
    world.must("release", Release(BOB))
    take(world, ALICE, "a")


def test_of_several_intents_the_oldest_goes_first(world: World) -> None:
    for who in (BOB, ALICE, CAROL):
        take(world, who, "a", mode="intent")
    take(world, Actor("aaron"), "a", mode="read")  # the first in order, and no intent
    assert world.refused("claim", Take(BOB, paths("a"))).hints == tuple(
        f"your intent is the older one: wait until {name} releases its own" for name in ("alice", "carol")
    )
    for who in (ALICE, CAROL):
        (hint,) = world.refused("claim", Take(who, paths("a"))).hints
        assert hint.startswith("bob has the older intent: release yours")


def test_a_refusal_never_says_how_to_take_a_live_claim_away(world: World) -> None:
    take(world, ALICE, "a")
    refusal = world.refused("claim", Take(BOB, paths("a")))
    words = " ".join([refusal.message, *refusal.hints])
    assert "takeover" not in words and "force" not in words and "kill" not in words


@pytest.mark.parametrize(
    "bad", [{"items": ()}, {"mode": "own"}, {"ttl": 8 * 86400}, {"ttl": -1}, {"units": -1}, {"units": 2}]
)
def test_wrong_words(world: World, bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        world.do("claim", Take(ALICE, paths("a"))._replace(**bad))


# --- resources


def test_units_up_to_the_capacity(world: World) -> None:
    take(world, ALICE, "@gpu", units=2)
    assert len(world.refused("claim", Take(BOB, paths("@gpu"), units=2)).blocking_claims) == 1
    take(world, BOB, "@gpu")
    refusal = world.refused("claim", Take(CAROL, paths("@gpu")))
    assert {h["agent"] for h in refusal.blocking_claims} == {"alice", "bob"}
    assert world.refused("claim", Take(CAROL, paths("@gpu"), units=4)).code == "capacity"
    take(world, ALICE, "@gpu", units=1)  # fewer units: room for one more
    take(world, CAROL, "@gpu")
    world.check()


def test_a_silent_unit_is_free(world: World) -> None:
    take(world, ALICE, "@gpu", units=2, ttl=60)
    world.host.advance(45)
    take(world, BOB, "@gpu", ttl=3600)
    world.host.advance(60)
    decision = take(world, CAROL, "@gpu", units=2)
    assert [event.kind for event in decision.events] == ["expire", "start", "claim"]
    assert {claim.agent for claim in world.claims()} == {"bob", "carol"}


def test_a_silent_unit_that_is_not_needed_stays(world: World) -> None:
    take(world, ALICE, "@gpu", ttl=60)
    world.host.advance(1000)
    take(world, BOB, "@gpu", units=2)
    assert {claim.agent for claim in world.claims()} == {"alice", "bob"}


def test_an_undeclared_resource_has_one_unit(world: World) -> None:
    take(world, ALICE, "@deploy/production")
    world.refused("claim", Take(BOB, paths("@deploy/production")))
    world.refused("claim", Take(BOB, paths("@deploy")))
    take(world, BOB, "@deploy2")


def test_who_may_use_a_resource(world: World) -> None:
    assert world.refused("claim", Take(CAROL, paths("@db"))).code == "access"
    take(world, CAROL, "@db", mode="read")
    assert world.claims()[0].ttl == 60
    assert world.refused("claim", Take(Actor("dave"), paths("@db"), "read")).code == "access"


def test_a_capacity_that_shrank(world: World) -> None:
    take(world, ALICE, "@gpu")
    take(world, BOB, "@gpu")
    world.resources["gpu"] = Resource(capacity=1)
    assert world.refused("claim", Take(CAROL, paths("@gpu"))).code == "held"
    world.resources["gpu"] = Resource(capacity=2)
    assert world.refused("claim", Take(CAROL, paths("@gpu"))).code == "held"


# --- nonces


def test_a_repeat_gives_the_first_outcome(world: World) -> None:
    command = Take(ALICE, paths("a", "b"), nonce="n-1")
    first = world.must("claim", command)
    again = world.must("claim", command)
    assert again.events == [] and again.result["token"] == first.result["token"] and again.result["repeated"]
    take(world, ALICE, "a", ttl=60)
    assert world.must("claim", command).result["repeated"], "changed by its holder, and not gone"
    world.must("release", Release(ALICE, paths("b")))
    gone = world.refused("claim", command)
    assert gone.code == "gone" and "b" in gone.message and "a," not in gone.message


def test_a_repeat_finds_the_units_that_it_did_not_name(world: World) -> None:
    take(world, ALICE, "@gpu", units=2)
    command = Take(ALICE, paths("@gpu"), nonce="n-1")
    world.must("claim", command)
    assert world.must("claim", command).result["repeated"] and world.claims()[0].units == 2


def test_another_command_under_a_nonce(world: World) -> None:
    world.must("claim", Take(ALICE, paths("a"), nonce="n-1"))
    for other in (
        Take(ALICE, paths("b")),
        Take(ALICE, paths("a", "b")),
        Take(ALICE, paths("a"), "read"),
        Take(ALICE, paths("a"), ttl=60),
    ):
        assert world.refused("claim", other._replace(nonce="n-1")).code == "nonce"
    world.must("claim", Take(BOB, paths("b"), nonce="n-1"))  # a nonce is an agent's own


def test_refusals_are_not_remembered(world: World) -> None:
    take(world, ALICE, "a")
    command = Take(BOB, paths("a"), nonce="n-1")
    world.refused("claim", command)
    world.must("release", Release(ALICE))
    assert world.must("claim", command).events


def test_nonces_are_kept_for_a_week(world: World) -> None:
    old = Take(ALICE, paths("a"), nonce="n-1")
    world.must("claim", old)
    world.host.advance(6 * 86400)
    assert world.must("claim", old).result["repeated"]
    world.host.advance(3 * 86400)
    world.must("claim", Take(BOB, paths("b"), nonce="n-2"))
    assert world.state.names("nonces") == [day(world.host.wall())]


def test_dropped_nonces_are_gone_for_whoever_looks_next(world: World) -> None:
    """The state that a rule sees after an event must agree with the tree that the event leaves."""
    world.must("claim", Take(ALICE, paths("a"), nonce="n-1"))
    world.host.advance(9 * 86400)
    decision = world.decide("claim", Take(BOB, paths("b"), nonce="n-2"))
    assert isinstance(decision, Decision)
    after = world.state
    for each in decision.events:
        after = apply(after, each)
    assert after.names("nonces") == [day(world.host.wall())]


@pytest.mark.parametrize(
    ("at", "date"),
    [
        (0, "1970-01-01"), (951_782_400, "2000-02-29"), (1_900_000_000, "2030-03-17"), (4_107_542_400, "2100-03-01"),
        (-1, "1969-12-31"), (-62_000_000_000, "0005-04-19"), (2**53, "285428751-11-12"), (-(2**53), "-285424812-02-20"),
    ],  # an event from elsewhere may say any time that a number can be
)  # fmt: skip
def test_dates(at: int, date: str) -> None:
    assert day(at) == date


# --- release and lineage


def test_release_all_named_or_nothing(world: World) -> None:
    take(world, ALICE, "a", "b")
    take(world, BOB, "c")
    refusal = world.refused("release", Release(ALICE, paths("a", "c", "none")))
    assert refusal.code == "not-held" and "c" in refusal.message and "none" in refusal.message
    world.must("release", Release(ALICE, paths("a")))
    world.must("release", Release(ALICE))
    assert world.held() == {("c", "bob", "write")}
    assert world.must("release", Release(ALICE)).events == []


def test_uncommitted_work_is_not_released(world: World) -> None:
    take(world, ALICE, "a", "b")
    world.dirty = {"b"}
    assert world.refused("release", Release(ALICE)).code == "dirty"
    world.must("release", Release(ALICE, dirty=True))


def test_a_release_records_the_work(world: World) -> None:
    world.head = "1" * 40
    take(world, ALICE, "src", "docs", "look", base="0" * 40)
    take(world, ALICE, "look", mode="read")
    world.changed = {
        "src": [["src/a", "100644", "b" * 40], ["src/b", "000000", ""]],
        "look": [["look/x", "100644", "c" * 40]],
    }
    released = world.must("release", Release(ALICE)).result["released"]
    assert isinstance(released, list)
    commits = {entry["path"]: entry["commit"] for entry in released}
    assert commits == {"src": "1" * 40, "docs": "", "look": ""}  # a claim that could not write has no work
    lineage = world.state.below("lineage")
    assert sorted(lineage) == [f"lineage/src/a/@{world.state.seq}", f"lineage/src/b/@{world.state.seq}"]
    assert lineage[f"lineage/src/a/@{world.state.seq}"]["blob"] == "b" * 40


def test_a_later_release_drops_what_has_landed(world: World) -> None:
    files = [["a", "100644", "b" * 40]]
    seqs = []
    for number in range(3):
        world.head = str(number + 1) * 40
        world.changed = {"a": files}
        take(world, ALICE, "a", base="0" * 40)
        world.must("release", Release(ALICE))
        seqs.append(world.state.seq)
        world.landed = {"1" * 40}
    assert sorted(world.state.below("lineage")) == [f"lineage/a/@{seq}" for seq in seqs[1:]]


ZERO, ONE, TWO, THREE = ("0" * 40, "1" * 40, "2" * 40, "3" * 40)


@pytest.mark.parametrize(
    ("within", "blob", "recorded"),
    [
        ({THREE: {ONE, TWO}}, "c", False),  # it was pulled in
        ({THREE: {ONE, TWO}}, "b", True),  # a way back to what was released before that
        ({THREE: {ONE}}, "b", False),  # the later work is elsewhere
        ({THREE: {ONE, TWO}}, "d", True),  # changed again
        ({THREE: set()}, "c", True),  # made alike, by itself
        ({THREE: {ONE, TWO}, ZERO: {ONE, TWO}}, "c", True),  # it was there before the claim, and is there again
    ],
)
def test_released_work_that_was_only_brought_in_is_no_change(
    world: World, within: dict[str, set[str]], blob: str, recorded: bool
) -> None:
    for commit, left in ((ONE, "b"), (TWO, "c")):
        world.head, world.changed = commit, {"a": [["a", "100644", left * 40]]}
        take(world, BOB, "a", base=ZERO)
        world.must("release", Release(BOB))
    take(world, ALICE, "a", base=ZERO)
    world.head, world.changed, world.within = THREE, {"a": [["a", "100644", blob * 40]]}, within
    (entry,) = world.must("release", Release(ALICE)).events[-1].body["released"]
    assert bool(entry["files"]) is recorded


def test_disowning(world: World) -> None:
    world.head, world.changed = "1" * 40, {"src": [["src/a", "100644", "b" * 40], ["src/c/d", "100644", "c" * 40]]}
    take(world, ALICE, "src", base="0" * 40)
    world.must("release", Release(ALICE))
    with pytest.raises(UsageError):
        world.do("disown", Disown(BOB, "src", ""))
    assert world.refused("disown", Disown(BOB, "other", "gone")).code == "no-lineage"
    world.must("disown", Disown(BOB, "src/c", "rewritten"))
    assert len(world.state.below("lineage")) == 1
    world.must("disown", Disown(BOB, ".", "abandoned"))
    assert world.state.below("lineage") == {}


# --- takeover


def test_only_a_person_takes_over(world: World) -> None:
    token = take(world, ALICE, "a").result["token"]
    assert isinstance(token, int)
    assert world.refused("takeover", Takeover(BOB, paths("a")[0], token, "urgent")).code == "person"
    world.approvers = ["grace"]
    assert world.refused("takeover", Takeover(ADA, paths("a")[0], token, "urgent")).code == "person"
    world.approvers = ["ada"]
    decision = world.must("takeover", Takeover(ADA, paths("a")[0], token, "urgent"))
    assert [event.kind for event in decision.events] == ["takeover", "start", "claim"]
    assert world.held() == {("a", "ada", "write")}
    alice = world.agent("alice")
    assert alice is not None and alice["state"] == "open" and alice["lost"][0]["by"] == "ada"
    world.must("start", Start(ALICE))
    assert "lost to" not in world.refused("release", Release(CAROL, paths("a"))).message


def test_a_takeover_names_the_token_and_why(world: World) -> None:
    take(world, ALICE, "a")
    assert world.refused("takeover", Takeover(ADA, paths("a")[0], 99, "urgent")).code == "token"
    with pytest.raises(UsageError):
        world.do("takeover", Takeover(ADA, paths("a")[0], 3, ""))


def test_what_has_expired_needs_no_takeover(world: World) -> None:
    token = take(world, ALICE, "a", ttl=60).result["token"]
    assert isinstance(token, int)
    world.host.advance(1000)
    assert world.refused("takeover", Takeover(ADA, paths("a")[0], token, "urgent")).code == "expired"


def test_a_takeover_is_whole_or_not_at_all(world: World) -> None:
    token = take(world, ALICE, "a/b").result["token"]
    take(world, BOB, "a/c")
    assert isinstance(token, int)
    take(world, CAROL, "x/y")
    above = world.do("takeover", Takeover(ADA, paths("a")[0], token, "urgent"))
    assert not isinstance(above, Decision)
    assert len(world.claims()) == 3


# --- halt


def test_halt_lets_only_giving_back_through(world: World) -> None:
    take(world, ALICE, "a", ttl=60)
    take(world, BOB, "b")
    world.must("halt", Halt(BOB._replace(person=True), "deploy"))
    assert world.must("halt", Halt(ALICE._replace(person=True))).events == []
    world.host.advance(1000)
    for kind, command in (
        ("claim", Take(CAROL, paths("c"))), ("start", Start(CAROL)), ("expire", Sweep(BOB)), ("claim", Take(CAROL, paths("a"))),
        ("takeover", Takeover(ADA, paths("b")[0], 4, "why")), ("disown", Disown(BOB, "a", "why")),
    ):  # fmt: skip
        assert world.refused(kind, command).code == "halted"
    world.must("release", Release(ALICE))
    assert world.refused("unhalt", Unhalt(BOB)).code == "person"
    world.must("unhalt", Unhalt(ADA))
    assert world.must("unhalt", Unhalt(BOB)).events == []
    take(world, CAROL, "c")


# --- events that nobody may write


def event(world: World, kind: str, body: dict[str, object], agent: str = "alice", **more: int) -> Event:
    return Event(kind, more.get("seq", world.state.seq + 1), agent, world.host.wall(), "n", 0, body)


CLAIM: dict[str, object] = {
    "session": 1, "items": [["path", "x"]], "mode": "write", "ttl": 60, "expected": 0, "reason": "", "task": "",
    "bases": [""], "units": 1, "capacity": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("claim", {**CLAIM, "items": [["path", "b/c"]]}),
        ("claim", {**CLAIM, "items": [["path", "."]], "mode": "read"}),
        ("claim", {**CLAIM, "session": 2}),
        ("claim", {**CLAIM, "mode": "own"}),
        ("claim", {**CLAIM, "ttl": 0}),
        ("claim", {**CLAIM, "units": 0}),
        ("claim", {**CLAIM, "items": [["resource", "gpu"]], "units": 4, "capacity": {"gpu": 3}}),
        ("release", {"released": [{"space": "path", "path": "b", "token": 5, "commit": "", "base": "", "files": [], "landed": []}]}),
        ("expire", {"claims": [{"space": "path", "path": "b", "agent": "bob", "token": 1}]}),
        ("takeover", {"space": "path", "path": "b", "holder": "bob", "token": 1, "reason": "x"}),
        ("start", {"session": 2, "instance": "", "parent": ""}),
        ("start", {"session": 1, "instance": "", "parent": ""}),
        ("stop", {"target": "bob", "session": 2, "cause": "x", "freed": [], "kept": []}),
        ("stop", {"target": "alice", "session": 1, "cause": "x", "freed": [["path", "b"]], "kept": []}),
        ("kill", {"target": "nobody", "session": 1, "reason": "", "freed": []}),
        ("revive", {"target": "bob"}),
        ("unhalt", {}),
        ("init", {"case": "exact", "sync": "main", "authority": {}}),
        ("repair", {"skipped": ["nothing"], "reason": ""}),
    ],
)  # fmt: skip
def test_apply_judges_what_it_is_given(world: World, kind: str, body: dict[str, object]) -> None:
    take(world, ALICE, "a")
    take(world, BOB, "b")
    with pytest.raises(Illegal):
        apply(world.state, event(world, kind, body))


def test_seq_has_no_gaps_but_at_an_epoch(world: World) -> None:
    for seq in (world.state.seq, world.state.seq + 2, 0):
        with pytest.raises(Illegal):
            apply(world.state, event(world, "halt", {"reason": ""}, seq=seq))
    assert apply(world.state, event(world, "epoch", {"reason": "restored"}, seq=1_000_000)).seq == 1_000_000
    with pytest.raises(Illegal):
        apply(world.state, event(world, "epoch", {"reason": "restored"}, seq=world.state.seq))


def test_adopting(world: World) -> None:
    assert world.must("adopt", Adopt(ALICE, {"local": 1})).events == []
    world.must("adopt", Adopt(ALICE, {"local": 2}))
    record = world.state.get("format")
    assert record is not None and record["authority"] == {"local": 2}


# --- some of many


def test_some_claims_are_found_without_reading_the_others(world: World) -> None:
    take(world, ALICE, *(f"src/part{n % 7}/file{n}" for n in range(300)))
    take(world, BOB, "docs", "lib")
    whole, read = world.state, list[str]()

    def source(state: State, parts: list[Part]) -> None:
        for kind, path in parts:
            if kind == "names":
                state.load_names(path, whole.names(path))
            else:
                assert kind == "file"
                state.load_file(path, whole.get(path))
                read.append(path)

    found, more = some_claims(State(source=source), 20, besides="bob")
    assert (len(found), more, len(read)) == (20, True, 20)
    assert {claim.agent for claim in found} == {"alice"}
    found, more = some_claims(State(source=source), 20, besides="alice")
    assert ([claim.path for claim in found], more) == (["docs", "lib"], False)

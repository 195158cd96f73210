"""Events that somebody made by hand: they decode, and their insides are wrong. The answer is an error of ours, never a crash."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from gitcoord.base.codec import Malformed, dumps
from gitcoord.base.errors import GitcoordError, Refusal
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.take import Take
from gitcoord.ledger.event import Decision, Event, apply, decode_event, encode_event
from gitcoord.ledger.sessions import Actor
from tests.ledger.world import World, paths
from tests.server.test_retrace import judged

CLAIM: dict[str, Any] = {
    "session": 1, "items": [["path", "x"]], "mode": "write", "ttl": 60, "expected": 0, "reason": "", "task": "",
    "bases": [""], "units": 1, "capacity": {},
}  # fmt: skip
RELEASE: dict[str, Any] = {
    "space": "path", "path": "a", "token": 3, "commit": "", "base": "", "files": [], "landed": [],
}  # fmt: skip
DEPLOY: dict[str, Any] = {
    "target": "production", "commit": "1" * 40, "outcome": "ok", "code": 0, "verify_code": 0, "token": 3,
}  # fmt: skip
EXPIRE: dict[str, Any] = {"space": "path", "path": "a", "agent": "alice", "token": 3}
WAIT: dict[str, Any] = {
    "session": 1, "ticket": 0, "items": [["path", "b"]], "mode": "write", "units": 1, "priority": "normal",
    "blocking": True, "reserve": 15, "ttl": 60, "expected": 0, "reason": "", "task": "", "base": "",
}  # fmt: skip
LEAVE: dict[str, Any] = {"target": "bob", "ticket": 7, "items": [["path", "b"]]}  # the request of bob that is there

HOSTILE: dict[str, tuple[str, dict[str, Any]]] = {
    "items that are no pairs": ("claim", {**CLAIM, "items": ["x"]}),
    "an item of three": ("claim", {**CLAIM, "items": [["path", "x", "y"]]}),
    "items of numbers": ("claim", {**CLAIM, "items": [[1, 2]]}),
    "an item in no space": ("claim", {**CLAIM, "items": [["moon", "x"]]}),
    "an item above the top": ("claim", {**CLAIM, "items": [["path", "../x"]]}),
    "an item in git's own directory": ("claim", {**CLAIM, "items": [["path", ".git/config"]]}),
    "an empty name": ("claim", {**CLAIM, "items": [["path", ""]]}),
    "an empty component": ("claim", {**CLAIM, "items": [["path", "a//b"]]}),
    "a NUL byte": ("claim", {**CLAIM, "items": [["path", "a\0b"]]}),
    "half a surrogate pair": ("claim", {**CLAIM, "items": [["path", "\ud800"]]}),
    "fewer bases than items": ("claim", {**CLAIM, "bases": []}),
    "a base that is a number": ("claim", {**CLAIM, "bases": [1]}),
    "a capacity that is text": ("claim", {**CLAIM, "items": [["resource", "r"]], "capacity": {"r": "9"}}),
    "released that are no records": ("release", {"released": ["a"]}),
    "a release without a token": ("release", {"released": [{"space": "path", "path": "a"}]}),
    "a release of files that are none": ("release", {"released": [{**RELEASE, "files": ["x"]}]}),
    "landed that is no pair": ("release", {"released": [{**RELEASE, "landed": [1]}]}),
    "expired that are no records": ("expire", {"claims": [1]}),
    "an expiry without an agent": ("expire", {"claims": [{"space": "path", "path": "a", "token": 3}]}),
    "an expiry of an agent that is a path": ("expire", {"claims": [{**EXPIRE, "agent": "../../format"}]}),
    "freed that are no pairs": ("kill", {"target": "alice", "session": 1, "reason": "", "freed": [1]}),
    "a stop that keeps what it should not": ("stop", {"target": "alice", "session": 1, "cause": "", "freed": [], "kept": [1]}),
    "a target that is no name": ("revive", {"target": "../halt"}),
    "entries that are no pairs": ("disown", {"path": "a", "reason": "", "entries": [1]}),
    "a deploy to a path": ("deploy", {**DEPLOY, "target": "../../format"}),
    "a deploy to half a surrogate pair": ("deploy", {**DEPLOY, "target": "\ud800"}),
    "a deploy of no commit": ("deploy", {**DEPLOY, "commit": "--exec=x"}),
    "a deploy that ended with text": ("deploy", {**DEPLOY, "code": "0"}),
    "a deploy under a token of the future": ("deploy", {**DEPLOY, "token": 99}),
    "a number of a path": ("number", {"sequence": "../format", "first": 1, "count": 1, "floor": 0}),
    "a number that is not the next": ("number", {"sequence": "n", "first": 7, "count": 1, "floor": 0}),
    "a number below nothing": ("number", {"sequence": "n", "first": -8, "count": 1, "floor": -9}),
    "no number at all": ("number", {"sequence": "n", "first": 1, "count": 0, "floor": 0}),
    "all numbers there are": ("number", {"sequence": "n", "first": 1, "count": 10**14, "floor": 0}),
    "a number after the last": ("number", {"sequence": "n", "first": 10**15 - 1, "count": 2, "floor": 10**15 - 2}),
    "an effect that is a path": ("once", {"key": "../\0", "session": 1}),
    "an effect of no session": ("once", {"key": "k", "session": 9}),
    "an end without a beginning": ("done", {"key": "k", "token": 3, "code": 0}),
    "a memory of nothing": ("forget", {"key": "k", "token": 3, "reason": ""}),
    "rules that are no blob": ("ack", {"version": "../../x"}),
    "an entry that is not there": ("disown", {"path": "a", "reason": "", "entries": [["a", "b"]]}),
    "a wait under another's ticket": ("wait", {**WAIT, "ticket": 7}),
    "a wait for nothing": ("wait", {**WAIT, "items": []}),
    "a wait that reserves for a day": ("wait", {**WAIT, "reserve": 86400}),
    "a wait in no class": ("wait", {**WAIT, "priority": "now"}),
    "a wait in a session that is not there": ("wait", {**WAIT, "session": 9}),
    "a withdrawal of a ticket that is not there": ("leave", {**LEAVE, "ticket": 4}),
    "a withdrawal of nothing": ("leave", {**LEAVE, "items": []}),
    "a withdrawal of other items": ("leave", {**LEAVE, "items": [["path", "b"], ["path", "c"]]}),
    "a withdrawal for a path": ("leave", {**LEAVE, "target": "../../format"}),
    "a promotion of a ticket that is not there": ("promote", {**LEAVE, "ticket": 4, "priority": "high"}),
    "a promotion to no class": ("promote", {**LEAVE, "priority": "now"}),
    "a promotion downwards": ("promote", {**LEAVE, "priority": "low"}),
    "a promotion of nothing": ("promote", {**LEAVE, "items": [], "priority": "high"}),
}  # fmt: skip

# Legal events that the rules do not make for alice. Only a gate stops them: a client believes every writer. The last word: does a gate
# without accounts, to which everybody may be a person?
BELIEVED: dict[str, tuple[str, dict[str, Any], bool]] = {
    "a class that no agent may ask for": ("wait", {**WAIT, "priority": "critical"}, True),
    "a reserve that is not the settings'": ("wait", {**WAIT, "reserve": 3600}, False),
    "a withdrawal by another": ("leave", LEAVE, True),
    "a promotion by an agent": ("promote", {**LEAVE, "priority": "critical"}, True),
}


def crafted(world: World, kind: str, body: dict[str, Any], agent: str = "alice") -> bytes:
    """A message as no gitcoord would write it, but well formed."""
    seq = world.state.seq + 1
    line = dumps({**body, "v": 1, "kind": kind, "seq": seq, "agent": agent, "at": 0, "nonce": "n", "part": 0})
    return f"x\n\n{line}\n\nSeq: {seq}\nKind: {kind}\n".encode()


def waited_for() -> World:
    """alice holds 'a' and carol 'b', for which bob waits."""
    world = World()
    world.must("claim", Take(Actor("alice"), paths("a")))
    world.must("claim", Take(Actor("carol"), paths("b")))
    assert world.must("wait", Wait(Actor("bob"), paths("b"))).result["ticket"] == LEAVE["ticket"]
    return world


@pytest.mark.parametrize(("kind", "body"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_event(kind: str, body: dict[str, Any]) -> None:
    world = waited_for()
    with pytest.raises(GitcoordError):
        apply(world.state, decode_event(crafted(world, kind, body)))
    with suppress(GitcoordError, LookupError, ValueError):  # the gate refuses what it cannot judge
        assert isinstance(judged(world, [decode_event(crafted(world, kind, body))]), Refusal)


@pytest.mark.parametrize(("kind", "body", "is_open_to_it"), BELIEVED.values(), ids=BELIEVED.keys())
def test_what_a_gate_refuses_and_a_client_believes(kind: str, body: dict[str, Any], is_open_to_it: bool) -> None:
    world = waited_for()
    assert not isinstance(judged(world, [decode_event(crafted(world, "wait", WAIT))]), Refusal)
    event = decode_event(crafted(world, kind, body))
    assert isinstance(judged(world, [event]), Refusal)
    assert isinstance(judged(world, [event], person=True), Refusal) is not is_open_to_it
    before = dumps(world.state.files)
    world.commit(Decision([event], [], {}))
    assert dumps(world.state.files) != before
    world.check_replay()  # as fsck does


@pytest.mark.parametrize("name", ["Alice", "../x", "", "a/b", "@x", "x" * 65, "a\nb"])
def test_an_author_that_is_no_agent(name: str) -> None:
    """The name becomes part of file and ref names."""
    world = World()
    with pytest.raises(GitcoordError):
        apply(world.state, decode_event(crafted(world, "start", {"session": 1, "instance": "", "parent": ""}, name)))


def _message(line: bytes, seq: int = 2, kind: str = "halt") -> bytes:
    return b"subject\n\n" + line + f"\n\nSeq: {seq}\nKind: {kind}\n".encode()


HALT = b'{"agent":"a","at":1,"kind":"halt","nonce":"n","part":0,"reason":"","seq":2,"v":1}'
MESSAGES = (
    b"", b"a commit by hand\n", b"a commit\n\nwith a body\n", _message(b"{}"), _message(b"null"), _message(b'{"kind":1}'),
    _message(HALT, seq=3), _message(HALT, kind="kill"), _message(HALT) + b"Signed-off-by: x\n", _message(HALT.replace(b'"v":1', b'"v":2')),
    _message(HALT.replace(b'"halt"', b'"os"'), kind="os"), _message(HALT.replace(b'"halt"', b'"../x"'), kind="../x"),
    _message(HALT.replace(b'"halt"', b'"__init__"'), kind="__init__"), _message(HALT.replace(b'"seq":2', b'"seq":2.0')),
    _message(HALT.replace(b'"reason":""', b'"reason":"","extra":1')), _message(HALT.replace(b'"part":0', b'"part":"0"')),
    _message(HALT.replace(b'"agent":"a",', b"")), _message(HALT).replace(b"\n\n", b"\n"),
    b"a\n\nb", b"a\n\n[]\n\nb", b"fix typo\n\nlong story\n\nSigned-off-by: x\n", _message(b"["), _message(HALT.replace(b'"v":1', b'"v":1,"v":1')),
    _message(HALT.replace(b'"at":1', b'"at":true')), _message(HALT.replace(b',"v":1', b"")), _message(HALT.replace(b'"at":1', b'"at":NaN')),
    _message(HALT.replace(b'"reason":""', b'"reason":1')),
)  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_a_commit_that_is_no_event(message: bytes) -> None:
    assert decode_event(_message(HALT)).kind == "halt"
    with pytest.raises(Malformed):
        decode_event(message)


def test_what_is_written_can_be_read_back() -> None:
    """A number that the reader would refuse must not get into the ledger: it would lock everybody out."""
    for seconds in (10**15, 10**20):
        body = {"session": 1, "items": [["resource", "gpu"]], "mode": "write", "ttl": 60, "expected": 0, "reason": "", "task": "",
                "bases": [""], "units": 1, "capacity": {"gpu": seconds}}  # fmt: skip
        with pytest.raises(Malformed):
            encode_event(Event("claim", 3, "alice", 1, "n", 0, body))


def test_a_request_too_large_for_one_event() -> None:
    world = World()
    with pytest.raises(GitcoordError):
        world.must("claim", Take(Actor("alice"), paths(*(f"{'d' * 200}/{number}" for number in range(10_001)))))

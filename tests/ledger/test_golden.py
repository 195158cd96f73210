"""The bytes of the ledger: one scripted history with every kind of event has exactly these trees and commits.

`golden.txt` has, for each event, its kind, its commit's id and the hash of what it answered. Whatever changes one of them changes
what older versions wrote: it needs a new format, not a new golden file.
"""

from __future__ import annotations

from hashlib import sha1
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gitcoord.base.codec import Record, dumps, encode_file
from gitcoord.claims.events.disown import Disown
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.events.leave import Leave
from gitcoord.claims.events.promote import Promote
from gitcoord.claims.events.release import Release
from gitcoord.claims.events.takeover import Takeover
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.model import Grant
from gitcoord.claims.renew import Renew
from gitcoord.claims.renew import decide as decide_renew
from gitcoord.claims.requests import all_requests
from gitcoord.claims.take import Take
from gitcoord.deploy.events.deploy import Deploy
from gitcoord.effects.events.done import Done
from gitcoord.effects.events.forget import Forget
from gitcoord.effects.events.number import Number
from gitcoord.effects.events.once import Once
from gitcoord.gates.events.ack import Ack
from gitcoord.gates.events.answer import Answer
from gitcoord.gates.events.notice import Notice
from gitcoord.gates.events.request import Request
from gitcoord.gates.events.role import SetRole
from gitcoord.git.tree import TreeEditor, Trees
from gitcoord.handoff.events.accept import Accept
from gitcoord.handoff.events.close import Close
from gitcoord.handoff.events.handoff import New as Offer
from gitcoord.journal.events.journal import Write
from gitcoord.journal.events.note import LeaveNote
from gitcoord.journal.events.seen import End, Seen, decide_end
from gitcoord.landing.events.land import Land
from gitcoord.landing.events.landing import Begin
from gitcoord.ledger.event import Decision, Event, apply, commit_bytes, decode_event, effects
from gitcoord.ledger.events.adopt import Adopt
from gitcoord.ledger.events.epoch import Epoch
from gitcoord.ledger.kinds import KINDS
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import with_refused
from gitcoord.sessions.events.halt import Halt
from gitcoord.sessions.events.inherit import Inherit
from gitcoord.sessions.events.kill import Kill
from gitcoord.sessions.events.revive import Revive
from gitcoord.sessions.events.start import Start
from gitcoord.sessions.events.stop import Stop
from gitcoord.sessions.events.unhalt import Unhalt
from gitcoord.tasks.events.assign import Assign
from gitcoord.tasks.events.finish import Finish
from gitcoord.tasks.events.lapse import Collect
from gitcoord.tasks.events.revise import Revise
from gitcoord.tasks.events.task import Add
from gitcoord.tasks.events.task import New as Task
from tests.git.memory_store import MemoryStore
from tests.ledger.world import World, paths

if TYPE_CHECKING:
    from collections.abc import Callable

    Do = Callable[..., dict[str, Any]]

GOLDEN = Path(__file__).with_name("golden.txt")
ALICE, BOB, CAROL = Actor("alice"), Actor("bob", "i2"), Actor("carol", parent="alice")
ADA = Actor("ada", person=True)
ONE, TWO, BLOB = "1" * 40, "2" * 40, "b" * 40
SAID = {"state": "the parser works", "changed": "the lexer", "remaining": "the printer", "next": "write print_tree()"}
REFUSED = ({"path": "a", "holder": "alice", "count": 2},)


def history() -> tuple[World, list[dict[str, Any]]]:
    """A world in which everything happened once, and what each command answered."""
    world = World()
    world.head, world.resources = ONE, {**world.resources}
    answers: list[dict[str, Any]] = []

    def do(kind: str, command: Any, refused: tuple[Record, ...] = ()) -> dict[str, Any]:
        world.host.advance(1)
        answer = world.decide(kind, command)
        assert isinstance(answer, Decision), answer
        world.commit(with_refused(answer, refused))
        answers.append(answer.result)
        return answer.result

    def alone(kind: str, **body: object) -> None:
        """An event that no rule of the core makes."""
        event = Event(kind, world.state.seq + 1, "ada", world.host.wall(), world.host.random(), 0, body)
        world.commit(Decision([event], [], {}))

    _claims(world, do)
    _sessions(world, do)
    _work(world, do)
    _gates(world, do)
    alone("repair", skipped=[TWO], reason="torn")
    do("adopt", Adopt(ADA, {"local": 2}))
    _left_behind(world, do)
    # `World` counts its events by their Seq: nothing that checks it may follow.
    answer = world.decide("epoch", Epoch(ADA, world.state.seq + 1000, "restored"))
    assert isinstance(answer, Decision)
    world.commit(answer)
    _queue(world, do)
    _notes(world, do)
    _landings(world, do)
    _promoted(world, do)
    return world, answers


def _notes(world: World, do: Do) -> None:
    seq = int(str(do("note", LeaveNote(ALICE, "src/a", "mind the\ngap ü", 60))["seq"]))
    do("seen", Seen(BOB, (("src/a", seq),)))
    world.commit(decide_end(world.state, End(ALICE, seq), world.outside(nonce="end")))


def _claims(world: World, do: Do) -> None:
    do("claim", Take(ALICE, paths("src/a", "Straße/ü", "@gpu"), ttl=600, expected=60, reason="why", task="x", base=ONE))
    do("claim", Take(BOB, paths("doc"), "read"), REFUSED)
    do("claim", Take(CAROL, paths("@gpu"), units=2, nonce="given"))
    do("claim", Take(BOB, paths("doc"), "intent", reason="more"))
    renewed = decide_renew(world.state, Renew(ALICE, paths("src/a"), 900), world.outside(nonce="r1"))
    assert isinstance(renewed, Decision)
    world.commit(renewed)
    world.head, world.changed = TWO, {"src/a": [["src/a/x.py", "100644", BLOB], ["src/a/gone", "000000", ""]]}
    do("release", Release(ALICE, paths("src/a")))
    do("claim", Take(BOB, paths("src/a"), base=ONE))
    world.head, world.landed = "3" * 40, {TWO}
    world.changed = {"src/a": [["src/a/x.py", "100755", "c" * 40]]}
    do("claim", Take(BOB, paths("src/a"), "read"))
    do("disown", Disown(ALICE, "src/a", "rewritten"))
    world.changed = {}
    do("takeover", Takeover(ADA, paths("doc")[0], world.claims("bob")[0].token, "needed"))
    world.host.advance(4000)
    world.heartbeat("bob")
    do("claim", Take(BOB, paths("Straße")))
    do("expire", Sweep(BOB))


def _sessions(world: World, do: Do) -> None:
    do("start", Start(ALICE))
    again = (Grant("path", "new", 1, "write", 60, 0, "", "", ONE, 1),)
    do("start", Start(CAROL, fresh=True, again=again))
    do("halt", Halt(ALICE._replace(person=True), "smoke"))
    do("unhalt", Unhalt(ADA))
    do("claim", Take(ALICE, paths("dirty", "clean")))
    world.dirty = {"dirty"}
    do("stop", Stop(ALICE, keep=True))
    world.dirty = set()
    do("claim", Take(ALICE, paths("z")))  # goes on with what was kept
    do("kill", Kill(ADA, "bob", "runs wild"))
    do("revive", Revive(ADA, "bob"))
    do("start", Start(BOB))


def _work(world: World, do: Do) -> None:
    first = do(
        "task",
        Add(
            ALICE,
            (
                Task("build", "text\n", "high", paths=paths("b", "@db"), line="l", key="k"),
                Task("test", needs=("k",), review=True, limit=1),
            ),
        ),
    )
    one, two = (str(row["id"]) for row in first["tasks"])
    do("assign", Assign(ALICE, one, base=ONE, nonce="mine"))
    do("revise", Revise(ALICE, one, {"next": "later", "branch": "work"}))
    do("revise", Revise(ALICE, one, {}, "blocked", reason="no key"))
    do("revise", Revise(ALICE, one, {}, "unblock"))
    facts = {
        "branch": "work",
        "head": TWO,
        "commits": [[TWO, "a subject"]],
        "diffstat": [["b", 1, 2]],
        "dirty": ["b"],
        "unpushed": 1,
    }
    offer = do("handoff", Offer(ALICE, SAID, "bob", "", one, facts=facts))
    do("accept", Accept(BOB, str(offer["id"])))
    do("claim", Take(ALICE, paths("y")))
    offer = do("handoff", Offer(ALICE, SAID, "bob", "", "", paths("y")))
    do("close", Close(BOB, str(offer["id"]), "declined", "no time"))
    do(
        "finish",
        Finish(BOB, one, "done", {"summary": "built", "not_done": [], "commits": [TWO]}, nonce="end"),
    )
    do("assign", Assign(CAROL))
    world.host.advance(4000)
    do("lapse", Collect(ALICE))
    do("revise", Revise(ADA, two, {}, "open"))
    do("revise", Revise(ADA, two, {}, "assigned", "alice"))
    do("assign", Assign(ALICE, two))
    do("finish", Finish(ALICE, two, "failed", {"reason": "no"}))
    do("journal", Write(ALICE, "it went\nwell ü", ("src/a",), "t1"))


def _gates(world: World, do: Do) -> None:
    row = {"rule": "claim", "stage": "warn", "path": "p", "agent": "alice", "commit": ONE}
    do("notice", Notice(ALICE, "pre-push", (row,)))
    rows = tuple(
        {"path": p, "mode": "100644", "blob": BLOB, "rule": "approve", "commit": ONE, "bases": [TWO]} for p in "pq"
    )
    asked = do("request", Request(ALICE, rows))
    one, two = asked["ids"]
    do("answer", Answer(ADA, str(one), True, BLOB))
    do("answer", Answer(ADA, str(two), False, BLOB, "no"))
    do("role", SetRole(ADA, "alice", "code"))
    do("role", SetRole(ADA, "alice", ""))
    do("ack", Ack(ALICE, ONE))
    do("ack", Ack(ALICE, TWO))
    do("number", Number(ALICE, "migrations", 2, 7))
    begun = do("once", Once(ALICE, "mail:1"))
    do("done", Done(ALICE, "mail:1", int(str(begun["token"])), 0))
    do("forget", Forget(ADA, "mail:1", "again"))
    token = do("claim", Take(ALICE, paths("@deploy/prod")))["token"]
    do("deploy", Deploy(ALICE, "prod", TWO, "ok", 0, -1, int(str(token))))


def _left_behind(world: World, do: Do) -> None:
    do("claim", Take(CAROL, paths("left/a", "left/b"), reason="half done"))
    world.dirty = {"left/a", "left/b"}
    do("stop", Stop(CAROL, keep=True))
    world.dirty = set()
    do("inherit", Inherit(BOB, (("left/b", "carol"), ("left/a", "carol"))))


def _queue(world: World, do: Do) -> None:
    """Minor version 1 of the format: requests in the tree, grants in the event that frees, a reservation that was missed."""
    eve, fay, gus = Actor("eve"), Actor("fay"), Actor("gus")
    do("claim", Take(eve, paths("q", "r")))
    do("wait", Wait(fay, paths("q", "r"), expected=60, reason="tidy", priority="high"))
    do("wait", Wait(gus, paths("q/x"), "read", blocking=False))
    do("release", Release(eve, paths("q")))
    do("claim", Take(eve, paths("q/x/y"), "read"))
    do("release", Release(eve))
    do("expire", Sweep(ADA))
    world.host.advance(200)
    do("expire", Sweep(ADA))
    do("leave", Leave(ADA, ticket=all_requests(world.state)[0].ticket))


def _landings(world: World, do: Do) -> None:
    """Minor version 2 of the format: a landing that was dropped, and one that released a claim and completed a task."""
    eve, fay = Actor("eve"), Actor("fay")
    do("wait", Wait(fay, paths("@land/main", "doc"), ttl=60, expected=60, reason="lands fix"))
    begin = Begin(fay, "main", "fix", ONE, ONE, TWO, "squash", [{"command": "make", "code": 0, "seconds": 3}], "", ())
    do("landing", begin._replace(items=(("resource", "land/main", "fay"), ("path", "doc", "fay"))))
    do("release", Release(fay, dirty=True, unworked=True))
    do("wait", Wait(eve, paths("@land/main", "l"), ttl=60, expected=60, reason="lands topic"))
    (task,) = do("task", Add(ADA, (Task("land it"),)))["tasks"]
    do("assign", Assign(eve, task["id"]))
    world.changed = {"l": [["l", "100644", BLOB]]}
    items = (("resource", "land/main", "eve"), ("path", "l", "eve"))
    seq = do("landing", Begin(eve, "main", "topic", TWO, ONE, TWO, "merge", [], task["id"], items))["seq"]
    world.trunk = {TWO}
    do("land", Land(fay, "eve", int(str(seq))))


def _promoted(world: World, do: Do) -> None:
    eve, fay = Actor("eve"), Actor("fay")
    do("claim", Take(eve, paths("p")))
    ticket = do("wait", Wait(fay, paths("p")))["ticket"]
    do("promote", Promote(ADA, int(str(ticket)), "critical"))


def lines(world: World, answers: list[dict[str, Any]]) -> list[str]:
    """Each event with its commit, and each answer with its hash."""
    store = MemoryStore()
    editor, tree, head, found = TreeEditor(store, Trees(store)), None, None, []
    state = State()
    for message in world.log:
        event = decode_event(message)
        changes = effects(state, event)
        blobs = {
            key: None if record is None else store.write("blob", encode_file(key, record))
            for key, record in changes.items()
        }
        tree = editor.edit(tree, blobs) or store.write("tree", b"")
        head = store.write("commit", commit_bytes(event, tree, head))
        store.flush()
        found.append(f"{event.seq} {event.kind} {head}")
        state = apply(state, event)
    for number, answer in enumerate(answers):
        found.append(f"answer {number} {sha1(dumps(answer).encode()).hexdigest()}")
    return found


def test_the_bytes_of_every_kind() -> None:
    world, answers = history()
    assert {event.kind for event in world.events()} == set(KINDS)
    assert lines(world, answers) == GOLDEN.read_text().splitlines()

"""Requests of one machine in one push, each with its own event and answer; the process that pushes may die."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gitcoord.base.names import LEDGER
from gitcoord.claims import service as claims
from gitcoord.claims.model import Item
from gitcoord.claims.take import Take
from gitcoord.git.store import Object
from gitcoord.ledger.remote import backoff
from gitcoord.ledger.remote import transaction as remote
from gitcoord.ledger.remote.backoff import note_push, wait_for_turn
from gitcoord.ledger.remote.fetch import fetch, store_of
from gitcoord.ledger.remote.git_remote import LANDED, RACED
from gitcoord.ledger.remote.push import push_batch
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.transaction import Proposal
from gitcoord.sessions.service import start
from gitcoord.world.open import open_repository
from tests.cli.support import Done
from tests.ledger.remote.support import Fleet, Machine
from tests.races.support import long_timeout, running, soak, wait_until
from tests.support import FakeHost, memory_ledger

pytestmark = [pytest.mark.race, long_timeout]


@contextlib.contextmanager
def waiting(machine: Machine) -> Iterator[None]:
    """Hold the lock of the pushing process: all others decide, and wait."""
    scratch = machine.git_dir / "gitcoord"
    scratch.mkdir(exist_ok=True)
    with open(scratch / "carry.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def agents_waiting(machine: Machine) -> list[str]:
    try:
        found: list[str] = json.loads((machine.git_dir / "gitcoord/batch/open").read_text())["agents"]
    except (FileNotFoundError, json.JSONDecodeError):
        return []
    return found


def together(machine: Machine, requests: dict[str, tuple[str, ...]]) -> dict[str, Done]:
    """All at once, in one batch."""
    with contextlib.ExitStack() as stack:
        with waiting(machine):
            started = {
                agent: stack.enter_context(running(machine.start("git-claim", "--json", *words, agent=agent)))
                for agent, words in requests.items()
            }
            wait_until("all have joined", lambda: sorted(agents_waiting(machine)) == sorted(requests))
        ends = {agent: process.communicate(timeout=60) for agent, process in started.items()}
    return {agent: Done(started[agent].returncode, *end) for agent, end in ends.items()}


def test_eight_requests_one_push(fleet: Fleet) -> None:
    one, two = fleet.joined()
    answers = together(one, {f"w{i}": (f"file{i}",) for i in range(8)})
    assert [answer.code for answer in answers.values()] == [0] * 8, answers
    assert fleet.connections() == ["receive-pack"]
    grants = fleet.events("claim")
    assert sorted(event["agent"] for event in grants) == sorted(answers)
    for agent, answer in answers.items():
        assert [event["seq"] for event in grants if event["agent"] == agent] == [answer.json["token"]]
    assert len(two.claim("list", "--json").json["claims"]) == 8
    fleet.assert_sound()


def test_a_batch_that_lost_is_decided_again(fleet: Fleet) -> None:
    """Another machine was quicker: of those who waited here, one wants what is taken now, the others get theirs."""
    one, two = fleet.joined()
    assert two.claim("file0", agent="bob").code == 0
    answers = together(one, {f"w{i}": (f"file{i}",) for i in range(4)})
    assert answers["w0"].json["held"][0]["agent"] == "bob"
    assert [answers[f"w{i}"].code for i in range(4)] == [1, 0, 0, 0], answers
    fleet.assert_sound()


def test_one_that_the_host_refuses_does_not_stop_the_others(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    words = "while read old new ref; do git log --format=%an $old..$new 2>/dev/null; done | grep -q eve && { echo 'not eve'; exit 1; }\nexit 0\n"
    fleet.hook("pre-receive", words)
    answers = together(one, {name: (f"file-{name}",) for name in ("adam", "eve", "bob")})
    assert {name: answer.code for name, answer in answers.items()} == {"adam": 0, "eve": 1, "bob": 0}, answers
    assert answers["eve"].json["error"] == "host" and "not eve" in answers["eve"].json["message"]
    assert {event["agent"] for event in fleet.events("claim")} == {"adam", "bob"}
    fleet.assert_sound()


def test_who_stood_on_lost_work_does_not_read_the_whole_ledger(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost work is in no ledger, so looking for where it began would end at the first event of all, for each that was tried."""
    one, two = fleet.joined()
    for number in range(6):
        assert two.claim(f"old{number}", agent="bob").code == 0
    env = {**one.env, "GIT_DIR": str(one.git_dir), "GIT_WORK_TREE": str(one.repo)}
    ctx = open_repository({os.fsencode(key): os.fsencode(value) for key, value in env.items()}, writing=True)
    fetch(ctx)
    read: list[str] = []
    authorities, attempts = [], []
    for agent in ("ann", "zoe"):
        authority = remote.RemoteAuthority(ctx)
        order = Take(Actor(agent), (Item("path", f"of/{agent}"),))
        attempt = authority.decide(Proposal(claims._decide_take, order, (), False, nonce=agent))
        assert attempt is not None and attempt.operations
        authorities.append(authority)
        attempts.append(attempt)
    assert attempts[1].snapshot.head == attempts[0].head, "the second stands on the first"
    assert two.claim("--", "new", agent="bob").code == 0
    assert push_batch(ctx, authorities[1]._batch_id).kind == RACED
    local = store_of(ctx).local
    reading = local.read

    def noting(names: Sequence[str]) -> list[Object | None]:
        read.extend(names)
        return reading(names)

    monkeypatch.setattr(local, "read", noting)
    authorities[1]._tried.append(remote._Tried(attempts[1], authorities[1]._floor))
    assert authorities[1]._find_tried() is None
    assert len(read) == 1, "that of bob is new; the others have been there before"
    assert authorities[1]._find_tried() is None
    assert len(read) == 1, "nothing is new"
    ctx.store.close()


def test_those_who_want_the_same(fleet: Fleet) -> None:
    """Of two waiters, the first is granted; the second is refused only once that has landed."""
    one, _ = fleet.joined()
    with contextlib.ExitStack() as stack:
        with waiting(one):
            first = stack.enter_context(running(one.start("git-claim", "--json", "a", agent="alice")))
            wait_until("alice has joined", lambda: agents_waiting(one) == ["alice"])
            second = stack.enter_context(running(one.start("git-claim", "--json", "a", agent="bob")))
            wait_until("both wait", lambda: waiters(one.git_dir / "gitcoord/carry.lock") == 2)
            assert second.poll() is None
        assert json.loads(first.communicate(timeout=60)[0])["ok"]
        told = json.loads(second.communicate(timeout=60)[0])
    assert told["error"] == "held" and told["held"][0]["agent"] == "alice"


def waiters(lock: Path) -> int:
    inode = f":{lock.stat().st_ino} "
    return sum("->" in row and inode in row for row in Path("/proc/locks").read_text().splitlines())


@pytest.mark.parametrize("moment", ["before the server has it", "after the server has it"])
def test_the_carrier_is_killed(fleet: Fleet, moment: str) -> None:
    """Those who rode along find out what came of it, and nothing is granted twice or lost."""
    one, _ = fleet.joined()
    fifo = fleet.place / "go"
    os.mkfifo(fifo)
    name = "post-receive" if moment.startswith("after") else "pre-receive"
    hook = fleet.hook(name, f"touch {fleet.place}/there; cat {fifo}; exit 0\n")
    with contextlib.ExitStack() as stack:
        with waiting(one):
            started = {
                agent: stack.enter_context(running(one.start("git-claim", "--json", f"file-{agent}", agent=agent)))
                for agent in ("alice", "bob", "carol")
            }
            wait_until("all have joined", lambda: len(agents_waiting(one)) == 3)
        wait_until("the push is at the server", (fleet.place / "there").exists)
        carrier = next(agent for agent, p in started.items() if _children(p.pid))
        hook.unlink()
        os.kill(started[carrier].pid, signal.SIGKILL)
        fifo.write_text("go\n")
        answers = {agent: p.communicate(timeout=60)[0] for agent, p in started.items()}
    for agent, answer in answers.items():
        assert agent == carrier or json.loads(answer)["ok"], answers
    grants = [event["agent"] for event in fleet.events("claim")]
    assert sorted(grants) == sorted(set(grants)) and set(grants) >= set(started) - {carrier}
    fleet.assert_sound()


def _children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().strip()


def test_the_queue_is_held_by_a_stopped_process(fleet: Fleet) -> None:
    """Every process then pushes alone: slower, and correct."""
    one, _ = fleet.joined()
    with open(one.git_dir / "gitcoord/queue.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = one.claim("a", agent="alice")
    assert found.code == 0, found
    assert one.claim("src/db.py", agent="bob").code == 0
    fleet.assert_sound()


_BEAT = """
import sys
sys.path.insert(0, {root!r})
from gitcoord.sessions.service import beat
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.transaction import Proposal
from gitcoord.world.open import environ, open_repository
assert beat(open_repository(environ(), writing=True), Actor(sys.argv[1]), patient=True)
"""


def test_heartbeats_ride_together(fleet: Fleet) -> None:
    """Heartbeats of several agents wait for the next push."""
    one, _ = fleet.joined()
    beat = _BEAT.format(root=str(Path(__file__).parents[3]))
    for agent in ("alice", "bob"):
        assert one.claim(f"file-{agent}", agent=agent).code == 0
    age_beats(one, fleet)
    before = fleet.refs()
    for agent in ("alice", "bob"):
        assert one.run(sys.executable, "-c", beat, agent).code == 0
    assert fleet.connections() == [] and sorted(agents_waiting(one)) == ["alice", "bob"]
    assert one.claim("file-carol", agent="carol").code == 0
    assert fleet.connections() == ["receive-pack"]
    for agent in ("alice", "bob"):
        assert fleet.refs()[f"refs/gitcoord/sessions/{agent}"] != before[f"refs/gitcoord/sessions/{agent}"]


def age_beats(machine: Machine, fleet: Fleet, seconds: int = 30) -> None:
    """Set the clock in all heartbeats back, by default by a slot, so that the next ones are due."""
    for ref, oid in machine.refs("refs/gitcoord/sessions").items():
        beat = json.loads(machine.git("cat-file", "blob", oid))
        beat["mono"] -= seconds * 1000
        done = subprocess.run(
            ["git", "hash-object", "-w", "--stdin"], cwd=machine.repo, env=machine.env, check=True,
            input=json.dumps(beat, separators=(",", ":"), sort_keys=True) + "\n", capture_output=True, text=True,
        )  # fmt: skip
        machine.git("push", "-q", "--force", "origin", f"{done.stdout.strip()}:{ref}")
    machine.claim("list")
    fleet.connections()


def test_many_machines_on_one_path(fleet: Fleet) -> None:
    """Four machines, four processes each, again and again: exactly one winner."""
    fleet.add("three")
    fleet.add("four")
    machines = fleet.joined()
    for number in range(soak(2, 40)):
        here, go = os.pipe()
        script = f"echo; read line; exec git claim --json file{number}"
        with contextlib.ExitStack() as stack:
            racers = [
                stack.enter_context(running(machine.start("sh", "-c", script, agent=f"m{i}w{j}", stdin=here)))
                for i, machine in enumerate(machines)
                for j in range(4)
            ]
            os.close(here)
            for racer in racers:
                assert racer.stdout is not None and racer.stdout.readline() == "\n"
            os.close(go)
            outs = [json.loads(racer.communicate(timeout=110)[0]) for racer in racers]
        assert sum(out["ok"] for out in outs) == 1, outs
        winner = next(out["claims"][0]["agent"] for out in outs if out["ok"])
        assert all(out["ok"] or [h["agent"] for h in out["held"]] == [winner] for out in outs), outs
    fleet.assert_sound()


def test_a_heartbeat_that_waits_is_in_nobodys_way(fleet: Fleet) -> None:
    """It was made on an older ledger: it is lost, and later requests are decided on the present one."""
    one, two = fleet.joined()
    assert one.claim("a", agent="alice").code == 0
    held = {ref: one.git("rev-parse", ref) for ref in (LEDGER, "refs/gitcoord/sessions/alice")}
    moves = [
        [LEDGER, held[LEDGER], held[LEDGER]],
        ["refs/gitcoord/sessions/alice", held["refs/gitcoord/sessions/alice"], ""],
    ]
    assert two.claim("src/db.py", agent="bob").code == 0
    assert "bob" in one.claim("list").out
    waits = {"agents": ["alice"], "id": "0" * 16, "moves": moves, "since": 0, "v": 1}
    (one.git_dir / "gitcoord/batch/open").write_text(json.dumps(waits, sort_keys=True, separators=(",", ":")))
    assert one.claim("src/app.py", agent="carol").code == 0
    assert one.git("rev-parse", "refs/gitcoord/sessions/alice") == held["refs/gitcoord/sessions/alice"]
    fleet.assert_sound()


def test_machines_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a loss a machine waits; once it lands, it lets as many others go first; unused waits get shorter."""
    host = FakeHost()
    ctx = memory_ledger(tmp_path, host)
    looks: list[int] = []
    monkeypatch.setattr(backoff, "fetch_once", lambda _, since: looks.append(host.mono() - since))
    ours = ctx.store.target(LEDGER) or ""

    def waited() -> int:
        began = host.mono()
        wait_for_turn(ctx)
        return host.mono() - began

    note_push(ctx, LANDED, 200, ours)
    assert waited() == 0 and not looks
    host.drawn = int("c" * 32, 16)  # three quarters of the way, and more
    note_push(ctx, RACED, 200)
    assert waited() == 0, "a look has just shown what is there"
    for most in (
        200,
        600,
        1400,
        3000,
        0,
        200,
    ):  # the more seem to push, the longer; and the unluckiest is soon quick again
        note_push(ctx, RACED, 200)
        assert most * 3 // 4 <= waited() <= most
    assert looks == [0] * 5, "what was known before the wait is old"
    note_push(ctx, LANDED, 200, "f" * 40)  # another has landed since
    assert (waited(), waited()) == (2800, 0)
    for wait in (2800, 2400, 2000, 1600, 1200, 800, 400, 0):
        note_push(ctx, LANDED, 200, ours)
        assert (waited(), waited()) == (wait, 0)
    for _ in range(30):
        note_push(ctx, RACED, 4000)
    note_push(ctx, LANDED, 4000, ours)
    assert waited() == 20_000, "nobody waits for ever"
    note_push(ctx, LANDED, 900, ours)
    host.boot = "another"
    assert waited() == 0


def test_who_wins_all_the_time_waits_where_others_are_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow machines might otherwise never land anything."""
    host = FakeHost()
    ctx = memory_ledger(tmp_path, host)
    monkeypatch.setattr(backoff, "fetch_once", lambda *_: None)

    def waits(count: int = 6, head: str = "head") -> list[int]:
        found = []
        for _ in range(count):
            note_push(ctx, LANDED, 100, head)
            began = host.mono()
            wait_for_turn(ctx)
            found.append(host.mono() - began)
        return found

    assert waits() == [0] * 6, "alone"
    assert not Path(ctx.scratch("turn")).exists(), "and nobody counts"
    start(ctx, Actor("alice"))
    Path(ctx.scratch("beats/alice")).parent.mkdir(exist_ok=True)
    Path(ctx.scratch("beats/alice")).touch()
    assert waits() == [0] * 6, "an agent of this clone"
    Path(ctx.scratch("seen/bob")).parent.mkdir(exist_ok=True)
    Path(ctx.scratch("seen/bob")).touch()  # as whoever looks at the remote leaves it
    assert waits() == [0] * 6, "one that was seen and has no session any more"
    start(ctx, Actor("bob"))
    assert waits() == [0, 0, 300] * 2
    ours = ctx.store.target(LEDGER) or ""
    found = waits(3 + 6 + 12 + 24 + 48 + 48, ours)
    seldom = [n + 1 for n, wait in enumerate(found) if wait]
    assert seldom == [3, 9, 21, 45, 93, 141] and set(found) == {0, 300}, "nobody used it: most only beat"
    note_push(ctx, RACED, 100)
    assert waits(6, ours) == [0, 0, 300, 0, 0, 0], "somebody does push"
    assert waits() == [0, 0, 300] * 2, "and used the next wait, after six"

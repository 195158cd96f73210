"""The queue: what it costs who need not wait, many processes that wait for one path, clients over ssh, a thousand requests.

"Before" is the commit before `--wait` used the queue, made in the same run: there a waiter asked again whenever the ledger moved.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import NamedTuple

from gitcoord.base.names import claim_file
from tests.bench.build import with_waiters
from tests.bench.measure import Failed, Result, Samples, Target, Timed, compare, interleave, p50, read_text, spawn
from tests.bench.place import Place, earlier
from tests.bench.remote import joined
from tests.bench.size import repository
from tests.server.servers import Server, serving

_BEFORE = "5d4d591f"
_FEW = 10
_PATH = "a.txt"
_WAIT = ("git", "claim", "--wait", "1h", _PATH)
_RELEASE = ("git", "claim", "release", _PATH)


class Plan(NamedTuple):
    lanes: int = 64
    grants: int = 20  # of each
    seconds: float = 40.0  # of the race before
    clients: int = 16
    idle: float = 6.0  # seconds for which all clients wait
    waiters: int = 1000


def queue(place: Place, cache: Path, rounds: int, plan: Plan) -> list[Result]:
    try:
        before, note = earlier(place, _BEFORE), ""
    except Failed as error:
        before, note = place, f"{error}: compared with itself"
    return [
        *_without_waiting(place, before, rounds, note),
        *_closed_loop(place, before, rounds, plan, note),
        *_over_ssh(place, plan),
        *_many(place, cache, rounds, plan.waiters),
    ]


def timed(place: Place, *argv: str, expected: int, agent: str = "bench") -> float:
    """Seconds of a command in the current directory that ends with this exit code."""
    start = time.perf_counter()
    _, status = os.waitpid(spawn(argv, {**place.env, "GITCOORD_AGENT": agent}, place.errors), 0)
    seconds = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    if code != expected:
        raise Failed(f"{' '.join(argv)}: exit {code} instead of {expected}: {read_text(place.errors)}")
    return seconds


def _each(names: Iterable[str], what: str, step: Callable[[str, int], float]) -> dict[str, Timed]:
    return {f"{what} {name}": partial(step, name) for name in names}


# --- who need not wait --------------------------------------------------------------------------------------------


def _without_waiting(place: Place, before: Place, rounds: int, note: str) -> list[Result]:
    places = {"now": place, "before": before}
    trees = {name: made.repository(f"queue-{name}", ["a.txt"]) for name, made in places.items()}

    def step(name: str, *words: str, expected: int = 0, agent: str = "bench") -> float:
        os.chdir(trees[name])
        return timed(places[name], "git", "claim", *words, expected=expected, agent=agent)

    for name in places:
        step(name, "held.txt", agent="holder")
    samples = interleave(
        rounds,
        _each(places, "claim", lambda name, n: step(name, f"file{n}")),
        _each(places, "refused", lambda name, n: step(name, "held.txt", expected=1)),
    )
    what = "git claim of a free path / before the queue", "git claim of a held path, refused / before the queue"
    return [
        compare("queue-claim", what[0], samples, "claim now", "claim before", Target(1.05), note),
        compare("queue-refused", what[1], samples, "refused now", "refused before", Target(1.1), note),
    ]


# --- many processes, one path -------------------------------------------------------------------------------------


class Race(NamedTuple):
    """The outcome of one closed loop: everybody waits for the path, gets it, gives it back, waits again."""

    per_second: float
    grants: list[int]
    # To the next holder's answer, in seconds:
    started: list[float]  # from the start of a release
    granted: list[float]  # from its event, which is the grant: the time of the claim's ref
    answered: list[float]  # from its own answer


def _closed_loop(place: Place, before: Place, rounds: int, plan: Plan, note: str) -> list[Result]:
    for one in (before, place):
        os.chdir(one.repository("queue-loop", [_PATH]))
        samples = interleave(min(rounds, 15), {"claim": partial(_pair, one)})
    race = _loop(before, before.directory / "queue-loop", plan, seconds=plan.seconds)
    while not race.started:  # on a machine with much else to do
        race = _loop(before, before.directory / "queue-loop", plan, seconds=5 * plan.seconds)
    fair = _loop(place, place.directory / "queue-loop", plan, seconds=0)
    past = _overtakings(place, place.directory / "queue-loop")
    figures = {
        "grants/s": round(fair.per_second, 2), "before": round(race.per_second, 2), "fewest grants before": min(race.grants),
        "most before": max(race.grants),
    }  # fmt: skip
    what = f"{plan.lanes} processes wait for one path, {plan.grants} grants each"
    claim = p50(samples["claim"])
    times = {
        "claim p50 ms": round(claim * 1000, 1), "from the start p50 ms": round(p50(fair.started) * 1000, 1),
        "from the event p50 ms": round(p50(fair.granted) * 1000, 1),
        "from the answer p50 ms": round(p50(fair.answered) * 1000, 1),
        "before, from the start p50 ms": round(p50(race.started) * 1000, 1),
    }  # fmt: skip
    most, least = max(fair.grants), min(fair.grants)
    return [
        Result("queue-throughput", f"{what}: grants / those of the race before", fair.per_second / race.per_second, Target(0.8, at_most=False), figures, note),
        Result("queue-order", f"{what}: grants out of the order of tickets", past, Target(0), {}),
        Result("queue-fairness", f"{what}: fewest / most grants", least / most, Target(0.95, at_most=False), {"fewest": least, "most": most}),
        Result("queue-hand-over", f"{what}: from the event of a release to the next holder's answer / one git claim", p50(fair.granted) / claim, Target(1.5), times),
        Result("queue-hand-over-start", f"{what}: the same from the start of the release command", p50(fair.started) / claim, None, {}),
        Result("queue-hand-over-told", f"{what}: the same from the release's own answer", p50(fair.answered) / claim, None, {}),
    ]  # fmt: skip


def _pair(place: Place, _: int) -> float:
    seconds = place.timed("git", "claim", _PATH)
    place.timed(*_RELEASE)
    return seconds


def _loop(place: Place, where: Path, plan: Plan, seconds: float) -> Race:
    """For so long; with 0 until everybody has had its grants. This process has no other children."""
    os.chdir(where)
    envs = [{**place.env, "GITCOORD_AGENT": f"lane{lane}"} for lane in range(plan.lanes)]
    start = time.monotonic()
    waiting = {spawn(_WAIT, env, f"{place.errors}.{lane}"): lane for lane, env in enumerate(envs)}
    releasing: dict[int, int] = {}
    grants, race = [0] * plan.lanes, Race(0, [], [], [], [])
    released = answered = end = 0.0
    while waiting or releasing:
        pid, status = os.waitpid(-1, 0)
        now = time.monotonic()
        lane = waiting[pid] if pid in waiting else releasing[pid]
        if status:
            raise Failed(
                f"lane {lane}: exit {os.waitstatus_to_exitcode(status)}: {read_text(f'{place.errors}.{lane}')}"
            )
        if pid in waiting:
            del waiting[pid]
            grants[lane] += not end
            if released and not end:
                race.started.append(now - released)
                race.answered.append(max(0.0, now - answered) if answered > released else 0.0)
                ref = Path(f".git/refs/{claim_file('path', _PATH, f'lane{lane}')}")
                if ref.exists():  # git's own maintenance may have packed it
                    race.granted.append(time.time() - ref.stat().st_mtime - (time.monotonic() - now))
            if not end and (now - start > seconds if seconds else min(grants) >= plan.grants):
                end = now
            released = time.monotonic()
            releasing[spawn(_RELEASE, envs[lane], f"{place.errors}.{lane}")] = lane
        else:
            del releasing[pid]
            answered = now
            if not end:
                waiting[spawn(_WAIT, envs[lane], f"{place.errors}.{lane}")] = lane
    return race._replace(per_second=sum(grants) / (end - start), grants=grants)


def _overtakings(place: Place, where: Path) -> int:
    """Grants to a ticket although an earlier one waited."""
    bodies = place.run(where, "git", "log", "--reverse", "--format=%B", "refs/heads/gitcoord", "--").splitlines()
    events = [json.loads(line) for line in bodies if line.startswith("{")]
    tickets = [row["ticket"] for event in events for row in event.get("granted", ())]
    past: int = sum(len(event.get("past", ())) for event in events)
    return past + len([one for one, other in pairwise(tickets) if one > other])


# --- over ssh -----------------------------------------------------------------------------------------------------


def _over_ssh(place: Place, plan: Plan) -> list[Result]:
    """Clients in clones of their own stand in the queue one after the other; each gives the path back when it has it."""
    with serving("ssh") as server, ExitStack() as stack:
        served = server.create("queue")
        clones = [joined(place, served, f"q{n}") for n in range(plan.clients + 1)]
        where, env = clones[-1]
        place.run(where, "git", "claim", "-q", _PATH, env={**env, "GITCOORD_AGENT": "holder"})
        waiters = []
        for n, (at, its) in enumerate(clones[:-1]):
            its["GITCOORD_AGENT"] = f"client{n}"
            process = stack.enter_context(Popen(_WAIT, cwd=at, env=its, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE))
            assert process.stderr is not None
            if not (line := process.stderr.readline()).startswith(b"waiting: "):
                raise Failed(f"client {n}: {line.decode(errors='replace')}")
            waiters.append(process)
        before = _logins(server)
        time.sleep(plan.idle)  # the first two ask each second, the others every five
        opened = _logins(server) - before
        env["GITCOORD_AGENT"] = "holder"
        times, order = _hand_on(place, clones, waiters)
    what = f"{plan.clients} clients over ssh wait for one path"
    figures = {"p50 s": round(p50(times), 2), "longest s": round(max(times), 2)}
    return [
        Result("queue-ssh-order", f"{what}: granted out of order", order, Target(0), {}),
        Result("queue-ssh", f"{what}: from release to grant p50 / 2 s", p50(times) / 2, Target(1), figures),
        Result("queue-ssh-connections", f"{what}: connections opened in {plan.idle:g} s / clients", opened / plan.clients, Target(1), {"opened": opened}),
    ]  # fmt: skip


def _logins(server: Server) -> int:
    return server.log.read_text(errors="replace").count("Accepted publickey")


def _hand_on(
    place: Place, clones: Sequence[tuple[Path, dict[str, str]]], waiters: Sequence[Popen[bytes]]
) -> tuple[list[float], int]:
    """Seconds from each release's answer to the next client's, and how many clients answered out of their turn."""
    where, env = clones[-1]
    times, out_of_order = [], 0
    for n, process in enumerate(waiters):
        place.run(where, *_RELEASE, env=env)
        start = time.monotonic()
        if process.wait(timeout=120):
            raise Failed(f"client {n}: exit {process.returncode}")
        times.append(time.monotonic() - start)
        out_of_order += sum(other.poll() is not None for other in waiters[n + 1 :])
        where, env = clones[n]
    return times, out_of_order


# --- many requests ------------------------------------------------------------------------------------------------


def _many(place: Place, cache: Path, rounds: int, waiters: int) -> list[Result]:
    trees = {
        name: repository(place, cache, f"waiters-{count}", lambda at, count=count: with_waiters(place, at, count))  # type: ignore[misc]
        for name, count in (("few", _FEW), ("many", waiters))
    }
    run = int(time.time())

    def step(name: str, *words: str, expected: int = 0) -> float:
        os.chdir(trees[name])
        return timed(place, "git", "claim", *words, expected=expected)

    samples: Samples = interleave(
        rounds,
        _each(trees, "claim", lambda name, n: step(name, "--", f"docs/{run}-{n}")),
        _each(trees, "list", lambda name, n: step(name, "list", "--mine")),
        _each(trees, "refused", lambda name, n: step(name, "--", "src/part1/new", expected=1)),
        warm=2,
    )
    for name in trees:
        step(name, "release", "--all")

    def row(name: str, what: str, target: Target | None) -> Result:
        return compare(f"queue-many-{name}", f"{what} with {waiters:,} waiters on overlapping directories / with {_FEW}", samples, f"{name} many", f"{name} few", target)  # fmt: skip

    return [
        row("claim", "git claim of a free path", Target(1.5)),
        row("list", "git claim list --mine", Target(1.5)),
        row("refused", "git claim of a path for which they wait, refused", None),
    ]

"""A remote as the authority: one claim over each transport, a crowd on many machines, and the heartbeats of many agents."""

from __future__ import annotations

import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import NamedTuple

from tests.bench.measure import Result, Target, compare, interleave, p50
from tests.bench.place import ROOT, Place, empty_repository
from tests.server.servers import Served, serving

KINDS = ("file", "git", "ssh", "http")

# A process that lives long, as one agent: a line "take <path>" or "release <path>" for each request, or "loop <seconds>".
_WORKER = """
import sys, time
sys.path.insert(0, {root!r})
from gitcoord.claims import service as claims
from gitcoord.sessions import service as sessions
from gitcoord.claims.take import Take
from gitcoord.claims.model import Item
from gitcoord.ledger.sessions import Actor
from gitcoord.base.errors import GitcoordError
from gitcoord.world.open import environ, open_repository

ctx = open_repository(environ(), writing=True, long_lived=True)
actors = [Actor(name) for name in sys.argv[1].split(",")]

def take(path):
    claims.take(ctx, Take(actors[0], (Item("path", path),)))

def release(path):
    claims.release(ctx, actors[0], (Item("path", path),))

print("ready", flush=True)
for line in sys.stdin:
    verb, word = line.split()
    if verb == "loop":
        end, done, failed = time.monotonic() + float(word), 0, ""
        while time.monotonic() < end:
            try:
                take("file-" + actors[0].agent)
                done += 1
                release("file-" + actors[0].agent)
            except GitcoordError as error:
                failed = error.message.replace(chr(10), " ")
        print(done, failed, flush=True)
    elif verb == "beat":
        for actor in actors:
            sessions.start(ctx, actor)
        print("beating", flush=True)
        while True:
            for actor in actors:
                sessions.beat(ctx, actor, patient=True)
            time.sleep(3)
    else:
        (take if verb == "take" else release)(word)
        print("ok", flush=True)
"""

# What one would write without gitcoord: read the ref, build on it, push with a lease, wait a random while, again.
_PLAIN = """
import os, random, subprocess, sys, time
end, done = time.monotonic() + float(sys.argv[1]), 0
def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=False)
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for attempt in range(1000):
        git("fetch", "-q", "origin", "+refs/heads/plain:refs/plain/" + sys.argv[2])
        old = git("rev-parse", "refs/plain/" + sys.argv[2]).stdout.strip()
        new = git("commit-tree", "-p", old, "-m", sys.argv[2] + str(random.random()), "HEAD^{tree}").stdout.strip()
        push = git("push", "-q", "--force-with-lease=refs/heads/plain:" + old, "origin", new + ":refs/heads/plain")
        if push.returncode == 0:
            done += 1
            break
        if time.monotonic() > end:
            break
        time.sleep(random.random() * min(1.0, 0.01 * 2 ** min(attempt, 8)))
print(done, flush=True)
"""


class Plan(NamedTuple):
    machines: int = 8
    each: int = 8
    seconds: float = 12.0
    turns: int = 3
    beating: float = 40.0


def costs(place: Place, rounds: int, kinds: tuple[str, ...] = KINDS) -> list[Result]:
    """One claim, against one bare push."""
    results = []
    for kind in kinds:
        with serving(kind) as server:
            results += _cost(place, kind, server.create("bench"), rounds)
    return results


def joined(place: Place, served: Served, name: str) -> tuple[Path, dict[str, str]]:
    """A machine: a clone that has joined the server's ledger."""
    client = served.by("alice")
    where = place.directory / f"{served.server.kind}-{name}"
    env = {**place.env, **client.env, "PATH": place.env["PATH"]}
    empty_repository(place, where, ["a.txt"])
    place.run(where, "git", "remote", "add", "origin", client.url, env=env)
    place.run(where, "git", "coord", "init", "--remote", "origin", "--same", env=env)
    return where, env


@contextmanager
def _worker(where: Path, env: dict[str, str], agents: str) -> Iterator[Popen[str]]:
    argv = [sys.executable, "-c", _WORKER.format(root=str(ROOT)), agents]
    with Popen(argv, cwd=where, env=env, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


def _say(process: Popen[str], words: str) -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(words + "\n")
    process.stdin.flush()
    return process.stdout.readline()


def _cost(place: Place, kind: str, served: Served, rounds: int) -> list[Result]:
    where, env = joined(place, served, "one")
    head = place.run(where, "git", "rev-parse", "HEAD").strip()

    def push(number: int) -> float:
        new = place.run(where, "git", "commit-tree", "-p", head, "-m", str(number), "HEAD^{tree}").strip()
        began = time.perf_counter()
        place.run(where, "git", "push", "-q", "--force", "origin", f"{new}:refs/heads/bench", env=env)
        return time.perf_counter() - began

    def claim(number: int) -> float:
        began = time.perf_counter()
        place.run(where, "git", "claim", "-q", f"file{number}", env=env)
        took = time.perf_counter() - began
        place.run(where, "git", "claim", "release", "-q", f"file{number}", env=env)
        return took

    with _worker(where, {**env, "GITCOORD_AGENT": "stays"}, "stays") as stays:

        def client(number: int) -> float:
            _say(stays, "take other")  # whatever the commands did meanwhile is seen first
            _say(stays, "release other")
            began = time.perf_counter()
            assert _say(stays, f"take client{number}") == "ok\n"
            took = time.perf_counter() - began
            _say(stays, f"release client{number}")
            return took

        samples = interleave(
            rounds, {"push": push, "claim": claim, "client": client, "python": lambda _: place.bare_python()}
        )
    whole = {**samples, "allowance": [p50(samples["push"]) + 4 * p50(samples["python"])]}
    results = [
        compare(
            f"remote-{kind}",
            f"{kind}: git claim / git push + 4 python3 -I -S",
            whole,
            "claim",
            "allowance",
            Target(1),
        ),
    ]
    if kind != "file":  # there git pushes for it
        words = f"{kind}: a claim of a long-lived client / git push"
        results.append(compare(f"client-{kind}", words, samples, "client", "push", Target(1)))
    if kind == "ssh":
        results.append(compare("remote-ssh-push", "ssh: git claim / git push", samples, "claim", "push", Target(1.3)))
    return results


def crowd(place: Place, plan: Plan) -> list[Result]:
    """Many agents on many machines, all with one server; against compare-and-swap with jittered retry, in turns."""
    with serving("file") as server, ExitStack() as stack:
        served = server.create("crowd")
        machines = [joined(place, served, f"m{i}") for i in range(plan.machines)]
        names = [f"m{i}w{j}" for i in range(plan.machines) for j in range(plan.each)]
        workers = [
            stack.enter_context(_worker(where, {**env, "GITCOORD_AGENT": f"m{i}w{j}"}, f"m{i}w{j}"))
            for i, (where, env) in enumerate(machines)
            for j in range(plan.each)
        ]
        where, env = machines[0]
        place.run(where, "git", "push", "-q", "origin", "HEAD:refs/heads/plain", env=env)
        ours: dict[str, int] = dict.fromkeys(names, 0)
        theirs: list[int] = []
        failures: list[str] = []
        for _ in range(plan.turns):
            for worker in workers:
                assert worker.stdin is not None
                worker.stdin.write(f"loop {plan.seconds}\n")
                worker.stdin.flush()
            for name, worker in zip(names, workers):
                assert worker.stdout is not None
                done, _, failed = worker.stdout.readline().strip().partition(" ")
                ours[name] += int(done)
                failures += [failed] if failed else []
            theirs.append(_plain(machines, plan))
    seconds = plan.seconds * plan.turns
    grants, plain = sum(ours.values()) / seconds, sum(theirs) / seconds
    what = f"{len(names)} clients on {plan.machines} machines"
    least, most = min(ours.values()), max(ours.values())
    figures = {"grants/s": round(grants, 1), "jittered retry grants/s": round(plain, 2), "seconds": seconds}
    note = failures[-1] if failures else ""
    return [
        Result("remote-crowd", f"{what}: grants / those of jittered retry", grants / max(plain, 1 / seconds), Target(5, at_most=False), figures),
        Result("remote-crowd-failures", f"{what}: spurious failures", len(failures), Target(0), {}, note),
        Result("remote-crowd-starved", f"{what}: without a grant", sum(not n for n in ours.values()), Target(0), {"fewest": least, "most": most}),
    ]  # fmt: skip


def _plain(machines: list[tuple[Path, dict[str, str]]], plan: Plan) -> int:
    started = []
    for i, (where, env) in enumerate(machines):
        for j in range(plan.each):
            argv = [sys.executable, "-c", _PLAIN, str(plan.seconds), f"m{i}w{j}"]
            started.append(Popen(argv, cwd=where, env=env, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True))
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return sum(int(process.communicate()[0] or 0) for process in started)


def beats(place: Place, plan: Plan) -> list[Result]:
    """Time a claim with the heartbeats of all machines' agents, and without any, alternating."""
    with serving("file") as server:
        served = server.create("beats")
        machines = [joined(place, served, f"b{i}") for i in range(plan.machines + 1)]
        where, env = machines[-1]

        def claims(seconds: float) -> list[float]:
            end, times = time.monotonic() + seconds, []
            while time.monotonic() < end:
                began = time.perf_counter()
                place.run(where, "git", "claim", "-q", "file", env=env)
                times.append(time.perf_counter() - began)
                place.run(where, "git", "claim", "release", "-q", "file", env=env)
            return times

        claims(0.5)
        quiet = claims(plan.beating / 4)
        with ExitStack() as stack:
            for i, (at, its) in enumerate(machines[:-1]):
                agents = ",".join(f"b{i}w{j}" for j in range(plan.each))
                worker = stack.enter_context(_worker(at, its, agents))
                assert _say(worker, "beat 1") == "beating\n"
            claims(0.5)
            loud = claims(plan.beating)
        quiet += claims(plan.beating / 4)
    ratio = statistics.mean(loud) / statistics.mean(quiet)
    figures = {
        "claims": len(loud), "silent mean ms": round(statistics.mean(quiet) * 1000, 2),
        "beating mean ms": round(statistics.mean(loud) * 1000, 2),
    }  # fmt: skip
    what = f"a claim beside the heartbeats of {plan.machines * plan.each} agents / without"
    return [Result("remote-beats", what, ratio, Target(1.2), figures)]

"""One contender in a process of its own: orders come in as JSON lines, one answer goes out for each.

Run as `python -I -S worker.py <options as JSON>` inside a repository. It uses the library as a long-lived agent would,
so that thousands of rounds fit into a test. The options `queue` and `rules` make it a wrong or a crippled one.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from typing import Any

OPTIONS: dict[str, Any] = json.loads(sys.argv[1])
sys.path.insert(0, OPTIONS["root"])

from gitcoord.base.errors import GitcoordError, Refused  # noqa: E402
from gitcoord.claims import model as core_claims  # noqa: E402
from gitcoord.claims import service as claims  # noqa: E402
from gitcoord.claims.events import claim as claim_kind  # noqa: E402
from gitcoord.claims.model import Item  # noqa: E402
from gitcoord.claims.take import Take  # noqa: E402
from gitcoord.git.locks.queue import QueuedLock  # noqa: E402
from gitcoord.git.process import Child  # noqa: E402
from gitcoord.ledger import context  # noqa: E402
from gitcoord.ledger.sessions import Actor  # noqa: E402
from gitcoord.sessions import service as sessions  # noqa: E402
from gitcoord.world.open import environ, open_repository  # noqa: E402

Row = dict[str, Any]


class NoQueue(QueuedLock):
    """A place in no queue at all: only the compare-and-swap is left."""

    def __enter__(self) -> NoQueue:
        return self


def item(word: str) -> Item:
    return Item("resource", word[1:]) if word[0] == "@" else Item("path", word)


class Worker:
    def __init__(self) -> None:
        self.ctx = open_repository(environ(), writing=True)
        self.agent: str = OPTIONS["agent"]
        self.log = open(OPTIONS["log"], "a", buffering=1)  # noqa: SIM115

    def write(self, row: Row) -> Row:
        self.log.write(json.dumps(row) + "\n")
        return row

    def take(self, order: Row) -> Row:
        command = Take(
            Actor(self.agent, parent=OPTIONS.get("parent", "")),
            tuple(item(word) for word in order["items"]),
            mode=order.get("mode", "write"),
            ttl=order.get("ttl", 0),
            units=order.get("units", 1),
        )
        row: Row = {
            "op": "take", "agent": self.agent, "round": order.get("round", 0), "items": order["items"],
            "mode": command.mode, "units": command.units, "token": 0, "held": [], "message": "",
        }  # fmt: skip
        row["start"] = time.monotonic_ns()
        try:
            result: Row = claims.take(self.ctx, command)
            row |= {"outcome": "renewed" if result["renewed"] else "granted", "token": result["token"]}
        except Refused as refused:
            held = [[h["path"], h["agent"], h["token"]] for h in refused.refusal.blocking_claims]
            row |= {"outcome": "refused", "held": held, "message": refused.message}
        except GitcoordError as error:
            row |= {"outcome": error.code, "message": error.message}
        row["end"] = time.monotonic_ns()
        return self.write(row)

    def release(self, order: Row) -> Row:
        words = order.get("items", [])
        row: Row = {"op": "release", "agent": self.agent, "items": words, "message": ""}
        row["start"] = time.monotonic_ns()
        try:
            # Nothing is ever edited here, and git status for every release would halve the number of rounds.
            claims.release(self.ctx, Actor(self.agent), tuple(item(word) for word in words), dirty=True)
            row["outcome"] = "released"
        except GitcoordError as error:
            row |= {"outcome": error.code, "message": error.message}
        row["end"] = time.monotonic_ns()
        return self.write(row)

    def loop(self, order: Row) -> Row:
        """Take and release, as fast as it goes, until so many were granted or the time is over."""
        dice = random.Random(order["seed"])
        end = time.monotonic() + order["seconds"]
        granted = asked = 0
        while granted < order["count"] and time.monotonic() < end:
            choice = dice.choice(order["choices"])
            row = self.take({"round": asked, **choice})
            asked += 1
            if row["outcome"] == "granted":
                granted += 1
                self.release({"items": choice["items"]})
        return {"granted": granted, "asked": asked}

    def beat(self, order: Row) -> Row:
        return {"alive": sessions.beat(self.ctx, Actor(self.agent))}

    def stop_before_swap(self, order: Row) -> Row:
        """Send one SIGSTOP to this process when it has decided and is about to swap, with the queue's lock."""
        swap = self.ctx.store.swap

        def stopping(operations: Any) -> None:
            self.ctx.store.swap = swap  # type: ignore[method-assign]
            print(json.dumps({"stopped": os.getpid()}), flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
            swap(operations)

        self.ctx.store.swap = stopping  # type: ignore[method-assign]
        return {}

    def stop_after_prepare(self, order: Row) -> Row:
        """Send one SIGSTOP to git when it has answered `prepare: ok` and before it reads `commit`; `whole`: to this process, for which git waits then."""
        send = Child.send

        def stopping(child: Child, data: bytes) -> None:
            if not data.startswith(b"start\n"):
                send(child, data)
                return
            Child.send = send  # type: ignore[method-assign]
            before, word, after = data.partition(b"prepare\n")
            send(child, before + word)
            while child._buffer.count(b"\n") < 2 and child._fill():
                pass
            stopped = os.getpid() if order.get("whole") else child.pid
            print(json.dumps({"stopped": stopped, "git": child.pid}), flush=True)
            os.kill(stopped, signal.SIGSTOP)
            send(child, after)

        Child.send = stopping  # type: ignore[method-assign,assignment]
        return {}


def cripple(options: Row) -> None:
    if options.get("queue") == "none":
        context.Context.queue = lambda self: NoQueue("", 0)  # type: ignore[method-assign]
    elif options.get("queue") == "private":
        context.Context.queue = lambda self: QueuedLock(self.scratch(f"queue.{os.getpid()}"), 5.0)  # type: ignore[method-assign]
    if "queue_seconds" in options:
        context.QUEUE_SECONDS = options["queue_seconds"]
    if options.get("rules") == "all agree":
        for module in (core_claims, claim_kind):
            vars(module)["compatible"] = lambda held, asked: True


def main() -> None:
    cripple(OPTIONS)
    worker = Worker()
    print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        answer = getattr(worker, order["do"])(order)
        print(json.dumps(answer), flush=True)
    worker.ctx.store.close()
    worker.log.close()


main()

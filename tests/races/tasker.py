"""A worker of the drill, in a process of its own: takes tasks and does something with each, as its dice say.

Run as `python -I -S tasker.py <options as JSON>` inside a repository. What it finished is a line in its log. It ends with
0 when nothing is left to do, and with CRASH in the middle of a task when the dice say so.
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

OPTIONS: dict[str, Any] = json.loads(sys.argv[1])
sys.path.insert(0, OPTIONS["root"])

from gitcoord.base.errors import Refused  # noqa: E402
from gitcoord.claims.cli_sleep import Bell  # noqa: E402
from gitcoord.handoff import service as handoff  # noqa: E402
from gitcoord.handoff.events.handoff import New  # noqa: E402
from gitcoord.ledger.sessions import Actor  # noqa: E402
from gitcoord.tasks import service as tasks  # noqa: E402
from gitcoord.tasks.events.assign import Assign  # noqa: E402
from gitcoord.tasks.events.finish import Finish  # noqa: E402
from gitcoord.tasks.events.revise import Revise  # noqa: E402
from gitcoord.tasks.model import OVER  # noqa: E402
from gitcoord.world.open import environ, open_repository  # noqa: E402

CRASH = 9
FATES = ("finish", "crash", "silent", "hand over", "give back")
SECTIONS = {
    "state": "half of it works", "changed": "the first half", "remaining": "the second half", "next": "write it",
    "blockers": "none", "assumptions": "none",
}  # fmt: skip


class Worker:
    def __init__(self) -> None:
        self.ctx = open_repository(environ(), writing=True)
        self.name: str = OPTIONS["name"]
        self.actor = Actor(self.name, f"run:{self.name}")
        self.dice = random.Random(self.name)
        # In a short drill the dice may leave these out.
        self.first = {"w2.0": "hand over", "w3.0": "give back"}.get(self.name, "")
        self.log = open(OPTIONS["log"], "a", buffering=1)  # noqa: SIM115
        self.bell = Bell(f"{self.ctx.repo.common_dir}/refs/heads")

    def run(self) -> int:
        while True:
            id = self.accepted() or self.next()
            if id:
                self.do(id)
            elif not tasks.listing(self.ctx)["tasks"]:
                return 0
            else:
                self.bell.wait(0.2)

    def next(self) -> str:
        result: Any = tasks.assign(self.ctx, Assign(self.actor, ttl=OPTIONS["ttl"]))
        return result["task"]["id"] if result["task"] else ""

    def accepted(self) -> str:
        for row in handoff.listing(self.ctx, self.actor)["handoffs"]:
            if row["from"] != self.name:
                try:
                    result: Any = handoff.accept(self.ctx, self.actor, row["id"])
                except Refused:
                    continue  # another was quicker
                return str(result["task"])
        return ""

    def do(self, id: str) -> None:
        fate, self.first = self.first or self.dice.choices(FATES, OPTIONS["weights"])[0], ""
        if fate == "crash":
            os._exit(CRASH)
        if fate == "silent":
            self.wait_to_be_lost(id)
        if fate == "hand over":
            self.attempt(lambda: handoff.offer(self.ctx, New(self.actor, SECTIONS, task=id)), fate, id)
        elif fate == "give back":
            self.attempt(lambda: tasks.revise(self.ctx, Revise(self.actor, id, {}, "open")), fate, id)
        else:
            record = {"summary": f"by {self.name}", "not_done": []}
            self.attempt(
                lambda: tasks.finish(self.ctx, Finish(self.actor, id, "done", record, dirty=True)), "finish", id
            )

    def attempt(self, deed: Any, what: str, id: str) -> None:
        """Try this on a task; a worker that was taken for expired is refused, since another has the task."""
        try:
            deed()
        except Refused as refused:
            assert refused.code in ("not-yours", "not-open", "handoff", "move"), (refused.code, refused.message)
            what = "refused"
        self.log.write(json.dumps({"name": self.name, "what": what, "id": id}) + "\n")

    def wait_to_be_lost(self, id: str) -> None:
        """Send no heartbeat until another worker has the task, or no other worker is left."""
        while True:
            (task,) = tasks.several(self.ctx, [id])
            others: list[Any] = tasks.listing(self.ctx)["tasks"]  # type: ignore[assignment]
            if task["owner"] != self.name or task["state"] in OVER:
                return
            if all(row["owner"] == self.name or row["id"] == id for row in others):
                return
            self.bell.wait(0.1)


if __name__ == "__main__":
    sys.exit(Worker().run())

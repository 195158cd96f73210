"""Alerts: the command of the local setting `gitcoord.alert` gets expiries, missed reservations, reassigned tasks, long waits, deadlocks
and questions.

The setting is git's own configuration, this user's: never the project's policy, which others can write. The command runs
on its own, with one JSON object on its input; what becomes of it changes nothing.
"""

from __future__ import annotations

from zlib import crc32

from gitcoord.base.codec import Malformed, Record, Shape, check, dumps, loads
from gitcoord.base.names import shown
from gitcoord.git.files import append_file, list_files, read_file, write_file
from gitcoord.git.locks.queue import QueuedLock
from gitcoord.git.long_process import detach
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Event

SETTING = "gitcoord.alert"
_DEADLOCK: dict[str, Shape] = {"at": int, "message": str}
_KEPT = 200  # waits and deadlocks that were told of
_SHOWN = 100  # claims of one event; what is told must fit a pipe


def alert_of_events(ctx: Context, events: list[Event]) -> None:
    """Alert of events, by the client that made them: once for each."""
    for event in events:
        found = _alert_for(event)
        if found:
            _run(ctx, {**found, "seq": event.seq, "agent": event.agent, "at": event.at})


def _alert_for(event: Event) -> Record:
    if event.kind == "expire":
        claims = [
            {
                "path": shown(claim["path"], claim["space"]),
                **{key: claim[key] for key in ("agent", "token", "ttl", "rule")},
            }
            for claim in event.body["claims"][:_SHOWN]
        ]
        # An event of its own ends a grant that its waiter did not confirm.
        alert = "missed-reservation" if event.body["claims"][0]["rule"] == "unconfirmed" else "expiry"
        return {"alert": alert, "claims": claims, "more": len(event.body["claims"]) - len(claims)}
    if event.kind == "lapse":
        tasks = [{key: task[key] for key in ("id", "agent", "rule", "to")} for task in event.body["tasks"][:_SHOWN]]
        return {"alert": "reassigned", "tasks": tasks, "more": len(event.body["tasks"]) - len(tasks)}
    if event.kind == "revise" and event.body["counted"]:
        task = {"id": event.body["id"], "agent": event.agent, "rule": "session over", "to": event.body["move"]}
        return {"alert": "reassigned", "tasks": [task], "more": 0}
    return {}


def alert_of_wait(ctx: Context, agent: str, claim: dict[str, object], waited: int) -> None:
    """Alert of a wait of more than twice the holder's expected time, or its ttl: once for a claim and a waiter. Several processes may find
    it: where another one is about to tell, this one looks again later."""
    with QueuedLock(ctx.scratch("alerts.lock"), 0) as lock:
        if not lock.acquired or _is_known(ctx, f"{claim['token']} {agent}"):
            return
    told = {key: claim[key] for key in ("path", "token", "reason", "task", "expected_seconds", "since")}
    row = {"alert": "long-wait", "holder": claim["agent"], **told, "waited_seconds": waited}
    _run(ctx, {**row, "agent": agent, "at": ctx.host.wall()})


def alert_of_deadlock(ctx: Context, agent: str, message: str) -> None:
    """Note for the overview that a request was refused because of a deadlock, and alert of it: once for an agent and the same cycle."""
    write_file(ctx.scratch(f"deadlocks/{agent}"), dumps({"v": 1, "at": ctx.host.wall(), "message": message}).encode())
    if ctx.settings.get(SETTING) and not _is_known(ctx, f"deadlock {crc32(message.encode()):08x} {agent}"):
        _run(ctx, {"alert": "deadlock", "message": message, "agent": agent, "at": ctx.host.wall()})


def noted_deadlocks(ctx: Context) -> list[Record]:
    """`agent`, `at` and `message` of the last request of each agent in this clone that was refused because of a deadlock."""
    found = []
    for agent in sorted(list_files(f"{ctx.repo.scratch}/deadlocks")):
        try:
            record = check(loads(read_file(f"{ctx.repo.scratch}/deadlocks/{agent}")), _DEADLOCK, agent)
        except Malformed:
            continue  # cut off
        found.append({**record, "agent": agent})
    return found


def _is_known(ctx: Context, key: str) -> bool:
    """Was this told before? From now on it was."""
    file = ctx.scratch("alerts")
    known = read_file(file).decode("ascii", "replace").split("\n")
    if key in known:
        return True
    if len(known) > 2 * _KEPT:
        write_file(file, "".join(f"{line}\n" for line in known[-_KEPT:] if line).encode())
    append_file(file, f"{key}\n".encode())
    return False


def alert_of_question(ctx: Context, agent: str, tool: str, paths: list[str]) -> None:
    """Alert of an action that only a person may allow: once a minute, since several hooks may run for one action."""
    if not ctx.settings.get(SETTING):
        return
    key = f"question {ctx.host.wall() // 60} {agent} {dumps(paths[:_SHOWN])}"
    file = ctx.scratch("alerts-asked")
    if read_file(file, 1 << 20).decode("utf-8", "surrogateescape") == key:
        return
    write_file(file, key.encode("utf-8", "surrogateescape"))
    row = {"alert": "question", "tool": tool, "paths": paths[:_SHOWN], "more": max(0, len(paths) - _SHOWN)}
    _run(ctx, {**row, "agent": agent, "at": ctx.host.wall()})


def _run(ctx: Context, row: Record) -> None:
    row["repository"] = ctx.repo.worktree or ctx.repo.common_dir
    detach(ctx.settings.get(SETTING), ctx.repo.env, dumps(row).encode() + b"\n")

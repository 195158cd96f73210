"""Answers to the page: pages of the overview, and details of a path, an agent, a task, a landing, an approval."""

from __future__ import annotations

from collections import Counter, defaultdict

from gitcoord.base.errors import refused
from gitcoord.base.names import check_agent, check_path, check_resource
from gitcoord.claims.model import Item
from gitcoord.deploy.model import Deployed
from gitcoord.gates.approvals import difference
from gitcoord.gates.approvals import listing as approvals
from gitcoord.git.files import read_file
from gitcoord.journal.measure import measure
from gitcoord.journal.notes import listed
from gitcoord.journal.service import parse_since
from gitcoord.journal.why import why, why_numbered
from gitcoord.landing.unfinished import unfinished_landings
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.page.history import History
from gitcoord.tasks.service import several
from gitcoord.terminal.call import Call
from gitcoord.terminal.screen import Row
from gitcoord.views.urgency import agents_first, claims_first, tasks_first

PAGE = 100  # rows of a list at once
STORY = 200
_NAMED = 3  # paths and tasks of an agent that its row names
_EVENTS = 20_000  # events at most of which contention is counted: a long ledger is not read whole
_TEXT = 64 << 10  # bytes of a diff or of a check's output
NEEDS = ("needs_you", "needs_person", "early_warnings")
LISTS = ("claims", "waits", "agents", "tasks", "approvals", "deploys")
_SORTED = {"agents": agents_first, "claims": claims_first, "tasks": tasks_first}


# --- the overview ------------------------------------------------------------------------------------------------------


def first_page(model: Row) -> Row:
    """The model with the first rows of each list, and how many there are."""
    lists = {name: rows_of(model, name) for name in LISTS}
    cut = {name: rows[:PAGE] for name, rows in lists.items()}
    landing = {key: rows[:PAGE] if isinstance(rows, list) else rows for key, rows in model["landing"].items()}
    counts = {name: len(rows) for name, rows in lists.items()}
    activities = Counter(row["activity"] for row in lists["agents"])
    needs = {key: model[key][:PAGE] for key in NEEDS}
    counts |= {key: len(model[key]) for key in needs}
    return {**model, **cut, **needs, "landing": landing, "counts": counts, "activities": activities}


def rows_of(model: Row, name: str, find: str = "") -> list[Row]:
    """The rows of a list, the urgent ones first; those that have this text. Agents that ended are shown only where they are searched."""
    rows: list[Row] = list(model.get(name, ()))
    if name == "agents":
        rows = _with_work(rows, model)
    if name == "deploys":
        rows = [{**row, "succeeded": Deployed(*(row[key] for key in Deployed._fields)).succeeded} for row in rows]
    if name in _SORTED:
        rows = _SORTED[name](rows)
    wanted = find.casefold()
    if wanted:
        return [row for row in rows if _has(row, wanted)]
    return [row for row in rows if row["activity"] != "ended"] if name == "agents" else rows


def _with_work(agents: list[Row], model: Row) -> list[Row]:
    """The agents with what they are at: how much they hold, the first of it, and their tasks."""
    held, tasks = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for claim in model["claims"]:
        held[claim["agent"]].append(claim["path"])
    for task in model["tasks"]:
        tasks[task["owner"]].append(task["id"])
    return [
        {**row, "holds": {"count": len(held[row["agent"]]), "paths": held[row["agent"]][:_NAMED]}, "tasks": tasks[row["agent"]][:_NAMED]}
        for row in agents
    ]  # fmt: skip


def _has(value: object, wanted: str) -> bool:
    if isinstance(value, dict):
        return any(_has(inner, wanted) for inner in value.values())
    if isinstance(value, (list, tuple)):
        return any(_has(inner, wanted) for inner in value)
    return isinstance(value, str) and wanted in value.casefold()


# --- details -----------------------------------------------------------------------------------------------------------


def path_detail(call: Call, path: str) -> Row:
    """The claims and requests around it, its story as `git coord why` tells it, and its notes."""
    item = Item("resource", check_resource(path[1:])) if path.startswith("@") else Item("path", check_path(path))
    told = why(call.ctx, None, item, STORY)
    return {"path": path, **told, **(listed(call.ctx, path) if item.space == "path" else {"notes": []})}


def agent_detail(call: Call, model: Row, history: History, agent: str) -> Row:
    """The agent with its claims, requests and tasks, and the last events by or about it, newest first."""
    check_agent(agent)
    row = next((row for row in model["agents"] if row["agent"] == agent), None)
    if row is None:
        raise refused("no-agent", f"no agent '{agent}' is known here", "git coord agents")
    return {
        "agent": row,
        "claims": [row for row in model["claims"] if row["agent"] == agent][:PAGE],
        "waits": [row for row in model.get("waits", ()) if row["agent"] == agent][:PAGE],
        "tasks": [row for row in model["tasks"] if row["owner"] == agent][:PAGE],
        "story": history.about(call.ctx, agent, STORY),
    }


def task_detail(call: Call, id: str) -> Row:
    task = several(call.ctx, [id])[0]
    told = why_numbered(call.ctx, None, id, STORY) or {"story": [], "claims": []}
    return {"task": task, "story": told["story"], "claims": told["claims"]}


def landing_detail(call: Call, model: Row, history: History, agent: str) -> Row:
    """The landing of this agent: its turn or its place, what is on record, and the output of a check that failed."""
    check_agent(agent)
    landing = model["landing"]
    found = {key: [row for row in landing[key] if row["agent"] == agent] for key in ("landing", "open", "waiting")}
    failed = [
        {"branch": row.branch, "message": row.message, "at": row.at, "tree": row.tree, "output": _output(row.output)}
        for row in unfinished_landings(call.ctx)
        if row.agent == agent
    ]
    landed = [row for row in history.about(call.ctx, agent, STORY) if row["kind"] in ("land", "landing")]
    return {"agent": agent, "trunk": landing["trunk"], **found, "failed": failed, "story": landed[:20]}


def _output(file: str) -> str:
    """The end of a failed check's output."""
    data = read_file(file, 16 << 20) if file else b""
    cut = "(the beginning is left out)\n" if len(data) > _TEXT else ""
    return cut + data[-_TEXT:].decode("utf-8", "replace")


def approval_detail(call: Call, id: str) -> Row:
    """The request and the change it asks for, against trunk."""
    record = next((row for row in approvals(call.ctx, all=True) if row.id == id), None)
    if record is None:
        raise refused("unknown", "there is no such request", "git coord approvals")
    diff = difference(call.ctx, record)
    cut = "\n(the rest is left out)" if len(diff) > _TEXT else ""
    return {"approval": record._asdict(), "diff": diff[:_TEXT] + cut}


def contention(call: Call, since: str) -> Row:
    """The figures of `git coord contention`."""
    found = measure(
        call.ctx, read_snapshot(call.ctx, trusting=True), parse_since(since, call.ctx.host.wall()), most=_EVENTS
    )
    return {**found, "paths": found["paths"][:20], "agents": found["agents"][:20]}

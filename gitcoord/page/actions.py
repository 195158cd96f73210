"""The actions of a person from the page: each is a verb of the command line, shown in words before it is done.

A plan is made twice: for the confirmation, and again when it was given. The two have to be equal, so that what is done is what was
shown; the rules of each verb decide as everywhere.
"""

from __future__ import annotations

from hashlib import sha256

from gitcoord.base.codec import dumps
from gitcoord.base.errors import UsageError, refused
from gitcoord.base.names import check_agent
from gitcoord.claims.requests import PRIORITIES
from gitcoord.cli.table.claim import VERBS as CLAIM
from gitcoord.cli.table.coord import VERBS as COORD
from gitcoord.page.answers import approval_detail
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.model import ASSIGNED, OPEN
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values, Verb
from gitcoord.terminal.screen import Row

_NAMED = 10  # paths that a confirmation names


class Plan(NamedTuple):
    """A verb with its words and options, and what it will do."""

    title: str
    lines: tuple[str, ...]
    verb: Verb
    words: tuple[str, ...]
    values: Values
    diff: str = ""
    before: tuple[tuple[Verb, tuple[str, ...]], ...] = ()  # steps that have to come first
    why: str = "reason"  # the option that puts the person's reason on record

    @property
    def seal(self) -> str:
        """The same for the same plan."""
        said = [self.title, list(self.lines), list(self.words), self.values, self.diff]
        return sha256(dumps(said).encode()).hexdigest()[:32]

    def to_json(self) -> Row:
        return {"title": self.title, "lines": list(self.lines), "diff": self.diff, "seal": self.seal}

    def steps(self, reason: str) -> list[tuple[Verb, Values, tuple[str, ...]]]:
        """The verbs to run, in order, each with the reason."""
        values: Values = {"reason": reason}
        first = [(verb, values, words) for verb, words in self.before]
        return [*first, (self.verb, {**self.values, self.why: reason}, self.words)]


def plan(call: Call, model: Row, given: Row) -> Plan:
    """The plan of what was asked for: `action`, `subject`, and `value` where the action needs one."""
    action, subject, value = (str(given.get(key, ""))[:5000] for key in ("action", "subject", "value"))
    make = _PLANS.get(action)
    if make is None:
        raise UsageError("there is no such action", hints=(", ".join(_PLANS),))
    return make(call, model, subject, value)


def _approve(call: Call, model: Row, id: str, value: str) -> Plan:
    return _answer(call, id, "approve", "Approve", "it may be committed and pushed with exactly this content")


def _deny(call: Call, model: Row, id: str, value: str) -> Plan:
    return _answer(call, id, "deny", "Deny", "it stays refused")


def _answer(call: Call, id: str, verb: str, title: str, words: str) -> Plan:
    found = approval_detail(call, id)
    record = found["approval"]
    lines = (f"asked by {record['agent']}, rule {record['rule']}", words)
    values: Values = {"blob": record["blob"]} if verb == "approve" else {}
    return Plan(f"{title} {record['path']}", lines, COORD[verb], (id,), values, found["diff"])


def _kill(call: Call, model: Row, agent: str, value: str) -> Plan:
    row = _agent(model, agent)
    held = [str(claim["path"]) for claim in model["claims"] if claim["agent"] == agent]
    below = [str(one["agent"]) for one in model["agents"] if one["parent"] == agent and one["state"] == "open"]
    lines = [f"session {row['session']} ends, and nothing of it gets through any more", f"freed: {_some(held)}"]
    lines += [f"sessions that it launched end: {_some(below)}"] if below else []
    return Plan(f"Kill {agent}", (*lines, "its name may start again after: revive"), COORD["kill"], (agent,), {})


def _revive(call: Call, model: Row, agent: str, value: str) -> Plan:
    _agent(model, agent)
    return Plan(f"Revive {agent}", ("the name may open sessions again; the killed session stays over",), COORD["revive"], (agent,), {})  # fmt: skip


def _halt(call: Call, model: Row, subject: str, value: str) -> Plan:
    lines = ("nothing is granted to anybody until a person ends it", "releases, kills and heartbeats go on")
    return Plan("Halt everything", lines, COORD["halt"], (), {})


def _resume(call: Call, model: Row, subject: str, value: str) -> Plan:
    return Plan("End the halt", ("agents go on",), COORD["unhalt"], (), {})


def _raise(call: Call, model: Row, subject: str, value: str) -> Plan:
    """A request by its ticket, or a task by its id."""
    if value not in PRIORITIES:
        raise UsageError("there is no such priority", hints=(", ".join(PRIORITIES),))
    if subject.startswith("t"):
        task = _task(model, subject)
        lines = (f"{task['title']}", f"now: {task['priority']}")
        return Plan(f"Give task {subject} the priority {value}", lines, COORD["task update"], (subject,), {"priority": value})  # fmt: skip
    request = _request(model, subject)
    lines = (f"{request['agent']} waits for {_some(request['paths'])}", f"now: {request['priority']}; others of a lower class wait longer")  # fmt: skip
    return Plan(f"Raise ticket {subject} to {value}", lines, CLAIM["take"], (), {"ticket": subject, "priority": value}, why="message")  # fmt: skip


def _reassign(call: Call, model: Row, id: str, value: str) -> Plan:
    task, owner = _task(model, id), check_agent(value)
    lines = [f"{task['title']}", f"now: {task['state']}{', ' + task['owner'] if task['owner'] else ''}"]
    taken = task["state"] not in (OPEN, ASSIGNED)
    if taken and task["owner"]:
        lines.append(f"it is taken back from {task['owner']}, whose claims stay until it releases them")
    before = ((COORD["task release"], (id,)),) if taken else ()
    return Plan(
        f"Give task {id} to {owner}", tuple(lines), COORD["task update"], (id,), {"owner": owner}, before=before
    )


def _withdraw(call: Call, model: Row, ticket: str, value: str) -> Plan:
    request = _request(model, ticket)
    lines = (f"{request['agent']} waits for {_some(request['paths'])} no longer, and loses its place",)
    return Plan(f"Withdraw ticket {ticket}", lines, CLAIM["take"], (), {"ticket": ticket, "leave": True}, why="message")  # fmt: skip


_PLANS = {
    "approve": _approve, "deny": _deny, "kill": _kill, "revive": _revive, "halt": _halt, "resume": _resume, "raise": _raise,
    "reassign": _reassign, "withdraw": _withdraw,
}  # fmt: skip


def _agent(model: Row, agent: str) -> Row:
    check_agent(agent)
    row: Row | None = next((row for row in model["agents"] if row["agent"] == agent), None)
    if row is None:
        raise refused("no-agent", f"no agent '{agent}' is known here", "git coord agents")
    return row


def _task(model: Row, id: str) -> Row:
    row: Row | None = next((row for row in model["tasks"] if row["id"] == id), None)
    if row is None:
        raise refused("no-task", "there is no such task under way", "git coord task list")
    return row


def _request(model: Row, ticket: str) -> Row:
    row: Row | None = next((row for row in model.get("waits", ()) if str(row["ticket"]) == ticket), None)
    if row is None:
        raise refused("no-request", "nobody waits with this ticket", "who waits: git claim list")
    return row


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more if paths else "nothing"

"""Rules about what needs a person now. Each rule names its signal; what solves itself, or what its agent is at work on, is left out.

A false alarm costs more than a late one: a list that is mostly empty is read, and one that cries wolf is not.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.durations import format_duration
from gitcoord.base.errors import Refusal
from gitcoord.base.names import CONFIG, shell_word, shown
from gitcoord.claims.model import Claim
from gitcoord.claims.requests import Request
from gitcoord.gates.model import OPEN, Approval
from gitcoord.landing.model import OpenLanding, Unfinished
from gitcoord.sessions.admission import Halted
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.model import NEEDS_HUMAN, Task

DEADLOCK_SECONDS = 600  # for so long a refused deadlock is news


class Need(NamedTuple):
    """One thing that needs somebody. `agent`: the agent that can settle it itself, '' for a person alone."""

    kind: str
    subject: str  # the path, resource, task, branch or agent that it is about
    message: str
    help: str  # the next command, or what is needed
    source: str  # where the signal comes from
    agent: str = ""
    since: int = 0

    def to_json(self) -> dict[str, object]:
        return self._asdict()


class Held(NamedTuple):
    """A claim, whether it has expired, the requests that wait for it, and whether it has uncommitted work in this work tree."""

    claim: Claim
    expired: bool = False
    waiters: tuple[Request, ...] = ()
    is_turn: bool = False
    dirty: bool = False

    @property
    def name(self) -> str:
        return shown(self.claim.path, self.claim.space)


# --- the ledger's own records ------------------------------------------------------------------------------------------


def of_halt(halt: Halted | None) -> list[Need]:
    if halt is None:
        return []
    why = f": {halt.reason}" if halt.reason else ""
    words = f"HALTED by {halt.by}{why}; nobody acts until a person ends it"
    return [Need("halt", halt.by, words, "git coord unhalt", f"event {halt.seq}", since=halt.at)]


def of_killed(agent: str, refusal: Refusal | None) -> list[Need]:
    """The reader was killed, by the refusal that all of its commands get."""
    if refusal is None:
        return []
    return [Need("killed", agent, refusal.message, refusal.hints[0], f"record of {agent} in the ledger", agent)]


def of_approvals(approvals: Iterable[Approval], *, may_approve: bool) -> list[Need]:
    """Requests that nobody has answered; only for those who may."""
    return [
        Need(
            "approval", row.path, f"{row.agent} asks for approval {row.id} of a change of {row.path}",
            "git coord approvals --diff", f"event {event_of(row.id)}", since=row.at,
        )
        for row in approvals
        if may_approve and row.state == OPEN
    ]  # fmt: skip


def event_of(id: str) -> str:
    """The event that asked for the approval of this id."""
    return id.lstrip("a").partition(".")[0]


def of_tasks(tasks: Iterable[Task]) -> list[Need]:
    return [
        Need(
            "task", row.id, f"{row.id} needs a person: {row.title}" + (f" ({row.reason})" if row.reason else ""),
            f"git coord task show {row.id}", f"record of {row.id} in the ledger", since=row.changed,
        )
        for row in tasks
        if row.state == NEEDS_HUMAN
    ]  # fmt: skip


def of_handoffs(rows: Iterable[Record], viewer: str) -> list[Need]:
    """Open handoffs to the reader, by name or by role. One for anyone calls for nobody."""
    return [
        Need(
            "handoff", row["id"], f"{row['from']} hands over {row['id']} to you: {row['next']}",
            f"git handoff show {row['id']}", f"event {row['id'][1:]}", viewer, row["at"],
        )
        for row in rows
        if row["for_you"] and (row["to"] or row["role"])
    ]  # fmt: skip


# --- waiting -----------------------------------------------------------------------------------------------------------


def late_waiters(row: Held, now: int, *, times: int) -> list[Request]:
    """The requests that have waited so many times as long as the holder expects (default: its ttl), counted since it holds the claim."""
    if row.expired or row.is_turn:
        return []
    limit = times * (row.claim.expected or row.claim.ttl)
    return [request for request in row.waiters if now - max(request.at, row.claim.at) > limit]


def of_waits(held: Iterable[Held], now: int) -> list[Need]:
    """Waits of more than twice the time that the holder expects (default: its ttl), counted since it holds the claim. An expired claim
    passes on by itself, and so does a turn to land."""
    found = []
    for row in held:
        claim, late = row.claim, late_waiters(row, now, times=2)
        if late:
            first = min(late, key=lambda request: request.at)
            who = first.agent + (f" and {len(late) - 1} more" if len(late) > 1 else "")
            words = f"{who} waited {format_duration(now - first.at)} for {row.name}, held by {claim.agent}"
            help = f"git coord why {shell_word(row.name)}"
            found.append(Need("wait", row.name, words, help, f"event {first.ticket}", claim.agent, first.at))
    return found


def of_deadlocks(notes: Iterable[Record], held: Iterable[Held], now: int) -> list[Need]:
    """Requests refused lately because of a deadlock whose agent still holds what others wait for: once it releases that, all go on."""
    wanted = {row.claim.agent for row in held if row.waiters and not row.expired}
    return [
        Need(
            "deadlock", str(note["agent"]), f"deadlock refused: {note['message']}", "git claim list", "note of this clone",
            str(note["agent"]), int(note["at"]),
        )
        for note in notes
        if note["agent"] in wanted and 0 <= now - int(note["at"]) < DEADLOCK_SECONDS
    ]  # fmt: skip


# --- work that was left -------------------------------------------------------------------------------------------------


def of_expired(held: Iterable[Held]) -> list[Need]:
    """Expired claims with uncommitted work in this work tree. One without is free to take, which needs nobody."""
    found = []
    for row in held:
        if row.expired and row.dirty:
            wanted = f"; {row.waiters[0].agent} waits for it" if row.waiters else ""
            words = f"{row.claim.agent} has expired and left uncommitted work in {row.name}{wanted}"
            help = f"git status -- {shell_word(':/' + row.claim.path)}"
            found.append(Need("expired", row.name, words, help, f"heartbeat of {row.claim.agent}, work tree"))
    return found


def of_landings(landings: Iterable[OpenLanding], turns: Iterable[str]) -> list[Need]:
    """Landings under way whose agent has its turn no more: the process died. `turns`: the agents that have a turn that lasts."""
    lasting = set(turns)
    return [
        Need(
            "landing", row.branch, f"the landing of {row.branch} by {row.agent} was interrupted; the next one finishes it",
            f"git coord land {shell_word(row.branch)}", f"event {row.seq}", row.agent, row.at,
        )
        for row in landings
        if row.agent not in lasting and not row.announced
    ]  # fmt: skip


def of_unfinished(rows: Iterable[Unfinished], live: Iterable[str], viewer: str) -> list[Need]:
    """One whose agent is gone, or is the viewer. A live agent was told, and is at work on it."""
    alive = set(live)
    found = []
    for row in rows:
        if row.agent != viewer and row.agent in alive:
            continue
        own = "git coord land --continue" if row.tree else f"git coord land {shell_word(row.branch)}"
        help = own if row.agent == viewer else f"git -C {shell_word(row.tree)} status" if row.tree else own
        if row.output:
            help = f"cat {shell_word(row.output)}"
        words = f"the landing of {row.branch} by {row.agent} failed: {row.message}"
        found.append(Need("landing", row.branch, words, help, "note of this clone", row.agent, row.at))
    return found


# --- this clone ---------------------------------------------------------------------------------------------------------


def of_gates(missing: list[str], help: str) -> list[Need]:
    if not missing:
        return []
    words = f"gates: {', '.join(missing)} not in place here, so that changes are not judged"
    return [Need("hooks", "", words, help, "hooks of this work tree")]


def of_guards(unguarded: Iterable[dict[str, object]]) -> list[Need]:
    return [
        Need(
            "guard", str(row["agent"]), f"guard: {row['tool']} does not run it for {row['agent']}",
            f"what it needs: {row['needs']}", "hook of the tool", str(row["agent"]),
        )
        for row in unguarded
    ]  # fmt: skip


def of_policy(message: str, helps: str) -> list[Need]:
    """A policy that cannot be read: by it nothing is judged, so every change is refused."""
    if not message:
        return []
    return [Need("policy", CONFIG, f"every change is refused: {message}", helps, "the policy of trunk")]


def of_ledger(error: str, help: str) -> list[Need]:
    words = f"the ledger may not be used, so that nothing can be claimed or landed: {error}"
    return [Need("ledger", "", words, help, "ledger")] if error else []


def divided(needs: list[Need], agent: str) -> tuple[list[Need], list[Need]]:
    """The needs of the reader, and those of a person instead. `agent`: the reader where it is an agent; a person gets all."""
    if not agent:
        return needs, []
    mine = [need for need in needs if need.agent == agent or need.kind == "hooks"]
    return mine, [need for need in needs if need not in mine]

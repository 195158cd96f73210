"""The overview: one model of what is going on, for all views, from one snapshot of the ledger, the heartbeats beside it and this clone.

What needs somebody, early warnings, claims with their waiters, the landing queue, agents, tasks, approvals, deploys, contention. Every row
names its source.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import CouldNotJudge
from gitcoord.claims.cli_trunk import lacking
from gitcoord.claims.model import Claim, all_claims, is_turn, turn_item
from gitcoord.claims.query import agents, send_due_heartbeat, server_claims, shown_claim
from gitcoord.claims.requests import Request, Requests, all_requests
from gitcoord.deploy.model import all_deploys
from gitcoord.gates.hooks.presence import command_for, missing_gates
from gitcoord.gates.model import OPEN as UNANSWERED
from gitcoord.gates.model import approvals
from gitcoord.handoff.service import rows as handoff_rows
from gitcoord.landing.model import landing_queue, open_landings
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.named_ledger import warn_before_pull
from gitcoord.ledger.sessions import Actor, Expiry, dead, expiry_of
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.policy.roles import may_approve
from gitcoord.radar.around import around
from gitcoord.sessions.admission import halt_record
from gitcoord.sessions.unguarded import unguarded_agents
from gitcoord.sessions.worktree_notes import was_here
from gitcoord.startup.annotations import Iterator
from gitcoord.tasks.model import ACTIVE, Task, ready
from gitcoord.tasks.open_tasks import open_tasks
from gitcoord.views import early, needs
from gitcoord.views.early import Lease
from gitcoord.views.needs import Held, Need
from gitcoord.views.past import PastWorld

_WEEK = 7 * 86_400
_MOST_EVENTS = 2000  # in which hot spots are looked for
_PARTS = (
    ("file", "halt"), ("below", "claims"), ("below", "waits"), ("below", "agents"), ("below", "approvals"),
    ("below", "deploys"), ("below", "landings"), ("names", "work/ready"), ("names", "waits"),
)  # fmt: skip


def overview(ctx: Context, actor: Actor | None, *, beats: bool = True, looks: bool = True) -> dict[str, object]:
    """The model, as `git coord status --json` prints it. A ledger that may not be used is shown too, with what is wrong.

    `beats`: send the heartbeat of the actor if one is due, as every command does. A view that stays open is no sign of life.
    `looks`: look for work that will conflict if that is due; else what is known of it is shown.
    """
    untrusted, helps = _untrusted(ctx)
    snapshot = read_snapshot(ctx, agent=actor.agent if actor is not None else "", prefetch=_PARTS, trusting=True)
    world = ctx.world(snapshot)
    found = _Facts(ctx, snapshot, world)
    if found.requests and ctx.settings.get("gitcoord.alert"):
        from gitcoord.views.overdue import alert_of_late_waits

        alert_of_late_waits(ctx)
    if beats:
        send_due_heartbeat(ctx, snapshot, world, actor)
    missing = missing_gates(ctx)
    gates = [gate.event for gate in missing]
    unguarded = unguarded_agents(ctx, found.agents)
    policy = needs.of_policy(*_unreadable(found.world))
    here = [
        *policy,
        *found.needs_here(actor),
        *needs.of_gates(gates, command_for(missing)),
        *needs.of_guards(unguarded),
    ]
    warnings = [*found.early_warnings(), *_conflicts(ctx, snapshot.state, looks=looks)]
    return {
        **_model(snapshot, found, actor, [*needs.of_ledger(untrusted, helps), *found.killed(actor)], here, warnings),
        **server_claims(ctx, snapshot, _rows_of, found.claim_rows),
        "unguarded": unguarded,
        "warnings": [*([untrusted] if untrusted else []), *warn_before_pull(ctx)],
        "missing_gates": gates,
    }


def _conflicts(ctx: Context, state: State, *, looks: bool) -> list[Need]:
    """Early warnings of work that will conflict. Where there is one work tree and no branch beside it, nothing is loaded."""
    if not around(ctx, str(format_record(state).sync)):
        return []
    from gitcoord.radar.kept import standing_conflicts

    return early.of_conflicts(*standing_conflicts(ctx, state, looks=looks))


def overview_at(ctx: Context, snapshot: Snapshot, actor: Actor | None) -> dict[str, object]:
    """The model as it was after an earlier event: by the ledger alone, since heartbeats and notes of clones are not kept."""
    snapshot.state.prefetch(_PARTS)
    found = _Facts(ctx, snapshot, PastWorld(ctx, snapshot))
    for row in found.claim_rows:
        row.update(expires_in_seconds=None, source=f"event {row['token']}")
        row.pop("reserved", None)
    model = _model(snapshot, found, actor, [], [], [])
    for row in model["agents"]:  # type: ignore[attr-defined]
        row.update(live=None, source=f"record of {row['agent']} in the ledger")
    return {**model, "unguarded": [], "warnings": [], "missing_gates": []}


def _model(
    snapshot: Snapshot, found: _Facts, actor: Actor | None, first: list[Need], here: list[Need], warnings: list[Need]
) -> dict[str, object]:
    """The part that follows from the ledger. `first`, `here`, `warnings`: needs and early warnings that do not."""
    state = snapshot.state
    halt = halt_record(state)
    asked = [row for row in approvals(state) if row.state == UNANSWERED]
    takeable = set(ready(state))
    deploys = all_deploys(state)
    everything = [
        *first, *needs.of_halt(halt),
        *needs.of_approvals(asked, may_approve=bool(asked) and _may_approve(found.world, actor)),
        *needs.of_handoffs(handoff_rows(state, found.world, actor), actor.agent if actor is not None else ""),
        *needs.of_tasks(found.tasks), *found.needs(), *here,
    ]  # fmt: skip
    mine, others = needs.divided(everything, actor.agent if actor is not None and not actor.person else "")
    return {
        "seq": state.seq,
        "ledger": snapshot.head,
        "needs_you": [need.to_json() for need in mine],
        "needs_person": [need.to_json() for need in others],
        "early_warnings": [need.to_json() for need in [*warnings, *early.of_deploys(deploys)]],
        "halted": {"by": halt.by, "reason": halt.reason, "at": halt.at, "source": f"event {halt.seq}"} if halt is not None else None,
        "claims": found.claim_rows,
        **({"waits": [{**request.to_json(), "source": f"event {request.ticket}"} for request in found.requests]} if found.requests else {}),
        "landing": found.landing_queue(),
        "agents": found.agent_rows(),
        "tasks": [_task(row, ready=row.id in takeable) for row in found.tasks],
        "approvals": [
            {"approval": row.id, "path": row.path, "agent": row.agent, "rule": row.rule, "at": row.at, "source": f"event {needs.event_of(row.id)}"}
            for row in asked
        ],
        "deploys": [
            {"target": row.target, **row.last._asdict(), "good": row.good.commit if row.good is not None else "", "source": f"event {row.last.seq}"}
            for row in deploys
        ],
        "contention": found.hot_spots(snapshot),
    }  # fmt: skip


def _untrusted(ctx: Context) -> tuple[str, str]:
    """The reason why this ledger may not be used, and what helps; '' where it may."""
    try:
        read_snapshot(ctx)
    except CouldNotJudge as error:
        return error.message, error.hints[0] if error.hints else "git coord fsck"
    return "", ""


def _unreadable(world: World) -> tuple[str, str]:
    """The reason why trunk's policy cannot be read, and what helps; '' where it can. Most answers are cached by commit."""
    try:
        world.restrictions()
    except CouldNotJudge as error:
        return error.message, error.hints[0] if error.hints else "git coord policy check"
    return "", ""


def _may_approve(world: World, actor: Actor | None) -> bool:
    """Is the reader a person who may approve? Nobody named may be one; an agent is told what waits for a person."""
    return actor is None or not actor.person or actor.by_setting or may_approve(actor, world.approvers())


def _rows_of(state: State, world: World) -> list[dict[str, object]]:
    claims = all_claims(state)
    world.prefetch_heartbeats(claim.agent for claim in claims)
    return [_claim(state, world, claim) for claim in claims]


def _claim(state: State, world: World, claim: Claim) -> dict[str, object]:
    return {**shown_claim(state, world, claim), "source": f"event {claim.token}, heartbeat of {claim.agent}"}


def _task(task: Task, *, ready: bool) -> Record:
    row = {key: getattr(task, key) for key in ("id", "title", "state", "owner", "priority", "reason")}
    source = f"event {task.token}" if task.token else f"record of {task.id} in the ledger"
    return {**row, "since": task.changed, "ready": ready, "source": source}


class _Facts:
    """Claims, requests, agents and tasks of one snapshot, and how they belong together."""

    def __init__(self, ctx: Context, snapshot: Snapshot, world: World) -> None:
        state = snapshot.state
        self._ctx, self._snapshot, self._state, self.world = ctx, snapshot, state, world
        self.trunk = format_record(state).sync
        self.agents = agents(state, world)
        self.claims = all_claims(state)
        self.requests = self._in_order(all_requests(state))
        self.landings = open_landings(state)
        self.tasks = open_tasks(ctx, snapshot)
        waiters = self._waiters()
        world.prefetch_heartbeats(claim.agent for claim in self.claims)
        self.claim_rows = []
        self._held = []
        for claim in self.claims:
            row = _claim(state, world, claim)
            wait = waiters.get(claim.key, [])
            if wait:
                row["waiters"] = [{"agent": r.agent, "ticket": r.ticket, "since": r.at} for r in wait]
            self.claim_rows.append(row)
            self._held.append(Held(claim, bool(row["silent"]), tuple(wait), is_turn(state, claim)))

    def _in_order(self, requests: list[Request]) -> list[Request]:
        if not requests:
            return []
        from gitcoord.claims.queue import Queue

        return sorted(requests, key=Queue(self._state, self.world).rank)

    def _waiters(self) -> dict[tuple[str, str, str], list[Request]]:
        """The requests that wait for each claim, in order."""
        found: dict[tuple[str, str, str], list[Request]] = {}
        near = Requests(self._state, self.world)
        for request in self.requests:
            for key in {claim.key for claim in near.blocking_claims(request)}:
                found.setdefault(key, []).append(request)
        return found

    def agent_rows(self) -> list[dict[str, object]]:
        """All agents, each with its `activity`: alive (it holds something), waiting, idle, expired, killed or ended."""
        busy = {claim.agent for claim in self.claims} | {task.owner for task in self.tasks}
        waiting = {request.agent for request in self.requests}
        return [{**row, **_activity(row, busy, waiting)} for row in self.agents]

    def landing_queue(self) -> Record:
        """The agent that lands and those that wait to; where somebody lands, with how long the checks of the last landing took."""
        queue, seconds = landing_queue(self.trunk, self.claims, self.requests, self.landings), 0
        if queue["landing"]:
            from gitcoord.landing.records import check_seconds

            seconds = check_seconds(self._ctx, self._snapshot)
        return {**queue, "check_seconds": seconds}

    def needs(self) -> list[Need]:
        """The needs that follow from claims, waits and landings in the ledger."""
        turn = turn_item(self.trunk)
        turns = [row.claim.agent for row in self._held if row.claim.item == turn and not row.expired]
        return [*needs.of_waits(self._held, self.world.wall), *needs.of_landings(self.landings, turns)]

    def killed(self, actor: Actor | None) -> list[Need]:
        if actor is None or actor.person:
            return []
        return needs.of_killed(actor.agent, dead(self._state, self.world, actor.agent))

    def needs_here(self, actor: Actor | None) -> list[Need]:
        """Those that follow from work trees and notes of this clone too."""
        ctx = self._ctx
        live = [str(row["agent"]) for row in self.agents if row["live"]]
        found = needs.of_expired(self._with_work())
        if any(row.waiters for row in self._held):
            from gitcoord.ledger.alerts import noted_deadlocks

            found += needs.of_deadlocks(noted_deadlocks(ctx), self._held, self.world.wall)
        from gitcoord.landing.unfinished import unfinished_landings

        return found + needs.of_unfinished(unfinished_landings(ctx), live, actor.agent if actor is not None else "")

    def early_warnings(self) -> list[Need]:
        """The early warnings that follow from claims, waits and tasks."""
        lasting = [row for row in self._held if not (row.expired or row.is_turn)]
        names = [row.name for row in lasting if row.claim.space == "path" and self._was_here(row.claim)]
        old = early.of_old_copy(*lacking(self._ctx, names[:_MOST_EVENTS]), names)
        lost = [task for task, verdict in self._owned() if verdict.expired]
        stalled = early.of_lost_tasks(lost, anybody=any(row["live"] for row in self.agents))
        return [*early.of_leases(self._leases()), *early.of_waits(lasting, self.world.wall), *old, *stalled]

    def _leases(self) -> Iterator[Lease]:
        for row, held in zip(self.claim_rows, self._held):
            left = row["expires_in_seconds"]
            if isinstance(left, int) and not (held.expired or held.is_turn or row.get("reserved")):
                yield Lease(held.claim.agent, held.name, left, held.claim.ttl)
        for task, verdict in self._owned():
            if verdict.expires_in is not None and not verdict.expired:
                yield Lease(task.owner, task.id, verdict.expires_in, task.ttl)

    def _owned(self) -> Iterator[tuple[Task, Expiry]]:
        """The tasks that an agent works on, with whether it has expired. One that is handed over has no owner to wait for."""
        for task in self.tasks:
            if task.state == ACTIVE and not task.handoff:
                yield task, expiry_of(self._state, self.world, task.owner, task.session, task.ttl)

    def hot_spots(self, snapshot: Snapshot) -> list[Record]:
        """The hot spots of the last week, as `git coord contention` finds them. Only where somebody waits now is the history read."""
        if not self.requests:
            return []
        from gitcoord.journal.measure import measure
        from gitcoord.journal.service import Since

        found = measure(self._ctx, snapshot, Since(at=self.world.wall - _WEEK), most=_MOST_EVENTS)
        return [{**row, "source": f"the last {found['events']} events"} for row in found["hot"]]

    def _with_work(self) -> list[Held]:
        """The expired claims, with whether their files are uncommitted here. git is asked only where there are some."""
        over = [row for row in self._held if row.expired and row.claim.space == "path" and self._was_here(row.claim)]
        dirty = set(self.world.dirty([row.claim.path for row in over])) if over else set()
        return [row._replace(dirty=row.claim.path in dirty) for row in over]

    def _was_here(self, claim: Claim) -> bool:
        """Did the holder work in this work tree, as far as is known?"""
        beat = self.world.heartbeat(claim.agent)
        if self._ctx.remote and (beat is None or beat.boot != self.world.boot):
            return False  # it worked on another machine
        return was_here(self._ctx, claim.agent)


def _activity(row: dict[str, object], busy: set[str], waiting: set[str]) -> dict[str, object]:
    agent = str(row["agent"])
    if row["state"] != "open":
        return {"activity": row["state"], "source": f"record of {agent} in the ledger"}
    activity = "waiting" if agent in waiting else "alive" if agent in busy else "idle"
    return {"activity": activity if row["live"] else "expired", "source": f"heartbeat of {agent}"}

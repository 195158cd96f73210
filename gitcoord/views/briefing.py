"""The briefing of an agent that starts: rules, the project's memory, the present state, and unfinished work.

Rules and memory are those of trunk, whatever is checked out here. Everything comes from one read of the ledger.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import (
    CouldNotJudge,
    GitcoordError,
    OutcomeUnknown,
    Refused,
    Unreachable,
    UsageError,
    raise_if,
)
from gitcoord.base.names import ROOT, check_path, shown
from gitcoord.claims.model import all_claims, some_claims
from gitcoord.git.commands.objects import count_commits, merge_base
from gitcoord.git.commands.worktrees import start_status
from gitcoord.git.files import exists, is_link, read_file
from gitcoord.git.operations import under_way
from gitcoord.handoff.service import rows as handoff_rows
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case, format_record
from gitcoord.ledger.remote.fetch import mirror_age
from gitcoord.ledger.sessions import OPEN, Actor, agent_record, agent_records, alive, dead, dead_above, expiry_of
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.policy.cache import sync_policy_commit
from gitcoord.policy.reader import Source
from gitcoord.sessions.admission import halted
from gitcoord.sessions.service import start
from gitcoord.tasks.model import ACTIVE, Task, all_held, ready, task_record, tasks_of
from gitcoord.views.project import project_facts
from gitcoord.views.status import missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.process import Child


RULES = ".gitcoord/rules.md"
MEMORY = ("state", "decisions", "lessons")
NEXT_TASKS = 3
_MOST = 64 << 10  # bytes of a file that are shown
_APPROVALS = 20
_OTHERS = 100  # claims of others


def begin(ctx: Context, actor: Actor) -> Record:
    """Open or continue the session, take expired claims again, and give the briefing.

    Where the remote that decides does not answer, that is what this clone knows, and `offline` says why.
    """
    try:
        opened = start(ctx, actor)
    except (Unreachable, OutcomeUnknown) as error:
        opened = _as_known(ctx, actor, error)
    offline = str(opened.get("offline", ""))
    if not offline:
        _take_again(ctx, actor, opened)
    inherited = _inherit(ctx, actor, opened) if not offline else []
    paths = [str(claim["path"]) for claim in opened["claims"] if claim["kind"] == "path"]  # type: ignore[attr-defined]
    status = _start_status(ctx, paths)
    ahead = (
        ("leaves", "waiting"), ("below", "agents"), ("names", "work/ready"), ("leaves", f"work/of/{actor.agent}"),
        ("names", "approvals"),
    )  # fmt: skip
    snapshot = read_snapshot(ctx, prefetch=ahead)
    state, world = snapshot.state, ctx.world(snapshot)
    again = opened["again"]
    lost = [row for row in opened.pop("lost", ()) if row["path"] not in again]  # type: ignore[attr-defined, operator]
    offered = handoff_rows(state, world, actor)
    commit = sync_policy_commit(ctx, snapshot)
    source = Source(ctx, commit, case=folds_case(state))
    return {
        **opened,
        "rules": _document(ctx, commit, RULES),
        "memory": _memory(ctx, source),
        "project": project_facts(ctx, source, format_record(state).sync),
        "copy": _copy(ctx, snapshot, offline),
        "inherited": inherited,
        "lost": lost,
        "waiting": _approvals(state, actor.agent),
        **_queue(state, world, actor.agent),
        "to_answer": _open_approvals(state) if actor.person else [],
        "interrupted": {
            "tasks": _tasks(state, actor.agent, [str(r["path"]) for r in lost if r["kind"] == "task"]),
            "dirty": _dirty(status),
            "handoffs": [row for row in offered if row["from"] == actor.agent],
        },
        "handoffs": [row for row in offered if row["for_you"]],
        **_next_tasks(state),
        "others": _others(state, world, actor.agent),
        **_others_hold(state, world, actor.agent),
        "missing_gates": missing(ctx),
        "notes": _notes(state, actor.agent, opened["claims"], world),  # type: ignore[arg-type]
    }


def _as_known(ctx: Context, actor: Actor, error: Unreachable | OutcomeUnknown) -> Record:
    """The agent's session and claims as this clone last saw them. The error itself where it has seen no ledger."""
    try:
        snapshot = read_snapshot(ctx, trusting=True)
    except GitcoordError:
        raise error from None
    state, world = snapshot.state, ctx.world(snapshot)
    for refusal in (halted(state), dead(state, world, actor.agent), dead_above(state, world, actor)):
        raise_if(refusal)
    record = agent_record(state, actor.agent)
    claims = [
        (claim, expiry_of(state, world, claim.agent, claim.session, claim.ttl))
        for claim in all_claims(state, actor.agent)
    ]
    return {
        "agent": actor.agent,
        "session": record.session if record is not None and record.state == OPEN else 0,
        "opened": False,
        "claims": [claim.to_json(expiry.expires_in) for claim, expiry in claims if not expiry.expired],
        "again": [],
        "offline": error.message.removesuffix("; nothing was changed"),
        "as_of_seconds": mirror_age(ctx),
        "unknown": isinstance(error, OutcomeUnknown),
    }


def _take_again(ctx: Context, actor: Actor, opened: Record) -> None:
    """Take back expired tasks of the agent that no other has taken since, each with its claims."""
    ids = [str(row["path"]) for row in opened.get("lost", ()) if row["kind"] == "task"]
    if not ids:
        return
    from gitcoord.tasks.events.assign import Assign
    from gitcoord.tasks.service import assign

    claims: list[Record] = opened["claims"]
    again: list[str] = opened["again"]
    for id in ids:
        try:
            given: Record = assign(ctx, Assign(actor, id))["assignment"]  # type: ignore[assignment]
        except Refused:
            continue  # another has it, or what it needs: `interrupted` tells
        claims.extend(given["claims"])
        again.extend((id, *(claim["path"] for claim in given["claims"])))


def _inherit(ctx: Context, actor: Actor, opened: Record) -> list[Record]:
    """Go on with what ended sessions left uncommitted here. A subagent leaves that to its parent."""
    from gitcoord.sessions.inherit import inherit

    found = inherit(ctx, actor) if not actor.parent else None
    if found is None or not found.claims:
        return []
    opened["claims"].extend(found.claims)
    return [{"path": path, "from": holder} for path, holder in found.sources]


# --- rules and memory ----------------------------------------------------------------------------------------------


def _document(ctx: Context, commit: str, name: str) -> Record:
    """A file of a commit: its version is its blob. Empty where there is none."""
    found = ctx.local.read([f"{commit}:{name}"])[0] if commit else None
    if found is None or found.kind != "blob":
        waits = bool(ctx.repo.worktree) and exists(f"{ctx.repo.worktree}/{name}")
        return {"name": name, "version": "", "text": "", "cut": False, "only_here": waits, "changed_here": False}
    text = found.data[:_MOST].decode("utf-8", "replace")
    return {
        "name": name, "version": found.oid, "text": text, "cut": len(found.data) > _MOST, "only_here": False,
        "changed_here": _is_changed_here(ctx, commit, name, found.oid),
    }  # fmt: skip


def _is_changed_here(ctx: Context, commit: str, name: str, version: str) -> bool:
    """Is there a version of this file in the work tree, or on the branch, that has not landed? An older one of trunk is none."""
    head = ctx.local.read([f"HEAD:{name}"])[0]
    if head is None or head.kind != "blob" or not ctx.repo.worktree:
        return False
    path = f"{ctx.repo.worktree}/{name}"
    if exists(path) and not is_link(path):
        here = read_file(path, len(head.data) + _MOST)
        if here.replace(b"\r\n", b"\n") != head.data.replace(b"\r\n", b"\n"):
            return True
    if head.oid == version:
        return False
    base = merge_base(ctx.repo.env, commit, "HEAD")
    before = ctx.local.read([f"{base.text}:{name}"])[0] if not base.code else None
    return before is None or before.oid != head.oid


def _memory(ctx: Context, source: Source) -> list[Record]:
    """The files that the settings name, in a fixed order."""
    pairs = dict(source.pairs)
    found = []
    for kind in MEMORY:
        name = pairs.get(f"start.{kind}", "")
        if name:
            try:
                found.append({"kind": kind, **_document(ctx, source.commit, check_path(name))})
            except UsageError as error:
                raise CouldNotJudge(f".gitcoord/config: start.{kind}: {error.message}") from None
    return found


# --- how things stand ----------------------------------------------------------------------------------------------


def _copy(ctx: Context, snapshot: Snapshot, offline: str = "") -> Record:
    """The number of commits of trunk that this copy lacks; None if unknown. `offline`: why the remote need not be asked."""
    sync = format_record(snapshot.state).sync
    remote = ctx.remote or "origin"
    told: Record = {"sync": sync, "behind": 0, "remote": "", "offline": "", "under_way": ""}
    running = under_way(ctx.repo.git_dir) if ctx.repo.worktree else None
    told["under_way"] = running.name if running is not None else ""
    if ctx.remote:
        told["offline"] = offline or _fetch(ctx, sync)
    here, there = (ctx.local.target(f"refs/{place}/{sync}") for place in ("heads", f"remotes/{remote}"))
    head = ctx.local.target("HEAD")
    told["remote"] = remote if there else ""
    tips = [tip for tip in dict.fromkeys((here, there)) if tip and tip != head]
    if not head or not tips:
        return told
    behind = count_commits(ctx.repo.env, *tips, f"^{head}")
    return {**told, "behind": None if behind.code else int(behind.text)}


def _fetch(ctx: Context, sync: str) -> str:
    """Fetch trunk from the authority; returns '' or why it could not be asked."""
    from gitcoord.ledger.remote.user_refs import fetch_sync

    try:
        fetch_sync(ctx, ctx.remote, sync)
    except CouldNotJudge as error:
        return error.message
    return ""


def _others(state: State, world: World, agent: str) -> list[Record]:
    """Other agents with an open session and a recent heartbeat, and the task that each is doing."""
    there = [record for record in agent_records(state) if record.state == OPEN and record.agent != agent]
    world.prefetch_heartbeats(record.agent for record in there)
    doing = {held.agent: held.id for held in all_held(state) if held.state == ACTIVE} if there else {}
    return [
        {**{k: getattr(r, k) for k in ("agent", "session", "since", "parent")}, "task": doing.get(r.agent, "")}
        for r in there
        if alive(state, world, r)
    ]


def _queue(state: State, world: World, agent: str) -> Record:
    """`waits`: the agent's own requests; `waiters`: those of others for what it holds."""
    if not state.names("waits"):
        return {"waits": [], "waiters": []}
    from gitcoord.claims.waiting import own_waits, waiters_of

    waiters = [request.to_json() for request in waiters_of(state, world, agent)]
    return {"waits": own_waits(state, world, agent), "waiters": waiters}


def _others_hold(state: State, world: World, agent: str) -> Record:
    """The live claims of others, up to a number, the oldest first; and whether there are more."""
    claims, more = some_claims(state, _OTHERS, besides=agent)
    world.prefetch_heartbeats(claim.agent for claim in claims)
    live = [c for c in claims if not expiry_of(state, world, c.agent, c.session, c.ttl).expired]
    live.sort(key=lambda claim: claim.token)
    rows = [{"path": shown(c.path, c.space), "agent": c.agent, "reason": c.reason} for c in live]
    return {"others_hold": rows, "others_hold_more": more}


def _approvals(state: State, agent: str) -> list[Record]:
    """Approvals that this agent asked for and nobody has answered, among the last ones."""
    return [
        {key: row[key] for key in ("approval", "path", "at")} for row in _open_approvals(state) if row["agent"] == agent
    ]


def _open_approvals(state: State) -> list[Record]:
    """Approvals that nobody has answered, among the last ones."""
    from gitcoord.gates.model import approval, approval_file

    ids = sorted(state.names("approvals"), key=lambda id: [int(part) for part in id.split(".")])[-_APPROVALS:]
    state.prefetch(("file", approval_file(id)) for id in ids)
    records = [record for id in ids if (record := approval(state, id)) is not None]
    return [{"approval": r.id, "path": r.path, "at": r.at, "agent": r.agent} for r in records if r.state == "open"]


def _notes(state: State, agent: str, claims: list[Record], world: World) -> list[Record]:
    """Notes on what the agent holds that it has still to see."""
    if not state.names("notes"):
        return []
    from gitcoord.journal.model import unseen

    paths = [str(claim["path"]) for claim in claims if claim["kind"] == "path"]
    return [note.to_json() for note in unseen(state, agent, paths, world.wall)]


# --- work ----------------------------------------------------------------------------------------------------------


def _tasks(state: State, agent: str, lost: list[str]) -> list[Record]:
    """The tasks that the agent has, and those that it lost, as they are now."""

    own = tasks_of(state, agent)
    gone = [record for id in lost if (record := task_record(state, id)) is not None and record not in own]
    return [_task(record) for record in (*own, *gone)]


def _next_tasks(state: State) -> Record:
    """The first of those that may be taken, and how many more there are."""
    ids = ready(state)
    found = [task_record(state, id) for id in ids[:NEXT_TASKS]]
    return {"tasks": [_task(record) for record in found if record is not None], "more_tasks": len(ids[NEXT_TASKS:])}


def _task(task: Task) -> Record:
    return {
        key: getattr(task, key) for key in ("id", "title", "state", "owner", "priority", "next", "branch", "handoff")
    }


def _start_status(ctx: Context, paths: list[str]) -> Child | None:
    """Let git look for uncommitted work below these paths while we read the ledger."""
    if not paths or not ctx.repo.worktree:
        return None
    specs = [f":(top,literal){'' if path == ROOT else path}" for path in paths]
    return start_status(ctx.repo.env, specs)


def _dirty(status: Child | None) -> list[str]:
    if status is None:
        return []
    entries = status.rest().decode("utf-8", "surrogateescape").split("\0")
    if status.wait():
        raise CouldNotJudge(f"git status failed: {status.complaint()}")
    status.close()
    return [entry[3:] for entry in entries if entry]

"""Views of claims: list them, show those that overlap a path, check whether an agent may write."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.base.errors import Unreachable
from gitcoord.base.names import PATH, ROOT, shown
from gitcoord.claims.model import (
    DEFAULT_TTL,
    WRITE,
    Claim,
    Item,
    all_claims,
    claims_part,
    conflicts_of,
    covers_item,
    expiry_of_claim,
    is_confirmed,
    overlapping,
    own_claim,
)
from gitcoord.git.files import is_directory
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case
from gitcoord.ledger.sessions import (
    OPEN,
    SESSION_TTL,
    Actor,
    Agent,
    admit_or_none,
    agent_record,
    agent_records,
    expiry_of,
    is_torn_kill,
    next_heartbeat,
)
from gitcoord.ledger.snapshot import Snapshot, parts_for, read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import halt_record, halted
from gitcoord.startup.annotations import Callable
from gitcoord.startup.namedtuple import NamedTuple


class Unseen(NamedTuple):
    """A remote that decides and could not be asked: why, and how many seconds ago it was last seen; None: never."""

    message: str
    seconds: int | None


def listing(ctx: Context, actor: Actor | None, *, mine: bool = False, expired: bool = False) -> dict[str, object]:
    """All live claims, or the actor's own; with `expired` also those that have expired. `halt`: the record of a halt, or None."""
    agent = actor.agent if actor is not None else ""
    snapshot = read_snapshot(ctx, agent=agent, prefetch=(claims_part(agent if mine else ""),), trusting=True)
    state, world = snapshot.state, ctx.world(snapshot)

    def rows_of(state: State, world: World) -> list[dict[str, object]]:
        claims = all_claims(state, agent if mine else "")
        world.prefetch_heartbeats(claim.agent for claim in claims)
        return [shown_claim(state, world, claim) for claim in claims]

    rows = rows_of(state, world)
    live = [row for row in rows if not row["silent"]]
    send_due_heartbeat(ctx, snapshot, world, actor)
    hidden = 0 if expired else len(rows) - len(live)
    return {
        "seq": snapshot.state.seq, "claims": rows if expired else live, "hidden": hidden,
        **_waiting(state, world, agent if mine else ""), "halt": halt_record(state), **server_claims(ctx, snapshot, rows_of, rows),
    }  # fmt: skip


def _waiting(state: State, world: World, agent: str = "", item: Item | None = None) -> dict[str, object]:
    """`waits`: the requests in the queue, in order, where there are some; those of one agent, or those around an item."""
    if not state.names("waits"):
        return {}
    from gitcoord.claims.waiting import own_waits, waits

    rows = own_waits(state, world, agent) if agent else waits(state, world, item)
    return {"waits": rows} if rows else {}


def _kept(state: State, world: World, agent: str, item: Item) -> dict[str, object]:
    """`kept_for`: the agent that waits and for which an item without conflicting claims is kept, so that a plain claim on it is refused."""
    if not state.names("waits") or own_claim(state, item, agent) is not None:
        return {}  # its own item is before all who wait
    from gitcoord.claims.queue import Queue, kept_for, plain_request

    queue, claim = Queue(state, world), plain_request(agent, (item,), WRITE, 1)
    kept = kept_for(queue, claim, queue.rivals(claim))
    return {"kept_for": kept.agent} if kept is not None else {}


def server_claims(
    ctx: Context,
    snapshot: Snapshot,
    rows_of: Callable[[State, World], list[dict[str, object]]],
    rows: list[dict[str, object]],
) -> dict[str, object]:
    """Claims that only the server has, because its ledger diverged from the one shown here."""
    if snapshot.server is None:
        return {}
    from gitcoord.ledger.snapshot import server_snapshot

    there = server_snapshot(ctx, snapshot)
    if there is None:
        return {}
    shown = [_identity(row) for row in rows]
    found = rows_of(there.state, ctx.world(there))
    return {"server_claims": [row for row in found if _identity(row) not in shown]}


def _identity(row: dict[str, object]) -> tuple[object, ...]:
    return row["kind"], row["path"], row["agent"], row["token"]


def send_due_heartbeat(ctx: Context, snapshot: Snapshot, world: World, actor: Actor | None) -> None:
    """Send the actor's heartbeat if one is due. Commands that change nothing do so too."""
    if actor is None:
        return
    state, name = snapshot.state, actor.agent
    record = agent_record(state, name)
    if record is None or record.state != OPEN or admit_or_none(state, actor, world) is not None:
        return
    if next_heartbeat(world.heartbeat(name), name, record.session, world) is not None:
        from gitcoord.sessions.service import beat_quietly

        beat_quietly(ctx, actor)


def shown_claim(state: State, world: World, claim: Claim) -> dict[str, object]:
    """A claim with its expiry, as views show it."""
    verdict = expiry_of_claim(state, world, claim)
    reserved = claim.reserved is not None and not is_confirmed(world, claim)
    return {**claim.to_json(verdict.expires_in), "silent": verdict.expired, **({"reserved": True} if reserved else {})}


def overlapping_claims(ctx: Context, actor: Actor | None, item: Item) -> dict[str, object]:
    """Every claim on the item, above it and below it."""
    agent = actor.agent if actor is not None else ""
    snapshot = read_snapshot(ctx, agent=agent, prefetch=parts_for(agent, (item,)), trusting=True)
    world = ctx.world(snapshot)

    def rows_of(state: State, world: World) -> list[dict[str, object]]:
        return [shown_claim(state, world, claim) for claim in overlapping(state, item)]

    rows = rows_of(snapshot.state, world)
    send_due_heartbeat(ctx, snapshot, world, actor)
    return {
        "claims": rows,
        **_waiting(snapshot.state, world, item=item),
        **({} if rows else _kept(snapshot.state, world, agent, item)),
        **server_claims(ctx, snapshot, rows_of, rows),
    }


def check(ctx: Context, actor: Actor, items: tuple[Item, ...], unseen: Unseen | None = None) -> dict[str, object]:
    """May this agent write here now? Yes, no (with the holders), or CouldNotJudge.

    `unseen`: a remote decides and does not answer. Its last known state counts no longer than a claim lives without it.
    """
    agent = actor.agent
    snapshot = read_snapshot(ctx, agent=agent, prefetch=parts_for(agent, items))
    state, world = snapshot.state, ctx.world(snapshot)
    if unseen is not None:
        _require_recent(state, agent, items, unseen)
    send_due_heartbeat(ctx, snapshot, world, actor)
    refusal = halted(state) or admit_or_none(state, actor, world)
    if refusal is not None:
        return {"allowed": False, "refused": refusal.code, "message": refusal.message, "paths": []}
    rows = [_verdict(state, world, agent, item) for item in items]
    _by_policy(ctx, snapshot, actor, [row for row in rows if row["kind"] == "path"])
    allowed = all(row["verdict"] in ("mine", "free") for row in rows)
    return {"allowed": allowed, "paths": rows, **_lost(state, agent, {str(row["path"]) for row in rows})}


def _lost(state: State, agent: str, paths: set[str]) -> dict[str, object]:
    """`lost`: the agent's claims on these paths that it lost since its last event, where there are some."""
    record = agent_record(state, agent) if agent else None
    rows = [row.to_json() for row in record.lost] if record is not None else []
    found = [row for row in rows if row["path"] in paths]
    return {"lost": found} if found else {}


def _require_recent(state: State, agent: str, items: tuple[Item, ...], unseen: Unseen) -> None:
    """Unreachable where claims that were made or lost since the last contact may have changed the answer."""
    mine = [c.ttl for item in items for c in overlapping(state, item) if c.agent == agent]
    limit = min([DEFAULT_TTL, *mine])
    if unseen.seconds is None or unseen.seconds > limit:
        since = "never" if unseen.seconds is None else f"{format_duration(unseen.seconds)} ago"
        raise Unreachable(
            f"{unseen.message}; it was last seen {since}, and claims live {format_duration(limit)} without it",
            hints=("what was last seen there: git claim list",),
        )


def _verdict(state: State, world: World, agent: str, item: Item) -> dict[str, object]:
    """mine: a write claim of the agent covers it, or one of an agent whose subagent it is; held: live claims of others conflict; free: neither. What is free may be kept for one that
    waits: that refuses a claim, and no gate asks for one where the path is not shared."""
    conflicts = conflicts_of(state, world, item, agent, WRITE, 1)
    claims = overlapping(state, item)
    mine = [c for c in claims if c.agent == agent and c.mode == WRITE and covers_item(state, c, item)]
    above = _parents_claim(state, world, item, agent) if "." in agent and item.space == PATH else None
    held = [] if above is not None or (mine and item.space == "resource") else conflicts.live
    row: dict[str, object] = {"path": shown(item.name, item.space), "kind": item.space}
    row["held"] = [{**claim.to_json(verdict.expires_in), "silent": False} for claim, verdict in held]
    row["verdict"] = "held" if held else "mine" if mine or above is not None else "free"
    if above is not None and not mine:
        row["by"] = above.agent
    kept = _kept(state, world, agent, item) if row["verdict"] == "free" else {}
    return row | _waiting(state, world, item=item) | kept


def _parents_claim(state: State, world: World, item: Item, agent: str) -> Claim | None:
    from gitcoord.claims.family import covering_claim  # only for a subagent

    return covering_claim(state, world, item, agent)


def _by_policy(ctx: Context, snapshot: Snapshot, actor: Actor, rows: list[dict[str, object]]) -> None:
    """Apply the trunk's policy: a marked path needs a claim, and a role writes only where it may."""
    from gitcoord.policy.cache import lands_here, sync_policy_commit
    from gitcoord.policy.model import ENFORCE
    from gitcoord.policy.reader import Source
    from gitcoord.policy.roles import out_of_role

    commit = sync_policy_commit(ctx, snapshot)
    asked = {str(row["path"]): files_below(ctx, commit, str(row["path"])) for row in rows}
    source = Source(ctx, commit, case=folds_case(snapshot.state))
    policy = source.policy([name for names in asked.values() for name in names])
    policy = policy.placed(lambda: lands_here(ctx, snapshot, source.pairs))
    found = {
        path: (out_of_role(snapshot.state, policy, actor, actor.agent, name) for name in names)
        for path, names in asked.items()
    }
    messages = {path: next(filter(None, words), "") for path, words in found.items()}
    for row in rows:
        path = str(row["path"])
        if row["verdict"] == "held" and all(policy.of_landing(name) for name in asked[path]):
            row["verdict"], row["held"] = "free", []  # it is claimed where it lands
        if row["verdict"] == "free" and any(
            policy.of(name).claim and not policy.of_landing(name) for name in asked[path]
        ):
            row["verdict"] = "unclaimed"
            row["only_landing"] = all(policy.of(name).landing for name in asked[path] if policy.of(name).claim)
        if row["verdict"] in ("free", "mine", "unclaimed") and messages[path] and policy.stage("role") == ENFORCE:
            row["verdict"], row["message"] = "role", messages[path]


def files_below(ctx: Context, commit: str, path: str) -> list[str]:
    """The path itself; for a directory also the files below it, since attributes match files only."""
    if ctx.repo.worktree:
        if not is_directory(ctx.repo.worktree if path == ROOT else f"{ctx.repo.worktree}/{path}"):
            return [path]
    elif not commit:
        return [path]
    prefix = "" if path == ROOT else path + "/"
    if ctx.repo.worktree:
        from gitcoord.git.commands.worktrees import ls_files

        answer = ls_files(ctx.repo.env, f":(top,literal){prefix}", tree=ctx.repo.worktree)
    else:
        from gitcoord.git.commands.objects import ls_tree

        answer = ls_tree(ctx.repo.env, commit, *([prefix] if prefix else []), names=True)
    names = answer.require(f"git cannot list what is below {path}").entries
    return [path, f"{prefix}a-new-file", *names] if names or ctx.repo.worktree else [path]


def agents(state: State, world: World) -> list[dict[str, object]]:
    """All agents, their sessions and when they were last seen."""
    records = agent_records(state)
    world.prefetch_heartbeats(record.agent for record in records)
    return [_agent(state, world, record) for record in records]


def _agent(state: State, world: World, record: Agent) -> dict[str, object]:
    name = record.agent
    beat = world.heartbeat(name)
    verdict = expiry_of(state, world, name, record.session, SESSION_TTL)
    heard = max(0, world.mono - beat.mono - beat.slot) // 1000 if beat is not None and beat.boot == world.boot else None
    shown = record.state
    if is_torn_kill(record, beat):
        shown = "killed"
    return {
        "agent": name, "session": record.session, "state": shown, "live": shown == "open" and not verdict.expired,
        "silent_seconds": heard, "since": record.since, "instance": record.instance, "parent": record.parent,
        "lost": [row.to_json() for row in record.lost],
    }  # fmt: skip

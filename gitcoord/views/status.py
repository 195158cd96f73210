"""At a glance: claims, agents, halt, resources."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.claims.model import all_claims
from gitcoord.claims.query import agents, listing
from gitcoord.ledger.context import Context
from gitcoord.ledger.named_ledger import warn_before_pull
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.sessions.admission import halt_record
from gitcoord.sessions.unguarded import unguarded_agents


def status(ctx: Context, actor: Actor | None) -> dict[str, object]:
    """The overview. A ledger that may not be used is shown too, with what is wrong."""
    snapshot = read_snapshot(ctx, trusting=True)
    warnings = []
    try:
        read_snapshot(ctx)
    except CouldNotJudge as error:
        warnings.append(error.message)
    warnings += warn_before_pull(ctx)
    halt = halt_record(snapshot.state)
    listed = listing(ctx, actor, expired=True)
    known = agents(snapshot.state, ctx.world(snapshot))
    return {
        "seq": snapshot.state.seq,
        "ledger": snapshot.head,
        "halted": {"by": halt.by, "reason": halt.reason, "at": halt.at} if halt is not None else None,
        "claims": listed["claims"],
        **{key: listed[key] for key in ("server_claims", "waits") if key in listed},
        "agents": known,
        "unguarded": unguarded_agents(ctx, known),
        "warnings": warnings,
        "missing_gates": missing(ctx),
    }


def missing(ctx: Context) -> list[str]:
    """The gates that do not run in this work tree."""
    from gitcoord.gates.hooks.presence import missing_gates

    return [gate.event for gate in missing_gates(ctx)]


def known_agents(ctx: Context) -> dict[str, object]:
    snapshot = read_snapshot(ctx, trusting=True)
    return {"agents": agents(snapshot.state, ctx.world(snapshot))}


def resources(ctx: Context) -> dict[str, object]:
    """Declared and claimed resources: capacity, ttl, who may read and write, who holds how much."""
    snapshot = read_snapshot(ctx, trusting=True)
    declared = ctx.world(snapshot).resources()
    claims = [c for c in all_claims(snapshot.state) if c.space == "resource"]
    rows: list[dict[str, object]] = []
    for name in sorted({*declared, *(c.path for c in claims)}):
        policy = declared.get(name)
        held = [
            {"agent": c.agent, "units": c.units, "mode": c.mode, "token": c.token} for c in claims if c.path == name
        ]
        rows.append(
            {
                "resource": "@" + name,
                "declared": policy is not None,
                "capacity": policy.capacity if policy is not None else 1,
                "ttl_seconds": policy.ttl if policy is not None and policy.ttl else 1800,
                "readers": list(policy.readers) if policy is not None else [],
                "writers": list(policy.writers) if policy is not None else [],
                "held": held,
            }
        )
    return {"resources": rows}

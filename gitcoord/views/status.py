"""Agents, resources, and the gates that do not run here."""

from __future__ import annotations

from gitcoord.claims.model import all_claims
from gitcoord.claims.query import agents
from gitcoord.ledger.context import Context
from gitcoord.ledger.snapshot import read_snapshot


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

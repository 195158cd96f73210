"""`git coord audit`: is this project safe for many agents? Item by item, each with a severity and its evidence.

What applies is the policy and the tree of trunk; what runs is asked of this clone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gitcoord.audit import outside, rules, sharing, work
from gitcoord.audit.doctor import examine
from gitcoord.audit.model import ADVICE, CRITICAL, HIGH, LOW, MEDIUM, OK, UNKNOWN, Check, ask
from gitcoord.audit.project import Project, read_project
from gitcoord.base.errors import GitcoordError
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor

OF_DOCTOR = {
    "ledger": CRITICAL, "authority": CRITICAL, "hooks": CRITICAL, "policy": HIGH, "tools": HIGH, "guard": HIGH, "parser": HIGH,
    "commands": HIGH,
}  # fmt: skip
ITEMS: dict[str, tuple[str, Callable[[Project], Check]]] = {
    "shared-paths": (HIGH, sharing.marked), "mapped": (MEDIUM, sharing.mapped), "writers": (LOW, sharing.writers),
    "resources": (LOW, sharing.resources), "secrets": (HIGH, sharing.secrets),
    "leases": (MEDIUM, work.leases), "expired": (LOW, work.expired), "order": (MEDIUM, work.order),
    "unfinished-effects": (MEDIUM, work.unfinished), "work-trees": (HIGH, work.trees),
    "enforced": (HIGH, rules.enforced), "fail-closed": (HIGH, rules.closed), "autoclaim": (LOW, rules.autoclaim),
    "approvers": (MEDIUM, rules.approvers), "attribution": (LOW, rules.attribution), "rules": (MEDIUM, rules.written),
    "memory": (LOW, rules.memory), "kill-switch": (CRITICAL, rules.people),
    "idempotent-effects": (HIGH, outside.idempotent), "verified-deploys": (MEDIUM, outside.verified), "alerts": (HIGH, outside.alerts),
    "followed": (LOW, outside.followed), "server-gate": (HIGH, outside.server_gate), "second-copy": (MEDIUM, outside.second_copy),
    "signing": (LOW, outside.signed),
}  # fmt: skip


def audit(ctx: Context, actor: Actor | None, environ: Mapping[str, str], is_set_up: bool) -> list[Check]:
    """Every item. Those of `doctor` that concern safety come first."""
    works = {check.id: check for check in examine(ctx, actor, environ, is_set_up)}
    found = [works[id]._replace(severity=severity) for id, severity in OF_DOCTOR.items() if id in works]
    if is_set_up:
        found += _of_project(ctx, environ)
    return [check._replace(state=OK) if check.state == ADVICE else check for check in found]


def _of_project(ctx: Context, environ: Mapping[str, str]) -> list[Check]:
    try:
        project = read_project(ctx, environ)
    except GitcoordError as error:  # `policy` or `ledger` say it too
        help = error.hints[0] if error.hints else ""
        return [Check(id, UNKNOWN, error.message, help, severity) for id, (severity, _) in ITEMS.items()]
    found = []
    for id, (severity, look) in ITEMS.items():
        check = ask(id, lambda look=look: look(project))  # type: ignore[misc]
        found.append(check._replace(id=id, severity=severity))
    return found

"""Notices, requests for approval and their answers, and roles: writing and listing them."""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError, NotInitialised, Refused
from gitcoord.gates.judge import Verdict
from gitcoord.gates.model import Approval, approvals
from gitcoord.git.commands.objects import diff_blobs, ls_tree_entry, write_blob
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.transaction import transact
from gitcoord.policy.cache import sync_policy_commit
from gitcoord.policy.roles import not_an_overseer

_ASKED = 50  # requests in one event


def leave_records(ctx: Context, actor: Actor, gate: str, refused: list[Verdict], noted: list[Verdict]) -> list[str]:
    """Record notices, and requests for approval; gives the ids of the requests. A gate that cannot write only judges."""
    ids: list[str] = []
    noted = [verdict for verdict in noted if verdict.rule != "private"]  # the ledger is published
    asked = [verdict for verdict in refused if verdict.asks]
    try:
        if asked:
            ids = ask(ctx, actor, asked)
        if noted:
            from gitcoord.gates.events.notice import Notice, decide

            rows = tuple(
                {key: str(getattr(v, key)) for key in ("rule", "stage", "path", "agent", "commit")} for v in noted
            )
            transact(ctx, decide, Notice(actor, gate, rows))
    except (GitcoordError, OSError):
        pass
    return ids


def ask(ctx: Context, actor: Actor, verdicts: list[Verdict]) -> list[str]:
    from gitcoord.gates.events.request import Request, decide

    words = ("path", "mode", "blob", "rule", "commit")
    rows = tuple({**{key: str(getattr(v, key)) for key in words}, "bases": list(v.bases)} for v in verdicts)
    result = transact(ctx, decide, Request(actor, rows[:_ASKED]))
    ids: list[str] = result["ids"]
    return ids


def listing(ctx: Context, *, all: bool = False) -> list[Approval]:
    """The open requests, or all."""
    snapshot = read_snapshot(ctx)
    return [record for record in approvals(snapshot.state) if all or record.state == "open"]


def difference(ctx: Context, record: Approval) -> str:
    """The requested change against trunk: modes, and a diff that no setting influences."""
    commit = sync_policy_commit(ctx, read_snapshot(ctx))
    entry = ls_tree_entry(ctx.repo.env, commit, record.path).text.split() if commit else []
    empty = write_blob(ctx.repo.env, b"").text
    before = entry[2] if entry else empty
    code, out, complaint = diff_blobs(ctx.repo.env, before, record.blob or empty)
    modes = f"mode {entry[0] if entry else 'none'} -> {record.mode if record.blob else 'none'}"
    # The lines before the first hunk only name the two blobs.
    _, hunk, rest = out.decode("utf-8", "replace").partition("\n@@ ")
    lines = f"@@ {rest}" if hunk else "no line changes" if not code else f"the content cannot be shown: {complaint}"
    return f"{modes}\n{lines}".rstrip()


def answer(ctx: Context, actor: Actor, id: str, blob: str, *, approved: bool, reason: str = "") -> dict[str, object]:
    from gitcoord.gates.events.answer import Answer, decide

    return transact(ctx, decide, Answer(actor, id, approved, blob, reason))


def require_overseer(ctx: Context, actor: Actor | None, action: str, *, trusting: bool = False) -> None:
    """Raise Refused for an agent without the right. A person at a terminal may, and a script without an agent's name.

    `trusting`: also by a ledger that is not the project's.
    """
    if actor is None or actor.person:
        return
    try:
        snapshot = read_snapshot(ctx, trusting=trusting)
    except NotInitialised:
        return
    refusal = not_an_overseer(snapshot.state, actor, ctx.world(snapshot), action)
    if refusal is not None:
        raise Refused(refusal)


def set_role(ctx: Context, actor: Actor, target: str, role: str) -> dict[str, object]:
    from gitcoord.gates.events.role import SetRole, decide

    return transact(ctx, decide, SetRole(actor, target, role))

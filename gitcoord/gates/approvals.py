"""Notices and requests for approval: recording and listing them."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import GitcoordError, NotInitialised, raise_if
from gitcoord.gates.judge import Verdict
from gitcoord.gates.model import Approval, approvals
from gitcoord.git.commands.objects import diff_blobs, ls_tree_entry, write_blob
from gitcoord.git.keyed_files import update
from gitcoord.git.loose_writer import hasher
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.transaction import transact
from gitcoord.policy.cache import sync_policy_commit
from gitcoord.policy.roles import not_an_overseer

_ASKED = 50  # requests in one event
_KEPT = 4000  # notes of one conversation; the oldest are dropped


def leave_records(ctx: Context, actor: Actor, gate: str, refused: list[Verdict], noted: list[Verdict]) -> None:
    """Record notices, and requests for approval. A gate that cannot write only judges."""
    noted = [verdict for verdict in noted if verdict.rule != "private"]  # the ledger is published
    asked = [verdict for verdict in refused if verdict.asks]
    try:
        if asked:
            from gitcoord.gates.events import request

            rows = [{**_row(v, "path", "mode", "blob", "rule", "commit"), "bases": list(v.bases)} for v in asked]
            transact(ctx, request.decide, request.Request(actor, tuple(rows[:_ASKED])))
        if noted:
            from gitcoord.gates.events import notice

            rows = [_row(v, "rule", "stage", "path", "agent", "commit") for v in noted]
            transact(ctx, notice.decide, notice.Notice(actor, gate, tuple(rows)))
    except (GitcoordError, OSError):
        pass


def _row(verdict: Verdict, *keys: str) -> Record:
    return {key: str(getattr(verdict, key)) for key in keys}


def record_once(ctx: Context, actor: Actor, conversation: str, noted: list[Verdict]) -> None:
    """Record notices of the guard, each rule once for a path and conversation, since a tool asks before every action.

    The recorded ones are noted in the scratch directory; losing that note costs a second record. The note comes first, so that an
    unwritable ledger delays one call, not every call.
    """
    new: list[Verdict] = []

    def change(data: bytes) -> bytes:
        known = data.decode("ascii", "replace").split()
        keys = {_key(verdict): verdict for verdict in noted if verdict.rule != "private"}
        fresh = [key for key in keys if key not in known]
        new.extend(keys[key] for key in fresh)
        return "\n".join([*known, *fresh][-_KEPT:]).encode()

    try:
        update(f"{ctx.repo.scratch}/guard/noted", f"{actor.agent}\0{conversation or actor.instance}", change)
    except OSError:
        return  # without notes, every call would write to the ledger
    if new:
        leave_records(ctx, actor, "guard", [], new)


def _key(verdict: Verdict) -> str:
    text = "\0".join((verdict.rule, verdict.stage, verdict.path))
    digest: str = hasher(40)(text.encode("utf-8", "surrogateescape")).hexdigest()
    return digest[:16]


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
    raise_if(not_an_overseer(snapshot.state, actor, ctx.world(snapshot), action))

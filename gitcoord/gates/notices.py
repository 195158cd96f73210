"""Notices of the guard: actions of agent tools that break a rule whose stage lets them through.

A tool asks before every action, so each rule is recorded once for a path and conversation. The recorded ones are noted in the
scratch directory; losing that note costs a second record.
"""

from __future__ import annotations

from gitcoord.gates.judge import Verdict
from gitcoord.git.keyed_files import update
from gitcoord.git.loose_writer import hasher
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor

_KEPT = 4000  # notes of one conversation; the oldest are dropped
_LENGTH = 16


def record_once(ctx: Context, actor: Actor, conversation: str, noted: list[Verdict]) -> None:
    """Note and record the new ones. The note comes first, so that an unwritable ledger delays one call, not every call."""
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
        from gitcoord.gates.approvals import leave_records

        leave_records(ctx, actor, "guard", [], new)


def _key(verdict: Verdict) -> str:
    text = "\0".join((verdict.rule, verdict.stage, verdict.path))
    digest: str = hasher(40)(text.encode("utf-8", "surrogateescape")).hexdigest()
    return digest[:_LENGTH]

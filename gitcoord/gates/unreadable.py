"""A policy that cannot be read: no change brings one, and a person at a terminal can replace one.

By such a policy nothing can be judged, also not the change that corrects it. So that change is judged without a policy: who acts, and
who holds what, still count.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import CONFIG
from gitcoord.claims.facts import parse_resources
from gitcoord.deploy.targets import targets
from gitcoord.effects.sequences import sequences
from gitcoord.gates.judge import CommitChange, Verdict
from gitcoord.git.config import parse_settings
from gitcoord.landing.model import rules_of
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.policy.model import ENFORCE, Policy, is_own_file
from gitcoord.policy.parse import parse_policy
from gitcoord.policy.roles import may_approve
from gitcoord.policy.waiting import parse_waiting

_HINTS = ("correct it, then look: git coord policy check --worktree",)


def may_replace(ctx: Context, old: str, new: str, actor: Actor, steps: list[CommitChange]) -> bool:
    """Return whether the actor may replace the settings `old`, a blob that cannot be read, by `new`: with changes of the guard's own
    files alone."""
    if not old or not _why(ctx, old) or _why(ctx, new):
        return False
    try:
        approvers = [value for key, value in _pairs(ctx, old) if key == "gitcoord.approver"]
    except CouldNotJudge:
        approvers = []
    return may_approve(actor, approvers) and all(is_own_file(change.path) for step in steps for change in step.changes)


def unreadable(ctx: Context, blob: str, agent: str) -> list[Verdict]:
    """The verdict on a change after which the settings are this blob; none where they can be read."""
    why = _why(ctx, blob)
    message = f"by it nothing could be judged any more: {why}"
    return [Verdict("own-files", ENFORCE, CONFIG, agent, message, hints=_HINTS)] if why else []


def _why(ctx: Context, blob: str) -> str:
    """The reason why these settings cannot be read; '' where they can, and where there are none."""
    try:
        check_settings(_pairs(ctx, blob) if blob else [])
    except CouldNotJudge as error:
        return error.message
    return ""


def check_settings(pairs: list[tuple[str, str]]) -> Policy:
    """Read all settings, also those that only some commands read. CouldNotJudge for a value that makes no sense."""
    policy = parse_policy(pairs)
    targets(pairs)
    sequences(pairs)
    rules_of(pairs)
    parse_waiting(pairs)
    parse_resources(pairs)
    for validator in policy.validators:
        for key in ("calls", "bytes", "tokens", "repeats", "failures"):
            validator.number(key)
        validator.duration("time")
        validator.flag("release")
    return policy


def _pairs(ctx: Context, blob: str) -> list[tuple[str, str]]:
    from gitcoord.git.commands.settings import list_settings

    return parse_settings(list_settings(ctx.repo.env, blob=blob).require(f"{CONFIG} cannot be read").out)

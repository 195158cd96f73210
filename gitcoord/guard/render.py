"""The guard's findings as text for the agent and the person beside it."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.base.names import printable
from gitcoord.gates.judge import path_word
from gitcoord.guard.findings import Finding, strictest
from gitcoord.guard.judge import GuardSession
from gitcoord.policy.model import RULES
from gitcoord.validators.tool_event import ALLOW, ASK, DENY, ToolEvent

_SHOWN = 10
_CURSOR = "cursor"  # its subagents act in conversations of their own that name no parent
_HEADS = {
    ALLOW: "goes through, with a warning",
    ASK: "needs a person's word, nothing was done",
    DENY: "is refused, nothing was done",
}


def words_of(session: GuardSession, event: ToolEvent, findings: list[Finding]) -> str:
    decision = strictest(findings)
    found = [finding for finding in findings if finding.decision == decision]
    lines = [f"gitcoord: {printable(event.action or 'this')} {_HEADS[decision]}"]
    for finding in found[:_SHOWN]:
        where = f"{printable(finding.path)}: " if finding.path else ""
        lines += [f"  {where}{printable(finding.message)} [{finding.rule}]", *_holders(finding)]
    if len(found) > _SHOWN:
        lines.append(f"  and {len(found) - _SHOWN} more")
    lines += session.policy.reasons(finding.rule for finding in found if finding.rule in RULES)
    if decision == DENY and any(finding.held for finding in found):
        work = session.other_work()
        lines += [f"other work: {work}: git coord task next"] if work else []
    if decision == ASK:
        lines.append("hint: where this tool asks nobody, a person does it, or changes what the policy says")
    shown = [*(_literal(session, step) for step in _next_steps(found)), *_cursor_hints(session, found)]
    return "\n".join([*lines, *(f"hint: {printable(hint)}" for hint in shown)])


def _next_steps(found: list[Finding]) -> list[str]:
    """The command that helps next, with all paths that it helps with, and one that may be taken instead.

    What else was found comes up again once that is done; naming all commands at once leaves open which goes first.
    """
    first = max(found, key=lambda one: (any("git " in hint for hint in one.hints), bool(one.hints)))
    words = [(one.hints, path_word(one.path)) for one in found[:_SHOWN] if one.path]
    steps = []
    for number, hint in enumerate(first.hints[:2]):
        stem = hint.removesuffix(path_word(first.path)) if first.path else hint
        paths = [word for hints, word in words if hints[number : number + 1] == (stem + word,)]
        steps.append(stem + " ".join(dict.fromkeys(paths)) if stem != hint else hint)
    return steps


def _literal(session: GuardSession, hint: str) -> str:
    """The hint with the agent's own files, so that it works as it stands."""
    if "<file>..." not in hint:
        return hint
    from gitcoord.guard.hold_files import own_files

    return hint.replace("<file>...", own_files(session.ctx, session.actor.agent))


def _cursor_hints(session: GuardSession, found: list[Finding]) -> list[str]:
    """Hints for a parent and its subagent in Cursor, which does not report that they belong together."""
    rows = [claim for finding in found for claim in finding.held if str(claim["agent"]).startswith(f"{_CURSOR}-")]
    if not rows or not session.actor.instance.startswith(f"{_CURSOR}:"):
        return []
    path = path_word(str(rows[0]["path"]))
    return [
        "Cursor does not tell whose subagent a conversation is, so each is an agent of its own. If you two are parent and "
        f"subagent, the holder releases it first: git claim release {path}",
        "or a person starts the tool under one name, which then is that of all its conversations: "
        "git coord run --as <name> -- <command>",
    ]


def _holders(finding: Finding) -> list[str]:
    if not finding.held:
        return []
    from gitcoord.terminal.screen import ago, expected

    lines = []
    for claim in finding.held[:_SHOWN]:
        reason = f": {printable(str(claim['reason']))}" if claim["reason"] else ""
        ttl = format_duration(int(str(claim["ttl_seconds"])))
        until = expected(claim) or f"it ends {ttl} after its holder's last activity"
        lines.append(f"    {claim['agent']} has it since {ago(claim['since'])}{reason}; {until}")
    return lines

"""Findings about a shell command that depend on no claim, and about new settings of a tool."""

from __future__ import annotations

from gitcoord.base.names import covers, printable
from gitcoord.git.files import read_file
from gitcoord.git.locate import Place
from gitcoord.guard.effects import FileEffects, absolute, actor_of
from gitcoord.guard.findings import Finding, allowed_instead
from gitcoord.guard.unhooked import HINTS, MESSAGE, hooks_are_off
from gitcoord.policy.model import Guard
from gitcoord.validators.tool_event import ALLOW, ASK, DENY, ToolEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.guard.hook import Invocation

_OFF = ("disable", "false", "off")  # in settings that switch hooks off


def shell_findings(
    invocation: Invocation, event: ToolEvent, guard: Guard, effects: FileEffects, home: Place
) -> list[Finding]:
    return [
        *_bypasses(invocation, guard, effects, home),
        *_repository_deletion(effects, home),
        *_unhooked(invocation, event, effects),
    ]


def _bypasses(invocation: Invocation, guard: Guard, effects: FileEffects, home: Place) -> list[Finding]:
    found = [
        Finding(DENY, f"this goes around the guard: {printable(what)}", "bypass", hints=(allowed_instead(what),))
        for what in effects.bypasses
    ]
    # A build is said only where the policy stops such commands: with `warn` every test run would be.
    unknown = (*effects.unknown, *(effects.builds if guard.unknown in (ASK, DENY) else ()))
    if unknown:
        from gitcoord.guard.unknown_commands import count

        count(invocation.open(home.top), unknown[0])
    if unknown and guard.unknown != ALLOW:
        found.append(_unknown(ALLOW if guard.unknown == "warn" else guard.unknown, unknown[0]))
    return found


def _unknown(answer: str, what: str) -> Finding:
    message = f"what this command writes cannot be told: {printable(what)}"
    hints = ("run the single commands that it stands for, or ask a person to run it",) if answer != ALLOW else ()
    return Finding(answer, message, "unknown", hints=hints)


def said_once(
    invocation: Invocation, event: ToolEvent, guard: Guard, effects: FileEffects, home: Place
) -> list[Finding]:
    """A finding for an unknown command that is simply allowed, the first in its conversation."""
    if not effects.unknown or guard.unknown != ALLOW:
        return []
    from gitcoord.guard.conversations import is_new

    ctx = invocation.open(home.top)
    agent = actor_of(ctx, invocation.env, event).agent
    return [_unknown(ALLOW, effects.unknown[0])] if is_new(ctx, agent, (f"unknown {event.conversation}",)) else []


def _repository_deletion(effects: FileEffects, home: Place) -> list[Finding]:
    """Deletion of the repository itself."""
    taken = [path for path in map(absolute, effects.deleted) if path == "/" or covers(path, home.common)]
    hints = ("a person may take a repository away",)
    return [Finding(DENY, "the repository lies there, with everybody's work", "bypass", path, hints) for path in taken]


def _unhooked(invocation: Invocation, event: ToolEvent, effects: FileEffects) -> list[Finding]:
    """Commits, merges and pushes where git's hooks do not run."""
    if not effects.hooked:
        return []
    off = hooks_are_off(event.tool, event.command, invocation.env)
    return [Finding(DENY, MESSAGE, "bypass", hints=HINTS)] if off else []


def new_settings(event: ToolEvent, effects: FileEffects, path: str) -> list[Finding]:
    """A finding for settings of a tool that do not call the guard yet, where this call writes that hooks are off."""
    if not _switches_hooks_off(event, effects):
        return []
    hints = ("a person may change what a tool's hooks are",)
    return [Finding(DENY, "these settings may switch off the hooks that call this guard", "bypass", path, hints)]


def _switches_hooks_off(event: ToolEvent, effects: FileEffects) -> bool:
    """Whether what a call writes switches hooks off, or hides its words: by its arguments, its command, or files that the command reads."""
    texts = [event.command, *(str(value) for value in event.input.values())]
    if event.command:
        texts += [read_file(absolute(place), 1 << 20).decode("utf-8", "replace") for place in effects.reads]
    return any(
        "\\u00" in text or ("hook" in text and any(word in text for word in _OFF)) for text in map(str.lower, texts)
    )

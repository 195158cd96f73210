"""Codex CLI: speaks as Claude Code does, with a reader of answers that is strict. Sampled of version 0.169.

An answer with a key that it does not know, 'ask', a bare 'allow' or a denial without a reason is thrown away, and the action goes
on: so only what it knows is said. Hooks of a project do not run before the person has trusted them, and again after each change.

Of a command that is over it tells what was printed, which may be anything, and not how it ended: `guard/tools/codex_rollout.py` looks that up.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.guard.tools import claude, common
from gitcoord.guard.tools.common import PATCH, READ, SHELL
from gitcoord.validators.tool_event import AFTER, ALLOW, BEFORE, Answer, Reply, ToolEvent

NAME = "codex"

ACTIONS = {
    **claude.ACTIONS,
    **common.actions(
        ("apply_patch", PATCH, "command", "input", "patch"),
        ("Bash shell local_shell shell_command", SHELL, "command", "workdir"),
        ("exec_command", SHELL, "cmd", "workdir"),
        ("view_image", READ, "path"),
    ),
}

fail = claude.fail


def read(data: Record) -> ToolEvent:
    event = claude.read_as(NAME, ACTIONS, data)
    if event.phase != AFTER or not event.command or isinstance(data.get("tool_response"), dict):
        return event
    return event._replace(failed=None, transcript=common.text(data, "transcript_path"))


_END = "(that is all gitcoord says)"  # behind the reason Codex writes more into the same line, which a hint must not end with


def answer(event: ToolEvent, answer: Answer) -> Reply:
    if event.phase == BEFORE and answer.decision != ALLOW:
        answer = answer._replace(reason=f"{common.reason(answer.reason)}\n{_END}")
    return claude.answer_as(event, answer, ask=False)

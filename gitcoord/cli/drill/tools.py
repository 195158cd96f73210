"""Agent tools as the guard meets them in a drill: the bytes of an action that each tool sends, and what it takes for a denial.

The forms are those of recorded conversations (`tests/guard/recorded/`), with this drill's paths in them.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from gitcoord.guard.setup.known import COMMAND, Known

_CALL = "toolu_000000000000000000000001"
_CONVERSATION = "9b265151-5df7-4233-98c3-dc659dabd3cb"
_TIME = "2026-11-18T14:16:25.329Z"
# event before a write and before a shell command, words for both, the keys of a write's file and of a command
_FORMS = {
    "claude": ("PreToolUse", "PreToolUse", "Write", "Bash", "file_path", "command"),
    "codex": ("PreToolUse", "PreToolUse", "apply_patch", "Bash", "", "command"),
    "gemini": ("BeforeTool", "BeforeTool", "write_file", "run_shell_command", "file_path", "command"),
    "cursor": ("preToolUse", "preToolUse", "Write", "Shell", "file_path", "command"),
    "copilot": ("preToolUse", "preToolUse", "create", "bash", "path", "command"),
    "windsurf": ("pre_write_code", "pre_run_command", "", "", "file_path", "command_line"),
    "opencode": ("", "", "write", "bash", "filePath", "command"),
}


class Action(NamedTuple):
    """One action of a tool: a write of the file `path`, or a shell command that appends to it."""

    tool: str
    top: str
    path: str
    shell: bool

    @property
    def event(self) -> str:
        return _FORMS[self.tool][self.shell]

    def data(self) -> bytes:
        """The bytes that the tool sends to its hook."""
        _, _, *words, file, command = _FORMS[self.tool]
        text = f"*** Begin Patch\n*** Update File: {self.top}/{self.path}\n@@\n-a\n+b\n*** End Patch\n"
        given = (
            {command: f"echo drill >> {self.path}"}
            if self.shell
            else {file: f"{self.top}/{self.path}", "content": "drill\n"}
        )
        if self.tool == "codex" and not self.shell:
            given = {"command": text}
        return json.dumps(self._message(words[self.shell], given)).encode()

    def _message(self, word: str, given: dict[str, str]) -> dict[str, Any]:
        base: dict[str, Any] = {"cwd": self.top}
        if self.tool == "opencode":
            return {
                "opencode": 1,
                **base,
                "event": "before",
                "session": _CONVERSATION,
                "parent": "",
                "call": _CALL,
                "tool": word,
                "args": given,
            }
        if self.tool == "copilot":
            return {
                "sessionId": _CONVERSATION,
                "timestamp": 1_795_011_394_237,
                **base,
                "toolName": word,
                "toolArgs": given,
            }
        if self.tool == "windsurf":
            info = {**given, **base}
            return {
                "agent_action_name": self.event,
                "trajectory_id": _CONVERSATION,
                "timestamp": _TIME,
                "tool_info": info,
            }
        base |= {"session_id": _CONVERSATION, "hook_event_name": self.event, "tool_name": word, "tool_input": given}
        if self.tool == "cursor":
            return {
                **base,
                "conversation_id": _CONVERSATION,
                "cursor_version": "3.18.25",
                "workspace_roots": [self.top],
                "tool_use_id": _CALL,
            }
        if self.tool == "codex":
            return {**base, "turn_id": "t1", "model": "gpt-5.5", "permission_mode": "default", "tool_use_id": _CALL}
        if self.tool == "gemini":
            return {**base, "timestamp": _TIME, "transcript_path": f"{self.top}/../chat.json"}
        return {**base, "permission_mode": "default", "tool_use_id": _CALL}

    def command(self, known: Known) -> str:
        """The command line of the hook, as setup writes it into the tool's settings. The plugin of OpenCode calls the guard itself."""
        entry: dict[str, Any] = known.hooks.get(self.event, {"command": COMMAND})
        entry = entry["hooks"][0] if "hooks" in entry else entry
        return str(entry.get("command") or entry["bash"])


def is_denied(code: int, out: bytes) -> bool:
    """Would the tool leave the action undone? A question to a person counts: the agent does not get on by itself."""
    if code:
        return code == 2
    try:
        told = json.loads(out or b"{}")
    except ValueError:
        return False
    answers = {**told, **told.get("hookSpecificOutput", {})} if isinstance(told, dict) else {}
    return any(answers.get(key) in ("deny", "block", "ask") for key in ("permission", "decision", "permissionDecision"))

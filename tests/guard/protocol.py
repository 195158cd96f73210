"""Each agent tool as the guard meets it: the events that it sends, and what it takes an answer for."""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from uuid import uuid4

from gitcoord.guard.tools import NAMES

Event = dict[str, Any]
TOOLS = NAMES
ASKING = ("claude", "copilot")  # the others take no question: it is a denial there
_WORDS = {
    "claude": ("Write", "Read", "Bash"), "codex": ("apply_patch", "view_image", "Bash"),
    "gemini": ("write_file", "read_file", "run_shell_command"), "cursor": ("Write", "Read", "Shell"),
    "copilot": ("create", "view", "bash"), "windsurf": ("write_code", "read_code", "run_command"),
    "opencode": ("write", "read", "bash"),
}  # fmt: skip


class Speaker(NamedTuple):
    """One conversation of one tool."""

    tool: str
    conversation: str
    cwd: str
    subagent: str = ""

    def write(self, path: str, *, after: bool = False) -> Event:
        if self.tool == "codex":
            text = f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch\n"
            return self._action(0, {"command": text}, after=after)
        key = {"opencode": "filePath", "copilot": "path"}.get(self.tool, "file_path")
        return self._action(0, {key: path, "content": "x"}, after=after)

    def read(self, path: str, *, after: bool = False) -> Event:
        key = {"opencode": "filePath", "copilot": "path", "codex": "path"}.get(self.tool, "file_path")
        return self._action(1, {key: path}, after=after)

    def shell(self, command: str, *, after: bool = False) -> Event:
        key = "command_line" if self.tool == "windsurf" else "command"
        return self._action(2, {key: command}, after=after)

    def start(self) -> Event:
        if self.tool in ("claude", "codex", "gemini"):
            return {**self._base("SessionStart"), "source": "startup"}
        if self.tool == "cursor":
            return self._base("sessionStart")
        if self.tool == "copilot":
            return {**self._base(""), "source": "new", "initialPrompt": "go"}
        return self._base("start")

    def stop(self, *, final: bool = False) -> Event:
        names = {"claude": "Stop", "codex": "Stop", "gemini": "AfterAgent", "cursor": "stop", "opencode": "stop"}
        if self.tool == "copilot":
            return {**self._base(""), **({"reason": "complete"} if final else {"stopReason": "end_turn"})}
        if self.tool == "windsurf":
            return self._base("post_cascade_response")
        if final and self.tool == "opencode":
            return {**self._base("stop"), "final": True}
        if final:
            return self._base("sessionEnd" if self.tool == "cursor" else "SessionEnd")
        return self._base(names[self.tool])

    def subagent_stop(self) -> Event:
        """A subagent with an id of its own is over."""
        if self.tool == "copilot":
            ended = {"agentName": "task", "response": "done", "stopReason": "end_turn", "stop_hook_active": False}
            return {**self._base(""), "sessionId": self.conversation, **ended}
        return self._base("subagent-stop" if self.tool == "opencode" else "SubagentStop")

    # --- what only Cursor says

    def task(self, id: str, *, after: bool = False) -> Event:
        """The event that hands a task to a subagent, which then acts in a conversation of its own."""
        base = self._base("postToolUse" if after else "preToolUse")
        return {**base, "tool_name": "Task", "tool_input": {"prompt": "FileSystem."}, "tool_use_id": id}

    def subagent_event(self, event: str, id: str) -> Event:
        """'subagentStart' or 'subagentStop', which the parent's conversation tells."""
        return {**self._base(event), "parent_conversation_id": self.conversation, "subagent_id": id}

    # --- what only Gemini CLI says

    def calls(self, agent: str = "generalist", *, after: bool = False) -> Event:
        """The event that calls a subagent, which then acts in this same conversation; `after`: the call has ended."""
        base = self._base("AfterTool" if after else "BeforeTool")
        done = {"tool_response": {"llmContent": [{"text": "Done."}]}} if after else {}
        return {
            **base,
            "tool_name": "invoke_agent",
            "tool_input": {"agent_name": agent, "prompt": "FileSystem."},
            **done,
        }

    # --- the tools' own forms

    def _action(self, which: int, arguments: Event, *, after: bool) -> Event:
        name = _WORDS[self.tool][which]
        if self.tool in ("claude", "codex"):
            base = self._base("PostToolUse" if after else "PreToolUse")
            return {**base, "tool_name": name, "tool_input": arguments, **({"tool_response": {}} if after else {})}
        if self.tool == "gemini":
            base = self._base("AfterTool" if after else "BeforeTool")
            return {**base, "tool_name": name, "tool_input": arguments, **({"tool_response": {}} if after else {})}
        if self.tool == "cursor":
            base = self._base("postToolUse" if after else "preToolUse")
            return {**base, "tool_name": name, "tool_input": arguments, "tool_use_id": f"tool_{uuid4()}"}
        if self.tool == "copilot":
            done = {"toolResult": {"resultType": "success"}} if after else {}
            return {**self._base(""), "toolName": name, "toolArgs": json.dumps(arguments), **done}
        if self.tool == "windsurf":
            return {**self._base(f"{'post' if after else 'pre'}_{name}"), "tool_info": {**arguments, "cwd": self.cwd}}
        return {**self._base("after" if after else "before"), "tool": name, "args": arguments}

    def _base(self, event: str) -> Event:
        base: Event = {"cwd": self.cwd}
        if self.tool == "copilot":
            base |= {"sessionId": self.subagent or self.conversation, "timestamp": 1_790_000_000_000}
            ids = {"agentId": self.subagent, "agentType": "task", "parentAgentId": self.conversation}
            return {**base, **(ids if self.subagent else {})}
        if self.tool == "windsurf":
            return {**base, "agent_action_name": event, "trajectory_id": self.conversation}
        if self.tool == "opencode":
            session: Event = {
                "session": self.subagent or self.conversation,
                "parent": self.conversation if self.subagent else "",
            }
            return {**base, "opencode": 1, "event": event, **session}
        if self.tool == "cursor":
            names: Event = {
                "conversation_id": self.conversation,
                "cursor_version": "2.4.1",
                "workspace_roots": [self.cwd],
            }
            return {**base, **names, "hook_event_name": event}
        base |= {"session_id": self.conversation, "hook_event_name": event}
        if self.tool == "codex":
            base |= {"turn_id": "t1"}
        if self.tool == "gemini":
            base |= {"timestamp": "2026-10-01T00:00:00Z", "transcript_path": "/tmp/t.json"}
        return {**base, **({"agent_id": self.subagent, "agent_type": "x"} if self.subagent else {})}


class Said(NamedTuple):
    """Output and exit code of a guard process."""

    out: bytes
    err: bytes
    code: int

    @property
    def json(self) -> Any:
        return json.loads(self.out) if self.out.strip() else {}


def understood(tool: str, said: Said) -> str:
    """The tool's decision before an action, by its own rules: allow, deny or ask. Its hook is set up to fail closed."""
    if said.code == 2:
        return "deny" if said.err.strip() or tool != "windsurf" else "allow"
    if said.code:
        # A hook that failed otherwise: those with a switch for it have it on (and the plugin is ours).
        return "deny" if tool in ("claude", "cursor", "copilot", "opencode") else "allow"
    try:
        told = said.json
    except ValueError:
        return "deny" if tool in ("cursor", "opencode") else "allow"
    if tool == "cursor":
        return "allow" if told.get("permission") == "allow" else "deny"
    if tool == "opencode":
        return "allow" if told.get("decision") == "allow" else "deny"
    if tool == "gemini":
        return "deny" if told.get("decision") in ("deny", "block") else "allow"
    if tool == "copilot":
        return str(told.get("permissionDecision", "allow"))
    specific = told.get("hookSpecificOutput", {})
    decision = specific.get("permissionDecision", "allow")
    if tool == "codex" and (decision not in ("deny",) or not specific.get("permissionDecisionReason", "").strip()):
        return "allow"
    return str(decision)


def reason(tool: str, said: Said) -> str:
    """The words that come with a denial or a question."""
    if said.err:
        return said.err.decode()
    told = said.json
    specific = told.get("hookSpecificOutput", {})
    for holder in (specific, told):
        for key in ("permissionDecisionReason", "agent_message", "reason", "followup_message"):
            if key in holder:
                return str(holder[key])
    return ""


def context(said: Said) -> str:
    told = said.json
    specific = told.get("hookSpecificOutput", {})
    for holder in (specific, told):
        for key in ("additionalContext", "additional_context", "context"):
            if key in holder:
                return str(holder[key])
    return ""

"""The agent tools that setup knows: how each is recognised, its files, and which of its events are hooked.

The words of their events are in `guard/tools/`; docs/guard.md has the same as a table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gitcoord.guard.tools import LIMIT

COMMAND = "git coord guard"
SHELL = "sh -c 'PATH=$PATH:$HOME/.local/bin; "
# Settings of a project are committed: where gitcoord is not installed the line allows everything, and says so once in a clone.
_MISSING = 'f=$(git rev-parse --git-path gitcoord-missing) && [ ! -e "$f" ] && : >"$f" && echo "gitcoord is not installed: its hooks do nothing" >&2; '
_LINE = f"{SHELL}command -v git-coord >/dev/null && {{ %s; }}; {_MISSING}%s'"
# Most tools let an action pass where a hook ends with another code than 2, as a killed one or a broken installation does.
_REFUSES = f'{COMMAND}; case $? in 0) exit;; 2) ;; *) echo "gitcoord failed, so this is refused" >&2;; esac; exit 2'
# At an end the code 2, and to Gemini CLI any code above, sends the agent back to work, for ever.
_WARNS = f"{COMMAND} || exit 1; exit"
_REASON = "gitcoord failed, so this is refused: ask a person to look: git coord status"
_DENIES = (
    f'{COMMAND} || echo "{{\\"permissionDecision\\":\\"deny\\",\\"permissionDecisionReason\\":\\"{_REASON}\\"}}"; exit'
)
BEFORE = _LINE % (_REFUSES, "exit 0")
QUIET = _LINE % (_WARNS, "exit 0")
SAYS_DENY = _LINE % (_DENIES, "exit 0")  # for Copilot, which shows no reason of a hook that fails
SAYS_ALLOW = _LINE % (
    f"exec {COMMAND}",
    'echo "{\\"permission\\":\\"allow\\"}"',
)  # for tools to which no output is a failure
SKILL = "skills/gitcoord-protocol/SKILL.md"


class Home(NamedTuple):
    """The user's directory of a tool: below $HOME, or the one that a variable names."""

    below: str
    variable: str = ""
    inside: str = ""  # below the variable's directory


class Known(NamedTuple):
    name: str
    title: str
    marks: tuple[str, ...]  # any of these in a project: the tool is in use
    home: Home
    settings: str  # the file with its hooks, in a project
    own_settings: str  # the same below its home
    hooks: dict[str, dict[str, Any]]  # event -> the entry of ours
    skeleton: dict[str, Any]  # further content of a new settings file
    skill: str  # the directory with 'skills', in a project
    own_skill: str  # the same below its home; '..' leaves it
    texts: tuple[str, ...]  # instructions of the project that it reads
    note: str = ""  # a step that is left to a person
    own_note: str = ""  # the same with `--user`


def _flat(events: tuple[str, ...], entry: dict[str, Any], **more: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {event: {**entry, **more.get(event, {})} for event in events}


def _groups(events: tuple[str, ...], entry: dict[str, Any], **more: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Claude Code's form: a group of hooks under each event; without a matcher it is for all actions."""
    return {event: {"hooks": [hook]} for event, hook in _flat(events, entry, **more).items()}


_CLAUDE = _groups(
    (
        "SessionStart", "PreToolUse", "PostToolUse", "PostToolUseFailure",
        "SubagentStart", "SubagentStop", "Stop", "SessionEnd",
    ),
    {"type": "command", "command": QUIET, "timeout": LIMIT},
    PreToolUse={"command": BEFORE, "onFailure": "block"},
)  # fmt: skip
_CODEX = _groups(
    ("SessionStart", "PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "Stop", "SessionEnd"),
    {"type": "command", "command": QUIET, "timeout": LIMIT},
    PreToolUse={"command": BEFORE},
    SessionEnd={"timeout": 3},  # it gives no more, and warns of more
)
_GEMINI = _groups(
    ("SessionStart", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"),
    {"name": "gitcoord", "type": "command", "command": QUIET, "timeout": LIMIT * 1000},
    BeforeTool={"command": BEFORE},
)
_CURSOR = _flat(
    ("sessionStart", "preToolUse", "postToolUse", "postToolUseFailure", "stop", "sessionEnd"),
    {"command": SAYS_ALLOW, "timeout": LIMIT},
    preToolUse={"failClosed": True},
)
_COPILOT = _flat(
    (
        "sessionStart", "preToolUse", "postToolUse", "postToolUseFailure",
        "subagentStart", "subagentStop", "agentStop", "sessionEnd",
    ),
    {"type": "command", "bash": QUIET, "timeoutSec": LIMIT},
    preToolUse={"bash": SAYS_DENY},
)  # fmt: skip
_WINDSURF = _flat(
    (
        "pre_read_code", "pre_write_code", "pre_run_command", "pre_mcp_tool_use",
        "post_write_code", "post_run_command", "post_cascade_response",
    ),
    {"command": QUIET, "show_output": True},
    **{f"pre_{action}": {"command": BEFORE} for action in ("read_code", "write_code", "run_command", "mcp_tool_use")},
)  # fmt: skip

KNOWN = (
    Known(
        "claude", "Claude Code", (".claude", "CLAUDE.md"), Home(".claude", "CLAUDE_CONFIG_DIR"),
        ".claude/settings.json", "settings.json", _CLAUDE, {}, ".claude", "", ("CLAUDE.md",),
        "Claude Code runs these hooks only when it is started at the top of the work tree; your own run everywhere: "
        "git coord setup --user --tool claude",
    ),
    Known(
        "codex", "Codex CLI", (".codex",), Home(".codex", "CODEX_HOME"),
        ".codex/hooks.json", "hooks.json", _CODEX, {}, ".agents", "../.agents", ("AGENTS.md",),
        *2 * ("Codex skips hooks that are not trusted, without a message: open /hooks in it and trust them, again after each change",),
    ),
    Known(
        "gemini", "Gemini CLI", (".gemini", "GEMINI.md"), Home(".gemini"),
        ".gemini/settings.json", "settings.json", _GEMINI, {}, ".agents", "../.agents", ("GEMINI.md",),
        "Gemini CLI runs these hooks only when it is started at the top of the work tree, in a folder that a person trusted, "
        "without --skip-trust; your own run everywhere: git coord setup --user --tool gemini",
    ),
    Known(
        "cursor", "Cursor", (".cursor", ".cursorrules"), Home(".cursor"),
        ".cursor/hooks.json", "hooks.json", _CURSOR, {"version": 1}, ".cursor", "", (".cursor/rules/gitcoord.mdc",),
    ),
    Known(
        "copilot", "Copilot", (".github/copilot-instructions.md", ".github/copilot", ".github/hooks", ".github/skills"),
        Home(".copilot", "COPILOT_HOME"),
        ".github/hooks/gitcoord.json", "hooks/gitcoord.json", _COPILOT, {"version": 1}, ".github", "",
        (".github/copilot-instructions.md",),
        "Copilot runs these hooks only when it is started at the top of the work tree, in a directory that a person trusted, with -p only "
        "if GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS=true; your own run everywhere: git coord setup --user --tool copilot",
    ),
    Known(
        "windsurf", "Windsurf", (".windsurf", ".windsurfrules"), Home(".codeium/windsurf"),
        ".windsurf/hooks.json", "hooks.json", _WINDSURF, {}, ".windsurf", "", ("AGENTS.md",),
    ),
    Known(
        "opencode", "OpenCode", (".opencode", "opencode.json", "opencode.jsonc"),
        Home(".config/opencode", "XDG_CONFIG_HOME", "opencode"),
        ".opencode/plugins/gitcoord.js", "plugins/gitcoord.js", {}, {}, ".agents", "", ("AGENTS.md",),
    ),
)  # fmt: skip

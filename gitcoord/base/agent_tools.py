"""The table of agent tools: how each is recognised in the environment, and which settings make it call the guard.

`guard/tools/` has a file for each, with the words of its events; `guard/setup/known.py` says what setup writes for it.
"""

from __future__ import annotations

from gitcoord.startup.namedtuple import NamedTuple


class AgentTool(NamedTuple):
    name: str
    markers: tuple[bytes, ...]  # variables that show its presence
    ids: tuple[bytes, ...]  # variables with its conversation, or its subagent
    # Files, below a work tree or a home, with the settings that make it call the guard; a '/' ends a directory of such files.
    settings: tuple[str, ...]
    hosts_several: bool = False  # its process may host several conversations at a time
    hooks_off: bool = False  # its shell sets core.hooksPath in the environment, so that git runs no hook there


TOOLS = (
    AgentTool(
        "claude", (b"CLAUDECODE", b"CLAUDE_CODE_ENTRYPOINT"), (b"CLAUDE_CODE_SESSION_ID",),
        (".claude/settings.json", ".claude/settings.local.json"),
    ),
    AgentTool(
        "codex", (b"CODEX_SANDBOX", b"CODEX_SANDBOX_NETWORK_DISABLED"), (b"CODEX_SESSION_ID", b"CODEX_THREAD_ID"),
        (".codex/hooks.json", ".codex/config.toml"),
    ),
    AgentTool("gemini", (b"GEMINI_CLI",), (b"GEMINI_SESSION_ID",), (".gemini/settings.json",), hooks_off=True),
    AgentTool(
        "cursor", (b"CURSOR_AGENT",), (b"CURSOR_CONVERSATION_ID", b"CURSOR_TRACE_ID"), (".cursor/hooks.json",), True,
    ),
    AgentTool(
        "copilot", (b"COPILOT_CLI", b"COPILOT_AGENT"), (b"COPILOT_AGENT_SESSION_ID", b"COPILOT_SESSION_ID"),
        (".github/hooks/", ".github/hooks/gitcoord.json", ".copilot/hooks/", ".copilot/hooks/gitcoord.json"), True,
    ),
    AgentTool(
        "opencode", (b"OPENCODE",), (b"OPENCODE_SESSION_ID",),
        (
            ".opencode/plugin/", ".opencode/plugins/", ".opencode/plugins/gitcoord.js", ".config/opencode/plugins/",
            ".config/opencode/plugins/gitcoord.js",
        ), True,
    ),
    AgentTool(
        "windsurf", (b"WINDSURF_AGENT",), (b"WINDSURF_TRAJECTORY_ID",),
        (  # its later name is Devin
            ".windsurf/hooks.json", ".codeium/windsurf/hooks.json", ".codeium/hooks.json", ".devin/hooks.json", ".devin/hooks.v1.json",
            ".devin/config.json", ".devin/config.local.json", ".config/devin/config.json",
        ), True,
    ),
)  # fmt: skip

# In front of one plain command of git they take away the settings of the environment, and so switch the hooks on again. Gemini CLI
# also hides the user's own settings, and with them the name and address without which git makes no commit.
HOOKS_ON = "env -u GIT_CONFIG_COUNT -u GIT_CONFIG_GLOBAL "


def hooks_off(tool: str) -> bool:
    return any(one.hooks_off for one in TOOLS if one.name == tool)

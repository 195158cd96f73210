"""Tools whose shells switch git's hooks off: the guard denies there what only a hook would judge."""

from __future__ import annotations

from gitcoord.base.agent_tools import HOOKS_ON, hooks_off
from gitcoord.git.process import Environ

_RESTORES = (HOOKS_ON, "env -u GIT_CONFIG_COUNT ")
_PLAIN = "git "
_SPECIAL = ";&|<>`$()\n\\"
_MOST = 64  # settings of the environment

MESSAGE = "git's hooks are switched off in this tool's shell, so nobody would judge it"
HINTS = (
    f'commit with: {HOOKS_ON}git coord commit -m "..." -- <file>...',
    f"merge, pull and push with the hooks on: {HOOKS_ON}git push",
)


def without_restoring(tool: str, command: str) -> str:
    """The command without the words that switch the hooks on again, where this tool's shell switches them off."""
    return command[len(_restores(tool, command)) :]


def hooks_are_off(tool: str, command: str, env: Environ) -> bool:
    """Whether git's hooks do not run below this tool's shell, by what is known of the tool or by the guard's own environment."""
    if not hooks_off(tool) and not _set_in(env):
        return False
    return not _restores(tool, command)


def _restores(tool: str, command: str) -> str:
    """The words in front of a plain command that switch the hooks on again; '' where there are none, or they would not."""
    if not hooks_off(tool) or any(c in command for c in _SPECIAL):
        return ""
    return next((words for words in _RESTORES if command.startswith(words + _PLAIN)), "")


def _set_in(env: Environ) -> bool:
    count = env.get(b"GIT_CONFIG_COUNT", b"")
    if not count.isdigit() or len(count) > 3:
        return False
    keys = (env.get(b"GIT_CONFIG_KEY_%d" % index, b"") for index in range(min(int(count), _MOST)))
    return any(key.lower() == b"core.hookspath" for key in keys)

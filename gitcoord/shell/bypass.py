"""Ways around the gates that a command's text shows, wherever they stand in it."""

from __future__ import annotations

from gitcoord.base.agent_tools import TOOLS
from gitcoord.shell.effect_collector import EffectCollector

# Variables that send git to other settings, another index or other refs than the hooks watch.
_GIT = (
    "GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR", "GIT_REPLACE_REF_BASE", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
)  # fmt: skip
# By which gitcoord knows an agent tool's conversation, or its subagent, in a shell.
_WHO = frozenset(variable.decode() for tool in TOOLS for variable in tool.ids)
# Hook managers' switches.
_MANAGERS = (
    "HUSKY", "HUSKY_SKIP_HOOKS", "HUSKY_SKIP_INSTALL", "SKIP", "PRE_COMMIT_ALLOW_NO_CONFIG", "LEFTHOOK", "LEFTHOOK_EXCLUDE",
    "OVERCOMMIT_DISABLE", "SKIP_SIMPLE_GIT_HOOKS",
)  # fmt: skip
# Settings of git that turn hooks off or say who one is.
_SETTINGS = ("core.hookspath", "hook.", "gitcoord.", "include.", "includeif.", "core.worktree", "extensions.")

LEDGER = "gitcoord"


def variable(run: EffectCollector, name: str, shown: str) -> None:
    """A variable that is set (or unset) for what follows."""
    word = f"{name}={shown}" if shown else name
    if name.startswith("GITCOORD_") or name in _WHO:
        run.bypass(word, "changes as whom gitcoord sees this agent, or how it works")
    elif name in _GIT or name.startswith("GIT_CONFIG"):
        run.bypass(word, "sends git to other settings or files than the hooks watch")
    elif name in _MANAGERS and shown not in ("1", "true") or name in ("HUSKY_SKIP_HOOKS", "OVERCOMMIT_DISABLE"):
        run.bypass(word, "turns hooks off")
    elif name == "BASH_ENV" or name == "PS4" and ("$(" in shown or "`" in shown):
        run.unknown(word, "is run by a shell")


def setting(run: EffectCollector, key: str, word: str) -> None:
    """A setting of git that is changed, for one command or for good."""
    if key.lower().startswith(_SETTINGS):
        run.bypass(word, "changes git settings that the hooks depend on")


def alias(run: EffectCollector, held: str, word: str) -> None:
    """An alias of git, whose name tells nothing when it is used."""
    if "--no-verify" in held or "core.hookspath" in held.lower():
        run.bypass(word, "an alias that skips the hooks")


def is_own_ref(ref: str) -> bool:
    """A ref that only gitcoord moves: the ledger, claims, sessions. Also a pattern that covers them."""
    name = ref.removeprefix("+")
    for namespace in ("refs/claims", "refs/gitcoord", "refs/heads/gitcoord", "refs/heads/gitcoord-sessions"):
        if name == namespace or name.startswith(namespace + "/"):
            return True
    if name in (LEDGER, f"heads/{LEDGER}") or name.startswith(
        ("gitcoord-sessions/", "claims/", "heads/gitcoord-sessions/")
    ):
        return True
    return name in ("refs/*", "refs/heads/*", "*")


def is_gitcoord(name: str) -> bool:
    """A process name or pattern that means gitcoord's own."""
    return any(part in name for part in ("git-coord", "git-claim", "gitcoord", "git coord", "git claim"))

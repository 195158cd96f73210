"""Findings of the guard, and the decision that follows from all of them."""

from __future__ import annotations

from gitcoord.base.agent_tools import TOOLS
from gitcoord.base.names import covers
from gitcoord.gates.judge import Verdict
from gitcoord.ledger.state import State
from gitcoord.policy.model import DENY, Guard, is_attributes_file
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.validators.tool_event import ALLOW, ASK

# In place of the content that a tool is about to write, which is unknown: no release and no approval has it.
UNKNOWN_CONTENT = "untold"
AUTO = "auto: "  # what the reason of a claim begins with that the guard took
# Settings that make agent tools call the guard: files, and directories of them.
_FILES = tuple(f"/{name}" for tool in TOOLS for name in tool.settings if not name.endswith("/"))
_DIRECTORIES = tuple(f"/{name}" for tool in TOOLS for name in tool.settings if name.endswith("/"))


class Finding(NamedTuple):
    """One finding: a warning if the decision is ALLOW, otherwise the reason for refusing."""

    decision: str
    message: str
    rule: str = ""
    path: str = ""
    hints: tuple[str, ...] = ()
    held: tuple[dict[str, object], ...] = ()


def strictest(findings: Iterable[Finding]) -> str:
    """The strictest of all."""
    answers = {finding.decision for finding in findings}
    return DENY if DENY in answers else ASK if ASK in answers else ALLOW


def approved(state: State, path: str) -> bool:
    """Whether a person has approved a change of this path. The commit is compared with the approved content."""
    from gitcoord.gates.model import APPROVED, approvals

    return any(one.path == path and one.state == APPROVED for one in approvals(state))


def decision_for(verdict: Verdict) -> str:
    """ASK where a person may still approve the content, otherwise DENY."""
    if verdict.asks and (verdict.rule == "guard" or is_attributes_file(verdict.path)):
        return ASK
    return DENY


def settings_at(path: str) -> list[str]:
    """The files with settings of agent tools at an absolute path, or below it, which are deleted with it."""
    if path.endswith(_FILES) or any(place in path for place in _DIRECTORIES):
        return [path]
    found = []
    for name in _FILES:
        parts = name.split("/")
        heads = ["/".join(parts[:at]) for at in range(2, len(parts))]
        found += [f"{path}{name[len(head) :]}" for head in heads if path.endswith(head)]
    return found


# What a bypass says -> the command that is allowed in its place.
_INSTEAD = (
    ("skips the hooks", 'let the hooks judge it: git coord commit -m "..." -- <file>...'),
    ("git's own files", "use git's own commands, which keep its files consistent"),
    ("takes a claim away", "wait until its holder releases it; who holds what: git claim list --all"),
    ("takes gitcoord's gates away", "a person may do that at a terminal"),
    ("as whom gitcoord sees", "run the command without that variable: gitcoord knows who you are"),
    ("hides from git", "run the command directly: gitcoord knows who you are"),
    ("refs that only gitcoord moves", "claims and releases move them: git claim, git claim release"),
    ("ledger", "look at it: git coord log; a person repairs it: git coord fsck --repair"),
    ("NUL", "write the command without a NUL byte"),
)


def allowed_instead(bypass: str) -> str:
    """The command that is allowed in place of a way around the guard."""
    return next((hint for words, hint in _INSTEAD if words in bypass), "run the command without that part")


def read_decision(guard: Guard, home: str, path: str) -> str:
    """DENY or ASK where an absolute path lies at or below one that the settings name; '' otherwise."""
    for answer, names in ((DENY, guard.deny_read), (ASK, guard.ask_read)):
        for name in names:
            place = (home + name[1:] if name.startswith("~/") else name).rstrip("/")
            if covers(place, path):
                return answer
    return ""

"""Events of agent tools and the answers to them, in one form for every tool.

`guard/tools/` has a file for each tool, which parses the tool's events and renders answers. Paths stay as the tool spells them:
absolute, or relative to `cwd`.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.startup.namedtuple import NamedTuple

# OTHER: gitcoord ignores it.
START, BEFORE, AFTER, STOP, SUBAGENT_START, SUBAGENT_STOP, OTHER = (
    "start", "before", "after", "stop", "subagent-start", "subagent-stop", "other",
)  # fmt: skip
PHASES = (START, BEFORE, AFTER, STOP, SUBAGENT_START, SUBAGENT_STOP, OTHER)

ALLOW, DENY, ASK = "allow", "deny", "ask"


class ToolEvent(NamedTuple):
    tool: str  # the agent tool: a name in guard/tools
    phase: str
    conversation: str = ""  # the tool's id of it; '' where it gives none
    subagent: str = ""  # the id of the subagent that acts; '' for the agent itself
    cwd: str = ""  # absolute; '' where the tool does not give it: then the hook's own
    action: str = ""  # the tool's own word: 'Edit', 'run_shell_command'
    writes: tuple[str, ...] = ()  # files that it would write, make, move (both names) or delete
    reads: tuple[str, ...] = ()  # files that it would read
    command: str = ""  # a shell command; '' where it is none
    failed: bool | None = False  # after: whether the action failed; None: unknown
    spent: int = 0  # tokens, where the tool reports them
    input: Record = {}  # the action's own arguments, for validators; never changed
    name: str = ""  # the tool's name of the event, which some answers must repeat
    again: bool = False  # stop: the agent was already sent back once; another time could loop for ever
    id: str = ""  # the tool's id of the action: two hooks may ask about the same one
    final: bool = False  # stop: the conversation ends, not only a turn; the agent cannot be sent back
    cleared: bool = (
        False  # start: the person cleared the conversation, so the one before it in the same process is over
    )
    starts_subagent: bool = False  # before: it starts a subagent of which the tool reports no start
    transcript: str = ""  # the file with the conversation, for tools whose events are incomplete


class Answer(NamedTuple):
    decision: str = ALLOW
    reason: str = ""  # for the agent and the person beside it; never empty with DENY and ASK
    context: str = ""  # text for the agent's context, at a start

    def with_words(self, words: str) -> Answer:
        """The answer with more words for the agent."""
        if not words:
            return self
        if self.decision != ALLOW:
            return self._replace(reason=f"{self.reason}\n{words}")
        return self._replace(context="\n".join(filter(None, (self.context, words))))


class Reply(NamedTuple):
    """The exact bytes that the tool sees."""

    out: bytes = b""
    err: bytes = b""
    code: int = 0

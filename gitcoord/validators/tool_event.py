"""What an agent tool says that it is about to do, and what it is answered: one form for every tool.

`guard/tools/` has a file for each tool, which turns that tool's own words into a ToolEvent and an Answer into the bytes that the
tool understands; `guard/judge.py` judges. Paths stay as the tool spells them: absolute, or relative to `cwd`.
"""

from __future__ import annotations

from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.codec import Record

# When a tool speaks. OTHER: nothing that gitcoord has an opinion about.
START, BEFORE, AFTER, STOP, SUBAGENT_START, SUBAGENT_STOP, OTHER = (
    "start", "before", "after", "stop", "subagent-start", "subagent-stop", "other",
)  # fmt: skip
PHASES = (START, BEFORE, AFTER, STOP, SUBAGENT_START, SUBAGENT_STOP, OTHER)

ALLOW, DENY, ASK = "allow", "deny", "ask"


class ToolEvent(NamedTuple):
    tool: str  # which agent tool: a name in guard/tools
    phase: str
    conversation: str = ""  # the tool's own id of it; '' where it tells none
    subagent: str = ""  # the id of the subagent that acts; '' for the agent itself
    cwd: str = ""  # absolute; '' where the tool does not tell: then the hook's own
    action: str = ""  # the tool's own word: 'Edit', 'run_shell_command'
    writes: tuple[str, ...] = ()  # files that it would write, make, move (both names) or delete
    reads: tuple[str, ...] = ()  # files that it would read
    command: str = ""  # a shell command; '' where it is none
    failed: bool | None = False  # after: the action did not succeed; None: the event does not tell
    spent: int = 0  # tokens, where the tool tells
    input: Record = {}  # the action's own arguments, for validators; never changed
    name: str = ""  # the tool's own word for the event: its answer may have to repeat it
    again: bool = False  # stop: the agent was already sent back once; to ask for more could go on for ever
    id: str = ""  # the tool's own word for this very action: two hooks may ask about one
    final: bool = False  # stop: the conversation is over, not only a turn of it; nothing can be asked any more
    transcript: str = ""  # the file in which the tool keeps the conversation, where its events leave things out


class Answer(NamedTuple):
    decision: str = ALLOW
    reason: str = ""  # for the agent and the person beside it; never empty with DENY and ASK
    context: str = ""  # text for the agent's context, at a start


class Reply(NamedTuple):
    """The exact bytes that the tool sees."""

    out: bytes = b""
    err: bytes = b""
    code: int = 0

"""Which subagent acts, where a tool lets it act in its parent's own conversation and names nobody.

The tool tells when the parent calls a subagent and when that one is over, and meanwhile the parent waits. So while one is under way,
and no other, what happens is its doing. Of two at once nobody can tell whose it is: then it counts as the agent's own, who may do
all that either of them may. Nothing here gives anybody a right: whoever is mistaken for a subagent may write what its parent may.
"""

from gitcoord.core.codec import VERSION, Malformed, check
from gitcoord.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.codec import Record

AGE = 3600  # seconds for which one is under way: its end may never be told
OPEN = 16  # how many at once are remembered; the oldest go
LONGEST = 12  # characters of an id: more than that do not become part of an agent's name
_MOST = 10**9
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_DIGITS = "0123456789"

_SHAPE = {"last": int, "open": [{"number": int, "agent": str, "at": int}]}


class Run(NamedTuple):
    """A subagent that was called and is not over."""

    number: int  # it grows within the conversation: two that run one after the other are two
    agent: str  # which agent was called, in letters that a name may have
    at: int = 0  # seconds since 1970


class Runs(NamedTuple):
    """Of one conversation. The newest come last."""

    last: int = 0  # the number that was given last
    open: tuple[Run, ...] = ()


EMPTY = Runs()


def note_of(tool: str, conversation: str) -> str:
    """What the note about a conversation's subagents is called."""
    return f"{tool} {conversation}"


def called(runs: Runs, agent: str, now: int) -> Runs:
    """The parent calls this agent, or a subagent does: as far as is known none can, and it would be one more at once."""
    number = runs.last + 1
    waiting = tuple(run for run in runs.open if _is_under_way(run, now))
    return Runs(number, (*waiting, Run(number, _word(agent), now))[-OPEN:])


def ended(runs: Runs, agent: str) -> Runs:
    """One of this agent is over: of several the oldest, since the tool does not tell which."""
    word = _word(agent)
    over = next((run for run in runs.open if run.agent == word), None)
    return runs._replace(open=tuple(run for run in runs.open if run is not over))


def acting(runs: Runs, now: int) -> str:
    """The id of the subagent that acts; '' for the agent itself."""
    waiting = [run for run in runs.open if _is_under_way(run, now)]
    return id_of(waiting[0]) if len(waiting) == 1 else ""


def id_of(run: Run) -> str:
    number = str(run.number)
    return run.agent[: LONGEST - len(number)].rstrip(_DIGITS) + number


def _is_under_way(run: Run, now: int) -> bool:
    return now - run.at <= AGE


def _word(agent: str) -> str:
    """What a name may have of this one. It ends in no digit: 'a1' with the number 2 would be 'a' with 12."""
    kept = "".join(letter for letter in agent.lower() if letter in _LETTERS)[:LONGEST]
    return kept.rstrip(_DIGITS) or "agent"


# --- as a record --------------------------------------------------------------------------------------------------------


def record_of(runs: Runs) -> "Record":
    return {"v": VERSION, "last": runs.last, "open": [run._asdict() for run in runs.open]}


def parse(record: object) -> Runs:
    """What is remembered; nothing at all where anything of it could not have been written here."""
    try:
        found = check(record, _SHAPE, "subagents")  # type: ignore[arg-type]
    except Malformed:
        return EMPTY
    runs = Runs(found["last"], tuple(Run(**run) for run in found["open"]))
    numbers = [0, *(run.number for run in runs.open)]
    sound = (
        numbers == sorted(set(numbers))
        and numbers[-1] <= runs.last < _MOST
        and all(run.agent == _word(run.agent) for run in runs.open)
    )
    return runs if sound else EMPTY

"""The project's own validators: the input of their commands, and the meaning of their exit codes."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.names import printable
from gitcoord.validators import BLOCK, PASS, UNKNOWN, WARN, Result, Validator
from gitcoord.validators.tool_event import ToolEvent

_LONGEST = 500
_OUTCOMES = {0: PASS, 1: BLOCK, 2: WARN}


def judge(validator: Validator, code: int | None, said: bytes) -> Result:
    """Exit code 0 passes, 1 blocks, 2 warns; any other, or None for a timeout, could not judge. The first line is the message."""
    line = next((row for row in said.decode("utf-8", "replace").split("\n") if row.strip()), "").strip()
    words = printable(line[:_LONGEST])
    outcome = _OUTCOMES.get(code, UNKNOWN) if code is not None else UNKNOWN
    if code is None:
        words = f"no answer within {validator.seconds} seconds"
    elif outcome == UNKNOWN:
        ended = f"its command ended with {code}" if code >= 0 else f"its command was ended by signal {-code}"
        words = f"{ended}: {words}" if words else ended
    return validator.result(outcome, words or ("it says no" if outcome == BLOCK else ""))


def question(validator: Validator, on: str, agent: str, more: Record) -> Record:
    """The input of the command, one line of JSON."""
    return {"v": 1, "validator": validator.name, "on": on, "agent": agent, **more}


def event_record(event: ToolEvent) -> Record:
    """The tool's event without its arguments, which may be of any form."""
    record = event._asdict()
    record.pop("input")
    return {**record, "writes": list(event.writes), "reads": list(event.reads)}

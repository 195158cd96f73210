"""The registry of event kinds: one file a kind, loaded when first met.

A kind's module has
    FIELDS                    the event's own keys and their types
    subject(event)            the first line of the commit, for people
    apply(state, event)       the changes to the tree, or Illegal
    refs(state, event)        claim refs: name -> True (points at this event's commit) or False (gone)
    AGENTS                    only where it differs: which of its fields name an agent
and, where a command makes it, `decide...(state, command, world) -> Decision | Refusal` (of claim: in `claims/take.py` and
`claims/renew.py`), and
    recall(state, events, actor)    the commands, likeliest first, that could stand behind a chain which this kind tells
                                    the command of (`server/retrace.py`): pairs of a `decide` and its command
"""

from __future__ import annotations

from gitcoord.base.codec import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# kind -> the package whose `events/` has it
KINDS = {
    "init": "ledger",
    "adopt": "ledger",
    "claim": "claims",
    "release": "claims",
    "expire": "claims",
    "takeover": "claims",
    "disown": "claims",
    "start": "sessions",
    "stop": "sessions",
    "kill": "sessions",
    "revive": "sessions",
    "halt": "sessions",
    "unhalt": "sessions",
    "repair": "ledger",
    "epoch": "ledger",
    "notice": "gates",
    "request": "gates",
    "answer": "gates",
    "role": "gates",
    "deploy": "deploy",
    "task": "tasks",
    "assign": "tasks",
    "lapse": "tasks",
    "revise": "tasks",
    "finish": "tasks",
    "journal": "journal",
    "handoff": "handoff",
    "accept": "handoff",
    "close": "handoff",
    "number": "effects",
    "once": "effects",
    "done": "effects",
    "forget": "effects",
    "ack": "gates",
}


def agent_fields(kind: str) -> tuple[str, ...]:
    """Which fields of this kind name an agent, besides the one who acted."""
    found: tuple[str, ...] = getattr(kind_module(kind), "AGENTS", ("target", "holder"))
    return found


def kind_module(kind: str) -> Any:
    """The module of a kind; an unknown one is refused, never skipped."""
    if kind not in KINDS:
        raise Malformed(f"events of kind {kind[:40]!r} are not known here", hints=("upgrade gitcoord on this side",))
    return __import__(f"gitcoord.{KINDS[kind]}.events.{kind}", fromlist=("FIELDS",))

"""The registry of event kinds: one file a kind, loaded when first met.

A kind's module has
    FIELDS                    the event's own keys and their types
    subject(event)            the first line of the commit, for people
    apply(state, event)       the changes to the tree, or Illegal
    refs(state, event)        claim refs: name -> True (points at this event's commit) or False (gone)
    AGENTS                    only where it differs: which of its fields name an agent
and, where a command makes it, `decide...(state, command, view) -> Decision | Refusal` (of claim: in `core/asking.py` and
`core/renewing.py`), and
    recall(state, events, actor)    the commands, likeliest first, that could stand behind a chain which this kind tells
                                    the command of (`core/retrace.py`): pairs of a `decide` and its command
"""

from __future__ import annotations

from gitcoord.core.codec import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KINDS = (
    "init", "adopt", "claim", "release", "expire", "takeover", "disown",
    "start", "stop", "kill", "revive", "halt", "unhalt", "repair", "epoch",
    "notice", "request", "answer", "role", "deploy",
    "task", "assign", "lapse", "revise", "finish",
    "journal", "handoff", "accept", "close",
    "number", "once", "done", "forget", "ack",
)  # fmt: skip


def agent_fields(kind: str) -> tuple[str, ...]:
    """Which fields of this kind name an agent, besides the one who acted."""
    found: tuple[str, ...] = getattr(kind_module(kind), "AGENTS", ("target", "holder"))
    return found


def kind_module(kind: str) -> Any:
    """The module of a kind; an unknown one is refused, never skipped."""
    if kind not in KINDS:
        raise Malformed(f"events of kind {kind[:40]!r} are not known here", hints=("upgrade gitcoord on this side",))
    return __import__(f"gitcoord.core.kinds.{kind}", fromlist=("FIELDS",))

"""`git coord rules`: what they say, that one has read them, who has."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import RULES, printable
from gitcoord.gates import written_rules as rules
from gitcoord.terminal.screen import ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.terminal.call import Call
    from gitcoord.terminal.parser import Values
    from gitcoord.terminal.screen import Row


def _version(words: list[str]) -> str:
    if len(words) > 1:
        raise UsageError("one version at a time")
    return words[0] if words else ""


def show(call: Call, values: Values, words: list[str]) -> int:
    result = rules.rules(call.ctx, _version(words))
    call.screen.answer(result)
    if not result["initialised"]:
        call.screen.note("note: gitcoord is not set up in this repository")
    elif not result["version"]:
        call.screen.note("note: this project has no written rules")
        call.screen.hint(f"write {RULES}, or take the starter: git coord init --policy")
    else:
        text = str(result["text"]).rstrip("\n")
        call.screen.say(*(printable(line.replace("\t", "    ").rstrip("\r")) for line in text.split("\n")))
        version = str(result["version"])[:12]
        needed = "; a push needs it" if result["required"] else ""
        call.screen.note(f"version {version}; say that you have read it: git coord rules ack {version}{needed}")
    return 0


def ack(call: Call, values: Values, words: list[str]) -> int:
    result = rules.acknowledge(call.ctx, call.actor(), _version(words))
    call.screen.answer(result)
    verb = "has read" if result["changed"] else "had read"
    call.screen.say(f"{result['agent']} {verb} the rules, version {str(result['version'])[:12]}")
    return 0


def who(call: Call, values: Values, words: list[str]) -> int:
    age = call.recent()
    result = {**rules.readers(call.ctx), **age}
    call.screen.answer(result)
    if not result["initialised"]:
        call.screen.note("note: gitcoord is not set up in this repository")
        return 0
    readers: list[Row] = result["readers"]  # type: ignore[assignment]
    rows = [
        [
            str(row["agent"]),
            str(row["version"])[:12],
            ago(row["at"]),
            "current" if row["current"] else "an older version",
        ]
        for row in readers
    ]
    call.screen.say(*call.screen.table(rows, ["cyan", "", "dim", "yellow"]))
    if not rows and not call.screen.json:
        call.screen.note("nobody has said so yet: git coord rules ack")
    return 0

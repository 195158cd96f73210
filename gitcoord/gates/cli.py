"""`git coord gate` and `git coord rules`: judge commits as the hooks would; the written rules and who has read them."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import RULES, check_agent, printable
from gitcoord.gates import written_rules as rules
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, ago


def gate(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.gates.cli_verdicts import report
    from gitcoord.gates.client_gate import Gate
    from gitcoord.ledger.sessions import Actor

    base, dots, head = words[0].partition("..")
    if not dots or not base or not head or head.startswith("."):
        raise UsageError(f"'{printable(words[0])}' is no range", hints=("git coord gate origin/main..HEAD",))
    if call.ctx.remote:
        from gitcoord.ledger.remote.fetch import fetch

        fetch(call.ctx)
    known = Actor(check_agent(str(values["agent"]))) if values.get("agent") else call.actor_or_none()
    actor = known or Actor("ci")
    ends = [commit_named(call, name) for name in (base, head)]
    outcome = Gate(call.ctx, lambda: actor).range(*ends, named=known is not None)
    rows = [
        {**verdict._asdict(), "held": list(verdict.held), "hints": list(verdict.hints)} for verdict in outcome.verdicts
    ]
    call.screen.answer({"allowed": not outcome.refused, "verdicts": rows}, ok=not outcome.refused)
    if call.screen.json:
        return 1 if outcome.refused else 0
    code = report(call.ctx, call.screen, "gate", actor, outcome)
    if not code:
        call.screen.say("no rule is broken by these commits")
    return code


def commit_named(call: Call, name: str) -> str:
    from gitcoord.git.commands.refs import rev_parse_commit

    found = rev_parse_commit(call.ctx.repo.env, name)
    if found.code:
        raise UsageError(f"'{printable(name)}' is no commit here", hints=("git fetch, if it is somewhere else",))
    return found.text


def show(call: Call, values: Values, words: list[str]) -> int:
    empty: Row = {"version": "", "text": "", "required": False}
    result = call.show(lambda: rules.rules(call.ctx, "".join(words)), None, **empty)
    if result is None:
        return 0
    if not result["version"]:
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
    result = rules.acknowledge(call.ctx, call.actor(), "".join(words))
    call.screen.answer(result)
    verb = "has read" if result["changed"] else "had read"
    call.screen.say(f"{result['agent']} {verb} the rules, version {str(result['version'])[:12]}")
    return 0


def who(call: Call, values: Values, words: list[str]) -> int:
    result = call.show(lambda: rules.readers(call.ctx), version="", readers=[])
    if result is None:
        return 0
    rows = [
        [
            str(row["agent"]),
            str(row["version"])[:12],
            ago(row["at"]),
            "current" if row["current"] else "an older version",
        ]
        for row in result["readers"]
    ]
    call.screen.say(*call.screen.table(rows, ["cyan", "", "dim", "yellow"]))
    if not rows and not call.screen.json:
        call.screen.note("nobody has said so yet: git coord rules ack")
    return 0

"""Commands of `git coord` by which one watches over others: kill, revive, halt, unhalt, sweep."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gitcoord.base.names import check_agent, printable
from gitcoord.cli.typer_call import Json, act
from gitcoord.sessions import service as sessions
from gitcoord.terminal.call import Call, text

Reason = Annotated[str, typer.Option("--reason", "-m", help="Why, for the record.")]
Agent = Annotated[str, typer.Argument(metavar="AGENT", show_default=False)]


def kill(agent: Agent, reason: Reason = "", json: Json = False) -> int:
    """Stop an agent for good: nothing of it gets through any more."""

    def body(call: Call) -> int:
        from gitcoord.sessions.typer_run import wake

        result = sessions.kill(call.ctx, call.actor(), check_agent(agent), text({"reason": reason}, "reason"))
        wake(call.ctx, agent)
        call.screen.answer(result)
        freed: list[Any] = result["freed"]  # type: ignore[assignment]
        call.screen.say(f"killed {agent}" if result["killed"] else f"{agent} was killed before")
        call.screen.say(*(f"freed {printable(claim['path'])}" for claim in freed))
        call.screen.hint(f"to allow the name again: git coord revive {agent}")
        return 0

    return act(body, json=json)


def revive(agent: Agent, json: Json = False) -> int:
    """Let a killed agent's name open sessions again."""

    def body(call: Call) -> int:
        result = sessions.revive(call.ctx, call.actor(), check_agent(agent))
        call.screen.answer(result)
        call.screen.say(f"'{agent}' may start again" if result["revived"] else f"'{agent}' was not killed")
        return 0

    return act(body, json=json)


def halt(reason: Reason = "", json: Json = False) -> int:
    """Grant nothing to anybody until unhalt. Releases still work; nobody expires."""

    def body(call: Call) -> int:
        result = sessions.halt(call.ctx, call.actor(), text({"reason": reason}, "reason"))
        call.screen.answer(result)
        call.screen.say("halted" if result["changed"] else "already halted")
        call.screen.hint("go on with: git coord unhalt")
        return 0

    return act(body, json=json)


def unhalt(json: Json = False) -> int:
    """Go on after a halt."""

    def body(call: Call) -> int:
        result = sessions.unhalt(call.ctx, call.actor())
        call.screen.answer(result)
        call.screen.say("going on" if result["changed"] else "nothing was halted")
        return 0

    return act(body, json=json)


def sweep(json: Json = False) -> int:
    """Expire the claims of agents that have been silent too long."""

    def body(call: Call) -> int:
        result = sessions.sweep(call.ctx, call.actor())
        call.screen.answer(result)
        expired: list[Any] = result["expired"]  # type: ignore[assignment]
        call.screen.say(*(f"expired {printable(c['path'])} of {c['agent']}" for c in expired))
        call.screen.say(*(f"{id} is without its owner now" for id in result["lapsed"]))  # type: ignore[attr-defined]
        if not expired and not result["lapsed"]:
            call.screen.say("nothing to expire")
        return 0

    return act(body, json=json)

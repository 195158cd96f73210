"""The verbs kill, revive, halt, unhalt and sweep."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import check_agent, printable
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.identity import NAMING_HINTS
from gitcoord.terminal.call import Call, text
from gitcoord.terminal.parser import Values


def _actor_who_stops(call: Call, action: str) -> Actor:
    """The actor. Where nobody is named the error asks for a person, since almost no agent's name would help."""
    try:
        return call.actor()
    except UsageError as error:
        if error.hints != NAMING_HINTS:
            raise
        raise UsageError(f"only a person at a terminal may {action}", hints=("ask one of them",)) from error


def kill(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.sessions.cli_run import wake
    from gitcoord.sessions.events.kill import Kill

    agent = check_agent(words[0])
    result = call.do(Kill(_actor_who_stops(call, f"kill '{agent}'"), agent, text(values, "reason")))
    wake(call.ctx, agent)
    call.screen.say(f"killed {agent}" if result["killed"] else f"{agent} was killed before")
    call.screen.say(*(f"freed {printable(claim['path'])}" for claim in result["freed"]))
    call.screen.hint(f"to allow the name again: git coord revive {agent}")
    return 0


def revive(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.sessions.events.revive import Revive

    agent = check_agent(words[0])
    result = call.do(Revive(call.actor(), agent))
    call.screen.say(f"'{agent}' may start again" if result["revived"] else f"'{agent}' was not killed")
    return 0


def halt(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.sessions.events.halt import Halt

    result = call.do(Halt(_actor_who_stops(call, "halt everything"), text(values, "reason")))
    call.screen.say("halted" if result["changed"] else "already halted")
    call.screen.hint("go on with: git coord unhalt")
    return 0


def unhalt(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.sessions.events.unhalt import Unhalt

    result = call.do(Unhalt(call.actor()))
    call.screen.say("going on" if result["changed"] else "nothing was halted")
    return 0


def sweep(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.claims.events.expire import Sweep

    result = call.do(Sweep(call.actor()))
    if call.ctx.may_finish_landings():
        from gitcoord.landing.cli_finish import finish_interrupted

        finish_interrupted(call)
    call.screen.say(*(f"expired {printable(claim['path'])} of {claim['agent']}" for claim in result["expired"]))
    call.screen.say(*(f"{id} is without its owner now" for id in result["lapsed"]))
    if not result["expired"] and not result["lapsed"]:
        call.screen.say("nothing to expire")
    return 0

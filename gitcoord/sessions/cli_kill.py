"""The verbs kill, revive, halt, unhalt and sweep."""

from __future__ import annotations

from gitcoord.base.names import check_agent, printable
from gitcoord.terminal.call import Call, text
from gitcoord.terminal.parser import Values


def kill(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.sessions.cli_run import wake
    from gitcoord.sessions.events.kill import Kill

    agent = check_agent(words[0])
    result = call.do(Kill(call.person(f"kill '{agent}'"), agent, text(values, "reason")))
    wake(call.ctx, agent)
    call.screen.say(f"killed {agent}" if result["killed"] else f"{agent} was killed before")
    call.screen.say(*(f"freed {printable(claim['path'])}" for claim in result["freed"]))
    call.screen.hint(f"to allow the name again: git coord revive {agent}")
    return 0


def revive(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.sessions.events.revive import Revive

    agent = check_agent(words[0])
    result = call.do(Revive(call.person(f"revive '{agent}'"), agent, text(values, "reason")))
    call.screen.say(f"'{agent}' may start again" if result["revived"] else f"'{agent}' was not killed")
    return 0


def halt(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.sessions.events.halt import Halt

    result = call.do(Halt(call.person("halt everything"), text(values, "reason")))
    call.screen.say("halted" if result["changed"] else "already halted")
    call.screen.hint("go on with: git coord unhalt")
    return 0


def unhalt(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.sessions.events.unhalt import Unhalt

    result = call.do(Unhalt(call.person("end a halt"), text(values, "reason")))
    call.screen.say("going on" if result["changed"] else "nothing was halted")
    return 0


def sweep(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.claims.events.expire import Sweep
    from gitcoord.views.overdue import alert_of_late_waits

    result = call.do(Sweep(call.actor()))
    if call.ctx.may_finish_landings():
        from gitcoord.landing.cli_finish import finish_interrupted

        finish_interrupted(call)
    alert_of_late_waits(call.ctx)
    call.screen.say(*(f"expired {printable(claim['path'])} of {claim['agent']}" for claim in result["expired"]))
    call.screen.say(*(f"{id} is without its owner now" for id in result["lapsed"]))
    if not result["expired"] and not result["lapsed"]:
        call.screen.say("nothing to expire")
    return 0

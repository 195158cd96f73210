"""`git coord start` and `git coord stop`."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import Unreachable
from gitcoord.base.names import printable
from gitcoord.claims.cli import add_makers, tell_released
from gitcoord.sessions.cli_brief import brief_lines, headlines
from gitcoord.sessions.cli_briefing import briefing
from gitcoord.sessions.unguarded import unguarded_lines
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values


def start(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.views.briefing import begin

    actor = call.actor()._replace(join=bool(values.get("join")))
    result: Record = begin(call.ctx, actor)
    offline = "offline" in result
    if call.ctx.may_finish_landings() and not offline:
        from gitcoord.landing.cli_finish import finish_interrupted

        if finish_interrupted(call):
            result = {**begin(call.ctx, actor), "opened": result["opened"]}  # without what has landed
    call.screen.note(*unguarded_lines(call.ctx, call.environ))
    brief = bool(values.get("brief"))
    call.screen.answer(_shortened(result) if brief else result, ok=not offline)
    lines, notes = (brief_lines(result), []) if brief else briefing(call, result)
    call.screen.say(*lines)
    seen: list[Record] = result["notes"] if call.screen.json else notes
    if seen and not offline:
        from gitcoord.journal.notes import record_seen

        record_seen(call.ctx, actor, seen)
    return Unreachable.exit_code if offline else 0


def _shortened(result: Record) -> Record:
    """The same result with headlines instead of whole texts."""
    rules = {**result["rules"], "text": "\n".join(headlines(result["rules"]["text"]))}
    memory = [{**row, "text": ""} for row in result["memory"]]
    return {**result, "rules": rules, "memory": memory}


def stop(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.gates.validation import before_stop
    from gitcoord.sessions import service as sessions

    actor = call.actor()
    for line in before_stop(call.ctx, actor):
        call.screen.note(f"warning: {line}")
    result: Record = sessions.stop(call.ctx, actor, keep=bool(values.get("keep")))
    call.screen.answer(result)
    call.screen.say(
        f"session of {result['agent']} ended" if result["stopped"] else f"{result['agent']} has no open session"
    )
    work = result.get("work", [])
    if not call.screen.json:
        add_makers(call, work)
    tell_released(call, result, work, actor.agent)
    call.screen.say(*(f"kept {printable(path)}" for path in result["kept"]))
    call.screen.say(*(f"{printable(path)} waits to be accepted" for path in result["handed_over"]))
    return 0

"""`git coord start` and `git coord stop`: an agent's first and last words."""

from gitcoord.app import sessions
from gitcoord.names import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.hot.options import Values
    from gitcoord.hot.render import Row
    from gitcoord.hot.verbs import Call


def start(call: "Call", values: "Values", words: list[str]) -> int:
    result = sessions.start(call.ctx, call.actor()._replace(join=bool(values.get("join"))))
    call.screen.answer(result)
    verb = "opened" if result["opened"] else "goes on"
    call.screen.say(f"session {result['session']} of {result['agent']} {verb}")
    claims: list[Row] = result["claims"]  # type: ignore[assignment]
    if claims:
        call.screen.say("you hold:", *("  " + line for line in call.screen.claim_lines(claims)))
    for row in result.get("lost", ()):  # type: ignore[attr-defined]
        path = row["path"]
        call.screen.say(f"you lost {printable(path)} to {row['by']}; if it is free: git claim {call.typed(path)}")
    return 0


def stop(call: "Call", values: "Values", words: list[str]) -> int:
    result = sessions.stop(call.ctx, call.actor(), keep=bool(values.get("keep")))
    call.screen.answer(result)
    call.screen.say(
        f"session of {result['agent']} ended" if result["stopped"] else f"{result['agent']} has no open session"
    )
    for verb in ("released", "kept"):
        call.screen.say(*(f"{verb} {printable(path)}" for path in result[verb]))  # type: ignore[attr-defined]
    return 0

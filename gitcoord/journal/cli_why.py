"""`git coord why`: the story of a path, in words."""

from __future__ import annotations

from gitcoord.base.names import shown
from gitcoord.claims import pathspec as paths
from gitcoord.claims.cli_views import waiting_lines
from gitcoord.journal.why import why as app_why
from gitcoord.journal.why import why_numbered
from gitcoord.terminal.call import Call, number
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, ago

_USUAL = 50


def why(call: Call, values: Values, words: list[str]) -> int:
    """Oldest first, so that the last events and the holders are at the end."""
    item = paths.one(call.ctx.repo, words[0])
    most = number(values, "number", _USUAL)
    path = shown(item.name, item.space)
    empty: Row = {"path": path, "story": [], "left_out": 0, "claims": []}

    def told() -> Row:
        result = {**app_why(call.ctx, call.actor_or_none(), item, most), "path": path}
        return result if result["story"] else why_numbered(call.ctx, call.actor_or_none(), words[0], most) or result

    result = call.show(told, **empty)
    if result is None:
        return 0
    if result["left_out"] and not call.screen.json:
        call.screen.note(f"({result['left_out']} older: -n 0 tells all)")
    story = result["story"]
    rows = [[str(row["seq"]), ago(row["at"]), str(row["words"])] for row in story]
    call.screen.say(*call.screen.table(rows, ["dim", "yellow", ""]))
    claims = result["claims"]
    if claims or result.get("server_claims") or result.get("waits"):
        lines = [
            *call.screen.claim_lines(claims),
            *call.screen.server_lines(result),
            *waiting_lines(result, call.screen.width()),
        ]
        call.screen.say("now:", *("  " + line for line in lines))
    elif story:
        call.screen.say("now nobody holds it")
    else:
        call.screen.say("nothing is on record about it")
        known = call.ctx.snapshot is not None and words[0] in call.ctx.snapshot.state.names("agents")
        if known and not call.screen.json:
            call.screen.hint(f"what that agent did: git coord log --agent {words[0]}")
        elif item.space == "path" and not call.screen.json:
            from gitcoord.claims.cli_new import absent_lines

            call.screen.note(*absent_lines(call, item.name))
    return 0

"""The marks in `git coord setup`: which paths could be marked, and what is protected at the end."""

from __future__ import annotations

from gitcoord.base.names import printable
from gitcoord.cli.setup_ledger import is_asked, said_yes
from gitcoord.gates.cli_policy import suggestion_lines
from gitcoord.policy.suggest import Suggestion
from gitcoord.policy.survey import Protection, suggestions
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values

_NAMED = 4


def chosen_marks(call: Call, values: Values, *, new: bool, dry_run: bool) -> list[Suggestion]:
    """The paths that will be marked. A person is asked, once, where the policy is `new`; a script says --suggest."""
    rows = suggestions(call.ctx)
    if not rows or not (new or values.get("suggest")):
        return []
    call.screen.say("these paths could be marked, so that they need a claim before they change:")
    call.screen.say(*(f"  {line}" for line in suggestion_lines(call, rows)))
    if values.get("suggest"):
        return rows
    if dry_run or not is_asked(values):
        call.screen.hint("mark them: git coord setup --suggest")
        return []
    return rows if said_yes("mark them in .gitattributes?") else []


def tell_protection(call: Call, protection: Protection) -> None:
    """Two lines: what is protected now, and what is not."""
    files, others = len(protection.marked), protection.others
    names = ", ".join(protection.marked[:_NAMED]) + (", ..." if files > _NAMED else "")
    count = f"{files} file{'' if files == 1 else 's'}"
    call.screen.say(f"protected: {count} may change only under a claim{f' ({printable(names)})' if names else ''}")
    call.screen.say(
        f"not protected: {others} other file{'' if others == 1 else 's'}, unless claimed; what to mark: git coord policy suggest"
    )

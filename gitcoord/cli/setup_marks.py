"""The marks in `git coord setup`: which paths could be marked, and what is protected at the end."""

from __future__ import annotations

from gitcoord.base.names import printable
from gitcoord.cli.setup_ledger import is_asked, said_yes
from gitcoord.gates.cli_policy import suggestion_lines
from gitcoord.git.files import read_file, write_file
from gitcoord.ledger.context import Context
from gitcoord.policy.suggest import LANDING, Suggestion
from gitcoord.policy.survey import ATTRIBUTES, Protection, suggestions
from gitcoord.policy.uncommitted import commit_command, marked_now, uncommitted
from gitcoord.terminal.call import Call, at_terminal
from gitcoord.terminal.parser import Values

_NAMED = 4
_DECLINED = "declined-marks"


def _count(files: list[str]) -> str:
    return f"{len(files)} file{'' if len(files) == 1 else 's'}"


def chosen_marks(call: Call, values: Values, *, new: bool, dry_run: bool) -> list[Suggestion]:
    """The paths that will be marked. A person is asked about those that it has not declined before; a script says --suggest, and
    is told of them while the policy is `new`, that is not committed."""
    asked = is_asked(values) and not dry_run and not values.get("suggest")
    rows = suggestions(call.ctx) if new or asked or values.get("suggest") else []
    declined = _declined(call.ctx) if asked else []
    rows = [row for row in rows if row.line not in declined]
    if not rows:
        return []
    call.screen.say("these paths could be marked, so that they need a claim before they change:")
    call.screen.say(*(f"  {line}" for line in suggestion_lines(call, rows)))
    if any(row.mark == LANDING for row in rows):
        call.screen.note(
            "note: =landing asks for the claim when the path lands (git coord land), not while it is edited"
        )
    if values.get("suggest"):
        return rows
    if not asked:
        call.screen.hint("mark them: git coord setup --suggest")
        return []
    if said_yes("mark them in .gitattributes?"):
        return rows
    write_file(
        call.ctx.scratch(_DECLINED), "".join(f"{line}\n" for line in [*declined, *(row.line for row in rows)]).encode()
    )
    call.screen.hint("they are not asked about again; to mark them later: git coord setup --suggest")
    return []


def _declined(ctx: Context) -> list[str]:
    """The lines that a person has declined in this clone."""
    return read_file(f"{ctx.repo.scratch}/{_DECLINED}").decode("utf-8", "replace").splitlines()


def tell_protection(call: Call, protection: Protection) -> None:
    """Two lines: what is protected, now and once the marks are committed, and what is not."""
    files, others = len(protection.marked), protection.others
    names = ", ".join(protection.marked[:_NAMED]) + (", ..." if files > _NAMED else "")
    now = marked_now(call.ctx, protection.marked)
    when = "protected"
    if len(now) < files:
        when = f"protected now: {_count(now)}; once {ATTRIBUTES} is committed"
    named = f" ({printable(names)})" if names else ""
    call.screen.say(f"{when}: {_count(protection.marked)} may change only under a claim{named}")
    call.screen.say(
        f"not protected: {others} other file{'' if others == 1 else 's'}, unless claimed; what to mark: git coord policy suggest"
    )


def tell_uncommitted(call: Call, names: list[str], remote: str) -> None:
    """Files of gitcoord that are not committed, whoever wrote them and when: nobody else has them before."""
    found = uncommitted(call.ctx, names)
    if found:
        call.screen.note(f"not committed yet: {printable(', '.join(found))}")
        command = commit_command(call.ctx, found, remote)
        # Once the policy is on trunk, only a person changes it.
        alone = command.startswith("git claim ") and not at_terminal()
        call.screen.hint(f"look at them, {'and a person, at a terminal, runs' if alone else 'then'}: {command}")

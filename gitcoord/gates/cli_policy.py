"""`git coord policy` and `git coord role`: the project's policy, and the role of each agent."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import check_agent, check_word, printable
from gitcoord.gates import explain as app
from gitcoord.gates.cli import commit_named
from gitcoord.policy.suggest import Suggestion
from gitcoord.startup.annotations import Any
from gitcoord.terminal.call import Call, has_ledger
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row


def explain(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.claims import pathspec as paths

    if _nothing(call, paths=[]):
        return 0
    names = [item.name for item in paths.items(call.ctx.repo, words)]
    rows = app.explain(call.ctx, names, _whose(call, values))
    call.screen.answer({"initialised": True, "paths": rows, **_overlay(call)})
    for row in rows:
        call.screen.say(call.screen.paint(printable(str(row["path"])), "bold"), *_explained(row))
    return 0


def check(call: Call, values: Values, words: list[str]) -> int:
    if _nothing(call, problems=[]):
        return 0
    commit = _whose(call, values)
    problems, judged = app.check_policy(call.ctx, commit), app.judged(call.ctx, commit)
    call.screen.answer({"initialised": True, "problems": problems, **judged, **_overlay(call)}, ok=not problems)
    lines = [f"{printable(problem['where'])}: {printable(problem['what'])}" for problem in problems]
    where = f"the policy of commit {str(judged['commit'])[:12]}" if judged["commit"] else "the policy, which is empty,"
    call.screen.say(*(lines or [f"{where} is fine"]))
    edited: list[str] = judged["edited"]  # type: ignore[assignment]
    if edited and not call.screen.json:
        call.screen.note(f"note: judged as committed; different in this work tree: {printable(', '.join(edited))}")
    return 1 if problems else 0


_BY_HAND = "to mark one by hand, a line in .gitattributes, such as: src/app.py gitcoord-claim"


def suggest(call: Call, values: Values, words: list[str]) -> int:
    """Suggest paths to mark. It needs no ledger, so that it works before gitcoord is set up."""
    from gitcoord.policy.survey import suggestions

    if not call.ctx.repo.worktree:
        raise UsageError("there is no work tree here", hints=("run it in a work tree",))
    rows = suggestions(call.ctx)
    call.screen.answer({"suggestions": [suggestion_row(row) for row in rows]})
    if not rows:
        call.screen.say(
            "nothing to suggest: no unmarked file is a migration, lock file, CI, rules or configuration, or changed in turn by several authors"
        )
        call.screen.hint(_BY_HAND)
        return 0
    call.screen.say(*suggestion_lines(call, rows))
    call.screen.hint("add these lines to .gitattributes: git coord setup --suggest")
    return 0


def suggestion_row(row: Suggestion) -> Row:
    return {
        "pattern": row.pattern,
        "mark": row.mark,
        "kind": row.kind,
        "why": row.why,
        "files": row.files,
        "line": row.line,
    }


def suggestion_lines(call: Call, rows: list[Suggestion]) -> list[str]:
    """Lines as .gitattributes takes them: the reason for each stands above it, since git knows no comment behind a pattern."""
    lines = []
    for row in rows:
        count = f", {row.files} files" if row.files > 1 else ""
        lines += [call.screen.paint(f"# {row.kind}{count}: {row.why}", "dim"), call.screen.paint(row.line, "bold")]
    return lines


def role(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.gates.events.role import SetRole, decide
    from gitcoord.ledger.transaction import transact

    target, name, clear = check_agent(words[0]), "".join(words[1:]), bool(values.get("clear"))
    if name or clear:
        given = "" if clear else check_word(name, "role", 64)
        result = transact(call.ctx, decide, SetRole(call.actor(), target, given))
    elif _nothing(call, agent=target, role=""):
        return 0
    else:
        result = {"initialised": True, "agent": target, "role": app.role_now(call.ctx, target)}
    call.screen.answer(result)
    call.screen.say(f"{target}: {printable(str(result['role'])) or 'no role'}")
    others = app.other_roles(call.ctx, name) if name and not clear else []
    if others:
        there = printable(", ".join(others))
        call.screen.note(
            f"warning: .gitcoord/config has no role '{printable(name)}' (there are: {there}), so it limits nothing"
        )
    return 0


def _nothing(call: Call, **empty: object) -> bool:
    """Answer with nothing, and without an error, where gitcoord is not set up."""
    if has_ledger(call.ctx):
        return False
    call.screen.answer({"initialised": False, **empty})
    call.note_not_set_up()
    return True


def _whose(call: Call, values: Values) -> str:
    """The commit or tree whose policy the options name; '' for trunk's."""
    from gitcoord.policy.reader import staged_policy

    commit, index, worktree = str(values.get("commit", "")), bool(values.get("index")), bool(values.get("worktree"))
    if bool(commit) + index + worktree > 1:
        raise UsageError("one of --commit, --index and --worktree at a time")
    if not index and not worktree:
        return commit_named(call, commit) if commit else ""
    if not call.ctx.repo.worktree:
        raise UsageError("there is no work tree here", hints=("name a commit: --commit",))
    return staged_policy(call.ctx, worktree=worktree)


def _overlay(call: Call) -> dict[str, str]:
    """Print that a private overlay is in force, and its file."""
    file = app.private_rules(call.ctx)
    if not file:
        return {}
    call.screen.note(f"note: a private overlay is in force here: {printable(file)}")
    return {"overlay": file}


def _explained(row: dict[str, Any]) -> list[str]:
    lines = [] if row["rules"] else ["  no rule: anybody may change it while nobody else holds it"]
    for rule in row["rules"]:
        where = ", ".join(filter(None, [_where(rule), rule["stage"]]))
        lines.append(f"  {rule['attribute']}={printable(rule['value'])}  ({where})")
    return lines + [f"  {rule['attribute']} is lifted  ({_where(rule) or 'by a macro'})" for rule in row["lifted"]]


def _where(rule: dict[str, Any]) -> str:
    return printable(rule["file"]) + (f":{rule['line']}" if rule["line"] else "")

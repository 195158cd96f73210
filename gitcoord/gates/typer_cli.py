"""The commands around the gates: gate, policy, approvals, approve, deny, role."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gitcoord.base.errors import UsageError
from gitcoord.base.names import check_agent, check_word, printable
from gitcoord.cli.typer_call import Json, act, not_set_up
from gitcoord.gates.model import Approval
from gitcoord.terminal.call import Call, is_set_up

policy = typer.Typer(help="What the project's policy says, and whether it makes sense.", rich_markup_mode=None)
Commit = Annotated[
    str, typer.Option("--commit", metavar="COMMIT", help="The policy of this commit; the sync branch's unless given.")
]

Index = Annotated[bool, typer.Option("--index", help="The policy as it is staged.")]
Worktree = Annotated[bool, typer.Option("--worktree", help="The policy as it lies in the work tree.")]


def gate(
    span: Annotated[str, typer.Argument(metavar="BASE..HEAD", help="The commits to judge, by the policy of BASE.")],
    agent: Annotated[str, typer.Option("--agent", help="Who brings them; the commits' own trailers count too.")] = "",
    json: Json = False,
) -> int:
    """Judge a range of commits as the hooks would: for CI."""

    def body(call: Call) -> int:
        from gitcoord.gates.client_gate import Gate
        from gitcoord.gates.hook import tell
        from gitcoord.ledger.sessions import Actor

        base, dots, head = span.partition("..")
        if not dots or not base or not head or head.startswith("."):
            raise UsageError(f"'{printable(span)}' is no range", hints=("git coord gate origin/main..HEAD",))
        if call.ctx.remote:
            from gitcoord.ledger.remote.fetch import look

            look(call.ctx)
        known = Actor(check_agent(agent)) if agent else call.onlooker()
        actor = known or Actor("ci")
        ends = [_commit(call, name) for name in (base, head)]
        outcome = Gate(call.ctx, lambda: actor).range(*ends, named=known is not None)
        rows = [
            {**verdict._asdict(), "held": list(verdict.held), "hints": list(verdict.hints)}
            for verdict in outcome.verdicts
        ]
        call.screen.answer({"allowed": not outcome.refused, "verdicts": rows}, ok=not outcome.refused)
        if json:
            return 1 if outcome.refused else 0
        code = tell(call.ctx, call.screen, "gate", actor, outcome)
        if not code:
            call.screen.say("nothing stands against these commits")
        return code

    return act(body, json=json)


def _nothing(call: Call, **empty: object) -> bool:
    """Whoever looks before gitcoord is set up sees nothing, and that is no error."""
    if is_set_up(call.ctx):
        return False
    call.screen.answer({"initialised": False, **empty})
    return not_set_up(call, {"initialised": False})


def _whose(call: Call, commit: str, index: bool, worktree: bool) -> str:
    """The commit or tree whose policy is meant; '' for the sync branch's."""
    from gitcoord.policy.reader import staged_policy

    if bool(commit) + index + worktree > 1:
        raise UsageError("one of --commit, --index and --worktree at a time")
    if (index or worktree) and not call.ctx.repo.worktree:
        raise UsageError("there is no work tree here", hints=("name a commit: --commit",))
    return staged_policy(call.ctx, worktree=worktree) if index or worktree else _commit(call, commit) if commit else ""


def _commit(call: Call, name: str) -> str:
    from gitcoord.git.process import run

    argv = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    code, out, _ = run(argv, call.ctx.repo.env)
    if code:
        raise UsageError(f"'{printable(name)}' is no commit here", hints=("git fetch, if it is somewhere else",))
    return out.decode().strip()


@policy.command()
def explain(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...")],
    commit: Commit = "",
    index: Index = False,
    worktree: Worktree = False,
    json: Json = False,
) -> int:
    """What decides for a path, and where that is written."""

    def body(call: Call) -> int:
        from gitcoord.claims import pathspec as spelling
        from gitcoord.gates.explain import explain as app_explain

        if _nothing(call, paths=[]):
            return 0
        items = spelling.items(call.ctx.repo, paths)
        rows = app_explain(
            call.ctx, call.onlooker(), [item.name for item in items], _whose(call, commit, index, worktree)
        )
        call.screen.answer({"initialised": True, "paths": rows, **_overlay(call)})
        for row in rows:
            call.screen.say(call.screen.paint(printable(str(row["path"])), "bold"), *_explained(row))
        return 0

    return act(body, json=json, writing=False)


def _overlay(call: Call) -> dict[str, str]:
    """That private rules of this machine count too, and where they lie."""
    from gitcoord.gates.explain import private_rules

    file = private_rules(call.ctx)
    if not file:
        return {}
    call.screen.note(f"note: a private overlay is in force here: {printable(file)}")
    return {"overlay": file}


def _explained(row: dict[str, Any]) -> list[str]:
    lines = [] if row["rules"] else ["  no rule: anybody may change it while nobody else holds it"]
    for rule in row["rules"]:
        lines.append(
            f"  {rule['attribute']}={printable(rule['value'])}  ({', '.join(filter(None, [_where(rule), rule['stage']]))})"
        )
    return lines + [f"  {rule['attribute']} is lifted  ({_where(rule) or 'by a macro'})" for rule in row["lifted"]]


def _where(rule: dict[str, Any]) -> str:
    return printable(rule["file"]) + (f":{rule['line']}" if rule["line"] else "")


@policy.command()
def check(commit: Commit = "", index: Index = False, worktree: Worktree = False, json: Json = False) -> int:
    """Find rules that match nothing, rules that shadow each other, and settings that are not known."""

    def body(call: Call) -> int:
        from gitcoord.gates.explain import check_policy

        if _nothing(call, problems=[]):
            return 0
        problems = check_policy(call.ctx, _whose(call, commit, index, worktree))
        call.screen.answer({"initialised": True, "problems": problems, **_overlay(call)}, ok=not problems)
        lines = [f"{printable(problem['where'])}: {printable(problem['what'])}" for problem in problems]
        call.screen.say(*(lines or ["the policy is fine"]))
        return 1 if problems else 0

    return act(body, json=json, writing=False)


def approvals(
    all: Annotated[bool, typer.Option("--all", "-a", help="Also those that were answered.")] = False,
    diff: Annotated[bool, typer.Option("--diff", "-d", help="Show what would change.")] = False,
    json: Json = False,
) -> int:
    """What waits for a person's approval."""

    def body(call: Call) -> int:
        from gitcoord.gates.approvals import listing
        from gitcoord.terminal.screen import ago

        if _nothing(call, approvals=[]):
            return 0
        rows = listing(call.ctx, all=all)
        told = [row._asdict() for row in rows]
        call.screen.answer({"initialised": True, "approvals": told})
        for row in rows:
            state = "" if row.state == "open" else f"  {row.state} by {row.by}"
            content = row.blob[:12] or "deleted"
            call.screen.say(
                f"{row.id}  {printable(row.path)} ({content})  asked by {row.agent} {ago(row.at)}  [{row.rule}]{state}"
            )
            if diff and not json:
                call.screen.say(*_difference(call, row))
        if not rows and not json:
            call.screen.note("nothing waits for approval")
        elif not json:
            call.screen.hint("git coord approve <id>, or git coord deny <id> --reason '...'; --diff shows the change")
        return 0

    return act(body, json=json, writing=False)


def _difference(call: Call, row: Approval) -> list[str]:
    """The change that is asked for, against the sync branch."""
    from gitcoord.gates.approvals import difference

    return ["  " + printable(line) for line in difference(call.ctx, row).split("\n")]


def approve(
    id: Annotated[str, typer.Argument(metavar="ID")],
    blob: Annotated[
        str, typer.Option("--blob", help="The content you were shown; asked for again if it differs.")
    ] = "",
    reason: Annotated[str, typer.Option("--reason", help="Why, for the record.")] = "",
    json: Json = False,
) -> int:
    """Approve exactly the content that was asked for."""
    return _answer(id, blob, reason, json, approved=True)


def deny(
    id: Annotated[str, typer.Argument(metavar="ID")],
    reason: Annotated[str, typer.Option("--reason", help="Why, for the record.")] = "",
    json: Json = False,
) -> int:
    """Deny what was asked for."""
    return _answer(id, "", reason, json, approved=False)


def _answer(id: str, blob: str, reason: str, json: bool, *, approved: bool) -> int:
    def body(call: Call) -> int:
        from gitcoord.gates.approvals import answer, listing

        record = next((row for row in listing(call.ctx, all=True) if row.id == id), None)
        shown = str(record.blob) if record is not None and (not blob or str(record.blob).startswith(blob)) else blob
        result = answer(call.ctx, call.actor(), id, shown, approved=approved, reason=reason)
        call.screen.answer(result)
        call.screen.say(f"{result['state']} {printable(str(result['path']))}")
        return 0

    return act(body, json=json)


def role(
    agent: Annotated[str, typer.Argument(metavar="AGENT")],
    name: Annotated[str, typer.Argument(metavar="ROLE", show_default=False)] = "",
    clear: Annotated[bool, typer.Option("--clear", help="Take the role away.")] = False,
    json: Json = False,
) -> int:
    """Show or give an agent's role: what it is here to do, and so where it may write."""

    def body(call: Call) -> int:
        from gitcoord.gates.approvals import set_role
        from gitcoord.gates.explain import other_roles, role_now

        target = check_agent(agent)
        if not (name or clear) and _nothing(call, agent=target, role=""):
            return 0
        if name or clear:
            result = set_role(call.ctx, call.actor(), target, "" if clear else check_word(name, "role", 64))
        else:
            result = {"initialised": True, "agent": target, "role": role_now(call.ctx, target)}
        call.screen.answer(result)
        call.screen.say(f"{target}: {printable(str(result['role'])) or 'no role'}")
        others = other_roles(call.ctx, name) if name and not clear else []
        if others:
            there = printable(", ".join(others))
            call.screen.note(
                f"warning: .gitcoord/config has no role '{printable(name)}' (there are: {there}), so it limits nothing"
            )
        return 0

    return act(body, json=json, writing=bool(name or clear))

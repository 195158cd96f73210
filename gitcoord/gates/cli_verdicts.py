"""Verdicts in words, for git's hooks, landings and `git coord gate`."""

from __future__ import annotations

from gitcoord.base.names import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.errors import UsageError
    from gitcoord.gates.gate import Verdicts
    from gitcoord.gates.judge import Verdict
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.sessions import Actor
    from gitcoord.terminal.screen import Screen

WHAT = {
    "pre-commit": "this commit",
    "pre-merge-commit": "this merge",
    "pre-push": "this push",
    "reference-transaction": "this change of a branch",
    "land": "this landing",
}
SHOWN = 20
# Rules whose answer does not depend on who acts.
ANYBODYS = ("killed", "halted", "ledger", "lineage", "stale-deploy", "private")


def report(ctx: Context, screen: Screen, hook: str, actor: Actor, outcome: Verdicts, *, records: bool = True) -> int:
    """Print the verdicts, record notices and requests, return the exit code. `records`: False where nothing is done."""
    refused, noted = outcome.refused, outcome.noted
    for verdict in noted:
        if verdict.stage == "warn":
            screen.note(f"warning: {_line(verdict)}")
    if records and (noted or any(verdict.asks for verdict in refused)):
        from gitcoord.gates.approvals import leave_records

        leave_records(ctx, actor, hook, refused, noted)
    if not refused:
        return 0
    if records:
        from gitcoord.ledger.refusal_counts import count_verdicts

        count_verdicts(ctx, actor.agent, refused)
    screen.note(screen.paint(f"error: {WHAT.get(hook, 'this range of commits')} is refused", "red", 2))
    for verdict in refused[:SHOWN]:
        screen.note("  " + _line(verdict), *("    " + line for line in screen.claim_lines(list(verdict.held))))
    if len(refused) > SHOWN:
        screen.note(f"  and {len(refused) - SHOWN} more")
    screen.note(*outcome.policy.reasons(verdict.rule for verdict in refused))
    screen.hint(*_hints(refused, by_setting=actor.by_setting))
    return 1


def _hints(refused: list[Verdict], *, by_setting: bool) -> list[str]:
    """The next useful commands; one `git claim` for all unclaimed paths.

    `by_setting`: the actor is the person of `gitcoord.person`, who claims at a terminal only.
    """
    from gitcoord.gates.judge import path_word

    paths = [path_word(v.path) for v in refused if v.rule == "unclaimed"]
    hints = [f"{'at a terminal: ' * by_setting}git claim {' '.join(paths[:10])}"] if paths else []
    others = [
        f"at a terminal, {hint}" if by_setting and v.rule == "held" and "git claim" in hint else hint
        for v in refused
        if v.rule != "unclaimed"
        for hint in v.hints
    ]
    return [*hints, *list(dict.fromkeys(others))[:4]]


def _line(verdict: Verdict) -> str:
    where = f"{printable(verdict.path)}: " if verdict.path else ""
    commit = f" (in {verdict.commit[:12]})" if verdict.commit and verdict.commit[:12] not in verdict.message else ""
    return f"{where}{verdict.message}{commit} [{verdict.rule}]"


def refuse_nameless(screen: Screen, hook: str, outcome: Verdicts, problem: UsageError, person: str) -> int:
    """Print that an action that some actor may do is refused, since the actor is unknown; gives the exit code. `person` is the
    one of `gitcoord.person`, who needs a terminal for this action."""
    held = [v for v in outcome.refused if v.rule == "held" and any(claim["agent"] != person for claim in v.held)]
    others = [verdict for verdict in outcome.refused if verdict.rule != "held"]
    for verdict in held[:SHOWN]:
        screen.note(f"error: {_line(verdict)}", *("  " + line for line in screen.claim_lines(list(verdict.held))))
    if person:
        screen.note(f"error: {WHAT[hook]} is refused: it brings changes that {person} may push only at a terminal")
    else:
        verb = "could not be judged" if others else "is refused"
        screen.note(f"error: {WHAT[hook]} {verb}: {problem.message}")
    screen.note(*("  " + _line(verdict) for verdict in others[:SHOWN]))
    screen.hint(*dict.fromkeys(map(_ask_holder, held[:4])))
    screen.hint(*dict.fromkeys(hint for verdict in others if verdict.rule in ANYBODYS for hint in verdict.hints[:1]))
    if person:
        screen.hint(f"{person} pushes at a terminal: git push")
    elif hook == "pre-push":
        screen.hint("a person pushes at a terminal: git push", *_naming(problem))
    elif any(verdict.rule not in ANYBODYS for verdict in others):
        screen.hint(*_persons_way(others), *_naming(problem))
    else:
        screen.hint("is it yours? then do it under your own name, or at a terminal")
    return 1


def _persons_way(refused: list[Verdict]) -> tuple[str, ...]:
    """The way of a person whose editor has no terminal. After the claim, the editor may commit what was only unclaimed."""
    from gitcoord.gates.judge import path_word

    paths = [path_word(verdict.path) for verdict in refused if verdict.rule == "unclaimed"]
    if not paths:
        return ("a person does it at a terminal",)
    return (
        f"a person does it at a terminal, after: git claim {' '.join(paths[:10])}",
        "git coord setup, run there, can let that person's editor commit what is claimed",
    )


def _naming(problem: UsageError) -> tuple[str, ...]:
    """The hints for an agent: all of them in an agent's tool, else the one that helps at once."""
    from gitcoord.sessions.identity import SilentTool

    if isinstance(problem, SilentTool):
        return problem.hints
    return ("an agent says its name before the command: GITCOORD_AGENT=<name>",)


def _ask_holder(verdict: Verdict) -> str:
    """The hint for a held path where nobody is named: only a named actor can wait in the queue."""
    from gitcoord.gates.judge import path_word

    holders = ", ".join(dict.fromkeys(str(claim["agent"]) for claim in verdict.held))
    return f"ask {holders}, or wait until it is free: git claim show {path_word(verdict.path)}"

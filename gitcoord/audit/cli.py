"""`git coord doctor` and `git coord audit`."""

from __future__ import annotations

import os

from gitcoord.audit.cli_say import MARKS, say_checks
from gitcoord.audit.model import BAD, OK, SEVERITIES, UNKNOWN, Check, at_least, exit_code
from gitcoord.base.errors import UsageError
from gitcoord.base.names import printable
from gitcoord.terminal.call import Call, is_set_up, text
from gitcoord.terminal.parser import Values


def doctor(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.audit.doctor import examine

    checks = examine(call.ctx, call.actor_or_none(), os.environ, is_set_up(call.ctx))
    wrong = [check for check in checks if check.state == BAD]
    if values.get("fix") and wrong:
        return _fix(call, checks, wrong)
    code = exit_code(checks)
    call.screen.answer({"checks": [check.to_json() for check in checks]}, ok=not code)
    say_checks(call, checks)
    if not call.screen.json:
        call.screen.say(_verdict(checks, "gitcoord works here"))
    return code


def _fix(call: Call, checks: list[Check], wrong: list[Check]) -> int:
    """`setup` puts in place what belongs to gitcoord; it shows each step, and asks at a terminal. Then all checks are made again."""
    from gitcoord.audit.doctor import examine
    from gitcoord.cli.setup import setup
    from gitcoord.world.open import open_repository

    fixable = [check for check in wrong if check.help.startswith("git coord setup")]
    say_checks(call, [check for check in checks if check.state != OK])
    if not fixable:
        raise UsageError("nothing of this can be put right without you", hints=tuple(check.help for check in wrong[:3]))
    code = setup(call, {}, [])
    after = open_repository(call.environ, writing=False)  # with the settings that were just written
    return code or exit_code(examine(after, call.actor_or_none(), os.environ, is_set_up(after)))


def audit(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.audit.items import audit as look

    floor = text(values, "fail-on") or "high"
    if floor not in SEVERITIES:
        raise UsageError(f"'{floor}' is not a severity", hints=(", ".join(SEVERITIES),))
    checks = look(call.ctx, call.actor_or_none(), os.environ, is_set_up(call.ctx))
    code = exit_code(at_least(checks, floor))
    call.screen.answer({"fail_on": floor, "checks": [check.to_json() for check in checks]}, ok=not code)
    if call.screen.json:
        return code
    if values.get("markdown"):
        call.screen.say(*_markdown(checks, floor))
        return code
    for severity in reversed(SEVERITIES):
        rows = [check for check in checks if check.severity == severity]
        call.screen.say(call.screen.paint(severity, "bold"))
        say_checks(call, rows)
    call.screen.say(f"{_verdict(checks, 'nothing was found')}{_decisive(checks, floor)}")
    return code


def _decisive(checks: list[Check], floor: str) -> str:
    """The items by which it fails."""
    ids = [check.id for check in at_least(checks, floor) if check.state in (BAD, UNKNOWN)]
    return f"; of severity {floor} or higher: {', '.join(ids) or 'none'}"


def _verdict(checks: list[Check], good: str) -> str:
    bad, unknown = (sum(check.state == state for check in checks) for state in (BAD, UNKNOWN))
    if not bad and not unknown:
        return f"{good}: {len(checks)} checks"
    return f"{len(checks)} checks: {bad} bad, {unknown} could not be judged"


def _markdown(checks: list[Check], floor: str) -> list[str]:
    lines = ["| item | severity | state | evidence | what helps |", "| --- | --- | --- | --- | --- |"]
    for check in sorted(checks, key=lambda check: -SEVERITIES.index(check.severity)):
        cells = (check.id, check.severity, MARKS[check.state][0], check.words, check.help if check.state != OK else "")
        lines.append(
            "| " + " | ".join(printable(cell).replace("|", "\\|").replace("<", "&lt;") for cell in cells) + " |"
        )
    return [*lines, "", f"{_verdict(checks, 'Nothing was found')}{_decisive(checks, floor)}."]

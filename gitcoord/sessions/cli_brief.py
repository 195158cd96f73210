"""`git coord start --brief`, and what an agent tool's conversation is told when it begins: at most 25 lines, and none that says nothing."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.names import printable, shell_word
from gitcoord.claims.cli import inherited_lines, lost_line
from gitcoord.claims.cli_views import place_lines
from gitcoord.startup.annotations import Iterable

MOST = 25
_SHOWN = 6


def brief_lines(result: Record) -> list[str]:
    """The result of `begin`, as whole sentences. Rules give way where there are too many lines."""
    verb = "opened" if result["opened"] else "goes on"
    first = [f"session {result['session']} of {result['agent']} {verb}"]
    rest = [*_memory(result), *_copy(result), *_own(result), *_work(result), *_others(result), *_gates(result)]
    return [*first, *_rules(result, MOST - 1 - len(first) - len(rest)), *rest][: MOST - 1]


def headlines(text: str) -> list[str]:
    """The headings and numbered rules of a document; of a rule that goes on in further lines whole sentences, in one line."""
    found: list[str] = []
    goes_on = False
    for line in (line.strip() for line in text.split("\n")):
        is_rule = line.partition(".")[0].isdecimal()
        if is_rule or line.startswith("#"):
            found.append(line)
        elif goes_on and line:
            found[-1] += f" {line}"
        goes_on = bool(line) and (is_rule or goes_on) and not line.startswith("#") and line[-1] not in ".!?"
    return found


def _rules(result: Record, room: int) -> list[str]:
    rules = result["rules"]
    if not rules["version"]:
        return []
    lines = [f"  {printable(line)}" for line in headlines(rules["text"])]
    if len(lines) + 1 > room:
        lines = [*lines[: max(0, room - 2)], f"  the other rules are in {printable(rules['name'])}"]
    return [f"rules: {rules['name']} ({rules['version'][:12]})", *lines]


def _memory(result: Record) -> list[str]:
    rows = [row for row in result["memory"] if row["version"]]
    return [f"read {row['kind']}: {printable(row['name'])}" for row in rows]


def _copy(result: Record) -> list[str]:
    copy = result["copy"]
    sync = printable(copy["sync"])
    if copy["behind"] is None:
        return [f"it is not known whether this copy is behind '{sync}'"]
    return [f"this copy is {copy['behind']} commit(s) behind '{sync}': git coord sync --pull"] if copy["behind"] else []


def _own(result: Record) -> list[str]:
    """Lines about claims that the reader holds, got, lost or waits for."""
    lines = []
    if result["claims"]:
        lines.append(f"you hold {_listed(row['path'] for row in result['claims'])}")
    if result["notes"]:
        on = shell_word(result["notes"][0]["path"])
        lines.append(f"{len(result['notes'])} note(s) for you on what you hold: git coord note {on}")
    if result["again"]:
        lines.append(f"taken again after it had expired: {_listed(result['again'])}")
    lines += [line.strip() for line in inherited_lines(result["inherited"])]
    lines += [lost_line(row) for row in result["lost"][:_SHOWN]]
    if result["waiting"]:
        lines.append(f"you wait for a person's approval of {_listed(row['path'] for row in result['waiting'])}")
    lines += [f"you wait for {line}" for line in place_lines(result["waits"][:_SHOWN])]
    if result["waiters"]:
        lines.append(f"{_listed(row['agent'] for row in result['waiters'])} waits for what you hold: git claim list")
    if result["to_answer"]:
        lines.append(f"{len(result['to_answer'])} approval(s) wait for your answer: git coord approvals")
    return lines


def _work(result: Record) -> list[str]:
    """Work under way, and work that may be taken."""
    left = result["interrupted"]
    lines = []
    for task in left["tasks"][:_SHOWN]:
        again = f"; take it again: git coord task take {task['id']}" if task["state"] == "open" else ""
        lines.append(f"you were at {task['id']} {printable(task['title'])} ({task['state']}){again}")
    if left["dirty"]:
        lines.append(f"not committed yet: {_listed(left['dirty'])}")
    if left["handoffs"]:
        lines.append(f"you handed over {' '.join(row['id'] for row in left['handoffs'])}, which nobody has accepted")
    if result["handoffs"]:
        ids = [row["id"] for row in result["handoffs"]]
        lines.append(f"handoffs for you: {' '.join(ids)}; read one: git handoff show {ids[0]}")
    if result["tasks"]:
        named = "; ".join(f"{row['id']} {printable(row['title'])}" for row in result["tasks"])
        lines.append(f"next tasks: {named}; take one: git coord task next")
    return lines


def _others(result: Record) -> list[str]:
    """Lines about the claims of others, and who else is here."""
    rows = result["others_hold"]
    lines = []
    for row in rows[:_SHOWN]:
        reason = f": {printable(row['reason'])}" if row["reason"] else ""
        lines.append(f"{row['agent']} holds {printable(row['path'])}{reason}")
    if result["others_hold_more"]:
        lines.append("others hold many more: git claim list --all")
    elif len(rows) > _SHOWN:
        lines.append(f"others hold {len(rows) - _SHOWN} more: git claim list --all")
    holders = {row["agent"] for row in rows}
    idle = [row["agent"] for row in result["others"] if row["agent"] not in holders]
    return [*lines, f"also at work: {_listed(idle)}"] if idle else lines


def _gates(result: Record) -> list[str]:
    from gitcoord.views.cli import gates_line

    return [gates_line(result["missing_gates"])] if result["missing_gates"] else []


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return printable(", ".join(found[:_SHOWN])) + more

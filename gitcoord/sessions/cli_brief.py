"""`git coord start --brief`, and what an agent tool's conversation is told when it begins: at most 25 lines, and none that says nothing."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.durations import format_duration
from gitcoord.base.names import printable, shell_word
from gitcoord.claims.cli import inherited_lines, lost_line
from gitcoord.claims.cli_views import place_lines
from gitcoord.git.operations import operation
from gitcoord.startup.annotations import Iterable

MOST = 25
_SHOWN = 6
_RULES = 9  # lines of rules, before which lists are cut


def brief_lines(result: Record, most: int = MOST - 1) -> list[str]:
    """The result of `begin`, as whole sentences. Where there are too many lines, lists give way, and then the rules."""
    first = first_lines(result)
    wanted = min(_RULES, len(_rules(result, most)))
    for shown in (_SHOWN, 3, 2, 1):
        rest = [
            *_memory(result), *changed_lines(result), *_copy(result), *_own(result, shown), *_work(result, shown), *_others(result, shown), *_gates(result)
        ]  # fmt: skip
        room = most - len(first) - len(rest)
        if room >= wanted:
            break
    lines = [*first, *_rules(result, room), *rest]
    return lines if len(lines) <= most else [*lines[: most - 1], "There is more: git coord start"]


def first_lines(result: Record) -> list[str]:
    """The session; where the remote does not answer, how old that is what follows, and what was not done."""
    if result.get("offline"):
        age = result["as_of_seconds"]
        since = f"as of {format_duration(age)} ago" if age is not None else "as it was last seen"
        done = "not done: no session of {} was opened, and nothing taken again; once it answers: git coord start"
        if result["unknown"]:
            done = "not known: whether the session of {} was opened; to make sure, once it answers: git coord start"
        return [f"{result['offline']}; what follows is {since}", done.format(result["agent"])]
    verb = "opened" if result["opened"] else "goes on"
    return [f"session {result['session']} of {result['agent']} {verb}"]


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


def whole_sentences(lines: list[str], most: int) -> list[str]:
    """The first lines, without the beginning of a sentence that goes on behind them."""
    while 0 < most < len(lines) and _goes_on(lines[most - 1].strip(), lines[most].strip()):
        most -= 1
    return lines[:most]


def _goes_on(line: str, after: str) -> bool:
    new = not after or after[0] in "#-*|>" or after[0].isdecimal()
    return not new and bool(line) and line[0] != "#" and line[-1] not in ".!?:"


def only_here(row: Record) -> str:
    """That trunk does not have this file, so that it is not shown to others."""
    return f"{printable(row['name'])} is here, but not on trunk: commit and land it" if row["only_here"] else ""


def changed_lines(result: Record) -> list[str]:
    """Lines about versions of rules and memory that are here and have not landed: the others read trunk's."""
    rows = [result["rules"], *result["memory"]]
    return [
        f"{printable(row['name'])} is another one here than on trunk, which all others read: commit and land it"
        for row in rows
        if row["changed_here"]
    ]


def _rules(result: Record, room: int) -> list[str]:
    rules = result["rules"]
    if not rules["version"]:
        return [here] if (here := only_here(rules)) else []
    lines = [f"  {printable(line)}" for line in _with_rules_below(headlines(rules["text"]))]
    if len(lines) + 1 > room:
        lines = [*lines[: max(0, room - 2)], f"  the other rules are in {printable(rules['name'])}"]
    return [f"The rules of this project are in {rules['name']} ({rules['version'][:12]}):", *lines]


def _with_rules_below(lines: list[str]) -> list[str]:
    """Without the document's title, and without headings below which no rule stands."""
    follows = [*lines[1:], "#"]
    kept = [line for line, after in zip(lines, follows, strict=True) if line[0] != "#" or after[0] != "#"]
    return kept[1:] if kept and kept[0].startswith("# ") else kept


def _memory(result: Record) -> list[str]:
    return [
        f"Read the project's {row['kind']} first: {printable(row['name'])}" if row["version"] else only_here(row)
        for row in result["memory"]
        if row["version"] or row["only_here"]
    ]


def _copy(result: Record) -> list[str]:
    copy = result["copy"]
    sync = printable(copy["sync"])
    lines = under_way_lines(copy)
    if copy["behind"] is None:
        lines.append(f"It is not known whether this copy is behind '{sync}'")
    elif copy["behind"]:
        lines.append(
            f"This copy is {copy['behind']} commit(s) behind '{sync}'; bring it up to date: git coord sync --pull"
        )
    return lines


def under_way_lines(copy: Record) -> list[str]:
    """The operation of git that is under way in this work tree, and how it ends."""
    if not copy["under_way"]:
        return []
    found = operation(copy["under_way"])
    return [f"{found.words} is under way here: {found.go_on}, or put everything back: {found.undo}"]


def _own(result: Record, most: int) -> list[str]:
    """Lines about claims that the reader holds, got, lost or waits for."""
    lines = []
    if result["claims"]:
        lines.append(f"You hold {_listed(row['path'] for row in result['claims'])}")
    if result["notes"]:
        on = shell_word(result["notes"][0]["path"])
        lines.append(f"{len(result['notes'])} note(s) for you on what you hold: git coord note {on}")
    if result["again"]:
        lines.append(f"Your claims had expired and are yours again: {_listed(result['again'])}")
    lines += _first([line.strip() for line in inherited_lines(result["inherited"])], most, "git claim list --mine")
    lines += _first([lost_line(row) for row in result["lost"]], most, f"git coord log --agent {result['agent']}")
    if result["waiting"]:
        lines.append(f"You wait for a person's approval of {_listed(row['path'] for row in result['waiting'])}")
    lines += _first([f"you wait for {line}" for line in place_lines(result["waits"])], most, "git claim list")
    if result["waiters"]:
        who = list(dict.fromkeys(row["agent"] for row in result["waiters"]))
        lines.append(f"{_listed(who)} {'waits' if len(who) == 1 else 'wait'} for what you hold: git claim list")
    if result["to_answer"]:
        lines.append(f"{len(result['to_answer'])} approval(s) wait for your answer: git coord approvals")
    return lines


def _work(result: Record, most: int) -> list[str]:
    """Work under way, and work that may be taken."""
    left = result["interrupted"]
    lines = []
    for task in left["tasks"]:
        again = f"; take it again: git coord task take {task['id']}" if task["state"] == "open" else ""
        lines.append(f"You were at {task['id']} {printable(task['title'])} ({task['state']}){again}")
    lines = _first(lines, most, "git coord task list --mine")
    if left["dirty"]:
        lines.append(f"You have not committed {_listed(left['dirty'])}")
    if left["handoffs"]:
        lines.append(f"You handed over {_listed(row['id'] for row in left['handoffs'])}, which nobody has accepted")
    if result["handoffs"]:
        ids = [row["id"] for row in result["handoffs"]]
        more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
        lines.append(f"Handed over to you: {' '.join(ids[:_SHOWN])}{more}; read it: git handoff show {ids[0]}")
    if result["tasks"]:
        named = "; ".join(f"{row['id']} {printable(row['title'])}" for row in result["tasks"])
        lines.append(f"The next tasks are {named}; take one: git coord task next")
    return lines


def _others(result: Record, most: int) -> list[str]:
    """Lines about the claims of others, and who else is here."""
    rows = result["others_hold"]
    lines = []
    for row in rows[:most]:
        reason = f": {printable(row['reason'])}" if row["reason"] else ""
        lines.append(f"{row['agent']} holds {printable(row['path'])}{reason}")
    if result["others_hold_more"]:
        lines.append("Others hold many more: git claim list --all")
    elif len(rows) > most:
        lines.append(f"Others hold {len(rows) - most} more: git claim list --all")
    holders = {row["agent"] for row in rows}
    idle = [row["agent"] for row in result["others"] if row["agent"] not in holders]
    return [*lines, f"Also at work here: {_listed(idle)}"] if idle else lines


def _gates(result: Record) -> list[str]:
    from gitcoord.views.cli import gates_line

    return [gates_line(result["missing_gates"])] if result["missing_gates"] else []


def _first(lines: list[str], most: int, command: str) -> list[str]:
    """The first lines; the last of these says where the others are."""
    left = len(lines) - most
    return lines if left < 1 else [*lines[: most - 1], f"{lines[most - 1]} (and {left} more: {command})"]


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return printable(", ".join(found[:_SHOWN])) + more

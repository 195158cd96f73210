"""`git coord start` in full: at most 60 lines. Long lists are cut first, then rules and memory; each cut names the command that shows the rest."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.names import listed, printable, shell_word
from gitcoord.claims.cli import inherited_lines, lost_line
from gitcoord.claims.cli_views import place_lines, waiting_lines
from gitcoord.handoff.cli import lines as handoff_lines
from gitcoord.sessions.cli_brief import (
    changed_lines,
    first_lines,
    headlines,
    only_here,
    under_way_lines,
    whole_sentences,
)
from gitcoord.sessions.cli_work import work_lines
from gitcoord.startup.annotations import Any, Callable
from gitcoord.terminal.call import Call
from gitcoord.terminal.screen import Row, ago

MOST = 60
_DOCUMENTS = 20  # lines of rules and memory, before which lists are cut
_ROWS = (20, 10, 5, 3, 2, 1, 0)  # so many of each list, the first that leaves that room
_NOTE = 3  # lines of a note that are shown, however little room there is


def briefing(call: Call, result: Record) -> tuple[list[str], list[Row]]:
    """The result of `begin` as lines of text, and the notes that are among them."""
    first = first_lines(result)
    notes = [] if "offline" in result else result["notes"]
    wanted = min(_DOCUMENTS, len(_documents(call, result, MOST)))
    for most in _ROWS:
        work = work_lines(result, call.ctx.remote, most)
        rest = [line for part in _PARTS for line in part(call, result, most)]
        shown, more = _first(notes, max(1, most), "git coord note")
        rest += [line for note in shown for line in _note(note, max(_NOTE, most))] + more
        room = MOST - len(first) - len(work) - len(rest)
        if room >= wanted:
            break
    return [*first, *work, *_documents(call, result, room), *rest], shown


def _first(rows: list[Any], most: int, command: str) -> tuple[list[Any], list[str]]:
    """The first rows, and a line about the others. One that is left over is shown."""
    left = len(rows) - most
    if left < 2:
        return rows, []
    return rows[:most], [f"  and {left} more: {command}" if most else f"  all of them: {command}"]


def _list(rows: list[Row], most: int, command: str, lines: Callable[[list[Row]], list[str]]) -> list[str]:
    shown, more = _first(rows, most, command)
    return [*(f"  {line}" for line in lines(shown)), *more]


# --- rules and memory ---------------------------------------------------------------------------------------------


def _documents(call: Call, result: Record, room: int) -> list[str]:
    """Rules and memory: whole where there is room; else the headlines of the rules, and the beginning of each file."""
    text = _without_comments(result["rules"]["text"])
    whole = [*_rules(call, result, text, text), *_memory(call, result, room)]
    if len(whole) <= room:
        return whole
    files = sum(1 for row in result["memory"] if row["version"])
    least = len(result["memory"]) + 2 * files
    rules = _rules(call, result, text, "\n".join(headlines(text)), max(2, room - least - 1))
    return [*rules, *_memory(call, result, max(2, (room - len(rules) - len(result["memory"])) // max(files, 1)))]


def _without_comments(text: str) -> str:
    """Without lines that are comments, and sections in which nothing else stands."""
    kept: list[str] = []
    below = "# "  # the line below that is not blank
    for line in reversed(text.split("\n")):
        if (line.startswith("<!--") and line.rstrip().endswith("-->")) or (
            line.startswith("## ") and below.startswith(("# ", "## "))
        ):
            continue
        kept.append(line)
        below = line.strip() or below
    return "\n".join(reversed(kept)).rstrip("\n") + "\n"


def _text(row: Record, text: str, *, cut: bool, most: int) -> list[str]:
    said = text.rstrip("\n").split("\n")
    if cut or len(said) > most:
        said = [*whole_sentences(said, most - 1), f"... (the rest is in {printable(row['name'])})"]
    return [f"  {printable(line.expandtabs(4))}".rstrip() for line in said]


def _rules(call: Call, result: Record, whole: str, text: str, most: int = 1 << 30) -> list[str]:
    rules = result["rules"]
    if not rules["version"]:
        return [f"rules: {only_here(rules) or 'none'}"]
    head = call.screen.paint(f"rules: {rules['name']} ({rules['version'][:12]})", "bold")
    return [head, *_text(rules, text, cut=rules["cut"] or text.split() != whole.split(), most=most)]


def _memory(call: Call, result: Record, most: int) -> list[str]:
    lines = []
    for row in result["memory"]:
        version = f"({row['version'][:12]})" if row["version"] else f"({only_here(row) or 'not there'})"
        lines.append(call.screen.paint(f"{row['kind']}: {printable(row['name'])} {version}", "bold"))
        lines += _text(row, row["text"], cut=row["cut"], most=most) if row["version"] else []
    return lines


# --- how things stand ---------------------------------------------------------------------------------------------


def _copy(call: Call, result: Record, most: int) -> list[str]:
    copy = result["copy"]
    sync = printable(copy["sync"])
    running = [f"copy: {line}" for line in [*changed_lines(result), *under_way_lines(copy)]]
    return [*running, *_behind(call, copy, sync)]


def _behind(call: Call, copy: Record, sync: str) -> list[str]:
    offline = [f"  as far as this clone knows: {printable(copy['offline'])}"] if copy["offline"] else []
    if copy["behind"] is None:
        return [f"copy: cannot tell whether it is behind '{sync}'", *offline]
    if not copy["behind"]:
        return [f"copy: up to date with '{sync}'", *offline]
    words = f"copy: {copy['behind']} commit(s) behind '{sync}': git coord sync --pull"
    return [call.screen.paint(words, "yellow"), *offline]


def _held(call: Call, result: Record, most: int) -> list[str]:
    claims = result["claims"]
    lines = [f"you hold: {len(claims) or 'nothing'}"]
    lines += _list(claims, most, "git claim list --mine", call.screen.claim_lines)
    if result["again"]:
        lines.append(f"  taken again after they had expired: {listed(result['again'], max(1, most))}")
    inherited, more = _first(inherited_lines(result["inherited"]), most, "git claim list --mine")
    command = f"git coord log --agent {shell_word(result['agent'])}"
    lines += inherited + more
    return lines + _list(result["lost"], most, command, lambda rows: [lost_line(row) for row in rows])


def _waiting(call: Call, result: Record, most: int) -> list[str]:
    rows = [f"  approval {row['approval']} of {printable(row['path'])}" for row in result["waiting"]]
    rows += [f"  {line}" for line in place_lines(result["waits"])]
    shown, more = _first(rows, most, "git claim list" if result["waits"] else "git coord approvals")
    lines = [f"you wait for: {len(rows) or 'nothing'}", *shown, *more]
    if result["waiters"]:
        lines.append(f"they wait for what you hold: {len(result['waiters'])}")
        lines += _list(result["waiters"], most, "git claim list", lambda rows: waiting_lines({"waits": rows}))
    if result["to_answer"]:
        words = f"waits for your answer: {len(result['to_answer'])}: git coord approvals"
        asked = [f"  {r['approval']} of {printable(r['path'])}, asked by {r['agent']}" for r in result["to_answer"]]
        shown, more = _first(asked, most, "git coord approvals")
        lines += [call.screen.paint(words, "red"), *shown, *more]
    return lines


def _interrupted(call: Call, result: Record, most: int) -> list[str]:
    left = result["interrupted"]
    tasks = []
    for task in left["tasks"]:
        then = f"; next: {printable(task['next'])}" if task["next"] else ""
        whose = f", {task['owner']}'s" if task["owner"] not in ("", result["agent"]) else ""
        again = f"; take it again: git coord task take {task['id']}" if task["state"] == "open" else ""
        tasks.append(f"  {task['id']} {printable(task['title'])} ({task['state']}{whose}){then}{again}")
    dirty = [f"  not committed: {printable(path)}" for path in left["dirty"]]
    handed = [f"  handed over: {line}" for line in handoff_lines(call, left["handoffs"])]
    lines = []
    for rows, command in (
        (tasks, "git coord task list --mine"),
        (dirty, "git status"),
        (handed, "git handoff list"),
    ):
        shown, more = _first(rows, most, command)
        lines += [*shown, *more]
    return ["you were doing:" if lines else "you were doing: nothing", *lines]


def _handoffs(call: Call, result: Record, most: int) -> list[str]:
    rows = result["handoffs"]
    lines = _list(rows, most, "git handoff list", lambda shown: handoff_lines(call, shown))
    return [f"handoffs for you: {len(rows) or 'none'}", *lines]


def _tasks(call: Call, result: Record, most: int) -> list[str]:
    rows = [f"  {row['id']} {printable(row['title'])} ({row['priority']})" for row in result["tasks"]]
    shown, more = _first(rows, most, "git coord task list")
    if shown and result["more_tasks"]:
        more = [f"  and {len(rows) - len(shown) + result['more_tasks']} more: git coord task list"]
    return ["next tasks:" if rows else "next tasks: none", *shown, *more]


def _others(call: Call, result: Record, most: int) -> list[str]:
    held: dict[str, list[str]] = {}
    for claim in result["others_hold"]:
        held.setdefault(claim["agent"], []).append(str(claim["path"]))

    def lines(rows: list[Row]) -> list[str]:
        cells = [
            [
                r["agent"], f"since {ago(r['since'])}", f"of {r['parent']}" if r["parent"] else "",
                f"does {r['task']}" if r["task"] else "",
                f"holds {listed(held[r['agent']], 3)}" if r["agent"] in held else "",
            ]
            for r in rows
        ]  # fmt: skip
        return call.screen.table(cells, ["cyan", "dim", "dim", "", ""])

    rows = result["others"]
    return [f"others here: {len(rows) or 'nobody'}", *_list(rows, most, "git coord agents", lines)]


def _gates(call: Call, result: Record, most: int) -> list[str]:
    from gitcoord.views.cli import gates_line

    events = result["missing_gates"]
    return [call.screen.paint(gates_line(events), "yellow")] if events else []


def _note(note: Row, most: int) -> list[str]:
    """A note; of a long one the beginning."""
    from gitcoord.journal.cli_note import lines  # only where there is a note

    head, *text = lines([note])
    if len(text) <= most:
        return [head, *text]
    return [head, *text[: most - 1], f"    (the whole note: git coord note {shell_word(str(note['path']))})"]


_PARTS = (_copy, _held, _waiting, _interrupted, _handoffs, _tasks, _others, _gates)

"""`git coord start` and `git coord stop`."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import Unreachable
from gitcoord.base.names import printable
from gitcoord.claims.cli import inherited_lines, lost_line, say_released
from gitcoord.claims.cli_views import place_lines, waiting_lines
from gitcoord.handoff.cli import lines as handoff_lines
from gitcoord.sessions.cli_brief import brief_lines, first_lines, headlines, under_way_lines
from gitcoord.sessions.cli_work import work_lines
from gitcoord.sessions.unguarded import unguarded_lines
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import ago

MOST = 60  # lines of a briefing
_LEAST = 12  # of them for rules and memory, where there is much else


def start(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.views.briefing import begin

    actor = call.actor()._replace(join=bool(values.get("join")))
    result: Record = begin(call.ctx, actor)
    offline = "offline" in result
    if call.ctx.may_finish_landings() and not offline:
        from gitcoord.landing.cli_finish import finish_interrupted

        if finish_interrupted(call):
            result = {**begin(call.ctx, actor), "opened": result["opened"]}  # without what has landed
    call.screen.note(*unguarded_lines(call.ctx, call.environ))
    brief = bool(values.get("brief"))
    call.screen.answer(_shortened(result) if brief else result, ok=not offline)
    if brief:
        call.screen.say(*brief_lines(result))
    else:
        call.screen.say(*_briefing_lines(call, result))
        if result["notes"] and not offline:
            from gitcoord.journal.cli_note import deliver

            deliver(call, result["notes"])
    return Unreachable.exit_code if offline else 0


def _briefing_lines(call: Call, result: Record) -> list[str]:
    """The result of `begin`, as lines of text."""
    first = first_lines(result)
    work = work_lines(result, call.ctx.remote)
    rest = [
        line
        for part in (_copy, _held, _waiting, _interrupted, _handoffs, _tasks, _others, _gates)
        for line in part(call, result)
    ]
    room = max(MOST - len(first) - len(work) - len(rest), _LEAST)
    return [*first, *work, *_documents(call, result, room), *rest]


def _documents(call: Call, result: Record, room: int) -> list[str]:
    """Rules and memory: whole where there is room; else the headlines of the rules, and the beginning of each file."""
    result = {**result, "rules": {**result["rules"], "text": _without_comments(result["rules"]["text"])}}
    whole = [*_rules(call, result, result["rules"]["text"]), *_memory(call, result, room)]
    if len(whole) <= room:
        return whole
    rules = _rules(call, result, "\n".join(headlines(result["rules"]["text"])))
    files = sum(1 for row in result["memory"] if row["version"])
    return [*rules, *_memory(call, result, max(2, (room - len(rules) - len(result["memory"])) // max(files, 1)))]


def _shortened(result: Record) -> Record:
    """The same result with headlines instead of whole texts."""
    rules = {**result["rules"], "text": "\n".join(headlines(result["rules"]["text"]))}
    memory = [{**row, "text": ""} for row in result["memory"]]
    return {**result, "rules": rules, "memory": memory}


def _without_comments(text: str) -> str:
    return "\n".join(
        line for line in text.split("\n") if not (line.startswith("<!--") and line.rstrip().endswith("-->"))
    )


def _text(row: Record, text: str, most: int = 1 << 30) -> list[str]:
    said = [f"  {printable(line.expandtabs(4))}".rstrip() for line in text.rstrip("\n").split("\n")]
    if row["cut"] or text != row["text"] or len(said) > most:
        return [*said[: max(1, most - 1)], f"  ... (the rest is in {printable(row['name'])})"]
    return said


def _rules(call: Call, result: Record, text: str) -> list[str]:
    rules = result["rules"]
    if not rules["version"]:
        return [f"rules: {_only_here(rules) or 'none'}"]
    head = call.screen.paint(f"rules: {rules['name']} ({rules['version'][:12]})", "bold")
    return [head, *_text(rules, text)]


def _only_here(row: Record) -> str:
    """That trunk does not have this file, so that it is not shown to others."""
    return f"{printable(row['name'])} is here, but not on trunk: commit and land it" if row["only_here"] else ""


def _memory(call: Call, result: Record, most: int) -> list[str]:
    lines = []
    for row in result["memory"]:
        version = f"({row['version'][:12]})" if row["version"] else f"({_only_here(row) or 'not there'})"
        lines.append(call.screen.paint(f"{row['kind']}: {printable(row['name'])} {version}", "bold"))
        lines += _text(row, row["text"], most) if row["version"] else []
    return lines


def _copy(call: Call, result: Record) -> list[str]:
    copy = result["copy"]
    sync = printable(copy["sync"])
    running = [f"copy: {line}" for line in under_way_lines(copy)]
    return [*running, *_behind(call, copy, sync)]


def _behind(call: Call, copy: Record, sync: str) -> list[str]:
    offline = [f"  as far as this clone knows: {printable(copy['offline'])}"] if copy["offline"] else []
    if copy["behind"] is None:
        return [f"copy: cannot tell whether it is behind '{sync}'", *offline]
    if not copy["behind"]:
        return [f"copy: up to date with '{sync}'", *offline]
    words = f"copy: {copy['behind']} commit(s) behind '{sync}': git coord sync --pull"
    return [call.screen.paint(words, "yellow"), *offline]


def _held(call: Call, result: Record) -> list[str]:
    claims = result["claims"]
    lines = [f"you hold: {len(claims) or 'nothing'}"]
    lines += ["  " + line for line in call.screen.claim_lines(claims)]
    if result["again"]:
        lines.append(f"  taken again after they had expired: {printable(', '.join(result['again']))}")
    lines += inherited_lines(result["inherited"])
    return lines + [f"  {lost_line(row)}" for row in result["lost"]]


def _waiting(call: Call, result: Record) -> list[str]:
    rows = [f"  approval {row['approval']} of {printable(row['path'])}" for row in result["waiting"]]
    rows += [f"  {line}" for line in place_lines(result["waits"])]
    lines = [f"you wait for: {len(rows) or 'nothing'}", *rows]
    waiters = [f"  {line}" for line in waiting_lines({"waits": result["waiters"]})]
    lines += [f"they wait for what you hold: {len(result['waiters'])}", *waiters] if waiters else []
    asked = [f"  {row['approval']} of {printable(row['path'])}, asked by {row['agent']}" for row in result["to_answer"]]
    if asked:
        lines.append(call.screen.paint(f"waits for your answer: {len(asked)}: git coord approvals", "red"))
    return [*lines, *asked]


def _interrupted(call: Call, result: Record) -> list[str]:
    left = result["interrupted"]
    lines = []
    for task in left["tasks"]:
        then = f"; next: {printable(task['next'])}" if task["next"] else ""
        whose = f", {task['owner']}'s" if task["owner"] not in ("", result["agent"]) else ""
        again = f"; take it again: git coord task take {task['id']}" if task["state"] == "open" else ""
        lines.append(f"  {task['id']} {printable(task['title'])} ({task['state']}{whose}){then}{again}")
    if left["dirty"]:
        lines += [f"  not committed: {printable(path)}" for path in left["dirty"][:20]]
        lines += [f"  and {len(left['dirty']) - 20} more"] if len(left["dirty"]) > 20 else []
    lines += [f"  handed over: {line}" for line in handoff_lines(call, left["handoffs"])]
    return ["you were doing:" if lines else "you were doing: nothing", *lines]


def _handoffs(call: Call, result: Record) -> list[str]:
    rows = result["handoffs"]
    return [f"handoffs for you: {len(rows) or 'none'}", *("  " + line for line in handoff_lines(call, rows))]


def _tasks(call: Call, result: Record) -> list[str]:
    rows = result["tasks"]
    lines = [f"  {row['id']} {printable(row['title'])} ({row['priority']})" for row in rows]
    return ["next tasks:" if lines else "next tasks: none", *lines]


def _others(call: Call, result: Record) -> list[str]:
    rows = result["others"]
    lines = [
        [row["agent"], f"since {ago(row['since'])}", f"of {row['parent']}" if row["parent"] else ""] for row in rows
    ]
    found = call.screen.table(lines, ["cyan", "dim", "dim"])
    return [f"others here: {len(rows) or 'nobody'}", *("  " + line for line in found)]


def _gates(call: Call, result: Record) -> list[str]:
    from gitcoord.views.cli import gates_line

    events = result["missing_gates"]
    return [call.screen.paint(gates_line(events), "yellow")] if events else []


def stop(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.gates.validation import before_stop
    from gitcoord.sessions import service as sessions

    actor = call.actor()
    for line in before_stop(call.ctx, actor):
        call.screen.note(f"warning: {line}")
    result: Record = sessions.stop(call.ctx, actor, keep=bool(values.get("keep")))
    call.screen.answer(result)
    call.screen.say(
        f"session of {result['agent']} ended" if result["stopped"] else f"{result['agent']} has no open session"
    )
    say_released(call, result.get("work", []), actor.agent)
    call.screen.say(*(f"kept {printable(path)}" for path in result["kept"]))
    call.screen.say(*(f"{printable(path)} waits to be accepted" for path in result["handed_over"]))
    return 0

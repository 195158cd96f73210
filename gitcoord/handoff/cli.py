"""The verbs of `git handoff`."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import UsageError, refused
from gitcoord.base.names import listed, printable, shell_word
from gitcoord.claims import pathspec as paths
from gitcoord.handoff import service as app
from gitcoord.handoff.events.close import Close
from gitcoord.handoff.events.handoff import New
from gitcoord.handoff.model import DECLINED, SECTIONS, WITHDRAWN, addressee, check_addressee, parse_document, template
from gitcoord.journal.cli_note import deliver
from gitcoord.journal.notes import unseen_below
from gitcoord.startup.annotations import Any
from gitcoord.terminal.call import Call, at_terminal, text, words_of
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, ago


def new(call: Call, values: Values, words: list[str]) -> int:
    said = {s.key: str(values[s.key]) for s in SECTIONS if s.key in values}
    source = [*words, *([str(values["file"])] if "file" in values else [])]
    if len(source) > 1:
        raise UsageError("one document is enough", hints=("git handoff new -h",))
    missing = [s for s in SECTIONS if not s.none and s.key not in said]
    orders: dict[str, str] = {}
    if source or (missing and not at_terminal()):
        from gitcoord.terminal.input import read_text

        found = read_document(read_text(source[0] if source else "-"))
        orders = {key: value for key, value in found.items() if key in ("to", "task")}
        said = {**{key: value for key, value in found.items() if key not in orders}, **said}
    to, role = check_addressee(str(values.get("to", orders.get("to", ""))))
    items = paths.items(call.ctx.repo, words_of(values, "path"))
    task = text(values, "task") or orders.get("task", "")
    command = New(call.actor(), said, to, role, task, items)
    if missing and at_terminal() and not source:
        command = command._replace(sections=_edited(call, command, said))
    result = app.offer(call.ctx, command)
    call.screen.answer(result)
    call.warn(result)
    _say_offered(call, result)
    return 0


def read_document(text: str) -> dict[str, str]:
    """A document as it was written: Markdown with the six headings, or JSON with their keys (and `to`, `task`)."""
    if not text.lstrip().startswith("{"):
        return parse_document(text)
    from gitcoord.terminal.input import parse_json

    record: Any = parse_json(text, "the document")
    known = {section.key for section in SECTIONS} | {"to", "task"}
    for key, value in record.items():
        if key not in known or not isinstance(value, (str, list)) or not all(isinstance(part, str) for part in value):
            raise UsageError(
                f"the document's key '{printable(key[:40])}' is unknown, or not text",
                hints=(f"it has texts for: {', '.join(sorted(known))}",),
            )
    return {k: v if isinstance(v, str) else "\n".join(f"- {part}" for part in v) for k, v in record.items()}


def _edited(call: Call, command: New, said: dict[str, str]) -> dict[str, str]:
    """The sections as a person writes them in an editor, with the facts of the work as notes."""
    from gitcoord.terminal.editor import edit

    claims, facts = app.would_offer(call.ctx, command)
    notes = [f"goes along: {printable(claim['path'])} ({claim['mode']})" for claim in claims[:20]]
    notes += [f"branch: {facts['branch']}"] if facts.get("branch") else []
    notes += [f"commit: {commit[:12]} {subject}" for commit, subject in facts.get("commits", ())[:20]]
    notes += [f"NOT COMMITTED: {printable(path)}" for path in facts.get("dirty", ())[:20]]
    written = parse_document(edit(call, template(said, notes), "handoff"))
    if not any(text.strip() for text in written.values()):
        raise UsageError("the document is empty: nothing was handed over")
    return written


def _say_offered(call: Call, result: Record) -> None:
    call.screen.say(f"{call.screen.paint(result['id'], 'bold')} waits for {addressee(result['to'], result['role'])}")
    call.screen.say(*(f"  goes along: {printable(path)}" for path in result["claims"]))
    _warn(call, result, "commit them, or say in the document where they are")
    if result["unpushed"]:
        call.screen.note(f"warning: {result['unpushed']} commit(s) of yours are at no remote yet")
        call.screen.hint(
            f"push them, so that others can fetch them: git push {shell_word(call.ctx.remote or 'origin')} HEAD"
        )
    call.screen.hint(f"they take it over with: git handoff accept {result['id']}")


def _warn(call: Call, result: Record, hint: str) -> None:
    dirty = result["dirty"]
    if dirty:
        call.screen.note(f"warning: not committed: {listed(dirty)}")
        call.screen.hint(hint)


def list_(call: Call, values: Values, words: list[str]) -> int:
    everything = bool(values.get("all"))
    result = call.show(lambda: app.listing(call.ctx, call.actor_or_none(), everything=everything), handoffs=[])
    if result is None:
        return 0
    call.screen.say(*lines(call, result["handoffs"]))
    if not result["handoffs"] and not call.screen.json:
        call.screen.note("no handoffs" if everything else "no handoff waits")
    return 0


def lines(call: Call, rows: list[Row]) -> list[str]:
    """One line a handoff."""
    table = []
    for row in rows:
        whom = addressee(str(row["to"]), str(row["role"]))
        state = "for you" if row["for_you"] else str(row["state"])
        said = str(row["next"])[:60]
        table.append([str(row["id"]), f"{row['from']} -> {whom}", state, ago(row["at"]), str(row["task"]), said])
    return call.screen.table(table, ["bold", "cyan", "yellow", "dim", "", ""])


def show(call: Call, values: Values, words: list[str]) -> int:
    age = call.recent()
    result: Record = {**app.show(call.ctx, call.actor_or_none(), words[0]), **age}
    call.screen.answer(result)
    call.screen.say(*_document(call, result))
    if result["for_you"] and not call.screen.json:
        call.screen.hint(f"git handoff accept {result['id']}")
    return 0


def _document(call: Call, result: Record) -> list[str]:
    rows = [
        ("from", f"{result['from']}, {ago(result['at'])}"),
        ("for", addressee(result["to"], result["role"])),
        ("state", f"{result['state']} by {result['by']}" if result["by"] else result["state"]),
        ("reason", result["reason"]),
        ("task", result["task"]),
        ("branch", f"{result['branch']} at {result['head'][:12]}" if result["branch"] else result["head"][:12]),
    ]
    found = [call.screen.paint(result["id"], "bold")]
    found += [f"  {name + ':':9}{printable(str(value))}" for name, value in rows if value]
    for claim in result["claims"]:
        now = ", ".join(claim["held_by"]) or "nobody"
        found.append(f"  {'claim:':9}{printable(claim['path'])} ({claim['mode']}), held by {now} now")
    found += [f"  {'commit:':9}{commit[:12]} {printable(subject)}" for commit, subject in result["commits"]]
    found += [f"  {'file:':9}{printable(path)} {_counts(*counts)}" for path, *counts in result["diffstat"]]
    found += [f"  {'dirty:':9}{printable(path)}" for path in result["dirty"]]
    found += [f"  {'unpushed:':9} {result['unpushed']} commit(s)"] if result["unpushed"] else []
    for section in SECTIONS:
        found += ["", call.screen.paint(section.title, "bold"), *body(result["sections"][section.key])]
    return found


def _counts(added: int, removed: int) -> str:
    return "binary" if added < 0 else f"+{added} -{removed}"


def body(text: str) -> list[str]:
    """Lines of prose as they may be shown."""
    return [f"  {printable(line.expandtabs(4))}".rstrip() for line in text.split("\n")]


def accept(call: Call, values: Values, words: list[str]) -> int:
    id = words[0] if words else _only_one(call)
    result: Record = app.accept(call.ctx, call.actor(), id, without_commits=bool(values.get("without-commits")))
    notes = unseen_below(call.ctx, call.actor().agent, result["claims"])
    call.screen.answer({**result, "notes": notes} if notes else result)
    verb = "accepted before:" if result["repeated"] else "accepted"
    call.screen.say(f"{verb} {result['id']} from {result['from']}")
    call.screen.say(*(f"  {line}" for line in call.screen.claim_lines(result["claims"])))
    if notes:
        deliver(call, notes)
    if result["task"]:
        call.screen.say(f"  the task {result['task']} is yours")
    _warn(call, result, f"it lies in {result['from']}'s work tree")
    call.screen.hint(*_to_branch(call, str(result["branch"])), f"read it: git handoff show {result['id']}")
    return 0


def _only_one(call: Call) -> str:
    """The handoff that waits for this agent, where it is the only one."""
    call.recent()
    listed: list[Record] = app.listing(call.ctx, call.actor())["handoffs"]
    found = [row["id"] for row in listed if row["for_you"]]
    if not found:
        raise refused("no-handoff", "no handoff waits for you", "see which there are: git handoff list --all")
    if len(found) > 1:
        raise UsageError(
            "more than one handoff waits for you: say which", hints=tuple(f"git handoff accept {id}" for id in found)
        )
    return str(found[0])


def _to_branch(call: Call, branch: str) -> list[str]:
    """The hint to go to the branch of a handoff, which may have to be fetched first."""
    if not branch:
        return []
    remote = call.ctx.remote or "origin"
    here = call.ctx.local.target(f"refs/heads/{branch}") or call.ctx.local.target(f"refs/remotes/{remote}/{branch}")
    fetch = "" if here else f"git fetch {shell_word(remote)} && "
    return [f"its branch: {fetch}git switch {shell_word(branch)}"]


def decline(call: Call, values: Values, words: list[str]) -> int:
    return _close(call, words[0], DECLINED, str(values["reason"]))


def withdraw(call: Call, values: Values, words: list[str]) -> int:
    return _close(call, words[0], WITHDRAWN, str(values.get("reason", "")))


def _close(call: Call, id: str, state: str, reason: str) -> int:
    result = call.do(Close(call.actor(), id, state, reason))
    call.screen.say(f"{result['state']} {result['id']}" + ("" if result["changed"] else " (before)"))
    if result["returned"]:
        call.screen.note("note: its task is in the queue again: its owner lost its place under a cap")
    return 0

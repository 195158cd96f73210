"""`git coord approvals`, `approve` and `deny`: the requests that wait for a person, and the person's answer."""

from __future__ import annotations

from gitcoord.base.names import printable
from gitcoord.gates.approvals import difference, listing
from gitcoord.gates.events.answer import Answer, decide
from gitcoord.ledger.transaction import transact
from gitcoord.terminal.call import Call, has_ledger
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import ago


def approvals(call: Call, values: Values, words: list[str]) -> int:
    if not has_ledger(call.ctx):
        call.screen.answer({"initialised": False, "approvals": []})
        call.note_not_set_up()
        return 0
    rows = listing(call.ctx, all=bool(values.get("all")))
    call.screen.answer({"initialised": True, "approvals": [row._asdict() for row in rows]})
    if call.screen.json:
        return 0
    for row in rows:
        state = "" if row.state == "open" else f"  {row.state} by {row.by}"
        content = row.blob[:12] or "deleted"
        asked = f"asked by {row.agent} {ago(row.at)}"
        call.screen.say(f"{row.id}  {printable(row.path)} ({content})  {asked}  [{row.rule}]{state}")
        if values.get("diff"):  # against trunk
            call.screen.say(*("  " + printable(line) for line in difference(call.ctx, row).split("\n")))
    if rows:
        call.screen.hint("git coord approve <id>, or git coord deny <id> --reason '...'; --diff shows the change")
    else:
        call.screen.note("nothing waits for approval")
    return 0


def approve(call: Call, values: Values, words: list[str]) -> int:
    return _answer(call, values, words[0], approved=True)


def deny(call: Call, values: Values, words: list[str]) -> int:
    return _answer(call, values, words[0], approved=False)


def _answer(call: Call, values: Values, id: str, *, approved: bool) -> int:
    blob = str(values.get("blob", ""))
    record = next((row for row in listing(call.ctx, all=True) if row.id == id), None)
    if record is not None and record.blob.startswith(blob):
        blob = record.blob
    result = transact(
        call.ctx, decide, Answer(call.person("approve or deny"), id, approved, blob, str(values.get("reason", "")))
    )
    call.screen.answer(result)
    call.screen.say(f"{result['state']} {printable(str(result['path']))}")
    return 0

"""`git coord task join`: wait until a set of tasks is over, and gather their results."""

from __future__ import annotations

from gitcoord.base.names import printable
from gitcoord.tasks import service as tasks
from gitcoord.tasks.model import DONE, OVER
from gitcoord.terminal.call import Call, duration
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row


def join(call: Call, values: Values, words: list[str]) -> int:
    """0: all are done; 1: all are over or wait for a person, not all of them done; 3: not over in time."""
    seconds = duration(values, "wait")
    ids = list(dict.fromkeys(words))

    def ask() -> Row:
        call.recent()
        rows = tasks.several(call.ctx, ids)
        going = [row["id"] for row in rows if row["state"] not in (*OVER, "needs-human")]
        if going and seconds:
            from gitcoord.claims.cli_sleep import later

            raise later(f"{len(ids) - len(going)} of {len(ids)} over; still going: {', '.join(going[:5])}")
        return {"tasks": rows, "going": going, "done": all(row["state"] == DONE for row in rows)}

    if seconds:
        from gitcoord.claims.cli_sleep import in_time

        result = in_time(call, ask, seconds)
    else:
        result = ask()
    call.screen.answer(result, ok=bool(result["done"]))
    for row in result["tasks"]:
        words_of = row["result"].get("summary") or row["result"].get("reason") or row["reason"]
        call.screen.say(f"{call.screen.paint(row['id'], 'bold')} {row['state']}: {printable(words_of or row['title'])}")
        call.screen.say(*(f"  not done: {printable(line)}" for line in row["result"].get("not_done", ())))
    return 0 if result["done"] else 3 if result["going"] else 1

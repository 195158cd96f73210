"""The verbs of `git coord task` that take, move, finish and show tasks."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.durations import format_duration
from gitcoord.base.errors import (
    GitcoordError,
    OutcomeUnknown,
    Refusal,
    Refused,
    TimedOut,
    Unreachable,
    UsageError,
    refused,
)
from gitcoord.base.names import PATH, RESOURCE, printable, quote
from gitcoord.claims.model import MAX_TTL, Item
from gitcoord.journal.notes import unseen_below
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.startup.annotations import Callable
from gitcoord.tasks import service as tasks
from gitcoord.tasks.events.assign import Assign
from gitcoord.tasks.model import ABANDONED, BLOCKED, DONE, FAILED, NEEDS_HUMAN, NONE_LEFT, OPEN, STATES, held_by
from gitcoord.terminal.call import Call, duration, nonce, text, texts
from gitcoord.terminal.input import json_from
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.claims.cli_sleep import Bell, Rest

# --- taking -----------------------------------------------------------------------------------------------------------


def take(call: Call, values: Values, words: list[str]) -> int:
    return _assign(call, values, words[0])


def next_(call: Call, values: Values, words: list[str]) -> int:
    return _assign(call, values, "")


def _assign(call: Call, values: Values, id: str) -> int:
    from gitcoord.tasks.events.assign import Assign

    command = Assign(call.actor(), id, duration(values, "ttl", MAX_TTL), nonce=nonce(values))
    seconds, while_any = duration(values, "wait"), bool(values.get("while-any"))
    result: Row = (
        _wait_for_task(call, command, seconds, while_any=while_any) if seconds else tasks.assign(call.ctx, command)
    )
    if result["task"] is None:
        call.screen.answer(result, ok=False)
        _say_nothing_ready(call, result)
        return 1
    notes = unseen_below(call.ctx, command.actor.agent, result["assignment"]["claims"])
    from gitcoord.claims.cli import bare, lacked_lines, say_lacked

    lacks = lacked_lines(call, result["assignment"]["claims"])
    call.screen.answer({**result, **({"notes": notes} if notes else {}), **({"lacks": bare(lacks)} if lacks else {})})
    _say_assigned(call, result)
    say_lacked(call, lacks)
    if notes:
        from gitcoord.journal.cli_note import deliver

        deliver(call, notes)
    return 0


def _wait_for_task(call: Call, command: Assign, seconds: int, *, while_any: bool) -> Row:
    """Take it, or wait in the queue up to `seconds`; `while_any`: only as long as a task is left. At the end and at Ctrl-C the place is given up; a process that is killed keeps it."""
    from gitcoord.claims.cli_sleep import in_time, still_queued

    place = _Place(call, command, while_any=while_any)
    try:
        return in_time(call, place.ask, seconds, place.rest)
    except TimedOut:
        try:
            result = {} if tasks.leave(call.ctx, command, gives_back=False) else _granted_meanwhile(call, command)
        except (Unreachable, OutcomeUnknown) as error:
            raise still_queued(error, seconds) from None
        if not result.get("task"):
            raise
        return result
    except Refused:
        tasks.leave(call.ctx, command, gives_back=True)
        raise
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_given_up(call, command)) from None


def _granted_meanwhile(call: Call, command: Assign) -> Row:
    try:
        return tasks.assign(call.ctx, command)
    except Refused:
        return {}


def _given_up(call: Call, command: Assign) -> str:
    try:
        tasks.leave(call.ctx, command, gives_back=True)
    except GitcoordError as error:
        return f"you may still be in the queue: {printable(error.message)}; to leave it: git claim --leave"
    return "left the queue, no task was taken"


_LOOK, _LONGEST = 5.0, 15.0  # seconds after which to look again, since something may have expired


class _Place:
    """A place in the queue for a task."""

    def __init__(self, call: Call, command: Assign, *, while_any: bool) -> None:
        self._while_any = while_any
        self._call = call
        self._command = command
        self._sleep: Rest | None = None  # since it has a place
        self._look = _LOOK

    def ask(self) -> Row:
        """The task; or Refused with the place in the queue."""
        from gitcoord.claims.cli_sleep import later
        from gitcoord.claims.cli_wait import standing_line

        result: Row = {}
        for _ in range(2):
            try:
                result = tasks.assign(self._call.ctx, self._command, waits=True)
            except (Unreachable, OutcomeUnknown) as error:
                if self._sleep is None:
                    raise
                raise later(error.message) from None  # its place is kept at the remote, and asking again is harmless
            if result["task"] is not None:
                return result
            if self._while_any and result["why"] == NONE_LEFT:
                raise refused("none-left", NONE_LEFT, "that is all: git coord stop")
            if result["ticket"]:
                self._take_place(result)
                result["why"] = f"{result['why']}; {standing_line({**result, 'held': []})}"
                break  # else it was granted just now
        raise Refused(Refusal("held", result["why"], tuple(result["held"])))

    def _take_place(self, result: Row) -> None:
        from gitcoord.claims.cli_sleep import Rest

        position = int(str(result["position"]))
        if self._sleep is None:
            names: list[str] = result["paths"]
            items = (Item(RESOURCE, name[1:]) if name[0] == "@" else Item(PATH, name) for name in names)
            self._sleep = Rest(self._call, tuple(items), self._command.actor.agent)
        self._sleep.stands(position)
        self._look = _LOOK if position == 1 else _LONGEST

    def rest(self, bell: Bell, seconds: float) -> None:
        """Sleep until the grant comes; the first in the queue looks for tasks of lost owners meanwhile."""
        seconds = min(seconds, self._look)
        if self._sleep is None:
            bell.wait(seconds)
        else:
            self._sleep(bell, seconds)


def _say_nothing_ready(call: Call, result: Row) -> None:
    held_up: list[Row] = result["held_up"]
    call.screen.say(str(result["why"]))
    call.screen.note(*(f"  {printable(str(row['message']))}" for row in held_up[:5]))
    if len(held_up) > 5:
        call.screen.note(f"  and {len(held_up) - 5} more")
    if result["why"] == NONE_LEFT:
        call.screen.hint("that is all: git coord stop", "see what was done: git coord task list --all")
    else:
        call.screen.hint(
            "wait for one to come back: git coord task next --wait 10m --while-any",
            "see them all: git coord task list --all",
        )


def _say_assigned(call: Call, result: Row) -> None:
    task: Row = result["task"]
    call.screen.say(f"{call.screen.paint(str(task['id']), 'bold')} is yours: {printable(str(task['title']))}")
    call.screen.say(*_details(task)[1:])
    claims: list[Row] = result["assignment"]["claims"]
    call.screen.say(*(f"  claimed {printable(str(claim['path']))}, token {claim['token']}" for claim in claims))
    state, owner = read_snapshot(call.ctx, trusting=True).state, str(task["owner"])
    more = [held.id for held in held_by(state, owner) if held.id != task["id"]] if not call.screen.json else []
    call.screen.note(*([f"note: you have {', '.join(more)} too"] if more else []))
    call.screen.hint(
        f"when your branch lands, it is done: git coord land --task {task['id']}",
        f"or, where nothing lands: git coord task complete {task['id']} -m '...' --not-done none",
    )


# --- moving -----------------------------------------------------------------------------------------------------------


def _mover(move: str, verb: str) -> Callable[[Call, Values, list[str]], int]:
    """The handler of a verb that moves a task to another state."""
    return lambda call, values, words: revise(call, values, words[0], move, verb)


block = _mover(BLOCKED, "blocked")
unblock = _mover("unblock", "unblocked")
needs_human = _mover(NEEDS_HUMAN, "waits for a person:")
release = _mover(OPEN, "gave back")
abandon = _mover(ABANDONED, "abandoned")
reopen = _mover(OPEN, "reopened")


def review(call: Call, values: Values, words: list[str]) -> int:
    if bool(values.get("accept")) == bool(values.get("return")):
        raise UsageError("say --accept or --return")
    accepted = bool(values.get("accept"))
    return revise(call, values, words[0], DONE if accepted else OPEN, "accepted" if accepted else "sent back")


def revise(
    call: Call, values: Values, id: str, move: str, verb: str, *, content: Record | None = None, owner: str = ""
) -> int:
    from gitcoord.tasks.events.revise import Revise

    command = Revise(
        call.actor(), id, content or {}, move, owner, text(values, "reason"), bool(values.get("dirty"))
    )  # fmt: skip
    return _say_moved(call, tasks.revise(call.ctx, command), verb)


def _say_moved(call: Call, result: Row, verb: str) -> int:
    call.screen.answer(result)
    call.warn(result)
    task: Row = result["task"]
    call.screen.say(f"{verb} {call.screen.paint(str(task['id']), 'bold')}: it is {task['state']}")
    call.screen.say(*(f"  released {printable(str(row['path']))}" for row in result["released"]))
    if result["released"] and not call.screen.json:
        from gitcoord.claims.cli_trunk import not_landed_lines

        call.screen.note(*not_landed_lines(call.ctx, result["released"]))
    return 0


# --- handing in -------------------------------------------------------------------------------------------------------


def complete(call: Call, values: Values, words: list[str]) -> int:
    left = texts(values, "not-done")
    if "result" in values:
        if "message" in values or left:
            raise UsageError("--result goes without -m and --not-done")
        record = json_from(str(values["result"]))
    elif "message" in values and left:
        record = {"summary": str(values["message"]), "not_done": [] if left == ["none"] else left}
    else:
        raise UsageError(
            "a result says what was done and what was not",
            hints=("-m 'what was done' --not-done 'what was not' (or: --not-done none)", "or: --result result.json"),
        )
    return _finish(call, values, words[0], DONE, record)


def fail(call: Call, values: Values, words: list[str]) -> int:
    if ("result" in values) == ("reason" in values):
        raise UsageError("say --reason, or --result with a file")
    record = json_from(str(values["result"])) if "result" in values else {"reason": text(values, "reason")}
    return _finish(call, values, words[0], FAILED, record)


def _finish(call: Call, values: Values, id: str, outcome: str, record: object) -> int:
    from gitcoord.tasks.events.finish import Finish

    command = Finish(call.actor(), id, outcome, record, bool(values.get("dirty")), nonce(values))  # type: ignore[arg-type]
    return _say_moved(call, tasks.finish(call.ctx, command), "handed in" if outcome == DONE else "failed")


# --- looking ----------------------------------------------------------------------------------------------------------


def list_(call: Call, values: Values, words: list[str]) -> int:
    states = tuple(texts(values, "state")) or (STATES if values.get("all") else ())
    wrong = [state for state in states if state not in STATES]
    if wrong:
        raise UsageError(f"{quote(wrong[0][:40])} is not a state of a task", hints=(", ".join(STATES),))
    owner = call.actor().agent if values.get("mine") else str(values.get("owner", ""))
    result = call.show(lambda: tasks.listing(call.ctx, states=states, owner=owner), tasks=[])
    if result is None:
        return 0
    call.screen.say(*task_lines(call, result["tasks"]))
    if not result["tasks"]:
        over = result["hidden"] if not (states or owner) else 0
        call.screen.note(f"no task is left: {over} over, git coord task list --all" if over else "no tasks")
    return 0


def task_lines(call: Call, rows: list[Row]) -> list[str]:
    names = ("id", "state", "priority", "owner", "title")
    table = [[*(str(row[name]) for name in names), _aside(row)] for row in rows]
    return call.screen.table(table, ["bold", "yellow", "dim", "cyan", "", "dim"])


def _aside(row: Row) -> str:
    """The reason why the task is not moving."""
    if row["reason"]:
        return f"({row['reason']})"
    if row["state"] == "open" and row["waits"]:
        return f"(waits for {', '.join(row['waits'])})"
    return f"(handed over: {row['handoff']})" if row["handoff"] else ""


def show(call: Call, values: Values, words: list[str]) -> int:
    age = call.recent()
    (task,) = tasks.several(call.ctx, [words[0]])
    call.screen.answer({"task": task, **age})
    call.screen.say(*_details(task))
    return 0


def _details(task: Row) -> list[str]:
    rows = [
        f"{task['id']} {printable(str(task['title']))}",
        f"  {task['state']}, {task['priority']}, since {ago(task['since'])}",
    ]
    names = ("owner", "next", "reason", "line", "role", "branch", "handoff", "by")
    rows += [f"  {name}: {printable(str(task[name]))}" for name in names if task[name]]
    if task.get("waits"):
        rows.append(f"  waits for: {', '.join(task['waits'])}")
    if task["paths"]:
        rows.append(f"  paths: {printable(', '.join(task['paths']))}")
    if task["expected"]:
        rows.append(f"  expected: {format_duration(int(str(task['expected'])))}")
    if not task["safe"]:
        rows.append("  another one may not safely go on with it")
    if task["attempts"]:
        rows.append(f"  lost so far: {task['attempts']} of {task['limit']}")
    rows += [f"    {printable(line)}" for line in str(task["body"]).split("\n") if task["body"]]
    result: Record = task["result"]
    if result:
        rows.append(f"  result by {result['agent']}: {printable(str(result.get('summary') or result.get('reason')))}")
        rows += [f"    not done: {printable(row)}" for row in result.get("not_done", ())]
    return rows

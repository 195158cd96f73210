"""`take --wait` and `--queue`: a place in the queue, what is said about it, and leaving it."""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError, OutcomeUnknown, Refusal, Refused, TimedOut, Unreachable, UsageError
from gitcoord.base.names import printable, shell_word, shown
from gitcoord.claims.cli_sleep import Overdue, Rest, in_time, later, still_queued
from gitcoord.claims.events.leave import Leave
from gitcoord.claims.events.wait import Wait, own_place
from gitcoord.claims.model import Item
from gitcoord.claims.service import leave, wait
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.terminal.call import Call, number, text
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.claims.take import Take


def take_in_time(call: Call, command: Wait, seconds: int, *, eager: bool = False, note: str = "") -> Row:
    """Take, or wait in the queue up to `seconds`. At the end (TimedOut) and at Ctrl-C the place is given up, unless an earlier `--queue`
    has taken it. `eager`: it looks at a remote more often, where everybody behind it waits for that too. `note`: said once,
    where it has to wait.

    A process that is killed keeps its place, so that an agent whose tool ended the command can ask again."""
    rest = Rest(call, command.items, command.actor.agent, eager=eager)
    queued = _is_queued(call, command)

    def ask() -> Row:
        try:
            result = wait(call.ctx, command, again=bool(rest.patience))
        except (Unreachable, OutcomeUnknown) as error:
            if not rest.patience:
                raise
            raise later(error.message) from None  # its place is kept at the remote, and asking again is harmless
        if "waiting" in result:
            rest.stands(int(str(result["position"])))
            raise Waits(result)
        return result

    try:
        return in_time(call, ask, seconds, rest, Overdue(call, command), note)
    except TimedOut as late:
        try:
            if queued:
                return _stay(call, command, late)
            left: list[Row] = leave(call.ctx, Leave(command.actor, command.items), gives_back=False)["left"]  # type: ignore[assignment]
            if left:
                late.message += f"; left the queue (ticket {left[0]['ticket']})"
                raise
        except (Unreachable, OutcomeUnknown) as error:
            raise still_queued(error, seconds) from None
        return ask()  # granted meanwhile
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_given_up(call, command, queued=queued)) from None


def _is_queued(call: Call, command: Wait) -> bool:
    """Return whether the agent has this place in the queue already, without a command that waits."""
    mine = own_place(read_snapshot(call.ctx, trusting=True).state, command)
    return mine is not None and not mine.blocking


def _stay(call: Call, command: Wait, late: TimedOut) -> Row:
    """The time is over, and the place stays as `--queue` had taken it; raises `late` unless it was granted meanwhile."""
    result = wait(call.ctx, command._replace(blocking=False))
    if "waiting" not in result:
        return result
    again = " ".join(call.typed(shown(item.name, item.space)) for item in command.items)
    late.message += f"; your place in the queue stays (ticket {result['ticket']})"
    late.data["stays"] = True
    late.hints = (f"wait longer: git claim --wait 30m {again}", f"or give the place up: git claim --leave {again}")
    raise late


def _given_up(call: Call, command: Wait, *, queued: bool) -> str:
    """Give up the place in the queue, and what was granted meanwhile. Says in words what was changed. A place that `--queue` had taken
    stays."""
    try:
        if queued and "waiting" in (place := wait(call.ctx, command._replace(blocking=False))):
            return f"your place in the queue stays (ticket {place['ticket']}); to give it up: git claim --leave"
        result = leave(call.ctx, Leave(command.actor, command.items))
    except GitcoordError as error:
        return f"you may still be in the queue: {printable(error.message)}; to leave it: git claim --leave"
    left: list[Row] = result["left"]  # type: ignore[assignment]
    returned: list[Row] = result.get("returned", [])  # type: ignore[assignment]
    words = [f"left the queue (ticket {row['ticket']})" for row in left]
    words += [_returned(row) for row in returned]
    return ", ".join([*words, "nothing was claimed"] if words else ["nothing was changed"])


def _returned(row: Row) -> str:
    again = f" (you hold it again, mode {row['mode']})" if "mode" in row else ""
    return f"gave back {printable(str(row['path']))}, which was granted to you meanwhile{again}"


class Waits(Refused):
    """The answer of a request in the queue: the wait goes on. `key` changes when the line says something new, beside times."""

    def __init__(self, result: Row) -> None:
        super().__init__(Refusal("held", standing_line(result)))
        self.data = {key: result[key] for key in ("ticket", "position", "of", "before", "held")}
        held = [f"{claim['agent']} {claim['path']} {claim['token']}" for claim in result["held"]]
        self.key = f"{result['ticket']} {result['of']} {' '.join(result['before'])} {' '.join(held)}"


_FIRST = ("", "1st", "2nd", "3rd")


def standing_line(result: Row) -> str:
    """The place in the queue in words: position, holders with their reasons, agents before."""
    position, before = int(str(result["position"])), [str(name) for name in result["before"]]
    place = _FIRST[position] if position < len(_FIRST) else f"{position}th"
    parts = [f"{place} of {result['of']}"]
    grants: dict[tuple[str, int], list[Row]] = {}
    for claim in result["held"]:
        grants.setdefault((claim["agent"], claim["token"]), []).append(claim)
    parts += [_in_the_way(claims, result) for claims in list(grants.values())[:2]]
    if len(grants) > 2:
        parts.append(f"{len(grants) - 2} more are in the way")
    if before:
        names = ", ".join(before[:3]) + (f" and {len(before) - 3} more" if len(before) > 3 else "")
        parts.append(f"{names} {'is' if len(before) == 1 else 'are'} before you")
    return "; ".join(parts)


def _in_the_way(claims: list[Row], result: Row) -> str:
    """The claims of one grant in words: of a landing what it does, else the first claim and how many more."""
    from gitcoord.terminal.screen import expected, is_landing

    claim, why = claims[0], printable(str(claims[0]["reason"]))
    if any(map(is_landing, claims)) and why:
        return f"{claim['agent']} {why}"
    what = "it" if result.get("paths") == [claim["path"]] else printable(str(claim["path"]))
    more = f" and {len(claims) - 1} more" if len(claims) > 1 else ""
    long = f", {words}" if (words := expected(claim)) else ""
    return f"{claim['agent']} holds {what}{more}" + (f': "{why}"' if why else "") + long


def wait_command(take: Take, priority: str, *, blocking: bool) -> Wait:
    said = (take.mode, take.ttl, take.expected, take.reason, take.task, take.base, take.units)
    return Wait(take.actor, take.items, *said, priority=priority, blocking=blocking)


def say_queued(call: Call, result: Row, words: list[str]) -> int:
    """The answer of `--queue` where nothing was granted: exit 3."""
    call.screen.answer(result, ok=False)
    call.screen.say(f"in the queue, ticket {result['ticket']}: {standing_line(result)}")
    if not call.screen.json:
        again = " ".join(map(shell_word, words))
        call.screen.hint(
            f"your next command says when it is yours; to ask: git claim --queue {again}",
            f"to wait until then: git claim --wait 10m {again}",
            f"to give up the place: git claim --leave {again}",
        )
    return 3


def leave_queue(call: Call, actor: Actor, items: tuple[Item, ...], ticket: int, reason: str = "") -> int:
    """`--leave`: withdraw one's own requests, those for these items, or the one with this ticket."""
    if items and ticket:
        raise UsageError("say either paths or --ticket")
    result = leave(call.ctx, Leave(actor, items, ticket, reason=reason))
    call.screen.answer(result)
    left: list[Row] = result["left"]  # type: ignore[assignment]
    for row in left:
        paths, mark = printable(", ".join(row["paths"])), f"(ticket {row['ticket']})"
        mine = row["agent"] == actor.agent
        call.screen.say(
            f"left the queue for {paths} {mark}" if mine
            else f"withdrew the request of {row['agent']} for {paths} {mark}"
        )  # fmt: skip
    returned: list[Row] = result.get("returned", [])  # type: ignore[assignment]
    for row in returned:
        call.screen.say(_returned(row))
    if not (left or returned):
        call.screen.say(
            f"nobody waits with ticket {ticket}" if ticket
            else "you wait for nothing there" if items else "you wait for nothing"
        )  # fmt: skip
    return 0


def promote(call: Call, values: Values, words: list[str]) -> int:
    """`--ticket N --priority CLASS`: a person raises a request."""
    from gitcoord.claims.events.promote import Promote

    if words or "priority" not in values:
        raise UsageError("--ticket goes with --leave, or with --priority and no path")
    result = call.do(
        Promote(call.actor(), number(values, "ticket"), str(values["priority"]), reason=text(values, "message"))
    )
    paths = printable(", ".join(result["paths"]))
    call.screen.say(f"the request of {result['agent']} for {paths} (ticket {result['ticket']}) is {result['priority']}")
    return 0

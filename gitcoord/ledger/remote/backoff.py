"""Machines that push to one remote take turns: who waits for whom, and for how long (docs/adr/0025)."""

from __future__ import annotations

from gitcoord.base.names import LEDGER, SESSIONS
from gitcoord.git.files import list_files, read_file, write_file
from gitcoord.ledger.remote.fetch import fetch_once
from gitcoord.ledger.remote.git_remote import LANDED, LOST
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.context import Context

_COURTESY_MS = 20_000
_MOST = 8
_STREAK = 3
_LONGEST_STREAK = 48


class _Turn(NamedTuple):
    lost: int = 0  # in a row
    others: int = 0  # seem to push
    won: int = 0  # in a row
    until: int = 0  # others go first, on this boot's clock
    streak: int = _STREAK  # who wins so often in a row lets others go
    head: str = "-"  # the ledger when this clone last landed


def _turn(ctx: Context) -> _Turn:
    boot, _, rest = read_file(ctx.scratch("turn")).decode("ascii", "replace").partition("\n")
    words = rest.split()
    if boot != ctx.host.boot or len(words) != len(_Turn()) or not all(word.isdecimal() for word in words[:-1]):
        return _Turn()
    lost, others, won, until, streak = map(int, words[:-1])
    return _Turn(lost, others, won, until, streak, words[-1])


def _keep(ctx: Context, turn: _Turn) -> None:
    write_file(ctx.scratch("turn"), f"{ctx.host.boot}\n{' '.join(map(str, turn))}".encode())


def wait_for_turn(ctx: Context) -> None:
    """Wait for this machine's turn, and then look: while others push all the time, what is decided before is lost.

    All requests of the machine wait for the same moment, so one look serves them, and they ride together.
    """
    turn = _turn(ctx)
    wait = turn.until - ctx.host.mono()
    if not 0 < wait <= _COURTESY_MS:
        return
    ctx.host.pause(wait / 1000)
    fetch_once(ctx, turn.until)
    if _turn(ctx) == turn:
        now = turn._replace(until=0)
        if not turn.lost and turn.head == ctx.store.target(LEDGER):
            now = now._replace(others=max(0, turn.others - 1), streak=min(2 * turn.streak, _LONGEST_STREAK))
        elif not turn.lost:
            now = now._replace(streak=_STREAK)
        _keep(ctx, now)


def note_push(ctx: Context, kind: str, took: int, head: str = "-") -> None:
    """Having lost so often tells how many others push: each of them gets a turn when this machine has landed.

    Whoever has landed would win again and again, knowing first what is there; and whoever is slow would never be heard of, so
    who wins thrice in a row waits a little too where others are about. A wait that nobody used is shorter the next time, and such
    waits come more and more seldom: most of those who are about only beat.
    """
    before = _turn(ctx)
    if kind == LOST:
        lost = before.lost + 1
        # Who loses again meets those who lost to the same one, unless each waits for a while of its own.
        wait = took * int(ctx.host.random()[:4], 16) // 0x10000 if before.lost else 0
        others = max(min(lost, _MOST), before.others) if before.lost else before.others  # once may be by chance
        _keep(ctx, _Turn(lost, others, 0, ctx.host.mono() + wait if wait else 0))
    elif kind == LANDED:
        strangers, others = _strangers(ctx), before.others
        won = before.won + 1 if strangers else 0
        wait = 2 * others * took
        if won >= before.streak:
            won, wait = 0, max(wait, _STREAK * took) if _have_sessions(ctx, strangers) else wait
        until = ctx.host.mono() + min(wait, _COURTESY_MS) if wait else 0
        now = _Turn(0, others, won, until, before.streak, head if wait else "-")
        if now != before:
            _keep(ctx, now)


def _strangers(ctx: Context) -> set[str]:
    """Agents that were ever seen and never acted in this clone. Without any, nobody counts who wins."""
    return {*list_files(ctx.scratch("seen"))} - {*list_files(ctx.scratch("beats"))}


def _have_sessions(ctx: Context, agents: set[str]) -> bool:
    """Has one of them a session?"""
    return any(ref.removeprefix(SESSIONS) in agents for ref in ctx.store.list_refs(SESSIONS))

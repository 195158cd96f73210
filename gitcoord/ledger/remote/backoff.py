"""Back-off between machines that push to one remote: who waits for whom, and for how long (docs/adr/0025)."""

from __future__ import annotations

from gitcoord.base.names import LEDGER, SESSIONS
from gitcoord.git.files import list_files, read_file, write_file
from gitcoord.ledger.context import Context
from gitcoord.ledger.remote.fetch import fetch_once
from gitcoord.ledger.remote.git_remote import LANDED, RACED
from gitcoord.ledger.sessions import OPEN, agent_record
from gitcoord.ledger.state import State
from gitcoord.startup.namedtuple import NamedTuple

_LONGEST_WAIT_MS = 20_000
_MOST_OTHERS = 8
_TOOTH = 5
_STREAK = 3
_LONGEST_STREAK = 48


class _Turn(NamedTuple):
    lost: int = 0  # consecutive races
    others: int = 0  # estimate of the machines that push
    won: int = 0  # consecutive races
    until: int = 0  # others go first until then, on this boot's clock
    streak: int = _STREAK  # yield after so many consecutive wins
    head: str = "-"  # the ledger when this clone last landed a push


def _load_turn(ctx: Context) -> _Turn:
    boot, _, rest = read_file(ctx.scratch("turn")).decode("ascii", "replace").partition("\n")
    words = rest.split()
    if boot != ctx.host.boot or len(words) != len(_Turn()) or not all(word.isdecimal() for word in words[:-1]):
        return _Turn()
    lost, others, won, until, streak = map(int, words[:-1])
    return _Turn(lost, others, won, until, streak, words[-1])


def _save_turn(ctx: Context, turn: _Turn) -> None:
    write_file(ctx.scratch("turn"), f"{ctx.host.boot}\n{' '.join(map(str, turn))}".encode())


def wait_for_turn(ctx: Context) -> None:
    """Wait until it is this machine's turn, and fetch. A decision made before that would lose its race.

    All requests of the machine wait for the same moment: one fetch serves them, and one push carries them.
    """
    turn = _load_turn(ctx)
    wait = turn.until - ctx.host.mono()
    if not 0 < wait <= _LONGEST_WAIT_MS:
        return
    ctx.host.pause(wait / 1000)
    fetch_once(ctx, turn.until)
    if _load_turn(ctx) == turn:
        now = turn._replace(until=0)
        if not turn.lost and turn.head == ctx.store.target(LEDGER):
            now = now._replace(others=max(0, turn.others - 1), streak=min(2 * turn.streak, _LONGEST_STREAK))
        elif not turn.lost:
            now = now._replace(streak=_STREAK)
        _save_turn(ctx, now)


def note_push(ctx: Context, kind: str, took: int, head: str = "-") -> None:
    """Record the result of a push, and when this machine may push again.

    The number of lost races estimates how many other machines push. After a push has landed, each of them gets a turn;
    otherwise the winner, which knows the new ledger first, would win again and again. After `streak` consecutive wins the
    machine also yields once if other machines have open sessions, because a slow machine may never have won or been
    counted. A wait that nobody used makes the next one shorter and rarer: most other machines only send heartbeats.
    """
    before = _load_turn(ctx)
    if kind == RACED:
        lost = before.lost + 1
        # Not after the first loss, which may be by chance. Then random, in a window that doubles: those that lost to the same winner would
        # meet again, and a crowd would keep all from landing. After five losses as at first, since the unluckiest would else be the last.
        window = took * ((1 << before.lost % _TOOTH) - 1)
        wait = window * int(ctx.host.random()[:4], 16) // 0x10000
        others = max(min(lost, _MOST_OTHERS), before.others) if before.lost else before.others  # once may be by chance
        _save_turn(ctx, _Turn(lost, others, 0, ctx.host.mono() + wait if wait else 0))
    elif kind == LANDED:
        strangers, others = _strangers(ctx), before.others
        won = before.won + 1 if strangers else 0
        wait = 2 * others * took
        if won >= before.streak:
            won, wait = 0, max(wait, _STREAK * took) if _have_sessions(ctx, strangers) else wait
        until = ctx.host.mono() + min(wait, _LONGEST_WAIT_MS) if wait else 0
        now = _Turn(0, others, won, until, before.streak, head if wait else "-")
        if now != before:
            _save_turn(ctx, now)


def _strangers(ctx: Context) -> set[str]:
    """Agents whose heartbeats were seen and that never acted in this clone. Without any, wins are not counted."""
    return {*list_files(ctx.scratch("seen"))} - {*list_files(ctx.scratch("beats"))}


def meets_others(ctx: Context, state: State, agent: str) -> bool:
    """Return whether agents that never acted in this clone have open sessions, as far as it has seen. `agent` acts in it now."""
    found = [agent_record(state, name) for name in _strangers(ctx) - {agent}]
    return any(record is not None and record.state == OPEN for record in found)


def _have_sessions(ctx: Context, agents: set[str]) -> bool:
    return any(ref.removeprefix(SESSIONS) in agents for ref in ctx.store.list_refs(SESSIONS))

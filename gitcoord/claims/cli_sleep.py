"""The sleep of a command that waits: until its own grant comes, the ledger moves, a claim may have expired, or the time is over.

On Linux a directory notification on `refs/gitcoord` wakes the process when the tip moves; elsewhere it polls twice a second.
"""

from __future__ import annotations

import time

from gitcoord.base.durations import format_duration
from gitcoord.base.errors import GitcoordError, OutcomeUnknown, Refusal, Refused, TimedOut, Unreachable
from gitcoord.base.names import RESOURCE, TIP, claim_dir, claim_file, fold, printable
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.model import Item
from gitcoord.claims.requests import NEXT
from gitcoord.git.files import close, is_directory, list_files, open_to_read, read_file
from gitcoord.git.host import isatty, terminal_width
from gitcoord.git.plumbing_store import PlumbingStore
from gitcoord.ledger.remote.fetch import store_of
from gitcoord.ledger.remote.mirror_store import MirrorStore
from gitcoord.startup.annotations import Any, Callable
from gitcoord.terminal.call import Call
from gitcoord.terminal.screen import Row, put

_POLL = 0.5
_LONGEST = 15.0
_SOON = 0.1
_LONGEST_LOOK = 5.0
_PATIENCE = 1.0  # seconds for each place in the queue
_WATCHED = 16  # items whose refs a waiter looks at


class Bell:
    """Wakes a waiter (by SIGIO, blocked) when a ref in the directory moves; without notifications, twice a second.

    git moves a ref by renaming its lock file. Other changes are not looked at: there are several for each move, also where a ref is only
    verified, and each would wake every waiter.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._fds: list[int] = []
        self._wait: Callable[[list[int], float], Any] | None = None
        self.watch()

    def watch(self) -> None:
        """Begin, or begin anew: git removes a directory below `refs` when it packs the last ref in it."""
        self.close()
        try:
            from _signal import SIG_BLOCK, SIGIO, pthread_sigmask, sigtimedwait
            from fcntl import DN_MULTISHOT, DN_RENAME, F_NOTIFY, fcntl

            self._wait = sigtimedwait
            self._signal = SIGIO
            pthread_sigmask(SIG_BLOCK, [SIGIO])
            if is_directory(self._directory):
                self._fds.append(open_to_read(self._directory))
                fcntl(self._fds[-1], F_NOTIFY, DN_RENAME | DN_MULTISHOT)
        except (ImportError, OSError):
            self.close()

    def wait(self, seconds: float, *others: int) -> tuple[int, int]:
        """Wait for a change or another blocked signal: (signal or 0, sender or 0). It may return without a change."""
        if not self._fds:
            seconds = min(seconds, _POLL)
            if not others or self._wait is None:
                time.sleep(seconds)
                return 0, 0
        assert self._wait is not None
        came = self._wait([self._signal, *others], seconds)
        return (came.si_signo, came.si_pid) if came is not None else (0, 0)

    def close(self) -> None:
        while self._fds:
            close(self._fds.pop())


class Rest:
    """The sleep of a waiter: the event that grants its request wakes it, other events do so later.

    A grant moves the claim's ref in the same transaction, before `refs/gitcoord/tip`. So most waiters need not read the ledger when it
    moves. Where that ref does not show (packed, or a crash tore the transaction), the later look finds the grant.
    """

    def __init__(self, call: Call, items: tuple[Item, ...], agent: str, *, eager: bool = False) -> None:
        # A grant gives at least one of the items: which ones, depends on what the agent holds then.
        files = [
            claim_file(i.space, fold(i.name, case=case), agent) for i in items[:_WATCHED] for case in (False, True)
        ]
        self._names = [f"refs/{file}" for file in dict.fromkeys(files)]
        self._refs = [f"{call.ctx.repo.common_dir}/{name}" for name in self._names]
        # Who waits for any task is granted a task's own resource, among the few that are reserved.
        self._tasks = f"{call.ctx.repo.common_dir}/refs/{claim_dir(RESOURCE, 'task')}" if NEXT in items else ""
        self._agent = agent
        self._ctx = call.ctx
        self._seen = self._own()
        self.patience = 0.0  # seconds between a change and the look at it
        self._eager = eager
        self._woke = 0.0  # when the last sleep ended, and the look at the ledger began
        self._position, self._since = 0, 0.0  # its position in the queue, and since when

    def _own(self) -> dict[str, bytes]:
        """The claims' refs, as files. There may be some already: of a weaker mode, or of an item that is held."""
        tasks = list_files(self._tasks) if self._tasks else []
        refs = [*self._refs, *(f"{self._tasks}/{name}/@{self._agent}" for name in tasks)]
        return {ref: found for ref in refs if (found := read_file(ref))}

    def stands(self, position: int) -> None:
        """The request is in the queue, at this position."""
        self.patience = _PATIENCE * position
        if position != self._position:
            self._position, self._since = position, time.monotonic()

    def period(self) -> float:
        """Seconds between two looks at a remote. An eager waiter looks often at first, and less the longer nothing moves; the further
        behind it is, the less."""
        longest = 1.0 if self.patience <= 2 else 5.0
        if not self._eager:
            return longest
        return min(longest, max(_SOON, (time.monotonic() - self._since) / 10, (self._position - 1) / 2))

    def _known(self) -> dict[str, str] | None:
        """The claims' refs as this clone knows them from the remote, for the first in the queue, which waits for nothing but its grant. None for
        others, which look at the ledger, and where these refs do not tell of a grant."""
        if self._position != 1 or self._tasks:
            return None
        if not isinstance(self._ctx.store, MirrorStore) or self._ctx.store.remote.branches:
            return None
        found = zip(self._names, self._ctx.store.local.resolve(self._names))
        return {name: oid for name, oid in found if oid is not None}

    def _look(self) -> dict[str, str] | None:
        """The same at the remote: one small question, where a fetch would bring all events of others; None where it does not answer."""
        try:
            return store_of(self._ctx).remote.look(self._names)
        except (GitcoordError, OSError):
            return None

    def __call__(self, bell: Bell, seconds: float) -> None:
        local = not self._ctx.remote
        now = time.monotonic()
        looked = (
            min(now - self._woke, _LONGEST_LOOK) if self._woke else 0.0
        )  # a machine or a link that is busy is asked less often
        period = max(self.period(), looked)
        known = None if local else self._known()
        end = now + (seconds if local else min(seconds, period if known is None else max(period, _LONGEST_LOOK)))
        while (left := end - time.monotonic()) > 0 and self._own() == self._seen:
            rang, _ = bell.wait(left if local else min(left, period))
            if rang and local:
                end = min(end, time.monotonic() + self.patience)
            elif known is None or self._look() != known:
                break
        before, self._seen = self._seen, self._own()
        if isinstance(self._ctx.store, PlumbingStore) and before != self._seen:
            self._ctx.store.open(writing=True)  # the git that will confirm the grant gets ready meanwhile
        self._woke = time.monotonic()


_MAY_END = ("held", "halted", "cap", "later")  # refusals that may end by themselves


def in_time(
    call: Call,
    ask: Callable[[], Row],
    seconds: int,
    rest: Callable[[Bell, float], object] = Bell.wait,
    overdue: Overdue | None = None,
    note: str = "",
) -> Row:
    """Repeat `ask` until it is not refused by one of `_MAY_END`, and `rest` in between. TimedOut after `seconds`. `note` is said once."""
    bell = Bell(f"{call.ctx.repo.common_dir}/{TIP.rpartition('/')[0]}")
    progress = Progress(call, note)
    overdue = overdue or Overdue(call)
    start = time.monotonic()
    is_shared = False
    try:
        while True:
            try:
                return ask()
            except Refused as refused:
                if refused.code not in _MAY_END:
                    raise
                left = start + seconds - time.monotonic()
                if left <= 0:
                    raise TimedOut(
                        f"waited {format_duration(seconds)}: {refused.message}",
                        hints=refused.hints[1:],
                        data=refused.data,
                    ) from None
                if call.ctx.remote and not is_shared:
                    is_shared = True
                    _share_connection(call)
                held: list[Row] = refused.data.get("held", [])  # type: ignore[assignment]
                progress.show(held, start, left, refused.message, getattr(refused, "key", ""))
                late = overdue.check(held, time.monotonic() - start)
                rest(bell, min(left, _soonest(held), progress.period, late))
                bell.watch()
    finally:
        progress.clear()
        bell.close()


def _share_connection(call: Call) -> None:
    """A waiter looks at the remote again and again: over ssh, through one connection for all waiters of this clone that log in alike."""
    from gitcoord.git.commands.remotes import share_connection

    share_connection(call.ctx.repo.env, call.ctx.remote, call.ctx.repo.scratch)


def later(message: str) -> Refused:
    """The refusal that makes a waiter ask again."""
    return Refused(Refusal("later", message))


def still_queued(error: Unreachable | OutcomeUnknown, seconds: int) -> GitcoordError:
    """The error where a wait is over and its place could not be given up, since the remote does not answer."""
    hint = "to leave it when the remote answers: git claim --leave; else it ends when you have missed two grants"
    words = f"waited {format_duration(seconds)}, and your place in the queue stays at the remote: {error.message}"
    return type(error)(words, hints=(hint,), data=error.data)


def _soonest(held: list[Row]) -> float:
    """Seconds until the first of these claims may expire."""
    times = [claim["expires_in_seconds"] for claim in held]
    return max(0.2, min([_LONGEST, *(t + 0.2 for t in times if isinstance(t, int))]))


class Overdue:
    """Runs the alert command, if one is set, when a holder takes twice as long as it expected (default: its ttl)."""

    def __init__(self, call: Call, command: Wait | None = None) -> None:
        self._call = call
        self._command = command
        self._earlier: float | None = None
        self._on = bool(call.ctx.settings.get("gitcoord.alert"))

    def check(self, held: list[Row], waited: float) -> float:
        """Alert for overdue holders; gives the seconds until the next check."""
        soonest = _LONGEST
        if self._on and self._earlier is None:
            self._earlier = self._waited_earlier(waited)
        waited += self._earlier or 0
        for claim in held if self._on else ():
            left = 2 * int(str(claim["expected_seconds"] or claim["ttl_seconds"])) - waited
            if left >= 0:
                soonest = min(soonest, left + 0.1)
            else:
                self._alert(claim, int(waited))
        return soonest

    def _waited_earlier(self, waited: float) -> float:
        """Seconds for which the request was in the queue before this process began: the same request again keeps its ticket."""
        if self._command is None:
            return 0.0
        from gitcoord.claims.requests import own_request
        from gitcoord.ledger.snapshot import read_snapshot

        state = read_snapshot(self._call.ctx).state
        mine = own_request(state, self._command.items[0], self._command.actor.agent)
        return max(0.0, self._call.ctx.host.wall() - mine.at - waited) if mine is not None else 0.0

    def _alert(self, claim: Row, waited: int) -> None:
        from gitcoord.ledger.alerts import alert_of_wait

        try:
            alert_of_wait(self._call.ctx, self._call.actor().agent, claim, waited)
        except (GitcoordError, OSError):
            pass  # a failed alert does not end the wait


class Progress:
    """Shows the wait: on a terminal one line that counts up, elsewhere a line whenever the holders change."""

    def __init__(self, call: Call, note: str = "") -> None:
        self._call = call
        self._note = note
        self._live = isatty(2) and not call.screen.quiet and not call.screen.json
        self._last = ""
        self.period = 1.0 if self._live else _LONGEST

    def show(self, held: list[Row], start: float, left: float, words: str = "", key: str = "") -> None:
        who = sorted({f"{printable(str(claim['path']))} held by {claim['agent']}" for claim in held})
        words = words or ", ".join(who[:3]) + (f" and {len(who) - 3} more" if len(who) > 3 else "") or "halted"
        before, self._last = self._last, key or words  # first, so that Ctrl-C in between finds a line to clear
        if self._live:
            self._say_note()
            waited = time.monotonic() - start
            of = f"{format_duration(int(waited))} of {format_duration(round(waited + left))}"
            put(2, "\r\x1b[K" + f"waiting {of}: {words}"[: terminal_width(2) - 1])
        elif self._last != before:
            self._call.screen.note(f"waiting: {words}")
            self._say_note()

    def _say_note(self) -> None:
        note, self._note = self._note, ""
        self._call.screen.note(*filter(None, [note]))

    def clear(self) -> None:
        if self._live and self._last:
            put(2, "\r\x1b[K")

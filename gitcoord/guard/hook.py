"""`git coord guard`: an agent tool's event on stdin, the answer in that tool's own form on stdout.

It runs before everything that an agent does, so a repository in which gitcoord is not set up costs it no more than a look. What cannot
be judged is denied, unless `[guard] onError = warn`; its deadline is below those that tools have for their hooks.
"""

from __future__ import annotations

from _signal import ITIMER_REAL, SIGALRM, setitimer, signal

from gitcoord.base.errors import GitcoordError, NotInitialised, TimedOut
from gitcoord.base.names import printable
from gitcoord.git.files import getcwd, read, write_all
from gitcoord.git.host import chdir
from gitcoord.git.locate import is_set_up, locate, resolve
from gitcoord.guard.tools import detect, fail, parse
from gitcoord.startup.annotations import Callable
from gitcoord.validators.tool_event import (
    AFTER,
    BEFORE,
    OTHER,
    START,
    STOP,
    SUBAGENT_START,
    SUBAGENT_STOP,
    Answer,
    Reply,
)
from gitcoord.world.open import RepositoryOpener, environ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.locate import Place
    from gitcoord.git.process import Environ
    from gitcoord.ledger.context import Context
    from gitcoord.terminal.call import Call
    from gitcoord.terminal.parser import Values
    from gitcoord.validators.tool_event import ToolEvent

_SECONDS = 8
_LAST_SECONDS = 1  # to find out what an error means here
_LARGEST = 16 << 20
_ENDS = (STOP, SUBAGENT_STOP)


def guard(call: Call, values: Values, words: list[str]) -> int:
    """The verb with options, or called by a program; without, `cli/entry.py` calls `main`."""
    return main()


def main() -> int:
    reply = reply_to(Invocation(environ()), _stdin)
    for fd, data in ((1, reply.out), (2, reply.err)):
        write_all(fd, data)
    return reply.code


def _stdin() -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := read(0, 1 << 16):
        parts.append(part)
        size += len(part)
        if size > _LARGEST:
            raise ValueError(f"the event has more than {_LARGEST >> 20} MB")
    return b"".join(parts)


class Invocation:
    """One run of the guard: its environment and the repositories opened so far, for the error message."""

    def __init__(self, env: Environ) -> None:
        self.env = env
        self.opened: dict[str, Context] = {}  # by work tree
        self.tops: list[str] = []  # the work trees that the event concerns, once that is known
        self.fail_open = False  # the policy of each was read and says `[guard] onError = warn`

    def open(self, top: str) -> Context:
        """The repository of a work tree, in which this process is from now on."""
        chdir(top)
        if top not in self.opened:
            self.opened[top] = ctx = RepositoryOpener(self.env, "guard").context()
            wish = ctx.settings.get("gitcoord.guardseconds")
            given = max(1, int(wish)) if wish.isascii() and wish.isdecimal() and 0 < len(wish) < 4 else 0
            if given and len(self.opened) == 1:
                _set_deadline(given)
            if ctx.remote:  # a remote that does not answer leaves time to say so
                ctx.deadline(ctx.remote).cap = (given or _SECONDS) / 2
        return self.opened[top]


def reply_to(invocation: Invocation, source: Callable[[], bytes]) -> Reply:
    """The reply to the event that `source` gives; on any error still one that the tool understands."""
    signal(SIGALRM, _too_long)
    _set_deadline(_SECONDS)
    data: object = None
    tool = None
    event = None
    try:
        data = parse(source().decode())
        tool = detect(data)
        event = tool.read(data)  # type: ignore[arg-type]
        answer = Answer() if event.phase == OTHER else _answer(invocation, event)
        setitimer(ITIMER_REAL, 0)
        return tool.answer(event, answer)
    except Exception as error:
        setitimer(ITIMER_REAL, 0)
        message, passes = _failure(invocation, data, error)
        if passes and event is not None and tool is not None:
            return tool.answer(event, Answer(context=message))
        if passes:
            return Reply(err=f"{message}\n".encode("utf-8", "backslashreplace") if message else b"")
        return tool.fail(message, data) if tool is not None else fail(message)  # type: ignore[arg-type]


def _set_deadline(seconds: float) -> None:
    # Repeated, because code that ignores errors of a heartbeat may swallow the first signal.
    setitimer(ITIMER_REAL, seconds, 1)


def _too_long(number: int, frame: object) -> None:
    raise TimedOut(
        "it took too long",
        hints=("its time is gitcoord.guardSeconds, which must be less than the tool gives its hooks",),
    )


def _failure(invocation: Invocation, data: object, error: Exception) -> tuple[str, bool]:
    """The message for an error, and whether the call passes all the same: gitcoord is not set up, or the policy says so."""
    try:
        _set_deadline(_LAST_SECONDS)
        place = _here(_cwd_of(data))
        concerned = bool(invocation.opened) or bool(place.common and is_set_up(place.common))
        passes = not concerned or invocation.fail_open or _lets_errors_pass(invocation, place)
    except Exception:
        concerned, passes = True, False
    finally:
        setitimer(ITIMER_REAL, 0)
    if not concerned:
        return "", True
    if isinstance(error, GitcoordError):
        message, hints = error.message, error.hints
    else:
        message, hints = f"{type(error).__name__}: {error}", ()
    then = ", and lets it pass" if passes else ", nothing was done"
    lines = [f"gitcoord: could not judge this{then}: {printable(message)[:2000]}"]
    lines += [f"hint: {printable(hint)}" for hint in hints]
    return "\n".join(lines), passes


def _cwd_of(data: object) -> str:
    """The directory of an event that could not be read. Cursor names only a root, and runs a user's own hooks elsewhere."""
    if not isinstance(data, dict):
        return ""
    roots = data.get("workspace_roots")
    cwd = data.get("cwd") or (roots[0] if isinstance(roots, list) and roots else "")
    return cwd if isinstance(cwd, str) else ""


def _lets_errors_pass(invocation: Invocation, place: Place) -> bool:
    """Whether `[guard] onError` lets errors pass in each work tree: of trunk if the ledger names it, else of HEAD."""
    from gitcoord.ledger.snapshot import read_snapshot
    from gitcoord.policy.cache import sync_policy_commit
    from gitcoord.policy.reader import Source

    for top in invocation.tops or list(invocation.opened) or [place.top]:
        ctx = invocation.open(top)
        try:
            commit = sync_policy_commit(ctx, read_snapshot(ctx, trusting=True))
        except GitcoordError:
            commit = ctx.store.target("HEAD") or ""
        if Source(ctx, commit).policy(()).guard.closed:
            return False
    return True


def _here(cwd: str) -> Place:
    """The tool's directory; this process's own if the event names none that exists."""
    try:
        if cwd:
            chdir(cwd)
    except (OSError, ValueError):
        pass
    return locate(resolve(getcwd(), last=True))


def _answer(invocation: Invocation, event: ToolEvent) -> Answer:
    home = _here(event.cwd)
    watched = bool(home.common and home.top and is_set_up(home.common))
    if event.phase in (BEFORE, AFTER):
        from gitcoord.guard.before_after import after, before

        return (before if event.phase == BEFORE else after)(invocation, event, home if watched else None)
    if not watched:
        return Answer()
    from gitcoord.guard import conversations

    ctx = invocation.open(home.top)
    try:
        if event.phase in (START, SUBAGENT_START):
            return conversations.on_start(ctx, invocation.env, event)
        return conversations.on_stop(ctx, invocation.env, event) if event.phase in _ENDS else Answer()
    except NotInitialised:
        return Answer()

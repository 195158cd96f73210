"""`git coord run`: launch an agent, keep its heartbeat, end its session with it, end it when it is killed.

The child stays in the terminal's foreground group, so Ctrl-C reaches it and not its supervisor's work. Orphans of the
child come to the supervisor (a subreaper, on Linux), so that a kill finds them too.
"""

import os
import signal
import time

from gitcoord.app import sessions
from gitcoord.core.sessions import Actor, decode_beat
from gitcoord.errors import GitcoordError, Refused, UsageError
from gitcoord.hot.identity import named, note_process
from gitcoord.hot.verbs import Call
from gitcoord.hot.wait import Bell
from gitcoord.names import SESSIONS, check_agent, printable, session_ref
from gitcoord.store.files import read_file
from gitcoord.store.process import STARTED, process_state, start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context

GRACE = 10.0
_LONGEST = 10.0
_SIGNALS = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def launch(call: Call, command: list[str], name: str) -> int:
    """Run the command as an agent; gives its exit code."""
    around = named(call.ctx, call.environ)
    outer = around.agent if around is not None and around.instance else ""
    if outer and not name:
        return _wait(_spawn(command, dict(os.environ)))  # the same session: nothing is opened, nothing ends
    agent = check_agent(name) if name else _made_up(command[0], call.ctx.host.random())
    actor = Actor(agent, f"run:{call.ctx.host.random()}", parent=outer if outer != agent else "")
    opened = sessions.start(call.ctx, actor, fresh=True)
    actor = actor._replace(session=int(str(opened["session"])))
    env = {
        **os.environ,
        "GITCOORD_AGENT": agent,
        "GITCOORD_INSTANCE": actor.instance,
        "GITCOORD_SESSION": str(actor.session),
        "GITCOORD_LEDGER": call.ctx.settings.get("gitcoord.ledger"),
    }
    return Supervisor(call, actor).run(command, env)


def _made_up(command: str, random: str) -> str:
    word = "".join(c for c in os.path.basename(command).lower() if c in "abcdefghijklmnopqrstuvwxyz0123456789-_")
    return check_agent(f"{word.strip('-_')[:40] or 'agent'}-{random[:6]}")


def _spawn(command: list[str], env: dict[str, str]) -> int:
    try:
        return os.posix_spawnp(command[0], command, env, setsigmask=[], setsigdef=[signal.SIGPIPE, signal.SIGINT])
    except OSError as error:
        raise UsageError(f"cannot run '{printable(command[0])}': {error.strerror}") from None


def _wait(pid: int) -> int:
    while True:
        try:
            _, status = os.waitpid(pid, 0)
            return _exit_code(status)
        except KeyboardInterrupt:
            continue  # the child got it too, and decides


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


class Supervisor:
    """Watches over one child until it ends."""

    def __init__(self, call: Call, actor: Actor) -> None:
        self._call = call
        self._ctx = call.ctx
        self._actor = actor
        self._pid = 0
        self._killed_at = 0.0
        self._warned = ""
        self._asked: set[int] = set()

    def run(self, command: list[str], env: dict[str, str]) -> int:
        _become_subreaper()
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        notes = []
        try:
            self._pid = _spawn(command, env)
            notes = [note_process(self._ctx, self._pid, self._actor), _note_run(self._ctx, self._actor.agent)]
            return self._watch()
        finally:
            for note in notes:
                _forget(note)
            self._end()

    def _watch(self) -> int:
        bell = Bell(f"{self._ctx.repo.common_dir}/{SESSIONS}")
        while True:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._outlive(bell)
                bell.close()
                return _exit_code(status)
            self._reap()
            pause = self._beat()
            came, sender = bell.wait(pause, *_SIGNALS)
            if came in (signal.SIGTERM, signal.SIGHUP) or (came in (signal.SIGINT, signal.SIGQUIT) and sender):
                os.kill(self._pid, came)  # from the terminal the child got it itself

    def _outlive(self, bell: Bell) -> None:
        """After a kill: whatever the command left behind ends too."""
        while self._killed_at and time.monotonic() - self._killed_at < GRACE + 2 and _descendants(os.getpid()):
            self._reap()
            bell.wait(self._terminate(), *_SIGNALS)

    def _reap(self) -> None:
        """Orphans that came to us and ended. gitcoord's own children are left to who started them."""
        for pid in _descendants(os.getpid()):
            if pid != self._pid and process_state(pid) == "Z":
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    continue  # below a child of ours: not ours to collect

    def _beat(self) -> float:
        """A heartbeat if one is due; gives how long to sleep. A store that fails for a while is no reason to die."""
        if self._killed_at:
            return self._terminate()
        try:
            if not sessions.beat(self._ctx, self._actor):
                self._warn("the session of this agent was ended by others")
        except Refused:
            self._warn(f"'{self._actor.agent}' was killed: ending it")
            self._killed_at = time.monotonic()
            return self._terminate()
        except (GitcoordError, OSError) as error:
            self._warn(f"no heartbeat: {error}")
        return min(_LONGEST, self._slot() / 3)

    def _slot(self) -> float:
        try:
            (found,) = self._ctx.store.read([session_ref(self._actor.agent)])
            return decode_beat(found.oid, found.data).slot / 1000 if found is not None else 3.0
        except GitcoordError:
            return 3.0

    def _terminate(self) -> float:
        """TERM at once, KILL after the grace."""
        late = time.monotonic() - self._killed_at > GRACE
        for pid in [self._pid, *_descendants(os.getpid())]:
            if not late and pid in self._asked:
                continue
            self._asked.add(pid)
            try:
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
            except (ProcessLookupError, PermissionError):
                pass
        return 0.5

    def _warn(self, words: str) -> None:
        if words != self._warned:
            self._call.screen.note(f"gitcoord: {words}")
            self._warned = words

    def _end(self) -> None:
        """Release what is committed; what is not stays until its ttl."""
        try:
            result = sessions.stop(self._ctx, self._actor, keep=True)
        except (GitcoordError, OSError) as error:
            if not self._killed_at:
                self._warn(f"the session could not be ended: {error}")
            return
        for path in result["kept"]:  # type: ignore[attr-defined]
            self._call.screen.note(
                f"gitcoord: {printable(path)} has uncommitted changes: its claim stays until its ttl"
            )


def _become_subreaper() -> None:
    """Orphans of the child become ours. Where the system has no such thing, they escape a kill; the gates do not."""
    import ctypes

    try:
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    except (OSError, AttributeError):
        pass


def _descendants(root: int) -> list[int]:
    """Every process below this one that is not a child gitcoord itself uses."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if entry.isdecimal():
            stat = read_file(f"/proc/{entry}/stat")
            if stat:
                children.setdefault(int(stat.rpartition(b") ")[2].split()[1]), []).append(int(entry))
    found: list[int] = []
    todo = [pid for pid in children.get(root, []) if pid not in STARTED]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


# --- who runs what ------------------------------------------------------------------------------------------------


def _note_run(ctx: "Context", agent: str) -> str:
    path = ctx.scratch(f"runs/{agent}")
    with open(path, "w") as file:
        file.write(f"{os.getpid()}\n{start_time(os.getpid())}\n{ctx.host.boot}")
    return path


def _forget(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def wake(ctx: "Context", agent: str) -> bool:
    """Tell the supervisor of an agent, if it runs on this machine, to look at the ledger now."""
    words = read_file(f"{ctx.repo.scratch}/runs/{agent}").decode("ascii", "replace").split("\n")
    if (
        len(words) != 3
        or not words[0].isdecimal()
        or words[2] != ctx.host.boot
        or start_time(int(words[0])) != words[1]
    ):
        return False
    try:
        os.kill(int(words[0]), signal.SIGUSR1)
        return True
    except (ProcessLookupError, PermissionError):
        return False

"""Child processes that may run long: ended at a deadline with their own children, or detached."""

from __future__ import annotations

import posix
from _signal import SIG_BLOCK, SIG_SETMASK, SIGCONT, SIGKILL, SIGTERM, pthread_sigmask

from gitcoord.git.files import read_file
from gitcoord.git.host import INTERRUPTS, runs_still, start_time
from gitcoord.git.process import STARTED, Answer, Child, run
from gitcoord.startup.annotations import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from select import poll

    from gitcoord.git.deadline import Deadline
    from gitcoord.git.locks.owners import LockNotes

_PROGRESS = 4096  # bytes in a second: more than the keep-alive of a connection
_KEPT = 65536  # bytes of an output
_GRACE = 1.0  # seconds that git has to clean up
_ENDING = 10.0  # seconds in which what was killed is gone, but for what the kernel keeps


def run_bounded(
    argv: list[str],
    env: dict[bytes, bytes],
    deadline: Deadline,
    *,
    shares_terminal: bool = True,
    notes: LockNotes | None = None,
) -> Answer:
    """Run something that talks to another machine, and may ask at the terminal; ended when the time is over.

    `notes`: it moves refs here.
    """
    if deadline.is_over:
        return Answer(-SIGTERM, b"", deadline.message)
    start = Child if notes is None else notes.start
    return finish_bounded(start(argv, env, shares_terminal=shares_terminal), deadline)


def finish_bounded(child: Child, deadline: Deadline, *, sends: bool = False) -> Answer:
    """A child that gets nothing more to read, to its end. Ended when the time is over.

    `sends`: see `Deadline.left`.
    """
    from select import POLLIN, poll

    child.close_input()
    watch, parts = poll(), []
    watch.register(child.output, POLLIN)
    late = done = False
    deadline.begin()
    try:
        while not done:
            if not _is_ready(watch, deadline, child.pid, sends=sends):
                late = True
                deadline.expired()
                break
            chunk = posix.read(child.output, 65536)
            done = not chunk
            parts.append(chunk)
    finally:
        deadline.end()
        if not done:  # also where somebody else's deadline, or Ctrl-C, ends the wait
            end_process_tree(child)
    code, complaint = child.wait(), child.complaint()
    child.close()
    return Answer(code, b"".join(parts), deadline.message if late else complaint)


def run_all_bounded(argvs: list[list[str]], env: dict[bytes, bytes], seconds: float, most: int = _KEPT) -> list[Answer]:
    """Run these at once, and end those that have not ended after so many seconds. Nobody is asked at the terminal.

    `most`: bytes that are kept of each output.
    """
    children = [Child(argv, env) for argv in argvs]
    for child in children:
        child.close_input()
    return _finish_all(children, seconds, end_process_tree, most)


def _finish_all(children: list[Child], seconds: float, end: Callable[[Child], None], most: int = _KEPT) -> list[Answer]:
    """The answers of these children, to the end of each or of the time. The code is negative for one that was ended."""
    from select import POLLIN, poll
    from time import monotonic

    said = {child.output: b"" for child in children}
    reading, watch, until = set(said), poll(), monotonic() + seconds
    for fd in said:
        watch.register(fd, POLLIN)
    try:
        while reading and (left := until - monotonic()) > 0:
            for fd, _ in watch.poll(left * 1000 + 1):
                chunk = posix.read(fd, 65536)
                said[fd] = (said[fd] + chunk)[:most]
                if not chunk:
                    watch.unregister(fd)
                    reading.discard(fd)
    finally:
        for child in children:
            if child.output in reading:
                end(child)
    answers = []
    for child in children:
        late, out = child.output in reading, said[child.output]
        code, complaint = child.wait(), child.complaint()
        child.close()
        answers.append(
            Answer(-SIGKILL, out, f"no answer within {seconds:.0f} seconds") if late else Answer(code, out, complaint)
        )
    return answers


def _is_ready(watch: poll, deadline: Deadline, pid: int, *, sends: bool) -> bool:
    """Return whether it can be read; False at the deadline. A transfer that still moves data is waited for."""
    before = -1
    while (wait := deadline.next_wait(sends=sends)) > 0:
        if watch.poll(min(wait, 1.0) * 1000 + 1):
            return True
        moved = 0 if sends else traffic(pid)
        if 0 <= before < moved - _PROGRESS:
            deadline.progressed()
        before = moved
    return False


def traffic(root: int) -> int:
    """The number of bytes that a process and its descendants have read and written so far; 0 where that is unknown."""
    total = 0
    for pid in (root, *descendants(root)):
        rows = read_file(f"/proc/{pid}/io").split(b"\n")[
            :2
        ]  # rchar, wchar; nothing of a process that has ended meanwhile
        total += sum(int(row.rpartition(b" ")[2]) for row in rows if row)
    return total


def end_process_tree(child: Child) -> None:
    """End a child and all its descendants. git cleans up at SIGTERM, but does not pass it on to its ssh."""
    from time import monotonic, sleep

    there = [(pid, start_time(pid)) for pid in [child.pid, *descendants(child.pid)]]
    _signal(there, SIGTERM)
    _signal(there, SIGCONT)  # a stopped process handles SIGTERM only then
    end = monotonic() + _GRACE
    while monotonic() < end and any(runs_still(str(pid), start) for pid, start in there):
        sleep(0.01)
    _signal(there, SIGKILL)


def _signal(processes: list[tuple[int, str]], number: int) -> None:
    for pid, start in processes:
        try:
            if runs_still(str(pid), start):
                posix.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def descendants(root: int) -> list[int]:
    """All descendants of this process; none where the system does not list them."""
    found: list[int] = []
    todo = [root]
    while todo:
        pid = todo.pop()
        children = read_file(f"/proc/{pid}/task/{pid}/children").split()
        todo += map(int, children)
        found += map(int, children)
    return found


def run_shell(
    command: str, place: str, env: dict[bytes, bytes], data: bytes, seconds: float
) -> tuple[int | None, bytes]:
    """Run a shell command in a directory: its exit code and the beginning of its output. After so many seconds it is ended with
    all that it started: then the code is None."""
    child = Child(["sh", "-c", 'cd -- "$1" && exec sh -c "$2"', "sh", place, command], env)
    child.feed(data)
    late: list[int] = []

    def end(child: Child) -> None:
        late.append(child.pid)
        posix.kill(-child.pid, SIGKILL)

    (answer,) = _finish_all([child], seconds, end)
    return (None, answer.out) if late else (answer.code, answer.out or answer.complaint.encode("utf-8", "replace"))


# A check stands in a group of its own, with a watchdog that ends the group where the process that started it has died.
_CHECK = """cd -- "$1" || exit 126
exec 3<&0 </dev/null
(read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 &
exec 3<&-
exec sh -c "$2" 2>&1"""
_HEAD, _TAIL = 1 << 16, 1 << 20  # bytes of a check's output that are kept, of its beginning and of its end


def run_check(
    command: str, place: str, env: dict[bytes, bytes], seconds: float, tick: Callable[[], float]
) -> tuple[int | None, bytes]:
    """Run a project's check in a directory: its exit code (None: ended since its time was over), and the beginning and the end of
    its output. Nothing that it started lives longer than it. `tick` is called meanwhile, and says after how many seconds again."""
    from select import POLLIN, poll
    from time import monotonic

    watch, until, code = poll(), monotonic() + seconds, None
    kept, ends, again = _Kept(), -1, 0.0
    blocked = pthread_sigmask(SIG_BLOCK, INTERRUPTS)  # one that comes while it starts would leave it to nobody
    try:
        child = Child(["sh", "-c", _CHECK, "sh", place, command], env)
    except BaseException:
        pthread_sigmask(SIG_SETMASK, blocked)
        raise
    try:
        try:
            pthread_sigmask(SIG_SETMASK, blocked)
            watch.register(child.output, POLLIN)
            ends = _watch_end(child.pid)
            if ends >= 0:
                watch.register(ends, POLLIN)
            while code is None and monotonic() < until:
                again = monotonic() + tick() if monotonic() >= again else again
                ready = watch.poll(max(0.0, min(again - monotonic(), until - monotonic(), 0.2)) * 1000 + 1)
                if any(fd == child.output for fd, _ in ready):
                    chunk = posix.read(child.output, 65536)
                    kept.add(chunk)
                    if not chunk:
                        watch.unregister(child.output)
                code = child.ended()
        finally:
            _end_check(child)  # before the rest is read: one that it left may print for ever
        if ends >= 0:
            watch.unregister(ends)
        while code is not None and watch.poll(0) and (chunk := posix.read(child.output, 65536)):
            kept.add(chunk)  # what it wrote before its end
    finally:
        if ends >= 0:
            posix.close(ends)
        child.close()
    return code, kept.data


def _watch_end(pid: int) -> int:
    """A descriptor that can be read when this process has ended (Linux 5.3); -1 where there are none, and it is asked instead."""
    try:
        return posix.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


class _Kept:
    """The beginning and the end of an output, bounded."""

    def __init__(self) -> None:
        self._head, self._tail, self._cut = bytearray(), bytearray(), 0

    def add(self, chunk: bytes) -> None:
        room = _HEAD - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * _TAIL:
            self._cut += len(self._tail) - _TAIL
            del self._tail[:-_TAIL]

    @property
    def data(self) -> bytes:
        return bytes(self._head + (b"\n[%d bytes are left out]\n" % self._cut if self._cut else b"") + self._tail)


def _end_check(child: Child) -> None:
    """End a check's process group, and descendants that have left it: they are ours where this process collects orphans. gitcoord's own
    children are left alone, with theirs: they may have been started meanwhile. Ctrl-C waits for that."""
    from time import monotonic, sleep

    blocked = pthread_sigmask(SIG_BLOCK, INTERRUPTS)
    try:
        try:
            posix.kill(-child.pid, SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        until = monotonic() + _ENDING
        while _end_rest(child) and monotonic() < until:
            # A process that was killed is there until its parent has collected it, and its children are its own until it has died.
            sleep(0.002)
    finally:
        pthread_sigmask(SIG_SETMASK, blocked)


def _end_rest(child: Child) -> bool:
    """Kill what is left of a check whose group was killed, and collect what has died; gives whether there was anything."""
    ended = child.ended() is not None
    found = [(one, start_time(one)) for one in descendants(posix.getpid())]
    # Asked afterwards: what was started meanwhile is none of those that were found. The check itself is among them until it is collected.
    own = {one for started in STARTED - {child.pid} for one in (started, *descendants(started))}
    left = [(one, start) for one, start in found if one not in own]
    _signal(left, SIGKILL)
    for one, _ in left:
        if one != child.pid:  # that is its own to collect
            try:
                posix.waitpid(one, posix.WNOHANG)
            except ChildProcessError:
                pass
    return bool(left) or not ended


def detach(command: str, env: dict[bytes, bytes], data: bytes) -> None:
    """Run a shell command in the background, with these bytes on its input.

    The shell that starts it exits at once, so a long-lived process gathers no zombies.
    """
    # A shell gives /dev/null to what it leaves in the background, unless told otherwise by a descriptor of another number.
    script = 'exec 3<&0 >/dev/null 2>&1; { eval "$1"; } <&3 3<&- &'
    run(["sh", "-c", script, "sh", command], env, data)

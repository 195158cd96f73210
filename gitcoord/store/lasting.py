"""Children that may take their time: ended when they are silent for too long, or left to themselves."""

import posix
from _signal import SIGKILL, SIGTERM

from gitcoord.store.process import Child, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def run_bounded(argv: list[str], env: "dict[bytes, bytes]", seconds: float) -> "tuple[int, bytes, str]":
    """Run something that talks to another machine, and may ask at the terminal; ended after `seconds`."""
    return watched(Child(argv, env, shares_terminal=True), seconds)


def watched(
    child: Child, seconds: float, bell: int = -1, heard: "Callable[[], None] | None" = None
) -> "tuple[int, bytes, str]":
    """A child that gets nothing more to read, to its end: exit code, stdout, stderr. Ended after `seconds` of silence.

    `heard` is called once when something can be read at the descriptor `bell`.
    """
    from select import POLLIN, poll

    child.close_input()
    watch, parts = poll(), []
    watch.register(child.output, POLLIN)
    if heard is not None:
        watch.register(bell, POLLIN)
    late = False
    while True:
        ready = [fd for fd, _ in watch.poll(seconds * 1000)]
        if not ready:
            late = True
            posix.kill(child.pid, SIGTERM)
            break
        if bell in ready and heard is not None:
            watch.unregister(bell)
            if posix.read(bell, 1):
                heard()
        if child.output not in ready:
            continue
        chunk = posix.read(child.output, 65536)
        if not chunk:
            break
        parts.append(chunk)
    code, complaint = child.wait(), child.complaint()
    child.close()
    return code, b"".join(parts), f"no answer within {seconds:.0f} seconds" if late else complaint


def run_shell(
    command: str, place: str, env: "dict[bytes, bytes]", data: bytes, seconds: float
) -> "tuple[int | None, bytes]":
    """A shell command in a directory: its exit code and the beginning of what it said. Ended with all that it started after
    so many seconds: then the code is None."""
    from select import POLLIN, POLLOUT, poll
    from time import monotonic

    child = Child(["sh", "-c", 'cd -- "$1" && exec sh -c "$2"', "sh", place, command], env)
    end, said, late, done = monotonic() + seconds, b"", False, False
    given, taken, rest = child.input, child.output, memoryview(data)
    posix.set_blocking(given, False)  # it may never read what it is told
    watch = poll()
    watch.register(taken, POLLIN)
    watch.register(given, POLLOUT)
    try:
        while not done and not late:
            left = end - monotonic()
            ready = [fd for fd, _ in watch.poll(left * 1000)] if left > 0 else []
            late = not ready
            if given in ready:
                rest = _written(given, rest)
                if not rest:
                    watch.unregister(given)
                    child.close_input()
                    given = -1
            if taken in ready:
                chunk = posix.read(taken, 65536)
                done, said = not chunk, (said + chunk)[:65536]
    finally:
        if late or not done:
            posix.kill(-child.pid, SIGKILL)
    code, complaint = child.wait(), child.complaint()
    child.close()
    return (None if late else code), said or complaint.encode("utf-8", "replace")


def _written(fd: int, data: memoryview) -> memoryview:
    """What is left to be written: nothing where nobody reads any more."""
    try:
        return data[posix.write(fd, data) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return data[:0]


def detach(command: str, env: "dict[bytes, bytes]", data: bytes) -> None:
    """Let a shell run this on its own, with these bytes on its input, and think no more of it.

    The shell that starts it ends at once, so nobody has to wait for it, and a process that lives long collects no dead.
    """
    # A shell gives /dev/null to what it leaves in the background, unless told otherwise by a descriptor of another number.
    script = 'exec 3<&0 >/dev/null 2>&1; { eval "$1"; } <&3 3<&- &'
    run(["sh", "-c", script, "sh", command], env, data)

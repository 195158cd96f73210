"""Text from outside: a file, stdin, or an editor at the terminal."""

from __future__ import annotations

import posix
from _signal import SIG_IGN, SIGINT, SIGQUIT, signal

from gitcoord.base.errors import UsageError
from gitcoord.base.names import quote
from gitcoord.git.commands.worktrees import editor as git_editor
from gitcoord.git.files import read_file, remove_file, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.terminal.call import Call

MOST = 1 << 20  # bytes; whatever is longer than any text may be


def read_text(word: str, what: str) -> str:
    """The text in a file, '-': what comes on stdin."""
    try:
        fd = 0 if word == "-" else posix.open(word, posix.O_RDONLY | posix.O_CLOEXEC)
        data = _whole(fd)
        if fd:
            posix.close(fd)
    except (OSError, ValueError) as error:
        raise UsageError(f"{quote(word[:80])} cannot be read: {getattr(error, 'strerror', error)}") from None
    if len(data) > MOST:
        raise UsageError(f"{what} is longer than {MOST} bytes")
    return data.decode("utf-8", "surrogateescape")


def _whole(fd: int) -> bytes:
    """All there is, or a little more than may be."""
    parts, size = [], 0
    while size <= MOST and (chunk := posix.read(fd, 65536)):
        parts.append(chunk)
        size += len(chunk)
    return b"".join(parts)


def edit(call: Call, text: str, name: str) -> str:
    """What the person makes of it in git's editor. The file is kept where the editor fails, and named."""
    answer = git_editor(call.ctx.repo.env)
    editor = answer.text.strip()
    if not editor:
        raise UsageError(f"no editor is set: {answer.complaint}", hints=("git config core.editor <command>",))
    file = call.ctx.scratch(f"edit/{name}-{posix.getpid()}.md")
    write_file(file, text.encode("utf-8", "surrogateescape"))
    words = ["sh", "-c", f'{editor} "$@"', editor, file]
    old = {number: signal(number, SIG_IGN) for number in (SIGINT, SIGQUIT)}  # they are the editor's
    try:
        pid = posix.posix_spawnp("sh", words, dict(call.environ), setsigdef=[SIGINT, SIGQUIT])
        status = posix.waitstatus_to_exitcode(posix.waitpid(pid, 0)[1])
    finally:
        for number, handler in old.items():
            signal(number, handler)
    if status:
        raise UsageError(f"the editor failed: nothing was changed; the text is in {file}")
    data = read_file(file, MOST + 1)
    remove_file(file)
    if len(data) > MOST:
        raise UsageError(f"the text is longer than {MOST} bytes")
    return data.decode("utf-8", "surrogateescape")

"""Text from outside: a file, stdin, or an editor at the terminal."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import quote
from gitcoord.git.commands.worktrees import editor as git_editor
from gitcoord.git.files import close, open_to_read, read, read_file, remove_file, write_file
from gitcoord.git.host import getpid
from gitcoord.git.process import run_at_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.terminal.call import Call

MOST = 1 << 20  # bytes; whatever is longer than any text may be


def read_text(word: str, what: str) -> str:
    """The text in a file, '-': what comes on stdin."""
    try:
        fd = 0 if word == "-" else open_to_read(word)
        data = _whole(fd)
        if fd:
            close(fd)
    except (OSError, ValueError) as error:
        raise UsageError(f"{quote(word[:80])} cannot be read: {getattr(error, 'strerror', error)}") from None
    if len(data) > MOST:
        raise UsageError(f"{what} is longer than {MOST} bytes")
    return data.decode("utf-8", "surrogateescape")


def _whole(fd: int) -> bytes:
    """All there is, or a little more than may be."""
    parts, size = [], 0
    while size <= MOST and (chunk := read(fd, 65536)):
        parts.append(chunk)
        size += len(chunk)
    return b"".join(parts)


def edit(call: Call, text: str, name: str) -> str:
    """What the person makes of it in git's editor. The file is kept where the editor fails, and named."""
    answer = git_editor(call.ctx.repo.env)
    editor = answer.text.strip()
    if not editor:
        raise UsageError(f"no editor is set: {answer.complaint}", hints=("git config core.editor <command>",))
    file = call.ctx.scratch(f"edit/{name}-{getpid()}.md")
    write_file(file, text.encode("utf-8", "surrogateescape"))
    words = ["sh", "-c", f'{editor} "$@"', editor, file]
    if run_at_terminal(words, call.environ):
        raise UsageError(f"the editor failed: nothing was changed; the text is in {file}")
    data = read_file(file, MOST + 1)
    remove_file(file)
    if len(data) > MOST:
        raise UsageError(f"the text is longer than {MOST} bytes")
    return data.decode("utf-8", "surrogateescape")

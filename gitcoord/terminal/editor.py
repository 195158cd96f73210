"""Text from an editor at the terminal."""

from __future__ import annotations

from gitcoord.base.codec import MAX_BYTES
from gitcoord.base.errors import UsageError
from gitcoord.git.commands.worktrees import editor as git_editor
from gitcoord.git.files import read_file, remove_file, write_file
from gitcoord.git.host import getpid
from gitcoord.git.process import run_at_terminal
from gitcoord.terminal.call import Call


def edit(call: Call, text: str, name: str) -> str:
    """Let the person edit the text in git's editor. If the editor fails, the file is kept and named."""
    answer = git_editor(call.ctx.repo.env)
    editor = answer.text.strip()
    if not editor:
        raise UsageError(f"no editor is set: {answer.complaint}", hints=("git config core.editor <command>",))
    file = call.ctx.scratch(f"edit/{name}-{getpid()}.md")
    write_file(file, text.encode("utf-8", "surrogateescape"))
    words = ["sh", "-c", f'{editor} "$@"', editor, file]
    if run_at_terminal(words, call.environ):
        raise UsageError(f"the editor failed: nothing was changed; the text is in {file}")
    data = read_file(file, MAX_BYTES + 1)
    remove_file(file)
    if len(data) > MAX_BYTES:
        raise UsageError(f"the text is longer than {MAX_BYTES} bytes")
    return data.decode("utf-8", "surrogateescape")

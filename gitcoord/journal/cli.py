"""`git coord journal`: writing something down, and reading the story."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import check_agent, fold, printable, quote, shell_word, shown
from gitcoord.claims import pathspec as paths
from gitcoord.git.files import exists
from gitcoord.journal import service as app
from gitcoord.terminal.call import Call, at_terminal, number, text, words_of
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, ago


def add(call: Call, values: Values, words: list[str]) -> int:
    actor = call.actor()
    about = paths.items(call.ctx.repo, words_of(values, "path"))
    if any(item.space != "path" for item in about):
        raise UsageError("an entry is about paths, not about resources")
    entry = _text(call, words_of(values, "message"), words)
    result = app.write(call.ctx, actor, entry, tuple(item.name for item in about), text(values, "task"))
    call.screen.answer(result)
    call.warn(result)
    call.screen.say(f"noted as event {result['seq']}")
    return 0


def _text(call: Call, paragraphs: list[str], words: list[str]) -> str:
    """The text: from -m, from a text in quotes, from a file, from stdin; at a terminal, by default, from an editor."""
    if len(words) + bool(paragraphs) > 1:
        raise UsageError("say it with -m, or name one file", hints=("git coord journal add -h",))
    if paragraphs:
        return "\n\n".join(paragraphs)
    from gitcoord.terminal.editor import edit
    from gitcoord.terminal.input import read_text

    if words and words[0] != "-" and not exists(words[0]):
        if " " in words[0]:
            return words[0]  # a text in quotes
        hint = f"to write this word down: git coord journal add -m {shell_word(words[0])}"
        raise UsageError(f"there is no file {quote(words[0][:80])}", hints=(hint,))
    if words or not at_terminal():
        return read_text(words[0] if words else "-")
    from gitcoord.handoff.model import uncommented

    return uncommented(edit(call, "\n<!-- What should others know? These lines do not count. -->\n", "journal"))


def show(call: Call, values: Values, words: list[str]) -> int:
    agent = text(values, "agent")
    since = app.parse_since(text(values, "since"), call.ctx.host.wall())
    path = _key(call, text(values, "path"))
    limit = number(values, "number", 50)
    prose = bool(values.get("prose"))
    wanted = app.Filter(check_agent(agent) if agent else "", path, text(values, "grep"), prose, since, limit)
    result = call.show(lambda: app.story(call.ctx, wanted), entries=[])
    if result is None:
        return 0
    rows = result["entries"]
    width = max((len(str(row["seq"])) for row in rows), default=0)
    for row in rows:
        call.screen.say(*lines(call, row, width))
    if not rows and not call.screen.json:
        call.screen.note("nothing was written down" if wanted.prose else "nothing fits")
    return 0


def _key(call: Call, word: str) -> str:
    if not word:
        return ""
    item = paths.one(call.ctx.repo, word)
    return shown(fold(item.name, case=False), item.space)


def lines(call: Call, row: Row, width: int) -> list[str]:
    """One line for an event; for an entry its author and its text below."""
    head = f"{call.screen.paint(str(row['seq']).rjust(width), 'dim')}  {call.screen.paint(ago(row['at']), 'yellow')}  "
    if not row["prose"]:
        words = str(row["subject"])
        why = str(row["text"])
        line = printable(words) + (f": {printable(why)}" if why and why not in words else "")
        return [head + call.screen.cut(line, width + len(ago(row["at"])) + 4)]
    about = [*row["paths"], *([row["task"]] if row["task"] else [])]
    of = call.screen.cut(
        f" on {printable(', '.join(about))}" if about else "", width + len(ago(row["at"])) + len(row["agent"]) + 11
    )
    said = [f"{' ' * width}  | {printable(line.expandtabs(4))}".rstrip() for line in str(row["text"]).split("\n")]
    return [f"{head}{call.screen.paint(str(row['agent']), 'cyan')} wrote{of}:", *said]

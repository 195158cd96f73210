"""`git coord note`, and the lines in which other commands show notes."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import printable
from gitcoord.claims import pathspec as paths
from gitcoord.journal import notes as app
from gitcoord.journal.model import LONGEST
from gitcoord.terminal.call import Call, duration, number, words_of
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, ago

_LONG = 4  # so many readers are named
_MOST, _TALL = 10, 20  # so many notes are shown at a time, of each so many lines


def note(call: Call, values: Values, words: list[str]) -> int:
    said = words_of(values, "message")
    ends = number(values, "remove")
    if bool(said) + bool(ends) + bool(values.get("list")) > 1:
        raise UsageError("say one of -m, --list and --remove", hints=("git coord note -h",))
    if ends:
        return _remove(call, ends, words)
    if not said:
        return _show(call, _path(call, words[0]) if words else "")
    if not words:
        raise UsageError("a note is about a path", hints=("git coord note PATH -m '...'",))
    result = app.leave(
        call.ctx, call.actor(), _path(call, words[0]), "\n\n".join(said), duration(values, "for", LONGEST)
    )
    call.screen.answer(result)
    call.warn(result)
    call.screen.say(
        f"note {result['seq']} on {printable(str(result['path']))}: shown once to each agent that claims, commits, lands or starts there"
    )
    _say_absent(call, str(result["path"]), f"; to take the note away: git coord note --remove {result['seq']}")
    return 0


def _path(call: Call, word: str) -> str:
    item = paths.one(call.ctx.repo, word)
    if item.space != "path":
        raise UsageError("a note is about a path, not about a resource")
    return item.name


def _remove(call: Call, ends: int, words: list[str]) -> int:
    if words:
        raise UsageError("--remove takes the number of a note, and no path", hints=("git coord note --list",))
    result = app.end(call.ctx, call.actor(), ends)
    call.screen.answer(result)
    call.screen.say(f"note {ends} is taken away")
    return 0


def _show(call: Call, path: str) -> int:
    result = call.show(lambda: app.listed(call.ctx, path), notes=[])
    if result is None:
        return 0
    for row in result["notes"]:
        call.screen.say(f"{row['seq']}  {lines([row])[0]}", *lines([row])[1:], f"    {_readers(row['seen'])}")
    if not result["notes"] and not call.screen.json:
        call.screen.note("there are no notes")
        _say_absent(call, path)
    return 0


def _say_absent(call: Call, path: str, then: str = "") -> None:
    """A slip of the finger is no error, since a note may be about what is yet to be made."""
    if path and not call.screen.json:
        from gitcoord.claims.cli_new import absent_lines

        call.screen.note(*(line + then for line in absent_lines(call, path)))


def _readers(seen: list[Row]) -> str:
    if not seen:
        return "seen by nobody yet"
    named = [f"{row['agent']} {ago(row['at'])}" for row in seen[:_LONG]]
    return f"seen by {', '.join(named)}" + (f" and {len(seen) - _LONG} more" if len(seen) > _LONG else "")


def lines(notes: list[Row]) -> list[str]:
    """Each note as the words of its author: nothing in it looks like a line of gitcoord's own."""
    found: list[str] = []
    for row in notes:
        found.append(f"note by {row['agent']} on {printable(str(row['path']))}, {ago(row['at'])}:")
        found += [f"    | {printable(line.expandtabs(4))}".rstrip() for line in str(row["text"]).split("\n")]
    return found


def deliver(call: Call, notes: list[Row]) -> None:
    """Show these notes to the agent of this call, and put on record that it has seen them. Of many the first are shown, the others at its
    next command there."""
    shown = notes if call.screen.json else notes[:_MOST]
    for row in shown:
        head, *text = lines([row])
        more = [f"    (the whole note: git coord note {call.typed(str(row['path']))})"] if len(text) > _TALL else []
        call.screen.say(head, *text[: _TALL - len(more)], *more)
    if shown:
        app.record_seen(call.ctx, call.actor(), shown)
    if len(shown) < len(notes):
        call.screen.say(f"{len(notes) - len(shown)} more notes for you: git coord note --list")

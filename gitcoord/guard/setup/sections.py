"""gitcoord's section in a text file of others: between two markers; every other byte stays."""

from __future__ import annotations

BEGIN = "<!-- gitcoord: begin. 'git coord setup' writes this section, 'git coord teardown' takes it out. -->"
END = "<!-- gitcoord: end -->"
_BEGIN = BEGIN.partition(".")[0]  # the rest may be worded differently one day


class Torn(Exception):
    """The markers are not one pair, so the section cannot be told from the rest."""


def put(text: str | None, body: str) -> str:
    """`text` with the section, at the end if it had none. None: there is no file yet."""
    newline = "\r\n" if "\r\n" in (text or "") else "\n"
    section = newline.join([BEGIN, *body.strip("\n").split("\n"), END]) + newline
    if text is None:
        return section
    found = find(text)
    if found is None:
        # Always one line break between, so that `take` restores the text to the byte.
        return text + newline + section
    return text[: found[0]] + section + text[found[1] :]


def take(text: str) -> str | None:
    """`text` without the section, as it was before `put` if nobody moved it. None: the file had nothing else."""
    found = find(text)
    if found is None:
        return text
    if found == (0, len(text)):
        return None
    before = text[: found[0]]
    for newline in ("\r\n", "\n"):
        if before.endswith(newline):
            before = before[: -len(newline)]
            break
    return before + text[found[1] :]


def find(text: str) -> tuple[int, int] | None:
    """Start and end of the section, with the line break after it; None if there is none."""
    if _BEGIN not in text and END not in text:
        return None
    if text.count(_BEGIN) != 1 or text.count(END) != 1 or text.index(END) < text.index(_BEGIN):
        raise Torn("the markers of gitcoord's section are not one pair")
    start, end = text.index(_BEGIN), text.index(END) + len(END)
    if text[:start].rpartition("\n")[2].strip():
        raise Torn("something stands before the marker of gitcoord's section")
    for newline in ("\r\n", "\n"):
        if text.startswith(newline, end):
            return start, end + len(newline)
    return start, end

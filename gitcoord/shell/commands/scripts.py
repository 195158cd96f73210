"""The scripts of sed and the programs of awk, as far as they name files or run commands."""

from __future__ import annotations

from gitcoord.shell.interpreter import Run
from gitcoord.shell.state import Arg

_BETWEEN = frozenset("0123456789$,~+! \t\n;{}IM")  # addresses, and what joins commands
_TO_THE_END = frozenset("wWrRe")  # what they name goes on to the end of the line
_SKIPPED = frozenset("aic#")  # text, likewise
_LABELS = frozenset(":btTv")
_ALONE = frozenset("=dDgGhHnNpPxzFlqQL")


def sed(run: Run, script: Arg) -> None:
    """`w` and `r` with their files, as commands and as a flag of `s`; `e`, which runs what is there."""
    text, at = script.text, 0
    while at < len(text):
        char = text[at]
        at += 1
        if char in _BETWEEN or char in _ALONE:
            continue
        if char == "/":
            at = _close(text, at, "/")
        elif char == "\\":
            at = _close(text, at + 1, text[at : at + 1])
        elif char in "sy":
            mark = text[at : at + 1]
            at = _close(text, _close(text, at + 1, mark), mark, brackets=False)
            at = _flags(run, script, at) if char == "s" else at
        elif char in _TO_THE_END or char in _SKIPPED:
            end = _line_end(text, at, goes_on=char in _SKIPPED)
            _names(run, script, char, text[at:end])
            at = end
        elif char in _LABELS:
            while at < len(text) and text[at] not in ";\n}":
                at += 1
        else:
            run.unknown(script.raw, "a sed script that cannot be followed")
            return


def _flags(run: Run, script: Arg, at: int) -> int:
    text = script.text
    while at < len(text) and text[at] in "gpIiMm0123456789e":
        if text[at] == "e":
            run.unknown(script.raw, "sed's 'e' runs what it finds")
        at += 1
    if text[at : at + 1] == "w":
        end = _line_end(text, at)
        _names(run, script, "w", text[at + 1 : end])
        return end
    return at


def _names(run: Run, script: Arg, command: str, name: str) -> None:
    named = script._replace(text=name.strip())
    if command == "e":
        run.unknown(script.raw, "sed's 'e' runs a command")
    elif command in "wW":
        run.write(named, f"sed's '{command}' writes it")
    elif command in "rR":
        run.read(named, f"sed's '{command}' reads it")


def _line_end(text: str, at: int, *, goes_on: bool = False) -> int:
    """The end of the line; text that is added goes on behind a backslash."""
    while at < len(text) and text[at] != "\n":
        at += 1 + (goes_on and text[at] == "\\")
    return min(at, len(text))


def _close(text: str, at: int, mark: str, *, brackets: bool = True) -> int:
    """Behind the mark that ends a pattern; inside a set of characters it is one of them."""
    while at < len(text) and text[at] != mark:
        if text[at] == "\\":
            at += 1
        elif text[at] == "[" and brackets:
            end = text.find("]", at + 2 + (text[at + 1 : at + 2] == "^"))
            at = end if end > 0 else at
        at += 1
    return at + 1


def awk(run: Run, program: Arg) -> None:
    """`print > "file"`, `getline < "file"`, `print | "command"`, `system(...)`. A `>` behind print and not in brackets writes."""
    if not program.known:
        run.unknown(program.raw, "an awk program that cannot be told")
        return
    text, held = _masked(program.text)
    if "|" in text.replace("||", "") or "system(" in text.replace(" ", "").replace("\t", ""):
        run.unknown(program.raw, "the awk program runs commands")
    for statement in text.replace("\n", ";").replace("}", ";").split(";"):
        fed = statement.partition("getline")[2].partition("<")[2].strip()
        if fed[:1] == '"':
            run.read(program._replace(text=held[int(fed[1:].partition('"')[0])]), "the awk program reads it")
        at = statement.find("print")
        tail = _after_arrow(statement[at:]) if at >= 0 else None
        if tail is None:
            continue
        name = tail.strip()
        if name[:1] == '"' and name[1:-1].isdigit() and name[-1:] == '"':
            run.write(program._replace(text=held[int(name[1:-1])]), "the awk program writes it")
        else:
            run.unknown(program.raw, "the awk program writes a file that cannot be told")


def _masked(text: str) -> tuple[str, list[str]]:
    """The program with a number in the place of each string, without its patterns and comments; and the strings."""
    out: list[str] = []
    held: list[str] = []
    before = ""  # the last character that is no blank: a pattern stands where no value can end
    at = 0
    while at < len(text):
        char = text[at]
        if char == '"':
            end = _close(text, at + 1, '"', brackets=False)
            out.append(f'"{len(held)}"')
            held.append(text[at + 1 : end - 1].replace("\\", ""))
            at, before = end, '"'
        elif char == "/" and (not before or before in "({};,!~&|=\n"):
            at, before = _close(text, at + 1, "/"), "/"
        elif char == "#":
            at = _line_end(text, at)
        else:
            out.append(char)
            before = char if char not in " \t" else before
            at += 1
    return "".join(out), held


def _after_arrow(statement: str) -> str | None:
    """The text after a '>' outside brackets."""
    depth = 0
    for at, char in enumerate(statement):
        depth += (char in "([") - (char in ")]")
        if not depth and char == ">":
            return statement[at:].lstrip(">")
    return None

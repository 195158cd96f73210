"""Finds the effects of a shell command on files: tree-sitter parses its text, `interpreter.py` follows it.

`parse` returns the syntax tree of `shell/syntax.py`, so nothing else knows tree-sitter.
"""

from __future__ import annotations

from gitcoord.base.errors import TimedOut
from gitcoord.shell.control_flow import follow
from gitcoord.shell.effect_collector import MAX_WORD, TooMuch
from gitcoord.shell.effects import FAILED, UNKNOWN, FileEffect
from gitcoord.shell.interpreter import Run
from gitcoord.shell.parse_files import FileSystem
from gitcoord.shell.parse_tree import NoParser, TooDeep, tree
from gitcoord.shell.state import ShellState, value_of
from gitcoord.shell.syntax import BROKEN, Node

MAX_BYTES = 1 << 20


def analyse(command: str, *, cwd: str, home: str) -> tuple[FileEffect, ...]:
    """The command's effects in the order they are met; none for a harmless one.

    A part that cannot be parsed or followed is an effect of the kind 'unknown', beside the others; a defect of the parser one of the
    kind 'failed'. Raises nothing but the TimedOut of the caller's deadline, which says nothing about the command.
    """
    run = Run(parse, FileSystem(), home)
    run.state = ShellState((cwd,) if cwd.startswith("/") else (), {"HOME": value_of(home)} if home else {})
    if run.state.cwds:
        run.state.variables["PWD"] = value_of(cwd)
    try:
        node = parse(command)
        if node.kind == BROKEN:
            run.unknown(command, node.name)
        follow(run, node)
    except TooMuch as error:
        return (*run.effects, FileEffect(UNKNOWN, "", command[:MAX_WORD], str(error)))
    except TimedOut:
        raise
    except Exception as error:
        # A defect of ours must not let a command through unseen.
        return (
            *run.effects,
            FileEffect(FAILED, "", command[:MAX_WORD], f"it could not be followed ({type(error).__name__})"),
        )
    return tuple(run.effects)


def parse(command: str) -> Node:
    """The syntax tree; one of the kind BROKEN, named by the reason, where the text could not be parsed as a whole."""
    data = command.encode("utf-8", "surrogatepass")
    if len(data) > MAX_BYTES:
        return Node(BROKEN, name="it is too long to be looked into")
    if "\0" in command:
        return Node(BROKEN, name="it holds a NUL byte")
    try:
        return tree(data)
    except TooDeep:
        return Node(BROKEN, name="it is nested too deeply")
    except NoParser as error:
        return Node(BROKEN, name=str(error))

"""A shell command's plain syntax tree: structure only, words as they were written. `shell/parse.py` makes it."""

from __future__ import annotations

from gitcoord.startup.namedtuple import NamedTuple

# Commands one after the other; joined by && and ||; joined by pipes; in braces; in a shell of their own (also with &).
COMMAND, LIST, AND_OR, PIPE, GROUP, SUBSHELL = "command", "list", "and-or", "pipe", "group", "subshell"
IF, CASE, FOR, WHILE, FUNCTION, TEST, BROKEN = "if", "case", "for", "while", "function", "test", "broken"


class Sub(NamedTuple):
    """A command inside a word: `$(...)` and backquotes ('$('), `<(...)`, `>(...)`."""

    how: str
    body: Node


class Word(NamedTuple):
    pieces: tuple[str | Sub, ...]  # text with its quotes, and the commands inside it
    raw: str


class Assignment(NamedTuple):
    name: str
    value: Word | None
    items: tuple[Word, ...] | None = None  # of an array
    appends: bool = False
    indexed: bool = False  # one element of an array


class Redirect(NamedTuple):
    op: str  # '<', '>', '>>', '>|', '&>', '&>>', '>&', '<&', '<>', '<<', '<<<'
    target: Word | None  # of a here-document: its text
    raw: str
    literal: bool = False  # a here-document whose text is taken as it is


class Node(NamedTuple):
    """IF: condition, body, condition, body, ..., else. WHILE: condition, body. CASE: bodies. FOR, FUNCTION: the body."""

    kind: str
    raw: str = ""
    words: tuple[Word, ...] = ()
    assigns: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    nodes: tuple[Node, ...] = ()
    name: str = ""  # of a function, or of a loop's variable
    ops: tuple[str, ...] = ()  # of AND_OR: between its nodes

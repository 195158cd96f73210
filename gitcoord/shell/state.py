"""The state of a shell while its command is followed: directory, variables, functions, each with all possible values.

A command is followed along every path that it may take. Where paths meet again, what differs becomes several possible
values; too many of them become one that is not known.
"""

from __future__ import annotations

from gitcoord.shell.syntax import Node
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

MAX_CHOICES = 64


class Value(NamedTuple):
    """The possible values of a variable, or a command's output; each choice is a tuple of elements, one except for arrays."""

    choices: tuple[tuple[str, ...], ...] = ()  # none: not known
    below: tuple[
        str, ...
    ] = ()  # it has names of files at or below these directories, beside its choices; none: anything at all
    is_patch: bool = False  # the output is a patch of the files that the choice names, a line each


NOT_KNOWN = Value()


def value_of(*texts: str) -> Value:
    """A variable with one element, which is one of these."""
    return Value(tuple((text,) for text in texts))


def text_in(output: Value) -> str | None:
    """An output that is known to the letter."""
    known = len(output.choices) == 1 and not output.below and not output.is_patch
    return "\n".join(output.choices[0]) if known else None


def names_of(names: list[str], *, more: tuple[str, ...] = ()) -> Value:
    """A list of files, a line each. `more`: there are others at or below these directories."""
    return Value((("\n".join(names),),), more)


class Arg(NamedTuple):
    """One word of a command after all expansions."""

    text: str  # where not known: the part before what is not known
    raw: str
    known: bool = True
    below: tuple[str, ...] = ()  # where not known: it names a file at or below these directories; none: anything


def fill(word: Arg, place: str, name: Arg) -> Arg:
    """A word with the name of a file in place of `place`, as xargs and find fill it in."""
    if not place or place not in word.text:
        return word
    if name.known:
        return word._replace(text=word.text.replace(place, name.text))
    before, _, after = word.text.partition(place)
    near = not before and ".." not in after.split("/")
    return Arg(before, word.raw, known=False, below=name.below if near else ())


class ShellState:
    __slots__ = ("cwds", "errexit", "functions", "globstar", "old", "stack", "unless_cd_failed", "variables")

    def __init__(self, cwds: tuple[str, ...], variables: dict[str, Value]) -> None:
        self.cwds = cwds  # none: not known
        self.variables = variables
        self.functions: dict[str, Node] = {}
        self.old: tuple[str, ...] = ()  # where it stood before (`cd -`)
        self.stack: list[tuple[str, ...]] = []
        self.errexit = False  # set -e
        self.globstar = False  # shopt -s globstar
        self.unless_cd_failed: tuple[str, ...] = ()  # the directories if a cd of this statement failed

    def copy(self) -> ShellState:
        made = ShellState(self.cwds, dict(self.variables))
        made.functions = dict(self.functions)
        made.old, made.stack = self.old, [*self.stack]
        made.errexit, made.unless_cd_failed, made.globstar = self.errexit, self.unless_cd_failed, self.globstar
        return made

    def merge(self, others: Iterable[ShellState]) -> None:
        """Merge the states of several paths."""
        states = [*others]
        self.cwds = _all_of([state.cwds for state in states])
        names = {name for state in states for name in state.variables}
        self.variables = {name: _either([state.variables.get(name, NOT_KNOWN) for state in states]) for name in names}
        for state in states:
            self.functions.update(state.functions)
        self.old = _all_of([state.old for state in states])
        self.stack = states[0].stack
        self.errexit = all(state.errexit for state in states)
        self.globstar = any(state.globstar for state in states)
        self.unless_cd_failed = tuple(dict.fromkeys(place for state in states for place in state.unless_cd_failed))

    def keep_old_cwds(self) -> None:
        """A cd may have failed, so the old directory is possible too. With `set -e` the shell would have ended."""
        if self.unless_cd_failed and self.cwds and not self.errexit:
            self.cwds = tuple(dict.fromkeys((*self.cwds, *self.unless_cd_failed)))

    def same(self, other: ShellState) -> bool:
        return self.cwds == other.cwds and self.variables == other.variables

    def forget(self, other: ShellState) -> None:
        """Values that differ from another state become unknown."""
        if self.cwds != other.cwds:
            self.cwds = ()
        for name in {*self.variables, *other.variables}:
            if self.variables.get(name) != other.variables.get(name):
                self.variables[name] = NOT_KNOWN


def _all_of(several: list[tuple[str, ...]]) -> tuple[str, ...]:
    """None at all where one of them is not known, or where there are too many."""
    found = tuple(dict.fromkeys(one for some in several for one in some))
    return found if all(several) and len(found) <= MAX_CHOICES else ()


def _either(values: list[Value]) -> Value:
    if all(value == values[0] for value in values):
        return values[0]
    found = tuple(dict.fromkeys(choice for value in values for choice in value.choices))
    if all(value.choices for value in values) and len(found) <= MAX_CHOICES:
        return Value(found)
    if all(value.below and not value.choices for value in values):
        return Value((), tuple(dict.fromkeys(one for value in values for one in value.below)))
    return NOT_KNOWN

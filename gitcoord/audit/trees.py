"""The work trees of this clone: the gates that do not run there, and whether the agent tools in use ask gitcoord there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from typing import NamedTuple

from gitcoord.audit.doctor import is_hooked
from gitcoord.gates.hooks.presence import missing_gates
from gitcoord.git.files import is_directory
from gitcoord.guard.setup.known import Known
from gitcoord.guard.setup.plan import SetupPlace, in_use
from gitcoord.ledger.context import Context
from gitcoord.worktrees.add import all_trees
from gitcoord.world.open import environ as own_environ
from gitcoord.world.open import open_repository

_MOST = 40


class Tree(NamedTuple):
    """A work tree. `tools`: those in use in any of them, with whether each asks the guard here."""

    name: str
    top: str
    missing: tuple[str, ...]
    tools: tuple[tuple[Known, bool], ...]

    def gaps(self) -> list[str]:
        """Gates and tools by which an agent gets past the rules here."""
        return [*self.missing, *(known.title for known, hooked in self.tools if not hooked)]


def read_trees(ctx: Context, environ: Mapping[str, str], most: int = _MOST) -> tuple[list[Tree], int]:
    """The first work trees, the main one first, and how many more there are."""
    tops = [tree.path for tree in all_trees(ctx) if not tree.bare and is_directory(tree.path)]
    names = [top.rpartition("/")[2] for top in tops]
    names = [name if names.count(name) == 1 else f"{name}-{at}" for at, name in enumerate(names)]
    tools = {known.name: known for top in tops for known in in_use(SetupPlace(top, environ))}
    trees = []
    for top, name in zip(tops[:most], names):
        place = SetupPlace(top, environ)
        trees.append(
            Tree(name, top, _missing(top), tuple((tool, is_hooked(tool.name, place)) for tool in tools.values()))
        )
    return trees, len(tops[most:])


def _missing(top: str) -> tuple[str, ...]:
    with opened(top) as ctx:
        return tuple(gate.event for gate in missing_gates(ctx))


@contextmanager
def opened(directory: str) -> Iterator[Context]:
    """The repository of another directory of this machine, only read."""
    with chdir(directory):
        ctx = open_repository(own_environ(), writing=False)
        try:
            yield ctx
        finally:
            ctx.store.close()

"""The user's repository as a drill copies it: its trunk and policy, which gates run in each work tree, which tools ask the guard, whether the
server judges. It is only read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import chdir
from os.path import basename, isdir
from typing import NamedTuple

from gitcoord.audit.doctor import is_hooked
from gitcoord.audit.model import BAD, OK
from gitcoord.audit.project import Project, read_project, server_gate
from gitcoord.gates.hooks.presence import missing_gates
from gitcoord.guard.setup.known import Known
from gitcoord.guard.setup.plan import SetupPlace, in_use
from gitcoord.ledger.context import Context
from gitcoord.policy.model import Attributes
from gitcoord.sessions.unguarded import unguarded_agents
from gitcoord.views.status import known_agents
from gitcoord.worktrees.add import all_trees
from gitcoord.world.open import environ as own_environ
from gitcoord.world.open import open_repository

_MOST_TREES = 8
_PLAIN = re.compile(r"(?!\.)[\w./-]+", re.ASCII)  # neither hidden, where settings lie, nor of use as a pattern
# Settings of the policy that name another ledger, or run commands of the project, which may have effects outside.
_STRIPPED = ("gitcoord.root", "gitcoord.remote", "land.check", "land.renumbercommand", "rules.ack")


class Tree(NamedTuple):
    """A work tree: the gates that do not run there, and the tools in use in any of them, with whether each asks the guard here."""

    name: str
    top: str
    missing: tuple[str, ...]
    tools: tuple[tuple[Known, bool], ...]


class Mirror(NamedTuple):
    project: Project
    trees: list[Tree]
    unguarded: list[dict[str, object]]  # live agents whose tool does not run the guard
    server: str  # '': no remote decides; OK, BAD (takes every push) or UNKNOWN
    server_words: str
    stripped: list[str]  # settings that the copy does not have
    notes: list[str]

    def files(self) -> list[str]:
        """The files of plain names about which the policy says nothing but whether they need a claim."""
        policy = self.project.policy
        return [
            path
            for path in self.project.files
            if _PLAIN.fullmatch(path) and policy.of(path)._replace(claim=False, landing=False) == Attributes()
        ]


def read_mirror(ctx: Context, environ: Mapping[str, str]) -> Mirror:
    project = read_project(ctx)
    notes = []
    tops = [tree.path for tree in all_trees(ctx) if not tree.bare and isdir(tree.path)]
    if len(tops) > _MOST_TREES:
        notes.append(f"{len(tops) - _MOST_TREES} of {len(tops)} work trees were left out")
    names = [basename(top) for top in tops]
    names = [name if names.count(name) == 1 else f"{name}-{at}" for at, name in enumerate(names)]
    tools = {known.name: known for top in tops for known in in_use(SetupPlace(top, environ))}
    trees = [
        Tree(
            name,
            top,
            _missing(top),
            tuple((known, is_hooked(known.name, SetupPlace(top, environ))) for known in tools.values()),
        )
        for top, name in zip(tops[:_MOST_TREES], names)
    ]
    agents: list[dict[str, object]] = known_agents(ctx)["agents"]  # type: ignore[assignment]
    state, words, _ = server_gate(project) if ctx.remote else ("", "", "")
    stripped = [
        key for key in project.pairs if key in _STRIPPED or (key.startswith("validator.") and key.endswith(".command"))
    ]
    commands = [key for key in stripped if key not in ("gitcoord.root", "gitcoord.remote", "rules.ack")]
    if commands:
        notes.append(f"commands of the project were not run: {', '.join(commands)}")
    if not ctx.remote:
        notes.append("this repository decides, so nothing was pushed past a server's gate")
    return Mirror(
        project,
        trees,
        unguarded_agents(ctx, agents),
        state if state in ("", OK, BAD) else "unknown",
        words,
        stripped,
        notes,
    )


def _missing(top: str) -> tuple[str, ...]:
    """The gates that do not run in this work tree."""
    with chdir(top):
        ctx = open_repository(own_environ(), writing=False)
        try:
            return tuple(gate.event for gate in missing_gates(ctx))
        finally:
            ctx.store.close()

"""The user's repository as a drill copies it: its trunk and policy, which gates run in each work tree, which tools ask the guard, whether the
server judges. It is only read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple

from gitcoord.audit.model import ask
from gitcoord.audit.outside import server_gate
from gitcoord.audit.project import Project, read_project
from gitcoord.audit.trees import Tree, read_trees
from gitcoord.ledger.context import Context
from gitcoord.policy.model import Attributes
from gitcoord.sessions.unguarded import unguarded_agents
from gitcoord.views.status import known_agents

_MOST_TREES = 8
_PLAIN = re.compile(r"(?!\.)[\w./-]+", re.ASCII)  # neither hidden, where settings lie, nor of use as a pattern
# Settings of the policy that name another ledger, or run commands of the project, which may have effects outside.
_STRIPPED = ("gitcoord.root", "gitcoord.remote", "land.check", "land.renumbercommand", "rules.ack")


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
    project = read_project(ctx, environ)
    notes = []
    trees, left_out = read_trees(ctx, environ, _MOST_TREES)
    if left_out:
        notes.append(f"{left_out} of {len(trees) + left_out} work trees were left out")
    agents: list[dict[str, object]] = known_agents(ctx)["agents"]  # type: ignore[assignment]
    gate = ask("", lambda: server_gate(project)) if ctx.remote else None
    stripped = [
        key for key in project.pairs if key in _STRIPPED or (key.startswith("validator.") and key.endswith(".command"))
    ]
    commands = [key for key in stripped if key not in ("gitcoord.root", "gitcoord.remote", "rules.ack")]
    if commands:
        notes.append(f"commands of the project were not run: {', '.join(commands)}")
    if not ctx.remote:
        notes.append("this repository decides, so nothing was pushed past a server's gate")
    if find_spec("mcp") is None:
        notes.append("the library of MCP is not installed, so its tools were not tried")
    return Mirror(
        project,
        trees,
        unguarded_agents(ctx, agents),
        gate.state if gate is not None else "",
        gate.words if gate is not None else "",
        stripped,
        notes,
    )

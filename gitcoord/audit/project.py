"""The project as an audit reads it, once for all items: the policy and the tree of trunk, the ledger, this clone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gitcoord.claims.model import Claim, all_claims
from gitcoord.git.commands.objects import ls_tree
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.ledger.state import State
from gitcoord.policy.cache import trunk_source
from gitcoord.policy.model import Policy

_LARGEST = 1 << 18  # bytes of a file that are read


class Project(NamedTuple):
    """`commit`: of trunk; `pairs`: the settings of its policy."""

    ctx: Context
    environ: Mapping[str, str]
    snapshot: Snapshot
    trunk: str
    commit: str
    files: list[str]
    pairs: dict[str, str]
    policy: Policy

    @property
    def state(self) -> State:
        return self.snapshot.state

    @property
    def claims(self) -> list[Claim]:
        return all_claims(self.state)

    def texts(self, paths: list[str]) -> Iterator[tuple[str, str]]:
        """These files of trunk with their text."""
        for path, blob in zip(paths, self.ctx.local.read([f"{self.commit}:{path}" for path in paths])):
            yield path, (blob.data[:_LARGEST] if blob else b"").decode("utf-8", "replace")


def read_project(ctx: Context, environ: Mapping[str, str]) -> Project:
    snapshot = read_snapshot(ctx, trusting=True)
    source = trunk_source(ctx, snapshot)
    listed = ls_tree(ctx.repo.env, source.commit, names=True) if source.commit else None
    files = listed.require("git cannot list trunk").entries if listed is not None else []
    trunk = format_record(snapshot.state).sync
    return Project(ctx, environ, snapshot, trunk, source.commit, files, dict(source.pairs), source.policy(files))

"""The library API as the benchmarks use it: one opened repository, claim and release in one process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gitcoord.claims.model import Item
from gitcoord.claims.service import release, take
from gitcoord.claims.take import Take
from gitcoord.ledger.sessions import Actor
from gitcoord.world.open import open_repository


class Client:
    """Works in its repository as one agent. Changes the current directory, as git finds the repository by it."""

    def __init__(self, where: Path, agent: str, env: Mapping[str, str]) -> None:
        self._where = where
        self._actor = Actor(agent)
        self.enter()
        self._ctx = open_repository({os.fsencode(k): os.fsencode(v) for k, v in env.items()}, writing=True)

    def enter(self) -> None:
        os.chdir(self._where)

    def pair(self, path: str) -> None:
        """Claim and release once; raises where either is refused or fails."""
        items = (Item("path", path),)
        take(self._ctx, Take(self._actor, items))
        release(self._ctx, self._actor, items)

    def close(self) -> None:
        self._ctx.store.close()

"""Trunk where work lands, and the settings of `[land]` in its policy."""

from __future__ import annotations

from gitcoord.base.errors import refused
from gitcoord.landing.model import Rules, rules_of
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case, format_record
from gitcoord.ledger.remote.backoff import meets_others
from gitcoord.ledger.remote.fetch import fetch, store_of
from gitcoord.ledger.remote.user_refs import fetch_sync, refspec_of
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.policy.reader import Source

RECENT = 3000  # milliseconds: trunk that was fetched so long ago is tried as it is, since the push finds out


class Trunk:
    """Trunk where work lands: here, or at the remote that decides. A command has one, which knows when it was fetched."""

    def __init__(self, ctx: Context, snapshot: Snapshot) -> None:
        self._ctx = ctx
        self.name = format_record(snapshot.state).sync
        self.ref = f"refs/heads/{self.name}"
        self._began = ctx.host.mono()
        self._fetched = 0  # when, on the host's monotonic clock; 0: not yet
        self._rules: dict[str, Rules] = {}  # by tip
        self._here = f"refs/remotes/{ctx.remote}/{self.name}" if ctx.remote else self.ref

    def assume(self, agent: str) -> bool:
        """Go by trunk and ledger as this clone knows them, as if they had been fetched now. Only where the push moves both or none, so it finds out,
        and where no agent of another machine has an open session, so they are most likely as they were left here. Return whether that is so."""
        ctx = self._ctx
        if not ctx.remote or not store_of(ctx).remote.atomic or not ctx.local.target(self._here):
            return False
        if meets_others(ctx, read_snapshot(ctx).state, agent):
            return False
        self.fetch_along(on=True)
        self._fetched = self._began
        return True

    def look(self) -> None:
        """Fetch trunk and ledger together, unless this command has done so, and from now on trunk with each fetch of the ledger."""
        if not self._ctx.remote:
            return
        self.fetch_along(on=True)
        remote, self._fetched = store_of(self._ctx).remote, 0
        if remote.along_at < self._began:
            fetch(self._ctx)
            # Not when it began: a slow remote would be asked twice.
            self._fetched = self._ctx.host.mono() if remote.along_at else 0
        self.fetch(RECENT)  # where that brought no trunk: says why

    def fetch(self, age: int = 0) -> str:
        """Its present tip; of a remote one, after a fetch, unless the last one of this command is at most so many milliseconds ago."""
        ctx = self._ctx
        if ctx.remote:
            self._fetched = max(self._fetched, store_of(ctx).remote.along_at)
            if not self._fetched or ctx.host.mono() - self._fetched >= age:
                began = ctx.host.mono()
                fetch_sync(ctx, ctx.remote, self.name)
                self._fetched = began
        return self.known()

    def fetch_along(self, *, on: bool) -> None:
        """From now on every fetch of the ledger brings trunk too: a landing waits for news of both, and forecasts need both of one moment."""
        if self._ctx.remote:
            store_of(self._ctx).remote.along = refspec_of(self._ctx.remote, self.name) if on else ""

    def known(self) -> str:
        """The tip as last fetched."""
        tip = self._ctx.local.target(self._here)
        if not tip:
            raise refused("no-trunk", f"there is no branch '{self.name}' to land on", f"git branch {self.name}")
        return tip

    def source(self, tip: str = "") -> Source:
        """The policy of this tip, or of the one that was last fetched."""
        state = read_snapshot(self._ctx).state
        return Source(self._ctx, tip or self.known(), case=folds_case(state))

    def rules(self, tip: str = "") -> Rules:
        """The settings of `[land]` in that policy."""
        tip = tip or self.known()
        if tip not in self._rules:
            self._rules[tip] = rules_of(self.source(tip).pairs)
        return self._rules[tip]

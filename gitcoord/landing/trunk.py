"""Trunk where work lands, and the settings of `[land]` in its policy."""

from __future__ import annotations

from gitcoord.base.errors import refused
from gitcoord.git.commands.remotes import start_fetch
from gitcoord.git.long_process import finish_bounded
from gitcoord.landing.model import Rules, rules_of
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case, format_record
from gitcoord.ledger.remote.fetch import store_of
from gitcoord.ledger.remote.user_refs import fetch_sync, refspec_of, silent
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.policy.reader import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.process import Child

RECENT = 3000  # milliseconds: trunk that was fetched so long ago is tried as it is, since the push finds out


class Trunk:
    """Trunk where work lands: here, or at the remote that decides. A command has one, which knows when it was fetched."""

    def __init__(self, ctx: Context, snapshot: Snapshot) -> None:
        self._ctx = ctx
        self.name = format_record(snapshot.state).sync
        self.ref = f"refs/heads/{self.name}"
        self._fetched = 0  # when, on the host's monotonic clock; 0: not yet
        self._begun: Child | None = None
        self._rules: dict[str, Rules] = {}  # by tip
        self._here = f"refs/remotes/{ctx.remote}/{self.name}" if ctx.remote else self.ref

    def begin_fetch(self) -> None:
        """Fetch it while this process does something else, until `fetch`. Where that fails, `fetch` tries again, and says why."""
        ctx = self._ctx
        if ctx.remote:
            self._begun = start_fetch(silent(ctx), ctx.notes, ctx.remote, refspec_of(ctx.remote, self.name))

    def finish_fetch(self) -> bool:
        """Wait for the fetch that was begun; return whether there was one, and it has succeeded. Harmless to repeat."""
        child, self._begun = self._begun, None
        if child is None:
            return False
        with self._ctx.deadline(self._ctx.remote).request(changes=False) as deadline:
            answer = finish_bounded(child, deadline)
            if not answer.code:
                deadline.answered()
            return not answer.code

    def fetch(self, age: int = 0) -> str:
        """Its present tip; of a remote one, after a fetch, unless the last one of this command is at most so many milliseconds ago."""
        ctx = self._ctx
        if ctx.remote:
            self._fetched = max(self._fetched, store_of(ctx).remote.along_at)
            if not self._fetched or ctx.host.mono() - self._fetched >= age:
                began = ctx.host.mono()
                if not self.finish_fetch():
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

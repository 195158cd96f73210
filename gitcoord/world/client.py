"""The world as a clone sees it: heartbeats and notes of this machine, git, and the project's settings.

Each method loads what it needs: a plain claim asks for the head, one heartbeat and the restrictions.
"""

from __future__ import annotations

from gitcoord.base.names import Oid
from gitcoord.claims.model import TURN, Grant
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Heartbeat, Seen
from gitcoord.ledger.world import Files, Resource, Waiting, World, memoized
from gitcoord.startup.annotations import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.store import RefUpdate
    from gitcoord.ledger.snapshot import Snapshot
    from gitcoord.policy.model import Attributes, Policy
    from gitcoord.tasks.workers import Workers


class ClientWorld(World):
    """The world of a client: this clone, beside one snapshot of the ledger."""

    def __init__(self, ctx: Context, snapshot: Snapshot, moving: RefUpdate | None = None) -> None:
        """`moving`: trunk, where it moves together with the events that are decided."""
        super().__init__(ctx.host.wall(), ctx.host.mono(), ctx.host.boot, ctx.remote)
        self.ctx = ctx
        self.snapshot = snapshot
        self.moving = moving

    # --- agents

    def heartbeat(self, agent: str) -> Heartbeat | None:
        return self.snapshot.heartbeat(agent)

    def prefetch_heartbeats(self, agents: Iterable[str]) -> None:
        self.snapshot.prefetch_heartbeats(agents)

    @memoized
    def first_seen(self, agent: str) -> Seen | None:
        from gitcoord.claims.facts import note_first_sight

        return note_first_sight(self.ctx, agent, self.heartbeat(agent), self.boot, self.mono)

    @memoized
    def granted_seen(self, token: int) -> int:
        from gitcoord.claims.facts import note_grant

        return note_grant(self.ctx, token, self.boot, self.mono)

    @memoized
    def gone_instance(self, agent: str) -> str:
        from gitcoord.claims.facts import gone_instance

        return gone_instance(self.ctx, agent)

    @memoized
    def runner(self, nonce: str) -> str:
        from gitcoord.effects.service import runner_of

        return runner_of(self.ctx, nonce)

    @memoized
    def grants(self, tokens: list[int]) -> list[Grant]:
        from gitcoord.claims.past_grants import read_grants

        return read_grants(self.ctx, self.snapshot, tokens)

    # --- the project's settings

    @memoized
    def _settings(self) -> list[tuple[str, str]]:
        from gitcoord.claims.facts import project_settings

        return project_settings(self.ctx, self.snapshot)

    @memoized
    def resources(self) -> dict[str, Resource]:
        from gitcoord.claims.facts import parse_resources

        return parse_resources(self._settings())

    def resource(self, name: str) -> Resource:
        found = super().resource(name)
        if not name.startswith(TURN):
            return found
        from gitcoord.landing.model import rules_of

        return found._replace(capacity=max(found.capacity, rules_of(self._settings()).lanes))

    @memoized
    def waiting(self) -> Waiting:
        from gitcoord.policy.cache import waiting

        return waiting(self.ctx, self.snapshot)

    @memoized
    def approvers(self) -> list[str]:
        from gitcoord.claims.facts import parse_approvers

        return parse_approvers(self._settings())

    @memoized
    def policy(self) -> Policy:
        from gitcoord.policy.parse import parse_policy

        return parse_policy(self._settings())

    @memoized
    def restrictions(self) -> Policy | None:
        from gitcoord.policy.cache import restrictions

        return restrictions(self.ctx, self.snapshot)

    @memoized
    def workers(self) -> Workers:
        from gitcoord.tasks.workers import parse_workers

        return parse_workers(self._settings())

    @memoized
    def classes(self, paths: list[str]) -> dict[str, dict[str, Attributes]]:
        from gitcoord.claims.facts import classes

        return classes(self.ctx, self.snapshot, paths)

    # --- work trees

    @memoized
    def head(self) -> Oid:
        return self.ctx.store.target("HEAD") or ""

    @memoized
    def other_trees(self, agent: str) -> list[str]:
        from gitcoord.sessions.worktree_notes import other_trees

        return other_trees(self.ctx, agent)

    @memoized
    def head_in(self, tree: str) -> Oid:
        from gitcoord.claims.facts import head_in

        return head_in(self.ctx, tree)

    @memoized
    def dirty(self, paths: list[str]) -> list[str]:
        from gitcoord.claims.facts import dirty

        return dirty(self.ctx, self.snapshot, "", paths)

    @memoized
    def dirty_in(self, tree: str, paths: list[str]) -> list[str]:
        from gitcoord.claims.facts import dirty

        return dirty(self.ctx, self.snapshot, tree, paths)

    # --- commits

    @memoized
    def since(self, base: Oid, commit: Oid, paths: list[str]) -> dict[str, Oid]:
        from gitcoord.claims.work_facts import since

        return dict.fromkeys(paths, since(self.ctx, self.snapshot, base, commit))

    @memoized
    def changed(self, base: Oid, commit: Oid, paths: list[str]) -> dict[str, Files]:
        from gitcoord.claims.work_facts import changed

        return changed(self.ctx, self.snapshot, base, commit, paths)

    @memoized
    def unlanded(self, commit: Oid, paths: list[str]) -> dict[str, tuple[Oid, Files]]:
        from gitcoord.claims.work_facts import unlanded

        return unlanded(self.ctx, self.snapshot, commit, paths)

    @memoized
    def within(self, commit: Oid, commits: list[Oid]) -> list[Oid]:
        from gitcoord.claims.work_facts import within

        return within(self.ctx, [commit], commits)

    @memoized
    def landed(self, work: Oid, commits: list[Oid]) -> list[Oid]:
        from gitcoord.claims.work_facts import within

        (trunk,) = self.ctx.store.resolve([self._shared_trunk()])
        return within(self.ctx, list(dict.fromkeys((trunk, work))), commits) if trunk and work else []

    def _shared_trunk(self) -> str:
        """The ref of the shared trunk."""
        from gitcoord.claims.work_facts import shared_sync

        return shared_sync(self.ctx, self.snapshot)

    @memoized
    def on_trunk(self, commits: list[Oid]) -> list[Oid]:
        from gitcoord.claims.work_facts import within

        tip = self._trunk_afterwards()
        return within(self.ctx, [tip], commits) if tip else []

    @memoized
    def touched(self, old: Oid, new: Oid) -> list[str]:
        from gitcoord.claims.work_facts import touched

        return touched(self.ctx, old, new)

    @memoized
    def agents_of(self, old: Oid, new: Oid) -> list[str]:
        from gitcoord.claims.work_facts import agents_of

        return agents_of(self.ctx, old, new)

    def _trunk_afterwards(self) -> Oid | None:
        """The tip of trunk where work lands, once this transaction's own move has happened."""
        from gitcoord.ledger.format import format_record

        sync = format_record(self.snapshot.state).sync
        if self.moving is not None and self.moving.ref == f"refs/heads/{sync}":
            return self.moving.new
        return self.ctx.local.target(
            f"refs/remotes/{self.ctx.remote}/{sync}" if self.ctx.remote else f"refs/heads/{sync}"
        )

    @memoized
    def lacking(self, commits: list[Oid]) -> list[Oid]:
        from gitcoord.claims.work_facts import lacking

        return lacking(self.ctx, commits)

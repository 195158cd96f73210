"""Lanes: landings that are checked at the same time, each on top of those before it, and land in order.

A landing in a lane goes on record before its check: its commit on top of trunk as it was then (`new`), and its place. Those behind it make in memory what trunk
will be after it, and check their own work on top. That is a forecast. The landing itself is made anew once nobody is before: where its files are those that
were checked, the check counts, else it runs again. So a landing that fails, one that dies and a trunk that moved from outside cost checks, never correctness.

At a remote the commit is pushed with the record, as `refs/gitcoord/lanes/<commit>`, and that ref is removed afterwards. Where a server takes no such refs,
those behind wait instead.
"""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError, Refused
from gitcoord.base.names import LANES
from gitcoord.claims.events import expire
from gitcoord.claims.events.expire import Sweep
from gitcoord.claims.model import all_claims, expiry_of_claim
from gitcoord.git.commands.remotes import fetch_branch
from gitcoord.git.store import RefUpdate
from gitcoord.landing.bring import Order, bring, tree_of
from gitcoord.landing.events import landing as landing_event
from gitcoord.landing.events.landing import Begin
from gitcoord.landing.model import LEASE, MERGE, OpenLanding, lands_before, open_landings, own_turn
from gitcoord.landing.service import Landing
from gitcoord.landing.trunk import RECENT
from gitcoord.landing.turn import Turn, changed_paths, turn_over
from gitcoord.ledger.event import Decision
from gitcoord.ledger.remote.fetch import fetch, store_of
from gitcoord.ledger.remote.user_refs import ask_remote
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import transact
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Callable

_LOOK = 1.0  # seconds between two looks at those before, while a check runs
_SOON, _LONGEST = 0.2, 2.0  # the same while nothing else is to be done


def paths_of(landing: Landing) -> list[str]:
    """All paths that a landing changes, of a rename both: in the branch, and on trunk as it is known, where a rename may have moved them."""
    ctx, old = landing.ctx, landing.trunk.known()
    new = landing.bring(old).new or old
    return sorted({*changed_paths(ctx, old, landing.order.tip), *changed_paths(ctx, old, new)})


class Outdated(Exception):
    """Trunk will be another one than the check that runs began with."""


class _IsThere(Exception):
    """The remote has the commit already, or does not take it."""


class Lane:
    """The lane of one landing. `rest` waits for news of this repository, at most for so many seconds."""

    def __init__(self, landing: Landing, turn: Turn, rest: Callable[[float], object]) -> None:
        self._landing = landing
        self._ctx, self._trunk, self._order = landing.ctx, landing.trunk, landing.order
        self._agent = landing.actor.agent
        self._turn = turn
        self._rest = rest
        self._seen: tuple[str, ...] = ()  # trunk and what is before, as last looked at
        self._made = ("", "")  # what trunk will be by that, and this landing on top of it
        self._own = ""  # the commit that is on record
        self._refs: list[str] = []  # other commits at the remote that nobody needs afterwards
        self._checked = ""  # the files that are being checked
        self._beats = 0  # when the turn was last looked after, in milliseconds

    def run(self, check: Callable[[str, str], object]) -> None:
        """Take a place, and check on top of those before until there are none. The landing itself is still to be done."""
        if not self._enter():
            return
        since = self._beats = self._ctx.host.mono()
        before, news = self._look(asks=False)  # the ledger is as its own record left it
        while before:
            old, new = self._made
            if news and new:
                self._try(check, old, new)
            else:
                # The next one looks often, and less the longer nothing moves; those behind it less.
                waited = (self._ctx.host.mono() - since) / 10_000
                self._rest(min(_LONGEST, max(_SOON * len(before), waited)))
            self._look_after_turn()
            before, news = self._look()
            since = self._ctx.host.mono() if news else since

    def _try(self, check: Callable[[str, str], object], old: str, new: str) -> None:
        self._checked = self._tree(new)
        try:
            check(old, new)
        except Outdated:
            self._ctx.tell("what lands before has changed: it is checked again")
            self._seen = ()
        except GitcoordError as error:
            if error.code != "check":
                raise
            self._ctx.tell("the check failed on top of what lands before: that is waited for")
        finally:
            self._checked = ""

    def tick(self) -> float:
        """While a check runs: look after the turn, and at those before. Outdated where the check is in vain."""
        self._look_after_turn()
        if self._checked:
            try:
                _, news = self._look()
                new = self._made[1]
                outdated = news and new != "" and self._tree(new) != self._checked
            except Refused:
                raise
            except (GitcoordError, OSError) as error:
                self._ctx.tell(f"cannot look at what lands before: {error}")
                outdated = False
            if outdated:
                raise Outdated
        return _LOOK

    def leave(self) -> None:
        """Remove the commits of this landing, if it has not landed, and of dead ones from the remote. Those that stay do no harm."""
        for commit in dict.fromkeys([*self._refs, *([self._landing.announced] if self._landing.announced else [])]):
            try:
                store_of(self._ctx).remote.push([RefUpdate(LANES + commit, commit, "")])
            except (GitcoordError, OSError):
                continue
        self._refs, self._landing.announced = [], ""

    # --- its place

    def _enter(self) -> bool:
        """Put this landing on record, with what it changes; gives whether there is something to land."""
        old, new = self._landing.prepare(RECENT)  # the check is made with trunk as it will be
        if old == new:
            return False
        ctx, order, self._own = self._ctx, self._order, new
        begin = Begin(self._landing.actor, order.trunk, order.branch, order.tip, old, new, order.how, [], "", ())
        if not ctx.remote:
            transact(ctx, landing_event.decide, begin)
            return True
        remote, state = store_of(ctx).remote, read_snapshot(ctx).state
        dead = [row.new for row in open_landings(state) if row.announced and self._is_over(state, row)]
        move = RefUpdate(LANES + new, "", new)
        if remote.branches:
            self._announce(begin, None)
            return True
        self._refs = dead
        if not remote.atomic:
            remote.push([move])
        try:
            self._announce(begin, move if remote.atomic else None)
            self._landing.announced = new
        except _IsThere:
            self._refs.append(new)  # from an earlier landing, unless the remote takes no such refs
            self._announce(begin, None)
        return True

    def _is_over(self, state: State, row: OpenLanding) -> bool:
        """Has this landing's process ended without an answer? The next one that goes on record ends its record."""
        return row.agent == self._agent or own_turn(state, row.trunk, row.agent) is None

    def _announce(self, begin: Begin, move: RefUpdate | None) -> None:
        heads = [""]

        def rule(state: State, command: Begin, world: World) -> Decision:
            snapshot: Snapshot = world.snapshot  # type: ignore[attr-defined]
            # A push that was refused although the ledger is as it was: the remote has this commit from an earlier landing.
            if move is not None and snapshot.head == heads[-1]:
                raise _IsThere
            heads.append(snapshot.head)
            return landing_event.decide(state, command, world)

        try:
            transact(self._ctx, rule, begin, moving=move)
        except Refused as error:
            if error.code != "host":
                raise
            if move is not None:
                raise _IsThere from None  # a place without the commit, for which those behind wait
            self._ctx.tell(f"no lanes at this server: {error.message}")

    # --- what is before

    def _look(self, *, asks: bool = True) -> tuple[list[OpenLanding], bool]:
        """The landings before this one, and whether trunk or they have changed since the last look. `asks`: a remote, whether it has news."""
        ctx = self._ctx
        if ctx.remote and asks:
            fetch(ctx)
        snapshot = read_snapshot(ctx)
        if own_turn(snapshot.state, self._order.trunk, self._agent) is None:
            raise turn_over(self._agent)
        before = lands_before(snapshot.state, self._agent)
        if self._ends_expired(snapshot, before):
            return self._look()
        names = tuple(row.new for row in before)
        seen = (self._trunk.fetch(RECENT), *names)  # as it was when the ledger was fetched
        news = seen != self._seen
        if news:
            self._seen, self._made = seen, self._forecast(seen[0], before)
        return before, news

    def _ends_expired(self, snapshot: Snapshot, before: list[OpenLanding]) -> bool:
        """End the turns of dead landings: who waits in a lane asks for nothing that would do so."""
        world = self._ctx.world(snapshot)
        for row in before:
            turn = own_turn(snapshot.state, row.trunk, row.agent)
            if turn is not None and expiry_of_claim(snapshot.state, world, turn).expired:
                keys = tuple(c.key for c in all_claims(snapshot.state, row.agent) if c.token == turn.token)
                done = transact(self._ctx, expire.decide, Sweep(self._landing.actor, only=keys, lapsed=()))
                return bool(done["expired"])
        return False

    def _forecast(self, trunk: str, before: list[OpenLanding]) -> tuple[str, str]:
        """Trunk as it will be when those before have landed, and this landing on top of it; '' where that cannot be made here."""
        tips = [trunk]
        if not before and not self._checked:
            return "", ""  # nothing is forecast any more
        for branch, commit in [*((row.branch, row.new) for row in before), (self._order.branch, self._own)]:
            order = Order(branch, commit, self._order.trunk, MERGE)
            tips.append(bring(self._ctx, order, tips[-1], lands=False).new if self._has(commit) else "")
            if not tips[-1]:
                return "", ""
        return tips[-2], tips[-1]

    def _has(self, commit: str) -> bool:
        """Is the commit here, by now?"""
        store = self._ctx.local
        if store.resolve([commit])[0] is None and self._ctx.remote:
            ask_remote(self._ctx, self._ctx.remote, fetch_branch, LANES + commit)
            store.refresh()
        return store.resolve([commit])[0] is not None

    def _tree(self, commit: str) -> str:
        return tree_of(self._ctx.repo.env, commit)

    def _look_after_turn(self) -> None:
        now = self._ctx.host.mono()
        if not self._beats or now - self._beats > LEASE * 1000 // 6:
            self._turn.tick()
            self._beats = now

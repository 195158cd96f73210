"""The turn of a landing: which claims it needs, taking them again in time, and giving them back."""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError, Refused, refused
from gitcoord.claims.events.leave import Leave
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.model import (
    INTENT,
    WRITE,
    Claim,
    Item,
    all_claims,
    compatible,
    covers_item,
    overlapping,
    own_claims,
    turn_item,
    turn_times,
)
from gitcoord.claims.requests import directory_of, own_request, requests_around
from gitcoord.claims.service import leave, release_unworked, take, take_weaker
from gitcoord.claims.take import Take
from gitcoord.git.commands.objects import diff_names
from gitcoord.landing.bring import Order, base_of
from gitcoord.landing.events.landing import is_own
from gitcoord.landing.model import AGAIN, LEASE, MOST_FIRST, SQUASH
from gitcoord.ledger.context import Context
from gitcoord.ledger.remote.fetch import fetch
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.policy.reader import Source
from gitcoord.policy.waiting import highest_priority
from gitcoord.sessions.service import beat
from gitcoord.startup.annotations import Callable, Iterable

_CHANGED: dict[tuple[str, str, str], list[str]] = {}


def changed_paths(ctx: Context, old: str, tip: str) -> list[str]:
    """The paths that the branch changes since it left trunk: of a rename, both."""
    key = ctx.repo.common_dir, old, tip
    if key not in _CHANGED:
        answer = diff_names(ctx.repo.env, base_of(ctx, old, tip) or old, tip)
        _CHANGED[key] = answer.require("git cannot list what the branch changes").entries
    return _CHANGED[key]


def needed(
    ctx: Context, snapshot: Snapshot, source: Source, agent: str, order: Order, old: str, more: Iterable[str] = ()
) -> tuple[Item, ...]:
    """The paths for which this landing needs claims: marked ones, and those that others hold. Not those that the agent has claimed, its
    subagents, those whose subagent it is, or an agent whose commits land; of a squashed commit, only one agent counts. `more`: names that files of the branch get."""
    state, found = snapshot.state, [*dict.fromkeys([*changed_paths(ctx, old, order.tip), *more])]
    marked = source.policy(found)
    written = [c for c in all_claims(state) if c.mode == WRITE and c.space == "path"]
    foreign = order.how != SQUASH and any(not is_own(claim.agent, agent) for claim in written)
    named = ctx.world(snapshot).agents_of(old, order.tip) if foreign else ()
    own = [
        claim for claim in written if is_own(claim.agent, agent) or is_own(agent, claim.agent) or claim.agent in named
    ]
    items = []
    for path in found:
        item = Item("path", path)
        if any(covers_item(state, claim, item) for claim in own):
            continue
        others = [c for c in overlapping(state, item) if not is_own(c.agent, agent)]
        modes = {claim.mode for claim in others if not compatible(claim.mode, WRITE)}
        if modes == {INTENT}:
            continue  # it keeps all others from writing there, and does not conflict with a landing
        if marked.of(path).claim or modes:
            items.append(item)
    return tuple(items)


def turn_over(agent: str) -> Refused:
    return refused("turn-over", f"the turn of '{agent}' to land is over: nothing has landed", "git coord land")


class Turn:
    """One agent's turn. `again`: how often it goes on after a conflict; the first times it waits before those who only began."""

    def __init__(self, ctx: Context, actor: Actor, trunk: str, branch: str, again: int = 0) -> None:
        self._ctx = ctx
        self._actor = actor
        self._turn = turn_item(trunk)
        self._branch = branch
        self._again = again
        self.items: tuple[Item, ...] = (self._turn,)
        self._taken = 0  # when it was last taken, on this machine's clock
        self._times = 0
        self._before: dict[Item, Claim] = {}  # the agent's own weaker claims, which the turn has made write claims

    def ask(self, paths: tuple[Item, ...], wait: Callable[[Wait], object]) -> None:
        """Take the turn with these paths, or wait for all of it in the queue."""
        self.items = (self._turn, *paths)
        state = read_snapshot(self._ctx).state
        weaker = [own for own in own_claims(state, paths, self._actor.agent) if own.mode != WRITE]
        self._before.update((own.item, own) for own in weaker)
        command = Wait(self._actor, self.items, WRITE, *turn_times(LEASE), f"lands {self._branch}"[:200])
        wait(command._replace(priority=self._priority()))
        self._taken = self._ctx.host.mono()

    def _priority(self) -> str:
        """'high' for the first times after a conflict, if the settings let this agent ask for it."""
        if not 0 < self._again <= MOST_FIRST:
            return "normal"
        snapshot = read_snapshot(self._ctx)
        highest = highest_priority(snapshot.state, self._actor, self._ctx.world(snapshot))
        return "normal" if highest == "normal" else "high"

    def tick(self) -> float:
        """While a check runs: a heartbeat, and the turn once more where somebody waits for it; gives the seconds until the next time.
        Refused where it was lost. A remote that does not answer for a while ends no check: the landing itself finds out."""
        try:
            beat(self._ctx, self._actor, patient=True)
            if self._ctx.host.mono() - self._taken > LEASE * 1000 // 3:
                self._go_on()
        except Refused:
            raise
        except (GitcoordError, OSError) as error:
            self._ctx.tell(f"no heartbeat: {error}")
        return LEASE / 6

    def _go_on(self) -> None:
        if self._ctx.remote:
            fetch(self._ctx)  # who waits on other machines
        state = read_snapshot(self._ctx).state
        if len(own_claims(state, self.items, self._actor.agent)) < len(self.items):
            raise turn_over(self._actor.agent)
        in_lanes = len(overlapping(state, self._turn)) > 1  # those behind wait for it too
        if in_lanes or any(requests_around(state, directory_of(state, item)) for item in self.items):
            self.extend(AGAIN)

    def extend(self, seconds: int, doing: str = "") -> None:
        """Take the turn again for so long: the claims get a new token, from which the time counts. `doing`: what others read of it; it
        differs from what they read before, else the claims would stay as they are."""
        self._times += 1
        reason = doing or f"lands {self._branch}"[:180] + f" (turn renewed {self._times}x)"
        take(self._ctx, Take(self._actor, self.items, WRITE, *turn_times(seconds), reason))
        self._taken = self._ctx.host.mono()

    def add(self, items: Iterable[Item]) -> None:
        """Take more with the turn, at once; Refused where somebody holds it."""
        self.items = (*self.items, *items)
        self.extend(LEASE)  # not AGAIN: it has no place yet, and a record of an earlier turn would be one

    def all_items(self) -> tuple[Item, ...]:
        """The items that this agent holds or waits for as its turn: those of the same grant or request as the turn itself."""
        state, agent = read_snapshot(self._ctx).state, self._actor.agent
        own = own_claims(state, (self._turn,), agent)
        request = own_request(state, self._turn, agent)
        granted = [claim.item for claim in all_claims(state, agent) if own and claim.token == own[0].token]
        return tuple(dict.fromkeys([self._turn, *granted, *(request.items if request is not None else ())]))

    def give_back(self) -> bool:
        """Release what is still held of it, and leave the queue; gives whether there was anything. Harmless to repeat. What the agent held
        in a weaker mode before its turn, it holds again."""
        agent, had = self._actor.agent, False
        try:
            state = read_snapshot(self._ctx).state
            if own_request(state, self._turn, agent) is not None:
                had = True
                leave(self._ctx, Leave(self._actor, self.items))
            held = [c for c in own_claims(read_snapshot(self._ctx).state, self.items, agent) if c.mode == WRITE]
            weaker = [own for claim in held if (own := self._before.get(claim.item) or claim.weaker()) is not None]
            for own in weaker:
                take_weaker(self._ctx, self._actor, own)
            items = tuple(claim.item for claim in held if claim.item not in {own.item for own in weaker})
            had = had or bool(held)
            if items:
                release_unworked(self._ctx, self._actor, items)
        except Refused:
            pass  # it was lost meanwhile
        except (GitcoordError, OSError) as error:
            self._ctx.tell(f"the turn lasts until it expires: {error}")
        return had

"""The claims that a landing releases: those whose work it brings onto trunk. And the intents of others, whose holders are told."""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import ROOT, shown
from gitcoord.claims.events.release import dirty_paths
from gitcoord.claims.model import INTENT, WRITE, Claim, Item, all_claims, covers_item
from gitcoord.git.commands.objects import log_on_branches
from gitcoord.handoff.model import all_handoffs
from gitcoord.journal.notes import leave
from gitcoord.landing.events.landing import is_own
from gitcoord.landing.model import is_of_landing, own_turn
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import Snapshot
from gitcoord.ledger.world import World
from gitcoord.sessions.worktree_notes import noted_claims
from gitcoord.startup.annotations import Iterable
from gitcoord.tasks.events.finish import to_release
from gitcoord.tasks.model import the_task
from gitcoord.worktrees.add import all_trees

Key = tuple[str, str, str]  # space, path, agent
_TOLD = 24 * 3600  # seconds for which an intent's holder is told that its path moved
_MOST_TOLD = 10


class Releases:
    """The releases of one landing of this agent, by the ledger of this snapshot."""

    def __init__(self, ctx: Context, snapshot: Snapshot, actor: Actor, trunk: str) -> None:
        self._ctx = ctx
        self._state = snapshot.state
        self._world: World = ctx.world(snapshot)
        self._actor = actor
        self._trunk = trunk
        self._claims = all_claims(snapshot.state)

    def keys(self, old: str, new: str, tip: str, touched: Iterable[str], task: str) -> tuple[Key, ...]:
        """The claims of the turn, the task's, and the write claims on what changes: the agent's own, its subagents', and those of agents
        that landed `Agent:` trailers name. A claim stays where something below it is uncommitted, or committed elsewhere and not
        landed. `tip`: of the branch, which has landed even where its commits were rewritten."""
        agent = self._actor.agent
        turn = own_turn(self._state, self._trunk, agent)
        of_turn = [c for c in self._claims if c.agent == agent and turn is not None and c.token == turn.token]
        found = [c for c in self._claims if c.space == "path" and c.mode == WRITE and c not in of_turn]
        landed = self._covering(found, touched)
        own = [claim for claim in landed if is_own(claim.agent, agent)]
        others = [claim for claim in landed if not is_own(claim.agent, agent)]
        items = to_release(self._state, self._world, self._actor, the_task(self._state, task)) if task else ()
        of_task = [claim for claim in self._claims if claim.agent == agent and claim.item in items]
        done = [*self._clean(own), *self._done_here(others, old, new)]
        released = [*of_turn, *(claim for claim in done if not self._is_elsewhere(claim, new, tip)), *of_task]
        return tuple(dict.fromkeys(claim.key for claim in released))

    def intents(self, touched: Iterable[str]) -> list[Claim]:
        """The intents of others on what changes."""
        agent = self._actor.agent
        found = [c for c in self._claims if (c.space, c.mode) == ("path", INTENT) and not is_own(c.agent, agent)]
        return self._covering(found, touched)

    def _covering(self, claims: list[Claim], touched: Iterable[str]) -> list[Claim]:
        items = [Item("path", path) for path in touched]
        return [claim for claim in claims if any(covers_item(self._state, claim, item) for item in items)]

    def _clean(self, claims: list[Claim]) -> list[Claim]:
        """Those without uncommitted changes in the work trees where their holders claimed."""
        found = []
        for holder in {claim.agent for claim in claims}:
            held = [claim for claim in claims if claim.agent == holder]
            unclean = dirty_paths(self._world, [claim.path for claim in held], holder)
            found += [claim for claim in held if claim.path not in unclean]
        return found

    def _is_elsewhere(self, claim: Claim, new: str, tip: str) -> bool:
        """Return whether work under this claim is on another branch of this clone, or in what a handoff brought with it, and trunk has
        neither these commits nor their content."""
        answer = log_on_branches(self._ctx.repo.env, "" if claim.path == ROOT else claim.path, claim.at, new, tip)
        rows = [
            line.partition("\x02") for line in answer.require("git cannot tell which commits have not landed").lines
        ]
        places = {
            ref for ref, _, agents in rows if not agents or any(is_own(a, claim.agent) for a in agents.split(","))
        }
        handed = [
            (row.head, grant.base)
            for row in all_handoffs(self._state)
            for grant in row.claims
            if (row.by, row.closed, Item(grant.space, grant.path)) == (claim.agent, claim.at, claim.item)
        ]
        landed = {commit for end in (new, tip) for commit in self._world.within(end, [head for head, _ in handed])}
        places |= {head for head, base in handed if head not in landed and not self._is_same(claim, head, base)}
        return not all(self._is_same(claim, place, new) for place in places)

    def _is_same(self, claim: Claim, one: str, other: str) -> bool:
        path = "" if claim.path == ROOT else claim.path
        first, second = (found and found.oid for found in self._ctx.local.read([f"{one}:{path}", f"{other}:{path}"]))
        return first == second

    def _done_here(self, claims: list[Claim], old: str, new: str) -> list[Claim]:
        """Claims of agents whose commits land, if they work in this clone and no work tree of it has something uncommitted below. The
        work trees of other clones cannot be seen from here."""
        named = self._world.agents_of(old, new) if claims else []
        claims = [claim for claim in claims if claim.agent in named]
        trees = [tree for tree in all_trees(self._ctx) if tree.git_dir and not tree.bare] if claims else []
        if self._ctx.remote:
            here = {note for tree in trees for note in noted_claims(tree.git_dir)}
            claims = [claim for claim in claims if (claim.token, claim.agent) in here]
        paths = [claim.path for claim in claims]
        unclean = {path for tree in trees if paths for path in self._world.dirty_in(tree.path, paths)}
        return [claim for claim in claims if claim.path not in unclean]


def released(keys: Iterable[Key]) -> list[str]:
    """The released claims, as they are shown, without those that only a landing takes."""
    return [shown(path, space) for space, path, _ in keys if not is_of_landing(Item(space, path))]


def tell_intents(ctx: Context, actor: Actor, intents: list[Claim], words: str) -> list[str]:
    """Leave a note on each path; gives the agents whom it is for. It has landed all the same where that fails."""
    told = []
    for claim in intents[:_MOST_TOLD]:
        try:
            leave(ctx, actor, claim.path, words, _TOLD)
            told.append(claim.agent)
        except GitcoordError as error:
            ctx.tell(f"{claim.agent} is not told: {error.message}")
    return sorted(set(told))

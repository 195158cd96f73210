"""Items of an audit: claims, the queue, effects that were begun, and the work trees in which agents work."""

from __future__ import annotations

from gitcoord.audit.model import BAD, Check, ok, some
from gitcoord.audit.project import Project
from gitcoord.audit.trees import read_trees
from gitcoord.base.names import CONFIG, shell_word
from gitcoord.claims.model import expiry_of_claim
from gitcoord.effects.once import DONE, all_effects

_LONG_TTL = 86_400
_MOST_OVERTAKINGS = 10


def leases(project: Project) -> Check:
    long = sorted({f"{claim.path} ({claim.agent})" for claim in project.claims if claim.ttl > _LONG_TTL})
    if not long:
        return ok("", "no claim lives longer than a day without its holder")
    words = f"claims that outlive their holder by more than a day: {some(long)}"
    return Check("", BAD, words, "git claim renew --ttl 30m <path>")


def expired(project: Project) -> Check:
    world, claims = project.ctx.world(project.snapshot), project.claims
    world.prefetch_heartbeats(claim.agent for claim in claims)
    gone = [claim.path for claim in claims if expiry_of_claim(project.state, world, claim).expired]
    if not gone:
        return ok("", "every claim has a living holder")
    return Check("", BAD, f"{len(gone)} claim(s) of agents that went away: {some(gone)}", "git coord sweep")


def order(project: Project) -> Check:
    most = project.ctx.world(project.snapshot).waiting().overtake
    if most > _MOST_OVERTAKINGS:
        return Check("", BAD, f"a waiter may be overtaken {most} times", f"{CONFIG}: [queue] overtake = 3")
    return ok("", f"a waiter is overtaken at most {most} times; a wait that would close a deadlock is refused")


def unfinished(project: Project) -> Check:
    begun = [effect.key for effect in all_effects(project.state) if effect.state != DONE]
    if not begun:
        return ok("", "every effect that was begun is done")
    return Check("", BAD, f"begun, and never said to be done: {some(begun)}", "git coord once --list")


def trees(project: Project) -> Check:
    """The gates, and the guard of each tool in use, in every work tree: `hooks` and `tools` ask this one alone."""
    found, left_out = read_trees(project.ctx, project.environ)
    open_ = [f"{tree.name} ({', '.join(gaps)})" for tree in found if (gaps := tree.gaps())]
    if open_:
        first = next(tree.top for tree in found if tree.gaps())
        return Check(
            "", BAD, f"work trees that are not guarded: {some(open_)}", f"git -C {shell_word(first)} coord doctor"
        )
    more = f"; {left_out} more were not looked at" if left_out else ""
    return ok("", f"gates and guards run in {len(found)} work tree(s){more}")

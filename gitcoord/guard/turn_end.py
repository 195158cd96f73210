"""Releases claims at the end of an agent's turn or conversation, and finds unfinished work.

A tool may hold an agent back and let it go on. That is used once for each thing that would be left lying, never again for the same
one, so an agent that will not or cannot deal with it still comes to its end.
"""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError
from gitcoord.claims.events.release import dirty_paths
from gitcoord.claims.model import Item, all_claims
from gitcoord.git.files import append_file, read_file, write_file
from gitcoord.guard.findings import AUTO
from gitcoord.handoff.model import handed_over
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.model import ACTIVE, tasks_of

_KEPT = 500  # things that were asked about


class Left(NamedTuple):
    """Unfinished work that an agent leaves behind."""

    dirty: tuple[str, ...]  # claimed paths with uncommitted work
    tasks: tuple[str, ...]
    keys: tuple[str, ...]  # what names each of them for ever: a claim by its token


def give_back(ctx: Context, actor: Actor) -> Left:
    """Release clean claims that the guard took; return the unfinished rest."""
    snapshot = read_snapshot(ctx)
    state = snapshot.state
    claims = [claim for claim in all_claims(state, actor.agent) if claim.space == "path"]
    waiting = handed_over(state, actor.agent) if claims else set()
    claims = [claim for claim in claims if ("path", claim.path) not in waiting]
    paths = [claim.path for claim in claims]
    tasks = [task for task in tasks_of(state, actor.agent) if task.state == ACTIVE and not task.handoff]
    dirty = dirty_paths(ctx.world(snapshot), paths, actor.agent) if paths else []
    clean = [c.path for c in claims if c.path not in dirty and c.reason.startswith(AUTO)]
    if clean:
        from gitcoord.claims.service import release

        try:
            release(ctx, actor, tuple(Item("path", path) for path in clean))
        except GitcoordError:
            pass  # somebody was quicker, or a remote does not have the work yet: the claims stay until their ttl
    left = [claim for claim in claims if claim.path in dirty]
    keys = [f"claim {claim.token} {claim.path}" for claim in left] + [f"task {task.token}" for task in tasks]
    return Left(
        tuple(claim.path for claim in left), tuple(task.id for task in tasks), tuple(keys)
    )  # fmt: skip


def is_new(ctx: Context, agent: str, keys: tuple[str, ...]) -> bool:
    """Tell whether the agent was not asked about one of these before, and record that it is asked now."""
    file = ctx.scratch(f"guard/asked/{agent}")
    known = read_file(file, 1 << 20).decode("utf-8", "surrogateescape").split("\0")
    new = [key for key in keys if key not in known]
    if len(known) > 2 * _KEPT:
        write_file(file, "".join(f"{key}\0" for key in known[-_KEPT:] if key).encode("utf-8", "surrogateescape"))
    if new:
        append_file(file, "".join(f"{key}\0" for key in new).encode("utf-8", "surrogateescape"))
    return bool(new)

"""`git coord worktree done`: the end of a work tree; and the same repository as seen from another work tree."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from gitcoord.base.names import printable
from gitcoord.claims.model import Item
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.world.open import open_repository


@contextlib.contextmanager
def inside(call: Call, place: str) -> Iterator[Context]:
    """The same repository, seen from another of its work trees."""
    env = {key: value for key, value in call.environ.items() if key not in (b"GIT_DIR", b"GIT_WORK_TREE")}
    with contextlib.chdir(place):
        ctx = open_repository(env, writing=True)
        try:
            yield ctx
        finally:
            ctx.store.close()


def remove(call: Call, name: str, *, discard: bool = False, landed: str = "") -> dict[str, Any]:
    """Remove a work tree whose work is merged, with its branch and claims; Refused where something would be lost. `landed`: see `remove.done`."""
    from gitcoord.claims.service import release
    from gitcoord.worktrees.remove import done as app_done

    def give_back(place: str, agent: str, items: tuple[Item, ...]) -> None:
        with inside(call, place) as ctx:
            release(ctx, Actor(agent), items)

    return app_done(call.ctx, call.actor(), name, give_back, discard=discard, landed=landed)


def done(call: Call, values: Values, words: list[str]) -> int:
    result = remove(call, words[0], discard=bool(values.get("discard-ignored")))
    call.screen.answer(result)
    call.screen.say(
        *(f"released {printable(path)}" for path in result["released"]),
        f"removed {printable(result['path'])}",
    )
    if result["branch"]:
        verb = "removed" if result["branch_removed"] else "left"
        call.screen.say(f"{verb} branch {printable(result['branch'])}")
    return 0

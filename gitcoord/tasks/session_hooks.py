"""Tasks at the end of a session, and of owners that are lost."""

from __future__ import annotations

from gitcoord.base.errors import Refusal
from gitcoord.ledger.event import Chain
from gitcoord.ledger.kinds import SessionHooks
from gitcoord.ledger.sessions import Heartbeat
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.tasks.model import ACTIVE, Task, tasks_of


def _at_work(state: State, agent: str) -> list[Task]:
    return [task for task in tasks_of(state, agent) if task.state == ACTIVE and not task.handoff]


def before_end(state: State, agent: str) -> Refusal | None:
    ids = [task.id for task in _at_work(state, agent)]
    if not ids:
        return None
    return Refusal(
        "task",
        f"{', '.join(ids)} would be left behind",
        hints=(
            f"hand it over: git handoff new --task {ids[0]}",
            f"or finish it: git coord task complete {ids[0]}; or give it back: git coord task release {ids[0]}",
        ),
    )


def on_end(chain: Chain) -> None:
    """Give the agent's tasks back; each counts as an attempt."""
    tasks = _at_work(chain.state, chain.agent)
    if tasks:
        from gitcoord.tasks.events.revise import give_up  # few sessions end with a task in hand

        for task in tasks:
            give_up(chain, task, f"{chain.agent}'s session ended")


def on_expiry(chain: Chain, world: World, only: tuple[str, ...] | None) -> list[Heartbeat]:
    """Open the tasks of lost owners again."""
    from gitcoord.tasks.events.lapse import add_lapses, lost

    return add_lapses(chain, world, lost(chain.state, world, chain.agent, only or ()))


HOOKS = SessionHooks(before_end=before_end, on_end=on_end, on_expiry=on_expiry)

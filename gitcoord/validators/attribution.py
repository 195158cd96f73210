"""attribution: a commit of an agent names it. `gates/judge.py` calls it, since it sees every commit."""

from __future__ import annotations

from gitcoord.ledger.sessions import Actor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.gates.judge import CommitChange


def lacks_agent(step: CommitChange, actor: Actor) -> tuple[str, str] | None:
    """(message, hint) for a commit without an `Agent:` trailer. People need none, and the index is no commit yet."""
    if not step.oid or step.agent or actor.person:
        return None
    return (
        f"{step.oid[:12]} does not say which agent made it",
        f"git commit --amend --no-edit --trailer 'Agent: {actor.agent}'",
    )

"""attribution: a commit of an agent says whose it is. Asked by `gates/judge.py`, which sees every commit anyway."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.gates.judge import CommitChange
    from gitcoord.ledger.sessions import Actor


def lacks_agent(step: CommitChange, actor: Actor) -> tuple[str, str] | None:
    """(what is wrong, what helps) of a commit that names no agent. People need no trailer; the index is no commit yet."""
    if not step.oid or step.agent or actor.person:
        return None
    return (
        f"{step.oid[:12]} does not say which agent made it",
        f"git commit --amend --no-edit --trailer 'Agent: {actor.agent}'",
    )

"""Events of a tool whose subagents act in their parent's conversation: told apart by when each is called and when it is over.

Only for Gemini CLI. It cannot be made to send a subagent back to work, so what one leaves uncommitted goes to its parent.
"""

from gitcoord.app.delegations import hear, known
from gitcoord.core import subagents
from gitcoord.core.subagents import Run, Runs, acting, called, ended, id_of, note_of
from gitcoord.core.toolevents import ALLOW, BEFORE, START, STOP
from gitcoord.errors import GitcoordError
from gitcoord.hot.host import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitcoord.core.toolevents import Answer, ToolEvent
    from gitcoord.hot.guard import Stage
    from gitcoord.store.places import Place

CALL = "invoke_agent"  # the action by which a conversation calls a subagent


def placed(stage: "Stage", event: "ToolEvent", home: "Place") -> "ToolEvent":
    """The event as one of whoever acts. One that was broken off is over before the end of a turn, or a new start, is judged."""
    if event.phase in (START, STOP):
        broken_off(stage, event, home)
        return event
    runs = known(_scratch(home), _key(event), subagents)
    return event._replace(subagent="" if event.action == CALL else acting(runs, Host().wall()), lone=True)


def broken_off(stage: "Stage", event: "ToolEvent", home: "Place") -> str:
    """No subagent outlives a turn. What there is to tell of those whose end was not told."""
    runs = known(_scratch(home), _key(event), subagents)
    return _over(stage, event, home, lambda runs: runs._replace(open=())) if runs.open else ""


def told(stage: "Stage", event: "ToolEvent", home: "Place", answer: "Answer") -> "Answer":
    """The call of a subagent was judged, or is over.

    It is noted only once it is allowed: before that answer the subagent cannot act.
    """
    name = event.input.get("agent_name")
    agent = name if isinstance(name, str) else ""
    if event.phase != BEFORE:
        return answer._replace(context=_over(stage, event, home, lambda runs: ended(runs, agent)))
    if answer.decision == ALLOW:
        _begin(stage, event, home, agent)
    return answer


def _begin(stage: "Stage", event: "ToolEvent", home: "Place", agent: str) -> None:
    from gitcoord.app.sessions import start
    from gitcoord.core.judge import is_family
    from gitcoord.hot.conversations import actor_of

    now = Host().wall()
    runs = hear(_scratch(home), _key(event), subagents, lambda runs: called(runs, agent, now))
    id = acting(runs, now)
    if not id:
        return
    ctx = stage.open(home.top)
    actor = actor_of(ctx, stage.env, event._replace(subagent=id))
    try:
        # Below a very long name none is told from a stranger's: what it claims would bind its parent.
        fits = is_family(actor.parent, actor.agent)
        if fits:
            start(ctx, actor)
    except GitcoordError:
        fits = False  # its name is another's at this moment, or nobody may begin anything
    if not fits:
        hear(_scratch(home), _key(event), subagents, lambda runs: ended(runs, agent))


def _over(stage: "Stage", event: "ToolEvent", home: "Place", step: "Callable[[Runs], Runs]") -> str:
    """What there is to tell of those that are over after this step."""
    from gitcoord.hot.conversations import returns

    gone: list[Run] = []

    def changed(runs: Runs) -> Runs:
        after = step(runs)
        gone.extend(run for run in runs.open if run not in after.open)
        return after

    hear(_scratch(home), _key(event), subagents, changed)
    words = []
    for run in gone:
        try:
            words.append(returns(stage.open(home.top), stage.env, event._replace(subagent=id_of(run))))
        except GitcoordError:
            continue  # what it holds stays until its ttl: its parent may write there all the same
    return "\n".join(words)


def _scratch(home: "Place") -> str:
    return f"{home.common}/gitcoord"


def _key(event: "ToolEvent") -> str:
    return note_of(event.tool, event.conversation)

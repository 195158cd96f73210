"""start: a session of an agent opens."""

from gitcoord.core.claims import all_claims, describe
from gitcoord.core.events import Chain, Decision, Illegal
from gitcoord.core.rules import as_started, halted, open_session
from gitcoord.core.sessions import (
    KILLED,
    OPEN,
    Actor,
    admit,
    agent_file,
    agent_record,
    alive,
    new_agent,
    next_beat,
    silence,
)
from gitcoord.errors import Refusal
from gitcoord.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.codec import Record
    from gitcoord.core.events import Event, Recalled
    from gitcoord.core.state import Changes, State, View

FIELDS = {"session": int, "instance": str, "parent": str}


class Start(NamedTuple):
    """The command. `fresh`: the caller must get a session of its own, not join one that lives."""

    actor: Actor
    fresh: bool = False
    nonce: str = ""
    refused: "tuple[Record, ...]" = ()


def decide(state: "State", command: Start, view: "View") -> "Decision | Refusal":
    """Open a session, or go on with the open one."""
    agent = command.actor.agent
    refusal = halted(state)
    if refusal is not None:
        return refusal
    if command.actor.join and not command.actor.person:
        return Refusal(
            "person",
            "only a person may join a session that is open",
            hints=("take a name of your own: GITCOORD_AGENT",),
        )
    admitted = admit(state, command.actor, view)
    if isinstance(admitted, Refusal):
        return admitted
    if command.fresh and not admitted.opens and _is_somebody(state, view, agent):
        return Refusal(
            "instance",
            f"'{agent}' is already at work (session {admitted.session})",
            hints=("take a name of your own: git coord run --as <name> -- <command>",),
        )
    if command.fresh and not admitted.opens:
        admitted = admitted._replace(opens=True, session=admitted.session + 1)
    chain = Chain(state, agent, view.wall, command.nonce, command.refused)
    open_session(chain, command.actor, view, admitted)
    beat = next_beat(view.beat(agent), agent, admitted.session, view)
    held = all_claims(chain.state, agent)
    result = {
        "agent": agent,
        "session": admitted.session,
        "opened": admitted.opens,
        "claims": [describe(c, silence(state, view, agent, c["session"], c["ttl"]).expires_in) for c in held],
    }
    return Decision(chain.events, [beat] if beat else [], result)


def _is_somebody(state: "State", view: "View", agent: str) -> bool:
    """A process that is known lives under this name. A session without one, opened by a claim in a shell, gives way."""
    record = agent_record(state, agent)
    return record is not None and bool(record["instance"]) and alive(state, view, record)


def recall(state: "State", events: "list[Event]", actor: Actor) -> "Recalled":
    first, actor = events[0], as_started(events, actor)
    return [(decide, Start(actor, fresh, first.nonce, first.refused)) for fresh in (False, True)]


def subject(event: "Event") -> str:
    return f"start session {event.body['session']} of {event.agent}"


def apply(state: "State", event: "Event") -> "Changes":
    record = agent_record(state, event.agent)
    last = record["session"] if record is not None else 0
    if event.body["session"] != last + 1 or (record is not None and record["state"] in (OPEN, KILLED)):
        raise Illegal(f"event {event.seq} opens session {event.body['session']} of '{event.agent}', which may not open")
    new = new_agent(event.agent, last + 1, event.body["instance"], event.body["parent"], event.at)
    return {agent_file(event.agent): new}


def refs(state: "State", event: "Event") -> "dict[str, bool]":
    return {}

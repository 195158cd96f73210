"""stop: a session ends. Its claims are released first; those with uncommitted work may stay until they expire."""

from __future__ import annotations

from gitcoord.base.codec import Shape
from gitcoord.base.errors import raise_if, refused
from gitcoord.base.names import printable, shown
from gitcoord.claims.events.release import add_release, dirty_paths, released_rows, require_pushed, unpushed_paths
from gitcoord.claims.model import WRITE, Claim, Item, all_claims, file_of, own_claim
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, Recalled, Touched, paths_in, session_hooks, subject
from gitcoord.ledger.sessions import ENDED, OPEN, Actor, admit_or_none, agent_file, agent_record, dead
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import end_session, stop_body
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {"target": str, "session": int, "cause": str, "freed": [(str, str)], "kept": [(str, str)]}


class Stop(NamedTuple):
    """The command. `keep`: claims with uncommitted or unpushed work stay until they expire; without it they refuse the end.

    `blind`: the state of the work is unknown, so every write claim on a path stays.
    """

    actor: Actor
    keep: bool = False
    blind: bool = False


def decide(state: State, command: Stop, world: World) -> Decision:
    """End the actor's session and those of the agents it launched. Allowed while halted.

    A session that others ended may still release its kept claims, if it names its own number.
    """
    agent = command.actor.agent
    raise_if(dead(state, world, agent))
    record = agent_record(state, agent)
    wrong = record is not None and command.actor.session not in (0, record.session)
    if record is None or wrong or (record.state != OPEN and not (record.kept and command.actor.session)):
        return Decision([], [], {"agent": agent, "stopped": False, "released": [], "kept": [], "handed_over": []})
    is_open = record.state == OPEN
    raise_if(admit_or_none(state, command.actor, world) if is_open else None)
    if is_open and not command.keep:
        for hooks in session_hooks():
            raise_if(hooks.before_end(state, agent))
    claims, handed = _by_handoff(state, agent)
    unclean = _unclean(world, agent, claims, blind=command.blind)
    dirty = [c for c in claims if c.space == "path" and c.path in unclean]
    if dirty and not command.keep:
        raise refused(
            "dirty",
            f"uncommitted work in {printable(', '.join(sorted(unclean)))} would be left behind",
            "commit it and stop again, or hand it over: git handoff new",
            "or let the claims expire: git coord stop --keep",
        )
    clean = [c for c in claims if c.space != "path" or c.path not in unclean]
    if clean and world.remote:
        trial = Chain(state, agent, world)
        add_release(trial, world, clean, "")
        if not command.keep:
            require_pushed(world, trial.events[-1])
        left = set(unpushed_paths(world, trial.events[-1]))
        dirty += [c for c in clean if c.space == "path" and c.path in left]
        clean = [c for c in clean if c.space != "path" or c.path not in left]
    chain = Chain(state, agent, world)
    chain.grants = not is_open  # its own requests end with the session: others get what becomes free by that event
    work = []
    if clean:
        add_release(chain, world, clean, "")
        work = released_rows(chain.events[-1])
    if is_open:
        for hooks in session_hooks():
            hooks.on_end(chain)
        chain.grants = True
        kept = [[c.space, c.path] for c in [*dirty, *handed]]
        end_session(chain, "stop", stop_body(record, "stopped", [], kept))
    result: dict[str, object] = {
        "agent": agent, "stopped": is_open, "session": record.session, "work": work,
        "released": [shown(c.path, c.space) for c in clean],
        "kept": [shown(c.path, c.space) for c in dirty],
        "handed_over": [shown(c.path, c.space) for c in handed],
    }  # fmt: skip
    return Decision(chain.events, [], result)


def _unclean(world: World, agent: str, claims: list[Claim], *, blind: bool) -> set[str]:
    """The claimed paths that have uncommitted changes, or may have."""
    paths = [c.path for c in claims if c.space == "path" and (c.mode == WRITE or not blind)]
    return set(paths if blind or not paths else dirty_paths(world, paths, agent))


def _by_handoff(state: State, agent: str) -> tuple[list[Claim], list[Claim]]:
    """(claims that end with the session, claims that wait with a handoff to be accepted)."""
    claims = all_claims(state, agent)
    waiting = {key for hooks in session_hooks() for key in hooks.outlives(state, agent)} if claims else set()
    handed = [c for c in claims if (c.space, c.path) in waiting]
    return [c for c in claims if (c.space, c.path) not in waiting], handed


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    if events[-1].kind != "stop":
        # A session that others ended releases its kept claims, and names its own number.
        record = agent_record(state, actor.agent)
        actor = actor._replace(session=record.session if record is not None else 0)
    return [Recalled(decide, Stop(actor, True))]


def apply(state: State, event: Event) -> Changes:
    body = event.body
    record = agent_record(state, body["target"])
    if record is None or record.state != OPEN or record.session != body["session"]:
        raise Illegal(f"event {event.seq} ends session {body['session']} of '{body['target']}', which is not open")
    changes: Changes = {agent_file(body["target"]): record._replace(state=ENDED, kept=body["kept"]).to_record()}
    free(state, body["target"], body["freed"], changes)
    if state.names("waits"):
        from gitcoord.claims.requests import drop_all  # only where somebody waits

        drop_all(state, body["target"], changes)
    return changes


def free(state: State, agent: str, freed: list[list[str]], changes: Changes) -> None:
    for pair in freed:
        if own_claim(state, Item(*pair), agent) is None:
            raise Illegal(f"'{agent}' does not hold what is freed")
        changes[file_of(state, Item(*pair), agent)] = None


def refs(state: State, event: Event) -> dict[str, bool]:
    return {"refs/" + file_of(state, Item(*pair), event.body["target"]): False for pair in event.body["freed"]}


def touches(event: Event) -> Touched:
    return Touched(paths=paths_in([*event.body["freed"], *event.body["kept"]]))


KIND = Kind(
    FIELDS,
    subject("stop session {session} of {target}: {cause}"),
    apply,
    recall,
    refs,
    touches=touches,
    agents=("target",),
)

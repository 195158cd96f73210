"""expire: claims end because their holders sent no heartbeat. The holders' sessions stay open."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape
from gitcoord.base.errors import raise_if
from gitcoord.base.names import shown
from gitcoord.claims.model import UNCONFIRMED, Claim, Item, all_claims, expiry_of_claim, file_of, own_claim
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, Recalled, Touched, paths_in, session_hooks
from gitcoord.ledger.sessions import (
    Actor,
    Expiry,
    Heartbeat,
    Lost,
    agent_file,
    agent_record,
    dead,
    valid_evidence,
)
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import halted
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {
    "claims": [
        {
            "space": str, "path": str, "agent": str, "session": int, "token": int, "ttl": int,
            "beat": str, "rule": str,
        }
    ]
}  # fmt: skip


class Sweep(NamedTuple):
    """The command: end all expired claims, and open the tasks again whose owners are lost."""

    actor: Actor
    only: tuple[tuple[str, str, str], ...] = ()  # (space, path, agent) of the claims to look at; none: all
    lapsed: tuple[str, ...] | None = None  # ids of the tasks to look at; None: all


def decide(state: State, command: Sweep, world: World) -> Decision:
    raise_if(halted(state) or dead(state, world, command.actor.agent))
    expired = _expired(state, command, world)
    chain = Chain(state, command.actor.agent, world)
    beats = _lapses(chain, command, world)
    lapsed = [row["id"] for row in chain.events[0].body["tasks"]] if chain.events else []
    beats = add_expire(chain, world, expired, beats)
    result: dict[str, object] = {"expired": [c.to_json(0) for c, _ in expired], "lapsed": lapsed}
    return Decision(chain.events, beats, result)


def _expired(state: State, command: Sweep, world: World) -> list[tuple[Claim, Expiry]]:
    """The claims of others that have expired. Those of one session with one ttl are judged together: they are few, claims are many."""
    own, only = f"/@{command.actor.agent}", set(command.only)
    records = {file: record for file, record in state.below("claims").items() if not file.endswith(own)}
    world.prefetch_heartbeats(dict.fromkeys(file.rpartition("/@")[2] for file in records))
    verdicts: dict[str, Expiry] = {}
    found = []
    for file, record in records.items():
        grant = (record.get("token"), record["reserved"]) if "reserved" in record else ()
        group = f"{record.get('agent')} {record.get('session')} {record.get('ttl')} {grant}"
        verdict = verdicts.get(group)
        if verdict is not None and not verdict.expired:
            continue
        claim = Claim.from_record(record, file)
        if verdict is None:
            verdict = verdicts[group] = expiry_of_claim(state, world, claim)
        if verdict.expired and (not only or claim.key in only):
            found.append((file, claim, verdict))
    return [(claim, verdict) for _, claim, verdict in sorted(found)]


def _lapses(chain: Chain, command: Sweep, world: World) -> list[Heartbeat]:
    """Lapse tasks first: an owner whose place under a cap expires loses its task too."""
    if command.lapsed == ():
        return []
    return [beat for hooks in session_hooks() for beat in hooks.on_expiry(chain, world, command.lapsed)]


def add_expire(
    chain: Chain, world: World, expired: list[tuple[Claim, Expiry]], beats: list[Heartbeat]
) -> list[Heartbeat]:
    """Add the events that end these claims: one for all, and one for each grant that nobody confirmed, whose request goes back into
    the queue with that event's number as its ticket. Two requests that one event granted stay two.

    Gives the heartbeats that move with the chain: `beats`, and the judged ones with a mark, one for each agent.
    """
    # In one order, whatever the command: where it only expires claims, a server makes it again as a sweep.
    expired = sorted(expired, key=lambda row: file_of(chain.state, row[0].item, row[0].agent))
    if chain.events:  # which may have granted some of it once more
        owns = [own_claim(chain.state, claim.item, claim.agent) for claim, _ in expired]
        expired = [row for own, row in zip(owns, expired) if own is not None and own.token == row[0].token]
    missed = {(c.token, c.agent, c.ticket): verdict for c, verdict in expired if verdict.rule == UNCONFIRMED}
    ended = [row for row in expired if row[1].rule != UNCONFIRMED]
    parts = [ended] if ended else []
    gone = {claim.key for claim, _ in ended}
    for (token, agent, ticket), verdict in sorted(missed.items()):
        claims = [c for c in all_claims(chain.state, agent) if (c.token, c.ticket) == (token, ticket)]
        parts.append([(claim, verdict) for claim in claims if claim.key not in gone])
    grants = chain.grants
    for part in parts:
        # Only the last one grants: a claim that has expired too would keep others waiting, or be granted once more.
        chain.grants = grants and part is parts[-1]
        beats = _add_event(chain, world, part, beats)
    chain.grants = grants
    return beats


def _add_event(
    chain: Chain, world: World, expired: list[tuple[Claim, Expiry]], beats: list[Heartbeat]
) -> list[Heartbeat]:
    """Add one event that ends these claims, with its evidence: the heartbeats that were judged, and the rules.
    The swap of a judged heartbeat expects the old value, so a heartbeat in between wins.
    """
    rows, judged = [], {}
    for claim, verdict in expired:
        beat = world.heartbeat(claim.agent)
        rows.append(
            {
                "space": claim.space, "path": claim.path, "agent": claim.agent, "session": claim.session,
                "token": claim.token, "ttl": claim.ttl, "beat": beat.oid if beat is not None else "",
                "rule": verdict.rule,
            }
        )  # fmt: skip
        if beat is not None and not beat.killed:
            judged[claim.agent] = beat
    event = chain.add("expire", {"claims": rows})
    kept = [beat for beat in beats if beat.agent not in judged]
    return kept + [beat._replace(judged=event.seq) for beat in judged.values()]


def expired_keys(events: list[Event]) -> tuple[tuple[str, str, str], ...]:
    """(space, path, agent) of the claims that a chain's expire events end."""
    rows = (claim for event in events if event.kind == "expire" for claim in event.body["claims"])
    return tuple((claim["space"], claim["path"], claim["agent"]) for claim in rows)


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    """A sweep of the claims that the client saw expired, which may be fewer than the server sees."""
    lapsed = tuple(row["id"] for event in events if event.kind == "lapse" for row in event.body["tasks"])
    return [Recalled(decide, Sweep(actor, expired_keys(events), lapsed))]


def subject(event: Event) -> str:
    claims = event.body["claims"]
    more = f" and {len(claims) - 1} more" if len(claims) > 1 else ""
    return f"expire {shown(claims[0]['path'], claims[0]['space'])} of {claims[0]['agent']}{more}, for {event.agent}"


def apply(state: State, event: Event) -> Changes:
    changes = lose(state, event, event.body["claims"])
    for entry in event.body["claims"]:
        if not valid_evidence(entry):
            raise Illegal(f"event {event.seq} ends a claim of '{entry['agent']}' without evidence")
    missed = [entry for entry in event.body["claims"] if entry["rule"] == UNCONFIRMED]
    if missed:
        _put_back(state, event, missed, changes)
    return changes


def _put_back(state: State, event: Event, entries: list[Record], changes: Changes) -> None:
    """The request behind a grant that nobody confirmed goes to the end of its class; the second time it is dropped."""
    from gitcoord.claims.requests import own_request, put, returned

    claims = [own_claim(state, Item(entry["space"], entry["path"]), entry["agent"]) for entry in entries]
    whole = {(claim.agent, claim.token) for claim in claims if claim is not None}
    tickets = {
        claim.ticket for claim in claims if claim is not None
    }  # an early version ended two requests of one event as one
    agent, token = whole.pop() if len(whole) == 1 else ("", 0)
    group = [c for c in all_claims(state, agent) if c.token == token and c.ticket in tickets] if agent else []
    if 0 in tickets or len(group) != len(entries) or len(entries) != len(event.body["claims"]):
        raise Illegal(f"event {event.seq} ends a reservation in part, or several")
    request = returned(group, event.seq)
    # Where the agent has asked anew for one of the items, that request stands.
    if request is not None and not any(own_request(state, item, agent) for item in request.items):
        put(state, request, changes)


def lose(state: State, event: Event, entries: list[Record]) -> Changes:
    """End these claims and record the loss for each holder, which is told with its next command."""
    changes: Changes = {}
    lost: dict[str, list[Lost]] = {}
    for entry in entries:
        item, holder = Item(entry["space"], entry["path"]), entry["agent"]
        claim = own_claim(state, item, holder)
        if claim is None or claim.token != entry["token"]:
            raise Illegal(f"event {event.seq} ends a claim of '{holder}' that is not there")
        weaker = claim.weaker() if entry.get("rule") == UNCONFIRMED else None
        changes[file_of(state, item, holder)] = None if weaker is None else weaker._replace(token=event.seq).to_record()
        if weaker is not None:
            continue  # it has again what it held before
        row = Lost(item.space, item.name, entry["token"], event.agent, event.seq, event.kind)
        lost.setdefault(holder, []).append(row)
    state.prefetch(("file", agent_file(holder)) for holder in lost)
    for holder, rows in lost.items():
        record = agent_record(state, holder)
        if record is not None:
            gone = {(row.space, row.path) for row in rows}
            kept = [pair for pair in record.kept if tuple(pair) not in gone]
            changes[agent_file(holder)] = record.losing(rows)._replace(kept=kept).to_record()
    return changes


def refs(state: State, event: Event) -> dict[str, bool]:
    rows = [(row, Item(row["space"], row["path"])) for row in event.body["claims"]]
    return {"refs/" + file_of(state, item, row["agent"]): _stays(state, item, row) for row, item in rows}


def _stays(state: State, item: Item, row: Record) -> bool:
    """Is there a weaker claim again, in the state before the event or in the one after it?"""
    own = own_claim(state, item, row["agent"]) if row["rule"] == UNCONFIRMED else None
    return own is not None and (own.token > row["token"] or own.weaker() is not None)


def touches(event: Event) -> Touched:
    return Touched(paths=paths_in((row["space"], row["path"]) for row in event.body["claims"]))


KIND = Kind(FIELDS, subject, apply, recall, refs, touches=touches, agents=("claims",), judged="claims")

"""The command Take and its rule: who gets a path or a resource."""

from __future__ import annotations

from gitcoord.base.errors import Refusal, UsageError
from gitcoord.base.names import printable, shown
from gitcoord.claims.model import (
    DEFAULT_TTL,
    INTENT,
    MAX_TTL,
    MIN_TTL,
    MODES,
    WRITE,
    Item,
    capacity_of,
    conflicts_of,
    own_claim,
    own_claims,
    prefetch_around,
)
from gitcoord.ledger.event import Chain, Decision
from gitcoord.ledger.nonces import remembered
from gitcoord.ledger.sessions import Actor, Admission, admit, next_heartbeat
from gitcoord.sessions.admission import halted, open_session
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.codec import Record
    from gitcoord.claims.model import Claim
    from gitcoord.ledger.sessions import Silence
    from gitcoord.ledger.state import State
    from gitcoord.ledger.world import World

    Judged = tuple[Claim, Silence]


MAX_ITEMS = 10_000


class Take(NamedTuple):
    """The command. `ttl` 0 and empty texts mean "not given"."""

    actor: Actor
    items: tuple[Item, ...]
    mode: str = WRITE
    ttl: int = 0
    expected: int = 0
    reason: str = ""
    task: str = ""
    base: str = ""
    units: int = 1
    nonce: str = ""
    keep: bool = False
    refused: tuple[Record, ...] = ()
    only: tuple[
        tuple[str, str, str], ...
    ] = ()  # (space, path, agent) of expired claims to end; none: all that conflict


def _check(command: Take) -> None:
    if not command.items:
        raise UsageError("no path was named")
    if len(command.items) > MAX_ITEMS:
        raise UsageError(f"more than {MAX_ITEMS} paths in one request", hints=("claim a directory above them",))
    if command.mode not in MODES:
        raise UsageError(f"'{command.mode}' is not a mode", hints=("read, intent or write",))
    if command.units < 1:
        raise UsageError("units are counted from 1")
    check_ttl(command.ttl)


def check_ttl(ttl: int) -> None:
    if ttl and not MIN_TTL <= ttl <= MAX_TTL:
        raise UsageError("the ttl is out of range", hints=("from 1s to 7d",))


def _memo(command: Take) -> Record:
    """The words that a repeat under the same nonce must have."""
    return {
        "verb": "take", "items": [list(item) for item in command.items], "mode": command.mode, "ttl": command.ttl,
        "units": command.units, "reason": command.reason, "task": command.task,
    }  # fmt: skip


def decide(state: State, command: Take, world: World) -> Decision | Refusal:
    """Grant all items, or refuse and name every holder. Conflicting claims that have expired are ended."""
    _check(command)
    refusal = halted(state)
    if refusal is not None:
        return refusal
    agent = command.actor.agent
    admitted = admit(state, command.actor, world)
    if isinstance(admitted, Refusal):
        return admitted
    prefetch_around(state, command.items)
    early = (_repeat(state, command, world) if command.keep else None) or _access(command, world)
    early = early or _out_of_role(state, command, world)
    if early is not None:
        return early
    conflicts = [conflicts_of(state, world, item, agent, command.mode, command.units) for item in command.items]
    live = {c.key: (c, s) for each in conflicts for c, s in each.live}
    if live:
        return _held(state, command, list(live.values()))
    expired = {c.key: (c, s) for each in conflicts for c, s in each.expired}
    if command.only:
        only = set(command.only)
        expired = {key: row for key, row in expired.items() if key in only}
    chain = Chain(state, agent, world.wall, command.nonce, command.refused)
    return _grant(chain, command, world, list(expired.values()), admitted)


def _grant(chain: Chain, command: Take, world: World, expired: list[Judged], admitted: Admission) -> Decision | Refusal:
    """One claim event with one token for the whole request; only a heartbeat if nothing changes."""
    agent = command.actor.agent
    owns = {item: own_claim(chain.state, item, agent) for item in command.items}
    changing = command.keep or admitted.opens or not all(_same(own, command, admitted) for own in owns.values())
    beats = []
    if expired:
        from gitcoord.claims.events.expire import expire_body, judged_beats  # rarely needed

        event = chain.add("expire", expire_body(world, expired))
        beats += judged_beats(world, expired, event.seq)
    open_session(chain, command.actor, world, admitted)
    if changing:
        # If the session was just opened, kept claims have new tokens.
        refusal = _give_up_writing(chain, command, world, own_claims(chain.state, owns, agent))
        if refusal is not None:
            return refusal
        body = _body(command, admitted.session, list(owns.items()), world)
        chain.add("claim", body, _memo(command) if command.keep else None)
    held = own_claims(chain.state, owns, agent)
    beat = next_heartbeat(world.heartbeat(agent), agent, admitted.session, world, min(own.ttl for own in held))
    return Decision(chain.events, [*beats, beat] if beat else beats, granted(held, renewed=not chain.events))


def _body(command: Take, session: int, rows: list[tuple[Item, Claim | None]], world: World) -> Record:
    owns = [own for _, own in rows]
    return {
        "session": session,
        "items": [list(item) for item, _ in rows],
        "mode": command.mode,
        "ttl": min(_ttl(own, item, command, world) for item, own in rows),
        "expected": command.expected,
        "reason": command.reason or _common({own.reason if own is not None else "" for own in owns}),
        "task": command.task or _common({own.task if own is not None else "" for own in owns}),
        "bases": [_base(own, command) for own in owns],
        "units": command.units,
        "capacity": capacity_of([item for item, _ in rows], world),
    }


def _give_up_writing(chain: Chain, command: Take, world: World, owns: list[Claim]) -> Refusal | None:
    """Going from write to a weaker mode releases the work first."""
    written = [own for own in owns if own.mode == WRITE] if command.mode != WRITE else []
    if not written:
        return None
    from gitcoord.claims.events.release import add_release, refuse_uncommitted, refuse_unpushed

    refusal = refuse_uncommitted(world, written)
    if refusal is None:
        add_release(chain, world, written, "")
        refusal = refuse_unpushed(world, chain.events[-1])
    return refusal


def _same(own: Claim | None, command: Take, admitted: Admission) -> bool:
    """Would a new grant change nothing?"""
    return (
        own is not None
        and own.session == admitted.session
        and own.mode == command.mode
        and own.units == command.units
        and command.ttl in (0, own.ttl)
        and command.reason in ("", own.reason)
        and command.task in ("", own.task)
        and command.expected in (0, own.expected)
    )


def _base(own: Claim | None, command: Take) -> str:
    """A write claim keeps its base when its ttl or reason changes."""
    return own.base if own is not None and own.mode == WRITE == command.mode else command.base


def _common(texts: set[str]) -> str:
    """The text that all claims have in common; '' if they differ."""
    return texts.pop() if len(texts) == 1 else ""


def _ttl(own: Claim | None, item: Item, command: Take, world: World) -> int:
    if command.ttl:
        return command.ttl
    if own is not None:
        return own.ttl
    declared = world.resource(item.name).ttl if item.space == "resource" else 0
    return declared or DEFAULT_TTL


def granted(claims: list[Claim], *, renewed: bool = False) -> dict[str, object]:
    shown_claims = [claim.to_json(claim.ttl) for claim in claims]
    return {"token": max(claim.token for claim in claims), "claims": shown_claims, "renewed": renewed}


def _access(command: Take, world: World) -> Refusal | None:
    for item in command.items:
        if item.space != "resource" and command.units != 1:
            raise UsageError("--units is for resources (@name), not for paths")
        refusal = access_to(command.actor, item, command.mode, command.units, world)
        if refusal is not None:
            return refusal
    return None


def access_to(actor: Actor, item: Item, mode: str, units: int, world: World) -> Refusal | None:
    """The refusal if the settings do not let this agent hold this resource in this mode."""
    if item.space != "resource":
        return None
    policy = world.resource(item.name)
    if units > policy.capacity:
        return Refusal("capacity", f"@{item.name} has {policy.capacity} unit(s), {units} were asked for")
    for name, other in world.declared(item.name).items():
        allowed = other.writers if mode == WRITE else other.readers + other.writers
        if allowed and actor.agent not in allowed:
            return Refusal(
                "access",
                f"'{actor.agent}' may not {mode} @{name}",
                hints=(f'the settings allow: {", ".join(allowed)} (.gitcoord/config, resource "{name}")',),
            )
    return None


def _out_of_role(state: State, command: Take, world: World) -> Refusal | None:
    """An agent may claim only what its role lets it write."""
    paths = tuple(item.name for item in command.items if item.space == "path")
    if command.mode != WRITE or not paths or world.restrictions() is None:
        return None
    from gitcoord.policy.roles import may_not_claim  # only where the policy restricts somebody

    return may_not_claim(state, command.actor, world, paths)


def _repeat(state: State, command: Take, world: World) -> Decision | Refusal | None:
    """The result of the first request with this nonce; a refusal if the claims are gone since."""
    agent = command.actor.agent
    first = remembered(state, agent, command.nonce, _memo(command))
    if first is None or isinstance(first, Refusal):
        return first
    owns = [(item, own_claim(state, item, agent)) for item in command.items]
    wanted = (command.mode, command.units)
    gone = [shown(i.name, i.space) for i, own in owns if own is None or (own.mode, own.units) != wanted]
    if gone:
        return Refusal(
            "gone",
            f"granted before under this nonce (token {first.seq}), but gone since: {printable(', '.join(gone))}",
            hints=("ask again under a new nonce",),
        )
    held = [own for _, own in owns if own is not None]
    beat = next_heartbeat(world.heartbeat(agent), agent, held[0].session, world)
    return Decision([], [beat] if beat else [], {**granted(held), "repeated": True})


def _held(state: State, command: Take, live: list[Judged]) -> Refusal:
    """The refusal with every holder. It never says how to take a live claim away."""
    held = [claim.to_json(verdict.expires_in) for claim, verdict in live]
    names = ", ".join(sorted({claim.agent for claim, _ in live}))
    what = f"{len(command.items)} paths: nothing was claimed;"
    if len(command.items) == 1:
        what = f"'{printable(shown(command.items[0].name, command.items[0].space))}'"
    return Refusal("held", f"{what} held by {names}", tuple(held), _two_intents(state, command, live[0][0]))


def _two_intents(state: State, command: Take, first: Claim) -> tuple[str, ...]:
    """A hint for two intents of which one wants to write: the younger gives way."""
    mine = own_claim(state, first.item, command.actor.agent)
    if mine is None or command.mode != WRITE or mine.mode != INTENT or first.mode != INTENT:
        return ()
    if mine.token < first.token:
        return (f"your intent is the older one: wait until {first.agent} releases its own",)
    return (f"{first.agent} has the older intent: release yours, then wait for the path",)

"""The command Take and its rule: who gets a path or a resource."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import Refusal, Refused, UsageError, raise_if, refused
from gitcoord.base.names import printable, shown
from gitcoord.claims.model import (
    DEFAULT_TTL,
    MAX_TTL,
    MIN_TTL,
    MODES,
    WRITE,
    Claim,
    Item,
    capacity_of,
    conflicts_of,
    own_claim,
    own_claims,
    prefetch_around,
)
from gitcoord.ledger.event import Chain, Decision
from gitcoord.ledger.kinds import queue_rules
from gitcoord.ledger.nonces import remembered
from gitcoord.ledger.sessions import Actor, Admission, Expiry, Heartbeat, admit, next_heartbeat
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.sessions.admission import halted, open_session
from gitcoord.startup.namedtuple import NamedTuple

Judged = tuple[Claim, Expiry]


MAX_ITEMS = 10_000


class Take(NamedTuple):
    """The command. A number that is 0 and an empty text are not given: a claim that is held keeps its own."""

    actor: Actor
    items: tuple[Item, ...]
    mode: str = WRITE
    ttl: int = 0
    expected: int = 0
    reason: str = ""
    task: str = ""
    base: str = ""
    units: int = 0
    nonce: str = ""  # of the caller's own: a repeat under it has no second effect
    only: tuple[
        tuple[str, str, str], ...
    ] = ()  # (space, path, agent) of expired claims to end; none: all that conflict
    part: bool = False  # of a larger command, which is not decided twice
    ahead: bool = False  # goes before all who wait
    dirty: bool = False  # give up writing although there are uncommitted changes


class _Terms(NamedTuple):
    """The terms that all items of one claim event share."""

    ttl: int
    expected: int
    units: int


def _check(command: Take) -> None:
    if not command.items:
        raise UsageError("no path was named")
    if len(command.items) > MAX_ITEMS:
        raise UsageError(f"more than {MAX_ITEMS} paths in one request", hints=("claim a directory above them",))
    if command.mode not in MODES:
        raise UsageError(f"'{command.mode}' is not a mode", hints=("read, intent or write",))
    if command.units < 0:
        raise UsageError("units are counted from 1")
    check_ttl(command.ttl)


def check_ttl(ttl: int) -> None:
    if ttl and not MIN_TTL <= ttl <= MAX_TTL:
        raise UsageError("a ttl is from 1s to 7d")


def _memo(command: Take) -> Record:
    """The words that a repeat under the same nonce must have."""
    return {
        "verb": "take", "items": [list(item) for item in command.items], "mode": command.mode, "ttl": command.ttl,
        "units": command.units or 1, "reason": command.reason, "task": command.task,
    }  # fmt: skip


def decide(state: State, command: Take, world: World) -> Decision:
    """Grant all items, or refuse and name every holder. Conflicting claims that have expired are ended."""
    _check(command)
    raise_if(halted(state))
    agent = command.actor.agent
    admitted = admit(state, command.actor, world)
    prefetch_around(state, command.items)
    repeated = _repeat(state, command, world) if command.nonce else None
    if repeated is not None:
        return repeated
    owns = {item: own_claim(state, item, agent) for item in command.items}
    terms = {item: _terms(own, item, command, world) for item, own in owns.items()}
    _require_access(command, terms, world)
    raise_if(_out_of_role(state, command, world))
    conflicts = [conflicts_of(state, world, item, agent, command.mode, terms[item].units) for item in terms]
    live = {c.key: (c, s) for each in conflicts for c, s in each.live}
    if live:
        from gitcoord.claims.held import held  # only for a refusal

        raise Refused(held(state, command, list(live.values())))
    expired = {c.key: (c, s) for each in conflicts for c, s in each.expired}
    if command.only:
        only = set(command.only)
        expired = {key: row for key, row in expired.items() if key in only}
    chain = Chain(state, agent, world)
    bodies = []
    if command.nonce or admitted.opens or not all(_same(owns[item], terms[item], command, admitted) for item in owns):
        bodies = [_body(command, admitted.session, rows, alike, world) for alike, rows in _by_terms(owns, terms)]
    return _grant(chain, command, world, list(expired.values()), admitted, bodies)


def _by_terms(
    owns: dict[Item, Claim | None], terms: dict[Item, _Terms]
) -> list[tuple[_Terms, list[tuple[Item, Claim | None]]]]:
    """The items with the claims that are held on them, those with the same terms together."""
    found: dict[_Terms, list[tuple[Item, Claim | None]]] = {}
    for item, own in owns.items():
        found.setdefault(terms[item], []).append((item, own))
    return list(found.items())


def _grant(
    chain: Chain, command: Take, world: World, expired: list[Judged], admitted: Admission, bodies: list[Record]
) -> Decision:
    """The claim events with these bodies, and what must come before them; only a heartbeat if there are none."""
    agent, items = command.actor.agent, dict.fromkeys(command.items)
    beats: list[Heartbeat] = []
    if expired:
        from gitcoord.claims.events.expire import add_expire  # rarely needed

        chain.grants = not command.part
        beats = add_expire(chain, world, expired, beats)
        if any(event.granted for event in chain.events):
            return Decision(chain.events, beats, {}, again=True)
    open_session(chain, command.actor, world, admitted)
    if bodies:
        # If the session was just opened, kept claims have new tokens.
        owns = own_claims(chain.state, items, agent)
        _give_up_writing(chain, command, world, owns)
        counted: set[int] = set()
        for body in bodies:
            chain.grants = body is bodies[-1]
            past = _overtaken(chain, command, world, body, {own.item for own in owns}, counted)
            chain.add("claim", body, _memo(command) if command.nonce and body is bodies[-1] else None, past=past)
        require_no_deadlock(chain.state, world, agent)
    held = own_claims(chain.state, items, agent)
    old = world.heartbeat(agent)
    confirms = confirms_of(held)
    beat = next_heartbeat(old, agent, admitted.session, world, min(own.ttl for own in held), confirms)
    # A grant that another's event made is told once as such.
    is_new = confirms > (old.confirms if old is not None and old.session == admitted.session else 0)
    return Decision(
        chain.events, [*beats, beat] if beat else beats, granted(held, renewed=not (chain.events or is_new))
    )


def _overtaken(
    chain: Chain, command: Take, world: World, body: Record, held: set[Item], counted: set[int]
) -> tuple[int, ...]:
    """The tickets of the requests that this claim goes past; Refused where it has to wait for one. An item that the agent held
    before this command, in whatever mode, is its own before all who wait."""
    if command.ahead or not chain.state.names("waits"):
        return ()
    items = tuple(Item(*pair) for pair in body["items"])
    new = tuple(item for item in items if item not in held)
    past = [
        t
        for t in queue_rules().overtaken_by(chain.state, world, chain.agent, new, command.mode, body["units"])
        if t not in counted
    ]
    counted.update(past)
    return tuple(past)


def require_no_deadlock(state: State, world: World, agent: str) -> None:
    """Refused where what this agent was just given makes it, or others, wait for ever."""
    if state.names("waits"):
        from gitcoord.claims.deadlock import refuse_deadlock  # only where somebody waits

        refuse_deadlock(state, world, agent)


def confirms_of(claims: list[Claim]) -> int:
    """The token up to which a heartbeat of the holder of these claims confirms grants; 0 where there is none to confirm."""
    return max((claim.token for claim in claims if claim.reserved is not None), default=0)


def _body(command: Take, session: int, rows: list[tuple[Item, Claim | None]], terms: _Terms, world: World) -> Record:
    owns = [own for _, own in rows]
    return {
        "session": session,
        "items": [list(item) for item, _ in rows],
        "mode": command.mode,
        "ttl": terms.ttl,
        "expected": terms.expected,
        "reason": command.reason or _common({own.reason if own is not None else "" for own in owns}),
        "task": command.task or _common({own.task if own is not None else "" for own in owns}),
        "bases": [_base(own, command) for own in owns],
        "units": terms.units,
        "capacity": capacity_of([item for item, _ in rows], world),
    }


def _give_up_writing(chain: Chain, command: Take, world: World, owns: list[Claim]) -> None:
    """Going from write to a weaker mode releases the work first."""
    written = [own.item for own in owns if own.mode == WRITE] if command.mode != WRITE else []
    if written:
        from gitcoord.claims.events.release import release_items

        chain.grants = False
        release_items(chain, world, written, dirty=command.dirty)


def _same(own: Claim | None, terms: _Terms, command: Take, admitted: Admission) -> bool:
    """Would a new grant change nothing?"""
    return (
        own is not None
        and own.session == admitted.session
        and own.mode == command.mode
        and (own.ttl, own.expected, own.units) == terms
        and command.reason in ("", own.reason)
        and command.task in ("", own.task)
    )


def _base(own: Claim | None, command: Take) -> str:
    """A write claim keeps its base when its ttl or reason changes."""
    return own.base if own is not None and own.mode == WRITE == command.mode else command.base


def _common(texts: set[str]) -> str:
    """The text that all claims have in common; '' if they differ."""
    return texts.pop() if len(texts) == 1 else ""


def _terms(own: Claim | None, item: Item, command: Take, world: World) -> _Terms:
    """The terms that are given, else those of the claim that is held, else the defaults."""
    if own is not None:
        ttl, expected, units = own.ttl, own.expected, own.units
        if units > 1:
            units = min(units, world.resource(item.name).capacity)  # which may have shrunk
    else:
        ttl, expected, units = default_ttl((item,), world), 0, 1
    return _Terms(command.ttl or ttl, command.expected or expected, command.units or units)


def default_ttl(items: tuple[Item, ...], world: World) -> int:
    """The shortest ttl that the settings give to one of these items."""
    return min((world.resource(i.name).ttl if i.space == "resource" else 0) or DEFAULT_TTL for i in items)


def granted(claims: list[Claim], *, renewed: bool = False) -> dict[str, object]:
    shown_claims = [claim.to_json(claim.ttl) for claim in claims]
    return {"token": max(claim.token for claim in claims), "claims": shown_claims, "renewed": renewed}


def _require_access(command: Take, terms: dict[Item, _Terms], world: World) -> None:
    for item in command.items:
        if item.space != "resource" and command.units > 1:
            raise UsageError("--units is for resources (@name), not for paths")
        raise_if(access_to(command.actor, item, command.mode, terms[item].units, world))


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


def _repeat(state: State, command: Take, world: World) -> Decision | None:
    """The result of the first request with this nonce; a refusal if the claims are gone since."""
    agent = command.actor.agent
    first = remembered(state, agent, command.nonce, _memo(command))
    if first is None:
        return None
    owns = [(item, own_claim(state, item, agent)) for item in command.items]
    gone = [
        shown(item.name, item.space)
        for item, own in owns
        if own is None or own.mode != command.mode or command.units not in (0, own.units)
    ]
    if gone:
        raise refused(
            "gone",
            f"granted before under this nonce (token {first.seq}), but gone since: {printable(', '.join(gone))}",
            "ask again under a new nonce",
        )
    held = [own for _, own in owns if own is not None]
    beat = next_heartbeat(world.heartbeat(agent), agent, held[0].session, world)
    return Decision([], [beat] if beat else [], {**granted(held), "repeated": True})

"""claim: one or several paths or resources granted to one agent, whole or not at all."""

from gitcoord.core.claims import (
    DEFAULT_TTL,
    INTENT,
    MAX_TTL,
    MIN_TTL,
    MODES,
    WRITE,
    Item,
    check_claim,
    compatible,
    describe,
    file_of,
    in_the_way,
    overlapping,
    own_claim,
    shown,
)
from gitcoord.core.codec import VERSION
from gitcoord.core.events import Chain, Decision, Illegal
from gitcoord.core.kinds.expire import expire_body, judged_beats
from gitcoord.core.nonces import remembered
from gitcoord.core.rules import halted, open_session, require_open
from gitcoord.core.sessions import Actor, Admission, admit, next_beat
from gitcoord.errors import Refusal, UsageError
from gitcoord.names import PATH, RESOURCE, check_path, check_resource, printable
from gitcoord.record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.codec import Record
    from gitcoord.core.events import Event
    from gitcoord.core.sessions import Silence
    from gitcoord.core.state import Changes, State, View

FIELDS = {
    "session": int, "items": [(str, str)], "mode": str, "ttl": int, "expected": int, "reason": str, "task": str,
    "bases": [str], "units": int, "capacity": dict,
}  # fmt: skip


class Take(NamedTuple):
    """The command: who wants what. `ttl` 0 and empty texts mean "not said"."""

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
    refused: "tuple[Record, ...]" = ()


def _check(command: Take) -> None:
    if not command.items:
        raise UsageError("no path was named")
    if command.mode not in MODES:
        raise UsageError(f"'{command.mode}' is not a mode", hints=("read, intent or write",))
    if command.ttl and not MIN_TTL <= command.ttl <= MAX_TTL:
        raise UsageError("the ttl is out of range", hints=("from 1s to 7d",))
    if command.units < 1:
        raise UsageError("units are counted from 1")


def _memo(command: Take) -> "Record":
    """What a repeat under the same nonce must say again."""
    return {
        "verb": "take", "items": [list(item) for item in command.items], "mode": command.mode, "ttl": command.ttl,
        "units": command.units, "reason": command.reason, "task": command.task,
    }  # fmt: skip


def decide(state: "State", command: Take, view: "View") -> "Decision | Refusal":
    """Grant all items, or refuse naming every holder. What the silent hold is expired on the way."""
    _check(command)
    refusal = halted(state)
    if refusal is not None:
        return refusal
    agent = command.actor.agent
    admitted = admit(state, command.actor, view)
    if isinstance(admitted, Refusal):
        return admitted
    if command.keep:
        repeat = _repeat(state, command, view)
        if repeat is not None:
            return repeat
    denied = _access(command, view)
    if denied is not None:
        return denied
    ways = [in_the_way(state, view, item, agent, command.mode, command.units) for item in command.items]
    binding = {(c["space"], c["path"], c["agent"]): (c, s) for way in ways for c, s in way.binding}
    if binding:
        return _held(state, command, list(binding.values()))
    chain = Chain(state, agent, view.wall, command.nonce, command.refused)
    silent = {(c["space"], c["path"], c["agent"]): (c, s) for way in ways for c, s in way.silent}
    return _grant(chain, command, view, list(silent.values()), admitted)


def _grant(
    chain: Chain, command: Take, view: "View", silent: "list[tuple[Record, Silence]]", admitted: Admission
) -> Decision:
    agent, state = command.actor.agent, chain.state
    owns = [own_claim(state, item, agent) for item in command.items]
    if not silent and not admitted.opens and all(_same(own, command, admitted.session, view) for own in owns):
        held = [own for own in owns if own is not None]
        beat = next_beat(view.beat(agent), agent, admitted.session, view, min(own["ttl"] for own in held))
        return Decision([], [beat] if beat else [], _result(held, view, renewed=True))
    beats = []
    if silent:
        event = chain.add("expire", expire_body(view, silent))
        beats += judged_beats(view, silent, event.seq)
    open_session(chain, command.actor, view, admitted)
    ttls = [_ttl(own, item, command, view) for own, item in zip(owns, command.items)]
    body = {
        "session": admitted.session,
        "items": [list(item) for item in command.items],
        "mode": command.mode,
        "ttl": min(ttls),
        "expected": command.expected,
        "reason": command.reason or _kept(owns, "reason"),
        "task": command.task or _kept(owns, "task"),
        "bases": [_base(own, command) for own in owns],
        "units": command.units,
        "capacity": {
            item.name: view.resource(item.name).capacity for item in command.items if item.space == "resource"
        },
    }
    chain.add("claim", body, _memo(command) if command.keep else None)
    beat = next_beat(view.beat(agent), agent, admitted.session, view, min(ttls))
    if beat is not None:
        beats.append(beat)
    granted = [own_claim(chain.state, item, agent) for item in command.items]
    return Decision(chain.events, beats, _result([g for g in granted if g is not None], view))


def _same(own: "Record | None", command: Take, session: int, view: "View") -> bool:
    """Would granting again change anything?"""
    return (
        own is not None
        and own["session"] == session
        and own["mode"] == command.mode
        and own["units"] == command.units
        and command.ttl in (0, own["ttl"])
        and command.reason in ("", own["reason"])
        and command.task in ("", own["task"])
        and command.expected in (0, own["expected"])
    )


def _base(own: "Record | None", command: Take) -> str:
    """Work is judged from where the write claim began, also after its ttl or reason changed."""
    return str(own["base"]) if own is not None and own["mode"] == WRITE else command.base


def _kept(owns: "list[Record | None]", field: str) -> str:
    """A re-take that does not say a text keeps the one it had, where that is one and the same."""
    texts = {own[field] if own is not None else "" for own in owns}
    return str(texts.pop()) if len(texts) == 1 else ""


def _ttl(own: "Record | None", item: Item, command: Take, view: "View") -> int:
    if command.ttl:
        return command.ttl
    if own is not None:
        return int(own["ttl"])
    declared = view.resource(item.name).ttl if item.space == "resource" else 0
    return declared or DEFAULT_TTL


def _result(claims: "list[Record]", view: "View", *, renewed: bool = False) -> "dict[str, object]":
    shown_claims = [describe(claim, claim["ttl"]) for claim in claims]
    return {"token": max(claim["token"] for claim in claims), "claims": shown_claims, "renewed": renewed}


def _access(command: Take, view: "View") -> "Refusal | None":
    for item in command.items:
        if item.space != "resource":
            if command.units != 1:
                raise UsageError("--units is for resources (@name), not for paths")
            continue
        policy = view.resource(item.name)
        if command.units > policy.capacity:
            return Refusal("capacity", f"@{item.name} has {policy.capacity} unit(s), {command.units} were asked for")
        allowed = policy.writers if command.mode == WRITE else policy.readers + policy.writers
        if allowed and command.actor.agent not in allowed:
            return Refusal(
                "access",
                f"'{command.actor.agent}' may not {command.mode} @{item.name}",
                hints=(f'the settings allow: {", ".join(allowed)} (.gitcoord/config, resource "{item.name}")',),
            )
    return None


def _repeat(state: "State", command: Take, view: "View") -> "Decision | Refusal | None":
    """The first outcome of this nonce, and whether it still stands."""
    first = remembered(state, command.actor.agent, command.nonce, _memo(command))
    if first is None or isinstance(first, Refusal):
        return first
    owns = [own_claim(state, item, command.actor.agent) for item in command.items]
    held = [own for own in owns if own is not None and own["token"] == first["seq"]]
    if len(held) < len(owns):
        gone = [shown(i.name, i.space) for i, own in zip(command.items, owns) if own is None or own not in held]
        return Refusal(
            "gone",
            f"granted before under this nonce (token {first['seq']}), but gone since: {printable(', '.join(gone))}",
            hints=("ask again under a new nonce",),
        )
    agent = command.actor.agent
    beat = next_beat(view.beat(agent), agent, held[0]["session"], view)
    return Decision([], [beat] if beat else [], {**_result(held, view), "repeated": True})


def _held(state: "State", command: Take, binding: "list[tuple[Record, Silence]]") -> Refusal:
    """The refusal, with every holder. It never says how to take a live claim away."""
    held = [describe(claim, verdict.expires_in) for claim, verdict in binding]
    names = sorted({claim["agent"] for claim, _ in binding})
    first = binding[0][0]
    asked = shown(command.items[0].name, command.items[0].space)
    again = " ".join(shown(item.name, item.space) for item in command.items[:4]) + (
        " ..." if len(command.items) > 4 else ""
    )
    what = f"'{printable(asked)}'" if len(command.items) == 1 else f"{len(command.items)} paths: nothing was claimed;"
    message = f"{what} held by {', '.join(names)}"
    hints: tuple[str, ...] = (
        f"wait for it: git claim --wait 10m {'-- ' if asked[0] == '-' else ''}{printable(again)}",
    )
    mine = [own for own in (own_claim(state, i, command.actor.agent) for i in command.items) if own is not None]
    if mine and mine[0]["mode"] == INTENT and command.mode == WRITE and first["mode"] == INTENT:
        if mine[0]["token"] < first["token"]:
            hints = (f"your intent is the older one: wait until {first['agent']} releases its own",)
        else:
            hints = (f"{first['agent']} has the older intent: release yours, then wait for the path",)
    return Refusal("held", message, tuple(held), hints)


# --- the event ---------------------------------------------------------------------------------------------------


def subject(event: "Event") -> str:
    items = event.body["items"]
    more = f" and {len(items) - 1} more" if len(items) > 1 else ""
    mode = "" if event.body["mode"] == WRITE else f" ({event.body['mode']})"
    return f"claim {shown(items[0][1], items[0][0])}{more}{mode} by {event.agent}"


def record_of(event: "Event", item: Item, base: str) -> "Record":
    body = event.body
    return {
        "v": VERSION, "path": item.name, "space": item.space, "agent": event.agent, "session": body["session"],
        "mode": body["mode"], "token": event.seq, "ttl": body["ttl"], "expected": body["expected"],
        "reason": body["reason"], "task": body["task"], "base": base, "nonce": event.nonce, "at": event.at,
        "units": body["units"],
    }  # fmt: skip


def apply(state: "State", event: "Event") -> "Changes":
    require_open(state, event.agent, event.body["session"])
    if event.body["mode"] not in MODES or event.body["units"] < 1 or not MIN_TTL <= event.body["ttl"] <= MAX_TTL:
        raise Illegal(f"event {event.seq} grants in a mode, number or ttl that does not exist")
    if len(event.body["items"]) != len(event.body["bases"]) or not all(
        type(units) is int for units in event.body["capacity"].values()
    ):
        raise Illegal(f"event {event.seq} does not fit together")
    changes: Changes = {}
    for pair, base in zip(event.body["items"], event.body["bases"]):
        item = _sound(Item(*pair), event)
        _require_free(state, event, item)
        file = file_of(state, item, event.agent)
        changes[file] = check_claim(record_of(event, item, base), file)
    return changes


def _sound(item: Item, event: "Event") -> Item:
    """The item, if a command could have named it so."""
    try:
        clean = check_path(item.name) if item.space == PATH else check_resource(item.name)
    except UsageError as error:
        raise Illegal(f"event {event.seq}: {error.message}") from None
    if clean != item.name or item.space not in (PATH, RESOURCE):
        raise Illegal(f"event {event.seq} names something that cannot be claimed")
    return item


def _require_free(state: "State", event: "Event", item: Item) -> None:
    capacity = event.body["capacity"].get(item.name, 1) if item.space == "resource" else 1
    units = event.body["units"]
    for claim in overlapping(state, item):
        if claim["agent"] == event.agent:
            continue
        if capacity > 1 and claim["path"] == item.name:
            units += claim["units"]
        elif not compatible(claim["mode"], event.body["mode"]):
            raise Illegal(f"event {event.seq} grants '{printable(item.name)}', which {claim['agent']} holds")
    if units > max(capacity, 1) and item.space == "resource":
        raise Illegal(f"event {event.seq} grants more of '@{item.name}' than there is")


def refs(state: "State", event: "Event") -> "dict[str, bool]":
    return {"refs/" + file_of(state, Item(*pair), event.agent): True for pair in event.body["items"]}

"""release: the holder gives claims back, and records the commit that carries the work (lineage)."""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape
from gitcoord.base.errors import Refusal, Refused, raise_if, refused
from gitcoord.base.names import printable, shell_word, shown
from gitcoord.claims.model import (
    WRITE,
    Claim,
    Item,
    all_claims,
    file_of,
    key_of,
    overlapping,
    own_claim,
    own_claims,
    prefetch_own,
)
from gitcoord.claims.released import Released, changed, landed, lineage_file, work_before_claim
from gitcoord.ledger.event import Chain, Decision, Event, Illegal
from gitcoord.ledger.kinds import Kind, Recalled, Touched, kind_of, paths_in
from gitcoord.ledger.sessions import Actor, admit_or_none, agent_file, agent_record, next_heartbeat
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Sequence
from gitcoord.startup.namedtuple import NamedTuple

FIELDS: dict[str, Shape] = {
    "released": [
        {
            "space": str, "path": str, "token": int, "commit": str, "base": str,
            "files": [(str, str, str)], "landed": [(str, int)],
        }
    ]
}  # fmt: skip


class Release(NamedTuple):
    """The command. No items: everything this agent holds. `commit` '' means HEAD where the path changed."""

    actor: Actor
    items: tuple[Item, ...] = ()
    commit: str = ""
    dirty: bool = False
    unworked: bool = False  # no work was done under these claims, so none is recorded


def decide(state: State, command: Release, world: World) -> Decision:
    """Release all items or nothing. Allowed while halted."""
    agent = command.actor.agent
    raise_if(admit_or_none(state, command.actor, world))
    if command.items:
        prefetch_own(state, command.items, agent)
        owns = [(item, own_claim(state, item, agent)) for item in command.items]
        missing = [item for item, own in owns if own is None]
        if missing:
            raise Refused(_not_held(state, agent, missing))
        claims = [own for _, own in owns if own is not None]
    else:
        claims = all_claims(state, agent)
    if not claims:
        return Decision([], [], {"released": []})
    if not command.dirty:
        require_committed(world, claims)
    written = [c for c in claims if c.space == "path" and c.mode == WRITE]
    if (
        command.commit
        and not changed(state, world, command.commit, written)
        and not work_before_claim(state, world, command.commit, written)
    ):
        raise refused(
            "no-work",
            f"{command.commit[:12]} changes nothing of what is released: nothing was released",
            "name the commit that carries the work, or leave --commit out",
        )
    chain = Chain(state, agent, world)
    add_release(chain, world, claims, command.commit, unworked=command.unworked)
    require_pushed(world, chain.events[-1])
    beat = next_heartbeat(world.heartbeat(agent), agent, claims[0].session, world) if _is_open(state, agent) else None
    return Decision(
        chain.events,
        [beat] if beat else [],
        {"released": released_rows(chain.events[-1])},
    )


def release_items(chain: Chain, world: World, items: Sequence[Item], *, dirty: bool) -> list[dict[str, object]]:
    """Release the items that the agent still holds, as part of a larger command."""
    prefetch_own(chain.state, items, chain.agent)
    claims = own_claims(chain.state, items, chain.agent)
    if not claims:
        return []
    if not dirty:
        require_committed(world, claims)
    add_release(chain, world, claims, "")
    require_pushed(world, chain.events[-1])
    return released_rows(chain.events[-1])


def released_rows(event: Event) -> list[dict[str, object]]:
    """The rows of a release event, as `git claim release` answers them."""
    return [_to_json(entry) for entry in event.body["released"]]


def _to_json(entry: Record) -> dict[str, object]:
    row = {key: value for key, value in entry.items() if key != "space"}
    return {**row, "path": shown(entry["path"], entry["space"]), "kind": entry["space"]}


def require_committed(world: World, claims: list[Claim]) -> None:
    """Refused where one of these paths has uncommitted changes."""
    paths = [c.path for c in claims if c.space == "path"]
    unclean = dirty_paths(world, paths) if paths else []
    if unclean:
        raise refused(
            "dirty",
            f"uncommitted changes in {printable(', '.join(unclean))}: nothing was released",
            f"commit them first; or, where they are not yours, release all the same: git claim release --dirty {' '.join(shell_word(path) for path in unclean)}",
        )


def unpushed_paths(world: World, event: Event) -> list[str]:
    """The released paths whose commits the remote lacks. Others could not fetch what their lineage names."""
    carried = {entry["commit"] for entry in event.body["released"] if entry["commit"]}
    if not world.remote or not carried:
        return []
    lacking = world.lacking(sorted(carried))
    return [entry["path"] for entry in event.body["released"] if entry["commit"] in lacking]


def require_pushed(world: World, event: Event) -> None:
    """Refused where the remote lacks work that this event releases."""
    paths = unpushed_paths(world, event)
    if paths:
        raise refused(
            "unpushed",
            f"the work on {printable(', '.join(paths[:5]))} is not at '{world.remote}' yet: nothing was released",
            "land it, which releases it too: git coord land",
            f"or push it first: git push {world.remote} HEAD",
        )


def _is_open(state: State, agent: str) -> bool:
    record = agent_record(state, agent)
    return record is not None and record.state == "open"


def _not_held(state: State, agent: str, missing: list[Item]) -> Refusal:
    record = agent_record(state, agent)
    rows = [entry for entry in record.lost if entry.space != "task"] if record is not None else []
    lost = {shown(entry.path, entry.space): entry for entry in rows}
    words = []
    for item in missing:
        name = shown(item.name, item.space)
        who = f"lost to {lost[name].by}" if name in lost else _holders(state, item, agent)
        words.append(f"{name} ({who})" if who else name)
    return Refusal(
        "not-held",
        f"'{agent}' does not hold {printable(', '.join(words))}: nothing was released",
        hints=("see what you hold: git claim list --mine",),
    )


def _holders(state: State, item: Item, agent: str) -> str:
    """The holders of the item, or of paths above or below it."""
    others = [claim for claim in overlapping(state, item) if claim.agent != agent]
    same = [claim.agent for claim in others if key_of(state, claim.item) == key_of(state, item)]
    if same:
        return f"held by {', '.join(same)}"
    return ", ".join(f"{claim.agent} holds {shown(claim.path, claim.space)}" for claim in others[:3])


def dirty_paths(world: World, paths: list[str], agent: str = "") -> list[str]:
    """The claimed paths with uncommitted changes; with `agent`, in all work trees it claimed in."""
    found = world.dirty(paths)
    for tree in world.other_trees(agent) if agent else ():
        found = found + world.dirty_in(tree, paths)
    return found


def add_release(chain: Chain, world: World, claims: list[Claim], commit: str, *, unworked: bool = False) -> None:
    """Add one event that releases all these claims, each with the changes since its own base; `unworked`: without any."""
    state, work = chain.state, commit or ("" if unworked else world.head())
    written = [c for c in claims if c.space == "path" and c.mode == WRITE and not unworked]
    found = changed(state, world, work, written)
    carries = dict.fromkeys(found, work)
    if not commit and len(found) < len(written):
        for tree in world.other_trees(chain.agent):  # the agent may have worked in another work tree
            left = [c for c in written if c.path not in found]
            work_there = world.head_in(tree)
            more = changed(state, world, work_there, left)
            found.update(more)
            carries.update(dict.fromkeys(more, work_there))
    before = work_before_claim(state, world, work, [c for c in written if c.path not in found])
    found.update(before)
    carries.update(dict.fromkeys(before, work))
    gone = landed(state, world, found, carries)
    released = []
    for claim in claims:
        base, files = found.get(claim.path, ("", [])) if claim.space == "path" else ("", [])
        released.append(
            {
                "space": claim.space, "path": claim.path, "token": claim.token,
                "commit": carries[claim.path] if files else "", "base": base if files else claim.base,
                "files": files, "landed": gone[claim.path] if files else [],
            }
        )  # fmt: skip
    chain.add("release", {"released": released})


def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    """A release of these items, or the end of a session that others had ended."""
    items = tuple(Item(entry["space"], entry["path"]) for entry in events[-1].body["released"])
    release = Release(actor, items, "", True)
    return [Recalled(decide, release), *kind_of("stop").recall(state, events, actor)]


def subject(event: Event) -> str:
    released = event.body["released"]
    more = f" and {len(released) - 1} more" if len(released) > 1 else ""
    return f"release {shown(released[0]['path'], released[0]['space'])}{more} by {event.agent}"


def apply(state: State, event: Event) -> Changes:
    for entry in event.body["released"]:
        claim = own_claim(state, Item(entry["space"], entry["path"]), event.agent)
        if claim is None or claim.token != entry["token"]:
            raise Illegal(f"event {event.seq} releases '{printable(entry['path'])}', which {event.agent} does not hold")
    return given_back(state, event.seq, event.agent, event.body["released"])


def given_back(state: State, seq: int, agent: str, rows: list[Record]) -> Changes:
    """The changes that give these claims of one agent back, and record their work."""
    changes: Changes = {}
    for entry in rows:
        changes[file_of(state, Item(entry["space"], entry["path"]), agent)] = None
        for path, old in entry["landed"]:
            changes[lineage_file(state, path, old)] = None
        for path, mode, blob in entry["files"]:
            left = Released(path, entry["commit"], mode, blob, seq, agent, entry["token"], entry["base"])
            changes[lineage_file(state, path, seq)] = left.to_record()
    record = agent_record(state, agent)
    if record is not None and record.kept:
        gone = {(entry["space"], entry["path"]) for entry in rows}
        kept = [pair for pair in record.kept if tuple(pair) not in gone]
        changes[agent_file(agent)] = record._replace(kept=kept).to_record()
    return changes


def refs(state: State, event: Event) -> dict[str, bool]:
    released = event.body["released"]
    return {"refs/" + file_of(state, Item(e["space"], e["path"]), event.agent): False for e in released}


def touches(event: Event) -> Touched:
    rows = event.body["released"]
    files = (name for row in rows for name, *_ in row["files"])
    return Touched(paths=(*paths_in((row["space"], row["path"]) for row in rows), *files))


def commits(event: Event) -> list[str]:
    return [entry["commit"] for entry in event.body["released"] if entry["commit"]]


KIND = Kind(FIELDS, subject, apply, recall, refs, touches=touches, commits=commits)

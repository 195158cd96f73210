"""The news of the queue for an agent at its next command: a claim that is its own now, and who waits for its claims.

A waiter's own requests are noted in this clone, so that commands of other agents look at nothing. A grant is confirmed by telling it: no
other process does that for a request that was made with `--queue`. What a holder was told is noted with the queue that it was told of.
"""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, dumps, loads
from gitcoord.base.durations import format_duration
from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import LANDING, printable, shell_word, shown
from gitcoord.claims.model import Claim, Item, expiry_of_claim, is_confirmed, overlapping, own_claims
from gitcoord.claims.requests import Request, own_request
from gitcoord.claims.waiting import waiters_of
from gitcoord.git.files import list_files, read_file, remove_file, write_file
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.ledger.state import State
from gitcoord.sessions.worktree_notes import note_claims, note_tree
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.terminal.screen import ago

_SHOWN = 3


class Noted(NamedTuple):
    """A request of an agent of this clone, as it was when the agent last heard of it."""

    ticket: int
    at: int
    items: tuple[Item, ...]


class News(NamedTuple):
    """Each is told once. `missed`: a grant was not confirmed, and the request has a new ticket. `gone`: it is no request any more."""

    granted: list[Record]
    missed: list[Record]
    gone: list[Record]
    waiters: list[Record]

    def to_json(self) -> Record:
        found = {key: getattr(self, key) for key in self._fields if getattr(self, key)}
        return {"news": found} if found else {}


# --- notes of one's own requests


def note_wait(ctx: Context, agent: str, ticket: int, items: Iterable[Item]) -> None:
    """Note that the agent waits. Repeating it changes nothing."""
    if ticket and not read_file(ctx.scratch(f"waiting/{agent}@{ticket}")):
        _write(ctx, agent, Noted(ticket, ctx.host.wall(), tuple(items)))


def _write(ctx: Context, agent: str, note: Noted) -> None:
    items = [list(item) for item in note.items]
    write_file(ctx.scratch(f"waiting/{agent}@{note.ticket}"), dumps([note.at, items]).encode())


def noted_waits(ctx: Context, agent: str) -> list[Noted]:
    found = []
    for name in list_files(f"{ctx.repo.scratch}/waiting"):
        whose, _, ticket = name.rpartition("@")
        if whose == agent and ticket.isdecimal():
            try:
                at, items = loads(read_file(f"{ctx.repo.scratch}/waiting/{name}", 1 << 20))
                found.append(Noted(int(ticket), int(at), tuple(Item(*pair) for pair in items)))
            except (Malformed, ValueError, TypeError):
                remove_file(f"{ctx.repo.scratch}/waiting/{name}")
    return sorted(found)


def noted_agents(ctx: Context) -> list[str]:
    """The agents that have asked in this clone and were not told of the end."""
    return sorted({name.rpartition("@")[0] for name in list_files(f"{ctx.repo.scratch}/waiting")})


def forget_waits(ctx: Context, agent: str, items: Iterable[Item] | None = None) -> None:
    """The agent knows what became of its requests for these items, or of all of them."""
    named = None if items is None else set(items)
    for note in noted_waits(ctx, agent):
        if named is None or named & set(note.items):
            _forget(ctx, agent, note)


def forget_given_back(ctx: Context, agent: str, paths: Iterable[object]) -> None:
    """The agent gave these paths back itself, as they are shown: of those that it waited for before, only the others are still to tell."""
    named = set(paths)
    for note in noted_waits(ctx, agent):
        left = tuple(item for item in note.items if shown(item.name, item.space) not in named)
        if left != note.items and own_request(read_snapshot(ctx).state, note.items[0], agent) is None:
            _forget(ctx, agent, note)
            if left:
                _write(ctx, agent, note._replace(items=left))


def _forget(ctx: Context, agent: str, note: Noted) -> None:
    remove_file(f"{ctx.repo.scratch}/waiting/{agent}@{note.ticket}")


# --- the news


def news_or_none(ctx: Context, actor: Actor, *, granted_now: bool = False) -> News | None:
    """The news; None where they cannot be told: a command does not fail for that."""
    try:
        return news_for(ctx, actor, granted_now=granted_now)
    except (GitcoordError, OSError):
        return None


def news_for(ctx: Context, actor: Actor, *, granted_now: bool = False) -> News:
    """The news, which count as told from now on. Grants are confirmed; a failure of that is part of the news.

    `granted_now`: the agent has just waited itself. Who waits behind it is told by its next command: where many wait, each hand-over would
    read all their requests.
    """
    notes = noted_waits(ctx, actor.agent)
    snapshot = read_snapshot(ctx, agent=actor.agent)
    news = News([], [], [], [])
    due: list[tuple[Noted, list[Claim]]] = []
    for note in notes:
        _look_at(ctx, snapshot, actor.agent, note, news, due)
    if due:
        news.granted.extend(_confirmed(ctx, actor, due))
    if not granted_now and snapshot.state.names("waits"):
        news.waiters.extend(_new_waiters(ctx, snapshot, actor.agent))
    return news


def _look_at(
    ctx: Context, snapshot: Snapshot, agent: str, note: Noted, news: News, due: list[tuple[Noted, list[Claim]]]
) -> None:
    state, world = snapshot.state, ctx.world(snapshot)
    request = own_request(state, note.items[0], agent)
    if request is not None and set(request.items) == set(note.items):
        if request.ticket != note.ticket:
            _forget(ctx, agent, note)
            note_wait(ctx, agent, request.ticket, request.items)
            if request.missed:
                news.missed.append(request.to_json())
        return
    claims = own_claims(state, note.items, agent)
    if len(claims) < len(note.items):
        _forget(ctx, agent, note)
        news.gone.append({"ticket": note.ticket, "paths": [shown(item.name, item.space) for item in note.items]})
    elif all(claim.reserved is None or is_confirmed(world, claim) for claim in claims):
        _forget(ctx, agent, note)  # another command of the agent was told
    else:
        due.append((note, claims))


def _confirmed(ctx: Context, actor: Actor, due: list[tuple[Noted, list[Claim]]]) -> list[Record]:
    """Confirm these grants by a heartbeat, and give their claims. Only what is there after the heartbeat is the agent's."""
    from gitcoord.sessions.service import beat

    why = ""
    try:
        beat(ctx, actor, confirms=max(claim.token for _, claims in due for claim in claims))
    except (GitcoordError, OSError) as error:
        why = str(error)
    snapshot = read_snapshot(ctx, agent=actor.agent)
    state, world = snapshot.state, ctx.world(snapshot)
    rows: list[Record] = []
    for note, claims in due:
        now = own_claims(state, note.items, actor.agent)
        if [claim.token for claim in now] != [claim.token for claim in claims]:
            continue  # it has just fallen back: the next command tells
        sure = all(is_confirmed(world, claim) for claim in now)
        more = {"ticket": note.ticket, "waited_seconds": max(0, now[0].at - note.at), "confirmed": sure}
        found = [claim.to_json(expiry_of_claim(state, world, claim).expires_in) | more for claim in now]
        rows += [row if sure else {**row, "problem": why} for row in found]
        if sure:
            _forget(ctx, actor.agent, note)
            note_claims(ctx, found)
            note_tree(ctx, actor.agent)
    return rows


def _new_waiters(ctx: Context, snapshot: Snapshot, agent: str) -> list[Record]:
    """Requests that wait for a claim of this agent and that it was not told of. While the queue stays the same, nothing is read."""
    queue = snapshot.trees.walk(snapshot.commit.tree, ["waits"])["waits"]
    oid = queue.oid if queue is not None else ""
    path = ctx.scratch(f"waiters/{agent}")
    try:
        known, told = loads(read_file(path, 1 << 20))
    except (Malformed, ValueError, TypeError):
        known, told = "", []
    if known == oid:
        return []
    found = waiters_of(snapshot.state, ctx.world(snapshot), agent)
    write_file(path, dumps([oid, [request.ticket for request in found]]).encode())
    return [_of_agent(snapshot.state, request, agent) for request in found if request.ticket not in told]


def _of_agent(state: State, request: Request, agent: str) -> Record:
    """The request, with those of its paths on which the agent has a claim."""
    held = [item for item in request.items if any(claim.agent == agent for claim in overlapping(state, item))]
    return {**request.to_json(), "paths": [shown(item.name, item.space) for item in held]}


# --- in words


def news_lines(ctx: Context, news: News) -> list[str]:
    """A line for each; of waiters the first ones."""
    lines = [_granted_line(row) for row in news.granted]
    if news.granted:
        lines += _lacked(ctx, news.granted)
    for row in news.missed:
        lines.append(
            f"{_paths(row)} was granted to you and you did not take it in time: you wait again, ticket {row['ticket']}"
        )
    for row in news.gone:
        again = " ".join(map(shell_word, row["paths"]))
        lines.append(
            f"you no longer wait for {_paths(row)} (ticket {row['ticket']}): withdrawn, ended with your session, or "
            f"granted twice and not taken; to wait again: git claim --queue {again}"
        )
    for row in news.waiters[:_SHOWN]:
        why = f": {printable(row['reason'])}" if row["reason"] else ""
        lands = any(path.startswith(LANDING) for path in row["paths"])
        what = "your landing to end" if lands else f"{_paths(row)}, which you hold"
        lines.append(f"{row['agent']} waits for {what}, since {ago(row['since'])}{why}")
    if len(news.waiters) > _SHOWN:
        lines.append(f"{len(news.waiters) - _SHOWN} more wait for what you hold: git claim list")
    return lines


def _lacked(ctx: Context, rows: list[Record]) -> list[str]:
    """Work on these paths that this copy lacks, as a claim says it; each with the command that brings it."""
    from gitcoord.claims.cli_trunk import lacked_lines, old_copy_lines

    try:
        found = old_copy_lines(ctx, rows) or lacked_lines(ctx, rows)
    except (GitcoordError, OSError):
        return []  # a command does not fail for its news
    return [line.removeprefix("note: ").removeprefix("hint: ") for line in found]


def _granted_line(row: Record) -> str:
    path = printable(row["path"])
    first = f"{path} is yours, token {row['token']}, after you waited {format_duration(row['waited_seconds'])}"
    if row["confirmed"]:
        return f"{first}; it expires after {format_duration(row['ttl_seconds'])} without activity"
    left = format_duration(row["expires_in_seconds"] or 0)
    return f"{first}; it is only reserved, for {left} more: git claim {shell_word(row['path'])}"


def _paths(row: Record) -> str:
    more = f" and {len(row['paths']) - _SHOWN} more" * (len(row["paths"]) > _SHOWN)
    return printable(", ".join(row["paths"][:_SHOWN])) + more

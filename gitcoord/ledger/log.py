"""The ledger as a story: events newest first, filtered by path, agent and kind."""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record
from gitcoord.base.durations import format_duration
from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import LEDGER, TIP, covers, printable, shown
from gitcoord.git.commands.objects import first_parents
from gitcoord.git.store import Reader
from gitcoord.ledger.commit import Commit, read_commits
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Event
from gitcoord.ledger.kinds import agents_in, kind_of
from gitcoord.ledger.named_ledger import no_ledger
from gitcoord.startup.annotations import Iterator


def commits(ctx: Context, reader: Reader, *, oldest_first: bool = False, start: str = LEDGER) -> Iterator[Commit]:
    """Every commit of the ledger, or of the history below `start`, read in batches."""
    answer = first_parents(ctx.repo.env, start, oldest_first=oldest_first)
    if answer.code and ctx.store.replay_redo_log():
        answer = first_parents(ctx.repo.env, start, oldest_first=oldest_first)
    if answer.code and (ctx.settings.get("gitcoord.root") or ctx.store.resolve([TIP])[0]):
        raise CouldNotJudge(f"git cannot walk the ledger: {answer.complaint}")
    if answer.code:
        raise no_ledger(ctx)
    yield from read_commits(reader, answer.lines)


def shown_from(ctx: Context) -> str:
    """The last commit of the history that is shown: at a remote that lost events, with the newest that was seen here."""
    if not ctx.remote:
        return LEDGER
    from gitcoord.ledger.remote.server_behind import newest_seen

    return newest_seen(ctx)


def events(
    ctx: Context, *, path: str = "", agent: str = "", kind: str = "", since: int = 0, limit: int = 0
) -> Iterator[dict[str, object]]:
    """Events newest first. A commit that is no event is shown as what it is."""
    shown = 0
    ends: dict[int, tuple[str, int]] = {}  # of waits, by ticket
    for commit in commits(ctx, ctx.store, start=shown_from(ctx)):
        try:
            event = commit.event
        except Malformed as error:
            yield {
                "commit": commit.oid,
                "kind": "?",
                "error": error.message,
                "seq": 0,
                "agent": "",
                "at": 0,
                "subject": "",
            }
            continue
        if event.seq < since:
            return
        for ticket, end in ends_of_waits(event):
            ends[ticket] = end, event.at
        if (kind and event.kind != kind) or (agent and agent not in agents_of(event)):
            continue
        if path and not any(covers(path, p) or covers(p, path) for p in paths_of(event)):
            continue
        row = event_row(commit, event)
        if event.kind == "wait" and event.seq in ends:
            end, at = ends[event.seq]
            row["wait"] = {"end": end, "seconds": max(0, at - event.at)}
        yield row
        shown += 1
        if limit and shown >= limit:
            return


def event_row(commit: Commit, event: Event) -> dict[str, object]:
    """An event as `log` and `watch` show it."""
    subject = commit.message.split(b"\n", 1)[0].decode("utf-8", "replace")
    return {
        "commit": commit.oid, "seq": event.seq, "kind": event.kind, "agent": event.agent, "at": event.at,
        "subject": subject, "event": {**event.body, "refused": list(event.refused), **_grants(event)},
    }  # fmt: skip


def _grants(event: Event) -> Record:
    """The requests that the event grants, and the tickets that its own claim overtakes, where there are any."""
    found: Record = {"granted": list(event.granted)} if event.granted else {}
    return {**found, "past": list(event.past)} if event.past else found


def ends_of_waits(event: Event) -> list[tuple[int, str]]:
    """The tickets of the requests that end with this event, and how: 'granted' or 'withdrawn'."""
    found = [(row["ticket"], "granted") for row in event.granted]
    return [*found, (event.body["ticket"], "withdrawn")] if event.kind == "leave" else found


def event_words(row: Record) -> str:
    """An event in a line: its subject, the reason, and the earlier refusals that it carries."""
    event = row["event"]
    words = printable(row["subject"])
    for name in ("reason", "cause"):
        if event.get(name):
            words += f": {printable(event[name])}" if event[name] not in row["subject"] else ""
    if row["kind"] == "wait" and event["ticket"]:
        words += f"; keeps ticket {event['ticket']}"  # other terms, and no wait of its own
    wait = row.get("wait")
    if wait:
        words += f"; waited {format_duration(wait['seconds'])}, {wait['end']}"
    granted = [f"{one['agent']} gets {_items(one['items'])}" for one in event.get("granted", ())]
    words += f"; {', '.join(granted[:3])}" if granted else ""
    words += f" and {len(granted) - 3} more" if len(granted) > 3 else ""
    refused = [_refusal(record) for record in event["refused"]]
    more = f" and {len(refused) - 3} more" if len(refused) > 3 else ""
    return words + (f"  [refused before: {', '.join(refused[:3])}{more}]" if refused else "")


def _items(items: list[list[str]]) -> str:
    names = [printable(shown(name, space)) for space, name in items[:3]]
    return ", ".join(names) + (f" and {len(items) - 3} more" if len(items) > 3 else "")


def _refusal(record: Record) -> str:
    """A refusal by a rule has the rule's name in brackets for a holder, and may have no path."""
    path, holder = printable(record["path"]), printable(record["holder"])
    by = f"by rule {holder.strip('[]')}" if holder.startswith("[") else f"held by {holder}"
    return f"{path} {by} x{record['count']}".strip()


def paths_of(event: Event) -> list[str]:
    """Every path that an event speaks of; resources with their '@'."""
    body = event.body
    found = [shown(body["path"], body.get("space", "path"))] if "path" in body else []
    if event.kind == "deploy":
        found.append(shown(f"deploy/{body['target']}", "resource"))
    found += [shown(pair[1], pair[0]) for key in ("items", "freed", "kept") for pair in body.get(key, ())]
    found += [shown(entry["path"], entry["space"]) for key in ("claims", "released") for entry in body.get(key, ())]
    found += [row["path"] for row in body.get("rows", ()) if row["path"]]
    found += [shown(name, space) for row in event.granted for space, name in row["items"]]
    found += [path if isinstance(path, str) else shown(path[1], path[0]) for path in body.get("paths", ())]
    return found + [row["path"] for row in event.refused]


def agents_of(event: Event) -> set[str]:
    """The agent that acted, and the agents that the event names."""
    body = event.body
    found = {event.agent, *agents_in(kind_of(event.kind), body)}
    if event.kind == "handoff" and body["to"]:
        found.add(body["to"])
    return found | {row["agent"] for row in event.granted}

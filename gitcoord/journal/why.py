"""The story of one path, from the ledger."""

from __future__ import annotations

from gitcoord.base.codec import Malformed
from gitcoord.base.names import Oid, printable
from gitcoord.claims.model import Item
from gitcoord.claims.query import listing, overlapping_claims
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.journal.mentions import commits_that_mention
from gitcoord.journal.story import About, refusals, words
from gitcoord.ledger.commit import Commit, read_commits
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Event
from gitcoord.ledger.format import folds_case
from gitcoord.ledger.log import commits, event_words, events
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.startup.annotations import Iterator

_ASKED = 100


def why(ctx: Context, actor: Actor | None, item: Item, limit: int) -> dict[str, object]:
    """The story of an item, oldest first, cut to the last `limit` lines; and its claims now."""
    snapshot = read_snapshot(ctx, trusting=True)
    about = About(item, case=folds_case(snapshot.state))
    deploys = Deploys(ctx)
    story: list[dict[str, object]] = []
    for commit in _about(ctx, snapshot.head, about):
        try:
            event = commit.event
        except Malformed:
            continue  # fsck names it
        lines = [*refusals(event, about), *words(event, about)]
        deploys.note(event, about)
        lines += deploys.lines(event)
        row = {"seq": event.seq, "at": event.at, "agent": event.agent, "kind": event.kind, "commit": commit.oid}
        story += [{**row, "words": line} for line in lines]
        if event.kind == "wait" and event.seq in about.waits:
            story.append({**row, "words": ""})  # told where it ends
    now = overlapping_claims(ctx, actor, item)
    open_waits = [wait["ticket"] for wait in now.get("waits", ())]  # type: ignore[attr-defined]
    for row in story:
        # The end of a session names no path.
        if not row["words"] and row["seq"] in about.waits and row["seq"] not in open_waits:
            row["words"] = f"{row['agent']} waited for it, until its session ended"
    story = [row for row in story if row["words"]]
    left_out = max(0, len(story) - limit) if limit else 0
    return {**now, "story": story[left_out:], "left_out": left_out}


def why_numbered(ctx: Context, actor: Actor | None, id: str, limit: int) -> dict[str, object] | None:
    """The same for a task or a handoff by its id; None where there is none. Its number is that of its first event."""
    if id[:1] not in ("t", "h") or not (id[1:].isascii() and id[1:].isdecimal() and len(id) < 16):
        return None
    kind, found = {"t": "task", "h": "handoff"}[id[0]], list(events(ctx, since=int(id[1:])))[::-1]
    if not found or (found[0]["seq"], found[0]["kind"]) != (int(id[1:]), kind):
        return None
    told = [row for row in found if row is found[0] or _names(row["event"], id)]
    story = [
        {**{key: row[key] for key in ("seq", "at", "agent", "kind", "commit")}, "words": event_words(row)}
        for row in told
    ]
    left_out = max(0, len(story) - limit) if limit else 0
    now = listing(ctx, actor, expired=True)
    claims = [claim for claim in now["claims"] if claim["task"] == id]  # type: ignore[attr-defined]
    return {"path": id, "story": story[left_out:], "left_out": left_out, "claims": claims}


def _names(value: object, id: str) -> bool:
    """Return whether the id is one of the texts in an event, at any depth."""
    if isinstance(value, dict):
        return any(_names(inner, id) for inner in value.values())
    return any(_names(inner, id) for inner in value) if isinstance(value, (list, tuple)) else value == id


def _about(ctx: Context, head: Oid, about: About) -> Iterator[Commit]:
    """The commits whose events may mention it, oldest first."""
    marks = about.marks()
    if not marks:
        return commits(ctx, ctx.store, oldest_first=True, start=head)
    return read_commits(ctx.store, commits_that_mention(ctx, head, marks))


class Deploys:
    """The deploys that carried released work on the path: each release once for each target."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._released: dict[str, str] = {}  # commit -> who
        self._out: set[tuple[str, str]] = set()
        self._left = _ASKED

    def note(self, event: Event, about: About) -> None:
        if event.kind == "release":
            for entry in event.body["released"]:
                if entry["commit"] and any(about.name("path", file) for file, _, _ in entry["files"]):
                    self._released[entry["commit"]] = event.agent

    def lines(self, event: Event) -> list[str]:
        if event.kind != "deploy" or event.body["code"]:
            return []
        target, commit = event.body["target"], event.body["commit"]
        new = [oid for oid in self._released if (oid, target) not in self._out and self._contains(commit, oid)]
        self._out.update((oid, target) for oid in new)
        return [
            f"{event.agent} deployed the work of {self._released[oid]} ({oid[:12]}) to {printable(target)}"
            for oid in new
        ]

    def _contains(self, commit: str, older: str) -> bool:
        """As far as this clone can tell, and within reason: each question is a process."""
        if commit == older:
            return True
        self._left -= 1
        if self._left < 0:
            return False
        return is_ancestor(self._ctx.repo.env, older, commit) is True

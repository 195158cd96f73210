"""An event's story of one path, in words. Kinds without a function here are shown by their subject."""

from __future__ import annotations

from gitcoord.base.codec import Record, dumps
from gitcoord.base.durations import format_duration
from gitcoord.base.names import PATH, RESOURCE, ROOT, ancestors, covers, fold, printable, shown
from gitcoord.claims.model import Item
from gitcoord.ledger.event import Event
from gitcoord.ledger.kinds import kind_of
from gitcoord.startup.annotations import Callable, Iterable
from gitcoord.startup.namedtuple import NamedTuple

UNNAMED = ("close", "deploy")  # kinds that tell of a path without naming it
_MOST = 3
_DEEP = 100  # directories above a path that are still named one by one
_LONGEST = 120


class About:
    """The path, or the resource, that the story is about: paths meet by conflict key, as in the ledger."""

    def __init__(self, item: Item, *, case: bool) -> None:
        self._space = item.space
        self._case = case
        self._key = fold(item.name, case=case)
        self.handoffs: set[str] = set()  # handoffs that offered it
        self.waits: dict[int, Wait] = {}  # requests for it that have not ended, by ticket

    def marks(self) -> list[str]:
        """The beginnings, in an event's JSON, of the paths that concern it, in whatever case. Every event that tells of it has one of these
        texts, or an escape (`\\u`) for a name that is not ASCII, or is of a kind in `UNNAMED`. Empty: any event may tell of it.
        """
        if self._key == ROOT or self._key.count("/") > _DEEP:
            return []
        above = [key for key in ancestors(self._key) if key.isascii()]
        found = [dumps(key) for key in above]
        if self._key.isascii():
            found += [dumps(self._key), dumps(self._key + "/")[:-1]]
        return found + [f'"@{mark[1:]}' for mark in found if self._space == RESOURCE]

    def name(self, space: str, path: str) -> str:
        """'it', or the path above or below it that is meant; '' where something else is."""
        key = fold(path, case=self._case)
        if space != self._space or not (covers(key, self._key) or covers(self._key, key)):
            return ""
        return "it" if key == self._key else printable(shown(path, space))

    def shown_name(self, path: str) -> str:
        """The same for a path as people see it: a resource has its '@'."""
        return self.name(RESOURCE, path[1:]) if path.startswith("@") else self.name(PATH, path)

    def names(self, pairs: Iterable[list[str]]) -> list[str]:
        return [name for space, path in pairs if (name := self.name(space, path))]


def refusals(event: Event, about: About) -> list[str]:
    """Earlier refusals of the event's agent there."""
    lines = []
    for row in event.refused:
        name = about.shown_name(row["path"])
        if name:
            times = "once" if row["count"] == 1 else f"{row['count']} times"
            holder = printable(row["holder"])
            by = f"by the rule {holder.strip('[]')}" if holder.startswith("[") else f"since {holder} held {name}"
            lines.append(f"{event.agent} had been refused {times} before this, {by}")
    return lines


def words(event: Event, about: About) -> list[str]:
    """The lines about the path that the event itself gives."""
    tell = _LINES.get(event.kind)
    if tell is not None:
        lines = [f"{line}{_because(event.body)}" for line in tell(event, event.body, about)]
    else:
        lines = [_subject(event)] if _mentions(event.body, about) else []
    return lines + _granted(event, about)


# --- waits: one line each, where the wait ends


class Wait(NamedTuple):
    agent: str
    at: int
    reason: str

    def words(self, until: int, end: str) -> str:
        because = f": {printable(self.reason)}" if self.reason else ""
        return f"{self.agent} waited {format_duration(max(0, until - self.at))}, {end}{because}"


def _granted(event: Event, about: About) -> list[str]:
    """A line for each request that the event grants."""
    lines = []
    for row in event.granted:
        wait = about.waits.pop(row["ticket"], None) or Wait(row["agent"], event.at, "")
        names = about.names(row["items"])
        lines += [wait.words(event.at, "granted" if names == ["it"] else f"granted {_list(names)}")] if names else []
    return lines


def _wait(event: Event, body: Record, about: About) -> list[str]:
    """The same request again has the ticket of its first event, and is no wait of its own."""
    if about.names(body["items"]) and not body["ticket"]:
        about.waits[event.seq] = Wait(event.agent, event.at, body["reason"])
    return []


def _leave(event: Event, body: Record, about: About) -> list[str]:
    wait = about.waits.pop(body["ticket"], None)
    if wait is None:
        return []
    return [wait.words(event.at, "gave up" if event.agent == wait.agent else f"withdrawn by {event.agent}")]


def _subject(event: Event) -> str:
    return printable(str(kind_of(event.kind).subject(event)))


def _because(body: Record) -> str:
    return f": {printable(body['reason'])}" if body.get("reason") else ""


def _mentions(body: Record, about: About) -> bool:
    """Return whether an event of any other kind mentions it. Its paths are pairs, records, or names of paths."""
    for value in body.values():
        for entry in value if isinstance(value, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("path"), str):
                if about.name(str(entry.get("space", PATH)), entry["path"]):
                    return True
            elif isinstance(entry, list) and len(entry) >= 2 and entry[0] in (PATH, RESOURCE):
                if about.name(entry[0], str(entry[1])):
                    return True
    named = [body["path"]] if isinstance(body.get("path"), str) else []
    listed = body.get("paths")
    named += [path for path in listed if isinstance(path, str)] if isinstance(listed, list) else []
    return any(about.shown_name(path) for path in named)


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def _claim(event: Event, body: Record, about: About) -> list[str]:
    names = about.names(body["items"])
    if not names:
        return []
    mode = {"read": " to read", "intent": " with intent"}.get(body["mode"], "")
    task = f" for task {printable(body['task'])}" if body["task"] else ""
    long = f", expecting to need {format_duration(body['expected'])}" if body["expected"] else ""
    return [f"{event.agent} claimed {_list(names)}{mode}{task}{long}"]


def _release(event: Event, body: Record, about: About) -> list[str]:
    lines = []
    for entry in body["released"]:
        name = about.name(entry["space"], entry["path"])
        if not name:
            continue
        inside = [about.name(PATH, file) for file, _, _ in entry["files"]] if entry["space"] == PATH else []
        changed = [file for file in inside if file]
        if not changed:
            lines.append(f"{event.agent} released {name} unchanged")
        else:
            what = "" if changed == ["it"] else f" (changed: {_list(changed)})"
            lines.append(f"{event.agent} released {name} with commit {entry['commit'][:12]}{what}")
    return lines


def _expire(event: Event, body: Record, about: About) -> list[str]:
    lines = []
    for claim in body["claims"]:
        name, agent = about.name(claim["space"], claim["path"]), claim["agent"]
        if name and claim["rule"] == "unconfirmed":
            about.waits[event.seq] = Wait(agent, event.at, "")  # the ticket with which it may wait again
            lines.append(f"{agent} did not take {name} in time when it was granted; {event.agent} asked")
        elif name:
            lost = f"{agent} lost {name}: expired after {format_duration(claim['ttl'])} without activity"
            lines.append(f"{lost}; {event.agent} asked")
    return lines


def _takeover(event: Event, body: Record, about: About) -> list[str]:
    name = about.name(body["space"], body["path"])
    return [f"{event.agent} took {name} away from {body['holder']}"] if name else []


def _inherit(event: Event, body: Record, about: About) -> list[str]:
    return [
        f"{event.agent} goes on with {name}, which {row['agent']} left uncommitted"
        for row in body["claims"]
        if (name := about.name(row["space"], row["path"]))
    ]


def _disown(event: Event, body: Record, about: About) -> list[str]:
    name = about.name(PATH, body["path"])
    return [f"{event.agent} disowned the work that was released on {name}"] if name else []


def _end(event: Event, body: Record, about: About) -> list[str]:
    """A session ended, or was killed."""
    freed, kept = about.names(body["freed"]), about.names(body.get("kept", ()))
    whose = f"the session of {body['target']}"
    how = (
        f"{event.agent} killed {body['target']}"
        if event.kind == "kill"
        else f"{whose} ended ({printable(body['cause'])})"
    )
    lines = [f"{how}: {_list(freed)} was freed"] if freed else []
    return lines + ([f"{how}: {_list(kept)} stays claimed until it expires"] if kept else [])


def _deploy(event: Event, body: Record, about: About) -> list[str]:
    if not about.name(RESOURCE, f"deploy/{body['target']}"):
        return []
    return [f"{event.agent} deployed {body['commit'][:12]} to {printable(body['target'])}: {body['outcome']}"]


def _request(event: Event, body: Record, about: About) -> list[str]:
    found = [(row, name) for row in body["rows"] if (name := about.name(PATH, row["path"]))]
    return [
        f"{event.agent} asked a person to approve {name} as {row['blob'][:12] or 'deleted'} ({printable(row['rule'])})"
        for row, name in found
    ]


def _answer(event: Event, body: Record, about: About) -> list[str]:
    name = about.name(PATH, body["path"])
    verb = "approved" if body["approved"] else "denied"
    return [f"{event.agent} {verb} {name} as {body['blob'][:12] or 'deleted'}"] if name else []


def _notice(event: Event, body: Record, about: About) -> list[str]:
    return [
        f"{row['agent']} changed {name} against the rule {printable(row['rule'])}, which let it through ({row['stage']})"
        for row in body["rows"]
        if row["path"] and (name := about.name(PATH, row["path"]))
    ]


def _handoff(event: Event, body: Record, about: About) -> list[str]:
    names = about.names([entry["space"], entry["path"]] for entry in body["claims"])
    if not names:
        return []
    about.handoffs.add(f"h{event.seq}")
    to = body["to"] or (f"the role {printable(body['role'])}" if body["role"] else "any agent")
    return [f"{event.agent} offered {_list(names)} to {to} (h{event.seq})"]


def _accept(event: Event, body: Record, about: About) -> list[str]:
    names = about.names(body["items"])
    return [f"{event.agent} took {_list(names)} over from {body['holder']} ({body['handoff']})"] if names else []


def _close(event: Event, body: Record, about: About) -> list[str]:
    """The words for the end of a handoff, which names no path: its offer did."""
    known = body["handoff"] in about.handoffs
    return [f"{event.agent}: the handoff {body['handoff']} was {printable(body['state'])}"] if known else []


def _journal(event: Event, body: Record, about: About) -> list[str]:
    if not any(about.shown_name(path) for path in body["paths"]):
        return []
    first, more, _ = body["text"].partition("\n")
    return [f"{event.agent} wrote: {printable(first[:_LONGEST])}{'...' if more or len(first) > _LONGEST else ''}"]


def _note(event: Event, body: Record, about: About) -> list[str]:
    first, more, _ = body["text"].partition("\n")
    words = f"{event.agent} left a note: {printable(first[:_LONGEST])}{'...' if more or len(first) > _LONGEST else ''}"
    return [words] if about.shown_name(body["path"]) else []


def _seen(event: Event, body: Record, about: About) -> list[str]:
    verb = "took away" if body["end"] else "has seen"
    return [f"{event.agent} {verb} note {seq}" for path, seq in body["notes"] if about.shown_name(path)]


def _landing(event: Event, body: Record, about: About) -> list[str]:
    return []  # `land` tells of it


def _land(event: Event, body: Record, about: About) -> list[str]:
    names = about.names([row["space"], row["path"]] for row in body["released"])
    what = f"{printable(body['branch'])} on {printable(body['trunk'])} ({body['new'][:12]})"
    return [f"{body['owner']} landed {what} and released {_list(names)}"] if names else []


_LINES: dict[str, Callable[[Event, Record, About], list[str]]] = {
    "claim": _claim, "release": _release, "expire": _expire, "takeover": _takeover, "disown": _disown, "kill": _end,
    "inherit": _inherit, "stop": _end, "deploy": _deploy, "request": _request, "answer": _answer, "notice": _notice,
    "wait": _wait, "leave": _leave, "handoff": _handoff, "accept": _accept, "close": _close, "journal": _journal,
    "note": _note, "seen": _seen, "landing": _landing, "land": _land,
}  # fmt: skip

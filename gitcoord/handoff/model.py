"""Handoffs: the document by which one agent passes its work to another, its six sections, and who may accept it."""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, Shape, record_of, values_of
from gitcoord.base.errors import Refusal, UsageError, refused
from gitcoord.base.names import check_agent, check_word, printable
from gitcoord.base.texts import prose
from gitcoord.claims.events.release import dirty_paths
from gitcoord.claims.model import Claim, Grant, all_claims
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Mapping
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.model import ACTIVE, BLOCKED, Task, tasks_of

OPEN, ACCEPTED, DECLINED, WITHDRAWN = "open", "accepted", "declined", "withdrawn"


class Section(NamedTuple):
    """A part of the document. `none`: it may say that there is nothing."""

    key: str
    title: str
    asks: str
    none: bool


SECTIONS = (
    Section("state", "State", "What works now, what does not, and how you know.", False),
    Section("changed", "Changed", "What you changed, and why.", False),
    Section("remaining", "Remaining", "What is left to do.", False),
    Section("next", "Next step", "The one concrete thing to do first.", False),
    Section("blockers", "Blockers", "The problems that block the work, or: none", True),
    Section("assumptions", "Assumptions", "Assumptions that you did not check, or: none", True),
)
LONGEST = 20_000  # characters of a section
_HEADINGS = {f"## {section.title}".casefold(): section.key for section in SECTIONS}
_AROUND = " \t\n.,:;!?-_*#`'\"<>()[]{}/\\|=+~…"
_EMPTY_WORDS = {
    "", "todo", "to do", "tbd", "tba", "fixme", "xxx", "x", "wip", "placeholder", "fill in", "fill me in", "fill this in",
    "see above", "lorem ipsum", "n/a", "na", "not applicable",
}  # fmt: skip
_NOTHING = {"none", "nothing", "no", "nil", "null"}

_OFFERED: dict[str, Shape] = {
    "space": str, "path": str, "token": int, "mode": str, "ttl": int, "expected": int, "reason": str, "task": str,
    "base": str, "units": int,
}  # fmt: skip
FACTS: dict[str, Shape] = {
    "branch": str, "head": str, "commits": [(str, str)], "diffstat": [(str, int, int)], "dirty": [str], "unpushed": int,
}  # fmt: skip
_HANDOFF: dict[str, Shape] = {
    "id": str, "from": str, "session": int, "to": str, "role": str, "task": str, **FACTS, "state": str, "by": str,
    "reason": str, "claims": [_OFFERED], "at": int, "closed": int, "text": str,
}  # fmt: skip
_WAITING: dict[str, Shape] = {
    "id": str, "from": str, "to": str, "role": str, "task": str, "at": int, "next": str, "claims": [(str, str)],
}  # fmt: skip
MOST = 200  # commits, files or paths that a document lists


# --- sections ------------------------------------------------------------------------------------------------------


def check_sections(said: Mapping[str, str]) -> dict[str, str]:
    """All six sections, checked; UsageError names all that are missing, or the first that is a placeholder."""
    missing = [section for section in SECTIONS if not section.none and not said.get(section.key, "").strip()]
    if len(missing) > 1:
        raise UsageError(
            f"{len(missing)} sections are missing: {', '.join(section.key for section in missing)}",
            hints=tuple(f"--{section.key}: {section.asks}" for section in missing),
        )
    found = {}
    for section in SECTIONS:
        text = said.get(section.key, "")
        if not text.strip() and section.none:
            text = "none"
        found[section.key] = _check_section(section, text)
    return found


def _check_section(section: Section, text: str) -> str:
    what, hints = f"the section '{section.title}'", (f"it should say: {section.asks}",)
    try:
        text = prose(text, what, LONGEST)
    except UsageError as error:
        raise UsageError(error.message, hints=error.hints or hints) from None
    core = " ".join(text.casefold().strip(_AROUND).split())
    if core in _EMPTY_WORDS or core == section.asks.casefold().strip(_AROUND):
        raise UsageError(f"{what} only holds a placeholder", hints=hints)
    if core in _NOTHING and not section.none:
        raise UsageError(f"{what} cannot be '{printable(core)}'", hints=hints)
    for line in text.split("\n"):
        if line.strip().casefold() in _HEADINGS:
            raise UsageError(f"{what} holds the heading of a section: '{printable(line.strip())}'")
    return text


def document(sections: Mapping[str, str]) -> str:
    """The sections as Markdown."""
    return "\n".join(f"## {section.title}\n\n{sections[section.key]}\n" for section in SECTIONS)


def parse_document(text: str) -> dict[str, str]:
    """The sections of such a Markdown text; text before the first heading and comments are ignored."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in uncommented(text.replace("\r\n", "\n")).split("\n"):
        key = _HEADINGS.get(line.strip().casefold())
        if key is None:
            lines.append(line)
            continue
        if key in found:
            raise UsageError(f"the heading '{printable(line.strip())}' stands there twice")
        lines = found[key] = []
    return {key: "\n".join(rows).strip("\n") for key, rows in found.items()}


def uncommented(text: str) -> str:
    """The text without comments (`<!-- ... -->` at the beginning of a line)."""
    kept, inside = [], False
    for line in text.split("\n"):
        inside = inside or line.lstrip().startswith("<!--")
        if not inside:
            kept.append(line)
        elif "-->" in line:
            inside = False
    return "\n".join(kept)


def template(said: Mapping[str, str], notes: list[str]) -> str:
    """The text for an editor: each section with its question, and notes about the work."""
    lines = [note.replace("-->", "-- >") for note in notes]
    head = [
        "<!-- Text between such marks is ignored. If all sections are empty, nothing is handed over.",
        *lines,
        "-->",
        "",
    ]
    parts = [f"## {s.title}\n\n<!-- {s.asks} -->\n{said.get(s.key) or ''}\n" for s in SECTIONS]
    return "\n".join([*head, *parts])


# --- records -------------------------------------------------------------------------------------------------------


class Handoff(NamedTuple):
    """A handoff: giver and addressee, claims and task, facts of the work, document and state."""

    id: str
    giver: str  # in the record: `from`
    session: int
    to: str
    role: str
    task: str
    branch: str
    head: str
    commits: list[list[str]]  # [id, subject] of each
    diffstat: list[list[object]]  # [path, lines added, lines removed] of each
    dirty: list[str]
    unpushed: int
    state: str
    by: str
    reason: str
    claims: tuple[Grant, ...]
    at: int
    closed: int
    text: str

    @classmethod
    def from_record(cls, record: Record, file: str) -> Handoff:
        handoff = cls._make(values_of(record, _HANDOFF, file))
        if handoff_file(handoff.id) != file:
            raise Malformed(f"{file} holds another handoff")
        claims = tuple(Grant(*(row[key] for key in _OFFERED)) for row in record["claims"])
        return handoff._replace(claims=claims)

    def to_record(self) -> Record:
        return {**record_of(_HANDOFF, self), "claims": [claim._asdict() for claim in self.claims]}

    def to_json(self) -> dict[str, object]:
        """The handoff in the form of `--json`, without its claims and its document."""
        row: dict[str, object] = dict(zip(_HANDOFF, self))
        del row["claims"], row["text"]
        return row


class Waiting(NamedTuple):
    """An open handoff as the index knows it. `next` is the first line of that section."""

    id: str
    giver: str  # in the record: `from`
    to: str
    role: str
    task: str
    at: int
    next: str
    claims: list[list[str]]  # [space, name] of each

    def to_record(self) -> Record:
        return record_of(_WAITING, self)


def handoff_file(id: str) -> str:
    return f"handoffs/{id}.md"


def waiting_file(id: str) -> str:
    """The index of open handoffs."""
    return f"waiting/@{id}"


def check_id(id: str) -> str:
    if not (id[:1] == "h" and id[1:].isascii() and id[1:].isdecimal() and len(id) < 17):
        raise UsageError(f"'{printable(id[:40])}' is no handoff", hints=("it looks like h12: git handoff list",))
    return id


def handoff_record(state: State, id: str) -> Handoff | None:
    file = handoff_file(check_id(id))
    record = state.get(file)
    return None if record is None else Handoff.from_record(record, file)


def the_handoff(state: State, id: str) -> Handoff:
    """The handoff of this id; Refused where there is none."""
    record = handoff_record(state, id)
    if record is None:
        raise refused("no-handoff", f"there is no handoff {id}", "see which there are: git handoff list --all")
    return record


def all_handoffs(state: State) -> list[Handoff]:
    """Every handoff there ever was, oldest first."""
    found = [Handoff.from_record(record, file) for file, record in state.below("handoffs").items()]
    return sorted(found, key=lambda handoff: int(handoff.id[1:]))


def open_handoffs(state: State) -> list[Waiting]:
    """The index rows of those that wait, oldest first."""
    rows = [Waiting._make(values_of(record, _WAITING, file)) for file, record in state.leaves("waiting").items()]
    return sorted(rows, key=lambda row: int(row.id[1:]))


def handed_over(state: State, agent: str) -> set[tuple[str, str]]:
    """The claims (space, path) of an agent that wait to be accepted."""
    return {(pair[0], pair[1]) for row in open_handoffs(state) if row.giver == agent for pair in row.claims}


def unfinished(state: State, world: World, agent: str) -> tuple[list[Claim], list[str], list[Task]]:
    """The agent's work that is in no handoff: claims on paths, those of the paths with uncommitted work, active tasks."""
    claims = [claim for claim in all_claims(state, agent) if claim.space == "path"]
    waiting = handed_over(state, agent) if claims else set()
    claims = [claim for claim in claims if ("path", claim.path) not in waiting]
    dirty = dirty_paths(world, [claim.path for claim in claims], agent) if claims else []
    tasks = [task for task in tasks_of(state, agent) if task.state == ACTIVE and not task.handoff]
    return claims, dirty, tasks


def new_record(event_seq: int, agent: str, at: int, body: Record) -> Changes:
    """The files of a handoff that was just made."""
    id = f"h{event_seq}"
    claims = tuple(Grant(*(row[key] for key in _OFFERED)) for row in body["claims"])
    handoff = Handoff(
        id=id, giver=agent, **{key: body[key] for key in ("session", "to", "role", "task", *FACTS)}, state=OPEN, by="",
        reason="", claims=claims, at=at, closed=0, text=document(body["sections"]),
    )  # fmt: skip
    first = body["sections"]["next"].split("\n")[0][:200]
    names = [[claim.space, claim.path] for claim in claims]
    row = Waiting(id, agent, handoff.to, handoff.role, handoff.task, at, first, names)
    return {handoff_file(id): handoff.to_record(), waiting_file(id): row.to_record()}


def closed_record(record: Handoff, state: str, by: str, reason: str, at: int) -> Changes:
    """The files of a handoff that waits no longer."""
    new = record._replace(state=state, by=by, reason=reason, closed=at)
    return {handoff_file(record.id): new.to_record(), waiting_file(record.id): None}


# --- addressees ----------------------------------------------------------------------------------------------------


def check_addressee(word: str) -> tuple[str, str]:
    """(agent, role) of a word: a name, '@role', or nothing."""
    if not word:
        return "", ""
    return ("", check_word(word[1:], "role")) if word[0] == "@" else (check_agent(word), "")


def addressee(to: str, role: str) -> str:
    """The addressee, in words."""
    return to or (f"anyone with the role '{printable(role)}'" if role else "anyone")


def is_for(state: State, world: World, row: Handoff | Waiting, agent: str, *, person: bool = False) -> bool:
    """Return whether this agent may accept it. Its giver may not."""
    if row.giver == agent:
        return False
    if row.to:
        return bool(row.to == agent)
    if not row.role:
        return True
    from gitcoord.policy.roles import role_of

    return bool(role_of(state, world.policy(), agent, person=person) == row.role)


def not_addressed(state: State, world: World, row: Handoff | Waiting, actor: Actor) -> Refusal | None:
    if is_for(state, world, row, actor.agent, person=actor.person):
        return None
    if row.giver == actor.agent:
        return Refusal("own", f"{row.id} is your own handoff", hints=(f"take it back: git handoff withdraw {row.id}",))
    return Refusal("not-addressed", f"{row.id} is for {addressee(row.to, row.role)}, not for '{actor.agent}'")


def may_pass(task: Task, holder: str) -> bool:
    """Return whether the holder may pass this task on: it has taken the task, which is active or blocked."""
    return task.owner == holder and bool(task.session) and task.state in (ACTIVE, BLOCKED)


def not_open(record: Handoff) -> Refusal | None:
    if record.state == OPEN:
        return None
    why = f": {printable(record.reason)}" if record.reason else ""
    return Refusal("closed", f"{record.id} was {record.state} by {record.by}{why}", hints=("git handoff list",))

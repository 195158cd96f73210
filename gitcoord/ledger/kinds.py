"""The registry of event kinds: one file a kind, loaded when first met.

A kind's module ends with its `KIND`. Where a command makes the event, the module also has that command and
`decide...(state, command, world) -> Decision` (of claim: in `claims/take.py` and `claims/renew.py`), which says no by Refused.
"""

from __future__ import annotations

from gitcoord.base.codec import UPGRADE, NewerVersion, Record, Shape
from gitcoord.base.errors import Refusal
from gitcoord.ledger.sessions import Actor, Heartbeat
from gitcoord.ledger.state import Changes, State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Any, Callable, Iterable, Mapping, Protocol, TypeVar
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.claims.model import Item
    from gitcoord.claims.requests import Request
    from gitcoord.ledger.event import Chain, Decision, Event

    Command = TypeVar("Command")
    Recall = Callable[[State, list[Event], Actor], list["Recalled"]]

# The kinds of events, by the package whose `events/` has them.
_PACKAGES = {
    "ledger": "init adopt repair epoch",
    "claims": "claim release expire takeover disown wait leave promote",
    "sessions": "start stop kill revive halt unhalt inherit",
    "gates": "notice request answer role ack",
    "deploy": "deploy",
    "tasks": "task assign lapse revise finish",
    "journal": "journal note seen",
    "handoff": "handoff accept close",
    "effects": "number once done forget",
    "landing": "landing land",
}
KINDS = {kind: package for package, kinds in _PACKAGES.items() for kind in kinds.split()}


class Recalled:
    """A command with its rule, ready to be decided on any state."""

    def __init__(self, decide: Callable[[State, Command, World], Decision], command: Command) -> None:
        self._decide: Any = decide
        self._command = command

    def __call__(self, state: State, world: World) -> Decision:
        answer: Decision = self._decide(state, self._command, world)
        return answer


class Touched(NamedTuple):
    """Agents and paths whose changes of code may be judged otherwise after an event than before; `all`: anybody's."""

    agents: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    all: bool = False


def subject(template: str) -> Callable[[Event], str]:
    """The first line of the commit where it only names fields of the event: "kill {target} by {agent}"."""
    return lambda event: template.format_map({**event.body, "agent": event.agent, "seq": event.seq})


def touches_all(event: Event) -> Touched:
    return Touched(all=True)


def touches_nothing(event: Event) -> Touched:
    return Touched()


def touches_target(event: Event) -> Touched:
    return Touched((event.body["target"],))


def paths_in(items: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The paths among these [space, name] pairs."""
    return tuple(name for space, name in items if space == "path")


def no_refs(state: State, event: Event) -> dict[str, bool]:
    return {}


def no_commits(event: Event) -> list[str]:
    return []


def no_recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
    """No command makes this kind: a server takes no such event."""
    return []


class Kind(NamedTuple):
    """All that others need to know of a kind of event."""

    fields: Mapping[str, Shape]  # the event's own keys and their shapes
    subject: Callable[[Event], str]  # the first line of the commit, for people
    apply: Callable[[State, Event], Changes]  # the changes to the tree, or Illegal
    # Commands that could have made a chain whose command this kind identifies, likeliest first.
    recall: Recall = no_recall
    # Claim refs: name -> True (points at this event's commit) or False (gone).
    refs: Callable[[State, Event], dict[str, bool]] = no_refs
    touches: Callable[[Event], Touched] = touches_all  # a push of code waits for a push of events that touch it
    commits: Callable[[Event], list[str]] = no_commits  # commits of the project that others must be able to fetch
    agents: tuple[str, ...] = ()  # fields that name an agent besides the one who acted, or list rows that do
    leads: bool = False  # as the first event of a chain it identifies the command; elsewhere the last event does
    personal: bool = False  # only a person's account may push it
    judged: str = ""  # the field whose rows say by which rule a lease had run out
    optional: Mapping[str, Shape] = {}  # own keys that an event has only where there is something to say


REASON: dict[str, Shape] = {"reason": str}  # optional: why a person did it


def with_reason(body: Record, reason: str) -> Record:
    return {**body, "reason": reason} if reason else body


def agents_in(kind: Kind, body: Record) -> list[str]:
    """Every agent that an event names besides the one who acted: they become file and ref names."""
    found: list[str] = []
    for key in kind.agents:
        found += [body[key]] if isinstance(body[key], str) else [row["agent"] for row in body[key]]
    return found


def recall_from_body(decide: Callable[[State, Command, World], Decision], made: type[Command]) -> Recall:
    """The usual recall: the first event's body has the command's own fields."""

    def recall(state: State, events: list[Event], actor: Actor) -> list[Recalled]:
        first = events[0]
        fields: Iterable[str] = made._fields  # type: ignore[attr-defined]
        own = {key: first.body[key] for key in fields if key in first.body}
        return [Recalled(decide, made(actor=actor, **own))]  # type: ignore[call-arg]

    return recall


# The packages that keep something for agents beside their claims: each has a `session_hooks.py` with its HOOKS.
SESSION_HOOKS = ("tasks", "handoff")


def _no_refusal(state: State, agent: str) -> Refusal | None:
    return None


def _no_claims(state: State, agent: str) -> set[tuple[str, str]]:
    return set()


def _no_events(chain: Chain) -> None:
    pass


def _no_beats(chain: Chain, world: World, only: tuple[str, ...] | None) -> list[Heartbeat]:
    return []


class SessionHooks(NamedTuple):
    """The steps that a package adds at the end of a session, or when expired claims are swept."""

    before_end: Callable[[State, str], Refusal | None] = _no_refusal  # why a session may not just end
    outlives: Callable[[State, str], set[tuple[str, str]]] = _no_claims  # (space, path) of claims that stay after it
    on_end: Callable[[Chain], None] = _no_events  # adds the events before the session's end
    # Adds events for agents other than the chain's whose lease has run out, of those that concern `only` (None: all); gives the
    # heartbeats that were judged.
    on_expiry: Callable[[Chain, World, tuple[str, ...] | None], list[Heartbeat]] = _no_beats


def session_hooks() -> list[SessionHooks]:
    """The hooks of all packages that have some, loaded by name: those packages are above the ones that ask."""
    return [__import__(f"gitcoord.{name}.session_hooks", fromlist=("HOOKS",)).HOOKS for name in SESSION_HOOKS]


def kind_of(name: str) -> Kind:
    """The kind of this name; an unknown one is refused, never skipped."""
    if name not in KINDS:
        raise NewerVersion(f"events of kind {name[:40]!r} are not known here", hints=(UPGRADE,))
    found: Kind = __import__(f"gitcoord.{KINDS[name]}.events.{name}", fromlist=("KIND",)).KIND
    return found


class QueueRules(Protocol):
    """The questions that events ask the queue for claims, whose rules stand above them: `claims/grants.py`."""

    def freed_by(self, before: State, changes: Changes) -> list[str]: ...
    def grants_after(self, after: State, keys: list[str], world: World) -> tuple[Record, ...]: ...
    def apply_grants(self, state: State, event: Event, changes: Changes) -> Changes: ...
    def refs_of_grants(self, state: State, event: Event) -> dict[str, bool]: ...
    def overtaken_by(
        self, state: State, world: World, agent: str, items: tuple[Item, ...], mode: str, units: int
    ) -> list[int]: ...


def queue_rules() -> QueueRules:
    """The rules of the queue, loaded by name where somebody waits."""
    found: QueueRules = __import__("gitcoord.claims.grants", fromlist=("apply_grants",))
    return found


class TaskRules(Protocol):
    """The questions that the queue asks about requests for any task, whose rules stand above it: `tasks/waiters.py`."""

    def forms(self, state: State, world: World, request: Request) -> Iterable[Request]: ...
    def form_for(self, state: State, request: Request, items: list[Item]) -> Request | None: ...


def task_rules() -> TaskRules:
    """The rules for those who wait for any task, loaded by name."""
    found: TaskRules = __import__("gitcoord.tasks.waiters", fromlist=("forms",))
    return found

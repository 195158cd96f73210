"""The world: everything that a rule may ask besides the state. Each method reads what it needs when it is called.

Rules are functions of what a state and a world answer. The client's world (`world/client.py`) reads this machine, its git and the
project's settings; the server's (`server/world.py`) takes from pushed events what only their client could know; tests have worlds
written by hand. Within one world a question has one answer.
"""

from __future__ import annotations

from gitcoord.base.names import Oid, covers
from gitcoord.startup.annotations import Any, Callable, Iterable, TypeVar
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.claims.model import Grant
    from gitcoord.ledger.sessions import Heartbeat, Seen
    from gitcoord.policy.model import Attributes, Policy
    from gitcoord.tasks.workers import Workers

    Method = TypeVar("Method", bound=Callable[..., Any])

Files = list[list[str]]  # [path, mode, blob] of each file; '' for the blob of a deleted one


class Resource(NamedTuple):
    """The project's settings of one resource; undeclared means one unit, anybody, the usual ttl."""

    capacity: int = 1
    ttl: int = 0
    readers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    declared: bool = False


class Waiting(NamedTuple):
    """The settings of the queue."""

    overtake: int = 3  # a request is overtaken so often, and then never again
    reserve: int = 15  # seconds for which a grant to a process that waits is kept unconfirmed
    reserve_queued: int = 120  # the same where nobody waits for the answer
    highest: str = "high"  # the highest priority that an agent may ask for
    by_role: tuple[tuple[str, str], ...] = ()  # the same for agents of one role


def memoized(method: Method) -> Method:
    """Decorator: a method of a world gives the first answer again. Arguments are strings, numbers or lists of them."""

    def ask(world: World, *what: Any) -> Any:
        key = (method.__name__, *(tuple(word) if isinstance(word, list) else word for word in what))
        if key not in world.answers:
            world.answers[key] = method(world, *what)
        return world.answers[key]

    return ask  # type: ignore[return-value]


class World:
    """The questions that rules may ask. Implementations answer them. CouldNotJudge or StoreError where git or the settings cannot tell."""

    def __init__(self, wall: int, mono: int, boot: str, remote: str = "") -> None:
        self.wall = wall  # seconds, for people to read and for the skew rule
        self.mono = mono  # milliseconds on a clock that does not count sleep
        self.boot = boot  # names the machine, boot and time namespace that `mono` belongs to
        self.remote = remote  # the remote authority; '' if this repository is the authority
        self.nonce = ""  # common to the events that the command makes, and to no others
        self.answers: dict[tuple[object, ...], object] = {}  # for `memoized`

    # --- agents

    def heartbeat(self, agent: str) -> Heartbeat | None:
        """The agent's last heartbeat; None where its ref is missing or unreadable."""
        raise NotImplementedError

    def prefetch_heartbeats(self, agents: Iterable[str]) -> None:
        """Read these heartbeats together: for speed only."""

    def first_seen(self, agent: str) -> Seen | None:
        """Since when this host has seen the agent's heartbeat unchanged; recorded at the first call."""
        raise NotImplementedError

    def granted_seen(self, token: int) -> int:
        """The time on this host's clock (`mono`) at which it first saw this grant unconfirmed; recorded at the first call."""
        raise NotImplementedError

    def gone_instance(self, agent: str) -> str:
        """The instance that was launched here under this name, if it and its supervisor have died; else ''."""
        raise NotImplementedError

    def runner(self, nonce: str) -> str:
        """The state of the process that runs an effect once, on this machine: 'alive', 'gone', or '' if unknown."""
        raise NotImplementedError

    def grants(self, tokens: list[int]) -> list[Grant]:
        """The claims that these events granted, whether they still stand or not."""
        raise NotImplementedError

    # --- the project's settings

    def resources(self) -> dict[str, Resource]:
        """The declared resources, and the caps on workers, which are resources too."""
        raise NotImplementedError

    def resource(self, name: str) -> Resource:
        return self.resources().get(name, Resource())

    def declared(self, name: str) -> dict[str, Resource]:
        """The declared resources that a claim on this one would cover or be covered by."""
        found = self.resources()
        return {other: found[other] for other in found if covers(other, name) or covers(name, other)}

    def waiting(self) -> Waiting:
        """The settings of the queue."""
        return Waiting()

    def approvers(self) -> list[str]:
        raise NotImplementedError

    def policy(self) -> Policy:
        """The policy that counts for grants, without attributes of paths."""
        raise NotImplementedError

    def restrictions(self) -> Policy | None:
        """The same policy; None where it keeps nobody from claiming a path."""
        raise NotImplementedError

    def workers(self) -> Workers:
        raise NotImplementedError

    def classes(self, paths: list[str]) -> dict[str, dict[str, Attributes]]:
        """For each path, the attributes of the path itself, of anything new below it, and of what lies below it where work lands."""
        raise NotImplementedError

    # --- work trees

    def head(self) -> Oid:
        """The commit that is checked out; '' where there is none."""
        raise NotImplementedError

    def other_trees(self, agent: str) -> list[str]:
        """Other work trees of this repository in which the agent has claimed."""
        raise NotImplementedError

    def head_in(self, tree: str) -> Oid:
        raise NotImplementedError

    def dirty(self, paths: list[str]) -> list[str]:
        """The claimed paths below which something is not committed."""
        raise NotImplementedError

    def dirty_in(self, tree: str, paths: list[str]) -> list[str]:
        raise NotImplementedError

    # --- commits

    def since(self, base: Oid, commit: Oid, paths: list[str]) -> dict[str, Oid]:
        """By claimed path, the commit from which `commit` is judged for a claim that was made on `base`: one that it contains."""
        raise NotImplementedError

    def changed(self, base: Oid, commit: Oid, paths: list[str]) -> dict[str, Files]:
        """Below each path, the files that differ between `base` (the merge base after a rebase) and `commit`."""
        raise NotImplementedError

    def unlanded(self, commit: Oid, paths: list[str]) -> dict[str, tuple[Oid, Files]]:
        """Below each path, what `commit` has that the trunk does not, and since which commit."""
        raise NotImplementedError

    def within(self, commit: Oid, commits: list[Oid]) -> list[Oid]:
        """The commits that `commit` contains."""
        raise NotImplementedError

    def landed(self, work: Oid, commits: list[Oid]) -> list[Oid]:
        """The commits that landed on the shared trunk and that `work` contains too."""
        raise NotImplementedError

    def on_trunk(self, commits: list[Oid]) -> list[Oid]:
        """The commits that trunk at the authority contains, once the refs that move with this transaction have moved."""
        raise NotImplementedError

    def touched(self, old: Oid, new: Oid) -> list[str]:
        """The paths that differ between two commits: of a rename, both."""
        raise NotImplementedError

    def agents_of(self, old: Oid, new: Oid) -> list[str]:
        """The agents that `Agent:` trailers name, of the commits that `new` contains and `old` does not."""
        raise NotImplementedError

    def lacking(self, commits: list[Oid]) -> list[Oid]:
        """The commits that, as far as this clone knows, the remote that decides does not have."""
        raise NotImplementedError

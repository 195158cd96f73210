"""The server's gate, which no client can skip: it decides whether a push may land, and refuses where it cannot judge.

Namespaces first, then the ledger, then the refs that follow it, then code. A repository without a ledger lets everything
through but what would hide or forge (`refs/replace`, `refs/gitcoord`). Nothing is written but notes below `gitcoord/`.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import Refused, TimedOut, refused
from gitcoord.base.names import CLAIMS, LANES, LEDGER, PRIVATE, PROBE, SESSIONS, RefName, printable, shell_word
from gitcoord.git.files import write_file
from gitcoord.git.store import RefUpdate
from gitcoord.git.symrefs import follow
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Event
from gitcoord.ledger.kinds import kind_of
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.server.inflight import EVERYTHING, NOTHING, Footprint, Inflight, footprint
from gitcoord.server.limits import read_limits
from gitcoord.server.receive_ledger import LedgerPush
from gitcoord.server.receive_refs import Sessions, judge_claims
from gitcoord.startup.annotations import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.gates.gate import Verdicts
    from gitcoord.gates.judge import Verdict
    from gitcoord.server.accounts import Pusher
    from gitcoord.server.receive_code import CodePush

REPLACE = "refs/replace/"
_NEVER = (PRIVATE, REPLACE, f"{LEDGER}/")  # a branch below the ledger's name would be in its way
_USUAL = ("refs/heads/", "refs/tags/", "refs/notes/")
ALLOW = "gitcoord.server.allow"


class Parts:
    """The refs of a push by namespace. Raises Refused for a ref in a namespace that is not for pushing.

    A symbolic ref is an alias: git moves its target, so the target is judged, as if it had been pushed by its own name.
    """

    def __init__(self, ctx: Context, moves: list[RefUpdate]) -> None:
        allowed = (*_USUAL, *(word.rstrip("*") for word in ctx.settings.get(ALLOW).split()))
        self.ledger: RefUpdate | None = None
        self.claims: list[RefUpdate] = []
        self.sessions: list[RefUpdate] = []
        self.code: list[RefUpdate] = []
        self.lanes: list[RefUpdate] = []  # commits that landings check: nothing is judged by them, and they go again
        self.aliases: dict[RefName, list[RefName]] = {}  # the names under which a ref was pushed that is not called so
        for move in moves:
            if not _is_ours(move.ref) and (move.ref.startswith(_NEVER) or not move.ref.startswith(allowed)):
                raise _forbidden(move.ref)
        for move in self._targets(ctx, moves):
            if move.ref == LEDGER:
                self.ledger = move
            elif move.ref.startswith(CLAIMS):
                self.claims.append(move)
            elif move.ref.startswith(SESSIONS):
                self.sessions.append(move)
            elif move.ref.startswith(PROBE):
                continue
            elif move.ref.startswith(LANES) and move.ref == LANES + (move.new or move.old):
                self.lanes.append(move)
            elif move.ref.startswith(_NEVER) or not move.ref.startswith(allowed):
                raise _forbidden(move.ref)
            else:
                self.code.append(move)

    def _targets(self, ctx: Context, moves: list[RefUpdate]) -> list[RefUpdate]:
        """The refs that git will move, each once."""
        files = ctx.settings.get("extensions.refstorage", "files").lower() == "files"
        found: dict[RefName, RefUpdate] = {}
        for move in moves:
            *names, target = follow(ctx.repo, move.ref, files=files)
            if any(_is_ours(name) for name in names):
                raise _alias_of_ours(move.ref, names, target)
            if names:
                self.aliases.setdefault(target, []).extend(names)
            same = found.setdefault(target, move._replace(ref=target))
            if same[1:] != move[1:]:
                raise refused(
                    "alias",
                    f"{printable(move.ref[:200])} and another ref of this push are names of {printable(target[:200])}",
                    "push one of them",
                )
        return list(found.values())

    @property
    def private(self) -> list[RefUpdate]:
        return [*([self.ledger] if self.ledger is not None else []), *self.claims, *self.sessions, *self.lanes]


def _is_ours(ref: RefName) -> bool:
    return ref == LEDGER or ref.startswith((CLAIMS, PRIVATE))


def _forbidden(ref: str) -> Refused:
    what = (
        "would hide commits from every check"
        if ref.startswith(REPLACE)
        else "is in a namespace that is not for pushing"
    )
    hints = ["push branches by name, not with --mirror"]
    if not ref.startswith(_NEVER):
        hints.append(f"the server's administrator may allow more: {ALLOW}")
    return refused("namespace", f"{printable(ref[:200])} {what}", *hints)


def _alias_of_ours(ref: RefName, names: list[RefName], target: RefName) -> Refused:
    ours = next(name for name in names if _is_ours(name))
    message = (
        f"{printable(ours[:200])} is a symbolic ref here, of {printable(target[:200])}: the ledger's refs may not be"
    )
    hint = f"the server's administrator takes it away: git symbolic-ref --delete {shell_word(ours)}"
    return refused("alias", message if ours == ref else f"{printable(ref[:200])}: {message}", hint)


def receive(
    ctx: Context, registry: Inflight, find_pusher: Callable[[], Pusher], moves: list[RefUpdate]
) -> list[tuple[Verdicts, list[Verdict]]]:
    """Judge a push; gives the verdicts on its code. Raises Refused or CouldNotJudge for its other refs."""
    parts = Parts(ctx, moves)
    there = ctx.store.target(LEDGER)
    if not parts.private and (there is None or not parts.code):
        return []  # nothing to judge by, or nothing to judge: a client looks what this server accepts
    if there is None and parts.ledger is None:
        raise refused(
            "ledger",
            "there is no ledger here to which claims could belong",
            "make it: git coord init --remote <remote>",
        )
    pusher = find_pusher()
    limits = read_limits(ctx, beginning=there is None)
    sessions = Sessions(ctx, limits, parts.sessions)
    ledger = None
    events: list[Event] = []
    if parts.ledger is not None:
        ledger = LedgerPush(ctx, pusher, parts.ledger, sessions.oids, [*parts.code, *parts.lanes])
        events = ledger.read(limits)
    _require_landings(parts.lanes, events)
    code = _code(ctx, registry, pusher, parts, events, there)
    if events or code is not None:
        _wait(ctx, registry, limits.wait)
    if ledger is not None:
        ledger.judge()
    if parts.private:
        lookup = _lookup(ctx, ledger)
        head = parts.ledger.new if parts.ledger is not None else there or ""
        judge_claims(ctx, limits, parts.claims, ledger.wanted if ledger is not None else {}, head, lookup)
        if there is None or (ledger is not None and ledger.restores_history):
            sessions.begin(lookup)
        else:
            sessions.judge(pusher, ledger.demanded if ledger is not None else {}, lookup)
        _note(ctx, registry, parts, sessions)
    landed = {str(event.body["new"]) for event in events if event.kind == "land"}
    return code.judge(landed) if code is not None else []


def _require_landings(lanes: list[RefUpdate], events: list[Event]) -> None:
    """Refused where a commit is kept for lanes that no landing of this push has put on record. Anybody may remove one: only time is lost by it."""
    named = {str(event.body["new"]) for event in events if event.kind == "landing"}
    for move in lanes:
        if move.new and move.new not in named:
            raise refused("namespace", f"no landing of this push is of {printable(move.new[:12])}", "git coord land")


def _code(
    ctx: Context,
    registry: Inflight,
    pusher: Pusher,
    parts: Parts,
    events: list[Event],
    there: str | None,
) -> CodePush | None:
    """Make the entry of the push, and gather the changes it brings. From here on the ledger may be read."""
    judges = bool(parts.code) and there is not None
    if events or judges:
        registry.register(reads=EVERYTHING if judges else NOTHING, writes=written_by(events))
    if not judges:
        return None
    from gitcoord.server.receive_code import CodePush

    code = CodePush(ctx, pusher, parts.code, read_limits(ctx, beginning=False), parts.aliases)
    reads = code.gather()
    registry.refine(reads=reads)
    return code


def _wait(ctx: Context, registry: Inflight, seconds: int) -> None:
    end = ctx.host.mono() + seconds * 1000
    while registry.must_wait():
        if ctx.host.mono() > end:
            raise TimedOut(
                f"a conflicting push has been landing for {seconds} seconds",
                hints=("try again", "the server's administrator may change gitcoord.server.wait"),
            )
        ctx.host.pause(0.005)
    ctx.store.refresh()  # those pushes may have replaced what was read before


def written_by(events: list[Event]) -> Footprint:
    """The agents and paths whose pushes of code these events may affect."""
    agents: set[str] = set()
    paths: set[str] = set()
    for event in events:
        one = kind_of(event.kind).touches(event)
        if one.all:
            return EVERYTHING
        paths.update(name for row in event.granted for space, name in row["items"] if space == "path")
        agents.update(one.agents)
        paths.update(one.paths)
    return footprint(agents, paths) if agents or paths else NOTHING


def _lookup(ctx: Context, ledger: LedgerPush | None) -> Callable[[str], Record | None]:
    """A file of the ledger as it is after the push."""
    if ledger is not None:
        return ledger.get
    return read_snapshot(ctx, trusting=True).state.get


def _note(ctx: Context, registry: Inflight, parts: Parts, sessions: Sessions) -> None:
    """Record when the server first saw these heartbeats, and the refs that must move in one transaction."""
    for agent, oid in sessions.oids.items():
        write_file(ctx.scratch(f"seen/{agent}"), f"{oid}\n{ctx.host.boot}\n{ctx.host.mono()}".encode())
    nothing = "0" * ctx.store.oid_length
    registry.note_refs([f"{move.old or nothing} {move.new or nothing} {move.ref}" for move in parts.private])

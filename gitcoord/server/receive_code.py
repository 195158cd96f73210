"""A push of code to the server: judged by the rules of every gate, for the agent that the account may act for.

Two phases: the push's changes are gathered first, without the ledger's claims; the verdict comes after all pushes of the
ledger that landed before it could be told (`server/inflight.py`).
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, raise_if, refused
from gitcoord.base.names import LEDGER, RefName, printable
from gitcoord.deploy.targets import Target, match, targets
from gitcoord.gates.gate import GateBase, Verdicts
from gitcoord.gates.judge import CommitChange, Verdict
from gitcoord.git.store import RefUpdate
from gitcoord.git.symrefs import follow
from gitcoord.landing.model import open_landings, rules_of
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.policy.reader import Source
from gitcoord.policy.roles import may_not_land
from gitcoord.server.inflight import Footprint, footprint
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.server.accounts import Pusher
    from gitcoord.server.limits import Limits


class _Gathered(NamedTuple):
    """One ref's part of the push, ready to be judged."""

    move: RefUpdate
    policy: str  # the commit whose policy counts
    steps: list[CommitChange]
    deploys: list[tuple[Target, str]]


def _ledger(ctx: Context) -> Snapshot:
    """The ledger as it is now: the server has the original, so it asks no authority."""
    return read_snapshot(ctx, trusting=True)


def _yes() -> bool:
    return True


def _no() -> bool:
    return False


def _nobody() -> Actor:
    raise AssertionError("the actor is known only after the changes are gathered")


class CodePush(GateBase):
    _runs_commands = False  # the right to land a policy is no right to run commands here

    def __init__(
        self,
        ctx: Context,
        pusher: Pusher,
        moves: list[RefUpdate],
        limits: Limits,
        aliases: dict[RefName, list[RefName]],
    ) -> None:
        """`aliases`: the other names under which each ref was pushed."""
        super().__init__(ctx, _nobody, _ledger(ctx))
        self._aliases = aliases
        self._trunk = self._follow(f"refs/heads/{self.sync}")
        self._pusher = pusher
        self._moves = moves
        self._limits = limits
        self._remote = ""  # work lands here, and nowhere else
        self._gathered: list[_Gathered] = []

    def _read_ledger(self) -> None:
        self._snapshot = _ledger(self._ctx)

    def _follow(self, ref: RefName) -> RefName:
        """The ref that git moves when this one is pushed."""
        files = self._ctx.settings.get("extensions.refstorage", "files").lower() == "files"
        return follow(self._ctx.repo, ref, files=files)[-1]

    # --- gathering

    def gather(self) -> Footprint:
        """Gather the changes of the push; return the agents and paths that its verdict reads."""
        self._gathered = [self._gather(move) for move in self._moves]
        steps = [step for found in self._gathered for step in found.steps]
        self._known = self._pusher.coder([step.agent for step in steps])
        agents = {self.actor.agent, *(step.agent for step in steps if step.agent)}
        return footprint(agents, {change.path for step in steps for change in step.changes})

    def _gather(self, move: RefUpdate) -> _Gathered:
        is_sync = move.ref == self._trunk
        if not move.new and is_sync:
            names = ", ".join(printable(name[:200]) for name in self._aliases.get(move.ref, ()))
            also = f" (pushed as {names}, a symbolic ref here)" if names else ""
            message = f"{move.ref}{also} is where everybody's work lands; deleting it would undo all of it"
            raise refused("lineage", message, "ask the person who set gitcoord up here")
        commit = bool(move.new) and self._is_commit(move.new) and not move.ref.startswith("refs/notes/")
        if not commit:
            # There is nothing to compare, but a killed or halted agent may move nothing.
            return _Gathered(move, self._policy_commit(), [CommitChange(move.new, (), "", ())], [])
        old = move.old if move.old and self._is_commit(move.old) else ""
        deploys = self._deployed(move.ref) if self._tips() else []
        steps = self._steps(move._replace(old=old), self._accepted(old, is_sync=is_sync), strict=is_sync, gated=True)
        if len(steps) > self._limits.commits:
            raise refused(
                "limit",
                f"the push brings {len(steps)} commits, more than {self._limits.commits}",
                "push them in parts",
                "the server's administrator may raise gitcoord.server.maxCommits",
            )
        own = [step if self._pusher.may(step.agent) else step._replace(agent="") for step in steps]
        return _Gathered(move, (old if is_sync else "") or self._policy_commit(), own, deploys)

    def _accepted(self, old: str, *, is_sync: bool) -> list[str]:
        """The commits whose history was accepted before: for trunk its own, elsewhere that of all branches."""
        if is_sync:
            return [old] if old else []
        heads = self._ctx.store.list_refs("refs/heads/")
        return [*([old] if old else []), *(oid for ref, oid in heads.items() if ref != LEDGER)]

    def _deployed(self, ref: str) -> list[tuple[Target, str]]:
        """Deploy targets that use this ref. Names of remotes are the clients' own, so only the ref is compared."""
        try:
            known = targets(Source(self._ctx, self._policy_commit()).pairs).values()
        except CouldNotJudge:
            if not self.actor.person:
                raise
            return []  # `judge` asks whether this replaces settings that cannot be read, and refuses otherwise
        names = [ref, *self._aliases.get(ref, ())]
        return [(target, "") for target in known if any(self._deploys(target, name) for name in names)]

    def _deploys(self, target: Target, ref: RefName) -> bool:
        """The deploy targets of this ref, also where a target names an alias of it."""
        if match(target, target.remote, ref):
            return True
        return any("*" not in name and self._follow(name) == ref for name in target.refs)

    # --- judging

    def judge(self, landed: set[str]) -> list[tuple[Verdicts, list[Verdict]]]:
        """The verdicts on each ref; the ledger is read again. `landed`: the tips of trunk that `land` events of this push name."""
        self._read_ledger()
        found = []
        for gathered in self._gathered:
            move, is_sync = gathered.move, gathered.move.ref == self._trunk
            self.in_turn = is_sync and self._is_landing(move.new, landed)
            if is_sync and not self.in_turn:
                self._require_landing(gathered)
            stale = self._stale(gathered.deploys, move.new) + self._unfinished(gathered.deploys, move.new)
            lands = _yes if is_sync or gathered.deploys else _no
            outcome = self._judge(
                gathered.policy, gathered.steps, pushed=True, lands=lands, config=self._config_of(move.new)
            )
            if any(step.changes for step in gathered.steps):
                outcome = self._validated(outcome, gathered.policy, move.old if is_sync else None, move.new)
            found.append((outcome, stale))
        return found

    def _is_landing(self, new: str, landed: set[str]) -> bool:
        """Is this a tip that lands: with this push, or by a record that came first, where pushes are not atomic?"""
        return new in landed or new in {landing.new for landing in open_landings(self._snapshot.state)}

    def _require_landing(self, gathered: _Gathered) -> None:
        """Refused where trunk's policy lets agents move it by landings alone, or the agent's role does not land; this is none."""
        try:
            raise_if(may_not_land(self._snapshot.state, self.actor, self._ctx.world(self._snapshot).restrictions()))
        except CouldNotJudge:
            if not self.actor.person:
                raise
        if self.actor.person or not rules_of(Source(self._ctx, gathered.policy).pairs).only:
            return
        raise refused(
            "landing", f"'{printable(self.sync)}' is moved by landings alone ([land] only)", "git coord land <branch>"
        )

    def _policy_commit(self) -> str:
        return next(iter(self._tips()), "")

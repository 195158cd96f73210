"""The common part of every gate: collect the changes, read the policy that applies, ask the judge.

Each gate (`client_gate.py`, `server/receive_code.py`) decides which ref updates are judged, by which policy, and which commits
were accepted before. Gates fail closed: where something cannot be read, an error is raised and the hook refuses.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import CONFIG
from gitcoord.deploy.targets import Target, details, refusal
from gitcoord.gates.git_history import GitHistory
from gitcoord.gates.history import file_at, finish_steps, merge_changes, net_changes
from gitcoord.gates.judge import FEW, Change, CommitChange, Verdict, judge
from gitcoord.git.commands.objects import has_commit, is_ancestor, start_steps
from gitcoord.git.store import RefUpdate
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case, format_record
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.policy.model import ENFORCE, Policy
from gitcoord.policy.parse import parse_policy
from gitcoord.policy.reader import Source
from gitcoord.startup.annotations import Callable, Iterable
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.gates.validation_changes import ValidationInput

# The parts of the state that a judgement of many paths needs: they are read at once.
_ALL = (("below", "claims"), ("below", "lineage"), ("below", "approvals"), ("below", "roles"), ("file", "halt"))


class Verdicts(NamedTuple):
    """The verdicts on some changes, and the policy by which they were judged."""

    verdicts: list[Verdict]
    policy: Policy

    @property
    def refused(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.stage == ENFORCE]

    @property
    def noted(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.stage != ENFORCE]


class GateBase:
    """A gate for one actor, with one snapshot of the ledger."""

    def __init__(
        self, ctx: Context, who: Callable[[], Actor], snapshot: Snapshot | None = None, names: Iterable[str] = ()
    ) -> None:
        """Raises NotInitialised where gitcoord is not set up. `who` is called only if there is something to judge.

        `names`: other names under which this process is known. None of them may have been killed.
        """
        self._ctx = ctx
        self._who = who
        self._names = names
        self._known: Actor | None = None
        self._remote: str | None = None
        self._named = True
        self.in_turn = False  # what is judged is a landing in its turn
        self._index = ""  # the file of the index that is judged
        self._landed: list[str] = []  # trunk of the usual remote, where the remote was asked
        self._snapshot = snapshot or read_snapshot(ctx)
        self.sync = format_record(self._snapshot.state).sync

    @property
    def actor(self) -> Actor:
        if self._known is None:
            self._known = self._who()
        return self._known

    # --- trunk

    @property
    def remote(self) -> str:
        """The remote on which trunk is shared; '' where it is not."""
        if self._remote is None:
            from gitcoord.claims.work_facts import usual_remote

            self._remote = usual_remote(self._ctx, self._snapshot)
        return self._remote

    def _tips(self) -> list[str]:
        """The tip of trunk in this repository."""
        oid = self._ctx.store.target(f"refs/heads/{self.sync}")
        return [oid] if oid else []

    def _tracking(self) -> list[str]:
        """The tip of the usual remote's trunk when it was last fetched, and as the remote reported it."""
        oid = self._ctx.store.target(f"refs/remotes/{self.remote}/{self.sync}") if self.remote else None
        return [*([oid] if oid else []), *self._landed]

    def _policy_commit(self) -> str:
        return next(filter(None, [*self._tips(), *self._tracking(), self._ctx.store.target("HEAD")]), "")

    def _source(self, commit: str) -> Source:
        return Source(self._ctx, commit, case=folds_case(self._snapshot.state))

    def _is_commit(self, oid: str) -> bool:
        return has_commit(self._ctx.repo.env, oid)

    def _is_ancestor(self, old: str, new: str) -> bool:
        return is_ancestor(self._ctx.repo.env, old, new) is True

    # --- collecting changes

    def _steps(self, move: RefUpdate, known: list[str], *, strict: bool, gated: bool) -> list[CommitChange]:
        """The new commits, and on trunk (`strict`) one more for other differences between the old and the new tip.

        On trunk a path may differ from the old tip only by a new commit or by work that landed at its remote. Elsewhere a path
        that no new commit changes is as in some accepted commit. An update of a gated ref has at least one step, so that
        killed agents cannot move it.
        """
        steps = [
            merge_changes(self._ctx, step) for step in finish_steps(start_steps(self._ctx.repo.env, move.new, known))
        ]
        steps += [CommitChange(move.new, (), "", ())] if gated and not steps else []
        if not strict or not move.old:
            return steps
        touched = {change.path for step in steps for change in step.changes}
        changes = net_changes(self._ctx, move.old, move.new)
        dropped: tuple[Change, ...] = ()
        follows = any(move.old in step.parents for step in steps)  # as nearly always: git need not be asked
        if not follows and not self._is_ancestor(move.old, move.new):
            touched = set()  # the new commits do not build on the old tip
            dropped = tuple(changes) if gated else ()  # a range of commits moves no branch
        rest = [change for change in changes if change.path not in touched]
        for commit in self._tracking():
            if rest:
                differs = {change.path for change in net_changes(self._ctx, commit, move.new)}
                rest = [change for change in rest if change.path in differs]
        return [*steps, CommitChange(move.new, (move.old,), "", tuple(rest), dropped)] if rest or dropped else steps

    # --- judging

    def _judge(
        self,
        commit: str,
        steps: list[CommitChange],
        *,
        pushed: bool = False,
        lands: Callable[[], bool] = lambda: True,
        config: Callable[[], str] | None = None,
    ) -> Verdicts:
        """`lands`: whether this goes to trunk, or to where it is deployed from. `config`: the blob of the settings afterwards."""
        if not steps:
            return Verdicts([], parse_policy(()))
        paths = {change.path for step in steps for change in step.changes}
        try:
            policy = self._source(commit).policy(paths).placed(lands)._replace(in_turn=self.in_turn)
        except CouldNotJudge:
            from gitcoord.gates.unreadable import may_replace

            old = self._config_of(commit)() if commit else ""
            if config is None or not may_replace(self._ctx, old, config(), self.actor, steps):
                raise
            policy = self._source("").policy(paths)
        if len(policy.attributes) > FEW:
            self._snapshot.state.prefetch((*_ALL, ("file", f"agents/{self.actor.agent}")))
        outcome = self._judge_by(policy, steps, pushed=pushed)
        if config is None or CONFIG not in paths:
            return outcome
        from gitcoord.gates.unreadable import unreadable

        return outcome._replace(verdicts=[*outcome.verdicts, *unreadable(self._ctx, config(), self.actor.agent)])

    def _config_of(self, commit: str) -> Callable[[], str]:
        """The settings of a commit, as a blob."""
        return lambda: file_at(self._ctx, commit, CONFIG)[1]

    def _judge_by(self, policy: Policy, steps: list[CommitChange], *, pushed: bool = False) -> Verdicts:
        paths = {change.path for step in steps for change in (*step.changes, *step.dropped)}
        actor, readers = self.actor, self._readers(steps) if pushed else []
        world, history = self._ctx.world(self._snapshot), GitHistory(self._ctx, self._snapshot, paths, self._index)
        verdicts = judge(self._snapshot.state, world, history, policy, actor, steps, readers, self._names)
        return Verdicts(verdicts, policy)

    def _readers(self, steps: list[CommitChange]) -> list[str]:
        """The agents that must have read the rules: the one that pushes, or in CI, where nobody is named, the authors."""
        if not self._named:
            return sorted({step.agent for step in steps if step.agent})
        return [] if self.actor.person else [self.actor.agent]

    def _stale(self, deploys: list[tuple[Target, str]], commit: str) -> list[Verdict]:
        """Verdicts on a push to a deploy target that lacks landed work or the last deploy."""
        found = []
        for target, name in deploys:
            from gitcoord.deploy.staleness import staleness  # only deploys pay for it

            stale = staleness(self._ctx, self._snapshot, target, commit, remote=name, fetch=True)
            no = refusal(stale)
            if no is not None:
                stage = self._source(self._policy_commit()).policy(()).stage("stale-deploy")
                words = "; ".join([no.message, *details(stale)])
                found.append(Verdict("stale-deploy", stage, "", self.actor.agent, words, commit, hints=no.hints))
        return found

    # --- validators: loaded only where the policy turns one on

    _runs_commands = True  # whether the project's own commands may run here; not on a server

    def _validation_input(
        self, commit: str, policy: Policy, trusted: Callable[[], Policy] | None = None
    ) -> ValidationInput:
        from gitcoord.gates.validation_changes import ValidationInput

        commands = (trusted or (lambda: policy)) if self._runs_commands else None
        return ValidationInput(self._source(commit), policy, self.actor, commands)

    def _validated(self, outcome: Verdicts, commit: str, base: str | None, new: str) -> Verdicts:
        """The outcome with the verdicts of validators on all changes since `base` (None: since the branch left trunk)."""
        if not outcome.policy.validators:
            return outcome
        from gitcoord.gates.validation_changes import on_push

        landed = [*self._tips(), *self._tracking()] if base is None else [base]
        found = on_push(self._ctx, self._validation_input(commit, outcome.policy), landed, new, direct=base is not None)
        return outcome._replace(verdicts=[*outcome.verdicts, *found])

    def _unfinished(self, deploys: list[tuple[Target, str]], commit: str) -> list[Verdict]:
        """Verdicts of the validators of deploys on a push to a deploy target."""
        policy = self._source(self._policy_commit()).policy(()) if deploys else parse_policy(())
        if not policy.validators:
            return []
        from gitcoord.gates.validation_changes import on_deploy_push

        given = self._validation_input(self._policy_commit(), policy)
        return on_deploy_push(self._ctx, given, self._snapshot, [target.name for target, _ in deploys], commit)

"""The gates: what a commit, a ref update or a push would change, judged by the one policy function.

Each function gathers the steps to be judged, reads the policy that applies, and gives what stands against them. A gate fails
closed: what it cannot read raises, and the hook refuses.
"""

from gitcoord.app.ancestry import Looking, read_history_fact
from gitcoord.app.facts import read_fact
from gitcoord.app.history import finish_steps, index_changes, merge_changes, net_changes, start_steps
from gitcoord.app.ledger import load, read_snapshot, settle
from gitcoord.app.policy import Source
from gitcoord.core.claims import folds_case, format_record
from gitcoord.core.deploys import details, match, refusal, targets
from gitcoord.core.judge import FEW, Step, Verdict, judge
from gitcoord.core.policy import ENFORCE, parse_policy
from gitcoord.errors import CouldNotJudge
from gitcoord.names import CLAIMS, LEDGER, TIP
from gitcoord.record import NamedTuple
from gitcoord.store.files import read_file
from gitcoord.store.process import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gitcoord.app.context import Context
    from gitcoord.app.ledger import Snapshot
    from gitcoord.app.validators_changes import Asked
    from gitcoord.core.deploys import Target
    from gitcoord.core.policy import Policy
    from gitcoord.core.sessions import Actor

# What a judgement of many paths looks at: read at once, since each part that is missing starts it anew.
_ALL = (("below", "claims"), ("below", "lineage"), ("below", "approvals"), ("below", "roles"), ("file", "halt"))
_PRIVATE = (LEDGER, CLAIMS, "refs/gitcoord/")


class Move(NamedTuple):
    """A ref that is about to move; no id: it is made or deleted."""

    ref: str
    old: str
    new: str


class Outcome(NamedTuple):
    verdicts: list[Verdict]
    policy: "Policy"

    @property
    def refused(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.stage == ENFORCE]

    @property
    def noted(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.stage != ENFORCE]


class Reading(Looking):
    """A view that reads a fact when it is asked for: a push asks for too many to begin anew after each."""

    __slots__ = ("_ctx", "_snapshot")

    def __init__(self, ctx: "Context", snapshot: "Snapshot", paths: "set[str]") -> None:
        super().__init__(ctx.host.wall(), ctx.host.mono(), ctx.host.boot, paths)
        self._ctx = ctx
        self._snapshot = snapshot

    def fact(self, *what: str) -> object:
        if what not in self.facts and not read_history_fact(self._ctx, self, what):
            read_fact(self._ctx, self._snapshot, self, what)
        return self.facts[what]


class Gate:
    """One look at the ledger, for one actor."""

    def __init__(self, ctx: "Context", who: "Callable[[], Actor]", snapshot: "Snapshot | None" = None) -> None:
        """NotInitialised where gitcoord is not set up. Who acts is asked for only where there is something to judge."""
        self._ctx = ctx
        self._who = who
        self._known: Actor | None = None
        self._remote: str | None = None
        self._named = True
        self._landed: list[str] = []  # at the usual remote, by its own word
        self._snapshot = snapshot or read_snapshot(ctx)
        self.sync = str(format_record(self._snapshot.state)["sync"])

    @property
    def actor(self) -> "Actor":
        if self._known is None:
            self._known = self._who()
        return self._known

    def index(self, index: bytes, heads: "Iterable[str]") -> Outcome:
        """What is staged, against HEAD and whatever is being merged; judged by HEAD's policy."""
        parents = tuple(heads)
        changes = index_changes(self._ctx, parents or (self._empty_tree(),), index)
        step = merge_changes(self._ctx, Step("", parents, "", tuple(changes)), index)
        head = parents[0] if parents else ""
        outcome = self._judge(head, [step] if step.changes else [])
        if not outcome.policy.validators:
            return outcome
        from gitcoord.app.validators_changes import Span, on_changes

        # A change may not bring the command that judges it: those of where work lands count.
        asked = self._asked(head, outcome.policy, lambda: self._source(self._policy_commit()).policy(()))
        found = on_changes(self._ctx, asked, Span("commit", head, "", step.changes, index))
        return outcome._replace(verdicts=[*outcome.verdicts, *found])

    def moves(self, moves: "list[Move]") -> Outcome:
        """Refs of this repository that are about to move: the sync branch, deploy branches, the ledger."""
        return _together([self._move(move) for move in moves])

    def _move(self, move: Move) -> Outcome:
        if is_private(move.ref):
            return self._judge("", []) if self._is_fetch(move) else self._refuse(_private(move, self.actor.agent))
        if move.ref == f"refs/heads/{self.sync}" and not move.new:
            return self._refuse(_deleted(move, self.actor.agent))
        if not move.new or not self._is_gated(move.ref):
            return self._judge("", [])
        outcome = self._moved(move)
        if outcome.refused and self._has_landed(move):
            self._landed = [move.new]
            outcome = self._moved(move)
        return outcome

    def _moved(self, move: Move) -> Outcome:
        known = [*([move.old] if move.old else []), *self._tracking(self.remote)] or self._tips()
        return self._judge(move.old or self._policy_commit(), self._steps(move, known, strict=True, gated=True))

    def _has_landed(self, move: Move) -> bool:
        """`git fetch origin main:main` moves this branch before the remote-tracking one: only the remote can tell what landed.

        git never fetches into a branch that is checked out, so most refusals need not ask.
        """
        here = read_file(f"{self._ctx.repo.git_dir}/HEAD").decode("utf-8", "surrogateescape").strip()
        if not self.remote or move.ref != f"refs/heads/{self.sync}":
            return False
        if self._ctx.repo.worktree and here == f"ref: {move.ref}":
            return False
        from gitcoord.app.deploy import git

        code, out, _ = git(self._ctx, "ls-remote", "--quiet", "--", self.remote, move.ref, network=True)
        return not code and f"{move.new}\t{move.ref}".encode() in out.split(b"\n")

    def push(self, remote: str, moves: "list[Move]") -> Outcome:
        """Refs of a remote that a push is about to move, each by the policy of its old tip if it is the sync branch's."""
        return _together([self._pushed(remote, move) for move in moves])

    def _pushed(self, remote: str, move: Move) -> Outcome:
        is_sync = move.ref == f"refs/heads/{self.sync}"
        if is_private(move.ref):
            return self._judge("", []) if self._is_copy(move) else self._refuse(_private(move, self.actor.agent))
        if not move.new:
            return self._refuse(_deleted(move, self.actor.agent)) if is_sync else self._judge("", [])
        if not self._is_commit(move.new) or move.ref.startswith("refs/notes/"):
            return self._judge("", [])  # notes have paths of their own kind
        old = move.old if move.old and self._is_commit(move.old) else ""
        if is_sync and move.old and not old:
            raise CouldNotJudge(
                f"what {remote}'s '{self.sync}' holds now is not here, so what this push would undo cannot be told",
                hints=(f"git fetch {remote}",),
            )
        deploys = self._deploys(remote, move.ref)
        stale = self._stale(deploys, move.new)
        stale += self._unfinished(deploys, move.new)
        gated = is_sync or bool(deploys)
        known = self._accepted(remote, old, is_sync=is_sync)
        steps = self._steps(move._replace(old=old), known, strict=is_sync, gated=gated)
        commit = (old if is_sync else "") or self._policy_commit()
        outcome = self._judge(commit, steps, pushed=True)
        outcome = self._validated(outcome, commit, old if is_sync else None, move.new)
        return outcome._replace(verdicts=[*stale, *outcome.verdicts])

    # --- validators: what they need is loaded only where the policy turns one on

    _runs_commands = True  # the project's own; not on a server

    def _asked(self, commit: str, policy: "Policy", trusted: "Callable[[], Policy] | None" = None) -> "Asked":
        from gitcoord.app.validators_changes import Asked

        commands = (trusted or (lambda: policy)) if self._runs_commands else None
        return Asked(self._source(commit), policy, self.actor, commands)

    def _validated(self, outcome: Outcome, commit: str, base: "str | None", new: str) -> Outcome:
        """With what validators say of all that is brought; `base` None: from where the branch left what landed."""
        if not outcome.policy.validators:
            return outcome
        from gitcoord.app.validators_changes import on_push

        landed = [*self._tips(), *self._tracking(self.remote)] if base is None else [base]
        found = on_push(self._ctx, self._asked(commit, outcome.policy), landed, new, direct=base is not None)
        return outcome._replace(verdicts=[*outcome.verdicts, *found])

    def _unfinished(self, deploys: "list[tuple[Target, str]]", commit: str) -> list[Verdict]:
        """A push to where something is deployed from, by the validators of deploys."""
        policy = self._source(self._policy_commit()).policy(()) if deploys else parse_policy(())
        if not policy.validators:
            return []
        from gitcoord.app.validators_changes import on_deploy_push

        asked = self._asked(self._policy_commit(), policy)
        return on_deploy_push(self._ctx, asked, self._snapshot, [target.name for target, _ in deploys], commit)

    def _accepted(self, remote: str, old: str, *, is_sync: bool) -> list[str]:
        """The commits whose history was accepted before. git names the sync branch's true tip; elsewhere what landed at the
        usual remote, what the remote itself has, and the sync branch here."""
        landed = self._tracking(self.remote) if self.remote != remote or not old else []
        if is_sync:
            return [*([old] if old else []), *landed] or self._tips()
        there = self._ctx.store.list_refs(f"refs/remotes/{remote}/") if remote else {}
        return [*([old] if old else []), *landed, *self._tracking(self.remote), *there.values(), *self._tips()]

    @property
    def remote(self) -> str:
        """Where the sync branch is shared; '' where it is not."""
        if self._remote is None:
            from gitcoord.app.deploy import usual_remote

            self._remote = usual_remote(self._ctx, self._snapshot)
        return self._remote

    def _refuse(self, verdict: Verdict) -> Outcome:
        return Outcome([verdict], parse_policy(()))

    def _deploys(self, remote: str, ref: str) -> "list[tuple[Target, str]]":
        """The targets that a push of this ref deploys, each with the name of its remote."""
        known = targets(self._source(self._policy_commit()).pairs).values()
        named = [(target, self._name_of(target.remote, remote)) for target in known]
        return [(target, name) for target, name in named if match(target, name, ref)]

    def _stale(self, deploys: "list[tuple[Target, str]]", commit: str) -> list[Verdict]:
        """A push to where something is deployed from: it must hold all that landed, and what was deployed last."""
        stage = self._source(self._policy_commit()).policy(()).stage("stale-deploy") if deploys else ""
        found = []
        for target, name in deploys:
            from gitcoord.app.deploy import staleness  # only deploys pay for it

            stale = staleness(self._ctx, self._snapshot, target, commit, remote=name, fetch=True)
            no = refusal(stale)
            if no is not None:
                words = "; ".join([no.message, *details(stale)])
                found.append(
                    Verdict(
                        "stale-deploy", stage, "", self.actor.agent, words, commit,
                        hints=no.hints or ("bring it up to date: git coord sync --pull",),
                    )
                )  # fmt: skip
        return found

    def _name_of(self, wanted: str, remote: str) -> str:
        """The remote's name; a push to a bare address may go anywhere, so it counts as one to the wanted remote."""
        if not wanted or wanted == remote:
            return remote
        names = run(["git", "remote"], self._ctx.repo.env)[1].decode("utf-8", "surrogateescape").split("\n")
        return remote if remote in names else wanted

    def range(self, base: str, head: str, *, named: bool = True) -> Outcome:
        """The commits of head that base does not have, by base's policy: for CI. `named`: it is known who brings them."""
        self._named = named
        steps = self._steps(Move("", base, head), [base], strict=True, gated=False)
        return self._validated(self._judge(base, steps, pushed=True), base, base, head)

    def _is_gated(self, ref: str) -> bool:
        """The sync branch, branches from which something is deployed, and those that the local settings guard.

        The hook has matched gitcoord.gateRef to the letter; other managers hand over every ref, and what comes before the
        first '*', '?' or '[' of a pattern guards too much rather than too little.
        """
        if ref == f"refs/heads/{self.sync}" or not ref.startswith("refs/heads/"):
            return ref.startswith("refs/heads/")
        for pattern in self._ctx.settings.every("gitcoord.gateref"):
            plain = pattern.replace("?", "*").replace("[", "*").partition("*")
            if ref == pattern or (plain[1] and ref.startswith(plain[0])):
                return True
        known = targets(self._source(self._policy_commit()).pairs).values()
        return any(match(target, target.remote, ref) for target in known)

    # --- gathering

    def _steps(self, move: Move, known: "list[str]", *, strict: bool, gated: bool) -> list[Step]:
        """The new commits, and what the result changes besides.

        On the sync branch (`strict`) a path may differ from the old tip only by a new commit or by what landed at its remote;
        elsewhere also by what any accepted commit has on which new ones were put. A gated ref is always a step, so that nobody
        who may not act moves it.
        """
        steps = [merge_changes(self._ctx, step) for step in finish_steps(start_steps(self._ctx, move.new, known))]
        steps += [Step(move.new, (), "", ())] if gated and not steps else []
        if not move.old or move.old == move.new:
            return steps
        touched = {change.path for step in steps for change in step.changes}
        argv = ["git", "--no-replace-objects", "merge-base", "--is-ancestor", move.old, move.new]
        if strict and run(argv, self._ctx.repo.env)[0]:
            touched = set()  # a way back: what a new commit left says nothing about what the old tip had
        rest = [change for change in net_changes(self._ctx, move.old, move.new) if change.path not in touched]
        new = {step.oid for step in steps}
        accepted = self._tracking(self.remote)
        if not strict:
            accepted += [p for step in steps for p in step.parents if p not in new] or [move.new]
        for commit in dict.fromkeys(accepted):
            if rest and commit != move.old:
                differs = {change.path for change in net_changes(self._ctx, commit, move.new)}
                rest = [change for change in rest if change.path in differs]
        return [*steps, Step(move.new, (move.old,), "", tuple(rest))] if rest else steps

    def _tips(self) -> list[str]:
        """Where the sync branch stands here."""
        oid = self._ctx.store.target(f"refs/heads/{self.sync}")
        return [oid] if oid else []

    def _tracking(self, remote: str) -> list[str]:
        """Where the sync branch of a remote stood when it was last fetched."""
        oid = self._ctx.store.target(f"refs/remotes/{remote}/{self.sync}") if remote else None
        return [*([oid] if oid else []), *(self._landed if remote == self.remote else [])]

    def _policy_commit(self) -> str:
        return next(iter([*self._tips(), *self._tracking(self.remote)]), "") or self._ctx.store.target("HEAD") or ""

    def _source(self, commit: str) -> Source:
        return Source(self._ctx, commit, case=folds_case(self._snapshot.state))

    def _is_commit(self, oid: str) -> bool:
        code, _, _ = run(["git", "cat-file", "-e", f"{oid}^{{commit}}"], self._ctx.repo.env)
        return not code

    def _is_fetch(self, move: Move) -> bool:
        """Where a remote decides, the refs here are copies, which a plain `git fetch` renews. The ledger only goes forward."""
        if not self._ctx.remote or move.ref == TIP:
            return False
        if move.ref != LEDGER or not move.old:
            return True
        argv = ["git", "--no-replace-objects", "merge-base", "--is-ancestor", move.old, move.new]
        return bool(move.new) and not run(argv, self._ctx.repo.env)[0]

    def _is_copy(self, move: Move) -> bool:
        """A push that only brings a copy of the ledger up to date, as a backup."""
        if move.ref != LEDGER or not move.new:
            return False
        chain = [move.old, move.new] if move.old else [move.new]
        argv = ["git", "--no-replace-objects", "merge-base", "--is-ancestor"]
        return all(
            not run([*argv, old, new], self._ctx.repo.env)[0]
            for old, new in zip(chain, [*chain[1:], self._snapshot.head])
        )

    def _empty_tree(self) -> str:
        return run(["git", "hash-object", "-t", "tree", "/dev/null"], self._ctx.repo.env)[1].decode().strip()

    def _judge(self, commit: str, steps: "list[Step]", *, pushed: bool = False) -> Outcome:
        if not steps:
            return Outcome([], parse_policy(()))
        paths = {change.path for step in steps for change in step.changes}
        policy = self._source(commit).policy(paths)
        view = Reading(self._ctx, self._snapshot, paths)
        if len(policy.attributes) > FEW:
            load(self._ctx, self._snapshot, view, *_ALL, ("file", f"agents/{self.actor.agent}"))
        verdicts = settle(
            self._ctx,
            self._snapshot,
            view,
            lambda state, view: judge(state, view, policy, self.actor, steps, self._readers(steps) if pushed else ()),
        )
        return Outcome(verdicts, policy)

    def _readers(self, steps: "list[Step]") -> list[str]:
        """Who must know the rules: whoever pushes, unless it is a person. CI is nobody in particular: there, the authors."""
        if not self._named:
            return sorted({step.agent for step in steps if step.agent})
        return [] if self.actor.person else [self.actor.agent]


def _together(outcomes: list[Outcome]) -> Outcome:
    """The verdicts of all; what is said of rules comes from a policy that was asked."""
    asked = [outcome for outcome in outcomes if outcome.verdicts] or [Outcome([], parse_policy(()))]
    return Outcome([verdict for outcome in asked for verdict in outcome.verdicts], asked[-1].policy)


def is_private(ref: str) -> bool:
    return ref == LEDGER or ref.startswith(_PRIVATE[1:])


def _private(move: Move, agent: str) -> Verdict:
    words = "deleted" if not move.new else "moved by hand"
    return Verdict(
        "ledger", ENFORCE, "", agent, f"{move.ref} may not be {words}",
        hints=("look at the ledger: git coord log", "mend it: git coord fsck --repair"),
    )  # fmt: skip


def _deleted(move: Move, agent: str) -> Verdict:
    message = f"{move.ref} is where everybody's work lands; deleting it would undo all of it"
    return Verdict("lineage", ENFORCE, "", agent, message, hints=("a person may do so with the hooks off",))

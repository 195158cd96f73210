"""The gate of a clone: commits, ref updates and pushes.

Each method chooses the changes to judge, the commits that were accepted before, and the policy; `gate.py` does the rest.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, TrunkMoved
from gitcoord.base.names import CLAIMS, CONFIG, LEDGER, PRIVATE, TIP, shell_word
from gitcoord.deploy.targets import Target, match, targets
from gitcoord.gates.gate import GateBase, Verdicts
from gitcoord.gates.history import common_changes, diff_index, merge_changes, staged_id
from gitcoord.gates.judge import CommitChange, Verdict
from gitcoord.git.commands.objects import empty_tree, first_rules
from gitcoord.git.files import read_file
from gitcoord.git.store import RefUpdate
from gitcoord.policy.model import ENFORCE
from gitcoord.policy.parse import parse_policy
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

_PRIVATE = (LEDGER, CLAIMS, PRIVATE)
_ASK = "ask the person who set gitcoord up here"


class Clean(NamedTuple):
    """An index without verdicts: the ledger's head, HEAD, and the staged changes in git's raw form."""

    ledger: str
    head: str
    staged: bytes


class Gate(GateBase):
    clean: Clean | None = None
    staged: tuple[str, ...] = ()  # the paths that `index` judged
    pulled = ""  # the ref of trunk at its remote, where a move only fast-forwards to it and nobody is stopped

    def index(self, index: bytes, heads: Iterable[str]) -> Verdicts:
        """The staged changes against HEAD and the heads that are being merged, by the policy of HEAD."""
        self._index = index.decode("utf-8", "surrogateescape")
        parents = tuple(heads)
        diffs = [diff_index(self._ctx, parent, index) for parent in parents or (empty_tree(self._ctx.repo.env),)]
        step = merge_changes(self._ctx, CommitChange("", parents, "", tuple(common_changes(diffs))), index)
        self.staged = tuple(change.path for change in step.changes)
        head = parents[0] if parents else ""
        # Also without changes: nothing of the killed gets through.
        steps = [*self._merged(parents), step]
        outcome = self._judge(head, steps, lands=self._lands_here, config=lambda: staged_id(self._ctx, CONFIG, index))
        if outcome.policy.validators:
            outcome = self._validated_index(outcome, head, step, index)
        if step.changes and len(parents) == 1 and not outcome.verdicts and not self._rests_on_others():
            self.clean = Clean(self._snapshot.head, head, diffs[0])
        return outcome

    def _merged(self, parents: tuple[str, ...]) -> list[CommitChange]:
        """The commits that a merge brings to a gated branch, as `moves` judges them: many hook managers know no
        reference-transaction."""
        steps: list[CommitChange] = []
        if len(parents) < 2 or not self._is_gated(self._branch()):
            return steps
        known = [parents[0], *self._tracking()]
        for theirs in parents[1:]:
            steps += self._steps(RefUpdate("", "", theirs), known, strict=False, gated=False)
            known.append(theirs)
        return steps

    def _lands_here(self) -> bool:
        """Does a commit land here? Nobody knows where that of a detached HEAD goes."""
        return self._is_gated(self._branch() or f"refs/heads/{self.sync}")

    def _branch(self) -> str:
        """The ref that HEAD names; '' where HEAD is detached."""
        here = read_file(f"{self._ctx.repo.git_dir}/HEAD").decode("utf-8", "surrogateescape").strip()
        return here[5:] if here.startswith("ref: ") else ""

    def _rests_on_others(self) -> bool:
        """Return whether another agent's heartbeat was read: it may be renewed at any moment, without an event."""
        return not self._snapshot.heartbeats.keys() <= {self.actor.agent}

    def _validated_index(self, outcome: Verdicts, head: str, step: CommitChange, index: bytes) -> Verdicts:
        from gitcoord.gates.validation_changes import Span, on_changes

        # A change must not bring the command that judges it: trunk's commands count.
        given = self._validation_input(head, outcome.policy, lambda: self._source(self._policy_commit()).policy(()))
        found = on_changes(self._ctx, given, Span("commit", head, "", step.changes, index))
        return outcome._replace(verdicts=[*outcome.verdicts, *found])

    def moves(self, moves: list[RefUpdate]) -> Verdicts:
        """Updates of refs of this repository: trunk, deploy branches, the ledger."""
        return _join_verdicts([self._move(move) for move in moves])

    def _move(self, move: RefUpdate) -> Verdicts:
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

    def _moved(self, move: RefUpdate) -> Verdicts:
        if move.old and move.new in self._tracking() and self._is_ancestor(move.old, move.new):
            # A pull of what landed: there is nothing to compare, and no rule but those about who acts.
            steps = [CommitChange(move.new, (), "", ())]
            outcome = self._judge_by(parse_policy(()), steps)
            self.pulled = "" if outcome.verdicts else f"refs/remotes/{self.remote}/{self.sync}"
            return self._judge(move.old, steps) if outcome.verdicts else outcome
        known = [*([move.old] if move.old else []), *self._tracking()] or self._tips()
        steps = self._steps(move, known, strict=True, gated=True)
        return self._judge(move.old or self._policy_commit(), steps, config=self._config_of(move.new))

    def _has_landed(self, move: RefUpdate) -> bool:
        """Return whether the remote itself has this commit as trunk: `git fetch origin main:main` moves trunk first.

        git never fetches into a branch that is checked out, so the remote is asked after few refusals only.
        """
        if move.ref != f"refs/heads/{self.sync}" or (self._ctx.repo.worktree and self._branch() == move.ref):
            return False
        from gitcoord.git.commands.remotes import look_at_ref
        from gitcoord.ledger.remote.user_refs import ask_remote

        return f"{move.new}\t{move.ref}" in ask_remote(self._ctx, self.remote, look_at_ref, move.ref).lines

    def push(self, remote: str, moves: list[RefUpdate]) -> Verdicts:
        """The ref updates of a push. Trunk is judged by the policy of its old tip."""
        return _join_verdicts([self._pushed(remote, move) for move in moves])

    def _pushed(self, remote: str, move: RefUpdate) -> Verdicts:
        is_sync = move.ref == f"refs/heads/{self.sync}"
        if is_private(move.ref):
            return self._judge("", []) if self._is_copy(move) else self._refuse(_private(move, self.actor.agent))
        if not move.new:
            return self._refuse(_deleted(move, self.actor.agent)) if is_sync else self._actor_alone()
        if not self._is_commit(move.new):
            return self._without_commit(remote, move)
        if move.ref.startswith("refs/notes/"):
            return self._actor_alone()  # the paths of notes are object ids
        old = move.old if move.old and self._is_commit(move.old) else ""
        if is_sync and move.old and not old:
            landing = "git coord land <branch>" if self._branch() == move.ref else "git coord land"
            raise TrunkMoved(
                f"'{self.sync}' at {remote} has moved: somebody pushed before you",
                hints=(
                    "bring that here, then push again: git coord sync --pull",
                    f"or have a branch brought onto it, in turn: {landing}",
                ),
            )
        return self._brought(remote, move._replace(old=old), is_sync=is_sync)

    def landing(self, remote: str, move: RefUpdate) -> Verdicts:
        """Trunk, as a landing in its turn moves it. Both commits are here."""
        self.in_turn = True
        return self._brought(remote, move, is_sync=True)

    def _brought(self, remote: str, move: RefUpdate, *, is_sync: bool) -> Verdicts:
        """The commits that a push brings. `move.old`: '' where it is not here."""
        old = move.old
        deploys = self._deploys(remote, move.ref)
        stale = self._stale(deploys, move.new)
        stale += self._unfinished(deploys, move.new)
        known = self._accepted(remote, old, is_sync=is_sync)
        steps = self._steps(move, known, strict=is_sync, gated=True)
        commit = (old if is_sync else "") or self._policy_commit()
        config = self._config_of(move.new)
        outcome = self._judge(
            commit, steps, pushed=True, lands=lambda: bool(deploys) or self._is_gated(move.ref), config=config
        )
        outcome = self._validated(outcome, commit, old if is_sync else None, move.new)
        return outcome._replace(verdicts=[*stale, *outcome.verdicts])

    def _without_commit(self, remote: str, move: RefUpdate) -> Verdicts:
        """A push of a blob or a tree: without history it cannot be compared."""
        if self._deploys(remote, move.ref):
            raise CouldNotJudge(
                f"'{move.ref}' is deployed from, and this push brings no commit, so it cannot be compared with the last deploy",
                hints=("push a commit, or a tag of one",),
            )
        return self._actor_alone()

    def _actor_alone(self) -> Verdicts:
        """Judge the actor alone: killed agents push nothing, and during a halt nobody does."""
        return self._judge(self._policy_commit(), [CommitChange("", (), "", ())])

    def _accepted(self, remote: str, old: str, *, is_sync: bool) -> list[str]:
        """The commits whose history was accepted before: for trunk its tip, which git reports; for other branches trunk here and
        at the usual remote, and all branches of the remote that is pushed to.

        Where no remote has anything yet: the commit that brought the first rules, since none held before. Trunk here does not
        count then: it may have moved without its hook.
        """
        before = [old] if old else []
        if is_sync:
            return [*before, *(self._tracking() if self.remote != remote or not old else [])] or self._before_rules()
        there = self._ctx.store.list_refs(f"refs/remotes/{remote}/") if remote else {}
        landed = [*before, *self._tracking(), *there.values()]
        return [*landed, *self._tips()] if landed else self._before_rules()

    def _before_rules(self) -> list[str]:
        """The commit of trunk here that brought the first rules; its tip where it has none."""
        tips = self._tips()
        found = (
            first_rules(self._ctx.repo.env, tips[0]).require("git cannot tell since when there are rules")
            if tips
            else None
        )
        return (found.lines[-1:] if found else []) or tips

    def _refuse(self, verdict: Verdict) -> Verdicts:
        return Verdicts([verdict], parse_policy(()))

    def _deploys(self, remote: str, ref: str) -> list[tuple[Target, str]]:
        """The deploy targets of a push of this ref, each with the name of its remote."""
        known = targets(self._source(self._policy_commit()).pairs).values()
        named = [(target, self._name_of(target.remote, remote)) for target in known]
        return [(target, name) for target, name in named if match(target, name, ref)]

    def _name_of(self, wanted: str, remote: str) -> str:
        """The name of the remote. A push to a URL may go anywhere, so it counts as a push to the wanted remote."""
        if not wanted or wanted == remote:
            return remote
        from gitcoord.git.commands.remotes import list_remotes

        return remote if remote in list_remotes(self._ctx.repo.env).lines else wanted

    def range(self, base: str, head: str, *, named: bool = True) -> Verdicts:
        """The commits of head that base does not have, by the policy of base: for CI. `named`: the actor is known."""
        self._named = named
        steps = self._steps(RefUpdate("", base, head), [base], strict=True, gated=False)
        return self._validated(self._judge(base, steps, pushed=True, config=self._config_of(head)), base, base, head)

    def _is_gated(self, ref: str) -> bool:
        """Return whether the ref is trunk, a deploy branch, or matched by gitcoord.gateRef in the local settings.

        Our hook has matched the patterns exactly. Other hook managers pass every ref, so here everything below the part before
        the first '*', '?' or '[' matches.
        """
        if ref == f"refs/heads/{self.sync}" or not ref.startswith("refs/heads/"):
            return ref.startswith("refs/heads/")
        for pattern in self._ctx.settings.every("gitcoord.gateref"):
            plain = pattern.replace("?", "*").replace("[", "*").partition("*")
            if ref == pattern or (plain[1] and ref.startswith(plain[0])):
                return True
        known = targets(self._source(self._policy_commit()).pairs).values()
        return any(match(target, target.remote, ref) for target in known)

    def _is_fetch(self, move: RefUpdate) -> bool:
        """Return whether this may be a plain `git fetch` from the authority, of which the refs here are copies.

        The ledger may only fast-forward.
        """
        if not self._ctx.remote or move.ref == TIP:
            return False
        if move.ref != LEDGER or not move.old:
            return True
        return self._is_ancestor(move.old, move.new)

    def _is_copy(self, move: RefUpdate) -> bool:
        """Return whether this push only updates a copy of the ledger, as a backup does."""
        if move.ref != LEDGER:
            return False
        chain = [move.old, move.new] if move.old else [move.new]
        return all(self._is_ancestor(old, new) for old, new in zip(chain, [*chain[1:], self._snapshot.head]))


def _join_verdicts(outcomes: list[Verdicts]) -> Verdicts:
    """The verdicts of all, with the policy of one that has verdicts."""
    judged = [outcome for outcome in outcomes if outcome.verdicts] or [Verdicts([], parse_policy(()))]
    return Verdicts([verdict for outcome in judged for verdict in outcome.verdicts], judged[-1].policy)


def is_private(ref: str) -> bool:
    return ref == LEDGER or ref.startswith(_PRIVATE[1:])


def _private(move: RefUpdate, agent: str) -> Verdict:
    words = "deleted" if not move.new else "moved by hand"
    more = "repair it: git coord fsck --repair" if move.new else f"to take gitcoord out of this project, {_ASK}"
    return Verdict(
        "ledger",
        ENFORCE,
        "",
        agent,
        f"{move.ref} may not be {words}",
        hints=("look at the ledger: git coord log", more),
    )


def _deleted(move: RefUpdate, agent: str) -> Verdict:
    message = f"{move.ref} is where everybody's work lands; deleting or renaming it would undo all of it"
    return Verdict("lineage", ENFORCE, "", agent, message, hints=_hints_of_trunk(move.ref.removeprefix("refs/heads/")))


def _hints_of_trunk(name: str) -> tuple[str, ...]:
    """The ways of somebody who wanted to rename, replace or delete trunk: git tells the hook only that its ref was to go."""
    return (
        f"another name beside it: git branch <name> {shell_word(name)}",
        "or bring work onto it: git coord land <branch>",
        f"to rename trunk itself, {_ASK}",
    )

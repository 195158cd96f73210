"""The judge of every gate: a pure function from changes to verdicts.

`judge` gets the commits of a commit, a push or a range, and returns the rules that they break. It reads the ledger through
`state`, heartbeats through `world`, git through `history`, and the project's policy. No verdict means that no rule is broken.
CouldNotJudge is raised where that cannot be decided; every gate then refuses.
"""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.names import ancestors, claim_dir, fold, listed, printable, shell_word
from gitcoord.claims.model import INTENT, WRITE, Claim, Item, compatible, expiry_of_claim, key_of
from gitcoord.gates.lineage import Lineages
from gitcoord.ledger.format import folds_case
from gitcoord.ledger.sessions import Actor, dead, hint_of_ended
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.policy.model import BLOCK, CHECKPOINT, ON_A_BRANCH, WARN, Policy, is_attributes_file, is_own_file
from gitcoord.policy.roles import is_free, may_approve, out_of_role
from gitcoord.sessions.admission import halted
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.gates.lineage import History
    from gitcoord.gates.model import Approval

_PRIVATE = "a private rule of this machine says no"
_HINTED = 4  # verdicts for which it is looked whether the merge that helps conflicts
FEW = 16  # above this many paths, all claims are read at once instead of path by path


class Change(NamedTuple):
    """The file that a commit leaves at a path; the blob is '' where it leaves none."""

    path: str
    mode: str
    blob: str


class CommitChange(NamedTuple):
    """A commit to judge, or the index (its id is ''). `agent` comes from the `Agent:` trailer.

    `dropped`: where it stands for a branch that leaves its old tip, its parent here, all that differs from there.
    """

    oid: str
    parents: tuple[str, ...]
    agent: str
    changes: tuple[Change, ...]
    dropped: tuple[Change, ...] = ()


class Verdict(NamedTuple):
    """A rule that a change breaks, and the stage of that rule."""

    rule: str
    stage: str
    path: str
    agent: str
    message: str
    commit: str = ""
    mode: str = ""
    blob: str = ""
    hints: tuple[str, ...] = ()
    held: tuple[dict[str, object], ...] = ()
    asks: bool = False  # a person may still approve it
    bases: tuple[str, ...] = ()  # the commits that the change builds on


def judge(
    state: State,
    world: World,
    history: History,
    policy: Policy,
    actor: Actor,
    steps: list[CommitChange],
    readers: Iterable[str] = (),
    names: Iterable[str] = (),
) -> list[Verdict]:
    """The verdicts on these commits, which come parents first; at most one for each rule and path.

    `readers` are the agents that must have read the written rules, `names` those under which this process is known besides.
    """
    return _Judge(state, world, history, policy, actor, steps).verdicts(readers, names)


class _Judge:
    def __init__(
        self, state: State, world: World, history: History, policy: Policy, actor: Actor, steps: list[CommitChange]
    ) -> None:
        self._state = state
        self._world = world
        self._history = history
        self._policy = policy
        self._actor = actor
        self._steps = steps
        paths = {change.path for step in steps for change in (*step.changes, *step.dropped)}
        case = folds_case(state)
        self._keys = {path: fold(path, case=case) for path in paths}
        self._claims = _Claims(state, self._keys)
        self._lineages = Lineages(state, history, steps, self._keys)
        self._free: dict[str, bool] = {}
        self._found: dict[tuple[str, str], Verdict] = {}

    def verdicts(self, readers: Iterable[str], names: Iterable[str]) -> list[Verdict]:
        if not self._steps:
            return []
        for name in (self._actor.agent, *names):
            self._judge_alive(name, self._steps[-1])
        if self._policy.ack and self._policy.rules:
            self._judge_rules_read(self._policy.rules, readers)
        halt = halted(self._state)
        if halt is not None:
            self._add("halted", self._actor.agent, halt.message, hints=halt.hints)
        for step in self._steps:
            agent = step.agent or self._actor.agent
            if step.changes:
                self._judge_alive(agent, step)
                self._judge_attribution(step)
            for change in step.changes:
                self._judge_change(agent, step, change)
            for change in step.dropped:
                self._judge_dropped(agent, step, change)
        return list(self._found.values())

    def _add(
        self,
        rule: str,
        agent: str,
        message: str,
        step: CommitChange | None = None,
        change: Change | None = None,
        *,
        stage: str = "",
        hints: tuple[str, ...] = (),
        held: tuple[Record, ...] = (),
        asks: bool = False,
    ) -> None:
        path, mode, blob = change or ("", "", "")
        commit, bases = (step.oid, step.parents) if step else ("", ())
        if (rule, path) not in self._found:
            stage = stage or self._policy.stage(rule)
            self._found[rule, path] = Verdict(
                rule, stage, path, agent, message, commit, mode, blob, hints, held, asks, bases
            )

    # --- who acts

    def _judge_alive(self, agent: str, step: CommitChange) -> None:
        refusal = dead(self._state, self._world, agent)
        if refusal is not None:
            self._add("killed", agent, refusal.message, step, hints=refusal.hints)

    def _judge_rules_read(self, rules: str, readers: Iterable[str]) -> None:
        from gitcoord.gates.model import has_read  # only where the policy asks for it

        version = rules[:12]
        hints = (f"read them: git coord rules show {version}", f"then: git coord rules ack {version}")
        lacking = [agent for agent in readers if not has_read(self._state, agent, rules)]
        if lacking:
            names = ", ".join(f"'{agent}'" for agent in lacking)
            has = "has" if len(lacking) == 1 else "have"
            self._add("rules", lacking[0], f"{names} {has} not read the rules ({version})", hints=hints)

    def _judge_attribution(self, step: CommitChange) -> None:
        if not self._policy.attribution:
            return
        from gitcoord.validators.attribution import lacks_agent  # only where the policy asks for it

        lack = lacks_agent(step, self._actor)
        if lack is not None:
            self._add("attribution", self._actor.agent, lack[0], step, hints=lack[1:])

    # --- what changes

    def _judge_change(self, agent: str, step: CommitChange, change: Change) -> None:
        holds, others = self._claims_on(agent, change.path)
        holds = holds or (self._policy.in_turn and not others and self._is_intended(change.path))
        source = self._lineages.source(step, change)
        later = self._policy.of_landing(change.path)
        if not holds and source is None and not later:
            self._judge_claim(agent, step, change, others)
        if holds or source is None:
            self._judge_role(agent, step, change)
        self._judge_guard(agent, step, change)
        lack = self._lineages.lacking(step, change, source) if not later else None
        if lack is not None:
            message = f"it does not contain what {lack.agent} released there ({lack.commit[:12]}, event {lack.seq})"
            # git puts a new file away for the merge only where it is known to the index.
            new = not step.oid and not any(self._history.at(parent, change.path)[1] for parent in step.parents)
            add = f"git add {path_word(change.path)} && " if new else ""
            few = len(self._found) < _HINTED
            clash = conflict_words(self._history.conflicts(step.oid, lack.commit)) if few else ""
            hints = (
                f"bring it in{clash}: {add}git merge {'' if step.oid else '--autostash '}{lack.commit[:12]}",
                hint_of_disowning(change.path),
            )
            self._add("lineage", agent, message, step, change, hints=hints)

    def _judge_dropped(self, agent: str, step: CommitChange, change: Change) -> None:
        lost = self._lineages.dropped(step, change.path)
        if lost is not None:
            message = f"this drops what {lost.agent} released there ({lost.commit[:12]}, event {lost.seq})"
            hint = f"undo it by a commit of its own, under a claim: git revert {lost.commit[:12]}"
            self._add("lineage", agent, message, step, change, hints=(hint, hint_of_disowning(change.path)))

    def _claims_on(self, agent: str, path: str) -> tuple[bool, list[dict[str, object]]]:
        """Return whether the agent or the pusher has a write claim on the path, and others' live conflicting claims.

        The one who pushes counts because the receiver of a handoff pushes commits that name the sender.
        """
        holds, others = False, []
        for claim in self._claims.over(path):
            if is_family(claim.agent, agent) or is_family(claim.agent, self._actor.agent):
                # One's own claim counts until an event ends it: running the gate is itself a heartbeat.
                holds = holds or claim.mode == WRITE
            elif not compatible(claim.mode, WRITE) and not (claim.mode == INTENT and self._policy.in_turn):
                verdict = expiry_of_claim(self._state, self._world, claim)
                if not verdict.expired:
                    others.append(claim.to_json(verdict.expires_in))
        return holds, others

    def _is_intended(self, path: str) -> bool:
        """Has somebody the intent to write there? It keeps others from it, and a landing, which is one at a time, may go ahead."""
        return any(claim.mode == INTENT for claim in self._claims.over(path))

    def _judge_claim(self, agent: str, step: CommitChange, change: Change, others: list[dict[str, object]]) -> None:
        path = change.path
        if others:
            ended = hint_of_ended(self._state, (str(claim["agent"]) for claim in others))
            word = path_word(path)
            waits = (f"wait for it: git claim --wait 10m {word}", f"or go on meanwhile: git claim --queue {word}")
            hints = (ended,) if ended else waits
            self._add("held", agent, _holder_words(others[0]), step, change, held=tuple(others), hints=hints)
        elif self._policy.of(path).claim:
            message = f"it is shared, and '{agent}' holds no write claim on it"
            also = [ON_A_BRANCH] if self._policy.of(path).landing else []
            self._add("unclaimed", agent, message, step, change, hints=(f"git claim {path_word(path)}", *also))

    def _judge_role(self, agent: str, step: CommitChange, change: Change) -> None:
        if agent not in self._free:
            self._free[agent] = is_free(self._state, self._policy, self._actor, agent)
        if self._free[agent] and not self._policy.of(change.path).writers:
            return
        message = out_of_role(self._state, self._policy, self._actor, agent, change.path)
        if message:
            hint = f"leave it to an agent whose role may; a person may give roles: git coord role {agent} <role>"
            self._add("role", agent, message, step, change, hints=(hint,))

    def _judge_guard(self, agent: str, step: CommitChange, change: Change) -> None:
        tier = self._policy.of(change.path).guard
        if tier and self._policy.of(change.path).private:
            # No request for approval: that would publish the rule.
            stage = WARN if tier == WARN else self._policy.stage("guard")
            hint = "ask the person whose machine this is"
            self._add("private", agent, _PRIVATE, step, change, stage=stage, hints=(hint,))
        elif tier == BLOCK:
            hint = "if it must change, ask a person who may change the policy"
            self._add("guard", agent, "it is blocked: nobody changes it", step, change, hints=(hint,))
        elif tier == WARN:
            self._add("guard", agent, "it is guarded: take care", step, change, stage=WARN)
        elif tier == CHECKPOINT:
            self._require_approval("guard", agent, step, change, "a person must approve this change")
        if self._policy.present and is_own_file(self._keys[change.path]) and self._changes_policy(step, change):
            message = "it guards the project: a person must approve this change"
            self._require_approval("own-files", agent, step, change, message)

    def _changes_policy(self, step: CommitChange, change: Change) -> bool:
        if not is_attributes_file(change.path):
            return True
        return self._history.changes_attributes(step.parents[0] if step.parents else "", change.path, change.blob)

    def _require_approval(self, rule: str, agent: str, step: CommitChange, change: Change, message: str) -> None:
        """Passes with an unused approval of exactly this content, and for a change by a person who may approve."""
        if may_approve(self._actor, self._policy.approvers) and agent == self._actor.agent:
            return
        from gitcoord.gates.model import approvals  # few changes need one

        asks = True
        for record in approvals(self._state):
            if record.content != tuple(change) and not self._is_renumbered(record, step, change):
                continue
            if record.state == "approved" and not self._is_used_up(step, change, record):
                return
            if record.state == "denied":
                asks = False
                reason = f": {printable(record.reason)}" if record.reason else ""
                message = f"{record.by} denied this change{reason}"
        # A request of this person could not be answered by it: the one who asked may not.
        by_setting = self._actor.by_setting and agent == self._actor.agent
        hint = "a person changes it at a terminal" if by_setting else "git coord approvals"
        self._add(rule, agent, message, step, change, hints=(hint,), asks=asks and not by_setting)

    def _is_renumbered(self, record: Approval, step: CommitChange, change: Change) -> bool:
        """Is this the approved content under another number, or does the file of the approval go where one with another number has its content? So a landing
        gives files their numbers."""
        if not (self._policy.in_turn and self._policy.renumbers):
            return False
        from gitcoord.effects.sequences import differ_in_number  # only where a landing gives numbers

        if change.blob:
            same = (record.mode, record.blob) == (change.mode, change.blob)
            return same and differ_in_number(record.path, change.path)
        others = [other for other in step.changes if differ_in_number(other.path, change.path)]
        return record.path == change.path and any(record.content[1:] == tuple(other)[1:] for other in others)

    def _is_used_up(self, step: CommitChange, change: Change, record: Approval) -> bool:
        """Return whether, since the request, the history below the change has had this content and then replaced it."""
        return any(self._history.left_again(at, *change, record.bases) for at in step.parents)


class _Claims:
    """The claims on a path and on the directories above it."""

    def __init__(self, state: State, keys: dict[str, str]) -> None:
        self._state = state
        self._keys = keys
        self._at: dict[str, list[Claim]] | None = None
        self._above: dict[str, list[Claim]] = {}  # by directory: there are far fewer of them than paths
        if len(keys) > FEW:
            self._at = {}
            for file, record in state.below("claims/path").items():
                claim = Claim.from_record(record, file)
                self._at.setdefault(key_of(state, Item("path", claim.path)), []).append(claim)
        else:
            state.prefetch(("leaves", claim_dir("path", at)) for key in keys.values() for at in (*ancestors(key), key))

    def over(self, path: str) -> list[Claim]:
        key = self._keys[path]
        if self._at is None:
            found = (self._state.leaves(claim_dir("path", above)) for above in (*ancestors(key), key))
            return [Claim.from_record(record, file) for leaves in found for file, record in leaves.items()]
        directory = key.rpartition("/")[0]
        if directory not in self._above:
            self._above[directory] = [claim for above in ancestors(key) for claim in self._at.get(above, ())]
        return [*self._above[directory], *self._at.get(key, ())]


def _holder_words(claim: dict[str, object]) -> str:
    return f"{claim['agent']} holds it" + (f" ({claim['mode']})" if claim["mode"] != WRITE else "")


def conflict_words(files: list[str]) -> str:
    """For the hint of a merge: that it conflicts, and in which files."""
    return f", which conflicts in {listed(files)}" if files else ""


def hint_of_disowning(path: str) -> str:
    return f"or, if that work was abandoned: git claim disown {path_word(path)} --reason '...'"


def path_word(path: str) -> str:
    """A path for a hint, quoted so that neither a shell nor `git claim` takes it for an option, a resource or a pattern."""
    if not {"*", "?", "["}.isdisjoint(path):
        return shell_word(f":(literal){path}")
    return shell_word(f"./{path}" if path[0] in ":@-" else path)


def is_family(holder: str, agent: str) -> bool:
    """Return whether one is the other, or its subagent. A hook cannot see which subagent acts."""
    return holder == agent or agent.startswith(holder + ".") or holder.startswith(agent + ".")

"""Judging what an agent's tool is about to do in one work tree, by the same judge as git's hooks.

Unlike a commit, a write has no content yet: what depends on it (a person's approval, whether attributes change) is strictest at the
commit. Unlike a git hook the guard sees which subagent acts, so sibling subagents conflict.
"""

from __future__ import annotations

from gitcoord.base.errors import Refused
from gitcoord.base.names import ROOT, printable
from gitcoord.claims.model import WRITE, Item, compatible, covers_item, expiry_of_claim, overlapping
from gitcoord.claims.query import files_below, send_due_heartbeat
from gitcoord.gates.git_history import GitHistory
from gitcoord.gates.judge import Change, CommitChange, Verdict, is_family, judge, path_word
from gitcoord.git.files import is_directory
from gitcoord.guard.findings import AUTO, UNKNOWN_CONTENT, Finding, approved, decision_for
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case
from gitcoord.ledger.sessions import Actor, admit_or_none, dead_above
from gitcoord.ledger.snapshot import parts_for, read_snapshot
from gitcoord.policy.cache import lands_here, sync_policy_commit
from gitcoord.policy.model import ENFORCE, MONITOR, Guard, Policy
from gitcoord.policy.reader import Source
from gitcoord.sessions.worktree_notes import left_here
from gitcoord.startup.annotations import Iterable
from gitcoord.validators.tool_event import ALLOW, DENY

_REASON = 200
_NOTES = 3  # shown with one answer; the others with the next


class _UnwrittenHistory(GitHistory):
    """History below a write whose content is not known yet."""

    def changes_attributes(self, parent: str, path: str, blob: str) -> bool:
        return True  # it may


class GuardSession:
    """One look at the ledger and the policy of one repository, for one agent. NotInitialised where there is none."""

    def __init__(
        self, ctx: Context, actor: Actor, writes: list[str], reads: list[str], changed_below: Iterable[str] = ()
    ) -> None:
        """Paths are below the top of the work tree; a directory among `writes` stands for all below it.

        At or below `changed_below` unknown files change, mostly by a git command.
        """
        self.ctx = ctx
        self.actor = actor
        # A write of the whole work tree needs no claim on it; it only must not touch others' uncommitted files.
        self._changed_below = list(dict.fromkeys([*changed_below, *(path for path in writes if path == ROOT)]))
        writes = [path for path in writes if path != ROOT]
        items = [Item("path", path) for path in writes]
        self.snapshot = read_snapshot(ctx, agent=actor.agent, prefetch=parts_for(actor.agent, items[:8]))
        commit = sync_policy_commit(ctx, self.snapshot)
        self.source = Source(ctx, commit, case=folds_case(self.snapshot.state))
        self._directories = {
            path: files_below(ctx, commit, path) for path in writes if is_directory(self._absolute(path))
        }
        single = [path for path in writes if path not in self._directories]
        self._files = list(dict.fromkeys([*single, *(name for names in self._directories.values() for name in names)]))
        self._reads = {path: self._read_as(path) for path in reads} if self.source.says_who_reads else {}
        policy = self.source.policy(dict.fromkeys([*self._files, *self._reads.values()]))
        self.policy: Policy = policy.placed(lambda: lands_here(ctx, self.snapshot, self.source.pairs))
        self.world = ctx.world(self.snapshot)
        self.noted: list[Verdict] = []  # what only warns or is only watched so far
        self._unclaimed: list[str] = []  # free shared paths that `claim_free` takes

    @property
    def guard(self) -> Guard:
        return self.policy.guard

    def _absolute(self, path: str) -> str:
        return self.ctx.repo.worktree if path == ROOT else f"{self.ctx.repo.worktree}/{path}"

    def _read_as(self, path: str) -> str:
        """Attributes match files, so a directory is judged as a new file in it."""
        if not is_directory(self._absolute(path)):
            return path
        return "a-new-file" if path == ROOT else f"{path}/a-new-file"

    def beat(self) -> None:
        """A tool call counts as a heartbeat."""
        send_due_heartbeat(self.ctx, self.snapshot, self.world, self.actor)

    # --- reading

    def reads(self) -> list[Finding]:
        found = []
        for path, name in self._reads.items():
            attributes = self.policy.of(name)
            if attributes.read:
                message = (
                    "its content is not for agents" if attributes.read == DENY else "a person decides who reads it"
                )
                hints: tuple[str, ...] = (f"what decides: git coord policy explain {path_word(path)}",)
                if attributes.private:
                    message, hints = "a private rule of this machine keeps it from agents", ()
                found.append(Finding(attributes.read, message, "read", path, hints))
        return found

    # --- writing

    def writes(self) -> list[Finding]:
        """Findings against the writes; leaves free marked paths to `claim_free` if the policy says so."""
        if not self._files and not self._changed_below:
            return []
        state = self.snapshot.state
        refusal = admit_or_none(state, self.actor, self.world) or dead_above(state, self.world, self.actor)
        if refusal is not None:
            return [Finding(DENY, refusal.message, refusal.code, hints=refusal.hints)]
        findings = self._findings()
        inherited = self._inherit(findings)
        return [*inherited, *self._findings()] if inherited else findings

    def _findings(self) -> list[Finding]:
        verdicts = self._judged()
        unclaimed = [v for v in verdicts if v.rule == "unclaimed" and v.stage == ENFORCE]
        found = [self.finding_of(verdict) for verdict in verdicts if verdict not in unclaimed]
        findings = [finding for finding in found if finding is not None]
        findings += [_held(row) for _, row in self._others(list(self._directories))]
        findings += self._uncommitted_below()
        free = dict.fromkeys(self._directory_of(verdict.path) for verdict in unclaimed)
        if free and self.guard.autoclaim and all(finding.decision != DENY for finding in findings):
            self._unclaimed = list(free)
            return findings
        message = f"it is shared, and '{self.actor.agent}' holds no write claim on it"
        return [*findings, *(Finding(DENY, message, "unclaimed", p, (f"git claim {path_word(p)}",)) for p in free)]

    def _inherit(self, findings: list[Finding]) -> list[Finding]:
        """Go on with what ended sessions left uncommitted in this work tree, where that stands against these writes."""
        holders = {str(claim["agent"]) for finding in findings for claim in finding.held}
        if not holders or not left_here(self.ctx):
            return []
        from gitcoord.sessions.inherit import inherit

        found = inherit(self.ctx, self.actor, holders)
        if found.claims:
            self.snapshot = read_snapshot(self.ctx, agent=self.actor.agent)
            self.world = self.ctx.world(self.snapshot)
            self.noted = []
        return [
            Finding(
                ALLOW,
                f"{holder} has ended and left it uncommitted: it is yours from now on",
                "inherited",
                path,
                (f"look at it: git diff HEAD -- {path_word(path)}",),
            )
            for path, holder in found.sources
        ]

    def _directory_of(self, path: str) -> str:
        """The directory that is written as a whole, for a file below it."""
        return next((whole for whole, names in self._directories.items() if path in names), path)

    def _judged(self) -> list[Verdict]:
        head = self.world.head()
        changes = tuple(Change(path, UNKNOWN_CONTENT, UNKNOWN_CONTENT) for path in self._files)
        steps = [CommitChange("", (head,) if head else (), "", changes)]
        history = _UnwrittenHistory(self.ctx, self.snapshot, set(self._files))
        return judge(self.snapshot.state, self.world, history, self.policy, self.actor, steps)

    def finding_of(self, verdict: Verdict) -> Finding | None:
        """The finding by the stage of its rule; None where that only monitors."""
        if verdict.stage != ENFORCE:
            self.noted.append(verdict)
        if verdict.stage == MONITOR:
            return None
        if verdict.stage != ENFORCE:
            return Finding(ALLOW, verdict.message, verdict.rule, verdict.path, verdict.hints)
        if verdict.asks and approved(self.snapshot.state, verdict.path):
            return None
        return Finding(decision_for(verdict), verdict.message, verdict.rule, verdict.path, verdict.hints, verdict.held)

    def _uncommitted_below(self) -> list[Finding]:
        """Uncommitted changes of other holders in this work tree, which a stash, reset or checkout would destroy."""
        rows = [(path, row) for path, row in self._others(self._changed_below) if row["mode"] == WRITE]
        if not rows:
            return []
        paths = sorted({path for path, _ in rows})
        dirty = self.world.dirty(paths)
        return [_held(row) for path, row in rows if path in dirty]

    def _others(self, paths: list[str]) -> list[tuple[str, dict[str, object]]]:
        """The live claims of others that conflict with writing these paths, each with what of them it covers."""
        state = self.snapshot.state
        found = []
        for path in paths:
            for claim in overlapping(state, Item("path", path)):
                if not compatible(claim.mode, WRITE) and not is_family(claim.agent, self.actor.agent):
                    verdict = expiry_of_claim(state, self.world, claim)
                    narrow = path if covers_item(state, claim, Item("path", path)) else claim.path
                    found += [] if verdict.expired else [(narrow, claim.to_json(verdict.expires_in))]
        return found

    def write_claims_of_others(self) -> list[tuple[str, str]]:
        """Path and holder of each live write claim that is not of this agent's family."""
        return [(path, str(row["agent"])) for path, row in self._others([ROOT]) if row["mode"] == WRITE]

    def claim_free(self, action: str) -> list[Finding]:
        """Claim the free shared paths that `writes` found; gives what stands against that."""
        paths = self._unclaimed
        if not paths:
            return []
        from gitcoord.claims.service import left_by_others, left_words, take
        from gitcoord.claims.take import Take

        reason = AUTO + printable(action)[:_REASON]
        try:
            result = take(self.ctx, Take(self.actor, tuple(Item("path", path) for path in paths), reason=reason))
        except Refused as refused:
            held: list[dict[str, object]] = refused.data.get("held", [])  # type: ignore[assignment]
            return [Finding(DENY, refused.message, refused.code, paths[0], refused.hints, tuple(held))]
        return [Finding(ALLOW, left_words(row), "left", row["path"]) for row in left_by_others(result)]

    def deliver_notes(self) -> list[Finding]:
        """Notes on the written paths that the agent has still to see, put on record as seen. Those on a directory that is written are left
        to `git claim`, since no agent reads them all here."""
        state = self.snapshot.state
        if not self._files or not state.names("notes"):
            return []
        from gitcoord.journal.model import unseen
        from gitcoord.journal.notes import record_seen

        found = unseen(state, self.actor.agent, self._files, self.world.wall)[:_NOTES]
        if found:
            record_seen(self.ctx, self.actor, [note.to_json() for note in found])
        said = [f'{note.agent} left a note: "{" / ".join(note.text.split(chr(10)))}"' for note in found]
        return [Finding(ALLOW, words, "note", note.path) for words, note in zip(said, found)]

    # --- what else there is to do

    def other_work(self) -> str:
        """The next task that could be taken, in a line; '' where none is."""
        from gitcoord.tasks.model import ready, task_record

        for id in ready(self.snapshot.state)[:1]:
            task = task_record(self.snapshot.state, id)
            return f"{id} {printable(task.title)}" if task is not None else ""
        return ""


def _held(claim: dict[str, object]) -> Finding:
    path = str(claim["path"])
    return Finding(DENY, f"{claim['agent']} holds it", "held", path, held=(claim,))

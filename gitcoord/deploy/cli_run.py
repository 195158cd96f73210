"""`git coord deploy`: claim the target, refuse a stale commit, run the command, verify, record, release.

Signals before the command starts release the claim. Later signals go to the command, and this process waits until the outcome is
recorded.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from gitcoord.base.errors import GitcoordError, Refusal, Refused
from gitcoord.base.names import printable
from gitcoord.claims.model import MAX_TTL, Item
from gitcoord.claims.query import overlapping_claims
from gitcoord.claims.service import release, take
from gitcoord.claims.take import Take
from gitcoord.claims.work_facts import usual_remote
from gitcoord.deploy import staleness as app
from gitcoord.deploy.cli import refuse
from gitcoord.deploy.events.deploy import Deploy
from gitcoord.deploy.model import FAILED, INTERRUPTED, NOT_RUN, OK, UNVERIFIED
from gitcoord.deploy.targets import VERIFY_SECONDS, Target, check_target, refusal, resource_of
from gitcoord.git.commands.worktrees import status_original
from gitcoord.git.locks import flock
from gitcoord.git.process import without_grafts
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.world import Resource
from gitcoord.sessions.cli_supervisor import Supervisor, block_signals
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values


def deploy(call: Call, values: Values, words: list[str]) -> int:
    """The exit code of the command; 1 where only the verification failed, or where the deploy was refused."""
    name, *command = words
    ctx, actor = call.ctx, call.actor()
    snapshot = read_snapshot(ctx)
    target, policy = app.target_named(ctx, snapshot, check_target(name))
    commit = app.commit_named(ctx, str(values.get("commit", "")))
    remote = target.remote or usual_remote(ctx, snapshot)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # as Ctrl-C: the claim is released
    deployment = Deployment(call, actor, target, commit)
    lock = _lock_target(call, actor, deployment.item, name)
    try:
        deployment.claim(policy)
        found = app.staleness(ctx, read_snapshot(ctx), target, commit, remote=remote, fetch=True)
        no = refusal(found)
        if no is not None:
            return refuse(call, Refused(no), found)
        _require_finished(call, actor, name, commit, str(found.last.commit) if found.last is not None else "")
        _warn_of_uncommitted(call)
        deployment.run(command, surface=not values.get("no-verify-surface"))
        return deployment.print_outcome()
    finally:
        block_signals()
        deployment.give_back()
        flock.release(lock)


def _require_finished(call: Call, actor: Actor, name: str, commit: str, last: str) -> None:
    """Run the validators of deploys; Refused where one refuses."""
    from gitcoord.gates.validation import project_source, require

    source = project_source(call.ctx)
    policy = source.policy(())
    if policy.validators:
        from gitcoord.gates.validation_changes import ValidationInput, on_deploy

        results = on_deploy(call.ctx, ValidationInput(source, policy, actor, lambda: policy), name, commit, last)
        call.screen.note(*(f"warning: {line}" for line in require(call.ctx, actor, "deploy", results)))


def _lock_target(call: Call, actor: Actor, item: Item, name: str) -> int:
    """Lock the target against a second process of the same agent, which would be granted the claim too."""
    lock = flock.acquire(call.ctx.scratch(f"deploys/{name}"))
    if lock < 0:
        rows: list[Any] = overlapping_claims(call.ctx, actor, item)["claims"]  # type: ignore[assignment]
        held = tuple({key: value for key, value in row.items() if key != "silent"} for row in rows)
        who = f"by {', '.join(sorted({row['agent'] for row in held}))}" if held else "by another process"
        raise Refused(Refusal("held", f"'{name}' is being deployed {who}: nothing was done", held, _WAITING))
    return lock


_WAITING = ("one deploy at a time: the target is free when that claim has gone from git coord status",)


def _warn_of_uncommitted(call: Call) -> None:
    """Warn of uncommitted changes: a commit is recorded, but the command may deploy the work tree."""
    if call.ctx.repo.worktree:
        answer = status_original(without_grafts(call.ctx.repo.env))
        if answer.code or any(not entry.startswith("??") for entry in answer.entries):
            call.screen.note("warning: there are uncommitted changes here; they are no part of what is recorded")


class Deployment:
    """One deploy, from its claim to its record."""

    def __init__(self, call: Call, actor: Actor, target: Target, commit: str) -> None:
        self._call = call
        self._ctx = call.ctx
        self._actor = actor
        self._target = target
        self.item = Item("resource", resource_of(target.name))
        self._holds = False
        self._token = 0
        # The record after an unforeseen error: the deploy began, and its outcome is unknown.
        self._made = Deploy(actor, target.name, commit, INTERRUPTED, NOT_RUN, NOT_RUN, 0)
        self._result: dict[str, Any] = {}
        self._trouble: GitcoordError | OSError | None = None

    def claim(self, policy: Resource) -> None:
        """Claim all units of the resource, so that no two deploys run at once."""
        ttl = 0 if policy.ttl else min(self._target.timeout, MAX_TTL)
        reason = f"deploys {self._made.commit[:12]}"
        command = Take(self._actor, (self.item,), ttl=ttl, reason=reason, units=policy.capacity)
        self._holds = True  # set before the grant, for a signal that comes right after it
        try:
            self._token = int(str(take(self._ctx, command)["token"]))
        except Refused as error:
            self._holds = False
            if error.code == "held":
                error.hints = _WAITING
            raise

    def give_back(self) -> None:
        """Release the claim where nothing was recorded; the record itself releases it."""
        if not self._holds:
            return
        self._holds = False
        try:
            release(self._ctx, self._actor, (self.item,), dirty=True)
        except Refused:
            pass  # it was lost meanwhile, or never granted
        except (GitcoordError, OSError) as error:
            self._call.screen.note(f"warning: @{self.item.name} stays claimed until its ttl: {printable(str(error))}")

    def run(self, command: list[str], *, surface: bool) -> None:
        """Run the command and the verification, then record. Nothing is recorded if the command cannot be started."""
        supervisor = Supervisor(self._call, self._actor)
        env = {
            **os.environ,
            "GITCOORD_DEPLOY_TARGET": self._target.name,
            "GITCOORD_DEPLOY_COMMIT": self._made.commit,
        }
        json = self._call.screen.json
        supervisor.start(command, env, to_stderr=json)
        try:
            code = supervisor.watch()
            outcome = OK if not self._target.verify else UNVERIFIED
            if code:
                outcome = INTERRUPTED if supervisor.stopped_by or supervisor.killed else FAILED
            self._made = self._made._replace(code=code, outcome=outcome)
            if surface and not code and self._target.verify and not supervisor.killed:
                supervisor.stopped_by = 0
                supervisor.start(["sh", "-c", self._target.verify], env, to_stderr=json)
                self._verified(supervisor)
        finally:
            self._record()

    def _verified(self, supervisor: Supervisor) -> None:
        seconds = self._target.timeout or VERIFY_SECONDS
        code = supervisor.watch(seconds)
        if supervisor.late:
            supervisor.warn(f"the verification took longer than {seconds} seconds and was ended")
            code = code or 124  # as timeout(1) says it
        stopped = code and (supervisor.stopped_by or supervisor.killed)
        outcome = INTERRUPTED if stopped else UNVERIFIED if code else OK
        self._made = self._made._replace(verify_code=code, outcome=outcome)

    def _record(self) -> None:
        try:
            self._result = app.record(self._ctx, self._made._replace(token=self._token))
            self._holds = False
        except (GitcoordError, OSError) as error:
            self._trouble = error

    def print_outcome(self) -> int:
        """Print the outcome; gives the exit code."""
        made, screen = self._made, self._call.screen
        code = made.code or (1 if made.outcome != OK and made.verify_code != NOT_RUN else 0)
        if self._trouble is not None:
            code = code or getattr(self._trouble, "exit_code", 4)
        held = bool(self._result.get("held"))
        row: dict[str, object] = {
            key: getattr(made, key) for key in ("target", "commit", "outcome", "code", "verify_code")
        }
        row |= {"token": self._token, "seq": self._result.get("seq", 0), "held": held}
        if "lost" in self._result:
            row["lost"] = self._result["lost"]
        screen.answer(row, ok=not code)
        if code:
            screen.note(f"error: {self._words()}")
        else:
            screen.say(self._words())
        if self._trouble is not None:
            screen.note(f"error: this deploy is not on record: {printable(str(self._trouble))}")
        elif not held:
            self._tell_loss()
        return code

    def _words(self) -> str:
        made = self._made
        what = f"{made.commit[:12]} to '{made.target}'"
        if made.code:
            return f"deploying {what} {made.outcome}: the command ended with {made.code}"
        if made.verify_code not in (0, NOT_RUN):
            return f"deployed {what}, but the verification failed: it ended with {made.verify_code}"
        return f"deployed {what}" + (", not verified" if made.verify_code == NOT_RUN else ", verified")

    def _tell_loss(self) -> None:
        lost: list[Any] = self._result.get("lost", [])
        by = [row["by"] for row in lost if row["path"] == f"@{self.item.name}"]
        to = f" to {by[0]}" if by else ""
        self._call.screen.note(f"warning: the claim on @{self.item.name} was lost{to} while the command ran")
        self._call.screen.hint("another may have deployed meanwhile: git coord log --kind deploy")

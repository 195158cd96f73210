"""`git coord land <branch>`: from the queue to its answer."""

from __future__ import annotations

from gitcoord.base.durations import format_duration, parse_duration
from gitcoord.base.errors import (
    GitcoordError,
    Refused,
    TimedOut,
    UsageError,
    raise_if,
    refused,
)
from gitcoord.base.names import TIP, check_word, printable, shell_word
from gitcoord.claims.cli_wait import take_in_time
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.model import Item
from gitcoord.git.commands.remotes import push_large_files
from gitcoord.git.files import exists
from gitcoord.git.host import isatty
from gitcoord.landing import resolve
from gitcoord.landing.bring import Order, bring, contains
from gitcoord.landing.cli_answer import remove_tree, say_finished, say_landed, say_lost, say_refused
from gitcoord.landing.cli_check import CheckFailed, Checks, require_few
from gitcoord.landing.cli_order import renumber_of
from gitcoord.landing.events.landing import require_task
from gitcoord.landing.model import REBASE, OpenLanding, lane_items, lasts_for_conflict
from gitcoord.landing.releases import tell_intents
from gitcoord.landing.service import AskFirst, Conflict, Landing, NotAllowed
from gitcoord.landing.trunk import RECENT, Trunk
from gitcoord.landing.turn import Turn, changed_paths, needed
from gitcoord.landing.unfinished import note_failure
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.policy.roles import may_not_land
from gitcoord.sessions.admission import halted
from gitcoord.tasks.model import task_record
from gitcoord.terminal.call import Call, words_of
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row

_WAIT = 30 * 60
_TRIES = 3


def require_said(values: Values, name: str) -> None:
    """UsageError for an option whose value is empty, as of a variable that is not set: it would be left out in silence."""
    said = values.get(name, [])
    if not all(word.strip() for word in (said if isinstance(said, list) else [str(said)])):
        raise UsageError(f"--{name} has an empty value", hints=("git coord land -h",))


def task_of(values: Values) -> str:
    """The task that the words name, '' for none."""
    require_said(values, "task")
    return check_word(str(values["task"]), "task") if values.get("task") else ""


def checks_of(values: Values) -> list[str]:
    """The commands that are run beside those of the policy."""
    require_said(values, "check")
    return [word for word in words_of(values, "check") if word.strip()]


def wait_of(values: Values) -> int:
    """For how many seconds it waits for its turn."""
    wait = str(values.get("wait", ""))
    return _WAIT if not wait else 0 if wait == "0" else parse_duration(wait)


def require_allowed(ctx: Context, actor: Actor, trunk: Trunk, task: str) -> None:
    """Before it waits and runs a check for nothing: may this agent land, by the policy of trunk as it is there, and complete that task?"""
    state = read_snapshot(ctx).state
    raise_if(may_not_land(state, actor, trunk.source().policy(())))
    if task:
        require_task(state, task, actor.agent)


class Command:
    """One `git coord land`, from the queue to its answer."""

    def __init__(self, call: Call, values: Values, actor: Actor, trunk: Trunk, order: Order, again: int = 0) -> None:
        """`again`: how often it goes on after a conflict."""
        self._call = call
        self._ctx = call.ctx
        self._actor = actor
        self._trunk = trunk
        self._order = order
        self._added = checks_of(values)
        self._task = task_of(values)
        self._wait = wait_of(values)
        self._done = bool(values.get("done"))
        self._again = again
        self._turn = Turn(self._ctx, actor, order.trunk, order.branch, again)
        self._renumber = renumber_of(call, order, trunk)
        self._rules = trunk.rules()
        require_few(self._rules, self._added)  # before anything is waited for
        self._landing = Landing(self._ctx, actor, trunk, order, self._task, self._renumber)

    @property
    def pushed(self) -> bool:
        """Has a landing that did not ask before begun its push?"""
        return self._landing.pushed

    def run(self, *, asked: bool = True) -> int:
        """The exit code. The turn is given back unless it is kept for a conflict. `asked`: trunk and ledger were fetched. Where they were not, an
        error before `pushed` is no answer: nothing was done, and the landing is begun anew once they are."""
        try:
            return self._run(asked=asked)
        except KeyboardInterrupt as interrupt:
            if not self._landing.landed:
                raise
            what = f"{printable(self._order.branch)} has landed on {printable(self._order.trunk)}"
            raise KeyboardInterrupt(f"{what}; what its record lacks, the next landing completes") from interrupt

    def _run(self, *, asked: bool) -> int:
        keeps = not asked  # it has no turn yet
        if asked and self._task and (landed := self._landed()):
            resolve.forget(self._ctx, self._actor.agent)
            return say_finished(self._call, self._order, landed, done=self._done)
        require_allowed(self._ctx, self._actor, self._trunk, self._task)
        try:
            items = self._needed()
            at_once = not (items or self._rules.checks or self._added)
            if not (asked or at_once):
                raise AskFirst("what it needs is asked for by what the remote has")
            self._send_large_files()
            with Checks(self._call, self._trunk, self._added, self._turn) as checks:
                result = self._at_once(items, checks, asked=asked) if at_once else self._in_turn(items, checks)
        except Conflict as conflict:
            if asked:
                keeps = self._stands(conflict)
                if "stands" not in conflict.data:
                    self._failed(conflict)
                if not self._call.screen.json:
                    self._deliver(self._notes(str(conflict.data["trunk"])))
            raise
        except CheckFailed as error:
            self._failed(error)
            raise
        except NotAllowed as error:
            if not asked:
                raise
            self._failed(error)
            return say_refused(self._call, self._actor, error)
        finally:
            if not keeps or self.pushed:
                self._turn.give_back()
        return self._say(result)

    def _landed(self) -> list[OpenLanding]:
        """This very landing, by a process that died before its answer, if trunk has it."""
        from gitcoord.landing.records import landed_with

        found, order = landed_with(self._ctx, self._task, self._actor.agent), self._order
        if found is None or (found.branch, found.tip) != (order.branch, order.tip):
            return []
        return [found] if contains(self._ctx, self._trunk.known(), found.new) else []

    def _at_once(self, items: tuple[Item, ...], checks: Checks, *, asked: bool) -> Row:
        """With the turn taken by the first event; in the queue where somebody else lands, or trunk has other rules by then."""

        def check(old: str, _: str) -> list[Row]:
            if self._trunk.rules(old) != self._rules:
                raise refused("rules", f"{self._order.trunk} has other rules for landings by now")
            return []

        try:
            return self._landing.run(check, takes=True, age=RECENT, asked=asked)
        except Refused as error:
            if not asked or error.code not in ("held", "kept", "not-first", "rules"):
                raise
        return self._in_turn(items, checks)

    def _in_turn(self, items: tuple[Item, ...], checks: Checks) -> Row:
        raise_if(halted(read_snapshot(self._ctx).state))  # before it waits
        if self._trunk.rules().lanes == 1:
            self._turn.ask(items, self._ask)
            self._follow_numbers()
            return self._landing.run(checks.run, age=RECENT)
        from gitcoord.landing.lanes import paths_of

        for left in reversed(range(_TRIES)):
            self._turn.ask((*items, *lane_items(paths_of(self._landing))), self._ask)
            try:
                self._follow_numbers()
                return self._in_lane(checks)
            except Refused as error:
                if error.code != "lane" or not left:
                    raise
                self._turn.give_back()  # trunk has moved, and it changes other paths now
        raise AssertionError

    def _in_lane(self, checks: Checks) -> Row:
        from gitcoord.claims.cli_sleep import Bell
        from gitcoord.landing.lanes import Lane

        bell = Bell(f"{self._ctx.repo.common_dir}/{TIP.rpartition('/')[0]}")
        lane = Lane(self._landing, self._turn, bell.wait)
        checks.tick = lane.tick
        try:
            lane.run(checks.run)
            return self._landing.run(checks.run, age=RECENT)
        finally:
            bell.close()
            lane.leave()

    def _send_large_files(self) -> None:
        """gitcoord's own pushes run no hooks, so not that of LFS, which sends its objects. Before the turn: it may take long."""
        ctx, order = self._ctx, self._order
        if not ctx.remote or not (ctx.settings.get("lfs.storage") or exists(f"{ctx.repo.common_dir}/lfs")):
            return
        sent = push_large_files(ctx.repo.env, ctx.remote, f"refs/heads/{order.branch}", order.tip)
        if sent.code:
            words = printable(sent.complaint.strip().replace("\n", "; ")[:500])
            raise refused(
                "lfs",
                f"the files of LFS could not be sent to '{ctx.remote}': {words}: nothing has landed",
                f"git lfs push {shell_word(ctx.remote)} {shell_word(order.branch)}",
            )

    def _notes(self, old: str) -> list[Row]:
        """The notes on what the branch changes that its agent has still to see: who works on a branch may have claimed nothing."""
        from gitcoord.journal.notes import unseen_on

        return unseen_on(self._ctx, self._actor.agent, changed_paths(self._ctx, old, self._order.tip))

    def _deliver(self, notes: list[Row]) -> None:
        if notes:
            from gitcoord.journal.cli_note import deliver

            deliver(self._call, notes)

    def _failed(self, error: GitcoordError) -> None:
        """Note it for the overview, until this agent lands or the branch changes."""
        order = self._order
        output = str(error.data.get("output", ""))
        note_failure(self._ctx, self._actor.agent, order.branch, order.tip, error.message, output)

    def _needed(self) -> tuple[Item, ...]:
        """The paths for which this landing needs claims. Where there are none, and no check, it takes the turn with its first event."""
        ctx, snapshot = self._ctx, read_snapshot(self._ctx)
        old = self._trunk.known()
        new = bring(ctx, self._order, old).new if self._renumber is not None else ""
        more = self._renumber.plan(old, new).values() if self._renumber is not None and new else ()
        items = needed(ctx, snapshot, self._trunk.source(), self._actor.agent, self._order, old, more)
        if items and (new or bring(ctx, self._order, old, lands=False).new) == old:
            return ()  # trunk has it already: there is nothing to wait for
        return (*items, *(self._renumber.items(old, new) if self._renumber is not None and new else ()))

    def _follow_numbers(self) -> None:
        """Claim the names that files get by now: others may have landed while this one waited."""
        if self._renumber is not None:
            self._trunk.fetch()
            more = [item for item in self._needed() if item not in self._turn.items]
            if more:
                self._turn.add(more)

    def _ask(self, command: Wait) -> Row:
        if self._wait:
            long, again = format_duration(self._wait), format_duration(2 * self._wait)
            ends = "Ctrl-C" if isatty(2) else "ending this command"
            note = f"you wait up to {long} for your turn on '{printable(self._order.trunk)}'; {ends} leaves the queue; who is in it: git coord land --list"
            try:
                return take_in_time(self._call, command, self._wait, eager=True, note=note)
            except TimedOut as error:
                branch = shell_word(self._order.branch)
                error.hints = (f"nothing has landed; to wait longer: git coord land {branch} --wait {again}",)
                raise
        from gitcoord.claims.service import take

        try:
            return take(self._ctx, command.take)
        except Refused as error:
            again = f"git coord land {shell_word(self._order.branch)} --wait 30m"
            error.hints = error.hints or (f"nothing has landed; to wait for it: {again}",)
            raise

    def _stands(self, conflict: Conflict) -> bool:
        """Let the conflict stand in the agent's own work tree, and keep the turn; gives whether it is kept."""
        ctx = self._ctx
        files: list[str] = conflict.data["files"]  # type: ignore[assignment]
        conflict.message += f" in {printable(', '.join(files[:5]))}" + (
            f" and {len(files) - 5} more" if len(files) > 5 else ""
        )
        old = str(conflict.data["trunk"])
        if not resolve.begin(ctx, self._order, old):
            verb = "rebase" if self._order.how == "rebase" else "merge"
            conflict.hints = (
                f"in a work tree with {printable(self._order.branch)} and nothing uncommitted: git {verb} {old[:12]}",
                f"then: git coord land {shell_word(self._order.branch)}",
            )
            return False
        record: Row = {"branch": self._order.branch, "how": self._order.how, "checks": self._added, "task": self._task}
        record |= {"tree": ctx.repo.worktree, "wait": self._wait, "again": self._again, "done": self._done}
        resolve.keep(ctx, self._actor.agent, record)
        conflict.data["stands"] = ctx.repo.worktree
        seconds = self._trunk.rules().resolve
        try:
            long = format_duration(seconds)
            self._turn.extend(
                lasts_for_conflict(seconds), f"resolves the conflicts of {self._order.branch}"[:180] + f", up to {long}"
            )
            kept = f" within {long}, then others may land first"
        except Refused:
            kept = ""  # another one has the turn: `--continue` waits for the next
        numbers = ("leave new files their numbers: they get those of trunk when they land",) if self._renumber else ()
        conflict.hints = (
            f"resolve it here{kept}: edit, git add",
            *numbers,
            f"then, in place of git {'rebase --continue' if self._order.how == REBASE else 'commit'}: git coord land --continue"
            + (f" (it completes {self._task})" if self._task else ""),
            "or give up: git coord land --abort",
        )
        return bool(kept)

    def _say(self, result: Row) -> int:
        landing = self._landing
        resolve.forget(self._ctx, self._actor.agent)
        for outcome in landing.warnings:
            from gitcoord.gates.cli_verdicts import report

            report(self._ctx, self._call.screen, "land", self._actor, outcome)
        words = f"changed on {self._order.trunk}: {self._order.branch} has landed ({str(result['new'])[:12]})"
        task = task_record(read_snapshot(self._ctx).state, self._task) if self._task else None
        more = {
            "task_state": task.state if task is not None else "",
            "removed": remove_tree(self._call, self._order) if self._done else "",
            "told": tell_intents(self._ctx, self._actor, landing.intents, words),
            "renumbered": self._renumber.rows() if self._renumber is not None and not result["already"] else [],
        }
        more["notes"] = notes = self._notes(str(result["old"])) if not result["already"] else []
        say_lost(self._call, self._order, landing.lost)
        say_landed(self._call, self._order, {**result, **{key: value for key, value in more.items() if value}})
        self._deliver(notes)
        return 0

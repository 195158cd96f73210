"""`git coord land <branch>`: from the queue to its answer."""

from __future__ import annotations

from gitcoord.base.durations import format_duration, parse_duration
from gitcoord.base.errors import (
    CouldNotJudge,
    GitcoordError,
    Refused,
    TimedOut,
    Unreachable,
    UsageError,
    raise_if,
    refused,
)
from gitcoord.base.names import TIP, check_word, listed, printable, shell_word
from gitcoord.claims.cli_wait import take_in_time
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.model import Item
from gitcoord.deploy.staleness import fetch_sync
from gitcoord.git.commands.refs import symbolic_ref
from gitcoord.git.commands.remotes import push_large_files
from gitcoord.git.commands.worktrees import status_in
from gitcoord.git.files import exists
from gitcoord.landing import resolve
from gitcoord.landing.bring import Order, bring
from gitcoord.landing.cli_check import CheckFailed, Checks
from gitcoord.landing.model import WAYS, OpenLanding, Rules, lane_items, rules_of
from gitcoord.landing.releases import released, tell_intents
from gitcoord.landing.service import RECENT, Conflict, Landing, NotAllowed, Trunk, source_of
from gitcoord.landing.turn import Turn, needed
from gitcoord.landing.unfinished import note_failure
from gitcoord.ledger.context import Context
from gitcoord.ledger.remote.fetch import fetch
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.policy.roles import may_not_land
from gitcoord.terminal.call import Call, words_of
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.landing.cli_renumber import Renumber

_WAIT = 30 * 60
_TRIES = 3


def order_of(call: Call, values: Values, words: list[str], actor: Actor, trunk: Trunk) -> tuple[Order, Rules]:
    """The branch to land, and the settings of trunk's policy."""
    ctx = call.ctx
    rules = rules_of(source_of(ctx, read_snapshot(ctx), trunk.fetch()).pairs)
    branch = (
        words[0].removeprefix("refs/heads/") if words else symbolic_ref(ctx.repo.env).text.removeprefix("refs/heads/")
    )
    if not branch:
        raise UsageError("no branch is checked out", hints=("name the branch: git coord land <branch>",))
    if branch == trunk.name and not ctx.remote:
        raise UsageError(f"'{printable(branch)}' is trunk itself", hints=("name the branch: git coord land <branch>",))
    chosen = [way for way in WAYS if values.get(way)]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other")
    agent = "" if actor.person else actor.agent
    how = chosen[0] if chosen else rules.how
    return Order(branch, _tip_of(ctx, branch), trunk.name, how, agent, rules.keeps_signatures), rules


def _tip_of(ctx: Context, branch: str) -> str:
    """The tip of the branch: of this clone, else as it is at the remote now; a fresh clone of a job has no branches but trunk."""
    found = ctx.local.target(f"refs/heads/{branch}")
    if found:
        return found
    if not ctx.remote or set(branch) & set(" :*?[~^\\"):
        raise UsageError(f"there is no branch '{printable(branch)}' here", hints=("git branch --list",))
    try:
        fetch_sync(ctx, ctx.remote, branch)
    except Unreachable:
        raise
    except CouldNotJudge:
        words = f"there is no branch '{printable(branch)}' here, and none at '{ctx.remote}'"
        raise UsageError(words, hints=("git branch --list --all",)) from None
    return ctx.local.target(f"refs/remotes/{ctx.remote}/{branch}") or ""


def renumber_of(call: Call, rules: Rules, order: Order, trunk: Trunk) -> Renumber | None:
    """The numbers that files get by this landing; None where the policy gives none."""
    if not rules.renumber:
        return None
    from gitcoord.landing.cli_renumber import Renumber

    return Renumber(call, rules, order, source_of(call.ctx, read_snapshot(call.ctx), trunk.known()).pairs)


class Command:
    """One `git coord land`, from the queue to its answer."""

    def __init__(
        self, call: Call, values: Values, actor: Actor, trunk: Trunk, order: Order, rules: Rules, again: int = 0
    ) -> None:
        self._call = call
        self._ctx = call.ctx
        self._actor = actor
        self._trunk = trunk
        self._order = order
        self._rules = rules
        self._added = [word for word in words_of(values, "check") if word.strip()]
        self._task = check_word(str(values["task"]), "task") if values.get("task") else ""
        wait = str(values.get("wait", ""))
        self._wait = _WAIT if not wait else 0 if wait == "0" else parse_duration(wait)
        self._done = bool(values.get("done"))
        self._again = again  # how often it goes on after a conflict
        self._turn = Turn(self._ctx, actor, order.trunk, order.branch, again)
        self._renumber = renumber_of(call, rules, order, trunk)

    def run(self) -> int:
        """The exit code. The turn is given back unless it is kept for a conflict."""
        keeps = False
        snapshot = read_snapshot(self._ctx)
        raise_if(may_not_land(snapshot.state, self._actor, self._ctx.world(snapshot)))  # before it waits
        self._send_large_files()
        try:
            items = self._needed()
            if items and self._ctx.remote:
                fetch(self._ctx)  # what others hold by now; where nothing is needed, the landing's own push finds out
                items = self._needed()
            at_once = not (items or self._rules.checks or self._added)
            landing = Landing(self._ctx, self._actor, self._trunk, self._order, self._task, self._renumber)
            with Checks(self._call, self._rules, self._added, self._turn) as checks:
                try:
                    result = self._at_once(landing, checks) if at_once else self._in_turn(landing, items, checks)
                except Refused as error:
                    if not at_once or error.code not in ("held", "kept", "not-first"):
                        raise
                    result = self._in_turn(landing, items, checks)  # somebody else lands: in the queue
        except Conflict as conflict:
            keeps = self._stands(conflict)
            if "stands" not in conflict.data:
                self._failed(conflict)
            raise
        except CheckFailed as error:
            self._failed(error)
            raise
        except NotAllowed as error:
            self._failed(error)
            return _say_refused(self._call, self._actor, error)
        finally:
            if not keeps:
                self._turn.give_back()
        resolve.forget(self._ctx, self._actor.agent)
        return self._say(result, landing)

    def _at_once(self, landing: Landing, checks: Checks) -> Row:
        return landing.run(checks.run, takes=True, age=RECENT)

    def _in_turn(self, landing: Landing, items: tuple[Item, ...], checks: Checks) -> Row:
        if self._rules.lanes == 1:
            self._turn.ask(items, self._ask)
            self._follow_numbers()
            return landing.run(checks.run)
        from gitcoord.landing.lanes import paths_of

        for left in reversed(range(_TRIES)):
            self._turn.ask((*items, *lane_items(paths_of(landing))), self._ask)
            try:
                self._follow_numbers()
                return self._in_lane(landing, checks)
            except Refused as error:
                if error.code != "lane" or not left:
                    raise
                self._turn.give_back()  # trunk has moved, and it changes other paths now
        raise AssertionError

    def _in_lane(self, landing: Landing, checks: Checks) -> Row:
        from gitcoord.claims.cli_sleep import Bell
        from gitcoord.landing.lanes import Lane

        bell = Bell(f"{self._ctx.repo.common_dir}/{TIP.rpartition('/')[0]}")
        lane = Lane(landing, self._turn, bell.wait)
        checks.tick = lane.tick
        try:
            lane.run(checks.run)
            return landing.run(checks.run, age=RECENT)
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
                f"the files of LFS could not be sent to '{ctx.remote}': {words}",
                f"git lfs push {shell_word(ctx.remote)} {shell_word(order.branch)}",
                "nothing has landed",
            )

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
        items = needed(ctx, snapshot, source_of(ctx, snapshot, old), self._actor.agent, self._order, old, more)
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
            note = f"in the queue for '{printable(self._order.trunk)}', up to {long}; Ctrl-C leaves it; who lands and waits: git coord land --list"
            try:
                return take_in_time(self._call, command, self._wait, eager=True, note=note)
            except TimedOut as error:
                branch = shell_word(self._order.branch)
                error.hints = (f"nothing has landed; to wait longer: git coord land {branch} --wait {again}",)
                raise
        from gitcoord.claims.service import take

        return take(self._ctx, command.take)

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
        record = {"branch": self._order.branch, "how": self._order.how, "checks": self._added, "task": self._task}
        resolve.keep(
            ctx, self._actor.agent, {**record, "tree": ctx.repo.worktree, "wait": self._wait, "again": self._again}
        )
        conflict.data["stands"] = ctx.repo.worktree
        try:
            self._turn.extend(self._rules.resolve)
            kept = f", within {format_duration(self._rules.resolve)} while the turn is yours"
        except Refused:
            kept = ""  # another one has the turn: `--continue` waits for the next
        conflict.hints = (
            f"resolve it here{kept}: edit, git add",
            "then: git coord land --continue",
            "or give up: git coord land --abort",
        )
        return bool(kept)

    def _say(self, result: Row, landing: Landing) -> int:
        screen = self._call.screen
        for outcome in landing.warnings:
            from gitcoord.gates.cli_verdicts import report

            report(self._ctx, screen, "land", self._actor, outcome)
        removed = self._remove_tree() if self._done else ""
        words = f"changed on {self._order.trunk}: {self._order.branch} has landed ({str(result['new'])[:12]})"
        told = tell_intents(self._ctx, self._actor, landing.intents, words)
        names = self._renumber.rows() if self._renumber is not None and not result["already"] else []
        more = {"removed": removed, "told": told, "renumbered": names}
        screen.answer({**result, **{key: value for key, value in more.items() if value}})
        what = f"{printable(self._order.branch)} on {printable(self._order.trunk)}"
        if result["already"]:
            screen.say(f"nothing to land: {what} already: {str(result['new'])[:12]}")
            screen.note(*_uncommitted_lines(self._ctx))
        else:
            how = "fast-forward" if result["new"] == result["tip"] else result["how"]
            screen.say(f"landed {what}: {str(result['new'])[:12]} ({how})")
        screen.say(*(f"{printable(row['from'])} is {printable(row['to'])} there" for row in names))
        if result["released"]:
            screen.say(f"released {printable(', '.join(result['released'][:10]))}")
        if told:
            screen.say(f"told {', '.join(told)}, who had the intent to write there")
        if self._task:
            screen.say(f"{self._task} is done")
        for path in result.get("left", ()):
            screen.note(
                f"note: {printable(path)} has uncommitted changes in files that landed: it stays at the old commit, detached"
            )
            screen.hint(f"there, when they are committed or put away: git switch {shell_word(self._order.trunk)}")
        if removed:
            screen.say(f"removed {printable(removed)}")
        return 0

    def _remove_tree(self) -> str:
        """`--done`: remove the branch's work tree; gives its path, '' where it stays. It has landed all the same."""
        from gitcoord.worktrees.add import all_trees
        from gitcoord.worktrees.cli_done import remove

        trees = [t for t in all_trees(self._ctx) if t.ref == f"refs/heads/{self._order.branch}" and t.name]
        if not trees:
            self._call.screen.note("note: --done: the branch has no work tree of 'git coord worktree add'")
            return ""
        try:
            return str(remove(self._call, trees[0].name)["path"])
        except Refused as error:
            self._call.screen.note(f"note: --done: {error.message}: the work tree stays")
            self._call.screen.hint(f"elsewhere: git coord worktree done {shell_word(trees[0].name)}")
            return ""


def say_finished(call: Call, order: Order, finished: list[OpenLanding]) -> int:
    """This very landing had been interrupted after trunk had moved: it is complete now."""
    row = next(row for row in finished if (row.branch, row.tip) == (order.branch, order.tip))
    freed = released(tuple((each["space"], each["path"], each["agent"]) for each in row.released))
    facts = {key: value for key, value in row._asdict().items() if key not in ("agent", "at")}
    call.screen.answer({**facts, "released": freed, "already": True})
    call.screen.say(f"{printable(order.branch)} on {printable(order.trunk)} already: {row.new[:12]}")
    return 0


def _say_refused(call: Call, actor: Actor, error: NotAllowed) -> int:
    from gitcoord.gates.cli_verdicts import report

    rows = [{**v._asdict(), "held": list(v.held), "hints": list(v.hints)} for v in error.outcome.verdicts]
    call.screen.answer({"error": error.code, "message": error.message, "verdicts": rows}, ok=False)
    return report(call.ctx, call.screen, "land", actor, error.outcome) or 1


def _uncommitted_lines(ctx: Context) -> list[str]:
    """Say that changes here are not committed: whoever asks to land may take them for landed."""
    entries = status_in(ctx.repo.env, ctx.repo.worktree).entries if ctx.repo.worktree else []
    names = [entry[3:] for entry in entries if entry[2:3] == " "]
    if not names:
        return []
    return [
        f"note: not committed, and so not landed: {printable(listed(names))}",
        'hint: git coord commit -m "..." -- <file>...',
    ]

"""`git coord land`: bring a branch onto trunk, in a turn of the queue."""

from __future__ import annotations

import signal

from gitcoord.base.durations import format_duration, parse_duration
from gitcoord.base.errors import GitcoordError, Refused, UsageError, raise_if, refused
from gitcoord.base.names import check_word, listed, printable, shell_word
from gitcoord.claims.cli_wait import take_in_time
from gitcoord.claims.events.wait import Wait
from gitcoord.claims.model import Item
from gitcoord.git.commands.refs import rev_parse_commit, symbolic_ref
from gitcoord.git.commands.worktrees import status_in
from gitcoord.git.locks import flock
from gitcoord.landing import resolve
from gitcoord.landing.bring import Order, bring
from gitcoord.landing.cli_check import CheckFailed, Checks
from gitcoord.landing.cli_finish import note_finished
from gitcoord.landing.model import WAYS, OpenLanding, Rules, rules_of
from gitcoord.landing.releases import released, tell_intents
from gitcoord.landing.service import Conflict, Landing, NotAllowed, Trunk, finish_open, listing, source_of
from gitcoord.landing.turn import Turn, needed
from gitcoord.landing.unfinished import note_failure
from gitcoord.ledger.context import Context
from gitcoord.ledger.remote.fetch import fetch
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.policy.roles import may_not_land
from gitcoord.terminal.call import Call, words_of
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, ago

_WAIT = 30 * 60


def land(call: Call, values: Values, words: list[str]) -> int:
    """0: it has landed. 1: a conflict, a failed check or a rule. 3: waited as long as asked."""
    modes = [name for name in ("list", "continue", "abort", "dry-run") if values.get(name)]
    if len(modes) > 1 or (words and modes in (["list"], ["continue"], ["abort"])):
        raise UsageError("--list, --continue, --abort and --dry-run stand alone", hints=("git coord land -h",))
    if values.get("list"):
        return _list(call)
    actor = call.actor()
    trunk = Trunk(call.ctx, read_snapshot(call.ctx))  # NotInitialised before anything is written
    if values.get("dry-run"):
        return _dry_run(call, actor, trunk, *_order(call, values, words, actor, trunk))
    lock = flock.acquire(call.ctx.scratch(f"landing/{actor.agent}.lock"))
    if lock < 0:
        raise refused("landing", f"another process lands under the name of '{actor.agent}'", "git coord land --list")
    # As Ctrl-C: what was begun is given back.
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        if values.get("abort"):
            return _abort(call, actor, trunk)
        finished = finish_open(call.ctx, actor, trunk)
        note_finished(call, finished)
        if values.get("continue"):
            return _continue(call, actor, trunk)
        order, rules = _order(call, values, words, actor, trunk)
        if any((row.agent, row.branch, row.tip) == (actor.agent, order.branch, order.tip) for row in finished):
            return _say_finished(call, order, finished)
        return _Command(call, values, actor, trunk, order, rules).run()
    finally:
        flock.release(lock)
        for number, handler in before.items():
            signal.signal(number, handler)  # for a process that lives on


def _order(call: Call, values: Values, words: list[str], actor: Actor, trunk: Trunk) -> tuple[Order, Rules]:
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
    found = rev_parse_commit(ctx.repo.env, f"refs/heads/{branch}")
    if found.code:
        raise UsageError(f"there is no branch '{printable(branch)}' here", hints=("git branch --list",))
    chosen = [way for way in WAYS if values.get(way)]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other")
    agent = "" if actor.person else actor.agent
    return Order(branch, found.text, trunk.name, chosen[0] if chosen else rules.how, agent), rules


class _Command:
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

    def run(self) -> int:
        """The exit code. The turn is given back unless it is kept for a conflict."""
        keeps = False
        snapshot = read_snapshot(self._ctx)
        raise_if(may_not_land(snapshot.state, self._actor, self._ctx.world(snapshot)))  # before it waits
        try:
            items = self._needed()
            if items and self._ctx.remote:
                fetch(self._ctx)  # what others hold by now; where nothing is needed, the landing's own push finds out
                items = self._needed()
            at_once = not (items or self._rules.checks or self._added)
            if not at_once:
                self._turn.ask(items, self._ask)
            with Checks(self._call, self._rules, self._added, self._turn) as checks:
                landing = Landing(self._ctx, self._actor, self._trunk, self._order, self._task)
                try:
                    result = landing.run(checks.run, takes=at_once)
                except Refused as error:
                    if not at_once or error.code not in ("held", "kept"):
                        raise
                    self._turn.ask(items, self._ask)  # somebody else lands: in the queue
                    result = landing.run(checks.run)
        except Conflict as conflict:
            keeps = self._stands(conflict)
            if not keeps:
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

    def _failed(self, error: GitcoordError) -> None:
        """Note it for the overview, until this agent lands or the branch changes."""
        order = self._order
        output = str(error.data.get("output", ""))
        note_failure(self._ctx, self._actor.agent, order.branch, order.tip, error.message, output)

    def _needed(self) -> tuple[Item, ...]:
        """The paths for which this landing needs claims. Where there are none, and no check, it takes the turn with its first event."""
        ctx, snapshot = self._ctx, read_snapshot(self._ctx)
        old = self._trunk.known()
        return needed(ctx, snapshot, source_of(ctx, snapshot, old), self._actor.agent, self._order, old)

    def _ask(self, command: Wait) -> Row:
        if self._wait:
            return take_in_time(self._call, command, self._wait, eager=True)
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
            from gitcoord.gates.hook import report

            report(self._ctx, screen, "land", self._actor, outcome)
        removed = self._remove_tree() if self._done else ""
        words = f"changed on {self._order.trunk}: {self._order.branch} has landed ({str(result['new'])[:12]})"
        told = tell_intents(self._ctx, self._actor, landing.intents, words)
        more = {"removed": removed, "told": told}
        screen.answer({**result, **{key: value for key, value in more.items() if value}})
        what = f"{printable(self._order.branch)} on {printable(self._order.trunk)}"
        if result["already"]:
            screen.say(f"nothing to land: {what} already: {str(result['new'])[:12]}")
            screen.note(*_uncommitted_lines(self._ctx))
        else:
            how = "fast-forward" if result["new"] == result["tip"] else result["how"]
            screen.say(f"landed {what}: {str(result['new'])[:12]} ({how})")
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


def _say_finished(call: Call, order: Order, finished: list[OpenLanding]) -> int:
    """This very landing had been interrupted after trunk had moved: it is complete now."""
    row = next(row for row in finished if (row.branch, row.tip) == (order.branch, order.tip))
    freed = released(tuple((each["space"], each["path"], each["agent"]) for each in row.released))
    facts = {key: value for key, value in row._asdict().items() if key not in ("agent", "at")}
    call.screen.answer({**facts, "released": freed, "already": True})
    call.screen.say(f"{printable(order.branch)} on {printable(order.trunk)} already: {row.new[:12]}")
    return 0


def _say_refused(call: Call, actor: Actor, error: NotAllowed) -> int:
    from gitcoord.gates.hook import report

    rows = [{**v._asdict(), "held": list(v.held), "hints": list(v.hints)} for v in error.outcome.verdicts]
    call.screen.answer({"error": error.code, "message": error.message, "verdicts": rows}, ok=False)
    return report(call.ctx, call.screen, "land", actor, error.outcome) or 1


# --- going on and giving up ------------------------------------------------------------------------------------------


def _continue(call: Call, actor: Actor, trunk: Trunk) -> int:
    record = resolve.kept(call.ctx, actor.agent)
    if call.ctx.repo.worktree != record["tree"]:
        raise UsageError("the conflict stands in another work tree", hints=(f"cd {shell_word(str(record['tree']))}",))
    resolve.finish(call.ctx)
    values: Values = {"check": list(record["checks"]), str(record["how"]): True}
    if record["task"]:
        values["task"] = str(record["task"])
    values["wait"] = f"{record['wait']}s" if record["wait"] else "0"
    order, rules = _order(call, values, [str(record["branch"])], actor, trunk)
    return _Command(call, values, actor, trunk, order, rules, int(record["again"]) + 1).run()


def _abort(call: Call, actor: Actor, trunk: Trunk) -> int:
    """Give the landing up: out of the work tree, out of the queue, the turn back."""
    ctx = call.ctx
    try:
        record = resolve.kept(ctx, actor.agent)
    except UsageError:
        record = None
    if record is not None and ctx.repo.worktree == record["tree"]:
        resolve.abort(ctx)
    turn = Turn(ctx, actor, trunk.name, "")
    turn.items = turn.all_items()
    had = turn.give_back() or record is not None
    resolve.forget(ctx, actor.agent)
    call.screen.answer({"aborted": had})
    call.screen.say("given up: the branch is as it was" if had else "there was no landing of yours to give up")
    return 0


# --- looking ---------------------------------------------------------------------------------------------------------


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


def _dry_run(call: Call, actor: Actor, trunk: Trunk, order: Order, rules: Rules) -> int:
    ctx, snapshot = call.ctx, read_snapshot(call.ctx)
    old = trunk.known()
    brought = bring(ctx, order, old)
    items = needed(ctx, snapshot, source_of(ctx, snapshot, old), actor.agent, order, old)
    result: Row = {
        "branch": order.branch, "trunk": order.trunk, "tip": order.tip, "old": old, "how": order.how,
        "conflicts": list(brought.conflicts), "claims": [item.name for item in items], "checks": list(rules.checks),
        "already": brought.new == old, "dry_run": True,
    }  # fmt: skip
    call.screen.answer(result, ok=not brought.conflicts)
    what = f"{printable(order.branch)} on {printable(order.trunk)} ({order.how})"
    if brought.conflicts:
        call.screen.say(f"would not land {what}: conflicts in {printable(', '.join(brought.conflicts[:10]))}")
        return 1
    call.screen.say(f"{what}: already there" if result["already"] else f"would land {what}")
    call.screen.say(*(f"would claim {printable(item.name)}" for item in items))
    call.screen.say(*(f"would run: {printable(command)}" for command in rules.checks))
    return 0


def _list(call: Call) -> int:
    result = call.show(lambda: listing(call.ctx), trunk="", landing=[], open=[], waiting=[])
    if result is None:
        return 0
    rows = [["now", str(row["agent"]), printable(str(row["reason"])), ago(row["since"])] for row in result["landing"]]
    rows += [
        [str(row["position"]), str(row["agent"]), printable(str(row["reason"])), ago(row["since"])]
        for row in result["waiting"]
    ]
    call.screen.say(*call.screen.table(rows, ["bold", "cyan", "", "dim"]))
    if not rows and not call.screen.json:
        call.screen.note("nobody lands, and nobody waits to")
    return 0

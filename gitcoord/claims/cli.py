"""The verbs of `git claim` that change something."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.base.errors import GitcoordError, Refused, TimedOut, UsageError
from gitcoord.base.names import check_word, printable, quote, shell_word
from gitcoord.claims import pathspec as paths
from gitcoord.claims.model import MAX_TTL, Item
from gitcoord.ledger.format import format_record
from gitcoord.ledger.snapshot import parts_for
from gitcoord.sessions.identity import conversation_actor, in_tool
from gitcoord.terminal.call import Call, duration, nonce, number, text, words_of
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.claims.take import Take  # only `take` loads it
    from gitcoord.ledger.sessions import Actor

_WHY_LOST = {
    "expire": "it expired without a heartbeat",
    "lapse": "no heartbeat came, or your session had ended",
    "takeover": "a person took it over",
    "accept": "your handoff was accepted",
    "inherit": "your session had ended, and a later one in the same work tree goes on with it",
}


def take(call: Call, values: Values, words: list[str]) -> int:
    if "ticket" in values and not values.get("leave"):
        from gitcoord.claims.cli_wait import promote

        return promote(call, values, words)
    if not words and not values.get("leave"):
        raise _no_path(values)
    actor = call.actor()
    items, new = _items(call, values, words)
    if values.get("leave"):
        from gitcoord.claims.cli_wait import leave_queue

        return leave_queue(call, actor, items, number(values, "ticket"), text(values, "message"))
    command = _command(values, actor, items)
    if values.get("dry-run"):
        return _would(call, command)
    if values.get("queue") or "priority" in values or "wait" in values:
        _check_waiting(values)
    try:
        result = _take(call, command, values)
    except (Refused, TimedOut) as refused:
        if refused.code in ("held", "kept", "timeout") and not refused.hints:
            refused.hints = _hints_to_wait(values, words, refused)
        raise
    if "waiting" in result:
        from gitcoord.claims.cli_wait import say_queued

        return say_queued(call, result, words)
    lacks = [] if result["renewed"] or call.screen.quiet else lacked_lines(call, result["claims"])
    call.screen.answer({**result, **({"new": new} if new else {}), **({"lacks": bare(lacks)} if lacks else {})})
    _say_taken(call, result, new, lacks)
    return 0


def _no_path(values: Values) -> UsageError:
    """No path was named, or the path was taken for the time to wait."""
    waits = str(values.get("wait", ""))
    if waits and not waits[:1].isdecimal():
        return UsageError(
            "--wait takes a time, and then the paths", hints=(f"git claim --wait 10m {shell_word(waits)}",)
        )
    return UsageError("no path was named", hints=("who holds what: git claim list",))


def _command(values: Values, actor: Actor, items: tuple[Item, ...]) -> Take:
    from gitcoord.claims.take import Take

    task = str(values.get("task", ""))
    if task:
        check_word(task, "task")
    units = number(values, "units")
    if "units" in values and not units:
        raise UsageError("units are counted from 1")
    return Take(
        actor=actor,
        items=items,
        mode=str(values.get("mode", "write")),
        ttl=duration(values, "ttl", MAX_TTL),
        expected=duration(values, "expect"),
        reason=text(values, "message"),
        task=task,
        units=units,
        nonce=nonce(values),
    )


def _say_taken(call: Call, result: Row, new: list[str], lacks: list[str]) -> None:
    """The claims, and what the holder should know: a guard that does not run, inherited work, an old copy, notes, losses."""
    _say_unguarded(call)
    claims: list[Row] = result["claims"]
    for claim in claims:
        verb = "still hold" if result["renewed"] else "claimed"
        mode = "" if claim["mode"] == "write" else f" ({claim['mode']})"
        name = call.screen.paint(printable(str(claim["path"])), "bold") + " (new)" * (claim["path"] in new)
        ttl = format_duration(int(str(claim["ttl_seconds"])))
        call.screen.say(f"{verb} {name}{mode}, token {claim['token']}, expires after {ttl} without activity")
    call.screen.say(*_covered_lines(result))
    call.screen.say(*inherited_lines(result.get("inherited", [])))
    _say_left_uncommitted(call, result)
    say_lacked(call, lacks)
    if new and not (result["renewed"] or call.screen.json or call.screen.quiet):
        from gitcoord.claims.cli_new import like_others

        call.screen.note(*like_others(call, new))
    resources = [str(claim["path"]) for claim in claims if claim["kind"] == "resource"]
    if resources and not (result["renewed"] or call.screen.json or call.screen.quiet):
        from gitcoord.claims.cli_new import like_declared

        call.screen.note(*like_declared(call, resources))
    if "notes" in result:
        from gitcoord.journal.cli_note import deliver

        deliver(call, result["notes"])
    _lost(call, result)


def _covered_lines(result: Row) -> list[str]:
    """Lines about paths that a subagent may write under its parent's claim."""
    return [
        f"{printable(str(row['path']))} needs no claim of yours: {row['agent']}, whose subagent you are, holds {printable(str(row['held']))}"
        for row in result.get("covered", [])
    ]


def _say_unguarded(call: Call) -> None:
    """Warn where an agent tool's guard does not run. Outside of agent tools nothing is loaded or read."""
    if in_tool(call.environ) or conversation_actor(call.environ) is not None:
        from gitcoord.sessions.unguarded import unguarded_lines

        call.screen.note(*unguarded_lines(call.ctx, call.environ))


def lacked_lines(call: Call, rows: list[Row]) -> list[str]:
    """Lines about work on these paths that this copy lacks: of trunk, or released elsewhere; with the commands that bring it."""
    lines: list[str] = []
    if not _is_at_trunk(call):
        from gitcoord.claims.cli_trunk import old_copy_lines

        lines = old_copy_lines(call.ctx, rows)
    if not lines and call.ctx.snapshot is not None and call.ctx.snapshot.state.names("lineage"):
        from gitcoord.claims.cli_trunk import lacked_lines as released_lines

        lines = released_lines(call.ctx, rows)
    return lines


def bare(lines: list[str]) -> list[str]:
    """These lines as JSON has them."""
    return [line.removeprefix("note: ").removeprefix("hint: ") for line in lines]


def say_lacked(call: Call, lines: list[str]) -> None:
    hints = tuple(line.removeprefix("hint: ") for line in lines if line.startswith("hint: "))
    first = [hint for hint in call.screen.fit(hints) if hint not in hints] if hints else []
    call.screen.note(*(f"hint: {hint}" for hint in first), *lines)


def _say_left(call: Call, released: list[Row], agent: str) -> None:
    """Say which work has not landed, and which was not released."""
    if not _is_at_trunk(call):
        from gitcoord.claims.cli_trunk import not_landed_lines

        call.screen.note(*not_landed_lines(call.ctx, released))
    if any(not row["files"] for row in released):
        from gitcoord.claims.cli_trunk import handed_lines

        call.screen.note(*handed_lines(call.ctx, released, agent))


def _is_at_trunk(call: Call) -> bool:
    """Is what is checked out the tip of trunk, here and as last seen at the remote? Then nothing has to be said about trunk."""
    ctx = call.ctx
    if ctx.snapshot is None:
        return True
    name, remote = format_record(ctx.snapshot.state).sync, ctx.remote or "origin"
    tips = {ctx.local.target(ref) for ref in ("HEAD", f"refs/heads/{name}", f"refs/remotes/{remote}/{name}")}
    return len(tips - {"", None}) < 2


def _say_left_uncommitted(call: Call, result: Row) -> None:
    """Warn of uncommitted changes here by holders whose claims this one ended as expired."""
    if "left" in result:
        from gitcoord.claims.service import left_by_others, left_words

        call.screen.note(*(f"note: {left_words(row)}" for row in left_by_others(result)))


def inherited_lines(rows: list[Row]) -> list[str]:
    """Lines about uncommitted work of ended sessions here that the reader inherits."""
    by_holder: dict[str, list[str]] = {}
    for row in rows:
        by_holder.setdefault(str(row["from"]), []).append(str(row["path"]))
    return [
        f"  {holder} has ended and left uncommitted work here, which is yours from now on; look at it: "
        f"git diff HEAD -- {' '.join(shell_word(path) for path in paths)}"
        for holder, paths in by_holder.items()
    ]


def _hints_to_wait(values: Values, words: list[str], refused: GitcoordError) -> tuple[str, ...]:
    """The command to wait, or to wait again; after a wait also what else there is to do."""
    literal = bool(words_of(values, "--")) or any(word[:1] == "-" for word in words)
    again = "-- " * literal + " ".join(map(shell_word, words))
    if isinstance(refused, Refused):
        return (
            f"wait for it: git claim --wait 10m {again}",
            f"or take a place in the queue and go on: git claim --queue {again}",
        )
    return (
        f"wait longer: git claim --wait 30m {again}",
        f"or take a place in the queue and do something else meanwhile: git claim --queue {again}",
    )


def _items(call: Call, values: Values, words: list[str]) -> tuple[tuple[Item, ...], list[str]]:
    """The items, and the new paths among them. Words before `--` are checked for mistakes."""
    repo = call.ctx.repo
    items = paths.items(repo, words)
    new = paths.missing(repo, items)
    if new:
        from gitcoord.claims.cli_new import new_paths

        new = new_paths(call, new, words[: len(words) - len(words_of(values, "--"))])
    return items, new


def _check_waiting(values: Values) -> None:
    if values.get("queue") and "wait" in values:
        raise UsageError("--queue does not wait: say either --wait or --queue")
    if "priority" in values and not (values.get("queue") or "wait" in values):
        raise UsageError("--priority is for --wait and --queue")
    if values.get("nonce"):
        raise UsageError("--nonce goes without --wait and --queue: the same request again keeps its place")


def _take(call: Call, command: Take, values: Values) -> Row:
    wait = duration(values, "wait")
    if wait or values.get("queue"):
        from gitcoord.claims.cli_wait import take_in_time, wait_command
        from gitcoord.claims.service import wait as app_wait

        waiting = wait_command(command, str(values.get("priority", "normal")), blocking=bool(wait))
        return take_in_time(call, waiting, wait) if wait else app_wait(call.ctx, waiting)
    from gitcoord.claims.service import take as app_take

    return app_take(call.ctx, command)


def _would(call: Call, command: Take) -> int:
    """Show what would be granted, and change nothing."""
    from gitcoord.claims.service import would_take

    result = would_take(call.ctx, command)
    call.screen.answer({**result, "dry_run": True})
    call.screen.say(*(f"would claim {printable(str(claim['path']))}" for claim in result["claims"]))  # type: ignore[attr-defined]
    call.screen.say(*_covered_lines(result))
    return 0


def release(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.claims.service import release as app_release

    if not words and not values.get("all"):
        raise UsageError("name the paths, or say --all", hints=("what you hold: git claim list --mine",))
    if words and values.get("all"):
        raise UsageError("--all goes without paths")
    commit = _commit(call, str(values["commit"])) if "commit" in values else ""
    items = paths.items(call.ctx.repo, words)
    actor = call.actor()
    result = app_release(call.ctx, actor, items, commit=commit, dirty=bool(values.get("dirty")))
    released: list[Row] = result["released"]  # type: ignore[assignment]
    if call.screen.quiet and not call.screen.json:
        return 0  # git is not asked about work of which nothing is said
    add_makers(call, released)
    call.screen.answer(result)
    tell_released(call, result, released, actor.agent)
    if not released:
        call.screen.say("you hold nothing")
    _lost(call, result)
    return 0


def tell_released(call: Call, result: Row, released: list[Row], agent: str) -> None:
    """A line for each claim: the commit that carries its work, and how many files. Then what has not landed, and who gets what is free."""
    for row in released:
        files: list[object] = row["files"]
        makers: list[str] = row.get("made_by", [])
        carried = f"with {str(row['commit'])[:12]}, {counted(len(files), 'file')}" if files else "no change"
        if makers and agent not in makers:
            carried += f", no change of yours: made by {', '.join(makers)}"
        name = call.screen.paint(printable(str(row["path"])), "bold")
        call.screen.say(f"released {name} ({carried})")
    if not call.screen.json:
        _say_left(call, released, agent)
    if "granted_to" in result:
        from gitcoord.claims.cli_trunk import granted_lines

        call.screen.say(*granted_lines(result))


def add_makers(call: Call, rows: list[Row]) -> None:
    """Add `made_by` to each row: the agents that made its commits. It is empty where a commit names no agent."""
    work: dict[tuple[str, str], list[str]] = {}
    names = [[name for name, *_ in row["files"]] for row in rows]
    for row, files in zip(rows, names):
        row["made_by"] = []
        if files:
            work.setdefault((str(row["base"]), str(row["commit"])), []).extend(files)
    if not work:
        return
    from gitcoord.gates.history import parse_log
    from gitcoord.git.commands.objects import log_steps

    for (base, commit), files in work.items():
        since = [f"^{base}"] if base else []
        log = log_steps(call.ctx.repo.env, [commit, *since], [f":(top,literal){name}" for name in files])
        steps = parse_log([log.out]) if not log.code else []
        for row, changed in zip(rows, names):
            if (row["base"], row["commit"]) == (base, commit):
                made = {step.agent for step in steps if any(change.path in changed for change in step.changes)}
                row["made_by"] = sorted(made) if "" not in made else []


def _commit(call: Call, word: str) -> str:
    from gitcoord.git.commands.refs import rev_parse_commit

    found = rev_parse_commit(call.ctx.repo.env, word)
    if found.code:
        raise UsageError(f"{quote(word[:80])} is not a commit here")
    return found.text


def renew(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.claims.renew import Renew

    command = Renew(call.actor(), paths.items(call.ctx.repo, words), duration(values, "ttl", MAX_TTL))
    result = call.do(command, parts_for(command.actor.agent, command.items))
    call.screen.say("renewed")
    _lost(call, result)
    return 0


def disown(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.claims.events.disown import Disown

    item = paths.one(call.ctx.repo, words[0])
    if item.space != "path":
        raise UsageError("resources have no lineage")
    result = call.do(Disown(call.actor(), item.name, text(values, "reason")))
    call.screen.say(f"disowned {len(result['disowned'])} release(s) below {printable(item.name)}")
    return 0


def takeover(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.claims.service import takeover as app_takeover

    item = paths.one(call.ctx.repo, words[0])
    result = app_takeover(
        call.ctx, call.person("take a claim over"), item, number(values, "token"), text(values, "reason")
    )
    call.screen.answer(result)
    call.screen.say(f"took over {printable(words[0])} from {result['taken_from']['agent']}, token {result['token']}")  # type: ignore[index]
    return 0


def _lost(call: Call, result: Row) -> None:
    """Tell the holder what it lost since its last event. The next command does not repeat it."""
    for row in result.get("lost", ()):
        call.screen.note(f"note: {lost_line(row)}")


def lost_line(row: Row) -> str:
    """A line that says who took a claim, and why."""
    cause = str(row["cause"])
    why = _WHY_LOST.get(cause, cause)
    return f"you lost {printable(str(row['path']))} (token {row['token']}) to {row['by']}: {why}"

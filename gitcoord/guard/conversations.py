"""Starts and ends of an agent tool's conversations, turns and subagents.

A tool may hold an agent back and let it go on. That is used once for each piece of work that would be left unfinished, never again
for the same one, so an agent that will not or cannot deal with it still comes to its end.
"""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import printable
from gitcoord.claims.model import Item
from gitcoord.gates.judge import path_word
from gitcoord.git.files import append_file, read_file, write_file
from gitcoord.git.process import Environ
from gitcoord.guard.effects import actor_of
from gitcoord.guard.findings import AUTO
from gitcoord.guard.hold_files import end_holds, note_presence
from gitcoord.handoff.model import unfinished
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.sessions.identity import forget_heard, forget_tool, note_tool, of_event
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.validators.tool_event import DENY, START, STOP, SUBAGENT_STOP, Answer, ToolEvent

_SHOWN = 8
_HANDOFF = (
    'git handoff new --state "what works now" --changed "what you changed" --remaining "what is left" '
    '--next "what to do first"'
)
_KEPT = 500  # pieces of work that were asked about
_TELLS_TWICE = "copilot"  # it runs the hooks of Claude Code's settings beside its own
_TWICE_SECONDS = 5
_NEWS = 8  # lines of the queue's news at a start
_NAMES_SUBAGENTS = "codex"  # the environment of a subagent's shell tells whose it is


def on_start(ctx: Context, env: Environ, event: ToolEvent) -> Answer:
    """Open the session, record the tool's process as this agent, and answer with the text of `git coord start`."""
    from gitcoord.sessions.cli_brief import MOST, brief_lines
    from gitcoord.views.briefing import begin

    actor = actor_of(ctx, env, event)
    note_presence(ctx, actor.agent, here=True)
    if event.phase == START and not event.subagent:
        earlier = note_tool(ctx, event.tool, actor)
        _end_earlier(ctx, earlier if event.cleared else None)
    try:
        result = begin(ctx, actor)
    except GitcoordError as error:
        # A start changes no file, so the error is only shown.
        hints = [f"hint: {printable(hint)}" for hint in error.hints]
        return Answer(context="\n".join([f"gitcoord: {printable(error.message)}", *hints]))
    if event.tool == _TELLS_TWICE and not _first_told(ctx, actor.agent):
        return Answer()
    news = _queue_news(ctx, actor) if ctx.may_have_news() or ctx.may_have_warnings() else []
    lines = brief_lines(result, MOST - len(news))
    lines = lines if "offline" in result else lines[1:]  # the agent need not know that this is a session
    who = f"gitcoord coordinates who writes here. You are '{actor.agent}'"
    who += f", and what '{actor.parent}' holds is yours to write too." if actor.parent else "."
    if actor.parent and event.tool != _NAMES_SUBAGENTS:
        who += f" In a shell say so: GITCOORD_AGENT={actor.agent} git claim ..."
    return Answer(context="\n".join([who, *lines, *news]))


def _queue_news(ctx: Context, actor: Actor) -> list[str]:
    from gitcoord.guard.queue_news import queue_news

    lines = queue_news(ctx, actor).splitlines()
    left = len(lines) - _NEWS
    return [*lines[:_NEWS], f"gitcoord: {left} more of the queue: git claim list"] if left > 0 else lines


def brief_for_subagent(ctx: Context, actor: Actor) -> str:
    """The text for a subagent whose tool reports no start of it, and which acts under its parent's name."""
    from gitcoord.sessions.cli_brief import brief_lines
    from gitcoord.views.briefing import begin

    who = f"gitcoord coordinates who writes here. You and the agent that sent you are '{actor.agent}'."
    try:
        return "\n".join([who, *brief_lines(begin(ctx, actor))[1:]])
    except GitcoordError:
        return ""  # it acts as its parent, which was told


def _first_told(ctx: Context, agent: str) -> bool:
    """Whether the agent was not told within the last seconds; records that it is told now."""
    file, now = ctx.scratch(f"guard/told/{agent}"), ctx.host.wall()
    before = read_file(file).decode("ascii", "replace")
    write_file(file, str(now).encode())
    return not (before.isdecimal() and 0 <= now - int(before) < _TWICE_SECONDS)


def _end_earlier(ctx: Context, earlier: Actor | None) -> None:
    """End the conversation that a person cleared, where the tool did not report its end."""
    if earlier is None:
        return
    from gitcoord.sessions.service import stop

    try:
        stop(ctx, earlier, keep=True)
    except GitcoordError:
        pass  # its claims stay until they expire


def on_stop(ctx: Context, env: Environ, event: ToolEvent) -> Answer:
    """A turn releases committed work and is asked once about the rest; a conversation's end closes the session."""
    from gitcoord.sessions.service import stop

    actor = actor_of(ctx, env, event)
    parent = of_event(ctx, env, event.tool, event.conversation)
    if event.phase == SUBAGENT_STOP and actor == parent:
        return Answer()  # it had no name of its own, and its parent goes on
    if not event.final:
        left = _release_clean(ctx, actor)
        if event.subagent:
            left = left.without_files()  # these go to its parent, which is asked at its own end
        words = _validator_findings(ctx, actor, event.conversation) or _unfinished_work(left)
        keys = (*left.keys, *(text for text, _ in words))
        # Both count: where the tool does not tell that it sent the agent back already, the notes do.
        if words and is_new(ctx, actor.agent, keys) and not event.again:
            lines = [f"gitcoord: {text}" for text, _ in words]
            return Answer(DENY, "\n".join([*lines, *(f"hint: {printable(h)}" for _, hints in words for h in hints)]))
        if event.phase == STOP:
            return Answer()
    stop(ctx, actor, keep=True)
    end_holds(ctx, actor.agent, to=actor.parent if event.phase == SUBAGENT_STOP else "")
    if event.phase == SUBAGENT_STOP:
        from gitcoord.sessions.inherit import inherit_from_subagent

        inherit_from_subagent(ctx, parent, actor.agent)
    elif not event.subagent:
        forget_tool(ctx, actor)
        forget_heard(ctx, event.tool, event.conversation)
    return Answer()


class Left(NamedTuple):
    """Unfinished work that an agent leaves behind."""

    dirty: tuple[str, ...]  # claimed paths with uncommitted work
    tasks: tuple[str, ...]
    keys: tuple[str, ...]  # a name for each that is never used again: a claim by its token

    def without_files(self) -> Left:
        return self._replace(dirty=(), keys=tuple(key for key in self.keys if not key.startswith("claim ")))


def _release_clean(ctx: Context, actor: Actor) -> Left:
    """Release clean claims that the guard took; return the unfinished rest."""
    snapshot = read_snapshot(ctx)
    claims, dirty, tasks = unfinished(snapshot.state, ctx.world(snapshot), actor.agent)
    clean = [c.path for c in claims if c.path not in dirty and c.reason.startswith(AUTO)]
    if clean:
        from gitcoord.claims.service import release

        try:
            release(ctx, actor, tuple(Item("path", path) for path in clean))
        except GitcoordError:
            pass  # somebody was quicker, or a remote does not have the work yet: the claims stay until their ttl
    left = [claim for claim in claims if claim.path in dirty]
    keys = [f"claim {claim.token} {claim.path}" for claim in left] + [f"task {task.token}" for task in tasks]
    return Left(tuple(claim.path for claim in left), tuple(task.id for task in tasks), tuple(keys))


def is_new(ctx: Context, agent: str, keys: tuple[str, ...]) -> bool:
    """Tell whether the agent was not asked about one of these before, and record that it is asked now."""
    file = ctx.scratch(f"guard/asked/{agent}")
    known = read_file(file, 1 << 20).decode("utf-8", "surrogateescape").split("\0")
    new = [key for key in keys if key not in known]
    if len(known) > 2 * _KEPT:
        write_file(file, "".join(f"{key}\0" for key in known[-_KEPT:] if key).encode("utf-8", "surrogateescape"))
    if new:
        append_file(file, "".join(f"{key}\0" for key in new).encode("utf-8", "surrogateescape"))
    return bool(new)


def _names(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return printable(", ".join(paths[:_SHOWN])) + more


def _unfinished_work(left: Left) -> list[tuple[str, tuple[str, ...]]]:
    found: list[tuple[str, tuple[str, ...]]] = []
    if left.dirty:
        files = " ".join(path_word(path) for path in left.dirty[:_SHOWN])
        hints: tuple[str, ...] = (
            f'if it is finished and a commit is wanted: git coord commit -m "..." -- {files}',
            f"or let another agent go on with it: {_HANDOFF}",
            "or leave it as it is: it stays yours, and you are not asked again",
        )
        found.append((f"you leave uncommitted work that others cannot go on with: {_names(left.dirty)}", hints))
    if left.tasks:
        tasks = ", ".join(left.tasks)
        hints = (
            f"finish it: git coord task complete {left.tasks[0]}",
            f"or hand it over: {_HANDOFF} --task {left.tasks[0]}",
        )
        found.append((f"you still have {tasks}", hints))
    return found


def _validator_findings(ctx: Context, actor: Actor, conversation: str) -> list[tuple[str, tuple[str, ...]]]:
    """Findings of the project's validators at the end of a turn."""
    from gitcoord.gates.validation import as_line, at_stop, project_source

    results = at_stop(ctx, project_source(ctx), actor)
    unsaid = [(as_line(result), result.hints) for result in results if result.stops]
    if results and not unsaid:
        from gitcoord.gates.approvals import record_once
        from gitcoord.gates.validation_commands import as_verdicts

        record_once(ctx, actor, conversation, as_verdicts(results, actor.agent))
    return unsaid

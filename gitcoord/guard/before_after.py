"""Judges a tool call before it runs and records it afterwards, each file in its own repository."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.base.errors import GitcoordError, NotInitialised, StoreError, UsageError
from gitcoord.base.names import check_path, printable
from gitcoord.git.files import exists, is_directory, modified, read_file
from gitcoord.git.locate import Place, is_set_up, resolve
from gitcoord.guard.effects import FileEffects, absolute, actor_of, checked, effects_of, home_of, tops_of
from gitcoord.guard.findings import Finding, read_decision, settings_at, strictest
from gitcoord.guard.judge import GuardSession
from gitcoord.guard.seen_files import begin, end, holds_exist, note_read
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.policy.model import ENFORCE, Guard
from gitcoord.validators.tool_event import ALLOW, ASK, DENY, Answer, ToolEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.guard.hook import Invocation


_TOLD_BEFORE = (
    "claude",
    "codex",
    "opencode",
    "windsurf",
)  # they take text for the agent before an action that is allowed


def before(invocation: Invocation, event: ToolEvent, home: Place | None) -> Answer:
    """`home` is where the tool works, if gitcoord is set up there."""
    effects = effects_of(invocation, event, home)
    invocation.tops = tops_of(effects, home)
    try:
        sessions = _sessions(invocation, event, effects)
    except StoreError as error:
        if home is None:
            raise
        return _answer_without_ledger(invocation, event, effects, home, error)
    if not sessions:
        return Answer()
    invocation.fail_open = not any(session.guard.closed for session in sessions.values())
    findings = _protected_files(event, effects)
    for top, session in sessions.items():
        invocation.open(top)
        session.beat()
        if home is not None and top == home.top:
            findings += _private_places(invocation, session.guard, effects)
            if event.command:
                from gitcoord.guard.shell_findings import shell_findings

                findings += shell_findings(invocation, event, session.guard, effects, home)
            findings += _run_validators(session, event, effects)
        findings += session.reads()
        if strictest(findings) != DENY:
            findings += session.writes()
        findings += _shared_tree(session, event, effects, home, top)
    # Nothing is claimed or noted in one tree while another may still deny. What a person is asked about may still happen.
    for top, session in sessions.items():
        if strictest(findings) != DENY:
            invocation.open(top)
            findings += session.claim_free(event.action)
    if strictest(findings) != DENY:
        findings += _stale_writes(invocation, sessions, effects)
    if strictest(findings) != DENY:
        for top, session in sessions.items():
            invocation.open(top)
            findings += session.deliver_notes()
        _record_notices(sessions, event)
        findings += _watch(invocation, sessions, event, home)
        if effects.unknown and home is not None and home.top in sessions:
            from gitcoord.guard.shell_findings import said_once

            findings += said_once(invocation, event, sessions[home.top].guard, effects, home)
    answer = _answer(next(iter(sessions.values())), event, findings)
    if event.starts_subagent and home is not None and home.top in sessions and answer.decision == ALLOW:
        from gitcoord.guard.conversations import brief_for_subagent

        return answer.with_words(brief_for_subagent(invocation.open(home.top), sessions[home.top].actor))
    if home is not None and home.top in sessions:
        answer = _with_news(invocation.open(home.top), sessions[home.top].actor, event, answer)
    return answer


def _with_news(ctx: Context, actor: Actor, event: ToolEvent, answer: Answer) -> Answer:
    """The answer, and what this agent is to be told about the queue of claims, about other work and about its own files."""
    tells = answer.decision != ALLOW or event.tool in _TOLD_BEFORE
    if ctx.may_have_news() or ctx.may_have_warnings():
        from gitcoord.guard.queue_news import keep_news, queue_news

        if tells:
            answer = answer.with_words(queue_news(ctx, actor))
        else:
            keep_news(ctx, actor)
    return _with_told(ctx, actor.agent, answer) if tells else answer


def _answer_without_ledger(
    invocation: Invocation, event: ToolEvent, effects: FileEffects, home: Place, error: StoreError
) -> Answer:
    """Reading goes on while the ledger cannot be read. Raises an error for any other call."""
    from gitcoord.guard.without_ledger import READING_GOES_ON, guard_settings, read_findings

    findings = read_findings(invocation, effects, home, error)
    findings += _private_places(invocation, guard_settings(invocation, home), effects)
    if not findings:
        return Answer()
    lines = [f"  {printable(finding.path)}: {finding.message} [{finding.rule}]" for finding in findings]
    return Answer(
        DENY,
        "\n".join(
            [
                f"gitcoord: {printable(event.action or 'this')} is refused, nothing was done",
                *lines,
                f"hint: {READING_GOES_ON}",
            ]
        ),
    )


def _sessions(invocation: Invocation, event: ToolEvent, effects: FileEffects) -> dict[str, GuardSession]:
    """A look at each work tree that has a ledger, by its top."""
    found = {}
    for top in invocation.tops:
        writes = [checked(place) for place in effects.writes if place.top == top and not place.inner]
        # What is moved away could be read under its new name.
        reads = [place.path for place in (*effects.reads, *effects.deleted) if place.top == top and not place.inner]
        changed_below = [place.path for place in effects.changed_below if place.top == top and not place.inner]
        ctx = invocation.open(top)
        try:
            found[top] = GuardSession(ctx, actor_of(ctx, invocation.env, event), writes, reads, changed_below)
        except NotInitialised:
            continue
    return found


def after(invocation: Invocation, event: ToolEvent, home: Place | None) -> Answer:
    """Record the written files as this agent's own changes."""
    if event.failed is None and event.transcript:
        from gitcoord.guard.tools.codex_rollout import with_outcome

        event = with_outcome(event)
    effects = effects_of(invocation, event, home)
    invocation.tops = tops_of(effects, home)
    answer = Answer()
    for top in invocation.tops:
        ctx = invocation.open(top)
        actor = actor_of(ctx, invocation.env, event)
        _record_writes(ctx, actor, event, [p for p in effects.writes if p.top == top and not p.inner])
        if home is not None and top == home.top:
            _count_tool_use(ctx, actor, event)
            answer = _look_afterwards(ctx, actor, event)
            if event.tool not in _TOLD_BEFORE and exists(f"{ctx.repo.scratch}/guard/news/{actor.agent}"):
                from gitcoord.guard.queue_news import kept_news

                answer = answer.with_words(kept_news(ctx, actor.agent))
    return answer


def _record_writes(ctx: Context, actor: Actor, event: ToolEvent, places: list[Place]) -> None:
    written = {}
    for place in places:
        look = end(ctx, actor.agent, absolute(place), failed=bool(event.failed))
        if look is not None and not is_directory(absolute(place)):
            written[place.path] = look
    if written:
        from gitcoord.guard.hold_files import take_holds

        take_holds(ctx, actor.agent, written)


def _watch(
    invocation: Invocation, sessions: dict[str, GuardSession], event: ToolEvent, home: Place | None
) -> list[Finding]:
    """Note others' files before a program runs; nothing is loaded where others neither wrote nor hold anything.

    Where that cannot be done the command runs all the same, and the agent is told.
    """
    if home is None or not event.command or home.top not in sessions:
        return []
    session = sessions[home.top]
    claims = session.write_claims_of_others()
    if claims or holds_exist(invocation.open(home.top)):
        from gitcoord.guard.after_look import watch

        invocation.open(home.top)
        try:
            watch(session, event, claims)
        except (GitcoordError, OSError) as error:
            message = f"files of others cannot be compared after this command: {printable(str(error))}"
            return [Finding(ALLOW, message, "uncommitted")]
    return []


def _look_afterwards(ctx: Context, actor: Actor, event: ToolEvent) -> Answer:
    if not holds_exist(ctx):
        return Answer()
    from gitcoord.guard.after_look import compare

    words = compare(ctx, actor, event) if event.command else ""
    return _with_told(ctx, actor.agent, Answer(context=words))


def _with_told(ctx: Context, agent: str, answer: Answer) -> Answer:
    """The answer, and what this agent is to be told about its own files."""
    if not holds_exist(ctx):
        return answer
    from gitcoord.guard.after_look import take_told

    return answer.with_words(take_told(ctx, agent))


# --- findings that do not depend on claims ------------------------------------------------------------------------------------


def _protected_files(event: ToolEvent, effects: FileEffects) -> list[Finding]:
    """git's own directories, and the settings that make the tool call the guard."""
    found = []
    for place in effects.writes:
        path = absolute(place)
        if place.inner and place.common and is_set_up(place.common):
            found.append(
                Finding(DENY, "it is git's own, which only git changes", "bypass", path, ("use git's own commands",))
            )
        elif any(b"coord guard" in read_file(one, 1 << 20) for one in settings_at(path)):
            hints = ("a person may change it, or take the guard out: git coord teardown",)
            found.append(Finding(DENY, "it holds the settings that call this guard", "bypass", path, hints))
        elif settings_at(path) == [path]:
            from gitcoord.guard.shell_findings import new_settings

            found += new_settings(event, effects, path)
    return found


def _shared_tree(
    session: GuardSession, event: ToolEvent, effects: FileEffects, home: Place | None, top: str
) -> list[Finding]:
    """Findings about other agents in the same work tree; nothing is loaded where none of them wrote there."""
    found: list[Finding] = []
    touches = effects.writes or effects.lost_below or effects.staged or effects.committed
    if touches and holds_exist(session.ctx):
        from gitcoord.guard.shared_tree import uncommitted_work

        found += uncommitted_work(session, effects, top)
    if effects.switched:
        from gitcoord.guard.shared_tree import switched_branch

        found += switched_branch(session, effects, top)
    if home is not None and top == home.top and any(p.top not in ("", top) for p in effects.writes):
        from gitcoord.guard.shared_tree import wrong_copies

        found += wrong_copies(session, event, effects, home)
    return found


def _private_places(invocation: Invocation, guard: Guard, effects: FileEffects) -> list[Finding]:
    """Places that `[guard] denyRead` and `askRead` name: neither read nor written by agents."""
    if not guard.deny_read and not guard.ask_read:
        return []
    home = home_of(invocation)
    home = resolve(home, last=True) if home.startswith("/") else home
    found = []
    for place in dict.fromkeys((*effects.reads, *effects.writes)):
        answer = read_decision(guard, home, absolute(place))
        if answer:
            message = "this place is not for agents" if answer == DENY else "a person decides who looks here"
            hints = ("which places: [guard] denyRead and askRead in .gitcoord/config",)
            found.append(Finding(answer, message, "read", absolute(place), hints))
    return found


def _stale_writes(invocation: Invocation, sessions: dict[str, GuardSession], effects: FileEffects) -> list[Finding]:
    """Writes that would undo another agent's change. Runs last, because it records the writes as begun."""
    found: list[Finding] = []
    begun: list[tuple[GuardSession, str]] = []
    for top, session in sessions.items():
        ctx, agent = invocation.open(top), session.actor.agent
        for place in effects.reads:
            if place.top == top and not is_directory(absolute(place)):
                note_read(ctx, agent, absolute(place))
        for place in effects.writes:
            path = absolute(place)
            if place.top != top or place.inner or is_directory(path):
                continue
            conflict = begin(ctx, agent, path)
            if conflict is not None and conflict.pending:
                message = f"{conflict.agent} is writing it at this moment"
            elif conflict is not None:
                when = format_duration(max(1, ctx.host.wall() - modified(path) // 1_000_000_000))
                message = f"{conflict.agent} changed it since you last read it, {when} ago"
            else:
                begun.append((session, path))
                continue
            found.append(Finding(DENY, message, "changed", place.path, ("read it again, then write",)))
    for session, path in begun if found else ():
        end(session.ctx, session.actor.agent, path, failed=True)  # nothing of it will happen
    return found


# --- validators -------------------------------------------------------------------------------------------------------


def _run_validators(session: GuardSession, event: ToolEvent, effects: FileEffects) -> list[Finding]:
    """Run the project's validators, also on the files of a shell command."""
    from gitcoord.gates.validation import before_tool
    from gitcoord.validators import UNKNOWN, WARN

    whole = event._replace(writes=tuple(map(absolute, effects.writes)), reads=tuple(map(absolute, effects.reads)))
    results = before_tool(session.ctx, session.source, session.actor, whole)
    if results:
        from gitcoord.gates.validation_commands import as_verdicts

        top = session.ctx.repo.worktree
        verdicts = as_verdicts(results, session.actor.agent)
        session.noted += [v._replace(path=_below(top, v.path)) for v in verdicts if v.stage != ENFORCE]
    return [
        Finding(
            DENY if result.stops else ALLOW,
            f"could not be judged: {result.message}" if result.outcome == UNKNOWN else result.message,
            result.validator, result.path, result.hints,
        )
        for result in results
        if result.stops or result.outcome == WARN
    ]  # fmt: skip


def _below(top: str, path: str) -> str:
    """A file's path in the ledger; '' outside of the work tree."""
    try:
        return check_path(path[len(top) + 1 :]) if path.startswith(f"{top}/") else ""
    except UsageError:
        return ""


def _count_tool_use(ctx: Context, actor: Actor, event: ToolEvent) -> None:
    from gitcoord.gates.validation import after_tool, project_source

    try:
        after_tool(ctx, project_source(ctx), actor, event)
    except NotInitialised:
        pass


def _record_notices(sessions: dict[str, GuardSession], event: ToolEvent) -> None:
    """Record the verdicts that only warn or monitor, since the call goes through."""
    for session in sessions.values():
        if session.noted:
            from gitcoord.gates.approvals import record_once

            record_once(session.ctx, session.actor, event.conversation, session.noted)


# --- answer ----------------------------------------------------------------------------------------------------------


def _answer(session: GuardSession, event: ToolEvent, findings: list[Finding]) -> Answer:
    if not findings:
        return Answer()
    from gitcoord.guard.render import words_of

    unique = list({(f.rule, f.path, f.message): f for f in findings}.values())
    decision = strictest(unique)
    if decision == ALLOW:
        return Answer(context=words_of(session, event, unique))
    if decision == ASK:
        from gitcoord.ledger.alerts import alert_of_question

        asked = [finding.path for finding in unique if finding.decision == ASK]
        alert_of_question(session.ctx, session.actor.agent, event.tool, asked)
    return Answer(decision, words_of(session, event, unique))

"""What an agent's tool does to files, before and after: each place judged in the repository in which it lies."""

from __future__ import annotations

from gitcoord.base.errors import NotInitialised, UsageError
from gitcoord.base.names import check_path, covers, printable
from gitcoord.git.files import is_directory, read_file
from gitcoord.git.locate import is_set_up, resolve
from gitcoord.guard.conversations import actor_of
from gitcoord.guard.effects import Deeds, absolute, checked, deeds_of, home_of, tops_of
from gitcoord.guard.findings import Finding, decided, is_setting, secret, settings_below
from gitcoord.guard.judge import GuardSession
from gitcoord.guard.seen_files import begin, end, note_read
from gitcoord.policy.model import ENFORCE
from gitcoord.validators.tool_event import ALLOW, ASK, DENY, Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.locate import Place
    from gitcoord.guard.hook import Stage
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.sessions import Actor
    from gitcoord.policy.model import Guard
    from gitcoord.validators.tool_event import ToolEvent


def before(stage: Stage, event: ToolEvent, home: Place | None) -> Answer:
    """`home` is where the tool works, if gitcoord is set up there."""
    deeds = deeds_of(stage, event, home)
    tops = tops_of(deeds, home)
    if not tops:
        return Answer()
    findings: list[Finding] = []
    judged: list[GuardSession] = []
    for top in tops:
        writes = [checked(place) for place in deeds.writes if place.top == top and not place.inner]
        # What is moved away could be read under its new name.
        reads = [place.path for place in (*deeds.reads, *deeds.gone) if place.top == top and not place.inner]
        around = [place.path for place in deeds.around if place.top == top and not place.inner]
        ctx = stage.open(top)
        actor = actor_of(ctx, stage.env, event)
        try:
            judging = GuardSession(ctx, actor, writes, reads, around)
        except NotInitialised:
            continue
        stage.lenient = not judging.guard.closed
        judging.beat()
        judged.append(judging)
        if home is not None and top == home.top:
            findings += _outside(stage, judging.guard, deeds) + _shell(judging.guard, deeds) + _lost(deeds, home)
            findings += _validated(judging, event, deeds)
        findings += [*judging.reads(), *_inner(deeds)]
        # What is denied for another reason is not claimed either. What a person is asked about may still happen.
        if decided(findings) != DENY:
            findings += judging.writes(event.action)
        if decided(findings) != DENY:
            findings += _seen(ctx, actor, deeds, top)
    if not judged:
        return Answer()
    if decided(findings) != DENY:
        _recorded(judged, event)
    return _told(judged[0], event, findings)


def after(stage: Stage, event: ToolEvent, home: Place | None) -> Answer:
    """What was written is noted as this agent's own doing."""
    if event.failed is None and event.transcript:
        from gitcoord.guard.tools.codex_rollout import told

        event = told(event)
    deeds = deeds_of(stage, event, home)
    for top in tops_of(deeds, home):
        ctx = stage.open(top)
        actor = actor_of(ctx, stage.env, event)
        for place in deeds.writes:
            if place.top == top and not place.inner:
                end(ctx, actor.agent, absolute(place), failed=bool(event.failed))
        if home is not None and top == home.top:
            _counted(ctx, actor, event)
    return Answer()


# --- what is no question of claims ------------------------------------------------------------------------------------


def _inner(deeds: Deeds) -> list[Finding]:
    """git's own directories, and the settings that make the tool call the guard."""
    found = []
    for place in deeds.writes:
        path = absolute(place)
        if place.inner and place.common and is_set_up(place.common):
            found.append(
                Finding(DENY, "it is git's own, which only git changes", "bypass", path, ("use git's own commands",))
            )
        elif any(b"coord guard" in read_file(one, 1 << 20) for one in _settings(path)):
            hints = ("a person may change it, or take the guard out: git coord teardown",)
            found.append(Finding(DENY, "it holds the settings that call this guard", "bypass", path, hints))
    return found


def _settings(path: str) -> list[str]:
    return [path] if is_setting(path) else settings_below(path)


def _lost(deeds: Deeds, home: Place) -> list[Finding]:
    """The repository itself, with all that others have in it."""
    taken = [path for path in map(absolute, deeds.gone) if path == "/" or covers(path, home.common)]
    hints = ("a person may take a repository away",)
    return [Finding(DENY, "the repository lies there, with everybody's work", "bypass", path, hints) for path in taken]


def _outside(stage: Stage, guard: Guard, deeds: Deeds) -> list[Finding]:
    """Places that the settings keep to people: not read, and not written either."""
    if not guard.deny_read and not guard.ask_read:
        return []
    home = home_of(stage)
    home = resolve(home, last=True) if home.startswith("/") else home
    found = []
    for place in dict.fromkeys((*deeds.reads, *deeds.writes)):
        answer = secret(guard, home, absolute(place))
        if answer:
            message = "this place is not for agents" if answer == DENY else "a person decides who looks here"
            hints = ("which places: [guard] denyRead and askRead in .gitcoord/config",)
            found.append(Finding(answer, message, "read", absolute(place), hints))
    return found


def _shell(guard: Guard, deeds: Deeds) -> list[Finding]:
    found = [Finding(DENY, f"this goes around the guard: {printable(what)}", "bypass") for what in deeds.bypasses]
    if deeds.unknown and guard.unknown != ALLOW:
        answer = ALLOW if guard.unknown == "warn" else guard.unknown
        what = printable(deeds.unknown[0])
        found.append(Finding(answer, f"what this command writes cannot be told: {what}", "unknown"))
    return found


def _seen(ctx: Context, actor: Actor, deeds: Deeds, top: str) -> list[Finding]:
    """Last of all, since it notes what is about to happen: nothing else may speak against it any more."""
    for place in deeds.reads:
        if place.top == top and not is_directory(absolute(place)):
            note_read(ctx, actor.agent, absolute(place))
    found, begun = [], []
    for place in deeds.writes:
        path = absolute(place)
        if place.top != top or place.inner or is_directory(path):
            continue
        trouble = begin(ctx, actor.agent, path)
        if trouble is not None and trouble.pending:
            message = f"{trouble.agent} is writing it at this moment: read it again, then write"
        elif trouble is not None:
            message = f"{trouble.agent} changed it since you last read it: read it again, then write"
        else:
            begun.append(path)
            continue
        found.append(Finding(DENY, message, "changed", place.path))
    for path in begun if found else ():
        end(ctx, actor.agent, path, failed=True)  # nothing of it will happen
    return found


# --- validators -------------------------------------------------------------------------------------------------------


def _validated(judging: GuardSession, event: ToolEvent, deeds: Deeds) -> list[Finding]:
    """The project's validators see every file that a shell command names, too."""
    from gitcoord.gates.validation import before_tool
    from gitcoord.validators import UNKNOWN, WARN

    whole = event._replace(writes=tuple(map(absolute, deeds.writes)), reads=tuple(map(absolute, deeds.reads)))
    results = before_tool(judging.ctx, judging.source, judging.actor, whole)
    if results:
        from gitcoord.gates.validation_commands import as_verdicts

        top = judging.ctx.repo.worktree
        told = as_verdicts(results, judging.actor.agent)
        judging.noted += [v._replace(path=_below(top, v.path)) for v in told if v.stage != ENFORCE]
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
    """A file as the ledger names it; '' where it lies outside of the work tree, which is nobody else's business."""
    try:
        return check_path(path[len(top) + 1 :]) if path.startswith(f"{top}/") else ""
    except UsageError:
        return ""


def _counted(ctx: Context, actor: Actor, event: ToolEvent) -> None:
    from gitcoord.gates.validation import after_tool, project_source

    try:
        after_tool(ctx, project_source(ctx), actor, event)
    except NotInitialised:
        pass


def _recorded(judged: list[GuardSession], event: ToolEvent) -> None:
    """It goes through: what speaks against it and does not bind yet is left on record."""
    for judging in judged:
        if judging.noted:
            from gitcoord.gates.notices import record_once

            record_once(judging.ctx, judging.actor, event.conversation, judging.noted)


# --- telling ----------------------------------------------------------------------------------------------------------


def _told(judging: GuardSession, event: ToolEvent, findings: list[Finding]) -> Answer:
    if not findings:
        return Answer()
    from gitcoord.guard.render import words_of

    unique = list({(f.rule, f.path, f.message): f for f in findings}.values())
    decision = decided(unique)
    if decision == ALLOW:
        return Answer(context=words_of(judging, event, unique))
    if decision == ASK:
        from gitcoord.ledger.alerts import alert_of_question

        asked = [finding.path for finding in unique if finding.decision == ASK]
        alert_of_question(judging.ctx, judging.actor.agent, event.tool, asked)
    return Answer(decision, words_of(judging, event, unique))

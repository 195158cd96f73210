"""What an agent's tool does to files, before and after: each place judged in the repository in which it lies."""

import posix

from gitcoord.app.guard import Judging
from gitcoord.app.seen import begin, end, note_read
from gitcoord.core.guarding import Finding, decided, is_setting, secret, settings_below
from gitcoord.core.policy import ENFORCE
from gitcoord.core.toolevents import ALLOW, ASK, DENY, Answer
from gitcoord.errors import CouldNotJudge, NotInitialised, UsageError
from gitcoord.hot.conversations import actor_of
from gitcoord.hot.open import _preload
from gitcoord.names import ROOT, check_path, covers, printable
from gitcoord.record import NamedTuple
from gitcoord.store.files import is_directory, read_file
from gitcoord.store.places import is_set_up, locate, places, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context
    from gitcoord.core.policy import Guard
    from gitcoord.core.sessions import Actor
    from gitcoord.core.shell.effects import Effect
    from gitcoord.core.toolevents import ToolEvent
    from gitcoord.hot.guard import Stage
    from gitcoord.store.places import Place

_MOST_TREES = 8


class Deeds(NamedTuple):
    """What the tool would do, each file once; and of a shell command what cannot be told, and ways around the guard."""

    writes: "tuple[Place, ...]"
    reads: "tuple[Place, ...]"
    around: "tuple[Place, ...]" = ()  # at or below these something changes, it cannot be told what
    bypasses: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    gone: "tuple[Place, ...]" = ()  # those of `writes` that are deleted, or lie elsewhere afterwards


def before(stage: "Stage", event: "ToolEvent", home: "Place | None") -> Answer:
    """`home` is where the tool works, if gitcoord is set up there."""
    deeds = _deeds(stage, event, home)
    tops = _tops(deeds, home)
    if not tops:
        return Answer()
    findings: list[Finding] = []
    judged: list[Judging] = []
    for top in tops:
        writes = [_checked(place) for place in deeds.writes if place.top == top and not place.inner]
        # What is moved away could be read under its new name.
        reads = [place.path for place in (*deeds.reads, *deeds.gone) if place.top == top and not place.inner]
        around = [place.path for place in deeds.around if place.top == top and not place.inner]
        ctx = stage.open(top)
        actor = actor_of(ctx, stage.env, event)
        try:
            judging = Judging(ctx, actor, writes, reads, around)
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
            findings += _seen(ctx, actor, deeds, top, _family(actor, event))
    if not judged:
        return Answer()
    if decided(findings) != DENY:
        _recorded(judged, event)
    return _told(judged[0], event, findings)


def after(stage: "Stage", event: "ToolEvent", home: "Place | None") -> Answer:
    """What was written is noted as this agent's own doing."""
    if event.failed is None and event.transcript:
        from gitcoord.hot.rollout import told

        event = told(event)
    deeds = _deeds(stage, event, home)
    for top in _tops(deeds, home):
        ctx = stage.open(top)
        actor = actor_of(ctx, stage.env, event)
        for place in deeds.writes:
            if place.top == top and not place.inner:
                end(ctx, actor.agent, _absolute(place), failed=bool(event.failed), family=_family(actor, event))
        if home is not None and top == home.top:
            _counted(ctx, actor, event)
    return Answer()


# --- where ------------------------------------------------------------------------------------------------------------


def _deeds(stage: "Stage", event: "ToolEvent", home: "Place | None") -> Deeds:
    """A shell command is looked into only where gitcoord is set up around it: it costs more than all the rest."""
    cwd = posix.getcwd()
    if event.command and home is not None:
        stage.open(home.top)  # first, since its settings say how long all this may take
    writes, reads = _named(stage, event, event.writes, cwd), _named(stage, event, event.reads, cwd)
    around: list[str] = []
    gone: list[str] = []
    bypasses, unknown = [], []
    if event.command and home is not None:
        for effect in _effects(stage, _said(stage, event, home), cwd):
            if effect.kind in ("write", "delete"):
                writes.append(effect.path)
                gone += [effect.path] if effect.kind == "delete" else []
            elif effect.kind == "read":
                reads += [effect.path] if effect.path else []  # which file cannot be told
            elif effect.kind == "bypass":
                bypasses.append(effect.detail or effect.word)
            else:
                unknown.append(effect.detail or effect.word)
                around += [effect.path] if effect.path else []
    where = _places(cwd, writes), _places(cwd, reads), _places(cwd, around)
    # Of a link only itself is gone.
    left = tuple(dict.fromkeys(locate(resolve(path, last=False)) for path in gone))
    return Deeds(*where, tuple(bypasses), tuple(unknown), left)


def _said(stage: "Stage", event: "ToolEvent", home: "Place") -> str:
    """The command without the agent's own name before it, and only in this form.

    Some tools' shells do not tell which subagent's they are. To say another's name, or that of the parent, is a way around.
    """
    if not event.command.startswith("GITCOORD_AGENT="):
        return event.command
    own = f"GITCOORD_AGENT={actor_of(stage.open(home.top), stage.env, event).agent} "
    return event.command[len(own) :] if event.command.startswith(f"{own}git ") else event.command


def _named(stage: "Stage", event: "ToolEvent", words: "tuple[str, ...]", cwd: str) -> "list[str]":
    """The files that the tool itself names. Some take '~' for the home as a shell does: then both could be meant."""
    home = _home(stage)
    found = [*words, *(home + word[1:] for word in words if home and word.startswith("~/"))]
    if event.action.endswith("create_directory"):  # one that is there is left as it is, and all that lies in it
        found = [word for word in found if not is_directory(word if word.startswith("/") else f"{cwd}/{word}")]
    return found


def _home(stage: "Stage") -> str:
    return stage.env.get(b"HOME", b"").decode("utf-8", "surrogateescape")


def _effects(stage: "Stage", command: str, cwd: str) -> "tuple[Effect, ...]":
    """What the command would do. That gitcoord lacks its parser is no property of the command: then it could not judge."""
    _preload("shell")
    from gitcoord.hot.bash import analyse

    effects = analyse(command, cwd=cwd, home=_home(stage))
    if any(effect.kind == "unknown" for effect in effects):
        from gitcoord.hot.treesitter import NoParser, parser

        try:
            parser()
        except NoParser as error:
            raise CouldNotJudge(str(error), hints=("install gitcoord again: it comes with tree-sitter",)) from None
    return effects


def _places(cwd: str, words: "list[str]") -> "tuple[Place, ...]":
    found: dict[Place, None] = {}
    for word in dict.fromkeys(words):
        try:
            found.update(dict.fromkeys(places(cwd, word)))
        except (OSError, ValueError) as error:
            raise CouldNotJudge(f"where '{printable(word[:200])}' leads cannot be told: {error}") from None
    return tuple(found)


def _tops(deeds: Deeds, home: "Place | None") -> "list[str]":
    """The work trees that are concerned and in which gitcoord is set up, the tool's own first."""
    tops = {home.top: None} if home is not None else {}
    known: dict[str, bool] = {}
    for place in (*deeds.writes, *deeds.reads, *deeds.around):
        if place.top and place.top not in tops:
            if place.common not in known:
                known[place.common] = bool(place.common) and is_set_up(place.common)
            if known[place.common]:
                tops[place.top] = None
    if len(tops) > _MOST_TREES:
        raise CouldNotJudge(f"this touches {len(tops)} work trees at once")
    return list(tops)


def _checked(place: "Place") -> str:
    try:
        return check_path(place.path)
    except UsageError as error:
        raise CouldNotJudge(error.message) from None


def _absolute(place: "Place") -> str:
    if not place.top:
        return place.path
    return place.top if place.path == ROOT else f"{place.top.rstrip('/')}/{place.path}"


# --- what is no question of claims ------------------------------------------------------------------------------------


def _inner(deeds: Deeds) -> "list[Finding]":
    """git's own directories, and the settings that make the tool call the guard."""
    found = []
    for place in deeds.writes:
        path = _absolute(place)
        if place.inner and place.common and is_set_up(place.common):
            found.append(
                Finding(DENY, "it is git's own, which only git changes", "bypass", path, ("use git's own commands",))
            )
        elif any(b"coord guard" in read_file(one, 1 << 20) for one in _settings(path)):
            hints = ("a person may change it, or take the guard out: git coord teardown",)
            found.append(Finding(DENY, "it holds the settings that call this guard", "bypass", path, hints))
    return found


def _settings(path: str) -> "list[str]":
    return [path] if is_setting(path) else settings_below(path)


def _lost(deeds: Deeds, home: "Place") -> "list[Finding]":
    """The repository itself, with all that others have in it."""
    taken = [path for path in map(_absolute, deeds.gone) if path == "/" or covers(path, home.common)]
    hints = ("a person may take a repository away",)
    return [Finding(DENY, "the repository lies there, with everybody's work", "bypass", path, hints) for path in taken]


def _outside(stage: "Stage", guard: "Guard", deeds: Deeds) -> "list[Finding]":
    """Places that the settings keep to people: not read, and not written either."""
    if not guard.deny_read and not guard.ask_read:
        return []
    home = _home(stage)
    home = resolve(home, last=True) if home.startswith("/") else home
    found = []
    for place in dict.fromkeys((*deeds.reads, *deeds.writes)):
        answer = secret(guard, home, _absolute(place))
        if answer:
            message = "this place is not for agents" if answer == DENY else "a person decides who looks here"
            hints = ("which places: [guard] denyRead and askRead in .gitcoord/config",)
            found.append(Finding(answer, message, "read", _absolute(place), hints))
    return found


def _shell(guard: "Guard", deeds: Deeds) -> "list[Finding]":
    found = [Finding(DENY, f"this goes around the guard: {printable(what)}", "bypass") for what in deeds.bypasses]
    if deeds.unknown and guard.unknown != ALLOW:
        answer = ALLOW if guard.unknown == "warn" else guard.unknown
        what = printable(deeds.unknown[0])
        found.append(Finding(answer, f"what this command writes cannot be told: {what}", "unknown"))
    return found


def _family(actor: "Actor", event: "ToolEvent") -> str:
    """The agent of whose family only one acts at a time; '' where each of them counts for itself."""
    return (actor.parent or actor.agent) if event.lone else ""


def _seen(ctx: "Context", actor: "Actor", deeds: Deeds, top: str, family: str) -> "list[Finding]":
    """Last of all, since it notes what is about to happen: nothing else may speak against it any more."""
    for place in deeds.reads:
        if place.top == top and not is_directory(_absolute(place)):
            note_read(ctx, actor.agent, _absolute(place))
    found, begun = [], []
    for place in deeds.writes:
        path = _absolute(place)
        if place.top != top or place.inner or is_directory(path):
            continue
        trouble = begin(ctx, actor.agent, path, family)
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


def _validated(judging: Judging, event: "ToolEvent", deeds: Deeds) -> "list[Finding]":
    """The project's validators see every file that a shell command names, too."""
    from gitcoord.app.validators import before_tool
    from gitcoord.core.validators import UNKNOWN, WARN

    whole = event._replace(writes=tuple(map(_absolute, deeds.writes)), reads=tuple(map(_absolute, deeds.reads)))
    results = before_tool(judging.ctx, judging.source, judging.actor, whole)
    if results:
        from gitcoord.app.validators_own import as_verdicts

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


def _counted(ctx: "Context", actor: "Actor", event: "ToolEvent") -> None:
    from gitcoord.app.validators import after_tool, project_source

    try:
        after_tool(ctx, project_source(ctx), actor, event)
    except NotInitialised:
        pass


def _recorded(judged: "list[Judging]", event: "ToolEvent") -> None:
    """It goes through: what speaks against it and does not bind yet is left on record."""
    for judging in judged:
        if judging.noted:
            from gitcoord.app.noticing import record_once

            record_once(judging.ctx, judging.actor, event.conversation, judging.noted)


# --- telling ----------------------------------------------------------------------------------------------------------


def _told(judging: Judging, event: "ToolEvent", findings: "list[Finding]") -> Answer:
    if not findings:
        return Answer()
    from gitcoord.hot.guardwords import words_of

    unique = list({(f.rule, f.path, f.message): f for f in findings}.values())
    decision = decided(unique)
    if decision == ALLOW:
        return Answer(context=words_of(judging, event, unique))
    if decision == ASK:
        from gitcoord.app.alerts import alert_of_question

        asked = [finding.path for finding in unique if finding.decision == ASK]
        alert_of_question(judging.ctx, judging.actor.agent, event.tool, asked)
    return Answer(decision, words_of(judging, event, unique))

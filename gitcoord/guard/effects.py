"""Finds the files that a tool call reads and writes: those that the tool names, and those of its shell command."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, UsageError
from gitcoord.base.names import ROOT, check_path, printable
from gitcoord.git.files import getcwd, is_directory
from gitcoord.git.locate import Place, is_set_up, locate, resolve, write_targets
from gitcoord.git.process import Environ
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.identity import note_heard, of_event, subagent_of
from gitcoord.shell.effects import BUILD, CAREFUL, FAILED, SHARED, FileEffect
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.validators.tool_event import BEFORE, ToolEvent
from gitcoord.world.open import preload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.guard.hook import Invocation

_MOST_TREES = 8


def actor_of(ctx: Context, env: Environ, event: ToolEvent) -> Actor:
    """The acting agent; a subagent's name begins with its parent's. Its conversation has reached the guard, which is noted."""
    note_heard(ctx, event.tool, event.conversation)
    actor = of_event(ctx, env, event.tool, event.conversation)
    return subagent_of(actor, event.tool, event.conversation, event.subagent) if event.subagent else actor


class FileEffects(NamedTuple):
    """Files that a tool call reads and writes, each once, and what its shell command does besides."""

    writes: tuple[Place, ...]
    reads: tuple[Place, ...]
    changed_below: tuple[Place, ...] = ()  # directories at or below which unknown files change
    bypasses: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    deleted: tuple[Place, ...] = ()  # those of `writes` that are deleted or moved away
    staged: tuple[Place, ...] = ()  # files and directories whose changes get into the index or into a commit
    committed: tuple[Place, ...] = ()  # work trees in which all that is staged is committed
    switched: tuple[Place, ...] = ()  # work trees in which HEAD moves to another branch or base
    hooked: tuple[Place, ...] = ()  # work trees in which a command runs that git's hooks judge
    builds: tuple[str, ...] = ()  # build tools and test runners
    lost_below: tuple[Place, ...] = ()  # those of `changed_below` at or below which uncommitted changes may be lost


def effects_of(invocation: Invocation, event: ToolEvent, home: Place | None) -> FileEffects:
    """The effects of a tool call. A shell command is parsed only where gitcoord is set up, since parsing is slow."""
    cwd = getcwd()
    if event.command and home is not None:
        invocation.open(home.top)  # first, since its settings say how long all this may take
    writes, reads = _paths_of(invocation, event, event.writes, cwd), _paths_of(invocation, event, event.reads, cwd)
    changed_below: list[str] = []
    lost_below: list[str] = []
    deleted: list[str] = []
    shared: dict[str, list[str]] = {kind: [] for kind in SHARED}
    bypasses = ["it holds a NUL byte, behind which a shell may run something else"] * ("\0" in event.command)
    unknown: list[str] = []
    builds: list[str] = []
    if event.command and home is not None:
        from gitcoord.guard.unhooked import without_restoring

        command = without_restoring(event.tool, _without_own_name(invocation, event, home))
        effects = _shell_effects(invocation, command, cwd)
        failed = next((effect.detail for effect in effects if effect.kind == FAILED), "")
        if failed and event.phase == BEFORE:
            raise CouldNotJudge(
                f"the shell command: {failed}", hints=("write it in another way, or as several commands",)
            )
        careful = {effect.word for effect in effects if effect.kind == CAREFUL}
        for effect in effects:
            if effect.kind in ("write", "delete"):
                writes.append(effect.path)
                deleted += [effect.path] if effect.kind == "delete" else []
            elif effect.kind == "read":
                reads += [effect.path] if effect.path else []  # which file cannot be told
            elif effect.kind in shared:
                shared[effect.kind].append(effect.path)
            elif effect.kind in (CAREFUL, FAILED):
                continue
            elif effect.kind == BUILD:
                builds.append(effect.detail)
            elif effect.kind == "bypass":
                bypasses.append(effect.detail or effect.word)
            else:
                unknown.append(effect.detail or effect.word)
                changed_below += [effect.path] if effect.path else []
                lost_below += [effect.path] if effect.path and effect.word not in careful else []
    where = _places(cwd, writes), _places(cwd, reads), _places(cwd, changed_below)
    # Of a link only itself is gone.
    left = tuple(dict.fromkeys(locate(resolve(path, last=False)) for path in deleted))
    staged, committed, switched, hooked = (_places(cwd, shared[kind]) for kind in SHARED)
    told = tuple(bypasses), tuple(unknown)
    lost = _places(cwd, lost_below)
    return FileEffects(*where, *told, left, staged, committed, switched, hooked, tuple(builds), lost)


def _without_own_name(invocation: Invocation, event: ToolEvent, home: Place) -> str:
    """The command without the agent's own name in front (`GITCOORD_AGENT=<own> git ...`).

    Some tools do not report which subagent runs a shell, so it names itself. Any other name counts as a bypass.
    """
    if not event.command.startswith("GITCOORD_AGENT="):
        return event.command
    own = f"GITCOORD_AGENT={actor_of(invocation.open(home.top), invocation.env, event).agent} "
    return event.command[len(own) :] if event.command.startswith(f"{own}git ") else event.command


def _paths_of(invocation: Invocation, event: ToolEvent, words: tuple[str, ...], cwd: str) -> list[str]:
    """The files that the tool names. Some tools expand '~' as a shell does, so both readings count."""
    home = home_of(invocation)
    found = [*words, *(home + word[1:] for word in words if home and word.startswith("~/"))]
    if event.action.endswith("create_directory"):  # one that is there is left as it is, and all that lies in it
        found = [word for word in found if not is_directory(word if word.startswith("/") else f"{cwd}/{word}")]
    return found


def home_of(invocation: Invocation) -> str:
    return invocation.env.get(b"HOME", b"").decode("utf-8", "surrogateescape")


def _shell_effects(invocation: Invocation, command: str, cwd: str) -> tuple[FileEffect, ...]:
    """The effects of a shell command. CouldNotJudge if the parser is not installed."""
    preload("shell")
    from gitcoord.shell.parse import analyse

    found = analyse(command, cwd=cwd, home=home_of(invocation))
    if any(effect.kind == "unknown" for effect in found):
        from gitcoord.startup.treesitter import NoParser, parser

        try:
            parser()
        except NoParser as error:
            raise CouldNotJudge(str(error), hints=("install gitcoord again: it comes with tree-sitter",)) from None
    return found


def _places(cwd: str, words: list[str]) -> tuple[Place, ...]:
    found: dict[Place, None] = {}
    for word in dict.fromkeys(words):
        try:
            found.update(dict.fromkeys(write_targets(cwd, word)))
        except (OSError, ValueError) as error:
            raise CouldNotJudge(f"where '{printable(word[:200])}' leads cannot be told: {error}") from None
    return tuple(found)


def tops_of(effects: FileEffects, home: Place | None) -> list[str]:
    """The touched work trees in which gitcoord is set up, the tool's own first."""
    tops = {home.top: None} if home is not None else {}
    known: dict[str, bool] = {}
    shared = (*effects.staged, *effects.committed, *effects.switched)
    for place in (*effects.writes, *effects.reads, *effects.changed_below, *shared):
        if place.top and place.top not in tops:
            if place.common not in known:
                known[place.common] = bool(place.common) and is_set_up(place.common)
            if known[place.common]:
                tops[place.top] = None
    if len(tops) > _MOST_TREES:
        raise CouldNotJudge(f"this touches {len(tops)} work trees at once")
    return list(tops)


def checked(place: Place) -> str:
    try:
        return check_path(place.path)
    except UsageError as error:
        raise CouldNotJudge(error.message) from None


def absolute(place: Place) -> str:
    if not place.top:
        return place.path
    return place.top if place.path == ROOT else f"{place.top.rstrip('/')}/{place.path}"

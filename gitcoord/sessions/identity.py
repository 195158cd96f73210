"""Identity of the actor, for the command line, git hooks and agent tools' hooks alike.

GITCOORD_AGENT; else the name noted for an ancestor process; else the agent tool's own conversation; else the work tree's
`gitcoord.agent`; else, only at a terminal and outside any known agent tool, the person of `user.email`. Four agents in
one checkout never become one by accident.
"""

from __future__ import annotations

from gitcoord.base.agent_tools import TOOLS
from gitcoord.base.errors import UsageError
from gitcoord.base.names import agent_from_email, check_agent, printable
from gitcoord.git.files import exists, listdir, read_file, remove_file, write_file
from gitcoord.git.host import getppid, start_time
from gitcoord.git.process import Environ
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.startup.namedtuple import NamedTuple

_WORD = "abcdefghijklmnopqrstuvwxyz0123456789"
_LONGEST = 64  # letters of a name
_LEAST = 4  # letters of an id: fewer would make two subagents one too often
# Programs between an agent tool and its hook.
_BETWEEN = ("git", "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "env", "timeout")
NAMING_HINTS = (
    "a person runs it at a terminal; an agent says its name before the command: GITCOORD_AGENT=<name>",
    "or launch the agent with: git coord run --as <name> -- <command>",
    "or name this work tree's agent: git config extensions.worktreeConfig true && git config --worktree gitcoord.agent <name>",
)


class SilentTool(UsageError):
    """An agent's tool runs this, and does not say which conversation it is."""


def resolve(ctx: Context, environ: Environ, *, terminal: bool) -> Actor:
    """The actor, or a UsageError that says how to name oneself."""
    actor = named_actor(ctx, environ) or conversation_actor(environ)
    if actor is not None:
        return _in_shell(environ, actor)
    tree = ctx.settings.get("gitcoord.agent")
    if tree:
        return Actor(check_agent(tree))
    if in_tool(environ):
        silent = silent_tool(ctx, environ)
        guard = f"its guard would tell, and does not run here: git coord setup --user --tool {silent}"
        raise SilentTool(
            "this agent tool does not say which conversation this is, so gitcoord cannot tell who acts",
            hints=(*([guard] if silent else []), *NAMING_HINTS),
        )
    email = ctx.settings.get("user.email")
    if not terminal:
        raise UsageError("nobody is named here: not at a terminal, and no agent is set", hints=NAMING_HINTS)
    if not email:
        raise UsageError(
            "user.email is not set", hints=("git config --global user.email you@example.com", *NAMING_HINTS[:1])
        )
    return Actor(agent_from_email(email), person=True)


def resolve_or_none(ctx: Context, environ: Environ, *, terminal: bool) -> Actor | None:
    """The actor, or None: commands that change nothing need none."""
    try:
        return resolve(ctx, environ, terminal=terminal)
    except UsageError:
        return None


# The actor of a hook where nobody is named. No agent can have this name.
NOBODY = Actor("(nobody)")


class HookActor(NamedTuple):
    """The actor of one of git's hooks. `problem`: why it is NOBODY, else None. `names`: all names of this process."""

    actor: Actor
    problem: UsageError | None
    names: list[str]


def resolve_in_hook(ctx: Context, environ: Environ, *, terminal: bool, by_setting: bool) -> HookActor:
    """As `resolve`, without an error: most changes may be made by anybody. `by_setting`: `gitcoord.person` counts."""
    names = _names(ctx, environ)
    try:
        return HookActor(resolve(ctx, environ, terminal=terminal), None, names)
    except UsageError as error:
        person = person_by_setting(ctx, environ) if by_setting else None
        return HookActor(person, None, names) if person is not None else HookActor(NOBODY, error, names)


def _names(ctx: Context, environ: Environ) -> list[str]:
    """Every name that the environment, an ancestor process or the agent tool gives this process, and those of its parents."""
    found = [_ancestor(ctx), conversation_actor(environ)]
    try:
        found.append(named_actor(ctx, environ))
    except UsageError:
        pass  # no valid name: nobody of that name was killed
    names = [name for actor in found if actor is not None for name in (actor.agent, actor.parent) if name]
    return list(dict.fromkeys(names))


def person_by_setting(ctx: Context, environ: Environ) -> Actor | None:
    """The person of `gitcoord.person`, outside any agent tool. The environment and the user's own settings cannot set it."""
    if not ctx.settings.get("gitcoord.person") or in_tool(environ):
        return None
    from gitcoord.git.commands.settings import list_settings
    from gitcoord.git.config import Settings, parse_settings

    email = Settings(parse_settings(list_settings(ctx.repo.env).out)).get("gitcoord.person")
    return Actor(agent_from_email(email), person=True, by_setting=True) if email else None


def _text(environ: Environ, name: bytes) -> str:
    return environ.get(name, b"").decode("utf-8", "surrogateescape")


def named_actor(ctx: Context, environ: Environ) -> Actor | None:
    """The actor that the environment or the note of an ancestor process names."""
    name = _text(environ, b"GITCOORD_AGENT")
    if name:
        session = _text(environ, b"GITCOORD_SESSION")
        if session and not (session.isascii() and session.isdecimal() and len(session) < 16):
            raise UsageError("GITCOORD_SESSION is not a number")
        ledger = _text(environ, b"GITCOORD_LEDGER")
        if ledger and ledger != ctx.settings.get("gitcoord.ledger"):
            return Actor(check_agent(name))  # launched for another repository: only the name counts
        return Actor(check_agent(name), _text(environ, b"GITCOORD_INSTANCE")[:200], int(session or 0))
    return _ancestor(ctx)


def of_event(ctx: Context, environ: Environ, tool: str, conversation: str) -> Actor:
    """The actor of an agent tool's event: as `resolve`, but with the conversation that the event names. Never a person.

    One process may host several conversations, so the event counts more than the note of the process; a name from the
    environment or from `git coord run` counts more than both.
    """
    actor = named_actor(ctx, environ)
    if actor is not None and (actor.session or environ.get(b"GITCOORD_AGENT") or not conversation):
        return actor
    actor = _of(tool, conversation) if conversation else conversation_actor(environ)
    if actor is not None:
        return actor
    tree = ctx.settings.get("gitcoord.agent")
    if tree:
        return Actor(check_agent(tree))
    raise UsageError(
        "this agent tool does not say which conversation this is, so gitcoord cannot tell who acts", hints=NAMING_HINTS
    )


def subagent_of(parent: Actor, tool: str, conversation: str, subagent: str) -> Actor:
    """The subagent as an actor. Its name is the parent's whole name and an id, so that families can be recognised.

    If the parent's name leaves no room for an id, the subagent acts as its parent.
    """
    word = "".join(c for c in subagent.lower() if c in _WORD)[-12:] or "x"
    word = word if word != "lock" else "lock0"
    room = _LONGEST - len(parent.agent) - 1
    if room < _LEAST:
        return parent
    if len(word) > room:
        from zlib import crc32

        word = f"{crc32(f'{parent.agent}.{subagent}'.encode('utf-8', 'replace')):08x}"[:room]
    instance = printable(f"{tool}:{conversation[:90]}:{subagent[:90]}")
    return Actor(check_agent(f"{parent.agent}.{word}"), instance, parent=parent.agent)


def in_tool(environ: Environ) -> bool:
    return any(environ.get(marker) for tool in TOOLS for marker in tool.markers)


def silent_tool(ctx: Context, environ: Environ) -> str:
    """The tool around this process, if its shells name no conversation and no event of it has named this process; else ''."""
    if conversation_actor(environ) is not None or _ancestor(ctx) is not None:
        return ""
    here = [tool for tool in TOOLS if any(environ.get(marker) for marker in tool.markers)]
    return here[0].name if here and not here[0].hosts_several else ""


def conversation_actor(environ: Environ) -> Actor | None:
    """The conversation that the environment of an agent tool's shell names, as an actor."""
    for tool in TOOLS:
        if not any(environ.get(marker) for marker in tool.markers) and tool.name != "codex":
            continue
        for variable in tool.ids:
            conversation = _text(environ, variable)
            if conversation:
                return _of(tool.name, conversation)
    return None


def _in_shell(environ: Environ, actor: Actor) -> Actor:
    """The actor of a shell, where the environment is more precise than the note of the tool's process."""
    tool, _, conversation = actor.instance.partition(":")
    if tool == "codex" and conversation == _text(environ, b"CODEX_SESSION_ID"):
        thread = _text(environ, b"CODEX_THREAD_ID")
        return subagent_of(actor, tool, conversation, thread) if thread not in ("", conversation) else actor
    if tool == "cursor":
        # One process hosts all conversations, and no event announces those of subagents.
        current = _text(environ, b"CURSOR_CONVERSATION_ID")
        return _of(tool, current) if current else actor
    return actor


def _of(tool: str, conversation: str) -> Actor:
    return Actor(conversation_name(tool, conversation), printable(f"{tool}:{conversation[:180]}"))


def conversation_name(tool: str, conversation: str) -> str:
    """A short name for a conversation, from the random end of its id. If two names are equal, their instances differ."""
    word = "".join(c for c in conversation.lower() if c in _WORD)
    return check_agent(f"{tool}-{word[-12:] or 'x'}")


# --- conversations that the guard has heard of --------------------------------------------------------------------


def note_heard(ctx: Context, tool: str, conversation: str) -> None:
    """Note that an event of this conversation has reached the guard."""
    name = conversation_name(tool, conversation) if conversation else ""
    if name and not is_heard(ctx, name):
        write_file(ctx.scratch(f"guard/heard/{name}"), b"")


def is_heard(ctx: Context, name: str) -> bool:
    return exists(f"{ctx.repo.scratch}/guard/heard/{name}")


def forget_heard(ctx: Context, tool: str, conversation: str) -> None:
    """The conversation is over: remove its note."""
    if conversation:
        remove_file(f"{ctx.repo.scratch}/guard/heard/{conversation_name(tool, conversation)}")


# --- names noted for processes ------------------------------------------------------------------------------------


def note_process(ctx: Context, pid: int, actor: Actor) -> str:
    """Note that this process and all below it are this agent; gives the path of the note."""
    path = ctx.scratch(f"procs/{pid}")
    words = (start_time(pid), ctx.host.boot, actor.agent, str(actor.session), actor.instance)
    write_file(path, "\n".join(words).encode("utf-8", "surrogateescape"))
    return path


def note_tool(ctx: Context, tool: str, actor: Actor) -> Actor | None:
    """A conversation began: note the tool's process and all below it as this agent.

    If the process hosts two conversations, the owner of a shell is unknown: the note then names nobody. The answer is the agent of the
    conversation that the same process had before, if it hosts one at a time.
    """
    pid = tool_process()
    if not pid:
        return None
    old = _noted(f"{ctx.repo.scratch}/procs", pid, ctx.host.boot)
    if old is not None and (old.session or old.agent == actor.agent):
        return None
    shared = old is not None and any(one.hosts_several for one in TOOLS if one.name == tool)
    note_process(ctx, pid, Actor("") if shared else actor._replace(session=0))
    return old if old is not None and old.agent and not shared and old.instance.startswith(f"{tool}:") else None


def forget_tool(ctx: Context, actor: Actor) -> None:
    """The conversation ended: remove the note, since the process may begin another one."""
    pid = tool_process()
    old = _noted(f"{ctx.repo.scratch}/procs", pid, ctx.host.boot) if pid else None
    if old is not None and old.agent == actor.agent and not old.session:
        remove_file(f"{ctx.repo.scratch}/procs/{pid}")


def tool_process() -> int:
    """The nearest ancestor process that is neither a shell nor git; 0 if unknown, or if somebody types at a shell in between."""
    pid = getppid()
    for _ in range(16):
        name, _, rest = read_file(f"/proc/{pid}/stat").partition(b"(")[2].rpartition(b") ")
        if pid <= 1 or not rest:
            return 0
        if name.decode("utf-8", "replace") not in _BETWEEN:
            return pid
        _, parent, _, session, terminal, *_ = rest.split()
        if int(session) == pid and int(terminal) and b"-c" not in read_file(f"/proc/{pid}/cmdline").split(b"\0"):
            return 0  # the shell of a terminal: above it is the terminal itself, which all its shells share
        pid = int(parent)
    return 0


def _noted(directory: str, pid: int, boot: str) -> Actor | None:
    """The actor in the note of a running process, None without one or if it is damaged. The name is '' if the note names nobody."""
    words = read_file(f"{directory}/{pid}").decode("utf-8", "surrogateescape").split("\n")
    if len(words) != 5 or words[0] != start_time(pid) or words[1] != boot:
        return None
    try:
        return Actor(check_agent(words[2]) if words[2] else "", words[4], int(words[3]))
    except (UsageError, ValueError):
        return None


def _ancestor(ctx: Context) -> Actor | None:
    directory = f"{ctx.repo.scratch}/procs"
    try:
        if not listdir(directory):
            return None
    except OSError:
        return None
    pid = getppid()
    for _ in range(64):
        if pid <= 1:
            return None
        noted = _noted(directory, pid, ctx.host.boot)
        if noted is not None:
            return noted if noted.agent else None
        stat = read_file(f"/proc/{pid}/stat")
        if not stat:
            return None
        pid = int(stat.rpartition(b") ")[2].split()[1])
    return None

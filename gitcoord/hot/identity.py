"""Who acts: one function for the command line, git hooks and agent tools' hooks alike.

GITCOORD_AGENT; else the name noted for an ancestor process; else the agent tool's own conversation; else the work tree's
`gitcoord.agent`; else, only at a terminal and outside any known agent tool, the person of `user.email`. Four agents in
one checkout never become one by accident.
"""

import posix

from gitcoord.core.sessions import Actor
from gitcoord.errors import UsageError
from gitcoord.names import agent_from_email, check_agent
from gitcoord.store.files import read_file
from gitcoord.store.process import start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context
    from gitcoord.store.process import Environ

# An agent tool, what shows that it is there, and where it names its conversation.
_TOOLS = (
    ("claude", (b"CLAUDECODE", b"CLAUDE_CODE_ENTRYPOINT"), (b"CLAUDE_CODE_SESSION_ID",)),
    ("codex", (b"CODEX_SANDBOX", b"CODEX_SANDBOX_NETWORK_DISABLED"), (b"CODEX_THREAD_ID",)),
    ("gemini", (b"GEMINI_CLI",), (b"GEMINI_SESSION_ID",)),
    ("cursor", (b"CURSOR_AGENT",), (b"CURSOR_CONVERSATION_ID", b"CURSOR_TRACE_ID")),
    ("copilot", (b"COPILOT_CLI", b"COPILOT_AGENT"), (b"COPILOT_SESSION_ID",)),
    ("opencode", (b"OPENCODE",), (b"OPENCODE_SESSION_ID",)),
    ("windsurf", (b"WINDSURF_AGENT",), (b"WINDSURF_TRAJECTORY_ID",)),
)
_HINTS = (
    "say who you are: GITCOORD_AGENT=<name> git claim ...",
    "or launch the agent with: git coord run --as <name> -- <command>",
    "or name this work tree's agent: git config --worktree gitcoord.agent <name>",
)


def resolve(ctx: "Context", environ: "Environ", *, terminal: bool) -> Actor:
    """The actor, or a UsageError that says how to name oneself."""
    actor = named(ctx, environ) or _conversation(environ)
    if actor is not None:
        return actor
    tree = ctx.settings.get("gitcoord.agent")
    if tree:
        return Actor(check_agent(tree))
    if in_tool(environ):
        raise UsageError(
            "this agent tool does not say which conversation this is, so gitcoord cannot tell who acts", hints=_HINTS
        )
    email = ctx.settings.get("user.email")
    if not terminal:
        raise UsageError("nobody is named here: not at a terminal, and no agent is set", hints=_HINTS)
    if not email:
        raise UsageError("user.email is not set", hints=("git config --global user.email you@example.com", *_HINTS[:1]))
    return Actor(agent_from_email(email), person=True)


def resolve_or_none(ctx: "Context", environ: "Environ", *, terminal: bool) -> "Actor | None":
    """For commands that only look: nobody in particular may look too."""
    try:
        return resolve(ctx, environ, terminal=terminal)
    except UsageError:
        return None


def _text(environ: "Environ", name: bytes) -> str:
    return environ.get(name, b"").decode("utf-8", "surrogateescape")


def named(ctx: "Context", environ: "Environ") -> "Actor | None":
    """Whoever the environment or an ancestor process names."""
    name = _text(environ, b"GITCOORD_AGENT")
    if name:
        session = _text(environ, b"GITCOORD_SESSION")
        if session and not (session.isascii() and session.isdecimal() and len(session) < 16):
            raise UsageError("GITCOORD_SESSION is not a number")
        ledger = _text(environ, b"GITCOORD_LEDGER")
        if ledger and ledger != ctx.settings.get("gitcoord.ledger"):
            return Actor(
                check_agent(name)
            )  # launched for another repository: the name goes along, the session does not
        return Actor(check_agent(name), _text(environ, b"GITCOORD_INSTANCE")[:200], int(session or 0))
    return _ancestor(ctx)


def in_tool(environ: "Environ") -> bool:
    return any(environ.get(marker) for _, markers, _ in _TOOLS for marker in markers)


def _conversation(environ: "Environ") -> "Actor | None":
    for tool, markers, ids in _TOOLS:
        if not any(environ.get(marker) for marker in markers) and tool != "codex":
            continue
        for variable in ids:
            conversation = _text(environ, variable)
            if conversation:
                return Actor(_conversation_name(tool, conversation), f"{tool}:{conversation[:180]}")
    return None


def _conversation_name(tool: str, conversation: str) -> str:
    """A short name for a conversation. The end of an id is its random part; two that still meet differ by instance."""
    word = "".join(c for c in conversation.lower() if c in "abcdefghijklmnopqrstuvwxyz0123456789")
    return check_agent(f"{tool}-{word[-12:] or 'x'}")


# --- names noted for processes ------------------------------------------------------------------------------------


def note_process(ctx: "Context", pid: int, actor: Actor) -> str:
    """Remember that this process and all below it are this agent; gives the note's file."""
    path = ctx.scratch(f"procs/{pid}")
    words = (start_time(pid), ctx.host.boot, actor.agent, str(actor.session), actor.instance)
    fd = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC, 0o666)
    posix.write(fd, "\n".join(words).encode("utf-8", "surrogateescape"))
    posix.close(fd)
    return path


def _ancestor(ctx: "Context") -> "Actor | None":
    directory = f"{ctx.repo.scratch}/procs"
    try:
        if not posix.listdir(directory):
            return None
    except OSError:
        return None
    pid = posix.getppid()
    for _ in range(64):
        if pid <= 1:
            return None
        words = read_file(f"{directory}/{pid}").decode("utf-8", "surrogateescape").split("\n")
        if len(words) == 5 and words[0] == start_time(pid) and words[1] == ctx.host.boot:
            return Actor(check_agent(words[2]), words[4], int(words[3]))
        stat = read_file(f"/proc/{pid}/stat")
        if not stat:
            return None
        pid = int(stat.rpartition(b") ")[2].split()[1])
    return None

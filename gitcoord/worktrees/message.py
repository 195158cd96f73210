"""A commit's message, made as `git commit -m` makes it: tidied, with trailers, through the hooks."""

from __future__ import annotations

from gitcoord.base.errors import StoreError, UsageError
from gitcoord.base.names import quote
from gitcoord.git.files import read_file, remove_file, write_file
from gitcoord.git.process import run
from gitcoord.worktrees.staging import SCRATCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.context import Context
    from gitcoord.worktrees.commit_hooks import Hooks

_LONGEST = 1 << 20


def compose(ctx: Context, text: str, trailers: tuple[str, ...], agent: str) -> bytes:
    """The message before any hook saw it; `agent` '' where a person commits."""
    message = _tidy(ctx, text.encode("utf-8", "surrogateescape"))
    if trailers:
        message = _trailers(ctx, message, *(word for t in trailers for word in ("--trailer", t)))
    return _signed(ctx, message, agent)


def through_hooks(ctx: Context, message: bytes, hooks: Hooks, index: str, agent: str) -> bytes:
    """What the hooks leave of it."""
    file = f"{ctx.repo.git_dir}/{SCRATCH}message-{ctx.host.random()[:12]}"
    try:
        write_file(file, message)
        hooks.require("prepare-commit-msg", file, "message", index=index)
        hooks.require("commit-msg", file, index=index)
        message = _tidy(ctx, read_file(file, _LONGEST))
    finally:
        remove_file(file)
    return _signed(ctx, message, agent)


def subject_of(message: bytes) -> str:
    """The first paragraph in one line, as git shows it."""
    return " ".join(message.decode("utf-8", "surrogateescape").partition("\n\n")[0].split("\n")).strip()


def _tidy(ctx: Context, message: bytes) -> bytes:
    _, out, _ = run(["git", "config", "commit.cleanup"], ctx.repo.env)
    mode = out.decode("ascii", "replace").strip()
    if mode != "verbatim":
        strip = ["-s"] if mode == "strip" else []
        message = _git(ctx, ["stripspace", *strip], message)
    if not message.strip():
        raise UsageError("the message is empty", hints=("say what the commit does: -m <message>",))
    return message


def _signed(ctx: Context, message: bytes, agent: str) -> bytes:
    """With the agent's trailer, once."""
    if not agent:
        return message
    found = _trailers(ctx, message, "--parse").decode("utf-8", "replace").split("\n")
    names = {value.strip() for key, _, value in (line.partition(":") for line in found) if key.lower() == "agent"}
    if names - {agent}:
        raise UsageError(
            f"the message names {quote(min(names - {agent})[:80])} as its agent, and you are '{agent}'",
            hints=("leave the trailer 'Agent:' out: it is added",),
        )
    if names:
        return message
    rules = ("--where", "end", "--if-exists", "add", "--if-missing", "add")
    return _trailers(ctx, message, *rules, "--trailer", f"Agent: {agent}")


def _trailers(ctx: Context, message: bytes, *words: str) -> bytes:
    return _git(ctx, ["interpret-trailers", "--no-divider", *words], message)


def _git(ctx: Context, words: list[str], data: bytes) -> bytes:
    code, out, complaint = run(["git", *words], ctx.repo.env, data)
    if code:
        raise StoreError(f"git {words[0]} failed: {complaint}")
    return out

"""A commit's message, made as `git commit -m` makes it: tidied, with trailers, through the hooks."""

from __future__ import annotations

from gitcoord.base.errors import StoreError, UsageError
from gitcoord.base.names import quote
from gitcoord.git.commands.settings import get_setting
from gitcoord.git.commands.worktrees import add_trailer, add_trailers, parse_trailers, strip_message
from gitcoord.git.files import read_file, remove_file, write_file
from gitcoord.ledger.context import Context
from gitcoord.worktrees.commit_hooks import Hooks
from gitcoord.worktrees.staging import SCRATCH

_LONGEST = 1 << 20
_FAILED = "git interpret-trailers failed"


def compose(ctx: Context, text: str, trailers: tuple[str, ...], agent: str) -> bytes:
    """The message before any hook saw it; `agent` '' where a person commits."""
    message = _tidy(ctx, text.encode("utf-8", "surrogateescape"))
    if trailers:
        message = add_trailers(ctx.repo.env, message, trailers).require(_FAILED, StoreError).out
    return _signed(ctx, message, agent)


def through_hooks(ctx: Context, message: bytes, hooks: Hooks, index: str, agent: str) -> bytes:
    """The message after the hooks ran."""
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
    mode = get_setting(ctx.repo.env, "commit.cleanup").text.strip()
    if mode != "verbatim":
        stripped = strip_message(ctx.repo.env, message, comments=mode == "strip")
        message = stripped.require("git stripspace failed", StoreError).out
    if not message.strip():
        raise UsageError("the message is empty", hints=("say what the commit does: -m <message>",))
    return message


def _signed(ctx: Context, message: bytes, agent: str) -> bytes:
    """The message with the agent's trailer, once."""
    if not agent:
        return message
    found = (
        parse_trailers(ctx.repo.env, message).require(_FAILED, StoreError).out.decode("utf-8", "replace").split("\n")
    )
    names = {value.strip() for key, _, value in (line.partition(":") for line in found) if key.lower() == "agent"}
    if names - {agent}:
        raise UsageError(
            f"the message names {quote(min(names - {agent})[:80])} as its agent, and you are '{agent}'",
            hints=("leave the trailer 'Agent:' out: it is added",),
        )
    if names:
        return message
    return add_trailer(ctx.repo.env, f"Agent: {agent}", message=message).require(_FAILED, StoreError).out

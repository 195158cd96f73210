"""The user's refs at a remote: trunk and other branches, asked for in the middle of a command."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, Unreachable
from gitcoord.base.names import printable, shell_word
from gitcoord.git.commands.remotes import fetch_branch
from gitcoord.git.deadline import Deadline
from gitcoord.git.locks.owners import LockNotes
from gitcoord.git.process import Answer, Env
from gitcoord.ledger.context import Context
from gitcoord.startup.annotations import Callable

Command = Callable[[Env, Deadline, LockNotes, str, str], Answer]

_TRIES = 10


def silent(ctx: Context) -> Env:
    """The environment of a command that contacts a remote in the middle of another one: no password prompt."""
    env = dict(ctx.repo.env)
    if not (b"GIT_SSH_COMMAND" in env or b"GIT_SSH" in env or ctx.settings.get("core.sshcommand")):
        env[b"GIT_SSH_COMMAND"] = b"ssh -o BatchMode=yes"
    return env


def ask_remote(ctx: Context, remote: str, command: Command, ref: str) -> Answer:
    """The answer of a command that contacts the remote, within the time limit for it."""
    env = silent(ctx)
    with ctx.deadline(remote).request(changes=False) as deadline:
        answer = command(env, deadline, ctx.notes, remote, ref)
        if not answer.code:
            deadline.answered()
        return answer


def refspec_of(remote: str, sync: str) -> str:
    return f"+refs/heads/{sync}:refs/remotes/{remote}/{sync}"


def fetch_sync(ctx: Context, remote: str, sync: str) -> None:
    refspec = refspec_of(remote, sync)
    for _ in range(_TRIES):
        code, _, complaint = ask_remote(ctx, remote, fetch_branch, refspec)
        if not code:
            return
        if "cannot lock ref" not in complaint:
            break
        ctx.host.pause(0.05)  # another process fetches the same branch
    again = f"git fetch {shell_word(remote)} {shell_word(sync)}"
    why = printable(complaint.split("\n")[0])
    if "couldn't find remote ref" in complaint:
        raise CouldNotJudge(
            f"'{printable(remote)}' has no branch '{printable(sync)}'",
            hints=(f"put it there: git push {shell_word(remote)} {shell_word(sync)}",),
        )
    raise Unreachable(f"'{printable(remote)}' cannot be fetched from: {why}", hints=(f"see what it says: {again}",))

"""The ledger that the project's policy names, compared with this clone's, and the command that helps if they differ."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, GitcoordError, NotInitialised
from gitcoord.base.names import CONFIG, shell_word
from gitcoord.git.commands.refs import superproject
from gitcoord.ledger.context import Context


def setup_command(ctx: Context) -> str:
    """The command that sets up or joins. Hooks and policy need a work tree: a bare repository gets the ledger alone."""
    return "git coord setup" if ctx.repo.worktree else "git coord init"


def no_ledger(ctx: Context) -> GitcoordError:
    """The error where there is no ledger: the project has one that this clone has not joined, or it has none."""
    if ctx.policy_setting("root"):
        return CouldNotJudge(
            "this project has a ledger, which this clone has not joined", hints=(f"join it: {setup_command(ctx)}",)
        )
    hints = [f"set it up: {setup_command(ctx)}"]
    above = superproject(ctx.repo.env)
    if above:
        name = ctx.repo.worktree.removeprefix(above + "/")
        hints.append(f"or claim this submodule as a whole: git -C {shell_word(above)} claim {shell_word(name)}")
    return NotInitialised("gitcoord is not set up in this repository", hints=tuple(hints))


def other_ledger(ctx: Context, trunk: str) -> CouldNotJudge | None:
    """The error where the policy names another ledger than this clone's; None where it does not.

    A branch may still have an older policy: the work tree's counts only where trunk's does not name this clone's ledger.
    """
    own, named = ctx.settings.get("gitcoord.root"), ctx.policy_setting("root")
    if not own or not named or named in (own, ctx.settings.get("gitcoord.formerroot")):
        return None
    refs = [f"refs/heads/{trunk}", *([f"refs/remotes/{ctx.remote}/{trunk}"] if ctx.remote else [])]
    found = ctx.local.read([f"{ref}:{CONFIG}" for ref in refs])
    if any(own.encode() in policy.data for policy in found if policy is not None):
        return None
    return CouldNotJudge(
        f"this clone's ledger, which begins at {own[:12]}, is not the project's: {CONFIG} names {named[:12]}",
        hints=(f"use the project's: {setup_command(ctx)}",),
    )

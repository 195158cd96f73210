"""The ledger that the project's policy names, compared with this clone's, and the command that helps if they differ."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, GitcoordError, NotInitialised
from gitcoord.base.names import CONFIG, shell_word
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.git.commands.refs import superproject, upstream_ref
from gitcoord.git.commands.settings import list_settings
from gitcoord.git.config import parse_settings
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


def fetched_policy(ctx: Context) -> str:
    """The remote-tracking ref whose policy is still to be pulled: trunk as fetched has one, and HEAD has none, or one that was
    committed beside it and names another ledger. '': none."""
    if not ctx.repo.worktree:
        return ""
    refs = _trunk_refs(ctx)
    head, *fetched = ctx.local.read([f"{ref}:{CONFIG}" for ref in ("HEAD", *refs)])
    there = next((ref for ref, policy in zip(refs, fetched) if policy is not None), "")
    return there if head is None or (there and is_beside_trunk(ctx)) else ""


def is_beside_trunk(ctx: Context) -> bool:
    """Return whether HEAD has committed a policy that names another ledger than trunk's as fetched, and does not build on that."""
    head, fetched = _committed_roots(ctx)
    return bool(head and fetched and head[0] not in fetched) and not _contains_policy(ctx)


def project_root(ctx: Context) -> str:
    """The root of the project's ledger, '' where no policy names one: that of the work tree's policy; where only trunk as
    fetched has committed a policy, or HEAD has committed another one beside it, trunk's, since the work tree's was then written by
    `setup` before the pull."""
    named = ctx.policy_setting("root")
    head, fetched = _committed_roots(ctx)
    if named in head and is_beside_trunk(ctx):
        return fetched[0]
    return named if (head and named) or named in fetched else next(iter([*head, *fetched]), named)


def has_committed_root(ctx: Context) -> bool:
    """Return whether the policy of HEAD or of trunk as fetched names a ledger."""
    return any(_committed_roots(ctx))


def trunk_names_another(ctx: Context) -> bool:
    """Return whether the committed policies, of HEAD and of trunk as fetched, name other ledgers than this clone's only. The
    work tree's counts where it changes a committed one."""
    own = ctx.settings.get("gitcoord.root")
    head, fetched = _committed_roots(ctx)
    ours = {own, ctx.settings.get("gitcoord.formerroot")}
    if not own or not (head or fetched) or ours.intersection(fetched):
        return False
    if ours.intersection(head):
        return is_beside_trunk(ctx)
    return project_root(ctx) not in ours


def warn_before_pull(ctx: Context) -> list[str]:
    """The warning where trunk as fetched names another ledger and its policy is still to be pulled; asked of views, so it looks closer
    only where HEAD has no policy."""
    if not ctx.settings.get("gitcoord.root") or ctx.local.read([f"HEAD:{CONFIG}"])[0] or not trunk_names_another(ctx):
        return []
    return [f"this clone's ledger is not the project's, which trunk as fetched names: {setup_command(ctx)}"]


def _committed_roots(ctx: Context) -> tuple[list[str], list[str]]:
    """The roots that HEAD's policy names, none or one, and those that trunk's policies name."""
    if not ctx.repo.worktree:
        return [], []
    head, *fetched = ctx.local.read([f"{ref}:{CONFIG}" for ref in ("HEAD", *_trunk_refs(ctx))])
    roots = {policy.oid: _root_in(ctx, policy.oid) for policy in (head, *fetched) if policy is not None}
    own = [roots[head.oid]] if head is not None and roots[head.oid] else []
    return own, [root for policy in fetched if policy is not None and (root := roots[policy.oid])]


def _contains_policy(ctx: Context) -> bool:
    """Return whether HEAD builds on a policy that trunk as fetched has, and so may change it; else both were committed side by side."""
    refs = _trunk_refs(ctx)
    found = ctx.local.read([f"{ref}:{CONFIG}" for ref in refs])
    return any(
        policy is not None and is_ancestor(ctx.repo.env, ref, "HEAD") is True for ref, policy in zip(refs, found)
    )


def _root_in(ctx: Context, blob: str) -> str:
    return dict(parse_settings(list_settings(ctx.repo.env, blob=blob).out)).get("gitcoord.root", "")


def _trunk_refs(ctx: Context) -> list[str]:
    """Trunk as known here: the ref that the current branch follows, and each remote's default branch."""
    defaults = [ref for ref in ctx.local.list_refs("refs/remotes/") if ref.endswith("/HEAD")]
    upstream = upstream_ref(ctx.repo.env)
    return [*([upstream] if upstream.startswith("refs/remotes/") else []), *defaults]

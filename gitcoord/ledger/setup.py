"""Setting up: the first event, the ledger's refs, and what this clone notes about them."""

from __future__ import annotations

from gitcoord.base.codec import encode_file
from gitcoord.base.errors import CouldNotJudge, GitcoordError, Refused, StoreError, UsageError, refused
from gitcoord.base.names import ARCHIVE, CONFIG, LEDGER, TIP, quote, shell_word
from gitcoord.git.commands.objects import first_parents
from gitcoord.git.commands.refs import is_branch_name, symbolic_ref
from gitcoord.git.commands.remotes import list_remotes
from gitcoord.git.commands.settings import change_settings
from gitcoord.git.config import Settings
from gitcoord.git.store import Create, Reader, SwapFailed
from gitcoord.git.tree import TreeEditor, Trees
from gitcoord.ledger.commit import REPAIR, Commit, refuse_newer
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import effects
from gitcoord.ledger.format import format_record
from gitcoord.ledger.named_ledger import other_ledger, project_root, setup_command
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import free_branch, read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import event_commit, swap_over_locks, transact
from gitcoord.startup.annotations import Iterable


def init(
    ctx: Context, actor: Actor, *, sync: str = "", fold: bool | None = None, adopt: bool = False
) -> dict[str, object]:
    """Make the ledger, once. Running it again changes nothing; `adopt` makes a copied one this repository's own."""
    # The tip first: another process that makes the ledger meanwhile creates it after the ledger.
    tip, ledger = ctx.store.resolve([TIP, LEDGER])
    if ledger is not None:
        return _again(ctx, actor, adopt=adopt)
    if tip is not None or ctx.settings.get("gitcoord.root"):
        raise CouldNotJudge(f"there was a ledger here, and {LEDGER} is missing", hints=REPAIR)
    require_room(ctx, adopt=adopt)
    if not adopt:
        require_unnamed(ctx)
    return first_ledger(ctx, actor, sync=sync, fold=fold, authority=ctx.authority())


def first_ledger(
    ctx: Context, actor: Actor, *, sync: str, fold: bool | None, authority: dict[str, object]
) -> dict[str, object]:
    """Write the first event. Of concurrent calls one makes it, and the others go on with that one."""
    from gitcoord.ledger.events.init import first_event

    sync = _valid_branch(ctx, sync) if sync else sync_branch(ctx)
    folds = ctx.settings.flag("core.ignorecase", default=False) if fold is None else fold
    event = first_event(actor.agent, ctx.host.wall(), ctx.host.random(), fold=folds, sync=sync, authority=authority)
    store = ctx.store
    blobs = {key: store.write("blob", encode_file(key, r)) for key, r in effects(State(), event).items() if r}
    tree = TreeEditor(store, Trees(store)).edit(None, dict(blobs))
    assert tree is not None
    root = store.write("commit", event_commit(ctx, event, tree, None))
    try:
        swap_over_locks(ctx, [Create(LEDGER, root), Create(TIP, root)])
    except SwapFailed as failure:
        if ctx.remote:
            return {"failed": failure.message}  # a look at the remote tells whether somebody was quicker
        if store.resolve([LEDGER])[0] is None:
            raise StoreError(
                f"git could not make the ledger: {failure.message}", hints=("nothing was changed",)
            ) from None
        return _again(ctx, actor, adopt=False)
    if not ctx.remote:
        note(ctx, {"root": root, "ledger": event.nonce})
    return {"created": True, "ledger": event.nonce, "root": root, "sync": sync}


def _again(ctx: Context, actor: Actor, *, adopt: bool) -> dict[str, object]:
    """`adopt` writes the one event that a copy may write: that it is its own authority from now on."""
    result: dict[str, object] = {}
    if adopt:
        from gitcoord.ledger.events.adopt import Adopt, decide

        result = transact(ctx, decide, Adopt(actor, ctx.authority()), copied=True)
    record, root = format_record(read_snapshot(ctx).state), root_of(ctx)
    if adopt or not ctx.settings.get("gitcoord.root") or not ctx.settings.get("gitcoord.ledger"):
        note(ctx, {"root": root, "ledger": record.ledger})
    return {"created": False, **result, "ledger": record.ledger, "root": root, "sync": record.sync}


def require_room(ctx: Context, *, adopt: bool = False) -> None:
    """Refuse if a new ledger conflicts with a branch below its name or with a ledger at a remote."""
    below = ctx.store.list_refs(LEDGER + "/")
    if below:
        raise UsageError(
            f"the branch '{next(iter(below)).removeprefix('refs/heads/')}' conflicts with the ledger's branch 'gitcoord'",
            hints=("rename it: git branch -m <old> <new>",),
        )
    there = ctx.store.list_refs("refs/remotes/")
    remote = [ref for ref in there if ref.count("/") == 3 and ref.endswith("/gitcoord")]
    if remote and not adopt:
        name = remote[0].split("/")[2]
        if not is_ledger(ctx.store, remote[0]):
            raise not_a_ledger(ctx, name, there[remote[0]])
        raise refused(
            "remote-ledger",
            f"'{name}' already has a ledger",
            f"use that one: git coord setup --remote {shell_word(name)}",
            "or begin one that is this clone's alone: git coord init --adopt",
        )


def require_unnamed(ctx: Context, looked_at: Iterable[str] = ()) -> None:
    """Refuse to make a ledger where the policy names one, which is neither here nor at the remotes that were looked at."""
    named = project_root(ctx)
    if not named:
        return
    kept = next((ref for ref in ctx.store.list_refs(ARCHIVE) if root_of(ctx, ref) == named), "")
    if kept:
        raise refused(
            "no-ledger",
            f"this project's ledger was taken away here, and is kept at {kept}: nothing was changed",
            f"bring it back: {' && '.join(bring_back(kept, setup_command(ctx)))}",
            f"for a new one, a person takes 'root' out of {CONFIG}",
        )
    remotes = list(looked_at) or list_remotes(ctx.repo.env).lines
    names = ", ".join(quote(name) for name in looked_at)
    where = f"neither here nor at {names}" if names else "not here"
    raise refused(
        "no-ledger",
        f"this project's ledger, which begins at {named[:12]}, is {where}: nothing was changed",
        f"share it from the clone that has it: git coord setup --remote {shell_word((remotes or ['origin'])[0])}",
        f"then, here: {setup_command(ctx)}",
        f"if nobody has it any more, a person takes 'root' out of {CONFIG}",
    )


def bring_back(archive: str, setup: str) -> list[str]:
    """The commands that bring back an archived ledger of this clone, with its claims."""
    return [*(f"git update-ref {ref} {archive} ''" for ref in (LEDGER, TIP)), setup, "git coord fsck --repair"]


def find_other_ledger(ctx: Context) -> CouldNotJudge | None:
    """The error of `other_ledger`, for a caller that has not read the ledger."""
    try:
        trunk = format_record(read_snapshot(ctx, trusting=True).state).sync
    except GitcoordError:
        return None  # a damaged ledger is reported elsewhere
    return other_ledger(ctx, trunk)


def is_ledger(store: Reader, name: str) -> bool:
    """Return whether its head is an event. A user may have a branch of the same name. NewerVersion where a newer version wrote it."""
    found = store.read([name])[0]
    if found is None or found.kind != "commit":
        return False
    commit = Commit(found, name)
    if not commit.is_event:
        refuse_newer(store, commit.oid)
    return commit.is_event


def not_a_ledger(ctx: Context, remote: str, oid: str) -> Refused:
    """The remote's branch of the ledger's name is somebody's own."""
    free = free_branch(ctx, f"refs/remotes/{remote}/")
    return refused(
        "remote-ledger",
        f"the branch 'gitcoord' at '{remote}' is somebody's own, and the ledger needs that name there",
        f"rename it there: git push {shell_word(remote)} {oid}:refs/heads/{free} :refs/heads/gitcoord",
        "or begin a ledger that is this clone's alone: git coord init --adopt",
    )


def _valid_branch(ctx: Context, name: str) -> str:
    if not is_branch_name(ctx.repo.env, name):
        raise UsageError(f"{quote(name[:80])} is not the name of a branch")
    return name


def sync_branch(ctx: Context) -> str:
    """The branch that everybody's work lands on: the remote's default, else the current one."""
    for ref in ("refs/remotes/origin/HEAD", "HEAD"):
        answer = symbolic_ref(ctx.repo.env, ref)
        if not answer.code:
            return answer.text.removeprefix("refs/remotes/origin/").removeprefix("refs/heads/")
    return "main"


def root_of(ctx: Context, ref: str = LEDGER) -> str:
    """The first commit of the ledger at this ref."""
    return first_parents(ctx.repo.env, ref).require("git cannot walk the ledger", StoreError).lines[-1]


def note(ctx: Context, values: dict[str, str]) -> None:
    """Write what this clone knows of its ledger to the local settings, so that a missing ledger is noticed. An empty value is unset.

    Written after the ledger: `init` run again completes it after a crash.
    """
    for name, value in values.items():
        key = f"gitcoord.{name}"
        if ctx.settings.get(key.lower()) == value:
            continue
        words = [key, value] if value else ["--unset-all", key]
        code, complaint = change_settings(ctx.repo, ["--local", *words], ctx.host.pause)
        if code and value:
            raise StoreError(
                f"cannot write {key} to the local settings: {complaint}", hints=("run it again: git coord init",)
            )


def note_root(ctx: Context, root: str) -> None:
    """Note the root of a rewritten ledger, in the settings and in this process."""
    # The policy may still name the former root.
    note(ctx, {"formerRoot": ctx.settings.get("gitcoord.root"), "root": root})
    ctx.settings = Settings([*ctx.settings.pairs, ("gitcoord.root", root)])

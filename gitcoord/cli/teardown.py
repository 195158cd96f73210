"""Taking gitcoord out of a repository: nothing that somebody holds, nothing that could not be brought back."""

from __future__ import annotations

from gitcoord.base.errors import Contention, CouldNotJudge, NotInitialised, Refusal, Refused, StoreError, refused
from gitcoord.base.names import ARCHIVE, CLAIMS, KEPT, LEDGER, LOST, PRIVATE, TIP, Oid, shell_word
from gitcoord.claims.query import listing
from gitcoord.gates.hooks.files import remove_tree
from gitcoord.gates.hooks.install import removal, uninstall
from gitcoord.git.commands.settings import change_settings, list_settings
from gitcoord.git.config import parse_settings
from gitcoord.git.store import Create, Delete, Operation, SwapFailed
from gitcoord.ledger.context import Context
from gitcoord.ledger.named_ledger import setup_command
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import bring_back
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.startup.annotations import Collection
from gitcoord.startup.namedtuple import NamedTuple

# The root last: while it is there, a teardown that was interrupted is known to have more to do.
_WRITTEN = (
    "gitcoord.ledger", "gitcoord.root", "gitcoord.authority", "gitcoord.namespaces", "gitcoord.atomic",
    "gitcoord.pushOptions", "gitcoord.readOnly", "gitcoord.formerRoot",
)  # fmt: skip
_TRIES = 5


class Found(NamedTuple):
    """The parts to take away: the ledger's head, and every ref of gitcoord with its value."""

    head: Oid | None
    refs: dict[str, Oid]


def survey(ctx: Context, actor: Actor | None, *, force: bool, ends: Collection[tuple[str, str]] = ()) -> Found:
    """Find the parts to take away. Refused where somebody holds a live claim, unless a person insists; those that end by
    consent, each as path and agent, do not count."""
    # The head first: if the claims read next belong to a later one, the swap that expects this head fails.
    head = ctx.store.resolve([LEDGER])[0]
    refs = {**ctx.store.list_refs(CLAIMS), **ctx.store.list_refs(PRIVATE)}
    if force:
        _require_person(ctx, actor)
    elif head is not None:
        if not ctx.remote:  # a clone that leaves takes nothing from those at the remote
            _require_nobody(ctx, ends, insists=actor is not None and actor.person and not actor.by_setting)
    elif (refs or ctx.settings.get("gitcoord.root")) and not ctx.store.list_refs(ARCHIVE):
        # With an archive it is a teardown that was interrupted, and goes on.
        raise CouldNotJudge(
            f"the ledger ({LEDGER}) is missing: who holds what cannot be told",
            hints=("bring it back: git coord fsck --repair", "or, as a person: git coord teardown --force"),
        )
    return Found(head, {ref: oid for ref, oid in refs.items() if ref != LEDGER})


def live_claims(ctx: Context) -> list[dict[str, object]]:
    """The live claims in this clone's ledger, as refusals name them."""
    claims: list[dict[str, object]] = listing(ctx, None, expired=True)["claims"]  # type: ignore[assignment]
    return [{key: claim[key] for key in claim if key != "silent"} for claim in claims if not claim["silent"]]


def _require_nobody(ctx: Context, ends: Collection[tuple[str, str]], *, insists: bool) -> None:
    """`insists`: the reader is a person, who may."""
    live = tuple(claim for claim in live_claims(ctx) if (claim["path"], claim["agent"]) not in ends)
    if live:
        raise Refused(
            Refusal(
                "live-claims",
                f"{len(live)} live claim{'s' if len(live) > 1 else ''} in this repository; nothing was changed",
                live,
                (
                    "ask the holders to release them: git claim release --all",
                    *(["what a person may do all the same: git coord teardown -h"] if insists else []),
                ),
            )
        )


def _require_person(ctx: Context, actor: Actor | None) -> None:
    approvers: list[str] = []
    try:
        approvers = ctx.world(read_snapshot(ctx, trusting=True)).approvers()
    except (CouldNotJudge, NotInitialised):
        pass  # nobody can be listed in what cannot be read
    if actor is None or not actor.person or (approvers and actor.agent not in approvers):
        raise refused(
            "person",
            "only a person at a terminal may take gitcoord away from those who hold claims"
            + (", whom the settings list as approver" if approvers else ""),
            "ask the holders to release them: git claim release --all",
        )


def tear_down(
    ctx: Context, actor: Actor | None, stamp: str, *, force: bool, ends: Collection[tuple[str, str]] = ()
) -> dict[str, object]:
    """Keep the ledger at refs/gitcoord-archive/<stamp>; remove refs, settings, hooks and scratch. Goes on where it stopped."""
    was_there = bool(ctx.settings.get("gitcoord.root"))
    for _ in range(_TRIES):
        ctx.store.refresh()
        found = survey(ctx, actor, force=force, ends=ends)
        operations, archive = _operations(ctx, found, stamp)
        if not operations:
            break
        try:
            ctx.local.swap(operations)
            break
        except SwapFailed as failure:
            last = failure.message
    else:
        raise Contention(f"others keep writing: {last}", hints=("try again", "nothing was changed"))
    # Without its settings every hook of ours lets everything pass: from here on nobody is locked out.
    _forget_settings(ctx)
    steps = removal(ctx)
    hooks = uninstall(ctx, steps)
    remove_tree(ctx.repo.scratch)
    return {
        "removed": bool(was_there or operations or hooks),
        "archive": archive,
        "refs": sum(isinstance(operation, Delete) for operation in operations),
        "hooks": [step.row() for step in steps],
        "bring_back": _bring_back(ctx, archive),
    }


def _operations(ctx: Context, found: Found, stamp: str) -> tuple[list[Operation], str]:
    """The archive comes first: whatever a crash leaves, the ledger is still named."""
    head = found.head or found.refs.get(TIP)
    archives = ctx.store.list_refs(ARCHIVE)
    operations: list[Operation] = []
    archive = next((ref for ref, oid in archives.items() if oid == head), "")
    if head is not None and not archive:
        archive, number = ARCHIVE + stamp, 1
        while archive in archives:
            number += 1
            archive = f"{ARCHIVE}{stamp}-{number}"
        operations.append(Create(archive, head))
        lost = {
            f"{archive}-lost-{ref.removeprefix(LOST)}": oid for ref, oid in found.refs.items() if ref.startswith(LOST)
        }
        operations += [Create(ref, oid) for ref, oid in lost.items()]
        kept = {ref.removeprefix(KEPT): oid for ref, oid in found.refs.items() if ref.startswith(KEPT)}
        operations += [Create(f"{archive}-kept-{name}", oid) for name, oid in kept.items()]
    if found.head is not None:
        operations.append(Delete(LEDGER, found.head))
    return [*operations, *(Delete(ref, oid) for ref, oid in found.refs.items())], archive


def _bring_back(ctx: Context, archive: str) -> list[str]:
    """The commands that undo it. A remote still has its ledger, and this clone joins it again."""
    if ctx.remote and archive:
        return [setup_command(ctx) + ("" if ctx.remote == "origin" else f" --remote {shell_word(ctx.remote)}")]
    return bring_back(archive, setup_command(ctx)) if archive else []


def own_settings(ctx: Context) -> list[str]:
    """The local settings that `init` and `install-hooks` wrote. Others, like gitcoord.agent, are the user's."""
    there = {key for key, _ in parse_settings(list_settings(ctx.repo.env).out)}
    return [key for key in _WRITTEN if key.lower() in there]


def _forget_settings(ctx: Context) -> None:
    if ctx.remote:
        pattern = "^[+]refs/(heads/gitcoord:|heads/gitcoord-sessions/|gitcoord/sessions/|claims/)"
        words = ["--local", "--unset-all", f"remote.{ctx.remote}.fetch", pattern]
        change_settings(ctx.repo, words, ctx.host.pause)
    for key in own_settings(ctx):
        code, complaint = change_settings(ctx.repo, ["--local", "--unset-all", key], ctx.host.pause)
        if code:
            raise StoreError(
                f"cannot write the local settings: {complaint}", hints=("run it again: git coord teardown",)
            )

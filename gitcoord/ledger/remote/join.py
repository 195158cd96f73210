"""Setting up a clone with a remote authority: probe the host, then join its ledger or make one.

Nothing is written to this clone's settings before the remote has accepted: a failure changes nothing.
"""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError, NotInitialised, Refused, StoreError, Unreachable, UsageError, refused
from gitcoord.base.names import CLAIMS, CONFIG, LEDGER, PROBE, SESSIONS, TIP, Oid, printable, quote
from gitcoord.git.commands.objects import is_ancestor
from gitcoord.git.commands.refs import delete_ref
from gitcoord.git.commands.remotes import fetch_ref, ls_remote
from gitcoord.git.commands.settings import change_settings, list_settings
from gitcoord.git.config import Settings, parse_settings
from gitcoord.git.store import Create, Delete, RefUpdate, Store
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import Format, format_record
from gitcoord.ledger.named_ledger import project_root
from gitcoord.ledger.remote.address import directory, place, url_of
from gitcoord.ledger.remote.fetch import fetch, store_of
from gitcoord.ledger.remote.git_remote import (
    BRANCH_SESSIONS,
    LANDED,
    GitRemote,
)
from gitcoord.ledger.remote.mirror_store import MirrorStore
from gitcoord.ledger.remote.probe import HostCapabilities, alone, joining_deadline, probe
from gitcoord.ledger.remote.server_behind import check_gone
from gitcoord.ledger.remote.transaction import RemoteAuthority
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import first_ledger, is_ledger, not_a_ledger, note, require_unnamed, root_of
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.transaction import prepare, transact
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


class _Found(NamedTuple):
    """The ledgers that existed before."""

    name: str
    url: str
    there: Oid | None  # the remote's ledger
    has_own: bool  # this clone has a ledger of its own
    copied: bool = False  # the remote has no more than a copy of it, as `git push --all` makes one


def init_remote(
    ctx: Context,
    actor: Actor,
    name: str,
    *,
    sync: str = "",
    fold: bool | None = None,
    adopt: bool = False,
    same: bool = False,
    read_only: bool = False,
) -> dict[str, object]:
    """Make `name` the authority of this clone. Running it again brings the clone up to date and changes nothing else.
    `read_only`: nothing is pushed there, now or later. Where the policy names a ledger, no other one is made or joined,
    except with `adopt`.
    """
    local = ctx.local
    root = "" if adopt else project_root(ctx)
    found = _find(ctx, local, name, root)
    if read_only and found.there is None:
        raise refused(
            "no-ledger", f"'{name}' has no ledger", f"a clone that may push makes it: git coord setup --remote {name}"
        )
    capabilities = HostCapabilities(branches=False, atomic=True, options=False) if read_only else probe(ctx, name)
    joined = _joined(ctx, local, name, capabilities)
    made: dict[str, object] = {}
    if found.has_own and (found.there is None or found.copied):
        _move_there(joined, ctx, actor, found.url)
    elif found.there is None:
        made = first_ledger(joined, actor, sync=sync, fold=fold, authority={"remote": found.url})
    _fetch_first(joined, local, found, root)
    if local.resolve([LEDGER])[0] is None:
        raise refused("host", f"'{name}' refused it: {made.get('failed')}", "nothing was changed")
    _follow_tip(joined)
    record = _recorded(joined, actor, found, adopt=adopt, same=same or read_only)
    known = {"root": root_of(joined), "ledger": record.ledger}
    note(ctx, {"readOnly": "true" if read_only else "", **known, "authority": name, **_notes(capabilities)})
    _fetch_with_the_rest(joined, name, capabilities)
    return {
        "created": found.there is None, **known, "sync": record.sync, "remote": name,
        "namespaces": "branches" if capabilities.branches else "all", "atomic": capabilities.atomic, "push_options": capabilities.options,
    }  # fmt: skip


def _fetch_first(joined: Context, local: Store, found: _Found, root: str) -> None:
    """Fetch. Refused if the remote's branch is no ledger, or not the one that begins at `root`; this clone is then left as it
    was."""
    known = local.resolve([TIP])[0] is not None
    try:
        fetch(joined)
    except NotInitialised:
        pass  # the caller says so
    there = local.resolve([LEDGER])[0]
    if not known and there is not None:
        try:
            if not is_ledger(local, LEDGER):
                raise not_a_ledger(joined, found.name, there)
        except GitcoordError:
            _forget_copies(local)
            raise
    if root and there is not None and not _begins_at(joined, root):
        if not known:
            _forget_copies(local)
        raise _not_the_named(found.name, root)


def _begins_at(joined: Context, root: str) -> bool:
    return root in (root_of(joined), joined.settings.get("gitcoord.formerroot"))


def _find(ctx: Context, local: Store, name: str, root: str) -> _Found:
    """Refused if this clone and the remote each have a ledger, and neither is the other's earlier state; and if the one that
    begins at `root` is neither here nor there."""
    url, there = url_of(ctx, name), _ledger_there(ctx, name)
    here = local.resolve([LEDGER])[0]
    has_own = ctx.remote == "" and here is not None and not (there and _is_copy(ctx, local))
    if has_own and there is not None and is_ancestor(ctx.repo.env, there, here or "") is True:
        return _Found(name, url, there, has_own, copied=True)
    if has_own and there is not None and not _continues(ctx, name, here or ""):
        raise refused(
            "other-ledger",
            f"this clone has a ledger of its own, and '{name}' has another one: nothing was changed",
            "give this clone's up first: git coord teardown",
        )
    if there is None and ctx.remote == name and any(local.resolve([LEDGER, TIP])):
        check_gone(ctx)
    if there is None and root and not has_own:
        require_unnamed(ctx, [name])
    if there is None and root and has_own and not _begins_at(ctx, root):
        raise _not_the_named("this clone", root)
    return _Found(name, url, there, has_own)


def _is_copy(ctx: Context, local: Store) -> bool:
    """Return whether the ledger here is the copy of a remote's, as a user brings it back after leaving that remote."""
    return is_ledger(local, LEDGER) and "remote" in format_record(read_snapshot(ctx, trusting=True).state).authority


def _recorded(joined: Context, actor: Actor, found: _Found, *, adopt: bool, same: bool) -> Format:
    """The ledger's format record. Refused if it was set up at another address, without `same` or `adopt`."""
    record = format_record(read_snapshot(joined, trusting=True).state)
    recorded = str(record.authority.get("remote", ""))
    if adopt and recorded != found.url:
        from gitcoord.ledger.events.adopt import Adopt, decide

        transact(joined, decide, Adopt(actor, {"remote": found.url}), copied=True)
    elif not same and (not recorded or place(directory(joined, recorded)) != place(found.url)):
        if not found.has_own:
            _forget_copies(store_of(joined).local)
        raise _elsewhere(found.name, found.url, recorded)
    return record


def _notes(capabilities: HostCapabilities) -> dict[str, str]:
    return {
        "namespaces": "branches" if capabilities.branches else "",
        "atomic": "" if capabilities.atomic else "false",
        "pushOptions": "true" if capabilities.options else "",
    }


def _ledger_there(ctx: Context, name: str) -> Oid | None:
    """The remote's ledger; None if it has none."""
    rows = _refs_there(ctx, name, LEDGER, LEDGER + "/*")
    below = [ref for ref in rows if ref.startswith(LEDGER + "/")]
    if below:
        branch = printable(below[0].removeprefix("refs/heads/"))
        raise UsageError(
            f"the branch '{branch}' at '{name}' conflicts with the ledger's branch 'gitcoord'",
            hints=("rename it there first",),
        )
    return rows.get(LEDGER)


def _refs_there(ctx: Context, name: str, *patterns: str) -> dict[str, Oid]:
    answer = ls_remote(ctx.repo.env, joining_deadline(ctx, name), name, *patterns)
    answer.require(f"'{name}' cannot be reached", Unreachable, hints=("nothing was changed",))
    return {ref: oid for oid, _, ref in (line.partition("\t") for line in answer.lines)}


def has_another_ledger(ctx: Context, name: str) -> bool:
    """Return whether this remote has a ledger that is neither an earlier nor a later state of this clone's own."""
    here = ctx.local.resolve([LEDGER])[0]
    there = _ledger_there(ctx, name) if here is not None else None
    if here is None or there is None or is_ancestor(ctx.repo.env, there, here) is True:
        return False
    return not _continues(ctx, name, here)


def require_the_named(ctx: Context, names: tuple[str, ...]) -> None:
    """Refused where none of these remotes has the project's ledger. Before this clone's own one is given up for it."""
    root = project_root(ctx)
    for name in names:
        fetch_ref(ctx.repo.env, joining_deadline(ctx, name), ctx.notes, name, f"+{LEDGER}:{PROBE}ledger")
        found = root_of(ctx, f"{PROBE}ledger")
        delete_ref(ctx.repo, ctx.notes, f"{PROBE}ledger")
        if found == root:
            return
    raise _not_the_named(names[0], root)


def _continues(ctx: Context, name: str, here: Oid) -> bool:
    """Return whether this clone's ledger is an earlier state of the remote's."""
    fetch_ref(ctx.repo.env, joining_deadline(ctx, name), ctx.notes, name, f"+{LEDGER}:{PROBE}ledger")
    continues = is_ancestor(ctx.repo.env, here, f"{PROBE}ledger") is True
    delete_ref(ctx.repo, ctx.notes, f"{PROBE}ledger")
    return continues


def _joined(ctx: Context, local: Store, name: str, capabilities: HostCapabilities) -> Context:
    """The same repository with the remote as its authority, before the settings say so."""
    remote = GitRemote(
        ctx.repo.env,
        name,
        branches=capabilities.branches,
        atomic=capabilities.atomic,
        deadline=joining_deadline(ctx, name),
    )
    remote.notes = ctx.notes
    settings = Settings([*ctx.settings.pairs, ("gitcoord.authority", name)])
    return Context(ctx.repo, settings, MirrorStore(local, remote), ctx.host, ctx.make_world, RemoteAuthority)


def _move_there(joined: Context, ctx: Context, actor: Actor, url: str) -> None:
    """Push this clone's own ledger, with an `adopt` event on top, to the remote."""
    store = store_of(joined)
    with ctx.queue():
        from gitcoord.ledger.events.adopt import Adopt, decide

        snapshot = read_snapshot(ctx)
        world = ctx.world(snapshot)
        world.nonce = ctx.host.random()
        decision = decide(snapshot.state, Adopt(actor, {"remote": url}), world)
        head, operations = prepare(ctx, snapshot, decision)
        ctx.store.flush()
        refs = {LEDGER: head, **store.local.list_refs(CLAIMS), **store.local.list_refs(SESSIONS)}
        copies = _refs_there(ctx, store.remote.name, LEDGER, CLAIMS + "*", SESSIONS + "*")
        moves = [RefUpdate(ref, copies.get(ref, ""), refs.get(ref, "")) for ref in {**refs, **copies}]
        report = store.remote.push([move for move in moves if move.old != move.new])
        if report.kind != LANDED:
            raise refused("host", f"'{store.remote.name}' refused it: {report.words}", "nothing was changed")
        store.local.swap(operations)


def _follow_tip(joined: Context) -> None:
    """Set the tip of a clone that has just fetched the ledger for the first time."""
    local = store_of(joined).local
    ledger, tip = local.resolve([LEDGER, TIP])
    if ledger is not None and tip is None:
        local.swap([Create(TIP, ledger)])


def _forget_copies(local: Store) -> None:
    """Delete the fetched refs: this clone had no ledger before."""
    refs = {**local.list_refs(CLAIMS), **local.list_refs(SESSIONS)}
    refs.update({ref: oid for ref, oid in zip((LEDGER, TIP), local.resolve([LEDGER, TIP])) if oid is not None})
    local.swap([Delete(ref, oid) for ref, oid in refs.items()])


def _not_the_named(name: str, root: str) -> Refused:
    return refused(
        "other-ledger",
        f"the ledger of {quote(name)} is not the project's, which begins at {root[:12]}: nothing was changed",
        f"{CONFIG} says which one it is: ask who maintains it",
    )


def _elsewhere(name: str, url: str, recorded: str) -> Refused:
    if not recorded:
        return alone(name)
    return refused(
        "elsewhere",
        f"the ledger at '{name}' ({printable(url)}) was set up at {printable(recorded)}: nothing was changed",
        f"if that is another address of the same server: git coord init --remote {name} --same",
        f"if '{name}' is a fork that shall decide for itself: git coord init --remote {name} --adopt",
    )


def _fetch_with_the_rest(ctx: Context, name: str, capabilities: HostCapabilities) -> None:
    """A plain `git fetch` keeps this clone's copies up to date too."""
    key = f"remote.{name}.fetch"
    sessions = BRANCH_SESSIONS if capabilities.branches else SESSIONS
    wanted = [
        f"+{LEDGER}:{LEDGER}",
        f"+{sessions}*:{SESSIONS}*",
        *([] if capabilities.branches else [f"+{CLAIMS}*:{CLAIMS}*"]),
    ]
    there = [value for name, value in parse_settings(list_settings(ctx.repo.env).out) if name == key.lower()]
    for spec in wanted:
        if spec not in there:
            code, complaint = change_settings(ctx.repo, ["--local", "--add", key, spec], ctx.host.pause)
            if code:
                raise StoreError(f"cannot write {key} to the local settings: {complaint}")

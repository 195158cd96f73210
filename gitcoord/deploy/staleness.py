"""Staleness: whether a commit contains trunk and the last deploy; and recording deploys.

Where git cannot tell, CouldNotJudge is raised: unknown is never "up to date".
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, GitcoordError, UsageError
from gitcoord.base.names import PRIVATE, encode, printable, quote, shell_word
from gitcoord.claims.facts import declared_resources, project_settings
from gitcoord.claims.work_facts import usual_remote
from gitcoord.deploy.events.deploy import Deploy
from gitcoord.deploy.model import Deployed, all_deploys, deploys_of
from gitcoord.deploy.targets import Staleness, Target, first_names, resource_of, targets
from gitcoord.git.commands.objects import (
    author_names,
    compare_ancestry,
    diff_names,
    empty_tree,
    merge_base,
    merge_tree,
)
from gitcoord.git.commands.refs import for_each_ref, rev_parse_commit
from gitcoord.git.files import read_file
from gitcoord.git.process import without_grafts
from gitcoord.git.store import move
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.remote.user_refs import fetch_sync
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.ledger.transaction import transact
from gitcoord.ledger.world import Resource

DEPLOYED = PRIVATE + "deployed/"


def sync_name(snapshot: Snapshot) -> str:
    return format_record(snapshot.state).sync


def known_targets(ctx: Context, snapshot: Snapshot) -> dict[str, Target]:
    return targets(project_settings(ctx, snapshot))


def target_named(ctx: Context, snapshot: Snapshot, name: str) -> tuple[Target, Resource]:
    """A target of the policy, and the settings of the resource that its deploys claim."""
    known = known_targets(ctx, snapshot)
    if name not in known:
        there = f"there are: {', '.join(known)}" if known else "none is named there yet"
        raise UsageError(
            f"{quote(name[:80])} is no deploy target of .gitcoord/config ({there})",
            hints=(f'name it there, on trunk: [deploy "{printable(name[:80])}"] verify = <command>',),
        )
    return known[name], declared_resources(ctx, snapshot).get(resource_of(name), Resource())


def commit_named(ctx: Context, word: str) -> str:
    """The commit that an argument names."""
    found = rev_parse_commit(ctx.repo.env, word or "HEAD")
    if found.code:
        what = f"{quote(word[:80])} is not a commit here" if word else "nothing is committed here yet"
        raise UsageError(what, hints=("git fetch, if it is elsewhere",) if word else ())
    return found.text


# --- comparing -----------------------------------------------------------------------------------------------------


def staleness(
    ctx: Context, snapshot: Snapshot, target: Target | None, commit: str, *, remote: str, fetch: bool
) -> Staleness:
    """Compare `commit` with trunk, here and at `remote` ('': here only), and with the last deploy of `target`.

    CouldNotJudge where git cannot tell: a remote that does not answer (Unreachable), a shallow clone, a missing commit.
    """
    sync = sync_name(snapshot)
    if remote and fetch:
        fetch_sync(ctx, remote, sync)
    tips = _tips(ctx, remote, sync)
    lacking = tuple(tip for tip in tips if not _contains(ctx, commit, tip, remote))
    name = target.name if target is not None else ""
    found = Staleness(name, commit, sync, lacking)
    if lacking:
        found = _behind(ctx, found)
    last = last_good(ctx, snapshot, name) if name else None
    if last is None:
        return found
    return found._replace(last=last, contains_last=_contains(ctx, commit, last.commit, remote))


def _tips(ctx: Context, remote: str, sync: str) -> list[str]:
    """The tip of trunk; two tips where the local and the fetched one have diverged."""
    names = [f"refs/heads/{sync}", *([f"refs/remotes/{remote}/{sync}"] if remote else [])]
    answer = for_each_ref(without_grafts(ctx.repo.env), *names)
    if answer.code or answer.complaint:  # a ref that is there and cannot be read is not "no ref"
        raise _missing(ctx, answer.complaint, remote)
    rows = [line.split(" ") for line in answer.lines]
    there = [oid for oid, name in rows if name in names]
    if not there:
        command = f"git fetch {shell_word(remote)} {shell_word(sync)}" if remote else f"git branch {shell_word(sync)}"
        raise CouldNotJudge(f"the trunk '{printable(sync)}' is not here", hints=(f"get it: {command}",))
    answer = merge_base(without_grafts(ctx.repo.env), *there, how="independent")
    if answer.code:
        raise _missing(ctx, answer.complaint, remote)
    return answer.lines


def _contains(ctx: Context, commit: str, older: str, remote: str) -> bool:
    """Return whether `commit` contains `older`. In a shallow clone only a yes can be trusted."""
    code, _, complaint = compare_ancestry(without_grafts(ctx.repo.env), older, commit)
    if code not in (0, 1):
        raise _missing(ctx, complaint, remote, older)
    if code and read_file(f"{ctx.repo.common_dir}/shallow"):
        raise CouldNotJudge(
            f"this clone is shallow: it is unknown whether {commit[:12]} contains {older[:12]}",
            hints=(f"get the whole history: git fetch --unshallow {shell_word(remote or 'origin')}",),
        )
    return not code


def _missing(ctx: Context, complaint: str, remote: str, commit: str = "") -> CouldNotJudge:
    where = shell_word(remote or "origin")
    if commit and not ctx.store.read([commit])[0]:
        return CouldNotJudge(f"{commit[:12]} is not here", hints=(f"get it: git fetch {where} {commit}",))
    return CouldNotJudge(
        f"git cannot walk the history: {complaint}",
        hints=(f"git fetch {where}, if history is missing here; git fsck tells more",),
    )


def _behind(ctx: Context, found: Staleness) -> Staleness:
    """Add the missing commits, their authors, the files that would go back, and whether a merge would conflict."""
    answer = author_names(without_grafts(ctx.repo.env), *found.tips, f"^{found.commit}")
    if answer.code:
        raise _missing(ctx, answer.complaint, "")
    rows = answer.out.decode("utf-8", "surrogateescape").split("\n")[:-1]
    # A team of agents often has one author.
    names = [agents or author for author, _, agents in (row.partition("\t") for row in rows)]
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    back: set[str] = set()
    conflicting: set[str] = set()
    conflict = False
    for tip in found.tips:
        back |= _going_back(ctx, found.commit, tip)
        clash, where = _conflict(ctx, found.commit, tip)
        conflict, conflicting = conflict or clash, conflicting | where
    return found._replace(
        behind=len(names), authors=tuple(sorted(counts.items(), key=lambda row: (-row[1], row[0]))),
        rollback=first_names(back), rollback_total=len(back), conflict=conflict, conflicting=first_names(conflicting),
    )  # fmt: skip


def _going_back(ctx: Context, commit: str, tip: str) -> set[str]:
    """Files that changed up to `tip` and are unchanged in `commit`."""
    answer = merge_base(without_grafts(ctx.repo.env), commit, tip)
    if answer.code not in (0, 1):
        raise _missing(ctx, answer.complaint, "")
    base = answer.text or empty_tree(ctx.repo.env)  # no common history: all of it is new
    return changed_files(ctx, base, tip) - changed_files(ctx, base, commit)


def changed_files(ctx: Context, old: str, new: str) -> set[str]:
    answer = diff_names(without_grafts(ctx.repo.env), old, new)
    if answer.code:
        raise _missing(ctx, answer.complaint, "")
    return set(answer.entries)


def _conflict(ctx: Context, commit: str, tip: str) -> tuple[bool, set[str]]:
    """Return whether a merge would conflict, and in which files. Only git's exit code is reliable, not its tree."""
    code, out, complaint = merge_tree(without_grafts(ctx.repo.env), commit, tip)
    if code in (0, 1):
        _, *names = out.decode("utf-8", "surrogateescape").split("\0")
        return bool(code), {name for name in names if name and code}
    if "unrelated histories" in complaint:
        return True, set()
    raise _missing(ctx, complaint, "")


# --- the record ----------------------------------------------------------------------------------------------------


def last_good(ctx: Context, snapshot: Snapshot, target: str) -> Deployed | None:
    """The last successful deploy of a target."""
    found = deploys_of(snapshot.state, target)
    return found.good if found is not None else None


def record(ctx: Context, command: Deploy) -> dict[str, object]:
    """Record the outcome of a deploy, and release the target in the same transaction."""
    from gitcoord.deploy.events.deploy import decide

    result = transact(ctx, decide, command)
    if result["good"]:
        _keep(ctx, command)
    return result


def _keep(ctx: Context, command: Deploy) -> None:
    """Keep a ref on the deployed commit, so that gc does not remove it. Best effort: nothing depends on it."""
    ref = DEPLOYED + encode(command.target)
    try:
        (old,) = ctx.store.resolve([ref])
        operation = move(ref, old, command.commit)
        if operation is not None:
            ctx.store.swap([operation])
    except (GitcoordError, OSError):
        pass


def deploys(ctx: Context) -> dict[str, object]:
    """Every target, its last deploy, and by how many commits it is behind trunk (None: unknown)."""
    snapshot = read_snapshot(ctx, trusting=True)
    known = known_targets(ctx, snapshot)
    records = {row.target: row for row in all_deploys(snapshot.state)}
    usual = usual_remote(ctx, snapshot)
    rows: list[dict[str, object]] = []
    for name in sorted({*known, *records}):
        done = records.get(name)
        good = done.good if done is not None else None
        remote = known[name].remote if name in known else ""
        rows.append(
            {
                "target": name,
                "declared": name in known,
                "last": done.last._asdict() if done is not None else None,
                "good": good._asdict() if good is not None else None,
                "behind": _behind_now(ctx, snapshot, good.commit, remote or usual) if good is not None else None,
            }
        )
    return {"sync": sync_name(snapshot), "deploys": rows}


def _behind_now(ctx: Context, snapshot: Snapshot, commit: str, remote: str) -> int | None:
    try:
        return staleness(ctx, snapshot, None, commit, remote=remote, fetch=False).behind
    except CouldNotJudge:
        return None

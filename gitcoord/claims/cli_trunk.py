"""Lines beside a claim and a release: that the copy is old, or lacks released work, and that the work has not landed."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import LANDING, Oid, printable, shell_word
from gitcoord.claims.released import Released, released_below
from gitcoord.git.commands.objects import count_changes
from gitcoord.git.commands.worktrees import changed_files
from gitcoord.git.files import exists
from gitcoord.git.operations import under_way
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.startup.annotations import Iterable
from gitcoord.terminal.screen import Row, counted

_MOST = 3  # paths that are named


def old_copy_lines(ctx: Context, claims: list[Row]) -> list[str]:
    """Say that trunk has changed what was claimed since this copy was made."""
    names = [str(claim["path"]) for claim in claims if claim["kind"] == "path"]
    trunk, behind = lacking(ctx, names)
    if not behind:
        return []
    on = "it" if len(names) == 1 else "these paths"
    return [
        f"note: your copy lacks {counted(behind, 'commit')} of '{trunk}' that changed {on}",
        f"hint: bring it up to date first: {_update(ctx)}",
    ]


def _update(ctx: Context) -> str:
    """The command that brings trunk in. `sync --pull` refuses where that would touch uncommitted changes."""
    tips = set(_trunk(ctx)[1]) - {ctx.local.target("HEAD")}
    clean = under_way(ctx.repo.git_dir) or not changed_files(ctx.repo.env, "HEAD", ctx.repo.worktree).entries
    if len(tips) != 1 or clean:  # a merge that is under way ends first, and takes its changes along
        return "git coord sync --pull"
    return f"git merge --autostash {tips.pop()[:12]}"


def lacking(ctx: Context, names: list[str]) -> tuple[str, int]:
    """The name of trunk, and how many of its commits that changed one of these paths HEAD lacks. Where HEAD is trunk, git is not asked."""
    trunk, tips = _trunk(ctx)
    head = ctx.local.target("HEAD")
    asks = names and head and set(tips) - {head}
    return trunk, count_changes(ctx.repo.env, tips, head, paths=names) if asks and head else 0


def lacked_lines(ctx: Context, claims: list[Row]) -> list[str]:
    """Say that released work on what was claimed is not in this copy: a commit without it would be refused."""
    if ctx.snapshot is None:
        return []
    state, head = ctx.snapshot.state, ctx.local.target("HEAD")
    rows = [row for c in claims if c["kind"] == "path" for row in released_below(state, str(c["path"]))]
    if not head or not rows:
        return []
    from gitcoord.gates.git_history import GitHistory
    from gitcoord.gates.judge import conflict_words
    from gitcoord.gates.lineage import Lineages

    history = GitHistory(ctx, ctx.snapshot, {row.path for row in rows})
    missing = [row for row in _not_fetched(ctx, rows) if not history.stand_in(row.base, row.path, row.mode, row.blob)]
    lines = [
        line
        for row in missing[:_MOST]
        for line in (
            f"note: your copy lacks work on {printable(row.path)} that {row.agent} released as {row.commit[:12]}",
            # It may have landed as another commit, and be nowhere: after the fetch that is known.
            f"hint: fetch it, and ask how to bring it in: git fetch --all && git claim check {shell_word(row.path)}",
        )
    ]
    found = {row.path for row in rows} - {row.path for row in missing}
    try:
        lacked = Lineages(state, history, [], dict(zip(found, found))).lacked(head) if found else []
    except CouldNotJudge as error:
        return [*lines, f"note: {error.message}", *(f"hint: {hint}" for hint in error.hints[:1])]
    clashes = {row.commit: conflict_words(history.conflicts(head, row.commit)) for row in lacked[:_MOST]}
    return [*lines, *_lacked_line_pairs(lacked, "git merge --autostash", clashes)][: 2 * _MOST]


def _not_fetched(ctx: Context, rows: list[Released]) -> Iterable[Released]:
    """The newest release of each path whose commit is not in this clone, and so not in the copy. A shallow clone may contain it all the same."""
    if exists(f"{ctx.repo.common_dir}/shallow"):
        return []
    here = ctx.local.resolve([row.commit for row in rows])
    return {row.path: row for row, oid in sorted(zip(rows, here), key=lambda pair: pair[0].seq) if oid is None}.values()


def _lacked_line_pairs(rows: Iterable[Released], command: str, clashes: dict[str, str] | None = None) -> list[str]:
    """`clashes`: by commit, in which files its merge conflicts."""
    return [
        line
        for row in list(rows)[:_MOST]
        for line in (
            f"note: your copy lacks work on {printable(row.path)} that {row.agent} released as {row.commit[:12]}",
            f"hint: bring it in before you change it{(clashes or {}).get(row.commit, '')}: {command} {row.commit[:12]}",
        )
    ]


def not_landed_lines(ctx: Context, released: list[Row]) -> list[str]:
    """Say that the work of a release is neither on trunk nor at a remote: the next holder has to get it from here."""
    commits = list(dict.fromkeys(str(row["commit"]) for row in released if row["commit"] and row["files"]))
    trunk, tips = _trunk(ctx)
    if not tips or not set(commits) - set(tips) or not count_changes(ctx.repo.env, commits, *tips):
        return []
    return [
        f"note: {', '.join(commit[:12] for commit in commits)} has not landed on '{trunk}' yet",
        "hint: bring it there: git coord land",
    ]


def granted_lines(result: Row) -> list[str]:
    """Say who waited for what is free now, and has it; of a landing's turn nobody needs to hear."""
    rows = [
        (row["agent"], [path for path in row["paths"] if not path.startswith(LANDING)])
        for row in result.get("granted_to", ())
    ]
    return [
        f"{printable(', '.join(paths))} {'goes' if len(paths) == 1 else 'go'} to {agent}, who waited"
        for agent, paths in rows
        if paths
    ]


def handed_lines(ctx: Context, released: list[Row], agent: str) -> list[str]:
    """Say that a claim was released without the work that its handoff brought, which is on another branch."""
    empty = {str(row["path"]): row["base"] for row in released if row["kind"] == "path" and not row["files"]}
    if ctx.snapshot is None or not empty or not ctx.snapshot.state.names("handoffs"):
        return []
    from gitcoord.handoff.model import all_handoffs

    return [
        line
        for row in all_handoffs(ctx.snapshot.state)
        for grant in row.claims
        if row.by == agent and row.head and empty.get(grant.path) == grant.base != row.head
        and ctx.local.read([f"{row.head}:{grant.path}"]) != ctx.local.read([f"HEAD:{grant.path}"])
        for line in (
            f"note: {row.id} brought work on {printable(grant.path)} ({row.branch}, {row.head[:12]}) that is not here: it was not recorded",
            f"hint: claim it again and release it with that: git claim release --commit {row.head[:12]} {shell_word(grant.path)}",
        )
    ]  # fmt: skip


def _trunk(ctx: Context) -> tuple[str, list[Oid]]:
    """The name of trunk, and its tips: here, and as last seen at the remote."""
    if ctx.snapshot is None:
        return "", []
    name = format_record(ctx.snapshot.state).sync
    refs = (f"refs/heads/{name}", f"refs/remotes/{ctx.remote or 'origin'}/{name}")
    return name, [tip for tip in map(ctx.local.target, refs) if tip]

"""The facts of the work that is handed over: branch, commits, diffstat, uncommitted files, unpushed commits."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.names import ROOT, printable
from gitcoord.git.commands.objects import count_commits, diff_counts, is_ancestor, log_subjects, merge_base
from gitcoord.git.commands.refs import for_each_ref
from gitcoord.git.commands.worktrees import status_with_branch
from gitcoord.handoff.model import MOST
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.snapshot import Snapshot

_SUBJECT = 200  # bytes
_PATH = 500


def survey(ctx: Context, snapshot: Snapshot, claims: list[Record]) -> Record:
    """The facts of a handoff, as far as they fit into one; nothing where there is no work tree."""
    if not ctx.repo.worktree:
        return {}
    paths = [claim["path"] for claim in claims if claim["space"] == "path"]
    branch, head, dirty = _status(ctx, paths)
    facts: Record = {"branch": branch, "head": head, "dirty": [path for path in dirty if len(path) < _PATH][:MOST]}
    if not head:
        return facts
    base = _base(ctx, snapshot, [claim["base"] for claim in claims if claim["base"]], head)
    if base and base != head:
        facts["commits"] = _commits(ctx, base, head)
        facts["diffstat"] = _diffstat(ctx, base, head)
    return {**facts, "unpushed": _unpushed(ctx, head)}


def _status(ctx: Context, paths: list[str]) -> tuple[str, str, list[str]]:
    """(branch or '', head or '', files that are not committed below these paths; without paths, anywhere)."""
    specs = [f":(top,literal){'' if path == ROOT else path}" for path in paths]
    branch, head, dirty = "", "", []
    for entry in status_with_branch(ctx.repo.env, specs).require("git status failed").entries:
        if entry.startswith("# branch.head "):
            branch = entry.partition("head ")[2]
        elif entry.startswith("# branch.oid "):
            head = entry.partition("oid ")[2]
        elif entry[:1] == "?":
            dirty.append(entry[2:])
        elif entry[:1] in ("1", "u"):
            dirty.append(entry.split(" ", 8 if entry[0] == "1" else 10)[-1])
    return printable("" if branch == "(detached)" else branch), "" if head == "(initial)" else head, dirty


def _base(ctx: Context, snapshot: Snapshot, bases: list[str], head: str) -> str:
    """The base of the work: the merge base of all claims' bases, or of the trunk, with HEAD; later, where trunk was brought in since."""
    name = format_record(snapshot.state).sync
    refs = (f"refs/heads/{name}", f"refs/remotes/{ctx.remote or 'origin'}/{name}")
    tips = [tip for tip in map(ctx.local.target, refs) if tip]
    there = [base for base, oid in zip(bases, ctx.store.resolve(bases)) if oid is not None] or tips[:1]
    if not there:
        return ""
    base = merge_base(ctx.repo.env, *dict.fromkeys(there), head, how="octopus").text
    for tip in tips if base else ():
        landed = merge_base(ctx.repo.env, tip, head).text
        # Work that was committed on trunk itself is listed too.
        base = landed if landed not in ("", head) and is_ancestor(ctx.repo.env, base, landed) else base
    return base


def _commits(ctx: Context, base: str, head: str) -> list[list[str]]:
    """Newest first: [commit, subject]."""
    answer = log_subjects(ctx.repo.env, f"{base}..{head}", MOST).require("git log failed")
    lines = [line for line in answer.out.decode("utf-8", "replace").split("\0") if line]
    return [[line.partition(" ")[0], _cut(line.partition(" ")[2])] for line in lines]


def _cut(text: str) -> str:
    """A subject as it may be kept: printable, and not too long."""
    return printable(text).strip().encode()[:_SUBJECT].decode("utf-8", "ignore").strip()


def _diffstat(ctx: Context, base: str, head: str) -> list[list[object]]:
    """[path, lines added, lines removed] of each changed file; -1 for a binary one."""
    rows: list[list[object]] = []
    for entry in diff_counts(ctx.repo.env, base, head).require("git diff-tree failed").entries[:MOST]:
        added, _, rest = entry.partition("\t")
        removed, _, path = rest.partition("\t")
        if path and len(path) < _PATH:
            rows.append([path, *(int(count) if count.isdecimal() else -1 for count in (added, removed))])
    return rows


def _unpushed(ctx: Context, head: str) -> int:
    """The number of commits that are at no remote, as far as this clone knows; 0 where there is no remote."""
    if not for_each_ref(ctx.repo.env, "refs/remotes", most=1).require("git for-each-ref failed").lines:
        return 0
    return int(count_commits(ctx.repo.env, head, "--not", "--remotes").require("git rev-list failed").text)

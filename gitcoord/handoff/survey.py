"""What git knows about the work that is handed over: branch, commits, diffstat, what is not committed or not pushed."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import ROOT, printable
from gitcoord.claims.model import format_record
from gitcoord.git.process import run
from gitcoord.handoff.model import MOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.codec import Record
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.snapshot import Snapshot

_GIT = ["git", "--no-replace-objects"]
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


def _ask(ctx: Context, *words: str) -> bytes:
    code, out, complaint = run([*_GIT, *words], ctx.repo.env)
    if code:
        raise CouldNotJudge(f"git {words[0]} failed: {complaint}")
    return out


def _status(ctx: Context, paths: list[str]) -> tuple[str, str, list[str]]:
    """(branch or '', head or '', files that are not committed below these paths; without paths, anywhere)."""
    specs = [f":(top,literal){'' if path == ROOT else path}" for path in paths]
    words = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all", "--", *specs)
    branch, head, dirty = "", "", []
    for entry in _ask(ctx, *words).decode("utf-8", "surrogateescape").split("\0"):
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
    """The commit since which the work was done: what all claims began from, else where it left the sync branch."""
    if not bases:
        tip = ctx.store.target(f"refs/heads/{format_record(snapshot.state).sync}")
        bases = [tip] if tip else []
    there = [base for base, oid in zip(bases, ctx.store.resolve(bases)) if oid is not None]
    if not there:
        return ""
    code, out, _ = run([*_GIT, "merge-base", "--octopus", *dict.fromkeys(there), head], ctx.repo.env)
    return out.decode().strip() if not code else ""


def _commits(ctx: Context, base: str, head: str) -> list[list[str]]:
    """Newest first: [commit, subject]."""
    out = _ask(
        ctx, "log", "-z", f"--max-count={MOST}", "--no-show-signature", "--format=%H %s", f"{base}..{head}", "--"
    )
    lines = [line for line in out.decode("utf-8", "replace").split("\0") if line]
    return [[line.partition(" ")[0], _cut(line.partition(" ")[2])] for line in lines]


def _cut(text: str) -> str:
    """A subject as it may be kept: printable, and not too long."""
    return printable(text).strip().encode()[:_SUBJECT].decode("utf-8", "ignore").strip()


def _diffstat(ctx: Context, base: str, head: str) -> list[list[object]]:
    """[path, lines added, lines removed] of each changed file; -1 for a binary one."""
    words = ("diff-tree", "-r", "--numstat", "-z", "--no-renames", "--no-commit-id", base, head)
    rows: list[list[object]] = []
    for entry in _ask(ctx, *words).decode("utf-8", "surrogateescape").split("\0")[:MOST]:
        added, _, rest = entry.partition("\t")
        removed, _, path = rest.partition("\t")
        if path and len(path) < _PATH:
            rows.append([path, *(int(count) if count.isdecimal() else -1 for count in (added, removed))])
    return rows


def _unpushed(ctx: Context, head: str) -> int:
    """How many commits are at no remote, as far as this clone knows; 0 where there is no remote."""
    if not _ask(ctx, "for-each-ref", "--count=1", "refs/remotes").strip():
        return 0
    return int(_ask(ctx, "rev-list", "--count", head, "--not", "--remotes", "--"))

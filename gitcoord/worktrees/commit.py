"""Committing named files where many work in one work tree: from a private index, one commit at a time, on top of HEAD.

A queue of its own serialises the commits of one work tree, hooks included, so that nobody's content is read while a hook
of another has the work tree stashed away. A plain `git commit` does not queue; the compare-and-swap of the branch detects it,
and the lost race begins again on the new HEAD. The last look at the claims and the swap happen in the writers'
queue, so that no claim is granted between them.
"""

from __future__ import annotations

from gitcoord.base.errors import Contention, GitcoordError, Refusal, Refused, StoreError, TimedOut, UsageError, refused
from gitcoord.base.names import Oid, ancestors, listed, printable, quote, shell_word
from gitcoord.claims.model import Item
from gitcoord.claims.query import check
from gitcoord.git.commands.refs import rev_parse, symbolic_ref, update_ref
from gitcoord.git.commands.settings import get_setting
from gitcoord.git.commands.worktrees import commit_tree
from gitcoord.git.files import read_file, remove_file, write_file
from gitcoord.git.locks.queue import QueuedLock
from gitcoord.git.operations import refuse_under_way
from gitcoord.git.process import Environ
from gitcoord.ledger.context import Context
from gitcoord.ledger.refusal_counts import count_refusal
from gitcoord.ledger.sessions import Actor
from gitcoord.policy.model import ON_A_BRANCH
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.worktrees.commit_hooks import Hooks
from gitcoord.worktrees.index import IndexLock
from gitcoord.worktrees.message import compose, subject_of, through_hooks
from gitcoord.worktrees.staging import (
    GITLINK,
    PrivateIndex,
    StagedFile,
    follow,
    is_named,
    refuse_conflicts,
    shared_index,
    sweep,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.worktrees.commit_hooks import Tell

ATTEMPTS = 20
PATIENCE = 50
POLITE = 5
QUEUE_SECONDS = 120.0
_HOOK_SAID_NO = ("aborted by hook", "aborted by the reference-transaction hook")  # older and newer git


class Commit(NamedTuple):
    """The command. `words` are those of the command line, each with the paths that it stands for."""

    actor: Actor
    words: tuple[tuple[str, tuple[str, ...]], ...]
    message: str
    trailers: tuple[str, ...] = ()
    force: bool = False

    @property
    def named(self) -> set[str]:
        return {path for _, paths in self.words for path in paths}


class Head(NamedTuple):
    """HEAD: the branch's full name ('' if detached), and the commit (None on an unborn branch)."""

    ref: str
    oid: Oid | None


def commit(ctx: Context, command: Commit, environ: Environ, tell: Tell) -> dict[str, object]:
    """Commit exactly the files named. Refused: nothing was committed. `environ` is for the hooks, `tell` for their words."""
    if not ctx.repo.worktree:
        raise UsageError("this repository has no work tree to commit from")
    agent = "" if command.actor.person else command.actor.agent
    message = compose(ctx, command.message, command.trailers, agent)
    hooks = Hooks(ctx, environ, tell)
    tree = tree_id(ctx.repo.git_dir, ctx.repo.common_dir)
    with QueuedLock(ctx.scratch(f"commit{tree}.lock"), QUEUE_SECONDS) as queue:
        note = ctx.scratch(f"committing{tree}")
        if not queue.acquired:
            who = read_file(note).decode("utf-8", "replace") or "somebody"
            raise TimedOut(
                f"{who} has been committing here for more than {QUEUE_SECONDS:.0f} seconds", hints=("try again",)
            )
        write_file(note, command.actor.agent.encode())
        sweep(ctx.repo.git_dir)
        try:
            return _commit(ctx, command, message, hooks)
        finally:
            ctx.host.defer_interrupts(False)
            remove_file(note)


def tree_id(git_dir: str, common_dir: str) -> str:
    """A suffix for the names of notes about one work tree."""
    return "" if git_dir == common_dir else "-" + git_dir.rpartition("/")[2]


def _commit(ctx: Context, command: Commit, message: bytes, hooks: Hooks) -> dict[str, object]:
    seen_by_hooks = False
    for _ in range(ATTEMPTS):
        head = _head(ctx)
        _require_quiet(ctx, command.actor)
        refuse_conflicts(ctx, command.named)
        index = PrivateIndex(ctx, head.oid)
        try:
            _require_allowed(ctx, command.actor, _stage(index, command), asks=True)
            hooks.require("pre-commit", index=index.path)
            rows = _after_hook(index, command)
            if not seen_by_hooks:
                agent = "" if command.actor.person else command.actor.agent
                message = through_hooks(ctx, message, hooks, index.path, agent)
                seen_by_hooks = True
            made = _land(ctx, command.actor, head, index, rows, message)
        finally:
            index.remove()
        if made is not None:
            return _afterwards(ctx, head.ref, made, index.base, rows, hooks, subject_of(message))
    raise Contention(f"HEAD moved {ATTEMPTS} times meanwhile: nothing was committed", hints=("try again",))


def _head(ctx: Context) -> Head:
    ref = symbolic_ref(ctx.repo.env).text
    return Head(ref, _oid(ctx, ref or "HEAD"))


def _oid(ctx: Context, ref: str) -> Oid | None:
    return rev_parse(ctx.repo.env, ref).text or None


def _require_quiet(ctx: Context, actor: Actor) -> None:
    owner = ctx.settings.get("gitcoord.agent")
    refusal = refuse_under_way(ctx.repo.git_dir, owner if owner != actor.agent else "")
    if refusal is not None:
        raise Refused(refusal)


# --- which files --------------------------------------------------------------------------------------------------


def _stage(index: PrivateIndex, command: Commit) -> list[StagedFile]:
    """Put what is named into the private index; gives what that changes."""
    index.add(sorted(command.named), force=command.force)
    rows = index.changes()
    links = [row for row in rows if GITLINK in (row.was, row.mode)]
    for row in links:
        if row.path in command.named:
            raise refused(
                "submodule",
                f"{quote(row.path)} is a repository of its own: nothing was committed",
                "which commit of it is used is recorded by git commit",
            )
    if links:  # a directory means the files below it
        index.put_back(links)
        rows = [row for row in rows if row not in links]
    there = {above for row in rows for above in (row.path, *ancestors(row.path))}
    same = [word for word, paths in command.words if there.isdisjoint(paths)]
    if same:
        raise refused(
            "no-change",
            f"no change in {printable(', '.join(same[:5]))}: nothing was committed",
            "what changed: git status",
        )
    return rows


def _after_hook(index: PrivateIndex, command: Commit) -> list[StagedFile]:
    """A hook may correct the files that are committed. Others it must not bring in: they may be another's work."""
    rows = index.changes()
    foreign = [row for row in rows if not is_named(command.named, row.path)]
    if foreign:
        raise refused(
            "hook",
            f"the pre-commit hook added {listed([row.path for row in foreign])}, which was not named: nothing was committed",
            "name it too, if it is yours",
        )
    if not rows:
        raise refused("no-change", "the pre-commit hook left no change: nothing was committed")
    return rows


def _require_allowed(ctx: Context, actor: Actor, rows: list[StagedFile], *, asks: bool = False) -> None:
    """The same verdict as `git claim check`. `asks`: the remote, before a no: what is held may be free by now."""
    result = check(ctx, actor, tuple(Item("path", row.path) for row in rows))
    if result["allowed"]:
        return
    if "refused" in result:
        raise refused(str(result["refused"]), str(result["message"]))
    verdicts: list[dict[str, object]] = result["paths"]  # type: ignore[assignment]
    claims: list[dict[str, object]] = [c for row in verdicts for c in row["held"]]  # type: ignore[attr-defined]
    held = {(c["path"], c["agent"]): {k: v for k, v in c.items() if k != "silent"} for c in claims}
    if held and asks and _is_news(ctx):
        return _require_allowed(ctx, actor, rows)
    if held:
        names = ", ".join(sorted({str(agent) for _, agent in held}))
        words = " ".join(shell_word(f":/{path}") for path in dict.fromkeys(str(path) for path, _ in held))
        waits = (f"wait for it: git claim --wait 10m {words}", f"or go on meanwhile: git claim --queue {words}")
        refusal = Refusal("held", f"nothing was committed: held by {names}", tuple(held.values()), waits)
        count_refusal(ctx, actor.agent, refusal)
        raise Refused(refusal)
    loose = [str(row["path"]) for row in verdicts if row["verdict"] == "unclaimed"]
    raise refused(
        "unclaimed",
        f"{printable(', '.join(loose[:5]))} is shared and not claimed: nothing was committed",
        f"git claim {' '.join(shell_word(':/' + path) for path in loose[:5])}",
        *([ON_A_BRANCH] if any(row.get("only_landing") for row in verdicts) else []),
    )


def _is_news(ctx: Context) -> bool:
    """Fetch the ledger from the remote that decides; return whether it could be had."""
    if not ctx.remote:
        return False
    from gitcoord.ledger.remote.fetch import fetch

    try:
        fetch(ctx)
    except GitcoordError:
        return False
    return True


# --- making it so -------------------------------------------------------------------------------------------------


def _land(
    ctx: Context, actor: Actor, head: Head, index: PrivateIndex, rows: list[StagedFile], message: bytes
) -> Oid | None:
    """Make the commit and move the branch. Where others were quicker, the same files go on top of theirs, at once: who
    looked at everything again could lose for ever against a loop of plain commits. After a few losses git's lock on the
    shared index keeps new plain commits out until ours stands. None: everything must be looked at again, since another
    branch is checked out by now, or others committed the same files.
    """
    with ctx.queue():
        ctx.store.refresh()
        _require_allowed(ctx, actor, rows)
        with IndexLock(shared_index(ctx)) as shared:
            for lost in range(PATIENCE):
                if lost >= POLITE:
                    shared.take(ctx.host.pause)
                _require_quiet(ctx, actor)
                now = _head(ctx)
                if now.ref != head.ref or (now.oid != head.oid and not index.move(now.oid, rows)):
                    return None
                head = now
                made = _make(ctx, head, index.write_tree(), message)
                if _swap(ctx, head, made, subject_of(message)):
                    return made
    raise Contention(f"HEAD moved {PATIENCE} times meanwhile: nothing was committed", hints=("try again",))


def _make(ctx: Context, head: Head, tree: str, message: bytes) -> Oid:
    sign = get_setting(ctx.repo.env, "commit.gpgSign", kind="bool").text == "true"
    made = commit_tree(ctx.repo.env, tree, head.oid or "", message, sign=sign)
    if made.code:
        words = [line for line in made.complaint.split("\n") if line.strip()]
        raise StoreError(f"git could not make the commit: {words[-1] if words else ''}")
    return made.text


def _swap(ctx: Context, head: Head, made: Oid, subject: str) -> bool:
    """Move the branch from where it was read. False if it is no longer there."""
    what = "commit" if head.oid else "commit (initial)"
    expected = head.oid or "0" * len(made)
    for _ in range(PATIENCE):
        ctx.host.defer_interrupts(True)
        code, _, complaint = update_ref(ctx.repo, ctx.notes, head.ref or "HEAD", made, expected, f"{what}: {subject}")
        now = made if not code else _oid(ctx, head.ref or "HEAD")
        if now == made:
            return True
        ctx.host.defer_interrupts(False)
        if any(words in complaint for words in _HOOK_SAID_NO):
            raise refused("hook", f"the reference-transaction hook said no: {complaint}")
        if now != head.oid:
            return False
        ctx.host.pause(0.02)  # another git holds the ref's lock
    raise StoreError(f"git could not move the branch: {complaint}", hints=("nothing was committed",))


def _afterwards(
    ctx: Context, ref: str, made: Oid, base: str, rows: list[StagedFile], hooks: Hooks, subject: str
) -> dict[str, object]:
    """The commit stands: nothing that fails from here on unmakes it."""
    followed, staged = follow(ctx, base, rows)
    ctx.host.defer_interrupts(False)
    if ctx.settings.flag("gitcoord.gc", default=True):
        ctx.store.maintain()
    hooks.run("post-commit")
    result: dict[str, object] = {
        "commit": made,
        "branch": ref.removeprefix("refs/heads/"),
        "subject": subject,
        "files": [row.path for row in rows],
    }
    if staged:
        result["staged"] = staged
    if not followed:
        result["index"] = "locked"
    return result

"""The verbs of `git coord` for work in one work tree or in several: commit, worktree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gitcoord.base.errors import Refused, UsageError, refused
from gitcoord.base.names import check_agent, check_word, printable, quote, shell_word
from gitcoord.claims import pathspec as paths
from gitcoord.claims.model import Item
from gitcoord.ledger.sessions import Actor
from gitcoord.terminal.call import Call, words_of
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import put
from gitcoord.worktrees.cli_done import inside

if TYPE_CHECKING:
    from gitcoord.gates.hooks.presence import MissingGate


def commit(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.worktrees.commit import Commit
    from gitcoord.worktrees.commit import commit as app_commit

    command = Commit(
        actor=call.actor(),
        words=tuple(_named(call, word) for word in words),
        message=_message(words_of(values, "message"), str(values.get("file", ""))),
        trailers=tuple(words_of(values, "trailer")),
        force=bool(values.get("force")),
    )
    if values.get("land"):
        if values.get("release"):
            raise UsageError("--land releases what has landed: leave --release out")
        _require_branch(call)
    # A hook's output is shown with --quiet too: it may say why nothing was committed.
    result: dict[str, Any] = app_commit(call.ctx, command, call.environ, lambda line: put(2, printable(line) + "\n"))
    if values.get("land"):
        call.screen.note(f"committed {result['commit'][:12]}")
        call.screen.beside["committed"] = result["commit"]
        from gitcoord.landing.cli import land

        try:
            return land(call, {}, [])
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(
                f"committed {result['commit'][:12]}; {str(interrupt) or 'it has not landed'}"
            ) from None
    if values.get("release"):
        result["released"] = _release(call, command.actor, result["files"])
    from gitcoord.journal.notes import unseen_on

    notes = unseen_on(call.ctx, command.actor.agent, result["files"])
    call.screen.answer({**result, "notes": notes} if notes else result)
    _say_commit(call, result)
    if result.get("released"):
        call.screen.say(f"released {printable(', '.join(result['released']))}")
    if notes:
        from gitcoord.journal.cli_note import deliver

        deliver(call, notes)
    return 0


def _require_branch(call: Call) -> None:
    """Before anything is committed: UsageError where no branch is checked out that could land."""
    from gitcoord.landing.cli_order import branch_of
    from gitcoord.landing.trunk import Trunk
    from gitcoord.ledger.snapshot import read_snapshot

    try:
        branch_of(call.ctx, [], Trunk(call.ctx, read_snapshot(call.ctx)))
    except UsageError as error:
        error.message += ": nothing was committed"
        error.hints = ("work on a branch of your own: git switch -c <branch>",)
        raise


def _release(call: Call, actor: Actor, files: list[str]) -> list[str]:
    """Release the agent's claims on these files or above them; a claim with other uncommitted changes below stays."""
    from gitcoord.claims.model import all_claims, covers_item
    from gitcoord.claims.service import release
    from gitcoord.ledger.snapshot import read_snapshot

    state = read_snapshot(call.ctx).state
    names = [Item("path", name) for name in files]
    own = [
        c for c in all_claims(state, actor.agent) if c.space == "path" and any(covers_item(state, c, n) for n in names)
    ]
    released: list[str] = []
    rows: list[Any] = []
    for claim in own:
        try:
            rows += release(call.ctx, actor, (claim.item,))["released"]  # type: ignore[arg-type]
            released.append(claim.path)
        except Refused as error:
            call.screen.note(f"note: {error.message}")
            call.screen.hint(*error.hints[:1])
    if rows and not (call.screen.json or call.screen.quiet):
        from gitcoord.claims.cli_trunk import not_landed_lines

        call.screen.note(*not_landed_lines(call.ctx, rows))
    return released


def _named(call: Call, word: str) -> tuple[str, tuple[str, ...]]:
    """A word and the paths that it stands for."""
    try:
        items = paths.items(call.ctx.repo, [word])
    except paths.InSubmodule:
        raise refused(
            "submodule", f"{quote(word[:80])} is in a submodule: nothing was committed", "commit inside the submodule"
        ) from None
    if any(item.space != "path" for item in items):
        raise UsageError(f"{quote(word[:80])} is a resource, and no file", hints=(f"a file so named: ./{word}",))
    return word, tuple(item.name for item in items)


def _message(paragraphs: list[str], file: str) -> str:
    if bool(paragraphs) == bool(file):
        raise UsageError("say the message with -m, or take it from a file with -F", hints=("git coord commit -h",))
    if paragraphs:
        return "\n\n".join(paragraphs)
    from gitcoord.terminal.input import read_text

    return read_text(file)


def _say_commit(call: Call, result: dict[str, Any]) -> None:
    where = printable(result["branch"]) or "detached HEAD"
    name = call.screen.paint(f"[{where} {result['commit'][:12]}]", "yellow")
    call.screen.say(f"{name} {printable(result['subject'])}", *(f"  {printable(f)}" for f in result["files"]))
    for path in result.get("staged", ()):
        call.screen.note(f"note: something else is staged of {printable(path)}, and stays so")
    if "index" in result:
        call.screen.note("note: the index is locked by another git, so git status shows these files as changed")
        call.screen.hint("when it is free: git reset --quiet -- " + " ".join(call.typed(f) for f in result["files"]))


# --- work trees ---------------------------------------------------------------------------------------------------


def add(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.claims.service import take, would_take
    from gitcoord.claims.take import Take
    from gitcoord.worktrees import add as app

    name = check_word(words[0], "name of a work tree", 64)
    caller = call.actor_or_none()
    by = caller.agent if caller is not None else ""
    owner = str(values.get("agent", "")) or (by if caller is not None and not caller.person else name)
    branch, start = str(values.get("branch", "")) or name, str(values.get("from", ""))
    command = app.Add(name, check_agent(owner), by, branch, start)
    actor = caller if caller is not None and caller.agent == owner else Actor(owner)
    order = Take(actor, paths.items(call.ctx.repo, words_of(values, "path")), reason=f"work tree {name}")
    if order.items:
        would_take(call.ctx, order)  # most refusals come before anything is made

    def claim(place: str) -> dict[str, object]:
        with inside(call, place) as ctx:
            return take(ctx, order)

    result: dict[str, Any] = app.add(call.ctx, command, claim if order.items else None)
    missing = _with_gates(call, result["path"])
    call.screen.answer({**result, "missing_gates": [gate.event for gate in missing]})
    call.screen.say(
        f"{call.screen.paint(printable(result['path']), 'bold')}: branch {printable(result['branch'])}, agent {owner}",
        *(f"claimed {printable(claim['path'])}, token {claim['token']}" for claim in result["claims"]),
    )
    _say_landing_marks(call)
    if missing:
        call.screen.note(
            "note: changes are not judged there, since these gates are not in place:",
            *(f"  {gate.event}: {printable(gate.why)}" for gate in missing),
        )
        call.screen.hint(f"put them in place: cd {shell_word(result['path'])} && git coord setup")
    call.screen.hint(f"work there: cd {shell_word(result['path'])}", f"in the end: git coord worktree done {name}")
    return 0


def _with_gates(call: Call, place: str) -> list[MissingGate]:
    """Bring husky's own hooks to the new work tree, where git runs none without them. Gives the gates that do not run there."""
    from gitcoord.gates.hooks.husky import bring, lacking
    from gitcoord.gates.hooks.presence import missing_gates

    with inside(call, place) as ctx:
        bring(ctx, lacking(ctx))
        return missing_gates(ctx)


def _say_landing_marks(call: Call) -> None:
    """Name the paths that need no claim in a work tree, if the project marks any so."""
    from gitcoord.views.project import marked_for_landing

    later = [] if call.screen.json else marked_for_landing(call.ctx)
    if later:
        named = ", ".join(later[:5]) + (f" and {len(later) - 5} more" if len(later) > 5 else "")
        call.screen.say(f"claimed by git coord land, not before: {printable(named)}")


def list_(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.worktrees.add import overview

    result = call.show(lambda: overview(call.ctx, call.actor_or_none()), None, worktrees=[])
    if result is not None:
        rows = [_tree_row(row) for row in result["worktrees"]]
        call.screen.say(*call.screen.table(rows, ["bold", "", "cyan", "yellow", "", "", "dim"]))
    return 0


def _tree_row(row: dict[str, Any]) -> list[str]:
    state = "" if row["dirty"] is None else f"{row['dirty']} changed" if row["dirty"] else "clean"
    if row["dirty"] is None and not row["main"]:
        state = "gone"
    notes = [state, row["under_way"], "locked" if row["locked"] is not None else ""]
    ahead = "" if row["ahead"] is None else f"+{row['ahead']} -{row['behind']}"
    claims = " ".join(claim["path"] for claim in row["claims"])
    return [
        row["name"], row["branch"] or "-", row["agent"] or "-", ", ".join(filter(None, notes)), ahead,
        " ".join(row["tasks"]), claims,
    ]  # fmt: skip

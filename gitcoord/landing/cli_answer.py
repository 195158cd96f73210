"""The answers of `git coord land`: landed, refused by a rule, complete already."""

from __future__ import annotations

from gitcoord.base.errors import Refused
from gitcoord.base.names import listed, printable, shell_word
from gitcoord.git.commands.worktrees import status_in
from gitcoord.landing.bring import Order, names_of
from gitcoord.landing.model import MERGE, OpenLanding
from gitcoord.landing.releases import released
from gitcoord.landing.service import NotAllowed
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.tasks.model import REVIEW
from gitcoord.terminal.call import Call
from gitcoord.terminal.screen import Row


def say_lost(call: Call, order: Order, lost: int) -> None:
    """Signatures are lost; said once, however often the branch was brought onto trunk."""
    if lost:
        call.screen.note(
            f"signatures are not kept ({lost}): {order.how} makes new commits, and commit.gpgSign is not set"
        )


def say_landed(call: Call, order: Order, result: Row) -> None:
    """`result`: the facts of the landing, and in `task_state`, `renumbered`, `told`, `left` and `removed` what came with it."""
    screen = call.screen
    screen.answer(result)
    what = " on ".join(names_of(order, call.ctx.remote))
    if result["already"]:
        screen.say(f"nothing to land: {what} already: {str(result['new'])[:12]}")
        screen.note(*_uncommitted_lines(call.ctx))
    else:
        how = "fast-forward" if result["new"] == result["tip"] else result["how"]
        screen.say(f"landed {what}: {str(result['new'])[:12]} ({how})")
    trunk = printable(order.trunk)
    for row in result.get("renumbered", ()):
        screen.say(f"{printable(row['from'])} is {printable(row['to'])} on {trunk}; your branch keeps its name")
    if result["released"]:
        screen.say(f"released {printable(', '.join(result['released'][:10]))}")
    if "granted_to" in result:
        from gitcoord.claims.cli_trunk import granted_lines

        screen.say(*granted_lines(result))
    if result.get("told"):
        screen.say(f"told {', '.join(result['told'])}, who had the intent to write there")
    if result["task"]:
        state = result["task_state"]  # lost meanwhile, it stays as it is
        screen.say(f"{result['task']} " + ("waits for review" if state == REVIEW else f"is {printable(state)}"))
    for path in result.get("left", ()):
        stays, switch = "it stays at the old commit, detached", f"git switch {shell_word(order.trunk)}"
        if path in result.get("locked", ()):
            screen.note(f"note: the index of {printable(path)} is locked by another git: {stays}")
            screen.hint(f"there, once no git runs in it and its index.lock is gone: {switch}")
        else:
            screen.note(f"note: {printable(path)} has uncommitted changes in files that landed: {stays}")
            screen.hint(f"there, when they are committed or put away: {switch}")
    if result.get("removed"):
        screen.say(f"removed {printable(result['removed'])}")


def remove_tree(call: Call, order: Order) -> str:
    """`--done`: remove the branch's work tree; gives its path, '' where it stays. Its tip has landed all the same, also where trunk has other commits of it."""
    from gitcoord.worktrees.add import all_trees
    from gitcoord.worktrees.cli_done import remove

    trees = [tree for tree in all_trees(call.ctx) if tree.ref == f"refs/heads/{order.branch}" and tree.name]
    if not trees:
        call.screen.note("note: --done: the branch has no work tree of 'git coord worktree add'")
        return ""
    try:
        return str(remove(call, trees[0].name, landed=order.tip)["path"])
    except Refused as error:
        call.screen.note(f"note: --done: {error.message}: the work tree stays")
        if order.how == MERGE:
            call.screen.hint(f"elsewhere: git coord worktree done {shell_word(trees[0].name)}")
        else:  # only a landing knows that rewritten commits have landed
            call.screen.hint(f"elsewhere: git coord land {shell_word(order.branch)} --done")
        return ""


def say_finished(call: Call, order: Order, finished: list[OpenLanding], *, done: bool) -> int:
    """This very landing had been interrupted after trunk had moved: it is complete now. `done`: with `--done`, which it had not come to."""
    row = next(row for row in finished if (row.branch, row.tip) == (order.branch, order.tip))
    freed = released(tuple((each["space"], each["path"], each["agent"]) for each in row.released))
    facts = {key: value for key, value in row._asdict().items() if key not in ("agent", "at")}
    removed = remove_tree(call, order) if done else ""
    call.screen.answer({**facts, "released": freed, "already": True, **({"removed": removed} if removed else {})})
    call.screen.say(f"{' on '.join(names_of(order, call.ctx.remote))} already: {row.new[:12]}")
    if removed:
        call.screen.say(f"removed {printable(removed)}")
    return 0


def say_refused(call: Call, actor: Actor, error: NotAllowed, *, records: bool = True) -> int:
    from gitcoord.gates.cli_verdicts import report

    rows = [{**v._asdict(), "held": list(v.held), "hints": list(v.hints)} for v in error.outcome.verdicts]
    call.screen.answer({"error": error.code, "message": error.message, "verdicts": rows}, ok=False)
    return report(call.ctx, call.screen, "land", actor, error.outcome, records=records) or 1


def _uncommitted_lines(ctx: Context) -> list[str]:
    """Say that changes here are not committed: whoever asks to land may take them for landed."""
    entries = status_in(ctx.repo.env, ctx.repo.worktree).entries if ctx.repo.worktree else []
    names = [entry[3:] for entry in entries if entry[2:3] == " "]
    if not names:
        return []
    return [
        f"note: not committed, and so not landed: {printable(listed(names))}",
        'hint: git coord commit -m "..." -- <file>...',
    ]

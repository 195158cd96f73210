"""Judging what one agent does to others in the same work tree: their uncommitted files, the index, the branch."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.gates.judge import Verdict, is_family, path_word
from gitcoord.git.files import exists, is_directory, stamp
from gitcoord.git.locate import Place
from gitcoord.guard.effects import FileEffects, absolute
from gitcoord.guard.findings import Finding
from gitcoord.guard.hold_files import UNKNOWN_FILES, change_holds, own_files, present, read_holds, statuses
from gitcoord.guard.holds import Hold, below, drop, holds_of, is_live, passed_to
from gitcoord.guard.judge import GuardSession
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Iterable
from gitcoord.validators.tool_event import DENY, ToolEvent

_UNSTAGED = " ?!"
_SHOWN = 8


def uncommitted_work(session: GuardSession, effects: FileEffects, top: str) -> list[Finding]:
    """Findings for files that others wrote here and have not committed, and that this call would change, stage or commit."""
    holds = others_holds(session)
    if not holds:
        return []
    case = folds_case(session.snapshot.state)
    changed = below(holds, _paths((*effects.writes, *effects.lost_below), top), case=case)
    staged = below(holds, _paths(effects.staged, top), case=case)
    commits = any(place.top == top for place in effects.committed)
    asked = list(dict.fromkeys([*changed, *staged, *(holds if commits else ())]))
    if not asked:
        return []
    letters = statuses(session.ctx, [hold.path for hold in asked])
    over = [hold for hold in asked if hold.path not in letters]
    if over:
        change_holds(session.ctx, lambda record: drop(record, over))
    taken = [hold for hold in holds if commits and letters.get(hold.path, " ")[0] not in _UNSTAGED]
    found = []
    for hold in asked:
        if hold.path in letters and (hold in changed or hold in staged or hold in taken):
            stage, now = session.policy.stage("uncommitted"), session.world.wall
            own = own_files(session.ctx, session.actor.agent) if hold not in changed else ""
            verdict = _verdict(hold, session.actor.agent, stage, now, stages=own)
            found.append(session.finding_of(verdict))
    return [finding for finding in found if finding is not None]


def others_holds(session: GuardSession) -> list[Hold]:
    """Holds of live agents that are not of this agent's family."""
    return _live_holds(session.ctx, session.actor, session.snapshot.state, session.world)


def _live_holds(ctx: Context, actor: Actor, state: State, world: World) -> list[Hold]:
    holds = [hold for hold in holds_of(read_holds(ctx)) if not is_family(hold.agent, actor.agent)]
    seen: dict[str, int] = {}
    for hold in holds:
        seen[hold.agent] = max(hold.at, seen.get(hold.agent, 0))
    live = {agent for agent, at in seen.items() if is_live(state, world, agent, at)}
    passed = [hold for hold in holds if passed_to(state, hold, actor.agent)]
    if passed:  # the ledger forgets the loss as soon as the former holder is told
        change_holds(ctx, lambda record: drop(record, passed))
    return [hold for hold in holds if hold.agent in live and hold not in passed]


def staged_work(ctx: Context, actor: Actor, staged: Iterable[str], stage: str) -> list[Verdict]:
    """For git's hook: staged files that are as another live agent's tool left them, so that their work is another's.

    A file that changed since may be the committer's own work by now, and is left to the guard.
    """
    snapshot = read_snapshot(ctx)
    world = ctx.world(snapshot)
    names = set(staged)
    found = [hold for hold in _live_holds(ctx, actor, snapshot.state, world) if hold.path in names]
    taken = [hold for hold in found if stamp(f"{ctx.repo.worktree}/{hold.path}") == hold.look.mark]
    own = " ".join(map(path_word, sorted(names - {hold.path for hold in taken})[:_SHOWN])) or UNKNOWN_FILES
    return [_verdict(hold, actor.agent, stage, world.wall, stages=own) for hold in taken]


def _paths(places: tuple[Place, ...], top: str) -> list[str]:
    return [place.path for place in places if place.top == top and not place.inner]


def _verdict(hold: Hold, agent: str, stage: str, now: int, *, stages: str = "") -> Verdict:
    """`stages`: the agent's own files, if the call would only stage or commit this one."""
    when = f"{format_duration(now - hold.at)} ago" if now > hold.at else "just now"
    message = f"{hold.agent} wrote it {when} and has not committed it"
    own_tree = f"or work in a work tree of your own: git coord worktree add {agent}"
    hints = (f'{hold.agent} commits it first: git coord commit -m "..." -- {path_word(hold.path)}', own_tree)
    if stages:
        hints = (f'commit your own files alone: git coord commit -m "..." -- {stages}', own_tree)
    return Verdict("uncommitted", stage, hold.path, agent, message, hints=hints)


# --- the branch of a work tree --------------------------------------------------------------------------------------------


def switched_branch(session: GuardSession, effects: FileEffects, top: str) -> list[Finding]:
    """A finding for a command that moves HEAD of a work tree that another live agent uses."""
    if not any(place.top == top for place in effects.switched):
        return []
    here = present(session.ctx)
    for hold in holds_of(read_holds(session.ctx)):
        here[hold.agent] = max(hold.at, here.get(hold.agent, 0))
    state, world = session.snapshot.state, session.world
    others = [
        agent for agent, at in sorted(here.items())
        if not is_family(agent, session.actor.agent) and is_live(state, world, agent, at)
    ]  # fmt: skip
    if not others:
        return []
    names = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    message = f"{names} {'work' if len(others) > 1 else 'works'} in this work tree too, and would be on another branch"
    hints = (f"take a work tree of your own: git coord worktree add {session.actor.agent}",)
    verdict = Verdict("branch", session.policy.stage("branch"), "", session.actor.agent, message, hints=hints)
    found = session.finding_of(verdict)
    return [found] if found is not None else []


def wrong_copies(session: GuardSession, event: ToolEvent, effects: FileEffects, home: Place) -> list[Finding]:
    """Writes from a linked work tree into the primary one's copy of a file that the linked one has too. Each is denied once."""
    if is_directory(f"{home.top}/.git"):
        return []
    found = []
    for place in effects.writes:
        meant = f"{home.top}/{place.path}"
        primary = place.common == home.common and place.top not in ("", home.top) and is_directory(f"{place.top}/.git")
        if primary and not place.inner and exists(meant):
            from gitcoord.guard.conversations import is_new

            if is_new(session.ctx, session.actor.agent, (f"copy {event.conversation} {absolute(place)}",)):
                message = "you work in another work tree, which has its own copy of this file"
                hints = (f"write {meant}", "where this copy is meant all the same: once more")
                found.append(Finding(DENY, message, "copy", absolute(place), hints))
    return found

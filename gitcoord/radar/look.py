"""One look: the work under way, its uncommitted files, and what git says about merging each two that changed the same file."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import printable
from gitcoord.git.commands.refs import rev_parse
from gitcoord.git.commands.under_way import diff_lines, merge_trees
from gitcoord.git.files import lstat
from gitcoord.git.several import TimeLimit
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case, format_record
from gitcoord.ledger.log import events
from gitcoord.ledger.state import State
from gitcoord.policy.reader import Source
from gitcoord.radar.content import Place, readable
from gitcoord.radar.model import (
    Conflict,
    LeftOut,
    Lines,
    Merged,
    Side,
    Work,
    clashing,
    hunks,
    lines_of,
    pairs_that_meet,
    parse_merge,
)
from gitcoord.radar.work import left_out_words, survey
from gitcoord.startup.namedtuple import NamedTuple

MOST_PAIRS = 1000  # that are merged, if there is time
_RECENT = 2000  # events in which landings are looked for
_MOST_FILES = 20  # of one pair
MOST_CONFLICTS = 100
_FOR_MERGES = 0.7  # of the time that is left; the rest is for the lines
_BASE, _ONE, _OTHER = 1, 2, 3  # git's stages

Pair = tuple[int, int, list[str]]


class Look(NamedTuple):
    """The findings. `touching`: the pairs that changed the same files and merge cleanly. `complete`: nothing was left for want of time."""

    trunk: str
    works: list[Work]
    conflicts: list[Conflict]
    touching: list[tuple[Work, Work, list[str]]]
    more: int  # conflicting files that are not among the conflicts
    notes: list[str]
    complete: bool
    spent: float  # seconds


def look(ctx: Context, state: State, seconds: float) -> Look:
    """Look at all work under way, for about so many seconds at most. Nothing of the repository changes."""
    limit = TimeLimit(seconds)
    found = survey(ctx, str(format_record(state).sync), limit)
    seen = Look(found.trunk, found.works, [], [], 0, found.notes, found.complete, 0.0)
    pairs = pairs_that_meet(found.works)
    if pairs:
        source = Source(ctx, found.trunk, case=folds_case(state))
        near = {at for one, other, _ in pairs for at in (one, other)}
        works = [_readable(ctx, source, work, limit) if at in near else work for at, work in enumerate(found.works)]
        with Place(ctx) as place:
            place.write_attributes(source)
            seen = _compared(ctx, state, place, seen._replace(works=works), limit)
    return seen._replace(
        notes=[*seen.notes, *left_out_words(seen.works)], complete=seen.complete and limit.left > 0, spent=limit.spent
    )


def _readable(ctx: Context, source: Source, work: Work, limit: TimeLimit) -> Work:
    """The work with those of its uncommitted files that may be read. What cannot be judged is not read."""
    if not work.uncommitted:
        return work
    try:
        if not limit.left:
            raise CouldNotJudge("the time was over")
        paths, left = readable(ctx, source, work)
    except CouldNotJudge as error:
        paths, left = [], [LeftOut(path, error.message) for path in work.uncommitted]
    return work._replace(uncommitted=tuple(paths), left_out=(*work.left_out, *left))


def _compared(ctx: Context, state: State, place: Place, seen: Look, limit: TimeLimit) -> Look:
    works, notes = seen.works, list(seen.notes)
    pairs = pairs_that_meet(works)
    skipped, pairs = pairs[MOST_PAIRS:], pairs[:MOST_PAIRS]
    if skipped:
        notes.append(f"{len(skipped)} more pairs changed the same files and were not compared")
    whole = len(notes)
    commits = _commits(place, works, pairs, limit, notes)
    pairs = [pair for pair in pairs if pair[0] in commits and pair[1] in commits]
    some = TimeLimit(limit.left * _FOR_MERGES)
    answers = merge_trees(place.env, place.tree, [(commits[one], commits[other]) for one, other, _ in pairs], some)
    merged: list[tuple[Pair, Merged]] = []
    touching: list[tuple[Work, Work, list[str]]] = []
    failed = 0
    for pair, answer in zip(pairs, answers):
        if answer.code == 0:
            touching.append((works[pair[0]], works[pair[1]], pair[2]))
        elif answer.code == 1:
            merged.append((pair, parse_merge(answer.out.decode("utf-8", "surrogateescape"))))
        else:
            failed += 1
    if failed:
        why = printable(next(row.complaint for row in answers if row.code not in (0, 1)))
        notes.append(f"{failed} pairs could not be merged: {why}")
    near = {at for pair, _ in merged for at in pair[:2]}
    over = _landed(ctx, place, seen.trunk, {at: commits[at] for at in near}, limit)
    if any(works[at].committed for at in near - over):
        tips = _landed_tips(ctx, state)
        over |= {at for at in near if works[at].head in tips}
    notes += [
        f"{printable(works[at].branch)} has landed, as other commits: bring trunk in, so that what is not committed there can be compared"
        for at in sorted(over)
        if works[at].uncommitted and works[at].committed
    ]
    conflicts, more = _conflicts(place, works, [row for row in merged if not over.intersection(row[0][:2])], limit)
    complete = seen.complete and not skipped and len(notes) == whole
    return seen._replace(works=works, conflicts=conflicts, touching=touching, more=more, notes=notes, complete=complete)


def _commits(place: Place, works: list[Work], pairs: list[Pair], limit: TimeLimit, notes: list[str]) -> dict[int, str]:
    """The commit of each piece of work that is compared; of one that cannot be looked at none."""
    found = {}
    for at in sorted({at for one, other, _ in pairs for at in (one, other)}):
        try:
            if not limit.left:
                raise CouldNotJudge(f"{printable(works[at].tree)} was not looked at: the time was over")
            found[at] = place.commit_of(works[at])
        except CouldNotJudge as error:
            notes.append(error.message)
    return found


def _landed(ctx: Context, place: Place, trunk: str, commits: dict[int, str], limit: TimeLimit) -> set[int]:
    """Those of these whose content trunk has, as after a landing that made one commit of many; and those of which git cannot tell."""
    answers = merge_trees(place.env, place.tree, [(trunk, commit) for commit in commits.values()], limit)
    tree = rev_parse(ctx.repo.env, f"{trunk}^{{tree}}").text
    found = set()
    for at, row in zip(commits, answers):
        if row.code not in (0, 1) or (row.code == 0 and row.text.partition("\0")[0].strip() == tree):
            found.add(at)
    return found


def _landed_tips(ctx: Context, state: State) -> set[str]:
    """The tips of branches that have landed lately, by the ledger: trunk may have other commits in their place, and be changed since."""
    tips: set[str] = set()
    ended: set[object] = set()
    for row in events(ctx, since=state.seq - _RECENT):
        body: Record = row.get("event", {})  # type: ignore[assignment]
        if row["kind"] == "land":
            ended.add(body["landing"])
        elif row["kind"] == "landing" and row["seq"] in ended:
            tips.add(str(body["tip"]))
    return tips


# --- conflicts ---------------------------------------------------------------------------------------------------------


def _conflicts(
    place: Place, works: list[Work], merged: list[tuple[Pair, Merged]], limit: TimeLimit
) -> tuple[list[Conflict], int]:
    """The conflicts, and how many more files conflict."""
    rows = [(pair, found, path) for pair, found in merged for path in found.paths[:_MOST_FILES]]
    more = sum(len(found.paths) for _, found in merged) - len(rows[:MOST_CONFLICTS])
    conflicts = []
    for (one, other, _), found, path in rows[:MOST_CONFLICTS]:
        how, stages = found.how(path), found.entries.get(path, {})
        lines = _lines(place, how, stages, limit)
        gone = [how == "modify/delete" and stage not in stages for stage in (_ONE, _OTHER)]
        sides = [
            Side.of(works[at], stamp(works[at].tree, path), lines[number], deletes=gone[number])
            for number, at in enumerate((one, other))
        ]
        conflicts.append(Conflict(path, how, (sides[0], sides[1])))
    return conflicts, more


def _lines(place: Place, how: str, stages: dict[int, str], limit: TimeLimit) -> tuple[Lines, Lines]:
    """The lines of each side that conflict; none where git cannot tell, or where lines are not what conflicts."""
    base = stages.get(_BASE, "")
    if not base or how not in ("contents", "modify/delete"):
        return [], []
    wanted = [stages[stage] for stage in (_ONE, _OTHER) if stage in stages]
    answers = diff_lines(place.env, [(base, oid) for oid in wanted], limit)
    if any(row.code for row in answers):
        return [], []
    ours, *theirs = [hunks(row.out.decode("utf-8", "replace")) for row in answers] or [[]]
    if theirs:
        return clashing(ours, theirs[0])
    return (lines_of(ours), []) if _ONE in stages else ([], lines_of(ours))


def stamp(tree: str, path: str) -> str:
    """Size and time of a file in a work tree; '' where it is not there, or there is no work tree."""
    try:
        found = lstat(f"{tree}/{path}") if tree else None
    except (OSError, ValueError):
        return ""
    return f"{found.st_size}:{found.st_mtime_ns}" if found is not None else ""

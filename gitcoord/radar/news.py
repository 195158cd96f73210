"""The findings that an agent is told of at its next command or guard answer: each once, and only while it stands.

A look puts them into a file for each agent; a command that finds no such file has nothing to do.
"""

from __future__ import annotations

from gitcoord.base.codec import VERSION, Malformed, Record, check, dumps, loads
from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import printable, shell_word
from gitcoord.git.files import list_files, read_file, remove_file, write_file
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.radar.model import Conflict, by_pair, sentence
from gitcoord.startup.annotations import Iterable

PLACE = "radar/news"
_SHOWN = 3  # pairs


def note_news(
    ctx: Context, agents: Iterable[str], trunk: str, conflicts: Iterable[Conflict], told: Iterable[str]
) -> tuple[str, ...]:
    """Put what is new where its agents find it, and forget what they did not hear of and is over; gives what counts as told from now on.

    `agents`: those that act here. `told`: the keys of findings that were told before.
    """
    rows, known = list(conflicts), set(told)
    mine = {agent: [row for row in rows if any(side.agent == agent for side in row.sides)] for agent in agents}
    for agent, own in mine.items():
        waiting = {row.key for row in waiting_news(ctx, agent)[1]}
        fresh = [row for row in own if f"{agent}\n{row.key}" not in known or row.key in waiting]
        if fresh:
            body = {"v": VERSION, "trunk": trunk, "conflicts": [row.to_record() for row in fresh]}
            write_file(ctx.scratch(f"{PLACE}/{agent}"), dumps(body).encode())
    for agent in list_files(f"{ctx.repo.scratch}/{PLACE}"):
        if not mine.get(agent):
            remove_file(f"{ctx.repo.scratch}/{PLACE}/{agent}")
    return tuple(f"{agent}\n{row.key}" for agent, own in mine.items() for row in own)


def waiting_news(ctx: Context, agent: str) -> tuple[str, list[Conflict]]:
    """The news that wait for this agent: trunk as it was, and the conflicts."""
    data = read_file(f"{ctx.repo.scratch}/{PLACE}/{agent}", 1 << 20)
    if not data:
        return "", []
    try:
        record: Record = check(loads(data), {"trunk": str, "conflicts": [dict]}, "news")
        return str(record["trunk"]), [Conflict.from_record(row) for row in record["conflicts"]]
    except (Malformed, ValueError):
        return "", []


def radar_news(ctx: Context, agent: str) -> list[Conflict]:
    """The conflicts that this agent is told of now, and not again. One that does not stand any more is left out."""
    trunk, rows = waiting_news(ctx, agent)
    remove_file(f"{ctx.repo.scratch}/{PLACE}/{agent}")
    if not rows:
        return []
    from gitcoord.ledger.snapshot import read_snapshot
    from gitcoord.radar.standing import standing

    try:
        return standing(ctx, str(format_record(read_snapshot(ctx).state).sync), trunk, rows)
    except (GitcoordError, OSError):
        return []  # a command does not fail for that


def forget_news(ctx: Context, agent: str) -> None:
    """The agent has seen them otherwise."""
    remove_file(f"{ctx.repo.scratch}/{PLACE}/{agent}")


def news_lines(conflicts: Iterable[Conflict]) -> list[str]:
    """A line for each two pieces of work."""
    pairs = by_pair(conflicts)
    lines = [
        f"{printable(sentence(rows))}: land first (git coord land), wait until the other has landed "
        f"(git claim --wait 30m {shell_word(rows[0].path)}), or hand over (git handoff new)"
        for rows in pairs[:_SHOWN]
    ]
    return [
        *lines,
        *([f"{len(pairs) - _SHOWN} more conflict with your work: git coord radar"] if len(pairs) > _SHOWN else []),
    ]

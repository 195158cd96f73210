"""A drill's records and verdict: what was tried, what was found, as text, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from gitcoord.base.names import printable
from gitcoord.journal.contention import spread

CAUGHT, MISSED, UNKNOWN = "caught", "missed", "unknown"
SAFE, WEAK, NOT_JUDGED = "no weakness found", "weakness found", "not judged"


class Try(NamedTuple):
    """One attempt to get past the rules. `state`: CAUGHT, MISSED, or UNKNOWN with the reason in `words`."""

    way: str
    where: str
    state: str
    words: str = ""
    help: str = ""


class Hold(NamedTuple):
    """A claim as its agent had it: from the answer that granted it to the start of the command that gave it back."""

    path: str
    agent: str
    start: float
    end: float
    waited: float


class Outcome(NamedTuple):
    """The measured outcome of one drill."""

    seed: int
    agents: int
    seconds: float
    actions: int
    tries: tuple[Try, ...] = ()
    holds: tuple[Hold, ...] = ()
    edits: int = 0  # acknowledged, of which
    lost: int = 0  # so many are gone
    landed: int = 0
    refused: tuple[str, ...] = ()  # honest actions that a rule of the project refused, in its words
    broken: str = ""  # what `fsck` says
    notes: tuple[str, ...] = ()  # what was left out, and why
    copy_of: str = ""  # trunk, and its commit
    length: str = ""  # the options that said how long

    @property
    def double_grants(self) -> int:
        """Pairs of holds of one path by two agents at one time."""
        found = 0
        for at, hold in enumerate(self.holds):
            found += sum(_overlap(hold, other) for other in self.holds[at + 1 :])
        return found

    @property
    def weaknesses(self) -> list[tuple[str, str]]:
        """Each in words, with what helps."""
        found = [
            (words, help)
            for count, words, help in (
                (self.lost, f"{self.lost} acknowledged change(s) were lost", "git coord fsck"),
                (
                    self.double_grants,
                    f"{self.double_grants} time(s) two agents held one path at once",
                    "git coord fsck",
                ),
                (bool(self.broken), f"the ledger of the copy is broken: {self.broken}", "git coord fsck"),
            )
            if count
        ]
        missed = [row for row in self.tries if row.state == MISSED]
        return found + list(
            dict.fromkeys(
                (f"{row.way} passed: {row.where}" + (f" ({row.words})" if row.words else ""), row.help)
                for row in missed
            )
        )

    @property
    def unknown(self) -> list[str]:
        found = [f"{row.way}: {row.where}: {row.words}" for row in self.tries if row.state == UNKNOWN]
        if not self.edits:
            found.append(f"no agent could work here: {self.refused[0] if self.refused else 'there was no time'}")
        return list(dict.fromkeys(found))

    @property
    def verdict(self) -> str:
        return WEAK if self.weaknesses else NOT_JUDGED if self.unknown else SAFE

    @property
    def exit_code(self) -> int:
        return {SAFE: 0, WEAK: 1, NOT_JUDGED: 4}[self.verdict]

    @property
    def repeat(self) -> str:
        return f"git coord drill --seed {self.seed} --agents {self.agents}{self.length}"


def _overlap(one: Hold, other: Hold) -> bool:
    return one.path == other.path and one.agent != other.agent and one.start < other.end and other.start < one.end


def ways(tries: Iterable[Try]) -> list[dict[str, Any]]:
    """The tries by way and place: how many were caught and missed."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in tries:
        found = rows.setdefault(
            (row.way, row.where), {"way": row.way, "where": row.where, CAUGHT: 0, MISSED: 0, UNKNOWN: 0}
        )
        found[row.state] += 1
    return [rows[key] for key in sorted(rows)]


def to_json(outcome: Outcome) -> dict[str, Any]:
    counts = {state: sum(row.state == state for row in outcome.tries) for state in (CAUGHT, MISSED, UNKNOWN)}
    milliseconds = spread([int(1000 * hold.waited) for hold in outcome.holds])
    return {
        "verdict": outcome.verdict, "copy_of": outcome.copy_of, "seed": outcome.seed, "agents": outcome.agents, "seconds": round(outcome.seconds),
        "actions": outcome.actions, "grants": len(outcome.holds), "double_grants": outcome.double_grants, "edits": outcome.edits,
        "landed": outcome.landed, "lost_updates": outcome.lost, "refused": len(outcome.refused), "bypasses": counts,
        "waits_ms": milliseconds, "weaknesses": [{"message": words, "help": help} for words, help in outcome.weaknesses],
        "unknown": outcome.unknown, "ways": ways(outcome.tries), "notes": list(outcome.notes), "repeat": outcome.repeat,
    }  # fmt: skip


def lines(row: dict[str, Any]) -> list[str]:
    """The report for a terminal."""
    tried, waits = row["bypasses"], row["waits_ms"]
    found = [f"{row['verdict']}: {_scene(row)}"]
    found += [
        line
        for weak in row["weaknesses"]
        for line in (f"  ! {printable(weak['message'])}", f"      {printable(weak['help'])}")
        if line.strip()
    ]
    found += [f"  ? {printable(words)}" for words in row["unknown"]]
    found += [
        f"lost updates: {row['lost_updates']} of {row['edits']} changes, {row['landed']} of them landed on trunk",
        f"double grants: {row['double_grants']} of {row['grants']} grants",
        f"bypasses: {tried[CAUGHT]} caught, {tried[MISSED]} missed, {tried[UNKNOWN]} could not be tried",
        f"waits: {_seconds(waits['p50'])} (half of them), {_seconds(waits['p95'])} (95 of 100), {_seconds(waits['longest'])} (longest)",
    ]
    found += [f"note: {printable(words)}" for words in row["notes"]]
    return [*found, f"repeat it: {row['repeat']}"]


def _scene(row: dict[str, Any]) -> str:
    what = f" on a scratch copy of {printable(row['copy_of'])}" if row["copy_of"] else ""
    return f"{row['agents']} agents at once{what}, {row['actions']} actions in {row['seconds']} s"


def markdown(row: dict[str, Any]) -> list[str]:
    """The report for a pull request."""
    tried, waits = row["bypasses"], row["waits_ms"]
    figures = {
        "lost updates": f"{row['lost_updates']} of {row['edits']}",
        "double grants": f"{row['double_grants']} of {row['grants']}", "bypasses caught": tried[CAUGHT], "bypasses missed": tried[MISSED],
        "waits p50 / p95 / longest": " / ".join(_seconds(waits[key]) for key in ("p50", "p95", "longest")),
    }  # fmt: skip
    found = [f"### Drill: {row['verdict']}", "", f"{_scene(row)}.", ""]
    found += [
        f"- **{_cell(weak['message'])}**" + (f": `{_cell(weak['help'])}`" if weak["help"] else "")
        for weak in row["weaknesses"]
    ]
    found += [f"- not judged: {_cell(words)}" for words in row["unknown"]]
    found += ["", "| figure | value |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in figures.items())]
    found += ["", "| way in | where | caught | missed |", "| --- | --- | --- | --- |"]
    found += [f"| {_cell(way['way'])} | {_cell(way['where'])} | {way[CAUGHT]} | {way[MISSED]} |" for way in row["ways"]]
    found += ["", *(f"{_cell(words)}." for words in row["notes"]), "", f"Repeat it: `{row['repeat']}`"]
    return found


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"

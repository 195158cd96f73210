"""`git coord radar`: work under way that will conflict, before any of it lands."""

from __future__ import annotations

from gitcoord.base.names import listed, printable
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.radar.kept import look_and_keep
from gitcoord.radar.look import Look
from gitcoord.radar.model import Side, Work, by_pair, helps, sentence
from gitcoord.radar.news import forget_news
from gitcoord.startup.annotations import Any
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import Row, Screen, counted

_SECONDS = 20.0
_SHOWN = 20  # pairs
_EMPTY: dict[str, Any] = {
    "trunk": "",
    "work": [],
    "conflicts": [],
    "more": 0,
    "touching": [],
    "notes": [],
    "complete": True,
}


def radar(call: Call, values: Values, words: list[str]) -> int:
    seen: list[Look] = []
    touching = bool(values.get("all"))

    def looked() -> Row:
        seen.append(look_and_keep(call.ctx, read_snapshot(call.ctx, trusting=True).state, _SECONDS))
        actor = call.actor_or_none()
        if actor is not None:
            forget_news(call.ctx, actor.agent)
        return _shown(seen[0], touching=touching)

    result = call.show(looked, **_EMPTY)
    if result is None or call.screen.json:
        return 0
    _say(call.screen, seen[0], touching=touching)
    if call.ctx.remote:
        call.screen.note("note: work of other machines is seen once it is pushed, and fetched here")
    return 0


def _shown(found: Look, *, touching: bool) -> Row:
    pairs = [{"sides": [_side(one), _side(other)], "paths": paths} for one, other, paths in found.touching if touching]
    return {
        "trunk": found.trunk, "work": [_work(work) for work in found.works], "conflicts": [row.to_json() for row in found.conflicts],
        "more": found.more, "touching": pairs, "notes": found.notes, "complete": found.complete,
    }  # fmt: skip


def _side(work: Work) -> Row:
    return {key: getattr(work, key) for key in ("agent", "branch", "tree", "remote")} | {"commit": work.head}


def _work(work: Work) -> Row:
    numbers = {"changed": len(work.paths), "uncommitted": len(work.uncommitted)}
    return {**_side(work), "operation": work.operation, **numbers, "left_out": [row._asdict() for row in work.left_out]}


def _say(screen: Screen, found: Look, *, touching: bool) -> None:
    pairs = by_pair(found.conflicts)
    if pairs:
        screen.say(screen.paint(f"work under way will conflict: {counted(len(pairs), 'pair')}", "yellow"))
    elif found.complete:
        screen.say(screen.paint("no work under way conflicts", "green"))
    else:
        screen.say(screen.paint("no conflict was found, and not all could be compared", "yellow"))
    screen.say(*(f"  {printable(sentence(rows))}" for rows in pairs[:_SHOWN]))
    more = [f"{len(pairs) - _SHOWN} more pairs"] if len(pairs) > _SHOWN else []
    more += [counted(found.more, "more file")] if found.more else []
    if more:
        screen.say(f"  and {' and '.join(more)}: git coord radar --json")
    if touching:
        screen.say(f"the same files changed, and they merge: {len(found.touching) or 'none'}")
        for one, other, paths in found.touching[:_SHOWN]:
            names = [printable(Side.of(work, "", [], deletes=False).name) for work in (one, other)]
            screen.say(f"  {names[0]} and {names[1]}: {listed(paths)}")
        if len(found.touching) > _SHOWN:
            screen.say(f"  and {len(found.touching) - _SHOWN} more pairs: git coord radar --all --json")
    screen.note(*(f"note: {line}" for line in found.notes))
    if pairs:
        screen.hint(*helps(pairs[0][0].path))

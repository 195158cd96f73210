"""Races with real processes, while `git pack-refs` and `git gc` run: one winner a round, and a history that holds."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import pytest

from tests.races.history import Row, check_history, check_ledger, check_round, most_at_once, requests
from tests.races.support import (
    SOAK,
    Arena,
    Contender,
    Housekeeping,
    Project,
    arena,
    assert_sound,
    long_timeout,
    note_figures,
    soak,
    wait_until,
)

pytestmark = [pytest.mark.race, long_timeout]

# The quick form stops a test's rounds after so long, so that a slow machine gets fewer rounds and not a longer test.
ROUND_SECONDS = soak(3, 900)
FREE_SECONDS = 0.5 if not SOAK else 60


def wants(*items: str, mode: str = "write", units: int = 1) -> Row:
    return {"items": list(items), "mode": mode, "units": units}


def play_rounds(place: Arena, rounds: int, *orders: Row) -> int:
    """All ask at once, the winners give back, again; who asks for what moves on from round to round."""
    end = time.monotonic() + ROUND_SECONDS
    for number in range(rounds):
        if number > 2 and time.monotonic() > end:
            return number
        shift = number % len(orders)
        turned = [{**order, "round": number} for order in (*orders[shift:], *orders[:shift])]
        answers = place.all("take", *turned)
        problems = check_round(answers)
        assert not problems, (number, problems, answers)
        place.give_back(answers)
    return rounds


def play_freely(place: Arena, *choices: Row, count: int = 1 << 30, seconds: float = FREE_SECONDS) -> list[Row]:
    """Play without rounds: every contender takes and releases as fast as it can."""
    orders = [{"choices": choices, "count": count, "seconds": seconds, "seed": i} for i in range(len(place.contenders))]
    return place.all("loop", *orders)


# --- one path -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count, rounds", [(2, soak(30, 3000)), (8, soak(12, 2000)), (soak(24, 64), soak(2, 300))])
def test_one_path_has_one_winner(project: Project, loops: Housekeeping, count: int, rounds: int) -> None:
    began = time.monotonic()
    with arena(project, count) as place:
        rounds = play_rounds(place, rounds, wants("src/app.py"))
    loops.close()
    assert_sound(place)
    grants = [r for r in requests(place.rows()) if r.outcome == "granted"]
    assert len(grants) == rounds, "one winner a round, neither more nor fewer"
    note_figures(f"one path, {count} processes", place, loops, began)


def test_one_path_without_rounds(project: Project, loops: Housekeeping) -> None:
    """Takes and releases of everybody interleave as they like."""
    began = time.monotonic()
    with arena(project, 16) as place:
        answers = play_freely(place, wants("src/app.py"))
    loops.close()
    assert sum(answer["granted"] for answer in answers) > 0
    assert_sound(place)
    note_figures("one path, no rounds", place, loops, began)


def test_paths_apart_are_never_refused(project: Project, loops: Housekeeping) -> None:
    """No two requests conflict: each is granted, whatever happens to the ledger at the same time."""
    began = time.monotonic()
    with arena(project, 8) as place:
        seconds = soak(1, 200)
        orders = [
            {"choices": [wants(f"dir{i}/file")], "count": 1 << 30, "seconds": seconds, "seed": i} for i in range(8)
        ]
        answers = place.all("loop", *orders)
    loops.close()
    assert all(answer["granted"] == answer["asked"] > 0 for answer in answers), answers
    assert_sound(place)
    note_figures("paths apart, no rounds", place, loops, began)


@pytest.mark.parametrize("count", [2, 16])
def test_the_command_has_one_winner(project: Project, loops: Housekeeping, count: int) -> None:
    """The same through `git claim` itself, a new process for each request."""
    for number in range(soak(2, 40)):
        here, go = os.pipe()
        script = f"echo; read line; exec git claim --json file{number}"
        racers = [project.start("sh", "-c", script, agent=f"w{i:02}", stdin=here) for i in range(count)]
        os.close(here)
        for racer in racers:
            assert racer.stdout is not None and racer.stdout.readline() == "\n"
        os.close(go)  # all of them wait for this
        outs = [json.loads(racer.communicate()[0]) for racer in racers]
        assert sorted(racer.returncode for racer in racers) == [0] + [1] * (count - 1), outs
        winner = next(out["claims"][0]["agent"] for out in outs if out["ok"])
        assert all(out["ok"] or [h["agent"] for h in out["held"]] == [winner] for out in outs)
    loops.close()
    project.assert_clean()


# --- paths that overlap, and modes ---------------------------------------------------------------------------------

_BELOW = ("src", "src/lib", "src/lib/x.py", "src/app.py", "src/lib/deep/y.py", ".", "srcs", "src/lib")
# (a b) against (b a) against (b c): each is granted whole or not at all, and somebody always wins.
_CROSSED = (("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "a"), ("c", "a"), ("d", "b", "a"), ("e", "c"))
_MODES = ("read", "intent", "write", "read")
MIXED = {
    "directory against file": [wants(word) for word in _BELOW],
    "crossed requests": [wants(*items) for items in _CROSSED],
    "modes": [wants(path, mode=mode) for mode in _MODES for path in ("src/lib", "src/lib/x.py")],
}


@pytest.mark.parametrize("what", MIXED)
def test_requests_that_are_in_each_others_way(project: Project, loops: Housekeeping, what: str) -> None:
    began = time.monotonic()
    with arena(project, 8) as place:
        play_rounds(place, soak(8, 600), *MIXED[what])
        play_freely(place, *MIXED[what])
    loops.close()
    assert_sound(place)
    note_figures(what, place, loops, began)


def test_two_intents_that_both_want_to_write(project: Project, loops: Housekeeping) -> None:
    """Each keeps its claim, however often they ask; the last one is granted when all others have released."""
    with arena(project, 4) as place:
        for _ in range(soak(3, 100)):
            first = place.all("take", wants("a", mode="intent"))
            assert [row["outcome"] for row in first] == ["granted"] * 4
            upgrade = place.all("take", wants("a"))
            assert [row["outcome"] for row in upgrade] == ["refused"] * 4
            assert sorted(project.holders("a")) == [c.agent for c in place.contenders]
            last, *others = place.contenders
            for other in others:
                assert other.ask("release", items=["a"])["outcome"] == "released"
            assert last.ask("take", **wants("a"))["outcome"] == "granted"
            assert last.ask("release", items=["a"])["outcome"] == "released"
    loops.close()
    project.assert_clean()


def test_a_resource_never_exceeds_its_capacity(project: Project, loops: Housekeeping) -> None:
    began = time.monotonic()
    project.commit({".gitcoord/config": '[resource "gpu"]\n\tcapacity = 3\n'})
    with arena(project, 8) as place:
        for _ in range(soak(4, 300)):
            answers = place.all("take", wants("@gpu"))
            assert sum(row["outcome"] == "granted" for row in answers) == 3, answers
            place.give_back(answers)
        play_freely(place, wants("@gpu"), wants("@gpu", units=2), wants("@gpu", units=3))
    loops.close()
    assert_sound(place, {"@gpu": 3})
    assert most_at_once(place.rows(), "@gpu") == 3
    note_figures("capacity", place, loops, began)


# --- silence ------------------------------------------------------------------------------------------------------


def _is_silent(project: Project, path: str) -> bool:
    claims = project.claim("show", "--json", path).json["claims"]
    return bool(claims) and all(claim["silent"] for claim in claims)


def test_a_silent_holder_is_expired_once(project: Project, loops: Housekeeping) -> None:
    """Many ask at once for an expired holder's path: one of them gets it, by one event."""
    holder = Contender(project, "sleeper", project.place / "sleeper")
    holder.receive()
    with arena(project, 8) as place:
        for number in range(1, soak(3, 60) + 1):
            assert holder.ask("take", items=["a"], ttl=1)["outcome"] == "granted"
            wait_until("the holder counts as silent", lambda: _is_silent(project, "a"))
            answers = place.all("take", wants("a"))
            assert sorted(row["outcome"] for row in answers) == ["granted"] + ["refused"] * 7, answers
            assert len(project.events("expire")) == number
            place.give_back(answers)
            assert holder.ask("release", items=["a"])["outcome"] == "not-held"
    holder.close()
    loops.close()
    project.assert_clean()


def test_a_beat_against_an_expiry(project: Project, loops: Housekeeping) -> None:
    """The holder wakes up in the very moment in which others ask: either it still holds the path, or one other does."""
    holder = Contender(project, "sleeper", project.place / "sleeper")
    holder.receive()
    with arena(project, 3) as place:
        for _ in range(soak(3, 60)):
            assert holder.ask("take", items=["a"], ttl=1)["outcome"] in ("granted", "renewed")
            expired = len(project.events("expire"))
            wait_until("the holder counts as silent", lambda: _is_silent(project, "a"))
            holder.send("beat")
            answers = place.all("take", wants("a"))
            assert holder.receive() == {"alive": True}
            winners = [row["agent"] for row in answers if row["outcome"] == "granted"]
            others = [row["outcome"] for row in answers if row["outcome"] != "granted"]
            assert set(others) == {"refused"} and len(winners) <= 1, answers
            assert len(project.events("expire")) - expired == len(winners)
            assert project.holders("a") == (winners or ["sleeper"])
            place.give_back(answers)
    holder.close()
    loops.close()
    project.assert_clean()


def test_a_holder_that_beats_is_never_expired(project: Project, loops: Housekeeping) -> None:
    """Others ask all the while, and longer than the ttl: a heartbeat now and then is enough."""
    holder = Contender(project, "worker", project.place / "worker")
    holder.receive()
    assert holder.ask("take", items=["a"], ttl=2)["outcome"] == "granted"
    end = time.monotonic() + soak(3, 60)
    with arena(project, 2) as place:
        while time.monotonic() < end:
            assert holder.ask("beat") == {"alive": True}
            assert {row["outcome"] for row in place.all("take", wants("a"))} == {"refused"}
    assert holder.ask("release", items=["a"])["outcome"] == "released"
    holder.close()
    loops.close()
    assert not project.events("expire")
    project.assert_clean()


# --- the queue is for speed only ----------------------------------------------------------------------------------


@pytest.mark.parametrize("queue", ["private", "none"])
def test_the_swap_alone_is_enough(project: Project, loops: Housekeeping, queue: str) -> None:
    """Everybody has a queue of its own, or none: slower, and as correct."""
    began = time.monotonic()
    with arena(project, 8, queue=queue) as place:
        play_rounds(place, soak(4, 500), wants("src/app.py"))
        play_freely(place, wants("src/app.py"), wants("src"), wants("a", "src/db.py"), seconds=FREE_SECONDS / 2)
    loops.close()
    assert_sound(place)
    note_figures(f"queue: {queue}", place, loops, began)


# --- the checker can fail -----------------------------------------------------------------------------------------


def test_the_checker_catches_a_wrong_implementation(project: Project) -> None:
    """Contenders to whom every mode agrees with every other: the round, the history and fsck all say so."""
    with arena(project, 4, rules="all agree") as place:
        answers = place.all("take", wants("src/app.py"))
    assert sum(row["outcome"] == "granted" for row in answers) > 1
    assert any("both won" in problem for problem in check_round(answers))
    assert any("held both at once" in problem for problem in check_history(place.rows()))
    assert not project.coord("fsck", "--json").json["clean"]


def row(agent: str, start: int, end: int, token: int = 0, **more: Any) -> Row:
    outcome = "granted" if token else "refused"
    blank: Row = {"op": "take", "items": ["a"], "mode": "write", "units": 1, "round": 0, "held": [], "message": ""}
    return {**blank, "agent": agent, "start": start, "end": end, "token": token, "outcome": outcome, **more}


def back(agent: str, start: int, end: int, items: str = "a") -> Row:
    return {
        "op": "release",
        "agent": agent,
        "items": [items],
        "start": start,
        "end": end,
        "outcome": "released",
        "message": "",
    }


GOOD = [row("x", 0, 2, 5), row("y", 1, 3, held=[["a", "x", 5]]), back("x", 4, 6), row("y", 5, 8, 7), back("y", 9, 10)]
BAD = {
    "held both at once": [row("x", 0, 2, 5), row("y", 1, 3, 6)],
    "was given to": [row("x", 0, 2, 5), back("x", 3, 4), row("y", 5, 6, 5)],
    "had been told": [row("x", 0, 2, 6), back("x", 3, 4), row("y", 5, 6, 5)],
    "held at another time": [row("x", 0, 2, 5), back("x", 3, 4), row("y", 5, 6, held=[["a", "x", 5]])],
    "which nobody was told": [row("y", 5, 6, held=[["a", "x", 5]])],
    "without a holder": [row("y", 5, 6)],
    "because of b": [row("x", 0, 2, 5, items=["b"]), row("y", 5, 6, held=[["b", "x", 5]])],
    "no answer": [row("y", 5, 6, outcome="contention")],
    "could not release": [row("x", 0, 2, 5), {**back("x", 3, 4), "outcome": "store"}],
    "units of @gpu": [row(a, i, i, i, items=["@gpu"], mode="read") for i, a in enumerate("xyzw", 1)],
}


def test_the_checker_accepts_a_good_history() -> None:
    assert check_history(GOOD) == []
    below = [
        row("x", 0, 1, 3, items=["src"]),
        row("y", 2, 3, 4, items=["srcs/a"]),
        row("z", 4, 5, 5, items=["b"], mode="read"),
    ]
    assert check_history([*below, row("w", 6, 7, 6, items=["b/c"], mode="intent")]) == []


@pytest.mark.parametrize("words", BAD)
def test_the_checker_names_what_is_wrong(words: str) -> None:
    assert any(words in problem for problem in check_history(BAD[words], {"@gpu": 3}))


def test_the_checker_compares_with_the_ledger() -> None:
    told = [row("x", 0, 2, 2), back("x", 3, 4)]
    event: Row = {"kind": "claim", "seq": 2, "agent": "x", "items": [["path", "a"]], "mode": "write"}
    first, last = {"kind": "init", "seq": 1}, {"kind": "release", "seq": 3}
    assert check_ledger([first, event, last], told) == []
    assert check_ledger([first, last], told), "a gap, and a grant that is not on record"
    assert check_ledger([first, event, last], []), "a grant that nobody was told"
    assert check_ledger([first, {**event, "agent": "y"}, last], told), "granted to another"
    assert check_ledger([first, event, {"kind": "expire", "seq": 3}], told), "nobody was silent"

"""Handing many claims over: `git handoff accept` of many against one of a quarter as many."""

from __future__ import annotations

import json
import os

from tests.bench.measure import Result, Target, compare, interleave
from tests.bench.place import Place

_SECTIONS = ("--state", "half done", "--changed", "the parser", "--remaining", "the tests", "--next", "write them")
_AGENTS = ("giver", "taker")


class Pair:
    """Two agents who hand the same claims to each other, over and over."""

    def __init__(self, place: Place, claims: int) -> None:
        self._place = place
        paths = [f"src{n % 20}/file{n}.c" for n in range(claims)]
        self._where = place.repository(f"handing-{claims}", paths)
        self._turn = 0
        place.run(self._where, "git", "claim", *paths, env=self._env())

    def _env(self) -> dict[str, str]:
        return {**self._place.env, "GITCOORD_AGENT": _AGENTS[self._turn % 2]}

    def accept(self) -> float:
        """Offered untimed; then the other accepts."""
        run, where = self._place.run, self._where
        id = json.loads(run(where, "git", "handoff", "new", *_SECTIONS, "--json", env=self._env()))["id"]
        self._turn += 1
        os.chdir(where)
        return self._place.timed("git", "handoff", "accept", id, env=self._env())


def handing(place: Place, rounds: int, many: int) -> list[Result]:
    few, lots = Pair(place, many // 4), Pair(place, many)
    samples = interleave(rounds, {"few": lambda n: few.accept(), "many": lambda n: lots.accept()})
    what = f"git handoff accept of {many:,} claims / of {many // 4:,}"
    return [compare("handing", what, samples, "many", "few", Target(5))]

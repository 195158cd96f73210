"""One long-lived process: claim and release by the library, against SQLite with the same promise to the disk."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.client import Client
from tests.bench.measure import Result, Samples, interleave, p50
from tests.bench.place import Place

_FILES = [f"src/part{n % 5}/file{n}.txt" for n in range(25)]


class Sqlite:
    """The usual table of claims: whoever inserts first holds the path."""

    def __init__(self, file: Path, journal: str) -> None:
        self._db = sqlite3.connect(file, isolation_level=None)
        self._db.execute(f"PRAGMA journal_mode={journal}")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute("CREATE TABLE claims (path TEXT PRIMARY KEY, agent TEXT NOT NULL, at REAL NOT NULL)")

    def pair(self, path: str) -> None:
        insert = "INSERT INTO claims VALUES (?, 'bench', ?) ON CONFLICT (path) DO NOTHING"
        assert self._db.execute(insert, (path, time.time())).rowcount == 1
        assert self._db.execute("DELETE FROM claims WHERE path = ? AND agent = 'bench'", (path,)).rowcount == 1

    def close(self) -> None:
        self._db.close()


def pairs(place: Place, rounds: int, chunk: int) -> list[Result]:
    """Chunks of pairs, in turn."""
    durable = Client(place.repository("library", _FILES), "bench", place.env)
    quick_where = place.repository("library-nosync", _FILES)
    place.run(quick_where, "git", "config", "gitcoord.fsync", "false")
    quick = Client(quick_where, "bench", place.env)
    rollback, wal = Sqlite(place.directory / "a.db", "DELETE"), Sqlite(place.directory / "b.db", "WAL")

    def chunk_of(pair: Callable[[str], None], client: Client | None = None) -> Callable[[int], float]:
        def run(number: int) -> float:
            if client is not None:
                client.enter()
            start = time.perf_counter()
            for n in range(chunk):
                pair(_FILES[(number * chunk + n) % len(_FILES)])
            return (time.perf_counter() - start) / chunk

        return run

    samples = interleave(
        rounds,
        {
            "gitcoord": chunk_of(durable.pair, durable),
            "sqlite": chunk_of(rollback.pair),
            "gitcoord fsync=false": chunk_of(quick.pair, quick),
            "sqlite wal": chunk_of(wal.pair),
        },
    )
    for thing in (durable, quick, rollback, wal):
        thing.close()
    return [
        _ratio(
            "library", "library, pairs/s / SQLite synchronous=FULL, rollback journal", samples, "gitcoord", "sqlite"
        ),
        _ratio("library-wal", "library, pairs/s / SQLite synchronous=FULL, WAL", samples, "gitcoord", "sqlite wal"),
        _ratio(
            "library-nosync",
            "library with gitcoord.fsync=false / SQLite FULL",
            samples,
            "gitcoord fsync=false",
            "sqlite",
        ),
    ]


def _ratio(name: str, what: str, samples: Samples, one: str, other: str) -> Result:
    rate = {key: 1 / p50(samples[key]) for key in (one, other)}
    figures = {f"{key} pairs/s": round(value, 1) for key, value in rate.items()}
    return Result(name, what, rate[one] / rate[other], None, {"rounds": len(samples[one]), **figures})

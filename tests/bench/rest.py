"""Rest before measuring: on some file systems what was deleted a moment ago slows down what is made now.

An ext4 without a journal does not use the place of a deleted file again for some minutes, and every new file has to step over
all such places near it. Thousands of files are deleted by a run of the tests, or of these benchmarks; a file that is made then
takes up to a hundred times as long. How long it takes is told by comparing it with a rename, which needs no new place.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.bench.measure import p50

QUIET = 4.0  # a new file costs at the most so many renames
_LONGEST = 480.0
_EVERY = 15.0
_FILES = 384  # places that were only thought to be free show by then
_LAST = 32


def making(directory: Path) -> float:
    """What a new file costs in this directory, in renames. The files stay: to delete them would be what it looks for."""
    place = directory / f"rest-{time.monotonic_ns()}"
    place.mkdir()
    made, renamed = [], []
    for number in range(_FILES):
        name = str(place / str(number))
        start = time.perf_counter()
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        made.append(time.perf_counter() - start)
        os.close(fd)
        start = time.perf_counter()
        os.rename(name, name + "-renamed")
        renamed.append(time.perf_counter() - start)
    return p50(made[-_LAST:]) / p50(renamed[-_LAST:])


def rest(
    directories: Iterable[Path],
    look: Callable[[Path], float] = making,
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, float]:
    """Wait until making files is as quick as on a quiet disk, or for eight minutes; what it was like, for the report."""
    directories = list(directories)
    waited = 0.0
    while True:
        os.sync()
        cost = max(look(directory) for directory in directories)
        if cost <= QUIET or waited >= _LONGEST:
            return {"a new file / a rename": round(cost, 1), "rested s": round(waited)}
        if not waited:
            print(
                f"a new file costs {cost:.0f} renames here: waiting until the disk rests", file=sys.stderr, flush=True
            )
        pause(_EVERY)
        waited += _EVERY

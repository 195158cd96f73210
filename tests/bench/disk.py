"""The state of the disk: on some file systems what was deleted a moment ago slows down what is made now.

An ext4 without a journal does not use the place of a deleted file again for some minutes, and every new file has to step over
all such places near it. Thousands of files are deleted by a run of the tests, or of these benchmarks; a file that is made then
takes up to a hundred times as long. How long it takes is told by comparing it with a rename, which needs no new place.
"""

import os
import shutil
import time
from pathlib import Path

from tests.bench.measure import p50

_FILES = 384  # places that were only thought to be free show by then
_LAST = 32
_TREES, _DIRECTORIES, _EACH = 60, 40, 10


def making(directory: Path) -> float:
    """What a new file costs in this directory, in renames. The files stay: to delete them would be what it looks for."""
    place = directory / f"look-{time.monotonic_ns()}"
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


def stir(directory: Path, trees: int = _TREES) -> None:
    """Make small files in many directories, and delete them, as builds and tests do."""
    place = directory / f"stir-{time.monotonic_ns()}"
    for number in range(trees * _DIRECTORIES):
        below = place / str(number % trees) / str(number)
        below.mkdir(parents=True)
        for each in range(_EACH):
            (below / str(each)).write_bytes(b"x" * 200)
    shutil.rmtree(place)

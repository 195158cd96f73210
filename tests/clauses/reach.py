"""Which tests reach which statement: found by running them once on a copy whose statements note that they were reached.

pytest names the running test in PYTEST_CURRENT_TEST, which the git processes of a test and the hooks below them inherit.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.clauses.mutants import functions, statement_key

ROOT = Path(__file__).parents[2]
_HIT = """import os
_seen = set()
def hit_(number):
    test = os.environ.get("PYTEST_CURRENT_TEST", "")
    if (number, test) not in _seen:
        _seen.add((number, test))
        fd = os.open({place!r} + str(os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(fd, f"{{number}}\\t{{test}}\\n".encode("utf-8", "surrogateescape"))
        os.close(fd)
"""


@contextmanager
def copy_of_the_tree() -> Iterator[Path]:
    """The checkout as it is, in a place of its own."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    with tempfile.TemporaryDirectory(prefix="gitcoord-clauses-") as place:
        copy = Path(place, "tree")
        for name in listed.split("\0"):
            if name and (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
        yield copy


class Reach:
    """The map, kept in a file. Only tests whose file changed are run again; all of them, where the sources changed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: dict[str, float] = {}
        self._files: dict[str, str] = {}
        self._tests: dict[str, list[str]] = {}
        self._sources = ""
        if file.exists():
            kept = json.loads(file.read_text())
            self._seconds, self._files = kept["seconds"], kept["files"]
            self._tests, self._sources = kept["tests"], kept["sources"]

    def tests(self, statement: str) -> list[tuple[str, float]]:
        """The tests that reach it, quickest first."""
        found = [(test, self._seconds[test]) for test in self._tests.get(statement, ())]
        return sorted(found, key=lambda pair: pair[1])

    def update(
        self, sources: tuple[str, ...], places: tuple[str, ...], without: tuple[str, ...], *, anew: bool
    ) -> list[str]:
        """Brings the map up to date; the tests that did not pass, and so do not count."""
        digest = _digest(*sources)
        if anew or not self._sources:
            self._files, self._sources = {}, digest
        elif self._sources != digest:
            print("the sources changed since the map was made: tests may be missing in it (--map makes it anew)")
        files = {name: _digest(name) for place in places for name in _test_files(place) if name not in without}
        changed = [name for name in files if self._files.get(name) != files[name]]
        stale = [test for test in self._seconds if test.partition("::")[0] not in files]
        stale += [test for test in self._seconds if test.partition("::")[0] in changed]
        self._drop(set(stale))
        failed = self._run(sources, changed) if changed else []
        self._files = files
        self._file.parent.mkdir(parents=True, exist_ok=True)
        kept = {"seconds": self._seconds, "files": files, "tests": self._tests, "sources": self._sources}
        self._file.write_text(json.dumps(kept))
        return failed

    def _drop(self, tests: set[str]) -> None:
        self._seconds = {test: seconds for test, seconds in self._seconds.items() if test not in tests}
        self._tests = {key: [test for test in found if test not in tests] for key, found in self._tests.items()}

    def _run(self, sources: tuple[str, ...], files: list[str]) -> list[str]:
        with copy_of_the_tree() as copy:
            hits, notes = copy.parent / "hits", copy.parent / "notes"
            hits.mkdir()
            keys: list[str] = []
            for name in sources:
                (copy / name).write_text(_noting(name, (copy / name).read_text(), keys))
            (copy / "gitcoord/hits_.py").write_text(_HIT.format(place=f"{hits}/"))
            argv = [sys.executable, "-m", "pytest", "-q", "-p", "tests.clauses.noting", "--durations=0", *files]
            subprocess.run(argv, cwd=copy, env={**os.environ, "CLAUSES_NOTES": str(notes)}, check=False)
            noted = json.loads(notes.read_text())
            failed = set(noted["failed"])
            self._seconds |= {test: seconds for test, seconds in noted["seconds"].items() if test not in failed}
            reached = {
                line for file in hits.iterdir() for line in file.read_text(errors="surrogateescape").splitlines()
            }
        for line in reached:
            number, _, test = line.partition("\t")
            test = test.rpartition(" (")[0]
            if test in self._seconds:
                found = self._tests.setdefault(keys[int(number)], [])
                if test not in found:
                    found.append(test)
        return sorted(failed)


def _test_files(place: str) -> list[str]:
    path = ROOT / place
    files = [path] if path.is_file() else sorted(path.glob("test_*.py"))
    return [str(file.relative_to(ROOT)) for file in files]


def _digest(*names: str) -> str:
    return hashlib.sha256(b"\0".join((ROOT / name).read_bytes() for name in names)).hexdigest()


def _noting(file: str, source: str, keys: list[str]) -> str:
    """The same source, in which each statement of a function first notes its key's number."""
    tree = ast.parse(source)
    for where, function in functions(tree):
        for node in list(ast.walk(function)):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if isinstance(block, list):
                    setattr(node, field, [new for old in block for new in _noted(file, where, old, keys)])
    tree.body.insert(1, ast.ImportFrom("gitcoord.hits_", [ast.alias("hit_")], 0))
    return ast.unparse(ast.fix_missing_locations(tree))


def _noted(file: str, where: str, statement: ast.stmt, keys: list[str]) -> list[ast.stmt]:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return [statement]
    key = statement_key(file, where, statement)
    if key not in keys:
        keys.append(key)
    call = ast.Call(ast.Name("hit_", ast.Load()), [ast.Constant(keys.index(key))], [])
    return [ast.Expr(call), statement]

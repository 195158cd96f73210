"""The table of commands about one held file: read, and asked of the guard's parser. Only what is missed is ever run, by test_after_look.py.

`python -m tests.guard.shell_recall [table] [--misses]` prints recall and precision of both halves by family; with `--misses` also the
misses of the half that may be looked at. Of another table only the figures are printed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from gitcoord.shell.parse import analyse

TABLE = Path(__file__).parent / "shell_held_file.txt"
SECOND_TABLE = TABLE.with_name("shell_second_table.txt")
HELD = "src/a.py"
A = "import os\nVALUE = 'old'\nprint(VALUE)\n"
FILES = {
    "README.md": "# readme\n",
    "Makefile": "test:\n\ttrue\n",
    "package.json": '{"name": "x", "version": "1", "scripts": {"test": "true", "lint": "true"}}\n',
    HELD: A,
    "src/b.py": "VALUE = 'other'\n",
    "src/lib/c.py": "c = 1\n",
    "src/app.js": "let a = 1;\n",
    "docs/guide.md": "# the guide\n",
    "docs/a.py": "shown = 1\n",
    "docs/conf.py": "x = 1\n",
    "tests/test_a.py": "def test_a():\n    pass\n",
    "install.sh": "true\n",
    "files.txt": "src/a.py\nsrc/b.py\n",
    "docs.txt": "docs/guide.md\ndocs/conf.py\n",
}


class Row(NamedTuple):
    family: str
    command: str
    writes: bool

    def held_out(self) -> bool:
        """Whether the row is of the half at whose misses nobody looks."""
        return hashlib.sha256(self.command.encode()).digest()[0] % 2 == 0


def rows(file: Path = TABLE) -> list[Row]:
    found: list[Row] = []
    family = ""
    for line in file.read_text().splitlines():
        if line.startswith("== "):
            family = line[3:]
        elif line.startswith(("+ ", "- ")):
            found.append(Row(family, line[2:], line[0] == "+"))
        elif line.startswith(">"):
            found[-1] = found[-1]._replace(command=f"{found[-1].command}\n{line[2:]}")
        else:
            assert not line or line.startswith("#"), line
    return found


def tree(top: Path) -> None:
    """A repository with two branches, archives, patches and lists of files."""

    def sh(*words: str) -> str:
        return subprocess.run(words, cwd=top, check=True, capture_output=True, text=True, env=environment(top)).stdout

    for name, text in FILES.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    sh("git", "init", "-q", "-b", "main")
    sh("git", "add", ".")
    sh("git", "commit", "-q", "-m", "one")
    (top / HELD).write_text(A.replace("old", "new"))
    (top / "docs/guide.md").write_text("# a guide\n")
    (top / "fix.patch").write_text(sh("git", "diff", "--", HELD))
    (top / "docs.patch").write_text(sh("git", "diff", "--", "docs"))
    sh("git", "checkout", "-q", "-b", "other")
    sh("git", "commit", "-q", "-am", "other")
    sh("git", "checkout", "-q", "main")
    (top / HELD).write_text(A + "\n")
    sh("git", "commit", "-q", "-am", "two")
    (top / HELD).write_text(A)
    sh("git", "commit", "-q", "-am", "three")
    sh("tar", "-cf", "src.tar", "src")
    sh("tar", "-czf", "src.tgz", "src")
    sh("tar", "-cf", "docs.tar", "docs")
    sh(sys.executable, "-m", "zipfile", "-c", "src.zip", "src")
    sh("git", "status")  # its index is fresh
    os.utime(top / HELD, (1_700_000_000, 1_700_000_000))


def environment(top: Path) -> dict[str, str]:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    return {"PATH": os.environ["PATH"], "HOME": str(top.parent), "GIT_CONFIG_NOSYSTEM": "1", **who}


def is_told(top: Path, command: str) -> bool:
    """Whether the guard would deny the command for the held file: a write of it or of the directory above it, or the end of the repository.

    The unknown is no such answer, since it is allowed.
    """
    above = {str(top / HELD), str(top / "src")}
    effects = analyse(command, cwd=str(top), home=str(top.parent))
    gone = {str(top), str(top.parent), "/"}
    return any(
        effect.kind in ("write", "delete") and effect.path in above or effect.kind == "delete" and effect.path in gone
        for effect in effects
    )


class Score(NamedTuple):
    """Counts of commands: rightly denied, wrongly denied, missed."""

    right: int
    wrong: int
    missed: int

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed)

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong)


def score(top: Path, table: list[Row]) -> Score:
    answers = [(row.writes, is_told(top, row.command)) for row in table]
    return Score(answers.count((True, True)), answers.count((False, True)), answers.count((True, False)))


def report(file: Path, *, misses: bool) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch, "top")
        top.mkdir()
        tree(top)
        for held_out in (False, True):
            half = [row for row in rows(file) if row.held_out() == held_out]
            found = score(top, half)
            name = "held out" if held_out else "looked at"
            print(f"{name}: {len(half)} rows, recall {found.recall:.1%}, precision {found.precision:.1%} {found}")
            families = dict.fromkeys(row.family for row in half)
            for family in families:
                print(f"  {family}: {score(top, [row for row in half if row.family == family])}")
        for row in rows(file) if misses and file == TABLE else ():
            if not row.held_out() and is_told(top, row.command) != row.writes:
                print(f"{'+' if row.writes else '-'} {row.command}")


if __name__ == "__main__":
    named = [Path(word) for word in sys.argv[1:] if not word.startswith("-")]
    report(named[0] if named else TABLE, misses="--misses" in sys.argv)

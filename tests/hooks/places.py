"""A repository with gitcoord in it, and a stand-in for git-claim that notes how it was called."""

import os
import stat
import subprocess
from pathlib import Path

from tests.cli.support import COORD, Done, World

# Notes its arguments and what it reads, ends as the file 'verdict' says. Without input of its own git gives /dev/null.
_STAND_IN = """#!/bin/sh
{ printf '%s|' "$@"; echo; cat; } >>"$(dirname "$0")/calls"
[ ! -f "$(dirname "$0")/verdict" ] || exit "$(cat "$(dirname "$0")/verdict")"
"""


class Place(World):
    """The tests' repository. `bin` is first on PATH, and holds the stand-in."""

    def __init__(self, top: Path, place: Path) -> None:
        self.bin = place / "bin"
        self.bin.mkdir(parents=True)
        self.stand_in = self.script(self.bin / "git-claim", _STAND_IN)
        super().__init__(top)

    def script(self, path: Path, text: str, mode: int = 0o755) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    @property
    def hooks(self) -> Path:
        return self.top / ".git" / "hooks"

    @property
    def path(self) -> dict[str, str]:
        return {"PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"}

    def coordinate(self, *words: str, cwd: str = "", env: dict[str, str] | None = None) -> Done:
        return self.run(COORD, words, "", cwd, {**self.path, **(env or {})})

    def run_in(self, where: Path, *words: str) -> Done:
        """The same from another directory."""
        return self.run(COORD, words, "", str(where), self.path)

    def ok(self, *words: str, cwd: str = "") -> Done:
        done = self.coordinate(*words, cwd=cwd)
        assert done.code == 0, done
        return done

    def calls(self) -> list[str]:
        """What the stand-in noted since it was last asked, line by line."""
        notes = self.bin / "calls"
        lines = notes.read_text().splitlines() if notes.exists() else []
        notes.unlink(missing_ok=True)
        return lines

    def judged(self) -> list[str]:
        """The hooks that called the stand-in since it was last asked."""
        return [line.split("|")[1] for line in self.calls() if line.startswith("--gate|")]

    def says(self, code: int) -> None:
        (self.bin / "verdict").write_text(str(code))

    def try_git(self, *words: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> Done:
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.top, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)


def picture(directory: Path) -> dict[str, tuple[str, int, bytes]]:
    """Every entry below a directory: what it is, its mode, its content or where it leads."""
    found = {}
    for path in sorted(directory.rglob("*")):
        mode = path.lstat().st_mode
        name = str(path.relative_to(directory))
        if stat.S_ISLNK(mode):
            found[name] = ("link", 0, os.readlink(path).encode())
        elif stat.S_ISREG(mode):
            found[name] = ("file", stat.S_IMODE(mode), path.read_bytes())
    return found

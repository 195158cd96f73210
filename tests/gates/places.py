"""A repository with gitcoord in it, and a stand-in for git-claim that notes how it was called."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done, World
from tests.newer_git import VERSION, is_newer
from tests.support import COORD

# Notes its arguments and what it reads, ends as the file 'verdict' says. Without input of its own git gives /dev/null.
_STAND_IN = """#!/bin/sh
{ printf '%s|' "$@"; echo; cat; } >>"$(dirname "$0")/calls"
[ ! -f "$(dirname "$0")/verdict" ] || exit "$(cat "$(dirname "$0")/verdict")"
"""


NEWER = is_newer(VERSION)
CHAIN, CONFIG = "chain", "config"
# How hooks are installed: what is claimed of hooks must hold both ways. Every git runs chained ones.
WAYS = [CHAIN, pytest.param(CONFIG, marks=pytest.mark.newer_git)]


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def pretend(bin: Path, way: str) -> None:
    """A git first on PATH that says it is of the version for this way. All else it does is the real one's."""
    version = {CHAIN: "2.53.0", CONFIG: "2.54.0"}[way]
    script(
        bin / "git",
        f'#!/bin/sh\n[ "$1" != version ] || {{ echo git version {version}; exit; }}\nexec {shutil.which("git")} "$@"\n',
    )


class Place(World):
    """The tests' repository. `bin` is first on gitcoord's PATH, and holds the stand-in."""

    def __init__(self, top: Path, place: Path, way: str = CHAIN) -> None:
        self.bin = place / "bin"
        self.bin.mkdir(parents=True)
        self.stand_in = self.script(self.bin / "git-claim", _STAND_IN)
        self.way = way
        if way == CHAIN and NEWER:
            pretend(self.bin, CHAIN)
        super().__init__(top)

    def script(self, path: Path, text: str, mode: int = 0o755) -> Path:
        return script(path, text, mode)

    def hook(self, event: str) -> Path:
        """The path of our installed hook."""
        return self.hooks / (event if self.way == CHAIN else f"gitcoord-{event}")

    @property
    def hooks(self) -> Path:
        return self.top / ".git" / "hooks"

    @property
    def path(self) -> dict[str, str]:
        return {"PATH": os.pathsep.join([str(self.stand_in.parent), str(self.bin), os.environ["PATH"]])}

    def move_stand_in(self) -> None:
        """git-claim is at another place now: that makes another text of every hook, as a newer version does."""
        self.stand_in = self.stand_in.rename(self.script(self.bin / "new/git-claim", ""))

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
        """The calls of the stand-in since the last time, line by line."""
        notes = self.stand_in.parent / "calls"
        lines = notes.read_text().splitlines() if notes.exists() else []
        notes.unlink(missing_ok=True)
        return lines

    def judged(self) -> list[str]:
        """The hooks that called the stand-in since it was last asked."""
        return [line.split("|")[1] for line in self.calls() if line.startswith("--gate|")]

    def says(self, code: int) -> None:
        (self.stand_in.parent / "verdict").write_text(str(code))

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

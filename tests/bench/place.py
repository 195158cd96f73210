"""The place in which the benchmarks run: a home of their own, the installed commands, fresh repositories."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tests.bench.measure import Failed, run_timed

ROOT = Path(__file__).resolve().parents[2]
_KEPT = ("PATH", "TMPDIR", "LANG", "TZ", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "SSL_CERT_FILE")
_SHIM = """#!{python} -IS
import sys
sys.path.insert(0, {root!r})
from gitcoord.cli.entry import {entry} as entry
entry()
"""
_CONFIG = """[init]
\tdefaultBranch = main
[user]
\tname = Bench
\temail = bench@example.com
[credential]
\thelper =
"""


class Place:
    """A directory for everything, an environment without the user's settings, and the commands under test."""

    def __init__(self, directory: Path, command_dir: Path | None, root: Path = ROOT) -> None:
        self.directory = directory
        self._root = root
        self.home = directory / "home"
        self.home.mkdir()
        (self.home / ".gitconfig").write_text(_CONFIG)
        self.errors = str(directory / "stderr")
        self.env = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self.env |= {
            "HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C.UTF-8",
        }
        self.env["GITCOORD_AGENT"] = "bench"
        self.source = "--command-dir"
        self.commands = command_dir.resolve() if command_dir is not None else self._install()
        self.env["PATH"] = f"{self.commands}{os.pathsep}{self.env.get('PATH', os.defpath)}"
        self.python = interpreter(self.commands / "git-claim")

    def _install(self) -> Path:
        """Install by install.sh into the home here, without the network where this interpreter has what is needed."""
        env = dict(self.env)
        if find_spec("dulwich") is not None and find_spec("typer") is not None:
            env["GITCOORD_INSTALL_FROM"] = sysconfig.get_path("purelib")
        script = self._root / "install.sh"
        if script.exists():
            done = subprocess.run(
                [str(script)], env=env, cwd=self._root, capture_output=True, text=True, check=False, timeout=600
            )
            if not done.returncode:
                self.source = "install.sh"
                return self.home / ".local/bin"
            print(f"install.sh failed, using plain shims: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        self.source = "plain shims"
        return self._shims()

    def _shims(self) -> Path:
        make_shims(self.directory / "bin", self._root)
        return self.directory / "bin"

    def run(self, where: Path, *argv: str, env: dict[str, str] | None = None) -> str:
        """Untimed, to its end; what it printed."""
        done = subprocess.run(argv, cwd=where, env=env or self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def timed(self, *argv: str, env: dict[str, str] | None = None) -> float:
        """Run and time a command in the current directory."""
        return run_timed(argv, env or self.env, self.errors)

    def bare_python(self) -> float:
        """The floor: the very interpreter that runs `git claim`, doing nothing."""
        return self.timed(self.python, "-I", "-S", "-c", "pass")

    def repository(self, name: str, files: Sequence[str], *, ledger: bool = True) -> Path:
        """A fresh repository with these files in one commit, and a ledger made by `git coord init`."""
        where = self.directory / name
        empty_repository(self, where, files)
        if ledger:
            self.run(where, "git", "coord", "init")
        return where


def make_shims(bin: Path, root: Path) -> None:
    """Commands that run the sources below `root`, without installing them."""
    bin.mkdir()
    base = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    (bin / "git-claim").write_text(_SHIM.format(python=base, root=str(root), entry="claim"))
    line = f"PYTHONPATH={shlex.quote(str(root))} exec {shlex.quote(sys.executable)} -m gitcoord.cli coord"
    (bin / "git-coord").write_text(f'#!/bin/sh\n{line} "$@"\n')
    (bin / "git-handoff").write_text(_SHIM.format(python=base, root=str(root), entry="handoff"))
    for name in ("git-claim", "git-coord", "git-handoff"):
        (bin / name).chmod(0o755)


def earlier(place: Place, commit: str) -> Place:
    """The commands as they were at this commit, made in the same way as those of `place`. Failed where the commit is not here."""
    directory = place.directory / commit
    root = directory / "source"
    if not root.exists():
        root.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
        if archive.returncode:
            raise Failed(f"{commit} is not in this clone")
        subprocess.run(["tar", "-x"], cwd=root, input=archive.stdout, check=True)
    if place.source == "install.sh":
        return Place(directory, None, root)
    make_shims(directory / "bin", root)
    return Place(directory, directory / "bin", root)


def empty_repository(place: Place, where: Path, files: Sequence[str]) -> None:
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    place.run(where, "git", "init", "--quiet")
    for file in files:
        path = where / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{file}\n")
    place.run(where, "git", "add", ".")
    place.run(where, "git", "commit", "--quiet", "--allow-empty", "-m", "files to claim")


def interpreter(command: Path) -> str:
    """Return the program on the command's first line, or the one that its shell script executes."""
    lines = command.read_text().splitlines()
    words = shlex.split(lines[0].removeprefix("#!"))
    if words[0].endswith("/sh"):
        execs = [shlex.split(line) for line in lines[1:] if line.startswith("exec ")]
        return execs[-1][1]
    if words[0].endswith("/env"):
        found = shutil.which(words[1])
        assert found is not None
        return found
    return words[0]


def has_lfs() -> bool:
    return subprocess.run(["git", "lfs", "version"], capture_output=True, check=False).returncode == 0

"""`git coord demo`: the main job, shown with real processes in a throw-away repository."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gitcoord.cli.demo import gates as demo_gates
from gitcoord.cli.demo import guard as demo_guard
from gitcoord.cli.demo import handover as demo_handover
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values


class Stage:
    """A scratch repository and HOME in which commands are shown and run."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.repo = home / "project"
        self.winner = ""
        self.core = ""  # the commit that was released and has not landed
        kept = ("PATH", "LANG", "TERM")
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        self.env |= {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "PYTHONPATH": str(Path(__file__).parents[3])}
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.repo)], check=True, env=self.env)
        for key, value in (("user.name", "Demo"), ("user.email", "demo@example.com")):
            self.git("config", key, value)
        (self.repo / "src").mkdir()
        for name in ("app.py", "db.py", "api.py"):
            (self.repo / "src" / name).write_text(f"# {name}\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "a small project")

    def git(self, *words: str) -> None:
        subprocess.run(["git", *words], check=True, cwd=self.repo, env=self.env)

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "gitcoord.cli", *words]

    def start(self, agent: str, *words: str) -> subprocess.Popen[str]:
        return self._start(agent, self.argv(*words))

    def _start(self, agent: str, argv: list[str]) -> subprocess.Popen[str]:
        env: Mapping[str, str] = {**self.env, "GITCOORD_AGENT": agent} if agent else self.env
        pipe = subprocess.PIPE
        return subprocess.Popen(
            argv,
            cwd=self.repo,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def show(self, agent: str, *words: str) -> int:
        """Print the command as that agent would type it, and what it answers."""
        return self._show(agent, words, self.argv(*words))

    def output(self, agent: str, *words: str) -> Any:
        """Run a command with --json and return its answer, without showing it."""
        out, _ = self._start(agent, self.argv(*words)).communicate()
        return json.loads(out.split("\n", 1)[0])

    def plain(self, agent: str, *words: str) -> int:
        """The same with a command of git's own."""
        return self._show(agent, words, ["git", *words])

    def _show(self, agent: str, words: tuple[str, ...], argv: list[str]) -> int:
        print(f"  {agent + '$' if agent else '$'} git {shlex.join(words)}")
        process = self._start(agent, argv)
        out, _ = process.communicate()
        for line in out.splitlines():
            print(f"      {line}")
        if process.returncode:
            print(f"      (exit {process.returncode})")
        return process.returncode


def demo(call: Call, values: Values, words: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="gitcoord-demo-") as directory:
        stage = Stage(Path(directory))
        failures = [scene.__doc__ for scene in SCENES if not _play(scene, stage)]
    print()
    for failure in failures:
        print(f"this scene did not go as it should: {failure}")
    print("demo failed" if failures else "that was gitcoord. In your own repository: git coord setup")
    return 1 if failures else 0


def _play(scene: Callable[[Stage], bool], stage: Stage) -> bool:
    print(f"\n--- {scene.__doc__}")
    sys.stdout.flush()
    return scene(stage)


def scene_setup(stage: Stage) -> bool:
    """Set up once"""
    return stage.show("", "coord", "init") == 0


def scene_race(stage: Stage) -> bool:
    """Two agents ask for the same file at the same moment: exactly one gets it"""
    print("  alice$ git claim src/app.py     bob$ git claim src/app.py")
    racers = {name: stage.start(name, "claim", "src/app.py", "-m", f"{name}'s idea") for name in ("alice", "bob")}
    outs = {name: process.communicate()[0] for name, process in racers.items()}
    for name, out in outs.items():
        for line in out.splitlines():
            print(f"      {name}: {line}")
    stage.winner = next((n for n, p in racers.items() if p.returncode == 0), "")
    return sorted(process.returncode for process in racers.values()) == [0, 1]


def scene_all_or_nothing(stage: Stage) -> bool:
    """Several files are granted together or not at all"""
    refused = stage.show("carol", "claim", "src/db.py", "src/app.py")
    listed = stage.show("carol", "claim", "list", "--mine")
    granted = stage.show("carol", "claim", "src/db.py", "src/api.py")
    return (refused, listed, granted) == (1, 0, 0)


def scene_kill(stage: Stage) -> bool:
    """A killed agent is fenced: its claims are free, and nothing of it gets through"""
    winner = stage.winner
    killed = stage.show("carol", "coord", "kill", winner, "--reason", "runs wild")
    fenced = stage.show(winner, "claim", "src/api.py")
    return (killed, fenced) == (0, 1)


def scene_expiry(stage: Stage) -> bool:
    """A claim without heartbeats expires: dave takes one for a second and does nothing more, erin simply asks"""
    stage.show("dave", "claim", "src/app.py", "--ttl", "1s", "-m", "short work")
    time.sleep(2.5)
    taken = stage.show("erin", "claim", "src/app.py")
    told = stage.show("dave", "claim", "release", "src/app.py")
    return (taken, told) == (0, 1)


def scene_work(stage: Stage) -> bool:
    """erin commits and releases; the ledger remembers which commit carries the work"""
    (stage.repo / "src" / "app.py").write_text("# app.py\nprint('hello')\n")
    stage.git("commit", "-qam", "greet")
    return stage.show("erin", "claim", "release", "src/app.py") == 0


def scene_ledger(stage: Stage) -> bool:
    """Everything is on record, in git"""
    shown = stage.show("", "coord", "log")
    print("  $ git for-each-ref refs/claims")
    sys.stdout.flush()
    stage.git("for-each-ref", "--format=      %(refname) -> %(objectname:short)", "refs/claims")
    return shown == 0 and stage.show("", "coord", "fsck") == 0


SCENES = (
    scene_setup, scene_race, scene_all_or_nothing, scene_kill, scene_expiry, scene_work, *demo_gates.SCENES,
    *demo_handover.SCENES, *demo_guard.SCENES, scene_ledger,
)  # fmt: skip

"""`git coord demo`: the main job, shown with real processes in a throw-away repository."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values


class Stage:
    """A scratch repository and HOME in which commands are shown and run."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.repo = home / "project"
        self.places: dict[str, Path] = {}  # work trees of agents; the others are in `repo`
        self.names: dict[str, str] = {}  # names that a scene finds out, for the command lines of later ones
        self.waiters: dict[str, subprocess.Popen[str]] = {}  # by agent: commands that wait
        self.env = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
        self.env |= {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "PYTHONPATH": str(Path(__file__).parents[3])}
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.repo)], check=True, env=self.env)
        self.git("config user.name Demo")
        self.git("config user.email demo@example.com")
        for name in ("app.py", "db.py", "api.py"):
            self.write(f"src/{name}", f"# {name}\n")
        self.git("add .")
        self.git("commit -q -m 'a small project'")

    def write(self, name: str, text: str) -> None:
        (self.repo / name).parent.mkdir(exist_ok=True)
        (self.repo / name).write_text(text)

    def git(self, line: str) -> str:
        """Run a command of git's own that is not shown; gives its output."""
        argv = ["git", *shlex.split(line)]
        return subprocess.run(argv, check=True, cwd=self.repo, env=self.env, stdout=subprocess.PIPE, text=True).stdout

    def start(self, agent: str, line: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """Start `git <line>` as this agent; gitcoord's own commands with this interpreter."""
        words = shlex.split(line)
        ours = [sys.executable, "-m", "gitcoord.cli"] if words[0] in ("claim", "coord", "handoff") else ["git"]
        env = {**self.env, "GITCOORD_AGENT": agent} if agent else self.env
        return subprocess.Popen(
            [*ours, *words], cwd=self.places.get(agent, self.repo), env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )  # fmt: skip

    def show(self, agent: str, line: str) -> int:
        """Print the command as that agent would type it, and what it answers; gives its exit code."""
        line = line.format(**self.names)
        print(f"  {agent}$ git {line}")
        process = self.start(agent, line)
        self.print_answer(process.communicate()[0])
        if process.returncode:
            print(f"      (exit {process.returncode})")
        return process.returncode

    def print_answer(self, text: str, prefix: str = "") -> None:
        for line in text.splitlines():
            print(f"      {prefix}{line}")

    def answer(self, agent: str, line: str) -> Any:
        """The JSON answer of a command that is not shown."""
        return json.loads(self.start(agent, f"{line} --json").communicate()[0].split("\n", 1)[0])


def demo(call: Call, values: Values, words: list[str]) -> int:
    from gitcoord.cli.demo.scenes import SCENES

    failures = []
    with tempfile.TemporaryDirectory(prefix="gitcoord-demo-") as directory:
        stage = Stage(Path(directory))
        for title, steps in SCENES.items():
            print(f"\n--- {title}", flush=True)
            if not all([step(stage) for step in steps]):  # a scene is played to its end
                failures.append(title)
        for process in stage.waiters.values():
            process.kill()
    print()
    for title in failures:
        print(f"this scene did not go as it should: {title}")
    print("demo failed" if failures else "that was gitcoord. In your own repository: git coord setup")
    return 1 if failures else 0

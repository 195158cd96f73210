"""The scratch copy in which a drill takes place: objects are borrowed from the user's repository, everything else is its own.

HOME, settings, refs, ledger and work trees lie below one temporary directory; only files that the drill uses are checked out.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from threading import Lock, Timer
from typing import NamedTuple

import gitcoord
from gitcoord.audit.model import BAD
from gitcoord.base.errors import CouldNotJudge
from gitcoord.cli.drill.mirror import Mirror
from gitcoord.gates.hooks.presence import GATES

UNHOOKED = ("-c", "core.hooksPath=/dev/null")
HOLDER = "drill-holder"
_COMMANDS = ("claim", "coord", "handoff")
_LEAST = 20.0  # seconds that a command gets at least
_HOT = 3
_REST = 15.0  # seconds for what was begun, and for looking at the result


class Done(NamedTuple):
    code: int
    out: bytes
    err: bytes

    @property
    def words(self) -> str:
        """The first line that says why it was refused."""
        lines = (self.err or self.out).decode("utf-8", "replace").splitlines()
        return next((line.removeprefix("error: ") for line in lines if line.strip()), f"exit {self.code}")


class Paths(NamedTuple):
    """`marked`: a file that nobody claims and that needs a claim, perhaps only where it lands; '' where the policy marks none."""

    marked: str
    only_landing: bool
    held: str
    hot: list[str]


class Ground:
    """The copy, and commands of agents in it."""

    def __init__(self, home: Path, mirror: Mirror, seed: int, deadline: float) -> None:
        self.home, self.mirror, self.deadline = home, mirror, deadline
        self.last_start = deadline - _REST  # from then on no agent begins anything
        self.project, self.server = home / "project", home / "server.git"
        self.trunk = mirror.project.trunk
        self.paths = _choose(mirror, Random(seed))
        self.tree_locks = {tree.name: Lock() for tree in mirror.trees}
        self.trunk_lock = Lock()  # held by what moves trunk or uses its work tree
        self.actions = 0
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        self.env = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        self.env |= {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
        self._put_commands_on_path()

    def _put_commands_on_path(self) -> None:
        """The installed commands; where there are none, this interpreter's."""
        if shutil.which("git-claim") is not None:
            return
        (self.home / "bin").mkdir()
        for name in _COMMANDS:
            file = self.home / f"bin/git-{name}"
            file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gitcoord.cli {name} "$@"\n')
            file.chmod(0o755)
        self.env["PATH"] = f"{self.home}/bin:{self.env.get('PATH', '')}"
        self.env["PYTHONPATH"] = str(Path(gitcoord.__file__).parents[1])

    # --- commands

    def run(self, *words: str, agent: str = "", cwd: Path | None = None, data: bytes = b"", until: bytes = b"") -> Done:
        """Run a command to its end, as this agent; killed with its children where the drill's time is over. `until`: its input ends when
        it has said this."""
        env = {**self.env, "GITCOORD_AGENT": agent} if agent else self.env
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            words, cwd=cwd or self.project, env=env, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        timer = Timer(max(_LEAST, self.deadline - time.monotonic() + _LEAST), _kill, [process])
        timer.daemon = True
        timer.start()
        self._running.add(process)
        if self._stopped:
            _kill(process)
        said = b""
        if until and process.stdin is not None and process.stdout is not None:
            process.stdin.write(data)
            process.stdin.flush()
            while until not in said and (line := process.stdout.readline()):
                said += line
            data = b""
        out, err = process.communicate(data)
        timer.cancel()
        self._running.discard(process)
        self.actions += bool(agent)
        return Done(process.returncode, said + out, err)

    def git(self, *words: str, cwd: Path | None = None, agent: str = "") -> Done:
        return self.run("git", *words, cwd=cwd, agent=agent)

    def must(self, *words: str, cwd: Path | None = None) -> str:
        """A command of the drill's own; where it fails, nothing can be judged."""
        done = self.git(*words, cwd=cwd)
        if done.code:
            raise CouldNotJudge(f"the scratch copy could not be made: git {words[0]}: {done.words}")
        return done.out.decode().strip()

    def stop(self) -> None:
        """Kill all commands that still run."""
        self._stopped = True
        for process in list(self._running):
            _kill(process)

    # --- the copy

    def build(self, agents: list[str]) -> None:
        """Make the copy, its server, its ledger and its work trees: one like each of the user's, and one for each agent."""
        project = self.mirror.project
        self._make_repository()
        if project.ctx.remote:
            self.must("clone", "-q", "--bare", "--shared", str(self.project), str(self.server), cwd=self.home)
            if self.mirror.server != BAD:
                self.must("coord", "server", "install", str(self.server))
            self.must("remote", "add", project.ctx.remote, str(self.server))
            self.must("fetch", "-q", project.ctx.remote)
            self.must(
                "clone", "-q", "--shared", "--no-checkout", str(self.server), str(self.home / "outside"), cwd=self.home
            )
        self.must(
            "coord",
            "init",
            "--sync",
            self.trunk,
            *(["--remote", project.ctx.remote] if project.ctx.remote else []),
        )
        self.must("coord", "install-hooks")
        self.must("config", "extensions.worktreeConfig", "true")
        for number, tree in enumerate(self.mirror.trees):
            if number:
                self._add_tree(tree.name)
            if tree.missing:
                self._take_gates(self.tree(tree.name), tree.missing)
        for agent in agents:
            self._add_tree(agent)
        if self.git("claim", self.paths.held, "--ttl", "1h", "-m", "drill", agent=HOLDER).code:
            raise CouldNotJudge(f"no agent may claim {self.paths.held} in the copy")

    @property
    def trunk_ref(self) -> str:
        """Trunk as the authority has it."""
        remote = self.mirror.project.ctx.remote
        return f"{remote}/{self.trunk}" if remote else self.trunk

    def tree(self, name: str) -> Path:
        """The work tree of this name: the first of the user's is the main one."""
        trees = self.mirror.trees
        return self.project if trees and name == trees[0].name else self.home / "trees" / name

    def _make_repository(self) -> None:
        ctx = self.mirror.project.ctx
        form = [f"--object-format={ctx.settings.get('extensions.objectformat') or 'sha1'}"]
        self.must("init", "-q", *form, "-b", self.trunk, str(self.project), cwd=self.home)
        (self.project / ".git/objects/info/alternates").write_text(f"{os.path.realpath(ctx.repo.objects)}\n")
        for key, value in (
            ("user.name", "Drill"),
            ("user.email", "drill@example.com"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
        ):
            self.must("config", "--global", key, value)
        wanted = [self.paths.marked, self.paths.held, *self.paths.hot, ".gitattributes", ".gitcoord/config"]
        self.must("update-ref", f"refs/heads/{self.trunk}", self.mirror.project.commit)
        self.must("sparse-checkout", "set", "--no-cone", *(f"/{path}" for path in wanted if path))
        self.must("reset", "-q", "--hard")
        for path in (self.paths.held, *self.paths.hot):
            if not (self.project / path).exists():
                (self.project / path).parent.mkdir(parents=True, exist_ok=True)
                (self.project / path).write_text("drill\n")
        for key in self.mirror.stripped:
            self.must("config", "-f", ".gitcoord/config", "--unset-all", key)
        self.must("add", "--sparse", "-A", ".")
        self.must("commit", "-q", "--allow-empty", "-m", "the copy of a drill")

    def _add_tree(self, name: str) -> None:
        self.must("worktree", "add", "-q", "-b", f"drill/{name}", str(self.home / "trees" / name), self.trunk)

    def _take_gates(self, tree: Path, missing: tuple[str, ...]) -> None:
        """Leave this work tree only the gates that run in the user's."""
        hooks = self.home / "hooks" / tree.name
        hooks.mkdir(parents=True)
        for file in (self.project / ".git/hooks").iterdir():
            if file.name in GATES and file.name not in missing:
                shutil.copy(file, hooks)
        self.must("config", "--worktree", "core.hooksPath", str(hooks), cwd=tree)
        for event in missing:  # where git runs hooks from its settings
            self.must("config", "--worktree", f"hook.gitcoord-{event}.enabled", "false", cwd=tree)


def _choose(mirror: Mirror, random: Random) -> Paths:
    """The files of this drill, by chance: those that the policy marks first."""
    of = mirror.project.policy.of
    files = mirror.files()
    marked, landing = (
        [path for path in files if of(path).claim and of(path).landing is only] for only in (False, True)
    )
    files = [path for path in files if not of(path).landing]
    random.shuffle(marked)
    random.shuffle(files)
    first = marked[:1] or landing[:1]
    rest = [path for path in dict.fromkeys([*marked, *files[: 2 * _HOT + 2]]) if path not in first]
    rest += [f"gitcoord-drill/{number}.txt" for number in range(_HOT + 1 - len(rest))]
    return Paths(first[0] if first else "", not marked, rest[0], rest[1 : _HOT + 1])


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass

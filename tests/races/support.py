"""Real processes on a real repository: a scratch project with gitcoord in it, contenders, and housekeeping beside them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.cli.support import Done, World
from tests.races.history import Row, check_history, check_ledger, read_ledger, read_logs
from tests.support import CLAIM, COORD, HANDOFF, PYTHON, ROOT, STARTS, UNHOOKED, run_command

SOAK = bool(os.environ.get("GITCOORD_SOAK"))
SOAK_OUT = Path(os.environ.get("GITCOORD_SOAK_OUT") or ROOT / "docs" / "soak.json")
DEADLINE = 60.0

# What most tests need and few are about, without the start of the whole command line.
_QUICK = f"""#!{sys.executable} -IS
import sys
sys.path.insert(0, {str(ROOT)!r})
from gitcoord.world.open import environ, open_repository
verb, *words = sys.argv[1:]
ctx = open_repository(environ(), writing=True)
if verb == "join":
    from gitcoord.ledger.remote.membership import begin, find
    from gitcoord.ledger.sessions import Actor
    begin(ctx, Actor(words[0]), find(ctx, "origin"))
elif verb == "fsck":
    from gitcoord.ledger.fsck import fsck
    print(*fsck(ctx, ctx.store, None)["differences"], sep="\\n", end="")
elif verb == "repair":
    from gitcoord.ledger.repair.service import repair
    from gitcoord.ledger.sessions import Actor
    done = repair(ctx, Actor(words[0]))
    print(*done["repaired"], *done["differences"], sep="\\n", end="")
    sys.exit(not done["clean"])
else:
    from gitcoord.gates.hooks.text import Kit
    from gitcoord.server.install import EVENTS, install, plan
    names = {{name: "server/" + name for name in ("gate.sh", *EVENTS)}}
    names["before.sh"] = "before.sh"
    texts = {{name: open({str(ROOT / "githooks")!r} + "/" + path).read() for name, path in names.items()}}
    install(ctx, plan(ctx, Kit(texts, words[0]), words[1]))
"""


_PROGRAMS = {"git-claim": CLAIM, "git-coord": COORD, "git-handoff": HANDOFF, "gitcoord-quick": [*PYTHON, "-c", _QUICK]}


def soak(quick: int, long: int) -> int:
    """The number of rounds: the quick one, or the long one with GITCOORD_SOAK."""
    return long if SOAK else quick


def wait_until(what: str, condition: Callable[[], bool], seconds: float = DEADLINE) -> None:
    """Look again and again until it is so; an error that says what did not happen."""
    end, pause = time.monotonic() + seconds, 0.005
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:.0f} s for this in vain: {what}")
        threading.Event().wait(pause)
        pause = min(0.03, pause * 1.5)  # a look may cost a process, and others need the processor


def scratch_env(place: Path) -> dict[str, str]:
    """An environment with a home of its own and gitcoord's commands, made below `place`."""
    home, tools = place / "home", place / "bin"
    home.mkdir(exist_ok=True)
    tools.mkdir(exist_ok=True)
    commands = {name: f"#!{sys.executable} -IS\n{start}\n" for name, start in STARTS.items()}
    for name, text in (*commands.items(), ("gitcoord-quick", _QUICK)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    return {
        "GIT_TEMPLATE_DIR": os.environ["GIT_TEMPLATE_DIR"],
        "PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8",
        "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com", "TERM": "dumb",
        "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com",
    }  # fmt: skip


class Project:
    """A scratch repository with gitcoord set up, and an environment in which only it is seen."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.repo = place / "project"
        self.git_dir = self.repo / ".git"
        self.env = scratch_env(place)
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.repo)], env=self.env, check=True)
        self.commit({"a": "a\n", "src/app.py": "app\n", "src/db.py": "db\n"})
        done = self.coord("init")
        assert done.code == 0, done

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=self.repo, env=self.env, check=True, capture_output=True, text=True
        ).stdout

    def commit(self, files: dict[str, str]) -> str:
        for name, text in files.items():
            (self.repo / name).parent.mkdir(parents=True, exist_ok=True)
            (self.repo / name).write_text(text)
        self.git("add", ".")
        self.git(*UNHOOKED, "commit", "-q", "-m", "work")
        return self.git("rev-parse", "HEAD").strip()

    def run(self, *argv: str, agent: str = "", env: dict[str, str] | None = None) -> Done:
        """A command to its end, away from any terminal."""
        with self.start(*argv, agent=agent, env=env) as process:
            try:
                out, err = process.communicate(timeout=DEADLINE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return Done(process.returncode, out, err)

    def start(
        self, *argv: str, agent: str = "", env: dict[str, str] | None = None, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[str]:
        """Start a command in a session of its own; the caller waits for it."""
        whole = {**self.env, **(env or {}), **({"GITCOORD_AGENT": agent} if agent else {})}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            argv, cwd=self.repo, env=whole, stdin=stdin, stdout=pipe, stderr=pipe, text=True,
            start_new_session=True,
        )  # fmt: skip

    def claim(self, *words: str, agent: str = "", env: dict[str, str] | None = None) -> Done:
        return self.run("git-claim", *words, agent=agent, env=env)

    def coord(self, *words: str, agent: str = "", env: dict[str, str] | None = None) -> Done:
        return self.run("git-coord", *words, agent=agent, env=env)

    def handoff(self, *words: str, agent: str = "") -> Done:
        return self.run("git-handoff", *words, agent=agent)

    def events(self, kind: str = "") -> list[Row]:
        return [e for e in read_ledger(self.repo, self.env) if kind in ("", e["kind"])]

    def head(self) -> str:
        return self.git("rev-parse", "refs/heads/gitcoord").strip()

    def holders(self, path: str) -> list[str]:
        shown = self.claim("show", "--json", path).json
        return [claim["agent"] for claim in shown["claims"] if not claim["silent"]]

    def assert_clean(self) -> None:
        found = self.coord("fsck", "--json").json
        assert found["clean"], found

    def person(self, *words: str) -> Done:
        """`git coord` by the person at a terminal: both streams in one."""
        return Done(*World(self.repo, made=True).at_terminal(*words, argv=COORD, env=self.env))


class Quick(Project):
    """A project whose commands run in forks of a loaded process. One that is started and not awaited is a real process."""

    def run(self, *argv: str, agent: str = "", env: dict[str, str] | None = None) -> Done:
        whole = {**self.env, **(env or {}), **({"GITCOORD_AGENT": agent} if agent else {})}
        program = _PROGRAMS.get(argv[0])
        done = run_command([*program, *argv[1:]] if program else argv, self.repo, whole)
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


@contextlib.contextmanager
def running(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Wait for the process after the test's body, and kill what is left of it."""
    try:
        yield process
        process.communicate(timeout=DEADLINE)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


# --- contenders ---------------------------------------------------------------------------------------------------


class Contender:
    """A worker process; see worker.py for the orders that it takes."""

    def __init__(self, project: Project, agent: str, log: Path, **options: Any) -> None:
        self.agent = agent
        settings = {"root": str(ROOT), "agent": agent, "log": str(log), **options}
        argv = [sys.executable, "-I", "-S", str(Path(__file__).with_name("worker.py")), json.dumps(settings)]
        self._process = subprocess.Popen(
            argv, cwd=project.repo, env=project.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._process.pid
        self.stopped: list[int] = []  # processes to wake up at the end

    def send(self, do: str, **order: Any) -> None:
        self._stdin.write(json.dumps({"do": do, **order}) + "\n")
        self._stdin.flush()

    def receive(self) -> Row:
        line = self._stdout.readline()
        assert line, f"{self.agent} ended with {self._process.wait()}"
        answer: Row = json.loads(line)
        return answer

    def ask(self, do: str, **order: Any) -> Row:
        self.send(do, **order)
        return self.receive()

    @property
    def _stdin(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stdout(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        try:
            self._process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()


class Arena:
    """Several contenders on one project, and what they logged."""

    def __init__(self, project: Project, count: int, **options: Any) -> None:
        self.project = project
        self._logs = project.place / f"logs-{time.monotonic_ns()}"
        self._logs.mkdir()
        self.contenders = [Contender(project, f"w{i:02}", self._logs / f"w{i:02}", **options) for i in range(count)]
        for contender in self.contenders:
            contender.receive()

    def all(self, do: str, *orders: Row) -> list[Row]:
        """The same moment for all: everybody gets its order, then everybody's answer is awaited."""
        for i, contender in enumerate(self.contenders):
            contender.send(do, **orders[i % len(orders)])
        return [contender.receive() for contender in self.contenders]

    def give_back(self, answers: list[Row]) -> None:
        """The winners of a round release, all at once too."""
        winners = [(c, a) for c, a in zip(self.contenders, answers) if a["outcome"] == "granted"]
        for contender, answer in winners:
            contender.send("release", items=answer["items"])
        for contender, _ in winners:
            contender.receive()

    def rows(self) -> list[Row]:
        return read_logs(sorted(self._logs.iterdir()))

    def close(self) -> None:
        for contender in self.contenders:
            contender.close()


@contextlib.contextmanager
def arena(project: Project, count: int, **options: Any) -> Iterator[Arena]:
    found = Arena(project, count, **options)
    try:
        yield found
    finally:
        found.close()


def assert_sound(arena: Arena, capacity: dict[str, int] | None = None) -> None:
    """The history could have happened, the ledger says the same, and fsck agrees."""
    rows = arena.rows()
    problems = check_history(rows, capacity) + check_ledger(arena.project.events(), rows)
    assert not problems, "\n".join(problems[:20])
    arena.project.assert_clean()


# --- beside them --------------------------------------------------------------------------------------------------


class Housekeeping:
    """`git pack-refs --all` and `git gc` over and over, each in a loop of its own, until it is closed.

    The project has gitcoord's hooks: they never stop what changes no value.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._over = threading.Event()
        self.counts = {"pack-refs": 0, "gc": 0}
        self.refused: list[str] = []
        # A short breath between two runs, or they would leave the contenders no time on a small machine.
        loops = ((0.01, "pack-refs", "--all"), (0.3, "gc", "--quiet"))
        self._threads = [threading.Thread(target=self._loop, args=words) for words in loops]
        for thread in self._threads:
            thread.start()

    def _loop(self, breath: float, *words: str) -> None:
        while not self._over.wait(breath):
            done = subprocess.run(
                ["git", *words], cwd=self._project.repo, env=self._project.env, capture_output=True, check=False
            )
            self.counts[words[0]] += done.returncode == 0
            complaint = done.stderr.decode(errors="replace")
            self.refused += [complaint] if "hook" in complaint else []

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        assert not self.refused, (len(self.refused), self.refused[0])


@contextlib.contextmanager
def housekeeping(project: Project) -> Iterator[Housekeeping]:
    found = Housekeeping(project)
    try:
        yield found
    finally:
        found.close()


# --- figures of the long form -------------------------------------------------------------------------------------


def note_figures(name: str, arena: Arena, loops: Housekeeping | None, began: float) -> None:
    """Put the figures of one long test beside those of the others."""
    if not SOAK:
        return
    rows = [row for row in arena.rows() if row["op"] == "take"]
    figures: Row = {"processes": len(arena.contenders), "seconds": round(time.monotonic() - began, 1)}
    for outcome in ("granted", "refused"):
        figures[outcome] = sum(row["outcome"] == outcome for row in rows)
    figures["other"] = len(rows) - figures["granted"] - figures["refused"]
    figures["events"] = len(arena.project.events())
    if loops is not None:
        figures["background"] = dict(loops.counts)
    keep_figures(name, figures)


def keep_figures(name: str, figures: Row) -> None:
    """Those of the last run stay. The quick form has nothing to tell."""
    if not SOAK:
        return
    SOAK_OUT.parent.mkdir(exist_ok=True)
    with open(SOAK_OUT, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = json.loads(file.read() or "{}")
        known[name] = figures
        file.truncate(0)
        file.write(json.dumps(known, indent=2, sort_keys=True) + "\n")


def git_version() -> str:
    """The version of the tested git, such as 'git 2.39.5'."""
    words = subprocess.run(["git", "--version"], check=True, capture_output=True, text=True).stdout.split()
    return f"{words[0]} {words[2]}"


long_timeout = pytest.mark.timeout(3600 if SOAK else 120)

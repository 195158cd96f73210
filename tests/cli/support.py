"""Real repositories and real processes for the tests of the commands."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import init
from gitcoord.world.open import environ, open_repository
from tests.support import CLAIM, COORD, HANDOFF, UNHOOKED, copy_template, git, run_command

PERSON = "ada_at_example.com"
_COLOURS = ("\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\x1b[1m", "\x1b[2m", "\x1b[m", "\r\x1b[K")


class Done(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def said(self) -> str:
        return self.out + self.err


def assert_harmless(text: str, *, terminal: bool = False) -> None:
    """Assert that the text has printable characters and line ends only; on a terminal also gitcoord's own colours."""
    if terminal:
        text = text.replace("\r\n", "\n")
        for code in _COLOURS:
            text = text.replace(code, "")
    bad = [c for c in text if c != "\n" and not c.isprintable()]
    assert not bad, f"control characters {bad!r} in {text!r}"


def _first_commit(top: Path) -> None:
    git(top, "init", "-q", "-b", "main")
    for name in ("a", "b"):
        (top / "src").mkdir(exist_ok=True)
        (top / f"src/{name}.py").write_text(f"{name}\n")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "work")


def _first_ledger(top: Path, fold: bool) -> None:
    World(top).init(fold=fold)


class World:
    """A work tree with two committed files, and commands of agents in it."""

    def __init__(self, top: Path, *, made: bool = False, ledger: bool = False, fold: bool = False) -> None:
        """Make a repository with one commit at `top`, unless it is `made` already; with a `ledger`, as `init` makes it."""
        self.top = top
        self.coloured = False  # set where `color.ui = always`
        if ledger:
            copy_template(top, _first_ledger, fold)
        elif not made:
            copy_template(top, _first_commit)

    # --- the repository

    def git(self, *words: str | bytes, ok: bool = True, data: bytes = b"") -> str:
        return git(self.top, *words, ok=ok, data=data).decode("utf-8", "surrogateescape").rstrip("\n")

    def write(self, name: str, text: str) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, files: dict[str, str], message: str = "work") -> str:
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def init(self, *, fold: bool = False) -> World:
        """`git coord init`, without a process: many tests need it, and only a few are about it."""
        with chdir(self.top):
            ctx = open_repository(environ(), writing=True)
            try:
                init(ctx, Actor("init"), sync="main", fold=fold)
            finally:
                ctx.store.close()
        return self

    def refs(self) -> dict[str, str]:
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.rsplit(" ", 1) for line in lines)

    def claims(self) -> list[str]:
        return sorted(ref.removeprefix("refs/claims/") for ref in self.refs() if ref.startswith("refs/claims/"))

    @property
    def head(self) -> str:
        """The ledger's head."""
        return self.refs()["refs/heads/gitcoord"]

    def events(self) -> list[str]:
        """The ledger's subjects, oldest first."""
        return self.git("log", "--reverse", "--format=%s", "gitcoord", "--").splitlines()

    def fall_silent(self, agent: str, seconds: int = 100_000) -> None:
        """Set the agent's last heartbeat so far back."""
        ref = f"refs/gitcoord/sessions/{agent}"
        beat = json.loads(self.git("cat-file", "blob", ref))
        beat["mono"] -= seconds * 1000
        beat["wall"] -= seconds
        text = json.dumps(beat, sort_keys=True, separators=(",", ":")) + "\n"
        oid = self.git("hash-object", "-w", "--stdin", data=text.encode())
        self.git(*UNHOOKED, "update-ref", ref, oid)

    # --- commands

    def environ(self, agent: str, env: dict[str, str]) -> dict[str, str]:
        return {**os.environ, **({"GITCOORD_AGENT": agent} if agent else {}), **env}

    def run(
        self,
        argv: list[str],
        words: tuple[str | bytes, ...],
        agent: str,
        cwd: str = "",
        env: dict[str, str] | None = None,
        data: bytes = b"",
    ) -> Done:
        done = run_command([*argv, *words], self.top / cwd, self.environ(agent, env or {}), data)
        out, err = (data.decode("utf-8", "surrogateescape") for data in (done.stdout, done.stderr))
        assert "Traceback" not in err and "this is a bug" not in out + err, err
        assert_harmless(out, terminal=self.coloured)
        assert_harmless(err, terminal=self.coloured)
        return Done(done.returncode, out, err)

    def claim(
        self, *words: str | bytes, agent: str = "alice", cwd: str = "", env: dict[str, str] | None = None
    ) -> Done:
        return self.run(CLAIM, words, agent, cwd, env)

    def coord(
        self, *words: str | bytes, agent: str = "alice", cwd: str = "", env: dict[str, str] | None = None
    ) -> Done:
        return self.run(COORD, words, agent, cwd, env)

    def handoff(self, *words: str | bytes, agent: str = "alice", cwd: str = "", data: bytes = b"") -> Done:
        return self.run(HANDOFF, words, agent, cwd, data=data)

    def take(self, *words: str, agent: str = "alice") -> int:
        """A claim that must be granted; gives its token."""
        done = self.claim("take", "--json", *words, agent=agent)
        assert done.code == 0, done
        return int(done.json["token"])

    def free(self, *agents: str) -> None:
        """Give everything back."""
        for agent in agents or ("alice",):
            done = self.claim("release", "--all", "--dirty", agent=agent)
            assert done.code == 0, done

    def at_terminal(
        self,
        *words: str,
        argv: list[str] = CLAIM,
        env: dict[str, str] | None = None,
        agent: str = "",
        columns: int = 0,
        rows: int = 24,
    ) -> Done:
        """The same at a real terminal: what it shows, both streams in one."""
        with self.terminal(*words, argv=argv, env=env, agent=agent, columns=columns, rows=rows) as shown:
            return shown.end()

    def person(self, *words: str) -> Done:
        """`git coord` by the person at a terminal."""
        return self.at_terminal(*words, argv=COORD)

    @contextmanager
    def terminal(
        self,
        *words: str,
        argv: list[str] = CLAIM,
        env: dict[str, str] | None = None,
        agent: str = "",
        err: int | None = None,
        columns: int = 0,
        rows: int = 24,
    ) -> Iterator[Terminal]:
        master, slave = pty.openpty()
        if columns:
            termios.tcsetwinsize(slave, (rows, columns))
        environ = {"TERM": "xterm", **self.environ(agent, env or {})}
        process = subprocess.Popen(
            [*argv, *words], cwd=self.top, env=environ, stdin=slave, stdout=slave, stderr=slave if err is None else err,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        try:
            yield Terminal(process, master)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            os.close(master)

    @contextmanager
    def started(self, *words: str, agent: str = "alice") -> Iterator[subprocess.Popen[bytes]]:
        """A `git claim` that goes on while the test does something else."""
        process = subprocess.Popen(
            [*CLAIM, *words], cwd=self.top, env=self.environ(agent, {}), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


class Terminal:
    """A process at a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self.shown = b""

    def _more(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 30)
        assert ready, f"nothing more came after {self.shown!r}"
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self.shown += data
        return bool(data)

    def until(self, enough: Callable[[bytes], bool]) -> None:
        while not enough(self.shown):
            assert self._more(), f"it ended with {self.shown!r}"

    def resize(self, width: int, height: int) -> None:
        termios.tcsetwinsize(self._master, (height, width))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> Done:
        while self._more():
            pass
        text = self.shown.decode("utf-8", "surrogateescape")
        assert "Traceback" not in text, text
        assert_harmless(text, terminal=True)
        return Done(self.process.wait(30), text.replace("\r\n", "\n"), "")

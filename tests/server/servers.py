"""Real git servers on loopback behind one small interface, so that one test body runs over every transport.

    with serving("ssh") as server:              # file, git, ssh, http, gitolite
        served = server.create("repo")          # a new bare repository: served.bare
        alice = served.by("alice")              # alice.url, and alice.env to lay over os.environ
        alice.git(place, "clone", alice.url, "work")

Each server has a temporary directory, a port and a log of its own, so any number of them run side by side.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from tests.server.process import PATH, Daemon, Port, program
from tests.support import git

ACCOUNTS = ("alice", "bob", "carol")


class Client(NamedTuple):
    """Address and environment with which one account reaches a repository."""

    url: str
    env: dict[str, str]

    def command(self, where: Path, *words: str) -> tuple[list[str], dict[str, str]]:
        """The words and the whole environment, for Popen."""
        return ["git", "-C", str(where), *words], {**os.environ, **self.env}

    def run(self, where: Path, *words: str) -> subprocess.CompletedProcess[str]:
        command, env = self.command(where, *words)
        return subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", check=False)

    def git(self, where: Path, *words: str) -> str:
        """The output of a git command that must succeed."""
        done = self.run(where, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout


class Served:
    """One bare repository on a server."""

    def __init__(self, server: Server, name: str, bare: Path) -> None:
        self.server = server
        self.name = name
        self.bare = bare

    def by(self, account: str = ACCOUNTS[0], *, port: int = 0) -> Client:
        """A client of that account; through another port of this machine, such as a `Link`'s, if one is given."""
        return self.server.client(self.name, account, port or self.server.port.number)

    @property
    def url(self) -> str:
        return self.by().url

    @property
    def env(self) -> dict[str, str]:
        return self.by().env

    def hook(self, name: str, text: str) -> None:
        """Put a hook (without its first line) into the repository."""
        path = self.bare / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)

    def tip(self, ref: str = "refs/heads/main") -> str:
        """The ref's value in the server's repository; '' for none."""
        return git(self.bare, "rev-parse", "-q", "--verify", ref, ok=False).decode().strip()


class Server(ABC):
    """One server. `variable` names what tells a hook the account; it is empty where the transport knows none."""

    kind: ClassVar[str]
    variable: ClassVar[str] = ""
    programs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, host: str = "127.0.0.1") -> None:
        # Not below pytest's directory: the paths of sockets must be short.
        self.place = Path(tempfile.mkdtemp(prefix="gitcoord-server-"))
        self.repositories = self.place / "repositories"
        self.log = self.place / "log"
        self.port = Port(host)
        self.daemons: list[Daemon] = []
        self.home = self.place / "home"
        self.home.mkdir()
        self.repositories.mkdir()
        self.log.touch()
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = server\n\temail = server@example.com\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n[receive]\n\tautogc = false\n"
        )

    @classmethod
    def missing(cls) -> str:
        """The programs that are not installed here; '' if this server can be started."""
        return " ".join(name for name in cls.programs if not program(name))

    def server_env(self) -> dict[str, str]:
        """The environment of the server's side: nothing of the client's."""
        return {"HOME": str(self.home), "PATH": PATH, "GIT_CONFIG_NOSYSTEM": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8"}

    def prepare(self) -> None:
        """Prepare the server, before its first start."""
        return

    @abstractmethod
    def launch(self) -> None:
        """Start the daemons and return when they answer. May be called again after `stop`."""

    @abstractmethod
    def client(self, name: str, account: str, port: int) -> Client: ...

    def create(self, name: str) -> Served:
        bare = self.repositories / f"{name}.git"
        git(self.place, "init", "-q", "--bare", "-b", "main", str(bare))
        return Served(self, name, bare)

    def run_daemon(self, *words: str) -> Daemon:
        self.daemons.append(Daemon(list(words), self.log, self.server_env()))
        return self.daemons[-1]

    def start(self) -> None:
        """Start, also after `stop`: on the same port, with the same repositories. Harmless when it runs."""
        if self.daemons and all(daemon.alive() for daemon in self.daemons):
            return
        self.stop()
        self.launch()

    def stop(self) -> None:
        """End it at once, with every connection and every hook that runs. Harmless when repeated."""
        while self.daemons:
            self.daemons.pop().stop()

    def close(self) -> None:
        self.stop()
        self.port.close()
        shutil.rmtree(self.place, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.prepare()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FileServer(Server):
    """No server: a path, and receive-pack runs as a child of the client with its environment."""

    kind = "file"

    def launch(self) -> None:
        pass

    def client(self, name: str, account: str, port: int) -> Client:
        return Client(str(self.repositories / f"{name}.git"), {})


class GitDaemon(Server):
    """git:// has no accounts; every client may push."""

    kind = "git"

    @classmethod
    def missing(cls) -> str:
        return "" if cls._binary() else "git-daemon"

    @staticmethod
    def _binary() -> str:
        # Not through the `git` wrapper, whose process would stand between us and the daemon.
        return shutil.which("git-daemon", path=git(Path("/"), "--exec-path").decode().strip()) or ""

    def launch(self) -> None:
        self.run_daemon(
            self._binary(), "--reuseaddr", "--verbose", "--log-destination=stderr", f"--listen={self.port.host}",
            f"--port={self.port.number}", f"--base-path={self.repositories}", "--export-all", "--enable=receive-pack",
            "--max-connections=0", str(self.repositories),
        ).wait_ready(self.port.answers)  # fmt: skip

    def client(self, name: str, account: str, port: int) -> Client:
        return Client(f"git://{self.port.host}:{port}/{name}.git", {})


def kinds() -> dict[str, type[Server]]:
    """Every kind of server by its name."""
    from tests.server.secure import Gitolite, Sshd
    from tests.server.web import Nginx

    return {kind.kind: kind for kind in (FileServer, GitDaemon, Sshd, Nginx, Gitolite)}


KINDS = ("file", "git", "ssh", "http", "gitolite")


@contextmanager
def serving(kind: str, host: str = "127.0.0.1") -> Iterator[Server]:
    """A running server of that kind, ended on the way out."""
    with kinds()[kind](host) as server:
        yield server

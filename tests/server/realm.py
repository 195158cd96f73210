"""A served repository behind the real gate, and machines that joined its ledger: real commands over a real transport."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cli.support import Done
from tests.races.history import Row, read_ledger
from tests.races.support import Project, Quick, scratch_env, wait_until
from tests.server.invariant import WATCH, Told, check
from tests.server.secure import Sshd
from tests.server.servers import Client, Served

FILES = {".gitattributes": "shared/** gitcoord-claim\n", **{f"shared/{name}": f"{name}\n" for name in "abcd"}}
ACCOUNTS = """[account "alice"]
    agent = alice
[account "bob"]
    agent = bob
[account "carol"]
    agent = carol
    agent = dave
    agent = ci-*
"""
STEPS = ("pre-receive", "update", "prepared", "committed", "post-receive")
# At a step for which there is a named pipe, a push says that it is here and waits. Steps of the ledger's pushes only.
_STEP = """step() {{
    [ -p "{place}/$1" ] || return 0
    echo >"{place}/$1.here"
    read -r _ <"{place}/$1"
}}
"""
_HOOKS = {
    "pre-receive": "grep -q refs/heads/gitcoord || exit 0\nstep pre-receive\n",
    "update": 'case $1 in refs/heads/gitcoord) step update ;; esac\n',
    "reference-transaction": WATCH.replace(
        "while read", 'input=$(cat)\ncase $input in *refs/heads/gitcoord*) step "$1" ;; esac\nwhile read'
    ).replace("done\n", 'done <<END\n$input\nEND\n'),
    "post-receive": "grep -q refs/heads/gitcoord || exit 0\nstep post-receive\n",
}  # fmt: skip


class Clone(Quick):
    """A machine: a clone with scratch notes, queue and settings of its own, as one account."""

    def __init__(self, realm: Realm, name: str, account: str, client: Client, env: dict[str, str]) -> None:
        self.realm = realm
        self.account = account
        self.place = realm.place
        self.repo = realm.place / name
        self.git_dir = self.repo / ".git"
        self.env = {**realm.env, **client.env, **env}
        self.wrap: list[str] = []
        self.client = client
        self.run_git("clone", "-q", client.url, str(self.repo), cwd=realm.place)
        for key, value in (("gitcoord.fsync", "false"), ("user.email", f"{name}@example.com")):
            self.git("config", key, value)

    def run_git(self, *words: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.repo, env=self.env, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, *argv: str, agent: str = "", env: dict[str, str] | None = None) -> Done:
        return (Project if self.wrap else Quick).run(self, *argv, agent=agent, env=env)

    def start(
        self, *argv: str, agent: str = "", env: dict[str, str] | None = None, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[str]:
        return super().start(*self.wrap, *argv, agent=agent, env=env, stdin=stdin)

    def join(self, *words: str) -> None:
        """Join as `git coord init --remote origin` does; with more words, by that command."""
        argv = (
            ["git-coord", "init", "--remote", "origin", *words] if words else ["gitcoord-quick", "join", self.account]
        )
        done = self.run(*argv, agent=self.account)
        assert done.code == 0, done

    def take(self, path: str, agent: str, *words: str) -> Done:
        return self.note(self.claim("--json", *words, path, agent=agent), agent)

    def release(self, path: str, agent: str) -> Done:
        return self.note(self.claim("release", "--json", path, agent=agent), agent)

    def note(self, done: Done, agent: str) -> Done:
        """Record the answer, to compare it with the ledger."""
        if done.code == 0:
            rows = done.json.get("claims") or done.json.get("released") or []
            kind = "released" if "released" in done.json else "granted"
            self.realm.told += [Told(kind, agent, row["path"], row["token"]) for row in rows]
        return done

    def work(self, path: str, agent: str, text: str = "") -> str:
        """A commit of this agent, on what the server has."""
        self.run_git("fetch", "-q", "origin", "+refs/heads/main:refs/remotes/origin/main")
        self.git("reset", "-q", "--hard", "origin/main")
        (self.repo / path).write_text(text or f"by {agent}\n")
        self.git("commit", "-q", "-a", "-m", f"work\n\nAgent: {agent}")
        return self.git("rev-parse", "HEAD").strip()

    def push(self, *words: str, option: str = "") -> Done:
        named = ["-o", f"agent={option}"] if option else []
        return self.run("git", "push", *named, "origin", *(words or ("HEAD:main",)))


class Realm:
    """The server's side: the repository, the gate, accounts; and all answers to clients."""

    def __init__(self, served: Served, place: Path, *, accounts: bool = True, claim: str = "") -> None:
        """`claim`: a text of the server's own `git-claim`, instead of the one that everybody has."""
        self.served = served
        self.bare = served.bare
        self.place = place
        self.env = scratch_env(place)
        self.told: list[Told] = []
        self.clones: list[Clone] = []
        self._open = ExitStack()
        self._kept: dict[str, Client] = {}
        self.steps = place / "steps"
        self.steps.mkdir()
        seed = self.clone("seed", joins=False)
        seed.git("checkout", "-q", "-B", "main")
        seed.commit(FILES)
        seed.run_git("push", "-q", "origin", "main")
        self.clones.clear()
        for name, text in _HOOKS.items():
            if not (self.bare / "hooks" / name).exists():  # gitolite opens no repository without its own update hook
                served.hook(name, _STEP.format(place=self.steps) + text)
        self.install(claim)
        if accounts and served.server.variable:
            (self.bare / "gitcoord/accounts").write_text(ACCOUNTS)

    def install(self, claim: str = "") -> None:
        """Install the gate as `git coord server install` does."""
        tools = self.place / ("server-bin" if claim else "bin")
        if claim:
            tools.mkdir()
            (tools / "git-claim").write_text(claim)
            (tools / "git-claim").chmod(0o755)
        argv = ["gitcoord-quick", "install", str(tools / "git-claim"), self.served.server.variable]
        subprocess.run(argv, cwd=self.bare, env=self.env, check=True)

    def server(self, *words: str, env: dict[str, str] | None = None) -> Done:
        argv = ["git-coord", "server", *words]
        done = subprocess.run(
            argv, cwd="/", env=env or self.env, capture_output=True, text=True, check=False, timeout=60
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def clone(
        self,
        name: str,
        account: str = "alice",
        *,
        port: int = 0,
        joins: bool = True,
        env: dict[str, str] | None = None,
    ) -> Clone:
        made = Clone(self, name, account, self.client(account, port), env or {})
        self.clones.append(made)
        if joins:
            made.join()
        return made

    def client(self, account: str, port: int = 0) -> Client:
        """Over ssh through one connection for each account, kept until `close`: logging in costs more than all the rest."""
        server = self.served.server
        if not isinstance(server, Sshd):
            return self.served.by(account, port=port)
        if account not in self._kept:
            self._kept[account] = self._open.enter_context(server.kept(self.served.by(account)))
        return self._kept[account]

    def close(self) -> None:
        self._open.close()

    # --- looking

    def events(self, kind: str = "") -> list[Row]:
        return [event for event in read_ledger(self.bare, self.env) if kind in ("", event["kind"])]

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=self.bare, env=self.env, check=True, capture_output=True, text=True
        ).stdout

    def refs(self) -> dict[str, str]:
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ") for line in lines)

    def assert_sound(self) -> None:
        """The invariant; and a machine that looks now finds the ledger whole."""
        problems = check(self.bare, self.env, self.told)
        assert not problems, "\n".join(problems[:20])
        if self.clones:
            assert self.clones[0].claim("list").code == 0
            found = self.clones[0].run("gitcoord-quick", "fsck")
            assert (found.code, found.out) == (0, ""), found

    # --- holding a push up

    @contextmanager
    def held_at(self, step: str) -> Iterator[Step]:
        """The next push of the ledger waits at this step of the server."""
        made = Step(self.steps / step)
        try:
            yield made
        finally:
            made.close()


class Step:
    def __init__(self, pipe: Path) -> None:
        self._pipe = pipe
        self._here = pipe.with_name(f"{pipe.name}.here")
        os.mkfifo(pipe)

    def wait(self, process: subprocess.Popen[str]) -> None:
        wait_until(f"a push at {self._pipe.name}", lambda: self._here.exists() or process.poll() is not None)
        assert self._here.exists(), process.communicate()

    def go(self) -> None:
        """Continue the push, and stop no later one here."""
        both = os.open(self._pipe, os.O_RDWR | os.O_NONBLOCK)  # so that nobody waits for the other end
        os.write(both, b"go\n")
        wait_until("the push goes on", lambda: not _unread(both))
        os.close(both)
        self._pipe.unlink()

    def close(self) -> None:
        for path in (self._pipe, self._here):
            path.unlink(missing_ok=True)


def _unread(pipe: int) -> int:
    count: int = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]
    return count

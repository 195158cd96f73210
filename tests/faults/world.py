"""A repository under attack: real git, real commands, and what is true of it afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any

from gitcoord.git.redo_log import records
from gitcoord.ledger.sessions import decode_heartbeat, encode_heartbeat
from tests.cli.support import Done
from tests.cli.support import World as Repository
from tests.support import CLAIM, COORD, PYTHON, ROOT, run_command

GIT = shutil.which("git") or "git"
SOAK = os.environ.get("GITCOORD_SOAK") == "1"
LEDGER, TIP, SESSIONS, CLAIMS = "refs/heads/gitcoord", "refs/gitcoord/tip", "refs/gitcoord/sessions/", "refs/claims/"

DRIVER = [*PYTHON, str(Path(__file__).with_name("driver.py")), str(ROOT)]


class World:
    """One repository with a ledger, and the commands that people and agents run in it."""

    def __init__(self, top: Path, *, git_dir: Path | None = None) -> None:
        self.top = top
        self.git_dir = git_dir or top / ".git"
        self.environ: dict[str, str] = {}
        self.cwd = top
        self.scrap = top.parent  # room for what a test needs besides

    # --- commands

    def env(self, agent: str = "") -> dict[str, str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("GITCOORD_", "CLAUDE", "CODEX"))}
        return env | {"PYTHONPATH": str(ROOT)} | ({"GITCOORD_AGENT": agent} if agent else {}) | self.environ

    def run(self, argv: Sequence[str], agent: str = "", limit: Callable[[], None] | None = None) -> Done:
        """Run to the end. No command of ours may ever answer with a traceback. `limit` is called before it starts."""
        if limit is None:
            done = run_command(argv, self.cwd, self.env(agent), timeout=100)
        else:
            done = subprocess.run(
                argv, cwd=self.cwd, env=self.env(agent), stdin=subprocess.DEVNULL, capture_output=True, check=False,
                timeout=100, preexec_fn=limit,
            )  # fmt: skip
        result = Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
        assert "Traceback" not in result.err, result.err
        return result

    def claim(self, *words: str, agent: str = "alice") -> Done:
        return self.run([*CLAIM, *words], agent)

    def coord(self, *words: str, agent: str = "alice") -> Done:
        return self.run([*COORD, *words], agent)

    def person(self, *words: str) -> Done:
        """`git coord` by the person at a terminal: both streams in one."""
        return Done(*Repository(self.cwd, made=True).at_terminal(*words, argv=COORD, env=self.environ))

    def git(self, *words: str, data: bytes = b"", ok: bool = True) -> str:
        done = subprocess.run([GIT, *words], cwd=self.cwd, env=self.env(), input=data, capture_output=True, check=False)
        assert done.returncode == 0 or not ok, done.stderr.decode(errors="replace")
        return done.stdout.decode(errors="replace").strip()

    def drive(self, verb: str) -> Done:
        return self.run([*DRIVER, verb])

    def fsck(self, *, repair: bool = False) -> Done:
        """`git coord fsck --json`; in a quick run without typer and libgit2 around it."""
        if SOAK:
            return self.coord("fsck", "--json", *(["--repair"] if repair else []))
        return self.drive("repair" if repair else "fsck")

    # --- what is there

    def observe(self) -> Any:
        """fsck's differences and the claims of the ledger, with one quick process."""
        done = self.drive("observe")
        assert done.code == 0, done.err
        return done.json

    def refs(self) -> dict[str, str]:
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ") for line in lines)

    def rev(self, name: str) -> str:
        return self.git("rev-parse", "--verify", "--quiet", name, ok=False)

    def seqs(self) -> list[int]:
        """Every Seq of the ledger, oldest first."""
        out = self.git("log", "--reverse", "--format=%(trailers:key=Seq,valueonly,separator=)", LEDGER, "--")
        return [int(line) for line in out.split()]

    def holders(self, path: str) -> list[str]:
        return [claim["agent"] for claim in self.observe()["claims"] if claim["path"] == path]

    # --- making

    def commit(self, path: str, text: str = "text\n") -> str:
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.git("add", "--", path)
        self.git("commit", "-q", "-m", f"change {path}")
        return self.rev("HEAD")

    def blob(self, data: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", data=data)

    def silence(self, agent: str) -> None:
        """Make the agent's last heartbeat as old as this boot: no test waits for a ttl."""
        ref = SESSIONS + agent
        data = subprocess.run(
            [GIT, "cat-file", "blob", ref], cwd=self.top, env=self.env(), capture_output=True, check=True
        ).stdout
        beat = decode_heartbeat("", data)
        self.git("update-ref", ref, self.blob(encode_heartbeat(beat._replace(mono=1 - 10**12))))

    def confirms(self, agent: str) -> int:
        """The token of the last grant that the agent has confirmed."""
        return decode_heartbeat("", self.git("cat-file", "blob", SESSIONS + agent).encode() + b"\n").confirms

    def pass_reservations(self, seconds: int = 16) -> None:
        """Let all grants have been made so much earlier."""
        for note in (self.git_dir / "gitcoord/grants").iterdir():
            boot, mono = note.read_text().split()
            note.write_text(f"{boot}\n{int(mono) - 1000 * seconds}")

    def append(self, message: bytes, tree: str = "", parent: str = "") -> str:
        """A commit by hand on top of the ledger, as a hostile or careless writer would push it; the tip follows."""
        parent = parent or self.rev(LEDGER)
        tree = tree or self.rev(f"{parent}^{{tree}}")
        who = "mallory <mallory@example.com> 1900000000 +0000"
        raw = f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\n".encode() + message
        oid = self.git("hash-object", "-t", "commit", "-w", "--stdin", data=raw)
        self.git("update-ref", LEDGER, oid)
        self.git("update-ref", TIP, oid)
        return oid

    def object_file(self, oid: str) -> Path:
        return self.git_dir / "objects" / oid[:2] / oid[2:]

    def logged(self, data: bytes | None = None) -> list[str]:
        """The objects that the redo logs have, or such bytes of one."""
        logs = [log.read_bytes() for log in self.git_dir.glob("gitcoord/redo/*")] if data is None else [data]
        return [oid for log in logs for oid, _, _ in records(log, lambda full: sha1(full).hexdigest())]

    # --- what must hold

    def assert_works(self, path: str = "afterwards.txt", agent: str = "carol") -> None:
        """The next command works, fsck is clean, Seq has no gap but a leap forward, no path has two writers."""
        done = self.claim(path, agent=agent)
        assert done.code == 0, done.said
        self.assert_sound()

    def assert_sound(self) -> None:
        seen = self.observe()
        assert seen["clean"], seen["differences"]
        self.assert_single(seen["claims"])

    def assert_single(self, claims: list[dict[str, Any]]) -> None:
        writers = [claim["path"] for claim in claims if claim["mode"] == "write"]
        assert len(writers) == len(set(writers)), claims


def make_world(top: Path, *words: str, ledger: bool = True) -> World:
    subprocess.run([GIT, "init", "-q", "--template=", *words, str(top)], check=True, capture_output=True)
    world = World(top)
    world.commit("src/app.py", "first\n")
    if ledger:
        done = world.drive("init")
        assert done.code == 0, done.err
    return world


class Mirror:
    """Puts a repository back to what it was, in the same directory: a copy elsewhere would be no authority."""

    def __init__(self, world: World, store: Path) -> None:
        self._world = world
        self._store = store
        shutil.copytree(world.top, store, symlinks=True)

    def restore(self) -> None:
        for directory in (self._world.git_dir, self._world.top):
            for entry in directory.iterdir():
                if entry == self._world.git_dir:
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
        shutil.copytree(self._store, self._world.top, symlinks=True, dirs_exist_ok=True)


def thin(cases: list[Any], step: int) -> list[Any]:
    """All cases, or in a quick run every `step`-th."""
    return cases if SOAK else cases[::step]


@contextlib.contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """A small file system of its own, for what only root may try."""
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True, capture_output=True)

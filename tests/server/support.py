"""A bare repository behind the gate, and a clone that pushes to it: real hooks, real `git push`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, Protocol

from gitcoord.gates.hooks.cli import hook_sources
from gitcoord.gates.hooks.text import Kit, render
from gitcoord.server.install import EVENTS
from tests.cli.support import Done, World
from tests.support import CLAIM, PYTHON, ROOT, copy_template, forked_script, git, run_command

PRIVATE = ("refs/heads/gitcoord", "refs/claims/", "refs/gitcoord/sessions/")
ATTRIBUTES = "shared/** gitcoord-claim\nlocked/** gitcoord-guard=block\n"


def claim_program(place: Path) -> Path:
    """A `git-claim` that runs this checkout."""
    program = place / "git-claim"
    program.write_text(forked_script(CLAIM))
    program.chmod(0o755)
    return program


def install(bare: Path, program: Path) -> None:
    """Install the gate as `git coord server install` does, without starting a process."""
    kit = Kit(hook_sources("server", EVENTS), str(program))
    for event in EVENTS:
        hook = bare / "hooks" / event
        hook.write_bytes(render(kit, event, chained=True))
        hook.chmod(0o755)
    git(bare, "config", "receive.advertisePushOptions", "true")
    git(bare, "config", "receive.autogc", "false")


def _first_push(place: Path, attributes: str, config: str) -> None:
    bare = place / "server.git"
    git(place, "init", "-q", "--bare", "-b", "main", str(bare))
    world = World(place / "clone")
    files = {"shared/a": "a\n", "shared/b": "b\n", "free/x": "x\n", "locked/z": "z\n", ".gitattributes": attributes}
    world.commit({**files, **({".gitcoord/config": config} if config else {})})
    world.git("remote", "add", "origin", str(bare))
    world.git("push", "-q", "origin", "main")


class Site:
    """The server's repository `bare`; `world` is a clone with a ledger of its own, whose refs are pushed as they are."""

    def __init__(self, place: Path, attributes: str = ATTRIBUTES, config: str = "") -> None:
        self.place = place
        copy_template(place, _first_push, attributes, config)
        self.bare = place / "server.git"
        self.top = place / "clone"
        self.world = World(self.top, made=True)
        install(self.bare, claim_program(place))

    # --- looking

    def refs(self) -> dict[str, str]:
        """Every ref of the server."""
        lines = git(self.bare, "for-each-ref", "--format=%(refname) %(objectname)").decode().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines)

    def private(self) -> dict[str, str]:
        return {ref: oid for ref, oid in self.refs().items() if ref.startswith(PRIVATE)}

    def local(self) -> dict[str, str]:
        return {ref: oid for ref, oid in self.world.refs().items() if ref.startswith(PRIVATE)}

    # --- doing

    def setup(self) -> Site:
        """The ledger begins, here and on the server."""
        self.world.init()
        assert self.sync().code == 0
        return self

    def claim(self, *words: str, agent: str) -> Done:
        done = self.world.claim(*words, agent=agent)
        assert done.code == 0, done
        return done

    def push(
        self, *words: str, account: str = "", options: tuple[str, ...] = (), env: dict[str, str] | None = None
    ) -> Done:
        environ = {**os.environ, **({"GITCOORD_ACCOUNT": account} if account else {}), **(env or {})}
        named = [word for option in options for word in ("-o", option)]
        done = subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", "push", *named, *words], cwd=self.top, env=environ,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert "Traceback" not in done.stderr and "this is a bug" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def refspecs(self) -> list[str]:
        """The refspecs that make the server's private refs equal to the clone's."""
        here, there = self.local(), self.private()
        moved = [f"+{ref}:{ref}" for ref in here if there.get(ref) != here[ref]]
        return moved + [f":{ref}" for ref in there if ref not in here]

    def sync(self, account: str = "", **more: Any) -> Done:
        """One atomic push of all that the ledger's transaction moved here."""
        specs = self.refspecs()
        return self.push("--atomic", "origin", *specs, account=account, **more) if specs else Done(0, "", "")

    def accounts(self, text: str) -> None:
        (self.bare / "gitcoord").mkdir(exist_ok=True)
        (self.bare / "gitcoord/accounts").write_text(text)

    def setting(self, key: str, value: str) -> None:
        git(self.bare, "config", f"gitcoord.server.{key}", value)

    def commit(self, files: dict[str, str | None], agent: str = "", message: str = "work") -> str:
        for name, text in files.items():
            if text is None:
                (self.top / name).unlink()
            else:
                self.world.write(name, text)
        self.world.git("add", "-A")
        words = ["-m", f"Agent: {agent}"] if agent else []
        self.world.git("commit", "-q", "-m", message, *words)
        return self.world.git("rev-parse", "HEAD")

    # --- forging

    def commit_object(self, text: str) -> str:
        return self.world.git("hash-object", "-t", "commit", "-w", "--stdin", data=text.encode())

    def blob(self, data: bytes) -> str:
        return self.world.git("hash-object", "-w", "--stdin", data=data)


def unchanged(site: Site, done: Done, before: dict[str, str], *words: str) -> None:
    """The push was refused in these words, and every ref of the server is where it was."""
    assert done.code != 0, done
    assert site.refs() == before
    for word in words:
        assert word in done.err, done.err


class Place(Protocol):
    """Something with a clone."""

    top: Path


def forge(site: Place, *events: Any, beats: tuple[Any, ...] = ()) -> str:
    """Commit events to the clone's ledger as a client that asks no rules: trees and refs are right, `decide` never ran."""
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from gitcoord.world.open import environ, open_repository\n"
        "from gitcoord.ledger.snapshot import read_snapshot\n"
        "from gitcoord.ledger.transaction import prepare\n"
        "from gitcoord.ledger.event import Decision, Event\n"
        "from gitcoord.ledger.sessions import Heartbeat\n"
        "ctx = open_repository(environ(), writing=True)\n"
        "snapshot, host = read_snapshot(ctx), ctx.host\n"
        "events = []\n"
        f"for part, (kind, agent, body, more) in enumerate({list(events)!r}):\n"
        "    base = {'at': host.wall(), 'nonce': 'forged', 'part': part, 'seq': snapshot.state.seq + 1 + part, **more}\n"
        "    events.append(Event(kind=kind, agent=agent, body=body, **base))\n"
        f"beats = [Heartbeat(**{{'oid': '', 'boot': host.boot, 'mono': host.mono(), 'wall': host.wall(), 'slot': 30000, **b}}) for b in {list(beats)!r}]\n"
        "head, operations = prepare(ctx, snapshot, Decision(events, beats, {}))\n"
        "ctx.store.swap(operations)\n"
        "print(head)\n"
    )
    done = run_command([*PYTHON, "-c", program], site.top, os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


CLAIM_BODY: dict[str, Any] = {
    "session": 1, "items": [["path", "shared/a"]], "mode": "write", "ttl": 1800, "expected": 0, "reason": "",
    "task": "", "bases": [""], "units": 1, "capacity": {},
}  # fmt: skip

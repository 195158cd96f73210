"""A repository with a ledger and a policy, and work trees of agents with branches to land."""

from __future__ import annotations

import subprocess
from contextlib import chdir
from pathlib import Path

from gitcoord.landing.events.landing import Begin, decide
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.transaction import transact
from gitcoord.world.open import environ, open_repository
from tests.cli.support import Done, World
from tests.support import COORD, git, run_command


def lines(**changed: str) -> str:
    """The text of the file `text`, with some of its lines changed: `l5="new"`."""
    return "".join(f"{changed.get(f'l{n}', f'line {n}')}\n" for n in range(20))


def sign(world: World, place: Path, name: str) -> str:
    """A new key that counts for everybody's commits here; gives its fingerprint."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], check=True)
    with (place / "signers").open("a") as signers:
        signers.write(f"* {(place / name).with_suffix('.pub').read_text()}")
    for key, value in (("gpg.format", "ssh"), ("gpg.ssh.allowedSignersFile", str(place / "signers"))):
        world.git("config", key, value)
    argv = ["ssh-keygen", "-l", "-f", str(place / f"{name}.pub")]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()[1]


class Trunk:
    """The repository where work lands: its main work tree is on trunk, and each agent has a work tree and a branch of its name."""

    def __init__(self, world: World, policy: str = "", marks: str = "") -> None:
        self.world = world
        self.top = world.top
        files = {"text": lines(), ".gitcoord/config": policy or "[gitcoord]\n"}
        world.commit({**files, ".gitattributes": marks or "# none\n"}, "policy")

    def branch(self, agent: str, files: dict[str, str | None], base: str = "main") -> Path:
        """A work tree of this agent with one commit on a branch of its name: these contents; None deletes."""
        tree = self.top.parent / f"{self.top.name}-{agent}"
        self.world.git("worktree", "add", "-q", "-b", agent, str(tree), base)
        if files:
            self.commit(agent, files)
        return tree

    def tree(self, agent: str) -> Path:
        return self.top.parent / f"{self.top.name}-{agent}"

    def commit(self, agent: str, files: dict[str, str | None], message: str = "") -> str:
        tree = self.tree(agent)
        for name, text in files.items():
            if text is None:
                (tree / name).unlink()
            else:
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).write_text(text)
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", message or f"work of {agent}\n\nAgent: {agent}")
        return git(tree, "rev-parse", "HEAD").decode().strip()

    def land(self, agent: str, *words: str, env: dict[str, str] | None = None) -> Done:
        tree = self.tree(agent)
        done = run_command([*COORD, "land", *words], tree, self.world.environ(agent, env or {}))
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def interrupt(self, agent: str, *, moved: bool = True) -> None:
        """Leave what a landing leaves that is killed before or after trunk has moved, a fast-forward: its record, and nothing afterwards."""
        old, new = self.tip, self.world.git("rev-parse", agent)
        items = (("resource", "land/main", agent),)
        begin = Begin(Actor(agent), "main", agent, new, old, new, "merge", [], "", items)
        with chdir(self.top):
            ctx = open_repository(environ(), writing=True)
            try:
                transact(ctx, decide, begin._replace(takes=True))
            finally:
                ctx.store.close()
        if moved:
            self.world.git("merge", "-q", "--ff-only", agent)

    @property
    def tip(self) -> str:
        return self.world.git("rev-parse", "main")

    def show(self, name: str, commit: str = "main") -> str:
        return self.world.git("show", f"{commit}:{name}")

    def nothing_left(self) -> None:
        """No claim, request, landing, scratch work tree or lock is left."""
        assert self.world.claims() == []
        assert self.world.git("ls-tree", "-r", "--name-only", "gitcoord", "landings", "waits") == ""
        trees = self.top / ".git/gitcoord/landing/trees"
        assert not trees.exists() or list(trees.iterdir()) == []
        assert "gitcoord/landing" not in self.world.git("worktree", "list")
        assert not [*self.top.glob(".git/**/index.lock"), *self.top.glob(".git/**/index.landing*")]
        assert self.world.coord("fsck").code == 0

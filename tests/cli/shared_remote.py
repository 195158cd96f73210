"""A work tree with a bare remote beside it, and a colleague who pushes there from a clone of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.support import World
from tests.support import git

CONFIG = """[deploy "production"]
\tref = refs/heads/production
\tverify = "test ! -e {place}/broken"
[deploy "plain"]
\tremote = origin
\ttag = v*
"""


class Shared:
    """`world` is where the tests act; `remote` is bare; `colleague` is Bob's clone."""

    def __init__(self, world: World, place: Path) -> None:
        self.world = world
        self.place = place
        self.remote = place / "remote.git"
        self.colleague = place / "colleague"
        world.commit({".gitcoord/config": CONFIG.format(place=place), "big.bin": "\0one\n"})
        git(place, "init", "-q", "--bare", "-b", "main", str(self.remote))
        world.git("remote", "add", "origin", str(self.remote))
        world.git("push", "-q", "-u", "origin", "main")
        git(place, "clone", "-q", str(self.remote), str(self.colleague))
        world.init()

    def bob(self, *words: str) -> str:
        return git(self.colleague, *words).decode().strip()

    def bob_pushes(self, files: dict[str, str], author: str = "Bob", message: str = "theirs") -> str:
        """A commit of somebody else lands on the remote's main."""
        for name, text in files.items():
            path = self.colleague / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.bob("add", "-A")
        argv = ["git", "commit", "-q", "-m", message, f"--author={author} <b@example.com>"]
        subprocess.run(argv, cwd=self.colleague, check=True)
        self.bob("push", "-q", "origin", "HEAD:main")
        return self.bob("rev-parse", "HEAD")

    def cut_off(self) -> None:
        """The network is down."""
        self.remote.rename(self.place / "elsewhere.git")

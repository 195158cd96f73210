"""A project with the gates' hooks in place: several agents, real commits, real pushes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from tests.cli.support import Done, World
from tests.support import CLAIM, COORD, UNHOOKED, copy_template, forked_script, git

HOOKS = ("pre-commit", "pre-merge-commit", "prepare-commit-msg", "reference-transaction", "pre-push")
_FILTER = '[ "$1" = prepared ] || exit 0\n'
SHARED = "shared/** gitcoord-claim\n"


def write_hooks(directory: Path) -> None:
    """The hooks of the gates, each of which is run in a fork."""
    for name in HOOKS:
        first, rest = forked_script(CLAIM, "--gate", name).split("\n", 1)
        (directory / name).write_text(f"{first}\n{_FILTER if name == 'reference-transaction' else ''}{rest}")
        (directory / name).chmod(0o755)


def _first_push(place: Path, attributes: str, config: str, fold: bool) -> None:
    world = World(place / "project")
    remote = place / "origin.git"
    git(place, "init", "-q", "--bare", "-b", "main", str(remote))
    world.git("remote", "add", "origin", str(remote))
    files = {"shared/a": "a\n", "shared/b": "b\n", "free/x": "x\n", ".gitattributes": attributes}
    world.commit({**files, **({".gitcoord/config": config} if config else {})}, "first")
    world.git("push", "-q", "-u", "origin", "main")
    write_hooks(world.top / ".git/hooks")
    world.init(fold=fold)


class Project:
    """One repository `top` with the work tree, its bare remote `origin`, everything hooked."""

    def __init__(self, place: Path, attributes: str = SHARED, config: str = "", *, fold: bool = False) -> None:
        self.place = place
        copy_template(place, _first_push, attributes, config, fold)
        self.top = place / "project"
        self.remote = place / "origin.git"
        self.world = World(self.top, made=True)

    # --- plain git

    def git(self, *words: str, agent: str = "", ok: bool = True, cwd: Path | None = None) -> str:
        done = self.try_git(*words, agent=agent, cwd=cwd)
        assert done.code == 0 or not ok, done
        return done.out.strip()

    def try_git(self, *words: str, agent: str = "", cwd: Path | None = None, env: dict[str, str] | None = None) -> Done:
        environ = {**os.environ, **({"GITCOORD_AGENT": agent} if agent else {}), **(env or {})}
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.top, env=environ, capture_output=True, text=True, check=False, timeout=120
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def unhooked(self, *words: str) -> str:
        return self.git(*UNHOOKED, *words)

    def write(self, files: dict[str, str | None]) -> None:
        for name, text in files.items():
            file = self.top / name
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)

    def commit(self, files: dict[str, str | None] | dict[str, str], message: str = "work", agent: str = "") -> str:
        """A commit past the hooks, as somebody may have made it."""
        self.write(dict(files))
        self.git("add", "-A")
        words = ["-m", message, *(["-m", f"Agent: {agent}"] if agent else [])]
        self.unhooked("commit", "-q", *words)
        return self.git("rev-parse", "HEAD")

    # --- through the gates

    def try_commit(self, files: dict[str, str | None], agent: str, *more: str) -> Done:
        self.write(files)
        self.git("add", "-A")
        return self.try_git("commit", "-q", "-m", "work", *more, agent=agent)

    def push(self, *refs: str, agent: str, force: bool = False) -> Done:
        return self.try_git("push", "-q", *(["--force"] if force else []), "origin", *refs, agent=agent)

    def branch(self, name: str, start: str = "main") -> None:
        self.unhooked("checkout", "-q", "-B", name, start)

    def switch(self, name: str) -> None:
        self.unhooked("checkout", "-q", name)

    def claim(self, *words: str, agent: str) -> Done:
        done = self.world.claim(*words, agent=agent)
        assert done.code == 0, done
        return done

    def work(self, agent: str, branch: str, files: dict[str, str | None], *, start: str = "main") -> str:
        """Claim, commit on a branch, release with that commit: what a worker does."""
        self.branch(branch, start)
        self.claim(*sorted(files), agent=agent)
        commit = self.commit(files, f"work of {agent}", agent)
        self.claim("release", *sorted(files), "--commit", commit, agent=agent)
        return commit

    def coord(self, *words: str, agent: str = "") -> Done:
        return self.world.coord(*words, agent=agent)

    def as_person(self, *words: str) -> Done:
        """`git coord` at a terminal, outside any agent tool."""
        return self.world.at_terminal(*words, argv=COORD)

    def person_git(self, *words: str) -> Done:
        """git at a terminal, outside any agent tool."""
        return self.world.at_terminal(*words, argv=["git"])

    def events(self, kind: str) -> list[dict[str, Any]]:
        rows = self.coord("log", "--json", "--kind", kind, agent="ada").json["events"]
        return [row["event"] for row in rows]


def refused(done: Done, rule: str, path: str = "") -> bool:
    """Refused by this rule (for this path)."""
    return done.code != 0 and any(f"[{rule}]" in line and path in line for line in done.err.splitlines())

"""A repository whose commits are made in one go and known by name, and a context on it: for tests within this process."""

from __future__ import annotations

from pathlib import Path

from gitcoord.git.config import Settings
from gitcoord.ledger.context import Context
from gitcoord.world.client import ClientWorld
from tests.support import FakeHost, git, plumbing_store, repo_at

FILE = "100644"
GONE = "f" * 40


class Repository:
    """Commits by name, and blobs by their content."""

    def __init__(self, top: Path, settings: tuple[tuple[str, str], ...] = ()) -> None:
        git(top.parent, "init", "-q", "-b", "main", str(top))
        self.top = top
        self.commits = {"GONE": GONE, "": ""}
        repo = repo_at(top / ".git", worktree=top)
        self.ctx = Context(
            repo, Settings([("gitcoord.gc", "false"), *settings]), plumbing_store(repo, 40), FakeHost(), ClientWorld
        )

    def commit(self, name: str, files: dict[str, str | None], *parents: str, mode: str = FILE, agent: str = "") -> str:
        """A commit with what its first parent has, and these files."""
        words = f"work\n\nAgent: {agent}\n" if agent else ""
        lines = [f"commit refs/heads/{name}", "committer x <x@x> 1 +0000", f"data {len(words)}", words]
        for word, parent in zip(["from", *["merge"] * len(parents)], parents):
            lines.append(f"{word} {self.commits[parent]}")
        for path, text in files.items():
            lines += [f"D {path}"] if text is None else [f"M {mode} inline {path}", f"data {len(text)}", text]
        if not parents:
            lines.insert(0, f"reset refs/heads/{name}")
        git(self.top, "fast-import", "--quiet", "--force", data="\n".join([*lines, ""]).encode())
        self.commits[name] = git(self.top, "rev-parse", f"refs/heads/{name}").decode().strip()
        return self.commits[name]

    def blob(self, text: str) -> str:
        return git(self.top, "hash-object", "-w", "--stdin", data=text.encode()).decode().strip() if text else ""

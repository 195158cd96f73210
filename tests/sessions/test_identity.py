"""Notes that name the agent of a process: one that cannot be read counts as none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.identity import named_actor, note_process
from gitcoord.world.open import environ, open_repository


@pytest.fixture
def ctx(git_repo: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    monkeypatch.chdir(git_repo)
    ctx = open_repository(environ(), writing=True)
    yield ctx
    ctx.store.close()


def test_the_note_of_the_parent_names_the_agent(ctx: Context) -> None:
    note_process(ctx, os.getppid(), Actor("alice", "one", 3))
    assert named_actor(ctx, {}) == Actor("alice", "one", 3)


@pytest.mark.parametrize("line", [2, 3], ids=["agent", "session"])
@pytest.mark.parametrize("text", ["no good", "\0", "\udcff", "-", "x" * 5000])
def test_a_damaged_note_is_none(ctx: Context, line: int, text: str) -> None:
    note = Path(note_process(ctx, os.getppid(), Actor("alice", "one", 3)))
    lines = note.read_text().split("\n")
    lines[line] = text
    note.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    assert named_actor(ctx, {}) is None

"""Small files, and those that are not so small."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gitcoord.git.files import append_file, read_file, write_file
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions.identity import note_process
from gitcoord.world.open import environ, open_repository


@pytest.mark.parametrize("size", [0, 1, 16383, 16384, 16385, 40000])
@pytest.mark.parametrize("limit", [1, 16384, 16385, 20000, 1 << 20])
def test_a_file_is_read_up_to_the_limit(tmp_path: Path, size: int, limit: int) -> None:
    data = bytes(number % 251 for number in range(size))
    (tmp_path / "file").write_bytes(data)
    assert read_file(str(tmp_path / "file"), limit) == data[:limit]
    assert read_file(str(tmp_path / "file"), limit) == data[:limit]


def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("posix.rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_file(str(tmp_path / "file"), b"data")
    assert not list(tmp_path.iterdir())


# --- a full disk: of what is written there is room for a part ---------------------------------------------------------


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Within, a file may grow to this size, and a write that would pass it writes a part."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_file_stays_where_there_is_no_room_for_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"good")
    with room_for(40), pytest.raises(OSError):
        write_file(str(tmp_path / "file"), b"x" * 100)
    assert (tmp_path / "file").read_bytes() == b"good"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_is_appended_by_half_is_taken_back(tmp_path: Path) -> None:
    file = tmp_path / "file"
    append_file(str(file), b"first\n")
    with room_for(10), pytest.raises(OSError):
        append_file(str(file), b"second\n")
    assert file.read_bytes() == b"first\n"
    append_file(str(file), b"third\n")
    assert file.read_bytes() == b"first\nthird\n"


@pytest.fixture
def ctx(git_repo: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    monkeypatch.chdir(git_repo)
    ctx = open_repository(environ(), writing=True)
    yield ctx
    ctx.store.close()


def test_a_note_about_a_process_stays_where_there_is_no_room_for_the_new_one(ctx: Context) -> None:
    note = Path(note_process(ctx, 1, Actor("alice", "one")))
    before = note.read_bytes()
    with room_for(20), pytest.raises(OSError):
        note_process(ctx, 1, Actor("bob", "two"))
    assert note.read_bytes() == before and [path.name for path in note.parent.iterdir()] == ["1"]

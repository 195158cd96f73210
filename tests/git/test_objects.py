"""Loose objects: git finds them, and what gc takes away while they are written is made good."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from gitcoord.base.errors import StoreError
from gitcoord.git.loose_writer import LooseObjects
from tests.support import git


class Repository:
    def __init__(self, git_repo: Path) -> None:
        self.top = git_repo
        self.objects = Path(self.top) / ".git" / "objects"
        self.loose = self.open()

    def open(self, *, shared: bool = False) -> LooseObjects:
        return LooseObjects(str(self.objects), 40, shared=shared)

    def put(self, text: str, loose: LooseObjects | None = None) -> str:
        """An object's id; git has it."""
        loose = loose or self.loose
        oid = loose.write("blob", text.encode())
        loose.publish()
        assert git(self.top, "cat-file", "blob", oid) == text.encode()
        return oid

    def temporaries(self) -> list[Path]:
        return list(self.objects.glob("??/tmp_obj_*"))


@pytest.fixture
def repository(git_repo: Path) -> Repository:
    return Repository(git_repo)


def test_git_finds_what_was_written_and_nothing_else(repository: Repository) -> None:
    for number in range(40):
        repository.put(f"text {number}")
    assert repository.temporaries() == []
    report = git(repository.top, "count-objects", "-v")
    assert b"garbage: 0" in report and b"count: 40" in report
    assert git(repository.top, "fsck", "--full", "--no-dangling") == b""


def test_what_a_killed_writer_leaves_is_gits_to_remove(repository: Repository) -> None:
    oid = repository.put("text")
    left = repository.objects / oid[:2] / "tmp_obj_0123456789ab_1"
    left.write_text("half an obj")
    git(repository.top, "prune", "--expire=now")
    assert not left.exists()


@pytest.mark.parametrize("shared", [False, True])
def test_directories_of_objects_have_the_rights_that_they_need(repository: Repository, shared: bool) -> None:
    old = os.umask(0o002 if shared else 0o022)
    try:
        oid = repository.put("text", repository.open(shared=shared))
    finally:
        os.umask(old)
    assert stat.S_IMODE((repository.objects / oid[:2]).stat().st_mode) == (0o2775 if shared else 0o755)


def test_a_directory_that_is_there_keeps_its_rights(repository: Repository) -> None:
    """Someone may have prepared it for a group; this holds for empty directories too."""
    for number in range(256):
        (repository.objects / f"{number:02x}").mkdir()
        (repository.objects / f"{number:02x}").chmod(0o2777)
    oid = repository.put("text")
    assert stat.S_IMODE((repository.objects / oid[:2]).stat().st_mode) == 0o2777


def test_two_writers_of_one_object_do_not_touch_each_others_files(repository: Repository) -> None:
    """In two containers both may have the same number."""
    repository.put("first")
    begun: list[Path] = []
    one, two = repository.open(), repository.open()
    place = one.place

    def slow(oid: str) -> str:
        begun.extend(repository.temporaries())
        repository.put("text", two)
        assert [path.exists() for path in begun] == [True]
        return place(oid)

    one._pending = {one.write("blob", b"text"): b"whatever the file holds"}
    one.place = slow  # type: ignore[method-assign]
    one.publish()
    assert len(begun) == 1 and repository.temporaries() == []


@pytest.mark.parametrize("all_of_it", [True, False])
def test_what_gc_takes_away_while_it_is_written_is_written_again(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, all_of_it: bool
) -> None:
    """Between making the file and moving it, `git gc --prune=now` comes along."""
    repository.put("first")
    place = LooseObjects.place
    taken: list[str] = []

    def late(self: LooseObjects, oid: str) -> str:
        if repository.temporaries() and not taken:
            taken.append(oid)
            shutil.rmtree(repository.temporaries()[0].parent) if all_of_it else repository.temporaries()[0].unlink()
        return place(self, oid)

    monkeypatch.setattr(LooseObjects, "place", late)
    assert repository.put("text") == taken[0]


def test_where_nothing_can_be_written_the_error_says_why(repository: Repository) -> None:
    shutil.rmtree(repository.objects)
    repository.objects.write_text("")
    with pytest.raises(StoreError, match="Not a directory"):
        repository.put("text")


def test_an_object_is_nobodys_to_write(repository: Repository) -> None:
    oid = repository.put("x" * 100_000)
    assert stat.S_IMODE((repository.objects / oid[:2] / oid[2:]).stat().st_mode) & 0o333 == 0

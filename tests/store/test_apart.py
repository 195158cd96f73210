"""Directories apart, and the objects that are made in one: git finds them, and whatever happens to that directory is made good."""

import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from errno import ENOTTY
from fcntl import ioctl
from pathlib import Path

import pytest

from gitcoord.app.init import OFTEN_MOVED, init
from gitcoord.app.teardown import tear_down
from gitcoord.core.sessions import Actor
from gitcoord.errors import StoreError
from gitcoord.hot.open import environ, open_repository
from gitcoord.store import apart as apart_module
from gitcoord.store.apart import make_apart
from gitcoord.store.hookfiles import remove_tree
from gitcoord.store.objects import APART, LooseObjects
from tests.support import GitRepo, git, plumbing_store, repo_at

ROOT = Path(__file__).parents[2]
_GET_FLAGS = 0x80086601
_TOP = 0x20000


def _flags(path: str) -> int:
    fd = os.open(path, os.O_RDONLY)
    try:
        return int.from_bytes(ioctl(fd, _GET_FLAGS, bytes(8))[:4], "little")
    finally:
        os.close(fd)


def _make(path: Path, make: "Callable[[str], None]" = os.mkdir) -> None:
    make_apart(str(path), f"{path}-tmp", make)


def test_a_directory_apart_is_one_like_any_other(tmp_path: Path) -> None:
    _make(tmp_path / "new")
    assert os.listdir(tmp_path) == ["new"] and not os.listdir(tmp_path / "new")
    (tmp_path / "new" / "file").write_text("x")
    _make(tmp_path / "new")
    assert os.listdir(tmp_path) == ["new"] and os.listdir(tmp_path / "new") == ["file"], "what is there stays"


def test_it_is_made_below_one_that_the_file_system_spreads(tmp_path: Path) -> None:
    try:
        _flags(str(tmp_path))
    except OSError as error:
        pytest.skip(f"this file system has no such flags: {error}")
    around: list[int] = []

    def make(path: str) -> None:
        around.append(_flags(os.path.dirname(path)))
        os.mkdir(path)

    _make(tmp_path / "new", make)
    if not _is_ext4(tmp_path):
        pytest.skip("not ext4")
    assert around[0] & _TOP, "this is what lets ext4 put it elsewhere"
    assert around[0] & ~_TOP == _flags(str(tmp_path / "new")), "and nothing else was changed"


def _is_ext4(path: Path) -> bool:
    kind = subprocess.run(["stat", "-f", "-c", "%T", str(path)], capture_output=True, text=True, check=False)
    return "ext" in kind.stdout


def test_what_the_file_system_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flags that are there and one more, on the directory around it, before it is made."""
    calls: list[tuple[str, int, int]] = []

    def noting(fd: int, request: int, data: bytes) -> bytes:
        calls.append((os.readlink(f"/proc/self/fd/{fd}"), request, int.from_bytes(data[:4], "little")))
        return (0x80000).to_bytes(len(data), "little")

    def make(path: str) -> None:
        calls.append((path, 0, 0))
        os.mkdir(path)

    monkeypatch.setattr(apart_module, "ioctl", noting)
    _make(tmp_path / "new", make)
    (get, got, _), (put, _, flags), (made, _, _) = calls
    assert get == put == os.path.dirname(made) and flags == 0x80000 | _TOP
    if struct.calcsize("l") == 8:
        assert got == _GET_FLAGS


def test_a_file_system_that_knows_no_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bytes:
        raise OSError(ENOTTY, "Inappropriate ioctl for device")

    monkeypatch.setattr(apart_module, "ioctl", refuse)
    _make(tmp_path / "new")
    assert os.listdir(tmp_path) == ["new"]


def test_where_it_cannot_be_made_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        _make(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        _make(tmp_path / "missing" / "new")

    def fail(path: str) -> None:
        raise PermissionError(path)

    with pytest.raises(PermissionError):
        _make(tmp_path / "new", fail)
    assert os.listdir(tmp_path) == ["file"]


# --- objects


class Repository:
    def __init__(self, git_repo: GitRepo) -> None:
        self.top = git_repo.workspace
        self.objects = Path(self.top) / ".git" / "objects"
        self.apart = self.objects / APART
        self.loose = self.open()

    def open(self, *, shared: bool = False) -> LooseObjects:
        return LooseObjects(str(self.objects), 40, durable=False, shared=shared)

    def put(self, text: str, loose: "LooseObjects | None" = None) -> str:
        """An object's id; git has it."""
        loose = loose or self.loose
        oid = loose.write("blob", text.encode())
        loose.publish()
        assert git(self.top, "cat-file", "blob", oid) == text.encode()
        return oid

    def temporaries(self) -> "list[Path]":
        return list(self.apart.glob("tmp_obj_*"))


@pytest.fixture
def repository(git_repo: GitRepo) -> Repository:
    return Repository(git_repo)


def test_objects_are_made_apart_and_nothing_stays_there(repository: Repository) -> None:
    for number in range(40):
        repository.put(f"text {number}")
    assert os.listdir(repository.apart) == []
    report = git(repository.top, "count-objects", "-v")
    assert b"garbage: 0" in report and b"count: 40" in report
    assert git(repository.top, "fsck", "--full", "--no-dangling") == b""


def test_git_takes_the_directory_away_when_it_is_old(repository: Repository) -> None:
    """A killed writer leaves files there: they are git's to remove, as all that it calls temporary."""
    repository.put("before")
    (repository.apart / "tmp_obj_1_left").write_text("half an obj")
    (repository.apart / "1_ab").mkdir()
    git(repository.top, "prune", "--expire=now")
    assert not repository.apart.exists()
    repository.put("after")


@pytest.mark.parametrize("shared", [False, True])
def test_directories_of_objects_have_the_rights_that_they_need(repository: Repository, shared: bool) -> None:
    old = os.umask(0o002 if shared else 0o022)
    try:
        oid = repository.put("text", repository.open(shared=shared))
    finally:
        os.umask(old)
    for path in (repository.apart, repository.objects / oid[:2]):
        assert stat.S_IMODE(path.stat().st_mode) == (0o2775 if shared else 0o755)


def test_a_directory_that_is_there_keeps_its_rights(repository: Repository) -> None:
    """Whoever prepared it for others, say; also an empty one."""
    for number in range(256):
        (repository.objects / f"{number:02x}").mkdir()
        (repository.objects / f"{number:02x}").chmod(0o2777)
    oid = repository.put("text")
    assert stat.S_IMODE((repository.objects / oid[:2]).stat().st_mode) == 0o2777


def test_what_killed_ones_left_in_a_directory_in_use_goes_when_it_is_old(repository: Repository) -> None:
    """git looks at the time of the whole directory only, which every claim renews."""
    repository.put("first")
    names = ("tmp_obj_old_1", "tmp_obj_old_2", "tmp_obj_new_1", "tmp_obj_new_2", "old_of_others")
    left = [repository.apart / name for name in names]
    for path in left:
        path.mkdir() if path.name.endswith("2") else path.write_text("half an obj")
        if "old" in path.name:
            os.utime(path, (time.time() - 15 * 24 * 3600,) * 2)
    for number in range(20):
        repository.put(f"text {number}")
    assert [path.exists() for path in left] == [False, False, True, True, True]


def test_two_writers_of_one_object_do_not_touch_each_others_files(repository: Repository) -> None:
    """In two containers both may have the same number."""
    repository.put("first")
    begun: list[Path] = []
    one, two = repository.open(), repository.open()
    place = one._place

    def slow(oid: str) -> str:
        begun.extend(repository.temporaries())
        repository.put("text", two)
        assert [path.exists() for path in begun] == [True]
        return place(oid)

    one._pending = {one.write("blob", b"text"): b"whatever the file holds"}
    one._place = slow  # type: ignore[method-assign]
    one.publish()
    assert len(begun) == 1 and os.listdir(repository.apart) == []


@pytest.mark.parametrize("all_of_it", [True, False])
def test_what_gc_takes_away_while_it_is_written_is_written_again(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, all_of_it: bool
) -> None:
    """Between making the file and moving it, `git gc --prune=now` comes along."""
    repository.put("first")
    place = LooseObjects._place
    taken: list[str] = []

    def late(self: LooseObjects, oid: str) -> str:
        if repository.temporaries() and not taken:
            taken.append(oid)
            shutil.rmtree(repository.apart) if all_of_it else repository.temporaries()[0].unlink()
        return place(self, oid)

    monkeypatch.setattr(LooseObjects, "_place", late)
    assert repository.put("text") == taken[0]


def test_another_that_makes_the_same_directory_is_not_disturbed(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.put("first")
    make = LooseObjects._make_one
    oid = git(repository.top, "hash-object", "--stdin", data=b"text").decode().strip()

    def slow(self: LooseObjects, path: str) -> None:
        make(self, path)
        (repository.objects / oid[:2]).mkdir()
        (repository.objects / oid[:2] / ("a" * 38)).write_text("another's")

    monkeypatch.setattr(LooseObjects, "_make_one", slow)
    assert repository.put("text") == oid
    assert (repository.objects / oid[:2] / ("a" * 38)).read_text() == "another's"
    assert os.listdir(repository.apart) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="several users")
@pytest.mark.parametrize("there", [True, False])
def test_where_the_directory_is_not_ours_objects_are_made_in_their_places(repository: Repository, there: bool) -> None:
    """Another user's, or one that may not be made: objects/ is not ours, the directories in it are."""
    if there:
        repository.put("first")
    folders = [repository.objects / f"{number:02x}" for number in range(256)]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
    for parent in (repository.objects, *repository.objects.parents):
        parent.chmod(parent.stat().st_mode | 0o011)
    script = (
        "import os; import gitcoord.store.apart; from gitcoord.store.objects import LooseObjects\n"
        f"objects = LooseObjects({str(repository.objects)!r}, 40, durable=False, shared=False)\n"
        "os.setuid(2001)\n"
        "for number in range(10): objects.write('blob', b'text %d' % number)\n"
        "objects.publish()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    oid = git(repository.top, "hash-object", "--stdin", data=b"text 9").decode().strip()
    assert (repository.objects / oid[:2] / oid[2:]).stat().st_uid == 2001
    assert repository.apart.exists() == there and not list(repository.objects.glob("*/tmp_obj_*"))


@pytest.mark.parametrize("what", ["a file", "a link to nothing", "a link elsewhere"])
def test_whatever_is_in_the_place_of_the_directory_stays_and_troubles_nobody(
    repository: Repository, tmp_path: Path, what: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "tmp_obj_mine").write_text("mine")
    os.utime(tmp_path / "elsewhere" / "tmp_obj_mine", (0, 0))
    if what == "a file":
        repository.apart.write_text("mine")
    else:
        repository.apart.symlink_to(tmp_path / ("elsewhere" if what == "a link elsewhere" else "nothing"))
    for number in range(5):
        repository.put(f"text {number}")
    assert repository.apart.is_symlink() or repository.apart.read_text() == "mine"
    remove_tree(str(repository.apart))
    assert os.listdir(tmp_path / "elsewhere") == ["tmp_obj_mine"]
    assert [path.name for path in repository.objects.glob("*/tmp_obj_*")] in ([], ["tmp_obj_mine"])


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no other file system")
def test_a_link_to_another_file_system_in_its_place(repository: Repository) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        repository.apart.symlink_to(elsewhere)
        repository.put("text")
        assert not os.listdir(elsewhere)


def test_where_nothing_can_be_written_the_error_says_why(repository: Repository) -> None:
    shutil.rmtree(repository.objects)
    repository.objects.write_text("")
    with pytest.raises(StoreError, match="Not a directory"):
        repository.put("text")


def test_an_object_is_nobodys_to_write(repository: Repository) -> None:
    oid = repository.put("x" * 100_000)
    assert stat.S_IMODE((repository.objects / oid[:2] / oid[2:]).stat().st_mode) & 0o333 == 0


# --- the whole


def test_no_room_is_made_where_refs_are_no_files(git_repo: GitRepo) -> None:
    common = Path(git_repo.workspace) / ".git"
    for asking in (True, False):
        store = plumbing_store(repo_at(common), 40, asking=asking)
        store.make_room(OFTEN_MOVED)
        store.close()
        assert [(common / name).exists() for name in OFTEN_MOVED] == [not asking] * 2


def test_init_makes_room_and_teardown_leaves_none_of_it(git_repo: GitRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    git(git_repo.workspace, "commit", "-q", "--allow-empty", "-m", "x")
    monkeypatch.chdir(git_repo.workspace)
    common = Path(git_repo.workspace) / ".git"
    ctx = open_repository(environ(), writing=True)
    init(ctx, Actor("alice"))
    assert all((common / name).is_dir() for name in OFTEN_MOVED)
    assert (common / "objects" / APART).is_dir()
    tear_down(ctx, Actor("alice"), "now", force=False)
    ctx.store.close()
    assert not (common / "objects" / APART).exists()
    assert b"garbage: 0" in git(git_repo.workspace, "count-objects", "-v")

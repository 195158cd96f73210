"""Reading without git: the same answers as git's, or none."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from gitcoord.git.loose_reader import LooseReader
from gitcoord.git.plumbing_store import PlumbingStore
from gitcoord.git.reader import UNSURE
from gitcoord.git.store import Create, Object
from gitcoord.world.open import open_repository
from tests.support import git, plumbing_store, repo_at

pytestmark = pytest.mark.both_gits

REF = "refs/claims/path/a/@x"


@pytest.fixture
def top(git_repo: Path) -> Path:
    place = git_repo
    git(place, "commit", "-q", "--allow-empty", "-m", "one")
    return place


@pytest.fixture
def loose(top: Path) -> LooseReader:
    return LooseReader(repo_at(top / ".git", worktree=top), 40)


def _head(top: Path) -> str:
    return git(top, "rev-parse", "HEAD").decode().strip()


def test_head_is_followed_to_its_branch_packed_or_not(top: Path, loose: LooseReader) -> None:
    assert loose.ref("HEAD") == _head(top)
    git(top, "pack-refs", "--all")
    assert loose.ref("HEAD") == _head(top)
    git(top, "checkout", "-q", "--orphan", "empty")
    assert loose.ref("HEAD") is None


def test_a_loose_ref_counts_more_than_a_packed_one(top: Path, loose: LooseReader) -> None:
    git(top, "update-ref", REF, "HEAD")
    git(top, "pack-refs", "--all")
    old = loose.ref(REF)
    git(top, "commit", "-q", "--allow-empty", "-m", "two")
    git(top, "update-ref", REF, "HEAD")
    assert old != loose.ref(REF) == _head(top)
    git(top, "update-ref", "-d", REF)
    assert loose.ref(REF) is None


def test_a_part_of_a_packed_name_is_no_ref(top: Path, loose: LooseReader) -> None:
    git(top, "update-ref", "refs/x/" + REF, "HEAD")
    git(top, "pack-refs", "--all")
    assert loose.ref(REF) is None and loose.ref("refs/claims/path/a") is None


@pytest.mark.parametrize("content", [b"", b"0123", b"ref: HEAD\n", b"ref: ../../x\n", b"\0" * 41, b"x" * 5000])
def test_what_is_odd_is_left_to_git(top: Path, loose: LooseReader, content: bytes) -> None:
    file = top / ".git" / REF
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    assert loose.ref(REF) == UNSURE
    answers = []
    for asking in (False, True):
        store = plumbing_store(repo_at(top / ".git", worktree=top), 40, asking=asking)
        answers.append(store.resolve([REF]))
        store.close()
    assert answers[0] == answers[1]


def test_links_in_a_circle_are_left_to_git(top: Path, loose: LooseReader) -> None:
    git(top, "symbolic-ref", "refs/a/x", "refs/a/y")
    git(top, "symbolic-ref", "refs/a/y", "refs/a/x")
    assert loose.ref("refs/a/x") == UNSURE


def _object_file(top: Path, oid: str) -> Path:
    return top / ".git/objects" / oid[:2] / oid[2:]


@pytest.mark.parametrize("damage", [b"", b"x", None], ids=["empty", "not zlib", "another object's bytes"])
def test_a_damaged_object_is_not_taken(top: Path, loose: LooseReader, damage: bytes | None) -> None:
    oid, other = (git(top, "hash-object", "-w", "--stdin", data=data).decode().strip() for data in (b"one", b"two"))
    file = _object_file(top, oid)
    content = _object_file(top, other).read_bytes() if damage is None else damage
    assert loose.object(oid) == Object(oid, "blob", b"one")
    loose.forget()
    file.chmod(0o644)
    file.write_bytes(content)
    assert loose.object(oid) is None


def test_git_has_the_last_word_on_a_damaged_object(top: Path) -> None:
    oid = git(top, "hash-object", "-w", "--stdin", data=b"one").decode().strip()
    file = _object_file(top, oid)
    file.chmod(0o644)
    file.write_bytes(b"")
    store = plumbing_store(repo_at(top / ".git", worktree=top), 40)
    assert store.read([oid]) == [None]
    store.close()


@pytest.mark.parametrize("left", [b"", b"\0" * 20, b"x\x9c"])
def test_an_object_that_a_power_cut_damaged_is_written_again(top: Path, left: bytes) -> None:
    oid = git(top, "hash-object", "-w", "--stdin", data=b"one").decode().strip()
    file = _object_file(top, oid)
    file.chmod(0o644)
    file.write_bytes(left)
    store = plumbing_store(repo_at(top / ".git", worktree=top), 40)
    assert store.write("blob", b"one") == oid
    store.flush()
    assert store.read([oid]) == [Object(oid, "blob", b"one")]
    store.close()


def test_packed_objects_and_those_of_an_alternate_are_gits(top: Path, tmp_path: Path) -> None:
    git(top, "gc", "-q")
    shared = tmp_path / "shared"
    git(top, "clone", "-q", "--shared", str(top), str(shared))
    for place in (top, shared):
        store = plumbing_store(repo_at(place / ".git", worktree=place), 40)
        (found,) = store.read(["HEAD"])
        assert found is not None and found.kind == "commit" and found.oid == _head(top)
        assert LooseReader(repo_at(place / ".git", worktree=place), 40).object(found.oid) is None
        store.close()


def test_no_git_is_started_for_what_lies_loose(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = plumbing_store(repo_at(top / ".git", worktree=top), 40)
    oid = store.write("blob", b"x")
    store.flush()
    store.swap([Create(REF, oid)])
    monkeypatch.setattr(PlumbingStore, "_reader", lambda self: pytest.fail("git was asked"))
    assert store.read([REF, oid, "refs/none"]) == [Object(oid, "blob", b"x"), Object(oid, "blob", b"x"), None]
    assert store.resolve([REF, "refs/none"]) == [oid, None] and store.target("HEAD") == _head(top)


def test_another_users_repository_is_read_by_git_alone(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git refuses it unless it is named in safe.directory; reading without git would not ask."""
    monkeypatch.chdir(top)
    monkeypatch.setattr("gitcoord.git.repo.owner", lambda path: 12345)
    store = open_repository({b"PATH": b"/usr/bin:/bin", b"HOME": b"/"}, writing=False).store
    assert isinstance(store, PlumbingStore) and store._loose is None


_PACKER = (
    "import subprocess, sys\nwhile True: subprocess.run(['git', '-C', sys.argv[1], 'pack-refs', '--all', '--prune'])"
)


def test_a_ref_never_vanishes_while_git_packs(top: Path, loose: LooseReader) -> None:
    """pack-refs writes packed-refs first and removes the loose file then: read in that order, one of them has it."""
    names = [f"refs/claims/path/{n}/@x" for n in range(4)]
    packer = subprocess.Popen([sys.executable, "-c", _PACKER, str(top)], stderr=subprocess.DEVNULL)
    try:
        for number in range(150):
            commit = git(top, "commit-tree", "HEAD^{tree}", "-m", str(number)).decode().strip()
            lines = "".join(f"update {name} {commit}\n" for name in names)
            git(top, "-c", "core.filesRefLockTimeout=20000", "update-ref", "--stdin", data=lines.encode())
            for _ in range(30):
                assert [loose.ref(name) for name in names] == [commit] * 4
    finally:
        packer.kill()
        packer.wait()


@pytest.mark.parametrize("is_sorted", [True, False])
def test_packed_refs_of_any_size_give_what_git_finds(top: Path, loose: LooseReader, is_sorted: bool) -> None:
    """Names of all lengths, some before the first and behind the last; annotated tags, which have a second line."""
    rows = random.Random(4)
    names = {f"refs/{rows.choice('az')}/{'x' * rows.randrange(1, 200)}{rows.randrange(10**9)}" for _ in range(3000)}
    names |= {f"refs/long/{'/'.join('y' * 200 for _ in range(rows.randrange(1, 15)))}/{n}" for n in range(40)}
    ids = [git(top, "commit-tree", "HEAD^{tree}", "-m", str(n)).decode().strip() for n in range(3)]
    lines = "".join(f"create {name} {rows.choice(ids)}\n" for name in sorted(names))
    git(top, "update-ref", "--stdin", data=lines.encode())
    for n in range(30):
        git(top, "tag", "-a", "-m", "x", f"t{rows.randrange(10**9)}{n}")
    git(top, "pack-refs", "--all")
    packed = top / ".git/packed-refs"
    head, _, rest = packed.read_bytes().partition(b"\n")
    assert b" sorted" in head and len(rest) > 1 << 18
    if not is_sorted:
        packed.write_bytes(head.replace(b" sorted", b"") + b"\n" + rest)
    told = git(top, "for-each-ref", "--format=%(refname) %(objectname)").decode().splitlines()
    there = dict(line.split(" ") for line in told)
    assert len(there) > 3000
    assert {name: loose.ref(name) for name in there} == there
    for name in (
        "refs/a",
        "refs/a/",
        "refs/aa",
        "refs/zzz",
        "refs/0",
        "z",
        *(name[:-1] for name in sorted(names)[::50]),
    ):
        assert loose.ref(name) == there.get(name), name


@pytest.mark.parametrize("line", [b"^" * 5000 + b"\n^" + b"^" * 5000, b"^\n", b"x" * 9000 + b"\n", b"\n", b" ", b"\0"])
def test_packed_refs_that_are_none_are_searched_to_an_end(top: Path, loose: LooseReader, line: bytes) -> None:
    head = b"# pack-refs with: peeled fully-peeled sorted \n"
    (top / ".git/packed-refs").write_bytes(head + line * (200_000 // len(line)))
    assert loose.ref("refs/heads/nowhere") is None

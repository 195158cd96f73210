"""One contract for every store: what the interface promises holds in memory, on every kind of repository, and for readers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gitcoord.base.errors import StoreError
from gitcoord.base.names import Oid, claim_file
from gitcoord.git.libgit2_reader import Pygit2Reader
from gitcoord.git.store import Create, Delete, Object, Operation, SwapFailed, Update, Verify, move
from tests.git.memory_store import MemoryStore
from tests.git.worlds import DISK, REFTABLE, WORLDS, World, make_world
from tests.support import git

if TYPE_CHECKING:
    from gitcoord.git.store import Reader

pytestmark = pytest.mark.both_gits

A, B, C = "refs/claims/path/a/@x", "refs/claims/path/b/@x", "refs/gitcoord/tip"
ODD_NAMES = (
    "refs/claims/path/\udcff\udcfe/@x",  # bytes that are no UTF-8
    "refs/claims/path/é/@x",
    "refs/claims/path/e\u0301/@x",
    "refs/claims/path/a\u2028b\x85c/@x",  # what Python, but not git, takes for the end of a line
    "refs/claims/path/%0A%20%7E/@x",
    "refs/claims/path/" + "漢" * 80 + "/@x",
)


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = make_world(request.param, tmp_path, lambda: request.getfixturevalue("git_repo"))
    yield made
    made.store.close()


@pytest.fixture(params=[*WORLDS, "libgit2 sha1", "libgit2 packed", "libgit2 worktree", "libgit2 bare"])
def reading(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[World, Callable[[], Reader]]]:
    """A world, and how to open a reader on it."""
    library, _, kind = request.param.rpartition(" ")
    made = make_world(kind, tmp_path, lambda: request.getfixturevalue("git_repo"))
    yield made, (lambda: Pygit2Reader(str(made.top))) if library else made.other
    made.store.close()


def put(world: World, *operations: Operation) -> None:
    world.store.swap(operations)
    world.settle()


def refs(world: World) -> dict[str, Oid]:
    """All refs of ours, as another process sees them."""
    other = world.other()
    return {**other.list_refs("refs/claims/"), **other.list_refs("refs/gitcoord/")}


# --- reading


def test_what_was_written_is_read_back_in_the_order_asked(reading: tuple[World, Callable[[], Reader]]) -> None:
    world, reader = reading
    data = [b"", b"plain\n", bytes(range(256)) * 300, b"no end of line", b"\n\n"]
    oids = [world.store.write("blob", each) for each in data]
    world.store.flush()
    assert reader().read(oids[::-1]) == [Object(o, "blob", d) for o, d in zip(oids[::-1], data[::-1], strict=True)]


def test_objects_of_every_kind(reading: tuple[World, Callable[[], Reader]]) -> None:
    world, reader = reading
    blob = world.blob("x")
    tree = world.store.write("tree", b"100644 x\0" + bytes.fromhex(blob))
    who = "a <a@b> 1 +0000"
    commit = world.store.write("commit", f"tree {tree}\nauthor {who}\ncommitter {who}\n\nhi\n".encode())
    world.store.flush()
    found = reader().read([blob, tree, commit])
    assert [each.kind for each in found if each] == ["blob", "tree", "commit"]


def test_what_is_missing_is_none(reading: tuple[World, Callable[[], Reader]]) -> None:
    world, reader = reading
    oid = world.blob("x")
    put(world, Create(A, oid))
    nowhere = "1" * world.store.oid_length
    names = [nowhere, oid, "refs/claims/path/none/@x", A, "refs/claims/path/a"]
    assert reader().read(names) == [None, Object(oid, "blob", b"x"), None, Object(oid, "blob", b"x"), None]
    assert reader().resolve(["refs/none", A, "refs/claims/path/a"]) == [None, oid, None]
    assert reader().read([]) == [] and reader().resolve([]) == []


def test_a_full_name_is_not_guessed_at(reading: tuple[World, Callable[[], Reader]]) -> None:
    """git's own rules would find `refs/tags/refs/claims/...` when asked for `refs/claims/...`: another's ref."""
    world, reader = reading
    oid = world.blob("x")
    put(world, Create("refs/tags/" + A, oid), Create("refs/heads2/" + C, oid), Create("refs/" + B, oid))
    assert reader().resolve([A, B, C]) == [None, None, None]
    assert reader().read([A, B, C]) == [None, None, None]


def test_what_lies_at_a_path_of_a_commit(reading: tuple[World, Callable[[], Reader]]) -> None:
    world, reader = reading
    blob = world.blob("x")
    inner = world.store.write("tree", b"100644 x\0" + bytes.fromhex(blob))
    root = world.store.write("tree", b"40000 a\0" + bytes.fromhex(inner))
    who = "a <a@b> 1 +0000"
    commit = world.store.write("commit", f"tree {root}\nauthor {who}\ncommitter {who}\n\nhi\n".encode())
    world.store.flush()
    put(world, Create("refs/heads/b", commit))
    found = reader().read(["refs/heads/b:a/x", "refs/heads/b:a", "refs/heads/b:", f"{commit}:a/x", "refs/heads/b:a/y"])
    assert [each and each.oid for each in found] == [blob, inner, root, blob, None]
    assert reader().read(["refs/heads/none:a", "refs/heads/b:a/x/y"]) == [None, None]


def test_refs_below_a_prefix(reading: tuple[World, Callable[[], Reader]]) -> None:
    world, reader = reading
    oid = world.blob("x")
    put(world, Create(A, oid), Create(B, oid), Create("refs/claims/path/ab/@x", oid), Create(C, oid))
    assert reader().list_refs("refs/claims/path/a/") == {A: oid}
    assert list(reader().list_refs("refs/claims/")) == [A, "refs/claims/path/ab/@x", B]
    assert reader().list_refs("refs/none/") == {}


def test_names_beyond_ascii(reading: tuple[World, Callable[[], Reader]]) -> None:
    world, reader = reading
    oids = {name: world.blob(str(number)) for number, name in enumerate(ODD_NAMES)}
    for name, oid in oids.items():
        put(world, Create(name, oid))
        assert reader().resolve([name]) == [oid]
        assert reader().read([name]) == [Object(oid, "blob", str(ODD_NAMES.index(name)).encode())]
    assert reader().list_refs("refs/claims/") == oids


def test_a_claim_on_a_path_with_a_line_separator_is_listed(world: World) -> None:
    ref = "refs/" + claim_file("path", "docs/a\u2028b", "alice")
    oid = world.blob("x")
    put(world, Create(ref, oid))
    assert world.store.list_refs("refs/claims/") == {ref: oid}


# --- writing


def test_objects_are_pending_until_flush(world: World) -> None:
    oid = world.store.write("blob", b"later")
    assert world.other().read([oid]) == [None]
    world.store.flush()
    assert world.other().read([oid]) == [Object(oid, "blob", b"later")]
    put(world, Create(A, oid))


def test_a_swap_needs_no_flush_before(world: World) -> None:
    oid = world.store.write("blob", b"later")
    other = world.store.write("blob", b"beside it")
    world.store.swap([Create(A, oid)])
    assert world.other().read([A, other]) == [Object(oid, "blob", b"later"), Object(other, "blob", b"beside it")]


def test_writing_again_is_harmless(world: World) -> None:
    first = world.store.write("blob", b"same")
    assert world.store.write("blob", b"same") == first
    world.store.flush()
    world.store.flush()
    assert world.store.write("blob", b"same") == first
    world.store.flush()
    assert world.other().read([first]) == [Object(first, "blob", b"same")]


def test_ids_are_gits_own(world: World) -> None:
    oid = world.store.write("blob", b"hello\n")
    assert len(oid) == world.store.oid_length
    sha1 = "ce013625030ba8dba906f756967f9e9ca394464a"
    assert oid == sha1 if world.store.oid_length == 40 else oid.startswith("2cf8d83d")


def test_discarding_is_harmless_to_repeat(world: World) -> None:
    oid, kept = world.blob("gone"), world.blob("kept")
    for _ in range(2):
        world.store.discard(oid)
    world.store.discard("2" * world.store.oid_length)
    assert world.other().read([oid, kept]) == [None, Object(kept, "blob", b"kept")]
    assert world.blob("gone") == oid
    assert world.other().read([oid]) == [Object(oid, "blob", b"gone")]


# --- swapping


def test_each_operation_does_what_it_says(world: World) -> None:
    one, two = world.blob("1"), world.blob("2")
    put(world, Create(A, one), Verify(B, ""))
    assert refs(world) == {A: one}
    put(world, Update(A, one, two), Create(B, one))
    assert refs(world) == {A: two, B: one}
    put(world, Verify(A, two), Delete(B, one))
    assert refs(world) == {A: two}
    put(world, Create(B, one))  # what was deleted may come again
    assert refs(world) == {A: two, B: one}


def test_a_wrong_expectation_changes_nothing(world: World) -> None:
    """Alone, first, or last among operations that are right."""
    one, two = world.blob("1"), world.blob("2")
    put(world, Create(A, one))
    right: list[Operation] = [Create(C, two), Create("refs/claims/path/d/@x", two)]
    for bad in (
        Create(A, two), Create(A, one), Update(A, two, two), Update(A, two, one), Update(A, "", two), Update(B, one, two),
        Update(A, "0" * len(one), two), Delete(A, two), Delete(A, ""), Delete(B, one), Verify(A, two), Verify(A, ""), Verify(B, one),
    ):  # fmt: skip
        for operations in ([bad], [bad, *right], [*right, bad], [right[0], bad, right[1]]):
            with pytest.raises(SwapFailed):
                world.store.swap(operations)
            assert refs(world) == {A: one}, operations
    put(world, Update(A, one, two), *right)  # the store is as usable as before
    assert refs(world)[A] == two


@pytest.mark.parametrize("exists", [False, True])
def test_a_ref_to_a_missing_object_is_refused(world: World, exists: bool) -> None:
    oid, nowhere = world.blob("there"), "3" * world.store.oid_length
    if exists:
        put(world, Create(A, oid))
    with pytest.raises(SwapFailed):
        world.store.swap([Update(A, oid, nowhere) if exists else Create(A, nowhere)])
    assert refs(world) == ({A: oid} if exists else {})


def test_one_ref_twice_in_a_swap_is_refused(world: World) -> None:
    one, two = world.blob("1"), world.blob("2")
    with pytest.raises(SwapFailed):
        world.store.swap([Create(A, one), Update(A, one, two)])
    assert refs(world) == {}


def test_a_ref_cannot_be_file_and_directory(world: World) -> None:
    one = world.blob("1")
    put(world, Create("refs/claims/path/a", one))
    with pytest.raises(SwapFailed):
        world.store.swap([Create(A, one)])
    assert refs(world) == {"refs/claims/path/a": one}


def test_what_git_does_not_take_for_a_name_is_refused(world: World) -> None:
    for name in ("refs/claims/a..b", "refs/claims/x.lock", "refs/claims/a b", "refs/claims/", "refs/a//b"):
        with pytest.raises(SwapFailed):
            world.store.swap([Create(name, world.blob("1"))])


def test_many_operations_are_one_swap(world: World) -> None:
    oid = world.blob("x")
    names = [f"refs/claims/path/d{number:03d}/@x" for number in range(120)]
    put(world, *(Create(name, oid) for name in names))
    assert list(refs(world)) == names
    with pytest.raises(SwapFailed):
        world.store.swap([*(Delete(name, oid) for name in names), Verify(C, oid)])
    assert list(refs(world)) == names
    put(world, *(Delete(name, oid) for name in names))
    assert refs(world) == {}


def test_an_empty_swap_is_nothing(world: World) -> None:
    world.store.swap([])
    assert refs(world) == {}


def test_move_is_never_blind() -> None:
    one, two = "1" * 40, "2" * 40
    assert move(A, None, one) == Create(A, one)
    assert move(A, one, two) == Update(A, one, two)
    assert move(A, one, None) == Delete(A, one)
    assert move(A, one, one) is None and move(A, None, None) is None


def test_exactly_one_of_many_threads_wins_in_memory() -> None:
    store = MemoryStore()
    oids = [store.write("blob", b"%d" % number) for number in range(8)]
    store.flush()
    wins: list[Oid] = []

    def contend(oid: Oid) -> None:
        for _ in range(50):
            try:
                store.swap([Create(A, oid)])
            except SwapFailed:
                continue
            wins.append(oid)
            assert store.resolve([A]) == [oid]
            store.swap([Delete(A, oid)])

    threads = [threading.Thread(target=contend, args=(oid,)) for oid in oids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wins and store.list_refs("refs/") == {}


# --- readers and git


@pytest.mark.parametrize("kind", ["sha256", REFTABLE])
def test_libgit2_says_what_it_cannot_read(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    made = make_world(kind, tmp_path, lambda: request.getfixturevalue("git_repo"))
    with pytest.raises(StoreError, match="libgit2 cannot read this repository"):
        Pygit2Reader(str(made.top))


def test_libgit2_outside_a_repository(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="libgit2 cannot read this repository"):
        Pygit2Reader(str(tmp_path / "nowhere"))


def test_head(reading: tuple[World, Callable[[], Reader]]) -> None:
    world, reader = reading
    if world.top is None:
        assert reader().resolve(["HEAD"]) == [None] and reader().target("HEAD") is None
        return
    tree = git(world.top, "write-tree" if "bare" not in str(world.top) else "mktree").decode().strip()
    commit = git(world.top, "commit-tree", tree, "-m", "x").decode().strip()
    git(world.top, "update-ref", "HEAD", commit)
    assert reader().resolve(["HEAD"]) == [commit] and reader().target("HEAD") == commit


@pytest.mark.parametrize("kind", DISK)
def test_git_agrees(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Plain git sees the refs and finds nothing wrong with the objects."""
    made = make_world(kind, tmp_path, lambda: request.getfixturevalue("git_repo"))
    assert made.top is not None
    oid = made.blob("x")
    put(made, Create(A, oid))
    assert git(made.top, "for-each-ref", "--format=%(objectname) %(refname)", "refs/claims").decode() == f"{oid} {A}\n"
    git(made.top, "fsck", "--strict")
    made.store.close()

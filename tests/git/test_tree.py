"""Bucketed trees: the shape follows from the content alone, and reading them is like reading a plain dict."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import Oid
from gitcoord.git.store import Object
from gitcoord.git.tree import WIDE, TreeEditor, TreeEntry, Trees, encode_tree, is_bucket, parse_tree
from tests.git.memory_store import MemoryStore
from tests.support import git, plumbing_store, repo_at

Files = dict[str, str]


class Forest:
    """A store with an editor that remembers nothing between edits, so that everything is read again."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    def blob(self, text: str) -> Oid:
        return self.store.write("blob", text.encode())

    def edit(self, root: Oid | None, changes: Mapping[str, str | None]) -> Oid | None:
        blobs = {path: None if text is None else self.blob(text) for path, text in changes.items()}
        after = TreeEditor(self.store, self.trees()).edit(root, blobs)
        self.store.flush()
        return after

    def trees(self) -> Trees:
        return Trees(self.store)

    def files(self, root: Oid | None) -> Files:
        found = {}
        for path, oid in self.trees().files(*([("", root)] if root else [])):
            (blob,) = self.store.read([oid])
            assert blob is not None and path not in found
            found[path] = blob.data.decode()
        return found


def check_model(forest: Forest, root: Oid | None, model: Files) -> None:
    """Every way of reading agrees with the dict."""
    trees = forest.trees()
    assert forest.files(root) == model
    directories: dict[str, set[str]] = {"": set()}
    for path in model:
        parts = path.split("/")
        for depth, name in enumerate(parts):
            directories.setdefault("/".join(parts[:depth]), set()).add(name)
    for directory, names in directories.items():
        entry = trees.find(root, directory)
        oid = entry.oid if entry is not None else None
        children = trees.children(oid)
        assert set(children) == names
        leaves = {name for name in names if name[0] == "@" and not children[name].is_tree}
        assert set(trees.leaves(oid)) == leaves
        for name in names:
            assert trees.find(root, f"{directory}/{name}".lstrip("/")) == children[name]
        assert trees.find(root, f"{directory}/absent".lstrip("/")) is None
    for path in model:
        with pytest.raises(CouldNotJudge):
            trees.find(root, path + "/below")  # a file where a directory should be is never taken for "nothing there"
    assert trees.walk(root, model) == {path: trees.find(root, path) for path in model}


names = st.sampled_from([*"abcdefgh", "@alice", "@bob", "%20x", "é", "\udcff", "x" * 200, "%2Egit"])
wide_names = st.integers(0, 160).map(lambda number: f"n{number}")
paths = st.one_of(
    st.lists(names, min_size=1, max_size=3).map("/".join),
    wide_names.map(lambda name: f"wide/{name}/@alice"),
    wide_names.map(lambda name: f"wide/{name}"),
)


def clashes(path: str, model: Files) -> bool:
    """A file cannot lie where a directory is, or below another file: no caller asks for that in one change."""
    return any(other != path and (other.startswith(path + "/") or path.startswith(other + "/")) for other in model)


@given(
    st.sets(wide_names, min_size=WIDE - 8, max_size=WIDE + 30),
    st.lists(st.tuples(paths, st.sampled_from(["one", "two", None])), max_size=60),
    st.integers(0, 20),
)
def test_any_order_of_edits_gives_the_tree_of_its_content(
    begin: set[str], edits: list[tuple[str, str | None]], batch: int
) -> None:
    """It begins with a directory about as wide as the limit, so that it is split and merged on the way."""
    forest = Forest()
    model = {f"wide/{name}": "x" for name in sorted(begin)}
    root = forest.edit(None, dict(model))
    pending: dict[str, str | None] = {}
    for path, text in edits:
        if clashes(path, {**model, **dict.fromkeys(pending, "")}):
            continue
        pending[path] = text
        if len(pending) > batch:
            root = forest.edit(root, pending)
            model = _after(model, pending)
            pending = {}
    root, model = forest.edit(root, pending), _after(model, pending)
    assert root == Forest().edit(None, dict(model))
    check_model(forest, root, model)


def _after(model: Files, changes: dict[str, str | None]) -> Files:
    merged = {**model, **changes}
    return {path: text for path, text in merged.items() if text is not None}


@pytest.mark.parametrize("count", [WIDE - 1, WIDE, WIDE + 1, 200, 820, 1000])
def test_growing_and_shrinking_leaves_no_trace(count: int) -> None:
    """One by one up and down again, in different orders: at every step the tree is the one of its content."""
    chance = random.Random(count)
    every = [f"claims/path/f{number}.py/@alice" for number in range(count)]
    up, down = chance.sample(every, count), chance.sample(every, count)
    forest, fresh = Forest(), Forest()
    root: Oid | None = None
    model: Files = {}
    steps = {0, 1, WIDE - 1, WIDE, WIDE + 1, count // 2, count - 1}
    for number, path in enumerate(up):
        root = forest.edit(root, {path: path})
        model[path] = path
        if number in steps:
            assert root == fresh.edit(None, dict(model))
    check_model(forest, root, model)
    for number, path in enumerate(down):
        root = forest.edit(root, {path: None})
        del model[path]
        if len(model) in steps or number in steps:
            assert root == fresh.edit(None, dict(model))
            assert forest.files(root) == model
    assert root is None


def test_wide_directories_are_split_and_narrow_ones_are_not() -> None:
    forest = Forest()
    narrow = forest.edit(None, {f"d/{number}": "x" for number in range(WIDE)})
    wide = forest.edit(narrow, {f"d/{WIDE}": "x"})
    trees = forest.trees()
    before, after = trees.find(narrow, "d"), trees.find(wide, "d")
    assert before is not None and after is not None
    assert len(trees.get(before.oid)) == WIDE
    assert all(is_bucket(name) for name in trees.get(after.oid)) and len(trees.get(after.oid)) <= 16
    assert len(trees.children(after.oid)) == WIDE + 1


def test_claims_on_a_wide_directory_are_found_without_its_buckets() -> None:
    forest = Forest()
    root = forest.edit(None, {f"d/{number}/@x": "x" for number in range(100)} | {"d/@alice": "a", "d/@bob": "b"})
    trees = forest.trees()
    entry = trees.find(root, "d")
    assert entry is not None
    assert set(trees.leaves(entry.oid)) == {"@alice", "@bob"}
    # Any number of '@' names alone splits nothing.
    many = forest.edit(None, {f"d/@a{number}": "x" for number in range(200)})
    entry = forest.trees().find(many, "d")
    assert entry is not None and len(forest.trees().get(entry.oid)) == 200


def test_an_edit_writes_only_the_trees_on_its_way() -> None:
    forest = Forest()
    root = forest.edit(None, {f"claims/path/f{number}/@x": "x" for number in range(5000)})
    written: list[str] = []

    class Counting(MemoryStore):
        def write(self, kind: str, data: bytes) -> Oid:
            written.append(kind)
            return forest.store.write(kind, data)

    TreeEditor(Counting(), forest.trees()).edit(root, {"claims/path/one-more/@x": forest.blob("x")})
    assert written.count("tree") <= 8


def collisions(count: int) -> list[str]:
    """Names with one and the same CRC, built of two words of equal length and CRC: each place may hold either."""
    chance, seen = random.Random(1), dict[int, bytes]()
    while True:
        word = chance.randbytes(6).hex().encode()
        other = seen.setdefault(crc32(word), word)
        if other != word:
            break
    found = [b"".join((word, other)[number >> bit & 1] for bit in range(8)).decode() for number in range(count)]
    assert len({crc32(name.encode()) for name in found}) == 1
    return found


def test_names_that_no_hash_can_part() -> None:
    """Buckets end after eight levels; what is still together then simply stays together."""
    twins = collisions(WIDE + 10)
    forest = Forest()
    root: Oid | None = None
    for name in twins:
        root = forest.edit(root, {f"d/{name}": name})
    model = {f"d/{name}": name for name in twins}
    assert root == Forest().edit(None, dict(model))
    check_model(forest, root, model)
    for name in twins[: WIDE // 2]:
        root = forest.edit(root, {f"d/{name}": None})
        del model[f"d/{name}"]
    assert root == Forest().edit(None, dict(model))
    check_model(forest, root, model)


@pytest.mark.parametrize("count", [1, WIDE, 300])
def test_a_directory_goes_whole(count: int) -> None:
    forest = Forest()
    kept = {"nonces/2030-01-02/x": "new", "format": "f"}
    old = {f"nonces/2030-01-01/{number}/a": "old" for number in range(count)}
    root = forest.edit(None, {**kept, **old})
    assert forest.edit(root, {"nonces/2030-01-01/": None}) == forest.edit(None, dict(kept))
    assert forest.edit(root, {"nonces/": None}) == forest.edit(None, {"format": "f"})
    assert forest.edit(root, {"absent/": None, "a/b/": None}) == root


def test_a_wide_parent_forgets_a_directory() -> None:
    forest = Forest()
    model = {f"d/{number}/x": "x" for number in range(WIDE + 1)}
    root = forest.edit(None, dict(model))
    del model["d/7/x"]
    assert forest.edit(root, {"d/7/": None}) == forest.edit(None, dict(model))


def test_an_old_directory_goes_and_a_new_file_comes_in_one_edit() -> None:
    """This happens when an event drops an old date's nonces and adds the next one."""
    forest = Forest()
    root = forest.edit(None, {"nonces/2030-01-01/alice/n1": "1"})
    after = forest.edit(root, {"nonces/2030-01-01/": None, "nonces/2030-01-09/alice/n2": "2"})
    assert forest.files(after) == {"nonces/2030-01-09/alice/n2": "2"}


def test_nothing_changed_is_the_same_tree() -> None:
    forest = Forest()
    root = forest.edit(None, {f"d/{number}": "x" for number in range(100)})
    assert forest.edit(root, {}) == root
    assert forest.edit(root, {"d/absent": None, "e/absent": None}) == root
    assert forest.edit(None, {}) is None


def test_what_is_missing_or_damaged_is_said() -> None:
    forest = Forest()
    blob = forest.store.write("blob", b"x")
    broken = forest.store.write("blob", b"100644 cut short")
    forest.store.flush()
    for oid in ("1" * 40, blob, broken):
        with pytest.raises(CouldNotJudge):
            forest.trees().get(oid)


@pytest.mark.parametrize("data", [b"100644 cut short", b"100644 a\0short", b"\0", b"garbage"])
def test_half_a_tree_is_no_tree(data: bytes) -> None:
    class Damaged(MemoryStore):
        def read(self, names: Sequence[str], ahead: Sequence[str] = ()) -> list[Object | None]:
            return [Object("1" * 40, "tree", data)]

    with pytest.raises(CouldNotJudge):
        Trees(Damaged()).get("1" * 40)


entries = st.dictionaries(
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8),
    st.tuples(st.sampled_from(["100644", "40000"]), st.binary(min_size=20, max_size=20)),
)


@given(entries)
def test_trees_are_read_as_written(found: dict[str, tuple[str, bytes]]) -> None:
    tree = {name: TreeEntry(mode, oid.hex()) for name, (mode, oid) in found.items()}
    assert parse_tree(encode_tree(tree), 40) == tree


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_git_reads_them_and_finds_nothing_wrong(object_format: str, git_repo: Path, tmp_path: Path) -> None:
    top = git_repo
    if object_format == "sha256":
        top = tmp_path / "sha256"
        git(tmp_path, "init", "--quiet", "--object-format=sha256", str(top))
    store = plumbing_store(repo_at(top / ".git", worktree=top), 64 if object_format == "sha256" else 40)
    some = ["a", "a.b", "a-b", "a0", "%20x", "é", "\udcff\udcfe", "@alice", "%2Egit", "x" * 240 + "%+"]
    changes = {f"claims/path/{name}/{inner}": f"{name}{inner}" for name in some for inner in (*some, "deep/er")}
    changes |= {f"claims/path/wide/f{number}.py/@alice": f"{number}" for number in range(900)}
    blobs = {path: store.write("blob", text.encode("utf-8", "surrogateescape")) for path, text in changes.items()}
    trees = Trees(store)
    root = TreeEditor(store, trees).edit(None, dict(blobs))
    assert root is not None
    store.flush()
    who = "a <a@example.com> 1 +0000"
    commit = store.write("commit", f"tree {root}\nauthor {who}\ncommitter {who}\n\nx\n".encode())
    store.flush()
    git(top, "update-ref", "refs/heads/main", commit)
    assert git(top, "fsck", "--strict", "--full").strip() == b""
    listed = git(top, "ls-tree", "-r", "-z", root)
    rows = [row.split(b" ", 2)[2].partition(b"\t") for row in listed.split(b"\0") if row]
    buckets = {f"%{digit:x}".encode() for digit in range(16)}
    plain = {b"/".join(part for part in path.split(b"/") if part not in buckets): oid for oid, _, path in rows}
    expected = {path.encode("utf-8", "surrogateescape"): oid.encode() for path, oid in blobs.items()}
    assert plain == expected
    assert dict(Trees(store).files(("", root))) == blobs
    store.close()

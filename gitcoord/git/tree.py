"""Trees: reading and editing the ledger's tree, whose wide directories are split into hash buckets.

The shape is a function of the content alone, so that every writer and every replay makes the same tree: a directory with
more than `WIDE` names is stored as up to 16 buckets `%0`..`%f` by the next four bits of the name's CRC, each bucket
again split by the same rule. Names that begin with '@' stay where they are, so that the claims on a directory are found
without looking into its buckets. An encoded name never looks like a bucket's: after '%' it has two hex digits or '+'.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import Oid
from gitcoord.git.store import Reader, Store
from gitcoord.startup.annotations import Any, Iterable, Iterator
from gitcoord.startup.namedtuple import NamedTuple

Nested = dict[str, "Any"]

WIDE = 48
_LEVELS = 8
_HEX = "0123456789abcdef"


class TreeEntry(NamedTuple):
    mode: str
    oid: Oid

    @property
    def is_tree(self) -> bool:
        return self.mode == "40000"


Entries = dict[str, TreeEntry]


def parse_tree(data: bytes, oid_length: int) -> Entries:
    entries: Entries = {}
    size, index = oid_length // 2, 0
    while index < len(data):
        space = data.index(b" ", index)
        end = data.index(b"\0", space)
        name = data[space + 1 : end].decode("utf-8", "surrogateescape")
        index, start = end + 1 + size, index
        if index > len(data):
            raise ValueError("a tree ends in the middle of an entry")
        entries[name] = TreeEntry(data[start:space].decode("ascii"), data[end + 1 : index].hex())
    return entries


def encode_tree(entries: Entries) -> bytes:
    rows = [(name.encode("utf-8", "surrogateescape"), entry) for name, entry in entries.items()]
    rows.sort(key=lambda row: row[0] + b"/" if row[1].is_tree else row[0])
    return b"".join(b"%s %s\0%s" % (e.mode.encode(), name, bytes.fromhex(e.oid)) for name, e in rows)


def is_bucket(name: str) -> bool:
    return len(name) == 2 and name[0] == "%"


def _bucket(name: str, level: int) -> str:
    from zlib import crc32  # only where a directory is wide

    return "%" + _HEX[crc32(name.encode("utf-8", "surrogateescape")) >> (28 - 4 * level) & 15]


class Trees:
    """Reads trees through a store, each once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._cache: dict[Oid, Entries] = {}

    def get(self, oid: Oid | None) -> Entries:
        if oid is None:
            return {}
        if oid not in self._cache:
            self.load([oid])
        return self._cache[oid]

    def load(self, oids: list[Oid]) -> None:
        """Read several trees in one go."""
        wanted = [oid for oid in dict.fromkeys(oids) if oid not in self._cache]
        for oid, found in zip(wanted, self._reader.read(wanted) if wanted else ()):
            if found is None or found.kind != "tree":
                raise CouldNotJudge(f"the ledger's tree {oid} cannot be read", hints=("git fsck tells more",))
            try:
                self._cache[oid] = parse_tree(found.data, self._reader.oid_length)
            except ValueError:
                raise CouldNotJudge(f"the ledger's tree {oid} is damaged") from None

    def walk(self, root: Oid | None, paths: Iterable[str]) -> dict[str, TreeEntry | None]:
        """The entries at several paths, a level of the tree for each read: few round trips instead of many."""
        found: dict[str, TreeEntry | None] = {}
        cursors = [
            (path, path.split("/") if path else [], TreeEntry("40000", root) if root else None, 0) for path in paths
        ]
        while cursors:
            self.load([entry.oid for _, names, entry, _ in cursors if entry is not None and entry.is_tree and names])
            onward: list[tuple[str, list[str], TreeEntry | None, int]] = []
            for path, names, entry, level in cursors:
                if entry is None or not names:
                    found[path] = entry
                    continue
                if not entry.is_tree:
                    raise CouldNotJudge(f"the ledger's tree has no directory where '{path}' should lie")
                here = self.get(entry.oid)
                if names[0] in here:
                    onward.append((path, names[1:], here[names[0]], 0))
                elif level < _LEVELS and any(is_bucket(name) for name in here):
                    onward.append((path, names, here.get(_bucket(names[0], level)), level + 1))
                else:
                    found[path] = None
            cursors = onward
        return found

    def find(self, root: Oid | None, path: str) -> TreeEntry | None:
        """The entry at a path of encoded components."""
        return self.walk(root, [path])[path]

    def children(self, oid: Oid | None) -> Entries:
        """Everything directly in a directory, out of its buckets."""
        found: Entries = {}
        todo = [oid] if oid else []
        while todo:
            self.load([o for o in todo if o])
            level = [self.get(o) for o in todo]
            todo = [e.oid for entries in level for name, e in entries.items() if is_bucket(name)]
            for entries in level:
                found.update((name, e) for name, e in entries.items() if not is_bucket(name))
        return found

    def leaves(self, oid: Oid | None) -> Entries:
        """The '@' files directly in a directory, without looking into buckets."""
        return {name: e for name, e in self.get(oid).items() if name[0] == "@" and not e.is_tree}

    def files(self, *roots: tuple[str, Oid]) -> Iterator[tuple[str, Oid]]:
        """All files below these (prefix, tree) pairs, a level of the trees at a time."""
        level = list(roots)
        while level:
            self.load([o for _, o in level if o])
            below = []
            for base, tree in level:
                for name, entry in self.get(tree).items():
                    path = base if is_bucket(name) else f"{base}{name}"
                    if entry.is_tree:
                        below.append((path if is_bucket(name) else path + "/", entry.oid))
                    else:
                        yield path, entry.oid
            level = below


class TreeEditor:
    """Makes a new tree from an old one, writing only the trees on the way to what changed."""

    def __init__(self, store: Store, trees: Trees) -> None:
        self._store = store
        self._trees = trees

    def edit(self, root: Oid | None, changes: dict[str, Oid | None]) -> Oid | None:
        """The tree after these changes (file -> blob or None; 'dir/' -> None removes it whole); None if it is empty."""
        nested: Nested = {}
        for path, oid in changes.items():
            here = nested
            *directories, name = path.rstrip("/").split("/")
            for directory in directories:
                here = here.setdefault(directory, {})
            here[name] = TreeEntry("100644", oid) if oid else None
        return self._directory(root, nested)

    def _directory(self, oid: Oid | None, nested: Nested) -> Oid | None:
        updates: dict[str, TreeEntry | None] = {}
        for name, value in nested.items():
            if isinstance(value, dict):
                old = self._trees.find(oid, name)
                new = self._directory(old.oid if old is not None and old.is_tree else None, value)
                value = TreeEntry("40000", new) if new else None
            updates[name] = value
        return self._put(oid, 0, updates)

    def _put(self, oid: Oid | None, level: int, updates: dict[str, TreeEntry | None]) -> Oid | None:
        entries = dict(self._trees.get(oid))
        if any(is_bucket(name) for name in entries):
            self._put_in_buckets(entries, level, updates)
            few = self._flat_if_few(entries) if None in updates.values() else None
            entries = few if few is not None else entries
            return self._save(entries)
        _update(entries, updates)
        return self._save(self._shape(entries, level))

    def _put_in_buckets(self, entries: Entries, level: int, updates: dict[str, TreeEntry | None]) -> None:
        groups: dict[str, dict[str, TreeEntry | None]] = {}
        for name, entry in updates.items():
            if name[0] == "@":
                _update(entries, {name: entry})
            else:
                groups.setdefault(_bucket(name, level), {})[name] = entry
        for bucket, group in groups.items():
            old = entries.get(bucket)
            new = self._put(old.oid if old else None, level + 1, group)
            _update(entries, {bucket: TreeEntry("40000", new) if new else None})

    def _flat_if_few(self, entries: Entries) -> Entries | None:
        """The directory without buckets, if that is its shape now. Stops reading as soon as it is not."""
        flat = {name: e for name, e in entries.items() if not is_bucket(name)}
        stay = len(flat)
        for name, bucket in entries.items():
            if is_bucket(name):
                inside = self._trees.get(bucket.oid)
                flat.update(inside)
                # A bucket that is itself split holds more than WIDE.
                if len(flat) - stay > WIDE or any(is_bucket(n) for n in inside):
                    return None
        return flat

    def _shape(self, entries: Entries, level: int) -> Entries:
        names = [name for name in entries if name[0] != "@"]
        if len(names) <= WIDE or level >= _LEVELS:
            return entries
        shaped = {name: e for name, e in entries.items() if name[0] == "@"}
        groups: dict[str, Entries] = {}
        for name in names:
            groups.setdefault(_bucket(name, level), {})[name] = entries[name]
        for bucket, group in groups.items():
            new = self._save(self._shape(group, level + 1))
            assert new is not None
            shaped[bucket] = TreeEntry("40000", new)
        return shaped

    def _save(self, entries: Entries) -> Oid | None:
        if not entries:
            return None
        oid = self._store.write("tree", encode_tree(entries))
        self._trees._cache[oid] = entries
        return oid


def _update(entries: Entries, updates: dict[str, TreeEntry | None]) -> None:
    for name, entry in updates.items():
        if entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry

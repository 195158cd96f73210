"""A store that keeps refs and live objects in memory and streams every object into one pack: how large ledgers are built.

The library's own transaction runs on it, so what it leaves is what a hundred thousand commands would have left.
"""

from __future__ import annotations

import hashlib
import struct
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from gitcoord.base.names import Oid, RefName, is_oid
from gitcoord.git.loose_writer import framed
from gitcoord.git.store import Create, Delete, Object, Operation, SwapFailed, Update, Verify
from gitcoord.git.tree import parse_tree

# The transaction looks back to where the last chain of events began.
_KEPT_COMMITS = 8
_TYPES = {"commit": 1, "tree": 2, "blob": 3}


class PackStore:
    """Implements Store. `finish` makes its content the repository's."""

    oid_length = 40

    def __init__(self, git_dir: Path, refs: Mapping[RefName, Oid]) -> None:
        self.refs = dict(refs)
        self._git_dir = git_dir
        self._pack = git_dir / "objects/pack/tmp_pack_bench"
        self._pack.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._pack.open("wb")
        self._file.write(b"PACK" + struct.pack(">II", 2, 0))
        self._live: dict[Oid, Object] = {}
        self._known: set[bytes] = set()

    # --- the interface

    def target(self, ref: RefName) -> Oid | None:
        return self.refs.get(ref)

    def read(self, names: Sequence[str], ahead: Sequence[str] = ()) -> list[Object | None]:
        return [self._live.get(name if is_oid(name) else self.refs.get(name, "")) for name in names]

    def resolve(self, names: Sequence[str]) -> list[Oid | None]:
        return [self.refs.get(name) for name in names]

    def list_refs(self, prefix: str) -> dict[RefName, Oid]:
        return {ref: oid for ref, oid in self.refs.items() if ref.startswith(prefix)}

    def write(self, kind: str, data: bytes) -> Oid:
        digest = hashlib.sha1(framed(kind, data))
        oid = digest.hexdigest()
        self._live[oid] = Object(oid, kind, data)
        if digest.digest() not in self._known:
            self._known.add(digest.digest())
            self._file.write(_entry_header(_TYPES[kind], len(data)) + zlib.compress(data, 1))
        return oid

    def flush(self) -> None:
        """Do nothing: no object is pending."""

    def discard(self, oid: Oid) -> None:
        """Do nothing: objects in the pack stay there."""

    def swap(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            expected = None if isinstance(operation, Create) else operation.expected or None
            if self.refs.get(operation.ref) != expected:
                raise SwapFailed(f"{operation.ref} is not where it was expected")
        for operation in operations:
            if isinstance(operation, Delete):
                del self.refs[operation.ref]
            elif isinstance(operation, (Create, Update)):
                self.refs[operation.ref] = operation.new
            else:
                assert isinstance(operation, Verify)

    def refresh(self) -> None:
        """Do nothing: no ref is cached."""

    def replay_redo_log(self) -> bool:
        return False

    def move_broken_refs_aside(self, names: Sequence[str]) -> list[str]:
        return []

    def remove_stale_locks(self, operations: Sequence[Operation]) -> bool:
        return False

    def maintain(self) -> None:
        """`finish` leaves one pack."""

    def close(self) -> None:
        self._file.close()

    # --- building

    def forget_history(self, head: Oid) -> None:
        """Keep only what the tree of this commit, the last commits and the refs need: memory stays small."""
        kept = {oid: self._live[oid] for oid in self.refs.values() if oid in self._live}
        todo = [self._named_in(head, b"tree ")]
        for _ in range(_KEPT_COMMITS):
            if head not in self._live:
                break
            kept[head] = self._live[head]
            head = self._named_in(head, b"\nparent ")
        while todo:
            oid = todo.pop()
            kept[oid] = found = self._live[oid]
            if found.kind == "tree":
                todo += [entry.oid for entry in parse_tree(found.data, self.oid_length).values()]
        self._live = kept

    def _named_in(self, commit: Oid, key: bytes) -> Oid:
        _, _, rest = self._live[commit].data.partition(key)
        return rest[: self.oid_length].decode("ascii", "replace")

    def finish(self, env: Mapping[str, str]) -> None:
        """Close the pack, index it, set the refs."""
        self._file.seek(len(b"PACK") + 4)
        self._file.write(struct.pack(">I", len(self._known)))
        self._file.close()
        digest = hashlib.sha1()
        with self._pack.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        with self._pack.open("ab") as file:
            file.write(digest.digest())
        with self._pack.open("rb") as file:
            self._git(env, "index-pack", "--stdin", stdin=file.fileno())
        self._pack.unlink()
        lines = [f"update {ref} {oid}\n" for ref, oid in self.refs.items() if ref != "HEAD"]
        self._git(env, "update-ref", "--stdin", data="".join(lines))

    def _git(self, env: Mapping[str, str], *words: str, stdin: int | None = None, data: str | None = None) -> None:
        argv = ["git", "--git-dir", str(self._git_dir), *words]
        if data is not None:
            subprocess.run(argv, env=env, input=data, text=True, check=True, stdout=subprocess.DEVNULL)
        else:
            subprocess.run(argv, env=env, stdin=stdin, check=True, stdout=subprocess.DEVNULL)


def _entry_header(kind: int, size: int) -> bytes:
    """Type and length as a pack has them: four bits, then seven at a time."""
    byte = kind << 4 | size & 15
    size >>= 4
    out = bytearray()
    while size:
        out.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    out.append(byte)
    return bytes(out)

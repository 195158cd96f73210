"""A store in memory, for tests of what needs no disk.

It keeps the promises of the interface and refuses what git refuses. Objects are immutable; the refs change only below the
lock, so several threads may share one store as several processes share a repository.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import cast

from dulwich.refs import Ref, check_ref_format

from gitcoord.base.errors import StoreError
from gitcoord.base.names import Oid, RefName, is_oid
from gitcoord.git.loose_writer import framed, hasher
from gitcoord.git.store import Create, Delete, Object, Operation, SwapFailed, Update, Verify
from gitcoord.git.tree import parse_tree


class MemoryStore:
    """Implements Store without a disk. HEAD is an ordinary ref here: it is detached or missing."""

    oid_length = 40

    def __init__(self) -> None:
        self._objects: dict[Oid, Object] = {}
        self._pending: dict[Oid, Object] = {}
        self._refs: dict[RefName, Oid] = {}
        self._lock = Lock()

    # --- reading

    def target(self, ref: RefName) -> Oid | None:
        return self._refs.get(ref)

    def read(self, names: Sequence[str]) -> list[Object | None]:
        with self._lock:
            return [self._named(name) for name in names]

    def resolve(self, names: Sequence[str]) -> list[Oid | None]:
        with self._lock:
            return [oid if (oid := self._refs.get(name)) in self._objects else None for name in names]

    def refresh(self) -> None:
        """Do nothing: nothing is cached."""

    def list_refs(self, prefix: str) -> dict[RefName, Oid]:
        with self._lock:
            return {ref: oid for ref, oid in sorted(self._refs.items()) if ref.startswith(prefix)}

    def _named(self, name: str) -> Object | None:
        ref, colon, path = name.partition(":")
        found = self._objects.get(ref if is_oid(ref) else self._refs.get(ref, ""))
        if colon and found is not None and found.kind == "commit":
            found = self._objects.get(found.data[len("tree ") :][: self.oid_length].decode("ascii"))
        for part in path.split("/") if path else ():
            if found is None or found.kind != "tree":
                return None
            entry = parse_tree(found.data, self.oid_length).get(part)
            found = self._objects.get(entry.oid) if entry is not None else None
        return found

    # --- writing

    def write(self, kind: str, data: bytes) -> Oid:
        if kind not in ("blob", "tree", "commit", "tag"):
            raise StoreError(f"git has no objects of kind '{kind}'")
        oid: Oid = hasher(self.oid_length)(framed(kind, data)).hexdigest()
        with self._lock:
            self._pending[oid] = Object(oid, kind, data)
        return oid

    def flush(self) -> None:
        with self._lock:
            self._objects.update(self._pending)
            self._pending.clear()

    def discard(self, oid: Oid) -> None:
        with self._lock:
            self._objects.pop(oid, None)

    def swap(self, operations: Sequence[Operation]) -> None:
        self.flush()
        with self._lock:
            after = dict(self._refs)
            for operation in operations:
                self._check(operation)
                if isinstance(operation, Delete):
                    del after[operation.ref]
                elif not isinstance(operation, Verify):
                    after[operation.ref] = operation.new
            names = [operation.ref for operation in operations]
            if len(set(names)) < len(names):
                raise SwapFailed("a ref stands twice in one swap")
            for operation in operations:
                if isinstance(operation, (Create, Update)):
                    _refuse_clash(operation.ref, after)
            self._refs = after

    def _check(self, operation: Operation) -> None:
        """Everything git would look at before it moves this ref."""
        ref = operation.ref
        named = cast(Ref, ref.encode("utf-8", "surrogateescape"))
        if ref != "HEAD" and not (ref.startswith("refs/") and check_ref_format(named)):
            raise SwapFailed(f"'{ref}' is not a ref name")
        if isinstance(operation, (Update, Delete)) and not operation.expected:
            raise SwapFailed(f"'{ref}': an update says what it expects")
        expected = "" if isinstance(operation, Create) else operation.expected
        now = self._refs.get(ref, "")
        if now != expected:
            raise SwapFailed(f"'{ref}' is at '{now}' but expected '{expected}'")
        if isinstance(operation, (Create, Update)):
            found = self._objects.get(operation.new)
            if found is None:
                raise SwapFailed(f"'{ref}' cannot point at '{operation.new}', which does not exist")
            if ref.startswith("refs/heads/") and found.kind != "commit":
                raise SwapFailed(f"'{ref}' is a branch, and '{operation.new}' is no commit")

    def remove_stale_locks(self, operations: Sequence[Operation]) -> bool:
        """A thread that dies leaves no lock behind."""
        return False

    def replay_redo_log(self) -> bool:
        return False  # nothing in memory outlives a power cut

    def move_broken_refs_aside(self, names: Sequence[str]) -> list[RefName]:
        return []  # a ref in memory is whole

    def maintain(self) -> None:
        """There is nothing to tidy up."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


def _refuse_clash(ref: RefName, refs: dict[RefName, Oid]) -> None:
    """A ref cannot be a file and a directory at once."""
    parts = ref.split("/")
    above = {"/".join(parts[:count]) for count in range(1, len(parts))}
    for other in refs:
        if other in above or other.startswith(ref + "/"):
            raise SwapFailed(f"'{other}' exists; cannot create '{ref}'")

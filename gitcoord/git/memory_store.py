"""A store in memory, on dulwich's memory repository: for tests, simulation and whatever needs no disk.

It keeps the promises of the interface and refuses what git refuses. Objects are immutable; the refs change only below the
lock, so several threads may share one store as several processes share a repository.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, cast

from dulwich.object_store import MemoryObjectStore
from dulwich.objects import ObjectID, ShaFile, object_class
from dulwich.refs import Ref, check_ref_format
from dulwich.repo import MemoryRepo

from gitcoord.base.errors import StoreError
from gitcoord.base.names import Oid, RefName, is_oid
from gitcoord.git.store import Create, Delete, Object, SwapFailed, Update, Verify
from gitcoord.git.tree_names import follow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitcoord.git.store import Operation


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


class MemoryStore:
    """Implements Store without a disk. HEAD is an ordinary ref here: it is detached or missing."""

    oid_length = 40

    def __init__(self) -> None:
        self._objects = cast(MemoryObjectStore, MemoryRepo().object_store)
        self._refs: dict[RefName, Oid] = {}
        self._pending: dict[Oid, ShaFile] = {}
        self._lock = Lock()

    # --- reading

    def target(self, ref: RefName) -> Oid | None:
        with self._lock:
            return self._refs.get(ref)

    def read(self, names: Sequence[str]) -> list[Object | None]:
        with self._lock:
            return [self._object(self._named(name)) for name in names]

    def resolve(self, names: Sequence[str]) -> list[Oid | None]:
        with self._lock:
            return [oid if self._has(oid := self._refs.get(name)) else None for name in names]

    def refresh(self) -> None:
        """Nothing is remembered."""

    def list_refs(self, prefix: str) -> dict[RefName, Oid]:
        with self._lock:
            return {ref: oid for ref, oid in sorted(self._refs.items()) if ref.startswith(prefix)}

    def _named(self, name: str) -> Oid | None:
        ref, colon, path = name.partition(":")
        oid = ref if is_oid(ref) else self._refs.get(ref)
        return follow(oid, path, self._object, self.oid_length) if colon else oid

    def _object(self, oid: Oid | None) -> Object | None:
        if oid is None or not self._has(oid):
            return None
        found = self._objects[_id(oid)]
        return Object(oid, found.type_name.decode(), found.as_raw_string())

    def _has(self, oid: Oid | None) -> bool:
        return oid is not None and len(oid) == self.oid_length and _id(oid) in self._objects

    # --- writing

    def write(self, kind: str, data: bytes) -> Oid:
        known = object_class(kind.encode())
        if known is None:
            raise StoreError(f"git has no objects of kind '{kind}'")
        made = ShaFile.from_raw_string(known.type_num, data)
        oid = made.id.decode()
        with self._lock:
            self._pending[oid] = made
        return oid

    def flush(self) -> None:
        with self._lock:
            for made in self._pending.values():
                self._objects.add_object(made)
            self._pending.clear()

    def discard(self, oid: Oid) -> None:
        with self._lock:
            if self._has(oid):
                del self._objects[_id(oid)]

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
        if ref != "HEAD" and not (ref.startswith("refs/") and check_ref_format(cast(Ref, _bytes(ref)))):
            raise SwapFailed(f"'{ref}' is not a ref name")
        if isinstance(operation, (Update, Delete)) and not operation.expected:
            raise SwapFailed(f"'{ref}': an update says what it expects")
        expected = "" if isinstance(operation, Create) else operation.expected
        now = self._refs.get(ref, "")
        if now != expected:
            raise SwapFailed(f"'{ref}' is at '{now}' but expected '{expected}'")
        if isinstance(operation, (Create, Update)):
            found = self._object(operation.new)
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
        """Nothing is held. Kept objects and refs stay readable, as they do on a disk."""


def _id(oid: Oid) -> ObjectID:
    return cast(ObjectID, oid.encode())


def _refuse_clash(ref: RefName, refs: dict[RefName, Oid]) -> None:
    """A ref cannot be a file and a directory at once."""
    parts = ref.split("/")
    above = {"/".join(parts[:count]) for count in range(1, len(parts))}
    for other in refs:
        if other in above or other.startswith(ref + "/"):
            raise SwapFailed(f"'{other}' exists; cannot create '{ref}'")

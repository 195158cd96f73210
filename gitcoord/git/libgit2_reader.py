"""Reading at volume through libgit2: `fsck` checks with another implementation than the one that wrote and reads every day.

It only reads. libgit2 must not move refs in a repository that others use: its deletes bring deleted refs back.
"""

from __future__ import annotations

import pygit2

from gitcoord.base.errors import StoreError
from gitcoord.base.names import Oid, RefName, is_oid
from gitcoord.git.store import Object
from gitcoord.git.tree_names import follow
from gitcoord.startup.annotations import Sequence

_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}


class Pygit2Reader:
    """Implements Reader on a repository on disk, given its git directory or work tree."""

    def __init__(self, path: str) -> None:
        try:
            self._repo = pygit2.Repository(path)
        except (pygit2.GitError, KeyError, ValueError) as error:
            # As of libgit2 1.9: sha256, reftable and extensions that it does not know are refused, which is right.
            raise StoreError(
                f"libgit2 cannot read this repository: {error}",
                hints=("repositories with sha256 or reftable are read by git itself",),
            ) from None
        self.oid_length = 40

    def read(self, names: Sequence[str]) -> list[Object | None]:
        return [self._object(self._named(name)) for name in names]

    def resolve(self, names: Sequence[str]) -> list[Oid | None]:
        oids = [self.target(name) for name in names]
        return [oid if oid is not None and oid in self._repo else None for oid in oids]

    def refresh(self) -> None:
        """Do nothing: nothing is cached."""

    def list_refs(self, prefix: str) -> dict[RefName, Oid]:
        try:
            names = [raw.decode("utf-8", "surrogateescape") for raw in self._repo.raw_listall_references()]
            found = {name: self.target(name) for name in sorted(names) if name.startswith(prefix)}
        except pygit2.GitError as error:
            raise StoreError(f"libgit2 cannot list refs: {error}") from None
        return {name: oid for name, oid in found.items() if oid is not None}

    def _named(self, name: str) -> Oid | None:
        ref, colon, path = name.partition(":")
        oid = ref if is_oid(ref) else self.target(ref)
        return follow(oid, path, self._object, self.oid_length) if colon else oid

    def _object(self, oid: Oid | None) -> Object | None:
        if oid is None or len(oid) != self.oid_length:
            return None
        try:
            kind, data = self._repo.read(oid)
        except KeyError:
            return None
        except (pygit2.GitError, ValueError) as error:
            raise StoreError(f"libgit2 cannot read object {oid}: {error}") from None
        return Object(oid, _KINDS[int(kind)], data)

    def target(self, name: RefName) -> Oid | None:
        """The target of a ref; None where there is none, its name is none, or it cannot be read."""
        if "\0" in name or not (name == "HEAD" or name.startswith("refs/")):
            return None  # libgit2 would stop at the NUL byte and answer for another name
        try:
            return str(self._repo.lookup_reference(name).resolve().target)
        except (pygit2.GitError, KeyError, ValueError):
            return None

    def close(self) -> None:
        """Let go of open files."""
        self._repo.free()

"""The small storage interface: read by name, write objects, swap refs.

Calling order of a writer: `read`/`resolve` what the decision needs, `write` the objects, `flush`, `swap` once, `read` back.
There is no blind write: every ref operation says what it expects to find.
"""

from __future__ import annotations

from gitcoord.base.errors import StoreError
from gitcoord.base.names import Oid, RefName
from gitcoord.startup.annotations import Protocol, Sequence
from gitcoord.startup.namedtuple import NamedTuple


class Create(NamedTuple):
    """The ref must not exist."""

    ref: RefName
    new: Oid


class Update(NamedTuple):
    """The ref must be at `expected`."""

    ref: RefName
    expected: Oid
    new: Oid


class Delete(NamedTuple):
    """The ref must be at `expected`."""

    ref: RefName
    expected: Oid


class Verify(NamedTuple):
    """The ref must be at `expected`, '' meaning that it must not exist; it is not changed."""

    ref: RefName
    expected: Oid


Operation = Create | Update | Delete | Verify


class RefUpdate(NamedTuple):
    """A ref that moves, or is about to: where it is before and afterwards. '' for an id: there is no such ref."""

    ref: RefName
    old: Oid
    new: Oid


def move(ref: RefName, expected: Oid | None, new: Oid | None) -> Operation | None:
    """The operation that takes a ref from what was read to what it should be; None where nothing is to do."""
    if expected == new:
        return None
    if expected is None:
        return Create(ref, new or "")
    return Delete(ref, expected) if new is None else Update(ref, expected, new)


def as_update(operation: Operation) -> RefUpdate:
    """The move of an operation; of Verify one that changes nothing."""
    if isinstance(operation, Create):
        return RefUpdate(operation.ref, "", operation.new)
    if isinstance(operation, Update):
        return RefUpdate(operation.ref, operation.expected, operation.new)
    if isinstance(operation, Delete):
        return RefUpdate(operation.ref, operation.expected, "")
    assert isinstance(operation, Verify)
    return RefUpdate(operation.ref, operation.expected, operation.expected)


class Object(NamedTuple):
    oid: Oid
    kind: str
    data: bytes


class SwapFailed(StoreError):
    """The swap did not happen as a whole, as far as git reported. Only reading again shows why, and whether it did."""

    code = "swap"


class Reader(Protocol):
    """The interface for reading. Repeating a call is harmless."""

    oid_length: int

    def read(self, names: Sequence[str]) -> list[Object | None]:
        """Objects by id, full ref name or either with ':path', in the order asked; None for what is missing.

        StoreError if git fails.
        """

    def target(self, ref: RefName) -> Oid | None:
        """The target of a ref or HEAD, whether or not that object is there; None where there is no such ref."""

    def resolve(self, names: Sequence[str]) -> list[Oid | None]:
        """Ids by full ref name (or HEAD), in the order asked; None for what is missing or unreadable."""

    def refresh(self) -> None:
        """Forget cached refs: the next read gives their present values."""

    def list_refs(self, prefix: str) -> dict[RefName, Oid]:
        """All refs below a prefix that ends in '/'."""


class Store(Reader, Protocol):
    """The interface for writing, beside reading."""

    def write(self, kind: str, data: bytes) -> Oid:
        """Store an object; harmless to repeat. It may be pending until `flush` or `swap`."""

    def flush(self) -> None:
        """Make every object written so far readable for all, and durable."""

    def swap(self, operations: Sequence[Operation]) -> None:
        """All operations or none, in this order where a crash could part them. SwapFailed if git said no.

        No ref moves before every object written so far is readable and durable: no `flush` is needed before.
        """

    def discard(self, oid: Oid) -> None:
        """Forget an object that nothing refers to any more, where that is cheap. Harmless to repeat."""

    def remove_stale_locks(self, operations: Sequence[Operation]) -> bool:
        """After a failed swap: remove what dead writers left in its way. LockHeld where that may not be done."""

    def replay_redo_log(self) -> bool:
        """Restore objects that a power cut destroyed, from the logs of earlier boots.

        True if there was something to look through. Reading does it by itself where an object is missing.
        """

    def move_broken_refs_aside(self, names: Sequence[str]) -> list[RefName]:
        """Move refs out of the way, by name or below it, that the storage cannot read nor delete; gives their names."""

    def maintain(self) -> None:
        """Let the storage tidy up if it thinks it should. Returns at once."""

    def close(self) -> None:
        """Let go of processes. The store is not used afterwards."""

"""Records and names that were converted once are not converted again: a simulation asks for the same ones thousands of times."""

from __future__ import annotations

from contextlib import contextmanager

from gitcoord.base import names
from gitcoord.claims.model import Claim
from gitcoord.claims.requests import Request
from gitcoord.ledger.sessions import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@contextmanager
def remembering() -> Iterator[None]:
    """For the length of one simulation. Rules never change a record, so one record in one file always gives the same object."""
    kinds: tuple[Any, ...] = (Agent, Claim, Request)
    before = [(kind, kind.__dict__["from_record"]) for kind in kinds]
    module: Any = names
    encode = module.encode_path
    try:
        for kind, plain in before:
            _remember(kind, plain.__func__)
        module.encode_path = _Encoded(encode).__getitem__
        yield
    finally:
        for kind, plain in before:
            kind.from_record = plain
        module.encode_path = encode


def _remember(kind: Any, plain: Any) -> None:
    # By identity, which no other record can have as long as the record is kept here.
    known: dict[tuple[int, str], tuple[Any, Any]] = {}

    def from_record(record: Any, file: str) -> Any:
        key = (id(record), file)
        if key not in known:
            known[key] = (record, plain(kind, record, file))
        return known[key][1]

    kind.from_record = from_record


class _Encoded(dict[str, str]):
    def __init__(self, plain: Any) -> None:
        self._plain = plain

    def __missing__(self, path: str) -> str:
        self[path] = self._plain(path)
        return self[path]

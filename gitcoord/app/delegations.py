"""The notes of who is whose subagent, for tools that do not tell: in scratch, for the guard. Nothing that matters if deleted.

What a note says is the business of a module of `core`, its form: `delegations`, or `subagents`. Without notes there are none.
"""

from gitcoord.core.codec import Malformed, dumps, loads
from gitcoord.store.files import read_file
from gitcoord.store.notes import path_of, update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, TypeVar

    from gitcoord.core.codec import Record

    T = TypeVar("T")

    class Form(Protocol[T]):
        def parse(self, record: object, /) -> T: ...

        def record_of(self, known: T, /) -> Record: ...


_LARGEST = 1 << 17


def hear(scratch: str, key: str, form: "Form[T]", step: "Callable[[T], T]") -> "T":
    """What is known after `step`. One process at a time: of two conversations that appear at once, each gets its own task.

    Where nothing may be noted, nothing is known.
    """
    found = []

    def changed(data: bytes) -> bytes:
        before = _parsed(data, form)
        after = step(before)
        found.append(after)
        return data if after == before else dumps(form.record_of(after)).encode()

    try:
        update(_directory(scratch), key, changed)
    except OSError:
        return form.parse(None)
    return found[0]


def known(scratch: str, key: str, form: "Form[T]") -> "T":
    """Only a look."""
    return _parsed(read_file(path_of(_directory(scratch), key), _LARGEST), form)


def _directory(scratch: str) -> str:
    return f"{scratch}/guard/delegations"


def _parsed(data: bytes, form: "Form[T]") -> "T":
    try:
        return form.parse(loads(data) if data else None)
    except Malformed:
        return form.parse(None)

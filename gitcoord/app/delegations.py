"""The notes of which conversation is whose subagent: in scratch, for the guard. Nothing that matters if deleted.

Without them every conversation is an agent of its own.
"""

from gitcoord.core.codec import Malformed, dumps, loads
from gitcoord.core.delegations import EMPTY, parse, record_of
from gitcoord.store.files import read_file
from gitcoord.store.notes import path_of, update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitcoord.core.delegations import Known

_LARGEST = 1 << 17


def hear(scratch: str, tool: str, step: "Callable[[Known], Known]") -> "Known":
    """What is known after `step`. One process at a time: of two conversations that appear at once, each gets its own task.

    Where nothing may be noted, nothing is known.
    """
    found = [EMPTY]

    def changed(data: bytes) -> bytes:
        before = _parsed(data)
        found[0] = after = step(before)
        return data if after == before else dumps(record_of(after)).encode()

    try:
        update(_directory(scratch), tool, changed)
    except OSError:
        return EMPTY
    return found[0]


def known(scratch: str, tool: str) -> "Known":
    """Only a look."""
    return _parsed(read_file(path_of(_directory(scratch), tool), _LARGEST))


def _directory(scratch: str) -> str:
    return f"{scratch}/guard/delegations"


def _parsed(data: bytes) -> "Known":
    try:
        return parse(loads(data)) if data else EMPTY
    except Malformed:
        return EMPTY

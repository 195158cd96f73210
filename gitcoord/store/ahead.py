"""A swap that is begun before it is known whether it will be wanted: while a remote decides, say.

git has been told what to move, and waits for the word. Until then it takes no lock and looks at no ref, so it may wait as long as
need be, and what it finds then is as new as if it had been asked then. Without the word it changes nothing.
"""

from gitcoord.store.interface import Delete, SwapFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gitcoord.store.interface import Operation
    from gitcoord.store.locks import LockNotes
    from gitcoord.store.process import Child


class Ahead:
    """One git, which knows these operations and has not begun."""

    def __init__(self, child: "Child", notes: "LockNotes", operations: "Sequence[Operation]") -> None:
        self.operations = operations
        self._child = child
        self._notes = notes

    @property
    def waits(self) -> bool:
        """Whoever needed another git meanwhile has ended this one."""
        return self._child.code is None

    def swap(self, meanwhile: "Callable[[], None]") -> None:
        """All or nothing, as a store's `swap`; `meanwhile` is done while git works."""
        child = self._child
        deletes = any(isinstance(operation, Delete) for operation in self.operations)
        try:
            child.note = self._notes.note(child.pid, [operation.ref for operation in self.operations], deletes=deletes)
        except OSError as error:
            raise SwapFailed(f"cannot note whose locks these will be: {error.strerror}") from None
        child.send(b"prepare\ncommit\n")
        try:
            meanwhile()
        finally:
            answers = [child.line(), child.line(), child.line()]
            done = answers == [b"start: ok", b"prepare: ok", b"commit: ok"]
            complaint = "" if done else child.complaint()
            if done and child.note is not None:
                child.note.forget()
            child.close_input()
        if not done:
            raise SwapFailed(complaint or f"git update-ref ended with {child.code}")

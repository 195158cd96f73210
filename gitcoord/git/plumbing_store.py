"""The default store: git's own plumbing, two children at most.

`update-ref --stdin` swaps; objects are written loose by this process. Only git moves refs: libraries that do so lose updates or
bring deleted refs back.
"""

from __future__ import annotations

from gitcoord.base.errors import StoreError
from gitcoord.base.names import Oid, RefName, shell_word
from gitcoord.git.files import exists, flush_file, free_name, is_directory, list_files, listdir, make_directory, rename
from gitcoord.git.loose_reader import LooseReader
from gitcoord.git.process import GIT, UNHOOKED, Child
from gitcoord.git.reader import PlumbingReader
from gitcoord.git.repo import Repo
from gitcoord.git.store import Create, Delete, Operation, SwapFailed, Update, Verify
from gitcoord.startup.annotations import Callable, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.locks.owners import LockNotes
    from gitcoord.git.redo_log import DurableObjects

# git does not search for a branch named like an id: the warning would not be seen.
_OWN = (*UNHOOKED, "-c", "core.warnAmbiguousRefs=false")
# All refs are written out; only the first, which decides, is flushed to the disk (by `swap`): the others follow from it.
# Copies of what a remote has are kept as git keeps what it fetches.
_WRITTEN_OUT = ["-c", "core.fsync=reference", "-c", "core.fsyncMethod=writeout-only"]
_UPDATE = ["update-ref", "--no-deref", "--stdin"]


class PlumbingStore(PlumbingReader):
    """Implements Store on a repository on disk. One thread at a time."""

    def __init__(self, repo: Repo) -> None:
        super().__init__(repo)
        self._durable = True
        self._update: Child | None = None
        self._spent: list[Child] = []
        self._writing: Callable[[], tuple[DurableObjects, LockNotes]] | None = None
        self._objects: DurableObjects | None = None
        self._notes: LockNotes | None = None

    def open(self, *, writing: bool) -> None:
        """Start what will be needed now, so that it gets ready while this process imports the rest."""
        if writing:
            self._writer()

    def configure(
        self,
        oid_length: int,
        durable: bool,
        loose: LooseReader | None,
        writing: Callable[[], tuple[DurableObjects, LockNotes]],
    ) -> None:
        """Apply the settings. `loose` reads without git; `writing` makes the parts that only a writer needs."""
        self.oid_length = oid_length
        self._durable = durable
        self._loose = loose
        self._writing = writing

    def _write_parts(self) -> tuple[DurableObjects, LockNotes]:
        if self._objects is None or self._notes is None:
            assert self._writing is not None
            self._objects, self._notes = self._writing()
        return self._objects, self._notes

    def _writer(self) -> Child:
        """A new git for every swap: one that has been running may compare with refs that are gone (see `_reader`)."""
        while self._spent:
            self._spent.pop().close()
        if self._update is None:
            durable = _WRITTEN_OUT if self._durable else []
            self._update = Child([*_OWN, *durable, *_UPDATE], self._repo.env)
        return self._update

    def replay_redo_log(self, *, every: bool = False) -> bool:
        """`every`: by what was written in this boot too."""
        if self._writing is None or not list_files(f"{self._repo.scratch}/redo"):
            return False
        try:
            found_log = self._write_parts()[0].replay_redo_log(every=every)
        except StoreError:
            return False  # not ours to write: what is missing stays missing
        self.refresh()
        return found_log

    def write(self, kind: str, data: bytes) -> Oid:
        return self._write_parts()[0].write(kind, data)

    def flush(self) -> None:
        if self._objects is not None:
            self._objects.flush()

    def discard(self, oid: Oid) -> None:
        self._write_parts()[0].discard(oid)

    def swap(self, operations: Sequence[Operation]) -> None:
        child = self._writer()
        objects, notes = self._write_parts()
        refs = [operation.ref for operation in operations]
        if any("\n" in ref or " " in ref for ref in refs):
            raise SwapFailed("a ref that is to be moved holds a blank or a line end")
        try:
            note = notes.note(child.pid, refs, deletes=any(isinstance(op, Delete) for op in operations))
        except OSError as error:
            raise StoreError(f"cannot note whose locks these will be: {error.strerror}") from None
        child.note = note
        lines = ["start", *(_line(operation, self.oid_length) for operation in operations), "prepare"]
        try:
            if objects.log():
                # git looks only at what the refs will lead to: the rest is put in place while it takes its locks.
                objects.publish({getattr(operation, "new", "") for operation in operations})
            else:
                objects.publish()
            child.send(("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
            objects.publish()
            objects.sync()
            answers = [child.line(), child.line()]
            if answers == [b"start: ok", b"prepare: ok"]:
                try:
                    note.taken(self._repo.common_dir, refs)
                except OSError as error:
                    raise StoreError(f"cannot note whose locks these are: {error.strerror}") from None
        except StoreError:
            self._update = None
            child.close()  # without the word to commit it changes nothing
            raise
        child.send(b"commit\n")
        if [*answers, child.line()] != [b"start: ok", b"prepare: ok", b"commit: ok"]:
            complaint = child.complaint()
            child.close()
            self._update = None
            raise SwapFailed(complaint or f"git update-ref ended with {child.code}")
        note.forget()
        child.note = None
        child.close_input()
        self._update = None
        self._spent.append(child)
        if self._durable:
            try:
                flush_file(f"{self._repo.common_dir}/{refs[0]}")
            except OSError as error:
                raise SwapFailed(f"the refs moved, but the disk did not confirm it: {error.strerror}") from None
            self._drop_logs(objects)

    def _drop_logs(self, objects: DurableObjects) -> None:
        """Remove full redo logs as soon as what they hold is on the disk, which may take a while: nobody waits for it."""
        try:
            logs = objects.outgrown()
            if logs:
                from gitcoord.git.long_process import detach  # once in some hundred transactions

                words = " ".join(shell_word(log) for log in logs)
                where = shell_word(self._repo.objects)
                detach(f"{{ sync -f {where} || sync; }} && rm -f {words}", self._repo.env, b"")
        except (OSError, StoreError):
            pass  # the next one that is full takes them along

    def move_broken_refs_aside(self, names: Sequence[str]) -> list[RefName]:
        todo, moved = list(names), []
        while todo:
            name = todo.pop()
            path = f"{self._repo.common_dir}/{name}"
            if is_directory(path):
                todo += [f"{name}/{entry}" for entry in listdir(path)]
            elif self._is_loose(name) and not name.endswith(".lock") and self.resolve([name])[0] is None:
                aside = f"{self._repo.scratch}/broken"
                make_directory(aside)
                rename(path, free_name(f"{aside}/{name.replace('/', '%')}"))
                moved.append(name)
        return moved

    def maintain(self) -> None:
        # Nothing in update-ref ever packs, and a claim leaves about ten loose objects. git decides, in the background,
        # and asks the hook by which users put it off. It packs refs: our hook would be asked about each of them.
        asks = exists(f"{self._repo.common_dir}/hooks/pre-auto-gc")
        argv = GIT if asks else _OWN
        # It packs refs before it goes into the background, so the process that is noted is the one that locks them.
        child = self.notes.start([*argv, "-c", "gc.autoDetach=true", "gc", "--auto", "--quiet"], self._repo.env)
        child.close_input()
        self._spent.append(child)

    def remove_stale_locks(self, operations: Sequence[Operation]) -> bool:
        return self.notes.remove_stale_locks([operation.ref for operation in operations])

    @property
    def notes(self) -> LockNotes:
        """The notes about all git processes of gitcoord that lock refs here."""
        return self._write_parts()[1]

    def close(self) -> None:
        for child in (self._cat, self._update, *self._spent):
            if child is not None:
                child.close()
        self._cat = self._update = None
        self._spent.clear()
        if self._objects is not None:
            self._objects.close()


def _line(operation: Operation, oid_length: int) -> str:
    if isinstance(operation, Create):
        return f"create {operation.ref} {operation.new}"
    if isinstance(operation, Update):
        return f"update {operation.ref} {operation.new} {operation.expected}"
    if isinstance(operation, Delete):
        return f"delete {operation.ref} {operation.expected}"
    assert isinstance(operation, Verify)
    return f"verify {operation.ref} {operation.expected or '0' * oid_length}"

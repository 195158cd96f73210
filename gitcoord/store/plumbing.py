"""The default store: git's own plumbing, two children at most.

`update-ref --stdin` swaps; objects are written loose by this process. What lies loose is read directly, everything else by
`cat-file --batch-command`. Only git moves refs: libraries that do so lose updates or bring deleted refs back.
"""

import posix

from gitcoord.errors import StoreError
from gitcoord.names import Oid, RefName
from gitcoord.store.files import fingerprint, flush_file, free_name, is_directory, make_directory
from gitcoord.store.interface import Create, Delete, Object, SwapFailed, Update, Verify
from gitcoord.store.process import Child, run

UNSURE = "?"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gitcoord.store.ahead import Ahead
    from gitcoord.store.interface import Operation
    from gitcoord.store.locks import LockNotes
    from gitcoord.store.loose import Loose
    from gitcoord.store.objects import LooseObjects
    from gitcoord.store.repo import Repo

_CAT = ["git", "--no-replace-objects", "cat-file", "--batch-command", "--buffer"]
_FEW = 64
_COPIES = 8
# gitcoord's own swaps run no hooks: they are judged before, and a hook of ours that starts would only slow them. From
# git 2.54 on a hook may be named in the settings, where core.hooksPath does not reach.
_QUIET = ["git", "-c", "core.hooksPath=/dev/null", "-c", "hook.gitcoord-reference-transaction.enabled=false"]
# All refs are written out; only the first, which decides, is flushed to the disk (by `swap`): the others follow from it.
# Copies of what a remote has are kept as git keeps what it fetches.
_WRITTEN_OUT = ["-c", "core.fsync=reference", "-c", "core.fsyncMethod=writeout-only"]
# An object's id is no name: git would look for branches and tags that are called so.
_UPDATE = ["-c", "core.warnAmbiguousRefs=false", "update-ref", "--no-deref", "--stdin"]


class PlumbingStore:
    """Implements Store on a repository on disk. One thread at a time."""

    def __init__(self, repo: "Repo") -> None:
        self.oid_length = 40
        self._durable = True
        self._repo = repo
        self._cat: Child | None = None
        self._packed: tuple[int, ...] = ()
        self._update: Child | None = None
        self._loose: Loose | None = None
        self._packed_blobs: list[Object] = []
        self._spent: list[Child] = []
        self._writing: Callable[[], tuple[LooseObjects, LockNotes]] | None = None
        self._objects: LooseObjects | None = None
        self._notes: LockNotes | None = None

    def open(self, *, writing: bool) -> None:
        """Start what will be needed for sure now, so that it gets ready while this process imports the rest."""
        if writing:
            self._writer()

    def configure(
        self,
        oid_length: int,
        durable: bool,
        loose: "Loose | None",
        writing: "Callable[[], tuple[LooseObjects, LockNotes]]",
    ) -> None:
        """What the settings say; `loose` reads without git, `writing` makes what only a writer needs."""
        self.oid_length = oid_length
        self._durable = durable
        self._loose = loose
        self._writing = writing

    def _write_parts(self) -> "tuple[LooseObjects, LockNotes]":
        if self._objects is None or self._notes is None:
            assert self._writing is not None
            self._objects, self._notes = self._writing()
        return self._objects, self._notes

    def _reader(self) -> Child:
        """A git that has been running takes a new packed-refs for the old one if inode, size and second agree."""
        packed = fingerprint(self._repo.common_dir + "/packed-refs")
        if self._cat is not None and packed != self._packed:
            self._cat.close()
            self._cat = None
        if self._cat is None:
            self._packed = packed
            self._cat = Child(_CAT, self._repo.env)
        return self._cat

    def refresh(self) -> None:
        if self._loose is not None:
            self._loose.forget()
        if self._cat is not None:
            self._cat.close()
            self._cat = None

    def _writer(self) -> Child:
        """A new git for every swap: one that has been running may compare with refs that are gone (see `_reader`)."""
        while self._spent:
            self._spent.pop().close()
        if self._update is None:
            durable = _WRITTEN_OUT if self._durable else []
            self._update = Child([*_QUIET, *durable, *_UPDATE], self._repo.env)
        return self._update

    # --- reading

    def read(self, names: "Sequence[str]", ahead: "Sequence[str]" = ()) -> "list[Object | None]":
        if self._loose is None or len(names) > _FEW:
            return self._read(names)
        oids = self._loose.ids(names)
        found = [None if oid is None else self._loose.object(oid) for oid in oids] if oids is not None else []
        lacking = [oid for oid, obj in zip(oids or (), found) if oid is not None and obj is None]
        if oids is not None and not lacking:
            return found
        wanted = lacking if oids is not None else names
        answers = self._read([*wanted, *ahead])
        self._loose.keep(answers)
        self._packed_blobs += [obj for obj in answers if obj is not None and obj.kind == "blob"]
        if oids is None:
            return answers[: len(names)]
        return [None if oid is None else obj or answers[lacking.index(oid)] for oid, obj in zip(oids, found)]

    def _read(self, names: "Sequence[str]") -> "list[Object | None]":
        found = [self._object(child) for child in self._asked("contents", names)]
        impostors = self._impostors([name for name, obj in zip(names, found) if obj is not None])
        return [None if name in impostors else obj for name, obj in zip(names, found)] if impostors else found

    def at_hand(self, oid: Oid) -> "Object | None":
        return self._loose.object(oid) if self._loose is not None else None

    def target(self, ref: RefName) -> "Oid | None":
        oid = self._loose.ref(ref) if self._loose is not None else UNSURE
        return self._resolve([ref])[0] if oid == UNSURE else oid

    def resolve(self, names: "Sequence[str]") -> "list[Oid | None]":
        if self._loose is not None and len(names) <= _FEW:
            oids = self._loose.ids(names)
            if oids is not None and all(oid is None or self._loose.object(oid) is not None for oid in oids):
                return oids
        return self._resolve(names)

    def _resolve(self, names: "Sequence[str]") -> "list[Oid | None]":
        found = [self._header(child)[0] for child in self._asked("info", names)]
        impostors = self._impostors([name for name, oid in zip(names, found) if oid is not None])
        return [None if name in impostors else oid for name, oid in zip(names, found)] if impostors else found

    def headers(self, names: "Sequence[str]") -> "list[tuple[Oid | None, str, int]]":
        """Id, kind and size of objects, without reading what may be huge; None as the id of what is missing."""
        return [self._header(child) for child in self._asked("info", names)]

    def _impostors(self, names: list[str]) -> set[str]:
        """Names that are no refs: where one is missing, git goes on to look for a tag or branch called like it."""
        doubtful = [name for name in names if name.startswith("refs/") and ":" not in name and not self._is_loose(name)]
        if not doubtful:
            return set()
        there = self._refs(doubtful)
        return {name for name in doubtful if name not in there}

    def _is_loose(self, name: str) -> bool:
        try:
            posix.lstat(f"{self._repo.common_dir}/{name}")
            return True
        except (OSError, ValueError):
            return False

    def _asked(self, verb: str, names: "Sequence[str]") -> "list[Child]":
        """Send all questions at once; the answers come in the same order."""
        if not names:
            return []
        if any("\n" in name or "\0" in name for name in names):
            raise StoreError("a name that is to be read holds a line end")
        child = self._reader()
        lines = [f"{verb} {name}\n" for name in names]
        child.send(("".join(lines) + "flush\n").encode("utf-8", "surrogateescape"))
        return [child] * len(names)

    def _header(self, child: Child) -> "tuple[Oid | None, str, int]":
        line = child.line()
        if line is None:
            complaint = child.complaint()
            self._cat = None
            raise StoreError(f"git cannot read this repository: {complaint or 'cat-file ended'}")
        words = line.decode("utf-8", "surrogateescape").split(" ")
        if len(words) != 3 or words[-1] in ("missing", "ambiguous"):
            return None, "", 0
        return words[0], words[1], int(words[2])

    def _object(self, child: Child) -> "Object | None":
        oid, kind, size = self._header(child)
        if oid is None:
            return None
        data = child.exactly(size + 1)
        if data is None:
            complaint = child.complaint()
            self._cat = None
            raise StoreError(f"git cannot read object {oid}: {complaint}")
        return Object(oid, kind, data[:-1])

    def list_refs(self, prefix: str) -> "dict[RefName, Oid]":
        return self._refs([prefix])

    def _refs(self, patterns: list[str]) -> "dict[RefName, Oid]":
        argv = ["git", "for-each-ref", "--format=%(objectname) %(refname)", *patterns]
        code, out, complaint = run(argv, self._repo.env)
        if code:
            raise StoreError(f"git cannot list refs: {complaint}")
        lines = out.decode("utf-8", "surrogateescape").split("\n")
        return {name: oid for oid, _, name in (line.partition(" ") for line in lines if line)}

    # --- writing

    def write(self, kind: str, data: bytes) -> Oid:
        return self._write_parts()[0].write(kind, data)

    def flush(self) -> None:
        if self._objects is not None:
            self._publish(self._objects)
            self._objects.settle()

    def _publish(self, objects: "LooseObjects") -> None:
        # What every command reads and few change: loose copies spare the next ones a git, until gc drops them.
        for found in self._packed_blobs[:_COPIES]:
            objects.write("blob", found.data)
        self._packed_blobs.clear()
        objects.publish()

    def discard(self, oid: Oid) -> None:
        self._write_parts()[0].discard(oid)

    def swap(self, operations: "Sequence[Operation]") -> None:
        child = self._writer()
        objects, notes = self._write_parts()
        refs = [operation.ref for operation in operations]
        if any("\n" in ref or " " in ref for ref in refs):
            raise SwapFailed("a ref that is to be moved holds a blank or a line end")
        try:
            note = notes.note(child.pid, refs, deletes=any(isinstance(op, Delete) for op in operations))
        except OSError as error:
            raise StoreError(f"cannot note whose locks these will be: {error.strerror}") from None
        self._publish(objects)
        lines = ["start", *(_line(operation, self.oid_length) for operation in operations), "prepare"]
        child.send(("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
        try:
            objects.settle()  # git takes its locks meanwhile
        except StoreError:
            self._update = None
            child.close()  # without the word to commit it changes nothing
            notes.forget(note)
            raise
        child.send(b"commit\n")
        answers = [child.line(), child.line(), child.line()]
        if answers != [b"start: ok", b"prepare: ok", b"commit: ok"]:
            complaint = child.complaint()
            child.close()
            self._update = None
            if child.code is not None and child.code >= 0:
                notes.forget(note)
            raise SwapFailed(complaint or f"git update-ref ended with {child.code}")
        notes.forget(note)
        child.close_input()
        self._update = None
        self._spent.append(child)
        if self._durable:
            try:
                flush_file(f"{self._repo.common_dir}/{refs[0]}")
            except OSError as error:
                raise SwapFailed(f"the refs moved, but the disk did not confirm it: {error.strerror}") from None

    def ahead(self, operations: "Sequence[Operation]") -> "Ahead | None":
        """Begin a swap that may not be wanted. Any other swap ends it. None where it cannot be had; the swap itself may tell why."""
        if self._durable or not operations or any("\n" in op.ref or " " in op.ref for op in operations):
            return None
        from gitcoord.store.ahead import Ahead

        try:
            child, notes = self._writer(), self._write_parts()[1]
            deletes = any(isinstance(op, Delete) for op in operations)
            note = notes.note(child.pid, [op.ref for op in operations], deletes=deletes)
        except (OSError, StoreError):
            return None
        self._update = None
        self._spent.append(child)
        lines = ["start", *(_line(operation, self.oid_length) for operation in operations)]
        child.send(("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
        return Ahead(child, notes, note, operations)

    def set_aside_broken(self, names: "Sequence[str]") -> "list[RefName]":
        todo, moved = list(names), []
        while todo:
            name = todo.pop()
            path = f"{self._repo.common_dir}/{name}"
            if is_directory(path):
                todo += [f"{name}/{entry}" for entry in posix.listdir(path)]
            elif self._is_loose(name) and not name.endswith(".lock") and self.resolve([name])[0] is None:
                aside = f"{self._repo.scratch}/broken"
                make_directory(aside)
                posix.rename(path, free_name(f"{aside}/{name.replace('/', '%')}"))
                moved.append(name)
        return moved

    def maintain(self) -> None:
        # Nothing in update-ref ever packs, and a claim leaves about ten loose objects. git decides, in the background.
        child = Child(["git", "-c", "gc.autoDetach=true", "gc", "--auto", "--quiet"], self._repo.env)
        child.close_input()
        self._spent.append(child)

    def recover(self, operations: "Sequence[Operation]") -> bool:
        return self._write_parts()[1].recover([operation.ref for operation in operations])

    def close(self) -> None:
        for child in (self._cat, self._update, *self._spent):
            if child is not None:
                child.close()
        self._cat = self._update = None
        self._spent.clear()


def _line(operation: "Operation", oid_length: int) -> str:
    if isinstance(operation, Create):
        return f"create {operation.ref} {operation.new}"
    if isinstance(operation, Update):
        return f"update {operation.ref} {operation.new} {operation.expected}"
    if isinstance(operation, Delete):
        return f"delete {operation.ref} {operation.expected}"
    assert isinstance(operation, Verify)
    return f"verify {operation.ref} {operation.expected or '0' * oid_length}"

"""Reading by git's own plumbing: what lies loose directly, everything else by one `cat-file --batch-command`."""

from __future__ import annotations

from gitcoord.base.errors import StoreError
from gitcoord.base.names import Oid, RefName, is_oid
from gitcoord.git.files import exists, fingerprint
from gitcoord.git.process import ORIGINAL, Child
from gitcoord.git.repo import Repo
from gitcoord.git.store import Object
from gitcoord.startup.annotations import Callable, Sequence, TypeVar

UNSURE = "?"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.loose_reader import LooseReader

    T = TypeVar("T")

_FEW = 64


class PlumbingReader:
    """Implements Reader on a repository on disk. One thread at a time."""

    def __init__(self, repo: Repo) -> None:
        self.oid_length = 40
        self._repo = repo
        self._cat: Child | None = None
        self._packed: tuple[int, ...] = ()
        self._loose: LooseReader | None = None

    def replay_redo_log(self) -> bool:
        """A reader has no redo log."""
        return False

    def _reader(self) -> Child:
        """A git that has been running takes a new packed-refs for the old one if inode, size and second agree."""
        packed = fingerprint(self._repo.common_dir + "/packed-refs")
        if self._cat is not None and packed != self._packed:
            self._cat.close()
            self._cat = None
        if self._cat is None:
            self._packed = packed
            self._cat = Child([*ORIGINAL, "cat-file", "--batch-command", "--buffer"], self._repo.env)
        return self._cat

    def refresh(self) -> None:
        if self._loose is not None:
            self._loose.forget()
        if self._cat is not None:
            self._cat.close()
            self._cat = None

    def read(self, names: Sequence[str]) -> list[Object | None]:
        return self._retried_after_replay(names, lambda: self._found(names))

    def _retried_after_replay(self, names: Sequence[str], ask: Callable[[], list[T | None]]) -> list[T | None]:
        """The answer. Where an object is missing, the redo log is replayed and the question repeated."""
        trouble, found = None, []
        try:
            found = ask()
        except StoreError as error:
            trouble = error
        if (trouble is not None or self._misses(names, found)) and self.replay_redo_log():
            return ask()
        if trouble is not None:
            raise trouble
        return found

    def _misses(self, names: Sequence[str], found: Sequence[object]) -> bool:
        """Return whether an object is missing that something leads to. A missing ref does not count."""
        lacking = [name for name, obj in zip(names, found) if obj is None]
        return any(is_oid(name) or self._loose and self._loose.ref(name) not in (None, UNSURE) for name in lacking)

    def _found(self, names: Sequence[str]) -> list[Object | None]:
        if self._loose is None or len(names) > _FEW:
            return self._read(names)
        oids = self._loose.ids(names)
        found = [None if oid is None else self._loose.object(oid) for oid in oids] if oids is not None else []
        lacking = [oid for oid, obj in zip(oids or (), found) if oid is not None and obj is None]
        if oids is not None and not lacking:
            return found
        wanted = lacking if oids is not None else names
        answers = self._read(wanted)
        self._loose.keep(answers)
        if oids is None:
            return answers
        return [None if oid is None else obj or answers[lacking.index(oid)] for oid, obj in zip(oids, found)]

    def _read(self, names: Sequence[str]) -> list[Object | None]:
        found = [self._object(child) for child in self._asked("contents", names)]
        impostors = self._impostors([name for name, obj in zip(names, found) if obj is not None])
        return [None if name in impostors else obj for name, obj in zip(names, found)] if impostors else found

    def target(self, ref: RefName) -> Oid | None:
        oid = self._loose.ref(ref) if self._loose is not None else UNSURE
        return self._resolve([ref])[0] if oid == UNSURE else oid

    def resolve(self, names: Sequence[str]) -> list[Oid | None]:
        if self._loose is not None and len(names) <= _FEW:
            oids = self._loose.ids(names)
            if oids is not None and all(oid is None or self._loose.object(oid) is not None for oid in oids):
                return oids
        return self._retried_after_replay(names, lambda: self._resolve(names))

    def _resolve(self, names: Sequence[str]) -> list[Oid | None]:
        found = [self._header(child)[0] for child in self._asked("info", names)]
        impostors = self._impostors([name for name, oid in zip(names, found) if oid is not None])
        return [None if name in impostors else oid for name, oid in zip(names, found)] if impostors else found

    def headers(self, names: Sequence[str]) -> list[tuple[Oid | None, str, int]]:
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
        return exists(f"{self._repo.common_dir}/{name}")

    def _asked(self, verb: str, names: Sequence[str]) -> list[Child]:
        """Send all questions at once; the answers come in the same order."""
        if not names:
            return []
        if any("\n" in name or "\0" in name for name in names):
            raise StoreError("a name that is to be read holds a line end")
        child = self._reader()
        lines = [f"{verb} {name}\n" for name in names]
        child.send(("".join(lines) + "flush\n").encode("utf-8", "surrogateescape"))
        return [child] * len(names)

    def _header(self, child: Child) -> tuple[Oid | None, str, int]:
        line = child.line()
        if line is None:
            complaint = child.complaint()
            self._cat = None
            raise StoreError(f"git cannot read this repository: {complaint or 'cat-file ended'}")
        words = line.decode("utf-8", "surrogateescape").split(" ")
        if len(words) != 3 or words[-1] in ("missing", "ambiguous"):
            return None, "", 0
        return words[0], words[1], int(words[2])

    def _object(self, child: Child) -> Object | None:
        oid, kind, size = self._header(child)
        if oid is None:
            return None
        data = child.exactly(size + 1)
        if data is None:
            complaint = child.complaint()
            self._cat = None
            raise StoreError(f"git cannot read object {oid}: {complaint}")
        return Object(oid, kind, data[:-1])

    def list_refs(self, prefix: str) -> dict[RefName, Oid]:
        return self._refs([prefix])

    def _refs(self, patterns: list[str]) -> dict[RefName, Oid]:
        from gitcoord.git.commands.refs import for_each_ref

        answer = for_each_ref(self._repo.env, *patterns).require("git cannot list refs", StoreError)
        return {name: oid for oid, _, name in (line.partition(" ") for line in answer.lines)}

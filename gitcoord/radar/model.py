"""Work under way and the conflicts between two pieces of it: which of them are compared, what git's answers mean, and the words for it."""

from __future__ import annotations

from gitcoord.base.codec import VERSION, Record, Shape, check
from gitcoord.base.names import ancestors, printable, shell_word
from gitcoord.startup.annotations import Iterable, Sequence
from gitcoord.startup.namedtuple import NamedTuple

SHOWN_LINES = 5  # ranges of lines of one file that are kept
_NAMED = 3  # files of a pair that are named

Lines = list[list[int]]  # [first, last] of each range, from 1 on


class LeftOut(NamedTuple):
    """An uncommitted file that was not looked into."""

    path: str
    why: str


class Work(NamedTuple):
    """One piece of work that has not landed: a work tree with what is not committed there, a branch, or one that was pushed."""

    agent: str  # '' where nobody is known
    branch: str  # '' where none is checked out
    tree: str  # the directory of the work tree; '' for a branch that is checked out nowhere
    remote: str  # of a branch that others pushed; '' for one that is here
    ref: str  # full name; '' where no branch is checked out
    head: str
    git_dir: str = ""  # of the work tree
    at: int = 0  # when its last commit was made
    operation: str = ""  # under way in the work tree: only what is committed counts
    committed: frozenset[str] = frozenset()  # the files that differ from trunk where it left it
    uncommitted: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def paths(self) -> frozenset[str]:
        return self.committed.union(self.uncommitted)


_SIDE: dict[str, Shape] = {
    **dict.fromkeys(("agent", "branch", "tree", "remote", "ref", "head", "git_dir", "stamp"), str),
    "lines": [[int]], "deletes": bool,
}  # fmt: skip


class Side(NamedTuple):
    """One side of a conflict, and what the finding rests on: the commit, and the file as it is in the work tree."""

    agent: str
    branch: str
    tree: str
    remote: str
    ref: str
    head: str
    git_dir: str
    stamp: str
    lines: Lines
    deletes: bool = False

    @classmethod
    def of(cls, work: Work, stamp: str, lines: Lines, *, deletes: bool) -> Side:
        return cls(*work[:7], stamp, lines, deletes)

    @property
    def label(self) -> str:
        """The branch, or the work tree where none is checked out."""
        if not self.branch:
            return f"work tree {self.tree.rpartition('/')[2]}"
        return f"{self.remote}/{self.branch}" if self.remote else self.branch

    @property
    def name(self) -> str:
        return f"{self.agent} ({self.label})" if self.agent else self.label

    def to_json(self) -> Record:
        row = {key: getattr(self, key) for key in ("agent", "branch", "tree", "remote", "lines", "deletes")}
        return {**row, "commit": self.head}


class Conflict(NamedTuple):
    """One file in which two pieces of work conflict. `how`: git's word for it, such as contents, add/add, binary or modify/delete."""

    path: str
    how: str
    sides: tuple[Side, Side]

    @classmethod
    def from_record(cls, record: Record) -> Conflict:
        check(record, {"path": str, "how": str, "sides": [_SIDE]}, "a conflict")
        one, other = (Side(*(row[key] for key in Side._fields)) for row in record["sides"])
        return cls(record["path"], record["how"], (one, other))

    def to_record(self) -> Record:
        return {"v": VERSION, "path": self.path, "how": self.how, "sides": [side._asdict() for side in self.sides]}

    def to_json(self) -> Record:
        sides = [side.to_json() for side in self.sides]
        return {"path": self.path, "how": self.how, "sides": sides, "message": sentence([self])}

    @property
    def pair(self) -> tuple[str, str]:
        return self.sides[0].name, self.sides[1].name

    @property
    def key(self) -> str:
        """The same finding in another look: as long as both go on conflicting there."""
        return "\n".join((*sorted(f"{side.ref} {side.tree}" for side in self.sides), self.path))


# --- which are compared ------------------------------------------------------------------------------------------------


def distinct(works: Iterable[Work]) -> list[Work]:
    """Each branch once: as it is checked out, else as it is here or at the remote, whichever has the newer commit."""
    found: dict[str, Work] = {}
    for work in works:
        key = work.branch or f"\0{work.tree}"
        other = found.get(key)
        if other is None or (not other.tree and (bool(work.tree), work.at) > (bool(other.tree), other.at)):
            found[key] = work
    return sorted(found.values(), key=lambda work: (-work.at, work.branch, work.tree))


def pairs_that_meet(works: Sequence[Work]) -> list[tuple[int, int, list[str]]]:
    """The pairs of these, the newest first, whose changed files meet, and where: one file, or one below the other's."""
    having: dict[str, set[int]] = {}
    below: dict[str, set[int]] = {}
    for at, work in enumerate(works):
        for path in work.paths:
            having.setdefault(path, set()).add(at)
            for above in ancestors(path):
                below.setdefault(above, set()).add(at)
    found: dict[tuple[int, int], set[str]] = {}
    for path, own in having.items():
        near = own | below.get(path, set())
        for one in own:
            for other in near - {one}:
                found.setdefault((min(one, other), max(one, other)), set()).add(path)
    return [(*pair, sorted(paths)) for pair, paths in sorted(found.items())]


# --- what git says -----------------------------------------------------------------------------------------------------


class Merged(NamedTuple):
    """The answer of a merge in memory. `entries`: of each conflicting path the ids by stage; `kinds`: git's words for it."""

    tree: str
    entries: dict[str, dict[int, str]]
    kinds: dict[str, list[str]]

    @property
    def paths(self) -> list[str]:
        """The conflicting paths; where git lists none, those that it speaks of."""
        return sorted(self.entries or self.kinds)

    def how(self, path: str) -> str:
        kinds = self.kinds.get(path, [])
        if "binary" in kinds:
            return "binary"
        if set(self.entries.get(path, ())) == {2, 3} and kinds in ([], ["contents"]):
            return "add/add"
        return kinds[0] if kinds else "contents"


def parse_merge(out: str) -> Merged:
    """Read the output of `merge_trees`; ValueError where it is something else."""
    tree, *words = out.split("\0")
    rest = iter(words)
    entries: dict[str, dict[int, str]] = {}
    for entry in rest:
        if not entry:
            break
        about, _, path = entry.partition("\t")
        _, oid, stage = about.split(" ")
        entries.setdefault(path, {})[int(stage)] = oid
    kinds: dict[str, list[str]] = {}
    for count in rest:
        if not count:
            break
        paths = [next(rest, "") for _ in range(int(count))]
        kind = next(rest, "")
        next(rest, "")  # its words
        if kind.startswith("CONFLICT"):
            for path in paths:
                kinds.setdefault(path, []).append(kind.removeprefix("CONFLICT").strip(" ()"))
    return Merged(tree, entries, kinds)


class Hunk(NamedTuple):
    """Lines that one side changes: [start, end) of the base from 0 on, its own first line and how many, and what it writes there."""

    start: int
    end: int
    first: int
    size: int
    text: tuple[str, ...]


def hunks(diff: str) -> list[Hunk]:
    """The hunks of a diff without lines around them."""
    found: list[Hunk] = []
    text: list[str] = []
    for line in diff.split("\n"):
        if line.startswith("@@ -"):
            before, after = line.split(" ")[1:3]
            (old, size), (new, count) = map(_range, (before, after))
            start = old - 1 if size else old
            text = []
            found.append(Hunk(start, start + size, new, count, ()))
        elif found and line.startswith("+"):
            text.append(line)
            found[-1] = found[-1]._replace(text=tuple(text))
    return found


def _range(words: str) -> tuple[int, int]:
    first, _, count = words[1:].partition(",")
    return int(first), int(count or 1)


def clashing(ours: Iterable[Hunk], theirs: Sequence[Hunk]) -> tuple[Lines, Lines]:
    """The lines of each side in hunks that overlap or touch and are not the same change."""
    one: list[Hunk] = []
    other: list[Hunk] = []
    for mine in ours:
        near = [hunk for hunk in theirs if mine.start <= hunk.end and hunk.start <= mine.end]
        if any((hunk.start, hunk.end, hunk.text) != (mine.start, mine.end, mine.text) for hunk in near):
            one.append(mine)
            other += near
    return lines_of(one), lines_of(other)


def lines_of(found: Iterable[Hunk]) -> Lines:
    """The side's own lines, in order; of a deletion the line before it. The first ranges."""
    ranges: Lines = []
    for first, last in sorted({(max(1, h.first), max(1, h.first, h.first + h.size - 1)) for h in found}):
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1][1] = max(last, ranges[-1][1])
        else:
            ranges.append([first, last])
    return ranges[:SHOWN_LINES]


# --- words -------------------------------------------------------------------------------------------------------------


def by_pair(conflicts: Iterable[Conflict]) -> list[list[Conflict]]:
    """The conflicts of each two pieces of work, in order."""
    found: dict[tuple[str, ...], list[Conflict]] = {}
    for row in conflicts:
        found.setdefault(tuple(f"{side.ref}\0{side.tree}" for side in row.sides), []).append(row)
    return list(found.values())


def sentence(rows: Sequence[Conflict]) -> str:
    """The conflicts of one pair in a sentence."""
    one, other = rows[0].pair
    files = ", ".join(where(row) for row in rows[:_NAMED])
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return f"{one} and {other} will conflict in {files}{more}"


def where(row: Conflict) -> str:
    """The file, and what each side does there."""
    one, other = row.sides
    deleting = next((side.name for side in row.sides if side.deletes), "")
    if deleting:
        changing = next(side.name for side in row.sides if not side.deletes)
        return f"{row.path} ({deleting} removes it, {changing} changes it)"
    if one.lines and other.lines and row.how == "contents":
        if one.lines == other.lines:
            return f"{row.path} {_line_words(one.lines)}"
        return f"{row.path} ({_line_words(one.lines)} of {one.label}, {_line_words(other.lines)} of {other.label})"
    words = {"contents": "", "add/add": "both add it", "binary": "both change it, and it is binary"}
    said = words.get(row.how, row.how)
    return f"{row.path} ({said})" if said else row.path


def _line_words(lines: Lines) -> str:
    parts = [str(first) if first == last else f"{first}-{last}" for first, last in lines]
    return f"line{'s' * (len(lines) > 1 or lines[0][0] != lines[0][1])} {', '.join(parts)}"


def helps(path: str) -> list[str]:
    """The ways out, for the two agents."""
    return [
        "land first: commit, then git coord land; the other then brings it in: git coord sync --pull",
        f"or wait until the other has landed: git claim --wait 30m {shell_word(path)}",
        "or give your part to the other: git handoff new",
    ]


def told_lines(rows: Sequence[Conflict]) -> list[str]:
    """The conflicts of one pair for one of its agents."""
    first, *ways = helps(rows[0].path)
    return [f"{printable(sentence(rows))}: {first}, {'; '.join(ways)}"]

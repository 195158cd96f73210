"""A history and a ledger written by hand, for the judge alone: what git would say of them is worked out here.

A commit's id is any word. A file's content is a word too, and its own blob: git merges it letter by letter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gitcoord.base.codec import VERSION
from gitcoord.base.names import claim_file, fold
from gitcoord.claims.released import lineage_file
from gitcoord.gates.judge import Change, CommitChange, Verdict, judge
from gitcoord.ledger.sessions import Actor, Agent, Heartbeat, Seen
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World as Outside
from gitcoord.policy.model import Attributes, Policy
from gitcoord.policy.parse import parse_policy
from tests.ledger.world import World
from tests.support import BOOT, START

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitcoord.base.codec import Record

FILE, NOTHING = "100644", "000000"
Tree = dict[str, tuple[str, str]]
NONE = (NOTHING, "")


class Past(Outside):
    """Commits, and git's answers about them: a `History`. Also the heartbeats for the judge's world."""

    def __init__(self) -> None:
        super().__init__(START, 1_000_000, BOOT)
        self.beats: dict[str, Heartbeat | None] = {}
        self.told: dict[tuple[str, ...], bool] = {}  # answers that a test sets
        self.trees: dict[str, Tree] = {"": {}}
        self.parents: dict[str, tuple[str, ...]] = {}
        self.asked: list[tuple[str, str]] = []
        self.tried: list[str] = []  # merges that were tried for a hint
        self.clashes: dict[str, list[str]] = {}

    def commit(
        self, oid: str, files: dict[str, str | None], *parents: str, agent: str = "", mode: str = FILE
    ) -> CommitChange:
        """A commit that leaves these files; of the rest, what a merge of its parents leaves, or the first parent has."""
        tree = self._merge_of(parents)
        for path, text in files.items():
            tree.pop(path, None)
            if text is not None:
                tree[path] = (mode, text)
        self.trees[oid], self.parents[oid] = tree, parents
        before = self._merge_of(parents) if len(parents) > 1 else self.trees[parents[0] if parents else ""]
        clean = len(parents) < 2 or self._merged(*parents) is not None
        touched = [p for p in {*tree, *before} if tree.get(p) != before.get(p) or (not clean and p in files)]
        return CommitChange(oid, parents, agent, tuple(Change(path, *tree.get(path, NONE)) for path in sorted(touched)))

    def index(self, files: dict[str, str | None], *parents: str) -> CommitChange:
        """The same, staged and not committed."""
        step = self.commit("staged", files, *parents)
        del self.trees["staged"], self.parents["staged"]
        return step._replace(oid="")

    def _merge_of(self, parents: tuple[str, ...]) -> Tree:
        merged = self._merged(*parents) if len(parents) == 2 else None
        return dict(self.trees[parents[0] if parents else ""] if merged is None else merged)

    # --- what git tells

    def heartbeat(self, agent: str) -> Heartbeat | None:
        return self.beats.get(agent)

    def first_seen(self, agent: str) -> Seen | None:
        return None

    def left_again(self, at: str, path: str, mode: str, blob: str, bases: list[str]) -> bool:
        return self.told["left again", at, path, mode, blob, *bases]

    def conflicts(self, at: str, theirs: str) -> list[str]:
        self.tried.append(theirs)
        return self.clashes.get(theirs, [])

    def changes_attributes(self, parent: str, path: str, blob: str) -> bool:
        return self.told["attributes", parent, path, blob]

    def before(self, oid: str) -> set[str]:
        """The commit and all below it."""
        return {oid}.union(*(self.before(parent) for parent in self.parents[oid])) if oid else set()

    def is_ancestor(self, old: str, new: str) -> bool:
        self.asked.append(("ancestor", old))
        return self.told.get(("ancestor", old, new), False) or old in self.before(new)

    def contained(self, at: str, commits: list[str]) -> dict[str, bool]:
        self.asked.append(("contained", at))
        return {commit: commit in self.before(at) for commit in commits if commit in self.parents}

    def containing(self, old: str, commits: list[str]) -> dict[str, bool]:
        self.asked.append(("containing", old))
        return {commit: old in self.before(commit) for commit in commits if commit in self.parents}

    def at(self, oid: str, path: str) -> list[str]:
        return list(self.trees[oid].get(path, NONE))

    def _base(self, one: str, other: str) -> str:
        common = self.before(one) & self.before(other)
        return next((c for c in sorted(common) if not any(c in self.before(o) for o in common - {c})), "")

    def _merged(self, ours: str, theirs: str, path: str = "", base: str | None = None) -> Any:
        """The tree of a clean merge, or what it has at a path; None where it is not clean."""
        below = self.trees[self._base(ours, theirs) if base is None else base]
        tree: Tree = {}
        for name in {*self.trees[ours], *self.trees[theirs], *below}:
            sides = (below.get(name, NONE), self.trees[ours].get(name, NONE), self.trees[theirs].get(name, NONE))
            left = _merge_file(*sides)
            if left is None:
                return None
            if left != NONE:
                tree[name] = left
        return list(tree.get(path, NONE)) if path else tree

    def merged(self, ours: str, theirs: str, path: str) -> list[str] | None:
        found: list[str] | None = self._merged(ours, theirs, path)
        return found

    def picked(self, onto: str, commit: str, path: str) -> list[str] | None:
        found: list[str] | None = self._merged(onto, commit, path, (*self.parents[commit], "")[0])
        return found

    def work(self, base: str, commit: str, path: str) -> list[list[str]]:
        return [
            [oid, *self.at(oid, path)]
            for oid in sorted(self.before(commit) - self.before(base), reverse=True)
            if all(self.at(oid, path) != self.at(parent, path) for parent in self.parents[oid] or ("",))
        ]

    def had(self, released: str, at: str, path: str, mode: str, blob: str) -> bool:
        since = self.work(self._base(released, at), at, path)
        return any(row[1:] == [mode, blob] for row in since)

    def absent(self, commits: list[str]) -> set[str]:
        return {commit for commit in commits if commit not in self.parents}

    def stand_in(self, base: str, path: str, mode: str, blob: str) -> str:
        tips = sorted(oid for oid in self.parents if oid.startswith("m"))
        rows = self.work(base, tips[-1], path) if tips else []
        return next((oid for oid, *left in reversed(rows) if left == [mode, blob]), "")


def _merge_file(base: tuple[str, str], ours: tuple[str, str], theirs: tuple[str, str]) -> tuple[str, str] | None:
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if NONE in (base, ours, theirs) or not len(base[1]) == len(ours[1]) == len(theirs[1]):
        return None
    letters = ""
    for below, mine, other in zip(base[1], ours[1], theirs[1]):
        if below not in (mine, other) and mine != other:
            return None
        letters += other if mine == below else mine
    return FILE, letters


class Watched(State):
    """A whole state that notes what it is asked for."""

    __slots__ = ("asked",)

    def __init__(self, files: dict[str, Record | None]) -> None:
        super().__init__(files)
        self.asked: list[tuple[str, str]] = []

    def get(self, key: str) -> Record | None:
        self.asked.append(("get", key))
        return super().get(key)

    def leaves(self, directory: str) -> dict[str, Record]:
        self.asked.append(("leaves", directory))
        return super().leaves(directory)

    def below(self, directory: str) -> dict[str, Record]:
        self.asked.append(("below", directory))
        return super().below(directory)


class Ledger:
    """The ledger's state, record by record."""

    def __init__(self, past: Past, *, fold_case: bool = False) -> None:
        self.past = past
        self.state = Watched(World(fold_case=fold_case).state.files)
        self.case = fold_case

    def claim(self, path: str, agent: str, mode: str = "write", *, silent: bool = False) -> None:
        record = {
            "v": VERSION, "path": path, "space": "path", "agent": agent, "session": 1, "mode": mode, "token": 1,
            "ttl": 1800, "expected": 0, "reason": "", "task": "", "base": "", "nonce": "n", "at": START, "units": 1,
        }  # fmt: skip
        self.state.load_file(claim_file("path", fold(path, case=self.case), agent), record)
        mono = self.past.mono - (10_000_000 if silent else 0)
        self.past.beats[agent] = Heartbeat("b" * 40, agent, BOOT, 1, mono, START, 30_000)

    def kill(self, agent: str) -> None:
        self.state.load_file(f"agents/{agent}", Agent(agent, 1, "killed", "", "", START, (), []).to_record())
        self.past.beats[agent] = None

    def release(self, path: str, commit: str, base: str, seq: int, agent: str = "bob") -> None:
        """Record that the content of `commit` at the path was released by a claim taken at `base`."""
        mode, blob = self.past.trees[commit].get(path, NONE)
        record = {
            "v": VERSION, "path": path, "commit": commit, "mode": mode, "blob": blob, "seq": seq, "agent": agent,
            "token": 1, "base": base,
        }  # fmt: skip
        self.state.load_file(lineage_file(self.state, path, seq), record)

    def verdicts(
        self, *steps: CommitChange, actor: Actor | str = "ann", policy: Policy | None = None, shared: Iterable[str] = (),
        classes: dict[str, Attributes] | None = None, readers: Iterable[str] = (),
    ) -> list[Verdict]:  # fmt: skip
        """The verdicts on these steps; `shared` paths need a claim, `classes` are further attributes of paths."""
        named = dict.fromkeys(shared, Attributes(claim=True)) | (classes or {})
        paths = {change.path for step in steps for change in step.changes}
        policy = (policy or parse_policy(()))._replace(attributes={p: named.get(p, Attributes()) for p in paths})
        actor = Actor(actor) if isinstance(actor, str) else actor
        return judge(self.state, self.past, self.past, policy, actor, list(steps), readers)

    def rules(self, *steps: CommitChange, **more: Any) -> list[tuple[str, str]]:
        """The same, as (rule, path)."""
        return [(verdict.rule, verdict.path) for verdict in self.verdicts(*steps, **more)]

"""Lineage: a change must contain the last released work on its path, across branches.

Each release left, for every file it changed, a record of commit, mode and blob. A change passes with respect to a record if
the record's work is contained where the change starts: the released commit is an ancestor there, or some commit since the
merge base had exactly its mode and blob, or a clean merge with it changes nothing at that path, or one of these holds for a
later release that was built upon it. What is itself released work (the released commits, a squash, a rebase or a merge of
them) brings its record along. And a merge among the steps that are judged, above the change, may bring it in afterwards.
"""

from __future__ import annotations

from gitcoord.base.names import ROOT
from gitcoord.claims.model import Item, key_of
from gitcoord.claims.released import lineage_dir, released_at, released_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from gitcoord.claims.released import Released
    from gitcoord.gates.judge import Change, CommitChange
    from gitcoord.ledger.state import State

    class History(Protocol):
        """What the judge asks about commits. A file is [mode, blob]; no blob: nothing. CouldNotJudge where git cannot tell."""

        def is_ancestor(self, old: str, new: str) -> bool:
            """Does `new` contain `old`?"""

        def contained(self, at: str, commits: list[str]) -> dict[str, bool]:
            """Does `at` contain each of these? A commit that is left out must be asked for by itself, and may not be known."""

        def containing(self, old: str, commits: list[str]) -> dict[str, bool]:
            """Does each of these, of which `old` is none, contain `old`? What is left out as above."""

        def at(self, tree: str, path: str) -> list[str]:
            """The file at a path of a commit or tree."""

        def work(self, base: str, commit: str, path: str) -> list[list[str]]:
            """[commit, mode, blob] of what each commit since `base` left at the path."""

        def had(self, released: str, at: str, path: str, mode: str, blob: str) -> bool:
            """Did some commit of `at`, since the merge base with the release, have exactly its file?"""

        def left_again(self, at: str, path: str, mode: str, blob: str, bases: list[str]) -> bool:
            """Did some commit of `at` since the bases have this file, and is something else there now?"""

        def merged(self, ours: str, theirs: str, path: str) -> list[str] | None:
            """The file that a clean merge leaves; None where it is not clean."""

        def picked(self, onto: str, commit: str, path: str) -> list[str] | None:
            """The file that a clean cherry-pick leaves; None where it is not clean."""

        def changes_attributes(self, parent: str, path: str, blob: str) -> bool:
            """Does this version of an attributes file change anything that gitcoord reads?"""


_FEW = 16
_TRIED = 64
_FEW_COMMITS = 4


class Lineages:
    def __init__(self, state: State, history: History, steps: list[CommitChange], keys: dict[str, str]) -> None:
        self._state = state
        self._history = history
        self._steps = steps
        self._records: dict[str, list[Released]] = {}
        self._sources: dict[tuple[str, str], Released | None] = {}
        if len(keys) > _FEW:
            paths: dict[str, list[str]] = {}
            for path, key in keys.items():
                paths.setdefault(key, []).append(path)
            for record in released_below(state, ROOT):
                for path in paths.get(key_of(state, Item("path", record.path)), ()):
                    self._records.setdefault(path, []).append(record)
        else:
            state.prefetch(("leaves", lineage_dir(state, path)) for path in keys)
            for path in keys:
                self._records[path] = released_at(state, path)
        for records in self._records.values():
            records.sort(key=lambda record: -record.seq)
        self._commits = {record.commit for records in self._records.values() for record in records}
        self._ancestry: dict[tuple[str, str], bool] = {}  # (new, old): is old part of new?
        self._first = {path: self._first_touching(steps, path) for path in self._records}

    def source(self, step: CommitChange, change: Change) -> Released | None:
        """The release that this change lands, if it lands one: the newest whose content it leaves."""
        key = step.oid, change.path
        if key not in self._sources:
            records = self._records.get(change.path, ())
            self._sources[key] = next((record for record in records if self._lands(step, change, record)), None)
        return self._sources[key]

    def _lands(self, step: CommitChange, change: Change, record: Released) -> bool:
        left = [change.mode, change.blob]
        work = self._work(record, change.path)
        if self._is_part(step, record):
            return left in [[mode, blob] for _, mode, blob in work]
        having = [parent for parent in step.parents if self._landed(parent, record)]
        if having:
            # There already: this would be a way back to it, which needs a claim. Unless a merge brings it: then what it
            # leaves is what that side has.
            brings = len(having) < len(step.parents)
            return brings and any(self._history.at(parent, change.path) == left for parent in having)
        if self._outside(step, record, [commit for commit, mode, blob in work if [mode, blob] == left]):
            return True
        return any(
            way(parent, commit, change.path) == left
            for way in (self._history.merged, self._history.picked)
            for commit in self._outside(step, record, [commit for commit, _, _ in work[:_TRIED]])
            for parent in step.parents
        )

    def _outside(self, step: CommitChange, record: Released, commits: list[str]) -> list[str]:
        """Those of a record's commits that no parent of the step contains; the record's own is known to be among these.

        What is there already is not landed by the step: it would be a way back. After a rebase or a merge the work of others
        that landed since the base is among what was released.
        """
        inner = sorted({commit for commit in commits if commit != record.commit})
        inside: set[str] = set()
        for parent in step.parents if inner else ():
            found = self._history.contained(parent, inner)
            inside.update(commit for commit, is_in in found.items() if is_in)
        return [commit for commit in commits if commit not in inside]

    def _work(self, record: Released, path: str) -> list[list[str]]:
        """What was released: [commit, mode, blob] of each commit between base and release that touches the path."""
        found = self._history.work(record.base, record.commit, path)
        return [[record.commit, record.mode, record.blob], *found]

    def lacking(self, step: CommitChange, change: Change, source: Released | None) -> Released | None:
        """The released work on this path that is not contained where the change starts.

        Released work needs to contain only what was released before it: the later work is asked when it lands.
        """
        if step.oid not in self._first.get(change.path, ()):
            return None  # it builds on a step that was judged
        records = self._records[change.path]
        source = next((record for record in records if self._is_part(step, record)), source)
        for record in records:
            if source is not None and record.seq >= source.seq:
                continue
            places = [*step.parents, *([source.commit] if source is not None else ())]
            if not any(self._contained(place, record) for place in places) and not self._joined(
                step, change.path, record
            ):
                return record
        return None

    def _joined(self, step: CommitChange, path: str, record: Released) -> bool:
        """Does a later step merge this one with something that contains the record's work?

        It counts if git made the merge alone at that path, or if what it leaves there is work of its own, for which a claim
        is needed: not if it takes one released side and so drops the other.
        """
        above = {step.oid}
        for later in self._steps[self._steps.index(step) + 1 :]:
            sides = [parent for parent in later.parents if parent not in above]
            if len(sides) == len(later.parents):
                continue
            above.add(later.oid)
            change = _at(later, path)
            if change is not None and self.source(later, change) is not None:
                continue
            if any(self._contained(side, record) for side in sides):
                return True
        return False

    def _is_part(self, step: CommitChange, record: Released) -> bool:
        """One of the commits that were released."""
        return bool(step.oid) and self._contains(record.commit, step.oid)

    def _contains(self, new: str, old: str) -> bool:
        """Is `old` an ancestor of `new`? One of them is a release; where there are many, all are asked for at once."""
        if (new, old) not in self._ancestry:
            if len(self._commits) > _FEW_COMMITS:
                self._ask_for_all(new, old)
            if (new, old) not in self._ancestry:
                self._ancestry[new, old] = self._history.is_ancestor(old, new)
        return self._ancestry[new, old]

    def _ask_for_all(self, new: str, old: str) -> None:
        if old in self._commits:
            found = self._history.contained(new, sorted(self._commits))
            self._ancestry.update({(new, commit): is_in for commit, is_in in found.items()})
        else:
            found = self._history.containing(old, sorted(self._commits))
            self._ancestry.update({(commit, old): is_in for commit, is_in in found.items()})

    def _landed(self, at: str, record: Released) -> bool:
        path, commit = record.path, record.commit
        if self._contains(at, commit):
            return True
        return self._history.had(commit, at, path, record.mode, record.blob)

    def _contained(self, at: str, record: Released) -> bool:
        if self._landed(at, record):
            return True
        there = self._history.at(at, record.path)
        if self._history.merged(at, record.commit, record.path) == there:
            return True
        # Later work was built upon it, and landed: squashed, so that nothing of this one can be seen any more.
        records = self._records.get(record.path, ())
        upon = [r for r in records if r.seq > record.seq and self._contains(r.commit, record.commit)]
        return any(self._landed(at, later) for later in upon)

    def _first_touching(self, steps: list[CommitChange], path: str) -> set[str]:
        """The steps that build on no other one that was asked for all of what was released there. Steps come parents first.

        Released work was asked only for what was released before it, so whatever builds on it is asked anew.
        """
        first: set[str] = set()
        after: set[str] = set()
        for step in steps:
            builds = any(parent in after for parent in step.parents)
            change = _at(step, path)
            if not builds:
                first.add(step.oid)
            if builds or (change is not None and self.source(step, change) is None):
                after.add(step.oid)
        return first


def _at(step: CommitChange, path: str) -> Change | None:
    """What a step changes at a path."""
    return next((change for change in step.changes if change.path == path), None)

"""Lineage: a change must contain the last released work on its path, across branches.

A release records commit, mode and blob of every file that it changed. A parent of a change contains a release if the
released commit is an ancestor of it, or some commit since the merge base had exactly the released mode and blob, or a clean
merge with the release changes nothing at the path, or one of these holds for a later release that was built on it. Where the released
commit is not here, as after a squash whose branch is deleted, the commit of trunk that has exactly the released file stands for it. Released
work itself (the released commits, or a squash, rebase or merge of them) needs to contain only earlier releases. A merge above
the change, among the commits that are judged, may also bring the release in.
"""

from __future__ import annotations

from gitcoord.base.names import ROOT
from gitcoord.claims.model import Item, key_of
from gitcoord.claims.released import Released, lineage_dir, released_at, released_below
from gitcoord.ledger.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from gitcoord.gates.judge import Change, CommitChange

    class History(Protocol):
        """The questions of the judge about commits. A file is [mode, blob]; the blob is '' where there is none.

        Every method raises CouldNotJudge where git cannot answer.
        """

        def is_ancestor(self, old: str, new: str) -> bool:
            """Return whether `new` contains `old`."""

        def contained(self, at: str, commits: list[str]) -> dict[str, bool]:
            """For each commit whether `at` contains it. Commits that are missing in the answer need `is_ancestor`."""

        def containing(self, old: str, commits: list[str]) -> dict[str, bool]:
            """For each commit, none of them `old`, whether it contains `old`. Missing commits as above."""

        def at(self, tree: str, path: str) -> list[str]:
            """The file at a path of a commit or tree."""

        def work(self, base: str, commit: str, path: str) -> list[list[str]]:
            """[commit, mode, blob] of each commit since `base` that changed the path."""

        def had(self, released: str, at: str, path: str, mode: str, blob: str) -> bool:
            """Return whether a commit of `at`, since the merge base with the release, had exactly the released file."""

        def absent(self, commits: list[str]) -> set[str]:
            """Those commits that are not here, and that no commit here contains."""

        def stand_in(self, base: str, path: str, mode: str, blob: str) -> str:
            """The first commit of trunk since `base` that left exactly this file; '' for none."""

        def left_again(self, at: str, path: str, mode: str, blob: str, bases: list[str]) -> bool:
            """Return whether some commit of `at` since the bases had this file, and `at` has another one now."""

        def merged(self, ours: str, theirs: str, path: str) -> list[str] | None:
            """The file that a clean merge leaves; None where it is not clean."""

        def conflicts(self, at: str, theirs: str) -> list[str]:
            """The files in which merging `theirs` into this commit ('': what is judged, on HEAD) conflicts, as far as that can be told."""

        def picked(self, onto: str, commit: str, path: str) -> list[str] | None:
            """The file that a clean cherry-pick leaves; None where it is not clean."""

        def changes_attributes(self, parent: str, path: str, blob: str) -> bool:
            """Return whether this version of an attributes file changes any `gitcoord-*` attribute."""


_FEW = 16  # above this many paths, all releases are read at once
_TRIED = 64  # commits of a release for which a merge and a cherry-pick are tried
_FEW_COMMITS = 4  # above this many releases, ancestry is asked for all of them in one call of git


class Lineages:
    """The releases of the changed paths, compared with the commits that are judged."""

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
        self._here()
        self._commits = {record.commit for records in self._records.values() for record in records}
        self._ancestry: dict[tuple[str, str], bool] = {}  # (new, old): whether new contains old
        self._first = {path: self._first_touching(steps, path) for path in self._records}

    def source(self, step: CommitChange, change: Change) -> Released | None:
        """The newest release that this change lands, if it lands one."""
        key = step.oid, change.path
        if key not in self._sources:
            records = self._records.get(change.path, ())
            self._sources[key] = next((record for record in records if self._lands(step, change, record)), None)
        return self._sources[key]

    def _here(self) -> None:
        """Let commits of trunk stand for released commits that are not here."""
        commits = {record.commit for rows in self._records.values() for record in rows}
        absent = self._history.absent(sorted(commits)) if commits else set()
        for rows in self._records.values() if absent else ():
            for at, record in enumerate(rows):
                if record.commit in absent:
                    found = self._history.stand_in(record.base, record.path, record.mode, record.blob)
                    rows[at] = record._replace(commit=found or record.commit)

    def _lands(self, step: CommitChange, change: Change, record: Released) -> bool:
        left = [change.mode, change.blob]
        work = self._work(record, change.path)
        if self._is_part(step, record):
            return left in [[mode, blob] for _, mode, blob in work]
        having = [parent for parent in step.parents if self._landed(parent, record)]
        if having:
            # A parent has the release already, so this change would go back to it, which needs a claim. A merge may
            # bring it from one side to the other: it then leaves what that side has.
            brings = len(having) < len(step.parents)
            return brings and any(self._history.at(parent, change.path) == left for parent in having)
        if self._outside(step, record, [commit for commit, mode, blob in work if [mode, blob] == left]):
            return True
        return any(
            result_of(parent, commit, change.path) == left
            for result_of in (self._history.merged, self._history.picked)
            for commit in self._outside(step, record, [commit for commit, _, _ in work[:_TRIED]])
            for parent in step.parents
        )

    def _outside(self, step: CommitChange, record: Released, commits: list[str]) -> list[str]:
        """The commits of a release that no parent of the step contains. The released commit itself is known to be one.

        A commit that a parent contains is not landed by the step: it would go back to it. After a rebase or a merge, a release
        includes work of others that landed since its base.
        """
        inner = sorted({commit for commit in commits if commit != record.commit})
        inside: set[str] = set()
        for parent in step.parents if inner else ():
            found = self._history.contained(parent, inner)
            inside.update(commit for commit, is_in in found.items() if is_in)
        return [commit for commit in commits if commit not in inside]

    def _work(self, record: Released, path: str) -> list[list[str]]:
        """[commit, mode, blob] of each released commit that changed the path, the last one first."""
        found = self._history.work(record.base, record.commit, path)
        return [[record.commit, record.mode, record.blob], *found]

    def lacking(self, step: CommitChange, change: Change, source: Released | None) -> Released | None:
        """The newest release of this path that the change does not build on.

        Released work needs to contain only earlier releases: a later one is compared when it lands itself.
        """
        if step.oid not in self._first.get(change.path, ()):
            return None  # it builds on a commit that is judged too
        records = self._records[change.path]
        source = next((record for record in records if self._is_part(step, record)), source)
        for record in records:
            if source is not None and record.seq >= source.seq:
                continue
            # A branch that leaves its old tip builds on what its new one contains.
            places = [
                *step.parents,
                *([source.commit] if source is not None else ()),
                *([step.oid] if step.dropped else ()),
            ]
            if not any(self._contained(place, record) for place in places) and not self._joined(
                step, change.path, record
            ):
                return record
        return None

    def dropped(self, step: CommitChange, path: str) -> Released | None:
        """The newest release at a path that the parent of this step contains, and the step itself does not."""
        for record in self._records.get(path, ()):
            if any(self._contained(parent, record) for parent in step.parents) and not self._contained(
                step.oid, record
            ):
                return record
        return None

    def lacked(self, at: str) -> list[Released]:
        """Of each path, the newest release that this commit does not contain."""
        lacking = ((record for record in rows if not self._contained(at, record)) for rows in self._records.values())
        return [record for rows in lacking for record in (next(rows, None),) if record is not None]

    def _joined(self, step: CommitChange, path: str, record: Released) -> bool:
        """Return whether a later step merges this one with something that contains the release.

        The merge counts if git alone made it at that path, or if it leaves work of its own there, which needs a claim. It does
        not count if it takes another released side and so drops this one.
        """
        above = {step.oid}
        for later in self._steps[self._steps.index(step) + 1 :]:
            sides = [parent for parent in later.parents if parent not in above]
            if len(sides) == len(later.parents):
                continue
            above.add(later.oid)
            change = _at(later, path)
            source = self.source(later, change) if change is not None else None
            if source is not None and source.seq != record.seq:
                continue
            if any(self._contained(side, record) for side in sides):
                return True
        return False

    def _is_part(self, step: CommitChange, record: Released) -> bool:
        """Return whether the step is one of the released commits."""
        return bool(step.oid) and self._contains(record.commit, step.oid)

    def _contains(self, new: str, old: str) -> bool:
        """Return whether `old` is an ancestor of `new`. One of them is a release; git is asked for many at once."""
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
        # A later release was built on it and landed as a squash, which hides this one.
        records = self._records.get(record.path, ())
        return any(
            self._landed(at, later)
            for later in records
            if later.seq > record.seq and self._contains(later.commit, record.commit)
        )

    def _first_touching(self, steps: list[CommitChange], path: str) -> set[str]:
        """Commits whose ancestors in this push were not already required to contain every release of this path.

        Released work is required to contain earlier releases only, so commits that build on it are compared again.
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
    """The change of a step at a path."""
    return next((change for change in step.changes if change.path == path), None)

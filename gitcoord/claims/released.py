"""The content of a release event: the files that the work changed below each claim, since which commit, and landed lineage.

Work is compared with the claim's base. If the work does not contain the base (it was rewritten or is lost), it is compared with
a commit that it does contain. That commit is part of the event, so that the server compares the same two commits.
"""

from __future__ import annotations

from gitcoord.base.codec import Record, Shape, record_of, values_of
from gitcoord.base.names import encode_path
from gitcoord.claims.model import Claim, Item, key_of
from gitcoord.ledger.state import State
from gitcoord.ledger.world import World
from gitcoord.startup.namedtuple import NamedTuple

Rows = list[list[str]]  # [path, mode, blob] of each file


_RELEASED: dict[str, Shape] = {
    "path": str, "commit": str, "mode": str, "blob": str, "seq": int, "agent": str, "token": int, "base": str,
}  # fmt: skip


class Released(NamedTuple):
    """Released work on one path: the commit that carries it, mode and blob there, and the base it was compared with."""

    path: str
    commit: str
    mode: str
    blob: str  # '' where it was deleted
    seq: int
    agent: str
    token: int
    base: str

    @classmethod
    def from_record(cls, record: Record, file: str) -> Released:
        return cls._make(values_of(record, _RELEASED, file))

    def to_record(self) -> Record:
        return record_of(_RELEASED, self)


def released_at(state: State, path: str) -> list[Released]:
    """The recorded releases of exactly this path."""
    found = state.leaves(lineage_dir(state, path)).items()
    return [Released.from_record(record, file) for file, record in found]


def released_below(state: State, path: str) -> list[Released]:
    """The recorded releases of this path and of all below it, by file."""
    found = sorted(state.below(lineage_dir(state, path)).items())
    return [Released.from_record(record, file) for file, record in found]


def lineage_dir(state: State, path: str) -> str:
    encoded = encode_path(key_of(state, Item("path", path)))
    return f"lineage/{encoded}" if encoded else "lineage"


def lineage_file(state: State, path: str, seq: int) -> str:
    return f"{lineage_dir(state, path)}/@{seq}"


def changed(state: State, world: World, work: str, claims: list[Claim]) -> dict[str, tuple[str, Rows]]:
    """By claimed path: the base of the comparison and the files that `work` changed. Unchanged paths are left out."""
    bases: dict[str, list[str]] = {}
    for claim in claims:
        if work and claim.base != work:
            bases.setdefault(claim.base, []).append(claim.path)
    starts: dict[str, list[str]] = {}
    for base, paths in bases.items():
        since = world.since(base, work, paths)
        for path in paths:
            starts.setdefault(since[path], []).append(path)
    found: dict[str, tuple[str, Rows]] = {}
    for start, paths in starts.items():
        differing = world.changed(start, work, paths) if start != work else {}
        own = _without_others(state, world, start, work, {path: files for path, files in differing.items() if files})
        found.update({path: (start, files) for path, files in own.items() if files})
    return found


def _without_others(state: State, world: World, start: str, work: str, differing: dict[str, Rows]) -> dict[str, Rows]:
    """Leave out files whose content is the last released work of others, merged into `work` since `start`."""
    state.prefetch(("below", lineage_dir(state, path)) for path in differing)
    records: dict[str, list[Released]] = {}
    for path in differing:
        for record in released_below(state, path):
            records.setdefault(key_of(state, Item("path", record.path)), []).append(record)
    known = {
        row[0]: records.get(key_of(state, Item("path", row[0])), []) for rows in differing.values() for row in rows
    }
    rows = [row for files in differing.values() for row in files]
    asked = sorted({r.commit for row in rows if any(_is_same(r, row) for r in known[row[0]]) for r in known[row[0]]})
    if not asked:
        return differing
    there, before = world.within(work, asked), world.within(start, asked) if start else []

    def is_own(row: list[str]) -> bool:
        inside = (record for record in known[row[0]] if record.commit in there)
        last = max(inside, key=lambda record: record.seq, default=None)
        return last is None or last.commit in before or not _is_same(last, row)

    return {path: [row for row in files if is_own(row)] for path, files in differing.items()}


def work_before_claim(state: State, world: World, work: str, claims: list[Claim]) -> dict[str, tuple[str, Rows]]:
    """Work that was committed before the claim, has not landed and is in no recorded release."""
    if not claims or not work:
        return {}
    unlanded = world.unlanded(work, [claim.path for claim in claims])
    state.prefetch(("leaves", lineage_dir(state, row[0])) for _, files in unlanded.values() for row in files)
    found = {}
    for path, (base, files) in unlanded.items():
        new = [row for row in files if not is_recorded(state, row)]
        if new:
            found[path] = (base, new)
    return found


def is_recorded(state: State, row: list[str]) -> bool:
    """Does a recorded release of this path have exactly this mode and blob?"""
    return any(_is_same(record, row) for record in released_at(state, row[0]))


def _is_same(record: Released, row: list[str]) -> bool:
    return [record.mode, record.blob] == row[1:]


def landed(
    state: State, world: World, found: dict[str, tuple[str, Rows]], carries: dict[str, str]
) -> dict[str, list[list[object]]]:
    """By claimed path, the earlier lineage of its changed files that both the trunk and the new work contain.

    It is no longer needed. git is asked once for each commit of work.
    """
    state.prefetch(("below", lineage_dir(state, path)) for path in found)
    before: dict[str, list[Released]] = {}
    commits: dict[str, set[str]] = {}
    for path, (_, files) in found.items():
        touched = {key_of(state, Item("path", file)) for file, _, _ in files}
        below = released_below(state, path)
        before[path] = [record for record in below if key_of(state, Item("path", record.path)) in touched]
        commits.setdefault(carries[path], set()).update(record.commit for record in before[path])
    gone: set[tuple[str, str]] = set()
    for work, some in commits.items():
        contained = world.landed(work, sorted(some)) if some else []
        gone.update((work, commit) for commit in contained)
    return {
        path: [[record.path, record.seq] for record in records if (carries[path], record.commit) in gone]
        for path, records in before.items()
    }

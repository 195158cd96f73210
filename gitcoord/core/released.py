"""What a release records: the files that the work changed below each claim, from which commit on, and what has landed.

Work is judged from the claim's base. Where the work does not build on it (it was rewritten, or is lost), it is judged from a
commit that the work does contain: whoever has the work can then compare. That commit is part of the event, so that the
server compares the same two commits.
"""

from gitcoord.core.claims import Item, key_of
from gitcoord.names import encode_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.codec import Record
    from gitcoord.core.state import State, View

    Rows = list[list[str]]  # [path, mode, blob] of each file


def lineage_dir(state: "State", path: str) -> str:
    encoded = encode_path(key_of(state, Item("path", path)))
    return f"lineage/{encoded}" if encoded else "lineage"


def lineage_file(state: "State", path: str, seq: int) -> str:
    return f"{lineage_dir(state, path)}/@{seq}"


def changed(state: "State", view: "View", work: str, claims: "list[Record]") -> "dict[str, tuple[str, Rows]]":
    """By claimed path, where there are any: since which commit the files below it were changed by `work`, and which."""
    bases: dict[str, list[str]] = {}
    for claim in claims:
        if work and claim["base"] != work:
            bases.setdefault(claim["base"], []).append(claim["path"])
    starts: dict[str, list[str]] = {}
    for base, paths in bases.items():
        since = view.fact("since", base, work, *paths)
        assert isinstance(since, dict)
        for path in paths:
            starts.setdefault(since[path], []).append(path)
    found: dict[str, tuple[str, Rows]] = {}
    for start, paths in starts.items():
        differing = view.fact("changed", start, work, *paths) if start != work else {}
        assert isinstance(differing, dict)
        for path, files in differing.items():
            own = _without_others(state, view, start, work, path, files) if files else []
            if own:
                found[path] = (start, own)
    return found


def _without_others(state: "State", view: "View", start: str, work: str, path: str, files: "Rows") -> "Rows":
    """The files, but for those in which `work` has exactly the last released work, brought in since `start`: no change."""
    records: dict[str, list[Record]] = {}
    for record in state.below(lineage_dir(state, path)).values():
        records.setdefault(key_of(state, Item("path", record["path"])), []).append(record)
    by_row = [(row, records.get(key_of(state, Item("path", row[0])), [])) for row in files]
    asked = sorted({r["commit"] for row, known in by_row if any(_is_same(r, row) for r in known) for r in known})
    if not asked:
        return files
    there, before = view.fact("within", work, *asked), view.fact("within", start, *asked) if start else []
    assert isinstance(there, list) and isinstance(before, list)
    own = []
    for row, known in by_row:
        last = max((r for r in known if r["commit"] in there), key=lambda record: int(record["seq"]), default=None)
        if last is None or last["commit"] in before or not _is_same(last, row):
            own.append(row)
    return own


def earlier(state: "State", view: "View", work: str, claims: "list[Record]") -> "dict[str, tuple[str, Rows]]":
    """Work that was committed before it was claimed, has not landed, and that no release has recorded yet."""
    if not claims or not work:
        return {}
    unlanded = view.fact("unlanded", work, *(claim["path"] for claim in claims))
    assert isinstance(unlanded, dict)
    found = {}
    for path, (base, files) in unlanded.items():
        new = [row for row in files if not is_recorded(state, row)]
        if new:
            found[path] = (base, new)
    return found


def is_recorded(state: "State", row: list[str]) -> bool:
    """Did a release that is still on record leave exactly this at the path?"""
    return any(_is_same(record, row) for record in state.leaves(lineage_dir(state, row[0])).values())


def _is_same(record: "Record", row: list[str]) -> bool:
    return [record["mode"], record["blob"]] == row[1:]


def landed(state: "State", view: "View", claim: "Record", files: "Rows", work: str) -> "list[list[object]]":
    """Earlier lineage of these files that the sync branch, and this work, contain by now: no longer needed."""
    if not files:
        return []
    touched = {key_of(state, Item("path", path)) for path, _, _ in files}
    below = sorted(state.below(lineage_dir(state, claim["path"])).items())
    before = [record for _, record in below if key_of(state, Item("path", record["path"])) in touched]
    if not before:
        return []
    found = view.fact("landed", work, *sorted({record["commit"] for record in before}))
    assert isinstance(found, list)
    return [[record["path"], record["seq"]] for record in before if record["commit"] in found]

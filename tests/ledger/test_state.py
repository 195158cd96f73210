"""A state that reads on demand: its questions to the source, and that an unread file never counts as missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gitcoord.ledger.state import State

if TYPE_CHECKING:
    from gitcoord.base.codec import Record
    from gitcoord.ledger.state import Part

FILES: dict[str, Record] = {
    name: {"at": name}
    for name in ("halt", "claims/path/a/@ann", "claims/path/a/@bob", "claims/path/a/b/@ann", "claims/path/c/@cyd", "agents/ann")
}  # fmt: skip


class Asked:
    """A source that answers from `FILES`, and notes what it is asked for."""

    def __init__(self) -> None:
        self.parts: list[list[Part]] = []
        self.state = State(source=self.load)

    def load(self, state: State, parts: list[Part]) -> None:
        self.parts.append(parts)
        for kind, path in parts:
            directory, _, name = path.partition("//")
            below = {key: record for key, record in FILES.items() if key.startswith(directory + "/")}
            here = {key[len(directory) + 1 :].partition("/")[0] for key in below}
            if kind == "file":
                state.load_file(path, FILES.get(path))
            elif kind == "leaves":
                state.load_part("leaves", path, {k: r for k, r in below.items() if k[len(path) + 1] == "@"})
            elif kind == "below":
                state.load_part("below", path, below)
            elif kind == "named":
                state.load_part("named", path, {k: r for k, r in below.items() if k.endswith(f"/{name}")})
            else:
                state.load_names(path, sorted(here))


def answers(state: State) -> list[object]:
    return [
        state.get("halt"), state.get("nothing"), state.leaves("claims/path/a"), state.leaves("claims/none"),
        state.named("claims", "@ann"), state.named("claims", "@eve"), state.below("claims/path"), state.below("lineage"),
        state.names("claims/path"), state.names("agents"),
    ]  # fmt: skip


def test_a_part_that_was_not_read_is_read() -> None:
    """The answers of a state that has read nothing yet are those of one that has everything."""
    asked, whole = Asked(), State(dict(FILES))
    assert answers(asked.state) == answers(whole)
    assert len(asked.parts) == 9, "claims/path was below what had been read"
    assert answers(asked.state) == answers(whole) and len(asked.parts) == 9


@pytest.mark.parametrize("changes", [
    {"claims/path/a/@ann": None, "claims/path/d/@ann": {"at": "new"}}, {"claims/path/a/": None}, {"agents/bob": {"at": "bob"}},
    {"claims/path/": None, "claims/path/a/@ann": {"at": "again"}},
])  # fmt: skip
def test_also_below_changes(changes: dict[str, Record | None]) -> None:
    asked, whole = Asked(), State(dict(FILES))
    assert answers(asked.state.patched(changes)) == answers(whole.patched(changes))
    whole.patch(changes)
    assert answers(asked.state.patched(changes)) == answers(whole)


def test_parts_are_read_together_and_once() -> None:
    asked = Asked()
    wanted: list[Part] = [("file", "halt"), ("below", "claims"), ("file", "halt"), ("names", "agents")]
    asked.state.prefetch(wanted)
    assert asked.parts == [[("file", "halt"), ("below", "claims"), ("names", "agents")]]
    asked.state.prefetch(
        [*wanted, ("leaves", "claims/path/a"), ("named", "claims//@ann"), ("file", "claims/path/x/@eve")]
    )
    assert (
        asked.state.get("claims/path/x/@eve") is None and asked.state.leaves("claims/path/a") and len(asked.parts) == 1
    )
    above = asked.state.patched({"lineage/": None})
    above.prefetch([("below", "lineage/x"), ("file", "agents/ann")])
    assert asked.parts[1:] == [[("file", "agents/ann")]], "what was taken away need not be read"


def test_one_name_is_read_without_the_others() -> None:
    asked = Asked()
    assert sorted(asked.state.named("claims", "@ann")) == ["claims/path/a/@ann", "claims/path/a/b/@ann"]
    assert asked.parts == [[("named", "claims//@ann")]] and "claims/path/a/@bob" not in asked.state.files

"""The registry of kinds: each has all that is asked of one, and says what it touches."""

from __future__ import annotations

import pytest

from gitcoord.base.codec import Malformed
from gitcoord.ledger.kinds import KINDS, Touched, kind_of
from tests.ledger.test_golden import history


@pytest.mark.parametrize("name", KINDS)
def test_what_a_kind_names_is_among_its_fields(name: str) -> None:
    kind = kind_of(name)
    assert {*kind.agents, *([kind.judged] if kind.judged else [])} <= set(kind.fields)
    assert not any(key in kind.fields and key not in kind.agents for key in ("holder", "claims"))


def test_commits_that_others_must_be_able_to_fetch() -> None:
    """All kinds that name commits: an answer to a request, a handoff and a notice decide nothing by them."""
    relying = {event.kind for event in history()[0].events() if kind_of(event.kind).commits(event)}
    assert relying == {"release", "deploy", "landing", "land"}


def test_an_unknown_kind() -> None:
    with pytest.raises(Malformed, match="'later' are not known here"):
        kind_of("later")


def test_what_events_touch() -> None:
    """Code that is pushed meanwhile waits for what could change its verdict, and for nothing else."""
    nothing, paths, agents = set(), set(), set()
    for event in history()[0].events():
        touched = kind_of(event.kind).touches(event)
        nothing |= {event.kind} if touched == Touched() else set()
        paths |= {event.kind} if touched.paths else set()
        agents |= {event.kind} if touched.agents else set()
    others = {
        "start",
        "notice",
        "request",
        "journal",
        "note",
        "seen",
        "handoff",
        "close",
        "wait",
        "leave",
        "promote",
        "landing",
    }
    assert nothing - paths == others
    assert paths == {"claim", "stop", "kill", "release", "expire", "takeover", "accept", "inherit"}
    assert agents == {"kill", "revive", "role"}

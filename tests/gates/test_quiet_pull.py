"""A pull of what has landed starts git-claim once for each state of the ledger, and never where somebody is stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gates.places import WAYS
from tests.gates.support import refused
from tests.gates.test_one_start import Place
from tests.support import UNHOOKED, git

JUDGED = ["reference-transaction"]


class Clone(Place):
    """Its trunk is shared at `server`, where a colleague without gitcoord lands work."""

    def __init__(self, place: Path, way: str) -> None:
        super().__init__(place, way)
        self.colleague, self.landed = place / "colleague", 0
        git(place, "clone", "-q", "--bare", str(self.top), str(place / "server.git"))
        git(place, "clone", "-q", str(place / "server.git"), str(self.colleague))
        self.git("remote", "add", "origin", str(place / "server.git"))
        self.git("fetch", "-q", "origin")
        self.git("branch", "-q", "--set-upstream-to=origin/main")

    def land(self, name: str = "free") -> None:
        self.landed += 1
        (self.colleague / name).write_text(f"{self.landed}\n")
        git(self.colleague, "commit", "-q", "-a", "-m", "work")
        git(self.colleague, "push", "-q")

    def pull(self, agent: str = "alice") -> list[str]:
        """The hooks that started git-claim."""
        self.land()
        done = self.sh("pull", "-q", "--ff-only", agent=agent)
        assert done.code == 0 and self.git("rev-parse", "HEAD") == self.git("rev-parse", "origin/main"), done
        return self.starts()


@pytest.fixture(params=WAYS)
def clone(tmp_path: Path, request: pytest.FixtureRequest) -> Clone:
    return Clone(tmp_path, request.param)


def test_the_second_pull_starts_nothing(clone: Clone) -> None:
    assert clone.pull() == JUDGED
    assert clone.pull() == [] and clone.pull(agent="") == []
    clone.git("pack-refs", "--all")
    assert clone.pull() == [], "refs may be packed"
    assert clone.sh("claim", "free", agent="bob").code == 0
    assert clone.pull() == JUDGED, "the ledger has moved"
    assert clone.pull() == []


@pytest.mark.parametrize("rule", ["halted", "killed"])
def test_whoever_is_stopped_is_refused(clone: Clone, rule: str) -> None:
    clone.pull()
    words = ("halt",) if rule == "halted" else ("kill", "alice")
    assert clone.sh("coord", *words, agent="boss").code == 0
    for _ in range(2):
        clone.land()
        assert refused(clone.sh("pull", "-q", "--ff-only"), rule)
    assert clone.starts() == JUDGED * 2
    if rule == "killed":
        assert clone.sh("pull", "-q", "--ff-only", agent="bob").code == 0
        assert not (clone.top / ".git/gitcoord/quiet").read_text().startswith(clone.git("rev-parse", "gitcoord"))


def _back(clone: Clone) -> tuple[str, ...]:
    return ("reset", "-q", "--hard", "HEAD~1")


def _own_branch(clone: Clone) -> tuple[str, ...]:
    clone.git("checkout", "-q", "-b", "side")
    clone.write("src/b", "mine\n")
    clone.git(*UNHOOKED, "commit", "-q", "-a", "-m", "not landed")
    clone.git("checkout", "-q", "main")
    return ("merge", "-q", "--ff-only", "side")


def _drop_own_work(clone: Clone) -> tuple[str, ...]:
    """To what landed, but not forward."""
    clone.write("src/b", "mine\n")
    clone.git(*UNHOOKED, "commit", "-q", "-a", "-m", "not landed")
    return ("reset", "-q", "--hard", "origin/main")


@pytest.mark.parametrize("move", [_back, _own_branch, _drop_own_work])
def test_every_other_move_is_judged(clone: Clone, move: Callable[[Clone], tuple[str, ...]]) -> None:
    clone.pull()
    words = move(clone)
    clone.starts()
    clone.sh(*words)
    assert "reference-transaction" in clone.starts()


def test_a_ledger_that_was_set_back_is_judged(clone: Clone) -> None:
    """The note fits the older ledger again, and the tip says that events were lost."""
    clone.pull()
    old = clone.git("rev-parse", "gitcoord")
    assert clone.sh("claim", "free", agent="bob").code == 0
    clone.git(*UNHOOKED, "update-ref", "refs/heads/gitcoord", old)
    clone.starts()
    clone.land()
    clone.sh("pull", "-q", "--ff-only")
    assert clone.starts() == JUDGED

"""Cost of commands about many paths: twice the paths cost twice as much, whatever else the ledger holds."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cli.support import World
from tests.cost import SECTIONS, Cost, Counter, assert_each_is_linear
from tests.support import git


class Counted:
    """A repository with many files, in which each step is a command that must succeed."""

    def __init__(self, place: Path, size: int) -> None:
        git(place, "init", "-q", "-b", "main", "repo")
        self.world = World(place / "repo", ledger=True)
        self.counter = Counter(place)
        self.paths = [f"src{n % 7}/file{n}.py" for n in range(size)]
        self.work("first")
        # Settled, so that git's settings are remembered from the first step on, however fast the machine is.
        os.utime(place / "repo/.git/config", (0, 0))
        self.costs: dict[str, Cost] = {}

    def work(self, text: str) -> None:
        self.world.commit(dict.fromkeys(self.paths, f"{text}\n"))

    def step(self, name: str, command: str, *words: str, agent: str) -> None:
        done = self.world.run(self.counter.argv(command), words, agent)
        assert done.code == 0, done
        self.costs[name] = self.counter.taken()

    def look(self, name: str, command: str, *words: str, agent: str) -> None:
        """A step that changes nothing, twice: a heartbeat that happens to be due, once in thirty seconds, counts for one of them."""
        self.step(name, command, *words, agent=agent)
        first = self.costs[name]
        self.step(name, command, *words, agent=agent)
        self.costs[name] = min(first, self.costs[name])


def lives(place: Path, size: int) -> dict[str, Cost]:
    """Many paths claimed, handed over, worked on, given back and kept, each in one command."""
    here = Counted(place, size)
    here.step("claim", "git-claim", "take", *here.paths, agent="alice")
    here.step("handoff new", "git-handoff", "new", *SECTIONS, agent="alice")
    id = f"h{len(here.world.events())}"
    here.step("handoff show", "git-handoff", "show", id, agent="bob")
    here.step("handoff accept", "git-handoff", "accept", id, agent="bob")
    for number in ("", " again"):
        here.work(f"by bob{number}")
        here.step(f"release{number}", "git-claim", "release", *here.paths, agent="bob")
        here.step(f"claim{number or ' anew'}", "git-claim", "take", *here.paths, agent="bob")
    here.step("release of nothing new", "git-claim", "release", *here.paths, agent="bob")
    here.world.take(*here.paths, agent="carol")
    here.work("by carol")
    here.step("stop", "git-coord", "stop", agent="carol")
    here.world.take(*here.paths, agent="carol")
    for path in here.paths:
        here.world.write(path, "not committed\n")
    here.step("stop --keep", "git-coord", "stop", "--keep", agent="carol")
    here.step("start", "git-coord", "start", agent="carol")
    here.world.fall_silent("carol")
    here.step("sweep", "git-coord", "sweep", agent="dave")
    return here.costs


def test_many_paths_cost_as_they_are_many(tmp_path: Path) -> None:
    assert_each_is_linear(tmp_path, lives)


def crowd(place: Path, size: int) -> dict[str, Cost]:
    """A ledger with as many agents as claims."""
    here = Counted(place, size)
    for number, path in enumerate(here.paths):
        here.world.take(path, agent=f"agent{number}")
    here.look("list", "git-claim", "list", agent="alice")
    here.look("list --mine", "git-claim", "list", "--mine", agent="agent0")
    here.look("status", "git-coord", "status", agent="alice")
    here.look("agents", "git-coord", "agents", agent="alice")
    here.step("start", "git-coord", "start", agent="agent0")
    for number in range(size):
        here.world.fall_silent(f"agent{number}")
    here.step("sweep", "git-coord", "sweep", agent="alice")
    return here.costs


def test_many_agents_cost_as_they_are_many(tmp_path: Path) -> None:
    assert_each_is_linear(tmp_path, crowd, (10, 20, 40))


def test_a_story_costs_what_happened_to_the_path(tmp_path: Path) -> None:
    """Events about other paths are looked at once, and never decoded; git does not walk the ledger again."""
    here = Counted(tmp_path, 1)

    def told(*paths: str) -> tuple[Cost, Cost]:
        for path in paths:
            here.world.take("--", path)
            here.world.free()
        here.step("first", "git-coord", "why", "docs/it.md", "--json", agent="bob")
        here.look("again", "git-coord", "why", "docs/it.md", "--json", agent="bob")
        return here.costs["first"], here.costs["again"]

    first, before = told("docs/it.md")
    assert before.children < first.children, "there is an index"
    own = told(*["docs/it.md"] * 5)[1].calls - before.calls
    first, again = told(*(f"docs/other{number}.md" for number in range(20)))
    others = again.calls - before.calls - own
    # Forty events of others against ten of its own; "2s ago" costs a few calls more than "now".
    assert others < own / 10, (first, before, again, own, others)
    assert first.calls - again.calls < 4 * own, "each of forty events costs less than one of the path's own ten"


def test_a_release_after_others_released_the_same_file_asks_git_little(tmp_path: Path) -> None:
    """The next holder waits for these processes: they are few, and none is for what is not said."""
    here = Counted(tmp_path, 1)
    for agent in ("alice", "bob"):
        here.world.take(*here.paths, agent=agent)
        for number in range(3):
            here.work(f"by {agent} {number}")
        here.step(agent, "git-claim", "release", "-q", *here.paths, agent=agent)
    # The reader and the swap; status, what was changed, and whether earlier work has landed.
    assert here.costs["bob"].children <= 5, here.costs

"""Early warnings of work that will conflict: in the overview only while they stand, at a bounded cost; and told to both agents, once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gitcoord.ledger.context import Context
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.radar import kept
from gitcoord.radar.around import around
from gitcoord.world.open import environ, open_repository
from tests.cli.support import World
from tests.cli.test_json import holds
from tests.cost import Counter
from tests.radar.support import commit, edit, state, tree
from tests.support import COORD, FakeHost, git


def warnings(world: World, agent: str = "carol") -> list[dict[str, Any]]:
    rows = holds(world.coord("status", "--json", agent=agent), "status")["early_warnings"]
    return [row for row in rows if row["kind"] == "conflict"]


@contextmanager
def opened(world: World, host: FakeHost) -> Iterator[Context]:
    with chdir(world.top):
        ctx = open_repository(environ(), writing=False)
        ctx.host = host
        try:
            yield ctx
        finally:
            ctx.store.close()


def looks(world: World, host: FakeHost) -> list[str]:
    """The conflicts that a view shows at this time."""
    with opened(world, host) as ctx:
        rows, _ = kept.standing_conflicts(ctx, read_snapshot(ctx).state)
    return [row.path for row in rows]


@pytest.fixture
def both(world: World) -> tuple[Path, Path]:
    """Two agents that changed the same line."""
    login, form = tree(world, "login", "alice"), tree(world, "form", "bob")
    edit(login, 10, "by alice")
    edit(form, 10, "by bob")
    return login, form


# --- what is shown


def test_the_overview_has_a_row_for_each_pair(world: World, both: tuple[Path, Path]) -> None:
    for place in both:
        edit(place, 10, f"by {place.name}", "other")
    before = state(world)
    (row,) = warnings(world)
    assert row["subject"] == "f" and row["source"] == "work trees and branches of this clone"
    assert row["message"].endswith(" will conflict in f line 10, other line 10") and "alice (login)" in row["message"]
    assert row["help"] == "land one of them first: git coord land; or wait for it: git claim --wait 30m f"
    assert "early warnings: 1\n" in world.coord("status").out
    assert state(world) == before


def test_a_finding_is_not_shown_once_the_work_has_landed(world: World, both: tuple[Path, Path]) -> None:
    commit(both[0])
    assert warnings(world)
    world.git("merge", "-q", "--ff-only", "login")
    assert warnings(world) == []


@pytest.mark.parametrize("what", ["edited", "committed", "switched", "gone", "trunk"])
def test_a_finding_is_not_shown_once_something_has_moved(world: World, both: tuple[Path, Path], what: str) -> None:
    """Whether or not it is time to look again."""
    host = FakeHost()
    assert looks(world, host) == ["f"] == looks(world, host)
    if what == "edited":
        edit(both[0], 10, "something else")
    elif what == "committed":
        commit(both[0])
    elif what == "switched":
        git(both[0], "switch", "-q", "-c", "another")
    elif what == "gone":
        world.git("worktree", "remove", "--force", str(both[0]))
    else:
        world.commit({"new": "x\n"})
    assert looks(world, host) == []
    host.advance(60)
    assert looks(world, host) == ([] if what == "gone" else ["f"])


def test_new_work_is_seen_when_it_is_time_to_look_again(world: World, both: tuple[Path, Path]) -> None:
    host = FakeHost()
    git(both[1], "checkout", "-q", "f")
    assert looks(world, host) == []
    edit(both[1], 10, "again")
    host.advance(20)
    assert looks(world, host) == []
    host.advance(20)
    assert looks(world, host) == ["f"]


def test_a_look_that_took_long_is_rare(world: World, both: tuple[Path, Path]) -> None:
    host = FakeHost()
    with opened(world, host) as ctx:
        mark = around(ctx, "main")
        slow = kept.Kept(host.wall(), 4000, mark, "", 2)
        for seconds, moved, due in ((60, False, False), (199, True, False), (200, False, True), (-500, False, True)):
            host.now = slow.at + seconds
            assert kept.is_due(ctx, slow, mark, moved=moved) is due, seconds


def test_with_one_work_tree_nothing_is_looked_at_before_a_branch_has_moved(world: World) -> None:
    world.git("branch", "landed")
    host = FakeHost()
    with opened(world, host) as ctx:
        mark = around(ctx, "main")
        old = kept.Kept(host.wall() - 10_000, 1, mark, "", 1)
        assert not kept.is_due(ctx, old, mark, moved=False)
        assert kept.is_due(ctx, old, "another", moved=False) and kept.is_due(
            ctx, old._replace(works=2), mark, moved=False
        )


def test_another_process_that_looks_is_not_waited_for(world: World, both: tuple[Path, Path]) -> None:
    with opened(world, FakeHost()) as ctx:
        from gitcoord.git.locks import flock

        lock = flock.acquire(ctx.scratch("radar/lock"))
        assert looks(world, FakeHost()) == []
        flock.release(lock)
    assert looks(world, FakeHost()) == ["f"]


def test_what_cannot_be_compared_is_no_error_of_the_overview(world: World, both: tuple[Path, Path]) -> None:
    (world.top / ".git/worktrees/proj-login/HEAD").write_text("nonsense\n")
    assert world.coord("status").code == 0
    (world.top / ".git/gitcoord/radar/kept").write_text("nonsense")
    assert world.coord("status").code == 0


# --- what it costs


def test_one_work_tree_and_no_branch_pays_nothing(world: World) -> None:
    counter = Counter(world.top.parent)

    def children() -> int:
        done = world.run(counter.argv("git-coord"), ("status",), "carol")
        assert done.code == 0, done
        return counter.taken().children

    os.utime(world.top / ".git/config", (0, 0))
    children()
    alone = children()
    assert not (world.top / ".git/gitcoord/radar").exists(), "nothing was looked at"
    world.git("switch", "-q", "-c", "topic")
    edit(world.top, 10, "x")
    commit(world.top)
    assert children() == alone and not (world.top / ".git/gitcoord/radar").exists(), "its own branch is no other work"
    world.git("branch", "landed", "main")
    assert children() > alone, "a branch is looked at"
    assert children() == alone, "once, until it moves"


def test_what_is_known_is_shown_without_git(world: World, both: tuple[Path, Path]) -> None:
    counter = Counter(world.top.parent)

    def status() -> int:
        done = world.run(counter.argv("git-coord"), ("status",), "carol")
        assert "early warnings: 1" in done.out, done
        return counter.taken().children

    os.utime(world.top / ".git/config", (0, 0))
    first = status()
    assert first > status() + 10 and status() == status()


def test_a_mark_of_all_that_is_around(world: World) -> None:
    def mark() -> str:
        with opened(world, FakeHost()) as ctx:
            return around(ctx, "main")

    assert mark() == ""
    world.git("branch", "deep/topic")
    loose = mark()
    assert loose
    world.git("pack-refs", "--all")
    packed = mark()
    assert packed not in ("", loose)
    world.commit({"new": "x\n"})
    assert mark() == packed, "trunk is none of it"
    world.git("branch", "-f", "deep/topic")
    assert mark() != packed
    world.git("branch", "-D", "deep/topic")
    assert mark() == ""
    world.git("worktree", "add", "-q", "--detach", str(world.top.parent / "other"))
    assert mark()


# --- telling the agents


def opened_sessions(world: World, both: tuple[Path, Path]) -> None:
    for agent, place in zip(("alice", "bob"), both):
        assert world.claim("src/a.py" if agent == "alice" else "src/b.py", agent=agent, cwd=str(place)).code == 0


def test_both_agents_are_told_once(world: World, both: tuple[Path, Path]) -> None:
    opened_sessions(world, both)
    world.coord("radar", agent="carol")
    for agent, place in zip(("alice", "bob"), both):
        done = world.claim("list", agent=agent, cwd=str(place))
        assert "will conflict in f line 10: land first (git coord land)" in done.err, done
        assert "will conflict" not in world.claim("list", agent=agent, cwd=str(place)).err
    world.coord("radar", agent="carol")
    assert "will conflict" not in world.claim("list", agent="alice", cwd=str(both[0])).err, (
        "the same finding again is no news"
    )
    assert "will conflict" not in world.claim("list", agent="carol").err


def test_the_agent_that_looks_is_not_told_again(world: World, both: tuple[Path, Path]) -> None:
    opened_sessions(world, both)
    done = world.coord("radar", agent="alice")
    assert "will conflict in f" in done.out and "will conflict in f" not in done.err
    assert "will conflict in f" not in world.claim("list", agent="alice").err
    assert "will conflict in f" in world.claim("list", agent="bob").err


def test_a_finding_that_was_over_is_news_again(world: World, both: tuple[Path, Path]) -> None:
    opened_sessions(world, both)
    world.coord("radar", agent="carol")
    world.claim("list", agent="alice", cwd=str(both[0]))
    git(both[0], "checkout", "-q", "f")
    world.coord("radar", agent="carol")
    edit(both[0], 10, "once more")
    world.coord("radar", agent="carol")
    row = holds(world.claim("list", "--json", agent="alice", cwd=str(both[0])), "listing")
    (told,) = row["news"]["conflicts"]
    assert told["path"] == "f"


def test_what_is_over_before_it_was_told_is_not_told(world: World, both: tuple[Path, Path]) -> None:
    opened_sessions(world, both)
    world.coord("radar", agent="carol")
    edit(both[1], 10, "moved on")
    assert "will conflict" not in world.claim("list", agent="alice", cwd=str(both[0])).err
    world.coord("radar", agent="carol")
    git(both[1], "checkout", "-q", "f")
    world.coord("radar", agent="carol")
    assert os.listdir(world.top / ".git/gitcoord/radar/news") == []


def test_the_guard_tells_it(world: World, both: tuple[Path, Path]) -> None:
    opened_sessions(world, both)
    world.coord("radar", agent="carol")
    event = {
        "session_id": "s", "hook_event_name": "PreToolUse", "cwd": str(both[0]), "tool_name": "Edit", "tool_input": {"file_path": str(both[0] / "other")},
    }  # fmt: skip
    first = world.run(COORD, ("guard",), "alice", str(both[0]), data=json.dumps(event).encode())
    after = {**event, "hook_event_name": "PostToolUse", "tool_response": ""}
    second = world.run(COORD, ("guard",), "alice", str(both[0]), data=json.dumps(after).encode())
    assert "will conflict in f line 10" in first.out + second.out, (first, second)


def test_an_agent_that_was_launched_looks_for_all(world: World, both: tuple[Path, Path]) -> None:
    opened_sessions(world, both)
    wait = "until test -s .git/gitcoord/radar/news/alice; do sleep 0.1; done"
    done = world.run([*COORD, "run", "--as", "carol", "--", "sh", "-c", wait], (), "")
    assert done.code == 0, done
    assert "will conflict in f line 10" in world.claim("list", agent="alice", cwd=str(both[0])).err

"""Lists fit the terminal, whatever names and texts are in them; in a pipe nothing is left out."""

from __future__ import annotations

import pytest

from gitcoord.terminal.fit import columns, fitted
from tests.cli.support import World
from tests.cost import SECTIONS
from tests.support import CLAIM, COORD, HANDOFF

LONG = "docs/" + "long-directory/" * 12 + "guide.md"
WIDE = "src/" + "日本語" * 25 + ".py"
LISTS = (
    "claim list", "coord status", "coord agents", "coord task list", "coord log", "coord contention", "coord land --list", "coord resources",
    "coord journal show -n 5", f"coord why {LONG}", "coord worktree list", "handoff list",
)  # fmt: skip


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("crowded") / "repo").init()
    world.take("-m", "a reason " * 30, "--", LONG)
    world.take("--", WIDE, agent="b" * 30)
    for agent in ("carol", "dave"):
        world.claim("--", LONG, agent=agent)
        world.claim("--queue", "-m", "広い " * 30, "--", LONG, agent=agent)
    assert world.coord("task", "add", "日本語" * 20, "--path", LONG).code == 0
    world.git("branch", "topic/" + "branch" * 12)
    world.git("worktree", "add", "-q", str(world.top.parent / ("tree" * 20)), "topic/" + "branch" * 12)
    done = world.run(HANDOFF, ("new", "--to", "erin", *SECTIONS), "alice")
    assert done.code == 0, done
    world.take("@land/main", "-m", "topic/" + "x" * 150)
    world.claim("--queue", "@land/main", "-m", "日本語" * 30, agent="carol")
    return world


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("line", LISTS)
def test_every_line_fits(crowded: World, line: str, width: int) -> None:
    command, *words = line.split()
    argv = {"claim": CLAIM, "coord": COORD, "handoff": HANDOFF}[command]
    done = crowded.at_terminal(*words, argv=argv, env={"NO_COLOR": "1"}, columns=width)
    assert done.code == 0 and done.out.strip()
    assert [text for text in done.out.splitlines() if columns(text) > width] == []


def test_names_keep_their_ends_and_a_pipe_gets_all(crowded: World) -> None:
    shown = crowded.at_terminal("list", env={"NO_COLOR": "1"}, columns=80).out
    assert "docs…uide.md" in shown and f"src/{WIDE[-5:]}" not in shown
    piped = crowded.claim("list", agent="").out
    assert LONG in piped and WIDE in piped and "a reason " * 20 in piped


def test_columns_that_nobody_could_read_are_left_out() -> None:
    rows = [["a/long/path/of/a/file", *["some words"] * 8]]
    assert [len(fitted(rows, room)[0]) for room in (0, 104, 80, 40)] == [9, 9, 6, 3]
    assert all(columns("  ".join(fitted(rows, room)[0])) <= room for room in range(20, 200))
    assert fitted(rows, 40)[0][0].startswith("a/l") and fitted(rows, 40)[0][0].rstrip().endswith("file")


def test_the_width_is_that_of_the_terminal(crowded: World) -> None:
    narrow, broad = (crowded.at_terminal("list", env={"NO_COLOR": "1"}, columns=width).out for width in (40, 200))
    assert max(map(columns, broad.splitlines())) > 150 > 40 >= max(map(columns, narrow.splitlines()))

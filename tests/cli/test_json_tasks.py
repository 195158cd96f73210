"""The work queue: files and JSON as docs/format.md describes them."""

from __future__ import annotations

from gitcoord.base.codec import decode_file
from tests.cli.support import World
from tests.cli.test_json import TABLES, holds, refused, wrong_table
from tests.support import git


def records(world: World, under: str, name: str) -> int:
    files = world.git("ls-tree", "-r", "--name-only", "gitcoord", "--", under).splitlines()
    for file in files:
        found = decode_file(file, git(world.top, "show", f"gitcoord:{file}"))
        assert list(wrong_table(found, TABLES[f"Record: {name}"])) == [], file
    return len(files)


def test_the_queue(world: World) -> None:
    holds(world.coord("task", "list", "--json"), "tasks")
    holds(world.coord("task", "add", "a", "--path", "src/a.py", "--key", "k", "-m", "x", "--json"), "added tasks")
    holds(world.coord("task", "add", "b", "--need", "k", "--json"), "added tasks")
    holds(world.coord("task", "list", "--json"), "tasks")
    assert records(world, "work/ready", "mark") == records(world, "work/waits", "mark") == 1
    assert records(world, "work/keys", "task key") == 1
    holds(world.coord("task", "next", "--json", agent="w1"), "assigned")
    assert not holds(world.coord("task", "next", "--json", agent="w2"), "assigned")["ok"]
    assert records(world, "work/of", "held task") == 1
    refused(world.coord("task", "take", "t2", "--json", agent="w2"), "not-open")
    refused(world.coord("task", "take", "t3", "--json", agent="w2"), "not-ready")
    refused(world.coord("task", "take", "t9", "--json", agent="w2"), "no-task")
    refused(world.coord("task", "take", "x", "--json", agent="w2"), "usage", 2)
    refused(world.coord("task", "block", "t2", "--reason", "x", "--json", agent="w2"), "not-yours")
    refused(world.coord("task", "update", "t2", "--need", "t3", "--json"), "circle")
    assert not holds(world.coord("task", "join", "t2", "t3", "--json"), "joined")["ok"]
    words = ("task", "complete", "t2", "-m", "x", "--not-done", "y", "--nonce", "n", "--json")
    holds(world.coord(*words, agent="w1"), "moved task")
    assert holds(world.coord(*words, agent="w1"), "moved task")["repeated"]
    holds(world.coord("task", "show", "t2", "--json"), "one task")
    holds(world.coord("task", "join", "t2", "--json"), "joined")
    holds(world.coord("task", "schema", "complete", "--json"), "schema")
    assert records(world, "tasks", "task") == 2

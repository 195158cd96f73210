"""Every command answers with one JSON object when asked to: a test over the tables, so that a new command has it too."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from gitcoord.cli import typer_claim as claim
from gitcoord.cli import typer_coord as coord
from gitcoord.cli import typer_handoff as handoff
from gitcoord.cli.table import BARE, COORD, GROUPS, HANDOFF
from gitcoord.terminal.parser import JSON, VERBS
from tests.cli.support import World

# What it prints is not its own: that of the program that it launches, a protocol of another's, or a show for people.
NOT_ITS_OWN = {"coord run", "coord dispatch", "coord guard", "coord mcp", "coord demo"}


def _leaves(command: Any, name: str) -> dict[str, set[str]]:
    """The options of each command, by its words."""
    if hasattr(command, "commands"):
        found: dict[str, set[str]] = {}
        for word, below in command.commands.items():
            found |= _leaves(below, f"{name} {word}")
        return found
    return {name: {word for parameter in command.params for word in parameter.opts}}


def test_every_verb_of_the_quick_tables() -> None:
    tables = {"claim": VERBS, "coord": COORD, "handoff": HANDOFF}
    lacking = [
        f"{table} {name}" for table, verbs in tables.items() for name, verb in verbs.items() if JSON not in verb.options
    ]
    assert not lacking


def test_every_command_of_the_full_command_line() -> None:
    apps = {"claim": claim.app, "coord": coord.make_app(), "handoff": handoff.app}
    found: dict[str, set[str]] = {}
    for name, app in apps.items():
        found |= _leaves(typer.main.get_command(app), name)
    assert len(found) > 60, "the tables are read"
    assert {name for name, options in found.items() if "--json" not in options} == NOT_ITS_OWN


def test_every_group_has_a_verb_that_its_name_stands_for() -> None:
    assert set(GROUPS) <= set(BARE)


@pytest.mark.parametrize("group", GROUPS)
def test_a_groups_name_with_options(world: World, group: str) -> None:
    """`git coord journal --json` is `git coord journal show --json`, as without the option."""
    alone, whole = world.coord(group, "--json"), world.coord(*BARE[group], "--json")
    assert (alone.code, alone.json) == (whole.code, whole.json) and alone.json["ok"]
    assert world.coord(group).code == 0
    assert world.coord(group, "-h").out.startswith(f"Usage: git coord {group} ")


def test_other_options_and_wrong_ones(world: World) -> None:
    assert world.coord("journal", "--number", "1", "--json").json["entries"][0]["kind"] == "init"
    assert world.coord("task", "--mine", "--json").json["tasks"] == []
    assert world.coord("rules", "--who", "--json").code == 0
    wrong = world.coord("journal", "--nonsense", "--json")
    assert wrong.code == 2 and wrong.json["error"] == "usage"


@pytest.fixture
def world(git_repo: Any) -> World:
    return World(git_repo.workspace).init()

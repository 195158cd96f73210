"""What is true of every command, over the tables, so that a new command is tried too: one JSON object, an answer before init."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from gitcoord.adapters.cli import claim, coord, handoff
from gitcoord.hot.options import JSON, VERBS
from gitcoord.hot.verbtable import BARE, COORD, GROUPS, HANDOFF
from tests import support
from tests.cli.support import Done, World
from tests.cli.test_json import holds, refused

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


# --- before init ---------------------------------------------------------------------------------------------------

# Commands that look, with the shape of their answer, and commands that need a ledger.
READING = {
    "claim": "listing", "claim list": "listing", "claim list --mine": "listing", "claim show src": "around",
    "claim check src": "verdicts", "coord status": "status", "coord agents": "agents", "coord log": "log",
    "coord fsck": "fsck", "coord resources": "resources", "coord approvals": "approvals",
    "coord role bob": "role of an agent", "coord sync": "sync", "coord deploys": "deploys", "coord once --list": "effects",
    "coord why x": "why", "coord task list": "tasks", "coord journal show": "story", "coord rules show": "rules",
    "coord rules who": "readers", "coord policy explain src": "explained", "coord policy check": "policy problems",
    "coord worktree list": "work trees", "handoff list": "handoffs",
}  # fmt: skip
WRITING = (
    "claim src", "claim take src", "claim release src", "claim release --all", "claim renew", "claim disown src --reason x",
    "claim takeover src --token 1 --force --reason x", "coord kill bob", "coord revive bob", "coord halt", "coord unhalt",
    "coord sweep", "coord approve 1", "coord deny 1", "coord role bob x", "coord sync --pull",
    "coord deploy production -- true", "coord commit -m x src/a.py", "coord watch", "coord once k -- true", "coord start",
    "coord stop", "coord number m", "coord task add x", "coord task show t1", "coord task take t1", "coord task next",
    "coord task update t1 --title x", "coord task block t1 --reason x", "coord task unblock t1",
    "coord task needs-human t1 --reason x", "coord task complete t1 -m x --not-done none", "coord task fail t1 --reason x",
    "coord task release t1", "coord task review t1 --accept", "coord task abandon t1 --reason x", "coord task reopen t1",
    "coord task join x", "coord journal add -m x", "coord rules ack", "coord worktree add fix",
    "handoff new --state a --changed b --remaining c --next d", "handoff show h1", "handoff accept h1",
    "handoff decline h1 --reason x", "handoff withdraw h1",
)  # fmt: skip
NEEDS_NO_LEDGER = {"coord task schema"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A repository in which gitcoord was never set up, with a change in it."""
    world = World(tmp_path_factory.mktemp("plain"))
    world.write("src/a.py", "changed\n")
    return world


def _run(world: World, line: str, *more: str, agent: str = "alice") -> Done:
    command, *words = line.split()
    end = words.index("--") if "--" in words else len(words)
    argv = {"claim": support.CLAIM, "coord": support.COORD, "handoff": support.HANDOFF}[command]
    return world.run(argv, (*words[:end], *more, *words[end:]), agent)


def _everything(world: World, *besides: str) -> dict[str, bytes]:
    found = {str(path.relative_to(world.top)): path for path in world.top.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(besides)}


def test_every_verb_is_tried_before_init() -> None:
    tables = {"claim": VERBS, "coord": COORD, "handoff": HANDOFF}
    tried = {*READING, *WRITING, *NEEDS_NO_LEDGER}
    lacking = [
        f"{table} {name}" for table, verbs in tables.items() for name in verbs
        if not any(f"{line} ".startswith(f"{table} {name} ") for line in tried)
    ]  # fmt: skip
    assert not lacking


@pytest.mark.parametrize("line", READING)
def test_before_init_reading_is_no_error_and_needs_no_name(plain: World, line: str) -> None:
    """A hook in a repository without gitcoord must not stand in anybody's way."""
    before = _everything(plain)
    assert _run(plain, line, agent="") == Done(0, "", "note: gitcoord is not set up in this repository\n")
    done = _run(plain, line, "--json")
    assert holds(done, READING[line])["initialised"] is False
    assert _everything(plain) == before


@pytest.mark.parametrize("line", WRITING)
def test_before_init_writing_says_how_to_begin(plain: World, line: str) -> None:
    notes = (".git/gitcoord/", ".git/objects/")  # locks and caches, and objects that nothing names
    before = _everything(plain, *notes)
    told = "error: gitcoord is not set up in this repository\nhint: set it up: git coord init\n"
    assert _run(plain, line) == Done(2, "", told)
    refused(_run(plain, line, "--json"), "not-initialised", 2)
    assert _everything(plain, *notes) == before

"""Every verb in a repository in which gitcoord was never set up: looking is no error, changing says how to begin."""

from __future__ import annotations

import pytest

from gitcoord.cli.table import COMMANDS, table_of
from tests import support
from tests.cli.support import Done, World
from tests.cli.test_json import holds, refused

# Commands that look, with the shape of their answer, and commands that need a ledger.
READING = {
    "claim": "listing", "claim list": "listing", "claim list --mine": "listing", "claim show src": "around",
    "claim check src": "verdicts", "coord status": "status", "coord top": "status", "coord agents": "agents", "coord log": "log",
    "coord fsck": "fsck", "coord resources": "resources", "coord approvals": "approvals",
    "coord role bob": "role of an agent", "coord sync": "sync", "coord deploys": "deploys", "coord once --list": "effects",
    "coord why x": "why", "coord task list": "tasks", "coord journal show": "story", "coord rules show": "rules",
    "coord rules who": "readers", "coord policy explain src": "explained", "coord policy check": "policy problems",
    "coord worktree list": "work trees", "handoff list": "handoffs", "coord land --list": "landings",
    "coord note": "notes", "coord contention": "contention", "coord radar": "radar",
}  # fmt: skip
WRITING = (
    "claim src", "claim take src", "claim release src", "claim release --all", "claim renew", "claim disown src --reason x",
    "claim takeover src --token 1 --force --reason x", "coord kill bob", "coord revive bob", "coord halt", "coord unhalt",
    "coord sweep", "coord approve 1", "coord deny 1", "coord role bob x", "coord sync --pull",
    "coord deploy production -- true", "coord commit -m x src/a.py", "coord watch", "coord page --no-open", "coord once k -- true", "coord start",
    "coord stop", "coord number m", "coord task add x", "coord task show t1", "coord task take t1", "coord task next",
    "coord task update t1 --title x", "coord task block t1 --reason x", "coord task unblock t1",
    "coord task needs-human t1 --reason x", "coord task complete t1 -m x --not-done none", "coord task fail t1 --reason x",
    "coord task release t1", "coord task review t1 --accept", "coord task abandon t1 --reason x", "coord task reopen t1",
    "coord task join x", "coord journal add -m x", "coord note src -m x", "coord rules ack", "coord worktree add fix", "coord land", "coord drill",
    "handoff new --state a --changed b --remaining c --next d", "handoff show h1", "handoff accept h1",
    "handoff decline h1 --reason x", "handoff withdraw h1",
)  # fmt: skip
# Those that make a ledger, are about the server or the machine, or launch something; their own tests say what they do here.
NEEDS_NO_LEDGER = {
    "coord setup", "coord init", "coord run", "coord demo", "coord teardown", "coord worktree done", "coord dispatch",
    "coord install-hooks", "coord uninstall-hooks", "coord gate", "coord server install", "coord server uninstall",
    "coord server status", "coord server key add", "coord server key rotate", "coord server key revoke", "coord server key list",
    "coord version", "coord policy suggest", "coord guard", "coord mcp", "coord complete", "coord task schema",
    "coord doctor", "coord audit", "coord repositories",
}  # fmt: skip


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
    tried = {*READING, *WRITING, *NEEDS_NO_LEDGER}
    lacking = [
        f"{command} {name}" for command in COMMANDS for name in table_of(command)
        if not any(f"{line} ".startswith(f"{command} {name} ") for line in tried)
    ]  # fmt: skip
    assert not lacking


@pytest.mark.parametrize("line", READING)
def test_before_init_reading_is_no_error_and_needs_no_name(plain: World, line: str) -> None:
    """A hook in a repository without gitcoord must not stand in anybody's way."""
    before = _everything(plain)
    told = "note: gitcoord is not set up in this repository\nhint: set it up: git coord setup\n"
    assert _run(plain, line, agent="") == Done(0, "", told)
    done = _run(plain, line, "--json")
    assert holds(done, READING[line])["initialised"] is False
    assert _everything(plain) == before


@pytest.mark.parametrize("line", WRITING)
def test_before_init_writing_says_how_to_begin(plain: World, line: str) -> None:
    notes = (".git/gitcoord/", ".git/objects/")  # locks and caches, and objects that nothing names
    before = _everything(plain, *notes)
    told = "error: gitcoord is not set up in this repository\nhint: set it up: git coord setup\n"
    assert _run(plain, line) == Done(2, "", told)
    refused(_run(plain, line, "--json"), "not-initialised", 2)
    assert _everything(plain, *notes) == before

"""`git coord drill`: it finds planted weaknesses, finds none where there are none, and touches nothing of the user's."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import chdir
from pathlib import Path

import pytest

from gitcoord.cli.drill.crowd import Crowd
from gitcoord.cli.drill.ground import Ground
from gitcoord.cli.drill.mirror import read_mirror
from gitcoord.cli.drill.model import CAUGHT, MISSED, UNKNOWN, Hold, Outcome, Try, lines, markdown, to_json
from gitcoord.cli.drill.tools import Action, is_denied
from gitcoord.guard import tools
from gitcoord.guard.setup.known import KNOWN, Known
from gitcoord.validators.tool_event import BEFORE
from gitcoord.world.open import environ, open_repository
from tests.cli.support import World
from tests.cli.test_json import holds
from tests.support import UNHOOKED, git

FILES = {f"src/{name}.py": f"{name}\n" for name in "cdefgh"} | {".gitattributes": "src/** gitcoord-claim\n"}


@pytest.fixture
def project(tmp_path: Path) -> World:
    """A project that marks its files, with hooks; nobody has an agent tool."""
    world = World(tmp_path / "project")
    world.commit(FILES)
    world.init().coord("install-hooks")
    return world


def drilled(world: World, place: Path, *, seconds: int = 300) -> Outcome:
    """Every way in once, without the crowd: what it finds at the gates does not depend on that."""
    with chdir(world.top):
        ctx = open_repository(environ(), writing=False)
        try:
            ground = Ground(place, read_mirror(ctx, os.environ), 7, time.monotonic() + seconds)
            crowd = Crowd(ground, 2, 7)
            ground.build(crowd.agents)
            crowd.run(rounds=0, again=False)
            return crowd.outcome(1)
        finally:
            ctx.store.close()


def missed(outcome: Outcome) -> set[tuple[str, str]]:
    assert {row.state for row in outcome.tries} <= {CAUGHT, MISSED}, outcome.tries
    return {(row.way, row.where) for row in outcome.tries if row.state == MISSED}


# --- a whole drill -----------------------------------------------------------------------------------------------------


def _everything(world: World, home: Path) -> dict[str, object]:
    """All files, those of git too; gitcoord's scratch files hold what is remembered of reads."""
    shown = {"refs": world.refs(), "status": world.git("status", "--porcelain")}
    files = {
        str(path): path.read_bytes()
        for top in (world.top, home)
        for path in sorted(top.rglob("*"))
        if path.is_file() and ".git/gitcoord/" not in str(path)
    }
    return {**files, **shown}


def test_nothing_is_found_where_nothing_is_wrong_and_nothing_of_the_users_is_touched(
    project: World, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "mine").write_text("mine")
    env = {"HOME": str(home)}
    project.take("src/a.py")
    project.write("src/b.py", "under way\n")
    before = _everything(project, home)
    row = holds(project.coord("drill", "--quick", "--agents", "10", "--seed", "7", "--json", env=env), "drill")
    assert _everything(project, home) == before
    assert (row["verdict"], row["agents"], row["seed"]) == ("no weakness found", 10, 7)
    assert (
        row["edits"] == 10 == row["grants"] and row["landed"] == 4 and row["lost_updates"] == row["double_grants"] == 0
    ), row
    assert row["bypasses"] == {"caught": 6, "missed": 0, "unknown": 0}
    assert {way["way"] for way in row["ways"]} == {
        "claim of a held path", "claim through MCP", "commit of a held file", "commit of a shared file without a claim",
        "landing of a held file", "merge onto trunk",
    }  # fmt: skip
    assert row["repeat"].endswith("--seed 7 --agents 10 --quick") and row["copy_of"].startswith("main at ")


def test_claims_that_are_granted_to_everybody(project: World, tmp_path: Path) -> None:
    """A `git claim` that says yes to all who wait: ten agents that begin together meet."""
    installed = Path(sys.executable).parent
    claim = tmp_path / "git-claim"
    claim.write_text(
        f'#!/bin/sh\ncase "$*" in *--wait*|release*) echo "{{}}"; exit;; esac\nexec {installed}/git-claim "$@"\n'
    )
    claim.chmod(0o755)
    path = f"{tmp_path}:{installed}:{os.environ['PATH']}"
    done = project.coord("drill", "--quick", "--agents", "20", "--json", env={"PATH": path})
    assert done.code == 1 and done.json["double_grants"] > 0 and done.json["verdict"] == "weakness found", done


def test_without_time_nothing_is_judged(project: World, tmp_path: Path) -> None:
    (tmp_path / "drill").mkdir()
    outcome = drilled(project, tmp_path / "drill", seconds=0)
    assert {row.state for row in outcome.tries} == {UNKNOWN} and outcome.exit_code == 4


def test_it_is_bounded_and_wants_ten_agents(project: World, plain: World) -> None:
    for words in (("--agents", "9"), ("--agents", "101"), ("--minutes", "0")):
        assert project.coord("drill", *words).code == 2
    assert plain.coord("drill", agent="").code != 0


# --- planted weaknesses ------------------------------------------------------------------------------------------------


def test_hooks_that_are_off_in_one_work_tree(project: World, tmp_path: Path) -> None:
    project.git("worktree", "add", "-q", str(tmp_path / "second"), "-b", "second")
    project.git("config", "extensions.worktreeConfig", "true")
    git(tmp_path / "second", "config", "--worktree", "core.hooksPath", "/dev/null")
    (tmp_path / "drill").mkdir()
    outcome = drilled(project, tmp_path / "drill")
    assert missed(outcome) == {
        ("commit of a held file", "second"),
        ("commit of a shared file without a claim", "second"),
    }
    assert outcome.exit_code == 1 and outcome.weaknesses[0][1] == f"git -C {tmp_path}/second coord doctor"


def test_a_tool_that_does_not_ask_the_guard_and_one_that_does(project: World, tmp_path: Path) -> None:
    (project.top / ".claude").mkdir()
    project.coord("setup", "--yes", "--tool", "claude", agent="")
    (project.top / ".gemini").mkdir()
    (tmp_path / "drill").mkdir()
    outcome = drilled(project, tmp_path / "drill")
    assert missed(outcome) == {("write by Gemini CLI", "project")}
    assert {row.way for row in outcome.tries if row.state == CAUGHT} >= {
        "write by Claude Code",
        "shell command by Claude Code",
    }


def test_a_guard_that_is_not_trusted(project: World, tmp_path: Path) -> None:
    """Codex skips hooks that nobody trusted; that shows when its agent runs a command of which the guard has not heard."""
    project.claim("src/a.py", agent="", env={"CODEX_SESSION_ID": "c1"})
    (tmp_path / "drill").mkdir()
    outcome = drilled(project, tmp_path / "drill")
    assert missed(outcome) == {("write by Codex", "agent codex-c1")} and "/hooks" in outcome.weaknesses[0][0]


def test_a_server_with_and_without_the_gate(project: World, tmp_path: Path) -> None:
    server = tmp_path / "server.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(server))
    for name in ("new", "drill", "again"):
        (tmp_path / name).mkdir()
    world = World(tmp_path / "new/project")
    world.commit(FILES)
    world.git("remote", "add", "origin", str(server))
    world.git("push", "-q", "origin", "main")
    assert world.coord("init", "--remote", "origin", "--sync", "main").code == 0
    world.coord("install-hooks")
    assert missed(drilled(world, tmp_path / "drill")) == {("push past the client's hooks", "server")}
    assert world.coord("server", "install", str(server)).code == 0
    assert missed(drilled(world, tmp_path / "again")) == set()
    world.git("remote", "set-url", "origin", "ssh://git@host.invalid/x")
    with chdir(world.top):
        ctx = open_repository(environ(), writing=False)
        mirror = read_mirror(ctx, os.environ)
        ctx.store.close()
    assert mirror.server == "unknown", "one far away cannot be judged from here"


def test_a_policy_that_marks_nothing(project: World, tmp_path: Path) -> None:
    project.write(".gitattributes", "*.py text\n")
    project.git(*UNHOOKED, "commit", "-q", "-a", "-m", "nothing is marked")
    (tmp_path / "drill").mkdir()
    outcome = drilled(project, tmp_path / "drill")
    assert missed(outcome) == {("commit of a shared file without a claim", "policy")}
    assert outcome.weaknesses[0][1] == "git coord policy suggest"


def test_what_a_project_runs_itself_is_left_out(project: World, tmp_path: Path) -> None:
    """Its checks and validators may have effects outside. Files that need a claim only where they land are tried on trunk."""
    project.write(".gitcoord/config", f"[land]\n\tcheck = touch {tmp_path}/ran\n[gitcoord]\n\troot = {'1' * 40}\n")
    project.write(".gitattributes", "src/** gitcoord-claim=landing\n")
    project.git("add", "-A")
    project.git(*UNHOOKED, "commit", "-q", "-m", "policy")
    (tmp_path / "drill").mkdir()
    outcome = drilled(project, tmp_path / "drill")
    assert missed(outcome) == set() and any("land.check" in note for note in outcome.notes)
    assert not (tmp_path / "ran").exists()


# --- the verdict -------------------------------------------------------------------------------------------------------


def test_two_holds_at_one_time_are_a_double_grant() -> None:
    one, other = Hold("a", "x", 1, 3, 0.5), Hold("a", "y", 2, 4, 0.1)
    found = Outcome(1, 10, 1, 1, holds=(one, other, Hold("b", "y", 1, 9, 0), Hold("a", "y", 4, 5, 0)), edits=4)
    assert found.double_grants == 1 and found.exit_code == 1
    assert found._replace(holds=(one, other._replace(start=3))).double_grants == 0
    assert found._replace(holds=(one, other._replace(agent="x"))).double_grants == 0


def test_the_verdict_and_its_reports() -> None:
    caught, gone = Try("push", "server", CAUGHT), Try("commit", "a|b<c", MISSED, "", "git coord setup")
    unsure = Try("push", "server", UNKNOWN, "not seen from here")
    base = Outcome(3, 10, 1.2, 5, edits=4)
    assert [base._replace(tries=rows).exit_code for rows in ((caught,), (caught, unsure), (caught, unsure, gone))] == [
        0,
        4,
        1,
    ]
    assert base._replace(lost=1).exit_code == 1 == base._replace(broken="x").exit_code
    assert base._replace(edits=0, refused=("a role",)).exit_code == 4
    row = to_json(base._replace(tries=(caught, gone, gone), holds=(Hold("a", "x", 1, 3, 0.5),)))
    text = "\n".join(markdown(row))
    assert (
        text.startswith("### Drill: weakness found\n\n10 agents at once, 5 actions in 1 s.\n")
        and "| commit | a\\|b&lt;c | 0 | 2 |" in text
    )
    assert "| waits p50 / p95 / longest | 0.5 s / 0.5 s / 0.5 s |" in text and text.count("git coord setup") == 1
    assert lines(row)[0] == "weakness found: 10 agents at once, 5 actions in 1 s"
    assert lines(row)[-1] == "repeat it: git coord drill --seed 3 --agents 10"


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_the_events_are_those_of_each_tool(known: Known) -> None:
    for shell in (False, True):
        action = Action(known.name, "/top", "src/a.py", shell)
        said = json.loads(action.data())
        tool = tools.detect(said)
        event = tool.read(said)
        assert (tool.NAME, event.phase) == (known.name, BEFORE), said
        assert event.command == "echo drill >> src/a.py" if shell else list(event.writes) == ["/top/src/a.py"]
        assert "git coord guard" in action.command(known)


def test_an_answer_that_denies() -> None:
    assert is_denied(2, b"") and not is_denied(0, b"") and not is_denied(1, b"") and not is_denied(0, b"no json")
    for row in ({"permission": "deny"}, {"decision": "block"}, {"hookSpecificOutput": {"permissionDecision": "ask"}}):
        assert is_denied(0, json.dumps(row).encode())
    assert not is_denied(0, b'{"permission": "allow"}')

"""Write claims are for who may write: by role, by `gitcoord-writers`, at the client, through a remote and at the server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import Done, World
from tests.gates.support import Project
from tests.ledger.remote.support import Fleet
from tests.server.support import Site
from tests.support import git

CONFIG = """[gitcoord]
\trole = code
[role "explore"]
\treadonly = true
\tscratch = scratch/{agent}
[agent "eve"]
\trole = explore
"""
ATTRIBUTES = "tests/** gitcoord-writers=test\nsrc/special gitcoord-writers=test\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path, ATTRIBUTES, CONFIG)
    made.unhooked("checkout", "-q", "main")
    made.commit({"src/special": "x\n", "src/plain": "x\n"})
    for name in ("tests", "scratch/alice", "scratch/eve"):
        (made.world.top / name).mkdir(parents=True)
    return made


def refused(done: Done) -> bool:
    """Return whether the role refused it, as data and in words."""
    row = done.json
    return (done.code, row["error"]) == (1, "role") and "git coord role" in " ".join(row["hints"])


def claim(project: Project, *words: str, agent: str) -> Done:
    return project.world.claim(*words, "--json", agent=agent)


# --- who -----------------------------------------------------------------------------------------------------------


def test_a_read_only_role_claims_its_scratch_path_alone(project: Project) -> None:
    done = claim(project, "free/x", agent="eve")
    assert refused(done)
    assert "role 'explore' of 'eve'" in done.json["message"] and "scratch/eve" in done.json["message"]
    assert done.json["hints"][0].endswith("git claim --mode read free/x")
    assert refused(claim(project, "scratch", agent="eve")), "others' lie below it too"
    assert refused(claim(project, "scratch/alice/notes", agent="eve"))
    assert refused(claim(project, "free/x", agent="eve.helper")), "a subagent has its parent's role"
    assert claim(project, "scratch/eve/notes", agent="eve").code == 0
    assert project.world.claims() == ["path/scratch/eve/notes/@eve"]


def test_what_it_is_told_helps(project: Project) -> None:
    done = claim(project, "free/x", agent="eve")
    words = done.json["hints"][0].partition("git claim ")[2].split()
    assert claim(project, *words, agent="eve").code == 0
    assert project.as_person("role", "eve", "code").code == 0
    assert claim(project, "free/x", agent="eve").code == 0


def test_only_writing_is_refused(project: Project) -> None:
    for mode in ("read", "intent"):
        assert claim(project, "--mode", mode, "free/x", agent="eve").code == 0
    assert refused(claim(project, "free/x", agent="eve")), "its intent does not become a write claim"
    assert refused(claim(project, "free/x", "shared/a", agent="eve"))
    assert json.loads(claim(project, "show", "free/x", agent="eve").out)["claims"][0]["mode"] == "intent"
    assert claim(project, "@gpu", agent="eve").code == 0, "resources say themselves who may use them"


def test_writers_limit_claims_to_roles(project: Project) -> None:
    for path in ("tests/t", "tests", "src/special"):
        assert refused(claim(project, path, agent="alice")), path
    done = claim(project, "src", agent="alice")
    assert refused(done) and "'src/special' below it" in done.json["message"]
    assert claim(project, "src/plain", "free", agent="alice").code == 0
    assert project.as_person("role", "tess", "test").code == 0
    assert claim(project, "tests", "src/special", agent="tess").code == 0


def test_it_is_refused_before_waiting(project: Project) -> None:
    assert claim(project, "free/x", agent="alice").code == 0
    assert refused(claim(project, "--wait", "10m", "free/x", agent="eve")), "waiting would not help"
    assert refused(claim(project, "--dry-run", "free/x", agent="eve"))


def test_a_policy_that_cannot_be_read_is_not_none(project: Project) -> None:
    project.commit({".gitcoord/config": "[role\n"})
    done = claim(project, "free/x", agent="alice")
    assert (done.code, done.json["error"]) == (4, "could-not-judge")
    assert claim(project, "--mode", "intent", "free/x", agent="alice").code == 0


# --- elsewhere -----------------------------------------------------------------------------------------------------


def test_through_a_remote(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    one, two = fleet.joined()
    one.commit({".gitcoord/config": CONFIG, ".gitattributes": ATTRIBUTES})
    one.git("push", "-q", "origin", "main")
    two.git("pull", "-q", "origin", "main")
    before = fleet.refs()
    for machine in (one, two):
        assert refused(machine.claim("--json", "--", "free/x", agent="eve"))
        assert refused(machine.claim("--json", "--", "tests/t", agent="alice"))
    assert fleet.refs() == before
    assert two.claim("--mode", "intent", "--", "free/x", agent="eve").code == 0
    assert one.claim("--", "free/y", agent="alice").code == 0


@pytest.mark.parametrize("accounts", ["", '[account "shared"]\n\tagent = alice\n\tagent = eve\n'])
def test_the_server_makes_up_its_own_mind(tmp_path: Path, accounts: str) -> None:
    """The client's own branch was set back to a policy that lets everybody: what is pushed was decided by that."""
    site = Site(tmp_path).setup()
    if accounts:
        site.accounts(accounts)
    account = "shared" if accounts else ""
    old = site.world.git("rev-parse", "main")
    site.world.commit({".gitcoord/config": CONFIG, ".gitattributes": ATTRIBUTES})
    git(site.bare, "fetch", "-q", str(site.top), "main:main")  # it would ask a person first
    site.world.git("reset", "-q", "--hard", old)
    for path, agent in (("free/x", "eve"), ("tests/t", "alice")):
        site.claim("--mode", "intent", "--", path, agent=agent)
        assert site.sync(account).code == 0
        site.claim("--", path, agent=agent)
        before = site.refs()
        done = site.sync(account)
        assert done.code != 0 and "may not be claimed for writing" in done.err and site.refs() == before, done
        _set_back(site)
    site.claim("free/y", agent="alice")
    assert site.sync(account).code == 0


def _set_back(site: Site) -> None:
    """The clone's ledger as the server has it."""
    there = site.private()
    for ref in site.local():
        if ref not in there:
            site.world.git("update-ref", "-d", ref)
    for ref, oid in there.items():
        site.world.git("update-ref", ref, oid)
    site.world.git("update-ref", "refs/gitcoord/tip", there["refs/heads/gitcoord"])


# --- what it costs -------------------------------------------------------------------------------------------------


PLAIN = ["config", "update-ref"]  # what every claim starts


def started(world: World, tmp_path: Path, *words: str, agent: str = "alice") -> list[str]:
    """The gits that a command started, by their first word, in alphabetical order."""
    trace = tmp_path / "trace"
    trace.unlink(missing_ok=True)
    done = world.claim(*words, agent=agent, env={"GIT_TRACE2_EVENT": str(trace)})
    assert done.code == 0, done
    rows = [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []
    return sorted(_verb(row["argv"]) for row in rows if row["event"] == "start")


def _verb(argv: list[str]) -> str:
    words = iter(argv[1:])
    for word in words:
        if word in ("-c", "-C"):
            next(words)
        elif not word.startswith("-"):
            return word
    return ""


@pytest.mark.parametrize("config", ["", '[gitcoord]\n\trole = code\n[role "code"]\n\toverseer = true\n'])
def test_where_nobody_is_restricted_git_is_asked_once_for_a_commit(tmp_path: Path, config: str) -> None:
    world = World(_repository(tmp_path))
    if config:
        world.commit({".gitcoord/config": config, "deep/.gitattributes": "* gitcoord-claim\n"})
    world.init()
    world.claim("a", agent="alice")
    for count in range(3):
        assert started(world, tmp_path, f"b{count}") == PLAIN
        world.commit({f"deep/er/{count}": "x\n"})
        assert started(world, tmp_path, f"c{count}") == sorted(["diff-tree", *PLAIN]), "where work lands moved on"
    world.commit({"deep/.gitattributes": "* gitcoord-writers=test\n"})
    assert world.claim("deep/x", agent="alice").code == 1, "what it was is not believed for longer"


def test_where_roles_are_restricted_only_writers_are_asked_for(tmp_path: Path) -> None:
    world = World(_repository(tmp_path))
    world.commit({".gitcoord/config": CONFIG, ".gitattributes": "* gitcoord-claim\n"})
    world.init()
    world.claim("a", agent="alice")
    assert started(world, tmp_path, "b") == PLAIN
    world.commit({".gitattributes": ATTRIBUTES})
    world.claim("c", agent="alice")
    assert started(world, tmp_path, "d") == sorted(["check-attr", "ls-tree", *PLAIN])


def _repository(place: Path) -> Path:
    git(place, "init", "-q", "-b", "main", "top")
    return place / "top"

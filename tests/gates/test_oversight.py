"""An agent does not kill, halt, lift a kill or a halt, or take the gates away: that is for people."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import PERSON, World
from tests.gates.support import SHARED, Project

CONFIG = """[role "warden"]
\toverseer = true
[role "code"]
\toverseer = false
[agent "boss"]
\trole = warden
[agent "alice"]
\trole = code
"""
LIFTING = (("revive", "bob"), ("unhalt",))
TAKING = (("uninstall-hooks",), ("teardown", "--yes"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """bob was killed, and then everything was halted."""
    return stopped(Project(tmp_path, SHARED, CONFIG))


def stopped(project: Project) -> Project:
    project.claim("free/x", agent="bob")
    for words in (["kill", "bob"], ["halt"]):
        assert project.as_person(*words).code == 0
    return project


@pytest.mark.parametrize("agent", ["alice", "stranger"])
def test_an_agent_stops_nobody(tmp_path: Path, agent: str) -> None:
    project = Project(tmp_path, SHARED, CONFIG)
    assert project.as_person("start").code == 0
    project.claim("free/x", agent="bob")
    before = project.git("rev-parse", "gitcoord")
    for words in (["kill", "bob"], ["kill", PERSON], ["halt"]):
        done = project.coord(*words, agent=agent)
        assert done.code == 1 and "only a person" in done.err, done
    assert project.git("rev-parse", "gitcoord") == before
    assert project.coord("kill", "bob", agent="boss").code == 0, "its role may"
    assert project.coord("halt", agent="boss").code == 0


def test_a_person_who_was_killed_revives_itself(tmp_path: Path) -> None:
    project = Project(tmp_path, SHARED, CONFIG)
    assert project.as_person("start").code == 0
    assert project.coord("kill", PERSON, agent="boss").code == 0
    assert project.coord("halt", agent="boss").code == 0
    for verb, hint in (("start", "git coord unhalt"), ("unhalt", f"git coord revive {PERSON}")):
        refused = project.as_person(verb)
        assert refused.code == 1 and hint in refused.out, refused
    for words in (["revive", PERSON], ["unhalt"], ["start"]):
        done = project.as_person(*words)
        assert done.code == 0, done


def lifted(project: Project, agent: str) -> list[int]:
    """The exit codes of unhalt, then of revive."""
    return [project.coord(*words, agent=agent).code for words in reversed(LIFTING)]


@pytest.mark.parametrize("agent", ["alice.helper", "stranger"])
def test_an_agent_lifts_nothing(project: Project, agent: str) -> None:
    before = project.git("rev-parse", "gitcoord")
    assert lifted(project, agent) == [1, 1]
    assert project.as_person("unhalt").code == 0
    assert project.coord("revive", "bob", agent=agent).code == 1
    assert project.git("rev-parse", "gitcoord~1") == before


def test_a_person_does(project: Project) -> None:
    assert [project.as_person(*words).code for words in reversed(LIFTING)] == [0, 0]
    assert project.claim("free/x", agent="bob").code == 0


def test_an_agent_whose_role_the_policy_lets_does(project: Project) -> None:
    assert lifted(project, "boss") == [0, 0]


def test_lifting_what_is_not_there_is_nobodys_business(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.claim("free/x", agent="bob")
    assert lifted(project, "alice") == [0, 0]


@pytest.mark.parametrize("words", TAKING)
def test_an_agent_takes_no_gate_away(tmp_path: Path, words: tuple[str, ...]) -> None:
    project = Project(tmp_path, SHARED, CONFIG)
    before = project.git("for-each-ref")
    done = project.coord(*words, agent="alice")
    assert done.code == 1 and "only a person" in done.err, done
    done = project.world.coord(*words, agent="", env={"CLAUDECODE": "1"})
    assert done.code == 2 and "agent tool" in done.err, done
    assert project.git("for-each-ref") == before
    assert project.coord(*words, "--dry-run", agent="alice").code == 0, "looking is free"
    assert project.coord(*words, agent="boss").code == 0, "its role may"


@pytest.mark.parametrize("words", TAKING)
def test_a_person_and_a_script_of_nobodys_do(tmp_path: Path, words: tuple[str, ...]) -> None:
    for place, act in (("one", Project.as_person), ("two", Project.coord)):
        project = Project(tmp_path / place, SHARED, CONFIG + "[gitcoord]\n\tapprover = somebody.else\n")
        done = act(project, *words)
        assert done.code == 0, done


def test_an_agent_takes_no_gate_away_where_the_ledger_cannot_be_read(tmp_path: Path) -> None:
    project = Project(tmp_path, SHARED, CONFIG)
    project.unhooked("update-ref", "-d", "refs/heads/gitcoord")
    assert project.coord("uninstall-hooks", agent="boss").code == 4
    assert project.as_person("uninstall-hooks").code == 0


@pytest.mark.parametrize("words", ["approve a5", "deny a5", "revive bob", "unhalt"])
def test_where_nobody_is_named_the_hint_is_a_person_and_no_agents_name(world: World, words: str) -> None:
    done = world.coord(*words.split(), agent="")
    assert done.code == 2 and "only a person at a terminal may" in done.err and "GITCOORD_AGENT" not in done.err, done

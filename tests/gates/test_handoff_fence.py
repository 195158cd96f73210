"""From the moment a handoff is accepted, the gates refuse the giver and let the new owner through."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.support import Project, refused

SAID = ("--state", "it parses", "--changed", "the lexer", "--remaining", "the printer", "--next", "print")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.branch("work")
    made.claim("shared/a", agent="alice")
    return made


def test_the_old_one_is_fenced(project: Project) -> None:
    id = project.world.handoff("new", "--to", "bob", *SAID, "--json").json["id"]
    assert project.try_commit({"shared/a": "1\n"}, "alice").code == 0, "an offer changes nothing"
    assert refused(project.try_commit({"shared/a": "2\n"}, "bob"), "held", "shared/a")
    assert project.world.handoff("accept", id, agent="bob").code == 0
    done = project.try_commit({"shared/a": "3\n"}, "alice")
    assert refused(done, "held", "shared/a") and "bob" in done.err
    assert project.try_commit({"shared/a": "3\n"}, "bob").code == 0
    assert project.coord("fsck", "--json", agent="ada").json["clean"] is True


def test_a_push_of_the_old_one_is_fenced(project: Project) -> None:
    id = project.world.handoff("new", *SAID, "--json").json["id"]
    project.commit({"shared/a": "by alice\n"}, "late", "alice")  # committed, and not yet pushed
    assert project.world.handoff("accept", id, agent="bob").code == 0
    assert refused(project.push("work:refs/heads/work", agent="alice"), "held", "shared/a")
    assert project.push("work:refs/heads/work", agent="bob").code == 0


def test_the_new_owner_releases_all_of_the_work(project: Project) -> None:
    """The base passes too: what the old one committed is on record as released work."""
    project.commit({"shared/a": "by alice\n"}, "hers", "alice")
    id = project.world.handoff("new", *SAID, "--json").json["id"]
    assert project.world.handoff("accept", id, agent="bob").code == 0
    row = project.claim("release", "shared/a", "--json", agent="bob").json["released"][0]
    assert [file[0] for file in row["files"]] == ["shared/a"] and row["commit"] == project.git("rev-parse", "HEAD")

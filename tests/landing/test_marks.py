"""`gitcoord-claim=landing`: such paths are free on work branches, and need a claim where work lands, at every gate."""

from __future__ import annotations

from pathlib import Path

from tests.gates.support import Project, refused
from tests.server.support import Site

MARKS = "hot gitcoord-claim=landing\nshared/** gitcoord-claim\n"


def test_the_gates_of_a_clone(tmp_path: Path) -> None:
    project = Project(tmp_path, MARKS)
    project.commit({"hot": "0\n"})
    project.git("push", "-q", "origin", "main", agent="", ok=False)
    project.claim("hot", agent="bob")
    project.git("switch", "-q", "-c", "work")
    assert project.try_commit({"hot": "1\n"}, "alice").code == 0, "free on a work branch, although bob holds it"
    assert refused(project.try_commit({"shared/a": "1\n"}, "alice"), "unclaimed", "shared/a")
    project.unhooked("reset", "-q", "--hard")
    assert project.push("work", agent="alice").code == 0
    free = project.claim("check", "hot", "--json", agent="alice")
    assert free.json["allowed"], free
    project.switch("main")
    assert project.world.claim("check", "hot", "--json").json["paths"][0]["verdict"] == "held"
    assert refused(project.try_commit({"hot": "2\n"}, "alice"), "held", "hot")
    project.unhooked("reset", "-q", "--hard")
    merged = project.try_git("merge", "-q", "work", agent="alice")
    assert merged.code and "[held]" in merged.err, "trunk is where it lands"
    project.unhooked("reset", "-q", "--hard", "main")
    project.claim("release", "hot", agent="bob")
    explained = project.coord("policy", "explain", "hot", "--json")
    assert explained.json["paths"][0]["rules"][0]["value"] == "landing"
    done = project.world.coord("land", "work", "--json")
    assert done.code == 0, done
    assert done.json["released"] == ["hot"]


def test_the_gate_of_a_server(tmp_path: Path) -> None:
    site = Site(tmp_path, MARKS).setup()
    site.commit({"hot": "1\n"}, agent="alice")
    assert site.push("origin", "HEAD:refs/heads/work", account="alice").code == 0
    refusal = site.push("origin", "HEAD:refs/heads/main", account="alice")
    assert refusal.code and "unclaimed" in refusal.err, refusal

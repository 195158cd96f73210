"""Names that git, a shell or a line-based protocol could take for something else are judged like any other."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.gates.support import Project, refused
from tests.support import CLAIM

NAMES = [":x", "a:b", ":(top)x", ":!x", "HEAD:x", "sub/:x", "new\nline", 'ta\tb"\\', "w\udcff", "*x", "-x", "@x"]
PLACES = [":d", "new\nline", 'ta\tb"\\', "w\udcff"]
TEXT = "".join(f"line {n}\n" for n in range(30))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, "* gitcoord-claim\n.gitattributes -gitcoord-claim\n")


@pytest.mark.parametrize("names", [NAMES[start::4] for start in range(4)], ids=str)
def test_stale_text(project: Project, names: list[str]) -> None:
    """Shared, claimed, edited, released, landed; then an edit from before that."""

    def text(old: str = "", new: str = "") -> dict[str, str | None]:
        return dict.fromkeys(names, TEXT.replace(old, new) if old else TEXT)

    def told(done: Done, rule: str) -> bool:
        return done.code != 0 and done.err.count(f"[{rule}]") == len(names)

    literal = [f":(literal){name}" for name in names]
    start = project.commit(text())
    project.unhooked("push", "-q", "origin", "main")
    assert told(project.try_commit(text("line 3\n", "unclaimed\n"), "alice"), "unclaimed")
    project.unhooked("reset", "-q", "--hard")
    project.branch("bobs")
    project.claim(*literal, agent="bob")
    commit = project.commit(text("line 3\n", "bob's\n"), "work", "bob")
    project.claim("release", *literal, agent="bob")
    project.switch("main")
    project.git("merge", "-q", "--squash", "bobs", agent="boss")
    for done in (project.try_commit({}, "boss"), project.push("main", agent="boss")):
        assert done.code == 0, done
    project.branch("stale", start)
    project.claim(*literal, agent="alice")
    done = project.try_commit(text("line 3\n", "alice's\n"), "alice")
    assert told(done, "lineage") and commit[:12] in done.err, done
    project.commit({}, "past the hooks", "alice")
    done = project.push("stale", agent="alice")
    assert told(done, "lineage") and commit[:12] in done.err, done
    # The way out that is named works as it stands, pasted into a shell, with the files gone from the work tree.
    project.switch("main")
    project.commit(dict.fromkeys(names))
    hints = [line.partition("git claim ")[2] for line in done.err.splitlines() if "git claim disown" in line]
    assert len(hints) == len(names)
    for words in hints:
        run = ["bash", "-c", f"{shlex.join(CLAIM)} {words}"]
        subprocess.run(run, cwd=project.top, env=project.world.environ("alice", {}), check=True, capture_output=True)
    assert project.push("stale", agent="alice").code == 0


@pytest.mark.parametrize("place", PLACES)
def test_whether_attributes_matter_is_judged_by_what_they_say(project: Project, place: str) -> None:
    project.commit({f"{place}/.gitattributes": "x text\n"})
    project.unhooked("push", "-q", "origin", "main")
    project.branch("work")
    done = project.try_commit({f"{place}/.gitattributes": "x -text\n"}, "alice")
    assert done.code == 0, done
    done = project.try_commit({f"{place}/.gitattributes": "x -text -gitcoord-claim\n"}, "alice")
    assert refused(done, "own-files"), done
    project.commit({}, "past the hooks", "alice")
    assert refused(project.push("work", agent="alice"), "own-files")


@pytest.mark.parametrize("place", PLACES)
def test_attributes_count(project: Project, place: str) -> None:
    free, held = f"{place}/free", f"{place}/held"
    project.commit({f"{place}/.gitattributes": "free -gitcoord-claim\n", free: "x\n", held: "x\n"})
    done = project.try_commit({free: "y\n"}, "alice")
    assert done.code == 0, done
    assert refused(project.try_commit({held: "y\n"}, "alice"), "unclaimed")
    for path, rules in ((free, 0), (held, 1)):
        done = project.coord("policy", "explain", path, "--json", agent="alice")
        assert done.code == 0 and len(done.json["paths"][0]["rules"]) == rules, done

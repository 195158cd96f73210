"""`[rules] ack = true`: a push by an agent that has not read the rules as they are now does not leave, or does not land."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.support import Project, refused

CONFIG = "[rules]\n\tack = true\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, config=CONFIG)
    project.commit({".gitcoord/rules.md": "# Rules\n\n1. first\n"}, "rules")
    project.unhooked("push", "-q", "origin", "main")
    return project


def version(project: Project, rev: str = "main") -> str:
    return project.git("rev-parse", f"{rev}:.gitcoord/rules.md")


def test_a_push_needs_the_pushers_word(project: Project) -> None:
    project.branch("work")
    assert project.try_commit({"free/x": "new\n"}, "alice").code == 0, "a commit needs none"
    done = project.push("work", agent="alice")
    assert refused(done, "rules") and f"git coord rules ack {version(project)[:12]}" in done.err
    assert project.coord("rules", "ack", agent="bob").code == 0
    assert refused(project.push("work", agent="alice"), "rules"), "each for itself"
    assert project.coord("rules", "ack", agent="alice").code == 0
    assert project.push("work", agent="alice").code == 0
    assert project.push("work:other", agent="alice.sub").code == 0, "a subagent's parent has read them"


def test_new_rules_need_it_again_also_where_they_were_only_fetched(project: Project) -> None:
    project.coord("rules", "ack", agent="alice")
    project.branch("work")
    project.commit({"free/x": "new\n"})
    project.branch("person")
    project.commit({".gitcoord/rules.md": "# Rules\n\n1. second\n"}, "new rules")
    project.unhooked("push", "-q", "origin", "person:main")
    project.switch("work")
    project.unhooked("merge", "-q", "-m", "merge", "origin/main")
    done = project.push("work:main", agent="alice")
    new = version(project, "origin/main")
    assert refused(done, "rules") and f"git coord rules ack {new[:12]}" in done.err, done
    assert new != version(project), "trunk here is behind"
    shown = project.coord("rules", "show", new[:12], agent="alice")
    assert "1. second" in shown.out and "1. first" in project.coord("rules", agent="alice").out
    assert project.coord("rules", "ack", new[:12], agent="alice").code == 0
    assert project.push("work:main", agent="alice").code == 0


def test_explained(project: Project) -> None:
    done = project.coord("policy", "explain", "free/x", agent="alice")
    assert "rules.ack=true  (.gitcoord/config, enforce)" in done.out
    assert project.coord("policy", "check", agent="alice").code == 0
    project.unhooked("rm", "-q", ".gitcoord/rules.md")
    project.unhooked("commit", "-q", "-m", "no rules")
    done = project.coord("policy", "check", agent="alice")
    assert done.code == 1 and "rules.ack needs .gitcoord/rules.md" in done.out
    project.branch("work")
    project.commit({"free/x": "new\n"})
    project.unhooked("push", "-q", "origin", "main")
    assert project.push("work", agent="alice").code == 0, "where there are none, none need be read"


def test_words(project: Project) -> None:
    assert project.coord("rules", "ack", "nonsense", agent="alice").code == 2
    assert project.coord("rules", "ack", "main:free/x", agent="alice").code == 2
    assert project.coord("rules", "ack", "main", agent="alice").code == 0, "a commit that has them"
    assert project.coord("rules", "ack", agent="alice").out.startswith("alice had read")
    assert project.coord("rules", "ack", "a", "b", agent="alice").code == 2
    who = project.coord("rules", "--who", "--json").json
    assert [(row["agent"], row["version"], row["current"]) for row in who["readers"]] == [
        ("alice", version(project), True)
    ]
    assert project.coord("fsck").code == 0


def test_hostile_rules_are_shown_harmlessly(project: Project) -> None:
    project.commit({".gitcoord/rules.md": "\x1b[31m[x](javascript:y)\r\n\u202e\ttab\n" + "x" * 100_000})
    done = project.coord("rules", agent="alice")
    assert done.code == 0 and "\\x1b[31m" in done.out and "    tab" in done.out

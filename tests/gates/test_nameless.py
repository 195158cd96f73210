"""Commands without an identity: an editor, a GUI or cron has no terminal and no name; free paths need none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import PERSON, Done
from tests.gates.support import SHARED, Project, refused
from tests.support import git

CONFIG = """[role "overseer"]
\toverseer = true
[agent "boss"]
\trole = overseer
"""
CLAUDE = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "c1"}
UNNAMED = "could not be judged: nobody is named here"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, SHARED + "guarded gitcoord-guard=checkpoint\n", CONFIG)


def editor(project: Project, *words: str, env: dict[str, str] | None = None) -> Done:
    """git as an editor runs it: no terminal, nothing to read, no name."""
    done = subprocess.run(
        ["git", *words], cwd=project.top, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, start_new_session=True, timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def commit(project: Project, files: dict[str, str | None], env: dict[str, str] | None = None) -> Done:
    project.write(files)
    project.git("add", "-A")
    done = editor(project, "commit", "-q", "-m", "work", env=env)
    if done.code:
        project.unhooked("reset", "-q", "--hard")
    return done


def land_elsewhere(project: Project, files: dict[str, str]) -> None:
    """Work of a colleague that landed at the remote."""
    other = project.place / "other"
    if not other.exists():
        git(project.place, "clone", "-q", str(project.remote), str(other))
    for name, text in files.items():
        (other / name).write_text(text)
    git(other, "commit", "-q", "-am", "work of another")
    git(other, "push", "-q", "origin", "main")


def test_an_unshared_file_is_committed_by_anybody(project: Project) -> None:
    assert commit(project, {"free/x": "new\n", "free/new": "new\n"}) == Done(0, "", "")
    assert "Agent:" not in project.git("log", "-1", "--format=%B")


def test_landed_work_is_pulled_by_anybody(project: Project) -> None:
    land_elsewhere(project, {"shared/a": "landed\n", "free/x": "landed\n"})
    done = editor(project, "pull", "-q", "--ff-only")
    assert done.code == 0, done
    assert project.git("rev-parse", "main") == project.git("rev-parse", "origin/main")


def test_a_tool_that_does_not_say_which_conversation_it_is(project: Project) -> None:
    tool = {"CLAUDECODE": "1"}
    assert commit(project, {"free/x": "new\n"}, tool).code == 0
    done = commit(project, {"shared/a": "new\n"}, tool)
    assert done.code != 0 and "does not say which conversation" in done.err, done


@pytest.mark.parametrize("files", [{"shared/a": "new\n"}, {"free/held": "new\n"}, {"guarded": "x\n"}])
def test_what_somebody_must_answer_for_is_refused(project: Project, files: dict[str, str | None]) -> None:
    project.claim("free/held", agent="bob")
    done = commit(project, files)
    assert done.code != 0 and ": nobody is named here" in done.err and next(iter(files)) in done.err, done
    assert "at a terminal" in done.err
    assert "fsck" not in done.err, "the ledger is in order"


def test_a_nameless_push_is_for_a_person_at_a_terminal(project: Project) -> None:
    assert project.world.at_terminal("shared/a").code == 0
    project.unhooked("commit", "-q", "--allow-empty", "-m", "x")
    project.write({"shared/a": "new\n"})
    project.unhooked("commit", "-qam", "work")
    done = editor(project, "push", "-q", "origin", "main")
    assert done.code != 0 and "hint: a person pushes at a terminal: git push\n" in done.err, done
    assert "git coord setup" not in done.err, "no setting lets an editor push this"


def test_a_name_is_asked_for_only_where_it_helps(project: Project) -> None:
    """A path that another holds stays held for everybody else: its holder is asked, and named first."""
    project.claim("free/held", agent="bob")
    done = commit(project, {"free/held": "new\n"})
    assert done.err.startswith("error: free/held: bob holds it [held]\n"), done
    assert "could not be judged" not in done.err and "error: this commit is refused: nobody is named" in done.err
    assert "hint: ask bob, or wait until it is free: git claim show free/held\n" in done.err
    assert "GITCOORD_AGENT" not in done.err and "git coord run" not in done.err
    assert project.world.claim("show", "free/held", agent="").code == 0, "the hint needs no name"
    done = commit(project, {"free/held": "new\n", "shared/a": "new\n"})
    assert "ask bob" in done.err and "GITCOORD_AGENT" in done.err, "shared/a needs a name"
    done = commit(project, {"shared/a": "new\n"})
    assert "ask " not in done.err and "GITCOORD_AGENT" in done.err and "git coord setup" in done.err
    assert "gitcoord.person" not in done.err, "agents read this too"


def test_an_editor_is_told_what_its_person_does(project: Project) -> None:
    """The person's way comes first, and only what can help; one line is for an agent that has said no name."""
    assert project.world.at_terminal("free/x").code == 0  # the ledger knows this person
    done = commit(project, {"shared/a": "new\n"})
    hints = [line for line in done.err.splitlines() if line.startswith("hint: ")]
    assert hints == [
        "hint: a person does it at a terminal, after: git claim shared/a",
        "hint: git coord setup, run there, can let that person's editor commit what is claimed",
        "hint: an agent says its name before the command: GITCOORD_AGENT=<name>",
    ], done
    done = commit(project, {"guarded": "x\n"})
    assert "git coord setup" not in done.err and "git coord run" not in done.err, "no setting lets an editor change it"
    # Followed: claimed at a terminal, and the editor may.
    assert project.world.at_terminal("shared/a").code == 0
    project.git("config", "gitcoord.person", PERSON.replace("_at_", "@"))
    assert commit(project, {"shared/a": "new\n"}).code == 0


def test_kill_and_halt_ask_for_a_person_at_once(project: Project) -> None:
    project.claim("free/x", agent="bob")
    for words in (["kill", "bob"], ["halt"]):
        done = project.coord(*words, agent="")
        assert done.code == 2 and "only a person at a terminal may" in done.err, done
        assert "GITCOORD_AGENT" not in done.err and "git claim" not in done.err, done
    done = project.coord("halt", agent="-bad-")
    assert done.code == 2 and "only a person" not in done.err, "a wrong name is told as one"


def test_released_work_that_is_lacking_is_no_question_of_names(project: Project) -> None:
    project.work("bob", "bobs", {"free/x": "bob's\n"})
    project.switch("main")
    done = commit(project, {"free/x": "mine\n"})
    assert refused(done, "lineage", "free/x") and UNNAMED not in done.err, done


# --- killed and halted are asked first


def test_nothing_gets_through_while_halted(project: Project) -> None:
    land_elsewhere(project, {"free/x": "landed\n"})
    assert project.coord("halt", agent="boss").code == 0
    for done in (
        commit(project, {"free/x": "new\n"}),
        commit(project, {"shared/a": "new\n"}),
        editor(project, "commit", "-q", "--allow-empty", "-m", "nothing"),
        editor(project, "pull", "-q", "--ff-only"),
        editor(project, "push", "-q", "origin", "main:refs/heads/new"),
        editor(project, "push", "-q", "origin", ":refs/heads/new"),
    ):
        assert refused(done, "halted"), done
        assert "hint: releases still work; a person may go on with: git coord unhalt\n" in done.err


def test_the_killed_are_known_by_every_name_of_their_process(project: Project) -> None:
    """An agent that gives another name, or none, is still the conversation that was killed."""
    assert project.try_git("commit", "-q", "--allow-empty", "-m", "one", env=CLAUDE).code == 0
    project.claim("free/y", agent="claude-c1")
    assert project.coord("kill", "claude-c1", agent="boss").code == 0
    for env in (CLAUDE, {**CLAUDE, "GITCOORD_AGENT": "innocent"}):
        assert refused(commit(project, {"free/x": "new\n"}, env), "killed"), env
    assert commit(project, {"free/x": "new\n"}).code == 0


# --- gitcoord.person


@pytest.fixture
def known(project: Project) -> Project:
    project.git("config", "gitcoord.person", "ada@example.com")
    return project


def test_a_person_commits_merges_and_pulls_in_an_editor(known: Project) -> None:
    assert known.world.at_terminal("shared/a").code == 0
    done = commit(known, {"shared/a": "new\n"})
    assert done.code == 0, done
    assert "Agent:" not in known.git("log", "-1", "--format=%B")
    known.branch("side", "main~1")
    known.commit({"shared/b": "side\n"})
    known.switch("main")
    assert known.world.at_terminal("shared/b").code == 0
    done = editor(known, "merge", "-q", "--no-edit", "side")
    assert done.code == 0, done
    done = commit(known, {"free/x": "new\n"})
    assert done.code == 0, done


def test_the_setting_is_a_name_like_any_other(known: Project) -> None:
    """It gives no right to paths that others hold, and no claim."""
    known.claim("shared/a", agent="bob")
    done = commit(known, {"shared/a": "new\n"})
    assert refused(done, "held", "shared/a") and "hint: at a terminal, wait for it: git claim --wait" in done.err, done
    done = commit(known, {"shared/b": "new\n"})
    assert refused(done, "unclaimed", "shared/b") and "hint: at a terminal: git claim shared/b\n" in done.err, done


def test_the_setting_never_changes_guarded_files(known: Project) -> None:
    for name, rule in (("guarded", "guard"), (".gitcoord/config", "own-files")):
        done = commit(known, {name: "# new\n"})
        assert refused(done, rule, name) and "at a terminal" in done.err, done
        assert known.coord("approvals", agent="bob").out == "", "a request that its own maker could not answer"


def test_the_setting_is_no_person_for_commands(known: Project) -> None:
    known.claim("free/x", agent="bob")
    assert known.as_person("halt").code == 0
    before = known.git("rev-parse", "gitcoord")
    for words in (["kill", "bob"], ["unhalt"], ["revive", "bob"], ["approve", "1"], ["role", "bob", "overseer"]):
        assert known.coord(*words, agent="").code == 2, words
        assert known.coord(*words).code != 0, words
    assert known.git("rev-parse", "gitcoord") == before


def test_the_setting_does_not_push(known: Project) -> None:
    assert known.world.at_terminal("shared/a").code == 0
    assert commit(known, {"shared/a": "new\n"}).code == 0
    done = editor(known, "push", "-q", "origin", "main")
    assert done.code != 0 and "it brings changes that ada_at_example.com may push only at a terminal\n" in done.err, (
        done
    )
    assert "nobody is named" not in done.err and "ask ada" not in done.err and "holds it" not in done.err
    assert "hint: ada_at_example.com pushes at a terminal: git push\n" in done.err


def test_a_check_answers_that_person(known: Project) -> None:
    """As the commit would be judged; a claim needs a terminal or a name."""
    assert known.world.at_terminal("shared/a").code == 0
    known.claim("shared/b", agent="bob")
    assert [known.world.claim("check", name, agent="").code for name in ("shared/a", "shared/b")] == [0, 1]
    assert known.world.claim("check", "shared/a", agent="", env={"CLAUDECODE": "1"}).code == 2, (
        "no agent is that person"
    )
    assert known.world.claim("shared/c", agent="").code == 2


@pytest.mark.parametrize("how", ["tool", "command line", "user", "environment"])
def test_only_the_repositorys_own_setting_outside_of_agent_tools_counts(
    project: Project, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project.world.at_terminal("shared/a").code == 0
    project.write({"shared/a": "new\n"})
    project.git("add", "-A")
    words, env = ["commit", "-q", "-m", "work"], {}
    setting = ("gitcoord.person", "ada@example.com")
    if how == "tool":
        project.git("config", *setting)
        env = {"CLAUDECODE": "1"}
    elif how == "command line":
        words = ["-c", "=".join(setting), *words]
    elif how == "user":
        home = project.place / "home"
        home.mkdir()
        git(project.top, "config", "--file", str(home / "config"), *setting)
        for key in ("user.name", "user.email"):
            git(project.top, "config", "--file", str(home / "config"), key, "ada@example.com")
        env = {"GIT_CONFIG_GLOBAL": str(home / "config")}
    else:
        env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": setting[0], "GIT_CONFIG_VALUE_0": setting[1]}
    done = editor(project, *words, env=env)
    assert done.code != 0 and "error: this commit is refused: " in done.err, done


def test_a_person_who_is_killed_commits_nothing(known: Project) -> None:
    assert known.as_person("start").code == 0
    assert known.coord("kill", PERSON, agent="boss").code == 0
    assert refused(commit(known, {"free/x": "new\n"}), "killed")

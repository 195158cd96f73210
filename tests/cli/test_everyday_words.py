"""Small things that a new user meets every day: what a verb takes, and what it says."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shlex
import subprocess
import termios
from pathlib import Path

import pytest

from tests.cli.support import Terminal, World
from tests.cli.test_json import refused
from tests.support import COORD, git


@pytest.fixture
def world(git_repo: Path) -> World:
    return World(git_repo, ledger=True)


def test_a_handoff_names_all_missing_sections_at_once(world: World) -> None:
    done = world.handoff("new", "--state", "half done")
    assert done.code == 2
    assert done.err.splitlines()[0] == "error: 3 sections are missing: changed, remaining, next"
    assert [line.split(":")[1].strip() for line in done.err.splitlines()[1:]] == ["--changed", "--remaining", "--next"]


def test_a_text_in_quotes_is_a_journal_entry(world: World) -> None:
    assert world.coord("journal", "add", "the old parser stays").code == 0
    world.write("note.md", "from a file\n")
    assert world.coord("journal", "add", "note.md").code == 0
    texts = [row["text"] for row in world.coord("journal", "--prose", "--json").json["entries"]]
    assert texts == ["the old parser stays", "from a file"]
    done = world.coord("journal", "add", "nothere")
    assert done.code == 2 and "hint: to write this word down: git coord journal add -m nothere" in done.err


def test_a_reason_is_given_by_the_same_words_everywhere(world: World) -> None:
    for words in (("-m", "x"), ("--message", "x"), ("--reason", "x")):
        assert world.claim("src/a.py", *words, "--json").json["claims"][0]["reason"] == "x"
        task = f"t{len(world.events()) + 1}"
        assert world.coord("task", "add", "Draw").code == 0
        assert world.coord("task", "block", task, *words, "--json").json["task"]["reason"] == "x", words


def test_why_tells_the_story_of_a_task_and_a_handoff(world: World) -> None:
    task = world.coord("task", "add", "Draw", "--path", "src/a.py", "--json").json["tasks"][0]["id"]
    world.coord("task", "add", "Other", "--path", "src/b.py")
    assert world.coord("task", "take", task).code == 0
    done = world.coord("why", task, "--json").json
    assert [row["kind"] for row in done["story"]] == ["task", "claim", "assign"] and done["path"] == task
    assert done["claims"][0]["path"] == "src/a.py"
    shown = world.coord("why", task).out.splitlines()
    assert shown[0].endswith("Draw") and "now:" in shown
    words = [word for key in ("state", "changed", "remaining", "next") for word in (f"--{key}", "something")]
    handoff = world.handoff("new", "--to", "bob", *words, "--json").json["id"]
    assert world.handoff("decline", handoff, "-m", "busy", agent="bob").code == 0
    story = world.coord("why", handoff, "--json").json["story"]
    assert [row["agent"] for row in story] == ["alice", "bob"] and story[1]["words"].endswith("busy")
    assert world.coord("why", "t999").out == world.coord("why", "nothing").out == "nothing is on record about it\n"


def test_a_number_without_a_unit_is_seconds_and_says_so(world: World) -> None:
    done = world.claim("src/a.py", "--ttl", "5")
    assert done.code == 0 and done.err == "note: --ttl 5 is 5 seconds; 5 minutes are 5m\n"
    assert world.claim("src/a.py", "--ttl", "5m").err == ""


def test_a_ttl_that_is_too_long_says_the_maximum(world: World) -> None:
    for word in ("8d", "400d", "100000d"):
        done = world.claim("src/a.py", "--ttl", word)
        assert done.code == 2 and f"'{word}' is out of range: from 1s to 7d" in done.err
    world.take("src/a.py")
    assert "7d" in world.claim("renew", "--ttl", "8d").err
    assert "366d" in world.claim("src/b.py", "--expect", "400d").err


def test_a_wait_that_timed_out_says_what_to_do(world: World) -> None:
    world.take("src/a.py")
    done = world.claim("src/a.py", "--wait", "1s", agent="bob")
    assert done.code == 3 and "hint: wait longer: git claim --wait 30m src/a.py\n" in done.err
    assert "take a place in the queue and do something else meanwhile: git claim --queue" in done.err
    assert "git claim --wait 10m -- src/a.py" in world.claim("--", "src/a.py", agent="bob").err


def test_watch_tells_when_and_why(world: World) -> None:
    world.take("src/a.py", "-m", "new login")
    line = world.coord("watch", "--since", "3", "--count", "1").out
    assert re.fullmatch(r"3  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  claim src/a.py by alice: new login\n", line)


def test_the_log_names_the_rule_and_every_holder(world: World) -> None:
    world.take("src/a.py")
    world.take("src/b.py", agent="carol")
    assert world.claim("src", agent="bob").code == 1
    scratch = world.top / ".git/gitcoord/refusals/bob"
    scratch.write_text(scratch.read_text() + '["","[attribution]"]\n')
    world.take("docs", agent="bob")
    shown = world.coord("log", "-n", "2").out
    assert "src/a.py held by alice x1, src/b.py held by carol x1, by rule attribution x1]" in shown


def test_one_event_is_no_events(world: World) -> None:
    assert "ledger: 1 event\n" in world.coord("status").out
    assert world.coord("fsck").out == "clean: 1 event\n"
    world.take("src/a.py")
    assert "ledger: 3 events\n" in world.coord("status").out


def test_policy_check_says_what_it_judged(world: World) -> None:
    head = world.commit({".gitcoord/config": "[gitcoord]\n\tapprover = ada\n"})
    assert world.coord("policy", "check") == (0, f"the policy of commit {head[:12]} is fine\n", "")
    world.write(".gitcoord/config", "[gitcoord]\n\tnonsense = 1\n")
    done = world.coord("policy", "check")
    assert done.code == 0 and "judged as committed" in done.err and ".gitcoord/config" in done.err
    assert world.coord("policy", "check", "--json").json["edited"] == [".gitcoord/config"]


def test_a_brief_start_shows_whole_rules(world: World) -> None:
    rule = "1. " + "Tests come first, " * 8 + "and they\n   fail once before they pass.\n"
    world.commit({".gitcoord/rules.md": f"# Rules\n\n{rule}\nProse.\n\n2. Short.\n"})
    shown = [line.strip() for line in world.coord("start", "--brief").out.splitlines()]
    assert " ".join(rule.split()) in shown and "2. Short." in shown and "Prose." not in " ".join(shown)


def test_the_hint_to_name_a_work_trees_agent_works(world: World, tmp_path: Path) -> None:
    world.git("worktree", "add", "-q", str(tmp_path / "other"))
    done = world.claim("src/a.py", agent="")
    (hint,) = [line for line in done.err.splitlines() if "this work tree's agent" in line]
    for command in hint.partition(": or name")[2].partition(": ")[2].replace("<name>", "dave").split(" && "):
        world.git(*command.split()[1:])
    assert world.claim("src/a.py", "--json", agent="").json["claims"][0]["agent"] == "dave"


def test_a_person_that_starts_sees_what_waits_for_an_answer(world: World) -> None:
    world.commit({".gitattributes": "src/** gitcoord-guard=checkpoint\n", ".gitcoord/config": ""})
    assert world.coord("install-hooks").code == 0
    world.write("src/a.py", "other\n")
    env = world.environ("bob", {})
    subprocess.run(["git", "commit", "-qam", "change"], cwd=world.top, env=env, capture_output=True, check=False)
    assert len(world.coord("approvals", "--json").json["approvals"]) == 1
    shown = world.person("start").out
    assert "waits for your answer: 1: git coord approvals" in shown and "src/a.py, asked by bob" in shown
    assert "waits for your answer" not in world.coord("start", agent="carol").out


def test_stop_tells_as_much_as_release(world: World) -> None:
    world.take("src/a.py")
    world.take("@gpu")
    commit = world.commit({"src/a.py": "new\n"})
    out = world.coord("stop").out
    assert f"released src/a.py (with {commit[:12]}, 1 file)\n" in out and "released @gpu (no change)\n" in out


def test_stop_says_what_has_not_landed_whose_work_it_is_and_who_gets_it(world: World) -> None:
    world.git("switch", "-q", "-c", "topic")
    told: list[tuple[str, str, str]] = []
    for run, words in ((world.claim, ["release", "--all"]), (world.coord, ["stop"])):
        world.take("src/a.py")
        assert world.claim("--queue", "src/a.py", agent="bob").code == 3
        world.commit({"src/a.py": f"{len(told)}\n"}, "new\n\nAgent: carol")
        done = run(*words)
        commit = world.git("rev-parse", "HEAD")[:12]
        told.append((done.out.replace("session of alice ended\n", ""), done.err, commit))
        world.claim("release", "--all", agent="bob")
    for out, err, commit in told:
        assert out == (
            f"released src/a.py (with {commit}, 1 file, no change of yours: made by carol)\nsrc/a.py goes to bob, who waited\n"
        )
        assert err == f"note: {commit} has not landed on 'main' yet\nhint: bring it there: git coord land\n"


def test_a_slip_in_the_name_of_a_branch_names_the_branch(world: World) -> None:
    for name in ("topic", "other"):
        world.git("branch", name)
    for word, hints in {
        "topik": ["git coord land topic", "git branch --list"],
        "nothing": ["git branch --list"],
        "gitcord": ["git branch --list"],
    }.items():
        assert refused(world.coord("land", word, "--json"), "usage", 2)["hints"] == hints


def test_a_slip_names_the_branch_that_only_the_remote_has(plain: World, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "remote.git")
    plain.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    plain.git("push", "-q", "origin", "main", "main:topic")
    assert plain.coord("init", "--remote", "origin").code == 0
    plain.git("fetch", "-q", "origin")
    hints = refused(plain.coord("land", "topik", "--json"), "usage", 2)["hints"]
    assert hints == ["git coord land topic", "git branch --list --all"]


def test_a_slip_in_the_name_of_a_resource_is_named(world: World) -> None:
    world.commit({".gitcoord/config": '[resource "gpu"]\n\tcapacity = 2\n[resource "runner-1"]\n\tcapacity = 1\n'})
    for slip, other in {"@gup": "@gpu", "@land/mian": "@land/main"}.items():
        done = world.claim(slip)
        assert done.code == 0
        assert done.err == f"note: {slip} is not declared, {other} is; to give a slip back: git claim release {slip}\n"
        assert world.claim(slip).err == "", "it is held already"
    assert world.claim("@gpu", "@runner-2", "@db", "@land/main").err == ""


def test_an_event_fed_by_hand_does_not_turn_the_terminal_into_the_agent(world: World, tmp_path: Path) -> None:
    (tmp_path / "event").write_text(
        json.dumps({"hook_event_name": "SessionStart", "session_id": "s-1", "source": "startup", "transcript_path": "/t", "cwd": str(world.top)})
    )  # fmt: skip
    line = f"{shlex.join([*COORD, 'guard'])} <{tmp_path}/event; echo said-$?; exit\n"
    master, slave = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    shell = subprocess.Popen(
        ["bash", "--norc", "-i"], cwd=world.top, env=world.environ("", {"PS1": "", "HISTFILE": ""}), stdin=slave, stdout=slave, stderr=slave,
        start_new_session=True, preexec_fn=take_terminal,
    )  # fmt: skip
    os.close(slave)
    os.write(master, line.encode())
    terminal = Terminal(shell, master)
    terminal.until(lambda shown: b"said-0" in shown)
    shell.wait(30)
    os.close(master)
    notes = world.top / ".git/gitcoord/procs"
    assert not notes.exists() or not list(notes.iterdir())

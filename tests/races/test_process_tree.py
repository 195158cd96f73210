"""`git coord run` and what lives below it: shells, git's hooks, child agents, terminals, orphans. Real processes only."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gitcoord.sessions.cli_supervisor import is_echo
from tests.cli.support import Done
from tests.races.history import Row
from tests.races.support import SOAK, Project, running, wait_until

pytestmark = pytest.mark.race

# `try NAME COMMAND...` leaves NAME.out, NAME.err and, last and at once, NAME.code.
_SHELL = """
try() {{ name=$1; shift; "$@" >"{place}/$name.out" 2>"{place}/$name.err"; code=$?
         echo $code >"{place}/$name.tmp"; mv "{place}/$name.tmp" "{place}/$name.code"; }}
pause() {{ cat "{place}/$1" >/dev/null; }}
"""
_SCRUB = "unset GITCOORD_AGENT GITCOORD_INSTANCE GITCOORD_SESSION\n"
_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


class Scene:
    """A project in which scripts record what they saw, and wait at named points."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.place = project.place / "scene"
        self.place.mkdir()

    def script(self, text: str) -> str:
        """A file with the script, so that inner and outer shells share the helpers above."""
        file = self.place / f"script{len(list(self.place.iterdir()))}"
        file.write_text(_SHELL.format(place=self.place) + text)
        return str(file)

    def launch(self, agent: str, text: str) -> subprocess.Popen[str]:
        return self.project.start("git-coord", "run", "--as", agent, "--", "sh", self.script(text))

    def run(self, agent: str, text: str) -> Done:
        return self.project.run("git-coord", "run", "--as", agent, "--", "sh", self.script(text))

    def gate(self, name: str) -> None:
        os.mkfifo(self.place / name)

    def open_gate(self, name: str) -> None:
        os.close(os.open(self.place / name, os.O_WRONLY))

    def told(self, name: str) -> Done:
        """The result of `try NAME`, as soon as it is there."""
        code = self.place / f"{name}.code"
        wait_until(f"the script reaches '{name}'", code.exists)
        out, err = ((self.place / f"{name}.{end}").read_text() for end in ("out", "err"))
        return Done(int(code.read_text()), out, err)

    def agent(self, name: str) -> Row:
        agents: list[Row] = self.project.coord("agents", "--json").json["agents"]
        return next(agent for agent in agents if agent["agent"] == name)


@pytest.fixture
def scene(project: Project) -> Scene:
    return Scene(project)


def mine(answer: Done) -> list[tuple[str, str]]:
    assert answer.code == 0, answer
    return [(claim["agent"], claim["path"]) for claim in answer.json["claims"]]


# --- one agent, wherever it asks from -----------------------------------------------------------------------------


def _hooks(scene: Scene, git_dir: Path) -> None:
    hooks = git_dir / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "post-commit"):
        (hooks / name).write_text(
            f"#!/bin/sh\n{_SHELL.format(place=scene.place)}\ntry {name} git claim list --mine --json\n"
        )
        (hooks / name).chmod(0o755)


@pytest.mark.parametrize("scrub", ["", _SCRUB], ids=["by environment", "by ancestors"])
def test_the_shell_and_the_hooks_of_its_commit_are_one_agent(scene: Scene, scrub: str) -> None:
    _hooks(scene, scene.project.git_dir)
    done = scene.run("alice", f"{scrub}try take git claim --json a && echo more >>a && git commit -qam more")
    assert done.code == 0, done
    for name in ("take", "pre-commit", "post-commit"):
        assert mine(scene.told(name)) == [("alice", "a")], name
    assert scene.agent("alice")["session"] == 1, "nobody opened a second session on the way"


def test_the_same_in_a_linked_work_tree(scene: Scene) -> None:
    """A hook of a linked work tree runs with GIT_DIR set."""
    _hooks(scene, scene.project.git_dir)
    other = scene.project.place / "other"
    scene.project.git("worktree", "add", "-q", str(other))
    text = f"cd {other}\n{_SCRUB}try take git claim --json a && echo more >>a && git commit -qam more"
    assert scene.run("alice", text).code == 0
    for name in ("take", "pre-commit", "post-commit"):
        assert mine(scene.told(name)) == [("alice", "a")], name


def test_work_done_in_another_work_tree_is_found_at_the_end(scene: Scene) -> None:
    """`run` starts in one work tree; its agent claims and works in another: neither lineage nor dirty work gets lost."""
    other = scene.project.place / "other"
    scene.project.git("worktree", "add", "-q", "-b", "side", str(other))
    text = f"""
        cd {other}
        git claim a b && echo more >>a && git commit -qam more && echo left >>b
    """
    done = scene.run("alice", text)
    assert done.code == 0 and "b has uncommitted changes" in done.err, done
    side = scene.project.git("rev-parse", "side").strip()
    (entry,) = scene.project.events("release")[0]["released"]
    assert (entry["path"], entry["commit"]) == ("a", side) and [row[0] for row in entry["files"]] == ["a"]
    assert mine(scene.project.claim("list", "--json", agent="bob")) == [("alice", "b")]


def test_the_exit_code_is_the_command_s(scene: Scene) -> None:
    assert scene.run("alice", "exit 3").code == 3
    assert scene.run("alice", "kill -TERM $$").code == 128 + signal.SIGTERM
    assert scene.project.run("git", "coord", "run", "--as", "alice", "--", "no-such-command").code == 2
    assert scene.agent("alice")["state"] == "ended"


def test_a_name_at_work_is_not_given_twice(scene: Scene) -> None:
    scene.gate("end")
    with running(scene.launch("alice", "try take git claim --json a; pause end")):
        assert scene.told("take").code == 0
        second = scene.run("alice", "try second true")
        assert second.code == 1 and "alice" in second.err, second
        assert not (scene.place / "second.code").exists(), "the command was not even started"
        scene.open_gate("end")


# --- child agents -------------------------------------------------------------------------------------------------


def test_a_child_agent_has_a_session_of_its_own_that_ends_with_its_parent(scene: Scene) -> None:
    for name in ("up", "late"):
        scene.gate(name)
    helper = scene.script('try inner git claim --json b; : >"$UP"; pause late; try afterwards git claim --json c')
    outer = f"""
        try outer git claim --json a
        UP={scene.place}/up setsid git coord run --as alice.helper -- sh {helper} >/dev/null 2>&1 </dev/null &
        pause up
        try agents git coord agents --json
    """
    assert scene.run("alice", outer).code == 0
    agents = {agent["agent"]: agent for agent in scene.told("agents").json["agents"]}
    assert agents["alice.helper"]["parent"] == "alice"
    assert {name: agent["state"] for name, agent in agents.items()} == {"alice": "open", "alice.helper": "open"}
    assert mine(scene.told("inner")) == [("alice.helper", "b")]
    assert scene.agent("alice")["state"] == scene.agent("alice.helper")["state"] == "ended"
    # Whether the helper's work is committed only its own supervisor can tell: until then, or its ttl, the claim stays.
    assert [claim["path"] for claim in scene.project.claim("list", "--json").json["claims"]] == ["b"]
    scene.open_gate("late")
    afterwards = scene.told("afterwards")
    assert afterwards.code == 1 and afterwards.json["error"] == "session-over", afterwards
    scene.project.assert_clean()


@pytest.mark.parametrize("scrub", ["", _SCRUB], ids=["by environment", "by ancestors"])
def test_a_nested_run_without_a_name_is_the_same_session(scene: Scene, scrub: str) -> None:
    inner = scene.script("try inner git claim --json b; exit 5")
    outer = f"""{scrub}
        try outer git claim --json a
        git coord run -- sh {inner}
        echo $? >{scene.place}/nested
        try after git claim list --mine --json
    """
    assert scene.run("alice", outer).code == 0
    assert (scene.place / "nested").read_text() == "5\n"
    assert mine(scene.told("inner")) == [("alice", "b")]
    assert mine(scene.told("after")) == [("alice", "a"), ("alice", "b")], "the inner run's end ended nothing"
    assert [event["agent"] for event in scene.project.events("start")] == ["alice"]


# --- how it ends --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["git-coord"], ["git", "coord"]], ids=["git-coord", "git coord"])
@pytest.mark.parametrize("trap, code", [("", 130), ("trap 'exit 7' INT", 7)], ids=["dies of it", "handles it"])
def test_ctrl_c_in_a_terminal(scene: Scene, command: list[str], trap: str, code: int) -> None:
    scene.gate("never")
    script = scene.script(f"{trap}\ntry take git claim --json a\necho ready\npause never")
    keyboard, screen = os.openpty()
    argv = [sys.executable, "-c", _TERMINAL, *command, "run", "--as", "alice", "--", "sh", script]
    with running(
        subprocess.Popen(
            argv, cwd=scene.project.repo, env=scene.project.env, stdin=screen, stdout=screen, stderr=screen,
            start_new_session=True, text=True,
        )
    ) as process:  # fmt: skip
        os.close(screen)
        seen = b""
        while b"ready" not in seen:
            seen += os.read(keyboard, 1000)
        while process.poll() is None:
            # dash puts off one that comes just before it starts its `cat` until that ends: press again, as a person would.
            os.write(keyboard, b"\x03")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(3)
    os.close(keyboard)
    # git itself may die of the signal, which a shell shows as 130 too.
    assert (process.returncode if process.returncode >= 0 else 128 - process.returncode) in (code, 130), seen
    if command == ["git-coord"]:
        assert process.returncode == code
    assert mine(scene.told("take")) == [("alice", "a")]
    assert scene.agent("alice")["state"] == "ended"
    assert scene.project.holders("a") == []


def test_one_ctrl_c_is_one() -> None:
    """`git` passes it on to us, who got it ourselves: an agent that got it twice would take that for the wish to end it.

    Whether it arrives as a second one is a matter of microseconds, so it is asked here and not tried.
    """
    git = os.getppid()
    assert not is_echo(signal.SIGINT, git), "it was sent to git alone"
    assert not is_echo(signal.SIGINT, 0), "from the terminal"
    assert is_echo(signal.SIGINT, git)
    assert not is_echo(signal.SIGINT, os.getpid()) and not is_echo(signal.SIGTERM, git)


def test_committed_work_is_released_with_its_commit(scene: Scene) -> None:
    assert scene.run("alice", "git claim -q a src && echo more >>a && git commit -qam more").code == 0
    released = {entry["path"]: entry for entry in scene.project.events("release")[-1]["released"]}
    head = scene.project.git("rev-parse", "HEAD").strip()
    assert [file[0] for file in released["a"]["files"]] == ["a"] and released["a"]["commit"] == head
    assert released["src"]["files"] == []
    assert scene.project.claim("list", "--json").json["claims"] == []


def test_uncommitted_work_keeps_its_claim(scene: Scene) -> None:
    done = scene.run("alice", "git claim -q a src && echo more >>a")
    assert done.code == 0 and "a has uncommitted changes" in done.err, done
    assert scene.agent("alice")["state"] == "ended"
    assert scene.project.holders("a") == ["alice"] and scene.project.holders("src") == []
    again = scene.run("alice", "try take git claim list --mine --json; git commit -qam more")
    assert again.code == 0 and mine(scene.told("take")) == [("alice", "a")], (
        "the next session of that name goes on with it"
    )
    assert scene.project.holders("a") == []
    scene.project.assert_clean()


def test_uncommitted_work_passes_to_the_next_agent_that_asks(scene: Scene) -> None:
    assert scene.run("alice", "git claim -q a && echo more >>a").code == 0
    done = scene.project.claim("a", agent="bob")
    assert done.code == 0 and "alice has ended and left uncommitted work here, which is yours from now on" in done.out
    assert scene.project.holders("a") == ["bob"]


# --- orphans ------------------------------------------------------------------------------------------------------


def test_a_grandchild_that_outlives_the_command_is_refused(scene: Scene) -> None:
    scene.gate("later")
    late = scene.script("pause later; try late git claim --json b")
    done = scene.run("alice", f"git claim -q a; ( setsid sh {late} >/dev/null 2>&1 </dev/null & )")
    assert done.code == 0, done
    scene.open_gate("later")
    refused = scene.told("late")
    assert refused.code == 1 and refused.json["error"] == "session-over", refused
    assert scene.project.claim("list", "--json").json["claims"] == []


@pytest.mark.parametrize("verb", ["release", "renew", "check", "take"])
def test_an_orphan_of_an_ended_session_has_no_hand_in_the_next(scene: Scene, verb: str) -> None:
    """The name is at work again and holds the path: the orphan of its last session may not act on that."""
    scene.gate("later")
    scene.gate("end")
    late = scene.script(f"pause later; try late git claim {verb} --json a")
    assert scene.run("alice", f"( setsid sh {late} >/dev/null 2>&1 </dev/null & )").code == 0
    with running(scene.launch("alice", "try take git claim --json a; pause end")):
        assert scene.told("take").code == 0
        scene.open_gate("later")
        assert scene.told("late").code == 1, scene.told("late")
        assert scene.project.holders("a") == ["alice"]
        scene.open_gate("end")


def test_after_sigkill_of_run_the_claims_stay_until_their_ttl(scene: Scene) -> None:
    scene.gate("later")
    text = """
        try take git claim --json --ttl 2s a
        pause later
        try release git claim release --json a
        try renew git claim renew --json a
        try check git claim check --json a
        try again git claim --json a
    """
    with running(scene.launch("alice", text)) as run:
        assert scene.told("take").code == 0
        run.kill()
        run.wait()
        early = scene.project.claim("--json", "a", agent="bob")
        assert early.code == 1 and early.json["held"][0]["agent"] == "alice", early
        assert scene.project.claim("--wait", "30s", "a", agent="bob").code == 0
        assert [e["claims"][0]["agent"] for e in scene.project.events("expire")] == ["alice"]
        scene.open_gate("later")
        for name in ("release", "renew", "check", "again"):
            assert scene.told(name).code == 1, (name, scene.told(name))
        assert scene.project.holders("a") == ["bob"]
    scene.project.assert_clean()


def test_after_sigkill_of_run_and_its_agent_the_name_may_be_used_again(scene: Scene) -> None:
    scene.gate("never")
    text = f"try take git claim --json a; echo $$ >{scene.place}/agent; exec cat {scene.place}/never"
    with running(scene.launch("alice", text)) as run:
        assert scene.told("take").code == 0
        run.kill()
        run.wait()
        again = scene.run("alice", "try early true")
        assert again.code == 1 and "another process works as 'alice'" in again.err, "the agent itself goes on"
        wait_until("it said who it is", lambda: bool(_pid(scene, "agent")))
        os.kill(_pid(scene, "agent"), signal.SIGKILL)
        wait_until("it is gone", lambda: not _lives(_pid(scene, "agent")))
    assert scene.run("alice", "try late git claim list --mine --json").code == 0
    assert mine(scene.told("late")) == [("alice", "a")], "what it held goes on with the name"


# --- kill ---------------------------------------------------------------------------------------------------------


def test_kill_ends_the_process_and_refuses_all_of_it(scene: Scene) -> None:
    scene.gate("never")
    with running(scene.launch("alice", "try take git claim --json a; pause never")) as run:
        assert scene.told("take").code == 0
        assert scene.project.person("kill", "alice", "--reason", "test").code == 0
        assert run.wait(30) == 128 + signal.SIGTERM
    assert scene.agent("alice")["state"] == "killed" and scene.project.holders("a") == []
    for words in (("take", "b"), ("release", "a"), ("release", "--all"), ("renew",), ("check", "b")):
        assert scene.project.claim(*words, agent="alice").code == 1, words
    assert scene.project.coord("start", agent="alice").code == 1
    assert scene.run("alice", "try anything true").code == 1
    assert not (scene.place / "anything.code").exists()
    assert scene.project.claim("a", agent="bob").code == 0
    scene.project.assert_clean()


def test_kill_reaches_children_and_orphans(scene: Scene) -> None:
    scene.gate("never")
    orphan = scene.script('echo $$ >"$PIDS/orphan"; pause never')
    text = f"""
        export PIDS={scene.place}
        ( setsid sh {orphan} </dev/null >/dev/null 2>&1 & )
        git coord run --as alice.helper -- sh -c 'echo $$ >"$PIDS/helper"; exec cat {scene.place}/never'
    """
    with running(scene.launch("alice", text)) as run:
        wait_until("both are up", lambda: all((scene.place / name).exists() for name in ("orphan", "helper")))
        wait_until("they said who they are", lambda: bool(_pid(scene, "orphan") and _pid(scene, "helper")))
        assert scene.project.person("kill", "alice").code == 0
        run.wait(30)
        for name in ("orphan", "helper"):
            wait_until(f"the {name} ended", lambda name=name: not _lives(_pid(scene, name)))  # type: ignore[misc]
    assert scene.agent("alice.helper")["state"] == "ended"


def _pid(scene: Scene, name: str) -> int:
    return int((scene.place / name).read_text() or 0)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(not SOAK, reason="waits for the ten seconds of grace")
def test_kill_does_not_stop_at_a_deaf_process(scene: Scene) -> None:
    scene.gate("never")
    with running(scene.launch("alice", "trap '' TERM; try take git claim --json a; pause never")) as run:
        assert scene.told("take").code == 0
        assert scene.project.person("kill", "alice").code == 0
        assert run.wait(30) == 128 + signal.SIGKILL


# --- without a name -----------------------------------------------------------------------------------------------


def test_four_agents_without_names_do_not_become_one(project: Project) -> None:
    before = project.head()
    racers = [project.start("git-claim", "--json", f"file{i}") for i in range(4)]
    answers = [json.loads(racer.communicate()[0]) for racer in racers]
    assert [racer.returncode for racer in racers] == [2] * 4, answers
    assert project.claim("a", env={"CLAUDECODE": "1"}).code == 2, "a tool that does not name its conversation"
    assert project.head() == before


def test_four_conversations_are_four_agents(project: Project) -> None:
    """The same tool, in the same checkout, under the same account."""
    envs = [{"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": f"8d5f1a2e-0000-4000-8000-00000000000{i}"} for i in range(4)]
    racers = [project.start("git-claim", "--json", "a", env=env) for env in envs]
    answers = [json.loads(racer.communicate()[0]) for racer in racers]
    assert sorted(racer.returncode for racer in racers) == [0, 1, 1, 1], answers
    own = [project.claim("--json", f"file{i}", env=env) for i, env in enumerate(envs)]
    assert len({answer.json["claims"][0]["agent"] for answer in own}) == 4
    for i, env in enumerate(envs):
        paths = {claim["path"] for claim in project.claim("list", "--mine", "--json", env=env).json["claims"]}
        assert paths - {"a"} == {f"file{i}"}

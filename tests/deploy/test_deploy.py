"""`git coord deploy`: one at a time, never from a stale copy, verified, on record, and released in every case."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shared_remote import Shared
from tests.cli.support import Done, World
from tests.cli.test_json import TABLES, holds, wrong_table
from tests.races.support import wait_until
from tests.support import COORD


@pytest.fixture
def shared(git_repo: Path, tmp_path: Path) -> Iterator[Shared]:
    yield Shared(World(git_repo), tmp_path)


def deploys(shared: Shared) -> dict[str, Any]:
    rows = holds(shared.world.coord("deploys", "--json"), "deploys")["deploys"]
    return {row["target"]: row for row in rows}


def last(shared: Shared, target: str = "production") -> tuple[str, int, int]:
    row = deploys(shared)[target]["last"]
    return row["outcome"], row["code"], row["verify_code"]


@contextmanager
def deploying(
    shared: Shared, *words: str, agent: str = "alice", target: str = "production"
) -> Iterator[subprocess.Popen[bytes]]:
    """A deploy whose command has begun, and goes on until the file `go` is there."""
    begun, go = shared.place / f"begun-{agent}", shared.place / "go"
    # dash loses an INT that comes just as a child of its own ends; a trap does not.
    script = f"trap 'exit 130' INT; : > {begun}; while [ ! -e {go} ]; do sleep 0.05; done; echo out"
    process = subprocess.Popen(
        [*COORD, "deploy", target, *words, "--", "sh", "-c", script], cwd=shared.world.top,
        env=shared.world.environ(agent, {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        wait_until("the deploy gets there", lambda: begun.exists() or process.poll() is not None)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def end(process: subprocess.Popen[bytes]) -> Done:
    out, err = process.communicate(timeout=60)
    assert b"Traceback" not in err, err
    return Done(process.returncode, out.decode(), err.decode())


# --- it works


def test_a_deploy(shared: Shared) -> None:
    world = shared.world
    script = 'echo "$GITCOORD_DEPLOY_TARGET $GITCOORD_DEPLOY_COMMIT"; echo oops >&2'
    done = world.coord("deploy", "production", "--", "sh", "-c", script)
    head = world.git("rev-parse", "HEAD")
    assert done == Done(0, f"production {head}\ndeployed {head[:12]} to 'production', verified\n", "oops\n")
    assert world.claims() == []
    assert world.events()[-2:] == [f"deploy {head[:12]} to production by alice", "release @deploy/production by alice"]
    row = deploys(shared)["production"]
    assert (row["last"]["commit"], row["last"]["agent"], row["behind"]) == (head, "alice", 0)
    assert row["good"] == row["last"] and last(shared) == ("ok", 0, 0)
    assert world.git("rev-parse", "refs/gitcoord/deployed/production") == head
    assert world.coord("fsck").code == 0


def test_json_is_not_mixed_with_the_commands_output(shared: Shared) -> None:
    done = shared.world.coord("deploy", "production", "--json", "--", "sh", "-c", "echo mine")
    row = holds(done, "deployed")
    assert done.err == "mine\n" and (row["outcome"], row["held"], row["verify_code"]) == ("ok", True, 0)
    assert row["commit"] == shared.world.git("rev-parse", "HEAD")


def test_a_target_without_verification(shared: Shared) -> None:
    done = shared.world.coord("deploy", "plain", "--", "true")
    assert done.code == 0 and done.out.endswith("to 'plain', not verified\n")
    assert last(shared, "plain") == ("ok", 0, -1)


def test_the_verification_sees_what_is_deployed(shared: Shared) -> None:
    world = shared.world
    seen = shared.place / "seen"
    world.commit({".gitcoord/config": f'[deploy "v"]\n\tverify = "env > {seen}"\n'})
    world.git("push", "-q")
    assert world.coord("deploy", "v", "--", "true").code == 0
    assert f"GITCOORD_DEPLOY_COMMIT={world.git('rev-parse', 'HEAD')}\n" in seen.read_text()
    assert "GITCOORD_DEPLOY_TARGET=v\n" in seen.read_text()


def test_the_record_is_as_described(shared: Shared) -> None:
    world = shared.world
    world.coord("deploy", "plain", "--", "true")
    world.coord("deploy", "plain", "--", "false")
    found = json.loads(world.git("show", "gitcoord:deploys/plain"))
    assert list(wrong_table(found, TABLES["Record: deploy"])) == [] and found["good"][0]["seq"] < found["last"]["seq"]
    (event, *_) = world.coord("log", "--kind", "deploy", "--json").json["events"]
    assert event["event"]["outcome"] == "failed"
    for file in (world.top / ".git/gitcoord/deploys").iterdir():
        assert file.name == "plain"


def test_log_shows_deploys(shared: Shared) -> None:
    world = shared.world
    world.coord("deploy", "plain", "--", "false")
    shown = world.coord("log", "--kind", "deploy").out
    assert f"deploy {world.git('rev-parse', 'HEAD')[:12]} to plain by alice (failed)" in shown
    assert len(world.coord("log", "--path", "@deploy/plain", "--json").json["events"]) == 3
    assert len(world.coord("log", "--agent", "plain", "--json").json["events"]) == 0


# --- stale


def test_a_stale_deploy_runs_nothing(shared: Shared) -> None:
    world, mark = shared.world, shared.place / "ran"
    shared.bob_pushes({"src/a.py": "theirs\n"})
    done = world.coord("deploy", "production", "--", "touch", str(mark))
    head = world.git("rev-parse", "HEAD")
    assert (done.code, done.out, mark.exists()) == (1, "", False)
    assert done.err == (
        f"error: {head[:12]} may not be deployed to 'production': it lacks 1 commit of 'main'\n"
        "  by Bob (1)\n  a deploy from here would take back: src/a.py\n  a merge would be clean\n"
        "hint: bring this branch up to date: git coord sync --pull\n"
    )
    assert world.claims() == [] and deploys(shared)["production"]["last"] is None
    row = holds(world.coord("deploy", "production", "--json", "--", "touch", str(mark)), "error")
    assert (row["error"], row["stale"]["behind"], row["stale"]["rollback"]) == ("stale", 1, ["src/a.py"])
    assert world.coord("sync", "--pull").code == 0
    assert world.coord("deploy", "production", "--", "touch", str(mark)).code == 0 and mark.exists()


def test_what_was_deployed_last_must_be_contained(shared: Shared) -> None:
    """A hotfix went out from a branch that has not landed; the next deploy of main would take it back."""
    world = shared.world
    world.git("checkout", "-q", "-b", "hotfix")
    hotfix = world.commit({"src/a.py": "fixed\n"})
    assert world.coord("deploy", "production", "--", "true").code == 0
    world.git("checkout", "-q", "main")
    done = world.coord("deploy", "production", "--json", "--", "true", agent="bob")
    row = holds(done, "error")
    assert (row["error"], row["stale"]["behind"], row["stale"]["contains_last"]) == ("stale", 0, False)
    assert (
        f"{hotfix[:12]}, which alice deployed last" in row["message"] and f"git merge {hotfix[:12]}" in row["hints"][0]
    )
    assert world.coord("deploy", "plain", "--", "true").code == 0, "another target is another story"
    world.git("merge", "-q", "hotfix")
    assert world.coord("deploy", "production", "--", "true", agent="bob").code == 0


def test_what_was_deployed_last_stays_here_after_gc(shared: Shared) -> None:
    world = shared.world
    world.git("checkout", "-q", "-b", "hotfix")
    world.commit({"src/a.py": "fixed\n"})
    assert world.coord("deploy", "production", "--", "true").code == 0
    world.git("checkout", "-q", "main")
    world.git("branch", "-q", "-D", "hotfix")
    world.git("reflog", "expire", "--expire=now", "--all")
    world.git("gc", "-q", "--prune=now")
    assert world.coord("deploy", "production", "--json", "--", "true").json["error"] == "stale"
    world.git("update-ref", "-d", "refs/gitcoord/deployed/production")
    world.git("gc", "-q", "--prune=now")
    done = world.coord("deploy", "production", "--json", "--", "true")
    assert (done.code, done.json["error"]) == (4, "could-not-judge") and "git fetch origin" in done.json["hints"][0]
    assert world.claims() == []


def test_an_older_commit_is_stale(shared: Shared) -> None:
    world = shared.world
    old = world.git("rev-parse", "HEAD")
    world.commit({"src/a.py": "new\n"})
    world.git("push", "-q")
    assert world.coord("deploy", "production", "--commit", old, "--", "true").code == 1
    assert world.coord("deploy", "production", "--commit", "main", "--", "true").code == 0


def test_an_unreachable_remote(shared: Shared) -> None:
    shared.cut_off()
    done = shared.world.coord("deploy", "production", "--json", "--", "touch", str(shared.place / "ran"))
    assert (done.code, done.json["error"]) == (5, "unreachable")
    assert shared.world.claims() == [] and not (shared.place / "ran").exists()


# --- what goes wrong


def test_the_command_fails(shared: Shared) -> None:
    done = shared.world.coord("deploy", "production", "--", "sh", "-c", "exit 7")
    assert done.code == 7 and "failed: the command ended with 7" in done.err
    assert last(shared) == ("failed", 7, -1) and shared.world.claims() == []
    assert deploys(shared)["production"]["good"] is None


def test_only_the_verification_fails(shared: Shared) -> None:
    shared.world.coord("deploy", "production", "--", "true")
    (shared.place / "broken").touch()
    done = shared.world.coord("deploy", "production", "--json", "--", "true")
    row = holds(done, "deployed")
    assert (done.code, row["outcome"], row["code"], row["verify_code"]) == (1, "unverified", 0, 1)
    assert "but the verification failed: it ended with 1" in done.err
    assert shared.world.claims() == []
    row = deploys(shared)["production"]
    assert row["good"]["seq"] < row["last"]["seq"], "what was not good is not the last good one"


def test_the_verification_is_left_out(shared: Shared) -> None:
    (shared.place / "broken").touch()
    assert shared.world.coord("deploy", "production", "--no-verify-surface", "--", "true").code == 0
    assert last(shared) == ("unverified", 0, -1) and deploys(shared)["production"]["good"] is not None


def test_a_verification_that_hangs_is_ended(shared: Shared) -> None:
    world = shared.world
    world.commit({".gitcoord/config": '[deploy "slow"]\n\tverify = "exec sleep 1000"\n\ttimeout = 1s\n'})
    world.git("push", "-q")
    done = world.coord("deploy", "slow", "--", "true")
    assert done.code == 1 and "took longer than 1 seconds" in done.err
    assert last(shared, "slow")[:2] == ("unverified", 0) and world.claims() == []


def test_a_command_that_does_not_exist(shared: Shared) -> None:
    done = shared.world.coord("deploy", "production", "--", "no-such-command-anywhere")
    assert done.code == 2 and "cannot run" in done.err
    assert shared.world.claims() == [] and deploys(shared)["production"]["last"] is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_while_the_command_runs(shared: Shared, number: signal.Signals) -> None:
    with deploying(shared, "--json") as process:
        process.send_signal(number)
        done = end(process)
    row = holds(done, "deployed")
    assert (done.code, row["outcome"], row["code"]) == (128 + number, "interrupted", 128 + number)
    assert last(shared) == ("interrupted", 128 + number, -1)
    assert shared.world.claims() == [] and deploys(shared)["production"]["good"] is None


# Makes the terminal the one that controls this session, as a login does, so that Ctrl-C becomes a signal.
_LOGIN = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


def test_ctrl_c_at_the_terminal(shared: Shared) -> None:
    begun = shared.place / "begun"
    words = ("deploy", "production", "--", "sh", "-c", f": > {begun}; exec sleep 1000")
    with shared.world.terminal(*words, argv=[sys.executable, "-c", _LOGIN, *COORD], agent="alice") as shown:
        wait_until("the deploy gets there", begun.exists)
        os.write(shown._master, b"\x03")
        done = shown.end()
    assert done.code == 130 and "interrupted: the command ended with 130" in done.out
    assert last(shared) == ("interrupted", 130, -1) and shared.world.claims() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_command_runs(shared: Shared, number: signal.Signals) -> None:
    """The fetch hangs; a deploy that is interrupted leaves no claim behind."""
    world = shared.world
    begun = shared.place / "fetching"
    helper = shared.place / "hanging"
    helper.write_text(f"#!/bin/sh\ntouch {begun}\nsleep 20\n")
    helper.chmod(0o755)
    world.git("config", "remote.origin.uploadpack", str(helper))
    process = subprocess.Popen(
        [*COORD, "deploy", "production", "--", "true"], cwd=world.top, env=world.environ("alice", {}),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    wait_until("the deploy gets there", begun.exists)
    assert world.claims() == ["resource/deploy/production/@alice"]
    process.send_signal(number)
    done = end(process)
    assert done.code == 130 and "interrupted" in done.err
    assert world.claims() == [] and deploys(shared)["production"]["last"] is None


# --- two at once


@pytest.mark.parametrize("agent", ["bob", "alice"])
def test_a_second_deploy_is_refused(shared: Shared, agent: str) -> None:
    """A second deploy by the same agent is refused too, to which the claim would be granted."""
    with deploying(shared) as process:
        done = shared.world.coord("deploy", "production", "--json", "--", "true", agent=agent)
        row = holds(done, "error")
        assert (done.code, row["error"], row["held"][0]["agent"]) == (1, "held", "alice")
        assert row["held"][0]["reason"].startswith("deploys ")
        words = shared.world.coord("deploy", "production", "--", "true", agent=agent).err
        assert "alice" in words and "since" in words
        assert shared.world.coord("deploy", "plain", "--", "true", agent="bob").code == 0
        (shared.place / "go").touch()
        assert end(process).code == 0
    assert shared.world.coord("deploy", "production", "--", "true", agent=agent).code == 0


def test_a_capacity_does_not_let_two_in(shared: Shared) -> None:
    config = (shared.world.top / ".gitcoord/config").read_text() + '[resource "deploy/production"]\n\tcapacity = 2\n'
    shared.world.commit({".gitcoord/config": config})
    shared.world.git("push", "-q")
    shared.world.take("@deploy/production", agent="bob")
    done = shared.world.coord("deploy", "production", "--json", "--", "true")
    assert (done.json["error"], done.json["held"][0]["agent"]) == ("held", "bob")
    shared.world.free("bob")
    assert shared.world.coord("deploy", "production", "--", "true").code == 0


def test_racing_deployers(shared: Shared) -> None:
    """Each appends a line at its beginning and end: they never mix."""
    trace = shared.place / "trace"
    racers = []
    for agent in ("a1", "a2", "a3", "a4"):
        script = f"echo {agent} >> {trace}; sleep 0.1; echo {agent} >> {trace}"
        racers.append(
            subprocess.Popen(
                [*COORD, "deploy", "production", "--json", "--", "sh", "-c", script], cwd=shared.world.top,
                env=shared.world.environ(agent, {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
        )  # fmt: skip
    done = [end(racer) for racer in racers]
    lines = trace.read_text().split()
    assert lines[::2] == lines[1::2] and len(lines) == 2 * sum(d.code == 0 for d in done) > 0
    assert all(d.code == 0 or d.json["error"] == "held" for d in done)
    events = [event for event in shared.world.events() if event.startswith("deploy ")]
    assert len(events) == len(lines) // 2 and shared.world.claims() == []


def beat(shared: Shared) -> int:
    found = json.loads(shared.world.git("cat-file", "blob", "refs/gitcoord/sessions/alice"))
    return int(found["mono"])


def test_the_claim_is_kept_alive_while_the_command_runs(shared: Shared) -> None:
    config = (shared.world.top / ".gitcoord/config").read_text() + '[resource "deploy/production"]\n\tttl = 1s\n'
    shared.world.commit({".gitcoord/config": config})
    shared.world.git("push", "-q")
    with deploying(shared) as process:
        first = beat(shared)
        wait_until(
            "the deploy gets there", lambda: beat(shared) > first + 2000
        )  # longer than the claim survives silence
        assert shared.world.coord("deploy", "production", "--", "true", agent="bob").code == 1
        (shared.place / "go").touch()
        done = end(process)
    assert done.code == 0 and "lost" not in done.err


def test_a_claim_that_was_lost_meanwhile(shared: Shared) -> None:
    world = shared.world
    with deploying(shared, "--json") as process:
        token = world.claim("list", "--json").json["claims"][0]["token"]
        words = ("takeover", "@deploy/production", "--token", str(token), "--force", "--reason", "stuck")
        assert world.at_terminal(*words).code == 0
        (shared.place / "go").touch()
        done = end(process)
    row = holds(done, "deployed")
    assert (done.code, row["held"], row["lost"][0]["path"]) == (0, False, "@deploy/production")
    assert "was lost to ada_at_example.com while the command ran" in done.err
    assert last(shared) == ("ok", 0, 0)
    assert world.claims() == ["resource/deploy/production/@ada_at_example.com"], "what is another's stays another's"


def test_the_killed_deploy_no_more(shared: Shared) -> None:
    with deploying(shared) as process:
        assert shared.world.person("kill", "alice").code == 0
        done = end(process)
    assert done.code == 128 + signal.SIGTERM and "not on record" in done.err
    assert shared.world.claims() == [] and deploys(shared)["production"]["last"] is None


def test_what_runs_is_recorded_while_halted(shared: Shared) -> None:
    with deploying(shared) as process:
        shared.world.person("halt")
        (shared.place / "go").touch()
        assert end(process).code == 0
    assert last(shared) == ("ok", 0, 0) and shared.world.claims() == []


# --- words


def test_bad_words_change_nothing(shared: Shared) -> None:
    before = shared.world.head
    for words, code in (
        (("nowhere", "--", "true"), 2), (("../x", "--", "true"), 2), (("production",), 2), (("production", "--"), 2),
        (("production", "--commit", "no-such", "--", "true"), 2), (("production", "--commit", "-x", "--", "true"), 2),
    ):  # fmt: skip
        done = shared.world.coord("deploy", *words)
        assert done.code == code and "hint:" in done.err, words
    assert shared.world.head == before


def test_settings_that_make_no_sense(shared: Shared) -> None:
    shared.world.commit({".gitcoord/config": '[deploy "production"]\n\ttimeout = soon\n'})
    for words in (("deploy", "production", "--json", "--", "true"), ("deploys", "--json")):
        done = shared.world.coord(*words)
        assert (done.code, done.json["error"]) == (4, "could-not-judge")
        assert ".gitcoord/config: deploy.production.timeout" in done.json["message"]


def test_uncommitted_changes_are_named(shared: Shared) -> None:
    shared.world.write("src/a.py", "not committed\n")
    assert "uncommitted changes" in shared.world.coord("deploy", "production", "--", "true").err


def test_deploys(shared: Shared) -> None:
    world = shared.world
    assert world.coord("deploys").out == "plain       never deployed\nproduction  never deployed\n"
    world.coord("deploy", "production", "--", "true")
    shared.bob_pushes({"src/a.py": "theirs\n"})
    head = world.git("rev-parse", "HEAD")[:12]
    assert f"production  {head}    alice  " in world.coord("deploys").out
    assert world.coord("deploys").out.splitlines()[1].endswith("ok  up to date")
    world.git("fetch", "-q")
    assert world.coord("deploys").out.splitlines()[1].endswith("ok  1 behind")
    world.commit({".gitcoord/config": ""})
    row = deploys(shared)
    assert list(row) == ["production"] and row["production"]["declared"] is False


def test_without_a_remote(git_repo: Path) -> None:
    world = World(git_repo)
    world.commit({".gitcoord/config": '[deploy "here"]\n\tverify = "true"\n'})
    world.init()
    assert world.coord("deploy", "here", "--", sys.executable, "-c", "pass").code == 0
    world.git("checkout", "-q", "-b", "topic", "HEAD~1")
    assert world.coord("deploy", "here", "--", "true").code == 1

"""Processes that were stopped and wake up again: the world went on without them, and they must find that out.

Stopped means SIGSTOP to a real process: an agent beyond its ttl, gitcoord while it holds the queue, git after it has
prepared its transaction (all locks taken, nothing moved) and git in the middle of moving the refs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gitcoord.git.long_process import descendants
from tests.races.support import Contender, Project, running, wait_until

pytestmark = pytest.mark.race

LEDGER_LOCK = "refs/heads/gitcoord.lock"


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return ""


def wait_until_stopped(pid: int) -> None:
    wait_until(f"process {pid} stands still", lambda: state_of(pid) in ("T", "t"))


@contextlib.contextmanager
def contender(project: Project, agent: str, **options: Any) -> Iterator[Contender]:
    found = Contender(project, agent, project.place / f"log-{agent}", **options)
    try:
        found.receive()
        yield found
    finally:
        for pid in (found.pid, *found.stopped):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        found.close()


def stop_in_the_act(one: Contender, how: str, *, whole: bool = False, **order: Any) -> int:
    """Let it take, and stop it on the way; gives the process that stands still."""
    one.ask(how, whole=whole)
    one.send("take", **order)
    pid = int(one.receive()["stopped"])
    one.stopped.append(pid)
    wait_until_stopped(pid)
    return pid


def stop_at_rest(pid: int) -> None:
    """Stop a process and its group while it does not change refs. Its git is in a group of its own, and would wait for it with its locks."""
    while True:
        os.killpg(pid, signal.SIGSTOP)
        wait_until_stopped(pid)
        if not changes_refs(pid):
            return
        os.killpg(pid, signal.SIGCONT)
        wait_until("the change is made", lambda: not changes_refs(pid))


def changes_refs(pid: int) -> bool:
    found = []
    for child in descendants(pid):
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{child}/cmdline").read_bytes())
    return any(b"update-ref" in words for words in found)


def locks(project: Project) -> list[Path]:
    return sorted(project.git_dir.glob("refs/**/*.lock"))


def tokens(project: Project) -> dict[str, int]:
    """Agent -> token of every grant on record."""
    found = {event["agent"]: event["seq"] for event in project.events("claim")}
    for event in project.events("expire"):
        found.update({row["agent"]: event["seq"] for row in event.get("granted", ())})
    return found


# --- an agent beyond its ttl --------------------------------------------------------------------------------------


def test_an_agent_that_was_stopped_beyond_its_ttl(project: Project) -> None:
    place = project.place
    os.mkfifo(place / "later")
    verbs = {
        "release": "release a",
        "all": "release --all --json",
        "renew": "renew a",
        "check": "check a",
        "take": "take a",
    }
    steps = "".join(
        f"git claim {words} >{place}/{name}.out 2>&1; echo $? >{place}/{name}\n" for name, words in verbs.items()
    )
    script = f"git claim -q --ttl 1s a && echo >{place}/taken; cat {place}/later\n{steps}"
    with running(project.start("git-coord", "run", "--as", "alice", "--", "sh", "-c", script)) as run:
        wait_until("alice holds it", (place / "taken").exists)
        stop_at_rest(run.pid)
        try:
            taken = project.claim("--json", "--wait", "30s", "a", agent="bob")
        finally:
            os.killpg(run.pid, signal.SIGCONT)
        assert taken.code == 0, taken
        assert [event["claims"][0]["agent"] for event in project.events("expire")] == ["alice"]
        os.close(os.open(place / "later", os.O_WRONLY))
        _, err = run.communicate()
    said = {name: (place / f"{name}.out").read_text() for name in verbs}
    codes = {name: int((place / name).read_text()) for name in verbs}
    assert codes == {"release": 1, "all": 0, "renew": 1, "check": 1, "take": 1}, (said, err)
    assert '"released":[]' in said["all"], "everything it holds is nothing"
    assert project.holders("a") == ["bob"]
    project.assert_clean()


def test_the_lost_claim_is_told_and_can_be_taken_again(project: Project) -> None:
    with contender(project, "alice") as alice:
        assert alice.ask("take", items=["a"], ttl=1)["outcome"] == "granted"
        os.kill(alice.pid, signal.SIGSTOP)
        assert project.claim("--wait", "30s", "a", agent="bob").code == 0
        os.kill(alice.pid, signal.SIGCONT)
        lost = alice.ask("take", items=["a"])
        assert (lost["outcome"], lost["held"][0][1]) == ("refused", "bob")
        assert alice.ask("release", items=["a"])["outcome"] == "not-held"
        assert project.claim("release", "a", agent="bob").code == 0
        again = alice.ask("take", items=["a"])
        assert again["outcome"] == "granted" and again["token"] > tokens(project)["bob"]
    project.assert_clean()


# --- gitcoord, with the queue in its hands ------------------------------------------------------------------------


def test_others_go_on_when_the_head_of_the_queue_stands_still(project: Project) -> None:
    with contender(project, "alice") as alice:
        pid = stop_in_the_act(alice, "stop_before_swap", items=["a"])
        began = time.monotonic()
        taken = project.claim("a", agent="bob")
        assert taken.code == 0 and f"process {pid} " in taken.err and f"kill -CONT {pid}" in taken.err, taken
        assert time.monotonic() - began < 30, "the wait in the queue is bounded"
        os.kill(pid, signal.SIGCONT)
        zombie = alice.receive()
        assert (zombie["outcome"], zombie["held"][0][1]) == ("refused", "bob"), zombie
    assert tokens(project).keys() == {"bob"}
    project.assert_clean()


def test_a_zombie_whose_path_is_still_free_decides_again(project: Project) -> None:
    with contender(project, "alice") as alice, contender(project, "bob", queue_seconds=0.2) as bob:
        pid = stop_in_the_act(alice, "stop_before_swap", items=["a"])
        other = bob.ask("take", items=["src"])
        os.kill(pid, signal.SIGCONT)
        zombie = alice.receive()
        assert other["outcome"] == zombie["outcome"] == "granted" and other["token"] < zombie["token"]
    project.assert_clean()


# --- git, after prepare -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [False, True], ids=["git", "gitcoord"])
def test_stopped_after_prepare(project: Project, *, whole: bool) -> None:
    """Other writers get an error that names the process; afterwards every answer that was given is true."""
    before = project.head()
    with contender(project, "alice") as alice:
        pid = stop_in_the_act(alice, "stop_after_prepare", whole=whole, items=["a"])
        assert (project.git_dir / LEDGER_LOCK).exists()
        blocked = project.claim("--json", "src", agent="bob")
        assert blocked.code in (3, 4) and blocked.json["error"] == "lock", blocked
        assert blocked.json["pid"] == pid and str(pid) in blocked.json["message"], blocked
        assert blocked.json["file"].endswith(".lock") and blocked.json["hints"] == [
            f"let it go on: kill -CONT {pid}"
        ], blocked
        assert project.head() == before and project.holders(".") == []
        assert (project.git_dir / LEDGER_LOCK).exists(), "the lock of a living process is left alone"
        os.kill(pid, signal.SIGCONT)
        zombie = alice.receive()
        assert zombie["outcome"] == "granted" and tokens(project) == {"alice": zombie["token"]}
        refused = project.claim("--json", "a", agent="bob")
        assert refused.code == 1 and refused.json["held"][0]["agent"] == "alice"
    assert locks(project) == []
    project.assert_clean()


def test_git_killed_after_prepare(project: Project) -> None:
    """The same, but it never wakes up: the next one clears its locks away by itself."""
    with contender(project, "alice") as alice:
        pid = stop_in_the_act(alice, "stop_after_prepare", items=["a"])
        os.kill(pid, signal.SIGKILL)
        told = alice.receive()
        other = project.claim("--json", "a", agent="bob")
        assert (told["outcome"], other.code) in (("granted", 1), ("refused", 0), ("store", 0)), (told, other)
    assert locks(project) == []
    project.assert_clean()


def test_locks_removed_by_hand_and_another_was_granted(project: Project) -> None:
    """The operator believes that git is dead and removes its locks; bob gets the path; then git wakes up."""
    with contender(project, "alice") as alice, contender(project, "bob", queue_seconds=0.2) as bob:
        pid = stop_in_the_act(alice, "stop_after_prepare", items=["a"])
        for lock in locks(project):
            lock.unlink()
        granted = bob.ask("take", items=["a"])
        assert granted["outcome"] == "granted", granted
        os.kill(pid, signal.SIGCONT)
        zombie = alice.receive()
        assert zombie["outcome"] not in ("granted", "renewed"), zombie
        assert tokens(project) == {"bob": granted["token"]}
        assert project.holders("a") == ["bob"]
        assert bob.ask("release", items=["a"])["outcome"] == "released"
    assert project.claim("a", agent="carol").code == 0
    project.assert_clean()


def test_locks_removed_by_hand_while_another_has_prepared(project: Project) -> None:
    """The one that wakes up first moves the *other's* lock file into place, and git says `commit: ok`."""
    with contender(project, "alice") as alice, contender(project, "bob", queue_seconds=0.2) as bob:
        first = stop_in_the_act(alice, "stop_after_prepare", items=["a"])
        for lock in locks(project):
            lock.unlink()
        second = stop_in_the_act(bob, "stop_after_prepare", items=["a"])
        os.kill(first, signal.SIGCONT)
        zombie = alice.receive()
        os.kill(second, signal.SIGCONT)
        other = bob.receive()
        told = {row["agent"]: row["token"] for row in (zombie, other) if row["outcome"] == "granted"}
        assert len(told) <= 1, (zombie, other)
        assert told == tokens(project), (zombie, other)
    _assert_works_again(project, told)


def test_one_lock_removed_by_hand_while_another_waits_for_the_next(project: Project) -> None:
    """Only the lock that the error named is removed: bob takes that one and waits for those that git still has."""
    project.git("config", "core.filesRefLockTimeout", "20000")
    with contender(project, "alice") as alice, contender(project, "bob", queue_seconds=0.2) as bob:
        pid = stop_in_the_act(alice, "stop_after_prepare", items=["a"])
        lock = project.git_dir / LEDGER_LOCK
        lock.unlink()
        bob.send("take", items=["a"])
        wait_until("bob's git has the lock", lambda: lock.exists() and lock.stat().st_size > 0)
        os.kill(pid, signal.SIGCONT)
        zombie, other = alice.receive(), bob.receive()
        told = {row["agent"]: row["token"] for row in (zombie, other) if row["outcome"] == "granted"}
        assert len(told) <= 1, (zombie, other)
    _assert_works_again(project, told)


def _assert_works_again(project: Project, told: dict[str, int]) -> None:
    """Check that work goes on, and that every granted claim is still held."""
    project.coord("fsck", "--repair", agent="carol")
    assert told.items() <= tokens(project).items(), "a grant that was told is on record"
    project.assert_clean()
    holder = next(iter(told), "")
    assert project.holders("a") == ([holder] if holder else []), "and nobody else holds the path"
    assert project.claim("src", agent="carol").code == 0


# --- git, between two renames -------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace to stop git between two system calls")
def test_git_stopped_between_the_ledger_and_the_other_refs(project: Project) -> None:
    """The ledger has moved, so the grant is made; its claim ref and the tip follow when git goes on."""
    tools = project.place / "slow"
    tools.mkdir()
    real = shutil.which("git", path=project.env["PATH"])
    # -D: strace watches from below, so that git itself is the child that gitcoord knows.
    (tools / "git").write_text(f"""#!/bin/sh
        case " $* " in
        *" update-ref "*)
            echo $$ >>{project.place}/pids
            exec strace -D -qq -o /dev/null -e trace=rename -e inject=rename:signal=SIGSTOP:when=1 {real} "$@" ;;
        esac
        exec {real} "$@"
    """)
    (tools / "git").chmod(0o755)
    env = {"PATH": f"{tools}:{project.env['PATH']}"}
    pids = project.place / "pids"
    pids.touch()
    with running(project.start("git-claim", "--json", "a", agent="alice", env=env)) as process:
        try:
            wait_until("git wrote its number down", lambda: pids.read_text().endswith("\n"))
            pid = int(pids.read_text())
            wait_until("the ledger's rename is done, it is the first", lambda: "alice" in tokens(project))
            wait_until_stopped(pid)
            with contender(project, "bob", queue_seconds=0.2) as bob:
                refused = bob.ask("take", items=["a"])
                assert refused["outcome"] == "refused" and refused["held"][0][1] == "alice", refused
                blocked = bob.ask("take", items=["src"])
                assert blocked["outcome"] == "lock" and str(pid) in blocked["message"], blocked
        finally:
            for word in pids.read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(word), signal.SIGCONT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)
    assert project.claim("src", agent="bob").code == 0
    project.assert_clean()

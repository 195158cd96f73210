"""A fetch or push of a clone that is killed while it holds locks on this clone's refs: the next command clears them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.faults.test_kill_sweep import STRACE, WHY_NOT
from tests.ledger.remote.support import Fleet, Machine

pytestmark = [pytest.mark.faults, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-")]

GIT = shutil.which("git") or "git"
# Stands in PATH as `git`: the first one of this verb is killed when it has made this lock, and closes it.
_WRAPPER = f"""#!/bin/sh
case " $* " in
*" $VICTIM "*) if mkdir "$ONCE" 2>/dev/null; then
    set -- -o "$ONCE/trace" -P "$LOCK" -e trace=close -e inject=close:signal=SIGKILL:when=1 {GIT} "$@"
    [ -n "$WITH_COMMAND" ] || exec {STRACE} -D "$@"
    {STRACE} "$@"
    kill -9 $PPID $$; fi ;;
esac
exec {GIT} "$@"
"""
POINTS = [
    ("fetch", "refs/heads/gitcoord.lock", True),
    ("fetch", "refs/heads/gitcoord.lock", False),
    ("fetch", "refs/claims/path/other/@alice.lock", True),
    ("fetch", "packed-refs.lock", True),
    ("fetch", "refs/remotes/origin/gitcoord.lock", True),
    ("push", "refs/remotes/origin/gitcoord.lock", True),
    ("push", "refs/remotes/origin/gitcoord.lock", False),
]


def killed(machine: Machine, verb: str, lock: str, *, with_command: bool) -> list[Path]:
    """Run a command whose git is killed so, alone or with the command; gives the locks that are left."""
    tools = machine.place / "wrapped"
    tools.mkdir()
    (tools / "git").write_text(_WRAPPER)
    (tools / "git").chmod(0o755)
    env = {
        "WITH_COMMAND": "yes" if with_command else "",
        "VICTIM": verb,
        "LOCK": str(machine.git_dir / lock),
        "ONCE": str(machine.place / "once"),
    }
    before = machine.env
    machine.env = {**before, **env, "PATH": f"{tools}:{before['PATH']}"}
    try:
        machine.claim("list") if verb == "fetch" else machine.claim("mine", agent="mallory")
    finally:
        machine.env = before
    assert "killed by SIGKILL" in (machine.place / "once/trace").read_text()
    return locks(machine)


def locks(machine: Machine) -> list[Path]:
    return [path for path in machine.git_dir.rglob("*.lock") if path.parent.name != "gitcoord"]


@pytest.mark.parametrize(("verb", "lock", "with_command"), POINTS)
def test_the_next_command_clears_what_a_killed_transfer_left(
    fleet: Fleet, verb: str, lock: str, with_command: bool
) -> None:
    one, two = fleet.joined()
    two.git("fetch", "-q")  # what git itself keeps of the remote's branches is there to be moved, too
    two.git("pack-refs", "--all")
    assert one.claim("src/app.py", agent="alice").code == 0
    assert one.claim("other", agent="alice").code == 0
    assert two.claim("list").code == 0
    if verb == "fetch":
        assert one.claim("release", "other", agent="alice").code == 0  # so that it removes a ref, too
    left = killed(two, verb, lock, with_command=with_command)
    assert (two.git_dir / lock in left) == with_command  # a command that lives looks again, and clears it
    done = two.claim("list")
    assert done.code == 0 and "cannot be reached" not in done.err, done
    assert two.claim("src/db.py", agent="bob").code == 0
    assert not locks(two)
    two.git("fetch", "-q")
    fleet.assert_sound()


def test_a_lock_that_nobody_knows_is_this_clones_trouble_and_is_named(fleet: Fleet) -> None:
    one, two = fleet.joined()
    assert one.claim("src/app.py", agent="alice").code == 0
    lock = two.git_dir / "refs/heads/gitcoord.lock"
    lock.touch()
    done = two.claim("src/db.py", agent="bob")
    assert done.code == 4 and str(lock) in done.err and "cannot be reached" not in done.err, done
    looked = two.claim("list")
    assert str(lock) in looked.err and "cannot be reached" not in looked.err, looked
    judged = two.coord("fsck")
    assert judged.code == 4 and str(lock) in judged.err and "clean" not in judged.out, judged
    assert two.coord("fsck", "--json").json["ok"] is False
    lock.unlink()
    assert two.claim("src/db.py", agent="bob").code == 0
    fleet.assert_sound()


@pytest.mark.parametrize("words", [["fresh"], ["release", "src/app.py"]])
def test_what_the_remote_has_done_is_not_told_as_failed(fleet: Fleet, words: list[str]) -> None:
    """A lock of this clone only keeps it from showing what was done."""
    one, _ = fleet.joined()
    assert one.claim("src/app.py", agent="alice").code == 0
    before = len(fleet.events())
    lock = one.git_dir / "refs/heads/gitcoord.lock"
    lock.touch()
    done = one.claim(*words, agent="alice")
    assert len(fleet.events()) == before + 1
    assert done.code == 5 and "'origin' has done it" in done.err and str(lock) in done.err, done
    lock.unlink()
    assert one.claim("list").code == 0
    fleet.assert_sound()

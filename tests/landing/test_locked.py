"""The work tree of trunk whose index another git has locked while a branch lands."""

from __future__ import annotations

from tests.cli.support import World
from tests.landing.support import Trunk
from tests.support import PYTHON, STARTS, run_command


def test_a_locked_index_is_named(world: World) -> None:
    trunk = Trunk(world)
    trunk.branch("alice", {"new": "x\n"})
    before = trunk.tip
    lock = world.top / ".git/index.lock"
    lock.write_text("")
    once = "import gitcoord.worktrees.index as index\nindex._TRIES = 1\n"  # it waits for seconds
    start = STARTS["git-coord"].replace("from gitcoord.cli.entry", f"{once}from gitcoord.cli.entry")
    done = run_command([*PYTHON, "-c", start, "land"], trunk.tree("alice"), world.environ("alice", {}))
    said = done.stderr.decode()
    assert done.returncode == 0, said
    assert "is locked by another git: it stays at the old commit, detached" in said and "uncommitted" not in said
    assert "its index.lock is gone: git switch main" in said
    assert world.git("rev-parse", "HEAD") == before != trunk.tip
    lock.unlink()
    world.git("switch", "-q", "main")
    assert (world.top / "new").read_text() == "x\n"
    trunk.nothing_left()

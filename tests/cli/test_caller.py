"""The process that stays, without a protocol around it: what it keeps between two calls."""

from __future__ import annotations

import os
import signal

import pytest

from gitcoord.cli.caller import Caller
from gitcoord.cli.table.claim import VERBS
from gitcoord.git.plumbing_store import PlumbingStore
from tests.cli.support import World


def test_a_git_that_ended_while_it_waited_is_not_asked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call reads anew, by a git of its own: the one of the call before may be gone, or know what was then."""
    world.take("src/a.py", agent="bob")
    world.git("repack", "-adq")  # out of the way of the reader that needs no git
    monkeypatch.chdir(world.top)
    caller = Caller()
    try:
        before, wrong = caller.call(VERBS["list"], {}, [])
        assert not wrong and [row["agent"] for row in before["claims"]] == ["bob"]
        assert caller._ctx is not None
        store = caller._ctx.store
        assert isinstance(store, PlumbingStore) and store._cat is not None
        os.kill(store._cat.pid, signal.SIGKILL)
        os.waitid(os.P_PID, store._cat.pid, os.WEXITED | os.WNOWAIT)
        world.take("src/b.py", agent="carl")
        world.git("repack", "-adq")
        after, wrong = caller.call(VERBS["list"], {}, [])
        assert not wrong and [row["agent"] for row in after["claims"]] == ["bob", "carl"], after
    finally:
        caller.close()

"""Many agents on several machines at once, while git tidies up on the server all the time."""

from __future__ import annotations

import contextlib
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.races.history import check_history, check_ledger, read_logs
from tests.races.support import (
    Contender,
    git_version,
    housekeeping,
    keep_figures,
    long_timeout,
    soak,
    wait_until,
)
from tests.server.realm import Realm
from tests.server.servers import Served

pytestmark = [pytest.mark.faults, pytest.mark.race, pytest.mark.slow, long_timeout]


@pytest.mark.parametrize("server", ["git"], indirect=True)
def test_many_agents_and_git_gc(served: Served, tmp_path: Path) -> None:
    realm = Realm(served, tmp_path)
    clones = [realm.clone(f"machine{number}") for number in range(soak(2, 8))]
    agents = soak(8, 64)
    logs = tmp_path / "logs"
    logs.mkdir()
    # All want the same two, and each one of its own: lost races and requests that ride together.
    order: dict[str, Any] = {"count": soak(2, 12), "seconds": soak(20, 1200)}
    with contextlib.ExitStack() as stack:
        contenders = []
        for number in range(agents):
            clone = clones[number % len(clones)]
            contender = Contender(clone, f"w{number:02}", logs / f"w{number:02}")
            stack.callback(contender.close)
            contenders.append(contender)
        for contender in contenders:
            contender.receive()
        loops = stack.enter_context(housekeeping(cast(Any, SimpleNamespace(repo=realm.bare, env=realm.env))))
        began = time.monotonic()
        for number, contender in enumerate(contenders):
            own = {"items": [f"own/{number}"]}
            contender.send(
                "loop", seed=number, choices=[{"items": ["shared/a"]}, {"items": ["shared"]}, own, own], **order
            )
        answers = [contender.receive() for contender in contenders]
        seconds = time.monotonic() - began
        wait_until("git gc has run", lambda: bool(loops.counts["gc"]))
    rows = read_logs(sorted(logs.iterdir()))
    granted = [answer["granted"] for answer in answers]
    figures = {"agents": agents, "machines": len(clones), "seconds": round(seconds, 1), "granted": sum(granted)}
    figures |= {"fewest": min(granted), "most": max(granted), "events": len(realm.events())}
    keep_figures(f"agents on machines, {git_version()}", {**figures, "background": dict(loops.counts)})
    print(figures, loops.counts)
    problems = check_history(rows) + check_ledger(realm.events(), rows)
    assert not problems, "\n".join(problems[:20])
    assert all(granted), f"somebody got nothing: {answers}"
    assert (
        subprocess.run(["git", "-C", str(realm.bare), "fsck", "--strict"], env=realm.env, check=False).returncode == 0
    )
    realm.assert_sound()

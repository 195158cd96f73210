"""git's own maintenance beside writers, with gitcoord's hooks installed: packing changes no value, so it always passes."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.races.support import Project, long_timeout, running, soak, wait_until

pytestmark = [pytest.mark.race, long_timeout]

WRITERS = 3
# A new process for each command, as agents do it. Refs come, move and go: claims, heartbeats, the ledger, its tip.
WRITER = """
while [ ! -e "$OVER" ] && kill -0 "$TEST"; do
    git claim -- "own/$GITCOORD_AGENT" "shared/$GITCOORD_AGENT" >/dev/null || exit 1
    git claim release --dirty "own/$GITCOORD_AGENT" "shared/$GITCOORD_AGENT" >/dev/null || exit 1
    echo >>"$OVER.$GITCOORD_AGENT"
done
"""
MAINTENANCE = [
    ["pack-refs", "--all"],
    ["gc", "--quiet"],
    ["pack-refs", "--all", "--prune"],
    ["repack", "-adq"],
    ["maintenance", "run", "--quiet", "--task=pack-refs"],
    ["maintenance", "run", "--quiet"],
]


@contextlib.contextmanager
def writers(project: Project, count: int = WRITERS) -> Iterator[None]:
    """They take and release until the block ends; each has begun by then, and none was refused."""
    over = project.place / "over"
    names = [f"w{number}" for number in range(count)]
    with contextlib.ExitStack() as stack:
        begun = []
        for name in names:
            begun.append(
                project.start("sh", "-c", WRITER, agent=name, env={"OVER": str(over), "TEST": str(os.getpid())})
            )
            stack.enter_context(running(begun[-1]))
        stack.callback(over.touch)
        logs = [project.place / f"over.{name}" for name in names]
        wait_until("all of them write", lambda: all(log.exists() for log in logs))
        yield
        over.touch()
        for process in begun:
            assert process.wait(60) == 0, process.communicate()


def test_every_run_succeeds_beside_writers(project: Project) -> None:
    assert project.coord("install-hooks").code == 0
    failed = []
    with writers(project):
        for number in range(soak(2, 60)):
            for words in MAINTENANCE:
                done = subprocess.run(
                    ["git", *words], cwd=project.repo, env=project.env, capture_output=True, text=True, check=False
                )
                if done.returncode or "hook" in done.stderr:
                    failed.append((number, words, done.returncode, done.stderr))
    assert not failed, (len(failed), failed[:5])
    project.assert_clean()

"""Many agents commit out of one work tree at once: every commit has exactly its files, and none is lost."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from pathlib import Path

import pytest

from tests.races.support import Project, long_timeout, running, soak, wait_until

pytestmark = [pytest.mark.race, long_timeout]

AGENTS = 8
COMMITS = soak(6, 60)

# One agent: changes its own files and commits them, again and again. A new process for each commit, as agents do it.
_AGENT = """
read go
for i in $(seq {count}); do
    echo "$i" >work/$GITCOORD_AGENT.a; echo "$i" >work/$GITCOORD_AGENT.b
    git coord commit --json -m "$GITCOORD_AGENT $i" -- work/$GITCOORD_AGENT.a work/$GITCOORD_AGENT.b || exit 1
done
"""


def race(project: Project, *others: str, count: int = COMMITS) -> None:
    """Run all agents at once, and the `others` beside them until the agents are done."""
    over = threading.Event()

    def beside(script: str) -> None:
        while not over.wait(0.02):  # or they would leave the agents no time on a small machine
            subprocess.run(["sh", "-c", script], cwd=project.repo, env=project.env, capture_output=True, check=False)

    threads = [threading.Thread(target=beside, args=(script,)) for script in others]
    script = _AGENT.format(count=count)
    with contextlib.ExitStack() as stack:
        agents = [project.start("sh", "-c", script, agent=f"w{i}", stdin=subprocess.PIPE) for i in range(AGENTS)]
        for agent in agents:
            stack.enter_context(running(agent))
        for thread in threads:
            thread.start()
            stack.callback(thread.join)
        stack.callback(over.set)
        for agent in agents:
            assert agent.stdin is not None
            agent.stdin.write("go\n")
            agent.stdin.flush()
        for agent in agents:
            out, err = agent.communicate(timeout=soak(100, 3000))
            assert agent.returncode == 0, (out, err)


def commits(project: Project, start: str) -> dict[str, list[str]]:
    """Subject -> files, oldest first."""
    text = project.git("log", "--reverse", "--format=%x00%s", "--name-only", f"{start}..HEAD")
    rows = [entry.split("\n") for entry in text.split("\0")[1:]]
    assert len({row[0] for row in rows}) == len(rows), "a commit was made twice"
    return {row[0]: [name for name in row[1:] if name] for row in rows}


def assert_all_there(project: Project, start: str, count: int = COMMITS) -> None:
    made = {subject: files for subject, files in commits(project, start).items() if subject[0] == "w"}
    wanted = [(f"w{i}", number) for i in range(AGENTS) for number in range(1, count + 1)]
    assert sorted(made) == sorted(f"{agent} {number}" for agent, number in wanted)
    ids = dict(line.split(" ", 1)[::-1] for line in project.git("log", "--format=%H %s").splitlines())
    for agent, number in wanted:
        assert made[f"{agent} {number}"] == [f"work/{agent}.a", f"work/{agent}.b"]
        assert project.git("show", f"{ids[f'{agent} {number}']}:work/{agent}.b") == f"{number}\n"
    parents = project.git("log", "--format=%P", f"{start}..HEAD").split("\n")[:-1]
    assert all(len(parent.split()) == 1 for parent in parents), "the history is linear"


def test_each_commit_has_exactly_its_files(project: Project) -> None:
    (project.repo / "work").mkdir()
    (project.repo / "a").write_text("staged by somebody\n")
    (project.repo / "new").write_text("staged too\n")
    project.git("add", "a", "new")
    project.git("rm", "-q", "--cached", "src/db.py")
    staged = project.git("diff", "--cached", "--raw", "--", "a", "new", "src")
    start = project.git("rev-parse", "HEAD").strip()
    race(project)
    assert_all_there(project, start)
    assert project.git("rev-list", "--count", f"{start}..HEAD").strip() == str(AGENTS * COMMITS)
    assert project.git("diff", "--cached", "--raw") == staged
    assert project.git("status", "--porcelain", "--", "work") == ""


def test_plain_git_beside_them(project: Project) -> None:
    """Somebody stages everything, and commits files of its own in the plain way: nothing of that gets in, nor is lost."""
    (project.repo / "work").mkdir()
    start = project.git("rev-parse", "HEAD").strip()
    # Not the process number alone: in a long run it comes round again.
    plain = "echo $$ >plain; git add plain; git commit -q -m plain-$$-$(date +%s%N) -- plain"
    race(project, "git add -A", plain, count=soak(2, 30))
    assert_all_there(project, start, soak(2, 30))
    others = {subject: files for subject, files in commits(project, start).items() if subject[0] != "w"}
    assert others and all(files == ["plain"] for files in others.values())


def _locks() -> list[str]:
    return Path("/proc/locks").read_text().splitlines()


def test_nobody_commits_under_anothers_stashing_hook(project: Project) -> None:
    """While a hook of alice has bob's work put aside, bob's commit waits, and then finds its work as it was."""
    git_dir = project.repo / ".git"
    os.mkfifo(git_dir / "go")
    hook = git_dir / "hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        '#!/bin/sh\n[ "$GITCOORD_AGENT" = alice ] || exit 0\nmv bobs .git/aside\ncat .git/go\nmv .git/aside bobs\n'
    )
    hook.chmod(0o755)
    (project.repo / "alices").write_text("alice\n")
    (project.repo / "bobs").write_text("bob\n")
    alice = project.start("git", "coord", "commit", "-m", "alice", "alices", agent="alice")
    with running(alice):
        wait_until("alice's hook runs", (git_dir / "aside").exists)
        bob = project.start("git", "coord", "commit", "-m", "bob", "bobs", agent="bob")
        with running(bob):
            inode = f":{(git_dir / 'gitcoord/commit.lock').stat().st_ino} "
            wait_until("bob waits", lambda: any("->" in row and inode in row for row in _locks()))
            (git_dir / "go").write_text("go\n")
            assert bob.wait(60) == 0 and alice.wait(60) == 0
    assert project.git("log", "-2", "--format=%s", "--name-only").split() == ["bob", "bobs", "alice", "alices"]
    assert project.git("show", "HEAD:bobs") == "bob\n"

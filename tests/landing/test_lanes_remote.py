"""Lanes at a remote: two machines check at the same time, one on top of the other's commit; with and without the server's gate."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.remote.conftest import fleet, gated  # noqa: F401 (fixtures)
from tests.ledger.remote.support import Fleet, Machine
from tests.server.support import Site, forge, unchanged

Running = subprocess.Popen[str]


@pytest.fixture(params=["no gate", "gate", "not atomic", "no such refs", "branches"])
def machines(request: pytest.FixtureRequest, fleet: Fleet) -> list[Machine]:  # noqa: F811
    one, two = fleet.machines
    one.commit({".gitcoord/config": "[land]\n\tlanes = 2\n"})
    one.git("push", "-q", "origin", "main")
    two.git("pull", "-q")
    if request.param == "gate":
        request.getfixturevalue("gated")
    found = fleet.joined()
    for machine in found:
        if request.param == "not atomic":
            machine.git("config", "gitcoord.atomic", "false")
        if request.param == "branches":
            machine.git("config", "gitcoord.namespaces", "branches")
    if request.param == "no such refs":
        fleet.hook("update", 'case "$1" in refs/gitcoord/lanes/*) echo no such refs here; exit 1;; esac\n')
    return found


@pytest.fixture
def running() -> Iterator[list[Running]]:
    found: list[Running] = []
    yield found
    for process in found:
        process.kill()
        process.communicate()


def _start(running: list[Running], machine: Machine, agent: str, check: str) -> Running:
    machine.git("switch", "-q", "-c", agent, "origin/main")
    machine.commit({agent: "x\n"})
    program = shutil.which("git-coord", path=machine.env["PATH"]) or "git-coord"
    process = subprocess.Popen(
        [program, "land", "--check", check], cwd=machine.repo, env={**machine.env, "GITCOORD_AGENT": agent},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    running.append(process)
    return process


def _reads(process: Running, words: str) -> None:
    assert process.stderr is not None
    seen = []
    while line := process.stderr.readline():
        seen.append(line)
        if words in line:
            return
    raise AssertionError(f"no '{words}': {seen}")


def test_two_machines_check_at_the_same_time(
    fleet: Fleet,  # noqa: F811
    machines: list[Machine],
    running: list[Running],
    request: pytest.FixtureRequest,
) -> None:
    one, two = machines
    log, gate = fleet.place / "runs", fleet.place / "go"
    alone = request.node.callspec.params["machines"] in ("no such refs", "branches")
    alice = _start(running, one, "alice", f"echo alice >>{log}; while ! test -e {gate}; do sleep 0.02; done")
    _reads(alice, "checking")
    # On top of alice's commit, which its machine has from the server; its check lets alice go on.
    bob = _start(running, two, "bob", f"test -e alice && echo bob >>{log} && touch {gate}")
    if alone:
        gate.write_text("")  # nobody can have her commit: bob waits
    for process in (alice, bob):
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (out, err)
    assert log.read_text().split() == ["alice", "bob"], "each was checked once"
    assert {"alice", "bob"} <= set(fleet.git("ls-tree", "--name-only", "main").split())
    assert [ref for ref in fleet.refs() if ref.startswith("refs/gitcoord/lanes/")] == []
    assert [ref for ref in one.refs() if ref.startswith("refs/gitcoord/lanes/")] == []
    assert one.claim("list", "--json").json["claims"] == []
    assert fleet.git("ls-tree", "-r", "--name-only", "gitcoord", "landings", "waits") == ""
    fleet.assert_sound()


def test_the_commit_of_one_that_was_killed_is_removed_by_the_next(
    fleet: Fleet,  # noqa: F811
    machines: list[Machine],
    running: list[Running],
) -> None:
    one, two = machines
    alice = _start(running, one, "alice", "while :; do sleep 0.02; done")
    _reads(alice, "checking")
    alice.kill()
    alice.communicate()
    assert one.run("git-coord", "land", "alice", "--check", "true", agent="alice").code == 0, "the same commit again"
    bob = _start(running, two, "bob", "true")
    assert bob.communicate(timeout=60)[1] and bob.returncode == 0
    assert [ref for ref in fleet.refs() if ref.startswith("refs/gitcoord/lanes/")] == []
    fleet.assert_sound()


@pytest.mark.parametrize("machines", ["no gate", "gate"], indirect=True)
def test_the_push_that_lands_removes_the_commit_of_the_lane(fleet: Fleet, machines: list[Machine]) -> None:  # noqa: F811
    """It is there while the check runs. Where somebody has removed it, the branch lands all the same."""
    one, _ = machines
    git = f"git -c core.hooksPath=/dev/null --git-dir {fleet.bare}"
    there = f"{git} for-each-ref refs/gitcoord/lanes --format '%(refname)' | grep ."
    gone = f"{git} for-each-ref refs/gitcoord/lanes --format 'delete %(refname)' | {git} update-ref --stdin"
    for name, check in (("topic", there), ("other", f"{there} && {gone}")):
        one.git("switch", "-q", "-c", name, "origin/main")
        one.commit({name: "x\n"})
        fleet.connections()
        assert one.run("git-coord", "land", "--check", check, agent="alice").code == 0
        if name == "topic":
            assert fleet.connections().count("receive-pack") == 3, "the turn, the place, the landing"
        assert name in fleet.git("ls-tree", "--name-only", "main").split()
        assert [ref for ref in fleet.refs() if ref.startswith("refs/gitcoord/lanes/")] == []
    fleet.assert_sound()


@pytest.mark.parametrize("machines", ["no gate"], indirect=True)
def test_a_push_that_is_refused_once_leaves_nothing_in_the_lanes(fleet: Fleet, machines: list[Machine]) -> None:  # noqa: F811
    """As where another process of the server has locked trunk for a moment."""
    body = "if test -e mark; then rm -f refs/heads/main.lock; else touch mark refs/heads/main.lock; fi"
    fleet.hook("pre-receive", f"grep -q refs/heads/main || exit 0\ncd '{fleet.bare}' && {body}\n")
    one, _ = machines
    one.git("switch", "-q", "-c", "topic", "origin/main")
    one.commit({"topic": "x\n"})
    assert one.run("git-coord", "land", "--check", "true", agent="alice").code == 0
    assert (fleet.bare / "mark").exists() and "topic" in fleet.git("ls-tree", "--name-only", "main").split()
    assert [ref for ref in fleet.refs() if ref.startswith("refs/gitcoord/lanes/")] == []


# --- the server ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path).setup()


def test_the_server_keeps_only_commits_of_landings(site: Site) -> None:
    new = site.commit({"free/x": "new\n"})
    before = site.refs()
    unchanged(site, site.push("origin", f"{new}:refs/gitcoord/lanes/{new}"), before, "no landing of this push")
    unchanged(site, site.push("origin", f"{new}:refs/gitcoord/lanes/other"), before, "not for pushing")


def test_the_server_makes_the_rule_again(site: Site) -> None:
    """A client that has claimed less than it changes gets no place."""
    new = site.commit({"free/x": "new\n", "free/y": "new\n"})
    site.claim("@land/main", "@lane/free/x", agent="alice")
    assert site.sync().code == 0
    old = site.refs()["refs/heads/main"]
    said = {"trunk": "main", "branch": "topic", "tip": new, "old": old, "new": new, "how": "merge", "checks": []}
    forge(site, ("landing", "alice", {"session": 1, **said, "task": "", "released": []}, {}))
    lane = f"{new}:refs/gitcoord/lanes/{new}"
    before = site.refs()
    unchanged(site, site.sync(), before, "push it first")
    done = site.push("--atomic", "origin", *site.refspecs(), lane)
    unchanged(site, done, before, "'free/y' is not claimed for the lane")

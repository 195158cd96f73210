"""Every claim can be released, and a release records one's own work: clients and the server's gate agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.remote.support import Machine
from tests.ledger.remote.team import Team, change, claim, git

WAYS = {
    "release": ("git-claim", "release", "--all"),
    "dirty": ("git-claim", "release", "--all", "--dirty"),
    "stop": ("git-coord", "stop"),
    "keep": ("git-coord", "stop", "--keep"),
}


def landed(machine: Machine, path: str, *, released: bool) -> None:
    """bob changes a path and pushes it to main; with a claim that he gives back, or without one."""
    if released:
        claim(machine, path, agent="bob")
    assert change(machine, path, "line 5\n", "bob's\n", "bob").code == 0
    git(machine, "push", "-q", "origin", "main", agent="bob")
    if released:
        claim(machine, "release", path, agent="bob")


def branched(team: Team) -> Machine:
    """alice's branch starts from what landed; her own main is behind."""
    git(team.one, "fetch", "-q", agent="alice")
    git(team.one, "checkout", "-q", "-b", "work", "origin/main", agent="alice")
    return team.one


@pytest.mark.parametrize("way", WAYS)
def test_a_claim_on_a_commit_that_was_thrown_away(tmp_path: Path, way: str) -> None:
    team = Team(tmp_path, gate=True)
    landed(team.two, "free/x", released=False)
    one = branched(team)
    (one.repo / "new").write_text("local\n")
    one.git("add", "new")
    git(one, "commit", "-q", "-m", "local", agent="alice")
    claim(one, "free/x", agent="alice")
    git(one, "reset", "-q", "--hard", "origin/main", agent="alice")
    done = one.run(*WAYS[way], agent="alice")
    assert done.code == 0, done
    assert team.lineage("free/x") == [] and not claim(one, "list", "--mine", "--json", agent="alice").json["claims"]


def test_what_others_landed_is_no_change(tmp_path: Path) -> None:
    """The path was claimed where it was up to date, while the own main was behind."""
    team = Team(tmp_path, gate=True)
    landed(team.two, "free/x", released=False)
    one = branched(team)
    claim(one, "free/x", agent="alice")
    assert "no change" in claim(one, "release", "free/x", agent="alice").out
    assert team.lineage("free/x") == []


def test_what_others_released_is_no_change(tmp_path: Path) -> None:
    """It was claimed on an old copy and pulled afterwards; changes on top of it are one's own."""
    team = Team(tmp_path, gate=True)
    landed(team.two, "shared/a", released=True)
    one = team.one
    claim(one, "shared/a", agent="alice")
    git(one, "pull", "-q", agent="alice")
    assert "no change" in claim(one, "release", "shared/a", agent="alice").out
    assert [row["agent"] for row in team.lineage("shared/a")] == ["bob"]
    claim(one, "shared/a", agent="alice")
    assert change(one, "shared/a", "line 9\n", "alice's\n", "alice").code == 0
    git(one, "push", "-q", "origin", "main", agent="alice")
    claim(one, "release", "shared/a", agent="alice")
    assert [row["agent"] for row in team.lineage("shared/a")] == ["bob", "alice"]


def test_of_a_directory_only_ones_own_files(tmp_path: Path) -> None:
    team = Team(tmp_path, gate=True)
    landed(team.two, "shared/a", released=True)
    one = team.one
    claim(one, "shared", agent="alice")
    git(one, "pull", "-q", agent="alice")
    assert change(one, "shared/b", "b\n", "alice's\n", "alice").code == 0
    git(one, "push", "-q", "origin", "main", agent="alice")
    claim(one, "release", "shared", agent="alice")
    assert [(row["agent"], row["path"]) for row in team.lineage("shared")] == [
        ("bob", "shared/a"),
        ("alice", "shared/b"),
    ]


def test_work_of_others_that_nobody_released_is_said_to_be_theirs(tmp_path: Path) -> None:
    """It stays on record under its author's name, so that it is not undone."""
    team = Team(tmp_path, gate=True)
    one = team.one
    landed(team.two, "free/x", released=False)
    claim(one, "free", agent="alice")
    git(one, "pull", "-q", agent="alice")
    done = claim(one, "release", "free", agent="alice")
    assert done.out.endswith("1 file, no change of yours: made by bob)\n"), done
    claim(one, "free/x", agent="alice")
    assert change(one, "free/x", "line 9\n", "alice's\n", "alice").code == 0
    git(one, "push", "-q", "origin", "main", agent="alice")
    (row,) = claim(one, "release", "free/x", "--json", agent="alice").json["released"]
    assert row["made_by"] == ["alice"]


def test_a_commit_that_names_no_agent_may_be_ones_own(tmp_path: Path) -> None:
    team = Team(tmp_path, gate=False)
    one = team.one
    landed(team.two, "free/x", released=False)
    claim(one, "free/x", agent="alice")
    git(one, "pull", "-q", agent="alice")
    one.git("config", "core.hooksPath", "/dev/null")
    assert change(one, "free/x", "line 9\n", "somebody's\n", "alice").code == 0
    git(one, "push", "-q", "origin", "main", agent="alice")
    done = claim(one, "release", "free/x", agent="alice")
    assert done.out.endswith("1 file)\n"), done


_NO_RELEASES = """while read -r old new ref; do
    case $ref in refs/heads/gitcoord) ;; *) continue ;; esac
    ! git log --format=%s "$old..$new" | grep -q ^release || { echo "no releases here"; exit 1; }
done
"""


def test_a_session_that_keeps_its_claims_ends_in_any_case(tmp_path: Path) -> None:
    """A server that takes no release: the claims stay until their ttl, the session is over."""
    team = Team(tmp_path, gate=False)
    one = team.one
    claim(one, "free/x", agent="alice")
    team.hook("pre-receive", _NO_RELEASES)
    done = one.run("git-coord", "stop", agent="alice")
    assert done.code == 1 and "no releases here" in done.err, done
    done = one.run("git-coord", "stop", "--keep", "--json", agent="alice")
    assert done.code == 0 and done.json["kept"] == ["free/x"], done
    (row,) = claim(one, "list", "--json", agent="bob").json["claims"]
    assert (row["agent"], row["path"]) == ("alice", "free/x")

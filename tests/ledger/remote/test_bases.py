"""Claims on a base that others never see: rewritten, lost or cut off. No change is judged by such a base.

But the work that was released from there, and shared, is still asked of everybody.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.ledger.remote.support import Machine
from tests.ledger.remote.team import Team, change, claim, git
from tests.support import UNHOOKED

AT = "shared/a"


def forget(machine: Machine) -> None:
    """Prune all objects that no ref needs."""
    machine.git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    machine.git("gc", "-q", "--prune=now")


def start_on_a_local_commit(team: Team) -> str:
    """alice claims on top of a commit that she has not pushed."""
    assert change(team.one, "free/x", "line 1\n", "local\n", "alice").code == 0
    claim(team.one, AT, agent="alice")
    return team.one.git("rev-parse", "HEAD").strip()


def rewrite(team: Team, way: str) -> None:
    if way == "amend":
        git(team.one, "commit", "-q", "--amend", "-m", "said better", agent="alice")
        return
    assert change(team.two, "free/x", "line 30\n", "two's\n", "bob").code == 0
    git(team.two, "push", "-q", "origin", "main", agent="bob")
    git(team.one, "pull", "-q", "--rebase", agent="alice")


def released_after(team: Team, way: str, branch: str = "main") -> str:
    """alice's base is rewritten; then she works, pushes and releases. The work's commit."""
    base = start_on_a_local_commit(team)
    rewrite(team, way)
    assert change(team.one, AT, "line 3\n", "alice's\n", "alice").code == 0
    git(team.one, "push", "-q", "origin", f"HEAD:{branch}", agent="alice")
    claim(team.one, "release", AT, agent="alice")
    assert git(team.two, "cat-file", "-e", base, agent="bob", code=None).code != 0, "it was shared after all"
    (entry,) = team.events("release")[0]["released"]
    team.git("merge-base", "--is-ancestor", entry["base"], entry["commit"])  # which others can fetch
    return team.one.git("rev-parse", "HEAD").strip()


def refused(done: Done, rule: str) -> bool:
    """Return whether this rule refused it: "could not judge" does not count."""
    return done.code != 0 and f"[{rule}]" in done.err and "could not be judged" not in done.err


@pytest.mark.parametrize(("gate", "way"), [(False, "amend"), (True, "rebase")])
def test_others_go_on_with_a_path_whose_base_was_rewritten(tmp_path: Path, gate: bool, way: str) -> None:
    """An agent that has the work commits and pushes; one that lacks it is refused at the commit and at the push."""
    team = Team(tmp_path, gate=gate)
    released_after(team, way)
    two = team.two
    claim(two, AT, agent="bob")
    git(two, "fetch", "-q", agent="bob")
    git(two, "checkout", "-q", "-b", "mine", agent="bob")
    assert refused(change(two, AT, "line 20\n", "bob's\n", "bob"), "lineage")
    two.git(*UNHOOKED, "commit", "-q", "-m", "stale\n\nAgent: bob")
    words = UNHOOKED if gate else ()
    assert refused(git(two, *words, "push", "-q", "origin", "HEAD:stale", agent="bob", code=None), "lineage")
    git(two, "merge", "-q", "--no-edit", "origin/main", agent="bob")
    assert change(two, AT, "line 25\n", "bob's too\n", "bob").code == 0
    git(two, "push", "-q", "origin", "HEAD:main", agent="bob")
    assert "alice's" in team.git("show", f"main:{AT}")


@pytest.mark.parametrize("way", ["squash", "rebase"])
def test_work_whose_base_was_rewritten_is_landed_by_another(tmp_path: Path, way: str) -> None:
    """Landing needs no claim, since the work is released. Other content is refused, as ever."""
    team = Team(tmp_path, gate=True)
    work = released_after(team, "amend", "alices")
    two = team.two
    git(two, "fetch", "-q", agent="bob")
    if way == "squash":
        two.git(*UNHOOKED, "merge", "-q", "--squash", work)
        git(two, "commit", "-q", "-m", "land it", agent="bob")
    else:
        assert change(two, "free/x", "line 30\n", "two's\n", "bob").code == 0
        git(two, "cherry-pick", f"{work}~1", work, agent="bob")
    git(two, "push", "-q", "origin", "HEAD:main", agent="bob")
    assert refused(change(two, AT, "line 20\n", "bob's\n", "bob"), "unclaimed")


@pytest.mark.parametrize(("gate", "branch"), [(False, "main"), (True, "alices")])
def test_a_base_that_its_own_repository_has_lost(tmp_path: Path, gate: bool, branch: str) -> None:
    """The claim can be given back, its work is on record, and both go on."""
    team = Team(tmp_path, gate=gate)
    start_on_a_local_commit(team)
    rewrite(team, "amend")
    assert change(team.one, AT, "line 3\n", "alice's\n", "alice").code == 0
    git(team.one, "push", "-q", "origin", f"HEAD:{branch}", agent="alice")
    if branch != "main":
        git(team.one, "checkout", "-q", "-B", branch, agent="alice")
        team.one.git(*UNHOOKED, "branch", "-q", "-f", "main", "origin/main")
    forget(team.one)
    claim(team.one, "release", AT, agent="alice")
    assert [row["agent"] for row in team.lineage(AT)] == ["alice"]
    git(team.two, "fetch", "-q", agent="bob")
    claim(team.two, AT, agent="bob")
    assert refused(change(team.two, AT, "line 20\n", "bob's\n", "bob"), "lineage")
    claim(team.two, "release", "--dirty", AT, agent="bob")
    claim(team.one, AT, agent="alice")
    assert change(team.one, AT, "line 9\n", "alice's again\n", "alice").code == 0
    git(team.one, "push", "-q", "origin", f"HEAD:{branch}", agent="alice")


def test_lost_after_the_release(tmp_path: Path) -> None:
    team = Team(tmp_path, gate=False)
    released_after(team, "amend")
    forget(team.one)
    claim(team.one, AT, agent="alice")
    assert change(team.one, AT, "line 9\n", "alice's again\n", "alice").code == 0
    git(team.one, "push", "-q", "origin", "main", agent="alice")


def test_a_shallow_clone_is_told_how_to_judge(tmp_path: Path) -> None:
    """It follows one branch, and little of that: the hint, followed literally, helps."""
    team = Team(tmp_path, gate=True)
    released_after(team, "amend")
    work = team.one
    assert change(work, "free/x", "line 9\n", "later\n", "alice").code == 0
    git(work, "push", "-q", "origin", "main", agent="alice")
    three = team.add("three", "--depth=1")
    three.join()
    three.git("config", "core.hooksPath", team.two.git("config", "core.hooksPath").strip())
    claim(three, AT, agent="carol")
    done = change(three, AT, "line 20\n", "carol's\n", "carol")
    (hint,) = [line for line in done.err.splitlines() if "git fetch --unshallow" in line]
    assert done.code != 0, done
    git(three, *shlex.split(hint.partition("git ")[2]), agent="carol")
    git(three, "commit", "-q", "-m", "work", agent="carol")
    git(three, "push", "-q", "origin", "HEAD:main", agent="carol")


@pytest.mark.parametrize("way", ["rebase", "merge"])
def test_what_others_landed_since_the_base_is_not_ones_own_released_work(tmp_path: Path, way: str) -> None:
    """Setting trunk back to it needs a claim: it is not work that was released to land."""
    team = Team(tmp_path, gate=True)
    claim(team.two, AT, agent="bob")
    assert change(team.two, AT, "line 2\n", "half of bob's\n", "bob").code == 0
    half = (team.two.repo / AT).read_text()
    assert change(team.two, AT, "half of bob's\n", "bob's work\n", "bob").code == 0
    git(team.two, "push", "-q", "origin", "main", agent="bob")
    claim(team.two, "release", AT, agent="bob")
    start_on_a_local_commit(team)
    git(team.one, "pull", "-q", f"--rebase={'true' if way == 'rebase' else 'false'}", "--no-edit", agent="alice")
    assert change(team.one, AT, "line 9\n", "alice's\n", "alice").code == 0
    git(team.one, "push", "-q", "origin", "HEAD:topic", agent="alice")
    claim(team.one, "release", AT, agent="alice")
    (team.two.repo / AT).write_text(half)
    team.two.git(*UNHOOKED, "commit", "-q", "-am", "back to half of it")
    git(team.two, "fetch", "-q", agent="mallory")
    done = git(team.two, *UNHOOKED, "push", "-q", "origin", "main", agent="mallory", code=None)
    assert refused(done, "unclaimed"), done


def test_a_release_from_a_clone_that_lacks_the_base_records_all_of_the_work(tmp_path: Path) -> None:
    """Work that is not recorded could be undone without a claim."""
    team = Team(tmp_path, gate=True)
    assert change(team.one, "free/x", "line 1\n", "local\n", "alice").code == 0
    claim(team.one, "shared", agent="alice")
    git(team.one, "reset", "-q", "--hard", "origin/main", agent="alice")
    assert change(team.one, AT, "line 3\n", "alice's\n", "alice").code == 0
    assert change(team.one, "shared/b", "b\n", "alice's\n", "alice").code == 0
    git(team.one, "push", "-q", "origin", "main", agent="alice")
    three = team.add("three")
    three.join()
    claim(three, "release", "shared", agent="alice")
    assert {row["path"] for row in team.lineage("shared")} == {AT, "shared/b"}


def test_work_that_landed_meanwhile_is_fetched_by_the_commit_that_needs_it(tmp_path: Path) -> None:
    team = Team(tmp_path, gate=False)
    claim(team.one, "free/x", agent="bob")
    assert change(team.one, "free/x", "line 1\n", "bob's\n", "bob").code == 0
    git(team.one, "push", "-q", "origin", "main", agent="bob")
    claim(team.one, "release", "free/x", agent="bob")
    claim(team.two, "free/x", agent="alice")
    assert refused(change(team.two, "free/x", "line 30\n", "alice's\n", "alice"), "lineage")
    git(team.two, "merge", "-q", "--autostash", "origin/main", agent="alice")
    git(team.two, "commit", "-q", "-a", "-m", "work", agent="alice")


def test_a_commit_of_named_files_asks_before_it_says_that_a_file_is_held(tmp_path: Path) -> None:
    team = Team(tmp_path, gate=False)
    claim(team.one, "free/x", agent="alice")
    assert team.two.claim("list", agent="bob").code == 0  # so it knows of that
    (team.two.repo / "free/x").write_text("bob's\n")
    held = team.two.coord("commit", "-m", "work", "--", "free/x", agent="bob")
    assert held.code == 1 and "held by alice" in held.err and "git claim --wait 10m :/free/x" in held.err, held
    claim(team.one, "release", "free/x", agent="alice")
    assert team.two.coord("commit", "-m", "work", "--", "free/x", agent="bob").code == 0


def test_a_new_file_that_another_has_landed_is_merged_as_the_hint_says(tmp_path: Path) -> None:
    team = Team(tmp_path, gate=False)
    claim(team.one, "free/new", agent="bob")
    (team.one.repo / "free/new").write_text("bob's\n")
    team.one.git("add", "free/new")
    git(team.one, "commit", "-q", "-m", "a new file", agent="bob")
    git(team.one, "push", "-q", "origin", "main", agent="bob")
    claim(team.one, "release", "free/new", agent="bob")
    claim(team.two, "free/new", agent="alice")
    (team.two.repo / "free/new").write_text("alice's\n")
    team.two.git("fetch", "-q")
    done = team.two.coord("commit", "-m", "mine", "--", "free/new", agent="alice")
    assert refused(done, "lineage"), done
    (hint,) = [line for line in done.err.splitlines() if "bring it in" in line]
    command = hint.partition("bring it in, which conflicts in free/new: ")[2].strip()
    assert command.startswith("git add free/new && git merge --autostash "), hint
    for words in command.split(" && "):
        assert git(team.two, *words.split()[1:], agent="alice", code=None).code == 0
    both = (team.two.repo / "free/new").read_text()
    assert "bob's\n" in both and "alice's\n" in both, both

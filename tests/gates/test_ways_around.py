"""Ways around the gates that are none any more, each by real git."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.support import SHARED, Project, refused
from tests.support import git

LONG = "".join(f"line {n}\n" for n in range(30))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def _unclaimed(project: Project, branch: str = "work") -> None:
    project.branch(branch)
    project.commit({"shared/a": "unclaimed\n"}, "my work")


# --- the policy is found -------------------------------------------------------------------------------------------


def test_a_repository_that_was_updated_keeps_its_rules(project: Project) -> None:
    project.branch("work")
    assert refused(project.try_commit({"shared/a": "new\n"}, "alice"), "unclaimed")
    moved = project.top.with_name("moved")
    project.top.rename(moved)
    assert refused(project.try_git("commit", "-q", "-m", "x", agent="alice", cwd=moved), "unclaimed")


def test_a_look_from_below_does_not_spoil_what_is_remembered(project: Project) -> None:
    project.commit({".gitattributes": "# nothing\n"})
    assert project.world.claim("check", "x").code == 0
    project.commit({".gitattributes": SHARED})
    assert project.world.claim("check", "x", cwd="free").code == 0
    project.branch("work")
    assert refused(project.try_commit({"shared/a": "new\n"}, "alice"), "unclaimed")


def test_a_macro_is_not_switched_off_below(tmp_path: Path) -> None:
    project = Project(tmp_path, "[attr]ours gitcoord-claim\nshared/** ours\n")
    project.branch("work")
    project.claim("shared/.gitattributes", agent="alice")
    assert refused(project.try_commit({"shared/.gitattributes": "* -ours\n"}, "alice"), "own-files")


# --- every push is read --------------------------------------------------------------------------------------------


def test_a_source_with_a_blank_in_it(project: Project) -> None:
    _unclaimed(project)
    assert refused(project.push("HEAD^{/my work}:refs/heads/main", agent="alice"), "unclaimed")


@pytest.mark.parametrize(
    "setting", [("i18n.logOutputEncoding", "UTF-16"), ("log.showSignature", "true"), ("log.diffMerges", "off")]
)
def test_settings_of_git_log_do_not_blind_the_gate(project: Project, setting: tuple[str, str]) -> None:
    _unclaimed(project)
    project.git("config", *setting)
    assert refused(project.push("work", agent="alice"), "unclaimed")


def test_a_merge_in_progress_is_not_invented(project: Project) -> None:
    project.branch("work")
    project.write({"shared/a": "new\n"})
    project.git("add", "-A")
    staged = project.git("commit-tree", project.git("write-tree"), "-p", "HEAD", "-m", "x")
    done = project.try_git("commit", "-q", "-m", "x", agent="alice", env={f"GITHEAD_{staged}": "x"})
    assert refused(done, "unclaimed", "shared/a")


# --- nothing that landed or was released is dropped ----------------------------------------------------------------


def test_a_merge_that_keeps_one_side_is_a_change(project: Project) -> None:
    project.work("bob", "bobs", {"shared/a": "bob's\n"})
    project.switch("main")
    done = project.try_git("merge", "-q", "-s", "ours", "-m", "x", "bobs", agent="alice")
    assert refused(done, "unclaimed", "shared/a"), done


def test_an_octopus_that_keeps_one_side(project: Project) -> None:
    project.work("bob", "bobs", {"shared/a": "bob's\n"})
    project.branch("other")
    project.commit({"free/y": "y\n"})
    project.switch("main")
    done = project.try_git("merge", "-q", "-s", "ours", "-m", "x", "bobs", "other", agent="alice")
    assert refused(done, "unclaimed", "shared/a"), done


def test_an_older_release_is_no_way_back(project: Project) -> None:
    first = project.work("bob", "bobs", {"shared/a": "bob's\n"})
    assert project.push("bobs:main", agent="boss").code == 0
    project.work("carol", "carols", {"shared/a": "carol's\n"}, start="bobs")
    assert project.push("carols:main", agent="boss").code == 0
    project.branch("back", first)
    project.commit({"free/y": "y\n"})
    assert refused(project.push("back:main", agent="mallory", force=True), "unclaimed", "shared/a")


def test_a_merge_is_no_way_back_to_what_both_sides_had(project: Project) -> None:
    project.work("alice", "alices", {"shared/a": "first\n"})
    project.unhooked("checkout", "-q", "-B", "main", "alices")
    project.branch("bobs")
    project.commit({"free/y": "y\n"}, agent="bob")
    project.switch("main")
    project.claim("shared/a", agent="alice")
    project.commit({"shared/a": "second\n"}, agent="alice")
    project.switch("bobs")
    project.unhooked("merge", "-q", "-s", "ours", "-m", "merge", "main")
    assert refused(project.push("bobs", agent="bob"), "held", "shared/a")


def test_a_release_covers_no_commit_before_its_base(project: Project) -> None:
    project.branch("work")
    project.commit({"shared/a": "hidden\n"}, agent="mallory")
    project.claim("shared/a", agent="alice")
    commit = project.commit({"shared/a": "alice's\n"}, agent="alice")
    project.claim("release", "shared/a", "--commit", commit, agent="alice")
    assert refused(project.push("work", agent="alice"), "unclaimed", "shared/a")


def test_what_builds_on_unlanded_work_needs_the_later_work_too(project: Project) -> None:
    project.commit({"shared/a": LONG})
    project.unhooked("push", "-q", "origin", "main")
    project.work("bob", "bobs", {"shared/a": LONG.replace("line 3\n", "bob's\n")})
    text = LONG.replace("line 3\n", "bob's\n")
    project.work("carol", "carols", {"shared/a": text.replace("line 9\n", "carol's\n")}, start="bobs")
    project.branch("stale", "bobs")
    project.claim("shared/a", agent="alice")
    project.commit({"shared/a": text.replace("line 20\n", "alice's\n")}, agent="alice")
    assert refused(project.push("stale", agent="alice"), "lineage", "shared/a")


def test_a_release_does_not_forget_what_its_own_work_lacks(project: Project) -> None:
    project.work("bob", "bobs", {"shared/a": "bob's\n"})
    assert project.push("bobs:main", agent="boss").code == 0
    project.branch("stale")
    project.claim("shared/a", agent="alice")
    stale = project.commit({"shared/a": "alice's\n"}, agent="alice")
    assert refused(project.push("stale", agent="alice"), "lineage")
    project.claim("release", "shared/a", "--commit", stale, agent="alice")
    assert refused(project.push("stale", agent="alice"), "lineage")


@pytest.mark.parametrize("way", [["branch", "-f", "main", "old"], ["update-ref", "refs/heads/main", "old"]])
def test_the_sync_branch_is_not_rewound_without_an_old_value(project: Project, way: list[str]) -> None:
    project.git("branch", "old", "main")
    project.work("bob", "bobs", {"shared/a": "bob's\n"})
    project.switch("main")
    project.git("merge", "-q", "--no-ff", "--no-edit", "bobs", agent="boss")
    assert project.push("main", agent="boss").code == 0
    project.switch("bobs")
    assert refused(project.try_git(*way, agent="alice"), "unclaimed", "shared/a")


# --- what counts as landed -----------------------------------------------------------------------------------------


def test_a_tip_that_is_not_here_is_not_overwritten(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(project.remote), str(other))
    (other / "shared/a").write_text("landed elsewhere\n")
    git(other, "commit", "-qam", "elsewhere")
    git(other, "push", "-q")
    done = project.push("main", agent="alice", force=True)
    assert done.code != 0 and "could not be judged" in done.err and "git fetch origin" in done.err, done


def test_a_forged_tracking_ref_is_no_pass(project: Project) -> None:
    _unclaimed(project)
    project.git("fetch", "-q", ".", "+work:refs/remotes/origin/main", agent="alice")
    assert refused(project.push("work:main", agent="alice"), "unclaimed", "shared/a")


def test_the_main_of_a_fork_is_no_pass(project: Project, tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    git(tmp_path, "clone", "-q", str(project.remote), str(fork))
    (fork / "shared/a").write_text("the fork's\n")
    git(fork, "commit", "-qam", "fork")
    project.git("remote", "add", "fork", str(fork))
    project.git("fetch", "-q", "fork", agent="alice")
    project.switch("main")
    assert refused(project.try_git("merge", "-q", "--ff-only", "fork/main", agent="alice"), "unclaimed", "shared/a")


def _landed_elsewhere(project: Project, tmp_path: Path) -> str:
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(project.remote), str(other))
    (other / "shared/a").write_text("landed elsewhere\n")
    git(other, "commit", "-qam", "elsewhere")
    git(other, "push", "-q")
    return git(other, "rev-parse", "HEAD").decode().strip()


def test_what_landed_elsewhere_is_fetched_straight_into_the_sync_branch(project: Project, tmp_path: Path) -> None:
    """Its remote-tracking ref has not moved yet: the remote itself is asked what landed."""
    landed = _landed_elsewhere(project, tmp_path)
    project.branch("mine")
    done = project.try_git("fetch", "-q", "origin", "main:main", agent="alice")
    assert done.code == 0 and project.git("rev-parse", "main") == landed, done


def test_fetching_from_elsewhere_is_no_pass(project: Project, tmp_path: Path) -> None:
    """FETCH_HEAD says that it was fetched, not that it landed."""
    landed = _landed_elsewhere(project, tmp_path)
    _unclaimed(project)
    assert refused(project.try_git("fetch", "-q", ".", "work:main", agent="alice"), "unclaimed", "shared/a")
    assert refused(
        project.try_git("fetch", "-q", str(project.top), "work:main", agent="alice"), "unclaimed", "shared/a"
    )
    project.unhooked("push", "-q", "origin", "work:beside")
    assert refused(project.try_git("fetch", "-q", "origin", "beside:main", agent="alice"), "unclaimed", "shared/a")
    project.git("fetch", "-q", "--refmap=", "origin", "main")  # it landed, and the commit is here
    project.unhooked("commit", "-q", "--allow-empty", "-m", "more")
    project.git("remote", "set-url", "origin", str(tmp_path / "gone"))
    done = project.try_git("update-ref", "refs/heads/main", landed, agent="alice")
    assert refused(done, "unclaimed", "shared/a"), "a remote that does not answer proves nothing"


def test_a_killed_agent_does_not_fetch_into_the_sync_branch(project: Project, tmp_path: Path) -> None:
    _landed_elsewhere(project, tmp_path)
    project.claim("free/x", agent="alice")
    project.coord("kill", "alice", agent="boss")
    project.branch("mine")
    assert refused(project.try_git("fetch", "-q", "origin", "main:main", agent="alice"), "killed")


@pytest.mark.parametrize("address", ["file://{}", "{}/", "{}/../origin.git"])
def test_a_deploy_by_another_spelling(tmp_path: Path, address: str) -> None:
    project = Project(tmp_path, SHARED, '[deploy "production"]\n\tremote = origin\n\tref = refs/heads/production\n')
    project.commit({"free/x": "landed\n"})
    project.unhooked("push", "-q", "origin", "main")
    words = ["push", "-q", address.format(project.remote), "main~1:refs/heads/production"]
    assert refused(project.try_git(*words, agent="alice"), "stale-deploy")


# --- who -----------------------------------------------------------------------------------------------------------


def test_a_killed_agent_does_not_push_in_anothers_name(project: Project) -> None:
    project.branch("work")
    project.claim("free/x", agent="mallory")
    project.coord("kill", "mallory", agent="boss")
    project.commit({"free/y": "y\n"}, agent="somebody")
    assert refused(project.push("work", agent="mallory"), "killed")


def test_work_of_a_killed_agent_leaves_with_nobody(project: Project) -> None:
    project.branch("work")
    project.claim("free/x", agent="mallory")
    project.commit({"free/x": "new\n"}, agent="mallory")
    project.coord("kill", "mallory", agent="boss")
    assert refused(project.push("work", agent="somebody"), "killed")


def test_while_halted_nothing_is_deployed(tmp_path: Path) -> None:
    project = Project(tmp_path, SHARED, '[deploy "production"]\n\tref = refs/heads/production\n')
    project.coord("halt", agent="boss")
    assert refused(project.push("main:refs/heads/production", agent="alice"), "halted")


# --- and everyday work that was refused ----------------------------------------------------------------------------


def test_two_releases_on_main_and_then_a_push(project: Project) -> None:
    for text in ("one\n", "two\n"):
        project.claim("shared/a", agent="alice")
        assert project.try_commit({"shared/a": text}, "alice").code == 0
        project.claim("release", "shared/a", agent="alice")
    done = project.push("main", agent="alice")
    assert done.code == 0, done


def test_what_landed_is_pushed_to_a_backup_and_a_fork(project: Project, tmp_path: Path) -> None:
    for name in ("backup", "fork"):
        git(tmp_path, "init", "-q", "--bare", str(tmp_path / f"{name}.git"))
        project.git("remote", "add", name, str(tmp_path / f"{name}.git"))
        assert project.try_git("push", "-q", name, "main", agent="alice").code == 0
    project.work("bob", "bobs", {"shared/a": "bob's\n"})
    assert project.push("bobs:main", agent="boss").code == 0
    project.git("fetch", "-q", "origin", agent="alice")
    assert project.try_git("push", "-q", "backup", "origin/main:main", agent="alice").code == 0
    project.branch("mine", "origin/main")
    project.commit({"free/y": "y\n"})
    assert project.try_git("push", "-q", "fork", "mine", agent="alice").code == 0


def test_notes_are_no_files(tmp_path: Path) -> None:
    project = Project(tmp_path, "* gitcoord-claim\n")
    project.unhooked("notes", "add", "-m", "well done", "HEAD")
    assert project.push("refs/notes/commits", agent="alice").code == 0


# --- symbolic refs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["refs/heads/alias", "refs/heads/second", "refs/tags/alias"])
def test_an_alias_of_a_guarded_branch(project: Project, name: str) -> None:
    """git names the target too, whatever the ref is called by which it is moved."""
    _unclaimed(project)
    project.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    if name != "refs/heads/alias":
        project.git("symbolic-ref", name, "refs/heads/alias")
    before = project.git("for-each-ref")
    assert refused(project.try_git("update-ref", name, "work", agent="alice"), "unclaimed")
    assert refused(project.try_git("update-ref", "-d", name, agent="alice"), "lineage")
    project.switch("alias")
    assert refused(project.try_git("merge", "-q", "--ff-only", "work", agent="alice"), "unclaimed")
    assert project.git("for-each-ref") == before


def test_an_alias_of_the_ledger(project: Project) -> None:
    project.git("symbolic-ref", "refs/heads/alias", "refs/heads/gitcoord")
    before = project.git("for-each-ref")
    for words in (["refs/heads/alias", "main"], ["-d", "refs/heads/alias"]):
        assert refused(project.try_git("update-ref", *words, agent="alice"), "ledger")
    assert project.git("for-each-ref") == before
    project.git("symbolic-ref", "--delete", "refs/heads/alias", agent="alice")
    assert project.git("for-each-ref", "refs/heads/gitcoord")

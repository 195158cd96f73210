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


def test_an_octopus_that_keeps_one_side(project: Project) -> None:
    project.work("bob", "bobs", {"shared/a": "bob's\n"})
    project.branch("other")
    project.commit({"free/y": "y\n"})
    project.switch("main")
    done = project.try_git("merge", "-q", "-s", "ours", "-m", "x", "bobs", "other", agent="alice")
    assert refused(done, "unclaimed", "shared/a"), done


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
    assert done.code != 0 and "this push is refused: 'main' at origin has moved" in done.err, done


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


@pytest.mark.parametrize("address", ["file://{}", "{}/", "{}/../origin.git"])
def test_a_deploy_by_another_spelling(tmp_path: Path, address: str) -> None:
    project = Project(tmp_path, SHARED, '[deploy "production"]\n\tremote = origin\n\tref = refs/heads/production\n')
    project.commit({"free/x": "landed\n"})
    project.unhooked("push", "-q", "origin", "main")
    words = ["push", "-q", address.format(project.remote), "main~1:refs/heads/production"]
    assert refused(project.try_git(*words, agent="alice"), "stale-deploy")


# --- symbolic refs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["refs/heads/alias", "refs/heads/second", "refs/tags/alias"])
def test_an_alias_of_a_guarded_branch(project: Project, name: str) -> None:
    """git names the target too, for any name by which the ref is moved."""
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

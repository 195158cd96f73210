"""Lineage: a change is refused unless it contains the last released work on its path, across branches. Real histories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gates.repository import GONE
from tests.gates.support import Project, refused
from tests.server.support import forge

LONG = "".join(f"line {n}\n" for n in range(30))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """bob released work on shared/a on his branch; alice holds it now, on a branch from before that work."""
    made = Project(tmp_path)
    made.commit({"shared/a": LONG, "shared/bin": "\0one", "shared/other": "o\n"})
    (made.top / "shared/link").symlink_to("a")
    made.commit({})
    made.unhooked("push", "-q", "origin", "main")
    return made


def released(project: Project, files: dict[str, str | None] | None = None) -> str:
    files = files or {"shared/a": LONG.replace("line 3\n", "bob's\n")}
    return project.work("bob", "bobs", files)


# --- refused: the work is missing ----------------------------------------------------------------------------------


def _text(top: Path) -> None:
    (top / "shared/a").write_text(LONG.replace("line 20\n", "alice's\n"))


def _binary(top: Path) -> None:
    (top / "shared/bin").write_bytes(b"\0alice")


def _symlink(top: Path) -> None:
    (top / "shared/link").unlink()
    (top / "shared/link").symlink_to("other")


def _rename(top: Path) -> None:
    (top / "shared/a").rename(top / "shared/renamed")


STALE: dict[str, tuple[str, Callable[[Project], str], Callable[[Path], None]]] = {
    "text": ("shared/a", released, _text),
    "binary": ("shared/bin", lambda p: released(p, {"shared/bin": "\0bob"}), _binary),
    "symbolic link": ("shared/link", lambda p: _released_link(p), _symlink),
    "rename": ("shared/a", released, _rename),
    "resurrection": ("shared/a", lambda p: released(p, {"shared/a": None}), _text),
}


def _released_link(project: Project) -> str:
    project.branch("bobs")
    project.claim("shared/link", agent="bob")
    (project.top / "shared/link").unlink()
    (project.top / "shared/link").symlink_to("bin")
    commit = project.commit({}, "link", "bob")
    project.claim("release", "shared/link", "--commit", commit, agent="bob")
    return commit


@pytest.mark.parametrize("kind", STALE)
def test_stale_work_is_refused_and_its_repair_passes(project: Project, kind: str) -> None:
    path, release, edit = STALE[kind]
    commit = release(project)
    project.branch("stale")
    project.claim("shared", agent="alice")
    edit(project.top)
    done = project.try_commit({}, "alice")
    assert refused(done, "lineage", path) and commit[:12] in done.err, done
    project.commit({}, "past the hooks", "alice")
    assert refused(project.push("stale", agent="alice"), "lineage", path)
    # Bring the released work in, then do one's own on top.
    project.branch("mended")
    project.git("merge", "-q", "--no-edit", commit, agent="alice")
    if kind == "resurrection":
        (project.top / "shared").mkdir(exist_ok=True)
    if kind != "rename" or (project.top / "shared/a").exists():
        edit(project.top)
    assert project.try_commit({}, "alice").code == 0
    assert project.push("mended", agent="alice").code == 0


@pytest.mark.parametrize("way", ["clean", "conflict", "something else", "dropped"])
def test_a_merge_above_it_brings_it_in(project: Project, way: str) -> None:
    """The repair that a refused push names. It is none where it takes one side and drops the other."""
    line = "line 3\n" if way == "conflict" else "line 20\n"
    commit = released(project)
    project.branch("mine")
    project.claim("shared/a", agent="alice")
    project.commit({"shared/a": LONG.replace(line, "alice's\n")}, agent="alice")
    project.commit({"free/x": "more\n"}, agent="alice")
    done = project.push("mine", agent="alice")
    assert refused(done, "lineage", "shared/a") and f"hint: bring it in: git merge {commit[:12]}\n" in done.err
    if way == "something else":
        project.branch("other")
        commit = project.commit({"free/y": "y\n"}, agent="alice")
        project.switch("mine")
    if way == "dropped":
        project.claim("release", "shared/a", agent="alice")
        project.unhooked("merge", "-q", "-s", "ours", "--no-edit", commit)
        assert refused(project.push("mine", agent="boss"), "lineage", "shared/a")
        return
    merged = project.try_git("merge", "-q", "--no-edit", commit, agent="alice")
    if way == "conflict":
        assert merged.code == 1 and project.try_commit({"shared/a": "both\n"}, "alice").code == 0
    done = project.push("mine", agent="alice")
    assert refused(done, "lineage", "shared/a") if way == "something else" else done.code == 0, done


def test_disowning_clears_it(project: Project) -> None:
    released(project)
    project.branch("stale")
    project.claim("shared/a", agent="alice")
    _text(project.top)
    assert refused(project.try_commit({}, "alice"), "lineage")
    project.claim("disown", "shared/a", "--reason", "abandoned", agent="alice")
    assert project.try_commit({}, "alice").code == 0


def test_a_refused_commit_names_a_command_that_helps(project: Project) -> None:
    released(project)
    project.branch("mine")
    project.claim("shared/a", agent="alice")
    _text(project.top)
    done = project.try_commit({}, "alice")
    (hint,) = [line for line in done.err.splitlines() if "bring it in: " in line]
    done = project.try_git(*hint.partition("bring it in: git ")[2].split(" "), agent="alice")
    assert done.code == 0, done
    assert project.try_commit({}, "alice").code == 0
    text = (project.top / "shared/a").read_text()
    assert "bob's\n" in text and "alice's\n" in text


def test_a_binary_that_cannot_be_merged_is_missing(project: Project) -> None:
    """git keeps our side of it, and tells by its exit code alone that it merged nothing."""
    released(project, {"shared/bin": "\0bob"})
    project.switch("main")
    project.commit({"shared/bin": "\0main"})
    project.unhooked("push", "-q", "origin", "main")
    project.branch("mine")
    project.claim("shared/bin", agent="alice")
    assert refused(project.try_commit({"shared/bin": "\0alice"}, "alice"), "lineage", "shared/bin")


def test_the_newest_of_what_is_missing_is_named(project: Project) -> None:
    """It brings what it was built upon along."""
    released(project)
    newest = project.work("carol", "carols", {"shared/a": "carol's\n"}, start="bobs")
    project.branch("mine")
    project.claim("shared/a", agent="alice")
    done = project.try_commit({"shared/a": "mine\n"}, "alice")
    assert refused(done, "lineage", "shared/a") and f"git merge --autostash {newest[:12]}" in done.err


def test_work_of_another_beginning_is_missing_too(project: Project) -> None:
    """Nothing can be merged with it: that is an answer."""
    project.unhooked("checkout", "-q", "--orphan", "other")
    project.claim("shared/a", agent="bob")
    commit = project.commit({"shared/a": "bob's\n"}, agent="bob")
    project.claim("release", "shared/a", "--commit", commit, agent="bob")
    project.branch("mine")
    project.claim("shared/a", agent="alice")
    assert refused(project.try_commit({"shared/a": "mine\n"}, "alice"), "lineage", "shared/a")


def test_the_older_of_two_releases_must_be_contained_too(project: Project) -> None:
    """Two releases of one path before landing, the second without the first: landing the second is refused."""
    released(project)
    project.work("carol", "carols", {"shared/a": LONG.replace("line 3\n", "carol's\n")})
    project.switch("main")
    project.git("merge", "-q", "--squash", "carols", agent="boss")
    assert refused(project.try_commit({}, "boss"), "lineage", "shared/a")


def test_going_back_to_landed_work_needs_a_claim(project: Project) -> None:
    """Content that was released once is no pass for ever: what landed meanwhile would be undone."""
    first = released(project)
    project.switch("main")
    project.git("merge", "-q", "--no-ff", "--no-edit", "bobs", agent="boss")
    project.work("carol", "carols", {"shared/a": LONG.replace("line 9\n", "carol's\n")})
    project.switch("main")
    project.git("merge", "-q", "--no-ff", "--no-edit", "carols", agent="boss")
    project.git("checkout", "-q", first, "--", "shared/a")
    assert refused(project.try_commit({}, "boss"), "unclaimed", "shared/a")


# --- passes --------------------------------------------------------------------------------------------------------


def _land(project: Project, *words: str) -> None:
    project.switch("main")
    done = project.try_git(*words, agent="boss")
    assert done.code == 0, done


def test_squash(project: Project) -> None:
    released(project)
    _land(project, "merge", "-q", "--squash", "bobs")
    assert project.try_commit({}, "boss").code == 0
    assert project.push("main", agent="boss").code == 0


def test_squash_of_two_commits_onto_a_sync_branch_that_changed_the_same_file(project: Project) -> None:
    project.branch("bobs")
    project.claim("shared/a", agent="bob")
    project.commit({"shared/a": LONG.replace("line 3\n", "bob's\n")})
    commit = project.commit({"shared/a": LONG.replace("line 3\n", "bob's\n").replace("line 12\n", "bob's too\n")})
    project.claim("release", "shared/a", "--commit", commit, agent="bob")
    project.switch("main")
    project.commit({"shared/a": LONG.replace("line 28\n", "main's\n")})
    _land(project, "merge", "-q", "--squash", "bobs")
    assert project.try_commit({}, "boss").code == 0


def test_rebase_of_several_commits_onto_a_changed_file(project: Project) -> None:
    project.branch("bobs")
    project.claim("shared/a", agent="bob")
    text = LONG
    for number in (3, 4, 5):
        text = text.replace(f"line {number}\n", f"bob's {number}\n")
        commit = project.commit({"shared/a": text}, f"bob {number}", "bob")
    project.claim("release", "shared/a", "--commit", commit, agent="bob")
    project.switch("main")
    project.commit({"shared/a": LONG.replace("line 28\n", "main's\n")})
    project.unhooked("push", "-q", "origin", "main")
    project.switch("bobs")
    project.unhooked("rebase", "-q", "main")
    assert project.push("bobs:main", agent="boss").code == 0


def test_cherry_pick(project: Project) -> None:
    commit = released(project)
    _land(project, "cherry-pick", commit)
    assert project.push("main", agent="boss").code == 0


def test_revert_under_a_claim(project: Project) -> None:
    commit = released(project)
    _land(project, "merge", "-q", "--ff-only", "bobs")
    assert refused(project.try_git("revert", "--no-edit", commit, agent="boss"), "unclaimed", "shared/a")
    project.unhooked("reset", "-q", "--hard")
    project.claim("shared/a", agent="boss")
    assert project.try_git("revert", "--no-edit", commit, agent="boss").code == 0


@pytest.mark.parametrize("what", ["delete", "reformat", "rename", "go on"])
def test_whoever_builds_on_it_may_do_anything(project: Project, what: str) -> None:
    released(project)
    project.branch("next", "bobs")
    project.claim("shared", agent="alice")
    file = project.top / "shared/a"
    if what == "delete":
        file.unlink()
    elif what == "rename":
        file.rename(project.top / "shared/renamed")
    else:
        file.write_text(file.read_text().upper() if what == "reformat" else file.read_text() + "more\n")
    assert project.try_commit({}, "alice").code == 0
    assert project.push("next", agent="alice").code == 0


def test_a_later_commit_of_the_holder_in_the_same_push(project: Project) -> None:
    released(project)
    project.claim("shared/a", agent="bob")
    assert project.try_commit({"shared/a": "more\n"}, "bob").code == 0
    assert project.push("bobs", agent="bob").code == 0


def test_either_side_of_a_merge_brings_it(project: Project) -> None:
    """What landed past the gates conflicts with it; the merge is resolved to neither side."""
    released(project)
    project.switch("main")
    project.commit({"shared/a": LONG.replace("line 3\n", "hers\n")}, agent="alice")
    project.unhooked("push", "-q", "origin", "main")
    project.claim("shared/a", agent="alice")
    assert project.try_git("merge", "-q", "bobs", agent="alice").code == 1
    done = project.try_commit({"shared/a": LONG.replace("line 3\n", "both\n")}, "alice")
    assert done.code == 0, done
    assert project.push("main", agent="alice").code == 0


def test_released_work_may_have_begun_before_its_claim(project: Project) -> None:
    """Where no claim is needed: the first commit builds on nothing that was released, and is part of what was."""
    project.branch("work")
    project.commit({"free/x": "begun\n"}, agent="alice")
    project.claim("free/x", agent="alice")
    commit = project.commit({"free/x": "done\n"}, agent="alice")
    project.claim("release", "free/x", "--commit", commit, agent="alice")
    done = project.push("work", agent="alice")
    assert done.code == 0, done


def test_two_releases_one_upon_the_other_land_together_or_in_turn(project: Project) -> None:
    first = released(project)
    second = project.work("carol", "carols", {"shared/a": "carol's\n"}, start="bobs")
    for branch, commits in (("together", [second]), ("in-turn", [first, second])):
        project.branch(branch, "main")
        for commit in commits:
            project.git("checkout", "-q", commit, "--", "shared/a", agent="boss")
            assert project.try_commit({}, "boss").code == 0, branch
        assert project.push(f"{branch}", agent="boss").code == 0, branch


def test_missing_commits_cannot_be_judged(project: Project) -> None:
    commit = released(project)
    project.switch("main")
    project.unhooked("branch", "-q", "-D", "bobs")
    project.unhooked("reflog", "expire", "--expire=now", "--all")
    project.unhooked("-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now")
    project.branch("stale")
    project.claim("shared/a", agent="alice")
    _text(project.top)
    done = project.try_commit({}, "alice")
    assert done.code != 0 and commit[:12] in done.err and "could not be judged" in done.err and "disown" in done.err, (
        done
    )


def released_from_a_lost_base(project: Project) -> str:
    """A release that was judged from a commit which nobody has, as an older client records it after a rewrite."""
    project.branch("bobs")
    project.claim("shared/a", agent="bob")
    token = project.world.claim("list", "--json", agent="bob").json["claims"][0]["token"]
    commit = project.commit({"shared/a": LONG.replace("line 3\n", "bob's\n")}, "work of bob", "bob")
    mode, _, blob = project.git("ls-tree", commit, "shared/a").partition("\t")[0].split(" ")
    entry = {
        "space": "path", "path": "shared/a", "token": token, "commit": commit, "base": GONE,
        "files": [["shared/a", mode, blob]], "landed": [],
    }  # fmt: skip
    forge(project, ("release", "bob", {"released": [entry]}, {}))
    return commit


def test_a_base_that_nobody_has_is_no_obstacle(project: Project) -> None:
    """The work is asked for, and may be landed and built upon."""
    commit = released_from_a_lost_base(project)
    project.branch("stale")
    project.claim("shared/a", agent="alice")
    _text(project.top)
    assert refused(project.try_commit({}, "alice"), "lineage", "shared/a")
    project.unhooked("reset", "-q", "--hard")
    project.claim("release", "shared/a", agent="alice")
    _land(project, "merge", "-q", "--squash", commit)
    assert project.try_commit({}, "boss").code == 0
    assert project.push("main", agent="boss").code == 0
    project.claim("shared/a", agent="alice")
    _text(project.top)
    assert project.try_commit({}, "alice").code == 0


def test_without_its_base_released_work_is_what_the_trunk_lacks(project: Project) -> None:
    """What others landed before is no part of it: nobody may go back to that, before it lands or afterwards."""
    released_from_a_lost_base(project)
    project.switch("main")
    assert refused(project.try_commit({"shared/a": "a\n"}, "boss"), "unclaimed", "shared/a")
    project.unhooked("reset", "-q", "--hard")
    _land(project, "merge", "-q", "--squash", "bobs")
    assert project.try_commit({}, "boss").code == 0
    assert refused(project.try_commit({"shared/a": LONG}, "boss"), "unclaimed", "shared/a")


def test_back_and_forth_within_one_release(project: Project) -> None:
    """The middle commit's parent has had the released content already; it is part of the work all the same."""
    project.branch("bobs")
    project.claim("shared/a", agent="bob")
    for text in ("one\n", "two\n", "one\n"):
        commit = project.commit({"shared/a": text})
    project.claim("release", "shared/a", "--commit", commit, agent="bob")
    assert project.push("bobs:main", agent="boss").code == 0


def test_a_conflict_resolved_to_exactly_what_was_released(project: Project) -> None:
    commit = released(project, {"shared/bin": "\0bob"})
    project.switch("main")
    project.commit({"shared/bin": "\0main"})
    project.try_git("merge", "-q", commit, agent="boss")
    project.git("checkout", "-q", commit, "--", "shared/bin", agent="boss")
    done = project.try_git("commit", "-q", "--no-edit", agent="boss")
    assert done.code == 0, done


def test_only_where_a_change_starts_is_the_work_asked_for(project: Project) -> None:
    """bob's work landed on top of carol's: only a merge shows that it is contained, and only until his lines are changed
    again."""
    project.work("carol", "carols", {"shared/a": LONG.replace("line 20\n", "carol's\n")})
    released(project)
    for branch in ("carols", "bobs"):
        _land(project, "merge", "-q", "--squash", branch)
        assert project.try_commit({}, "boss").code == 0
    assert project.push("main", agent="boss").code == 0
    project.branch("next")
    project.claim("shared/a", agent="alice")
    for text in ("alice's\n", "alice's again\n"):
        project.commit({"shared/a": LONG.replace("line 3\n", text).replace("line 20\n", "carol's\n")}, agent="alice")
        project.commit({"free/x": text}, agent="alice")
    done = project.push("next", agent="alice")
    assert done.code == 0, done


def test_a_squash_whose_conflict_is_resolved_to_exactly_what_was_released(project: Project) -> None:
    """Neither a merge nor a pick of it is clean: only its own content shows what it lands."""
    commit = released(project, {"shared/bin": "\0bob"})
    project.switch("main")
    project.commit({"shared/bin": "\0main"})
    project.git("checkout", "-q", commit, "--", "shared/bin", agent="boss")
    done = project.try_commit({}, "boss")
    assert done.code == 0, done


@pytest.mark.parametrize("way", ["push", "go on", "go on released", "on main", "land", "deletion"])
def test_released_work_may_be_given_another_message(project: Project, way: str) -> None:
    """Amended without a change it is the released work still, whoever pushes it and whatever is built on it."""
    changed: dict[str, str | None] = {"shared/a": None if way == "deletion" else LONG.replace("line 3\n", "bob's\n")}
    if way == "on main":
        project.claim("shared/a", agent="bob")
        assert project.try_commit(changed, "bob").code == 0
        project.claim("release", "shared/a", agent="bob")
    else:
        released(project, changed)
    done = project.try_git("commit", "-q", "--amend", "-m", "said better", agent="bob")
    assert done.code == 0, done
    if way.startswith("go on"):
        project.claim("shared/a", agent="bob")
        assert project.try_commit({"shared/a": "more\n"}, "bob").code == 0
        if way == "go on released":
            project.claim("release", "shared/a", agent="bob")
    branch = "main" if way == "on main" else "bobs"
    done = project.push(f"{branch}:main" if way == "land" else branch, agent="bob")
    assert done.code == 0, done


@pytest.mark.parametrize("way", ["cherry-pick", "squash"])
def test_what_is_built_on_landed_work_is_asked_for_all_of_it(project: Project, way: str) -> None:
    """bob's work lands as a copy, and in the same push alice's own on top of it, without carol's, which came after his."""
    first = released(project)
    second = project.work("carol", "carols", {"shared/a": LONG.replace("line 20\n", "carol's\n")}, start="bobs")
    project.branch("copy")
    project.unhooked("cherry-pick", *(["-n"] if way == "squash" else []), first)
    if way == "squash":
        project.commit({}, "bob's work")
    project.claim("shared/a", agent="alice")
    project.commit({"shared/a": LONG.replace("line 20\n", "alice's\n")}, "alice's", "alice")
    done = project.push("copy", agent="alice")
    assert refused(done, "lineage", "shared/a") and second[:12] in done.err, done


def test_work_that_landed_inside_later_work(project: Project) -> None:
    """carol builds upon bob's branch, on the same lines; both land as one squash. Nothing of bob's can be seen any more."""
    released(project)
    project.work("carol", "carols", {"shared/a": LONG.replace("line 3\n", "carol's\n")}, start="bobs")
    project.switch("main")
    project.unhooked("merge", "-q", "--squash", "carols")
    project.commit({}, "squash of carols")
    assert project.push("main", agent="boss").code == 0
    project.claim("shared/a", agent="alice")
    project.commit({"shared/a": LONG.replace("line 3\n", "alice's\n")}, "alice's", "alice")
    assert project.push("main", agent="alice").code == 0


def test_work_that_landed_beside_later_work(project: Project) -> None:
    """The same with carol's work begun on main: then bob's is in nobody's."""
    released(project)
    project.work("carol", "carols", {"shared/a": LONG.replace("line 3\n", "carol's\n")})
    project.switch("main")
    project.claim("shared/a", agent="alice")
    project.commit({"shared/a": LONG.replace("line 3\n", "carol's\n")}, "as carol's", "alice")
    assert refused(project.push("main", agent="alice"), "lineage", "shared/a")

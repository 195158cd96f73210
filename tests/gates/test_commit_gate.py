"""pre-commit, pre-merge-commit and reference-transaction: what a commit may change, by real commits."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest

from tests.gates.support import Project, refused
from tests.support import git


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.branch("work")
    return made


@pytest.mark.parametrize(
    "words",
    [
        ("commit", "-q", "-m", "x"),
        ("commit", "-qam", "x"),
        ("commit", "-qm", "x", "--", ".gitcoord/config", ".gitattributes"),
    ],
)
def test_likely_mistakes_of_a_policy_are_told_as_it_is_committed(project: Project, words: tuple[str, ...]) -> None:
    project.write({".gitcoord/config": "[rollout]\n\tunclaimd = warn\n", ".gitattributes": "shared/** gitcoord-clam\n"})
    project.git("add", "-A")
    done = project.person_git(*words)
    assert done.code == 0 and "warning: .gitcoord/config: rollout.unclaimd is not known" in done.out, done
    assert "warning: .gitattributes:1: gitcoord-clam is not known" in done.out
    assert (
        project.git("status", "--porcelain") == ""
        and project.git("show", "HEAD:.gitattributes") == "shared/** gitcoord-clam"
    )
    assert list((project.top / ".git/gitcoord/explain").iterdir()) == [], "no copy of the index is left"
    assert "warning" not in project.try_commit({"free/x": "new\n"}, "alice").err


# --- the rule ------------------------------------------------------------------------------------------------------


def test_a_shared_path_needs_a_write_claim_of_whoever_commits(project: Project) -> None:
    done = project.try_commit({"shared/a": "new\n"}, "alice")
    assert refused(done, "unclaimed", "shared/a") and "hint: git claim shared/a" in done.err
    project.claim("shared/a", "--mode", "intent", agent="alice")
    assert refused(project.try_commit({}, "alice"), "unclaimed", "shared/a"), "only a write claim lets a change through"
    project.claim("shared/a", agent="alice")
    assert project.try_commit({}, "alice").code == 0
    assert project.git("log", "-1", "--format=%(trailers:key=Agent,valueonly)") == "alice"


def test_what_another_holds_binds_on_every_path(project: Project) -> None:
    project.claim("free/x", "-m", "mine for now", agent="bob")
    done = project.try_commit({"free/x": "new\n"}, "alice")
    assert refused(done, "held", "free/x") and "bob" in done.err and "mine for now" in done.err
    assert "takeover" not in done.err
    project.world.fall_silent("bob")
    assert project.try_commit({}, "alice").code == 0, "the silent bind nobody"


def test_whoever_relies_on_a_path_is_asked_for_in_every_gate(project: Project) -> None:
    """Same answer as `git claim` and `git claim check`, for any path: a change conflicts with a claim of any mode."""
    project.claim("free", "--mode", "read", agent="bob")
    project.branch("work")
    assert project.world.claim("check", "free/x", agent="alice").code == 1
    assert project.world.claim("free/x", agent="alice").code == 1
    done = project.try_commit({"free/x": "new\n"}, "alice")
    assert refused(done, "held", "free/x") and "bob holds it (read)" in done.err
    project.commit({}, agent="alice")
    assert refused(project.push("work", agent="alice"), "held", "free/x"), "the push"
    project.unhooked("branch", "-q", "-f", "main", "HEAD~1")
    done = project.try_git("update-ref", "refs/heads/main", "work", agent="alice")
    assert refused(done, "held", "free/x"), "the move of a guarded branch"
    project.claim("release", "free", agent="bob")
    assert project.push("work", agent="alice").code == 0


def test_a_commit_without_a_name_is_not_judged_as_somebody(project: Project) -> None:
    done = project.try_commit({"shared/a": "new\n"}, "")
    assert done.code != 0 and "nobody is named here" in done.err


# --- every kind of change ------------------------------------------------------------------------------------------


def _rename(top: Path) -> None:
    (top / "shared/a").rename(top / "free/moved")


def _mode(top: Path) -> None:
    (top / "shared/a").chmod(0o755)


def _link(top: Path) -> None:
    (top / "shared/a").unlink()
    (top / "shared/a").symlink_to("b")


def _directory(top: Path) -> None:
    (top / "shared/a").unlink()
    (top / "shared/a").mkdir()
    (top / "shared/a/inside").write_text("x\n")


CHANGES = {
    "edit": lambda top: (top / "shared/a").write_text("new\n"),
    "deletion": lambda top: (top / "shared/a").unlink(),
    "rename away": _rename,
    "mode": _mode,
    "symbolic link": _link,
    "directory in its place": _directory,
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_kind_of_change_is_seen(project: Project, change: str) -> None:
    CHANGES[change](project.top)
    assert refused(project.try_commit({}, "alice"), "unclaimed", "shared/a")
    project.claim("shared/a", agent="alice")
    done = project.try_commit({}, "alice")
    assert done.code == 0, done


def test_a_rename_into_a_shared_directory(project: Project) -> None:
    (project.top / "free/x").rename(project.top / "shared/x")
    assert refused(project.try_commit({}, "alice"), "unclaimed", "shared/x")


def test_a_submodule_is_a_change_too(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "one")
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "shared/sub")
    assert refused(project.try_commit({}, "alice"), "unclaimed", "shared/sub")


@pytest.mark.parametrize("words", [["-a"], ["--", "shared/a"], ["--amend", "-a"]], ids=["all", "only", "amend"])
def test_however_it_is_staged(project: Project, words: list[str]) -> None:
    """`-a` and `-- path` commit from an index of their own, which git names to the hook."""
    project.write({"shared/a": "new\n"})
    assert refused(project.try_git("commit", "-q", "-m", "x", *words, agent="alice"), "unclaimed", "shared/a")
    project.claim("shared/a", agent="alice")
    assert project.try_git("commit", "-q", "-m", "x", *words, agent="alice").code == 0


def test_odd_names(project: Project) -> None:
    names = ["shared/with blank", "shared/ünï", "shared/'quote\"", "shared/new\nline", "shared/-dash"]
    project.write(dict.fromkeys(names, "x\n"))
    done = project.try_commit({}, "alice")
    assert sum("[unclaimed]" in line for line in done.err.splitlines()) == len(names), done.err
    project.claim("shared", agent="alice")
    assert project.try_commit({}, "alice").code == 0


# --- merges --------------------------------------------------------------------------------------------------------


def _diverge(project: Project) -> None:
    """main and work both changed shared/a, as released work; work is checked out."""
    project.branch("work")
    project.commit({"shared/a": "theirs\n"})
    project.switch("main")
    project.commit({"shared/b": "main's\n"})
    project.switch("work")


def test_merging_the_sync_branch_is_no_change_of_ones_own(project: Project) -> None:
    _diverge(project)
    assert project.try_git("merge", "-q", "--no-edit", "main", agent="alice").code == 0


def test_an_evil_merge_is_seen(project: Project) -> None:
    _diverge(project)
    project.git("merge", "-q", "--no-commit", "main", agent="alice", ok=False)
    done = project.try_commit({"shared/b": "evil\n"}, "alice")
    assert refused(done, "unclaimed", "shared/b") and not refused(done, "unclaimed", "shared/a")


# --- whose commit it is --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["--no-edit"], ["-m", "join them"], ["-m", "join them\n\nin two paragraphs"]])
def test_a_merge_tells_its_agent_and_keeps_its_subject(project: Project, words: list[str]) -> None:
    """git hands the message of a merge over without a line's end."""
    project.commit({"free/x": "theirs\n"})
    project.branch("other")
    project.commit({"free/y": "ours\n"})
    assert project.try_git("merge", "-q", "--no-ff", *words, "work", agent="alice").code == 0
    subject = words[1].partition("\n")[0] if words[1:] else "Merge branch 'work' into other"
    assert project.git("log", "-1", "--format=%s|%(trailers:key=Agent,valueonly)") == f"{subject}|alice"


def test_a_line_of_dashes_does_not_hide_the_agent(project: Project) -> None:
    project.write({"free/x": "new\n"})
    assert project.try_git("commit", "-q", "-a", "-m", "one\n\n---\ntwo", agent="alice").code == 0
    assert project.git("log", "-1", "--format=%(trailers:key=Agent,valueonly)") == "alice"
    assert project.git("log", "-1", "--format=%b").startswith("---\ntwo")


# --- refs that move without pre-commit -----------------------------------------------------------------------------


def test_a_branch_that_stays_where_it_is_needs_nobody(project: Project) -> None:
    """`git reset --hard` names the branch to the hook although it does not move."""
    project.switch("main")
    project.write({"shared/a": "thrown away\n"})
    done = project.try_git("reset", "-q", "--hard")
    assert done.code == 0 and (project.top / "shared/a").read_text() == "a\n", done
    main = project.git("rev-parse", "main")
    project.branch("work")
    work = project.commit({"shared/a": "new\n"})
    assert project.try_git("update-ref", "refs/heads/main", work, work).code != 0, (
        "git compares before it asks the hook"
    )
    assert project.git("rev-parse", "main") == main


@pytest.mark.parametrize("way", ["merge --ff-only work", "cherry-pick work", "reset --hard work", "rebase work"])
def test_the_sync_branch_is_gated_however_it_moves(project: Project, way: str) -> None:
    project.commit({"shared/a": "unclaimed\n"})
    project.switch("main")
    before = project.git("rev-parse", "main")
    done = project.try_git(*way.split(), agent="alice")
    assert refused(done, "unclaimed", "shared/a"), done
    assert project.git("rev-parse", "main") == before


def test_am_is_gated(project: Project, tmp_path: Path) -> None:
    project.commit({"shared/a": "unclaimed\n"})
    patch = project.git("format-patch", "-1", "-o", str(tmp_path))
    project.switch("main")
    assert refused(project.try_git("am", "-q", patch, agent="alice"), "unclaimed", "shared/a")


def test_released_work_lands_by_any_of_them(project: Project) -> None:
    project.work("alice", "work", {"shared/a": "released\n"})
    project.switch("main")
    done = project.try_git("merge", "-q", "--no-ff", "--no-edit", "work", agent="orchestrator")
    assert done.code == 0, done


def test_no_verify_does_not_reach_the_sync_branch(project: Project) -> None:
    project.switch("main")
    project.write({"shared/a": "new\n"})
    done = project.try_git("commit", "-q", "--no-verify", "-a", "-m", "x", agent="alice")
    assert refused(done, "unclaimed", "shared/a")


def test_packing_and_tidying_are_no_changes(project: Project) -> None:
    project.claim("shared/a", agent="alice")
    for words in (["pack-refs", "--all"], ["gc", "-q"], ["pack-refs", "--all", "--prune"]):
        done = project.try_git(*words, agent="alice")
        assert done.code == 0, done
    assert "refs/heads/gitcoord" in project.git("for-each-ref", "--format=%(refname)")


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize(
    "words",
    [["branch", "-D", "gitcoord"], ["branch", "-f", "gitcoord", "main"], ["update-ref", "-d", "refs/gitcoord/tip"]],
)
def test_the_ledger_is_not_rewritten_by_hand(project: Project, words: list[str], packed: bool) -> None:
    if packed:
        project.unhooked("pack-refs", "--all")
    before = project.git("for-each-ref")
    assert refused(project.try_git(*words, agent="alice"), "ledger")
    assert project.git("for-each-ref") == before


TOPIC = "feature/topic"


@pytest.mark.parametrize(
    "words",
    [("-D", "main"), ("-m", "main", "other"), ("-M", TOPIC, "main"), ("-M", "main")],
    ids=lambda words: " ".join(words),
)
def test_trunk_is_not_deleted_nor_renamed_and_the_hints_say_what_helps(
    project: Project, words: tuple[str, ...]
) -> None:
    project.branch(TOPIC)
    tip = project.commit({"free/x": "new\n"})
    done = project.try_git("branch", *words, agent="alice")
    assert refused(done, "lineage") and "ask the person who set gitcoord up here" in done.err, done
    assert [project.git("rev-parse", "--symbolic-full-name", *names) for names in (("main",), (TOPIC,), ("HEAD",))] == [
        "refs/heads/main", f"refs/heads/{TOPIC}", f"refs/heads/{TOPIC}",
    ]  # fmt: skip
    assert project.git("rev-parse", TOPIC) == tip and len(project.git("reflog", "show", TOPIC).splitlines()) >= 2
    assert project.git("reflog", "show", "main"), "its log is there too"
    hints = [line.removeprefix("hint: ") for line in done.err.splitlines() if line.startswith("hint: ")]
    beside, onto = (hint.rpartition(": ")[2].split() for hint in hints[:2])
    beside[beside.index("<name>")] = "other"
    assert project.try_git(*beside[1:], agent="alice").code == 0
    onto[onto.index("<branch>")] = TOPIC
    assert project.coord(*onto[2:], agent="alice").code == 0
    assert project.git("show", "main:free/x") == "new"


def test_one_who_wants_the_ledger_gone_is_told_whom_to_ask(project: Project) -> None:
    done = project.try_git("branch", "-D", "gitcoord", agent="alice")
    assert refused(done, "ledger") and "ask the person who set gitcoord up here" in done.err, done
    assert "--repair" not in done.err, "there is nothing to repair"


# --- whoever may not -----------------------------------------------------------------------------------------------


def test_the_killed_and_the_halted(project: Project) -> None:
    project.claim("shared/a", agent="alice")
    project.as_person("halt", "--reason", "stop")
    done = project.try_commit({"shared/a": "new\n"}, "alice")
    assert refused(done, "halted") and "stop" in done.err
    project.as_person("unhalt")
    project.as_person("kill", "alice")
    assert refused(project.try_commit({}, "alice"), "killed")


# --- where nothing is to be judged ---------------------------------------------------------------------------------


def test_without_gitcoord_nothing_is_refused(project: Project) -> None:
    project.unhooked("update-ref", "-d", "refs/heads/gitcoord")
    project.unhooked("update-ref", "-d", "refs/gitcoord/tip")
    project.unhooked("config", "--unset-all", "gitcoord.root")
    project.unhooked("config", "--unset-all", "gitcoord.ledger")
    assert project.try_commit({"shared/a": "new\n"}, "alice").code == 0


def test_in_a_linked_work_tree(project: Project, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    project.unhooked("worktree", "add", "-q", str(linked), "-b", "linked")
    (linked / "shared/a").write_text("new\n")
    words = ["commit", "-q", "-a", "-m", "x"]
    assert refused(project.try_git(*words, agent="alice", cwd=linked), "unclaimed", "shared/a")
    project.claim("shared/a", agent="alice")
    assert project.try_git(*words, agent="alice", cwd=linked).code == 0


# --- where a gate looks --------------------------------------------------------------------------------------------


def test_a_missing_index_of_the_attributes_is_not_taken_for_no_rules(project: Project) -> None:
    assert refused(project.try_commit({"shared/a": "new\n"}, "alice"), "unclaimed")
    for index in (project.top / ".git/gitcoord/policy.git").glob("index-*"):
        index.unlink()
    assert refused(project.try_commit({}, "alice"), "unclaimed"), "it is made anew"


@pytest.mark.parametrize("where", ["info", "nested", "global"])
def test_attributes_from_elsewhere_cannot_unset_a_rule(project: Project, where: str, tmp_path: Path) -> None:
    rule = "* -gitcoord-claim\n"
    if where == "info":
        (project.top / ".git/info").mkdir(exist_ok=True)
        (project.top / ".git/info/attributes").write_text(rule)
    elif where == "global":
        (tmp_path / "attributes").write_text(rule)
        project.git("config", "core.attributesFile", str(tmp_path / "attributes"))
    else:
        (project.top / "shared/.gitattributes").write_text(rule)
    assert refused(project.try_commit({"shared/a": "new\n"}, "alice"), "unclaimed", "shared/a")


def test_time_out_closes_the_gate(project: Project, tmp_path: Path) -> None:
    """A git that hangs: the gate gives up and refuses."""
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    real = shlex.quote(shutil.which("git") or "")
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *check-attr*) exec tail -f /dev/null;; esac\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    project.write({"shared/a": "new\n"})
    project.git("add", "-A")
    project.git("config", "gitcoord.gateSeconds", "1")
    env = {"PATH": f"{wrapper.parent}:{os.environ['PATH']}"}
    done = project.world.claim("--gate", "pre-commit", env=env)
    assert done.code == 1 and "could not be judged: it took too long" in done.err, done

"""Holds of a work tree: what one agent wrote there and has not committed is changed, deleted and staged by no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitcoord.guard.holds import MAX_HOLDS, checked, empty, take
from gitcoord.guard.seen import FileState
from tests.guard.protocol import Speaker, reason, understood
from tests.guard.support import Project
from tests.support import CLAIM, git, run_command


def act(project: Project, who: Speaker, path: str, text: str) -> None:
    """The agent's tool writes a file, and its hooks run before and after."""
    assert understood(who.tool, project.send(who.write(path))) == "allow"
    file = Path(who.cwd, path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    project.send(who.write(path, after=True))


def shell(project: Project, who: Speaker, command: str) -> tuple[str, str]:
    said = project.send(who.shell(command))
    verdict = understood(who.tool, said)
    return verdict, reason(who.tool, said) if verdict != "allow" else ""


@pytest.fixture
def held(project: Project) -> Project:
    """claude-cone wrote free/x and made free/new; neither is claimed."""
    act(project, project.speaker("c-one"), "free/x", "one's\n")
    act(project, project.speaker("c-one"), "free/new", "one's\n")
    return project


def test_a_write_of_another_is_denied_and_says_who_wrote_it(held: Project) -> None:
    words = held.denial(held.speaker("c-two"), "free/x")
    assert "free/x: claude-cone wrote it" in words and "has not committed it [uncommitted]" in words
    assert 'hint: claude-cone commits it first: git coord commit -m "..." -- free/x' in words
    assert "git coord worktree add" in words and "takeover" not in words
    assert held.held() == {}, "no claim, so no event"
    assert held.write(held.speaker("c-one"), "free/x") == "allow"


CHANGING = [
    "git checkout -- free/x", "git restore free/x", "git stash", "git stash -u", "git reset --hard", "git clean -fd", "rm free/x",
    "rm -rf free", "git checkout -f", "cat > free/x <<'EOF'\nmine\nEOF", "mv free/x elsewhere", "sed -i s/o/0/ free/x",
    "git switch -f main", "git merge --autostash topic", "git merge --abort", "git pull; git stash",
]  # fmt: skip
STAGING = [
    "git add -A && git commit -m mine", "git add .", "git add free/x", "cd free && git add x", "git add -u", "git commit -am mine",
    "git commit -m mine free/x", "git coord commit -m mine -- free/x", "git add 'free/*'", "git stage free", "git add :/free/x",
]  # fmt: skip


@pytest.mark.parametrize("command", [*CHANGING, *STAGING])
def test_commands_that_would_take_it(held: Project, command: str) -> None:
    verdict, words = shell(held, held.speaker("c-two"), command)
    assert verdict == "deny" and "claude-cone wrote it" in words, words
    if command in STAGING:
        assert "commit your own files alone" in words


@pytest.mark.parametrize("subagent", ["", "sub1"])
@pytest.mark.parametrize("command", [*CHANGING[:4], *STAGING[:4]])
def test_the_writer_and_its_family_may(held: Project, command: str, subagent: str) -> None:
    assert shell(held, held.speaker("c-one", subagent=subagent), command)[0] == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git add shared",
        "git status",
        "git commit -m mine",
        "make fmt",
        "git restore --staged free/x",
        "ls free",
        "git add -n .",
        "git pull",
        "git merge topic",
        "git cherry-pick topic",
    ],
)
def test_commands_that_do_not_touch_it(held: Project, command: str) -> None:
    assert shell(held, held.speaker("c-two"), command)[0] == "allow"


def test_a_plain_commit_does_not_take_what_another_staged(held: Project) -> None:
    git(held.top, "add", "free/x")
    verdict, words = shell(held, held.speaker("c-two"), "git commit -m mine")
    assert verdict == "deny" and "free/x: claude-cone wrote it" in words and "free/new" not in words


def test_it_ends_with_the_commit_and_when_the_file_equals_head_again(held: Project) -> None:
    git(held.top, "add", "free/x")
    git(held.top, "commit", "-qm", "one's", "--no-verify")
    assert held.write(held.speaker("c-two"), "free/x") == "allow"
    (held.top / "free/new").unlink()
    assert held.write(held.speaker("c-two"), "free/new") == "allow"


def test_it_ends_with_its_writer_s_session(held: Project) -> None:
    one = held.speaker("c-one")
    held.send(one.start())
    assert held.write(held.speaker("c-two"), "free/x") == "deny"
    held.send(one.stop(final=True))
    assert held.write(held.speaker("c-two"), "free/x") == "allow"


def test_a_writer_that_sends_no_heartbeat_does_not_bind(held: Project) -> None:
    held.send(held.speaker("c-one").start())
    held.world.fall_silent("claude-cone")
    assert held.write(held.speaker("c-two"), "free/x") == "allow"


def test_a_subagent_s_work_is_its_parent_s_when_it_ends(project: Project) -> None:
    one, sub = project.speaker("c-one"), project.speaker("c-one", subagent="s1")
    act(project, sub, "free/x", "sub's\n")
    assert project.write(project.speaker("c-one", subagent="s2"), "free/x") == "deny"
    project.send({**sub.stop(), "hook_event_name": "SubagentStop"})
    assert "claude-cone wrote it" in project.denial(project.speaker("c-two"), "free/x")
    assert project.write(project.speaker("c-one", subagent="s2"), "free/x") == "allow"
    assert project.write(one, "free/x") == "deny", "s2 is writing it at this moment"


def test_an_ignored_file_and_a_write_that_changed_nothing_are_no_holds(project: Project) -> None:
    (project.top / ".git/info/exclude").write_text("*.log\n")
    act(project, project.speaker("c-one"), "free/a.log", "log\n")
    act(project, project.speaker("c-one"), "free/x", "x\n")
    (project.top / "free/x").write_text("a person's\n")
    for path in ("free/a.log", "free/x"):
        assert project.write(project.speaker("c-two"), path) == "allow", path


def test_the_other_work_tree_is_another_matter(held: Project) -> None:
    tree = held.top.parent / "linked"
    git(held.top, "worktree", "add", "-q", str(tree))
    assert held.write(held.speaker("c-two", cwd=tree), "free/x") == "allow"


def test_a_claim_of_one_s_own_does_not_free_it(held: Project) -> None:
    held.claim("free/x", agent="claude-ctwo")
    assert "wrote it" in held.denial(held.speaker("c-two"), "free/x")


def test_a_handoff_passes_it_on_for_good(project: Project) -> None:
    act(project, project.speaker("c-one"), "shared/a", "one's\n")
    sections = ("--state", "s", "--changed", "c", "--remaining", "r", "--next", "n")
    offered = project.world.handoff("new", "--to", "claude-ctwo", *sections, "--json", agent="claude-cone").json
    assert project.world.handoff("accept", offered["id"], agent="claude-ctwo").code == 0
    assert project.write(project.speaker("c-two"), "shared/a") == "allow"
    project.claim("shared/b", agent="claude-cone")  # it is told now, and its loss is no longer on record
    assert project.write(project.speaker("c-two"), "shared/a") == "allow"


def test_the_stage_of_the_rule(tmp_path: Path) -> None:
    project = Project(tmp_path, config="[rollout]\n\tuncommitted = warn\n")
    act(project, project.speaker("c-one"), "free/x", "one's\n")
    assert project.write(project.speaker("c-two"), "free/x") == "allow"


def test_nothing_is_read_where_nobody_wrote(project: Project) -> None:
    assert shell(project, project.speaker("c-two"), "git add -A && git stash")[0] == "allow"
    assert not os.path.exists(project.top / ".git/gitcoord/guard/holds")


def test_the_record_is_bounded_and_sound() -> None:
    record = empty()
    for number in range(MAX_HOLDS + 5):
        take(record, "a", f"f{number}", FileState("1:1:1", ""), number)
    assert len(record["holds"]) == MAX_HOLDS and "f0" not in record["holds"]
    assert checked({"v": 1, "holds": {"f": {}}}) == empty() == checked(7)


def test_git_s_hook_refuses_a_commit_that_takes_another_s_work(held: Project) -> None:
    """A tool whose guard does not run commits everything that lies there."""
    held.world.write("free/own", "two's\n")
    git(held.top, "add", "-A")
    two = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "c-two"}

    def commit(env: dict[str, str]) -> tuple[int, str]:
        done = run_command([*CLAIM, "--gate", "pre-commit"], held.top, {**os.environ, **env}, b"")
        return done.returncode, done.stderr.decode()

    code, words = commit(two)
    assert code == 1 and "free/x: claude-cone wrote it" in words and "free/new: claude-cone wrote it" in words
    assert 'git coord commit -m "..." -- free/own' in words and "free/own:" not in words
    assert commit({**two, "CLAUDE_CODE_SESSION_ID": "c-one"})[0] == 0, "its writer commits it"
    assert commit({})[0] == 0, "nobody is named: such paths are anybody's"
    held.world.write("free/x", "one's\nand two's\n")
    git(held.top, "restore", "--staged", "free/new")
    assert commit(two)[0] == 0, "the file changed since, and may be the committer's own"
    held.world.write("free/new", "one's\n")
    held.send(held.speaker("c-one").stop(final=True))
    git(held.top, "add", "-A")
    assert commit(two)[0] == 0, "its writer has ended"


# --- the branch, and the copy of another work tree -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    ["git checkout -b topic", "git switch main", "git switch -c topic", "git rebase main", "git checkout main"],
)
def test_the_branch_of_a_work_tree_that_another_uses(project: Project, command: str) -> None:
    two = project.speaker("c-two")
    assert shell(project, two, command)[0] == "allow"
    project.send(project.speaker("c-one").start())
    verdict, words = shell(project, two, command)
    assert verdict == "deny" and "claude-cone works in this work tree too" in words, words
    assert "git coord worktree add claude-ctwo" in words and "[branch]" in words
    project.send(project.speaker("c-one").stop(final=True))
    assert shell(project, two, command)[0] == "allow"


@pytest.mark.parametrize(
    "command", ["git checkout -- free/x", "git rebase --abort", "git checkout free/x", "git branch topic"]
)
def test_commands_that_leave_the_branch(project: Project, command: str) -> None:
    project.send(project.speaker("c-one").start())
    assert shell(project, project.speaker("c-two"), command)[0] == "allow"


def test_a_write_into_the_primary_s_copy_is_denied_once(project: Project) -> None:
    tree = project.top.parent / "linked"
    git(project.top, "worktree", "add", "-q", str(tree))
    two = project.speaker("c-two", cwd=tree)
    words = project.denial(two, f"{project.top}/free/x")
    assert f"{project.top}/free/x: you work in another work tree" in words and f"write {tree}/free/x" in words
    assert project.write(two, f"{project.top}/free/x") == "allow"
    assert shell(project, two, f"echo x > {project.top}/shared/b")[0] == "deny"
    assert project.write(two, f"{project.top}/only-there") == "allow"
    assert project.write(project.speaker("c-three"), f"{tree}/free/x") == "allow"

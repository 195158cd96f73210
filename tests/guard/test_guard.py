"""The guard before writes and reads: each behaviour with a real repository and a real process for the event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.guard.protocol import ASKING, TOOLS, context, reason, understood
from tests.guard.support import ATTRIBUTES, Project
from tests.support import git

# --- writes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", TOOLS)
def test_a_free_shared_path_is_claimed_and_then_held(project: Project, tool: str) -> None:
    one, two = project.speaker("c-one", tool), project.speaker("c-two", tool)
    assert project.write(one, "shared/a") == "allow"
    assert project.held() == {"shared/a": f"{tool}-cone"}
    said = project.send(two.write("shared/a"))
    assert understood(tool, said) == "deny"
    words = reason(tool, said)
    assert f"shared/a: {tool}-cone holds it [held]" in words and "has it since now: auto: " in words.replace(
        "1s ago", "now"
    )
    assert project.write(two, "shared/b") == "allow"
    events = project.world.events()
    assert project.write(one, "shared/a") == "allow" and project.world.events() == events


def test_without_autoclaim_the_command_is_named(tmp_path: Path) -> None:
    project = Project(tmp_path, config="")
    words = project.denial(project.speaker(), "shared/a")
    assert "hint: git claim shared/a" in words and "[unclaimed]" in words
    project.claim("shared/a", agent="claude-c1")
    assert project.write(project.speaker(), "shared/a") == "allow"


def test_a_new_shared_file_in_a_new_directory_is_claimed_too(project: Project) -> None:
    assert project.write(project.speaker(), "shared/new/deep/status") == "allow"
    assert project.held() == {"shared/new/deep/status": "claude-c1"}


def test_what_another_holds_is_denied_everywhere_with_other_work(project: Project) -> None:
    project.claim("-m", "renaming", "free", agent="bob")
    project.world.coord("task", "add", "Mend the parser", agent="bob")
    words = project.denial(project.speaker(), "free/x")
    assert (
        "free/x: bob holds it [held]" in words
        and "bob has it since" in words
        and ": renaming; it ends 30m after" in words
    )
    assert "other work: t" in words and "Mend the parser: git coord task next" in words
    assert "takeover" not in words
    assert "why:" not in words  # it would say the same again


def test_a_silent_holder_does_not_bind(project: Project) -> None:
    project.claim("shared/a", agent="bob")
    project.world.fall_silent("bob")
    assert project.write(project.speaker(), "shared/a") == "allow"
    assert project.held() == {"shared/a": "claude-c1"}


def test_a_path_that_is_claimed_by_its_landing_is_free_on_a_work_branch(tmp_path: Path) -> None:
    project = Project(tmp_path, attributes="hot gitcoord-claim=landing\nshared/** gitcoord-claim\n", config="")
    who = project.speaker()
    assert "[unclaimed]" in project.denial(who, "hot"), "trunk is where it lands"
    project.claim("hot", "shared/a", agent="bob")
    assert "bob holds it" in project.denial(who, "hot")
    git(project.top, "switch", "-q", "-c", "work")
    assert project.write(who, "hot") == "allow"
    assert understood("claude", project.send(who.shell("echo x >hot"))) == "allow"
    assert "bob holds it" in project.denial(who, "shared/a"), "marked for every change"
    assert project.held() == {"hot": "bob", "shared/a": "bob"}


def test_where_gitcoord_is_not_set_up(tmp_path: Path) -> None:
    project = Project(tmp_path, init=False)
    assert project.send(project.speaker().write("shared/a")) == (b"", b"", 0)
    assert project.send(b"garbage") == (b"", b"", 0)
    cursor = project.speaker(tool="cursor")
    assert project.send(cursor.write("shared/a")).json == {"permission": "allow"}
    assert not (project.top / ".git/gitcoord").exists()


def test_a_file_is_judged_where_it_lies(project: Project, tmp_path: Path) -> None:
    """This holds for any directory of the tool, and any name of the file."""
    project.claim("shared/a", agent="bob")
    (project.top / "link").symlink_to("shared/a")
    (project.top / "dir").symlink_to(project.top / "shared")
    (tmp_path / "far").symlink_to(project.top)
    away = project.speaker(cwd=tmp_path)
    inside = project.speaker(cwd=project.top / "free")
    for path in (f"{project.top}/shared/a", "far/shared/a", "project/free/../shared/a"):
        assert "bob holds it" in project.denial(away, path), path
    for path in ("../link", "../dir/a", "../dir/../shared/a", f"{tmp_path}/far/link"):
        assert "bob holds it" in project.denial(inside, path), path
    assert project.write(away, "elsewhere") == "allow"
    assert project.write(inside, "x") == "allow"


def test_a_directory_that_the_tool_spells_in_its_own_way(project: Project) -> None:
    project.claim("shared/a", agent="bob")
    who = project.speaker()
    said = project.send({**who.write("../shared/a"), "cwd": "free"})
    assert understood("claude", said) == "deny"
    said = project.send(who.write("~/project/shared/a"), env={"HOME": str(project.top.parent)})
    assert understood("claude", said) == "deny"


def test_servers_of_files_and_shells(project: Project) -> None:
    project.claim("shared/a", agent="bob")

    def verdict(name: str, **args: object) -> str:
        event = {**project.speaker().write("x"), "tool_name": f"mcp__fs__{name}", "tool_input": args}
        return understood("claude", project.send(event))

    assert verdict("delete_file", path="shared/a") == "deny"
    assert verdict("execute_command", command="rm shared/a") == "deny"
    assert verdict("start_process", command="rm a", cwd="shared") == "deny"
    assert verdict("run_command", command="cat shared/a") == verdict("run_command", cwd="shared") == "allow"
    assert verdict("run_command", command=7) == "deny"
    assert verdict("copy_file", source="free/x", destination="shared/a") == "deny"
    assert verdict("copy_file", id="f7", folder="x") == "allow"  # of some other service
    assert verdict("create_directory", path="shared") == "allow"
    assert project.held() == {"shared/a": "bob"}


def test_another_work_tree_of_the_repository(project: Project, tmp_path: Path) -> None:
    project.claim("shared/a", agent="bob")
    git(project.top, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert "bob holds it" in project.denial(project.speaker(), f"{tmp_path}/linked/shared/a")
    linked = project.speaker(cwd=tmp_path / "linked")
    assert project.write(linked, "shared/b") == "allow"
    assert "claude-c1 holds it" in project.denial(project.speaker("c2"), "shared/b")


def test_where_one_tree_denies_nothing_is_claimed_or_noted_in_another(project: Project, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    other = Project(tmp_path / "more")
    other.claim("shared/a", agent="bob")
    one, two = project.speaker("c1"), project.speaker("c2")
    said = project.send(one.shell(f"echo x | tee free/x shared/a {other.top}/shared/a"))
    assert understood("claude", said) == "deny" and "bob holds it" in reason("claude", said)
    assert project.held() == {}
    assert project.write(two, "free/x") == "allow", "no write of the other is awaited"


def test_what_was_changed_in_one_tree_ends_the_note_in_another(project: Project, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    other = Project(tmp_path / "more")
    one, two = project.speaker("c1"), project.speaker("c2")
    assert other.write(other.speaker("c2"), "free/x") == "allow"
    said = project.send(one.shell(f"echo x | tee free/x {other.top}/free/x"))
    assert understood("claude", said) == "deny" and "claude-c2 is writing it at this moment" in reason("claude", said)
    assert project.write(two, "free/x") == "allow"


def test_ways_around(project: Project) -> None:
    who = project.speaker()
    settings = project.top / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"hooks": "git coord guard"}')
    for path in (".git/config", ".git/refs/heads/gitcoord", ".git/hooks/pre-commit", ".claude/settings.json"):
        assert "[bypass]" in project.denial(who, path), path
    assert "[own-files]" in project.denial(who, ".gitcoord/config")
    assert understood("claude", project.send(who.write(".gitattributes"))) == "ask"
    settings.write_text("{}")
    assert project.write(who, ".claude/settings.json") == "allow"


@pytest.mark.parametrize(
    "name", [".devin/hooks.json", ".devin/hooks.v1.json", ".devin/config.local.json", ".codeium/hooks.json"]
)
def test_settings_that_could_call_the_guard(project: Project, name: str) -> None:
    """Setup writes none of these, a person may."""
    (project.top / name).parent.mkdir()
    (project.top / name).write_text('{"hooks": "git coord guard"}')
    assert "[bypass]" in project.denial(project.speaker(), name)


def test_halted_and_killed(project: Project) -> None:
    who = project.speaker()
    project.write(who, "shared/a")
    project.world.person("kill", "claude-c1", "--reason", "it ran wild")
    assert "was killed" in project.denial(who, "free/x")
    project.world.person("halt", "--reason", "stop it all")
    assert "halted by ada_at_example.com" in project.denial(project.speaker("c2"), "free/x")


def test_tiers_and_stages(tmp_path: Path) -> None:
    attributes = "block/** gitcoord-guard=block\ncheck/** gitcoord-guard=checkpoint\nshared/** gitcoord-claim\n"
    project = Project(tmp_path, attributes=attributes, config="[rollout]\n\tunclaimed = warn\n")
    who = project.speaker()
    assert "nobody changes it [guard]" in project.denial(who, "block/x")
    assert understood("claude", project.send(who.write("check/x"))) == "ask"
    said = project.send(who.write("shared/a"))
    assert understood("claude", said) == "allow" and "goes through, with a warning" in context(said)


def test_what_does_not_bind_yet_is_on_record_once(tmp_path: Path) -> None:
    config = "[rollout]\n\tunclaimed = monitor\n\thouse = warn\n\tspiral = monitor\n"
    own = '[validator "house"]\n\tcommand = "echo not so; exit 1"\n\ton = read\n[validator "spiral"]\n\trepeats = 1\n'
    project = Project(tmp_path, config=config + own)
    who = project.speaker()
    rows = [
        {"rule": "unclaimed", "stage": "monitor", "path": "shared/a", "agent": "claude-c1", "commit": ""},
        {"rule": "spiral", "stage": "monitor", "path": "", "agent": "claude-c1", "commit": ""},
        {"rule": "house", "stage": "warn", "path": "", "agent": "claude-c1", "commit": ""},
    ]

    def recorded() -> list[dict[str, str]]:
        log = project.world.coord("log", "--kind", "notice", "--json", agent="bob").json["events"]
        assert {row["event"]["gate"] for row in log} <= {"guard"}
        return [row for one in reversed(log) for row in one["event"]["rows"]]

    assert project.send(who.write("shared/a")) == (b"", b"", 0) and recorded() == rows[:1]
    project.write(who, "shared/a")
    assert recorded() == rows[:2]
    project.write(who, "shared/a")
    project.send(who.write("free/x"))
    assert recorded() == rows[:2]
    assert "not so [house]" in context(project.send(who.read("free/x"))) and recorded() == rows
    project.write(project.speaker("c2"), "shared/c")
    assert len(recorded()) == 4
    # What is denied for another reason was not let through.
    project.claim("shared/b", agent="bob")
    project.denial(who, "shared/b")
    assert len(recorded()) == 4


# --- the same file twice ------------------------------------------------------------------------------------------


def test_what_another_changed_is_read_again(project: Project) -> None:
    one, two = project.speaker("c1"), project.speaker("c2", "gemini")
    file = project.top / "free/x"
    for who in (one, two):
        assert understood(who.tool, project.send(who.read("free/x"))) == "allow"
    assert project.write(two, "free/x") == "allow"
    assert "gemini-c2 is writing it at this moment" in project.denial(one, "free/x")
    file.write_text("by two\n")
    project.send(two.write("free/x", after=True))
    assert "gemini-c2 wrote it" in project.denial(one, "free/x")
    git(project.top, "commit", "-qam", "two's", "--no-verify")
    assert "gemini-c2 changed it since you last read it" in project.denial(one, "free/x")
    project.send(one.read("free/x"))
    assert project.write(one, "free/x") == "allow"


def test_it_is_told_once(project: Project) -> None:
    one, two = project.speaker("c1"), project.speaker("c2")
    project.send(one.read("free/x"))
    project.write(two, "free/x")
    (project.top / "free/x").write_text("by two\n")
    project.send(two.write("free/x", after=True))
    git(project.top, "commit", "-qam", "two's", "--no-verify")
    assert [project.write(one, "free/x") for _ in range(2)] == ["deny", "allow"]


def test_its_own_formatter_traps_nobody(project: Project) -> None:
    one = project.speaker("c1")
    project.send(project.speaker("c2").read("free/x"))
    for text in ("mine\n", "mine again\n"):
        assert project.write(one, "free/x") == "allow"
        (project.top / "free/x").write_text(text)
        project.send(one.write("free/x", after=True))
        (project.top / "free/x").write_text(text.upper())


def test_what_a_commit_of_another_brought_is_read_again(project: Project) -> None:
    one = project.speaker("c1")
    project.send(one.read("free/x"))
    project.world.commit({"free/x": "two\n"}, "work\n\nAgent: bob")
    assert "bob changed it since you last read it" in project.denial(one, "free/x")


# --- reads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", TOOLS)
def test_reads_that_are_not_for_agents(project: Project, tool: str) -> None:
    who = project.speaker(tool=tool)
    said = project.send(who.read("secret/key"))
    assert understood(tool, said) == "deny" and "not for agents [read]" in reason(tool, said)
    said = project.send(who.read("asked/key"))
    assert understood(tool, said) == ("ask" if tool in ASKING else "deny")
    assert "a person decides who reads it" in reason(tool, said)
    assert understood(tool, project.send(who.read("free/x"))) == "allow"


def test_a_person_is_told_of_a_question(project: Project, tmp_path: Path) -> None:
    told = tmp_path / "told"
    git(project.top, "config", "gitcoord.alert", f"cat >>{told}.tmp; mv {told}.tmp {told}")
    project.send(project.speaker().read("asked/key"))
    while not told.exists():  # it runs on its own
        pass
    row = json.loads(told.read_text())
    assert (row["alert"], row["agent"], row["tool"], row["paths"]) == ("question", "claude-c1", "claude", ["asked/key"])


def test_places_outside_the_repository(tmp_path: Path) -> None:
    config = f"[guard]\n\tdenyRead = ~/.ssh\n\taskRead = {tmp_path}/notes\n"
    project = Project(tmp_path, config=config)
    env = {"HOME": str(tmp_path / "home")}
    (tmp_path / "home/.ssh").mkdir(parents=True)
    (tmp_path / "door").symlink_to(tmp_path / "home/.ssh")
    who = project.speaker()
    for event in (who.read(f"{tmp_path}/home/.ssh/id"), who.read("../door/id"), who.write("../home/.ssh/config")):
        said = project.send(event, env)
        assert understood("claude", said) == "deny" and "not for agents" in reason("claude", said)
    assert understood("claude", project.send(who.read(f"{tmp_path}/notes/today"), env)) == "ask"
    assert understood("claude", project.send(who.read(f"{tmp_path}/home/.sshd"), env)) == "allow"


def test_no_read_is_judged_where_no_attribute_says_so(tmp_path: Path) -> None:
    project = Project(tmp_path, attributes=ATTRIBUTES.replace("gitcoord-read", "other-read"))
    assert understood("claude", project.send(project.speaker().read("secret/key"))) == "allow"


# --- a tool that runs the hooks of another's settings -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "arguments", "code"),
    [
        ("exec", {"command": "rm shared/a", "shell_id": "main"}, 2),
        ("exec", {"command": "cat secret/x"}, 2),
        ("exec", {"command": "ls"}, 0),
        ("exec", {}, 2),
        ("edit", {"file_path": "shared/a", "old_string": "a", "new_string": "b"}, 2),
        ("write", {"file_path": "shared/a", "content": "b"}, 2),
        ("write", {"file_path": "shared/b", "content": "b"}, 0),
        ("read", {"file_path": "secret/x"}, 2),
        ("read", {"file_path": "asked/x"}, 2),
        ("grep", {"pattern": "x", "glob_pattern": "secret/**"}, 2),
        ("todo_write", {"todos": []}, 0),
    ],
)
def test_devins_own_agent_in_claude_codes_hooks(
    project: Project, action: str, arguments: dict[str, Any], code: int
) -> None:
    """It names its actions differently, gives no directory, and takes the exit code for a denial."""
    project.claim("shared/a", agent="bob")
    (project.top / "secret").mkdir()
    event = {"hook_event_name": "PreToolUse", "session_id": "bramble-scorpion", "prompt_id": "p1", "tool_name": action}
    said = project.send({**event, "tool_input": arguments, "tool_use_id": "t1"})
    assert (said.code, said.out) == (code, b"") and bool(said.err) == (code == 2)


def test_a_command_of_devins_own_agent_that_failed(tmp_path: Path) -> None:
    project = Project(tmp_path, config='[validator "spiral"]\n\tfailures = 2\n')
    codes = []
    for number in range(3):
        call = {"session_id": "s", "tool_name": "exec", "tool_input": {"command": "make"}, "tool_use_id": f"t{number}"}
        codes.append(project.send({**call, "hook_event_name": "PreToolUse"}).code)
        result = {"success": False, "output": "", "error": "exit 2"}
        project.send({**call, "hook_event_name": "PostToolUse", "tool_response": result})
    assert codes == [0, 0, 2]

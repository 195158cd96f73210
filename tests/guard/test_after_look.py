"""After a command: files of others that it changed are told, kept and, where the policy says so, put back.

Real commands run between the two events of a tool; no parser can tell what they write.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard.protocol import TOOLS, Speaker, context, reason, understood
from tests.guard.shell_recall import HELD, SECOND_TABLE, TABLE, is_told, rows, tree
from tests.guard.support import CONFIG, Project
from tests.guard.test_holds import act
from tests.support import UNHOOKED

MAKEFILE = "fmt:\n\tsed -i s/one/ONE/ free/x\n"
# No parser tells these names.
X, A = "'x/eerf'[::-1]", "'a/derahs'[::-1]"
SCRIPT = f"{sys.executable} - <<'EOF'\nopen({X}, 'w').write('two')\nEOF"
OVER_A = f"{sys.executable} -c \"open({A}, 'w').write('two')\""
PROGRAMS = [
    "make fmt", SCRIPT, f"{sys.executable} -c \"import os; os.truncate({X}, 0)\"", f"{sys.executable} run.py", "sh ./run.sh",
    f"{sys.executable} -c \"import os; os.unlink({X})\"",
]  # fmt: skip


def run(project: Project, who: Speaker, command: str) -> str:
    """The command between its two events; what the agent is told afterwards."""
    said = project.send(who.shell(command))
    assert understood(who.tool, said) == "allow", reason(who.tool, said)
    subprocess.run(command, shell=True, cwd=who.cwd, check=False, capture_output=True)
    said = project.send(who.shell(command, after=True))
    return context(said) if who.tool != "windsurf" else said.err.decode()


def prepare(project: Project) -> Project:
    """claude-cone wrote free/x and did not commit it; the programs are committed."""
    files = {
        "Makefile": MAKEFILE,
        "run.py": f"open({X}, 'w').write('two')\n",
        "run.sh": 'mv other "$(echo x/eerf | rev)"\n',
        "other": "o\n",
    }
    project.world.commit(files)
    act(project, project.speaker("c-one"), "free/x", "one's\n")
    return project


@pytest.fixture
def held(project: Project) -> Project:
    return prepare(project)


def kept(project: Project) -> list[str]:
    return project.world.git("for-each-ref", "--format=%(refname)", "refs/gitcoord/kept").split()


@pytest.mark.parametrize("command", PROGRAMS)
def test_a_program_that_changes_another_s_uncommitted_file(held: Project, command: str) -> None:
    one, two = held.speaker("c-one"), held.speaker("c-two")
    words = run(held, two, command)
    assert "free/x: claude-cone wrote it and has not committed it [uncommitted]" in words, words
    after, before = kept(held)
    assert f"kept: {before} and {after}" in words
    assert held.world.git("show", f"{before}:free/x") == "one's"
    if (held.top / "free/x").exists():
        assert held.world.git("show", f"{after}:free/x") == (held.top / "free/x").read_text().strip()
    # The holder is told at its next event, once; it must read again, and can bring its content back.
    told = context(held.send(one.read("shared/a")))
    assert (
        "free/x changed while a command of claude-ctwo ran" in told
        and f"git restore --source={before} -- free/x" in told
    )
    assert context(held.send(one.read("shared/a"))) == ""
    assert "claude-ctwo changed it since you last read it" in held.denial(one, "free/x")
    assert understood("claude", held.send(one.shell(f"git restore --source={before} -- free/x"))) == "allow"
    held.world.git("restore", f"--source={before}", "--", "free/x")
    assert (held.top / "free/x").read_text() == "one's\n"
    log = held.world.coord("log", "--kind", "notice", "--json").json["events"]
    (row,) = log[0]["event"]["rows"]
    assert (row["rule"], row["path"], row["agent"]) == ("uncommitted", "free/x", "claude-ctwo")
    assert row["commit"] == held.world.git("rev-parse", before)


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_is_told(held: Project, tool: str) -> None:
    assert "claude-cone wrote it" in run(held, held.speaker("c-two", tool), "make fmt")


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "windsurf"])
def test_the_holder_is_told_with_its_next_action(project: Project, tool: str) -> None:
    project.world.commit({"Makefile": MAKEFILE})
    one = project.speaker("c-one", tool)
    act(project, one, "free/x", "one's\n")
    run(project, project.speaker("c-two"), "make fmt")
    words = context(project.send(one.read("shared/a"))) + context(project.send(one.read("shared/a", after=True)))
    assert words.count("free/x changed while a command of claude-ctwo ran: make fmt") == 1


def test_a_file_that_is_held_by_a_claim_and_dirty(held: Project) -> None:
    """bob works without a guard."""
    held.claim("shared/a", agent="bob")
    (held.top / "shared/a").write_text("bob's\n")
    words = run(held, held.speaker("c-two"), OVER_A)
    assert "shared/a: bob holds it [held]" in words and "free/x" not in words
    assert held.world.git("show", f"{kept(held)[1]}:shared/a") == "bob's"


def test_a_file_below_a_claim_that_equalled_head(project: Project) -> None:
    project.claim("shared", agent="bob")
    words = run(project, project.speaker("c-two"), OVER_A)
    assert "shared/a: bob holds it [held]" in words


def test_commands_that_change_nothing_of_others_are_not_told(held: Project) -> None:
    held.claim("shared/a", agent="bob")
    (held.top / "shared/a").write_text("bob's\n")
    for command in (
        "touch free/other",
        "make -n fmt",
        "git log -1",
        f'{sys.executable} -c "import os; os.utime({X})"',
    ):
        assert run(held, held.speaker("c-two"), command) == "", command
    assert run(held, held.speaker("c-one"), "make fmt") == "", "its own file"
    assert kept(held) == [] and not held.world.coord("log", "--kind", "notice", "--json").json["events"]


def test_a_write_by_the_holder_meanwhile_is_its_own(held: Project) -> None:
    two = held.speaker("c-two")
    held.send(two.shell("make test"))
    act(held, held.speaker("c-one"), "free/x", "one's next\n")
    assert context(held.send(two.shell("make test", after=True))) == ""
    held.send(two.shell("make test"))
    assert understood("claude", held.send(held.speaker("c-one").write("free/x"))) == "allow"
    (held.top / "free/x").write_text("half")
    assert context(held.send(two.shell("make test", after=True))) == "", "its write is under way"


def test_its_own_formatter_keeps_the_hold_and_its_own_commit_ends_it(held: Project) -> None:
    one = held.speaker("c-one")
    run(held, one, "make fmt")
    assert "wrote it" in held.denial(held.speaker("c-two"), "free/x")
    held.world.git("commit", "-qam", "one's", "--no-verify")
    assert run(held, one, "git log -1") == ""
    (held.top / "free/x").write_text("a person's\n")
    assert held.write(held.speaker("c-two"), "free/x") == "allow"


def test_restore_puts_it_back(tmp_path: Path) -> None:
    project = prepare(Project(tmp_path, config=f"{CONFIG}\tafter = restore\n"))
    project.claim("shared/a", agent="claude-cone")
    two = project.speaker("c-two")
    for command in PROGRAMS[:3]:
        words = run(project, two, command)
        assert "free/x: claude-cone wrote it and has not committed it; its content was put back" in words
        assert (project.top / "free/x").read_text() == "one's\n"
    assert "put back" in run(project, two, OVER_A)
    assert (project.top / "shared/a").read_text() == "a\n"
    told = context(project.send(project.speaker("c-one").read("shared/b")))
    assert told.count("its content was put back") == 4
    assert project.write(project.speaker("c-one"), "free/x") == "allow"


@pytest.mark.parametrize("dirty", [True, False])
def test_a_file_of_somebody_without_a_guard_is_not_put_back(tmp_path: Path, dirty: bool) -> None:
    """bob may have saved it in an editor while the command ran."""
    project = Project(tmp_path, config=f"{CONFIG}\tafter = restore\n")
    project.claim("shared/a", agent="bob")
    if dirty:
        (project.top / "shared/a").write_text("bob's\n")
    words = run(project, project.speaker("c-two"), OVER_A)
    assert "shared/a: bob holds it" in words and "put back" not in words
    assert (project.top / "shared/a").read_text() == "two"


def test_a_command_of_the_holder_that_runs_too_is_named_and_nothing_put_back(tmp_path: Path) -> None:
    project = prepare(Project(tmp_path, config=f"{CONFIG}\tafter = restore\n"))
    project.send(project.speaker("c-one").shell("make watch"))
    words = run(project, project.speaker("c-two"), "make fmt")
    assert "a command of claude-cone ran at the same time" in words and "put back" not in words
    assert (project.top / "free/x").read_text() == "ONE's\n"


def test_what_is_too_large_to_keep_is_told(held: Project) -> None:
    (held.top / "free/x").write_text("x" * (2 << 20))
    words = run(held, held.speaker("c-two"), SCRIPT)
    assert "free/x: claude-cone wrote it and has not committed it; its content before was not kept" in words


def test_nothing_is_done_where_nobody_holds_or_wrote(project: Project) -> None:
    assert run(project, project.speaker("c-two"), "true") == ""
    assert not (project.top / ".git/gitcoord/guard/holds").exists()


def test_a_look_that_fails_stops_nobody_and_is_told(held: Project) -> None:
    index = held.top / ".git/index"
    index.write_bytes(b"broken")
    held.claim("shared/a", agent="bob")
    said = held.send(held.speaker("c-two").shell("true"))
    assert understood("claude", said) == "allow" and "files of others cannot be compared" in context(said)


def test_what_was_looked_up_once_is_looked_up_again_when_it_changed(project: Project) -> None:
    """bob's file is clean at the first command and dirty at the next ones; his commit ends that."""
    project.claim("shared/a", agent="bob")
    two, over = project.speaker("c-two"), OVER_A
    assert run(project, two, "true") == "" and run(project, two, "true") == ""
    (project.top / "shared/a").write_text("bob's\n")
    assert run(project, two, "true") == ""
    assert "shared/a: bob holds it [held]" in run(project, two, over)
    assert project.world.git("show", f"{kept(project)[1]}:shared/a") == "bob's"
    assert run(project, two, "true") == ""
    project.world.git("commit", "-qam", "bob's", "--no-verify")
    words = run(project, two, over.replace("two", "three"))
    assert "shared/a: bob holds it [held]" in words and "each holder is told" not in words, "HEAD has what was there"


def test_a_teardown_leaves_what_was_kept(held: Project) -> None:
    run(held, held.speaker("c-two"), "make fmt")
    assert held.world.person("teardown", "--yes").code == 0
    (ref,) = [ref for ref in held.world.git("for-each-ref", "--format=%(refname)").split() if ref.endswith("/before")]
    assert ref.startswith("refs/gitcoord-archive/") and held.world.git("show", f"{ref}:free/x") == "one's"


def test_every_overwrite_that_the_parser_missed_is_told(tmp_path: Path) -> None:
    """The rows of both tables of commands that are not denied before they run, run for real: none changes the held file unseen."""
    project = Project(tmp_path)
    tree(project.top)
    start = project.world.git("rev-parse", "HEAD")
    project.claim(HELD, agent="bob")
    two = project.speaker("c-two")
    missed = [
        row
        for file in (TABLE, SECOND_TABLE)
        for row in rows(file)
        if row.writes and not is_told(project.top, row.command)
    ]
    told = 0
    for row in missed:
        project.world.git(*UNHOOKED, "checkout", "-q", "-f", "-B", "main", start)
        if understood("claude", project.send(two.shell(row.command))) == "deny":
            continue
        subprocess.run(
            row.command, shell=True, executable="/bin/bash", cwd=project.top, check=False, capture_output=True
        )
        words = context(project.send(two.shell(row.command, after=True)))
        if project.world.git(
            "diff", "--name-only", "HEAD", "--", HELD
        ):  # else it is as some commit has it, and nothing of bob's is gone
            assert f"{HELD}: bob holds it" in words, (row, words)
            told += 1
    assert told >= 3  # tools that are not installed here change nothing

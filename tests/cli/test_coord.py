"""`git coord`, run as a command: init, sessions, kill and halt, sweep, log, fsck, resources."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from gitcoord import __version__
from tests.cli.support import PERSON, Done, World
from tests.races.support import wait_until
from tests.support import COORD, git

GIT = shutil.which("git")
HOW = """how work goes here:
  git switch -c <branch> main             work lands on 'main' from a branch of yours
  git claim <path> -m "why"               before you change what is shared: gitcoord's own files; the rest is free
  git coord commit -m "..." -- <file>...  exactly your files, whatever others have staged
  git coord land                          your branch onto 'main'; it releases your claims
  git coord land --continue               where it conflicts with what landed before: correct the files, git add, then this
  git claim release <path>                what has landed otherwise, or what you did not change
  git handoff new, git coord stop         when you stop; a handoff only for unfinished work
"""
NO_HOOKS = (
    "gates: pre-commit, pre-merge-commit, reference-transaction, pre-push not in place here, so that changes are not judged: git coord"
    " setup\n"
)


# --- init ----------------------------------------------------------------------------------------------------------


def test_init(plain: World) -> None:
    status = plain.git("status", "--porcelain")
    done = plain.coord("init")
    assert done == Done(
        0, "gitcoord is set up; work lands on 'main'\n",
        "hint: claim a path: git claim <path>\nhint: launch an agent: git coord run --as <name> -- <command>\n",
    )  # fmt: skip
    assert plain.events() == ["init by alice"]
    assert plain.refs().keys() == {"refs/heads/main", "refs/heads/gitcoord", "refs/gitcoord/tip"}
    assert plain.git("status", "--porcelain") == status
    assert plain.git("config", "gitcoord.root") == plain.head
    assert plain.git("ls-tree", "--name-only", "gitcoord").split() == ["README.md", "format"]


def test_init_again_changes_nothing(plain: World) -> None:
    plain.coord("init", "--policy")
    plain.git("add", "-A")
    plain.git("commit", "-q", "-m", "policy")
    before, settings = plain.refs(), (plain.top / ".git/config").read_text()
    for words in (
        ("init",),
        ("init", "--policy"),
        ("init", "--sync", "other"),
        ("init", "--fold-case"),
        ("init", "--adopt"),
    ):
        done = plain.coord(*words, agent="bob")
        assert (done.code, done.out) == (0, "gitcoord is already set up here\n"), words
    assert plain.refs() == before
    assert (plain.top / ".git/config").read_text() == settings
    assert plain.git("status", "--porcelain") == ""


def test_eight_at_once(plain: World) -> None:
    argv = [*COORD, "init"]
    environ = plain.environ("alice", {})
    begun = [
        subprocess.Popen(argv, cwd=plain.top, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    answers = [(process.communicate(timeout=60), process.returncode) for process in begun]
    assert [code for _, code in answers] == [0] * 8, answers
    assert sum("is set up;" in out for (out, _), _ in answers) == 1
    assert plain.git("config", "gitcoord.root") == plain.head and plain.events() == ["init by alice"]


def test_init_waits_for_another_writer_of_the_settings(plain: World, tmp_path: Path) -> None:
    """Somebody else holds the lock for a while: until git has tried twice."""
    tools, tries = tmp_path / "bin", tmp_path / "tries"
    tools.mkdir()
    (tools / "git").write_text(f'#!/bin/sh\ncase "$*" in "config --local "*) echo >>{tries} ;; esac\nexec {GIT} "$@"\n')
    (tools / "git").chmod(0o755)
    lock = plain.top / ".git/config.lock"
    lock.touch()
    environ = plain.environ("alice", {"PATH": f"{tools}:{os.environ['PATH']}"})
    with subprocess.Popen([*COORD, "init"], cwd=plain.top, env=environ, stderr=subprocess.PIPE, text=True) as process:
        wait_until(
            "git has tried twice",
            lambda: process.poll() is not None or (tries.exists() and tries.read_text().count("\n") > 1),
        )
        lock.unlink()
        assert process.wait(60) == 0, process.communicate()
    assert plain.git("config", "gitcoord.root") == plain.head


def test_a_branch_of_ones_own_that_is_called_like_the_ledger(plain: World) -> None:
    """The branch is no ledger. The hint, followed to the letter, is all that it takes."""
    plain.git("branch", "gitcoord")
    plain.git("branch", "gitcoord-branch")
    before = plain.refs()
    for words in (["init"], ["init", "--adopt"], ["setup"], ["start"]):
        done = plain.coord(*words)
        assert done.code == 2 and "somebody's own" in done.err, done
    assert plain.claim("src/a.py").code == 2 and plain.claim("list").code == 0
    for words in (["fsck"], ["fsck", "--repair"]):
        assert plain.coord(*words).code == 0 and "somebody's own" in plain.coord(*words).err
    assert plain.refs() == before
    for hint in [line.partition(": git ")[2] for line in plain.coord("init").err.splitlines() if "hint:" in line]:
        if hint.startswith("coord"):
            assert plain.coord(*hint.split()[1:]).code == 0
        else:
            plain.git(*hint.split())
    assert plain.take("src/a.py") and plain.refs()["refs/heads/gitcoord-branch-2"] == before["refs/heads/gitcoord"]


def test_a_branch_at_the_remote_that_is_called_like_the_ledger(plain: World, tmp_path: Path) -> None:
    bare = tmp_path / "origin.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    plain.git("remote", "add", "origin", str(bare))
    plain.git("push", "-q", "origin", "main", "main:refs/heads/gitcoord")
    before = plain.refs()
    for words in (["init"], ["init", "--remote", "origin"]):
        done = plain.coord(*words)
        assert done.code == 1 and "somebody's own" in done.err, done
        assert plain.refs() == before
    (hint,) = [line for line in done.err.splitlines() if "rename it there" in line]
    plain.git(*hint.partition(": git ")[2].split())
    done = plain.coord("init", "--remote", "origin")
    assert done.code == 0, done
    assert plain.take("src/a.py") and b"gitcoord-branch" in git(bare, "branch", "--list")


def test_init_needs_no_name(plain: World) -> None:
    assert plain.coord("init", agent="").code == 0
    assert plain.events() == ["init by init"]


def test_init_records_the_sync_branch_and_the_case(plain: World) -> None:
    assert plain.coord("init", "--sync", "trunk", "--fold-case").out == "gitcoord is set up; work lands on 'trunk'\n"
    record = json.loads(plain.git("show", "gitcoord:format"))
    assert (record["sync"], record["case"], record["major"]) == ("trunk", "fold", 1)


def test_the_starter_policy_is_valid_and_binds_nothing_but_itself(plain: World) -> None:
    done = plain.coord("init", "--policy")
    assert done.out.splitlines()[1:] == ["wrote .gitcoord/config", "wrote .gitcoord/rules.md", "wrote .gitattributes"]
    assert "hint: look at them, then: git add -- .gitcoord/config" in done.err
    first, guard, *roles = plain.git("config", "-f", ".gitcoord/config", "--list").splitlines()
    assert (first, guard) == (f"gitcoord.root={plain.head}", "guard.autoclaim=true")
    names = ["orchestrator", "code", "test", "debug", "verify", "explore"]
    assert list(dict.fromkeys(row.split(".")[1] for row in roles)) == names, "nothing but roles, which bind nobody yet"
    rules = (plain.top / ".gitcoord/rules.md").read_text().splitlines()
    assert [line[:2] for line in rules if line[:1].isdecimal()] == [f"{number}." for number in range(1, 8)]
    assert "Claim before you change" in rules[2] and [line[:7] for line in rules[-3:]] == [
        "<!-- 8.",
        "<!-- 9.",
        "<!-- 10",
    ]
    # What is commented out is valid too, once the comment sign is gone.
    text = (plain.top / ".gitcoord/config").read_text()
    enabled = "".join(
        line[1:] if line.startswith(";") else line.replace("\t;", "\t") for line in text.splitlines(keepends=True)
    )
    (plain.top / ".gitcoord/config").write_text(enabled)
    assert plain.git("config", "-f", ".gitcoord/config", "gitcoord.approver") == "you_at_example.com"
    plain.git("add", "-A")
    plain.git("commit", "-q", "-m", "policy")
    assert plain.git("check-attr", "gitcoord-claim", ".gitcoord/config").endswith(": set")
    assert plain.claim("check", ".gitcoord/config").code == 1
    assert plain.claim("@gpu", "--units", "2").code == 0
    assert plain.claim("@deploy/production").code == 1


def test_the_starter_policy_never_changes_what_is_there(plain: World) -> None:
    plain.write(".gitcoord/config", "[gitcoord]\n\tapprover = somebody\n")
    plain.write(".gitattributes", "*.png binary")
    done = plain.coord("init", "--policy")
    assert done.out.splitlines()[1:] == ["wrote .gitcoord/rules.md", "wrote .gitattributes"]
    assert (plain.top / ".gitcoord/config").read_text() == "[gitcoord]\n\tapprover = somebody\n"
    attributes = (plain.top / ".gitattributes").read_text()
    assert attributes.startswith("*.png binary\n") and attributes.endswith("\n")
    again = plain.coord("init", "--policy")
    assert again.out == "gitcoord is already set up here\n"
    assert (plain.top / ".gitattributes").read_text() == attributes


def test_the_starter_policy_does_not_write_through_links(plain: World) -> None:
    target = plain.top / ".git/target"
    (plain.top / ".gitcoord").mkdir()
    os.symlink(target, plain.top / ".gitcoord/config")
    plain.coord("init", "--policy")
    assert not target.exists()


# --- sessions ------------------------------------------------------------------------------------------------------


def test_start_and_stop(world: World) -> None:
    told = (
        f"{HOW}rules: none\ncopy: up to date with 'main'\nyou hold: nothing\nyou wait for: nothing\nyou were doing: nothing\n"
        f"handoffs for you: none\nnext tasks: none\nothers here: nobody\n{NO_HOOKS}"
    )
    assert world.coord("start") == Done(0, "session 1 of alice opened\n" + told, "")
    assert world.coord("start") == Done(0, "session 1 of alice goes on\n" + told, "")
    world.take("src", "-m", "fix")
    shown = world.coord("start").out.splitlines()
    assert shown[0] == "session 1 of alice goes on" and "you hold: 1" in shown
    assert shown[shown.index("you hold: 1") + 1].split()[:2] == ["src", "alice"]
    assert world.coord("stop") == Done(0, "session of alice ended\nreleased src (no change)\n", "")
    assert world.claims() == []
    assert world.coord("stop") == Done(0, "alice has no open session\n", "")
    assert world.coord("start").out.startswith("session 2 of alice opened\n")


def test_stop_does_not_strand_uncommitted_work(world: World) -> None:
    world.take("src")
    world.take("docs")
    world.write("src/a.py", "not committed\n")
    before = world.refs()
    done = world.coord("stop")
    assert done.code == 1 and "uncommitted work in src would be left behind" in done.err
    assert world.refs() == before
    assert world.coord("stop", "--keep").out == "session of alice ended\nreleased docs (no change)\nkept src\n"
    (row,) = world.claim("list", "--json").json["claims"]
    assert (row["agent"], row["path"]) == ("alice", "src")
    assert "src" in world.coord("start").out, "the next session goes on with it"


def test_start_tells_what_was_lost(world: World) -> None:
    world.take("src")
    world.take("@gpu")
    world.fall_silent("alice")
    world.take("src", "@gpu", agent="bob")
    out = world.coord("start").out
    assert "you lost src (token 3) to bob: it expired without a heartbeat\n" in out
    assert "you lost @gpu (token 4) to bob: it expired without a heartbeat\n" in out


# --- status and agents ---------------------------------------------------------------------------------------------


def test_status(world: World) -> None:
    gates = NO_HOOKS.replace(": git coord setup\n", " [hooks of this work tree]\n      git coord setup\n")
    needs = f"needs you: 1\n  ! {gates}"
    assert world.coord("status") == Done(0, f"{needs}claims: none\nagents: none\nledger: 1 event\n", "")
    world.take("src", "-m", "fix")
    world.coord("start", agent="bob")
    world.person("halt", "-m", "stop it")
    lines = world.coord("status", agent="").out.splitlines()
    assert lines[0] == "needs you: 2" and lines[1].startswith(f"  ! HALTED by {PERSON}: stop it; ")
    assert lines[2] == "      git coord unhalt"
    assert lines[5] == "claims: 1" and lines[6].split()[:2] == ["src", "alice"]
    assert lines[7] == "agents: 2"
    assert [line.split()[:2] for line in lines[8:10]] == [["alice", "alive"], ["bob", "idle"]]
    assert lines[8].endswith("  fix")
    assert lines[10] == "ledger: 5 events"


def test_status_of_a_ledger_that_may_not_be_used(world: World) -> None:
    world.take("src")
    world.git("update-ref", "refs/heads/gitcoord", "gitcoord~1")
    done = world.coord("status")
    assert done.code == 0
    assert done.err.startswith("warning: the ledger was rewound or replaced")


def test_agents(world: World) -> None:
    assert world.coord("agents") == Done(0, "", "")
    world.take("src")
    world.coord("start", agent="bob")
    world.coord("stop", agent="bob")
    world.take("docs", agent="carol")
    world.fall_silent("carol")
    world.person("kill", "alice")
    rows = [line.split("  ") for line in world.coord("agents", agent="").out.splitlines()]
    rows = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [row[:3] for row in rows] == [
        ["alice", "session 1", "killed"], ["bob", "session 1", "ended"], ["carol", "session 1", "no heartbeat"],
    ]  # fmt: skip


# --- kill, revive, halt --------------------------------------------------------------------------------------------


def test_kill_and_revive(world: World) -> None:
    world.take("src")
    done = world.person("kill", "alice", "-m", "runs wild")
    assert done == Done(0, "killed alice\nfreed src\nhint: to allow the name again: git coord revive alice\n", "")
    assert world.claims() == []
    assert '"killed"' in world.git("cat-file", "blob", "refs/gitcoord/sessions/alice")
    assert world.person("kill", "alice").out.startswith("alice was killed before\n")
    assert world.claim("src").code == world.coord("start").code == world.coord("stop").code == 1
    own = world.coord("revive", "alice")
    assert own.code == 1 and "'alice'" in own.err
    other = world.coord("revive", "alice", agent="bob")
    assert other == Done(1, "", "error: only a person at a terminal may revive the killed\nhint: ask one of them\n")
    assert world.person("revive", "alice") == Done(0, "'alice' may start again\n", "")
    assert world.claims() == [], "it clears the flag only"
    assert world.coord("revive", "alice", agent="bob").out == "'alice' was not killed\n"
    assert world.coord("start").out.startswith("session 2 of alice opened\n")


def test_kill_of_nobody(world: World) -> None:
    for verb in ("kill", "revive"):
        done = world.coord(verb, "nobody")
        assert done == Done(1, "", "error: no agent 'nobody' is known here\nhint: who is: git coord agents\n")
        assert world.coord(verb, "No Name").code == 2
        assert world.coord(verb).code == 2


def test_halt(world: World) -> None:
    """Only unhalt, kill, heartbeats and releases are accepted, and no claim expires."""
    world.take("src")
    world.take("docs", agent="bob")
    world.take("etc", agent="carol")
    assert world.person("halt", "-m", "incident") == Done(0, "halted\nhint: go on with: git coord unhalt\n", "")
    assert world.person("halt").out.startswith("already halted\n")
    listed = world.claim("list")
    assert listed.err == f"HALTED by {PERSON}: incident\n" and "src" in listed.out, listed
    refusal = (
        f"error: everything was halted by {PERSON}: incident\n"
        "hint: releases still work; a person may go on with: git coord unhalt\n"
    )
    for words in (("x",), ("src",), ("renew", "--ttl", "1h"), ("disown", "src", "--reason", "x")):
        assert world.claim(*words) == Done(1, "", refusal), words
    for command in (("start",), ("sweep",), ("revive", "bob")):
        assert world.coord(*command, agent="erin") == Done(1, "", refusal), command
    world.fall_silent("bob")
    assert world.claim("docs").code == 1
    assert world.claim("release", "src").code == 0
    assert world.coord("stop").code == 0
    assert world.person("kill", "carol").code == 0
    assert world.claims() == ["path/docs/@bob"]
    assert world.coord("unhalt", agent="bob").code == 1
    assert world.person("unhalt") == Done(0, "going on\n", "")
    assert world.coord("unhalt", agent="bob").out == "nothing was halted\n"
    assert world.claim("x").code == 0


def test_a_heartbeat_goes_on_while_halted(world: World) -> None:
    world.take("src")
    world.person("halt")
    world.fall_silent("alice")
    silent = world.refs()["refs/gitcoord/sessions/alice"]
    world.claim("list")
    assert world.refs()["refs/gitcoord/sessions/alice"] != silent


def test_sweep(world: World) -> None:
    world.take("src")
    world.take("@gpu", "--ttl", "1h")
    world.take("docs", agent="bob")
    assert world.coord("sweep", agent="carol") == Done(0, "nothing to expire\n", "")
    world.fall_silent("alice")
    assert world.coord("sweep", agent="carol") == Done(0, "expired src of alice\nexpired @gpu of alice\n", "")
    assert world.claims() == ["path/docs/@bob"]


# --- log -----------------------------------------------------------------------------------------------------------


def test_log(world: World) -> None:
    world.take("src/a.py", "-m", "fix")
    world.take("docs", agent="bob")
    world.claim("docs", "-m", "please")
    world.claim("docs", "-m", "please")
    world.free()
    lines = [line.split("  ", 2) for line in world.coord("log", agent="").out.splitlines()]
    assert [line[0] for line in lines] == ["6", "5", "4", "3", "2", "1"]
    assert [line[-1].strip() for line in lines] == [
        "release src/a.py by alice  [refused before: docs held by bob x2]", "claim docs by bob", "start session 1 of bob",
        "claim src/a.py by alice: fix", "start session 1 of alice", "init by init",
    ]  # fmt: skip


def test_refusals_are_counted_by_their_real_name(world: World) -> None:
    world.take("a\nb\tc")
    world.claim("a\nb\tc", agent="bob")
    world.take("other", agent="bob")
    rows = world.coord("log", "--json", "--agent", "bob").json["events"]
    assert [row["event"]["refused"] for row in rows if row["event"]["refused"]] == [
        [{"path": "a\nb\tc", "holder": "alice", "count": 1}]
    ]


def test_only_people_may_join(world: World) -> None:
    assert world.claim("src", env={"GITCOORD_INSTANCE": "one"}).code == 0
    assert world.coord("start", "--join", env={"GITCOORD_INSTANCE": "two"}).code == 1


def _seqs(world: World, *words: str) -> list[int]:
    return [row["seq"] for row in world.coord("log", "--json", *words).json["events"]]


def test_log_filters(world: World) -> None:
    world.take("src/a.py")
    world.take("docs", "srcx", agent="bob")
    world.free()
    assert _seqs(world) == [6, 5, 4, 3, 2, 1]
    assert _seqs(world, "--path", "src") == [6, 3]
    assert _seqs(world, "--path", "src/a.py/below") == [6, 3]
    assert _seqs(world, "--agent", "bob") == [5, 4]
    assert _seqs(world, "--kind", "claim") == [5, 3]
    assert _seqs(world, "--kind", "claim", "--agent", "alice", "--path", "src/a.py") == [3]
    assert _seqs(world, "-n", "2") == [6, 5]
    assert _seqs(world, "-n", "0", "--since", "4") == [6, 5, 4]
    bad = world.coord("log", "--kind", "nonsense")
    assert bad.code == 2 and "hint: init, adopt, " in bad.err
    assert world.coord("log", "-n", "many").code == 2
    assert world.coord("log", "--path", "../x").code == 2


def test_log_tells_a_resource_from_a_path(world: World) -> None:
    world.take("gpu")
    world.take("@gpu")
    assert _seqs(world, "--path", "gpu") == [3]
    assert _seqs(world, "--path", "@gpu") == [4]


def test_log_finds_whom_it_was_done_to(world: World) -> None:
    world.take("src")
    world.person("kill", "alice")
    assert _seqs(world, "--agent", "alice") == [4, 3, 2]


# --- fsck ----------------------------------------------------------------------------------------------------------


def test_fsck(world: World) -> None:
    world.take("src")
    assert world.coord("fsck", agent="") == Done(0, "clean: 3 events\n", "")
    world.git("update-ref", "-d", "refs/claims/path/src/@alice")
    world.git("update-ref", "refs/claims/path/docs/@bob", "gitcoord")
    before = world.refs()
    done = world.coord("fsck", agent="")
    assert done == Done(
        1, "difference: refs/claims/path/src/@alice is missing\ndifference: refs/claims/path/docs/@bob stands for no claim\n",
        "hint: repair it: git coord fsck --repair\n",
    )  # fmt: skip
    assert world.refs() == before, "looking changes nothing"
    assert world.coord("fsck", "--repair", agent="") == Done(0, "repaired: set 2 ref(s) again\nclean: 3 events\n", "")
    assert world.claims() == ["path/src/@alice"]


# --- the rest ------------------------------------------------------------------------------------------------------


def test_resources(world: World) -> None:
    assert world.coord("resources") == Done(
        0, "", 'no resources are declared\nhint: declare one in .gitcoord/config: [resource "gpu"] capacity = 2\n'
    )
    world.commit(
        {
            ".gitcoord/config": '[resource "gpu"]\n\tcapacity = 3\n[resource "db"]\n\twrite = carol, dave\n\tread = erin\n'
        }
    )
    world.take("@gpu", "--units", "2")
    world.take("@other", agent="bob")
    rows = [line.split("  ") for line in world.coord("resources").out.splitlines()]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["@db", "0 of 1", "write: carol, dave", "read: erin"],
        ["@gpu", "2 of 3", "write: anybody", "read: anybody", "alice x2"],
        ["@other", "1 of 1", "write: anybody", "read: anybody", "bob x1"],
    ]


def test_version(world: World) -> None:
    assert world.coord("version") == Done(0, f"gitcoord {__version__}\n", "")


def test_wrong_words(world: World) -> None:
    for words in (
        ("nonsense",),
        ("--nonsense",),
        ("status", "--nonsense"),
        ("status", "extra"),
        ("kill",),
        ("kill", "a", "b"),
    ):
        done = world.coord(*words)
        at = f"{words[0]} " if words[0] in ("status", "kill") else ""
        assert (done.code, done.out) == (2, ""), words
        assert done.err.startswith("error: ") and done.err.endswith(f"\nhint: git coord {at}-h\n"), words
    assert "No such command 'nonsense'" in world.coord("nonsense").err


def test_log_of_a_path_and_of_nothing(world: World) -> None:
    world.take("src/a.py")
    world.take("docs")
    rows = [world.coord("log", "--json", *words).json["events"] for words in (["src/a.py"], ["--path", "src/a.py"])]
    assert rows[0] == rows[1] and len(rows[0]) == 1
    assert world.coord("log", "--agent", "nobody") == Done(0, "", "no such event\n")
    assert world.coord("log", "src/a.py", "--path", "docs").code == 2


def test_help(world: World) -> None:
    for words in ((), ("-h",), ("--help",), ("log", "-h")):
        done = world.coord(*words)
        assert (done.code, done.err) == (0, "") and "Usage: git coord" in done.out, words


def test_from_below_and_in_a_bare_repository(world: World, tmp_path: Path) -> None:
    world.take("src")
    assert "claims: 1" in world.coord("status", cwd="src").out
    bare = str(tmp_path / "bare.git")
    git(world.top, "init", "-q", "--bare", bare)
    assert world.coord("init", cwd=bare).code == 0
    assert world.coord("status", cwd=bare).out == "nothing needs you\nclaims: none\nagents: none\nledger: 1 event\n"

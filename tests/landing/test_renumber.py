"""Files that a branch adds to a sequence get their numbers when they land."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from gitcoord.effects.sequences import Sequence, added_to, differ_in_number
from tests.cli.support import World
from tests.landing.support import Trunk, sign
from tests.support import COORD, git

POLICY = """[sequence "migrations"]
\tpattern = db/[0-9]*_*.sql
\twidth = 4
[land]
\trenumber = migrations
"""
LAST = {"db/0006_first.sql": "create\n"}


def _trunk(world: World, policy: str = "", marks: str = "") -> Trunk:
    trunk = Trunk(world, policy=POLICY + policy, marks=marks)
    world.commit(LAST, "first")
    return trunk


def _files(trunk: Trunk) -> list[str]:
    return trunk.world.git("ls-tree", "-r", "--name-only", "main", "db").split()


@pytest.mark.parametrize("lanes", ["", "\tcheck = true\n\tlanes = 3\n"])
@pytest.mark.parametrize("how", ["--merge", "--rebase", "--squash"])
def test_two_branches_that_add_the_same_number(world: World, how: str, lanes: str) -> None:
    trunk = _trunk(world, lanes, "db/** gitcoord-claim\n")
    for agent in ("alice", "bob"):
        trunk.branch(
            agent,
            {f"db/0007_{agent}.sql": f"{agent}\n", "other": "x\n"}
            if agent == "alice"
            else {f"db/0007_{agent}.sql": "b\n"},
        )
    tip = world.git("rev-parse", "bob")
    first = trunk.land("alice", how, "--json")
    assert first.code == 0 and "renumbered" not in first.json, first
    planned = trunk.land("bob", how, "--dry-run")
    assert "db/0007_bob.sql would be db/0008_bob.sql there" in planned.out, planned
    second = trunk.land("bob", how)
    assert (
        second.code == 0 and "db/0007_bob.sql is db/0008_bob.sql on main; your branch keeps its name" in second.out
    ), second
    assert "@number" not in second.out
    assert _files(trunk) == ["db/0006_first.sql", "db/0007_alice.sql", "db/0008_bob.sql"]
    assert trunk.show("db/0008_bob.sql") == "b"
    assert world.git("rev-parse", "bob") == tip, "the branch is as it was"
    if how == "--merge":
        assert world.git("merge-base", "--is-ancestor", "bob", "main") == ""
    assert "Agent: bob" in world.git("log", "-1", "--format=%B", "main")
    trunk.nothing_left()


def test_a_fast_forward_becomes_a_merge_and_modes_stay(world: World) -> None:
    trunk = _trunk(world)
    tree = trunk.branch("alice", {"db/0009_a.sql": "a\n", "db/0009_a.down.sql": "down\n", "db/0012_b.sql": "b\n"})
    (tree / "db/0012_b.sql").chmod(0o755)
    trunk.commit("alice", {})
    done = trunk.land("alice", "--json")
    assert done.code == 0, done
    assert {row["from"]: row["to"] for row in done.json["renumbered"]} == {
        "db/0009_a.down.sql": "db/0007_a.down.sql", "db/0009_a.sql": "db/0007_a.sql", "db/0012_b.sql": "db/0008_b.sql",
    }  # fmt: skip
    assert world.git("ls-tree", "main", "db/0008_b.sql").startswith("100755")
    assert world.git("rev-parse", "main^2") == world.git("rev-parse", "alice")
    assert trunk.land("alice").out.startswith("nothing to land")


@pytest.mark.parametrize("how", ["--squash", "--rebase"])
def test_a_file_that_landed_with_another_number_does_not_land_as_one_more(world: World, how: str) -> None:
    trunk = _trunk(world)
    tree = trunk.branch("alice", {"db/0006_y.sql": "first\n"})
    world.commit({"other": "x\n"})
    assert "db/0006_y.sql is db/0007_y.sql on main" in trunk.land("alice", how).out
    before = trunk.tip
    assert trunk.land("alice", how, "--dry-run", "--json").json["already"]
    for way in (how, "--merge"):
        assert trunk.land("alice", way, "--json").json["already"] and trunk.tip == before, "unchanged"
    trunk.commit("alice", {"db/0006_y.sql": "second\n"})
    done = trunk.land("alice", how, "--json")
    assert (done.code, done.json["error"]) == (1, "landed-before"), done
    assert done.json["message"].startswith("main has db/0006_y.sql as db/0007_y.sql already"), done
    assert trunk.land("alice", how, "--dry-run", "--json").json["error"] == "landed-before"
    assert trunk.tip == before
    for command in done.json["hints"][0].partition(": ")[2].split(" && "):
        git(tree, *command.split()[1:])
    trunk.commit("alice", {"db/0007_y.sql": "second\n", "db/0001_y.sql": "another of that name\n"})
    assert trunk.land("alice").code == 0
    assert _files(trunk) == ["db/0006_first.sql", "db/0007_y.sql", "db/0008_y.sql"]
    assert (trunk.show("db/0007_y.sql"), trunk.show("db/0008_y.sql")) == ("second", "another of that name")
    trunk.nothing_left()


def test_a_text_that_names_the_old_one_refuses_the_landing(world: World) -> None:
    trunk = _trunk(world)
    trunk.branch("alice", {"db/0009_a.sql": "a\n", "src/list": "first\nrun 0009_a.sql\n"})
    before = trunk.tip
    done = trunk.land("alice", "--json")
    assert done.code == 1 and done.json["error"] == "named", done
    assert done.json["lines"] == ["src/list:2:run 0009_a.sql"]
    assert trunk.tip == before
    assert "src/list:2:run 0009_a.sql" in trunk.land("alice").err
    trunk.nothing_left()


def test_a_command_of_the_project_corrects_it(world: World) -> None:
    corrects = 'sed -i "s,$(basename $OLD),$(basename $NEW),g" src/list other; echo more >>text'
    trunk = _trunk(world, f'\trenumberCommand = "{corrects.replace(chr(34), chr(92) + chr(34))}"\n')
    trunk.branch("alice", {"db/0009_a.sql": "a\n", "src/list": "run 0009_a.sql\n", "other": "o\n"})
    text = trunk.show("text")
    done = trunk.land("alice")
    assert done.code == 0, done
    assert trunk.show("src/list") == "run 0007_a.sql"
    assert trunk.show("text") == text, "only texts that named it are taken"
    trunk.nothing_left()


@pytest.mark.parametrize(
    ("command", "words"), [("true", "names files"), ("echo broken; exit 3", "ended with 3: broken")]
)
def test_a_command_that_corrects_nothing_or_fails(world: World, command: str, words: str) -> None:
    trunk = _trunk(world, f'\trenumberCommand = "{command}"\n')
    trunk.branch("alice", {"db/0009_a.sql": "a\n", "src/list": "run 0009_a.sql\n"})
    done = trunk.land("alice")
    assert done.code == 1 and words in done.err, done
    trunk.nothing_left()


def test_an_approval_follows_by_content(world: World) -> None:
    trunk = _trunk(world, marks="db/** gitcoord-guard=checkpoint\n")
    trunk.branch("alice", {"db/0009_a.sql": "a\n"})
    refused = trunk.land("alice", "--json")
    assert refused.code == 1, refused
    rows = {row["path"]: row["id"] for row in world.coord("approvals", "--json").json["approvals"]}
    assert "db/0009_a.sql" in rows, rows
    approved = world.person("approve", rows["db/0009_a.sql"])
    assert approved.code == 0, approved
    done = trunk.land("alice")
    assert done.code == 0, done
    assert "db/0007_a.sql" in _files(trunk)


def test_never_both_ways(world: World) -> None:
    _trunk(world, "\trenumber = ports\n")
    done = world.coord("number", "migrations", "--json")
    assert done.code == 1 and done.json["error"] == "renumber" and "git coord land" in str(done.json["hints"])
    problems = world.coord("policy", "check").out
    assert 'there is no [sequence "ports"] with a pattern' in problems and "renumberCommand" not in problems


def test_killed_half_way(world: World) -> None:
    trunk = _trunk(world, '\trenumberCommand = "echo at work >&2; touch $MARK; sleep 1000"\n')
    trunk.branch("alice", {"db/0009_a.sql": "a\n", "src/list": "run 0009_a.sql\n"})
    reader, writer = os.pipe()
    env = {**world.environ("alice", {}), "MARK": f"/proc/self/fd/{writer}"}
    process = subprocess.Popen(
        [*COORD, "land", "--check", "true"],
        cwd=trunk.tree("alice"),
        env=env,
        pass_fds=(writer,),
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    trees = trunk.top / ".git/gitcoord/landing/trees"
    while process.poll() is None and not (trees.exists() and any(trees.iterdir())):
        os.sched_yield()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    os.close(reader)
    git(trunk.tree("alice"), "rm", "-q", "-f", "src/list")
    trunk.commit("alice", {})
    done = trunk.land("alice", "--wait", "20s")
    assert done.code == 0, done
    assert "db/0007_a.sql" in _files(trunk)
    assert [name for name in os.listdir(trunk.top / ".git/gitcoord/landing") if name.startswith("index-")] == []
    trunk.nothing_left()


def test_the_numbers() -> None:
    sequence = Sequence("s", ("*",), start=5, width=3)
    assert added_to(sequence, set(), {"1_a", "1_b", "x"}) == {"1_a": "005_a", "1_b": "005_b"}
    trunk = {"d/7_a.sql", "d/8_b.sql"}
    assert added_to(sequence, trunk, {*trunk, "d/8_c.sql", "d/20_d.sql"}) == {
        "d/8_c.sql": "d/009_c.sql",
        "d/20_d.sql": "d/010_d.sql",
    }
    assert added_to(sequence, trunk, {"d/7_a.sql", "d/8_renamed.sql"}) == {}, "a renamed file of trunk keeps its number"
    assert added_to(sequence, trunk, {*trunk, "d/8_b.down.sql"}) == {}, "it belongs to a file of trunk"
    assert differ_in_number("d/0007_a.sql", "d/12_a.sql") and not differ_in_number("d/7_a.sql", "e/7_a.sql")


@pytest.mark.parametrize("policy", ["", "\tsignatures = keep\n"])
def test_a_signed_commit_that_gets_numbers_loses_its_signature_aloud(world: World, tmp_path: Path, policy: str) -> None:
    """A rebase that is a fast-forward keeps all commits but the last, in which the names change."""
    trunk = _trunk(world, f"\thow = rebase\n{policy}")
    tree = trunk.branch("alice", {})
    sign(world, tmp_path, "author")
    (tree / "db").mkdir(exist_ok=True)
    (tree / "db/0009_a.sql").write_text("a\n")
    git(tree, "add", "-A")
    git(tree, "-c", f"user.signingKey={tmp_path}/author", "commit", "-q", "-S", "-m", "signed")
    before = trunk.tip
    done = trunk.land("alice")
    if policy:
        assert done.code == 1 and "rebase would lose signatures of alice (1)" in done.err, done
        assert trunk.tip == before
    else:
        assert done.code == 0 and done.err.count("signatures are not kept (1)") == 1, done
    trunk.nothing_left()


@pytest.mark.parametrize("moves", [False, True], ids=["added", "moved"])
def test_a_file_like_one_from_before_the_branch_is_another_one(world: World, *, moves: bool) -> None:
    """Nothing of the branch has landed as that, so it is neither there already nor refused."""
    trunk = Trunk(world, policy='[sequence "db"]\n\tpattern = db/[0-9]*_*.sql\n\twidth = 4\n[land]\n\trenumber = db\n')
    world.commit({"db/0003_seed.sql": "x\n"})
    trunk.branch("alice", {"db/0007_seed.sql": "x\n", **({"db/0003_seed.sql": None} if moves else {})})
    done = trunk.land("alice", "--squash", "--json")
    assert done.code == 0 and not done.json["already"], done
    assert len(world.git("ls-tree", "--name-only", "main", "db/").split()) == (1 if moves else 2)

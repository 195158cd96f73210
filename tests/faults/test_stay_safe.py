"""Ways by which a grant could be lost or given away without an error; each once led there."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import World
from tests.support import CLAIM


@pytest.fixture
def world(git_repo: Path) -> World:
    return World(git_repo, ledger=True)


def holders(world: World) -> dict[str, str]:
    claims = world.claim("list", "--json").json["claims"]
    return {claim["path"]: claim["agent"] for claim in claims}


def test_repair_keeps_what_was_granted_though_a_lost_race_left_newer_objects(world: World) -> None:
    world.take("src/a.py")
    head = world.head
    world.take("src/b.py", agent="bob")  # these commits become strays: as if bob's swap had failed
    for ref in ("refs/heads/gitcoord", "refs/gitcoord/tip"):
        world.git("update-ref", ref, head)
    world.git("update-ref", "-d", "refs/claims/path/src/b.py/@bob")
    world.git("update-ref", "-d", "refs/gitcoord/sessions/bob")
    token = world.take("src/b.py")
    (world.top / ".git/refs/gitcoord/tip").write_text("")
    assert world.coord("fsck", "--repair").code == 0
    assert holders(world) == {"src/a.py": "alice", "src/b.py": "alice"}
    assert world.take("src/c.py", agent="carol") > token + 2, "no token of a stray is given again"


def test_a_merge_on_the_ledger_loses_no_event(world: World) -> None:
    world.take("src/a.py")
    world.commit({"x": "x"})
    world.take("src/b.py", agent="bob")
    merge = world.git("commit-tree", "gitcoord^{tree}", "-p", "gitcoord", "-p", "main", "-m", "merged by hand")
    world.git("update-ref", "refs/heads/gitcoord", merge)
    assert world.claim("src/c.py").code == 4
    assert world.coord("fsck", "--repair").code == 0
    assert holders(world) == {"src/a.py": "alice", "src/b.py": "bob"}


def test_a_name_in_the_ledger_never_becomes_a_path_outside(world: World, tmp_path: Path) -> None:
    world.take("src/a.py")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    up = os.path.relpath(victim, world.top / ".git/gitcoord/seen")
    record = json.loads(world.git("cat-file", "blob", "gitcoord:claims/path/src/a.py/@alice"))
    record["agent"] = up
    text = json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n"
    blob = world.git("hash-object", "-w", "--stdin", data=text.encode())
    tree = _nested(world, f"claims/path/src/a.py/@{up}".split("/"), blob)
    message = world.git("log", "-1", "--format=%B", "gitcoord")
    parent = world.git("rev-parse", "gitcoord^")
    commit = world.git("commit-tree", tree, "-p", parent, "-F", "-", data=(message.rstrip("\n") + "\n").encode())
    world.git("update-ref", "refs/heads/gitcoord", commit)
    world.git("update-ref", "refs/gitcoord/tip", commit)
    done = world.claim("list")
    assert done.code == 4
    assert victim.read_text() == "mine"


def _nested(world: World, names: list[str], blob: str) -> str:
    """A tree with these names below each other, which no command of git's would make."""
    kind, oid = b"100644", blob
    for name in reversed(names):
        data = kind + b" " + name.encode() + b"\0" + bytes.fromhex(oid)
        oid = world.git("hash-object", "-w", "--literally", "-t", "tree", "--stdin", data=data)
        kind = b"40000"
    return oid


def test_a_dead_note_does_not_vouch_for_a_living_lock(world: World) -> None:
    world.take("src/a.py")
    notes = world.top / ".git/gitcoord/locks"
    notes.mkdir(exist_ok=True)
    name = "999999.1.another-boot.1"
    (notes / name).write_text(f"{name}\nrefs/heads/gitcoord\npacked-refs\0")
    world.take("src/b.py")
    assert os.listdir(notes) == [], "swept before it could be believed"
    world.git("pack-refs", "--all")
    lock = world.top / ".git/packed-refs.lock"
    lock.write_text("")
    done = world.claim("release", "src/a.py")
    assert done.code == 4 and "packed-refs.lock" in done.err
    assert lock.exists()


def test_git_s_failures_count_though_sigchld_was_ignored(world: World) -> None:
    world.take("src/a.py")
    world.write("src/a.py", "dirty\n")
    quiet = [
        "python3",
        "-c",
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
    ]
    env = {**os.environ, "GITCOORD_AGENT": "alice"}
    done = subprocess.run(
        [*quiet, *CLAIM, "release", "src/a.py"], cwd=world.top, env=env, capture_output=True, text=True
    )
    assert done.returncode == 1 and "uncommitted" in done.stderr


def test_the_last_session_s_heartbeat_says_nothing_of_this_one(world: World) -> None:
    world.take("src/a.py")
    world.fall_silent("alice")
    old = world.refs()["refs/gitcoord/sessions/alice"]
    assert world.coord("stop").code == 0
    world.take("src/a.py")
    world.git("update-ref", "refs/gitcoord/sessions/alice", old)
    assert world.claim("src/a.py", agent="bob").code == 1

"""Files that git converts (line ends, filters, LFS): checked and followed as users see them, landed as git stores them."""

from __future__ import annotations

import shutil
from typing import NamedTuple

import pytest

from tests.cli.support import World
from tests.landing.support import Trunk
from tests.ledger.remote.support import Fleet
from tests.support import git

needs_lfs = pytest.mark.skipif(not shutil.which("git-lfs"), reason="git-lfs is not installed")


class Kind(NamedTuple):
    """How `file.x` is converted: its attributes, the settings, and a text as users see it and as git stores it (its beginning)."""

    attributes: str
    settings: dict[str, str]
    shown: bytes
    stored: bytes


KINDS = {
    "line ends": Kind("*.x text eol=crlf", {}, b"one\r\ntwo\r\n", b"one\ntwo\n"),
    "a filter": Kind(
        "*.x filter=caps",
        {
            "filter.caps.clean": "tr A-Z a-z",
            "filter.caps.smudge": "tr a-z A-Z",
            "filter.caps.required": "true",
        },
        b"ONE\nTWO\n",
        b"one\ntwo\n",
    ),
    "LFS": Kind(
        "*.x filter=lfs diff=lfs merge=lfs -text",
        {
            "filter.lfs.clean": "git-lfs clean -- %f",
            "filter.lfs.smudge": "git-lfs smudge -- %f",
            "filter.lfs.process": "git-lfs filter-process",
            "filter.lfs.required": "true",
        },
        b"one\ntwo\n",
        b"version https://git-lfs",
    ),
}
CASES = [pytest.param(name, marks=needs_lfs if name == "LFS" else ()) for name in KINDS]


def _by(agent: str, text: bytes) -> bytes:
    return text.replace(b"one", agent.encode()).replace(b"ONE", agent.upper().encode())


@pytest.mark.parametrize("name", CASES)
def test_it_is_checked_and_followed_as_it_is_shown_and_lands_as_it_is_stored(world: World, name: str) -> None:
    kind = KINDS[name]
    for key, value in kind.settings.items():
        world.git("config", key, value)
    trunk = Trunk(world, marks=kind.attributes + "\n")
    for agent in ("alice", "bob"):
        tree = trunk.branch(agent, {})
        (tree / "file.x").write_bytes(_by(agent, kind.shown))
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", "work")
    shown = (trunk.tree("alice") / "file.x").read_bytes()
    world.commit({"other": "x\n"})
    done = trunk.land("alice", "--check", f"cmp file.x {trunk.tree('alice')}/file.x && git diff --quiet", "--json")
    assert done.code == 0 and done.json["followed"], done
    assert git(trunk.top, "show", "main:file.x").startswith(_by("alice", kind.stored))
    assert (trunk.top / "file.x").read_bytes() == shown
    assert world.git("status", "--porcelain") == ""
    tree = trunk.tree("bob")
    conflict = trunk.land("bob", "--json")
    assert conflict.json["error"] == "conflict" and conflict.json["files"] == ["file.x"], conflict
    assert git(tree, "ls-files", "-u") and conflict.json["stands"] == str(tree)
    (tree / "file.x").write_bytes(shown + kind.shown)
    git(tree, "add", "file.x")
    assert trunk.land("bob", "--continue").code == 0
    assert (trunk.top / "file.x").read_bytes() == shown + kind.shown
    assert world.git("status", "--porcelain") == ""
    trunk.nothing_left()


@needs_lfs
@pytest.mark.parametrize("atomic", ["true", "false"])
def test_objects_of_lfs_are_at_the_server_before_trunk_names_them(fleet: Fleet, atomic: str) -> None:
    one, two = fleet.joined()
    for machine in (one, two):
        machine.git("config", "gitcoord.atomic", atomic)
        for key, value in KINDS["LFS"].settings.items():
            machine.git("config", key, value)
    one.git("switch", "-q", "-c", "topic", "origin/main")
    one.commit({".gitattributes": KINDS["LFS"].attributes + "\n", "file.x": "large\n"})
    assert one.git("show", "HEAD:file.x").startswith("version https://git-lfs")
    done = one.run("git-coord", "land", agent="alice")
    assert done.code == 0, done
    two.git("pull", "-q", "origin", "main")
    assert (two.repo / "file.x").read_text() == "large\n"


@needs_lfs
def test_objects_of_lfs_that_cannot_be_sent_refuse_the_landing(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    for key, value in KINDS["LFS"].settings.items():
        one.git("config", key, value)
    one.git("switch", "-q", "-c", "topic", "origin/main")
    one.commit({".gitattributes": KINDS["LFS"].attributes + "\n", "file.x": "large\n"})
    one.git("config", "lfs.url", "http://127.0.0.1:9/none")
    before = fleet.refs()
    done = one.run("git-coord", "land", "--json", agent="alice")
    assert done.code == 1 and done.json["error"] == "lfs", done
    assert fleet.refs() == before

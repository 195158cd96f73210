"""Objects go straight into a repository on this machine, where it is this user's own and nobody there judges a push."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dulwich.objects import Blob
from dulwich.pack import pack_objects_to_data

from gitcoord.app.init import OFTEN_MOVED
from gitcoord.store import connection as connection_module
from gitcoord.store.far import HOST, LANDED, Move
from gitcoord.store.objects import APART
from gitcoord.store.straight import Straight, way_into
from gitcoord.store.wire import Wire
from tests.remote.support import Fleet, Machine
from tests.remote.test_wire import Client

ENV = {os.fsencode(key): os.fsencode(value) for key, value in os.environ.items()}


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare.git")], check=True)
    return tmp_path / "bare.git"


def _config(key: str, value: str) -> "Callable[[Path], object]":
    return lambda bare: subprocess.run(["git", f"--git-dir={bare}", "config", key, value], check=True)


def _hook(name: str) -> "Callable[[Path], object]":
    return lambda bare: (bare / "hooks" / name).write_text("#!/bin/sh\n")


def _move(bare: Path) -> None:
    (bare / "objects").rename(bare / "elsewhere")
    (bare / "objects").symlink_to("elsewhere")


def _other_ids(bare: Path) -> None:
    shutil.rmtree(bare)
    subprocess.run(["git", "init", "-q", "--bare", "--object-format=sha256", str(bare)], check=True)


OTHERWISE: "dict[str, Callable[[Path], object]]" = {
    "shared": _config("core.sharedRepository", "group"),
    "synced": _config("core.fsync", "all"),
    "checked": _config("receive.fsckObjects", "true"),
    "checked by another name": _config("transfer.fsckObjects", "true"),
    "kept in packs": _config("receive.unpackLimit", "1"),
    "kept in packs by another name": _config("transfer.unpackLimit", "1"),
    "limited": _config("receive.maxInputSize", "10m"),
    "hooks elsewhere": _config("core.hooksPath", "/hooks"),
    "a hook in the settings": _config("hook.judge.event", "pre-receive"),
    "pre-receive": _hook("pre-receive"),
    "update": _hook("update"),
    "proc-receive": _hook("proc-receive"),
    "writable for the group": lambda bare: (bare / "objects").chmod(0o775),
    "writable for all": lambda bare: (bare / "objects").chmod(0o757),
    "a work tree of another": lambda bare: (bare / "commondir").write_text("../other\n"),
    "objects elsewhere": _move,
    "no repository": lambda bare: (bare / "HEAD").unlink(),
    "not one, either": lambda bare: shutil.rmtree(bare / "refs"),
    "a directory that git passes over": lambda bare: (bare / ".git").mkdir(),
    "a file that leads elsewhere": lambda bare: (bare / ".git").write_text("gitdir: /elsewhere\n"),
    "a link that leads elsewhere": lambda bare: (bare / ".git").symlink_to("/elsewhere"),
    "other ids": _other_ids,
    "settings that cannot be read": lambda bare: (bare / "config").write_text("[core\n"),
}


def test_the_way_into_ones_own(bare: Path, tmp_path: Path) -> None:
    assert way_into(str(bare), ENV) is not None
    subprocess.run(["git", "init", "-q", str(tmp_path / "tree")], check=True)
    assert way_into(str(tmp_path / "tree"), ENV) is not None
    assert way_into(str(tmp_path / "missing"), ENV) is None
    assert way_into(str(tmp_path), ENV) is None
    assert way_into(os.path.relpath(bare), ENV) is None, "relative to what, only git knows"


LATER = (
    "pre-receive",
    "update",
    "proc-receive",
    "shared",
    "checked",
    "writable for the group",
    "settings that cannot be read",
)


@pytest.mark.parametrize("otherwise", LATER)
def test_whoever_says_so_later_is_heard_too(bare: Path, otherwise: str) -> None:
    straight = way_into(str(bare), ENV)
    assert straight is not None and straight.deliver([Blob.from_string(b"one")]) == []
    OTHERWISE[otherwise](bare)
    assert straight.deliver([Blob.from_string(b"two")]) == [Blob.from_string(b"two")]


def test_what_git_would_pack_is_sent(bare: Path) -> None:
    straight = way_into(str(bare), ENV)
    assert straight is not None
    many: list[Any] = [Blob.from_string(b"%d" % number) for number in range(100)]
    assert straight.deliver(many) == many and straight.deliver(many[:99]) == []


@pytest.mark.parametrize("otherwise", OTHERWISE)
def test_no_way_where_somebody_says_otherwise(bare: Path, otherwise: str) -> None:
    OTHERWISE[otherwise](bare)
    assert way_into(str(bare), ENV) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_no_way_into_another_users(bare: Path) -> None:
    os.chown(bare / "objects", 65534, 65534)
    assert way_into(str(bare), ENV) is None


def test_what_cannot_be_put_there_is_to_be_sent(bare: Path) -> None:
    objects = [Blob.from_string(b"one"), Blob.from_string(b"two")]
    straight = Straight(str(bare))
    assert straight.deliver(objects) == []  # type: ignore[arg-type]
    git = ["git", f"--git-dir={bare}", "cat-file", "-p"]
    assert [subprocess.check_output([*git, found.id.decode()]) for found in objects] == [b"one", b"two"]
    three = Blob.from_string(b"three")
    (bare / "objects" / three.id.decode()[:2]).write_text("in the way")
    assert straight.deliver([three]) == [three]


# --- the whole


def _count(fleet: Fleet) -> int:
    """Loose objects at the server."""
    return int(fleet.git("count-objects").split()[0])


def _straight(fleet: Fleet) -> bool:
    return (fleet.bare / "objects" / APART).is_dir()


def test_claims_go_straight(fleet: Fleet) -> None:
    one, two = fleet.joined()
    with Client(one, "alice") as alice:
        assert alice.ask("take", "a") == "ok" and alice.ask("release", "a") == "ok"
        assert alice.ask("take", "b") == "ok"
        assert _straight(fleet)
        assert two.claim("b", agent="bob").code == 1
    assert os.listdir(fleet.bare / "objects" / APART) == []
    fleet.git("fsck", "--full", "--strict")
    fleet.assert_sound()


def test_a_clone_that_joins_makes_room(fleet: Fleet) -> None:
    """Before there is a single claim."""
    for machine in fleet.joined():
        assert all((machine.git_dir / name).is_dir() for name in OFTEN_MOVED)


def test_where_a_push_is_judged_all_goes_with_it(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    fleet.hook("pre-receive", "exit 0\n")
    with Client(one, "alice") as alice:
        assert alice.ask("take", "a") == "ok"
    assert not _straight(fleet)
    fleet.assert_sound()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many objects each push carried."""
    numbers: list[int] = []

    def noting(objects: "list[Any]", **words: Any) -> Any:
        numbers.append(len(objects))
        return pack_objects_to_data(objects, **words)

    monkeypatch.setattr(connection_module, "pack_objects_to_data", noting)
    return numbers


def _wire(machine: Machine) -> Wire:
    env = {**machine.env, "GIT_DIR": str(machine.git_dir)}
    return Wire({os.fsencode(key): os.fsencode(value) for key, value in env.items()}, "origin")


def _beat(wire: Wire, text: bytes, fleet: Fleet) -> str:
    """Move a ref to a new object; what came of it."""
    oid, ref = Blob.from_string(text).id.decode(), "refs/gitcoord/sessions/zoe"
    wire.wrote(oid, "blob", text)
    kind = wire.push([Move(ref, fleet.refs().get(ref), oid)]).kind
    assert (fleet.refs().get(ref) == oid) == (kind == LANDED)
    return kind


@pytest.mark.parametrize("straight", [True, False])
def test_what_went_straight_is_not_sent_again(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, sent: list[int], straight: bool
) -> None:
    """And what could not, is; also where the address is a URL."""
    one, _ = fleet.joined()
    one.git("remote", "set-url", "origin", f"file://{fleet.bare}")
    if not straight:
        monkeypatch.setattr(Straight, "deliver", lambda self, objects: objects)
    assert _beat(_wire(one), b"beat", fleet) == LANDED
    assert sent == [0 if straight else 1]


def test_a_refusal_is_not_asked_for_twice(fleet: Fleet, sent: list[int]) -> None:
    one, _ = fleet.joined()
    wire = _wire(one)
    assert _beat(wire, b"one", fleet) == LANDED
    fleet.git("gc", "-q")  # what went straight before is where git put it
    fleet.hook("pre-receive", "exit 1\n")
    assert _beat(wire, b"two", fleet) == HOST
    assert sent == [0, 1]


def test_a_path_that_leads_elsewhere(fleet: Fleet) -> None:
    """git follows a .git that is a file. A directory that happens to be called 'objects' is not one of a repository."""
    one, _ = fleet.joined()
    tree = fleet.place / "tree"
    fleet.git("worktree", "add", "-q", "--detach", str(tree), "main")
    (tree / "objects").mkdir()
    one.git("remote", "set-url", "origin", str(tree))
    one.git("config", "gitcoord.authority", "origin")
    with Client(one, "alice") as alice:
        assert alice.ask("take", "a") == "ok"
    assert os.listdir(tree / "objects") == []


def test_what_is_not_pushed_leaves_nothing_there(fleet: Fleet) -> None:
    """Another was quicker, and that is seen before anything is sent."""
    one, two = fleet.joined()
    with Client(one, "alice") as alice:
        assert alice.ask("take", "a") == "ok"
        assert two.claim("c", agent="bob").code == 0
        before = _count(fleet)
        assert alice.ask("take", "c").startswith("held ")
    assert _count(fleet) == before
    fleet.assert_sound()


def test_what_gc_takes_before_a_ref_leads_to_it_is_pushed_again(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, sent: list[int]
) -> None:
    """And from then on all of it is sent."""
    one, _ = fleet.joined()
    wire, deliver = _wire(one), Straight.deliver

    def late(self: Straight, objects: "list[Any]") -> "list[Any]":
        rest = deliver(self, objects)
        for found in objects:
            (fleet.bare / "objects" / found.id.decode()[:2] / found.id.decode()[2:]).unlink()
        return rest

    monkeypatch.setattr(Straight, "deliver", late)
    for text in (b"one", b"two"):
        assert _beat(wire, text, fleet) == LANDED
    assert sent == [0, 1, 1]


def test_a_host_that_refuses_is_heard_all_the_same(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    with Client(one, "alice") as alice:
        assert alice.ask("take", "a") == "ok"
        fleet.hook("pre-receive", "echo 'closed for today'; exit 1\n")
        before = fleet.refs()
        answer = alice.ask("take", "b")
        assert answer.startswith("host ") and "closed for today" in answer and fleet.refs() == before

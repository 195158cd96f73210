"""Full disks, read-only disks, no file descriptors, broken refs and objects, hostile ledgers: exit 4, nothing granted.

Where the damage does not matter for an answer, because the ledger decides, 0 or 1 is right too. Where a way back exists,
`git coord fsck --repair` finds it.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from gitcoord.base.codec import dumps
from tests.cli.support import Done
from tests.faults.world import CLAIMS, GIT, LEDGER, SESSIONS, SOAK, TIP, World, make_world, mounted, thin
from tests.support import CLAIM

pytestmark = pytest.mark.faults
CLAIM_REF = "refs/claims/path/src/app.py/@alice"
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system to fill or freeze")
PAGE = 4096


def _state(world: World) -> object:
    seen = world.observe()
    assert all(line.startswith("refs/") for line in seen["differences"]), seen["differences"]
    return seen["seq"], [(c["path"], c["agent"], c["token"]) for c in seen["claims"]]


# --- the disk -----------------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Iterator[World]:
    """The same world on a file system of two megabytes."""
    with mounted(tmp_path / "disk", "size=2m") as disk:
        world = make_world(disk / "repo")
        assert world.claim("src/app.py", agent="alice").code == 0
        yield world


def _fill(world: World, left: int) -> Path:
    """Fill the disk but for so many pages."""
    ballast = world.top.parent / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * PAGE) == PAGE:
                pass
        except OSError:
            pass
        file.truncate(max(0, file.tell() // PAGE - left) * PAGE)
    return ballast


@ROOT_ONLY
def test_full_disk(small: World) -> None:
    """Whichever write finds no room: done whole, or exit 4 and nothing changed; with room again, all is well."""
    codes = set()
    for left in range(0, 40, 1 if SOAK else 6):
        before = _state(small)
        ballast = _fill(small, left)
        done = small.claim(f"file-{left}", agent="bob")
        codes.add(done.code)
        assert done.code in (0, 4), (left, done)
        assert small.claim("src/app.py", agent="bob").code in (1, 4)
        if done.code == 4:
            assert "error:" in done.err and "claimed" not in done.out, done
        ballast.unlink()
        if done.code == 4:
            assert _state(small) == before, (left, done)
        assert small.claim(f"file-{left}", agent="bob").code == 0, left
        small.assert_sound()
        small.git("gc", "-q", "--prune=now")
    assert codes == {0, 4}, codes


@ROOT_ONLY
def test_full_disk_on_release(small: World) -> None:
    codes = set()
    for left in range(0, 32, 1 if SOAK else 8):
        small.claim("src/app.py", agent="alice")
        ballast = _fill(small, left)
        done = small.claim("release", "src/app.py", agent="alice")
        codes.add(done.code)
        assert done.code in (0, 4), (left, done)
        ballast.unlink()
        assert small.holders("src/app.py") == ([] if done.code == 0 else ["alice"]), (left, done)
        assert small.claim("src/app.py", agent="alice").code == 0
        small.assert_sound()
        small.git("gc", "-q", "--prune=now")
    assert 4 in codes


@ROOT_ONLY
def test_full_disk_on_init(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=2m") as disk:
        world = make_world(disk / "repo", ledger=False)
        for left in range(0, 20, 1 if SOAK else 4):
            ballast = _fill(world, left)
            done = world.drive("init")
            assert done.code in (0, 4), (left, done)
            ballast.unlink()
            if done.code == 0:
                break
        assert world.drive("init").code == 0
        world.assert_works()


@pytest.mark.parametrize("size", thin([0, 1, 40, 64, 100, 150, 200, 300], 2))
def test_files_may_not_grow(world: World, size: int) -> None:
    """RLIMIT_FSIZE stands for a full disk, without the right to mount one."""
    before = _state(world)
    done = world.run(
        [*CLAIM, "file"],
        "bob",
        limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)),
    )
    assert done.code in (0, 4), done
    if done.code == 4:
        assert _state(world) == before
    world.assert_works()


@ROOT_ONLY
def test_read_only_disk(small: World) -> None:
    """Looking works, changing does not, and says why."""
    before = small.refs()
    disk = str(small.top.parent)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    try:
        for words, agent, code in (
            (["other"], "bob", 4), (["src/app.py"], "bob", 4), (["release", "src/app.py"], "alice", 4),
            (["check", "src/app.py"], "alice", 0), (["check", "src/app.py"], "bob", 1), (["check", "other"], "bob", 0),
            (["list"], "bob", 0), (["show", "src/app.py"], "bob", 0),
        ):  # fmt: skip
            done = small.claim(*words, agent=agent)
            assert done.code == code, (words, agent, done)
            if code == 4:
                assert "ead-only" in done.err, done.err
        assert small.coord("status").code == 0
        assert small.coord("fsck").code == 0
        assert small.coord("fsck", "--repair").code in (0, 4)
        done = small.person("kill", "alice")
        assert done.code == 4 and "ead-only" in done.out, done
        assert small.refs() == before
    finally:
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    small.assert_works()


def _python_starts(limit: int) -> bool:
    argv = [CLAIM[0], "-I", "-S", "-c", "import posix, _signal, _json, zlib"]
    done = subprocess.run(argv, capture_output=True, check=False, preexec_fn=lambda: _few_files(limit))
    return done.returncode == 0


def _few_files(limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


@pytest.mark.parametrize(
    "words", [["other"], ["release", "src/app.py"], ["check", "src/app.py"], ["list"]], ids=" ".join
)
def test_no_file_descriptors(world: World, words: list[str]) -> None:
    agent = "bob" if words == ["other"] else "alice"
    tried = set()
    for limit in range(3, 24) if SOAK else (*range(3, 9), *range(9, 24, 3)):
        if not _python_starts(limit):
            continue  # not our error to tell
        world.claim("src/app.py", agent="alice")
        before = _state(world)
        done = world.run([*CLAIM, *words], agent, limit=partial(_few_files, limit))
        tried.add(done.code)
        assert done.code in (0, 4), (limit, done)
        if done.code == 4:
            assert done.err.startswith("error:"), (limit, done)
            assert _state(world) == before, (limit, done)
    # What is only read here is read without git: no more is needed than Python itself has.
    assert tried == ({0} if words[0] in ("list", "check") else {0, 4}), tried
    world.assert_works()


# --- damage -------------------------------------------------------------------------------------------------------

COMMANDS = (
    (["src/app.py"], "bob"), (["fresh"], "bob"), (["src/app.py"], "alice"), (["release", "src/app.py"], "alice"),
    (["check", "src/app.py"], "bob"), (["check", "src/app.py"], "alice"), (["list"], "bob"), (["renew"], "alice"),
)  # fmt: skip


# In a quick run only those whose answer would do harm.
TRIED = COMMANDS if SOAK else (COMMANDS[0], COMMANDS[1], COMMANDS[4], COMMANDS[5])


def _all_refs(world: World) -> dict[str, str]:
    """Every ref's bytes: for-each-ref leaves broken ones out."""
    return {
        str(p.relative_to(world.git_dir)): p.read_bytes().hex()
        for p in (world.git_dir / "refs").rglob("*")
        if p.is_file()
    }


def _denied(world: World) -> None:
    """No command answers otherwise than 'could not judge', and none changes a ref."""
    before = _all_refs(world)
    for words, agent in TRIED:
        done = world.claim(*words, agent=agent)
        _is_clear(done)
        assert done.code == 4 or words == ["list"] and done.code == 0, (words, agent, done)
        assert _all_refs(world) == before, (words, agent, done)


def _is_clear(done: Done) -> None:
    """An error is one that a person can read, not a line of Python's."""
    if done.code >= 2:
        assert done.err.startswith("error: ") and len(done.err) > 20, done
        assert "gitcoord failed" not in done.err and "object at 0x" not in done.err, done


def _mended(world: World, *, newest: int, held: bool = True) -> None:
    """fsck names it, --repair leads to clean, the next claim works and has a new token."""
    told = world.fsck()
    assert told.code in (1, 4) and told.said, told
    done = world.fsck(repair=True)
    assert done.code == 0 and done.json["clean"], done
    assert world.claim("src/app.py", agent="bob").code == (1 if held else 0)
    granted = world.claim("fresh", "--json", agent="bob")
    assert granted.code == 0 and granted.json["token"] > newest, granted
    world.assert_works()


GARBAGE = {
    "empty": b"",
    "newline": b"\n",
    "words": b"no object id\n",
    "half": b"0123456789abcdef",
    "zeros": b"0" * 40 + b"\n",
    "missing object": b"1" * 40 + b"\n",
    "binary": bytes(range(256)),
    "symref to nowhere": b"ref: refs/heads/nowhere\n",
    "symref to itself": b"ref: %s\n",
}


@pytest.mark.parametrize(("ref", "garbage"), thin([(r, g) for r in (LEDGER, TIP) for g in GARBAGE], 4))
def test_garbage_in_a_ref_that_decides(world: World, ref: str, garbage: str) -> None:
    newest = world.seqs()[-1]
    path = world.git_dir / ref
    path.write_bytes(GARBAGE[garbage].replace(b"%s", ref.encode()))
    _denied(world)
    _mended(world, newest=newest)


@pytest.mark.parametrize(
    ("ref", "garbage"), thin([(r, g) for r in (CLAIM_REF, SESSIONS + "alice") for g in GARBAGE], 4)
)
def test_garbage_in_a_ref_that_follows(world: World, ref: str, garbage: str) -> None:
    """The ledger decides: others are refused as before, and the way back is open."""
    newest = world.seqs()[-1]
    path = world.git_dir / ref
    data = GARBAGE[garbage].replace(b"%s", ref.encode())
    path.write_bytes(data)
    assert world.claim("src/app.py", agent="bob").code in (1, 4)
    assert world.claim("check", "src/app.py", agent="bob").code in (1, 4)
    assert world.claim("check", "src/app.py", agent="alice").code in (0, 4)
    assert world.claim("list", agent="bob").code in (0, 4)
    for words in (["fresh-1"], ["renew"]):
        done = world.claim(*words, agent="bob" if words != ["renew"] else "alice")
        assert done.code in (0, 4), done
        _is_clear(done)
    if path.exists() and path.read_bytes() == data:
        _mended(world, newest=newest)
    else:
        world.assert_works()  # the next writer healed it


def _truncate(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"")


def _flip(path: Path) -> None:
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def _wrong_content(path: Path) -> None:
    """A valid object that is not the one its name says."""
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob 5\0wrong"))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "missing": lambda path: path.unlink(),
    "empty": _truncate,
    "flipped": _flip,
    "another": _wrong_content,
}
OBJECTS = {
    "tip commit": LEDGER,
    "its tree": LEDGER + "^{tree}",
    "claims tree": LEDGER + ":claims",
    "claim tree": LEDGER + ":claims/path/src/app.py",
    "claim record": LEDGER + ":claims/path/src/app.py/@alice",
    "agent record": LEDGER + ":agents/alice",
    "agents tree": LEDGER + ":agents",
    "format": LEDGER + ":format",
    "parent commit": LEDGER + "~1",
}


@pytest.mark.parametrize(("name", "damage"), thin([(n, d) for d in DAMAGES for n in OBJECTS], 4))
def test_damaged_object(world: World, name: str, damage: str, tmp_path: Path) -> None:
    path = world.object_file(world.rev(OBJECTS[name]))
    shutil.copy(path, tmp_path / "kept")
    before = world.refs()
    DAMAGES[damage](path)
    for words, agent in [row for row in TRIED if row[0][0] != "release"]:
        done = world.claim(*words, agent=agent)
        _is_clear(done)
        if words == ["src/app.py"] and agent == "bob":
            assert done.code in (1, 4), done
        elif words == ["check", "src/app.py"]:
            assert done.code in ((1, 4) if agent == "bob" else (0, 4)), (agent, done)
        else:
            assert done.code in (0, 4), (words, agent, done)
        if name in ("tip commit", "its tree", "claims tree", "format") and words != ["renew"]:
            assert done.code == 4, (words, agent, done)
    told = world.fsck()
    assert told.code in (1, 4) or name in ("agents tree",), told
    done = world.fsck(repair=True)
    assert done.code in (0, 1, 4), done
    _is_clear(done)
    if done.code == 0:
        world.assert_works()
        return
    # No way back from within: then with the object from a backup.
    assert {ref: oid for ref, oid in world.refs().items() if ref in (LEDGER, TIP)} == {
        LEDGER: before[LEDGER],
        TIP: before[TIP],
    }
    path.unlink(missing_ok=True)
    shutil.copy(tmp_path / "kept", path)
    assert world.fsck(repair=True).code == 0
    world.assert_works()


# --- a hostile ledger ---------------------------------------------------------------------------------------------

NONCE = "0123456789abcdef0123456789abcdef"


def _message(record: str, seq: object, kind: str, subject: str = "claim src/app.py by bob") -> bytes:
    return f"{subject}\n\n{record}\n\nSeq: {seq}\nKind: {kind}\n".encode()


def _stop(seq: int, **named: object) -> dict[str, object]:
    """A record of the least kind there is, to spoil."""
    base: dict[str, object] = {
        "v": 1,
        "kind": "revive",
        "seq": seq,
        "agent": "bob",
        "at": 1,
        "nonce": NONCE,
        "part": 0,
        "target": "alice",
    }
    return base | named


def _raw(seq: int, more: str) -> bytes:
    """A record with something that `dumps` would never write."""
    return _message(dumps(_stop(seq))[:-1] + "," + more + "}", seq, "revive")


MESSAGES: dict[str, Callable[[int], bytes]] = {
    "wrong seq": lambda seq: _message(dumps(_stop(seq + 5)), seq + 5, "revive"),
    "same seq": lambda seq: _message(dumps(_stop(seq - 1)), seq - 1, "revive"),
    "trailer differs": lambda seq: _message(dumps(_stop(seq)), seq + 1, "revive"),
    "duplicate keys": lambda seq: _raw(seq, '"agent":"alice"'),
    "deep": lambda seq: _raw(seq, '"x":' + "[" * 5000 + "]" * 5000),
    "huge": lambda seq: _message(dumps(_stop(seq, part="x" * (2 << 20))), seq, "revive"),
    "no record": lambda seq: b"claim src/app.py by bob\n",
    "empty": lambda seq: b"",
    "bad agent": lambda seq: _message(dumps(_stop(seq, agent="../../etc")), seq, "revive"),
    "init again": lambda seq: _message(
        dumps({"v": 1, "kind": "init", "seq": seq, "agent": "bob", "at": 1, "nonce": NONCE, "part": 0}), seq, "init"
    ),
}


@pytest.mark.parametrize("name", list(MESSAGES))
def test_hostile_event(world: World, name: str) -> None:
    """The event is on top of the ledger, and the tip moved too: denied, named, and fixed by a repair event."""
    newest = world.seqs()[-1]
    world.append(MESSAGES[name](newest + 1))
    before = _all_refs(world)
    for words, agent in TRIED:
        done = world.claim(*words, agent=agent)
        _is_clear(done)
        if (words, agent) == (["src/app.py"], "bob"):
            assert done.code in (1, 4), done
    told = world.fsck()
    assert told.code == 1 and "no legal event" in told.out, told
    if name not in ("wrong seq", "same seq", "bad agent"):  # these take a replay to be seen
        assert _all_refs(world) == before
        assert world.claim("fresh", agent="bob").code == 4
    done = world.fsck(repair=True)
    assert done.code == 0 and done.json["clean"], done
    granted = world.claim("after", "--json", agent="carol")
    assert granted.code == 0 and granted.json["token"] > newest, granted
    world.assert_sound()


def _tree_with(world: World, path: str, mode: str, oid: str) -> str:
    """The ledger's tree with one entry put by hand."""
    index = world.scrap / "hostile-index"
    env = world.env() | {"GIT_INDEX_FILE": str(index)}

    def git(*words: str) -> str:
        return (
            subprocess.run([GIT, *words], cwd=world.top, env=env, capture_output=True, check=True)
            .stdout.decode()
            .strip()
        )

    git("read-tree", LEDGER)
    for line in git("ls-files", "-s").splitlines():
        name = line.partition("\t")[2]
        if name == path or name.startswith(path + "/") or path.startswith(name + "/"):
            git("update-index", "--force-remove", "--", name)
    if oid:
        git("update-index", "--add", "--cacheinfo", f"{mode},{oid},{path}")
    return git("write-tree")


def _claim_record(world: World, **named: object) -> bytes:
    record = json.loads(world.git("cat-file", "blob", f"{LEDGER}:claims/path/src/app.py/@alice"))
    return dumps(record | named).encode() + b"\n"


OWN = "claims/path/src/app.py/@alice"
TREES: dict[str, Callable[[World], tuple[str, str, str]]] = {
    "file for a directory": lambda w: ("claims/path/src", "100644", w.blob(b"{}\n")),
    "file for all claims": lambda w: ("claims", "100644", w.blob(b"{}\n")),
    "claim is a symlink": lambda w: (OWN, "120000", w.blob(b"/etc/passwd")),
    "claim is a link to a record": lambda w: (OWN, "120000", w.rev(f"{LEDGER}:{OWN}")),
    "claim is a submodule": lambda w: (OWN, "160000", w.rev("HEAD")),
    "directory is a submodule": lambda w: ("claims/path/src", "160000", w.rev("HEAD")),
    "directory is a symlink": lambda w: ("claims/path/src", "120000", w.blob(b"../..")),
    "claim of another": lambda w: (OWN, "100644", w.blob(_claim_record(w, agent="bob"))),
    "claim on another path": lambda w: (OWN, "100644", w.blob(_claim_record(w, path="docs"))),
    "claim in another space": lambda w: (OWN, "100644", w.blob(_claim_record(w, space="resource"))),
    "unknown mode": lambda w: (OWN, "100644", w.blob(_claim_record(w, mode="exclusive"))),
    "negative token": lambda w: (OWN, "100644", w.blob(_claim_record(w, token=-1))),
    "token as text": lambda w: (OWN, "100644", w.blob(_claim_record(w, token="3"))),
    "claim is a list": lambda w: (OWN, "100644", w.blob(b"[]\n")),
    "claim is a number": lambda w: (OWN, "100644", w.blob(b"1\n")),
    "claim is huge": lambda w: (OWN, "100644", w.blob(b'"' + b"x" * (2 << 20) + b'"')),
    "claim of no agent": lambda w: ("claims/path/src/app.py/@", "100644", w.blob(b"{}\n")),
    "claim of a bad agent": lambda w: (
        "claims/path/src/app.py/@..%2f",
        "100644",
        w.blob(_claim_record(w, agent="../")),
    ),
    "bad bucket": lambda w: ("claims/path/%0", "100644", w.blob(b"{}\n")),
    "bucket is a file": lambda w: ("claims/path/src/%3", "100644", w.blob(b"{}\n")),
    "agent is a list": lambda w: ("agents/alice", "100644", w.blob(b"[]\n")),
    "agent is another": lambda w: ("agents/alice", "100644", w.rev(f"{LEDGER}:format")),
    "agent is a directory": lambda w: ("agents/alice/x", "100644", w.blob(b"{}\n")),
    "no format": lambda w: ("format", "100644", ""),
    "format is a list": lambda w: ("format", "100644", w.blob(b"[]\n")),
    "format is a number": lambda w: ("format", "100644", w.blob(b"7\n")),
    "format of a newer major": lambda w: (
        "format",
        "100644",
        w.blob(w.git("cat-file", "blob", f"{LEDGER}:format").replace('"v":1', '"v":2').encode() + b"\n"),
    ),
    "format is a directory": lambda w: ("format/x", "100644", w.blob(b"{}\n")),
    "halt is a number": lambda w: ("halt", "100644", w.blob(b"7\n")),
}


@pytest.mark.parametrize("name", thin(list(TREES), 2))
def test_hostile_tree(world: World, name: str) -> None:
    """A legal-looking event on a tree that its events did not make. Bob must not get alice's path by it."""
    newest = world.seqs()[-1]
    path, mode, oid = TREES[name](world)
    tree = _tree_with(world, path, mode, oid)
    # The event itself is the one that stands there, made again on the hostile tree; the tip follows.
    world.append(
        world.git("log", "-1", "--format=%B", LEDGER).encode() + b"\n", tree=tree, parent=world.rev(f"{LEDGER}~1")
    )
    for words, agent in [row for row in TRIED if row[0][0] != "release"]:
        done = world.claim(*words, agent=agent)
        assert done.code in (0, 1, 4), (words, agent, done)
        _is_clear(done)
    for words in (["status"], ["log"], ["agents"]) if SOAK else ():
        done = world.coord(*words)
        assert done.code in (0, 4), (words, done)
        _is_clear(done)
    told = world.fsck()
    assert told.code in (1, 4), told
    done = world.fsck(repair=True)
    assert done.code == 0 and done.json["clean"], done
    granted = world.claim("after", "--json", agent="carol")
    assert granted.code == 0 and granted.json["token"] > newest, granted
    world.assert_sound()


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in TREES
        if n.startswith(
            (
                "claim is",
                "claim of another",
                "claim on",
                "claim in",
                "unknown mode",
                "negative",
                "token",
                "file for",
                "directory is",
            )
        )
    ],
)
def test_hostile_tree_grants_nothing(world: World, name: str) -> None:
    """A path whose record cannot be read is not free: the answer is "could not judge"."""
    path, mode, oid = TREES[name](world)
    tree = _tree_with(world, path, mode, oid)
    world.append(
        world.git("log", "-1", "--format=%B", LEDGER).encode() + b"\n", tree=tree, parent=world.rev(f"{LEDGER}~1")
    )
    for words in (["src/app.py"], ["check", "src/app.py"], ["src"]):
        done = world.claim(*words, agent="bob")
        assert done.code in (1, 4), (words, done)


# --- hostile claim refs -------------------------------------------------------------------------------------------


def _tag(world: World) -> str:
    world.git("tag", "-a", "-m", "x", "hostile", "HEAD")
    oid = world.rev("refs/tags/hostile")
    world.git("tag", "-d", "hostile")
    return oid


POINTING: dict[str, Callable[[World], str]] = {
    "blob": lambda world: world.blob(b"hello"),
    "tree": lambda world: world.rev("HEAD^{tree}"),
    "tag": _tag,
    "other commit": lambda world: world.rev("HEAD"),
    "older event": lambda world: world.rev(f"{LEDGER}~1"),
}


@pytest.mark.parametrize("name", list(POINTING))
def test_claim_ref_points_elsewhere(world: World, name: str) -> None:
    world.git("update-ref", CLAIM_REF, POINTING[name](world))
    newest = world.seqs()[-1]
    assert world.claim("src/app.py", agent="bob").code == 1
    assert world.claim("check", "src/app.py", agent="bob").code == 1
    assert world.claim("check", "src/app.py", agent="alice").code == 0
    told = world.fsck()
    assert told.code in (0, 1), told
    if told.code:
        assert CLAIM_REF in told.out
        _mended(world, newest=newest)
    assert world.claim("release", "src/app.py", agent="alice").code == 0
    assert world.rev(CLAIM_REF) == ""
    world.assert_works()


def test_claim_ref_of_nobody(world: World) -> None:
    """A claim ref that no event made grants nothing and blocks nothing."""
    ref = f"{CLAIMS}path/docs/@mallory"
    world.git("update-ref", ref, world.rev(LEDGER))
    assert world.claim("docs", agent="bob").code == 0
    told = world.fsck()
    assert told.code == 1 and f"{ref} stands for no claim" in told.out
    assert world.fsck(repair=True).code == 0
    assert world.rev(ref) == ""
    world.assert_works()


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_a_ref_in_the_way_of_a_directory(world: World, packed: bool) -> None:
    """refs/claims/path/docs stands where refs/claims/path/docs/... has to: named, and mended."""
    ref = f"{CLAIMS}path/docs"
    world.git("update-ref", ref, "HEAD")
    if packed:
        world.git("pack-refs", "--all")
    newest = world.seqs()[-1]
    done = world.claim("--", "docs/a.md", agent="bob")
    assert done.code == 4 and ref in done.err, done
    assert world.holders("docs/a.md") == []
    told = world.fsck()
    assert told.code == 1 and ref in told.out
    assert world.fsck(repair=True).code == 0
    granted = world.claim("--json", "--", "docs/a.md", agent="bob")
    assert granted.code == 0 and granted.json["token"] > newest
    world.assert_works()


def test_a_ref_in_the_way_of_a_session(world: World) -> None:
    world.git("update-ref", "-d", SESSIONS + "alice")
    world.git("update-ref", SESSIONS.rstrip("/"), world.blob(b"x"))
    done = world.claim("docs", agent="bob")
    assert done.code == 4 and "refs/gitcoord/sessions" in done.err, done
    assert world.holders("docs") == []
    assert world.claim("src/app.py", agent="bob").code in (1, 4)
    world.git("update-ref", "-d", SESSIONS.rstrip("/"))
    assert world.fsck(repair=True).code == 0
    world.assert_works()


@pytest.mark.parametrize("target", ["refs/heads/main-line", LEDGER, "refs/heads/nowhere"])
def test_claim_ref_is_symbolic(world: World, target: str) -> None:
    """Moving a claim's ref must not move what a symbolic ref points at."""
    world.git("update-ref", "refs/heads/main-line", "HEAD")
    world.git("symbolic-ref", CLAIM_REF, target)
    line, newest = world.rev("refs/heads/main-line"), world.seqs()[-1]
    assert world.claim("src/app.py", agent="bob").code == 1
    done = world.claim("release", "src/app.py", agent="alice")
    assert done.code in (0, 4), done
    assert world.rev("refs/heads/main-line") == line
    assert world.seqs()[:newest] == list(range(1, newest + 1))
    repaired = world.fsck(repair=True)
    assert repaired.code == 0, repaired
    assert world.rev("refs/heads/main-line") == line
    world.assert_works()


@pytest.mark.parametrize("ref", [LEDGER, TIP])
def test_ledger_ref_is_symbolic(world: World, ref: str) -> None:
    """The ledger as a symbolic ref to a branch that somebody else moves: that branch stays what it is."""
    world.git("update-ref", "refs/heads/elsewhere", ref)
    world.git("symbolic-ref", ref, "refs/heads/elsewhere")
    before = world.rev("refs/heads/elsewhere")
    assert world.claim("src/app.py", agent="bob").code in (1, 4)
    assert world.claim("fresh", agent="bob").code in (0, 4)
    assert world.rev("refs/heads/elsewhere") == before
    assert world.fsck(repair=True).code in (0, 4)
    world.assert_works()
    assert world.rev("refs/heads/elsewhere") == before


def test_replace_refs_and_grafts_change_nothing(world: World) -> None:
    """`git replace` of the ledger's top must not change what gitcoord reads."""
    assert world.claim("docs", agent="bob").code == 0
    world.git("replace", LEDGER, f"{LEDGER}~1")
    assert world.claim("docs", agent="carol").code == 1
    world.assert_works()

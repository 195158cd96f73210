"""Every shape of repository: linked work trees, bare, sha256, packed, shared, borrowed objects, odd places."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.world import GIT, LEDGER, SOAK, World, make_world
from tests.newer_git import VERSION, is_newer
from tests.support import CLAIM, COORD

pytestmark = pytest.mark.faults


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([GIT, *words], capture_output=True, check=False)


def usual(place: Path) -> World:
    return make_world(place / "repo", ledger=False)


def worktree(place: Path) -> World:
    main = make_world(place / "main", ledger=False)
    main.git("worktree", "add", "-q", str(place / "linked"), "-b", "linked")
    return World(place / "linked", git_dir=main.git_dir)


def bare(place: Path) -> World:
    main = make_world(place / "main", ledger=False)
    main.git("clone", "-q", "--bare", str(main.top), str(place / "bare.git"))
    return World(place / "bare.git", git_dir=place / "bare.git")


def sha256(place: Path) -> World:
    return make_world(place / "repo", "--object-format=sha256", ledger=False)


def reftable(place: Path) -> World:
    return make_world(place / "repo", "--ref-format=reftable", ledger=False)


def subdirectory(place: Path) -> World:
    world = make_world(place / "repo", ledger=False)
    world.cwd = world.top / "deep/er"
    world.cwd.mkdir(parents=True)
    return world


def git_dir_is_set(place: Path) -> World:
    world = make_world(place / "repo", ledger=False)
    world.environ = {"GIT_DIR": str(world.git_dir), "GIT_WORK_TREE": str(world.top)}
    world.cwd = place
    return world


def git_dir_is_elsewhere(place: Path) -> World:
    """--separate-git-dir: a `.git` file."""
    return make_world(place / "repo", f"--separate-git-dir={place / 'elsewhere'}", ledger=False)


def submodule(place: Path) -> World:
    inner = make_world(place / "inner", ledger=False)
    outer = make_world(place / "outer", ledger=False)
    outer.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.top), "sub")
    return World(outer.top / "sub", git_dir=outer.git_dir / "modules/sub")


def shared(place: Path) -> World:
    return make_world(place / "repo", "--shared=group", ledger=False)


def alternates(place: Path) -> World:
    main = make_world(place / "main", ledger=False)
    main.git("clone", "-q", "--shared", str(main.top), str(place / "borrows"))
    return World(place / "borrows")


def shallow(place: Path) -> World:
    main = make_world(place / "main", ledger=False)
    main.commit("src/app.py", "second\n")
    main.git("clone", "-q", "--depth=1", f"file://{main.top}", str(place / "shallow"))
    return World(place / "shallow")


def odd_place(place: Path) -> World:
    return make_world(place / "mein Ordner/プロジェクト 'x' \"y\" $z", ledger=False)


def newline_in_the_place(place: Path) -> World:
    return make_world(place / "a\nb", ledger=False)


def not_utf8(place: Path) -> World:
    return make_world(Path(os.fsdecode(os.fsencode(place) + b"/\xff\xfe")), ledger=False)


def behind_a_symlink(place: Path) -> World:
    make_world(place / "real", ledger=False)
    (place / "link").symlink_to("real")
    return World(place / "link")


def detached(place: Path) -> World:
    world = make_world(place / "repo", ledger=False)
    world.git("checkout", "-q", "--detach")
    return world


def hooks_that_refuse(place: Path) -> World:
    """Hooks of the project are not asked about gitcoord's own swaps."""
    world = make_world(place / "repo", ledger=False)
    (world.git_dir / "hooks").mkdir(exist_ok=True)
    hook = world.git_dir / "hooks/reference-transaction"
    hook.write_text("#!/bin/sh\nwhile read -r old new ref; do case $ref in refs/heads/gitcoord) exit 1;; esac; done\n")
    hook.chmod(0o755)
    return world


def reflogs_always(place: Path) -> World:
    world = make_world(place / "repo", ledger=False)
    world.git("config", "core.logAllRefUpdates", "always")
    return world


PLACES = [
    usual, worktree, bare, sha256, pytest.param(reftable, marks=pytest.mark.newer_git), subdirectory, git_dir_is_set, git_dir_is_elsewhere, submodule, shared, alternates,
    shallow, odd_place, newline_in_the_place, not_utf8, behind_a_symlink, detached, hooks_that_refuse, reflogs_always,
]  # fmt: skip


def _path(world: World) -> str:
    """src/app.py as one writes it where one stands."""
    return os.path.relpath(world.top / "src/app.py", world.cwd) if world.cwd.is_relative_to(world.top) else "src/app.py"


@pytest.mark.parametrize("packed", [False, True], ids=["", "packed"])
@pytest.mark.parametrize("make", PLACES, ids=lambda make: make.__name__)
def test_the_whole_story(make: Callable[[Path], World], packed: bool, tmp_path: Path) -> None:
    world = make(tmp_path)
    if packed and make is reftable:
        pytest.skip("reftable has no packed-refs")
    if packed and not SOAK and make not in (worktree, bare, sha256):
        pytest.skip("only in a soak run")

    def tidy() -> None:
        if packed:
            world.git("-c", "core.hooksPath=/dev/null", "pack-refs", "--all")

    path = _path(world)
    assert world.drive("init").code == 0
    tidy()
    taken = world.claim(path, "--json", agent="alice")
    assert taken.code == 0, taken
    assert taken.json["claims"][0]["path"] == "src/app.py"
    tidy()
    refused = world.claim(path, "--json", agent="bob")
    assert refused.code == 1 and refused.json["held"][0]["agent"] == "alice", refused
    assert world.claim("check", path, agent="alice").code == 0
    assert world.claim("check", path, agent="bob").code == 1
    listed = world.claim("list", "--json", agent="bob").json["claims"]
    assert [(c["path"], c["agent"]) for c in listed] == [("src/app.py", "alice")]
    assert "refs/claims/path/src/app.py/@alice" in world.refs()
    if make is not bare:
        work = world.git("-C", str(world.top), "rev-parse", "--show-toplevel")
        assert work
        (world.top / "src/app.py").write_text("work\n")
        dirty = world.claim("release", path, agent="alice")
        assert dirty.code == 1, dirty
        world.git("-C", str(world.top), "commit", "-q", "-a", "-m", "work")
    released = world.claim("release", path, "--json", agent="alice")
    assert released.code == 0, released
    if make is not bare:
        assert released.json["released"][0]["commit"] == world.rev("HEAD"), released
    tidy()
    assert "refs/claims/path/src/app.py/@alice" not in world.refs()
    assert world.claim(path, agent="bob").code == 0
    tidy()
    assert world.person("kill", "bob").code == 0
    assert world.claim(path, agent="bob").code == 1
    assert world.claim(path, agent="carol").code == 0
    tidy()
    told = world.coord("fsck") if not packed else world.fsck()
    assert told.code == 0, told
    seqs = world.seqs()
    assert seqs == list(range(1, len(seqs) + 1))
    assert world.drive("init").code == 0


def test_work_trees_share_claims(tmp_path: Path) -> None:
    main = make_world(tmp_path / "main")
    main.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
    linked = World(tmp_path / "linked", git_dir=main.git_dir)
    assert linked.claim("src/app.py", agent="alice").code == 0
    assert main.claim("src/app.py", agent="bob").code == 1
    assert main.claim("check", "src/app.py", agent="bob").code == 1
    assert main.claim("docs", agent="bob").code == 0
    assert {c["path"] for c in linked.claim("list", "--json").json["claims"]} == {"src/app.py", "docs"}
    # The work is released from where it was done, and its commit is on that work tree's branch.
    head = linked.commit("src/app.py", "second\n")
    released = linked.claim("release", "src/app.py", "--json", agent="alice")
    assert released.code == 0 and released.json["released"][0]["commit"] == head, released
    main.assert_works()
    # A work tree that goes away takes nothing with it.
    assert linked.claim("src/app.py", agent="alice").code == 0
    main.git("worktree", "remove", "--force", str(linked.top))
    assert main.claim("src/app.py", agent="bob").code == 1
    main.assert_works("more")


def test_shared_repository_stays_open_to_the_group(tmp_path: Path) -> None:
    """The group can write every file that gitcoord writes."""
    world = shared(tmp_path)
    old = os.umask(0o077)
    try:
        assert world.drive("init").code == 0
        assert world.claim("src/app.py", agent="alice").code == 0
    finally:
        os.umask(old)
    own = ("COMMIT_EDITMSG", "index", "description")  # git's
    closed = []
    for path in world.git_dir.rglob("*"):
        mode, wanted = path.stat().st_mode, 0o040 if "objects" in path.parts and path.is_file() else 0o060
        for_the_owner = path == world.git_dir / "gitcoord/config"  # the copy of git's settings
        if path.name not in own and not for_the_owner and mode & wanted != wanted:
            closed.append(f"{path.relative_to(world.git_dir)} {mode & 0o777:o}")
    assert not closed, closed


def _as_nobody(world: World, argv: list[str], **env: str) -> subprocess.CompletedProcess[bytes]:
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *argv]
    return subprocess.run(
        words, cwd=world.top, env=world.env("mallory") | env, capture_output=True, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
@pytest.mark.parametrize(
    "words", [["src/app.py"], ["check", "src/app.py"], ["list"], ["release", "--all"]], ids=" ".join
)
def test_a_repository_of_another_owner_is_refused(own: World, words: list[str]) -> None:
    """git's own safe.directory check holds for gitcoord too: such a repository may name hooks and programs to run."""
    world = own
    for path in [world.top, *world.top.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)
    before = {path: path.stat().st_mtime_ns for path in world.git_dir.rglob("*")}
    done = world.claim(*words, agent="alice")
    assert done.code in (2, 4) and "safe.directory" in done.err, done
    assert done.out == ""
    done = world.coord("fsck")
    assert done.code in (2, 4) and "safe.directory" in done.err, done
    assert {path: path.stat().st_mtime_ns for path in world.git_dir.rglob("*")} == before
    # Trusted by name, as for git.
    world.environ = {"GIT_CONFIG_GLOBAL": str(world.top.parent / "config")}
    (world.top.parent / "config").write_text(f"[safe]\n\tdirectory = {world.top}\n")
    assert world.claim("check", "src/app.py", agent="alice").code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
@pytest.mark.parametrize("known", [False, True], ids=["new", "set up"])
def test_nothing_is_written_before_gits_own_check(tmp_path: Path, known: bool) -> None:
    """A `.git/gitcoord` that belongs to another user would stop the owner."""
    top = tmp_path / "repo"
    assert _git("init", "-q", "--template=", str(top)).returncode == 0
    world = World(top)
    world.commit("src/app.py", "app\n")
    if known:
        assert world.coord("init").code == 0
        shutil.rmtree(world.git_dir / "gitcoord")
    for path in [world.top, *world.top.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)
    before = {path: path.stat().st_ctime_ns for path in [world.git_dir, *world.git_dir.rglob("*")]}
    coord = ("init", "setup", "start", "stop", "commit -m x src/app.py", "install-hooks", "fsck --repair", "task next")
    words = [[*CLAIM, "src/app.py"], [*CLAIM, "release", "--all"], *([*COORD, *word.split()] for word in coord)]
    for argv in words:
        done = world.run(argv, agent="alice")
        assert done.code in (2, 4) and "safe.directory" in done.err, (argv[4:], done)
        assert "\\n" not in done.said, "git's words are no escapes"
        now = {path: path.stat().st_ctime_ns for path in [world.git_dir, *world.git_dir.rglob("*")]}
        assert now == before, argv[4:]


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can act as another user")
def test_a_repository_that_one_may_only_read() -> None:
    """Another user who trusts the repository may read, and gets an error for writing."""
    with tempfile.TemporaryDirectory(
        prefix="gitcoord-read-only-"
    ) as place:  # pytest's own directory is closed to others
        Path(place).chmod(0o755)
        world = make_world(Path(place, "repo"))
        assert world.claim("src/app.py", agent="alice").code == 0
        _try_as_nobody(world)


def _try_as_nobody(world: World) -> None:
    settings = world.top.parent / "config"
    settings.write_text("[safe]\n\tdirectory = *\n")
    settings.chmod(0o644)
    if _as_nobody(world, [*CLAIM, "list"], GIT_CONFIG_GLOBAL=str(settings)).returncode == 126:
        pytest.skip("the interpreter is not readable for another user")
    probe = _as_nobody(world, [CLAIM[0], "-c", "import gitcoord"], GIT_CONFIG_GLOBAL=str(settings))
    if probe.returncode:
        pytest.skip("the interpreter or the sources are not readable for another user")
    before = world.refs()
    for argv, code in (
        ([*CLAIM, "check", "src/app.py"], 1), ([*CLAIM, "list"], 0), ([*CLAIM, "src/app.py"], 4), ([*CLAIM, "other"], 4),
        ([*COORD, "status"], 0), ([*COORD, "fsck"], 0),
    ):  # fmt: skip
        done = _as_nobody(world, argv, GIT_CONFIG_GLOBAL=str(settings))
        assert b"Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, (argv[-2:], done)
        if code == 4:
            assert b"ermission denied" in done.stderr, done.stderr
    assert world.refs() == before


def test_a_path_with_a_line_end_in_it(tmp_path: Path) -> None:
    top = tmp_path / "a\nb"
    assert _git("init", "-q", "--template=", str(top)).returncode == 0
    world = World(top)
    world.commit("src/app.py", "app\n")
    for words in (["init"], ["install-hooks"], ["status"], ["fsck"], ["worktree", "add", "t"], ["worktree", "list"]):
        done = world.coord(*words, agent="alice")
        assert done.code == 0, (words, done)
    assert (world.git_dir / "hooks" / ("gitcoord-pre-commit" if is_newer(VERSION) else "pre-commit")).exists()
    assert world.claim(str(top / "src/app.py"), agent="alice").code == 0
    world.cwd = world.git_dir  # git itself is asked which repository it is
    assert "src/app.py" in world.claim("list").out
    world.cwd = top
    world.environ = {"GIT_DIR": str(world.git_dir), "GIT_WORK_TREE": str(top)}
    assert "src/app.py" in world.claim("list").out
    assert world.claim("release", "src/app.py", agent="alice").code == 0
    world.environ = {}
    done = world.coord("server", "install", ".", agent="alice")
    assert done.code == 0 and (world.git_dir / "hooks/pre-receive").exists(), done


def test_outside_of_any_repository(tmp_path: Path) -> None:
    world = World(tmp_path)
    for words in (["x"], ["list"], ["check", "x"]):
        done = world.claim(*words)
        assert done.code == 2 and "not a git repository" in done.err, done


def test_inside_the_git_directory(world: World) -> None:
    """There is no work tree: the answer is clear, and the ledger is the same."""
    world.cwd = world.git_dir
    assert world.claim("list").code == 0
    assert world.claim("src/app.py", agent="bob").code in (1, 2)
    assert world.rev(LEDGER)


def test_an_unborn_branch(tmp_path: Path) -> None:
    """A repository without a commit can be coordinated from the first file on."""
    top = tmp_path / "repo"
    assert _git("init", "-q", "--template=", str(top)).returncode == 0
    world = World(top)
    assert world.coord("init").code == 0
    assert world.claim("first.txt", agent="alice").code == 0
    assert world.claim("first.txt", agent="bob").code == 1
    head = world.commit("first.txt", "hello\n")
    released = world.claim("release", "first.txt", "--json", agent="alice")
    assert released.code == 0 and released.json["released"][0]["commit"] == head, released
    world.assert_works()

"""Hermetic tests: no settings, identity, agent or home of the user who runs them is used, and none is changed.

The environment is set before any test module is imported, because libgit2 reads HOME once, when it is loaded.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.newer_git import VERSION, need_newer_git

if TYPE_CHECKING:
    from tests.cli.support import World

_KEPT = (
    "GITCOORD_SOAK", "GITCOORD_SOAK_OUT", "GITCOORD_SEED", "GITCOORD_REQUIRE_GIT", "GITCOORD_REQUIRE_SERVERS",
    "GITCOORD_TOOLS", "GITCOORD_TOOLS_PREFIX", "GITCOORD_TOOLS_RECORD", "GITCOORD_REQUIRE_BROWSER", "GITCOORD_SCREENSHOTS",
)  # fmt: skip
_STRIPPED = ("GIT_", "GITCOORD_", "XDG_", "SSH_")
_AGENT_TOOLS = (
    "AIDER", "CLAUDE", "CODEX", "COPILOT", "CURSOR", "GEMINI", "OPENCODE", "WINDSURF",
)  # fmt: skip
_OTHERS = ("EMAIL", "EDITOR", "VISUAL", "PAGER", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS", "DEBUG")

_CONFIG = """[init]
\tdefaultBranch = main
[user]
\tname = Ada Tester
\temail = ada@example.com
[commit]
\tgpgSign = false
[gc]
\tauto = 0
"""

REAL_HOME = Path(os.environ.get("HOME", "/nonexistent")).resolve()
ROOT = Path(__file__).resolve().parent.parent
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

# Whoever starts the tests in the background may have SIGINT ignored, and every child would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run; `--hypothesis-profile=soak` looks further.
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=60)
settings.register_profile(
    "soak", deadline=None, max_examples=3000, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("quick")


class _Guard:
    """Notes every file below the real home that a test opens for writing, and refuses it."""

    def __init__(self) -> None:
        self.active = False
        self.touched: list[str] = []
        self.allowed = [ROOT, Path(tempfile.gettempdir()).resolve(), Path(sys.prefix).resolve()]

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        if not self.active or event not in ("open", "os.mkdir", "os.rename", "os.remove", "os.symlink"):
            return
        if event == "open" and not (isinstance(args[2], int) and args[2] & _WRITING):
            return
        targets = {"os.rename": args[:2], "os.symlink": args[1:2]}.get(event, args[:1])
        for target in targets:
            if isinstance(target, (str, bytes)) and self._is_home(os.path.abspath(os.fsdecode(target))):
                self.touched.append(os.fsdecode(target))
                raise PermissionError(f"a test wrote to the real home: {os.fsdecode(target)}")

    def _is_home(self, path: str) -> bool:
        here = Path(path)
        return here.is_relative_to(REAL_HOME) and not any(here.is_relative_to(place) for place in self.allowed)


_guard = _Guard()
_place = ""


def _use_memory() -> None:
    """Tests make many small files: a file system in memory, if there is one with room that runs programs, halves their cost."""
    with suppress(OSError):
        found = os.statvfs("/dev/shm")
        if (
            found.f_bavail * found.f_frsize > 4 << 30
            and not found.f_flag & os.ST_NOEXEC
            and os.access("/dev/shm", os.W_OK)
        ):
            os.environ["TMPDIR"] = tempfile.tempdir = "/dev/shm"


def pytest_configure(config: pytest.Config) -> None:
    global _place
    gc.disable()  # until all tests are collected
    if "TMPDIR" not in os.environ:
        _use_memory()
    _place = tempfile.mkdtemp(prefix="gitcoord-tests-")
    for name in list(os.environ):
        if name not in _KEPT and (name.startswith(_STRIPPED + _AGENT_TOOLS) or name in _OTHERS):
            del os.environ[name]
    home, xdg = Path(_place, "home"), Path(_place, "xdg")
    home.mkdir(mode=0o500)
    Path(xdg, "git").mkdir(parents=True)
    Path(xdg, "git/config").write_text(_CONFIG)
    os.utime(Path(xdg, "git/config"), (0, 0))  # settings that have just changed are not cached
    # What a new repository gets from git, without its fourteen sample hooks, which every test would copy and remove.
    Path(_place, "template/info").mkdir(parents=True)
    Path(_place, "template/hooks").mkdir()
    Path(_place, "template/info/exclude").write_text("# none\n")
    date = "2030-01-02T03:04:05+0000"
    os.environ |= {
        "HOME": str(home), "XDG_CONFIG_HOME": str(xdg), "XDG_DATA_HOME": f"{_place}/data", "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada Tester", "GIT_AUTHOR_EMAIL": "ada@example.com", "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_NAME": "Ada Tester", "GIT_COMMITTER_EMAIL": "ada@example.com", "GIT_COMMITTER_DATE": date,
        "GIT_TEMPLATE_DIR": f"{_place}/template", "GIT_TERMINAL_PROMPT": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    sys.addaudithook(_guard)


_GIT_MARKS = ("newer_git", "both_gits")


@cache
def _names_git_mark(path: Path) -> bool:
    """Whether tests of this file may have one of these marks, also by a parameter that brings it."""
    text = path.read_text()
    return any(word in text for word in (*_GIT_MARKS, "WAYS", "REFTABLE"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read only files with a test of this run, in the run with a newer git, where those are few."""
    if config.getoption("markexpr") != " or ".join(_GIT_MARKS) or not collection_path.match("test_*.py"):
        return None
    return not _names_git_mark(collection_path) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow tests first, so that the last one does not run alone."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    for item in items:
        if any(item.get_closest_marker(mark) for mark in _GIT_MARKS):
            assert _names_git_mark(item.path), f"{item.path} is not found in the run with a newer git"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Imported modules and collected tests stay to the end: the garbage collector need not look at them again and again."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _place:
        shutil.rmtree(_place, ignore_errors=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("newer_git"):
        need_newer_git(VERSION, os.environ)


@pytest.fixture(autouse=True)
def _leave_home_alone() -> Iterator[None]:
    """Writing to the real home is an error at once; leaving something in the tests' home is one at the end."""
    _guard.touched.clear()
    _guard.active = True
    yield
    _guard.active = False
    assert not _guard.touched, f"the real home was written to: {_guard.touched}"
    left = os.listdir(Path(_place, "home"))
    assert not left, f"something was left in $HOME: {left}"


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory with a short name, for paths that have a limit."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture
def git_repo(directory: Path) -> Path:
    """A repository without a commit."""
    from tests.support import copy_template, empty_repository

    copy_template(directory, empty_repository)
    return directory


@pytest.fixture
def plain(directory: Path) -> World:
    """A work tree with two committed files, in which gitcoord was never set up."""
    from tests.cli.support import World  # not before HOME is set

    return World(directory)


@pytest.fixture
def world(directory: Path) -> World:
    """The same with a ledger."""
    from tests.cli.support import World

    return World(directory, ledger=True)

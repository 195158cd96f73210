"""The git processes of this machine that may hold a lock on this repository's refs. They are searched only after a crash.

In doubt a process counts as one: then its lock is waited for, not removed.
"""

from __future__ import annotations

from gitcoord.git.files import list_files, read_file, readlink, same_file
from gitcoord.git.host import own_namespace
from gitcoord.git.repo import common_of, follow, is_git_dir

OWN = "gitcoord.noted=true"  # marks the git processes of gitcoord: `owners` has notes about these
_INITIAL = "pid:[4026531836]"  # the namespace in which all processes can be seen: a constant of Linux
# Commands that move no refs and may run for hours: gitcoord itself, servers, pagers.
_HARMLESS = frozenset((
    "blame", "cat-file", "check-attr", "claim", "coord", "credential", "credential-cache", "credential-cache--daemon", "daemon", "diff",
    "fsmonitor--daemon", "grep", "handoff", "help", "http-backend", "log", "ls-files", "ls-remote", "rev-list", "show", "upload-archive",
    "upload-pack",
))  # fmt: skip
_WITH_VALUE = ("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix")
_POINTERS = ("GIT_DIR=", "GIT_COMMON_DIR=", "--git-dir=")
_MOST = 1 << 20


def running_gits(common: str) -> dict[str, str] | None:
    """Number and start of each such process, with its command in short; None where not all processes can be seen."""
    if own_namespace() != _INITIAL or not read_file("/proc/1/stat"):
        return None
    found = {}
    for pid in list_files("/proc"):
        stat = read_file(f"/proc/{pid}/stat") if pid.isdecimal() else b""
        name, _, rest = stat.partition(b"(")[2].rpartition(b") ")
        words = rest.split()
        if len(words) < 20 or words[0] in (b"Z", b"X"):
            continue
        command = _strings(f"/proc/{pid}/cmdline")
        subcommand = _subcommand(name.decode("utf-8", "replace"), _link(f"/proc/{pid}/exe"), command)
        if subcommand is None or subcommand in _HARMLESS or OWN in command or _is_elsewhere(pid, command, common):
            continue
        found[f"{pid}.{words[19].decode()}"] = " ".join(command)[:60] or f"git {subcommand}"
    return found


def _strings(path: str) -> list[str]:
    return read_file(path, _MOST).decode("utf-8", "surrogateescape").split("\0")[:-1]


def _link(path: str) -> str:
    """The target of a link in /proc; '' where it may not be read."""
    try:
        return readlink(path)
    except OSError:
        return ""


def _subcommand(name: str, program: str, command: list[str]) -> str | None:
    """The git subcommand of a process: '' where it is unknown; None for a process that is no git.

    A git may have another name: that of a link to it, of a wrapper, or of the loader that runs it.
    """
    called = [word.rpartition("/")[2] for word in (program, *command[:2])]
    if called[0].startswith("ld-") and "git" in called[-1]:
        return ""
    if "git" not in name and "git" not in called[0]:
        return None
    if name != "git" and called[0] != "git":  # a program of its own; the name is cut at 15 letters
        whole = called[1] if len(called) > 1 and called[1].startswith(name) else name
        return whole.removeprefix("git-")
    words = iter(command[1:])
    for word in words:
        if word in _WITH_VALUE:
            next(words, "")
        elif not word.startswith("-"):
            return word
    return ""


def _is_elsewhere(pid: str, command: list[str], common: str) -> bool:
    """Return whether it certainly works in another repository. git runs at the top of the work tree or in .git."""
    environ, place = _strings(f"/proc/{pid}/environ"), _link(f"/proc/{pid}/cwd")
    if not environ or not place or place.endswith(" (deleted)") or "--git-dir" in command:
        return False
    if _link(f"/proc/{pid}/ns/mnt") != _link("/proc/self/ns/mnt") or _link(f"/proc/{pid}/root") != "/":
        return False  # paths mean other files there
    pointers = [word.partition("=")[2] for word in (*environ, *command) if word.startswith(_POINTERS)]
    if pointers:
        # A relative one counts from where the process was started, which is not known.
        return all(
            path.startswith("/") and is_git_dir(path) and not same_file(common_of(path), common) for path in pointers
        )
    while place:
        dot_git = f"{place}/.git"
        git_dir = place if is_git_dir(place) else dot_git if is_git_dir(dot_git) else follow(dot_git, place)
        if git_dir is not None:
            return not same_file(common_of(git_dir), common)
        place = place.rpartition("/")[0]
    return False

"""The git processes of this machine that may hold a lock on this repository's refs. Looked for only after a crash."""

import posix

from gitcoord.store.files import list_files, read_file, same_file
from gitcoord.store.process import own_namespace
from gitcoord.store.repo import common_of, follow, is_git_dir

# Of gitcoord's own gits the notes tell (see `locks`): many have started and wait for their turn.
OWN = "hook.gitcoord-reference-transaction.enabled=false"
_INITIAL = "pid:[4026531836]"  # the namespace in which all processes can be seen: a constant of Linux
# They move no refs, and may run for hours: gitcoord itself, servers, what others keep open, what waits in a pager.
_HARMLESS = frozenset((
    "blame", "cat-file", "check-attr", "claim", "coord", "credential", "credential-cache", "credential-cache--daemon", "daemon", "diff",
    "fsmonitor--daemon", "grep", "handoff", "help", "http-backend", "log", "ls-files", "ls-remote", "rev-list", "show", "upload-archive",
    "upload-pack",
))  # fmt: skip
_WITH_VALUE = ("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix")
_POINTERS = ("GIT_DIR=", "GIT_COMMON_DIR=", "--git-dir=")
_MOST = 1 << 20


def running_gits(common: str) -> "dict[str, str] | None":
    """Number and start of each such process, with its command in short; None where not all processes can be seen."""
    if own_namespace() != _INITIAL or not read_file("/proc/1/stat"):
        return None
    found = {}
    for pid in list_files("/proc"):
        stat = read_file(f"/proc/{pid}/stat") if pid.isdecimal() else b""
        name, _, rest = stat.partition(b"(")[2].rpartition(b") ")
        words = rest.split()
        if not name.startswith(b"git") or len(words) < 20 or words[0] in (b"Z", b"X"):
            continue
        command = _strings(f"/proc/{pid}/cmdline")
        subcommand = _subcommand(name.decode("utf-8", "replace"), command)
        if OWN not in command and subcommand not in _HARMLESS and not _is_elsewhere(pid, command, common):
            found[f"{pid}.{words[19].decode()}"] = " ".join(command)[:60] or f"git {subcommand}"
    return found


def _strings(path: str) -> "list[str]":
    return read_file(path, _MOST).decode("utf-8", "surrogateescape").split("\0")[:-1]


def _subcommand(name: str, command: "list[str]") -> str:
    """What this git does: '' where that cannot be told."""
    if name != "git":  # cut at 15 letters
        whole = command[0].rpartition("/")[2] if command else ""
        return (whole if whole.startswith(name) else name).removeprefix("git-")
    words = iter(command[1:])
    for word in words:
        if word in _WITH_VALUE:
            next(words, "")
        elif not word.startswith("-"):
            return word
    return ""


def _is_elsewhere(pid: str, command: "list[str]", common: str) -> bool:
    """Does it work in another repository, for certain? git goes to the top of the work tree, or stays in the git directory."""
    environ = _strings(f"/proc/{pid}/environ")
    try:
        place = posix.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return False
    if not environ or "--git-dir" in command:
        return False
    pointers = [word.partition("=")[2] for word in (*environ, *command) if word.startswith(_POINTERS)]
    if pointers:
        paths = [path if path.startswith("/") else f"{place}/{path}" for path in pointers]
        return all(is_git_dir(path) and not same_file(common_of(path), common) for path in paths)
    while place:
        dot_git = f"{place}/.git"
        git_dir = place if is_git_dir(place) else dot_git if is_git_dir(dot_git) else follow(dot_git, place)
        if git_dir is not None:
            return not same_file(common_of(git_dir), common)
        place = place.rpartition("/")[0]
    return False

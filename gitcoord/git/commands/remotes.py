"""Commands about remotes: their addresses, listing, fetching and pushing. Each has a deadline."""

from __future__ import annotations

from zlib import crc32

from gitcoord.git.commands.settings import get_setting
from gitcoord.git.long_process import finish_bounded, run_all_bounded, run_bounded
from gitcoord.git.process import GIT, ORIGINAL, UNHOOKED, Answer, Child, Env, has_terminal, run, without_grafts
from gitcoord.startup.annotations import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.deadline import Deadline
    from gitcoord.git.locks.owners import LockNotes

# gitcoord's own transfers run no hooks here: what they carry was judged before.
_TRANSFER = (
    *UNHOOKED, "-c", "hook.gitcoord-pre-push.enabled=false", "-c", "push.useForceIfIncludes=false",
)  # fmt: skip


def list_remotes(env: Env) -> Answer:
    return run([*GIT, "remote"], env)


def remote_url(env: Env, name: str) -> Answer:
    return run([*GIT, "remote", "get-url", "--", name], env)


def ssh_settings(env: Env, host: str) -> Answer:
    """The settings of ssh for a host, without connecting to it; in lower case, a line each."""
    return run(["ssh", "-G", "--", host], env)


def ssh_host(url: str) -> str:
    """The host of a URL that git reaches by ssh; '' for any other."""
    if not url.startswith("ssh://") and not ("@" in url.partition(":")[0] and "://" not in url):
        return ""
    host = url.removeprefix("ssh://").partition("/")[0].partition(":")[0]
    return "" if host.startswith("-") else host


_LONGEST_SOCKET = 85  # systems allow 103 characters, and ssh makes it under a name that is longer by 17
_SHARED = (
    "-o ControlMaster=auto -o ControlPersist=20 -o ServerAliveInterval=5 -o ServerAliveCountMax=2 -o ControlPath='{}'"
)


def share_connection(env: Env, name: str, directory: str) -> bool:
    """Let all children of git with this environment reach the remote through one connection of ssh, which ends by itself after 20
    seconds without use. False: it is not reached by ssh, or the settings of ssh say otherwise."""
    url = remote_url(env, name).text
    host = ssh_host(url)
    command = env.get(b"GIT_SSH_COMMAND", b"") or get_setting(env, "core.sshCommand").out.strip()
    # Another command may log in as somebody else, and has a connection of its own.
    socket = f"{directory}/ssh-{crc32(url.encode() + command):08x}"
    if not host or (b"GIT_SSH" in env and not command) or len(socket) > _LONGEST_SOCKET or set(socket) & set("'%"):
        return False
    ssh = (command or b"ssh").decode("utf-8", "surrogateescape")
    said = run(["sh", "-c", f'{ssh} -G -- "$1"', "sh", host], env).lines
    if "controlmaster false" not in said or any(line.startswith("controlpath /") for line in said):
        return False
    env[b"GIT_SSH_COMMAND"] = f"{ssh} {_SHARED.format(socket)}".encode("utf-8", "surrogateescape")
    return True


def push_urls(env: Env, name: str) -> Answer:
    return run([*GIT, "remote", "get-url", "--push", "--all", "--", name], env)


# --- for the user: with what git asks at the terminal, and with hooks ---------------------------------------------------


def ls_remote(env: Env, deadline: Deadline, name: str, *refs: str) -> Answer:
    """The remote's refs in lines: id, a tab, name."""
    return run_bounded([*GIT, "ls-remote", "--", name, *refs], env, deadline)


def fetch_ref(env: Env, deadline: Deadline, notes: LockNotes, name: str, refspec: str) -> Answer:
    """Fetch into a ref of gitcoord's own, which its hook would refuse."""
    argv = [*UNHOOKED, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", name, refspec]
    return run_bounded(argv, env, deadline, notes=notes)


def push_large_files(env: Env, name: str, ref: str, tip: str) -> Answer:
    """Send the objects of LFS that this commit refers to and the remote lacks, as the pre-push hook of LFS does."""
    line = f"{ref} {tip} {ref} {'0' * len(tip)}\n".encode("utf-8", "surrogateescape")
    return run([*GIT, "lfs", "pre-push", name], env, line, shares_terminal=has_terminal())


# --- during a check: without password prompts --------------------------------------------------------------------------


def look_at_ref(env: Env, deadline: Deadline, notes: LockNotes, name: str, ref: str) -> Answer:
    return _ask_silently(env, deadline, notes, ["ls-remote", "--quiet", "--", name, ref])


def look_at_remotes(env: Env, names: list[str], seconds: float, *refs: str) -> list[Answer]:
    """`ls-remote` of several remotes at once, each within so many seconds."""
    quiet = {**env, b"GIT_TERMINAL_PROMPT": b"0"}
    return run_all_bounded([[*GIT, "ls-remote", "--quiet", "--", name, *refs] for name in names], quiet, seconds)


_FETCH_BRANCH = [
    "fetch", "--quiet", "--refmap=", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance", "--no-write-fetch-head", "--",
]  # fmt: skip


def fetch_branch(env: Env, deadline: Deadline, notes: LockNotes, name: str, refspec: str) -> Answer:
    """Fetch this branch only, whatever the settings say."""
    return _ask_silently(env, deadline, notes, [*_FETCH_BRANCH, name, refspec])


def _ask_silently(env: Env, deadline: Deadline, notes: LockNotes, words: list[str]) -> Answer:
    argv = [*ORIGINAL, *words]
    return run_bounded(argv, without_grafts(env), deadline, shares_terminal=False, notes=notes)


# --- gitcoord's own transfers ----------------------------------------------------------------------------------------


def look_at_own_refs(env: Env, deadline: Deadline, name: str, *refs: str) -> Answer:
    """These refs at the remote, in lines: id, a tab, name."""
    return run_bounded([*_TRANSFER, "ls-remote", "--quiet", "--", name, *refs], env, deadline)


def fetch_own(env: Env, deadline: Deadline, notes: LockNotes | None, name: str, refspecs: Iterable[str]) -> Answer:
    """Fetch all of these refs or none; refs that are gone there are deleted here."""
    argv = [*_TRANSFER, "fetch", "--quiet", "--atomic", "--prune", "--no-tags", "--no-write-fetch-head", "--no-auto-gc"]
    argv += ["--no-auto-maintenance", "--no-recurse-submodules", "--update-head-ok", "--", name, *refspecs]
    return finish_bounded(_start_transfer(argv, env, notes), deadline)


def push_own(
    env: Env,
    deadline: Deadline,
    notes: LockNotes | None,
    name: str,
    moves: Iterable[tuple[str, str, str]],
    *,
    atomic: bool,
    options: Iterable[str],
) -> Answer:
    """Push these moves in one transaction: each ref of the remote, its expected id, its new one; '' for none."""
    rows = list(moves)
    argv = [*_TRANSFER, "push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags"]
    argv += ["--recurse-submodules=no", *(["--atomic"] if atomic else [])]
    argv += [f"--push-option={option}" for option in options]
    argv += [f"--force-with-lease={ref}:{expected}" for ref, expected, _ in rows]
    argv += ["--", name, *(f"{new}:{ref}" for ref, _, new in rows)]
    return finish_bounded(_start_transfer(argv, env, notes), deadline, sends=True)


def _start_transfer(argv: list[str], env: Env, notes: LockNotes | None) -> Child:
    """Start a transfer. git locks refs of this clone too: when it fetches, and when it records a push."""
    # Without a terminal there are no prompts. Then git, and the server process of a local repository, are in a group of
    # their own: killing the group of a command lets them end in order.
    shares = has_terminal()
    if notes is None:
        return Child(argv, env, shares_terminal=shares)
    return notes.start(argv, env, shares_terminal=shares)

"""`git coord repositories`: where gitcoord's hooks are on this machine, for a person who uninstalls it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from gitcoord.base.names import printable
from gitcoord.gates.hooks.cli import registry
from gitcoord.gates.hooks.files import look
from gitcoord.gates.hooks.managers import CALLED, EVENTS
from gitcoord.gates.hooks.text import is_ours
from gitcoord.git.commands.refs import common_dir
from gitcoord.git.commands.settings import unset_in_file
from gitcoord.git.process import clean_environ
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values

_CLIENT = [f"{place}{event}" for event in EVENTS for place in ("hooks/", "hooks/gitcoord-", f"{CALLED}/")]
_SERVER = ["hooks/pre-receive", "hooks/pre-receive.d/gitcoord"]
# What joining a remote's ledger added to its `fetch`; install.sh has the same.
_FETCHED = r"^[+]refs/(heads/gitcoord(-sessions/[*])?|gitcoord/sessions/[*]|claims/[*]):"
_SHOWN = 5


class Repository(NamedTuple):
    """A repository that was set up on this machine: its common directory, and the hooks of gitcoord that are there."""

    path: str
    hooks: bool
    server: bool


def repositories(call: Call, values: Values, words: list[str]) -> int:
    """Show the repositories with hooks of gitcoord; with --uninstall-hooks take these away, where a person may."""
    noted = _noted(call)
    found = known(noted)
    removed: list[str] = []
    if values.get("uninstall-hooks"):
        for each in found:
            if each.hooks and _take_out(call, each.path):
                removed.append(each.path)
        found = known(noted)
        for path in set(noted) - {each.path for each in found if each.hooks}:
            # Once the ledger is deleted at the remote, every fetch would fail for its name, and no gitcoord is left to help.
            unset_in_file(call.environ, r"^remote\..*\.fetch$", _FETCHED, file=f"{path}/config")
    rows = [each._asdict() for each in found]
    gone = [path for path in noted if not Path(path).exists()]
    call.screen.answer(
        {"repositories": rows, "removed": removed, "gone": gone},
        ok=not (values.get("uninstall-hooks") and any(found)),
    )
    for each in found:
        what = " and ".join(["hooks"] * each.hooks + ["the server's gate"] * each.server)
        call.screen.say(f"{printable(each.path)}: {what}")
    if gone:
        more = f" and {len(gone) - _SHOWN} more" if len(gone) > _SHOWN else ""
        call.screen.note(f"note: not there any more: {printable(', '.join(gone[:_SHOWN]))}{more}")
        call.screen.hint("where one was moved to, its hooks are still in it; run this there too")
    if not found:
        call.screen.say("no repository on this machine has hooks of gitcoord")
        return 0
    for each in found:
        if each.server:
            call.screen.hint(f"take the gate away: git coord server uninstall {printable(each.path)}")
    if any(each.hooks for each in found) and not values.get("uninstall-hooks"):
        call.screen.hint("before you uninstall gitcoord: git coord repositories --uninstall-hooks")
    return 1 if values.get("uninstall-hooks") else 0


def known(noted: list[str]) -> list[Repository]:
    """The repositories, of those that were noted, that still have hooks."""
    rows = []
    for path in noted:
        server = _has(path, _SERVER)
        # A server's reference-transaction is none of the client's hooks.
        client = [name for name in _CLIENT if not server or not name.endswith("reference-transaction")]
        rows.append(Repository(path, _has(path, client), server))
    return [row for row in rows if row.hooks or row.server]


def _noted(call: Call) -> list[str]:
    """The repositories that were noted by setup and hooks, and the one in which this runs, if that has hooks."""
    try:
        lines = Path(registry()).read_bytes().split(b"\n")
    except OSError:
        lines = []
    noted = [os.fsdecode(line) for line in lines if line]
    here = common_dir(clean_environ(call.environ)).text
    return list(dict.fromkeys([*noted, *(each.path for each in known([here] if here else []))]))


def _has(path: str, names: list[str]) -> bool:
    try:
        return any(is_ours(look(f"{path}/{name}") or b"") for name in names)
    except OSError:
        return False  # another user's


def _take_out(call: Call, path: str) -> bool:
    """Run `git coord uninstall-hooks` there: in its work tree, where a hook manager has its files."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = [sys.executable, "-I", "-m", "gitcoord.cli", "coord", "uninstall-hooks"]
    done = subprocess.run(
        command, cwd=path.removesuffix("/.git"), env=environ, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        call.screen.note(f"note: the hooks stay in {printable(path)}: {printable('; '.join(done.stderr.splitlines()))}")
    else:
        call.screen.say(f"took the hooks out of {printable(path)}")
        call.screen.note(*(line for line in done.stderr.splitlines() if "not committed" in line))
    return not done.returncode

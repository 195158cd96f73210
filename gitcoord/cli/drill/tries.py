"""The ways in: attempts to change a file that another agent holds, or a shared one without a claim. Each must be refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from gitcoord.audit.model import UNKNOWN as NOT_JUDGED
from gitcoord.audit.trees import Tree
from gitcoord.base.names import shell_word
from gitcoord.cli.drill.ground import HOLDER, UNHOOKED, Done, Ground
from gitcoord.cli.drill.model import CAUGHT, MISSED, UNKNOWN, Try
from gitcoord.cli.drill.tools import Action, is_denied
from gitcoord.guard.setup.known import Known

_SETUP = "git coord setup"
_WAIT = "1s"  # for the holder of what would land


class Way(NamedTuple):
    """One way in, at one place. `attempt` takes the agent's name."""

    name: str
    where: str
    help: str
    attempt: Callable[[str], Done]
    because: str = HOLDER  # a refusal for another reason says nothing about this one
    refused: Callable[[Done], bool] = lambda done: done.code != 0

    def tried(self, agent: str) -> Try:
        done = self.attempt(agent)
        if done.code < 0:
            return Try(self.name, self.where, UNKNOWN, "the time was over")
        if not self.refused(done):
            return Try(self.name, self.where, MISSED, "", self.help)
        if self.because.encode() not in done.out + done.err:
            return Try(self.name, self.where, UNKNOWN, f"refused for another reason: {done.words}")
        return Try(self.name, self.where, CAUGHT)


def all_ways(ground: Ground) -> list[Way]:
    """Every way in that this repository has; those that are known to be open without trying are in `known_gaps`."""
    found = [
        Way(
            "claim of a held path",
            "ledger",
            "git coord fsck",
            lambda agent: ground.git("claim", ground.paths.held, agent=agent),
        )
    ]
    for number, tree in enumerate(ground.mirror.trees):
        found += _of_git(ground, tree, main=number == 0)
        found += [way for known, hooked in tree.tools if hooked for way in _of_tool(ground, tree, known)]
    found.append(Way("landing of a held file", "trunk", "git coord fsck", lambda agent: _land(ground, agent)))
    if find_spec("mcp") is not None:
        found.append(Way("claim through MCP", "ledger", "git coord fsck", lambda agent: _mcp(ground, agent)))
    if ground.mirror.server:
        found.append(
            Way(
                "push past the client's hooks",
                "server",
                "on the server: git coord server install <repository>",
                lambda agent: _push(ground, agent),
            )
        )
    return found


def known_gaps(ground: Ground) -> Iterator[Try]:
    """Ways that are open, and those that cannot be judged from here."""
    mirror = ground.mirror
    if not ground.paths.marked:
        words = "the policy marks no file, so agents that do not claim overwrite each other"
        yield Try("commit of a shared file without a claim", "policy", MISSED, words, "git coord policy suggest")
    for tree in mirror.trees:
        for known, hooked in tree.tools:
            if not hooked:
                words = "its settings do not ask the guard"
                yield Try(f"write by {known.title}", tree.name, MISSED, words, f"{_SETUP} --tool {known.name}")
    for row in mirror.unguarded:
        words = f"it does not run its guard: {row['needs']}"
        yield Try(f"write by {row['tool']}", f"agent {row['agent']}", MISSED, words, "git coord doctor")
    if mirror.server == NOT_JUDGED:
        yield Try(
            "push past the client's hooks", "server", UNKNOWN, f"{mirror.server_words}; the copy's server has the gate"
        )


# --- git


def _of_git(ground: Ground, tree: Tree, *, main: bool) -> Iterator[Way]:
    lock, top, help = (
        ground.tree_locks[tree.name],
        ground.tree(tree.name),
        f"git -C {shell_word(tree.top)} coord doctor",
    )

    def commit(path: str) -> Callable[[str], Done]:
        def attempt(agent: str) -> Done:
            with ground.trunk_lock if main else lock:
                old = ground.must("rev-parse", "HEAD", cwd=top)
                _append(top / path, agent)
                done = ground.git("commit", "-q", "-m", "drill", "--", path, cwd=top, agent=agent)
                ground.must(*UNHOOKED, "reset", "-q", "--hard", old, cwd=top)
                return done

        return attempt

    yield Way("commit of a held file", tree.name, help, commit(ground.paths.held))
    if ground.paths.marked and (main or not ground.paths.only_landing):
        yield Way("commit of a shared file without a claim", tree.name, help, commit(ground.paths.marked), "unclaimed")
    if main:
        yield Way("merge onto trunk", tree.name, help, lambda agent: _merge(ground, top, agent))


def _append(file: Path, agent: str) -> None:
    with file.open("a") as stream:
        stream.write(f"{agent}\n")


def _stray(ground: Ground, top: Path, agent: str) -> str:
    """A commit on top of HEAD that changes the held file, made without any hook."""
    _append(top / ground.paths.held, agent)
    ground.must(*UNHOOKED, "commit", "-q", "--no-verify", "-m", "drill", "--", ground.paths.held, cwd=top)
    return ground.must("rev-parse", "HEAD", cwd=top)


def _merge(ground: Ground, top: Path, agent: str) -> Done:
    """A commit from elsewhere is merged onto trunk, where it is checked out."""
    with ground.trunk_lock:
        old = ground.must("rev-parse", "HEAD", cwd=top)
        ground.must(*UNHOOKED, "checkout", "-q", "--detach", cwd=top)
        stray = _stray(ground, top, agent)
        ground.must(*UNHOOKED, "checkout", "-q", ground.trunk, cwd=top)
        done = ground.git("merge", "-q", stray, cwd=top, agent=agent)
        ground.must(*UNHOOKED, "reset", "-q", "--hard", old, cwd=top)
        return done


def _land(ground: Ground, agent: str) -> Done:
    """A branch with a commit from elsewhere is brought onto trunk, which asks no hook of the work tree."""
    top = ground.tree(agent)
    ground.must(*UNHOOKED, "checkout", "-q", "-B", f"drill/{agent}", ground.trunk_ref, cwd=top)
    ground.must("sparse-checkout", "add", f"/{ground.paths.held}", cwd=top)
    _stray(ground, top, agent)
    with ground.trunk_lock:
        done = ground.git("coord", "land", "--wait", _WAIT, cwd=top, agent=agent)
    ground.must(*UNHOOKED, "reset", "-q", "--hard", ground.trunk_ref, cwd=top)
    return done


def _push(ground: Ground, agent: str) -> Done:
    """A clone without gitcoord pushes a change of the held file onto trunk."""
    outside = ground.home / "outside"
    with ground.trunk_lock:
        ground.must("fetch", "-q", "origin", cwd=outside)
        ground.must("sparse-checkout", "set", "--no-cone", f"/{ground.paths.held}", cwd=outside)
        ground.must("checkout", "-q", "--detach", f"origin/{ground.trunk}", cwd=outside)
        old = ground.must("rev-parse", "HEAD", cwd=outside)
        _stray(ground, outside, agent)
        done = ground.git("push", "-q", "origin", f"HEAD:refs/heads/{ground.trunk}", cwd=outside, agent=agent)
        if not done.code:
            ground.must("update-ref", f"refs/heads/{ground.trunk}", old, cwd=ground.server)
        return done


# --- tools


def _of_tool(ground: Ground, tree: Tree, known: Known) -> Iterator[Way]:
    top = ground.tree(tree.name)
    for shell in (False, True):
        action = Action(known.name, str(top), ground.paths.held, shell)

        def attempt(agent: str, action: Action = action) -> Done:
            return ground.run("sh", "-c", action.command(known), cwd=top, data=action.data(), agent=agent)

        name = f"{'shell command' if shell else 'write'} by {known.title}"
        yield Way(
            name,
            tree.name,
            f"{_SETUP} --tool {known.name}",
            attempt,
            HOLDER,
            lambda done: is_denied(done.code, done.out),
        )


def _mcp(ground: Ground, agent: str) -> Done:
    """A claim of the held path through the tools of MCP."""
    calls: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "drill", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "claim", "arguments": {"paths": [ground.paths.held]}}},
    ]  # fmt: skip
    data = "".join(json.dumps({"jsonrpc": "2.0", **call}) + "\n" for call in calls).encode()
    done = ground.run("git", "coord", "mcp", agent=agent, data=data, until=b'"id":2')
    answers = [json.loads(line) for line in done.out.splitlines() if line.startswith(b"{")]
    granted = any(row.get("id") == 2 and not row.get("result", {"isError": True}).get("isError") for row in answers)
    return done._replace(code=0 if granted else max(1, done.code) if done.code >= 0 else done.code)

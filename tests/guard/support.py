"""A project whose agents' tools are guarded: real repositories, and a process for each event."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cli.support import Done, World
from tests.guard.protocol import Said, Speaker, reason, understood
from tests.support import CLAIM, COORD, copy_template, run_command

GUARD = [*COORD, "guard"]
ATTRIBUTES = "shared/** gitcoord-claim\nsecret/** gitcoord-read=deny\nasked/** gitcoord-read=ask\n"
CONFIG = "[guard]\n\tautoclaim = true\n"


def _two_commits(place: Path, attributes: str, config: str, init: bool) -> None:
    files = {"shared/a": "a\n", "shared/b": "b\n", "free/x": "x\n", ".gitattributes": attributes}
    world = World(place / "project")
    world.commit({**files, **({".gitcoord/config": config} if config else {})})
    if init:
        world.init()


class Project:
    """One work tree with shared and free files, and those who speak through their tools in it."""

    def __init__(self, place: Path, *, attributes: str = ATTRIBUTES, config: str = CONFIG, init: bool = True) -> None:
        copy_template(place, _two_commits, attributes, config, init)
        self.top = place / "project"
        self.world = World(self.top, made=True)

    def speaker(
        self, conversation: str = "c1", tool: str = "claude", subagent: str = "", cwd: Path | None = None
    ) -> Speaker:
        return Speaker(tool, conversation, str(cwd or self.top), subagent)

    def send(
        self, event: Mapping[str, Any] | bytes, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Said:
        """The bytes with which the guard answers, in a process of its own."""
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        done = run_command(GUARD, cwd or self.top, {**os.environ, **(env or {})}, data)
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return Said(done.stdout, done.stderr, done.returncode)

    def write(self, who: Speaker, path: str) -> str:
        return understood(who.tool, self.send(who.write(path)))

    def denial(self, who: Speaker, path: str) -> str:
        """The words with which a write is denied."""
        said = self.send(who.write(path))
        assert understood(who.tool, said) == "deny", said
        return reason(who.tool, said)

    def claim(self, *words: str, agent: str) -> Done:
        done = self.world.run(CLAIM, words, agent)
        assert done.code == 0, done
        return done

    def held(self) -> dict[str, str]:
        """The holders, by path."""
        rows = self.world.claim("list", "--all", "--json", agent="actor_or_none").json["claims"]
        return {row["path"]: row["agent"] for row in rows}

"""A process that lives long and does one request after the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.races.support import Project

ROOT = Path(__file__).parents[3]

# Reads lines "<take|release> <path>" and does them; one process for all of them.
_PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from gitcoord.claims import service as claims
from gitcoord.claims.take import Take
from gitcoord.claims.model import Item
from gitcoord.ledger.sessions import Actor
from gitcoord.base.errors import GitcoordError
from gitcoord.world.open import environ, open_repository

ctx = open_repository(environ(), writing=True, long_lived=True)
actor = Actor({agent!r})
for line in sys.stdin:
    verb, path = line.split()
    try:
        items = (Item("path", path),)
        claims.take(ctx, Take(actor, items)) if verb == "take" else claims.release(ctx, actor, items)
        print("ok", flush=True)
    except GitcoordError as error:
        print(error.code, error.message.replace(chr(10), " "), flush=True)
"""


class LongLived:
    def __init__(self, machine: Project, agent: str, env: dict[str, str] | None = None) -> None:
        argv = [sys.executable, "-c", _PROGRAM.format(root=str(ROOT), agent=agent)]
        self.process = machine.start(*argv, env=env, stdin=subprocess.PIPE)

    def __enter__(self) -> LongLived:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, verb: str, path: str) -> str:
        self.say(verb, path)
        return self.hear()

    def say(self, verb: str, path: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{verb} {path}\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def with_pushes_noted(machine: Project) -> dict[str, str]:
    """A PATH on which each `git push` is noted."""
    shim = machine.place / "shim"
    shim.mkdir(exist_ok=True)
    real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True, check=True).stdout.strip()
    trace = f'case " $* " in *" push "*) echo push >>{machine.place}/pushes ;; esac'
    (shim / "git").write_text(f'#!/bin/sh\n{trace}\nexec {real} "$@"\n')
    (shim / "git").chmod(0o755)
    return {"PATH": f"{shim}:{machine.env['PATH']}"}


def pushes_by_git(machine: Project) -> int:
    log = machine.place / "pushes"
    return len(log.read_text().split()) if log.exists() else 0

"""An agent of the drill: reads a file, thinks, writes it back with a line more, and tells which lines it was allowed to write.

`python -m tests.guard.agent TOOL NAME TOP CYCLES on|off FILE...`. Before and after everything it asks the guard, in its tool's own
words, and does as it is told; `off`: as a tool without the guard's hooks, with a process that says nothing in the guard's place.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from tests.guard.protocol import Event, Said, Speaker, reason, understood
from tests.guard.support import GUARD
from tests.support import UNHOOKED

_SILENT = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"]


class Agent:
    def __init__(self, who: Speaker, *, guarded: bool) -> None:
        self.who = who
        self.top = Path(who.cwd)
        self.guarded = guarded
        self.refused: list[str] = []

    def ask(self, event: Event, *, about: bool = True) -> bool:
        """`about`: whether what comes is still to be allowed."""
        argv = GUARD if self.guarded else _SILENT
        done = subprocess.run(argv, input=json.dumps(event).encode(), capture_output=True, cwd=self.top, check=False)
        said = Said(done.stdout, done.stderr, done.returncode)
        if not self.guarded or not about or understood(self.who.tool, said) == "allow":
            return True
        self.refused.append(reason(self.who.tool, said))
        return False

    def add(self, name: str, line: str) -> None:
        """Read, think, write, until it is allowed."""
        file = self.top / name
        while True:
            assert self.ask(self.who.read(name)), self.refused[-1]
            text = file.read_text()
            if self.ask(self.who.write(name)):
                break
        file.write_text(text + line)
        self.ask(self.who.write(name, after=True), about=False)

    def commit(self, name: str) -> None:
        """Commit the file and end the turn, which releases it. git itself lets one process at a time into the index."""
        argv = ["git", *UNHOOKED, "commit", "-q", "-m", "work", "--", name]
        while subprocess.run(argv, cwd=self.top, capture_output=True, check=False).returncode:
            status = ["git", "status", "--porcelain", "--", name]
            if not subprocess.run(status, cwd=self.top, capture_output=True, check=True).stdout:
                break
        self.ask(self.who.stop(), about=False)


def main(words: list[str]) -> None:
    tool, name, top, cycles, guarded, *files = words
    agent = Agent(Speaker(tool, name, top), guarded=guarded == "on")
    chance = random.Random(name)
    lines = []
    for number in range(int(cycles)):
        file = chance.choice(files)
        line = f"{name} {number}\n"
        agent.add(file, line)
        lines.append([file, line])
        if agent.guarded or file.startswith("shared/"):
            agent.commit(file)  # until then nobody else may write it
    print(json.dumps({"lines": lines, "refused": agent.refused}))


if __name__ == "__main__":
    os.environ.pop("GITCOORD_AGENT", None)
    main(sys.argv[1:])

"""Two clones of one server, with the hooks of the gates in both; the server's own gate where it is asked for."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import Done
from tests.gates.support import write_hooks
from tests.ledger.remote.support import Fleet, Machine
from tests.server.support import claim_program, install


class Team(Fleet):
    """`one` and `two`, joined. The path shared/a is marked, free/x is not."""

    def __init__(self, place: Path, *, gate: bool) -> None:
        super().__init__(place)
        self.one, self.two = self.machines
        lines = "".join(f"line {number}\n" for number in range(1, 31))
        files = {".gitattributes": "shared/** gitcoord-claim\n", "shared/a": lines, "shared/b": "b\n", "free/x": lines}
        self.one.commit(files)
        self.one.git("push", "-q", "origin", "main")
        self.two.git("pull", "-q")
        self.joined()
        for machine in self.machines:
            machine.git("config", "core.hooksPath", str(_hooks(place)))
        if gate:
            self.install()

    def install(self) -> None:
        """Install the gate as `git coord server install` does."""
        install(self.bare, claim_program(self.place))

    def lineage(self, path: str) -> list[dict[str, object]]:
        """The files below this path that releases have recorded, oldest first, each with its event and its agent."""
        return [
            {"path": file, "seq": event["seq"], "agent": event["agent"], "commit": entry["commit"]}
            for event in self.events("release")
            for entry in event["released"]
            for file, _, _ in entry["files"]
            if file == path or file.startswith(f"{path}/")
        ]


def _hooks(place: Path) -> Path:
    directory = place / "client-hooks"
    if not directory.exists():
        directory.mkdir()
        write_hooks(directory)
    return directory


def git(machine: Machine, *words: str, agent: str, code: int | None = 0) -> Done:
    """git through the hooks, as this agent. `code` None: it may end as it likes."""
    done = machine.run("git", *words, agent=agent)
    assert "Traceback" not in done.err and code in (None, done.code), done
    return done


def change(machine: Machine, path: str, old: str, new: str, agent: str, *words: str) -> Done:
    """A commit through the hooks that puts one text in place of another; it may be refused."""
    file = machine.repo / path
    text = file.read_text()
    assert old in text, text
    file.write_text(text.replace(old, new))
    machine.git("add", path)
    return git(machine, "commit", "-q", "-m", "work", *words, agent=agent, code=None)


def claim(machine: Machine, *words: str, agent: str, code: int = 0) -> Done:
    done = machine.claim(*words, agent=agent)
    assert done.code == code, done
    return done

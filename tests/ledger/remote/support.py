"""Several machines and one server: clones of a bare repository, each with scratch notes, queue and settings of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from gitcoord.git.host import Host
from tests.cli.support import Done
from tests.races.history import Row, read_ledger
from tests.races.support import Quick, scratch_env
from tests.support import change_first_event, copy_template

LEDGER = "refs/heads/gitcoord"

# Stands in for git-receive-pack and git-upload-pack: notes that it was called, then is it.
_COUNTER = """#!/bin/sh
echo {name} >>{log}
exec git {name} "$@"
"""


class Machine(Quick):
    """A clone. `Quick` gives the commands; this one is set up by joining the server's ledger."""

    def __init__(self, fleet: Fleet, name: str, *words: str, made: bool = False) -> None:
        """`words` are more options of git clone. `made`: the clone is there already."""
        self.place = fleet.place
        self.repo = fleet.place / name
        self.git_dir = self.repo / ".git"
        self.env = fleet.env
        if made:
            return
        argv = ["git", "clone", "-q", *words, f"file://{fleet.bare}" if words else str(fleet.bare), str(self.repo)]
        subprocess.run(argv, env=self.env, check=True)
        self.git("config", "gitcoord.fsync", "false")
        self.git("config", "user.email", f"{name}@example.com")
        for pack in ("receive-pack", "upload-pack"):
            self.git("config", f"remote.origin.{pack.replace('-', '')}", str(fleet.place / f"count-{pack}"))

    def join(self, *words: str) -> Done:
        """Join as `git coord init --remote origin` does; with more words, by that command."""
        argv = ["git-coord", "init", "--remote", "origin", *words] if words else ["gitcoord-quick", "join", "setup"]
        done = self.run(*argv)
        assert done.code == 0, done
        return done

    def refs(self, *patterns: str) -> dict[str, str]:
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)", *patterns).splitlines()
        return dict(line.split(" ") for line in lines)

    def state(self) -> dict[str, str]:
        """All that gitcoord keeps in this clone."""
        return self.refs("refs/claims", "refs/gitcoord", LEDGER)


class Fleet:
    """A bare repository as the server, with the machines that were cloned from it."""

    def __init__(self, place: Path, names: tuple[str, ...] = ("one", "two"), *, template: bool = False) -> None:
        """A copy of a template, unless it is the template itself."""
        if not template:
            copy_template(place, _make_fleet, names)
        self.place = place
        self.bare = place / "server.git"
        self.env = scratch_env(place)
        self.log = place / "connections"
        self._count_connections()
        if not template:
            self.machines = [Machine(self, name, made=True) for name in names]
            self._new = self._look()
            return
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(self.bare)], env=self.env, check=True)
        first = Machine(self, names[0])
        first.git("checkout", "-q", "-B", "main")
        first.commit({"a": "a\n", "src/app.py": "app\n", "src/db.py": "db\n"})
        first.git("push", "-q", "origin", "main")
        self.machines = [first, *(Machine(self, name) for name in names[1:])]

    def _count_connections(self) -> None:
        for pack in ("receive-pack", "upload-pack"):
            (self.place / f"count-{pack}").write_text(_COUNTER.format(name=pack, log=self.log))
            (self.place / f"count-{pack}").chmod(0o755)

    def add(self, name: str, *words: str) -> Machine:
        self.machines.append(Machine(self, name, *words))
        return self.machines[-1]

    def joined(self) -> list[Machine]:
        """All join; what was only just made is replaced by a copy of the same that has joined."""
        names = tuple(machine.repo.name for machine in self.machines)
        if self._look() == self._new:
            copy_template(self.place, _make_joined, names)
            self._take_over()
        else:
            for machine in self.machines:
                machine.join()
        self.log.unlink(missing_ok=True)
        return self.machines

    def _take_over(self) -> None:
        """The copy is of this place: its programs, the address in the first event, and when each machine has looked."""
        self._count_connections()
        for git_dir in (self.bare, *(machine.git_dir for machine in self.machines)):
            change_first_event(git_dir, rb'"remote":"[^"]*"', b'"remote":"%s"' % os.fsencode(self.bare))
        host = Host()
        for machine in self.machines:
            looked = machine.git_dir / "gitcoord/looked"
            looked.write_text(f"{looked.read_text().split()[0]}\n{host.mono()}\n{host.wall()}")

    def _look(self) -> list[bytes]:
        """Everything in it that a test may have changed before the machines join."""
        places = (self.bare, *(machine.git_dir for machine in self.machines))
        files = [place / name for place in places for name in ("config", "refs/heads/main", "packed-refs")]
        return [file.read_bytes() if file.exists() else b"" for file in files]

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=self.bare, env=self.env, check=True, capture_output=True, text=True
        ).stdout

    def refs(self) -> dict[str, str]:
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return dict(line.split(" ") for line in lines)

    def events(self, kind: str = "") -> list[Row]:
        return [e for e in read_ledger(self.bare, self.env) if kind in ("", e["kind"])]

    def connections(self) -> list[str]:
        """The services called since the last call of this."""
        found = self.log.read_text().split() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return found

    def hook(self, name: str, body: str) -> Path:
        hook = self.bare / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\n" + body)
        hook.chmod(0o755)
        return hook

    def take_only_branches(self) -> None:
        self.hook("update", 'case $1 in refs/heads/*) ;; *) echo "only branches here: $1"; exit 1 ;; esac\n')

    def ssh(self) -> str:
        """An ssh that runs here what it should run at the host."""
        place = self.place / "ssh"
        place.write_text('#!/bin/sh\nfor word; do :; done\nexec sh -c "$word"\n')
        place.chmod(0o755)
        return str(place)

    def assert_sound(self) -> None:
        """Seq without gaps, claim refs as the ledger says, and every machine's replay is clean once it has looked."""
        seqs = [event["seq"] for event in self.events()]
        assert sorted(seqs) == list(range(1, len(seqs) + 1))
        machine = self.machines[0]
        assert machine.claim("list").code == 0
        found = machine.run("gitcoord-quick", "fsck")
        assert (found.code, found.out) == (0, ""), found


def _make_fleet(place: Path, names: tuple[str, ...]) -> None:
    Fleet(place, names, template=True)


def _make_joined(place: Path, names: tuple[str, ...]) -> None:
    fleet = Fleet(place, names)
    fleet._new = []
    fleet.joined()

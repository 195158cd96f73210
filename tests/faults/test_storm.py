"""A storm: writers that are killed at any moment, git's own maintenance, hooks installed, and a user whose refs change all the while.

Afterwards every ref that the user made and did not delete has the value of its last acknowledged change, nothing that a writer was
told is lost, the next command works and leaves no lock file, and `git fsck` and `git coord fsck` are clean. It goes on until so many
were killed, or its time is over: some seconds in a quick run, minutes in the long form (GITCOORD_SOAK=1). GITCOORD_STORM_SEED repeats
the dice, though not the timing.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ledger.remote.support import LEDGER, Fleet
from tests.ledger.remote.test_server_behind import Site
from tests.races.support import Project, soak

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(1200)]

# Of each of the three: the quick form ends with the kills, the long one by time.
SECONDS, KILLS = soak(120, 150), soak(24, 10_000)
SEED = int(os.environ.get("GITCOORD_STORM_SEED") or random.randrange(10**6))
PATHS = [f"src/file-{number}" for number in range(6)]
# What git says where the user, or a writer, changes a ref that it is about to pack.
# The last: a pack was replaced while git read, by our own gc beside the storm's; `git fsck` tells at the end whether it is true.
RACES = ("but expected", "File exists", "unable to resolve reference", "is corrupt")
SERVING = ("receive-pack", "upload-pack", "git-receive-pac", "git-upload-pack")


class Place:
    """One place of the storm: a project, and the directories in which its commands are run."""

    def __init__(self, project: Project, trees: list[Path]) -> None:
        self.project = project
        self.trees = trees

    def start(self, dice: random.Random, *argv: str, agent: str = "") -> subprocess.Popen[str]:
        env = {**self.project.env, **({"GITCOORD_AGENT": agent} if agent else {})}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            argv, cwd=dice.choice(self.trees), env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True,
            start_new_session=True,
        )  # fmt: skip

    def git(self, dice: random.Random, *words: str) -> tuple[int, str]:
        with self.start(dice, "git", *words) as process:
            out, err = process.communicate()
        return process.returncode, out.strip() or err.strip()


class Storm:
    """All loops of one storm, each in a thread, until it is over."""

    def __init__(self, places: list[Place]) -> None:
        self.places = places
        self.over = threading.Event()
        self.trouble: list[str] = []
        self.counts: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.told: list[tuple[str, int]] = []  # agent and token of each grant that was acknowledged
        self.orders: list[list[str]] = []  # what agents run besides
        self.users = [User(self, place, number) for number, place in enumerate(places)]
        self.running: dict[int, subprocess.Popen[str]] = {}
        self._lock = threading.Lock()
        self.kills = 0
        self.enough = 0.0

    def rage(self, part: float = 1) -> None:
        self.over.clear()
        self.enough = self.kills + part * KILLS
        loops: list[Callable[[random.Random], None]] = [user.act for user in self.users]
        for number in range(max(4, 2 * len(self.places))):
            place = self.places[number % len(self.places)]
            loops.append(lambda dice, place=place, agent=f"w{number}": self.write(dice, place, agent))  # type: ignore[misc]
        for place in self.places:
            loops.append(lambda dice, place=place: self.maintain(dice, place))  # type: ignore[misc]
        loops.append(self.kill)
        threads = [threading.Thread(target=self._loop, args=(loop, SEED + n)) for n, loop in enumerate(loops)]
        for thread in threads:
            thread.start()
        self.over.wait(part * SECONDS)
        self.over.set()
        for thread in threads:
            thread.join()

    def _loop(self, act: Callable[[random.Random], None], seed: int) -> None:
        dice = random.Random(seed)
        try:
            while not self.over.is_set():
                act(dice)
        except Exception as error:
            self.trouble.append(f"{act}: {error!r}")
            self.over.set()

    def write(self, dice: random.Random, place: Place, agent: str) -> None:
        """Run one command of an agent, and record its answer."""
        claim = ["git-claim", "--json", dice.choice(PATHS)]
        words = dice.choice(
            (claim, ["git-claim", "release", claim[2]], ["git-claim", "release", "--all"], *self.orders)
        )
        with place.start(dice, *words, agent=agent) as process:
            with self._lock:
                self.running[process.pid] = process
            out, err = process.communicate()
            with self._lock:
                del self.running[process.pid]
        self.counts["commands"] += 1
        code = process.returncode
        if "Traceback" in err or code not in (0, 1, 2, 3, 4, 5, -signal.SIGKILL):
            self.trouble.append(f"{words} ended with {code}: {err}")
        if code in (3, 4, 5):
            self.answers[err.split("\n")[0][:160]] += 1
        if code == 0 and words == claim:
            self.told += [(agent, claim["token"]) for claim in json.loads(out)["claims"]]

    def maintain(self, dice: random.Random, place: Place) -> None:
        words = dice.choice((["pack-refs", "--all"], ["pack-refs", "--all"], ["gc", "--quiet"], ["repack", "-d", "-q"]))
        code, said = place.git(dice, *words)
        self.counts[f"{words[0]} {'failed' if code else 'done'}"] += 1
        if code:
            self.answers[f"{words[0]}: {said[:160]}"] += 1
        if code and not any(words in said for words in RACES):
            self.trouble.append(f"{words}: {said}")
        self.over.wait(0.05)

    def kill(self, dice: random.Random) -> None:
        """The whole tree of a command, the command alone, or one of its children."""
        self.over.wait(dice.uniform(0.01, 0.1))
        with self._lock:
            if not self.running:
                return
            pid = dice.choice(list(self.running))
        below = descendants(pid)
        how = ("tree", "child", "command", "child")[self.kills % 4]
        self.kills += bool(below or how != "child")
        if self.kills >= self.enough:
            self.over.set()
        victims = {"tree": [pid, *below], "command": [pid], "child": dice.sample(below, min(1, len(below)))}[how]
        for victim in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                self.counts[f"killed {how}"] += 1


def descendants(pid: int) -> list[int]:
    """All processes below this one, but for those that serve another repository to it."""
    parents: dict[int, list[int]] = {}
    serving = set()
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with contextlib.suppress(OSError):
                name, _, rest = (
                    Path(f"/proc/{entry}/stat").read_bytes().decode(errors="replace").partition("(")[2].rpartition(") ")
                )
                parents.setdefault(int(rest.split()[1]), []).append(int(entry))
                command = Path(f"/proc/{entry}/cmdline").read_bytes().decode(errors="replace")
                if name in SERVING or any(word in command for word in SERVING[:2]):
                    serving.add(int(entry))
    found, todo = [], [pid]
    while todo:
        below = [child for child in parents.get(todo.pop(), []) if child not in serving]
        found += below
        todo += below
    return found


class User:
    """Branches and tags that come, move and go; what git said of each."""

    def __init__(self, storm: Storm, place: Place, number: int) -> None:
        self._storm = storm
        self._place = place
        self._names = [f"refs/{kind}/user-{number}-{n}" for kind in ("heads", "tags") for n in range(12)]
        self.refs: dict[str, str] = {}
        self._made = 0

    def act(self, dice: random.Random) -> None:
        """git gives up where its own gc takes a directory of objects away in the moment in which it makes a file there."""
        ref = dice.choice(self._names)
        if ref in self.refs and dice.random() < 0.3:
            self._change(dice, ref, "", "update-ref", "-d", ref, self.refs[ref])
            return
        self._made += 1
        code, new = self._place.git(dice, "commit-tree", "-m", f"{ref} {self._made}", "HEAD^{tree}")
        if code and "unable to create temporary file" in new:
            return
        assert code == 0, new
        self._change(dice, ref, new, "update-ref", ref, new, self.refs.get(ref, ""))

    def _change(self, dice: random.Random, ref: str, new: str, *words: str) -> None:
        code, said = self._place.git(dice, *words)
        self._storm.counts[f"user's changes {'refused' if code else 'done'}"] += 1
        if code:
            # A lock was in the way, say. git may not have told all: but what is there now is one of the two.
            _, now = self._place.git(dice, "for-each-ref", "--format=%(objectname)", ref)
            if now not in (new, self.refs.get(ref, "")):
                self._storm.trouble.append(f"{ref} is {now!r}, after {self.refs.get(ref)!r} -> {new!r}: {said}")
            new = now
        self.refs = {**self.refs, ref: new} if new else {key: oid for key, oid in self.refs.items() if key != ref}

    def lost(self) -> list[str]:
        out = self._place.project.git("for-each-ref", "--format=%(refname) %(objectname)")
        there = dict(line.split(" ") for line in out.splitlines())
        return [f"{ref}: {there.get(ref)} is not {oid}" for ref, oid in self.refs.items() if there.get(ref) != oid]


def locks_of(project: Project) -> list[str]:
    """Lock files of git's; gitcoord's own are held by the kernel, and stay."""
    own = project.git_dir / "gitcoord"
    return [str(file) for file in project.git_dir.rglob("*.lock") if not file.is_relative_to(own)] + [
        str(file) for file in project.git_dir.glob("packed-refs.new")
    ]


def assert_weathered(storm: Storm, granted: set[tuple[str, int]]) -> None:
    """`granted`: agent and number of each event that is on record."""
    told = f"seed {SEED}: {dict(storm.counts)}, {dict(storm.answers)}"
    print(told)
    assert not storm.trouble, (storm.trouble[:5], told)
    for place in storm.places:
        for tree in place.trees:
            place.project.repo = tree
            taken = place.project.claim("afterwards", agent="carol")
            assert taken.code == 0, (taken, told)
            assert place.project.claim("release", "afterwards", agent="carol").code == 0
        place.project.repo = place.trees[0]
        assert not locks_of(place.project), told
        place.project.git("fsck", "--strict", "--no-dangling")
        place.project.assert_clean()
    assert not [row for user in storm.users for row in user.lost()], told
    assert not set(storm.told) - granted, told
    for what in ("killed tree", "killed child", "pack-refs done", "gc done", "user's changes done"):
        assert storm.counts[what], told


def grants(project: Project, *refs: str) -> set[tuple[str, int]]:
    out = project.git("log", "--format=%an %(trailers:key=Seq,valueonly,separator=)", *refs, "--")
    return {(agent, int(seq)) for agent, _, seq in (line.partition(" ") for line in out.splitlines())}


def assert_no_gaps(project: Project) -> None:
    seqs = [event["seq"] for event in project.events()]
    assert sorted(seqs) == list(range(1, len(seqs) + 1))


def test_work_trees(tmp_path: Path) -> None:
    """One repository: its first work tree, and two linked ones."""
    project = Project(tmp_path)
    assert project.coord("install-hooks").code == 0
    trees = [project.repo, tmp_path / "two", tmp_path / "three"]
    for tree in trees[1:]:
        project.git("worktree", "add", "-q", str(tree), "-b", tree.name)
    storm = Storm([Place(project, trees)])
    storm.rage()
    assert_weathered(storm, grants(project, LEDGER))
    assert_no_gaps(project)


def test_clones(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    machines = fleet.joined()
    for machine in machines:
        assert machine.coord("install-hooks").code == 0
    storm = Storm([Place(machine, [machine.repo]) for machine in machines])
    storm.rage()
    machines[0].claim("list")
    assert_weathered(storm, grants(machines[0], LEDGER))
    fleet.assert_sound()


def test_clones_of_a_server_that_is_restored(tmp_path: Path) -> None:
    """The server loses the second third of the storm; agents of both clones repair, and are killed meanwhile."""
    site = Site(tmp_path, gate=True)
    for machine in site.machines:
        assert machine.coord("install-hooks").code == 0
    storm = Storm([Place(machine, [machine.repo]) for machine in site.machines])
    storm.rage(1 / 3)
    site.back_up()
    storm.rage(1 / 3)
    site.restore()
    storm.orders = [["git-coord", "fsck", "--repair"]]
    storm.rage(1 / 3)
    known: set[tuple[str, int]] = set()
    for machine in (*site.machines, site.one):
        assert machine.coord("fsck", "--repair").code == 0, storm.answers
        known |= grants(machine, LEDGER, *machine.refs("refs/gitcoord/lost"))  # what is lost is told, and kept
    assert_weathered(storm, known)
    site.assert_whole()

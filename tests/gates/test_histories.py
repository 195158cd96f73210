"""Random histories, made by real merge, squash, rebase, cherry-pick and revert: everyday ones pass, a hidden edit is found."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from gitcoord.claims.events import disown
from gitcoord.claims.model import Item
from gitcoord.claims.service import release, take
from gitcoord.claims.take import Take
from gitcoord.gates.client_gate import Gate
from gitcoord.gates.judge import Verdict
from gitcoord.git.store import RefUpdate
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import init
from gitcoord.ledger.transaction import transact
from gitcoord.world.open import environ, open_repository
from tests.support import git

FILES = [f"shared/{name}" for name in "abcd"]
LINES = 60
WORKERS = ("ann", "ben", "cyd")
SOAK = bool(os.environ.get("GITCOORD_SOAK"))


class Team:
    """Workers who claim, commit and release on branches; an orchestrator who lands their work and pushes."""

    def __init__(self, place: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.top = place / "project"
        self.remote = place / "origin.git"
        git(place, "init", "-q", "--bare", "-b", "main", str(self.remote))
        git(place, "init", "-q", "-b", "main", str(self.top))
        (self.top / "shared").mkdir()
        for name in FILES:
            self.write(name, [f"{n}" for n in range(LINES)])
        (self.top / ".gitattributes").write_text("shared/** gitcoord-claim\n")
        self.commit("first", "")
        self.git("remote", "add", "origin", str(self.remote))
        self.git("push", "-q", "-u", "origin", "main")
        os.chdir(self.top)
        self.ctx = open_repository(environ(), writing=True)
        init(self.ctx, Actor("init"), sync="main", fold=False)
        self.count = 0
        self.story: list[str] = []
        self.released: dict[str, list[str]] = {}

    # --- git

    def git(self, *words: str) -> str:
        return git(self.top, *words).decode().strip()

    def tries(self, *words: str) -> bool:
        return subprocess.run(["git", *words], cwd=self.top, capture_output=True, check=False).returncode == 0

    def lines(self, name: str) -> list[str]:
        return (self.top / name).read_text().split("\n")[:-1] if (self.top / name).exists() else []

    def write(self, name: str, lines: list[str]) -> None:
        (self.top / name).write_text("".join(line + "\n" for line in lines))

    def commit(self, message: str, agent: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message, *(["-m", f"Agent: {agent}"] if agent else []))
        return self.git("rev-parse", "HEAD")

    def edit(self, name: str, mark: str) -> None:
        lines = self.lines(name)
        if not lines:
            lines = ["again"]
        lines[self.random.randrange(len(lines))] = mark
        self.write(name, lines)

    # --- the work

    def work(self, start: str = "origin/main") -> tuple[str, list[str]]:
        """One worker's released work: its branch, and its paths."""
        self.count += 1
        worker = WORKERS[self.count % len(WORKERS)]
        branch = f"{worker}-{self.count}"
        paths = self.random.sample(FILES, self.random.choice((1, 1, 2)))
        self.git("checkout", "-q", "-B", branch, start)
        self.take(worker, paths)
        for number in range(self.random.randint(1, 3)):
            for path in paths:
                self.edit(path, f"{worker} {self.count}.{number}")
            commit = self.commit(f"{branch} {number}", self.random.choice((worker, worker, "")))
        actor, items = Actor(worker), tuple(Item("path", path) for path in paths)
        release(self.ctx, actor, items, commit=commit)
        self.released[branch] = paths
        self.story.append(f"{branch} from {start}: {paths}")
        return branch, paths

    def take(self, agent: str, paths: list[str]) -> None:
        take(self.ctx, Take(actor=Actor(agent), items=tuple(Item("path", path) for path in paths)))

    def land(self, branch: str) -> None:
        """Land on a copy of main, in one of the everyday ways; work that conflicts is abandoned."""
        way = self.random.choice(("merge", "squash", "rebase", "cherry-pick"))
        self.git("checkout", "-q", "-B", "landing", "origin/main")
        done = {
            "merge": lambda: self.tries("merge", "-q", "--no-ff", "--no-edit", branch),
            "squash": lambda: (
                self.tries("merge", "-q", "--squash", branch)
                and (self.tries("diff", "--cached", "--quiet") or self.tries("commit", "-q", "-m", f"squash {branch}"))
            ),
            "rebase": lambda: (
                self.tries("checkout", "-q", "-B", "rebased", branch)
                and self.tries("rebase", "-q", "origin/main")
                and self.tries("checkout", "-q", "-B", "landing", "rebased")
            ),
            "cherry-pick": lambda: self.tries("cherry-pick", f"origin/main..{branch}"),
        }[way]()
        self.story.append(f"{way} of {branch}: {'landed' if done else 'conflict'}")
        if not done:
            for words in (
                ("merge", "--abort"),
                ("rebase", "--abort"),
                ("cherry-pick", "--abort"),
                ("reset", "-q", "--hard"),
            ):
                self.tries(*words)
            self.git("checkout", "-q", "-f", "-B", "landing", "origin/main")
            for path in self.released[branch]:
                command = disown.Disown(Actor("boss"), path, "it conflicts: somebody does it again")
                transact(self.ctx, disown.decide, command)

    # --- the gate

    def judged(self, ref: str, new: str, agent: str = "boss") -> list[Verdict]:
        commit = self.git("rev-parse", new)
        old = git(self.remote, "for-each-ref", "--format=%(objectname)", ref).decode().strip()
        self.ctx.store.refresh()
        return Gate(self.ctx, lambda: Actor(agent)).push("origin", [RefUpdate(ref, old, commit)]).verdicts

    def push(self, new: str, ref: str = "refs/heads/main") -> None:
        self.git("push", "-q", "--force", "origin", f"{new}:{ref}")

    def close(self) -> None:
        self.ctx.store.close()


@pytest.fixture
def team(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.chdir(tmp_path)
    made = Team(tmp_path, request.param)
    yield made
    made.close()


def _day(team: Team) -> None:
    """Work, sometimes by two upon one another, and its landing."""
    branch, _ = team.work()
    branches = [branch]
    if team.random.random() < 0.5:
        second, _ = team.work(branch)  # built upon the first, which has not landed
        branches = [second] if team.random.random() < 0.5 else [branch, second]
    for each in branches:
        team.land(each)
        found = team.judged("refs/heads/main", "landing")
        assert not found, (team.story, found)
        team.push("landing")


def _everyday(team: Team) -> None:
    """Merge main, rebase the own branch, or revert the last landing."""
    way = team.random.choice(("merge main", "rebase mine", "revert"))
    team.story.append(way)
    if way == "revert":
        team.git("checkout", "-q", "-B", "landing", "origin/main")
        paths = team.git("diff", "--name-only", "HEAD~1", "HEAD").split("\n")
        team.take("boss", paths)
        if not team.tries(
            "revert", "--no-edit", *(["-m", "1"] if team.tries("rev-parse", "-q", "HEAD^2") else []), "HEAD"
        ):
            team.tries("revert", "--abort")
        assert not team.judged("refs/heads/main", "landing"), team.story
        release(team.ctx, Actor("boss"), tuple(Item("path", path) for path in paths))
        team.push("landing")
        return
    branch = f"mine-{team.count}"
    team.git("checkout", "-q", "-B", branch, "origin/main~1" if team.random.random() < 0.5 else "origin/main")
    (team.top / "mine").write_text(f"{team.count}\n")
    team.commit("mine", "ann")
    assert not team.judged(f"refs/heads/{branch}", branch, "ann"), team.story
    team.push(branch, f"refs/heads/{branch}")
    done = team.tries(*(("merge", "-q", "--no-edit") if way == "merge main" else ("rebase", "-q")), "origin/main")
    if not done:
        team.tries("rebase" if way == "rebase mine" else "merge", "--abort")
    assert not team.judged(f"refs/heads/{branch}", branch, "ann"), team.story
    team.push(branch, f"refs/heads/{branch}")


# 28 and 46: work built upon work that was never landed by itself, both squashed into one.
SEEDS = range(48) if SOAK else (*range(6), 28, 46)


@pytest.mark.parametrize("team", SEEDS, indirect=True)
def test_everyday_histories_pass(team: Team) -> None:
    for _ in range(5):
        _day(team)
        if team.random.random() < 0.7:
            _everyday(team)


# --- one hidden edit -----------------------------------------------------------------------------------------------


def _hide_commit(team: Team, path: str) -> None:
    team.edit(path, "hidden")
    team.commit("looks harmless", "")


def _hide_in_a_merge(team: Team, path: str) -> None:
    team.git("checkout", "-q", "-B", "side")
    (team.top / "aside").write_text("x\n")
    team.commit("aside", "ann")
    team.git("checkout", "-q", "landing")
    team.git("merge", "-q", "--no-ff", "--no-commit", "side")
    team.edit(path, "hidden")
    team.commit("merge side", "")


def _hide_by_reverting(team: Team, path: str) -> None:
    before = team.lines(path)
    _hide_commit(team, path)
    team.write(path, before)
    team.commit("back again", "")


def _hide_a_deletion(team: Team, path: str) -> None:
    (team.top / path).unlink()
    team.commit("less is more", "")


def _hide_a_rename(team: Team, path: str) -> None:
    (team.top / path).rename(team.top / "moved")
    team.commit("moved", "")


def _hide_a_mode(team: Team, path: str) -> None:
    (team.top / path).chmod(0o755)
    team.commit("mode", "")


def _hide_in_the_landing(team: Team, path: str) -> None:
    team.edit(path, "hidden")
    team.git("add", "-A")
    team.git("commit", "-q", "--amend", "--no-edit")


def _hide_by_ours(team: Team, path: str) -> None:
    """Drop the work that just landed by a merge that takes our side."""
    team.push("landing")
    team.git("checkout", "-q", "-B", "stale", "origin/main~1")
    (team.top / "stale").write_text("x\n")
    team.commit("stale", "ann")
    team.git("merge", "-q", "-s", "ours", "-m", "up to date", "origin/main")
    team.git("checkout", "-q", "-B", "landing", "stale")


HIDING = [
    _hide_commit, _hide_in_a_merge, _hide_by_reverting, _hide_a_deletion, _hide_a_rename, _hide_a_mode,
    _hide_in_the_landing, _hide_by_ours,
]  # fmt: skip


@pytest.mark.parametrize("hide", HIDING)
@pytest.mark.parametrize("team", range(1000, 1016) if SOAK else range(1000, 1002), indirect=True)
def test_a_hidden_edit_is_found(team: Team, hide: object) -> None:
    _day(team)
    branch, paths = team.work()
    team.land(branch)
    if team.git("rev-parse", "landing") == team.git("rev-parse", "origin/main"):
        team.git("checkout", "-q", "-B", "landing", branch)
    path = paths[0] if hide in (_hide_in_the_landing, _hide_by_ours) else team.random.choice(FILES)
    hide(team, path)  # type: ignore[operator]
    found = team.judged("refs/heads/main", "landing")
    assert any(verdict.path == path and verdict.rule in ("unclaimed", "lineage") for verdict in found), (
        team.story,
        path,
        found,
    )

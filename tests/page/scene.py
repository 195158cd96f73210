"""A project in the middle of a working day: ten agents, with something in every list of the page, and most kinds of need."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import Done, World
from tests.gates.support import HOOKS, Project
from tests.server.clocks import LIBRARY
from tests.support import PYTHON, UNHOOKED

_ATTRIBUTES = "money/** gitcoord-guard=checkpoint\n"
_CONFIG = '[deploy "staging"]\n\tverify = true\n[deploy "production"]\n\tverify = false\n'
_TASKS = ("Fix the login page", "Write the guide", "Speed up the parser", "Which plan do new users get?")


class Shop(World):
    """Its commands can run in the past, so that what is looked at was not all made in the same second."""

    minutes = 0  # ago

    def run(
        self, argv: list[str], words: tuple[str | bytes, ...], agent: str, cwd: str = "", env: dict[str, str] | None = None, data: bytes = b""
    ) -> Done:  # fmt: skip
        if self.minutes and LIBRARY:  # a process of its own, with a clock of its own
            argv = [PYTHON[0], "-S", "-I", *argv[len(PYTHON) :]]
            env = {**(env or {}), "LD_PRELOAD": LIBRARY, "FAKETIME": f"-{self.minutes}m", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}  # fmt: skip
        return super().run(argv, words, agent, cwd, env, data)


def shop(place: Path, *, past: bool = False) -> Shop:
    """`past`: over the last hours, for pictures; else all of it now, which is quicker."""
    project = Project(place, _ATTRIBUTES, _CONFIG)
    project.top.rename(place / "shop")
    project.top = place / "shop"
    world = project.world = Shop(project.top, made=True)

    def ago(minutes: int) -> None:
        world.minutes = minutes if past else 0

    ago(190)
    ids = [world.coord("task", "add", title, "--json", agent="dora").json["tasks"][0]["id"] for title in _TASKS]
    ago(150)
    world.take("src/b.py", "-m", "try another way", agent="ivy")  # who has gone, with work that is not committed
    world.write("src/b.py", "half of it\n")
    world.fall_silent("ivy", 9000)
    ago(95)
    assert world.coord("deploy", "staging", "--", "true", agent="dora").code == 0
    world.coord("deploy", "production", "--", "true", agent="dora")  # its check says no
    world.take("src/api.py", "-m", "pagination", agent="fred")
    world.claim("take", "--queue", "src/api.py", agent="gina")
    ago(70)
    world.free("fred")
    world.free("gina")
    check_fails(world, "hal", "speed-up", "echo 'test_speed.py::test_it FAILED'; echo '1 failed, 211 passed'; false")
    assert world.coord("stop", agent="hal").code == 0
    ago(41)
    world.take("src/login.py", "-m", "new login form", "--expect", "10m", agent="alice")
    world.coord("note", "src/login.py", "-m", "the old form stays until Friday", agent="bob")
    ago(26)
    world.take("src/parser.py", "-m", "rewrite the parser", agent="bob")
    world.take("docs", "-m", "the guide", agent="dora")
    world.coord("start", agent="jack")
    world.claim("take", "--queue", "src/login.py", "-m", "fix the redirect", agent="carl")
    world.claim("take", "--queue", "src/login.py", "src/session.py", "-m", "sign out everywhere", agent="gina")
    ago(8)
    _deadlock(world)
    world.coord("task", "take", ids[0], agent="carl")
    world.coord("task", "needs-human", ids[3], "--reason", "the free one, or a trial?", agent="dora")
    world.take("src/money.py", "-m", "round half even", agent="mallory")
    assert world.person("kill", "mallory", "--reason", "rewrote published commits").code == 0
    assert project.try_commit({"money/rates": "basic = 10\nplus = 20\n", "money/plans": "basic\nplus\n"}, "bob").code
    for name in HOOKS:  # those in forks, which nobody takes for gitcoord's own
        (project.top / ".git/hooks" / name).unlink()
    assert world.coord("install-hooks", agent="").code == 0
    ago(1)
    world.take("@land/main", "-m", "fix-redirect", agent="eve")
    world.claim("take", "--queue", "@land/main", "-m", "new-syntax", agent="fred")
    world.minutes = 0
    return world


def check_fails(world: World, agent: str, branch: str, check: str) -> None:
    """A landing that fails by its check."""
    commit = world.git(*UNHOOKED, "commit-tree", "-p", "main", "-m", "work", "main^{tree}")
    world.git(*UNHOOKED, "branch", branch, commit)
    done = world.coord("land", branch, "--check", check, agent=agent)
    assert done.code and "the check ended" in done.said, done


def _deadlock(world: World) -> None:
    """alice waits for bob's path, and bob is refused to wait for hers."""
    with world.terminal("--wait", "10m", "src/parser.py", "-m", "new syntax", agent="alice") as waiting:
        waiting.until(lambda shown: b"bob holds it" in shown)
        waiting.process.kill()
    refused = world.claim("--wait", "10m", "src/login.py", agent="bob")
    assert "nobody could go on" in refused.err, refused

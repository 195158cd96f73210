"""Refusals of landing, waiting, notes, the page and other later verbs: each hint, followed to the letter, helps or says whom to ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.claims.test_claim import _waits
from tests.cli.support import Done
from tests.cli.test_hinted_commands import ATTRIBUTES, CONFIG, leads_somewhere
from tests.gates.support import Project

LAND = '[land]\n\tcheck = test ! -e broken\n[role "guest"]\n\tland = false\n[agent "gast"]\n\trole = guest\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, ATTRIBUTES, CONFIG + LAND)


def _branch(project: Project, files: dict[str, str | None], agent: str = "alice") -> None:
    project.branch("side")
    project.commit(files, agent=agent)


def _land(files: dict[str, str | None], *words: str, agent: str = "alice") -> Callable[[Project], Done]:
    def act(project: Project) -> Done:
        _branch(project, files, agent)
        return project.coord("land", *words, "--wait", "0", agent=agent)

    return act


def _conflict(project: Project) -> Done:
    _branch(project, {"free/x": "mine\n"})
    project.switch("main")
    project.commit({"free/x": "theirs\n"}, agent="bob")
    project.switch("side")
    return project.coord("land", agent="alice")


def _unresolved(project: Project) -> Done:
    assert _conflict(project).code == 1
    return project.coord("land", agent="alice")


def _not_resolved(project: Project) -> Done:
    assert _conflict(project).code == 1
    return project.coord("land", "--continue", agent="alice")


def _held(project: Project) -> Done:
    project.claim("free/x", agent="bob")
    return _land({"free/x": "mine\n"})(project)


def _turn_taken(project: Project) -> Done:
    project.claim("@land/main", agent="bob")
    return _land({"free/x": "mine\n"})(project)


def _merge_in_branch(project: Project) -> Done:
    _branch(project, {"free/y": "y\n"})
    project.switch("main")
    project.commit({"free/z": "z\n"}, agent="bob")
    project.switch("side")
    project.unhooked("merge", "-q", "--no-edit", "main")
    return project.coord("land", "--rebase", agent="alice")


def _unrelated(project: Project) -> Done:
    project.unhooked("checkout", "-q", "--orphan", "side")
    project.commit({"free/new": "n\n"}, agent="alice")
    return project.coord("land", agent="alice")


def _deadlock(project: Project) -> Done:
    project.claim("free/x", agent="alice")
    project.claim("shared/b", agent="bob")
    with project.world.started("--wait", "60s", "free/x", agent="bob") as waiter:
        _waits(waiter)
        return project.world.claim("--wait", "60s", "shared/b", agent="alice")


def _kept(project: Project) -> Done:
    project.claim("shared/b", agent="bob")
    assert project.world.claim("--queue", "shared/a", "shared/b", agent="carol").code == 3
    for _ in range(3):
        project.claim("shared/a", agent="dave")
        project.claim("release", "shared/a", agent="dave")
    return project.world.claim("shared/a", agent="alice")


def _ticket(project: Project) -> str:
    project.claim("free/x", agent="bob")
    return str(project.world.claim("--queue", "free/x", "--json", agent="carol").json["ticket"])


def _note(project: Project) -> str:
    assert project.coord("note", "free/x", "-m", "take care", agent="bob").code == 0
    return str(project.coord("note", "--list", "--json", agent="bob").json["notes"][0]["seq"])


def _coord(*words: str, agent: str = "alice") -> Callable[[Project], Done]:
    return lambda project: project.coord(*words, agent=agent)


SCENES: dict[str, Callable[[Project], Done]] = {
    "conflict": _conflict, "unresolved": _unresolved, "continue too early": _not_resolved, "landing a held path": _held,
    "turn taken": _turn_taken, "deadlock": _deadlock, "merge that is to be rebased": _merge_in_branch, "unrelated": _unrelated,
    "check failed": _land({"broken": "x\n"}), "guarded": _land({"guarded": "x\n"}), "blocked": _land({"blocked": "x\n"}),
    "own files": _land({".gitcoord/config": "x\n"}), "may not land": _land({"free/x": "g\n"}, agent="gast"),
    "reader lands": _land({"free/x": "r\n"}, agent="rita"),
    "trunk": _coord("land"), "no branch": _coord("land", "nowhere"), "nothing to go on with": _coord("land", "--continue"),
    "kept": _kept, "leave": lambda p: p.world.claim("--leave", "--ticket", _ticket(p), agent="alice"),
    "raise": lambda p: p.world.claim("--priority", "high", "--ticket", _ticket(p), agent="alice"),
    "critical": lambda p: p.claim("free/x", agent="bob") and p.world.claim("--queue", "--priority", "critical", "free/x", agent="alice"),
    "note of another": lambda p: p.coord("note", "--remove", _note(p), agent="alice"),
    "no note": _coord("note", "--remove", "99"), "page": _coord("page", "--act"), "page for nobody": _coord("page", "--act", agent=""),
    "severity": _coord("audit", "--fail-on", "x"), "drill": _coord("drill", "--minutes", "0"),
    "recent": _coord("contention", "--since", "x"), "worktree": _coord("worktree", "done", "nowhere"),
    "number": _coord("number", "../x"), "once": _coord("once", "a b", "--", "true"),
}  # fmt: skip


@pytest.mark.parametrize("scene", SCENES.values(), ids=list(SCENES))
def test_the_hints_of_a_refusal_help_or_say_whom_to_ask(project: Project, scene: Callable[[Project], Done]) -> None:
    done = scene(project)
    assert done.code != 0, done
    leads_somewhere(project, done, "alice")

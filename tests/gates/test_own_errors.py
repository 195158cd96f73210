"""Errors of the gates themselves: the table of docs/hooks.md, row by row, at every gate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.gates.support import Project

DOCS = Path(__file__).parents[2] / "docs/hooks.md"


def _lost(project: Project) -> None:
    project.unhooked("update-ref", "-d", "refs/heads/gitcoord")


def _rewound(project: Project) -> None:
    project.unhooked("update-ref", "refs/heads/gitcoord", "refs/heads/gitcoord~1")


def _unreadable(project: Project) -> None:
    tree = project.git("rev-parse", "gitcoord^{tree}")
    file = project.top / ".git/objects" / tree[:2] / tree[2:]
    file.chmod(0o600)
    file.write_bytes(b"damaged")


def _shallow(project: Project) -> None:
    (project.top / ".git/shallow").write_text(project.git("rev-parse", "main") + "\n")


def _unset(project: Project) -> None:
    for name in ("root", "ledger"):
        project.unhooked("config", f"gitcoord.{name}", "")
        project.unhooked("config", "--unset-all", f"gitcoord.{name}")
    for ref in project.git("for-each-ref", "--format=%(refname)", "refs/heads/gitcoord", "refs/gitcoord").split():
        project.unhooked("update-ref", "-d", ref)


LEDGER = "the ledger is missing, rewound or unreadable"
CLOSED: dict[str, tuple[str | Callable[[Project], None], ...]] = {
    LEDGER: (_lost, _rewound, _unreadable),
    "`.gitcoord/config` cannot be parsed, or has a value that makes no sense": ("[rollout\n", "[rollout]\n\tlineage = x\n"),
    "history is missing: released work that was not fetched or is lost; a shallow clone (`git fetch --unshallow`)": (_shallow,),
}  # fmt: skip
# Rows with tests of their own below, or where their subject is.
OTHERS = (
    "nobody is named, and the answer depends on who acts",
    "gitcoord is not set up",
    "git-claim or its interpreter is missing",  # test_hook_scripts.py
    "the remote does not answer (deploy targets only)",  # test_stale_deploy.py
    "longer than `gitcoord.gateSeconds` (120)",  # test_commit_gate.py
)
# Each has something to judge; the commit comes last, since it leaves its change staged.
GATES: dict[str, Callable[[Project, str], Done]] = {
    "merge": lambda p, agent: p.try_git("merge", "-q", "-s", "ours", "--no-edit", "side", agent=agent),
    "change of a branch": lambda p, agent: p.try_git("branch", "-f", "main", "side", agent=agent),
    "push": lambda p, agent: p.push("work", agent=agent),
    "commit": lambda p, agent: p.try_commit({"free/x": "staged\n"}, agent),
}


def _project(place: Path, config: str = "") -> Project:
    """bob released work on a file; two branches change it without containing that."""
    made = Project(place)
    made.work("bob", "bobs", {"free/x": "bob's\n"})
    made.switch("main")
    if config:
        made.commit({".gitcoord/config": config})
    for branch in ("side", "work"):
        made.branch(branch)
        made.commit({"free/x": f"{branch}\n"}, agent="alice")
    return made


@pytest.mark.parametrize("trouble", [each for row in CLOSED.values() for each in row])
def test_closed(tmp_path: Path, trouble: str | Callable[[Project], None]) -> None:
    project = _project(tmp_path, trouble if isinstance(trouble, str) else "")
    if not isinstance(trouble, str):
        trouble(project)
    for name, act in GATES.items():
        done = act(project, "alice")
        # git notes where a merge began before it asks about the merge, and without a ledger that is closed already.
        names = [name, "change of a branch"] if trouble in CLOSED[LEDGER] else [name]
        assert done.code != 0 and any(f"error: this {n} could not be judged" in done.err for n in names), (name, done)
    assert project.coord("gate", "main..side", agent="alice").code == 4


def test_nobody(tmp_path: Path) -> None:
    project = _project(tmp_path)
    project.claim("free/x", agent="bob")
    for name, act in GATES.items():
        done = act(project, "")
        assert done.code != 0 and f"error: this {name} could not be judged: nobody is named" in done.err, (name, done)
    done = project.coord("gate", "main..side")
    assert done.code == 1 and "[lineage]" in done.err, "judged as ci"


def test_not_set_up(tmp_path: Path) -> None:
    project = _project(tmp_path)
    _unset(project)
    for name, act in GATES.items():
        assert act(project, "alice") == Done(0, "", ""), name
    assert project.coord("gate", "main~1..main", agent="alice").code == 2


def test_the_table_is_whole() -> None:
    table = DOCS.read_text().partition("## When a gate cannot judge\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines() if line.startswith("| ")]
    assert sorted(rows[2:]) == sorted((*CLOSED, *OTHERS))

"""How many of the commands that write a held file are denied before they run, and none that does not: the table of `shell_recall.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guard.shell_recall import is_told, rows, score, tree


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("recall") / "top"
    made.mkdir()
    tree(made)
    return made


@pytest.mark.parametrize(("held_out", "floor"), [(False, 0.97), (True, 0.95)])
def test_recall_and_precision(top: Path, held_out: bool, floor: float) -> None:
    """The unknown counts as a miss. The figures as measured are in docs/guard-shell.md; these are below them by a row or two."""
    half = [row for row in rows() if row.held_out() == held_out]
    found = score(top, half)
    assert len(half) >= 200 and found.right + found.missed >= 100
    assert found.recall >= floor and found.precision >= 0.99, found


def test_a_file_that_is_named_and_not_touched(top: Path) -> None:
    for command in (
        "python3 -c \"open('/tmp/x', 'w').write(open('src/a.py').read())\"", "grep -l nothing src/*.py | xargs rm", "black docs",
        "find src -name '*.js' -exec sed -i s/a/b/ {} +", "echo src/a.py | xargs cat > /tmp/all", "cp src/a.py /tmp; git checkout -- .",
    ):  # fmt: skip
        assert not is_told(top, command), command

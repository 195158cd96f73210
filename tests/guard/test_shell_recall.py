"""How many of the commands that write a held file are denied before they run, and none that does not: the table of `shell_recall.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guard.shell_recall import SECOND_TABLE, is_told, rows, score, tree


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


def test_a_second_table(top: Path) -> None:
    """Written by somebody who had not seen the parser, before it was changed for the first one."""
    found = score(top, rows(SECOND_TABLE))
    assert found.right + found.missed >= 200 and found.recall >= 0.93 and found.precision >= 0.99, found


def test_a_file_that_is_named_and_not_touched(top: Path) -> None:
    for command in (
        "python3 -c \"open('/tmp/x', 'w').write(open('src/a.py').read())\"", "grep -l nothing src/*.py | xargs rm", "black docs",
        "find src -name '*.js' -exec sed -i s/a/b/ {} +", "echo src/a.py | xargs cat > /tmp/all", "cp src/a.py /tmp; git checkout -- .",
    ):  # fmt: skip
        assert not is_told(top, command), command


def test_scripts(top: Path) -> None:
    """One that the command writes is read; of the project's own only what a shell's script does in any case."""
    (top / "gen.py").write_text("import sys\nif sys.argv[1] == 'all':\n    open('src/a.py', 'w')\n")
    (top / "dev.sh").write_text('case $1 in fmt) black src ;; esac\nif [ "$1" = x ]; then rm src/a.py; fi\n')
    (top / "reset.sh").write_text("cd src\n: > a.py\n")
    written = "cat > /tmp/fix.py <<'EOF'\nfor name in ['src/a.py']:\n    open(name, 'w')\nEOF\npython3 /tmp/fix.py"
    assert is_told(top, written) and is_told(top, "bash reset.sh")
    assert not is_told(top, "python3 gen.py --help") and not is_told(top, "sh dev.sh test")
    for name in ("gen.py", "dev.sh", "reset.sh"):
        (top / name).unlink()

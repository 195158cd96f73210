"""A ledger that folds case: another spelling of a path is that path, for rules of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.support import Project, refused

RULES = """\
src/** gitcoord-claim
LIB/*.C gitcoord-claim
sealed/** gitcoord-guard=block
tests/** gitcoord-writers=test
Größe/** gitcoord-claim
ÄRGER/** gitcoord-claim
"Zwei Worte/**" gitcoord-claim
"""
FILES = {
    "src/app.py": "a\n",
    "src/.gitattributes": "free* -gitcoord-claim\n",
    "Deep/.GitAttributes": "x gitcoord-claim\n",
}


def project(place: Path, *, fold: bool) -> Project:
    made = Project(place, RULES, fold=fold)
    made.commit(FILES)
    made.unhooked("push", "-q", "origin", "main")
    return made


SPELT = {
    "SRC/app.py": "unclaimed", "src/NEW": "unclaimed", "lib/x.c": "unclaimed", "Sealed/x": "guard", "TESTS/x": "role",
    "größe/x": "unclaimed", "GRÖSSE/x": "unclaimed", "GRO\u0308ße/x": "unclaimed", "Ärger/x": "unclaimed", "deep/X": "unclaimed",
    "ZWEI worte/x": "unclaimed", ".GITCOORD/config": "own-files", "SRC/free": "", "src/Free": "", "other/x": "",
}  # fmt: skip


def test_a_rule_holds_for_every_spelling(tmp_path: Path) -> None:
    made = project(tmp_path, fold=True)
    made.branch("work")
    first = made.try_commit(dict.fromkeys(SPELT, "new\n"), "alice")
    made.commit({}, "past the hooks")
    for done in (first, made.push("work", agent="alice")):
        assert {path for path, rule in SPELT.items() if rule and refused(done, rule, path)} == {
            *filter(SPELT.get, SPELT)
        }
        assert not any(path in done.err for path, rule in SPELT.items() if not rule), done
    rows = made.coord("policy", "explain", *SPELT, "--json", agent="alice").json["paths"]
    assert [bool(row["rules"]) for row in rows] == [rule not in ("", "own-files") for rule in SPELT.values()], rows


def test_elsewhere_names_are_as_they_are_spelt(tmp_path: Path) -> None:
    made = project(tmp_path, fold=False)
    assert made.try_commit({"SRC/app.py": "new\n", ".GITCOORD/config": "x\n", "Sealed/x": "x\n"}, "alice").code == 0


def test_two_attributes_files_of_one_directory_both_count(tmp_path: Path) -> None:
    made = project(tmp_path, fold=True)
    made.commit({"SRC/.gitattributes": "one gitcoord-guard=block\n"})
    assert made.try_commit({"Src/free": "x\n"}, "alice").code == 0
    assert refused(made.try_commit({"sRC/ONE": "x\n"}, "alice"), "guard")


def test_check_says_the_same(tmp_path: Path) -> None:
    made = project(tmp_path, fold=True)
    assert made.world.claim("check", "SRC/app.py", agent="alice").code == 1
    assert made.world.claim("check", "SRC/free", agent="alice").code == 0


@pytest.mark.parametrize("many", [1, 20])
def test_lineage_of_each_spelling(tmp_path: Path, many: int) -> None:
    """Stale text under two spellings at once: the released work is missed at both."""
    made = project(tmp_path, fold=True)
    made.work("bob", "bobs", {"src/app.py": "bob's\n"})
    made.branch("stale")
    made.claim("src", agent="alice")
    files: dict[str, str | None] = {f"SRC/{name}": "x\n" for name in ("APP.py", *map(str, range(many)))}
    done = made.try_commit({**files, "src/app.py": "x\n"}, "alice")
    assert refused(done, "lineage", "SRC/APP.py") and refused(done, "lineage", "src/app.py"), done

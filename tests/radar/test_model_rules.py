"""The rules of the radar: which work is compared, what git's answers mean, and the words for it."""

from __future__ import annotations

import pytest

from gitcoord.radar.model import (
    Conflict,
    Hunk,
    Lines,
    Side,
    Work,
    by_pair,
    clashing,
    distinct,
    hunks,
    lines_of,
    pairs_that_meet,
    parse_merge,
    sentence,
)

ONE, OTHER, BASE, TREE = (letter * 40 for letter in "abcd")


def work(branch: str, *paths: str, tree: str = "", remote: str = "", at: int = 0, dirty: tuple[str, ...] = ()) -> Work:
    ref = f"refs/remotes/{remote}/{branch}" if remote else f"refs/heads/{branch}"
    return Work("", branch, tree, remote, ref, ONE, at=at, committed=frozenset(paths), uncommitted=dirty)


def side(agent: str, branch: str, lines: Lines | None = None, *, deletes: bool = False) -> Side:
    return Side(agent, branch, "/w", "", f"refs/heads/{branch}", ONE, "", "", lines or [], deletes)


# --- which are compared


def test_only_work_that_changed_the_same_file_is_compared() -> None:
    works = [work("a", "x", "src/y"), work("b", "src/y", "x"), work("c", "src/z"), work("d", dirty=("src/z",))]
    assert pairs_that_meet(works) == [(0, 1, ["src/y", "x"]), (2, 3, ["src/z"])]


def test_a_file_where_the_other_has_a_directory_is_compared() -> None:
    assert pairs_that_meet([work("a", "src"), work("b", "src/deep/y")]) == [(0, 1, ["src"])]
    assert pairs_that_meet([work("b", "src/deep/y"), work("a", "src/deep")]) == [(0, 1, ["src/deep"])]
    assert pairs_that_meet([work("a", "src"), work("b", "src2/y")]) == []


def test_a_branch_counts_once_as_it_is_checked_out_else_the_newer() -> None:
    here, there = work("form", "x", at=5), work("form", "x", remote="origin", at=9)
    tree = work("form", "x", tree="/w", at=1)
    assert distinct([here, there]) == [there] and distinct([there, here._replace(at=10)]) == [here._replace(at=10)]
    assert distinct([there, here, tree]) == [tree] == distinct([tree, here, there])


def test_work_trees_on_no_branch_are_apart() -> None:
    one, other = work("", "x", tree="/one"), work("", "x", tree="/other")
    assert len(distinct([one, other])) == 2


# --- what git says


def test_the_answer_of_a_merge() -> None:
    rows = [f"100644 {oid} {stage}\tf\n x" for stage, oid in ((1, BASE), (2, ONE), (3, OTHER))]
    said = ["1", "f\n x", "Auto-merging", "words", "1", "f\n x", "CONFLICT (contents)", "CONFLICT: more words", ""]
    found = parse_merge("\0".join([TREE, *rows, "", *said]))
    assert found.tree == TREE and found.paths == ["f\n x"] and found.how("f\n x") == "contents"
    assert found.entries == {"f\n x": {1: BASE, 2: ONE, 3: OTHER}}


def test_a_binary_file_and_one_that_both_add() -> None:
    both = [f"100644 {oid} {stage}\tx" for stage, oid in ((2, ONE), (3, OTHER))]
    added = parse_merge("\0".join([TREE, *both, "", "1", "x", "CONFLICT (contents)", "w", ""]))
    assert added.how("x") == "add/add"
    kinds = ["1", "x", "CONFLICT (binary)", "w", "1", "x", "CONFLICT (contents)", "w"]
    assert parse_merge("\0".join([TREE, *both, "", *kinds, ""])).how("x") == "binary"


def test_a_conflict_of_which_git_lists_no_file_is_one_of_those_it_speaks_of() -> None:
    found = parse_merge("\0".join([TREE, "", "2", "a", "b", "CONFLICT (directory rename split)", "w", ""]))
    assert found.paths == ["a", "b"] and found.how("a") == "directory rename split"


def test_something_else_is_no_answer() -> None:
    with pytest.raises(ValueError):
        parse_merge("fatal: no\0such thing")


_DIFF = "diff --git a b\nindex 1..2\n--- a\n+++ b\n@@ -10 +10,2 @@ def f\n-x\n+y\n+z\n@@ -20,0 +22 @@\n+w\n@@ -30,2 +32,0 @@\n-p\n-q\n"


def test_the_hunks_of_a_diff() -> None:
    assert hunks(_DIFF) == [Hunk(9, 10, 10, 2, ("+y", "+z")), Hunk(20, 20, 22, 1, ("+w",)), Hunk(29, 31, 32, 0, ())]
    assert lines_of(hunks(_DIFF)) == [[10, 11], [22, 22], [32, 32]]
    assert hunks("Binary files differ\n") == []


def hunk(start: int, end: int, *text: str) -> Hunk:
    return Hunk(start, end, start + 1, len(text), text)


def test_lines_that_overlap_or_touch_clash() -> None:
    mine = hunk(9, 10, "+a")
    assert clashing([mine], [hunk(9, 10, "+b")]) == ([[10, 10]], [[10, 10]])
    assert clashing([mine], [hunk(10, 12, "+b", "+c")]) == ([[10, 10]], [[11, 12]]), "neighbours conflict for git too"
    assert clashing([mine], [hunk(11, 12, "+b")]) == ([], [])
    assert clashing([mine], [mine]) == ([], []), "the same change is none"


# --- words


@pytest.mark.parametrize(
    ("how", "one", "other", "words"),
    [
        ("contents", [[10, 20]], [[10, 20]], "f lines 10-20"),
        ("contents", [[7, 7]], [[7, 7]], "f line 7"),
        ("contents", [[7, 7]], [[9, 9], [12, 14]], "f (line 7 of login, lines 9, 12-14 of form)"),
        ("contents", [], [], "f"),
        ("add/add", [], [], "f (both add it)"),
        ("binary", [], [], "f (both change it, and it is binary)"),
        ("rename/delete", [], [], "f (rename/delete)"),
    ],
)
def test_what_is_said(how: str, one: Lines, other: Lines, words: str) -> None:
    row = Conflict("f", how, (side("alice", "login", one), side("bob", "form", other)))
    assert sentence([row]) == f"alice (login) and bob (form) will conflict in {words}"


def test_who_removes_and_who_changes() -> None:
    row = Conflict("f", "modify/delete", (side("alice", "login", deletes=True), side("", "form", [[1, 2]])))
    assert sentence([row]) == "alice (login) and form will conflict in f (alice (login) removes it, form changes it)"


def test_many_files_of_one_pair_are_one_sentence() -> None:
    sides = side("alice", "login"), side("bob", "form")
    rows = [Conflict(name, "contents", sides) for name in "abcde"]
    other = Conflict("a", "contents", (sides[0], side("carol", "x")))
    assert by_pair([*rows, other]) == [rows, [other]]
    assert sentence(rows) == "alice (login) and bob (form) will conflict in a, b, c and 2 more"


def test_a_kept_conflict_is_read_back() -> None:
    row = Conflict("f", "contents", (side("alice", "login", [[1, 2]]), side("bob", "form", [[3, 4]])))
    assert Conflict.from_record(row.to_record()) == row

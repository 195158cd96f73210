"""Lineage, clause by clause, on histories written by hand. `tests/gates/test_lineage.py` has the same from real git.

In each, m... is trunk, b... and c... what bob and cyd released there; `a` is the file.
"""

from __future__ import annotations

import pytest

from gitcoord.gates.judge import CommitChange
from tests.ledger.past import FILE, NOTHING, Ledger, Past

LACKING = [("lineage", "a")]
UNCLAIMED = [("unclaimed", "a")]


@pytest.fixture
def past() -> Past:
    made = Past()
    made.commit("m0", {"a": "aaaa", "z": "zz"})
    return made


@pytest.fixture
def ledger(past: Past) -> Ledger:
    return Ledger(past)


def rules(ledger: Ledger, *steps: CommitChange, many: bool = False) -> list[tuple[str, str]]:
    """The verdicts on changes of `a`, which is shared."""
    if many:  # so many paths and releases that all are read at once
        for number in range(20):
            ledger.past.commit(f"o{number}", {f"o{number}": "x"}, "m0")
            ledger.release(f"o{number}", f"o{number}", "m0", 100 + number)
            steps = (*steps, ledger.past.commit(f"p{number}", {f"o{number}": "x"}, "m0"))
    return ledger.rules(*steps, shared=["a"])


def held(ledger: Ledger, *steps: CommitChange, many: bool = False) -> list[tuple[str, str]]:
    """The same verdicts, with a claim of the pusher."""
    ledger.claim("a", "ann")
    return rules(ledger, *steps, many=many)


@pytest.fixture(params=[False, True], ids=["few", "many"])
def many(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


# --- what it is to land released work ------------------------------------------------------------------------------


def test_released_commits_land_themselves(past: Past, ledger: Ledger, many: bool) -> None:
    steps = [past.commit("b1", {"a": "aaab"}, "m0"), past.commit("b2", {"a": "aabb"}, "b1")]
    ledger.release("a", "b2", "m0", 5)
    assert rules(ledger, *steps, many=many) == []


def test_a_released_commit_may_hide_nothing(past: Past, ledger: Ledger) -> None:
    """It is an ancestor of the released commit, from before the claim: its own content was not released."""
    early = past.commit("b1", {"a": "xxxx"}, "m0")
    late = past.commit("b2", {"a": "aaab"}, "b1")
    ledger.release("a", "b2", "b1", 5)
    assert rules(ledger, early, late) == UNCLAIMED


@pytest.mark.parametrize("parent", ["m0", "m1"])
def test_a_copy_of_released_content_lands_it(past: Past, ledger: Ledger, parent: str, many: bool) -> None:
    """It lands even where nothing can be merged: its content shows it."""
    past.commit("m1", {"a": "mmmm"}, "m0")
    past.commit("b1", {"a": "bbbb"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    assert rules(ledger, past.commit("s", {"a": "bbbb"}, parent), many=many) == []
    assert rules(ledger, past.commit("x", {"a": "bbbx"}, parent)) == [*UNCLAIMED, *LACKING]
    assert rules(ledger, past.commit("y", {"a": "bbbb"}, parent, mode="100755")) == [*UNCLAIMED, *LACKING]


def test_so_does_a_copy_of_a_part_of_it(past: Past, ledger: Ledger) -> None:
    past.commit("b1", {"a": "bbbb"}, "m0")
    past.commit("b2", {"a": "cccc"}, "b1")
    past.commit("m1", {"a": "mmmm"}, "m0")
    ledger.release("a", "b2", "m0", 5)
    assert rules(ledger, past.commit("s1", {"a": "bbbb"}, "m1"), past.commit("s2", {"a": "cccc"}, "s1")) == []


def test_so_does_what_a_merge_with_it_leaves(past: Past, ledger: Ledger) -> None:
    """A squash of two commits onto a changed file: a pick of the last would bring the second alone."""
    past.commit("b1", {"a": "baaa"}, "m0")
    past.commit("b2", {"a": "bbaa"}, "b1")
    past.commit("m1", {"a": "aaam"}, "m0")
    ledger.release("a", "b2", "m0", 5)
    assert rules(ledger, past.commit("s", {"a": "bbam"}, "m1")) == []
    assert rules(ledger, past.commit("x", {"a": "bbxm"}, "m1")) == [*UNCLAIMED, *LACKING]


def test_so_does_what_a_pick_of_it_leaves(past: Past, ledger: Ledger) -> None:
    """Its base has work that trunk does not have, so that a merge would bring more, or conflict."""
    past.commit("x1", {"a": "xaaa"}, "m0")
    past.commit("b1", {"a": "xaab"}, "x1")
    past.commit("m1", {"a": "maaa"}, "m0")
    ledger.release("a", "b1", "x1", 5)
    assert rules(ledger, past.commit("s", {"a": "maab"}, "m1")) == []


def test_a_pick_of_a_part_of_it(past: Past, ledger: Ledger) -> None:
    past.commit("b1", {"a": "baaa"}, "m0")
    past.commit("b2", {"a": "baac"}, "b1")
    past.commit("m1", {"a": "amaa"}, "m0")
    ledger.release("a", "b2", "m0", 5)
    assert rules(ledger, past.commit("s", {"a": "bmaa"}, "m1")) == []


def test_back_and_forth_within_one_release(past: Past, ledger: Ledger) -> None:
    """The second commit's parent has had what was released; it is part of the work all the same."""
    steps = [past.commit("b1", {"a": "bbbb"}, "m0"), past.commit("b2", {"a": "cccc"}, "b1")]
    steps.append(past.commit("b3", {"a": "bbbb"}, "b2"))
    ledger.release("a", "b3", "m0", 5)
    assert rules(ledger, *steps) == []


@pytest.mark.parametrize("landed", ["merged", "copied"])
def test_going_back_to_what_landed_needs_a_claim(past: Past, ledger: Ledger, landed: str) -> None:
    past.commit("b1", {"a": "bbbb"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    past.commit("m1", {"a": "bbbb"}, *(("m0", "b1") if landed == "merged" else ("m0",)))
    past.commit("m2", {"a": "cccc"}, "m1")
    back = past.commit("m3", {"a": "bbbb"}, "m2")
    assert rules(ledger, back) == UNCLAIMED
    assert held(ledger, back) == []


def test_a_merge_may_take_the_side_that_has_it(past: Past, ledger: Ledger) -> None:
    """It conflicts, and is resolved to the content of the side on which the work landed; or to something else."""
    past.commit("b1", {"a": "bbbb"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    past.commit("s1", {"a": "bbbc"}, "b1")
    past.commit("m1", {"a": "mmmm"}, "m0")
    assert rules(ledger, past.commit("j", {"a": "bbbc"}, "m1", "s1")) == []
    assert rules(ledger, past.commit("k", {"a": "mmmm"}, "m1", "s1")) == UNCLAIMED
    assert rules(ledger, past.commit("l", {"a": "bbbb"}, "m1", "s1")) == UNCLAIMED


def test_a_merge_of_two_sides_that_both_have_it(past: Past, ledger: Ledger) -> None:
    past.commit("b1", {"a": "bbbb"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    past.commit("s1", {"a": "bbbc"}, "b1")
    past.commit("s2", {"a": "bbbd"}, "b1")
    assert rules(ledger, past.commit("j", {"a": "bbbc"}, "s1", "s2")) == UNCLAIMED


def test_what_is_staged_is_no_released_commit(past: Past, ledger: Ledger) -> None:
    past.commit("b1", {"a": "bbbb"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    past.told["ancestor", "", "b1"] = True  # git takes no id for HEAD, and so for anything
    past.commit("m1", {"a": "mmmm"}, "m0")
    assert rules(ledger, past.index({"a": "mxmm"}, "m1")) == [*UNCLAIMED, *LACKING]


def test_a_deletion_is_work_too(past: Past, ledger: Ledger) -> None:
    past.commit("b1", {"a": None}, "m0")
    ledger.release("a", "b1", "m0", 5)
    assert past.trees["b1"].get("a") is None and past.at("b1", "a") == [NOTHING, ""]
    assert rules(ledger, past.commit("s", {"a": None}, "m0")) == []
    assert held(ledger, past.commit("x", {"a": "xxxx"}, "m0")) == LACKING


# --- what must be contained ----------------------------------------------------------------------------------------


def test_a_change_must_contain_what_was_released(past: Past, ledger: Ledger, many: bool) -> None:
    past.commit("b1", {"a": "baaa"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    assert held(ledger, past.commit("x", {"a": "axaa"}, "m0"), many=many) == LACKING
    (verdict,) = ledger.verdicts(past.commit("x", {"a": "axaa"}, "m0"))
    assert verdict.message == "it does not contain what bob released there (b1, event 5)"
    assert (verdict.commit, verdict.mode, verdict.blob) == ("x", FILE, "axaa")
    assert verdict.hints[0] == "bring it in: git merge b1" and "git claim disown a " in verdict.hints[1]
    (verdict,) = ledger.verdicts(past.index({"a": "axaa"}, "m0"))
    assert verdict.hints[0] == "bring it in: git merge --autostash b1"
    past.clashes["b1"] = ["a", "c"]
    (verdict,) = ledger.verdicts(past.index({"a": "axaa"}, "m0"))
    assert verdict.hints[0] == "bring it in, which conflicts in a, c: git merge --autostash b1"


def test_few_of_many_merges_are_tried(past: Past, ledger: Ledger) -> None:
    """No more than are shown: each costs a merge of whole commits."""
    names = [f"f{number}" for number in range(9)]
    for number, name in enumerate(names):
        past.commit(f"b{number}", {name: "baaa"}, "m0")
        ledger.release(name, f"b{number}", "m0", 5 + number)
    assert len(ledger.verdicts(past.commit("x", dict.fromkeys(names, "axaa"), "m0"))) == 9
    assert len(past.tried) == 4


@pytest.mark.parametrize("other", ["b", "a/b", "aa"])
def test_only_the_work_on_its_own_path(past: Past, ledger: Ledger, other: str, many: bool) -> None:
    past.commit("b1", {other: "bb"}, "m0")
    ledger.release(other, "b1", "m0", 5)
    assert held(ledger, past.commit("x", {"a": "axaa"}, "m0"), many=many) == []


def test_paths_are_folded_where_the_ledger_says_so(past: Past, many: bool) -> None:
    ledger = Ledger(past, fold_case=True)
    past.commit("b1", {"A": "bbbb"}, "m0")
    ledger.release("A", "b1", "m0", 5)
    assert held(ledger, past.commit("x", {"a": "axaa"}, "m0"), many=many) == LACKING


def test_an_ancestor_is_contained(past: Past, ledger: Ledger, many: bool) -> None:
    """The release is contained even where later commits changed the file."""
    past.commit("b1", {"a": "bbbb"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    past.commit("m1", {"a": "mmmm"}, "b1")
    assert held(ledger, past.commit("x", {"a": "xxxx"}, "m1"), many=many) == []


def test_what_was_there_once_is_contained(past: Past, ledger: Ledger) -> None:
    past.commit("b1", {"a": "bbbb"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    past.commit("m1", {"a": "bbbb"}, "m0")
    past.commit("m2", {"a": "mmmm"}, "m1")
    assert held(ledger, past.commit("x", {"a": "xxxx"}, "m2")) == []


def test_what_a_merge_finds_nothing_new_in_is_contained(past: Past, ledger: Ledger) -> None:
    past.commit("b1", {"a": "baaa"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    past.commit("m1", {"a": "baam"}, "m0")
    assert held(ledger, past.commit("x", {"a": "xxxx"}, "m1")) == []


@pytest.mark.parametrize("upon", [True, False])
def test_what_later_work_was_built_upon_is_contained_with_it(past: Past, ledger: Ledger, upon: bool) -> None:
    past.commit("b1", {"a": "bbbb"}, "m0")
    past.commit("c1", {"a": "cccc"}, "b1" if upon else "m0")
    ledger.release("a", "b1", "m0", 5)
    ledger.release("a", "c1", "b1" if upon else "m0", 6)
    past.commit("m1", {"a": "cccc"}, "m0")
    assert held(ledger, past.commit("x", {"a": "xxxx"}, "m1")) == ([] if upon else LACKING)


def test_later_work_that_did_not_land_brings_nothing(past: Past, ledger: Ledger) -> None:
    past.commit("b1", {"a": "bbbb"}, "m0")
    past.commit("c1", {"a": "cccc"}, "b1")
    ledger.release("a", "b1", "m0", 5)
    ledger.release("a", "c1", "b1", 6)
    assert held(ledger, past.commit("x", {"a": "xxxx"}, "m0")) == LACKING


def test_earlier_work_brings_nothing_of_what_is_built_upon_it(past: Past, ledger: Ledger) -> None:
    """cyd's was released first, and then bob's, which hers contains."""
    past.commit("b1", {"a": "bbbb"}, "m0")
    past.commit("c1", {"a": "cccc"}, "b1")
    ledger.release("a", "c1", "b1", 5)
    ledger.release("a", "b1", "m0", 6)
    past.commit("m1", {"a": "cccc"}, "m0")
    (verdict,) = ledger.verdicts(past.commit("x", {"a": "xxxx"}, "m1"))
    assert "event 6" in verdict.message


@pytest.mark.parametrize(("first", "second"), [(5, 6), (9, 10)])
def test_the_newest_that_is_missing_is_named(past: Past, ledger: Ledger, first: int, second: int, many: bool) -> None:
    past.commit("b1", {"a": "bbbb"}, "m0")
    past.commit("c1", {"a": "cccc"}, "b1")
    ledger.release("a", "b1", "m0", first)
    ledger.release("a", "c1", "b1", second)
    assert held(ledger, past.commit("x", {"a": "xxxx"}, "m0"), many=many) == LACKING
    (verdict,) = ledger.verdicts(past.commit("x", {"a": "xxxx"}, "m0"))
    assert f"event {second}" in verdict.message


def test_either_parent_of_a_merge_brings_it(past: Past, ledger: Ledger) -> None:
    past.commit("b1", {"a": "bbbb"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    past.commit("m1", {"a": "mmmm"}, "m0")
    assert held(ledger, past.commit("j", {"a": "both"}, "m1", "b1")) == []


# --- of released work itself ---------------------------------------------------------------------------------------


def test_released_work_needs_only_what_was_released_before_it(past: Past, ledger: Ledger) -> None:
    past.commit("b1", {"a": "bbbb"}, "m0")
    past.commit("c1", {"a": "cccc"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    ledger.release("a", "c1", "m0", 6)
    assert rules(ledger, past.commit("s", {"a": "bbbb"}, "m0")) == []
    assert rules(ledger, past.commit("t", {"a": "cccc"}, "m0")) == LACKING


def test_it_brings_what_it_was_built_upon(past: Past, ledger: Ledger) -> None:
    """Both land as one squash, of which nothing shows the first."""
    past.commit("b1", {"a": "bbbb"}, "m0")
    past.commit("c1", {"a": "cccc"}, "b1")
    ledger.release("a", "b1", "m0", 5)
    ledger.release("a", "c1", "b1", 6)
    assert rules(ledger, past.commit("s", {"a": "cccc"}, "m0")) == []


def test_work_begun_before_its_claim_is_part_of_it(past: Past, ledger: Ledger) -> None:
    """The first commit's content was not released, but the commit is an ancestor of the released one."""
    first = past.commit("b1", {"a": "xxxx"}, "m0")
    last = past.commit("b2", {"a": "bbbb"}, "b1")
    ledger.release("a", "b2", "b1", 5)
    assert held(ledger, first, last) == []


def test_what_is_built_on_landed_work_is_asked_for_all_of_it(past: Past, ledger: Ledger) -> None:
    past.commit("b1", {"a": "bbbb"}, "m0")
    past.commit("c1", {"a": "cccc"}, "b1")
    ledger.release("a", "b1", "m0", 5)
    ledger.release("a", "c1", "b1", 6)
    copy = past.commit("s", {"a": "bbbb"}, "m0")
    assert held(ledger, copy, past.commit("x", {"a": "xxxx"}, "s")) == LACKING
    # Also with a step between that does not touch it.
    between = past.commit("t", {"z": "zy"}, "s")
    assert held(ledger, copy, between, past.commit("y", {"a": "xxxx"}, "t")) == LACKING


# --- where it is asked for -----------------------------------------------------------------------------------------


def test_it_is_asked_for_where_a_change_starts(past: Past, ledger: Ledger) -> None:
    """Only a merge shows that bob's work is in m1, and only until its letters are changed again."""
    past.commit("b1", {"a": "baaa"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    past.commit("m1", {"a": "baam"}, "m0")
    first = past.commit("x1", {"a": "xaam"}, "m1")
    aside = past.commit("x2", {"z": "zx"}, "x1")
    assert held(ledger, first, aside, past.commit("x3", {"a": "yaam"}, "x2")) == []


def test_each_start_is_asked(past: Past, ledger: Ledger) -> None:
    """Two branches in one push, and only the second lacks it."""
    past.commit("b1", {"a": "bbbb"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    ledger.claim("a", "ann")
    good = past.commit("x1", {"a": "bbbx"}, "b1")
    bad = past.commit("y1", {"a": "aaay"}, "m0")
    (verdict,) = ledger.verdicts(good, bad)
    assert verdict.commit == "y1"


def test_a_step_that_does_not_touch_it_is_no_start(past: Past, ledger: Ledger) -> None:
    """A change after it is judged as a start."""
    past.commit("b1", {"a": "bbbb"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    aside = past.commit("x1", {"z": "zx"}, "m0")
    assert held(ledger, aside) == []
    (verdict,) = ledger.verdicts(aside, past.commit("x2", {"a": "aaax"}, "x1"))
    assert (verdict.rule, verdict.commit) == ("lineage", "x2")


# --- a merge above it ----------------------------------------------------------------------------------------------


@pytest.fixture
def stale(past: Past, ledger: Ledger) -> CommitChange:
    """A change that lacks bob's work, by the holder of the path."""
    past.commit("b1", {"a": "baaa"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    ledger.claim("a", "ann")
    return past.commit("x1", {"a": "aaax"}, "m0")


def test_a_merge_above_brings_it_in(past: Past, ledger: Ledger, stale: CommitChange) -> None:
    merge = past.commit("x2", {}, "x1", "b1")
    assert merge.changes == () and past.at("x2", "a") == [FILE, "baax"]
    assert rules(ledger, stale, merge) == []


def test_also_above_other_steps(past: Past, ledger: Ledger, stale: CommitChange) -> None:
    aside = past.commit("x2", {"z": "zx"}, "x1")
    assert rules(ledger, stale, aside, past.commit("x3", {}, "x2", "b1")) == []


def test_not_one_that_brings_something_else(past: Past, ledger: Ledger, stale: CommitChange) -> None:
    past.commit("o1", {"o": "oo"}, "m0")
    assert rules(ledger, stale, past.commit("x2", {}, "x1", "o1")) == LACKING


def test_not_one_of_another_branch(past: Past, ledger: Ledger, stale: CommitChange) -> None:
    other = past.commit("o1", {"o": "oo"}, "m0")
    assert rules(ledger, stale, other, past.commit("o2", {}, "o1", "b1")) == LACKING


def test_not_one_below(past: Past, ledger: Ledger, stale: CommitChange) -> None:
    """Steps come parents first; what comes before it is not above it."""
    other = past.commit("o1", {"o": "oo"}, "b1")
    assert rules(ledger, other, stale) == LACKING


def test_one_that_resolves_a_conflict_to_work_of_its_own(past: Past, ledger: Ledger, stale: CommitChange) -> None:
    assert rules(ledger, stale, past.commit("x2", {"a": "baxx"}, "x1", "b1")) == []


def test_not_one_that_drops_it(past: Past, ledger: Ledger) -> None:
    """It leaves cyd's released content, and so none of bob's."""
    past.commit("b1", {"a": "bbbb"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    past.commit("c1", {"a": "cccc"}, "m0")
    ledger.release("a", "c1", "m0", 6)
    copy = past.commit("x1", {"a": "cccc"}, "m0")
    drops = past.commit("x2", {"a": "cccc"}, "x1", "b1")
    assert rules(ledger, copy, drops) == LACKING
    merges = past.commit("y2", {"a": "both"}, "x1", "b1")
    assert held(ledger, copy, merges) == []


def test_the_side_that_is_the_change_itself_brings_nothing(past: Past, ledger: Ledger, stale: CommitChange) -> None:
    """Two branches of it are merged with each other, and neither contains bob's work; one has its content."""
    left = past.commit("x2", {"a": "baax"}, "x1")
    right = past.commit("x3", {"z": "zx"}, "x1")
    assert rules(ledger, stale, left, right, past.commit("x4", {}, "x3", "x2")) == LACKING


# --- how much is asked ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("paths", [16, 17])
def test_many_records_are_read_at_once(past: Past, ledger: Ledger, paths: int) -> None:
    ledger.verdicts(past.commit("m1", {f"f{number}": "x" for number in range(paths)}, "m0"))
    assert ("below", "lineage") in ledger.state.asked if paths > 16 else ("below", "lineage") not in ledger.state.asked
    looked = [what for kind, what in ledger.state.asked if kind == "leaves" and what.startswith("lineage/")]
    assert len(looked) == (paths if paths <= 16 else 0)


@pytest.mark.parametrize("releases", [4, 5])
def test_many_commits_are_asked_for_at_once(past: Past, ledger: Ledger, releases: int) -> None:
    names = [f"b{number}" for number in range(releases)]
    for number, name in enumerate(names):
        past.commit(name, {f"f{number}": "x"}, "m0")
        ledger.release(f"f{number}", name, "m0", number + 1)
    ledger.verdicts(past.commit("m1", {f"f{number}": "y" for number in range(releases)}, "m0"))
    asked = past.asked
    if releases > 4:
        assert asked == [("containing", "m1"), ("contained", "m0")], "whose part is it, and what is in its parent?"
    else:
        assert {kind for kind, _ in asked} == {"ancestor"}


def test_a_conflict_that_is_resolved_to_the_released_side_brings_it_in(past: Past, ledger: Ledger, many: bool) -> None:
    """The commit before the merge was there first, and nobody has released it: it is given up for the released work."""
    mine = past.commit("p1", {"a": "caaa"}, "m0")
    past.commit("b1", {"a": "baaa"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    merge = past.commit("p2", {"a": "baaa"}, "p1", "b1")
    assert held(ledger, mine, merge, many=many) == []
    kept = past.commit("p3", {"a": "caaa"}, "p1", "b1")
    assert held(ledger, mine, kept, many=many) == [], "under a claim one may decide for one's own"


# --- released commits that are nowhere any more --------------------------------------------------------------------


@pytest.fixture
def squashed(past: Past, ledger: Ledger) -> Past:
    """The work that bob released is on trunk as a squash, m1; his branch was deleted, and nobody has its commits."""
    past.commit("m1", {"a": "aaab"}, "m0")
    past.commit("b1", {"a": "aaab"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    del past.parents["b1"], past.trees["b1"]
    return past


def test_the_squash_of_a_branch_that_was_deleted_is_built_on(squashed: Past, ledger: Ledger, many: bool) -> None:
    mine = squashed.commit("m2", {"a": "baab"}, "m1")
    assert held(ledger, mine, squashed.commit("m3", {"a": "bbab"}, "m2"), many=many) == []
    assert held(ledger, squashed.index({"a": "bbbb"}, "m2"), many=many) == []


def test_who_has_not_pulled_it_is_told_its_commit(squashed: Past, ledger: Ledger) -> None:
    ledger.claim("a", "ann")
    (verdict,) = ledger.verdicts(squashed.index({"a": "baaa"}, "m0"), shared=["a"])
    assert verdict.rule == "lineage" and "git merge --autostash m1" in verdict.hints[0]


def test_going_back_to_it_needs_a_claim_like_any_change(squashed: Past, ledger: Ledger) -> None:
    squashed.commit("m2", {"a": "baab"}, "m1")
    assert rules(ledger, squashed.commit("m3", {"a": "aaab"}, "m2")) == UNCLAIMED


def test_the_same_content_from_before_the_claim_is_not_what_was_released(past: Past, ledger: Ledger) -> None:
    past.commit("m1", {"a": "aaab"}, "m0")
    past.commit("m2", {"a": "aaaa"}, "m1")
    past.commit("b1", {"a": "aaab"}, "m2")
    ledger.release("a", "b1", "m2", 5)
    del past.parents["b1"], past.trees["b1"]
    past.told["ancestor", "b1", "m2"] = False
    with pytest.raises(KeyError):  # nothing can be compared: git says so
        held(ledger, past.commit("m3", {"a": "baaa"}, "m2"))

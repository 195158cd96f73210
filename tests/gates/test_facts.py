"""git's answers to the judge's questions about commits. Each is asked often, since then all paths are read at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitcoord.base.errors import CouldNotJudge
from gitcoord.gates.git_history import GitHistory
from gitcoord.git.commands import objects
from gitcoord.git.process import Answer, run
from tests.gates.repository import FILE, GONE, Repository
from tests.support import git

RUN, NOTHING = "100755", "000000"
TEXT = "".join(f"{number}\n" for number in range(20))
PATHS = {"a", "b", "d/c", "gone", "odd*", "other"}


class Facts(Repository):
    def ask(self, kind: str, *words: str, often: bool = True) -> object:
        """One question, with commits by name; the answer must stay the same."""
        what = [self.commits.get(word, word) for word in words]
        if kind in ("contained", "containing"):
            what[1:] = [what[1:]]  # type: ignore[list-item]
        if kind == "left_again":
            what[4:] = [what[4:]]  # type: ignore[list-item]
        past = self.past()
        answers = []
        for _ in range(7 if often else 1):
            past.answers.clear()
            answers.append(getattr(past, kind)(*what))
        assert all(answer == answers[0] for answer in answers)
        return answers[0]

    def past(self, paths: set[str] = PATHS) -> GitHistory:
        return GitHistory(self.ctx, None, paths)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Facts]:
    """main: m0 to m3. One branch off m0 with b1 and b2, one root of its own, one that goes back and forth."""
    made = Facts(tmp_path_factory.mktemp("facts") / "top")
    made.commit("m0", {"a": TEXT, "b": "b\n", "d/c": "c\n", "gone": "g\n", "odd*": "o\n", "oddly": "o\n"})
    made.commit("m1", {"a": TEXT.replace("19", "m1")}, "m0")
    made.commit("m2", {"b": "m2\n", "gone": None}, "m1")
    made.commit("m3", {"b": "b\n", "oddly": "m3\n"}, "m2")
    made.commit("b1", {"a": TEXT.replace("\n1\n", "\nb1\n")}, "m0")
    made.commit("b2", {"b": "b2\n"}, "b1")
    made.commit("root", {"a": "root\n"})
    made.commit("run", {"b": "b\n"}, "m0", mode=RUN)
    yield made
    made.ctx.store.close()


# --- who contains whom ---------------------------------------------------------------------------------------------


def test_ancestors(repository: Facts) -> None:
    assert repository.ask("is_ancestor", "m0", "m2") is True
    assert repository.ask("is_ancestor", "m2", "m0") is False
    assert repository.ask("is_ancestor", "m1", "b1") is False


@pytest.mark.parametrize(
    "what",
    [
        ("is_ancestor", "GONE", "m0"),
        ("is_ancestor", "m0", "GONE"),
        ("work", "m0", "GONE", "a"),
        ("had", "GONE", "GONE", "a", FILE, "x"),
        ("merged", "m0", "GONE", "a"),
        ("merged", "GONE", "m0", "a"),
    ],
)
def test_a_missing_commit_is_named(repository: Facts, what: tuple[str, ...]) -> None:
    with pytest.raises(CouldNotJudge) as caught:
        repository.ask(*what)
    if what[0] != "had":
        assert f"{GONE[:12]} is not in this copy" in caught.value.message
        assert "git fetch --all" in caught.value.hints[0]


def test_what_git_cannot_do_is_told_as_such(repository: Facts) -> None:
    """A file is no commit, though it is here."""
    blob = repository.blob("b\n")
    for what, told in (
        (("is_ancestor", blob, "m0"), "git cannot compare"),
        (("merged", "m0", blob, "a"), "git cannot merge"),
        (("at", blob, "a"), "git cannot read"),
        (("work", "m0", GONE, "a"), "is not in this copy"),
    ):
        with pytest.raises(CouldNotJudge, match=told):
            repository.ask(*what)


def test_history_that_git_cannot_read(repository: Facts, tmp_path: Path) -> None:
    """Both commits are here, and one between them is not."""
    broken = Facts(tmp_path / "broken")
    broken.commit("m0", {"a": "0\n"})
    broken.commit("m1", {"a": "1\n"}, "m0")
    broken.commit("m2", {"a": "2\n"}, "m1")
    git(broken.top, "unpack-objects", "-q", data=git(broken.top, "pack-objects", "--all", "--stdout", "-q"))
    for pack in (broken.top / ".git/objects/pack").iterdir():
        pack.unlink()
    oid = broken.commits["m1"]
    (broken.top / ".git/objects" / oid[:2] / oid[2:]).unlink()
    for often in (False, True):
        with pytest.raises(CouldNotJudge, match="git cannot read the history"):
            broken.ask("work", "m0", "m2", "a", often=often)
    broken.ctx.store.close()


def test_a_tree_that_git_cannot_read_whole(tmp_path: Path) -> None:
    """A single question reads only its own path; the question for all paths needs the missing object."""
    broken = Facts(tmp_path / "broken")
    broken.commit("m0", {"a": "0\n", "d/c": "c\n"})
    git(broken.top, "unpack-objects", "-q", data=git(broken.top, "pack-objects", "--all", "--stdout", "-q"))
    for pack in (broken.top / ".git/objects/pack").iterdir():
        pack.unlink()
    oid = git(broken.top, "rev-parse", "m0:d").decode().strip()
    (broken.top / ".git/objects" / oid[:2] / oid[2:]).unlink()
    assert broken.ask("at", "m0", "a", often=False) == [FILE, broken.blob("0\n")]
    with pytest.raises(CouldNotJudge, match="git cannot read"):
        broken.ask("at", "m0", "a")
    broken.ctx.store.close()


def test_many_at_once(repository: Facts) -> None:
    ids = repository.commits
    asked = ("m0", "m1", "b1", "m3")
    assert repository.ask("contained", "m2", *asked) == {
        ids["m0"]: True,
        ids["m1"]: True,
        ids["b1"]: False,
        ids["m3"]: False,
    }
    assert repository.ask("containing", "m1", "m0", "m2", "m3", "b2") == {
        ids["m0"]: False, ids["m2"]: True, ids["m3"]: True, ids["b2"]: False,
    }  # fmt: skip


def test_of_many_the_missing_are_left_out(repository: Facts) -> None:
    m0 = repository.commits["m0"]
    assert repository.ask("contained", "m2", "m0", "GONE") == {m0: True}
    assert repository.ask("contained", "m2", "GONE") == {}
    assert repository.ask("contained", "GONE", "m0") == {}, "where git cannot tell, each is asked for by itself"
    assert repository.ask("containing", "GONE", "m0") == {}


def test_a_shallow_clone_cannot_deny(tmp_path: Path) -> None:
    shallow = Facts(tmp_path / "shallow")
    shallow.commit("m0", {"a": "0\n"})
    shallow.commit("m1", {"a": "1\n"}, "m0")
    (shallow.top / ".git/shallow").write_text(shallow.commits["m1"] + "\n")
    with pytest.raises(CouldNotJudge, match="shallow") as caught:
        shallow.ask("is_ancestor", "m0", "m1")
    assert caught.value.hints == ("git fetch --unshallow",)
    assert shallow.ask("is_ancestor", "m1", "m1") is True, "what it has is enough"
    assert shallow.ask("contained", "m1", "m0") == {}
    shallow.ctx.store.close()


# --- what lay where ------------------------------------------------------------------------------------------------


def test_what_lies_at_a_path(repository: Facts) -> None:
    assert repository.ask("at", "m0", "b") == [FILE, repository.blob("b\n")]
    assert repository.ask("at", "run", "b") == [RUN, repository.blob("b\n")]
    assert repository.ask("at", "m0", "d/c") == [FILE, repository.blob("c\n")]
    assert repository.ask("at", "m2", "gone") == repository.ask("at", "m0", "d") == [NOTHING, ""]


def test_also_at_one_that_is_not_judged(repository: Facts) -> None:
    """A release may spell it in another way; all that is judged was read before."""
    past = repository.past({"a"})
    m2 = repository.commits["m2"]
    for _ in range(6):
        past.answers.clear()
        past.at(m2, "a"), past.work("", m2, "a")
    assert past.at(m2, "b") == [FILE, repository.blob("m2\n")]
    rows = past.work("", m2, "b")
    assert rows == [[m2, FILE, repository.blob("m2\n")], [repository.commits["m0"], FILE, repository.blob("b\n")]]


def test_answers_of_one_commit_are_no_other_ones(repository: Facts) -> None:
    past = repository.past()
    ids = repository.commits
    for _ in range(6):
        past.answers.clear()
        assert [past.at(ids[name], "b") for name in ("m0", "m2")] == [
            [FILE, repository.blob("b\n")], [FILE, repository.blob("m2\n")],
        ]  # fmt: skip
        assert [len(past.work("", ids[name], "b")) for name in ("m0", "m2")] == [1, 2]


def test_what_was_done_at_a_path(repository: Facts) -> None:
    ids = repository.commits
    back = [[ids["m3"], FILE, repository.blob("b\n")], [ids["m2"], FILE, repository.blob("m2\n")]]
    assert repository.ask("work", "m0", "m3", "b") == back
    assert repository.ask("work", "", "m3", "b") == [*back, [ids["m0"], FILE, repository.blob("b\n")]]
    assert repository.ask("work", "m0", "m3", "gone") == [[ids["m2"], NOTHING, ""]]
    assert repository.ask("work", "m0", "m3", "odd*") == [], "a path is no pattern"
    assert repository.ask("work", "m0", "m3", "nowhere") == []


@pytest.mark.parametrize(
    ("released", "at", "path", "mode", "text", "expected"),
    [
        ("b2", "m3", "b", FILE, "m2\n", True),  # since their merge base
        ("b2", "m3", "b", FILE, "b2\n", False),
        ("b2", "m3", "b", RUN, "m2\n", False),
        ("b2", "m3", "b", FILE, "b\n", True),
        ("b2", "m2", "b", FILE, "b\n", False),  # before it
        ("b2", "b1", "b", FILE, "b\n", True),  # there now, though nobody put it there since
        ("b2", "b1", "b", RUN, "b\n", False),
        ("root", "m2", "b", FILE, "b\n", True),  # without one, at any time
        ("root", "m2", "b", FILE, "x\n", False),
        ("b2", "m3", "gone", "", "", True),
        ("b2", "m3", "gone", NOTHING, "", True),
        ("b2", "m1", "gone", NOTHING, "", False),
        ("b2", "m3", "other", NOTHING, "", False),  # it never was there
    ],
)
def test_what_was_there_since_the_merge_base(
    repository: Facts, released: str, at: str, path: str, mode: str, text: str, expected: bool
) -> None:
    assert repository.ask("had", released, at, path, mode, repository.blob(text)) is expected


@pytest.mark.parametrize(
    ("at", "text", "mode", "bases", "expected"),
    [
        ("m3", "m2\n", FILE, ["m0"], True),
        ("m2", "m2\n", FILE, ["m0"], False),  # it is there still
        ("m3", "m2\n", RUN, ["m0"], False),
        ("m3", "x\n", FILE, ["m0"], False),
        ("m3", "m2\n", FILE, ["m2"], False),  # before it was asked for
        ("m3", "m2\n", FILE, ["GONE"], True),
        ("m3", "m2\n", FILE, ["GONE", "m2"], False),
    ],
)
def test_what_was_left_again(
    repository: Facts, at: str, text: str, mode: str, bases: list[str], expected: bool
) -> None:
    assert repository.ask("left_again", at, "b", mode, repository.blob(text), *bases) is expected


# --- what a merge would leave --------------------------------------------------------------------------------------


def test_what_a_merge_leaves(repository: Facts) -> None:
    both = TEXT.replace("19", "m1").replace("\n1\n", "\nb1\n")
    assert repository.ask("merged", "m1", "b1", "a") == [FILE, repository.blob(both)]
    assert repository.ask("merged", "m2", "b2", "b") is None, "it is not clean"
    assert repository.ask("merged", "m0", "root", "a") is None, "nor is one without a common beginning"
    assert repository.ask("merged", "m2", "m0", "b") == [FILE, repository.blob("m2\n")]


def test_what_a_pick_leaves(repository: Facts) -> None:
    assert repository.ask("picked", "m1", "b2", "b") == [FILE, repository.blob("b2\n")]
    assert repository.ask("picked", "m1", "b2", "a") == [FILE, repository.blob(TEXT.replace("19", "m1"))]
    assert repository.ask("picked", "m2", "b2", "b") is None
    assert repository.ask("picked", "m1", "root", "a") is None, "the first commit has nothing to be picked from"


# --- attributes files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "parent", "new", "expected"),
    [
        (".gitattributes", "before", "a gitcoord-claim\n*.png binary\n", False),
        (".gitattributes", "before", "b gitcoord-claim\n", True),
        (".gitattributes", "before", "", True),
        (".gitattributes", "", "a gitcoord-claim\n", True),
        (".gitattributes", "", "*.png binary\n", False),
        ("d/.gitattributes", "before", "*.png binary\n", False),
        ("d/.gitattributes", "before", "x shared\n", True),  # by a macro of the top
        ("d/.gitattributes", "", "x shared\n", False),
        (
            ".gitattributes",
            "before",
            "a gitcoord-claim\n[attr]shared gitcoord-claim\n" + "#" * (1 << 20),
            True,
        ),  # too large
    ],
)
def test_attributes_that_tell_gitcoord_something(
    repository: Facts, path: str, parent: str, new: str, expected: bool
) -> None:
    if "before" not in repository.commits:
        text = "a gitcoord-claim\n[attr]shared gitcoord-claim\n"
        repository.commit("before", {".gitattributes": text}, "m0")
    if "binary" in new and path == ".gitattributes" and parent:
        new += "[attr]shared gitcoord-claim\n"
    assert repository.ask("changes_attributes", parent, path, repository.blob(new)) is expected


# --- how much is asked ---------------------------------------------------------------------------------------------


def test_a_few_questions_are_asked_one_by_one(repository: Facts) -> None:
    past = repository.past()
    assert [past.often("tree", "one") for _ in range(6)] == [False] * 4 + [True] * 2
    assert not past.often("tree", "two")


def test_many_are_answered_together(repository: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of question starts git a few times, however many paths are asked for; those few read one path each."""
    started: list[list[str]] = []

    def noted(argv: list[str], *more: object) -> Answer:
        started.append(argv)
        return run(argv, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(objects, "run", noted)
    paths = [f"p{number}" for number in range(50)]
    past = repository.past(set(paths))
    ids = repository.commits
    for path in paths:
        past.at(ids["m0"], path)
        past.work(ids["m0"], ids["m3"], path)
        past.merged(ids["m1"], ids["b1"], path)
        past.picked(ids["m1"], ids["b2"], path)
        past.had(ids["b1"], ids["m3"], path, FILE, "x" * 40)
    words = ("merge-tree", "merge-base", "log", "ls-tree", "--literal-pathspecs")
    counted = [sum(word in argv for argv in started) for word in words]
    assert dict(zip(words, counted)) == {
        "merge-tree": 2, "merge-base": 1, "log": 3, "ls-tree": 20, "--literal-pathspecs": 16,
    }  # fmt: skip
    asked = [argv[argv.index("--") + 1 :] for argv in started if "log" in argv]
    assert asked == [*([f":(top,literal){path}"] for path in ("p0", "p1")), []]

"""While a merge, rebase, cherry-pick or revert is under way, hints name how it ends first; each, followed in order, leads out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.cli.test_hinted_commands import commands_in, follow, hints_of
from tests.gates.support import SHARED, Project, refused

# The beginning of each operation on `main`, which then conflicts in free/x and brings shared/a without a claim.
BEGINNINGS = {
    "merge": ("merge", "side"), "rebase": ("rebase", "side"), "rebase-apply": ("rebase", "--apply", "side"),
    "cherry-pick": ("cherry-pick", "side"), "revert": ("revert", "--no-edit", "side"),
}  # fmt: skip
COMMANDS = (("sync",), ("sync", "--pull"), ("land", "--wait", "0"), ("commit", "-m", "x", "free/y"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """`main` and `side` change the same line of free/x; `side` also shared/a. Both lack a commit of the remote's trunk."""
    made = Project(tmp_path, SHARED)
    made.branch("side")
    made.commit({"shared/a": "side\n", "free/x": "side\n"})
    made.switch("main")
    made.commit({"free/x": "theirs\n"})
    made.unhooked("push", "-q", "origin", "main")
    made.unhooked("reset", "-q", "--hard", "HEAD~1")
    made.commit({"free/x": "main\n"})
    return made


def begin(project: Project, words: tuple[str, ...]) -> str:
    """Begin an operation that stops in a conflict; its name."""
    if words[0] == "revert":
        project.unhooked("merge", "-q", "--no-edit", "-X", "ours", "side")
    done = project.try_git("-c", "core.hooksPath=/dev/null", *words, agent="alice")
    assert done.code == 1 and "CONFLICT" in done.said, done
    return words[0]


def undo_of(done: Done, name: str) -> str:
    """The hint that puts everything back, which stands before all that cannot be followed yet."""
    hints = hints_of(done)
    found = next(hint for hint in hints if f"git {name} --abort" in hint)
    later = hints[hints.index(found) + 1 :]
    waits = [hint for hint in hints if "sync --pull" in hint or "git merge" in hint and "--abort" not in hint]
    assert all(hint in later for hint in waits if hint != found), hints
    return found


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize("words", BEGINNINGS.values(), ids=list(BEGINNINGS))
def test_commands_name_how_the_operation_ends(
    project: Project, words: tuple[str, ...], command: tuple[str, ...]
) -> None:
    project.branch("topic")
    project.unhooked("branch", "-q", "-f", "main", "origin/main")
    name = begin(project, words)
    project.write({"free/y": "mine\n"})
    done = project.coord(*command, agent="alice")
    assert done.code == 1 and hints_of(done), done
    (back,) = commands_in(undo_of(done, name))[-1:]
    assert follow(project, back, "alice").code == 0
    again = project.coord(*command, agent="alice")
    assert "under way" not in again.said and "--abort" not in again.err.replace("git coord land --abort", ""), again
    assert project.git("status", "--porcelain", "free/y") in ("?? free/y", ""), "what is no part of it stays"


@pytest.mark.parametrize("words", BEGINNINGS.values(), ids=list(BEGINNINGS))
def test_what_is_resolved_is_finished_without_an_editor(project: Project, words: tuple[str, ...]) -> None:
    name = begin(project, words)
    done = project.coord("sync", "--pull", agent="alice")
    assert f"a {name} is under way" in done.err, done
    project.claim("shared/a", agent="alice")
    project.write({"free/x": "both\n"})
    project.git("add", "free/x")
    (finish,) = commands_in(hints_of(done)[0])
    followed = follow(project, finish, "alice")
    assert followed.code == 0, followed
    assert project.git("show", "main:free/x") == "both" and "under way" not in project.coord("sync", agent="alice").said


@pytest.mark.parametrize("name", ["merge", "rebase", "cherry-pick"])
def test_a_refused_end_is_gone_on_with_under_a_claim(project: Project, name: str) -> None:
    begin(project, BEGINNINGS[name])
    project.write({"free/x": "both\n"})
    project.git("add", "free/x")
    finish = ["commit", "--no-edit"] if name == "merge" else ["-c", "core.editor=true", name, "--continue"]
    done = project.try_git(*finish, agent="alice")
    assert refused(done, "unclaimed", "shared/a"), done
    claim, end = [commands_in(hint) for hint in hints_of(done)[-2:]]
    assert follow(project, claim[0], "alice").code == 0
    assert end[1] == ["git", name, "--abort"]
    followed = follow(project, end[0], "alice")
    assert followed.code == 0 and project.git("show", "main:shared/a") == "side", followed


PICKS = {
    "cherry-pick": ("cherry-pick", "side"), "cherry-picks": ("cherry-pick", "side~1", "side"), "revert": ("revert", "--no-edit", "side"),
    "revert with an editor": ("-c", "core.editor=true", "revert", "--edit", "side"),
    "reverts": ("revert", "--no-edit", "side", "side~1"),
}  # fmt: skip


@pytest.fixture
def picks(tmp_path: Path) -> Project:
    """Two commits on `side`, one after the other, change shared/a and shared/b. Nothing conflicts, and free/x is changed, not committed."""
    made = Project(tmp_path, SHARED)
    made.branch("side")
    made.commit({"shared/b": "side\n", "shared/new": "side\n"})
    made.commit({"shared/a": "side\n"})
    made.switch("main")
    return made


def refused_pick(picks: Project, words: tuple[str, ...]) -> tuple[Done, dict[str, str]]:
    """The refusal, and what main has afterwards where it was gone on with."""
    there = {"shared/a": "side", "shared/b": "side"}
    if "revert" in words:
        picks.unhooked("reset", "-q", "--hard", "side")
        there = {path: picks.git("show", f"origin/main:{path}") for path in there}
    picks.write({"free/x": "mine\n"})
    done = picks.try_git(*words, agent="alice")
    assert refused(done, "unclaimed") and picks.git("diff", "--cached", "--name-only"), done
    return done, there if "side~1" in words else {"shared/a": there["shared/a"]}


@pytest.mark.parametrize("words", PICKS.values(), ids=list(PICKS))
def test_a_refused_pick_is_gone_on_with_under_a_claim(picks: Project, words: tuple[str, ...]) -> None:
    done, there = refused_pick(picks, words)
    picks.claim("shared", agent="alice")
    assert "is staged; then go on" in hints_of(done)[-1], done
    *go_on, _ = commands_in(hints_of(done)[-1])
    assert [follow(picks, command, "alice").code for command in go_on] == [0] * len(go_on)
    assert {path: picks.git("show", f"main:{path}") for path in there} == there
    assert picks.git("status", "--porcelain") == "M free/x"


@pytest.mark.parametrize("words", PICKS.values(), ids=list(PICKS))
def test_a_refused_pick_is_put_back_and_nothing_else(picks: Project, words: tuple[str, ...]) -> None:
    done, _ = refused_pick(picks, words)
    picks.write({"free/untracked": "mine\n"})
    assert follow(picks, commands_in(hints_of(done)[-1])[-1], "alice").code == 0
    assert picks.git("status", "--porcelain").splitlines() == ["M free/x", "?? free/untracked"]
    assert not picks.git("diff", "--cached")
    assert (picks.top / "free/x").read_text() == "mine\n"
    assert not picks.coord("sync", agent="alice").err.count("under way")


def test_a_merge_that_lacks_released_work_is_put_back_first(project: Project) -> None:
    project.unhooked("reset", "-q", "--hard", "origin/main")
    project.work("bob", "bobs", {"shared/b": "bob's\n"})
    project.branch("other")
    project.commit({"shared/b": "other\n", "free/y": "y\n"})
    project.switch("main")
    project.claim("shared/b", agent="alice")
    done = project.try_git("merge", "-q", "--no-ff", "--no-edit", "other", agent="alice")
    assert refused(done, "lineage", "shared/b"), done
    hints = hints_of(done)
    back, bring = commands_in(hints[0])[0], commands_in(hints[1])[0]
    assert back == ["git", "merge", "--abort"] and hints[-1] == "then begin the merge again", hints
    assert follow(project, back, "alice").code == 0
    assert follow(project, bring, "alice").code == 0 and project.git("show", "main:shared/b") == "bob's"


def test_a_claim_and_a_session_say_it_too(project: Project) -> None:
    begin(project, BEGINNINGS["merge"])
    said = project.claim("free/x", agent="alice").err
    assert said.index("git merge --abort") < said.index("git coord sync --pull")
    for brief in ((), ("--brief",)):
        told = project.coord("start", *brief, agent="alice").out
        assert told.index("git merge --abort") < told.index("git coord sync --pull")
    assert project.coord("start", "--json", agent="alice").json["copy"]["under_way"] == "merge"

"""`git coord why`: the story of a path, as people would tell it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_git import GitRepo

from tests.cli.support import World


@pytest.fixture
def world(git_repo: GitRepo) -> World:
    return World(Path(git_repo.workspace)).init()


def story(world: World, path: str, *words: str) -> list[str]:
    done = world.coord("why", path, "--json", *words)
    assert done.code == 0, done
    return [row["words"] for row in done.json["story"]]


def test_a_life(world: World) -> None:
    world.take("src", "-m", "refactor")
    assert world.claim("src/a.py", agent="bob").code == 1
    assert world.claim("src/a.py", agent="bob").code == 1
    world.take("docs", agent="bob")
    commit = world.commit({"src/a.py": "new\n"})
    world.claim("release", "src")
    world.take("src/a.py", agent="bob")
    world.fall_silent("bob")
    world.take("src/a.py")
    assert story(world, "src/a.py") == [
        "alice claimed src: refactor",
        "bob was refused 2 times, since alice held src",
        f"alice released src with commit {commit[:12]}",
        "bob claimed it",
        "bob had been silent for more than 30m and lost it; alice asked",
        "alice claimed it",
    ]
    assert story(world, "src/b.py")[-1] == "alice released src unchanged", "its own file was not among them"
    assert story(world, "src/a.py", "-n", "2") == story(world, "src/a.py")[-2:]
    shown = world.coord("why", "a.py", cwd="src")
    assert shown.code == 0 and shown.out.splitlines()[0].endswith("alice claimed src: refactor")
    assert shown.out.splitlines()[-2] == "now:" and "src/a.py" in shown.out.splitlines()[-1]
    assert world.coord("why", "-n", "1", "src/a.py").err.startswith("(5 older")


def test_handed_over_and_written_about(world: World) -> None:
    sections = ("--state", "half done", "--changed", "the parser", "--remaining", "the tests", "--next", "write them")
    rest = ("--blockers", "none", "--assumptions", "none")
    world.take("src/a.py")
    first = world.handoff("new", "--to", "bob", *sections, *rest)
    assert first.code == 0, first
    offer = f"h{len(world.events())}"
    assert world.handoff("decline", offer, "--reason", "busy", agent="bob").code == 0
    world.handoff("new", *sections, *rest)
    second = f"h{len(world.events())}"
    assert world.handoff("accept", second, agent="carol").code == 0
    assert world.coord("journal", "add", "-m", "tabs\nare hard", "--path", "src/a.py", agent="carol").code == 0
    assert story(world, "src/a.py") == [
        "alice claimed it",
        f"alice offered it to bob ({offer})",
        f"bob: the handoff {offer} was declined: busy",
        f"alice offered it to whoever takes it ({second})",
        f"carol took it over from alice ({second})",
        "carol wrote: tabs...",
    ]
    assert story(world, "src/b.py") == []


def test_what_nobody_ever_did(world: World) -> None:
    done = world.coord("why", "nothing")
    assert (done.code, done.out) == (0, "nothing is on record about it\n")
    world.take("x")
    world.claim("release", "x")
    assert world.coord("why", "x").out.endswith("now nobody holds it\n")


def test_a_deploy_of_released_work(world: World) -> None:
    world.commit({".gitcoord/config": '[deploy "production"]\n\tverify = true\n'})
    world.take("src/a.py")
    commit = world.commit({"src/a.py": "new\n"})
    world.claim("release", "src/a.py")
    assert world.coord("deploy", "production", "--", "true", agent="bob").code == 0
    assert world.coord("deploy", "production", "--", "true", agent="bob").code == 0
    assert story(world, "src/a.py")[-1] == f"bob deployed the work of alice ({commit[:12]}) to production"
    assert len(story(world, "src/a.py")) == 3, "told once"
    assert "deployed" not in str(story(world, "src/b.py"))
    assert f"bob deployed {commit[:12]} to production: ok" in story(world, "@deploy/production")


def test_folded_case(git_repo: GitRepo) -> None:
    world = World(Path(git_repo.workspace)).init(fold=True)
    world.take("SRC/New.py")
    assert story(world, "src/new.PY") == ["alice claimed it"]


def test_hostile_words_are_shown_harmlessly(world: World) -> None:
    name = "a\x1b[31m\nSeq: 9\u202e[x](javascript:y)"
    world.take(name)
    done = world.coord("why", f":(literal){name}")
    assert done.code == 0 and "claimed it" in done.out
    assert world.coord("why", ".").code == 0


def test_a_path_is_found_however_it_is_spelled(git_repo: GitRepo) -> None:
    """git looks for the events: not as its settings would have it, nor by the letter."""
    world = World(Path(git_repo.workspace)).init(fold=True)
    world.git("config", "grep.patternType", "perl")
    world.git("config", "i18n.logOutputEncoding", "UTF-16")
    for name in ("SRC/A.py", 'docs/a "b" [c].md', "docs/stra\u00dfe", "docs/back\\slash", "docs/tab\there"):
        world.take(name, agent="bob")
        assert world.claim("release", "--all", agent="bob").code == 0
    world.take("docs")
    world.free()
    world.take("@gpu/one", agent="carol")
    around = ["alice claimed docs", "alice released docs unchanged"]
    assert story(world, "src/a.py") == ["bob claimed it", "bob released it unchanged"]
    for name in ('docs/A "B" [c].md', "docs/STRASSE", "docs/back\\slash", "docs/tab\there"):
        assert story(world, name) == ["bob claimed it", "bob released it unchanged", *around]
    assert story(world, "docs/a") == around
    assert story(world, "@gpu") == ["carol claimed @gpu/one"]
    assert len(story(world, ".")) == 12

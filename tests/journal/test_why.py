"""`git coord why`: the story of a path, as people would tell it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.support import World
from tests.support import UNHOOKED


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
        "bob had been refused 2 times before this, since alice held src",
        f"alice released src with commit {commit[:12]}",
        "bob claimed it",
        "bob lost it: expired after 30m without activity; alice asked",
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
        f"alice offered it to any agent ({second})",
        f"carol took it over from alice ({second})",
        "carol wrote: tabs...",
    ]
    assert story(world, "src/b.py") == []


def test_what_nobody_ever_did(world: World) -> None:
    done = world.coord("why", "nothing")
    assert (done.code, done.out) == (0, "nothing is on record about it\n")
    assert done.err == "note: there is no nothing here\n"
    assert world.coord("why", "src/a.py").err == "" and "mean src/a.py?" in world.coord("why", "src/aa.py").err
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


def test_folded_case(git_repo: Path) -> None:
    world = World(git_repo, ledger=True, fold=True)
    world.take("--", "SRC/New.py")
    assert story(world, "src/new.PY") == ["alice claimed it"]


def test_hostile_words_are_shown_harmlessly(world: World) -> None:
    name = "a\x1b[31m\nSeq: 9\u202e[x](javascript:y)"
    world.take(name)
    done = world.coord("why", f":(literal){name}")
    assert done.code == 0 and "claimed it" in done.out
    assert world.coord("why", ".").code == 0


def test_a_path_is_found_however_it_is_spelled(git_repo: Path) -> None:
    """git looks for the events: not as its settings would have it, nor by the letter."""
    world = World(git_repo, ledger=True, fold=True)
    world.git("config", "grep.patternType", "perl")
    world.git("config", "i18n.logOutputEncoding", "UTF-16")
    for name in ("SRC/A.py", 'docs/a "b" [c].md', "docs/stra\u00dfe", "docs/back\\slash", "docs/tab\there"):
        world.take("--", name, agent="bob")
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


# --- the index


INDEX = ".git/gitcoord/mentions"
BROKEN: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda data: None,
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "a line lost": lambda data: b"\n".join(line for n, line in enumerate(data.split(b"\n")) if n != 2),
    "a path changed": lambda data: data.replace(b"src/a.py", b"src/b.py"),
    "foreign": lambda data: b"\x00\xff something else\n" * 100,
    "another ledger's": lambda data: data.replace(data.split(b" ")[3], b"1" * 40, 1),
    "no commit's": lambda data: data.replace(data.split(b" ")[3], b"HEAD", 1),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_index_is_made_again(world: World, how: str) -> None:
    world.take("src/a.py")
    world.free()
    world.take("src/b.py")
    told = ["alice claimed it", "alice released it unchanged"]
    assert story(world, "src/a.py") == told
    index = world.top / INDEX
    whole = index.read_bytes()
    broken = BROKEN[how](whole)
    index.unlink()
    if broken is not None:
        assert broken != whole
        index.write_bytes(broken)
    assert story(world, "src/a.py") == told
    assert index.read_bytes() == whole
    index.unlink()
    index.mkdir()
    assert story(world, "src/a.py") == told, "it is not needed"


def test_the_index_follows_the_ledger(world: World) -> None:
    """This holds for a rewritten ledger too: removed events are not shown, new ones are."""
    world.take("src/a.py")
    before = world.head
    world.take("src/a.py/deep", agent="alice")
    assert story(world, "src/a.py") == ["alice claimed it", "alice claimed src/a.py/deep"]
    world.free()
    assert len(story(world, "src/a.py")) == 4
    rewind(world, before)
    assert world.coord("fsck", "--repair").code == 0
    world.take("src/a.py", "--ttl", "2h")
    assert story(world, "src/a.py") == ["alice claimed it"] * 2
    rewind(world, before)
    assert story(world, "src/a.py") == ["alice claimed it"]


def rewind(world: World, commit: str) -> None:
    for ref in ("refs/heads/gitcoord", "refs/gitcoord/tip"):
        world.git(*UNHOOKED, "update-ref", ref, commit)


def test_of_an_agents_name_the_log_is_named(world: World) -> None:
    world.take("src/a.py")
    assert world.coord("why", "alice").err == "hint: what that agent did: git coord log --agent alice\n"
    assert "src/a.py" in world.coord("log", "--agent", "alice").out and "hint" not in world.coord("why", "nobody").err

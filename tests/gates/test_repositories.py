"""The repositories on this machine with hooks of gitcoord: known to whoever uninstalls it, however it was installed."""

from __future__ import annotations

import subprocess
from copy import copy
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.gates.places import CHAIN, Place
from tests.support import CLAIM, forked_script


@pytest.fixture
def places(git_repo: Path, tmp_path: Path) -> list[Place]:
    """Two repositories that were set up, one with husky, and one that was not."""
    tops = [git_repo, tmp_path / "husky", tmp_path / "other"]
    for top in tops[1:]:
        subprocess.run(["git", "clone", "-q", tops[0], top], check=True, capture_output=True)
        subprocess.run(["git", "-C", top, "remote", "remove", "origin"], check=True)
    found = [Place(top, tmp_path / f"of-{top.name}", CHAIN) for top in tops]
    found[1].write(".husky/pre-commit", "true\n")
    for place in found[:2]:
        place.coordinate("setup", "--no-tools", "--edit-hooks", env=home(tmp_path))
    return found


def home(tmp_path: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path / "data")}


def ask(tmp_path: Path, place: Place, *words: str, agent: str = "") -> Done:
    return place.coord("repositories", *words, agent=agent, env={**home(tmp_path), **place.path})


def test_they_are_listed(places: list[Place], tmp_path: Path) -> None:
    rows = ask(tmp_path, places[2], "--json").json["repositories"]
    assert rows == [{"path": f"{place.top}/.git", "hooks": True, "server": False} for place in places[:2]]
    shown = ask(tmp_path, places[2])
    assert f"{places[1].top}/.git: hooks\n" in shown.out and "git coord repositories --uninstall-hooks" in shown.err


def test_the_hooks_are_taken_out_of_all(places: list[Place], tmp_path: Path) -> None:
    done = ask(tmp_path, places[2], "--uninstall-hooks")
    assert done.code == 0 and f"took the hooks out of {places[1].top}/.git\n" in done.out, done
    assert "no repository on this machine has hooks of gitcoord" in done.out
    for place in places[:2]:
        place.stand_in.unlink()
        place.git("commit", "-q", "--allow-empty", "-m", "nobody is locked out")
    assert (places[1].top / ".husky/pre-commit").read_text() == "true\n"


def moved(place: Place, tmp_path: Path) -> Place:
    """The clone at another place. Its hooks ask the gate itself."""
    place.script(place.stand_in, forked_script(CLAIM))
    clone = copy(place)
    clone.top = place.top.rename(tmp_path / "moved")
    return clone


def test_a_clone_that_was_moved_is_noted_at_its_next_commit(places: list[Place], tmp_path: Path) -> None:
    old, clone = f"{places[0].top}/.git", moved(places[0], tmp_path)
    assert f"not there any more: {old}\n" in ask(tmp_path, places[2]).err
    done = clone.try_git("commit", "-q", "--allow-empty", "-m", "x", env=home(tmp_path))
    assert done.code == 0, done
    rows = ask(tmp_path, places[2], "--json").json
    assert {row["path"] for row in rows["repositories"]} == {f"{places[1].top}/.git", f"{clone.top}/.git"}
    assert rows["gone"] == [old]


def test_a_clone_that_was_moved_is_noted_by_setup(places: list[Place], tmp_path: Path) -> None:
    clone = moved(places[0], tmp_path)
    assert "nothing to do" in clone.coordinate("setup", "--no-tools", env=home(tmp_path)).out
    assert f"{clone.top}/.git: hooks\n" in ask(tmp_path, places[2]).out


def test_inside_a_clone_that_was_moved_its_hooks_are_taken_out(places: list[Place], tmp_path: Path) -> None:
    """As its hooks say once gitcoord is gone."""
    clone = moved(places[0], tmp_path)
    assert f"{clone.top}/.git: hooks\n" in ask(tmp_path, clone).out
    assert f"{clone.top}/.git" not in ask(tmp_path, places[2]).out
    done = ask(tmp_path, clone, "--uninstall-hooks")
    assert done.code == 0 and f"took the hooks out of {clone.top}/.git\n" in done.out, done
    clone.stand_in.unlink()
    clone.git("commit", "-q", "--allow-empty", "-m", "nobody is locked out")


def test_an_agent_may_not(places: list[Place], tmp_path: Path) -> None:
    done = ask(tmp_path, places[2], "--uninstall-hooks", agent="alice")
    assert done.code == 1 and f"the hooks stay in {places[0].top}/.git" in done.err, done
    assert len(ask(tmp_path, places[2], "--json").json["repositories"]) == 2


def test_git_fetch_asks_for_the_ledger_no_more(places: list[Place], tmp_path: Path) -> None:
    """Without gitcoord nobody could mend it once the ledger is deleted at the remote."""
    one = places[0]
    server = tmp_path / "server.git"
    subprocess.run(["git", "clone", "-q", "--bare", places[2].top, server], check=True, capture_output=True)
    own = "+refs/heads/gitcoord-notes:refs/remotes/up.stream/gitcoord-notes"
    one.git("remote", "add", "up.stream", str(server))
    one.ok("init", "--remote", "up.stream")
    one.git("config", "--add", "remote.up.stream.fetch", own)
    assert "+refs/heads/gitcoord:refs/heads/gitcoord" in one.git("config", "--get-all", "remote.up.stream.fetch")
    assert ask(tmp_path, places[2], "--uninstall-hooks").code == 0
    assert one.git("config", "--get-all", "remote.up.stream.fetch").splitlines()[1:] == [own]
    one.git("config", "--unset", "remote.up.stream.fetch", "gitcoord-notes")
    subprocess.run(["git", "-C", server, "update-ref", "-d", "refs/heads/gitcoord"], check=True)
    one.git("fetch", "-q", "up.stream")

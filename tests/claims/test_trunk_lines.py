"""A claim says that the copy is old on what was claimed; a release says that its work has not landed."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import World
from tests.cli.test_json import holds
from tests.ledger.remote.support import Fleet


def test_a_claim_says_by_how_many_commits_the_copy_is_behind(world: World) -> None:
    world.git("switch", "-q", "-c", "topic")
    assert "lacks" not in world.claim("src/a.py").err
    world.claim("release", "src/a.py")
    world.git("switch", "-q", "main")
    world.commit({"src/a.py": "1\n"})
    world.commit({"src/a.py": "2\n"})
    world.commit({"other": "3\n"})
    world.git("switch", "-q", "topic")
    done = world.claim("src/a.py", "src/b.py")
    assert "note: your copy lacks 2 commits of 'main' that changed these paths\n" in done.err
    assert "hint: bring it up to date first: git coord sync --pull\n" in done.err
    world.claim("release", "--all")
    told = [words.removeprefix("note: ").removeprefix("hint: ") for words in done.err.splitlines()[:2]]
    assert holds(world.claim("src/a.py", "src/b.py", "--json"), "grant")["lacks"] == told
    world.claim("release", "--all")
    world.coord("task", "add", "a", "--path", "src/a.py", "--path", "src/b.py")
    task = world.coord("task", "next")
    assert told[0] in task.err, task
    world.coord("task", "release", "t" + task.out[1:].split()[0], "-m", "later")
    world.claim("src/a.py", "src/b.py")
    assert "lacks" not in world.claim("src/a.py").err, "said once, not with each renewal"
    world.claim("release", "--all")
    assert "lacks" not in world.claim("src/b.py").err, "trunk did not change it"
    world.claim("release", "--all")
    world.write("src/a.py", "2\n")
    dirty = world.claim("src/a.py").err
    assert f"hint: bring it up to date first: git merge --autostash {world.git('rev-parse', 'main')[:12]}\n" in dirty
    assert world.coord("sync", "--pull").code == 1, "what the other hint would do"
    world.git("checkout", "-q", "src/a.py")
    world.claim("release", "--all")
    assert world.coord("sync", "--pull").code == 0
    assert "lacks" not in world.claim("src/a.py").err


def test_a_release_says_that_its_work_has_not_landed(world: World) -> None:
    world.git("switch", "-q", "-c", "topic")
    world.take("src/a.py")
    commit = world.commit({"src/a.py": "mine\n"})
    done = world.claim("release", "src/a.py")
    assert f"note: {commit[:12]} has not landed on 'main' yet\n" in done.err and "git coord land" in done.err
    world.git("switch", "-q", "main")
    world.git("merge", "-q", "topic")
    world.take("src/a.py")
    world.commit({"src/a.py": "more\n"})
    assert "landed" not in world.claim("release", "src/a.py").err


def test_a_claim_and_a_check_name_released_work_that_has_not_landed(world: World) -> None:
    world.git("switch", "-q", "-c", "topic")
    world.take("src/a.py")
    commit = world.commit({"src/a.py": "mine\n"})
    world.free("alice")
    world.git("switch", "-q", "main")
    note = f"note: your copy lacks work on src/a.py that alice released as {commit[:12]}\n"
    hint = f"hint: bring it in before you change it: git merge --autostash {commit[:12]}\n"
    assert note + hint in world.claim("src", agent="bob").err
    assert note + hint in world.claim("check", "src/a.py", agent="bob").err
    assert "lacks" not in world.claim("src/b.py", agent="bob").err
    world.git("merge", "-q", commit[:12])
    assert "lacks" not in world.claim("check", "src/a.py", agent="bob").err


def test_a_claim_at_a_remote_names_released_work_that_was_not_fetched_yet(tmp_path: Path) -> None:
    """From the ledger, which came with the claim: no connection more. The hint helps when it is followed."""
    fleet = Fleet(tmp_path)
    one, two = fleet.joined()
    one.git("switch", "-q", "-c", "topic")
    one.commit({"src/app.py": "alice\n"})
    assert one.claim("src/app.py", agent="alice").code == 0
    assert one.run("git-coord", "land", agent="alice").code == 0
    commit = one.git("rev-parse", "--short=12", "topic").strip()
    assert two.claim("list").code == 0
    fleet.connections()
    done = two.claim("src", agent="bob")
    assert done.code == 0 and fleet.connections() == ["receive-pack"]
    assert f"note: your copy lacks work on src/app.py that alice released as {commit}\n" in done.err, done
    (hint,) = (line.partition("bring it in: ")[2] for line in done.err.splitlines() if "hint: " in line)
    told = two.run("sh", "-c", hint, agent="bob")
    (then,) = (line.partition("first: ")[2] for line in told.err.splitlines() if "hint: " in line)
    assert two.run("sh", "-c", then, agent="bob").code == 0
    assert (
        two.claim("check", "src/app.py", agent="bob").err == "" and (two.repo / "src/app.py").read_text() == "alice\n"
    )


def test_a_release_names_the_work_of_its_handoff_that_is_on_another_branch(world: World) -> None:
    world.git("switch", "-q", "-c", "topic")
    world.take("src/a.py", agent="bob")
    commit = world.commit({"src/a.py": "bob\n"})
    words = "--to", "alice", "--state", "ok now", "--changed", "all of a", "--remaining", "the end", "--next", "land it"
    id = world.handoff("new", *words, "--json", agent="bob").json["id"]
    world.git("switch", "-q", "main")
    assert f"git handoff show {id}" in world.coord("status").out and id not in world.coord("status", agent="carol").out
    assert world.handoff("accept", id).code == 0
    done = world.claim("release", "src/a.py")
    assert (
        f"note: {id} brought work on src/a.py (topic, {commit[:12]}) that is not here: it was not recorded\n"
        in done.err
    )
    world.take("src/a.py")
    done = world.claim(*done.err.rpartition("git claim ")[2].split())
    assert done.code == 0 and f"(with {commit[:12]}, 1 file" in done.out, done

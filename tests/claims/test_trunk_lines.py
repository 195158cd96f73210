"""A claim says that the copy is old on what was claimed; a release says that its work has not landed."""

from __future__ import annotations

from tests.cli.support import World


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
    assert "lacks" not in world.claim("src/a.py").err, "said once, not with each renewal"
    world.claim("release", "--all")
    assert "lacks" not in world.claim("src/b.py").err, "trunk did not change it"
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

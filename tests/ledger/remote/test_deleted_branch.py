"""Released work whose branch was deleted at the remote, in a clone that never had it."""

from __future__ import annotations

from tests.ledger.remote.support import Fleet

LONG = "".join(f"line {n}\n" for n in range(30))


def test_a_squash_whose_branch_is_deleted_is_built_on_by_those_who_never_had_the_branch(fleet: Fleet) -> None:
    """As hosts do it: "Squash and merge", "Delete branch". The file of the release is on trunk, its commit nowhere."""
    one, two = fleet.joined()
    one.git("switch", "-q", "-c", "work")
    assert one.claim("src/app.py", agent="alice").code == 0
    one.commit({"src/app.py": LONG.replace("line 3\n", "alice's\n")})
    one.git("push", "-q", "origin", "work")
    assert one.claim("release", "src/app.py", agent="alice").code == 0
    one.git("switch", "-q", "main")
    one.git("merge", "-q", "--squash", "work")
    one.git("commit", "-q", "--no-verify", "-m", "squashed")
    one.git("push", "-q", "origin", "main", ":work")
    two.git("pull", "-q")
    assert "lacks work" not in two.claim("src/app.py", agent="bob").err
    two.commit({"src/app.py": LONG.replace("line 3\n", "alice's\n").replace("line 20\n", "bob's\n")})
    assert two.run("git-coord", "gate", "origin/main..HEAD", agent="bob").code == 0
    two.git("push", "-q", "origin", "main")


def test_work_of_a_deleted_branch_that_never_landed_is_named(fleet: Fleet) -> None:
    one, two = fleet.joined()
    one.git("switch", "-q", "-c", "work")
    assert one.claim("src/app.py", agent="alice").code == 0
    one.commit({"src/app.py": LONG})
    one.git("push", "-q", "origin", "work")
    assert one.claim("release", "src/app.py", agent="alice").code == 0
    one.git("push", "-q", "origin", ":work")
    assert "lacks work on src/app.py" in two.claim("src/app.py", agent="bob").err
    two.commit({"src/app.py": "bob's\n"})
    done = two.run("git-coord", "gate", "origin/main..HEAD", agent="bob")
    assert done.code == 4 and "on src/app.py that was released" in done.err, done
    assert "git claim disown src/app.py" in done.err, done


def test_who_has_not_pulled_the_squash_is_told_what_to_merge(fleet: Fleet) -> None:
    one, two = fleet.joined()
    one.git("switch", "-q", "-c", "work")
    assert one.claim("src/app.py", agent="alice").code == 0
    one.commit({"src/app.py": LONG})
    one.git("push", "-q", "origin", "work")
    assert one.claim("release", "src/app.py", agent="alice").code == 0
    one.git("switch", "-q", "main")
    one.git("merge", "-q", "--squash", "work")
    one.git("commit", "-q", "--no-verify", "-m", "squashed")
    one.git("push", "-q", "origin", "main", ":work")
    two.git("fetch", "-q")
    done = two.claim("src/app.py", agent="bob")
    assert "your copy lacks" in done.err and "git coord sync --pull" in done.err and "fetch --all" not in done.err, done
    assert two.run("git-coord", "sync", "--pull", agent="bob").code == 0
    assert "lacks" not in two.claim("src/app.py", agent="bob").err


def test_who_has_fetched_nothing_is_told_to_fetch_and_ask_again(fleet: Fleet) -> None:
    one, two = fleet.joined()
    one.git("switch", "-q", "-c", "work")
    assert one.claim("src/app.py", agent="alice").code == 0
    one.commit({"src/app.py": LONG})
    one.git("push", "-q", "origin", "work")
    assert one.claim("release", "src/app.py", agent="alice").code == 0
    one.git("switch", "-q", "main")
    one.git("merge", "-q", "--squash", "work")
    one.git("commit", "-q", "--no-verify", "-m", "squashed")
    one.git("push", "-q", "origin", "main", ":work")
    told = two.claim("src/app.py", agent="bob").err
    assert "hint: fetch it, and ask how to bring it in: git fetch --all && git claim check src/app.py" in told, told
    two.git("fetch", "-q", "--all")
    answer = two.claim("check", "src/app.py", agent="bob")
    assert "git coord sync --pull" in answer.err, answer

"""A wait is one thing in `why`, `log` and `watch`: with its length and its end, never as refusals."""

from __future__ import annotations

from tests.claims.test_queue import _queue
from tests.cli.support import World


def _story(world: World, path: str = "src") -> list[str]:
    return [row["words"] for row in world.coord("why", path, "--json").json["story"]]


def test_why_tells_a_wait_where_it_ends(world: World) -> None:
    world.take("src")
    _queue(world, "bob", "src", "-m", "new login")
    for _ in range(3):
        _queue(world, "bob", "src", "-m", "new login")
    _queue(world, "carol", "src/a.py")
    assert _story(world) == ["alice claimed it"]
    told = world.coord("why", "src").out
    assert "now:\n" in told and "bob waits for src (since " in told
    world.claim("--leave", agent="carol")
    world.free()
    story = _story(world)
    assert story[1].startswith("carol waited ") and story[1].endswith("s, gave up")
    assert story[2] == "alice released it unchanged"
    assert story[3].startswith("bob waited ") and story[3].endswith("s, granted: new login")
    assert _story(world, "src/a.py")[3].endswith("s, granted src: new login")
    assert not any("refused" in line for line in story)


def test_a_wait_that_ends_with_its_session_and_one_that_a_person_ends(world: World) -> None:
    world.take("src")
    _queue(world, "bob")
    assert world.coord("stop", agent="bob").code == 0
    assert _story(world)[-1] == "bob waited for it, until its session ended"
    ticket = _queue(world, "carol")["ticket"]
    world.at_terminal("--leave", "--ticket", str(ticket))
    assert ", withdrawn by ada" in _story(world)[-1]


def test_a_grant_that_nobody_took_is_no_silence(world: World) -> None:
    world.take("src")
    _queue(world, "bob")
    _queue(world, "carol")
    world.free()
    world.claim("list")
    for file in (world.top / ".git/gitcoord/grants").iterdir():
        file.write_text(file.read_text().partition("\n")[0] + "\n0")
    assert world.claim("--queue", "src", agent="carol").code == 0
    assert "bob did not take it in time when it was granted; carol asked" in _story(world)


def test_log_tells_the_length_and_who_got_it(world: World) -> None:
    world.take("src")
    _queue(world, "bob")
    _queue(world, "carol")
    world.claim("--leave", agent="carol")
    world.free()
    told = [line.split("  ")[-1].strip() for line in world.coord("log").out.splitlines()]
    assert told[0] == "release src by alice; bob gets src"
    assert any(line.startswith("wait for src by bob; waited ") and line.endswith("s, granted") for line in told)
    assert any(line.startswith("wait for src by carol; waited ") and line.endswith("s, withdrawn") for line in told)
    events = world.coord("log", "--json", "--agent", "bob").json["events"]
    assert [row["kind"] for row in events] == ["release", "wait", "start"], "also what granted to bob"
    assert events[1]["wait"]["end"] == "granted" and events[0]["event"]["granted"][0]["agent"] == "bob"


def test_log_tells_other_terms_of_a_wait_as_the_same_wait(world: World) -> None:
    world.take("src")
    ticket = _queue(world, "bob")["ticket"]
    _queue(world, "bob", "src", "-m", "new login")
    world.free()
    told = [line.split("  ")[-1].strip() for line in world.coord("log").out.splitlines()][:3]
    assert told[1] == f"wait for src by bob: new login; keeps ticket {ticket}"
    assert told[2].startswith("wait for src by bob; waited ") and told[2].endswith("s, granted")


def test_watch_has_the_grant_in_words(world: World) -> None:
    world.take("src")
    _queue(world, "bob", "src/a.py")
    world.free()
    seen = world.coord("watch", "--since", "1", "--path", "src/a.py", "--count", "3").out
    assert [line.split("  ")[-1] for line in seen.splitlines()] == [
        "claim src by alice", "wait for src/a.py by bob", "release src by alice; bob gets src/a.py"
    ]  # fmt: skip

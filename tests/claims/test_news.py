"""The news of the queue at the next command of an agent: a claim that is its own now, and who waits for its claims."""

from __future__ import annotations

import json
import re

from tests.claims.test_claim import _waits
from tests.claims.test_queue import _queue
from tests.cli.support import PERSON, World


def _beat(world: World, agent: str) -> dict[str, object]:
    beat: dict[str, object] = json.loads(world.git("cat-file", "blob", f"refs/gitcoord/sessions/{agent}"))
    return beat


def test_a_queued_claim_is_told_at_the_next_command_and_confirmed_by_it(world: World) -> None:
    world.take("src")
    _queue(world, "bob")
    assert world.claim("release", "src").out.splitlines()[1] == "src goes to bob, who waited"
    head = world.head
    assert "confirms" not in _beat(world, "bob")
    told = world.coord("log", agent="bob").err
    assert told.startswith("note: src is yours, token ") and "expires after 30m without activity" in told
    (token,) = [row["token"] for row in world.claim("list", "--json").json["claims"]]
    assert _beat(world, "bob")["confirms"] == token
    assert world.head == head, "a confirmation is a heartbeat, not an event"
    assert world.claim("list", agent="bob").err == "", "told once"


def test_released_work_that_the_copy_lacks_is_told_with_the_grant(world: World) -> None:
    world.git("switch", "-q", "-c", "topic")
    world.take("src")
    _queue(world, "bob")
    commit = world.commit({"src/a.py": "mine\n"})
    world.claim("release", "src")
    world.git("switch", "-q", "main")
    told = world.coord("log", agent="bob").err.splitlines()
    assert told[0].startswith("note: src is yours, token ")
    assert told[1] == f"note: your copy lacks work on src/a.py that alice released as {commit[:12]}"
    assert told[2] == f"note: bring it in before you change it: git merge --autostash {commit[:12]}"


def test_the_news_are_part_of_the_answer_in_json(world: World) -> None:
    world.take("src")
    ticket = _queue(world, "bob", "src", "-m", "new login")["ticket"]
    waiters = world.claim("check", "src", "--json").json["news"]["waiters"]
    assert [(row["agent"], row["paths"], row["ticket"], row["reason"]) for row in waiters] == [
        ("bob", ["src"], ticket, "new login")
    ]
    assert world.claim("release", "src", "--json").json["granted_to"] == [
        {"agent": "bob", "ticket": ticket, "paths": ["src"]}
    ]
    (row,) = world.claim("check", "src", "--json", agent="bob").json["news"]["granted"]
    assert (row["path"], row["ticket"], row["confirmed"]) == ("src", ticket, True)
    assert "news" not in world.claim("check", "src", "--json", agent="bob").json


def test_a_refusal_tells_too_and_quiet_commands_leave_it_to_the_next(world: World) -> None:
    world.take("docs")
    world.take("src")
    _queue(world, "bob")
    world.free()
    world.take("docs")
    assert world.claim("-q", "docs", agent="bob").err.count("is yours") == 0
    assert world.claim("docs", "--json", agent="bob").json["news"]["granted"][0]["path"] == "src"


def test_the_holder_is_told_once_for_each_waiter(world: World) -> None:
    world.take("src/a.py")
    _queue(world, "bob", "src", "-m", "new login")
    assert re.search(
        r"^note: bob waits for src, which you hold, since (now|\d+s ago): new login$", world.claim("list").err, re.M
    )
    assert world.claim("list").err == ""
    _queue(world, "carol", "src/a.py")
    told = world.coord("status").err
    assert "carol waits for src/a.py" in told and "bob" not in told
    assert "waits for" not in world.claim("list", agent="dave").err


def test_the_holder_is_told_of_its_own_paths_only(world: World) -> None:
    world.take("src/a.py")
    _queue(world, "bob", "src/a.py", "docs")
    assert "bob waits for src/a.py, which you hold" in world.claim("list").err


def test_many_waiters_are_counted(world: World) -> None:
    world.take("src")
    for agent in ("bob", "carol", "dave", "eve", "finn"):
        _queue(world, agent)
    assert "note: 2 more wait for what you hold: git claim list\n" in world.claim("list").err


def test_readers_that_may_stay_are_told_nothing(world: World) -> None:
    world.take("src", "--mode", "read")
    world.take("docs", agent="carol")
    _queue(world, "bob", "src", "docs", "--mode", "read")
    assert world.claim("list").err == ""


def test_a_missed_reservation_is_told_with_the_new_ticket(world: World) -> None:
    world.take("src")
    first = _queue(world, "bob")["ticket"]
    _queue(world, "carol")
    world.free()
    _forget_first_sight(world)
    assert world.claim("--queue", "src", agent="carol").code == 0
    told = world.claim("list", "--json", agent="bob").json["news"]
    assert [row["paths"] for row in told["missed"]] == [["src"]] and told["missed"][0]["ticket"] > first
    world.free("carol")
    _forget_first_sight(world)
    world.take("src", agent="dave")
    assert "you no longer wait for src" in world.claim("list", agent="bob").err, "the second time it is dropped"
    assert world.claim("list", agent="bob").err == ""


def _forget_first_sight(world: World) -> None:
    """Let the reservation begin long ago, as this machine saw it."""
    assert world.claim("list", agent="eve").code == 0
    for file in (world.top / ".git/gitcoord/grants").iterdir():
        boot, _ = file.read_text().split("\n")
        file.write_text(f"{boot}\n0")


def test_a_request_that_a_person_withdrew_is_told(world: World) -> None:
    world.take("src")
    ticket = _queue(world, "bob")["ticket"]
    refused = world.claim("--leave", "--ticket", str(ticket), agent="carol")
    assert refused.code == 1 and "the request of bob is withdrawn by itself or by a person" in refused.err
    assert (
        f"withdrew the request of bob for src (ticket {ticket})"
        in world.at_terminal("--leave", "--ticket", str(ticket)).out
    )
    assert "you no longer wait for src" in world.claim("list", agent="bob").err
    assert PERSON in world.git("log", "-1", "--format=%an", "gitcoord", "--")


def test_who_gives_back_what_was_granted_is_not_told_that_the_wait_is_over(world: World) -> None:
    world.take("docs")
    _queue(world, "bob", "docs")
    world.free()
    done = world.claim("release", "docs", agent="bob")
    assert done.code == 0 and (done.err + world.claim("list", agent="bob").err).count("no longer wait") == 0
    world.take("src", "docs")
    ticket = _queue(world, "bob", "src", "docs")["ticket"]
    world.free()
    done = world.claim("release", "docs", "--json", agent="bob")
    assert [(row["path"], row["ticket"]) for row in done.json["news"]["granted"]] == [("src", ticket)], (
        "the other is its own"
    )
    assert "news" not in world.claim("release", "--all", "--json", agent="bob").json


def test_who_lands_what_was_granted_is_not_told_that_the_wait_is_over(world: World) -> None:
    world.take("docs")
    _queue(world, "bob", "docs/a.md")
    world.free()
    world.git("switch", "-q", "-c", "topic")
    world.commit({"docs/a.md": "mine\n"})
    done = world.coord("land", agent="bob")
    assert done.code == 0 and "released docs/a.md" in done.out, done
    assert (done.err + world.claim("list", agent="bob").err).count("no longer wait") == 0


def test_who_releases_while_it_waits_for_more_is_told_of_the_grant(world: World) -> None:
    world.take("src")
    world.take("docs", agent="bob")
    ticket = _queue(world, "bob", "src", "docs")["ticket"]
    world.free("bob")
    world.free()
    assert [row["ticket"] for row in world.claim("list", "--json", agent="bob").json["news"]["granted"]] == [ticket] * 2


def test_who_waits_behind_a_waiter_is_told_by_its_next_command(world: World) -> None:
    world.take("src")
    _queue(world, "carol")
    with world.started("--wait", "60s", "src", "--priority", "high", agent="bob") as waiter:
        _waits(waiter)
        world.free()
        assert b"carol" not in waiter.communicate(timeout=30)[1]
    assert "note: carol waits for src, which you hold" in world.claim("list", agent="bob").err

"""The answers to a page: the overview, now and then, pages of lists, details, the stream."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.support import PERSON, World
from tests.page.support import Page, first_url, process, serving
from tests.support import COORD

HOSTILE = "</script><script>alert(1)</script>\u202etxt"


@pytest.fixture
def page(world: World) -> Iterator[Page]:
    with serving(world) as found:
        assert found.open().status == 200
        yield found


def test_it_is_the_overview_of_status(world: World, page: Page) -> None:
    world.take("src/a.py", "-m", "new login")
    world.claim("take", "--queue", "src/a.py", agent="bob")
    world.coord("task", "add", "Fix it")
    told, known = page.get("overview").json, world.coord("status", "--json").json
    assert [row["path"] for row in told["claims"]] == ["src/a.py"]
    assert [row["agent"] for row in told["claims"][0]["waiters"]] == ["bob"]
    for key in ("seq", "ledger", "waits", "landing", "halted", "approvals", "deploys"):
        assert told[key] == known[key], key
    assert [row["id"] for row in told["tasks"]] == [row["id"] for row in known["tasks"]]
    assert told["counts"]["claims"] == 1 and told["person"] == "" and told["past"] is False


def test_an_earlier_moment(world: World, page: Page) -> None:
    first = world.take("src/a.py", "-m", "one")
    world.claim("take", "--queue", "src/a.py", agent="bob")
    world.free("alice")
    world.fall_silent("bob")
    then = page.get("overview", seq=first).json
    assert then["past"] and then["seq"] == first and then["at"]
    assert [(row["agent"], row["silent"], row["expires_in_seconds"]) for row in then["claims"]] == [
        ("alice", False, None)
    ]
    assert [row["activity"] for row in then["agents"]] == ["alive"] and not then["waits"]
    assert then["needs_you"] == [], "what this clone lacks now is not of that time"
    now = page.get("overview").json
    assert [row["agent"] for row in now["claims"]] == ["bob"] and not now["past"]
    assert page.get("overview", seq=10_000).json["seq"] == now["seq"], "the last one before it"
    assert page.get("rows", list="claims", seq=first).json["rows"][0]["agent"] == "alice"


def test_the_state_after_any_event(world: World, page: Page) -> None:
    """As it was told right after each event."""
    then = {}
    for words, agent in (("take src/a.py", "alice"), ("take --queue src/a.py", "bob"), ("release src/a.py", "alice"), ("take src/b.py", "alice")):  # fmt: skip
        assert world.claim(*words.split(), agent=agent).code in (0, 3)
        now = page.get("overview").json
        then[now["seq"]] = _what_lasts(now)
    assert len(then) == 4
    for seq in range(1, max(then) + 1):
        found = page.get("overview", seq=seq).json
        assert found["seq"] == seq and (seq not in then or _what_lasts(found) == then[seq])


def _what_lasts(model: dict[str, Any]) -> list[object]:
    """The part that follows from the ledger alone."""
    claims = [(row["path"], row["agent"], row["token"], row.get("waiters")) for row in model["claims"]]
    return [claims, model.get("waits"), model["landing"], model["tasks"], [row["agent"] for row in model["agents"]]]


def test_agents_show_what_they_hold(world: World, page: Page) -> None:
    world.take("a", "b", "c", "d")
    id = world.coord("task", "add", "Fix it", "--json").json["tasks"][0]["id"]
    world.coord("task", "take", id)
    world.take("src/x", agent="bob")
    told = page.get("overview").json
    rows = {row["agent"]: row for row in told["agents"]}
    assert rows["alice"]["holds"] == {"count": 4, "paths": ["a", "b", "c"]} and rows["alice"]["tasks"] == [id]
    assert rows["bob"]["holds"] == {"count": 1, "paths": ["src/x"]} and rows["bob"]["tasks"] == []
    assert told["activities"] == {"alive": 2}
    found = page.get("rows", list="agents", find="bob").json["rows"]
    assert [row["holds"]["count"] for row in found] == [1]


def test_a_deploy_that_failed_is_no_success(world: World, page: Page) -> None:
    world.commit({".gitcoord/config": '[deploy "good"]\n\tverify = true\n[deploy "bad"]\n\tverify = false\n'})
    for target in ("good", "bad"):
        world.coord("deploy", target, "--", "true")
    assert {row["target"]: row["succeeded"] for row in page.get("overview").json["deploys"]} == {"good": True, "bad": False}  # fmt: skip


def test_pages_of_a_long_list(world: World, page: Page) -> None:
    names = [f"lib/f{number:03}.py" for number in range(150)]
    world.take("--", *names)
    world.claim("take", "--queue", names[140], agent="bob")
    told = page.get("overview").json
    assert len(told["claims"]) == 100 and told["counts"]["claims"] == 150
    assert told["claims"][0]["path"] == names[140], "the one that somebody waits for"
    rest = page.get("rows", list="claims", offset=100).json
    assert len(rest["rows"]) == 50 and rest["count"] == 150
    assert {row["path"] for row in told["claims"] + rest["rows"]} == set(names)
    assert [row["path"] for row in page.get("rows", list="claims", find="F017").json["rows"]] == ["lib/f017.py"]


def test_the_timeline_in_pages(world: World, page: Page) -> None:
    for number in range(60):
        world.take(f"x{number}")
    found = page.get("timeline").json
    numbers = [row["seq"] for row in found["events"]]
    assert numbers == list(range(62, 0, -1)) and not found["more"]
    older = page.get("timeline", before=5).json
    assert [row["seq"] for row in older["events"]] == [4, 3, 2, 1] and not older["more"]


def test_details(world: World, page: Page) -> None:
    world.take("src/a.py", "-m", "new login")
    world.claim("take", "--queue", "src/a.py", agent="bob")
    world.coord("note", "src/a.py", "-m", "mind the tests")
    world.coord("task", "add", "Fix it", "-m", "at length")
    path = page.get("path", of="src/a.py").json
    assert path["claims"][0]["agent"] == "alice" and path["waits"][0]["agent"] == "bob"
    assert path["notes"][0]["text"] == "mind the tests" and "alice claimed it" in path["story"][0]["words"]
    agent = page.get("agent", of="bob").json
    assert (
        agent["agent"]["activity"] == "waiting"
        and agent["waits"]
        and {row["kind"] for row in agent["story"]} >= {"wait"}
    )
    id = page.get("overview").json["tasks"][0]["id"]
    assert page.get("task", of=id).json["task"]["body"] == "at length"
    assert page.get("contention", of="7d").json["paths"][0]["path"] == "src/a.py"


def test_a_failed_check_has_its_output(world: World, page: Page) -> None:
    world.git("switch", "-q", "-c", "fix")
    world.commit({"new": "x\n"})
    done = world.coord("land", "--check", "echo the tests broke; false", agent="alice")
    assert done.code, done
    failed = page.get("landing", of="alice").json["failed"]
    assert failed[0]["branch"] == "fix" and "the tests broke" in failed[0]["output"]


def test_hostile_texts_are_json_texts(world: World, page: Page) -> None:
    world.claim("take", "src/a.py", "-m", "<img src=x onerror=alert(1)>")
    world.coord("journal", "add", "-m", HOSTILE)
    world.coord("task", "add", "<script>alert(2)</script>")
    answer = page.get("overview")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["claims"][0]["reason"] == "<img src=x onerror=alert(1)>"
    assert answer.body.isascii() and page.get("timeline").body.isascii()


# --- the stream


def test_a_change_is_told_to_every_page(world: World, page: Page) -> None:
    with page.stream() as one, page.stream() as two:
        begin = next(one)["seq"], next(two)["seq"]
        token = world.take("src/a.py")
        for messages in (one, two):
            for told in messages:
                if told["seq"] >= token:
                    break
            assert told["id"] == token
        assert begin[0] == begin[1] < token
    assert page.get("overview").json["claims"][0]["token"] == token


def test_a_page_that_comes_back_misses_no_event(world: World) -> None:
    world.take("src")
    world.free()
    with serving(world) as page:
        page.open()
        _comes_back(world, page)


def _comes_back(world: World, page: Page) -> None:
    with page.stream() as messages:
        last = next(messages)["id"]
        world.take("src/a.py")
        world.take("src/b.py")
        while next(messages)["id"] < last + 2:
            pass
    with page.stream(last) as messages:
        told = next(messages)
        assert [row["seq"] for row in told["events"]] == [last + 1, last + 2] and not told["gap"]
    with page.stream(1) as messages:
        assert next(messages)["gap"], "more than is kept: begin anew"


def test_it_ends_by_signals(world: World) -> None:
    for number, code in ((signal.SIGTERM, 0), (signal.SIGHUP, 0)):
        with process(world) as started:
            page = Page(first_url(started))
            page.open()
            with page.stream() as messages:
                next(messages)
                started.send_signal(number)
                assert list(messages) == [] and started.wait(30) == code
    with world.terminal("page", "--no-open", "--port", "0", argv=COORD) as terminal:
        terminal.until(lambda shown: b"#key=" in shown and shown.endswith(b"\n"))
        page = Page(terminal.shown.decode().split()[-1])
        page.open()
        assert page.get("overview").json["person"] == PERSON
        terminal.until(lambda shown: shown.count(b"#key=") == 2)
        again = Page(terminal.shown.decode().split()[-1])
        assert again.open().status == 200, "the next link is for another browser"
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(30) == 130


def test_a_port_that_is_taken(world: World, page: Page) -> None:
    done = world.coord("page", "--no-open", "--port", str(page.port))
    assert done.code == 2 and "cannot listen" in done.err and "--port 0" in done.err

"""Numbers, effects, watching, the story of a path, rules and alerts: files and JSON as docs/format.md describes them."""

from __future__ import annotations

import json

import pytest

from tests.cli.support import World
from tests.cli.test_json import PAGE, TABLES, holds, refused, wrong, wrong_table
from tests.races.support import wait_until


@pytest.fixture
def world(plain: World) -> World:
    plain.commit({".gitcoord/config": "[rules]\n\tack = true\n", ".gitcoord/rules.md": "1. x\n"})
    return plain.init()


def record(world: World, file: str, name: str) -> None:
    text = world.git("show", f"gitcoord:{file}")
    assert list(wrong_table(json.loads(text), TABLES[f"Record: {name}"])) == [], file


def test_numbers(world: World) -> None:
    holds(world.coord("number", "m", "--json"), "numbers")
    assert "seq" not in holds(world.coord("number", "m", "--peek", "--json"), "numbers")
    refused(world.coord("number", "a b", "--json"), "usage", 2)
    record(world, "numbers/m", "number")


def test_effects(world: World) -> None:
    assert holds(world.coord("once", "a/b", "--json", "--", "true"), "effect")["begun"] is True
    assert holds(world.coord("once", "a/b", "--json", "--", "true"), "effect")["begun"] is False
    holds(world.coord("once", "c", "--json", "--", "false"), "effect")
    record(world, "once/a%2Fb", "effect")
    assert len(holds(world.coord("once", "--list", "--json"), "effects")["effects"]) == 2
    refused(world.coord("once", "--forget", "c", "--reason", "x", "--json"), "person")
    holds(world.person("once", "--forget", "c", "--reason", "x", "--json"), "forgotten")
    refused(world.person("once", "--forget", "c", "--reason", "x", "--json"), "unknown")


def test_watching(world: World) -> None:
    world.take("src/a.py")
    world.coord("rules", "ack")
    lines = world.coord("watch", "--since", "1", "--until", str(len(world.events())), "--json").out.splitlines()
    assert len(lines) == len(world.events())
    for line in lines:
        row = json.loads(line)
        assert list(wrong(row, "logged")) == []
        table = {**TABLES[f"Event: {row['kind']}"], "refused": "list of refusal count"}
        assert list(wrong_table(row["event"], table)) == []


def test_why(world: World) -> None:
    world.take("src/a.py")
    world.claim("src", agent="bob")
    world.take("docs", agent="bob")
    row = holds(world.coord("why", "src", "--json"), "why")
    assert len(row["story"]) == 2 and row["claims"][0]["agent"] == "alice"
    assert holds(world.coord("why", "@gpu", "--json"), "why")["path"] == "@gpu"


def test_rules(world: World) -> None:
    assert holds(world.coord("rules", "--json"), "rules")["required"] is True
    assert holds(world.coord("rules", "ack", "--json"), "acknowledged")["changed"] is True
    assert holds(world.coord("rules", "ack", "--json"), "acknowledged")["changed"] is False
    assert holds(world.coord("rules", "who", "--json"), "readers")["readers"][0]["current"] is True
    refused(world.coord("rules", "ack", "nonsense", "--json"), "usage", 2)
    record(world, "acks/alice", "ack")
    explained = holds(world.coord("policy", "explain", "x", "--json"), "explained")
    assert explained["paths"][0]["rules"][0]["attribute"] == "rules.ack"


def test_alerts(world: World) -> None:
    world.git("config", "gitcoord.alert", "cat >>.git/alerts")
    world.take("src/a.py", "--expect", "1s")
    assert world.claim("src/a.py", "--wait", "3s", agent="bob").code == 3
    world.fall_silent("alice")
    world.take("src/a.py", agent="bob")
    world.coord("task", "add", "x")
    world.coord("task", "next", agent="bob")
    world.fall_silent("bob")
    world.coord("task", "next", agent="carol")
    file = world.top / ".git/alerts"
    wait_until("all alerts", lambda: file.exists() and file.read_text().count("\n") == 3)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert {row["alert"] for row in rows} == {"long-wait", "expiry", "reassigned"}
    for row in rows:
        assert list(wrong(row, "alert")) == []
    assert "`gitcoord.alert`" in PAGE

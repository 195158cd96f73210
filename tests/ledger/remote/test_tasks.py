"""The work queue where a remote decides, with a server that makes every event again."""

from __future__ import annotations

import json

import pytest

from tests.ledger.remote.support import Fleet
from tests.races.support import long_timeout, wait_until

pytestmark = [pytest.mark.race, long_timeout]


def test_askers_on_two_machines_get_each_task_once(gated: Fleet) -> None:
    one, two = gated.joined()
    rows = [{"title": f"task {n}", "key": f"k{n}", "paths": [f"src/{n}"]} for n in range(4)]
    rows.append({"title": "last", "needs": ["k0", "k1", "k2", "k3"]})
    (gated.place / "tasks.json").write_text(json.dumps(rows))
    done = one.coord("task", "add", "--from", str(gated.place / "tasks.json"), "--json", agent="boss")
    assert done.code == 0, done
    ids = [row["id"] for row in done.json["tasks"]]
    askers = [(machine, f"w{n}") for n, machine in enumerate((one, two, one, two))]
    started = [machine.start("git-coord", "task", "next", "--json", agent=name) for machine, name in askers]
    given = [json.loads(process.communicate(timeout=120)[0])["task"]["id"] for process in started]
    assert sorted(given) == ids[:4]
    assert two.coord("task", "next", "--json", agent="late").json["task"] is None
    for (machine, name), id in zip(askers, given):
        words = ("task", "complete", id, "-m", "done", "--not-done", "none", "--nonce", "n")
        assert machine.coord(*words, agent=name).code == 0
        assert machine.coord(*words, agent=name).code == 0, "a repeat is harmless"
    assert two.coord("task", "next", "--json", agent="w1").json["task"]["id"] == ids[4]
    assert one.coord("task", "complete", ids[4], "-m", "x", "--not-done", "none", agent="w0").code == 1
    assert two.coord("task", "block", ids[4], "--reason", "no key", agent="w1").code == 0
    assert one.coord("task", "list", "--json", agent="boss").json["tasks"][0]["reason"] == "no key"
    gated.assert_sound()


def test_waiters_on_two_machines_have_one_order(gated: Fleet) -> None:
    one, two = gated.joined()

    def waiting() -> list[str]:
        return [str(row["agent"]) for row in one.claim("list", "--json", agent="boss").json.get("waits", ())]

    first = two.start("git-coord", "task", "next", "--wait", "5m", "--json", agent="w1")
    wait_until("w1 waits", lambda: waiting() == ["w1"])
    second = one.start("git-coord", "task", "next", "--wait", "5m", "--json", agent="w2")
    wait_until("w2 waits", lambda: waiting() == ["w1", "w2"])
    ids: list[str] = []
    for process in (first, second):
        done = one.coord("task", "add", "x", "--path", f"src/{len(ids)}", "--json", agent="boss")
        ids.append(done.json["tasks"][0]["id"])
        row = json.loads(process.communicate(timeout=120)[0])
        assert row["task"]["id"] == ids[-1] and row["assignment"]["claims"]
    gated.assert_sound()

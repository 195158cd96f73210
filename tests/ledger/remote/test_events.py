"""Numbers, effects, rules, watching and alerts where a remote decides: the same commands from several machines."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from tests.ledger.remote.support import Fleet
from tests.races.support import long_timeout, running, wait_until

pytestmark = [pytest.mark.race, long_timeout]


def test_numbers_of_two_machines_never_meet(gated: Fleet) -> None:
    one, two = gated.joined()
    (two.repo / "m").mkdir()
    two.commit({".gitcoord/config": '[sequence "m"]\n\tpattern = m/*.sql\n', "m/7_x.sql": "x"})
    assert one.coord("number", "m", agent="alice").out == "1\n"
    assert two.coord("number", "m", agent="bob").out == "8\n", (
        "the floor is of its own files; the server does not have them"
    )
    started = [m.start("git-coord", "number", "m", agent=f"w{i}") for i, m in enumerate((one, two) * 3)]
    numbers = [int(process.communicate(timeout=120)[0]) for process in started]
    assert sorted(numbers) == list(range(9, 15))
    gated.assert_sound()


def test_an_effect_happens_on_one_machine(gated: Fleet) -> None:
    one, two = gated.joined()
    effect = gated.place / "effect"
    words = ("once", "k", "--wait", "60s", "--", "sh", "-c", f"echo ran >>{effect}; exit 4")
    started = [m.start("git-coord", *words, agent=f"w{i}") for i, m in enumerate((one, two) * 2)]
    for process in started:
        process.communicate(timeout=120)
    assert [process.returncode for process in started] == [4] * 4
    assert effect.read_text() == "ran\n"
    assert two.coord("once", "k", "--", "true", agent="late").code == 4
    gated.assert_sound()


def test_a_runner_that_died_elsewhere(gated: Fleet) -> None:
    """The other machine sees no process: the session tells, and a person who looked."""
    one, two = gated.joined()
    began, go = gated.place / "began", gated.place / "go"
    script = f"echo >{began}; while [ ! -e {go} ]; do sleep 0.01; done"
    with running(one.start("git-coord", "once", "k", "--", "sh", "-c", script, agent="alice")) as process:
        wait_until("it runs", began.exists)
        assert two.coord("once", "k", "--", "true", agent="bob").code == 3
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        go.touch()
    assert one.coord("once", "k", "--", "true", agent="carol").code == 5, "its own machine knows at once"
    assert two.coord("once", "k", "--", "true", agent="bob").code == 3, "as far as can be seen from here it may live"
    assert one.person("kill", "alice").code == 0
    assert two.coord("once", "k", "--", "true", agent="bob").code == 5
    gated.assert_sound()


def test_rules_that_were_read_on_one_machine_count_everywhere(gated: Fleet) -> None:
    one, two = gated.joined()
    one.commit({".gitcoord/config": "[rules]\n\tack = true\n", ".gitcoord/rules.md": "1. x\n"})
    one.git("push", "-q", "origin", "main")
    one.commit({"x": "x\n"})
    env = {**one.env, "GITCOORD_AGENT": "alice"}

    def push() -> subprocess.CompletedProcess[str]:
        argv = ["git", "push", "-q", "-o", "agent=alice", "origin", "main:work"]
        return subprocess.run(argv, cwd=one.repo, env=env, capture_output=True, text=True)

    done = push()
    assert done.returncode and "[rules]" in done.stderr and "git coord rules ack" in done.stderr, done
    two.git("pull", "-q", "--rebase", "origin", "main")
    assert two.coord("rules", "ack", agent="alice").code == 0
    assert push().returncode == 0
    assert [row["agent"] for row in one.coord("rules", "who", "--json").json["readers"]] == ["alice"]
    gated.assert_sound()


def test_watching_what_other_machines_do(gated: Fleet) -> None:
    one, two = gated.joined()
    watcher = one.start("git-coord", "watch", "--since", "1", "--json", "--interval", "1s", "--name", "n")
    with running(watcher) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["kind"] == "init"
        for machine, agent in ((two, "bob"), (one, "alice"), (two, "bob")):
            assert machine.claim(f"of-{agent}", agent=agent).code == 0
            assert machine.claim("release", "--all", agent=agent).code == 0
        wanted = [event["seq"] for event in gated.events()][1:]
        assert [json.loads(process.stdout.readline())["seq"] for _ in wanted] == wanted
        process.send_signal(signal.SIGTERM)
    assert two.coord("why", "of-bob", "--json").json["story"][0]["words"] == "bob claimed it"


def test_an_expiry_is_told_on_the_machine_that_made_it(gated: Fleet) -> None:
    one, two = gated.joined()
    for machine in (one, two):
        machine.git("config", "gitcoord.alert", "cat >>.git/alerts")
    assert one.claim("a", "--ttl", "1s", agent="alice").code == 0
    assert one.claim("a", "--wait", "60s", agent="bob").code == 0
    file = one.git_dir / "alerts"
    wait_until("the alert", lambda: file.exists() and '"alert":"expiry"' in file.read_text().replace(" ", ""))
    wait_until("whole lines", lambda: file.read_text().endswith("\n"))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    (row,) = [row for row in rows if row["alert"] == "expiry"]  # bob waited long for it, which is told too
    assert (row["agent"], row["claims"][0]["path"]) == ("bob", "a")
    assert two.coord("status").code == 0 and not (two.git_dir / "alerts").exists()

"""A remote as the authority: the same commands from many clones, one ledger, one connection for an uncontended claim."""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.ledger.remote.support import LEDGER, Fleet, Machine
from tests.ledger.remote.test_batches import age_beats


@pytest.fixture
def machines(fleet: Fleet) -> list[Machine]:
    return fleet.joined()


def refused(answer: Done, error: str, code: int) -> None:
    assert (answer.code, answer.json["ok"], answer.json["error"]) == (code, False, error), answer


def test_one_holder_for_all_machines(fleet: Fleet, machines: list[Machine]) -> None:
    one, two = machines
    assert one.claim("src/app.py", agent="alice").code == 0
    found = two.claim("--json", "src/app.py", agent="bob")
    refused(found, "held", 1)
    assert [row["agent"] for row in found.json["held"]] == ["alice"]
    assert one.claim("release", "src/app.py", agent="alice").code == 0
    assert two.claim("src/app.py", agent="bob").code == 0
    assert list(fleet.refs()) >= ["refs/claims/path/src/app.py/@bob", "refs/gitcoord/sessions/alice"]
    fleet.assert_sound()


def test_a_free_path_is_one_connection(fleet: Fleet, machines: list[Machine]) -> None:
    one, two = machines
    assert one.claim("a", agent="alice").code == 0
    assert fleet.connections() == ["receive-pack"]
    # The other machine has not seen that: it loses its first try, looks, and is granted with the second.
    assert two.claim("src/db.py", agent="bob").code == 0
    assert fleet.connections() == ["receive-pack", "upload-pack", "receive-pack"]
    assert two.claim("release", "src/db.py", agent="bob").code == 0
    assert fleet.connections() == ["receive-pack"]


def test_nobody_is_refused_for_what_was(fleet: Fleet, machines: list[Machine]) -> None:
    """The mirror still shows the claim; the server has released it."""
    one, two = machines
    assert one.claim("a", agent="alice").code == 0
    assert "alice" in two.claim("list").out
    assert one.claim("release", "a", agent="alice").code == 0
    assert two.claim("a", agent="bob").code == 0


@pytest.mark.parametrize("words", [("b",), ("check", "a"), ("release", "a")])
def test_a_copy_that_is_behind_what_was_seen(fleet: Fleet, machines: list[Machine], words: tuple[str, ...]) -> None:
    """A `git fetch` that asked before a local write leaves this state. The server still has it all."""
    one, _ = machines
    assert one.claim("a", agent="alice").code == 0
    for state in (f"{LEDGER}~1", ""):
        one.git("-c", "core.hooksPath=/dev/null", "update-ref", *([LEDGER, state] if state else ["-d", LEDGER]))
        fleet.bare.rename(fleet.place / "away")
        assert one.claim(*words, "--json", agent="alice").json["error"] == "could-not-judge", "nobody can be asked"
        (fleet.place / "away").rename(fleet.bare)
        assert one.claim(*words, agent="alice").code == 0
        assert one.git("rev-parse", LEDGER) == one.git("rev-parse", "refs/gitcoord/tip")
        if words[0] == "release":
            break
    fleet.assert_sound()


@pytest.mark.parametrize("before", [True, False], ids=["another look was first", "another look comes in between"])
def test_a_fetch_that_is_overtaken_sets_nothing_back(fleet: Fleet, machines: list[Machine], before: bool) -> None:
    """The fetch is slow; other processes fetch a newer state meanwhile."""
    one, two = machines
    shutil.copytree(fleet.bare, fleet.place / "as-it-was.git")
    assert two.claim("a", agent="bob").code == 0
    look = f"git --git-dir={one.git_dir} fetch -q {fleet.bare} {LEDGER}:{LEDGER} '+refs/claims/*:refs/claims/*'"
    if before:
        one.run("sh", "-c", look)
    slow = f"if mkdir {fleet.place}/once 2>/dev/null; then {look} 2>/dev/null; shift; set -- {fleet.place}/as-it-was.git; fi"
    (fleet.place / "count-upload-pack").write_text(f'#!/bin/sh\n{slow}\nexec git upload-pack "$@"\n')
    assert "bob" in one.claim("list").out
    assert (fleet.place / "once").exists(), "the first answer is that of a while ago"
    assert one.git("rev-parse", LEDGER, "refs/claims/path/a/@bob").split() == [
        fleet.refs()[LEDGER],
        fleet.refs()["refs/claims/path/a/@bob"],
    ]
    refused(one.claim("--json", "a", agent="alice"), "held", 1)
    fleet.assert_sound()


def test_nobody_is_told_that_it_still_holds_what_it_lost(fleet: Fleet, machines: list[Machine]) -> None:
    one, two = machines
    token = one.claim("--json", "a", agent="alice").json["token"]
    assert two.claim("list").code == 0
    assert two.person("kill", "alice").code == 0
    assert two.claim("a", agent="bob").code == 0
    assert (
        f"#{token}"
        in one.claim(
            "list",
            "--mine",
            agent="alice",
            env={"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "gitcoord.maxAge", "GIT_CONFIG_VALUE_0": "1000"},
        ).out
    )
    refused(one.claim("--json", "a", agent="alice"), "killed", 1)


def test_work_that_only_this_clone_has_is_not_released(fleet: Fleet, machines: list[Machine]) -> None:
    one, _ = machines
    assert one.claim("a", agent="alice").code == 0
    work = one.commit({"a": "changed\n"})
    before = fleet.refs()
    found = one.claim("release", "--json", "a", agent="alice")
    refused(found, "unpushed", 1)
    assert "git coord land" in found.json["hints"][0] and "push" in found.json["hints"][1] and fleet.refs() == before
    one.git("push", "-q", "origin", "HEAD:refs/heads/alice")
    done = one.claim("release", "--json", "a", agent="alice")
    assert done.code == 0 and done.json["released"][0]["commit"] == work


def test_the_end_of_a_session_keeps_what_was_not_pushed(fleet: Fleet, machines: list[Machine]) -> None:
    one, _ = machines
    script = "git claim -q a src/db.py && echo changed >a && git commit -q -m work -- a"
    assert one.coord("run", "--as", "alice", "--", "sh", "-c", script).code == 0
    assert [c["path"] for c in one.claim("list", "--json").json["claims"]] == ["a"]


def test_a_push_is_judged_by_what_is_claimed_now(fleet: Fleet, machines: list[Machine]) -> None:
    """alice's claim was made on another machine and is not in the mirror: the push fetches it."""
    one, two = machines
    assert two.coord("install-hooks").code == 0
    assert one.claim("a", agent="alice").code == 0
    (two.repo / "a").write_text("bob\n")
    assert two.run("git", "commit", "-q", "-am", "bob's", agent="bob").code == 0
    before = fleet.refs()
    found = two.run("git", "push", "-q", "origin", "main", agent="bob")
    assert found.code == 1 and "a: alice holds it" in found.err, found
    assert fleet.refs() == before
    assert one.claim("release", "a", agent="alice").code == 0
    assert two.run("git", "push", "-q", "origin", "main", agent="bob").code == 0


def test_a_refused_commit_says_how_old_the_knowledge_is(fleet: Fleet, machines: list[Machine]) -> None:
    one, two = machines
    assert two.coord("install-hooks").code == 0
    assert one.claim("a", agent="alice").code == 0 and two.claim("list").code == 0
    assert two.claim("src/db.py", agent="bob").code == 0
    age_contact(two, 12)
    fleet.bare.rename(fleet.place / "away.git")
    (two.repo / "a").write_text("bob\n")
    found = two.run("git", "commit", "-q", "-am", "bob's", agent="bob")
    assert found.code == 1 and "note: judged by what 'origin' had 1" in found.err, found


# --- the other side does not answer, or says no -------------------------------------------------------------------


def test_offline(fleet: Fleet, machines: list[Machine]) -> None:
    one, _ = machines
    assert one.claim("a", agent="alice").code == 0
    fleet.bare.rename(fleet.place / "away.git")
    before = one.state()
    found = one.claim("--json", "src/db.py", agent="alice")
    refused(found, "unreachable", 5)
    assert "nothing was changed" in found.json["message"] and one.state() == before
    listed = one.claim("list", "--json")
    assert listed.code == 0 and [c["path"] for c in listed.json["claims"]] == ["a"]
    assert listed.json["as_of_seconds"] >= 0 and "cannot be reached" in listed.json["offline"]
    told = one.claim("list")
    assert "as it was" in told.err and "a  alice" in told.out
    assert "cannot be reached" in told.err and "nothing was changed" not in told.err, "it was only a look"
    refused(one.coord("fsck", "--json"), "unreachable", 5)
    assert one.claim("check", "a", agent="alice").code == 0
    for words in ((), ("--brief",)):
        told = one.coord("start", *words, agent="carol")
        assert told.code == 5 and "cannot be reached" in told.out and "as of " in told.out, told
        assert "not done: no session of carol was opened" in told.out and "nothing was changed" not in told.out
        assert "alice" in told.out, "who else is here"
    row = one.coord("start", "--json", agent="alice").json
    assert (row["ok"], row["opened"], row["session"], [c["path"] for c in row["claims"]]) == (False, False, 1, ["a"])
    assert one.state() == before
    (fleet.place / "away.git").rename(fleet.bare)
    assert one.claim("src/db.py", agent="alice").code == 0
    fleet.assert_sound()


def age_contact(machine: Machine, seconds: int) -> None:
    """Set the last contact with the remote back by so much."""
    note = machine.git_dir / "gitcoord/looked"
    boot, mono, wall = note.read_text().split("\n")
    note.write_text(f"{boot}\n{int(mono) - seconds * 1000}\n{int(wall) - seconds}")


def test_a_verdict_that_is_not_fresh_says_how_old_it_is(fleet: Fleet, machines: list[Machine]) -> None:
    one, _ = machines
    assert one.claim("check", "src/db.py", agent="alice").out == "src/db.py: yes, free\n"
    age_contact(one, 20)
    assert one.claim("check", "src/db.py", agent="alice").out.startswith("src/db.py: yes, free, as of 2")
    age_contact(one, 20)
    assert one.claim("check", "src/db.py", agent="alice").out == "src/db.py: yes, free\n", "it looked again"


def test_a_verdict_without_the_remote_says_how_old_it_is_and_is_none_beyond_the_ttl(
    fleet: Fleet, machines: list[Machine]
) -> None:
    one, _ = machines
    assert one.claim("a", "--ttl", "5m", agent="alice").code == 0
    assert one.claim("check", "src/db.py", agent="alice").code == 0
    fleet.bare.rename(fleet.place / "away.git")
    age_contact(one, 4 * 60)
    told = one.claim("check", "src/db.py", "a", agent="alice")
    lines = re.sub(r"4m\d+s", "4m", told.out).splitlines()  # a slow test is seconds late
    assert told.code == 0 and lines == ["src/db.py: yes, free, as of 4m ago", "a: yes, yours, as of 4m ago"], told
    age_contact(one, 6 * 60)
    assert "yes, free, as of 10m" in one.claim("check", "src/db.py", agent="alice").out
    for words in (("a",), ("src/db.py", "a")):  # another may have taken it: its ttl is 5m
        refused(one.claim("check", "--json", *words, agent="alice"), "unreachable", 5)
    age_contact(one, 21 * 60)
    refused(one.claim("check", "--json", "src/db.py", agent="alice"), "unreachable", 5)
    found = one.claim("check", "src/db.py", agent="alice")
    assert found.out == "" and "last seen 31m" in found.err, found
    (fleet.place / "away.git").rename(fleet.bare)
    assert one.claim("check", "src/db.py", agent="alice").out == "src/db.py: yes, free\n"


def test_the_host_says_no(fleet: Fleet, machines: list[Machine]) -> None:
    one, _ = machines
    hook = fleet.hook("pre-receive", "echo 'this branch is protected, see the wiki'; exit 1\n")
    before = fleet.refs(), one.state()
    found = one.claim("--json", "a", agent="alice")
    refused(found, "host", 1)
    assert "this branch is protected, see the wiki" in found.json["message"]
    assert (fleet.refs(), one.state()) == before
    hook.unlink()
    assert one.claim("a", agent="alice").code == 0


def test_a_full_disk_over_there(fleet: Fleet, machines: list[Machine]) -> None:
    """A server that cannot store the objects has failed; it is not a rule's refusal."""
    one, _ = machines
    (fleet.bare / "objects").rename(fleet.bare / "aside")
    (fleet.bare / "objects").mkdir()
    for entry in (fleet.bare / "aside").iterdir():
        (fleet.bare / "objects" / entry.name).symlink_to(entry)
    (fleet.place / "count-receive-pack").write_text('#!/bin/sh\nulimit -f 0\nexec git receive-pack "$@"\n')
    before = fleet.refs()
    found = one.claim("--json", "a", agent="alice")
    assert found.code in (4, 5) and found.json["error"] in ("store", "unknown-outcome"), found
    assert fleet.refs() == before
    shutil.copy(Path(str(fleet.place / "count-upload-pack")), fleet.place / "count-receive-pack")


@pytest.mark.parametrize("when", ["post-receive", "pre-receive"])
def test_a_connection_that_breaks(fleet: Fleet, machines: list[Machine], when: str) -> None:
    """The server dies after, or before, it moved the refs: read back, said truthfully, and never twice."""
    one, _ = machines
    hook = fleet.hook(when, "kill -9 $PPID\n")
    found = one.claim("--json", "a", agent="alice")
    if when == "post-receive":
        assert found.code == 0, found
    else:
        refused(found, "unknown-outcome", 5)
        assert not fleet.events("claim")
        hook.unlink()
        assert one.claim("a", agent="alice").code == 0
    hook.unlink(missing_ok=True)
    assert len(fleet.events("claim")) == 1
    fleet.assert_sound()


def test_a_release_whose_answer_is_lost(fleet: Fleet, machines: list[Machine]) -> None:
    """A release is not repeated: the second one would say that nothing is held."""
    one, _ = machines
    assert one.claim("a", agent="alice").code == 0
    fleet.hook("post-receive", "kill -9 $PPID\n")
    found = one.claim("release", "--json", "a", agent="alice")
    assert found.code == 0 and [row["path"] for row in found.json["released"]] == ["a"], found
    assert len(fleet.events("release")) == 1


# --- the ledger over there ----------------------------------------------------------------------------------------


def test_a_plain_fetch_and_push_do_no_harm(fleet: Fleet, machines: list[Machine]) -> None:
    one, two = machines
    assert one.claim("a", agent="alice").code == 0
    two.git("fetch", "-q", "--prune")
    assert two.state().items() >= {r: o for r, o in fleet.refs().items() if r.startswith("refs/claims")}.items()
    two.git("push", "-q", "origin", "--all")
    assert two.claim("src/db.py", agent="bob").code == 0
    fleet.assert_sound()


def test_leaving_takes_nothing_from_the_others(fleet: Fleet, machines: list[Machine]) -> None:
    one, two = machines
    assert one.claim("a", agent="alice").code == 0
    before = fleet.refs()
    done = two.coord("teardown", "--yes")
    assert done.code == 0 and fleet.refs() == before, done
    assert two.state() == {} and "refs/claims" not in two.git("config", "--get-all", "remote.origin.fetch")
    two.join()
    assert [c["agent"] for c in two.claim("list", "--json").json["claims"]] == ["alice"]


def test_it_is_told_when_a_short_claim_may_be_expired(fleet: Fleet, machines: list[Machine]) -> None:
    """Heartbeats at a remote are 30 seconds apart, so that a claim with a short ttl lives longer than its ttl."""
    one, two = machines
    assert one.claim("a", "--ttl", "1s", agent="alice").code == 0

    def left() -> int:
        (row,) = two.claim("list", "--json").json["claims"]
        return int(row["expires_in_seconds"])

    told = left()
    beat = json.loads(two.git("cat-file", "blob", "refs/gitcoord/sessions/alice"))
    lives = (beat["mono"] + beat["slot"]) / 1000 + 1 - time.monotonic()  # the ttl after the end of its slot
    assert lives - 1 <= told <= 31
    waits = two.claim("a", "--json", agent="bob")
    if told > 5:
        assert 1 < waits.json["held"][0]["expires_in_seconds"] <= told, waits
        age_beats(one, fleet, told - 1)
        assert left() <= 1
    assert two.claim("a", "--wait", "30s", agent="bob").code == 0
    fleet.assert_sound()


@pytest.mark.parametrize("lasts", [False, True], ids=["for a moment", "for good"])
def test_trouble_of_this_clone_is_not_the_remotes(fleet: Fleet, machines: list[Machine], lasts: bool) -> None:
    """A prune that removes empty object directories while a fetch writes there causes this."""
    one, two = machines
    assert two.claim("a", agent="alice").code == 0
    there = one.git_dir / "objects"
    blocked = [f"{number:02x}" for number in range(256) if not (there / f"{number:02x}").exists()]
    pack = fleet.place / "count-upload-pack"
    block, once = " ".join(str(there / name) for name in blocked), fleet.place / "once"
    mend = f"if [ -e {once} ]; then rm -f {block}; fi; touch {once}" if not lasts else ":"
    for name in blocked:
        (there / name).touch()
    pack.write_text(f'#!/bin/sh\n{mend}\nexec git upload-pack "$@"\n')
    found = one.claim("list", "--json")
    if lasts:
        assert "cannot be reached" not in found.out and "this clone cannot keep" in found.json["offline"], found
        assert "unable to create temporary file" in found.json["offline"], found
    else:
        assert "offline" not in found.json and found.json["claims"][0]["agent"] == "alice", found

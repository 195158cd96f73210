"""`git coord init --remote`: join a ledger or make one, find out what the host takes, never join another's by accident."""

from __future__ import annotations

import pytest

from gitcoord.ledger.remote.address import place, without_secrets
from tests.cli.support import Done
from tests.ledger.remote.support import LEDGER, Fleet


def refused(answer: Done, error: str, code: int) -> None:
    assert (answer.code, answer.json["ok"], answer.json["error"]) == (code, False, error), answer


def test_the_first_makes_it_and_the_second_joins(fleet: Fleet) -> None:
    one, two = fleet.machines
    made = one.coord("init", "--remote", "origin", "--json").json
    assert made["created"] and made["remote"] == "origin" and made["namespaces"] == "all" and made["sync"] == "main"
    joined = two.coord("init", "--remote", "origin", "--json").json
    assert not joined["created"] and joined["root"] == made["root"] and joined["ledger"] == made["ledger"]
    assert [ref for ref in fleet.refs() if "probe" in ref] == []
    before = fleet.refs(), one.state(), one.git("config", "--list", "--local")
    assert one.coord("init", "--remote", "origin").code == 0
    assert one.coord("init").code == 0
    assert (fleet.refs(), one.state(), one.git("config", "--list", "--local")) == before


def test_two_make_it_at_once(fleet: Fleet) -> None:
    one, two = fleet.machines
    started = [machine.start("git-coord", "init", "--remote", "origin", "--json") for machine in (one, two)]
    for process in started:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (out, err)
    assert len(fleet.events("init")) == 1
    assert one.git("config", "gitcoord.root") == two.git("config", "gitcoord.root")
    assert one.claim("a", agent="alice").code == 0 and two.claim("src/db.py", agent="bob").code == 0


def test_a_fork_has_to_say_what_it_is(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    assert one.claim("a", agent="alice").code == 0
    fork = fleet.place / "fork.git"
    fleet.git("clone", "-q", "--mirror", str(fleet.bare), str(fork))
    other = fleet.add("other")
    other.git("remote", "set-url", "origin", str(fork))
    before = other.state()
    found = other.coord("init", "--remote", "origin", "--json")
    refused(found, "elsewhere", 1)
    assert len(found.json["hints"]) == 2 and other.state() == before == {}
    assert "authority" not in other.git("config", "--list", "--local")
    assert other.coord("init", "--remote", "origin", "--adopt").code == 0
    assert other.claim("src/db.py", agent="bob").code == 0
    assert not fleet.events("adopt")


@pytest.mark.parametrize(
    "one, other, same",
    [
        ("git@host.example:team/x.git", "ssh://git@host.example:2222/team/x", True),
        ("https://user@Host.example/team/x.git/", "ssh://host.example/team/x", True),
        ("/srv/x.git", "file:///srv/x", True),
        ("https://host.example/team/x", "https://host.example/fork/x", False),
        ("https://a.example/x", "https://b.example/x", False),
        ("/srv/x", "/srv/y", False),
    ],
)
def test_addresses(one: str, other: str, same: bool) -> None:
    assert (place(one) == place(other)) is same


@pytest.mark.parametrize(
    "url, told",
    [
        ("https://ada:secret@host.example/x.git", "https://host.example/x.git"),
        ("https://token@host.example:8443/x@y", "https://host.example:8443/x@y"),
        ("ssh://git:secret@host.example/x", "ssh://git@host.example/x"),
        ("git@host.example:x", "git@host.example:x"),
        ("/srv/a@b/x", "/srv/a@b/x"),
    ],
)
def test_what_the_ledger_is_told_of_an_address(url: str, told: str) -> None:
    assert without_secrets(url) == told


def test_a_ledger_of_this_clone_moves_to_the_remote(fleet: Fleet) -> None:
    one, two = fleet.machines
    assert one.coord("init").code == 0
    assert one.claim("a", agent="alice").code == 0
    seq = len(one.events())
    assert one.coord("init", "--remote", "origin").code == 0
    assert len(fleet.events()) == seq + 1 and fleet.events("adopt")
    assert "refs/claims/path/a/@alice" in fleet.refs()
    two.join()
    refused(two.claim("--json", "a", agent="bob"), "held", 1)
    assert one.claim("release", "a", agent="alice").code == 0
    assert two.claim("a", agent="bob").code == 0
    fleet.assert_sound()


def test_unknown_remotes_and_no_answer(fleet: Fleet) -> None:
    one, _ = fleet.machines
    refused(one.coord("init", "--remote", "nowhere", "--json"), "usage", 2)
    refused(one.coord("init", "--remote", "--upload-pack=x", "--json"), "usage", 2)
    one.git("remote", "add", "gone", str(fleet.place / "nothing.git"))
    refused(one.coord("init", "--remote", "gone", "--json"), "unreachable", 5)
    assert one.state() == {} and "gitcoord.root" not in one.git("config", "--list", "--local")


def test_a_host_that_takes_nothing_but_branches(fleet: Fleet) -> None:
    fleet.take_only_branches()
    one, two = fleet.machines
    made = one.coord("init", "--remote", "origin", "--json")
    assert made.json["namespaces"] == "branches", made
    two.join()
    assert one.claim("a", agent="alice").code == 0
    refused(two.claim("--json", "a", agent="bob"), "held", 1)
    assert sorted(fleet.refs()) == [LEDGER, "refs/heads/gitcoord-sessions/alice", "refs/heads/main"]
    assert one.claim("release", "a", agent="alice").code == 0
    assert two.claim("a", agent="bob").code == 0
    assert two.coord("agents", "--json").json["agents"][1]["live"]
    fleet.assert_sound()


def test_a_host_without_atomic_pushes(fleet: Fleet) -> None:
    fleet.git("config", "receive.advertiseAtomic", "false")
    one, two = fleet.machines
    assert one.coord("init", "--remote", "origin", "--json").json["atomic"] is False
    two.join()
    assert one.claim("a", agent="alice").code == 0
    refused(two.claim("--json", "a", agent="bob"), "held", 1)
    assert two.claim("src/db.py", agent="bob").code == 0
    fleet.assert_sound()


def test_a_branch_in_the_way_there(fleet: Fleet) -> None:
    one, _ = fleet.machines
    one.git("push", "-q", "origin", "main:refs/heads/gitcoord/notes")
    found = one.coord("init", "--remote", "origin", "--json")
    refused(found, "usage", 2)
    assert "gitcoord/notes" in found.json["message"]


def test_whoever_goes_by_ssh_is_told_how_to_stay_connected(fleet: Fleet) -> None:
    one, two = fleet.machines
    assert "ControlMaster" not in one.coord("init", "--remote", "origin").err
    two.git("config", "core.sshCommand", fleet.ssh())
    for url in (f"ssh://git@host.invalid{fleet.bare}", f"host.invalid:{fleet.bare}"):
        two.git("remote", "set-url", "origin", url)
        found = two.coord("init", "--remote", "origin", "--same")
        assert found.code == 0 and "set ControlMaster auto, ControlPath ~/.ssh/%C and ControlPersist 60" in found.err, (
            found
        )

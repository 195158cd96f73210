"""Settings of trunk's policy: roles that do not land, here and at a server."""

from __future__ import annotations

from pathlib import Path

from tests.cli.support import World
from tests.cli.test_json import holds
from tests.landing.support import Trunk
from tests.ledger.remote.support import Fleet
from tests.server.support import claim_program, install
from tests.support import PYTHON, STARTS, run_command

POLICY = '[role "scout"]\n\tland = false\n[agent "alice"]\n\trole = scout\n'


def test_a_role_that_does_not_land(world: World) -> None:
    trunk = Trunk(world, policy=POLICY)
    trunk.branch("alice", {"a": "x\n"})
    trunk.branch("bob", {"b": "x\n"})
    before = trunk.tip
    for words in ((), ("--check", "true"), ("--wait", "0"), ("--dry-run",)):
        refusal = trunk.land("alice", *words, "--json")
        assert refusal.code == 1 and refusal.json["error"] == "role", refusal
    assert trunk.tip == before
    assert trunk.land("bob").code == 0
    trunk.nothing_left()


def test_a_dry_run_is_judged_as_the_landing(world: World) -> None:
    trunk = Trunk(world, marks="free gitcoord-claim\n")
    trunk.branch("alice", {"free": "x\n", ".gitcoord/config": "[land]\n\tcheck = true\n"})
    look, landing = trunk.land("alice", "--dry-run"), trunk.land("alice")
    assert (look.code, look.out) == (1, "") and ".gitcoord/config" in look.err, look
    assert "free" not in look.err.replace(".gitcoord/config", ""), "the landing would claim it"
    assert look.err.splitlines() == [line for line in landing.err.splitlines() if line in look.err.splitlines()]
    refused = trunk.land("alice", "--dry-run", "--json")
    assert refused.code == 1 and refused.json["error"] == "refused" and refused.json["verdicts"], refused
    trunk.branch("bob", {"free": "x\n"})
    world.take("free", agent="carol")
    assert holds(trunk.land("bob", "--dry-run", "--check", "make", "--json"), "would land")["checks"] == ["make"]
    assert "would run: make\n" in trunk.land("bob", "--dry-run", "--check", "make").out
    assert trunk.land("bob", "--dry-run", "--task", "t99", "--json").json["error"] == "no-task"
    assert trunk.land("bob", "--dry-run", "--wait", "soon").code == 2
    before = world.git("for-each-ref")
    assert trunk.land("alice", "--dry-run").code == 1 and world.git("for-each-ref") == before, "nothing is recorded"
    assert trunk.land("bob", "--dry-run").code == 0


def test_a_role_that_does_not_land_at_a_server(fleet: Fleet, tmp_path: Path) -> None:
    """The client's own rule refuses first. The server refuses a client that asks none, and a push of trunk without a landing."""
    one, two = fleet.machines
    one.commit({".gitcoord/config": POLICY})
    one.git("push", "-q", "origin", "main")
    two.git("pull", "-q")
    install(fleet.bare, claim_program(tmp_path))
    fleet.joined()
    for machine, agent in ((one, "alice"), (two, "bob")):
        machine.git("switch", "-q", "-c", agent)
        machine.commit({agent: "x\n"})
    before = fleet.git("rev-parse", "main")
    refusal = one.run("git-coord", "land", "--json", agent="alice")
    assert refusal.code == 1 and refusal.json["error"] == "role", refusal
    unruled = "import gitcoord.landing.events.landing as rule, gitcoord.landing.cli_land as cli\n"
    unruled += "rule.may_not_land = cli.may_not_land = lambda *_: None\n"
    start = STARTS["git-coord"].replace("from gitcoord.cli.entry", f"{unruled}from gitcoord.cli.entry")
    forged = run_command([*PYTHON, "-c", start, "land"], one.repo, {**one.env, "GITCOORD_AGENT": "alice"})
    assert forged.returncode == 1 and b"does not land" in forged.stderr and b"'origin' refused it" in forged.stderr
    pushed = one.run("git", "push", "-q", "-o", "agent=alice", "origin", "alice:main", agent="alice")
    assert pushed.code and "the role 'scout' of 'alice' does not land" in pushed.err, pushed
    assert fleet.git("rev-parse", "main") == before and fleet.events("land") == []
    assert one.run("git", "push", "-q", "origin", "alice", agent="alice").code == 0, "its branch is its own"
    assert two.run("git-coord", "land", agent="bob").code == 0
    fleet.assert_sound()

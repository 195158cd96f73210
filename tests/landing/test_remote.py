"""Landing at a remote: trunk and ledger in one push, with and without the server's gate, and where pushes are not atomic."""

from __future__ import annotations

import os
import subprocess
from contextlib import chdir

import pytest

from gitcoord.base.errors import Refused, refused
from gitcoord.claims.model import Item
from gitcoord.claims.take import Take, decide
from gitcoord.git.store import RefUpdate
from gitcoord.ledger.event import Decision
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import transact
from gitcoord.ledger.world import World as LedgerWorld
from gitcoord.world.open import open_repository
from tests.cli.support import Done
from tests.cost import Counter
from tests.ledger.remote.support import Fleet, Machine

MARKS = "shared/** gitcoord-claim\n"


@pytest.fixture(params=["no gate", "gate", "not atomic"])
def machines(request: pytest.FixtureRequest, fleet: Fleet) -> list[Machine]:
    one, two = fleet.machines
    one.commit({".gitattributes": MARKS, "shared/a": "a\n"})
    one.git("push", "-q", "origin", "main")
    two.git("pull", "-q")
    if request.param == "gate":
        request.getfixturevalue("gated")
    found = fleet.joined()
    if request.param == "not atomic":
        for machine in found:
            machine.git("config", "gitcoord.atomic", "false")
    return found


def _branch(machine: Machine, name: str, files: dict[str, str]) -> str:
    machine.git("switch", "-q", "-c", name, "origin/main")
    machine.commit(files)
    return machine.git("rev-parse", "HEAD").strip()


def _land(machine: Machine, *words: str, agent: str) -> Done:
    return machine.run("git-coord", "land", *words, agent=agent)


def _trunk(fleet: Fleet, name: str) -> str:
    return fleet.git("show", f"main:{name}")


def test_a_branch_lands_with_its_claims_and_its_task(fleet: Fleet, machines: list[Machine]) -> None:
    one, two = machines
    task = one.run("git-coord", "task", "add", "do it", "--json", agent="alice").json["tasks"][0]["id"]
    assert one.run("git-coord", "task", "take", task, agent="alice").code == 0
    _branch(one, "topic", {"shared/a": "new\n", "free": "x\n"})
    done = _land(one, "--task", task, "--check", "grep -q new shared/a", "--json", agent="alice")
    assert done.code == 0, done
    assert _trunk(fleet, "shared/a") == "new\n" and done.json["released"] == ["shared/a"]
    assert [event["kind"] for event in fleet.events()][-2:] == ["landing", "land"]
    assert two.run("git-coord", "task", "show", task, "--json", agent="bob").json["task"]["state"] == "done"
    assert two.claim("list", "--json").json["claims"] == []
    assert one.git("rev-parse", "origin/main").strip() == done.json["new"]
    fleet.assert_sound()


def test_where_trunk_and_ledger_do_not_move_together_it_is_said(machines: list[Machine]) -> None:
    one, _ = machines
    atomic = one.git("config", "--default", "true", "gitcoord.atomic").strip() == "true"
    _branch(one, "topic", {"free": "x\n"})
    done = _land(one, agent="alice")
    assert done.code == 0 and ("not atomic here: 'origin' takes one ref at a time" in done.err) is not atomic, done


def test_a_plain_landing_is_one_push_where_nobody_else_is(fleet: Fleet, machines: list[Machine]) -> None:
    """Beside agents of other machines it fetches before, since they may have landed."""
    one, two = machines
    if one.git("config", "--default", "true", "gitcoord.atomic").strip() == "false":
        pytest.skip("without atomic pushes there are more")
    _branch(one, "topic", {"free": "x\n"})
    fleet.connections()
    assert _land(one, agent="alice").code == 0
    assert fleet.connections() == ["receive-pack"]
    assert [event["kind"] for event in fleet.events()][-4:] == ["start", "claim", "landing", "land"]
    assert two.run("git-coord", "start", agent="bob").code == 0
    assert one.claim("list", agent="alice").code == 0  # it has seen bob now
    one.git("fetch", "-q")
    _branch(one, "next", {"more": "x\n"})
    fleet.connections()
    assert _land(one, agent="alice").code == 0
    assert fleet.connections() == ["upload-pack", "receive-pack"]
    assert two.run("git-coord", "stop", agent="bob").code == 0
    assert one.claim("list", agent="alice").code == 0  # it has seen its own heartbeat, and that bob has gone
    _branch(one, "last", {"again": "x\n"})
    fleet.connections()
    assert _land(one, agent="alice").code == 0
    assert fleet.connections() == ["receive-pack"]


def _by_an_old_copy(fleet: Fleet, files: dict[str, str], *words: str, push: dict[str, str], claim: str = "") -> Done:
    """alice's landing in a clone that has not seen what a person pushed to trunk, and what bob has claimed."""
    one, two = fleet.joined()
    _branch(one, "topic", files)
    if push:
        two.commit(push)
        two.git("push", "-q", "origin", "main")
    if claim:
        assert two.claim(claim, agent="bob").code == 0
    fleet.connections()
    done = _land(one, *words, "--json", agent="alice")
    if done.code:
        assert fleet.events("land") == []
    return done


def test_an_old_copy_lands_by_what_it_fetches_then(fleet: Fleet) -> None:
    done = _by_an_old_copy(fleet, {"free": "x\n"}, push={"theirs": "x\n"})
    assert done.code == 0, done
    assert "once more" not in done.err, "trunk has not moved meanwhile"
    assert fleet.connections() == ["receive-pack", "upload-pack", "receive-pack"]
    assert _trunk(fleet, "free") == _trunk(fleet, "theirs") == "x\n" and len(fleet.events("land")) == 1
    fleet.assert_sound()


def test_an_old_copy_meets_a_conflict(fleet: Fleet) -> None:
    done = _by_an_old_copy(fleet, {"free": "x\n"}, push={"free": "theirs\n"})
    assert done.json["error"] == "conflict" and done.json["stands"], done
    (fleet.machines[0].repo / "free").write_text("both\n")
    fleet.machines[0].git("add", "free")
    assert _land(fleet.machines[0], "--continue", agent="alice").code == 0
    assert _trunk(fleet, "free") == "both\n"


def test_an_old_copy_runs_the_check_that_trunk_has_by_now(fleet: Fleet) -> None:
    policy = {".gitcoord/config": "[land]\n\tcheck = test ! -e free\n"}
    assert _by_an_old_copy(fleet, {"free": "x\n"}, push=policy).json["error"] == "check"


def test_an_old_copy_waits_for_a_claim_that_it_did_not_know(fleet: Fleet) -> None:
    done = _by_an_old_copy(fleet, {"free": "x\n"}, "--wait", "1s", push={}, claim="free")
    assert done.code == 3 and done.json["error"] == "timeout", done


def test_an_old_copy_does_not_land_for_a_role_that_may_no_more(fleet: Fleet) -> None:
    policy = {".gitcoord/config": '[role "scout"]\n\tland = false\n[agent "alice"]\n\trole = scout\n'}
    done = _by_an_old_copy(fleet, {"free": "x\n"}, push=policy)
    assert done.json.get("error") == "role", done


def test_what_an_old_copy_knows_as_landed_lands_again_where_trunk_went_back(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    before = fleet.git("rev-parse", "main").strip()
    _branch(one, "topic", {"free": "x\n"})
    assert _land(one, agent="alice").code == 0
    fleet.git("update-ref", "refs/heads/main", before)
    done = _land(one, "--json", agent="alice")
    assert done.code == 0 and not done.json["already"], done
    assert _trunk(fleet, "free") == "x\n"


def test_an_old_copy_completes_no_task_that_another_has_by_now(fleet: Fleet) -> None:
    one, two = fleet.joined()
    task = one.run("git-coord", "task", "add", "do it", "--json", agent="alice").json["tasks"][0]["id"]
    assert two.run("git-coord", "task", "take", task, agent="bob").code == 0
    _branch(one, "topic", {"free": "x\n"})
    done = _land(one, "--task", task, "--json", agent="alice")
    assert done.code == 1 and fleet.events("land") == [], done
    fleet.assert_sound()


def test_a_plain_landing_asks_git_for_each_fact_once(fleet: Fleet) -> None:
    """Of a branch on top of trunk: 14 processes of git, two of them the fetch and the push."""
    one, _ = fleet.joined()
    counter = Counter(fleet.place)
    for name in ("first", "second"):  # the first one begins the session and fills the caches
        _branch(one, name, {name: "x\n"})
        argv = [*counter.argv("git-coord"), "land"]
        done = subprocess.run(
            argv, cwd=one.repo, env={**one.env, "GITCOORD_AGENT": "alice"}, capture_output=True, check=False
        )
        assert done.returncode == 0, done
        cost = counter.taken()
    assert cost.children <= 14, cost


def test_trunk_that_moved_there_is_done_again(fleet: Fleet, machines: list[Machine]) -> None:
    """A person's push between the fetch and the push of the landing; and work of another machine that conflicts."""
    one, two = machines
    _branch(one, "topic", {"free": "x\n"})
    behind = f"cd {two.repo} && test -e .git/once || {{ touch .git/once; git commit -q --allow-empty -m behind; git push -q origin main; }}"
    done = _land(one, "--check", behind, "--json", agent="alice")
    assert done.code == 0, done
    assert fleet.git("log", "--format=%s", "main").splitlines().count("behind") == 1
    assert _trunk(fleet, "free") == "x\n"
    assert len(fleet.events("land")) == 1
    _branch(two, "other", {"free": "y\n"})
    conflict = _land(two, "--json", agent="bob")
    assert conflict.json["error"] == "conflict" and conflict.json["files"] == ["free"], conflict
    _branch(one, "next", {"more": "x\n"})
    assert _land(one, "--wait", "0", agent="alice").code == 1, "the turn is kept for resolving it"
    (two.repo / "free").write_text("xy\n")
    two.git("add", "free")
    assert _land(two, "--continue", agent="bob").code == 0
    assert _trunk(fleet, "free") == "xy\n"
    fleet.assert_sound()


def test_trunk_of_this_clone_is_told_apart_from_the_remotes(fleet: Fleet) -> None:
    """Both have one name: no message says that main conflicts with main, or lands on it."""
    one, two = fleet.joined()
    for machine, text in ((one, "theirs\n"), (two, "mine\n")):
        machine.commit({"free": text})
    one.git("push", "-q", "origin", "main")
    told = _land(two, "--dry-run", agent="bob")
    assert told.out.startswith("would not land your main on origin/main (merge): conflicts in free"), told
    done = _land(two, agent="bob")
    assert done.err.startswith("error: your main conflicts with origin/main in free\n"), done
    (two.repo / "free").write_text("both\n")
    two.git("add", "free")
    done = _land(two, "--continue", agent="bob")
    assert done.out.startswith("landed your main on origin/main: "), done
    assert fleet.git("log", "-1", "--format=%s", "main") == "Merge branch 'main'\n", "as where nothing conflicts"


def test_the_marked_path_of_another_machine_is_waited_for(fleet: Fleet, machines: list[Machine]) -> None:
    one, two = machines
    assert two.claim("shared/a", agent="bob").code == 0
    _branch(one, "topic", {"shared/a": "new\n"})
    assert _land(one, "--wait", "0", "--json", agent="alice").json["error"] == "held"
    assert _land(one, "--wait", "1s", "--json", agent="alice").code == 3
    assert two.claim("release", "shared/a", agent="bob").code == 0
    assert _land(one, agent="alice").code == 0
    assert _trunk(fleet, "shared/a") == "new\n"
    fleet.assert_sound()


def test_the_host_refuses_trunk(fleet: Fleet, machines: list[Machine]) -> None:
    """Nothing has landed, no task is done, and the turn is given back."""
    one, _ = machines
    old = fleet.hook("update", 'test "$1" != refs/heads/main || { echo protected branch; exit 1; }\n')
    _branch(one, "topic", {"free": "x\n"})
    before = fleet.git("rev-parse", "main")
    done = _land(one, "--json", agent="alice")
    assert done.code == 1 and "protected branch" in done.json["message"], done
    assert fleet.git("rev-parse", "main") == before and fleet.events("land") == []
    assert one.claim("list", "--json").json["claims"] == []
    old.unlink()
    assert _land(one, agent="alice").code == 0
    fleet.assert_sound()


def test_an_intent_of_another_machine_does_not_conflict(fleet: Fleet, machines: list[Machine]) -> None:
    one, two = machines
    assert two.claim("--mode", "intent", "shared/a", agent="bob").code == 0
    _branch(one, "topic", {"shared/a": "new\n"})
    done = _land(one, "--wait", "0", "--json", agent="alice")
    assert done.code == 0 and done.json["told"] == ["bob"], done
    assert _trunk(fleet, "shared/a") == "new\n"
    assert "topic has landed" in two.claim("shared/a", agent="bob").out
    fleet.assert_sound()


def test_trunk_moves_with_the_record_of_its_landing_and_with_nothing_else(
    fleet: Fleet, machines: list[Machine]
) -> None:
    """A command may first have to put something else on record, as the end of an expired turn, which passes to a waiter."""
    one, _ = machines
    new = _branch(one, "topic", {"free": "x\n"})
    old, actor, asked = fleet.refs()["refs/heads/main"], Actor("alice"), []

    def rule(state: State, command: Take, world: LedgerWorld) -> Decision:
        asked.append(state.seq)
        if len(asked) == 1:
            return decide(state, command, world)._replace(again=True)
        raise refused("held", "somebody else has the turn now")

    with chdir(one.repo):
        ctx = open_repository({os.fsencode(k): os.fsencode(v) for k, v in one.env.items()}, writing=True)
        try:
            with pytest.raises(Refused):
                transact(ctx, rule, Take(actor, (Item("path", "a"),)), moving=RefUpdate("refs/heads/main", old, new))
        finally:
            ctx.store.close()
    assert fleet.refs()["refs/heads/main"] == old
    assert [event["kind"] for event in fleet.events()][-1] == "claim"

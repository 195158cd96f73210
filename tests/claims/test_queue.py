"""The queue at the command line: order, the same ticket again, giving up, and what everybody sees."""

from __future__ import annotations

import json
import re
import signal
from contextlib import ExitStack
from pathlib import Path

from tests.claims.test_claim import _waits
from tests.cli.support import World


def _queue(world: World, agent: str, *words: str) -> dict[str, object]:
    done = world.claim("--queue", *(words or ("src",)), "--json", agent=agent)
    assert done.code == 3, done.err
    row: dict[str, object] = done.json
    return row


def test_waiters_are_granted_in_the_order_in_which_they_came(world: World) -> None:
    world.take("src")
    with ExitStack() as stack:
        waiters = {}
        for agent in ("dave", "carol", "bob"):
            waiters[agent] = stack.enter_context(world.started("--wait", "60s", "src", agent=agent))
            assert "of" in _waits(waiters[agent])  # stands in the queue before the next one comes
        world.free()
        for agent in ("dave", "carol", "bob"):
            out, _ = waiters[agent].communicate(timeout=30)
            assert out.startswith(b"claimed src, token "), agent
            assert world.claims() == [f"path/src/@{agent}"]
            world.free(agent)


def test_a_release_grants_in_its_own_event_and_the_token_is_its_number(world: World) -> None:
    world.take("src")
    _queue(world, "bob")
    world.free()
    assert world.claims() == ["path/src/@bob"]
    before = world.head
    row = world.claim("--queue", "src", "--json", agent="bob").json
    assert row["ok"] and world.head == before, "taking what was granted writes no event"
    assert world.claim("src", agent="carol").code == 1


def test_the_same_request_again_keeps_its_ticket(world: World) -> None:
    world.take("src")
    first = _queue(world, "bob")
    second = _queue(world, "carol")
    assert (first["position"], second["position"], second["before"]) == (1, 2, ["bob"])
    again = _queue(world, "bob")
    assert (again["ticket"], again["position"]) == (first["ticket"], 1)


def test_asking_again_with_other_terms_keeps_the_reason(world: World) -> None:
    """As `--wait` after `--queue -m` does, which its hint names."""
    world.take("src")
    _queue(world, "bob", "src", "-m", "new login", "--ttl", "20m")
    _queue(world, "bob", "src", "--priority", "high")
    found = world.claim("list", "--json").json["waits"][0]
    assert (found["priority"], found["reason"]) == ("high", "new login")
    world.free()
    claim = world.claim("list", "--json").json["claims"][0]
    assert (claim["reason"], claim["ttl_seconds"]) == ("new login", 1200)


def test_a_killed_waiter_keeps_its_place_and_ctrl_c_gives_it_up(world: World) -> None:
    world.take("src")
    with world.started("--wait", "60s", "src", agent="bob") as waiter:
        _waits(waiter)
        waiter.send_signal(signal.SIGKILL)
        waiter.communicate(timeout=30)
    assert [row["agent"] for row in world.claim("list", "--json").json["waits"]] == ["bob"]
    with world.started("--wait", "60s", "src", agent="bob") as waiter:
        _waits(waiter)
        waiter.send_signal(signal.SIGINT)
        waiter.communicate(timeout=30)
    assert "waits" not in world.claim("list", "--json").json


def test_priority_goes_first_and_an_agent_may_not_ask_for_critical(world: World) -> None:
    world.take("src")
    _queue(world, "bob")
    assert _queue(world, "carol", "src", "--priority", "high")["before"] == []
    done = world.claim("--queue", "src", "--priority", "critical", agent="dave")
    assert done.code == 1 and "'high' at most" in done.err
    world.free()
    assert world.claims() == ["path/src/@carol"]


def test_leave(world: World) -> None:
    world.take("src")
    ticket = _queue(world, "bob")["ticket"]
    assert world.claim("--leave", "src", agent="bob").out == f"left the queue for src (ticket {ticket})\n"
    assert world.claim("--leave", "src", agent="bob").out == "you wait for nothing there\n"
    world.free()
    assert world.claims() == []


def test_leave_without_a_path_leaves_every_place(world: World) -> None:
    world.take("src")
    world.take("docs")
    _queue(world, "bob", "src")
    _queue(world, "bob", "docs")
    _queue(world, "carol", "docs")
    answer = world.claim("--leave", "--json", agent="bob").json
    assert [row["paths"] for row in answer["left"]] == [["src"], ["docs"]]
    assert "news" not in answer, "who left needs no news of it"
    assert [row["agent"] for row in world.claim("list", "--json").json["waits"]] == ["carol"]
    assert world.claim("--leave", agent="bob").out == "you wait for nothing\n"
    assert world.claim("--leave", "--ticket", "99", agent="bob").out == "nobody waits with ticket 99\n"


def test_everybody_sees_who_waits(world: World) -> None:
    world.take("src/a.py")
    ticket = _queue(world, "bob", "src/a.py", "-m", "new login")["ticket"]
    line = rf"bob waits for src/a.py \(since (now|\d+s ago), ticket {ticket}, new login\)\n"
    assert re.search(f"^{line}", world.claim("list").out, re.M)
    assert re.search(f"^{line}", world.claim("show", "src").out, re.M)
    refused = world.claim("src/a.py", agent="carol").err
    assert "held by alice, 1 waiting" in refused
    assert "hint: wait for it: git claim --wait 10m src/a.py\n" in refused and "git claim --queue src/a.py" in refused
    assert re.search(f"^  {line}", world.claim("check", "src/a.py", agent="carol").out, re.M)
    assert re.search(f"^waiting: 1\n  {line}", world.coord("status", agent="carol").out, re.M)
    for row in (world.coord("status", "--json").json, world.claim("check", "src", "--json").json["paths"][0]):
        assert [wait["ticket"] for wait in row["waits"]] == [ticket]


def test_requests_are_listed_in_the_order_in_which_they_go(world: World) -> None:
    world.take("src")
    _queue(world, "bob")
    _queue(world, "carol", "src", "--priority", "high")
    assert [row["agent"] for row in world.claim("list", "--json").json["waits"]] == ["carol", "bob"]
    (mine,) = world.claim("list", "--mine", "--json", agent="bob").json["waits"]
    assert (mine["position"], mine["of"], mine["before"]) == (2, 2, ["carol"])


def test_many_requests_are_counted(world: World) -> None:
    world.take("src")
    for number in range(22):
        _queue(world, f"agent{number}")
    assert world.claim("list").out.endswith("\n2 more wait\n")


def test_a_waiting_line_says_position_holder_and_who_is_before(world: World) -> None:
    world.take("src", "-m", "new login", "--expect", "5m")
    _queue(world, "bob")
    done = world.claim("--queue", "src", agent="carol")
    first = done.out.partition(", expected ")
    assert re.match(r'in the queue, ticket \d+: 2nd of 2; alice holds it: "new login"$', first[0])
    assert re.match(r"(5m|4m59s) more; bob is before you\n$", first[2])
    assert "hint: to give up the place: git claim --leave src\n" in done.err


def test_without_a_terminal_a_line_comes_only_when_something_changes(world: World) -> None:
    world.take("src", "--expect", "5m")
    _queue(world, "bob")
    with world.started("--wait", "60s", "src", agent="carol") as waiter:
        assert _waits(waiter).startswith("waiting: 2nd of 2; alice holds it, expected ")
        _queue(world, "dave")
        assert _waits(waiter).startswith("waiting: 2nd of 3; ")
        assert world.claim("--leave", agent="bob").code == 0
        assert _waits(waiter).startswith("waiting: 1st of 2; ")
        world.free()
        out, err = waiter.communicate(timeout=30)
    assert out.startswith(b"claimed src") and err.count(b"waiting:") == 0


def test_a_plain_claim_does_not_jump_the_queue(world: World) -> None:
    """carol's request may not go because of docs, and was passed so often that src is kept for her."""
    world.take("docs")
    _queue(world, "carol", "src", "docs")
    for _ in range(3):
        assert world.claim("src", agent="bob").code == 0
        world.free("bob")
    done = world.claim("src", agent="bob")
    assert done.code == 1 and "'src' is free, but kept for carol, who waits for src, docs" in done.err
    world.free()
    assert sorted(world.claims()) == ["path/docs/@carol", "path/src/@carol"]


def test_check_and_show_say_for_whom_a_free_path_is_kept(world: World) -> None:
    """The answer stays yes where nobody needs a claim to write."""
    world.commit({".gitattributes": "src/b.py gitcoord-claim\n"})
    world.take("docs")
    _queue(world, "carol", "src", "docs")
    assert "kept" not in world.claim("check", "src/a.py", agent="bob").out, "nobody was overtaken yet"
    for _ in range(3):
        world.take("src", agent="bob")
        world.free("bob")
    free, shared = (world.claim("check", path, agent="bob") for path in ("src/a.py", "src/b.py"))
    assert free.code == 0 and free.out.startswith("src/a.py: yes, free, but kept for carol\n")
    assert shared.code == 1 and shared.out.startswith("src/b.py: no, shared and not claimed, but kept for carol\n")
    assert "hint: git claim --wait 10m src/b.py\n" in shared.err
    answer = world.claim("check", "src/a.py", "docs", "--json", agent="bob").json
    assert [(row["verdict"], row.get("kept_for")) for row in answer["paths"]] == [("free", "carol"), ("held", None)]
    world.write("src/a.py", "bob's\n")
    assert world.coord("commit", "-m", "x", "src/a.py", agent="bob").code == 0, "as check promised"
    shown = world.claim("show", "src", agent="bob")
    assert shown.err == "no claim on, above or below src; it is kept for carol\n"
    assert world.claim("show", "src", "--json", agent="bob").json["kept_for"] == "carol"
    assert "kept" not in world.claim("check", "src/a.py", agent="carol").out
    world.free()
    assert "kept" not in world.claim("check", "src/a.py", "docs", agent="alice").out, "now it is held"


def test_a_holder_that_has_to_finish_first_is_not_told_to_wait(world: World) -> None:
    world.take("docs")
    _queue(world, "carol", "src", "docs")
    for _ in range(3):
        world.take("src", agent="bob")
        world.free("bob")
    for words in ((), ("--wait", "60s"), ("--queue",)):
        done = world.claim(*words, "src")
        assert done.code == 1 and "kept for carol" in done.err and "--wait" not in done.err, done
        assert "hint: finish and release what others wait for, then ask again: git claim release docs\n" in done.err


def test_the_wait_that_closes_a_circle_is_refused(world: World) -> None:
    """The hint names what the others wait for, and nothing else that the agent holds."""
    world.take("src")
    world.take("a.txt", agent="bob")
    world.take("docs", agent="bob")
    with world.started("--wait", "60s", "docs", agent="alice") as waiter:
        _waits(waiter)
        done = world.claim("--wait", "60s", "src", agent="bob")
        assert done.code == 1
        assert "bob waits for src, alice holds src; alice waits for docs, bob holds docs" in done.err
        assert done.err.endswith("then ask again: git claim release docs\n")
        world.free("bob")
        out, _ = waiter.communicate(timeout=30)
    assert out.startswith(b"claimed docs")


def test_a_wait_that_is_over_says_what_became_of_the_place(world: World) -> None:
    """It is given up; one that `--queue` had taken stays as it was."""
    world.take("src")
    done = world.claim("--wait", "1s", "src", agent="bob")
    assert done.code == 3 and "; left the queue (ticket 5)\n" in done.err, done
    assert "waits" not in world.claim("list", "--json").json
    _queue(world, "bob")
    done = world.claim("--wait", "1s", "src", agent="bob")
    assert done.code == 3 and "; your place in the queue stays (ticket 7)\n" in done.err, done
    assert "git claim --leave src" in done.err and "--queue" not in done.err
    row = world.claim("--wait", "1s", "src", "--json", agent="bob").json
    assert (row["error"], row["ticket"], row["position"], row["stays"]) == ("timeout", 7, 1, True)
    assert [row["ticket"] for row in world.claim("list", "--json").json["waits"]] == [7]
    with world.started("--wait", "60s", "src", agent="bob") as waiter:
        _waits(waiter)
        waiter.send_signal(signal.SIGINT)
        assert b"interrupted: your place in the queue stays (ticket 7)" in waiter.communicate(timeout=30)[1]
    world.free()
    assert world.claims() == ["path/src/@bob"]


def test_a_new_reason_alone_is_recorded(world: World) -> None:
    world.take("src")
    for reason in ("first", "second", "second"):
        world.claim("--queue", "src", "-m", reason, agent="bob")
    (row,) = world.claim("list", "--json").json["waits"]
    assert (row["ticket"], row["reason"]) == (5, "second") and len(world.events()) == 6


def test_what_does_not_go_together(world: World) -> None:
    assert "either --wait or --queue" in world.claim("src", "--wait", "1m", "--queue").err
    assert "--ticket goes with" in world.claim("src", "--ticket", "3").err
    assert "--ticket goes with" in world.claim("--ticket", "3").err
    assert "no path was named" in world.claim("take", "-m", "x").err
    assert "--priority is for" in world.claim("src", "--priority", "high").err


def test_the_settings_come_from_the_policy_of_trunk(world: World) -> None:
    text = '[queue]\n\tovertake = 1\n\treserveQueued = 10m\n[role "ops"]\n\tpriority = critical\n[agent "dave"]\n\trole = ops\n'
    world.commit({".gitcoord/config": text})
    world.take("docs")
    _queue(world, "carol", "src", "docs")
    assert world.claim("src", agent="bob").code == 0
    world.free("bob")
    assert "kept for carol" in world.claim("src", agent="bob").err, "overtaken once is enough"
    assert _queue(world, "dave", "docs", "--priority", "critical")["position"] == 2, "after carol, who was overtaken"
    assert "'high' at most" in world.claim("--queue", "docs", "--priority", "critical", agent="bob").err
    body = json.loads(world.git("log", "-1", "--format=%B", "gitcoord", "--").splitlines()[2])
    assert (body["kind"], body["reserve"]) == ("wait", 600)
    world.commit({".gitcoord/config": "[queue]\n\tovertake = few\n"})
    assert "queue.overtake is 'few', not a number" in world.coord("policy", "check").err


def test_leaving_gives_back_what_was_granted_meanwhile(world: World) -> None:
    world.take("src")
    _queue(world, "bob")
    _queue(world, "carol")
    world.free()
    assert world.claims() == ["path/src/@bob"]
    assert world.claim("--leave", "src", agent="bob").out == "gave back src, which was granted to you meanwhile\n"
    assert world.claims() == ["path/src/@carol"]
    assert world.claim("src", agent="carol").code == 0
    assert world.claim("--leave", "src", agent="carol").out == "you wait for nothing there\n"
    assert world.claims() == ["path/src/@carol"], "what its holder knows of is released, not left"


def test_leaving_an_upgrade_that_was_granted_meanwhile_leaves_what_was_held_before(world: World) -> None:
    """Also where another one waits for the path, and where the file has uncommitted changes."""
    for agent in ("alice", "bob"):
        world.claim("--mode", "intent", "--reason", "mine", "app.txt", agent=agent)
    assert world.claim("--queue", "app.txt", agent="bob").code == 3
    assert world.claim("--queue", "app.txt", agent="carol").code == 3
    (world.top / "app.txt").write_text("bob's\n")
    world.free("alice")
    again = "gave back app.txt, which was granted to you meanwhile (you hold it again, mode intent)\n"
    assert world.claim("--leave", "app.txt", agent="bob").out == again
    (claim,) = world.claim("list", "--json").json["claims"]
    assert (claim["agent"], claim["mode"], claim["reason"]) == ("bob", "intent", "mine")
    assert world.coord("fsck").code == 0


def test_the_time_of_a_grant_begins_with_the_event_that_makes_it(world: World) -> None:
    """Nobody need look at a grant for it to be missed in the end; who confirms it leaves no note."""
    world.take("src")
    _queue(world, "bob")
    _queue(world, "carol")
    world.free()
    notes = world.top / ".git/gitcoord/grants"
    (note,) = notes.iterdir()
    boot, mono = note.read_text().split()
    note.write_text(f"{boot}\n{int(mono) - 121_000}")
    assert world.claim("--queue", "src", agent="carol").code == 0
    assert _queue(world, "bob")["before"] == []
    world.free("carol")
    assert world.claim("--queue", "src", agent="bob").code == 0
    assert [int(each.name) for each in notes.iterdir()] == [int(note.name)], "the one that was missed"


def test_a_person_raises_a_request_which_keeps_its_class_when_it_asks_again(world: World) -> None:
    world.take("src")
    _queue(world, "bob", "src", "--priority", "high")
    ticket = str(_queue(world, "carol")["ticket"])
    refused = world.claim("--ticket", ticket, "--priority", "critical", agent="carol")
    assert refused.code == 1 and "only a person may raise the priority" in refused.err
    done = world.at_terminal("--ticket", ticket, "--priority", "critical")
    assert done.out == f"the request of carol for src (ticket {ticket}) is critical\n"
    head = world.head
    assert _queue(world, "carol")["position"] == 1
    assert world.head == head, "asking again with the default class changes nothing"
    assert world.at_terminal("--ticket", ticket, "--priority", "low").out.endswith("is critical\n")
    assert "nobody waits with ticket 99" in world.at_terminal("--ticket", "99", "--priority", "high").out
    assert f"raise request {ticket} of carol to critical by ada_at_example.com" in world.events()
    world.free()
    assert world.claims() == ["path/src/@carol"]


def test_a_subagent_works_under_its_parents_claim(world: World) -> None:
    assert world.claim("src", agent="kim").code == 0
    claimed = world.claim("--wait", "5s", "src/app.py", agent="kim.x")
    assert (claimed.code, claimed.out) == (
        0,
        "src/app.py needs no claim of yours: kim, whose subagent you are, holds src\n",
    )
    checked = world.claim("check", "src/app.py", agent="kim.x")
    assert (checked.code, checked.out) == (0, "src/app.py: yes, kim, whose subagent you are, holds it\n")
    world.write("src/app.py", "changed\n")
    done = world.coord("commit", "-m", "work", "--", "src/app.py", agent="kim.x")
    assert done.code == 0, done
    assert world.claim("check", "src/app.py", agent="kimx").code == 1


def test_work_trees_of_one_repository_have_one_queue(world: World, tmp_path: Path) -> None:
    """bob waits in another tree than the holder's; carol is told where she asked, and dave where he did not."""
    linked = World(tmp_path / "linked", made=True)
    world.git("worktree", "add", "-q", str(linked.top))
    world.take("src")
    with linked.started("--wait", "60s", "src", agent="bob") as waiter:
        assert _waits(waiter) == "waiting: 1st of 1; alice holds it\n"
        carol, dave = _queue(linked, "carol"), _queue(world, "dave")
        assert dave["before"] == ["bob", "carol"] and _queue(linked, "erin")["position"] == 4
        assert world.claim("--leave", "src", agent="erin").out.startswith("left the queue for src ")
        world.free()
        out, _ = waiter.communicate(timeout=10)  # without a wake-up it would look after 15 seconds
    assert out.startswith(b"claimed src, token ") and world.claims() == ["path/src/@bob"]
    holder = "bob"
    for agent, ticket in (("carol", carol["ticket"]), ("dave", dave["ticket"])):
        assert world.claim("release", "src", agent=holder).code == 0
        (row,) = linked.claim("list", "--json", agent=agent).json["news"]["granted"]
        assert (row["path"], row["ticket"], row["confirmed"]) == ("src", ticket, True)
        assert world.claim("list", agent=agent).err == "", "told once"
        holder = agent

"""The overview with real repositories: what needs whom, its sources, its shape, and that it fits a terminal."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Any

from gitcoord.landing.events.landing import Begin, decide
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.transaction import transact
from gitcoord.tasks.open_tasks import open_tasks
from gitcoord.terminal.fit import columns
from gitcoord.world.open import environ, open_repository
from tests.cli.support import World
from tests.cli.test_json import holds
from tests.cost import Counter
from tests.support import COORD, UNHOOKED, git


def overview(world: World, agent: str = "", cwd: str = "") -> Any:
    return holds(world.coord("status", "--json", agent=agent, cwd=cwd), "status")


def kinds(rows: list[dict[str, Any]]) -> list[str]:
    return [row["kind"] for row in rows if row["kind"] != "hooks"]  # none are installed in these worlds


def test_nothing_needs_you(world: World) -> None:
    world.coord("install-hooks")
    world.take("src/a.py")
    world.claim("--queue", "src/a.py", agent="bob")
    assert world.coord("status", agent="").out.startswith("nothing needs you\nclaims: 1\n")
    row = overview(world)
    assert row["needs_you"] == row["needs_person"] == []
    assert [wait["agent"] for wait in row["claims"][0]["waiters"]] == ["bob"]
    assert {agent["agent"]: agent["activity"] for agent in row["agents"]} == {"alice": "alive", "bob": "waiting"}
    assert row["claims"][0]["source"] == f"event {row['claims'][0]['token']}, heartbeat of alice"


def test_a_killed_agent_is_told_so_first_and_others_are_not(world: World) -> None:
    world.take("src/a.py")
    assert world.person("kill", "alice").code == 0
    shown = world.coord("status").out.splitlines()
    assert "'alice' was killed" in shown[1] and "git coord revive alice" in shown[2], shown
    assert "killed" not in kinds(overview(world, "bob")["needs_you"])


def test_an_expired_claim_is_news_only_with_uncommitted_work_here(world: World) -> None:
    world.take("src/a.py")
    world.fall_silent("alice")
    assert kinds(overview(world)["needs_you"]) == []
    world.write("src/a.py", "half done\n")
    row = overview(world)
    assert kinds(row["needs_you"]) == ["expired"] and row["agents"][0]["activity"] == "expired"
    assert row["needs_you"][0]["help"] == "git status -- :/src/a.py"


def test_work_in_another_work_tree_is_not_that_of_the_expired_agent(world: World, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    world.git("worktree", "add", "-q", str(tree), "-b", "topic")
    world.claim("src/a.py", cwd=str(tree))
    world.fall_silent("alice")
    world.write("src/a.py", "of somebody else\n")
    assert kinds(overview(world)["needs_you"]) == []
    (tree / "src/a.py").write_text("half done\n")
    assert kinds(overview(world, cwd=str(tree))["needs_you"]) == ["expired"]


def test_a_refused_deadlock_until_somebody_gives_way(world: World) -> None:
    world.take("src/a.py")
    world.take("src/b.py", agent="bob")
    world.claim("--queue", "src/b.py")
    with world.started("--wait", "10m", "src/b.py"):  # alice does nothing else until then
        while not any(row.get("blocking") for row in overview(world).get("waits", [])):
            pass
        assert world.claim("--wait", "5s", "src/a.py", "--json", agent="bob").json["error"] == "deadlock"
        row = overview(world)
        assert kinds(row["needs_you"]) == ["deadlock"] and row["needs_you"][0]["agent"] == "bob"
        assert kinds(overview(world, "carol")["needs_person"]) == ["deadlock"]
        assert kinds(overview(world, "bob")["needs_you"]) == ["deadlock"]
        world.free("bob")
        assert kinds(overview(world)["needs_you"]) == []


def test_a_failed_landing_until_the_branch_moves(world: World) -> None:
    world.commit({".gitcoord/config": "[land]\n\tcheck = test ! -f bad\n"})
    world.git("switch", "-q", "-c", "topic")
    world.commit({"bad": ""})
    assert world.coord("land").code == 1
    assert kinds(overview(world)["needs_you"]) == [], "alice lives, and was told"
    (need,) = (row for row in overview(world, "alice")["needs_you"] if row["kind"] == "landing")
    assert need["subject"] == "topic" and need["help"].startswith("cat ")
    world.coord("stop")
    assert kinds(overview(world)["needs_you"]) == ["landing"]
    world.git("rm", "-q", "bad")
    world.commit({"good": ""})
    assert kinds(overview(world)["needs_you"]) == []
    assert world.coord("land").code == 0
    world.git("switch", "-q", "topic")
    assert kinds(overview(world)["needs_you"]) == []


def test_tasks_and_approvals_need_a_person_and_an_agent_is_told_so(world: World) -> None:
    world.commit({".gitattributes": "src/b.py gitcoord-guard=checkpoint\n"})
    world.coord("install-hooks")
    world.person("task", "add", "choose a licence")
    id = overview(world)["tasks"][0]["id"]
    world.person("task", "needs-human", id, "-m", "yours")
    world.take("src/b.py")
    world.write("src/b.py", "2\n")
    assert world.coord("commit", "-m", "b", "--", "src/b.py").code == 1
    row = overview(world)
    assert sorted(kinds(row["needs_you"])) == ["approval", "task"] and row["approvals"][0]["path"] == "src/b.py"
    row = overview(world, "alice")
    assert row["needs_you"] == [] and sorted(kinds(row["needs_person"])) == ["approval", "task"]
    assert world.coord("status").out.startswith("nothing needs you\nneeds a person: 2\n")
    world.git("stash", "-q")
    world.write(".gitcoord/config", "[gitcoord]\n\tapprover = grace\n")
    world.git("add", "-A")
    world.git(*UNHOOKED, "commit", "-q", "-m", "approvers")
    shown = world.person("status").out
    assert "needs a person: choose a licence" in shown and "asks for approval" not in shown, "ada is no approver"


def test_it_fits_the_terminal(world: World) -> None:
    world.take("--", "docs/" + "long/" * 20 + "guide.md", "-m", "reason " * 20)
    world.take("--", "src/" + "日本語" * 20 + ".py", agent="bob")
    world.claim("--queue", "src", agent="carol")
    shown = world.at_terminal("status", argv=COORD, env={"NO_COLOR": "1"}).out
    lines = shown.splitlines()
    assert lines and max(map(columns, lines)) <= 80, shown
    assert "guide.md" in shown and "docs/" in shown
    piped = world.coord("status", agent="").out
    assert "docs/" + "long/" * 20 + "guide.md" in piped, "nothing is left out where nobody looks"


def test_many_claims_leave_the_first_line_in_sight(world: World) -> None:
    world.take(*(f"src/{number}" for number in range(60)))
    world.claim("--queue", "src/59", agent="bob")
    lines = world.at_terminal("status", argv=COORD, env={"NO_COLOR": "1"}).out.splitlines()
    assert "  40 more: git claim list" in lines and len(lines) < 40
    at = lines.index("claims: 60")
    assert lines[at + 1].split()[:1] == ["src/59"], "what somebody waits for goes first"


def test_lists_are_cut_to_what_the_terminal_shows(world: World) -> None:
    world.coord("install-hooks")
    for number in range(15):
        world.take(f"src/{number}", "-m", f"part {number}", agent=f"a{number}")
    heights = {}
    for rows in (50, 30, 15):
        shown = world.at_terminal("status", argv=COORD, env={"NO_COLOR": "1"}, columns=80, rows=rows).out.splitlines()
        heights[rows] = len(shown)
        assert [line.split() for line in shown if line.startswith("  a14 ")][:1] in (
            [["a14", "alive", "part", "14"]],
            [],
        )
    assert heights[50] == 34 and heights[30] == 26 and heights[15] == 16 and shown[-1] == "ledger: 31 events"
    world.person("halt", "-m", "stop it")
    shown = world.at_terminal("status", argv=COORD, env={"NO_COLOR": "1"}, columns=80, rows=15).out.splitlines()
    assert shown[0] == "needs you: 1" and shown[-1] == "needs you: 1, at the top"


def test_the_number_of_processes_does_not_grow(tmp_path: Path) -> None:
    """With claims, agents, tasks and requests: everything comes from one read."""
    costs = []
    for size in (2, 20):
        git(tmp_path, "init", "-q", "-b", "main", f"repo{size}")
        world = World(tmp_path / f"repo{size}", ledger=True)
        counter = Counter(tmp_path)
        for number in range(size):
            world.take(f"src/{number}", agent=f"a{number}")
            world.coord("task", "add", f"task {number}", agent=f"a{number}")
            world.claim("--queue", f"src/{number}", agent=f"b{number}")
        for _ in range(2):  # a heartbeat may be due at the first
            assert world.run(counter.argv("git-coord"), ("status",), "a0").code == 0
            cost = counter.taken()
        costs.append(cost.children)
    assert costs[1] <= costs[0] <= 6, costs


def test_a_landing_whose_process_died(world: World) -> None:
    old = world.git("rev-parse", "HEAD")
    world.git("switch", "-q", "-c", "topic")
    new = world.commit({"good": ""})
    with chdir(world.top):
        ctx = open_repository(environ(), writing=True)
        begin = Begin(
            Actor("alice"),
            "main",
            "topic",
            new,
            old,
            new,
            "rebase",
            [],
            "",
            (("resource", "land/main", "alice"),),
            takes=True,
        )
        transact(ctx, decide, begin)  # and then it is killed, before trunk moves
        ctx.store.close()
    row = overview(world)
    assert row["landing"]["open"] and kinds(row["needs_you"]) == [], "its turn lasts: it may be at work"
    world.fall_silent("alice")
    (need,) = (row for row in overview(world)["needs_you"] if row["kind"] == "landing")
    assert need["source"] == f"event {row['landing']['open'][0]['seq']}" and need["help"] == "git coord land topic"
    assert world.coord("land", "topic", agent="bob").code == 0
    assert kinds(overview(world)["needs_you"]) == []


# --- early warnings, contention, tasks -------------------------------------------------------------------------------


def test_early_warnings_of_leases_and_old_copies(world: World) -> None:
    world.coord("install-hooks")
    world.take("src/a.py", "src/b.py")
    assert overview(world)["early_warnings"] == []
    world.fall_silent("alice", 1500)
    (row,) = overview(world)["early_warnings"]
    assert (row["kind"], row["subject"], row["source"]) == ("expiring", "alice", "heartbeat of alice")
    shown = world.coord("status", agent="").out
    assert (
        shown.startswith("nothing needs you\nearly warnings: 1\n  ! alice was last seen 2")
        and "src/a.py and 1 more" in shown
    )
    world.claim("list")  # a sign of life
    world.git("switch", "-q", "-c", "topic")
    world.git("switch", "-q", "main")
    world.git(*UNHOOKED, "commit", "-q", "--allow-empty", "-m", "of another path")
    world.git("switch", "-q", "topic")
    assert overview(world)["early_warnings"] == [], "trunk has not changed what is claimed"
    world.git("switch", "-q", "main")
    world.write("src/a.py", "new\n")
    world.git(*UNHOOKED, "commit", "-q", "-a", "-m", "of the path")
    world.git("switch", "-q", "topic")
    (row,) = overview(world)["early_warnings"]
    assert row["kind"] == "old-copy" and row["message"].startswith(
        "this work tree lacks 1 commit of 'main' that changed src/a.py"
    )


def test_tasks_that_nobody_goes_on_with(world: World) -> None:
    world.coord("install-hooks")
    world.coord("task", "add", "one")
    id = world.coord("task", "next", "--json").json["task"]["id"]
    assert overview(world)["early_warnings"] == []
    world.fall_silent("alice")
    (row,) = overview(world)["early_warnings"]
    assert row["kind"] == "stalled" and row["message"] == f"no agent is alive, so nobody goes on with {id} of alice"
    world.coord("start", agent="bob")
    assert overview(world)["early_warnings"] == [], "bob can take it"


def test_hot_spots_are_there_while_somebody_waits(world: World) -> None:
    world.take("src/a.py")
    for agent in ("bob", "carol", "dave"):
        assert world.claim("src/a.py", agent=agent).code == 1
        world.take(f"src/{agent}.py", agent=agent)  # refusals are told with the next event
    assert overview(world)["contention"] == []
    world.claim("--queue", "src/a.py", agent="bob")
    (spot,) = overview(world)["contention"]
    assert (spot["path"], spot["words"]) == ("src/a.py", "3 refusals") and spot["source"].startswith("the last ")
    assert "hot spots: 1\n  src/a.py  3 refusals  split the file" in world.coord("status", agent="").out


def test_only_open_tasks_are_read(world: World) -> None:
    counts = []
    for _ in range(3):
        world.coord("task", "add", "done soon")
        id = str(world.coord("task", "next", "--json").json["task"]["id"])
        world.coord("task", "complete", id, "-m", "it is done", "--not-done", "none")
        with chdir(world.top):
            ctx = open_repository(environ(), writing=False)
            snapshot = read_snapshot(ctx)
            assert open_tasks(ctx, snapshot) == []
            counts.append(sum(key.startswith("tasks/") for key in snapshot.state.files))
            ctx.store.close()
    assert counts == [1, 1, 1], "what is over is read once"
    world.coord("task", "add", "still open")
    assert [row["title"] for row in overview(world)["tasks"]] == ["still open"]
    assert len(world.coord("task", "list", "--all", "--json").json["tasks"]) == 4
    id = str(world.coord("task", "next", "--json").json["task"]["id"])
    assert [row["state"] for row in overview(world)["tasks"]] == ["active"], "a task that changed is read again"
    assert id


def test_every_row_names_its_source(world: World) -> None:
    world.take("src/a.py")
    world.claim("--queue", "src/a.py", agent="bob")
    world.coord("task", "add", "one")
    world.take("@land/main")
    world.claim("--queue", "@land/main", agent="bob")
    world.person("halt", "-m", "stop it")
    row = overview(world)
    lists = [
        *(value for value in row.values() if isinstance(value, list)),
        row["landing"]["landing"],
        row["landing"]["waiting"],
        [row["halted"]],
    ]
    rows = [each for some in lists for each in some if isinstance(each, dict)]
    assert len(rows) >= 9 and all(each["source"] for each in rows), [each for each in rows if not each.get("source")]


def test_a_policy_that_cannot_be_read_needs_somebody(world: World) -> None:
    """It came past the gates; from then on every change is refused."""
    world.commit({".gitcoord/config": "[rollout\n"})
    (need,) = [row for row in world.coord("status", "--json").json["needs_person"] if row["kind"] == "policy"]
    assert need["subject"] == ".gitcoord/config" and "every change is refused" in need["message"]
    world.commit({".gitcoord/config": "[rollout]\n\tunclaimed = warn\n"})
    assert not [row for row in world.coord("status", "--json").json["needs_person"] if row["kind"] == "policy"]

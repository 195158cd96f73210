"""`git coord mcp` with a real MCP client over stdio: what it offers, what each tool does, how it says no."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.cli.support import World
from tests.cli.test_json import wrong as problems
from tests.support import COORD, git

SECTIONS = {"state": "it parses", "changed": "the lexer", "remaining": "the printer", "next": "write print_tree()"}
LOOKING = {"list", "check", "status", "handoff_list", "handoff_show", "task_list", "task_show", "journal_show"}
CHANGING = {
    "start", "claim", "release", "leave_queue", "handoff_new", "handoff_accept", "task_next", "task_take", "task_complete", "task_fail",
    "journal_add", "note", "land", "commit", "number",
}  # fmt: skip

Ask = Callable[..., Awaitable[Any]]


def session(world: World, body: Callable[[Client], Awaitable[None]], agent: str = "alice") -> None:
    """One client and its server, as an agent tool has them: in the work tree, with a name where one is given."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GITCOORD_")}
    env |= {"GITCOORD_AGENT": agent} if agent else {}
    server = StdioServerParameters(command=COORD[0], args=[*COORD[1:], "mcp"], env=env, cwd=world.top)

    async def run() -> None:
        async with Client(server, read_timeout_seconds=60) as client:
            await body(client)

    asyncio.run(run())


def asking(client: Client) -> Ask:
    async def ask(tool: str, *, wrong: bool = False, **arguments: Any) -> Any:
        result: Any = await client.call_tool(tool, arguments)
        assert result.is_error is wrong, result
        assert result.structured_content is not None, result
        assert json.loads(result.content[0].text) == result.structured_content
        return result.structured_content

    return ask


def test_claims_from_start_to_release(world: World) -> None:
    world.take("src/b.py", "-m", "printing", agent="bob")

    async def body(client: Client) -> None:
        ask = asking(client)
        begun = await ask("start")
        assert (begun["ok"], begun["agent"], begun["claims"]) == (True, "alice", [])
        grant = await ask("claim", paths=["src/a.py"], reason="parsing", ttl="10m")
        assert (grant["claims"][0]["ttl_seconds"], grant["renewed"]) == (600, False)
        assert (await ask("claim", paths=["src/a.py"], reason="parsing", ttl="10m"))["token"] == grant["token"]
        assert world.claims() == ["path/src/a.py/@alice", "path/src/b.py/@bob"]
        no = await ask("claim", wrong=True, paths=["src"])
        assert (no["ok"], no["error"], no["held"][0]["agent"]) == (False, "held", "bob") and no["hints"]
        verdicts = await ask("check", paths=["src/a.py", "src/b.py", "new"])
        assert verdicts["allowed"] is False
        assert [row["verdict"] for row in verdicts["paths"]] == ["mine", "held", "free"]
        # What others do meanwhile is seen by the same process.
        world.git("pack-refs", "--all")
        assert len((await ask("list"))["claims"]) == 2
        world.claim("release", "src/b.py", agent="bob")
        world.git("pack-refs", "--all")
        assert [row["agent"] for row in (await ask("list"))["claims"]] == ["alice"]
        assert (await ask("check", paths=["src/b.py"]))["allowed"] is True
        world.commit({"src/a.py": "new\n"})
        given = await ask("release")
        assert [(row["path"], len(row["files"])) for row in given["released"]] == [("src/a.py", 1)]
        assert (await ask("release", wrong=True, paths=["src/a.py"]))["error"] == "not-held"
        assert (await ask("list", mine=True))["claims"] == [] == world.claims()

    session(world, body)


def test_waiting(world: World) -> None:
    world.take("src/a.py", agent="bob")

    async def body(client: Client) -> None:
        ask = asking(client)
        row = await ask("claim", paths=["src/a.py"], queue=True, priority="high", reason="parsing")
        assert (row["ok"], row["waiting"], row["position"], row["held"][0]["agent"]) == (False, True, 1, "bob")
        assert (await ask("list"))["waits"][0]["ticket"] == row["ticket"]
        assert [left["ticket"] for left in (await ask("leave_queue"))["left"]] == [row["ticket"]]
        again = await ask("claim", paths=["src/a.py"], queue=True)
        world.claim("release", "src/a.py", agent="bob")
        (news,) = (await ask("claim", wrong=True, paths=["status"]))["news"]["granted"]
        assert (news["path"], news["ticket"], news["confirmed"]) == ("src/a.py", again["ticket"], True)
        world.claim("--queue", "src", agent="carol")
        assert [w["agent"] for w in (await ask("check", paths=["src"]))["news"]["waiters"]] == ["carol"]

    session(world, body)


def test_status_is_the_overview(world: World) -> None:
    async def body(client: Client) -> None:
        ask = asking(client)
        world.take("src/a.py", agent="bob")
        await ask("claim", paths=["src/a.py"], queue=True)
        row = await ask("status")
        assert list(problems(row, "status")) == []
        assert [waiter["agent"] for waiter in row["claims"][0]["waiters"]] == ["alice"] and row["waits"][0]["source"]

    session(world, body)


def test_slips_are_refused_and_two_dashes_take_anything(world: World) -> None:
    async def body(client: Client) -> None:
        ask = asking(client)
        no = await ask("claim", wrong=True, paths=["status"])
        assert (no["error"], no["hints"][0]) == ("usage", "git coord status")
        assert (await ask("claim", wrong=True, paths=["scr/a.py"]))["error"] == "usage"
        assert (await ask("claim", paths=["src/c.py"]))["new"] == ["src/c.py"]
        assert (await ask("claim", paths=["src/a.py", "--", "status", "scr/a.py"]))["new"] == ["status", "scr/a.py"]
        assert len(world.claims()) == 4

    session(world, body)


def test_an_argument_that_no_tool_has_is_refused(world: World) -> None:
    async def body(client: Client) -> None:
        for tool, arguments in (("claim", {"paths": ["src/a.py"], "message": "x"}), ("list", {"all": True})):
            wrong: Any = await client.call_tool(tool, arguments)
            assert wrong.is_error and [*arguments][-1] in wrong.content[0].text, wrong
        tools = (await client.list_tools()).tools
        assert all(tool.input_schema["additionalProperties"] is False for tool in tools)
        assert world.claims() == []

    session(world, body)


def test_tasks_handoffs_and_the_journal(world: World) -> None:
    world.coord("task", "add", "Draw", "--path", "src/a.py", agent="bob")

    async def body(client: Client) -> None:
        ask = asking(client)
        task = (await ask("task_next"))["task"]["id"]
        assert (await ask("task_next"))["task"] is None  # there is no other
        assert (await ask("task_show", id=task))["task"]["owner"] == "alice"
        assert [row["id"] for row in (await ask("task_list", mine=True))["tasks"]] == [task]
        assert (await ask("handoff_new", **{**SECTIONS, "next": "TBD"}, wrong=True))["error"] == "usage"
        noted = await ask("journal_add", text="parsing is done\n\nthe rest is not", paths=["src/a.py"], task=task)
        entries = (await ask("journal_show", prose=True, path="src/a.py"))["entries"]
        assert [(row["seq"], row["text"]) for row in entries] == [(noted["seq"], "parsing is done\n\nthe rest is not")]
        done = await ask("task_complete", id=task, summary="drawn", not_done=["colours"])
        assert done["task"]["state"] == "done" and done["task"]["result"]["not_done"] == ["colours"]
        assert (await ask("task_fail", wrong=True, id=task, reason="late"))["error"] == "not-yours"
        world.take("src/b.py", agent="bob")
        world.handoff("new", "--to", "alice", *(w for k, v in SECTIONS.items() for w in (f"--{k}", v)), agent="bob")
        (row,) = (await ask("handoff_list"))["handoffs"]
        assert row["for_you"] and (await ask("handoff_show", id=row["id"]))["sections"]["next"] == "write print_tree()"
        assert (await ask("handoff_accept", id=row["id"]))["claims"][0]["agent"] == "alice"
        again = await ask("handoff_new", **SECTIONS, to="bob", paths=["src/b.py"])
        assert again["claims"] == ["src/b.py"]
        assert [r["id"] for r in (await ask("handoff_list", all=True))["handoffs"]] == [row["id"], again["id"]]
        assert (await ask("task_take", wrong=True, id="t999"))["error"] == "no-task"

    session(world, body)


def test_what_is_offered_and_how_it_says_no(world: World) -> None:
    async def nameless(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == LOOKING | CHANGING
        for name, tool in tools.items():
            hints = tool.annotations
            assert hints is not None and hints.read_only_hint is (name in LOOKING) and hints.open_world_hint is False
            assert tool.description and (name in LOOKING or hints.destructive_hint is False)
        again = {n for n, t in tools.items() if t.annotations is not None and t.annotations.idempotent_hint}
        assert again == {"start", "claim", "release", "leave_queue", "handoff_accept", "task_take", "land"}
        assert client.server_info is not None and client.server_info.name == "gitcoord"
        assert "Call `start` first" in str(client.instructions)
        ask = asking(client)
        no = await ask("claim", wrong=True, paths=["src/a.py"])
        assert (no["error"], no["ok"]) == ("usage", False) and any("GITCOORD_AGENT" in hint for hint in no["hints"])
        assert (await ask("list"))["claims"] == []  # whoever has no name may look
        for arguments in ({"paths": ["../x"]}, {"paths": ["a\nb\0"]}, {"paths": [""]}):
            assert (await ask("check", wrong=True, **arguments))["error"] == "usage"
        wrong: Any = await client.call_tool("claim", {"paths": []})
        assert wrong.is_error
        world.git("config", "gitcoord.agent", "carol")  # settings are heard of
        assert (await ask("claim", paths=["src/a.py"]))["claims"][0]["agent"] == "carol"

    session(world, nameless, agent="")


def test_a_server_that_was_there_before_the_ledger(git_repo: Path) -> None:
    world = World(git_repo)

    async def body(client: Client) -> None:
        ask = asking(client)
        assert (await ask("list"))["initialised"] is False
        assert (await ask("claim", wrong=True, paths=["src/a.py"]))["error"] == "not-initialised"
        world.init()
        assert (await ask("claim", paths=["src/a.py"]))["ok"] is True

    session(world, body)


def test_without_the_library_it_says_what_to_install(world: World) -> None:
    blocked = "import sys; sys.modules['mcp'] = None; " + COORD[-1]
    done = subprocess.run(
        [sys.executable, "-I", "-c", blocked, "mcp"], cwd=world.top, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and not done.stdout
    assert "mcp" in done.stderr and "--with-mcp" in done.stderr and "gitcoord[mcp]" in done.stderr


def test_a_branch_lands(world: World) -> None:
    world.git("switch", "-q", "-c", "topic")
    world.commit({"src/a.py": "new\n"})

    async def body(client: Client) -> None:
        ask = asking(client)
        no = await ask("land", wrong=True, check="exit 3")
        assert (no["error"], no["exit_code"]) == ("check", 3)
        assert (await ask("land", mode="list"))["waiting"] == []
        done = await ask("land", branch="topic", check="true", how="squash")
        assert (done["ok"], done["branch"], done["how"]) == (True, "topic", "squash")
        assert (await ask("list"))["claims"] == []

    session(world, body)
    assert world.git("show", "main:src/a.py") == "new"


def test_a_branch_lands_and_its_work_tree_goes(world: World) -> None:
    place = Path(world.coord("worktree", "add", "topic", "--json").json["path"])
    git(place, "commit", "-q", "--allow-empty", "-m", "done")

    async def body(client: Client) -> None:
        assert (await asking(client)("land", branch="topic", done=True))["removed"] == str(place)

    session(world, body)
    assert not place.exists()


def test_a_commit_of_named_files_and_its_release(world: World) -> None:
    world.write("src/a.py", "new\n")
    world.write("src/b.py", "new\n")

    async def body(client: Client) -> None:
        ask = asking(client)
        await ask("claim", paths=["src/a.py", "src/b.py"])
        row = await ask("commit", files=["src/a.py"], message="parse")
        assert (row["files"], row["commit"], "released" in row) == (["src/a.py"], world.git("rev-parse", "HEAD"), False)
        row = await ask("commit", files=["src/b.py"], message="print", release=True)
        assert (row["subject"], row["released"]) == ("print", ["src/b.py"])
        assert [claim["path"] for claim in (await ask("list", mine=True))["claims"]] == ["src/a.py"]
        assert (await ask("commit", wrong=True, files=["src/b.py"], message="print"))["ok"] is False

    session(world, body)


def test_a_number_with_its_file(world: World) -> None:
    config = '[sequence "migrations"]\n\tpattern = db/[0-9]*_*.sql\n\twidth = 4\n'
    world.commit({".gitcoord/config": config, "db/0006_users.sql": "x\n"})

    async def body(client: Client) -> None:
        ask = asking(client)
        assert (await ask("number", sequence="migrations", peek=True))["numbers"] == ["0007"]
        row = await ask("number", sequence="migrations", file="db/{n}_login.sql")
        assert (row["numbers"], row["claimed"]) == (["0007"], "db/0007_login.sql")
        assert (await ask("number", sequence="migrations", count=2))["numbers"] == ["0008", "0009"]
        no = await ask("number", wrong=True, sequence="migration")
        assert no["hints"] == ["git coord number migrations  (db/[0-9]*_*.sql)"]
        assert world.claims() == ["path/db/0007_login.sql/@alice"]

    session(world, body)


def test_a_note_comes_once_with_a_claim_a_start_and_a_handoff(world: World) -> None:
    def seen() -> list[list[str]]:
        return [[row["agent"] for row in note["seen"]] for note in world.coord("note", "--json").json["notes"]]

    world.take("src/a.py", "--ttl", "1m", agent="alice")
    world.fall_silent("alice")
    world.coord("note", "src/a.py", "-m", "of the claim", agent="bob")
    world.coord("sweep", agent="bob")

    async def body(client: Client) -> None:
        ask = asking(client)
        row = await ask("claim", paths=["src/a.py"])
        assert [note["text"] for note in row["notes"]] == ["of the claim"]
        assert row["said"] == ["note: you lost src/a.py (token 3) to bob: it expired without a heartbeat"]
        assert seen() == [["alice"]]
        world.coord("note", "src/a.py", "-m", "of the start", agent="bob")
        assert [note["text"] for note in (await ask("start"))["notes"]] == ["of the start"]
        assert seen() == [["alice"], ["alice"]] and (await ask("start"))["notes"] == []
        world.take("src/b.py", agent="bob")
        world.coord("note", "src/b.py", "-m", "of the handoff", agent="carol")
        world.handoff("new", "--to", "alice", *(w for k, v in SECTIONS.items() for w in (f"--{k}", v)), agent="bob")
        (offer,) = (await ask("handoff_list"))["handoffs"]
        row = await ask("handoff_accept", id=offer["id"])
        assert [note["text"] for note in row["notes"]] == ["of the handoff"] and seen()[-1] == ["alice"]

    session(world, body)

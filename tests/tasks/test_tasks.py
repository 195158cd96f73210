"""`git coord task`, `dispatch` and waiting for tasks, by real processes."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gitcoord.tasks.cli_schema import SCHEMAS
from tests.cli.support import World
from tests.races.support import wait_until
from tests.support import COORD, ROOT


def add(world: World, *words: str) -> str:
    done = world.coord("task", "add", *words, "--json", agent="boss")
    assert done.code == 0, done
    return str(done.json["tasks"][0]["id"])


def task(world: World, id: str) -> Any:
    return world.coord("task", "show", id, "--json").json["task"]


def started(world: World, *words: str, agent: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COORD, *words], cwd=world.top, env=world.environ(agent, {}), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_from_the_queue_to_the_result(world: World) -> None:
    id = add(
        world,
        "Fix",
        "it",
        "--path",
        "src/a.py",
        "--path",
        "@gpu",
        "-m",
        "two\nlines",
        "--expect",
        "2h",
        "--next",
        "look",
    )
    assert "Fix it" in world.coord("task").out
    done = world.coord("task", "next", "--json", agent="w1")
    jsonschema.validate(done.json["assignment"], SCHEMAS["assignment"])
    assert [claim["path"] for claim in done.json["assignment"]["claims"]] == ["src/a.py", "@gpu"]
    assert world.claims() == ["path/src/a.py/@w1", "resource/gpu/@w1"]
    shown = world.coord("task", "show", id).out
    assert "two\n" in shown and "owner: w1" in shown and "expected: 2h" in shown and "next: look" in shown
    world.commit({"src/a.py": "new\n"})
    result = {"type": "complete", "v": 1, "summary": "mended", "not_done": ["the docs"], "notes": "naïve 日本"}
    jsonschema.validate(result, SCHEMAS["complete"])
    world.write("result.json", json.dumps(result, ensure_ascii=False, indent=1))
    done = world.coord("task", "complete", id, "--result", "result.json", "--dirty", "--json", agent="w1")
    assert done.code == 0 and done.json["released"][0]["commit"] and not world.claims()
    assert task(world, id)["result"]["not_done"] == ["the docs"]
    joined = world.coord("task", "join", id, "--json")
    assert joined.code == 0 and joined.json["tasks"][0]["result"]["summary"] == "mended"
    assert "not done: the docs" in world.coord("task", "join", id).out


def test_where_none_is_left_it_says_so_or_who_has_the_others(world: World) -> None:
    left = "no task is left to take\n"
    assert world.coord("task", "next", agent="bob").out == left
    first, second = (world.coord("task", "add", title, "--json").json["tasks"][0]["id"] for title in ("one", "two"))
    world.coord("task", "take", first, agent="alice")
    world.coord("task", "take", second, agent="carol")
    told = world.coord("task", "next", agent="bob")
    assert "--wait 10m --while-any" in told.err
    assert told.code == 1 and told.out == f"nothing can be done now; others have {first} (alice), {second} (carol)\n", (
        told
    )
    for id, agent in ((first, "alice"), (second, "carol")):
        assert world.coord("task", "complete", id, "-m", "x", "--not-done", "none", agent=agent).code == 0
    told = world.coord("task", "next", agent="bob")
    assert told.out == left and "--wait" not in told.err and "git coord stop" in told.err, told
    assert world.coord("task", "next", "--json", agent="bob").json["why"] == left.strip()
    assert "no task is left: 2 over, git coord task list --all" in world.coord("task", "list").err
    ended = world.coord("task", "next", "--wait", "1h", "--while-any", agent="bob")
    assert ended.code == 1 and "error: no task is left to take\nhint: that is all: git coord stop\n" in ended.err, ended
    assert world.claim("list").out == "", "it has no place in the queue"
    waited = world.coord("task", "next", "--wait", "1s", agent="bob")
    assert waited.code == 3 and "waited 1s: no task is left to take" in waited.err, waited


def test_one_that_has_a_task_already_is_reminded_of_it(world: World) -> None:
    first, second = (world.coord("task", "add", title, "--json").json["tasks"][0]["id"] for title in ("one", "two"))
    assert "note: you have" not in world.coord("task", "take", first).err
    assert f"note: you have {first} too\n" in world.coord("task", "take", second).err


def test_nothing_to_do_says_why(world: World) -> None:
    assert world.coord("task", "next", agent="w1").code == 1
    world.take("src", agent="bob")
    add(world, "a", "--path", "src/a.py")
    done = world.coord("task", "next", agent="w1")
    assert done.code == 1 and "held by bob" in done.err and "--wait" in done.err
    done = world.coord("task", "take", "t3", agent="w1")
    assert done.code in (1, 2)


def test_uncommitted_work_is_not_handed_in(world: World) -> None:
    id = add(world, "a", "--path", "src/a.py")
    world.coord("task", "take", id, agent="w1")
    world.write("src/a.py", "not committed\n")
    done = world.coord("task", "complete", id, "-m", "x", "--not-done", "none", agent="w1")
    assert done.code == 1 and "uncommitted" in done.err and task(world, id)["state"] == "active"
    for words in (["complete", id, "-m", "x"], ["complete", id], ["complete", id, "--not-done", "x"]):
        done = world.coord("task", *words, agent="w1")
        assert done.code == 2 and "--not-done" in done.err, done


def test_handing_in_says_that_the_work_has_not_landed(world: World) -> None:
    landed, not_yet = add(world, "a", "--path", "src/a.py"), add(world, "b", "--path", "src/b.py")
    world.coord("task", "take", landed, agent="w1")
    world.commit({"src/a.py": "new\n"})
    assert "landed" not in world.coord("task", "complete", landed, "-m", "x", "--not-done", "none", agent="w1").err
    world.git("switch", "-q", "-c", "topic")
    world.coord("task", "take", not_yet, agent="w1")
    commit = world.commit({"src/b.py": "new\n"})
    done = world.coord("task", "complete", not_yet, "-m", "x", "--not-done", "none", agent="w1")
    assert f"note: {commit[:12]} has not landed on 'main' yet\nhint: bring it there: git coord land\n" in done.err, done


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1,2]", b'{"summary":"x"}', b'{"summary":"x","not_done":[],"summary":"y"}', b"\xff\xfe", b"1e5",
             b'"' + b"x" * 2_000_000 + b'"'], ids=lambda data: repr(data[:20]))  # fmt: skip
def test_a_result_that_is_none_changes_nothing(world: World, data: bytes) -> None:
    id = add(world, "a")
    world.coord("task", "take", id, agent="w1")
    (world.top / "r.json").write_bytes(data)
    head = world.head
    done = world.coord("task", "complete", id, "--result", "r.json", agent="w1")
    assert done.code == 2 and done.err and world.head == head
    assert world.coord("task", "complete", id, "--result", "missing.json", agent="w1").code == 2


HOSTILE = {
    "escape codes": "\x1b[2Jx", "bidi": "a\u202eb", "two lines": "a\nSeq: 1", "carriage return": "a\rb", "empty": " ",
}  # fmt: skip


def test_a_result_that_nobody_could_read_back_is_refused(world: World, tmp_path: Path) -> None:
    """Each line of it is within bounds, and all together fit one event; the task's file would not."""
    id = add(world, "a")
    assert world.coord("task", "next").code == 0
    lines = ["\U0001f600" * 250] * 200
    (tmp_path / "r.json").write_text(
        json.dumps({"summary": "x", "not_done": lines, "done": lines, "files": lines}, ensure_ascii=False)
    )
    done = world.coord("task", "complete", id, "--result", str(tmp_path / "r.json"))
    assert done.code and "too large" in done.err, done
    assert task(world, id)["state"] == "active" and world.coord("fsck").code == 0


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_titles_are_refused(world: World, text: str) -> None:
    head = world.head
    done = world.coord("task", "add", "--", text, agent="boss")
    assert done.code == 2 and world.head == head


def test_odd_texts_are_kept_and_shown_harmlessly(world: World) -> None:
    body = '---\nid: "t1"\n---\n\nSeq: 1\nKind: kill\n\n[x](javascript:alert(1)) <script>\n\tlast'
    id = add(world, "`rm -rf` [a](b) --- Kind: kill", "-m", body)
    assert task(world, id)["body"] == body
    assert world.coord("fsck").code == 0
    assert "javascript" in world.coord("task", "show", id).out
    assert world.events()[-1].startswith(f"task {id} by boss")


def test_moves_and_their_words(world: World) -> None:
    id = add(world, "a", "--review")
    assert world.coord("task", "block", id, agent="boss").code == 2, "a reason is needed"
    assert world.coord("task", "block", id, "--reason", "no key", agent="boss").code == 0
    assert "no key" in world.coord("task").out
    assert world.coord("task", "unblock", id, agent="boss").code == 0
    assert (
        world.coord("task", "update", id, "--priority", "high", "--title", "b", "--safe", "no", agent="boss").code == 0
    )
    assert (task(world, id)["priority"], task(world, id)["title"], task(world, id)["safe"]) == ("high", "b", False)
    assert world.coord("task", "update", id, "--owner", "w2", agent="boss").code == 0
    assert world.coord("task", "take", id, agent="w1").code == 1
    assert world.coord("task", "next", agent="w2").code == 0
    assert world.coord("task", "complete", id, "-m", "x", "--not-done", "none", agent="w2").code == 0
    assert task(world, id)["state"] == "review"
    assert world.coord("task", "review", id, "--accept", agent="w2").code == 1
    assert world.coord("task", "review", id, "--return", "--reason", "not yet", agent="w1").code == 0
    assert world.coord("task", "take", id, agent="w1").code == 0
    assert world.coord("task", "fail", id, "--reason", "cannot be done", agent="w1").code == 0
    assert world.coord("task", "join", id).code == 1
    assert world.coord("task", "reopen", id, agent="boss").code == 0
    assert world.coord("task", "abandon", id, "--reason", "old", agent="boss").code == 0
    assert "b" not in world.coord("task", "list").out and "abandoned" in world.coord("task", "list", "-a").out
    assert world.coord("fsck").code == 0


def test_needs_a_person(world: World) -> None:
    id = add(world, "a")
    assert world.coord("task", "take", id, agent="w1").code == 0
    assert world.coord("task", "needs-human", id, "--reason", "costs money", agent="w1").code == 0
    assert world.coord("task", "unblock", id, agent="w1").code == 1
    shown = world.person("task", "unblock", id, "--reason", "go on")
    assert shown.code == 0, shown
    assert task(world, id)["state"] == "active"


def test_a_list_of_tasks_from_a_file(world: World) -> None:
    rows = [{"title": "one", "key": "one"}, {"title": "two", "needs": ["one"], "paths": ["src"], "expected": "30m"}]
    for row in rows:
        jsonschema.validate(row, SCHEMAS["task"])
    world.write("tasks.json", json.dumps(rows))
    done = world.coord("task", "add", "--from", "tasks.json", "--json", agent="boss")
    assert [row["id"] for row in done.json["tasks"]] == ["t2", "t3"] and done.json["tasks"][1]["needs"] == ["t2"]
    again = world.coord("task", "add", "--from", "tasks.json", "--json", agent="boss")
    assert again.json["known"] == ["t2"] and len(again.json["tasks"]) == 2
    head = world.head
    for wrong in (
        [{"title": "x"}, {"titel": "y"}],
        {"title": "x"},
        [{"title": 5}],
        [{"title": "x", "needs": ["nope"]}],
        [],
    ):
        world.write("tasks.json", json.dumps(wrong))
        assert world.coord("task", "add", "--from", "tasks.json", agent="boss").code == 2
    assert world.head == head


def test_the_schemas_in_the_docs_are_those_of_the_command(world: World) -> None:
    for name, schema in SCHEMAS.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert world.coord("task", "schema", name).out == (ROOT / "docs" / "schema" / f"{name}.json").read_text()
    assert world.coord("task", "schema", "nothing").code == 2


def test_caps_of_the_settings_and_waiting_in_line(world: World) -> None:
    """One place under the cap; two wait, and get it in the order in which they came."""
    world.commit({".gitcoord/config": "[workers]\n\tcap = 1\n\tattempts = 7\n"})
    ids = [add(world, title) for title in ("a", "b", "c")]
    assert task(world, ids[0])["limit"] == 7
    assert world.coord("task", "take", ids[0], agent="w0").code == 0
    done = world.coord("task", "next", agent="w1")
    assert done.code == 1 and "all places are taken" in done.err
    waiting = [started(world, "task", "next", "--wait", "1m", "--json", agent="w1")]
    wait_until("w1 waits", lambda: _waiting(world) == ["w1"])
    waiting.append(started(world, "task", "next", "--wait", "1m", "--json", agent="w2"))
    wait_until("w2 waits", lambda: _waiting(world) == ["w1", "w2"])
    for name, id, process in (("w0", ids[0], waiting[0]), ("w1", ids[1], waiting[1])):
        assert world.coord("task", "complete", id, "-m", "x", "--not-done", "none", agent=name).code == 0
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert [task(world, id)["owner"] for id in ids] == ["", "", "w2"]
    assert world.coord("fsck").code == 0


def _waiting(world: World) -> list[str]:
    """The agents in the queue."""
    return [str(row["agent"]) for row in world.claim("list", "--json").json.get("waits", ())]


def test_waiting_ends_in_time_and_by_ctrl_c(world: World) -> None:
    done = world.coord("task", "next", "--wait", "1s", agent="w1")
    assert done.code == 3 and "waited" in done.err
    process = started(world, "task", "next", "--wait", "5m", agent="w1")
    wait_until("it waits", lambda: _waiting(world) == ["w1"])
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and not _waiting(world)
    assert b"interrupted: left the queue, no task was taken\n" in err


def test_a_task_by_its_id_is_waited_for_in_the_queue_of_its_paths(world: World) -> None:
    id = add(world, "a", "--path", "src/a.py")
    world.take("src/a.py", agent="eve")
    process = started(world, "task", "take", id, "--wait", "1m", agent="w1")
    wait_until("it waits", lambda: _waiting(world) == ["w1"])
    assert world.claim("--queue", "src/a.py", agent="bob").code == 3
    world.free("eve")
    process.communicate(timeout=60)
    assert process.returncode == 0 and task(world, id)["owner"] == "w1"
    assert _waiting(world) == ["bob"]
    assert world.coord("task", "complete", id, "-m", "x", "--not-done", "none", agent="w1").code == 0
    assert world.claims() == ["path/src/a.py/@bob"]


def test_a_waiter_whose_command_was_killed_keeps_its_place(world: World) -> None:
    process = started(world, "task", "next", "--wait", "5m", agent="w1")
    wait_until("it waits", lambda: _waiting(world) == ["w1"])
    process.kill()
    process.communicate()
    second = started(world, "task", "next", "--wait", "1m", "--json", agent="w2")
    wait_until("both wait", lambda: _waiting(world) == ["w1", "w2"])
    first = add(world, "a")
    assert world.coord("task", "next", "--wait", "1m", agent="w1").code == 0 and task(world, first)["owner"] == "w1"
    other = add(world, "b")
    second.communicate(timeout=60)
    assert second.returncode == 0 and task(world, other)["owner"] == "w2"
    assert world.claims() == [] and world.coord("fsck").code == 0

"""The form of answers: columns, colour by git's rules, hints, times, quiet."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from gitcoord.git.config import Settings
from gitcoord.terminal.screen import Screen, ago, expiry
from tests.cli.support import Done, World
from tests.support import CLAIM, COORD

ESC = "\x1b["


@pytest.fixture
def world(world: World) -> World:
    world.take("src/a.py", "-m", "fix")
    return world


# --- columns -------------------------------------------------------------------------------------------------------


def test_columns_are_aligned(world: World) -> None:
    world.take("--mode", "intent", "-m", "other", "--", "a/much/longer/path.txt", agent="bob-the-builder")
    world.take("@gpu", agent="carol")
    lines = world.claim("list").out.splitlines()
    assert len(lines) == 3
    for word in ("#", "since "):
        assert len({line.index(word) for line in lines}) == 1, lines
    agents = ("bob-the-builder", "alice", "carol")
    assert len({line.index(agent) for line, agent in zip(lines, agents, strict=True)}) == 1
    assert all(line == line.rstrip() for line in lines)


def test_a_table_pads_all_but_the_last_column() -> None:
    screen = Screen({})
    assert screen.table([["a", "bb", "c"], ["aaa", "b", ""]], ["", "", ""]) == ["a    bb  c", "aaa  b"]
    assert screen.table([], ["", ""]) == []


def test_a_list_fits_the_terminal(world: World) -> None:
    long = "docs/" + "long/" * 30 + "guide.md"
    world.take("-m", "reason " * 20, "--", long, agent="bob")
    lines = world.at_terminal("list", env={"NO_COLOR": "1"}).out.splitlines()
    assert len(lines) == 2 and all(len(line) <= 80 for line in lines), lines
    assert "e.md" in lines[0] and "expires in" in lines[0] and long in world.claim("list").out


# --- colour --------------------------------------------------------------------------------------------------------


def test_no_colour_where_nobody_looks(world: World) -> None:
    for setting in ("auto", "true", "never", "false"):
        world.git("config", "color.ui", setting)
        assert ESC not in world.claim("list").out


def test_colour_at_a_terminal(world: World) -> None:
    assert ESC in world.at_terminal("list").out
    assert ESC in world.at_terminal("status", argv=COORD).out
    assert ESC not in world.at_terminal("list", env={"NO_COLOR": "1"}).out
    assert ESC not in world.at_terminal("list", env={"TERM": "dumb"}).out
    assert ESC in world.at_terminal("list", env={"NO_COLOR": ""}).out, "empty means not set"
    assert ESC not in world.at_terminal("list", "--json").out
    for setting in ("never", "false"):
        world.git("config", "color.ui", setting)
        assert ESC not in world.at_terminal("list").out


def test_colour_always(world: World) -> None:
    world.git("config", "color.ui", "always")
    world.coloured = True
    assert f"{ESC}1msrc/a.py{ESC}m" in world.claim("list").out
    assert f"{ESC}1msrc/b.py{ESC}m" in world.claim("src/b.py").out
    assert ESC not in world.claim("list", "--json").out
    assert ESC in world.claim("list", env={"NO_COLOR": "1"}).out, "always is always, as for git"


@pytest.mark.parametrize(
    "setting, coloured",
    [("always", True), ("never", False), ("false", False), ("auto", False), ("nonsense", False), ("", False)],
)
def test_the_setting_decides(setting: str, coloured: bool) -> None:
    screen = Screen({b"TERM": b"xterm"})
    screen.use_settings(Settings([("color.ui", setting)] if setting else []))
    assert (screen.paint("x", "bold") != "x") is coloured
    assert screen.paint("x", "") == "x"


def test_colour_follows_the_stream_that_it_goes_to(world: World, tmp_path: Path) -> None:
    """`git claim src 2>errors.log` at a terminal: no escape codes in the file."""
    with open(tmp_path / "errors.log", "wb") as log:
        with world.terminal("src/a.py", agent="bob", err=log.fileno()) as shown:
            assert shown.end().code == 1
    text = (tmp_path / "errors.log").read_text()
    assert "held by alice" in text and ESC not in text


# --- hints, notes, quiet -------------------------------------------------------------------------------------------


def test_hints_and_notes_go_to_stderr(world: World) -> None:
    world.free()
    assert world.claim("list") == Done(0, "", "no claims\n")
    held = world.claim("release", "x")
    assert held.out == "" and "hint: see what you hold: git claim list --mine\n" in held.err


def test_json_is_one_object_on_stdout_and_nothing_else(world: World) -> None:
    for words, code in ((("list",), 0), (("src/b.py",), 0), (("check", "src/a.py"), 0), (("show", "src"), 0)):
        done = world.claim(*words, "--json")
        assert (done.code, done.err) == (code, ""), words
        assert done.out.count("\n") == 1 and done.json["ok"] is True
    refused = world.claim("src/a.py", "--json", agent="bob")
    assert (refused.code, refused.err, refused.json["ok"]) == (1, "", False)


def test_json_is_ascii_and_takes_any_name(world: World) -> None:
    done = world.claim("é\x1b\u202e\n", b"\xff", "--json")
    assert done.out.isascii()
    assert [claim["path"] for claim in done.json["claims"]] == ["é\x1b\u202e\n", "\udcff"]


def test_a_mistake_is_told_in_json_too_where_json_was_asked_for(world: World) -> None:
    for words in (("take", "--json"), ("take", "src", "--mode", "nope", "--json"), ("src", "--ttl", "never", "--json")):
        done = world.claim(*words)
        assert done.code == 2, words
        assert done.json["ok"] is False and done.json["error"] == "usage", words


def test_quiet(world: World) -> None:
    assert world.claim("src/b.py", "-q") == Done(0, "", "")
    assert world.claim("renew", "--quiet") == Done(0, "", "")
    assert world.claim("release", "src/b.py", "-q") == Done(0, "", "")
    assert world.claim("check", "src/a.py", "-q", agent="bob") == Done(1, "", "")
    assert world.claim("src/c.py", "-q", "--json").json["ok"] is True
    refused = world.claim("src/a.py", "-q", agent="bob")
    assert refused.code == 1 and refused.err.startswith("error: "), "nothing but errors"


def test_a_reader_that_goes_away_is_no_error(world: World) -> None:
    """`git claim list | head -0`."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([*CLAIM, "list"], cwd=world.top, stdout=write, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write)
    assert done.returncode in (141, -13) and done.stderr == b""


# --- times ---------------------------------------------------------------------------------------------------------


def test_relative_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1000.0)
    assert [ago(at) for at in (1000, 2000, 999, 400)] == ["now", "now", "1s ago", "10m ago"]


def test_expiry_in_words() -> None:
    claim = {"ttl_seconds": 1800, "expires_in_seconds": 90}
    assert expiry(claim) == "expires in 1m30s"
    assert expiry({**claim, "expires_in_seconds": 1823}) == "expires in 30m", (
        "a heartbeat counts to the end of its slot"
    )
    assert expiry({**claim, "expires_in_seconds": None}) == "alive"
    assert expiry({**claim, "expires_in_seconds": 0, "silent": True}) == "expired, free to take"


def test_progress_of_a_wait_at_a_terminal_leaves_no_trace(world: World) -> None:
    done = world.at_terminal("--wait", "1s", "src/a.py", agent="bob")
    assert done.code == 3
    assert done.out.startswith("\r\x1b[Kwaiting 0s of 1s: 1st of 1; alice holds it")
    assert "\r\x1b[Kerror: waited 1s" in done.out
    with world.terminal("--wait", "60s", "src/a.py", agent="bob", columns=40) as shown:
        shown.until(lambda data: data.count(b"waiting ") >= 3)
        shown.process.send_signal(signal.SIGINT)
        redrawn, _, rest = shown.end().out.rpartition("\r\x1b[K")
    first, *lines = redrawn.split("\r\x1b[K")
    assert first == "" and len(lines) >= 3 and len(set(lines)) == len(lines), "one line, which counts up"
    assert all(line.startswith("waiting ") and len(line) < 40 and "\n" not in line for line in lines), lines
    assert rest.startswith("interrupted: left the queue")

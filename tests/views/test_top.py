"""`git coord top`: keys and frames on the view alone; redrawing, lines and hostile names at a real terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gitcoord.terminal.fit import columns
from gitcoord.views.cli import EMPTY
from gitcoord.views.cli_top import changes
from gitcoord.views.detail import detail
from gitcoord.views.live import DETAIL, DOWN, ENTER, ESCAPE, PAGE_DOWN, QUIT, UP, WHY, View, keys
from gitcoord.views.render import plain
from tests.cli.support import Terminal, World
from tests.cli.test_json import wrong
from tests.support import COORD


def claim(path: str, agent: str = "alice") -> dict[str, Any]:
    return {
        "path": path, "kind": "path", "agent": agent, "mode": "write", "token": 3, "session": 1, "ttl_seconds": 1800, "silent": False,
        "expires_in_seconds": 1800, "since": 0, "expected_seconds": 0, "reason": "", "task": "", "base": "", "units": 1,
    }  # fmt: skip


def need(kind: str, subject: str, message: str = "it waits") -> dict[str, Any]:
    row = {"kind": kind, "subject": subject, "message": message, "help": "git coord why a", "source": "event 3"}
    return {**row, "agent": "", "since": 0}


def view(*paths: str) -> View:
    return View({**EMPTY, "seq": 5, "claims": [claim(path) for path in paths]})


def texts(view: View, width: int = 80, height: int = 12) -> list[str]:
    return [line.text for line in view.frame(width, height)]


# --- keys and frames -------------------------------------------------------------------------------------------------


def test_what_a_terminal_sends_is_taken_apart() -> None:
    assert list(keys("q\x1b[A\x1bOB\x1b[5~x")) == ["q", UP, DOWN, "page up", "x"]
    assert list(keys("\x1b")) == [ESCAPE] and list(keys("\x1b[1;5Cj")) == ["j"], "unknown sequences are left out"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50), (20, 5), (1, 1), (40, 2)])
def test_a_frame_has_the_size_of_the_terminal(width: int, height: int) -> None:
    shown = view(*(f"src/{'日本語' * number}.py" for number in range(30))).frame(width, height)
    assert len(shown) == max(2, height)
    assert all(sum(columns(text) for text, _ in line.cells) <= width for line in shown)


def test_a_line_is_selected_and_stays_selected_while_others_come() -> None:
    shown = view("a", "b", "c")
    texts(shown)
    for key in (DOWN, "j"):
        shown.press(key)
    assert shown.subject == ("path", "b")
    shown.model = {**shown.model, "claims": [claim(path) for path in ("_", "a", "b", "c")]}
    (marked,) = (text for text in texts(shown) if text.startswith(">"))
    assert marked.split()[1] == "b" and shown.press(ENTER) == DETAIL and shown.press("w") == WHY
    shown.press(UP)
    assert shown.subject == ("path", "a")


def test_the_selected_line_is_in_sight() -> None:
    shown = view(*(f"src/{number}" for number in range(100)))
    texts(shown)
    for _ in range(5):
        shown.press(PAGE_DOWN)
    assert any(text.startswith(">") for text in texts(shown))


def test_a_filter_keeps_the_first_line_and_what_it_names() -> None:
    shown = view("src/login.py", "docs/guide.md")
    for key in "/LOGIN":
        shown.press(key)
    assert "filter: LOGIN_" in texts(shown)[-1]
    shown.press(ENTER)
    lines = [text for text in texts(shown)[:-1] if text]
    assert lines[0] == "nothing needs you" and [line.split()[0] for line in lines[1:]] == ["src/login.py"]
    assert shown.press("q") == QUIT
    assert shown.press(ESCAPE) == "" and shown.filter == "" and shown.press(ESCAPE) == QUIT


def test_a_story_is_read_and_left() -> None:
    shown = view("a")
    texts(shown, height=6)
    shown.tell([plain(f"event {number}") for number in range(20)], end=True)
    assert texts(shown, height=6)[4] == "event 19", "the last ones first"
    shown.press(UP)
    assert texts(shown, height=6)[4] == "event 18"
    assert shown.press("q") == "" and texts(shown, height=6)[0] == "nothing needs you"


def test_a_detail_is_the_whole_row_and_leads_to_the_story() -> None:
    shown = view("a" * 90, "b")
    texts(shown)
    shown.press(DOWN)
    assert shown.press(ENTER) == DETAIL
    shown.tell(detail(shown.model, shown.subject[1]))
    whole = texts(shown, height=40)
    assert whole[:4] == ["a" * 80, "a" * 10, "claim", "  path: " + "a" * 72]
    assert "  agent: alice" in whole and "  ttl: 30m" in whole and "  expires in: 30m" in whole
    assert not any(line.startswith(("  task", "  silent")) for line in whole), "what is empty is left out"
    assert shown.press("w") == WHY and shown.press("q") == "" and texts(shown)[0] == "nothing needs you"


def test_a_detail_of_an_agent_has_all_that_is_about_it() -> None:
    model = {**EMPTY, "needs_you": [need("wait", "a")], "claims": [claim("a"), claim("b", "bob")]}
    asked = {"ticket": 7, "agent": "bob", "paths": ["a"], "since": 0, "source": "event 7"}
    lines = [line.text for line in detail({**model, "waits": [asked]}, "a")]
    assert [line for line in lines if not line.startswith(" ")] == ["a", "needs you", "claim", "request"]
    assert [line.text for line in detail(model, "bob")][:3] == ["bob", "claim", "  path: b"]
    assert [line.text for line in detail(model, "gone")] == ["gone", "it is gone"]


def test_long_lines_of_a_story_go_on_below_and_the_footer_says_what_is_below() -> None:
    shown = view(*(f"src/{number}" for number in range(30)))
    assert texts(shown, height=12)[-1].startswith("23 more below  q: quit")
    shown.tell([plain("head"), plain("one two three " * 3)])
    assert texts(shown, width=20, height=5) == [
        "head",
        "one two three one",
        "two three one two",
        "three",
        "q: back  w: why  ar…",
    ]


def test_changes_of_what_needs_somebody() -> None:
    quiet = {**EMPTY, "seq": 5}
    late = {**quiet, "needs_you": [need("wait", "a", "bob waited 5m")]}
    later = {**quiet, "needs_you": [need("wait", "a", "bob waited 6m")]}
    assert changes(quiet, late) == ["needs you: bob waited 5m: git coord why a"]
    assert changes(late, later) == [], "that time passes is no news"
    assert changes(later, quiet) == ["settled: bob waited 6m", "nothing needs you"]


# --- at a terminal ---------------------------------------------------------------------------------------------------


def screen_of(data: bytes) -> str:
    """The last frame that was drawn whole, without colours."""
    frames = data.decode("utf-8", "replace").split("\x1b[H")
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", frames[-1])


def shows(word: str) -> Callable[[bytes], bool]:
    return lambda data: word in screen_of(data)


@contextmanager
def top(world: World, env: dict[str, str] | None = None) -> Iterator[Terminal]:
    with world.terminal("top", argv=COORD, env=env) as terminal:
        terminal.until(shows("q: quit"))
        yield terminal


def test_it_redraws_when_the_ledger_moves_and_gives_the_terminal_back(world: World) -> None:
    world.coord("install-hooks")
    with top(world) as terminal:
        terminal.until(shows("nothing needs you"))
        world.take("src/a.py", "-m", "new login")
        terminal.until(shows("new login"))
        world.person("halt", "-m", "stop it")
        terminal.until(shows("HALTED"))
        terminal.type("jj\r")  # the halt, then the claim
        terminal.until(shows("reason: new login"))
        terminal.type("w")
        terminal.until(shows("alice claimed it"))
        terminal.type("q")
        terminal.until(shows("q: quit"))
        terminal.type("q")
        terminal.until(lambda data: data.endswith(b"\x1b[?25h\x1b[?1049l"))
        assert terminal.process.wait(30) == 0
    assert b"\x1b[31m" in terminal.shown


# Looks by the clock are put off for days.
UNTIMED = "from gitcoord.views import cli_top; cli_top._EVERY = 1e6; from gitcoord.cli.entry import coord; coord()"


def test_it_fits_a_window_that_changes_its_size(world: World) -> None:
    world.take("-m", "retry webhooks that time out", "--", "src/checkout/payments/providers/stripe_webhook_handler.py")
    with world.terminal("top", argv=[sys.executable, "-c", UNTIMED]) as terminal:
        terminal.until(shows("q: quit"))
        for width, height in ((40, 10), (120, 30)):
            terminal.resize(width, height)
            os.kill(terminal.process.pid, signal.SIGWINCH)  # it is not the session's terminal
            terminal.until(lambda data, height=height: len(screen_of(data).splitlines()) == height)  # type: ignore[misc]
            assert max(map(columns, screen_of(terminal.shown).splitlines())) <= width
        assert "stripe_webhook_handler.py  alice" in screen_of(terminal.shown)


def test_a_move_of_the_ledger_wakes_it_without_the_clock(world: World) -> None:
    with world.terminal("top", argv=[sys.executable, "-c", UNTIMED]) as terminal:
        terminal.until(shows("q: quit"))
        for reason in ("new login", "old logout"):
            world.take(f"src/{reason[:3]}", "-m", reason)
            terminal.until(shows(reason))


def test_ctrl_c_gives_the_terminal_back_too(world: World) -> None:
    with top(world) as terminal:
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.until(lambda data: b"\x1b[?1049l" in data)
        assert terminal.process.wait(30) == 130


def test_names_that_would_upset_a_terminal_are_harmless_and_no_colour_is_none(world: World) -> None:
    world.take("--", "src/\x1b[31mred\x07\u202e.py", "src/" + "x" * 250)
    with top(world, {"NO_COLOR": "1"}) as terminal:
        terminal.until(shows("\\x1b[31mred\\x07"))
        terminal.type("jj\r")
        terminal.until(shows("q: back"))
        terminal.type("qq")
        assert terminal.process.wait(30) == 0
    drawn = {*re.findall(rb"\x1b\[[0-9;?]*[a-zA-Z]", terminal.shown)}
    assert drawn <= {b"\x1b[H", b"\x1b[K", b"\x1b[?1049h", b"\x1b[?25l", b"\x1b[?25h", b"\x1b[?1049l"}
    assert b"\x07" not in terminal.shown and "\u202e".encode() not in terminal.shown


@contextmanager
def streamed(world: World, *words: str) -> Iterator[tuple[subprocess.Popen[str], Iterator[str]]]:
    process = subprocess.Popen(
        [*COORD, "top", *words], cwd=world.top, env=world.environ("", {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield process, iter(process.stdout.readline, "")
    finally:
        process.terminate()
        process.communicate()


def test_plain_prints_changes_as_lines(world: World) -> None:
    world.coord("install-hooks")
    with streamed(world, "--plain") as (process, lines):
        assert next(lines) == "nothing needs you\n"
        assert next(line for line in lines if line.startswith("ledger")) == "ledger: 1 event\n"
        world.take("src/a.py", "-m", "new login")
        assert next(line for line in lines if "claim" in line) == "event 3: claim src/a.py by alice: new login\n"
        world.person("halt", "-m", "stop it")
        assert next(line for line in lines if line.startswith("needs")).startswith("needs you: HALTED by ")
        world.person("unhalt")
        assert next(line for line in lines if line.startswith("nothing")) == "nothing needs you\n"
        assert process.poll() is None


def test_json_prints_the_model_at_each_change(world: World) -> None:
    with streamed(world, "--json") as (_, lines):
        first = json.loads(next(lines))
        assert list(wrong(first, "status")) == [] and first["claims"] == []
        world.take("src/a.py")
        found = (json.loads(line) for line in lines)
        assert next(row for row in found if row["claims"])["claims"][0]["path"] == "src/a.py"


def test_where_it_cannot_draw_it_says_so(world: World) -> None:
    done = world.at_terminal("top", argv=COORD, env={"TERM": "dumb"})
    assert done.code == 2 and "git coord top --plain" in done.out


def test_before_gitcoord_is_set_up(plain: World) -> None:
    done = plain.coord("top")
    assert done.code == 0 and "not set up" in done.err

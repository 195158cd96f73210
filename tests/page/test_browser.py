"""The page in a real browser: live, acting, hostile texts, keyboard, contrast, a phone. One browser and one page for all tests here.

With GITCOORD_SCREENSHOTS=1 the pictures of the README and of docs/page.md are made anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.cli.support import PERSON, World
from tests.gates.support import Project
from tests.page.browser import AXE, Browser, browsing, need
from tests.page.support import Page, acting, first_url, process
from tests.support import ROOT

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
HOSTILE_FILE = "<img src=x onerror=alert(3)>\u202etxt.py"
LONG = "long" * 2500


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def world(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> World:
    """A project with something in every list."""
    place = tmp_path_factory.mktemp("place")
    project = Project(place, "money/** gitcoord-guard=checkpoint\n", '[deploy "staging"]\n\tverify = true\n')
    project.top.rename(place / "shop")
    project.top = place / "shop"
    made = project.world = World(project.top, made=True)
    made.take("src/login.py", "-m", "new login form", agent="alice")
    made.take("src/parser.py", "-m", "rewrite the parser", agent="bob")
    made.take("docs", "-m", "the guide", agent="dora")
    made.claim("take", "--queue", "src/login.py", "-m", "fix the redirect", agent="carl")
    made.claim("take", "--queue", "src/parser.py", "-m", "new syntax", agent="alice")
    made.take("@land/main", "-m", "fix-redirect", agent="eve")
    for title in ("Fix the login page", "Write the guide", "Speed up the parser"):
        made.coord("task", "add", title)
    made.coord("note", "src/login.py", "-m", "the old form stays until Friday", agent="bob")
    done = made.coord("deploy", "staging", "--", "true", agent="dora")
    assert done.code == 0, done
    project.try_commit({"money/rates": "10\n"}, "bob")
    return made


@pytest.fixture(scope="module")
def page(world: World) -> Iterator[Page]:
    with acting(world) as found:
        yield found


@pytest.fixture
def opened(page: Page, browser: Browser) -> Iterator[Browser]:
    """The page, open in the browser as after its link was used."""
    browser.emulate()
    browser.driver.get(page.origin + "/icon.svg")
    name, _, value = page.cookie.partition("=")
    browser.driver.add_cookie({"name": name, "value": value, "httpOnly": True, "sameSite": "Strict"})
    browser.script("localStorage.setItem('gitcoord-page', arguments[0])", page.key)
    browser.complaints()  # of the icon alone
    _open(browser, page.origin)
    yield browser
    assert browser.complaints() == []


def _open(browser: Browser, url: str) -> None:
    browser.driver.get(url)
    browser.shows("#connection", "live")
    browser.wait(lambda: browser.all("#claims tbody tr"))


def _last(world: World) -> tuple[str, str]:
    row = world.coord("log", "--json", "-n", "1").json["events"][0]
    return row["kind"], row["agent"]


def _do(browser: Browser, button: str, within: str, *, reason: str = "", shows: str = "") -> None:
    """Press a button, read the confirmation, and confirm it."""
    browser.button(button, within)
    browser.wait(lambda: browser.one("#confirm-yes").is_enabled())
    assert f"On record as {PERSON}" in browser.text("#confirm")
    browser.shows("#confirm", shows)
    if reason:
        browser.one("#confirm-reason").send_keys(reason)
    browser.click("#confirm-yes")
    browser.wait(lambda: not browser.script("return document.getElementById('confirm').open"))


# --- live -------------------------------------------------------------------------------------------------------------


def test_the_link_and_what_is_shown(world: World, browser: Browser) -> None:
    """The link works in a browser that knows nothing; its key leaves the address, and nothing is asked from elsewhere."""
    browser.emulate()
    browser.driver.delete_all_cookies()
    browser.requested()
    with process(world) as started:
        page = Page(first_url(started))
        _open(browser, page.url)
        assert "#" not in browser.driver.current_url and page.link_key not in browser.driver.page_source
        browser.shows("#connection", "live, read-only")
        assert "needs you" in browser.text("#needs-title") or "need you" in browser.text("#needs-title")
        for section, words in {"claims": "src/login.py", "waits": "carl", "landing": "eve", "agents": "dora", "tasks": "Write the guide", "approvals": "money/rates", "deploys": "staging"}.items():  # fmt: skip
            browser.shows(f"#{section}", words)
        assert "Kill" not in browser.text("main") and not browser.one("#halt").is_displayed()
        browser.click("#measure")
        browser.shows("#contention", "grants")
        asked = browser.requested()
        assert len(asked) > 5 and {url for url in asked if not url.startswith(page.origin + "/")} == set()
        assert browser.script("return document.cookie") == ""
        browser.driver.get("about:blank")


def test_an_event_is_shown_without_reloading(world: World, opened: Browser) -> None:
    token = world.take("src/live.py", "-m", "just now", agent="fred")
    opened.shows("#claims", "src/live.py")
    opened.shows("#events", "claim src/live.py by fred: just now")
    opened.click(f'[data-key="event {token - 2}"]')
    opened.shows("#past", f"after event {token - 2}")
    opened.lacks("#claims", "src/live.py")
    assert "Kill" not in opened.text("main"), "the past cannot be changed"
    world.take("src/later.py", agent="fred")
    opened.shows("#events", "src/later.py")
    assert "src/later.py" not in opened.text("#claims")
    opened.click("#now")
    opened.shows("#claims", "src/later.py")
    slider = opened.one("#slider")
    slider.send_keys(Keys.HOME)
    opened.shows("#past", "after event 1")
    opened.click("#now")
    world.free("fred")
    opened.lacks("#claims", "src/live.py")


def test_a_page_goes_on_after_the_server_was_restarted(world: World, browser: Browser) -> None:
    browser.emulate()
    first = browser.driver.current_window_handle
    with process(world) as started:
        url = first_url(started)
        _open(browser, url)
    browser.shows("#connection", "connection lost")
    world.take("src/meanwhile.py", agent="fred")
    with process(world, "--port", str(Page(url).port)) as started:
        browser.shows("#connection", "open that link")
        browser.driver.switch_to.new_window("tab")
        _open(browser, first_url(started))
        browser.driver.close()
        browser.driver.switch_to.window(first)
        browser.shows("#connection", "live")
        browser.shows("#claims", "src/meanwhile.py")
        browser.driver.get("about:blank")
    world.free("fred")
    browser.complaints()


# --- acting -----------------------------------------------------------------------------------------------------------


def test_every_action(world: World, opened: Browser) -> None:
    approval, task = opened.text("#approvals tbody td:nth-child(2)"), opened.text("#tasks tbody td")
    first, second = (opened.text(f"#waits tbody tr:nth-child({number}) td")[1:] for number in (1, 2))
    _do(opened, f"Approve {approval}", "#approvals", reason="as agreed", shows="+10")
    assert _last(world) == ("answer", PERSON)
    opened.wait(lambda: not opened.all("#approvals"))
    _do(opened, f"Withdraw {second}", "#waits", shows="loses its place")
    assert _last(world) == ("leave", PERSON)
    _do(opened, f"Raise {first}", "#waits")
    opened.shows("#waits", "high")
    assert _last(world) == ("promote", PERSON)
    opened.button(f"Reassign {task}", "#tasks")
    opened.one("#confirm input").send_keys("dora")
    opened.shows("#confirm-title", f"Give task {task} to dora")
    opened.click("#confirm-yes")
    opened.wait(lambda: not opened.script("return document.getElementById('confirm').open"))
    opened.shows("#tasks", "assigned")
    assert _last(world) == ("revise", PERSON)
    _do(opened, f"Priority {task}", "#tasks")
    opened.shows("#tasks", "high")
    _do(opened, "Kill bob", "#agents", reason="runs wild", shows="src/parser.py")
    assert _last(world) == ("kill", PERSON) and "runs wild" in world.coord("log", "-n", "1").out
    opened.lacks("#claims", "src/parser.py")
    _do(opened, "Revive bob", "#agents")
    assert _last(world) == ("revive", PERSON)
    _do(opened, "Halt everything", "header", reason="release day")
    opened.shows("#needs", "HALTED")
    _do(opened, "End the halt", "header")
    assert _last(world) == ("unhalt", PERSON)
    opened.lacks("#needs", "HALTED")
    world.claim("take", "--queue", "src/login.py", agent="gina")
    opened.shows("#waits", "gina")
    opened.button("Kill gina", "#agents")
    opened.shows("#confirm-title", "Kill gina")
    before = world.head
    opened.keys(Keys.ESCAPE)
    opened.wait(lambda: not opened.script("return document.getElementById('confirm').open"))
    assert world.head == before


# --- hostile texts ----------------------------------------------------------------------------------------------------


def test_hostile_texts_are_texts(world: World, opened: Browser) -> None:
    world.take("--", HOSTILE_FILE, agent="fred")
    world.take("src/x.py", "-m", HOSTILE, agent="fred")
    id = world.coord("task", "add", HOSTILE, "-m", LONG, "--json").json["tasks"][0]["id"]
    world.take("--", "deep/" + "d" * 200 + "/" + "e" * 200, agent="fred")
    opened.shows("#claims", "<img src=x onerror=alert(3)>\\u202etxt.py")
    opened.shows("#claims", HOSTILE)
    opened.shows("#events", HOSTILE)
    opened.script(
        "[...document.querySelectorAll('#claims button')].find((one) => one.textContent.includes('alert(3)')).click()"
    )
    opened.shows("#detail-title", "<img src=x onerror=alert(3)>\\u202etxt.py")
    opened.shows("#detail", "fred claimed it")
    assert "\u202e" not in opened.script("return document.body.textContent")
    opened.click(f'#tasks [data-key="task {id}"]')
    opened.shows("#detail", LONG)
    opened.shows("#detail", HOSTILE)
    assert opened.all("script") and len(opened.all("script")) == 1 and not opened.all("img")
    assert _overflow(opened) <= 0
    opened.one("#find").send_keys("onerror")
    opened.lacks("#claims", "src/login.py")
    opened.shows("#claims", HOSTILE)
    opened.one("#find").send_keys(Keys.CONTROL, "a", Keys.DELETE)
    opened.shows("#claims", "src/login.py")
    world.free("fred")
    world.coord("task", "abandon", id, "--reason", "x")


def _overflow(browser: Browser) -> int:
    """Pixels by which the page is wider than its window."""
    return int(browser.script("return document.documentElement.scrollWidth - document.documentElement.clientWidth"))


# --- for everybody ----------------------------------------------------------------------------------------------------


def test_by_keyboard_alone(world: World, opened: Browser) -> None:
    opened.script("document.body.focus()")
    opened.keys(Keys.TAB)
    assert opened.focused() == "Skip to what needs you"
    opened.keys(Keys.ENTER)
    opened.wait(lambda: opened.script("return document.activeElement.id") == "needs")
    seen: list[str] = []
    while "src/login.py" not in seen:
        assert len(seen) < 60, seen
        opened.keys(Keys.TAB)
        seen.append(opened.focused())
    assert opened.script("return getComputedStyle(document.activeElement).outlineStyle") == "solid", "the focus is seen"
    opened.keys(Keys.ENTER)
    opened.shows("#detail", "the old form stays until Friday")
    opened.wait(lambda: opened.script("return document.activeElement.id") == "detail-title")
    world.take("src/other.py", agent="fred")
    opened.shows("#claims", "src/other.py")
    opened.keys(Keys.ESCAPE)
    opened.wait(lambda: not opened.one("#detail").is_displayed())
    assert opened.focused() == "src/login.py", "back where it was, although the list was drawn anew"
    opened.one("#halt").send_keys(Keys.ENTER)
    opened.shows("#confirm-title", "Halt everything")
    for _ in range(6):  # the focus stays in the dialog
        opened.keys(Keys.TAB)
        assert opened.script(
            "return document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        )
    opened.keys(Keys.ESCAPE)
    opened.wait(lambda: not opened.script("return document.getElementById('confirm').open"))
    world.free("fred")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast_and_labels(opened: Browser, dark: bool) -> None:
    need(files=(AXE,))
    opened.emulate(dark=dark)
    opened.click("#measure")
    opened.shows("#contention", "grants")
    assert opened.violations() == []
    colour = opened.script("return getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(20, 23, 26)") == dark
    opened.click('#claims [data-key="path src/login.py"]')
    opened.shows("#detail", "Story")
    opened.button("Halt everything", "header")
    opened.wait(lambda: opened.one("#confirm-yes").is_enabled())
    assert opened.violations() == []
    opened.keys(Keys.ESCAPE)


def test_on_a_phone(opened: Browser) -> None:
    opened.emulate(width=360, height=740)
    assert _overflow(opened) <= 0
    opened.click('#claims [data-key="path src/login.py"]')
    opened.shows("#detail", "the old form stays until Friday")
    assert opened.one("#detail").size["width"] <= 360
    if AXE.exists():
        assert opened.violations() == []


def test_pictures(world: World, opened: Browser, tmp_path: Path) -> None:
    """Written to docs/ where GITCOORD_SCREENSHOTS is set."""
    place = ROOT / "docs" if os.environ.get("GITCOORD_SCREENSHOTS") else tmp_path
    opened.click("#measure")
    opened.shows("#contention", "grants")
    _picture(opened, place / "page.png", height=1000)
    _picture(opened, place / "page-dark.png", height=1000, dark=True)
    opened.click('#claims [data-key="path src/login.py"]')
    opened.shows("#detail", "Story")
    _picture(opened, place / "page-detail.png", height=800)
    opened.keys(Keys.ESCAPE)
    _picture(opened, place / "page-phone.png", width=390, height=844)


def _picture(browser: Browser, file: Path, *, width: int = 1200, height: int, dark: bool = False) -> None:
    browser.emulate(width=width, height=height, dark=dark)
    assert browser.driver.save_screenshot(str(file)) and file.read_bytes()[:4] == b"\x89PNG"

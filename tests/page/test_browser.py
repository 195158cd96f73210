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
from tests.page.browser import AXE, Browser, browsing, need
from tests.page.scene import check_fails, shop
from tests.page.support import Page, acting, first_url, process
from tests.support import ROOT

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
HOSTILE_FILE = "<img src=x onerror=alert(3)>\u202etxt.py"
LONG = "long" * 2500
SCREENSHOTS = bool(os.environ.get("GITCOORD_SCREENSHOTS"))
CHECK = f"printf '%s' '{HOSTILE}\u202e{'x' * 9000}'; false"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def world(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> World:
    return shop(tmp_path_factory.mktemp("place"), past=SCREENSHOTS)


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
    browser.requested()
    _open(browser, page.origin)
    yield browser
    assert browser.complaints() == []
    assert [url for url in browser.requested() if not url.startswith(page.origin + "/")] == []


def _open(browser: Browser, url: str) -> None:
    browser.driver.get(url)
    browser.shows("#connection", "live")
    browser.wait(lambda: browser.all("#claims tbody tr"))


def _measured(browser: Browser) -> None:
    """Scroll to the figures, which are measured then."""
    browser.script("document.getElementById('contention').scrollIntoView()")
    browser.shows("#contention", "grants")


def _last(world: World) -> tuple[str, str, str]:
    """Kind, author and reason of the last event."""
    row = world.coord("log", "--json", "-n", "1").json["events"][0]
    return row["kind"], row["agent"], row["event"]["reason"]


def _do(browser: Browser, button: str, within: str, *, reason: str, shows: str = "") -> None:
    """Press a button, read the confirmation, give the reason, and confirm it."""
    browser.button(button, within)
    browser.wait(lambda: browser.one("#confirm-yes").is_enabled())
    assert f"On record as {PERSON}" in browser.text("#confirm")
    browser.shows("#confirm", shows)
    browser.one("#confirm-reason").send_keys(reason)
    browser.click("#confirm-yes")
    _closed(browser)


def _closed(browser: Browser) -> None:
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
        _measured(browser)
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
    opened.click('#claims [data-key="path src/login.py"]')
    opened.shows("#detail", "This is as it is now")
    opened.keys(Keys.ESCAPE)
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


_SLOW = """
const quick = window.fetch, kept = [];
window.fetch = (path, set) => quick(path, set).then((answer) => path.includes("timeline") ? new Promise((go) => kept.push(() => go(answer))) : answer);
window.late = () => kept.length && kept.splice(0).reverse().map((go) => go());
"""


def test_answers_that_come_late_hide_no_event(world: World, page: Page, opened: Browser) -> None:
    added = opened.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _SLOW})
    _open(opened, page.origin)
    world.take("src/late.py", agent="fred")
    opened.shows("#claims", "src/late.py")
    opened.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
    opened.wait(lambda: opened.script("return window.late()"))
    opened.shows("#events", "claim src/late.py by fred")
    opened.shows("#events", "init")
    numbers = opened.script(
        "return [...document.querySelectorAll('#events li')].map((one) => Number(one.dataset.event))"
    )
    assert numbers == list(range(numbers[0], 0, -1))
    world.free("fred")


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


def test_every_action(world: World, page: Page, opened: Browser) -> None:
    model = page.get("overview").json
    rates, plans = (next(row["approval"] for row in model["approvals"] if row["path"] == path) for path in ("money/rates", "money/plans"))  # fmt: skip
    carl, gina = (next(row["ticket"] for row in model["waits"] if row["agent"] == agent) for agent in ("carl", "gina"))
    task = next(row["id"] for row in model["tasks"] if row["title"] == "Write the guide")
    for button, within, shows, kind in (
        (f"Approve {rates}", "#needs", "+plus = 20", "answer"), (f"Deny {plans}", "#approvals", "it stays refused", "answer"),
        (f"Withdraw {gina}", "#waits", "loses its place", "leave"), (f"Raise {carl}", "#waits", "now: normal", "promote"),
        (f"Priority {task}", "#tasks", "now: normal", "revise"), ("Kill bob", "#agents", "src/parser.py", "kill"),
        ("Revive bob", "#agents", "stays over", "revive"), ("Halt everything", "header", "nothing is granted", "halt"),
        ("End the halt", "header", "agents go on", "unhalt"),
    ):  # fmt: skip
        _do(opened, button, within, reason=f"{button}, as agreed", shows=shows)
        assert _last(world) == (kind, PERSON, f"{button}, as agreed")
        opened.shows("#events", f"{button}, as agreed")
    opened.wait(lambda: not opened.all("#approvals"))
    opened.shows("#waits", "high")
    opened.button(f"Reassign {task}", "#tasks")
    opened.one("#confirm-value input").send_keys("dora")
    opened.shows("#confirm-title", f"Give task {task} to dora")
    opened.one("#confirm-reason").send_keys("she knows it", Keys.ENTER)
    _closed(opened)
    opened.shows("#tasks", "assigned")
    assert _last(world) == ("revise", PERSON, "she knows it")


def test_a_halt_is_ended_where_it_is_told_of(world: World, opened: Browser) -> None:
    _do(opened, "Halt everything", "header", reason="release day")
    opened.shows("#needs", "HALTED by")
    _do(opened, "End the halt", "#needs", reason="it is out")
    opened.lacks("#needs", "HALTED")


def test_what_is_not_confirmed_is_not_done(world: World, opened: Browser) -> None:
    world.claim("take", "--queue", "src/login.py", agent="gina")
    opened.shows("#waits", "gina")
    before = world.head
    for key in (
        Keys.ESCAPE,
        Keys.TAB + Keys.TAB + Keys.ENTER,
    ):  # from the reason over the button that does it to the other
        opened.button("Kill gina", "#agents")
        opened.wait(lambda: opened.one("#confirm-yes").is_enabled())
        opened.keys(key)
        _closed(opened)
    assert world.head == before
    opened.button("Kill gina", "#agents")
    opened.wait(lambda: opened.one("#confirm-yes").is_enabled())
    world.take("src/new.py", agent="gina")
    opened.click("#confirm-yes")
    opened.shows("#confirm-error", "it has changed since you were shown it")
    opened.shows("#confirm-plan", "src/new.py")
    assert "409" in opened.complaints()[0]
    opened.keys(Keys.ESCAPE)
    _closed(opened)
    assert world.events()[-1] == "claim src/new.py by gina"
    world.free("gina")


# --- hostile texts ----------------------------------------------------------------------------------------------------


def test_hostile_texts_are_texts(world: World, opened: Browser) -> None:
    world.take("--", HOSTILE_FILE, agent="fred")
    world.take("src/x.py", "-m", HOSTILE, agent="fred")
    world.take("--", "deep/" + "d" * 200 + "/" + "e" * 200, agent="fred")
    id = world.coord("task", "add", HOSTILE, "-m", f"{LONG}{HOSTILE}", "--json").json["tasks"][0]["id"]
    world.coord("note", HOSTILE_FILE, "-m", HOSTILE, agent="bob")
    world.claim("--leave", agent="fred")
    world.free("eve")  # whose turn it was
    check_fails(world, "rita", "<img/src=x/onerror=alert(5)>", CHECK)
    assert world.coord("stop", agent="rita").code == 0
    shown = "<img src=x onerror=alert(3)>\\u202etxt.py"
    opened.shows("#claims", shown)
    opened.shows("#claims", HOSTILE)
    opened.shows("#events", HOSTILE)
    opened.shows("#needs", "<img/src=x/onerror=alert(5)>")
    path = "return [...document.querySelectorAll('#claims button')].find((one) => one.textContent.includes('alert(3)')).dataset.key"
    for key, words in (
        (opened.script(path), (shown, "fred claimed it", HOSTILE)), (f"task {id}", (LONG + HOSTILE,)),
        ("agent fred", (HOSTILE,)), ("landing rita", ("x" * 9000, HOSTILE, "\\u202e")), (f"reassign {id}", (HOSTILE,)), ("kill fred", (shown,)),
    ):  # fmt: skip
        _press(opened, key)
        where = "#confirm" if key.startswith(("reassign", "kill")) else "#detail"
        if key.startswith("reassign"):
            opened.one("#confirm-value input").send_keys("dora")
        for text in words:
            opened.shows(where, text)
        for width in (1200, 360):
            opened.emulate(width=width)
            assert _overflow(opened) <= 0, (key, width)
        opened.keys(Keys.ESCAPE)
    assert not {"\u202e", "\u2066"} & set(opened.script("return document.body.textContent"))
    assert len(opened.all("script")) == 1 and not opened.all("img")
    opened.emulate()
    opened.one("#find").send_keys("onerror")
    opened.lacks("#claims", "src/login.py")
    opened.shows("#claims", HOSTILE)
    opened.one("#find").send_keys("?")
    opened.shows("#lists", "No row has this text.")
    opened.one("#find").send_keys(Keys.CONTROL, "a", Keys.DELETE)
    opened.shows("#claims", "src/login.py")
    world.free("fred")
    world.take("@land/main", "-m", "fix-redirect", agent="eve")
    world.coord("task", "abandon", id, "--reason", "x")


def _press(browser: Browser, key: str) -> None:
    """Click the first button of this key."""
    code = "const found = [...document.querySelectorAll('[data-key]')].find((one) => one.dataset.key === arguments[0]); if (found) found.click(); return !!found"
    browser.wait(lambda: browser.script(code, key), f"no button {key}")


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
    seen = []
    while not seen or seen[-1] != "Kill dora":
        assert len(seen) < 200, seen
        opened.keys(Keys.TAB)
        seen.append(opened.focused())
    opened.keys(Keys.ENTER)
    opened.shows("#confirm-title", "Kill dora")
    opened.wait(lambda: opened.one("#confirm-yes").is_enabled())
    for _ in range(6):  # the focus stays in the dialog
        opened.keys(Keys.TAB)
        assert opened.script(
            "return document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        )
    while opened.script("return document.activeElement.id") != "confirm-reason":
        opened.keys(Keys.TAB)
    opened.keys("gone home", Keys.ENTER)
    _closed(opened)
    assert _last(world) == ("kill", PERSON, "gone home")
    opened.shows("#agents", "killed")
    world.free("fred")


def _keys(opened: Browser) -> list[str]:
    """A button of each kind of detail and of each action that the page has now."""
    keys = opened.script(
        "return [...document.querySelectorAll('main [data-key], header [data-key]')].map((one) => one.dataset.key)"
    )
    first = {key.split(" ")[0]: key for key in reversed(keys)}
    return [key for word, key in first.items() if word not in ("event", "go", "now", "older", "measure", "more")]


@pytest.mark.parametrize(
    ("width", "dark"), [(1200, False), (1200, True), (360, False)], ids=["wide", "wide and dark", "phone"]
)
def test_contrast_labels_and_width(opened: Browser, width: int, dark: bool) -> None:
    """Of the overview, of each detail and of each confirmation."""
    need(files=(AXE,))
    opened.emulate(width=width, dark=dark)
    _measured(opened)
    assert opened.violations() == [] and _overflow(opened) <= 0
    colour = opened.script("return getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(20, 23, 26)") == dark
    keys = _keys(opened)
    assert {key.split(" ")[0] for key in keys} >= {
        "path",
        "agent",
        "task",
        "landing",
        "raise",
        "withdraw",
        "kill",
        "revive",
        "reassign",
        "halt",
    }
    for key in keys:
        _press(opened, key)
        opened.wait(
            lambda: opened.script(
                "return document.getElementById('confirm').open || !document.getElementById('detail').hidden"
            )
        )
        assert opened.violations() == [], key
        assert _overflow(opened) <= 0, key
        opened.keys(Keys.ESCAPE)
        opened.wait(
            lambda: opened.script(
                "return !document.getElementById('confirm').open && document.getElementById('detail').hidden"
            )
        )


def test_every_row_names_its_source(opened: Browser) -> None:
    rows = opened.script(
        "return [...document.querySelectorAll('#lists tbody tr')].map((row) => row.querySelector('[data-label=source]').innerText)"
    )
    needs = opened.script("return [...document.querySelectorAll('.needs li .dim')].map((need) => need.innerText)")
    assert len(rows) > 20 and all(rows) and needs and all("[" in need for need in needs)


def test_pictures(world: World, opened: Browser, tmp_path: Path) -> None:
    """Written to docs/ where GITCOORD_SCREENSHOTS is set."""
    place = ROOT / "docs" if SCREENSHOTS else tmp_path
    _picture(opened, place / "page.png", height=1180)
    _picture(opened, place / "page-dark.png", height=1000, dark=True)
    _picture(opened, place / "page-phone.png", width=390, height=844)
    opened.emulate()
    _press(opened, "path src/login.py")
    opened.shows("#detail", "Story")
    _picture(opened, place / "page-detail.png", height=800)
    opened.keys(Keys.ESCAPE)


def _picture(browser: Browser, file: Path, *, width: int = 1280, height: int, dark: bool = False) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    browser.emulate(width=width, height=height, dark=dark)
    assert browser.driver.save_screenshot(str(file)) and file.read_bytes()[:4] == b"\x89PNG"

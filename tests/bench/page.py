"""`git coord page` in a real browser: the first paint of a large ledger, an event from its command to the eye, and twenty open pages at rest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.build import Views, with_views
from tests.bench.measure import Failed, Result, Target
from tests.bench.place import Place
from tests.bench.size import repository
from tests.bench.watch import processor
from tests.page.browser import CHROMIUM, DRIVER, Browser, browsing
from tests.page.support import Page

_PAINT_MS = 1000
_EVENT_MS = 300
_SHARE = 0.05
_PAGES = 20
_PERIOD = 60  # seconds after which an open page asks again
# Notes when a path is in the list of claims.
_OBSERVE = """
window.seen = {};
new MutationObserver(() => {
  for (const row of document.querySelectorAll("#claims [data-row]")) window.seen[row.dataset.row.split(" ")[0]] ??= Date.now();
}).observe(document.getElementById("lists"), {childList: true, subtree: true});
"""
_PAINTED = """
const drawn = performance.getEntriesByName("gitcoord-drawn")[0];
return drawn ? drawn.startTime - performance.getEntriesByType("navigation")[0].responseStart : 0;
"""


def has_browser() -> bool:
    return all(shutil.which(name) for name in (CHROMIUM, DRIVER))


def page(place: Place, cache: Path, rounds: int, many: Views, seconds: float) -> list[Result]:
    usual = Views(80, 40, 100, 500)  # less than a page of claims, so that a new one is in sight
    large = repository(place, cache, f"page-{many.events}", lambda where: with_views(place, where, many))
    small = repository(place, cache, f"page-{usual.claims}", lambda where: with_views(place, where, usual))
    with tempfile.TemporaryDirectory(prefix="gitcoord-browser-") as files, browsing(Path(files)) as browser:
        with _served(place, large) as (found, pid):
            painted = _paint(browser, found, max(2, rounds // 8))
            rest = _rest(found, pid, seconds)
        with _served(place, small) as (found, _):
            events = _events(place, small, browser, found, rounds)
    late = sorted(events)[max(0, -(-len(events) * 95 // 100) - 1)]
    size = f"{many.claims:,} claims and {many.events:,} events"
    return [
        Result("page-paint", f"page: first paint with {size}, after the server's first byte / {_PAINT_MS} ms", max(painted) / _PAINT_MS, Target(1), {"rounds": len(painted), "slowest ms": round(max(painted), 1)}),
        Result("page-event", f"page: an event is shown after its command has ended, p95 / {_EVENT_MS} ms", late / _EVENT_MS, Target(1), {"rounds": rounds, "p95 ms": round(late, 1)}),
        Result("page-rest", f"page: {_PAGES} open pages at rest with {size}, processor time / {_SHARE:.0%} of a core", rest / seconds / _SHARE, Target(1), {"seconds": seconds, "processor ms": round(rest * 1000, 1)}),
    ]  # fmt: skip


@contextmanager
def _served(place: Place, where: Path) -> Iterator[tuple[Page, int]]:
    argv = ["git-coord", "page", "--json", "--no-open", "--port", "0"]
    with subprocess.Popen(argv, cwd=where, env=place.env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise Failed("git coord page has ended")
            yield Page(json.loads(line)["url"]), process.pid
        finally:
            process.terminate()


def _paint(browser: Browser, found: Page, rounds: int) -> list[float]:
    """The link first, then the page again: each from the first byte of the answer to the list of claims."""
    browser.driver.get(found.url)
    samples = []
    for _ in range(rounds):
        samples.append(float(browser.wait(lambda: browser.script(_PAINTED))))
        browser.driver.refresh()
    cookie = browser.driver.get_cookies()[0]
    found.cookie = f"{cookie['name']}={cookie['value']}"
    found.key = browser.script("return localStorage.getItem('gitcoord-page')")
    browser.driver.get("about:blank")
    return samples


def _rest(found: Page, pid: int, seconds: float) -> float:
    """Processor time of the server, with the requests that open pages make in that time."""
    with ExitStack() as stack:
        for _ in range(_PAGES):
            next(stack.enter_context(found.stream()))
        time.sleep(min(2.0, seconds))  # the first look is over
        before = processor(pid)
        end = time.monotonic() + seconds
        requests = max(1, round(_PAGES * seconds / _PERIOD))
        for number in range(requests):
            found.get("overview")
            time.sleep(max(0.0, end - seconds * (1 - (number + 1) / requests) - time.monotonic()))
        return processor(pid) - before


def _events(place: Place, where: Path, browser: Browser, found: Page, rounds: int) -> list[float]:
    os.chdir(where)
    browser.driver.get(found.url)
    browser.shows("#connection", "live")
    browser.script(_OBSERVE)
    run = int(time.time())
    samples = []
    for number in range(-2, rounds):
        path = f"new-{run}-{number + 2}"
        place.timed("git", "claim", "--", path)
        ended = time.time() * 1000
        samples.append(max(0.0, _seen(browser, path) - ended))
        place.timed("git", "claim", "release", path)
    browser.driver.get("about:blank")
    return samples[2:]


def _seen(browser: Browser, path: str) -> float:
    """The time at which the path came into sight, in milliseconds since 1970."""
    return float(browser.wait(lambda: browser.script("return window.seen[arguments[0]]", path)))

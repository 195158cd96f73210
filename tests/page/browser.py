"""A real browser for the tests: Debian's chromium with its driver, without a screen. `install.sh --test` prepares it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.support import ROOT

AXE = ROOT / ".browser/node_modules/axe-core/axe.min.js"
CHROMIUM = "chromium"
DRIVER = "chromedriver"
SECONDS = 20
Found = TypeVar("Found")


def need(*programs: str, files: tuple[Path, ...] = ()) -> None:
    """Skip the test where something is not here. Where GITCOORD_REQUIRE_BROWSER is set, as in .ci/run, fail it."""
    lacking = [name for name in programs if shutil.which(name) is None] + [
        str(file) for file in files if not file.exists()
    ]
    if not lacking:
        return
    reason = f"not here, ./install.sh --test prepares it where it can: {', '.join(lacking)}"
    if os.environ.get("GITCOORD_REQUIRE_BROWSER", "") not in ("", "0"):
        pytest.fail(f"skipped, but GITCOORD_REQUIRE_BROWSER is set: {reason}", pytrace=False)
    pytest.skip(reason)


class Browser:
    """One browser; what a person sees and does in it. Waiting is for conditions, for at most SECONDS."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    # --- looking

    def wait(self, condition: Callable[[], Found], why: str = "") -> Found:
        """The first true answer. Elements that are drawn anew meanwhile are asked for again."""
        ignored = (StaleElementReferenceException, IndexError)
        wait = WebDriverWait(self.driver, SECONDS, 0.02, ignored_exceptions=ignored)
        return wait.until(lambda _: condition(), why or f"the page says: {self.text('body')[:2000]}")

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return str(
            self.script(
                "const found = document.querySelector(arguments[0]); return found ? found.innerText : ''", selector
            )
        )

    def shows(self, selector: str, words: str) -> None:
        self.wait(lambda: words in self.text(selector), f"{selector} has not {words!r}")

    def lacks(self, selector: str, words: str) -> None:
        self.wait(lambda: words not in self.text(selector), f"{selector} has still {words!r}")

    def script(self, code: str, *words: object) -> Any:
        return self.driver.execute_script(code, *words)

    # --- doing

    def click(self, selector: str) -> None:
        self.wait(lambda: self.script("const found = document.querySelector(arguments[0]); if (!found || found.disabled) return false; found.click(); return true", selector), f"no {selector}")  # fmt: skip

    def button(self, words: str, within: str = "body") -> None:
        """Click the button with these words, or this label."""
        code = """const found = [...document.querySelectorAll(arguments[1] + " button")].find((one) => !one.disabled && one.offsetParent !== null &&
            (one.textContent.trim() === arguments[0] || one.getAttribute("aria-label") === arguments[0]));
            if (!found) return false; found.click(); return true"""
        self.wait(lambda: self.script(code, words, within), f"no button {words!r}")

    def keys(self, *keys: str) -> None:
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def focused(self) -> str:
        """The label of what has the focus."""
        return str(
            self.script(
                "const one = document.activeElement; return one.getAttribute('aria-label') || one.textContent || one.id"
            )
        )

    def emulate(self, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def violations(self) -> list[str]:
        """The findings of axe-core: contrast, labels, roles."""
        if not self.script("return typeof window.axe === 'object'"):
            self.script(AXE.read_text())
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document).then((r) => done(r.violations))"
        )
        return [f"{one['id']}: {node['html'][:200]} {node['failureSummary']}" for one in found for node in one["nodes"]]

    def requested(self) -> list[str]:
        """The addresses of all requests since this was asked last."""
        events = [json.loads(row["message"])["message"] for row in self.driver.get_log("performance")]  # type: ignore[no-untyped-call]
        return [row["params"]["request"]["url"] for row in events if row["method"] == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """Errors in the console, without those of a server that was stopped, and of a file that was opened alone."""
        rows = [str(row["message"]) for row in self.driver.get_log("browser") if row["level"] == "SEVERE"]  # type: ignore[no-untyped-call]
        known = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "/favicon.ico")
        return [row for row in rows if not any(word in row for word in known)]


@contextmanager
def browsing(place: Path) -> Iterator[Browser]:
    """A browser whose files are all in `place`."""
    need(CHROMIUM, DRIVER)
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync", f"--user-data-dir={place}/profile"):  # fmt: skip
        options.add_argument(word)
    if os.getuid() == 0:
        options.add_argument("--no-sandbox")
    options.binary_location = shutil.which(CHROMIUM) or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    env = {**os.environ, "HOME": str(place), "XDG_CONFIG_HOME": f"{place}/config", "XDG_CACHE_HOME": f"{place}/cache"}
    service = Service(shutil.which(DRIVER), env=env)
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(SECONDS)
    try:
        yield Browser(driver)
    finally:
        driver.quit()

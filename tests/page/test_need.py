"""A browser that is not here: skipped with the reason, and a failure where it was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.page.browser import need


def test_what_is_not_here_is_skipped_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    need("sh")
    for value in ("", "0"):
        monkeypatch.setenv("GITCOORD_REQUIRE_BROWSER", value)
        with pytest.raises(pytest.skip.Exception, match=r"install\.sh --test .*no-such-browser, /no/axe"):
            need("sh", "no-such-browser", files=(Path("/no/axe"),))
    monkeypatch.setenv("GITCOORD_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="no-such-browser"):
        need("no-such-browser")

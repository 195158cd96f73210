from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.remote.support import Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Two machines that have not joined yet."""
    return Fleet(tmp_path)

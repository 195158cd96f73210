from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.remote.support import Fleet
from tests.server.support import claim_program, install


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Two machines that have not joined yet."""
    return Fleet(tmp_path)


@pytest.fixture
def gated(fleet: Fleet, tmp_path: Path) -> Fleet:
    """The server makes every event again."""
    install(fleet.bare, claim_program(tmp_path))
    return fleet

from __future__ import annotations

from tests.ledger.remote.conftest import fleet, gated
from tests.server.conftest import served, server

__all__ = ["fleet", "gated", "served", "server"]

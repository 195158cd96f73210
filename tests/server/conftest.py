"""A test that asks for `served` runs once for each transport: real servers, started once, a new repository each time.

To choose: `@pytest.mark.parametrize("server", ["ssh", "http"], indirect=True)`. Where GITCOORD_REQUIRE_SERVERS is set, as in
CI, a test that would be skipped here fails instead.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack
from itertools import count

import pytest

from tests.server.link import Link
from tests.server.machines import Machine, machine
from tests.server.servers import KINDS, Served, Server, kinds, serving

_names = count()


@pytest.fixture(scope="session", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A running server of each kind."""
    kind: str = request.param
    if missing := kinds()[kind].missing():
        pytest.skip(f"no {kind} server: {missing} not installed")
    with serving(kind) as running:
        yield running


@pytest.fixture
def served(server: Server) -> Served:
    """A new bare repository on it. The server runs, even if the test before has stopped it."""
    server.start()
    return server.create(f"r{next(_names)}")


@pytest.fixture
def link(server: Server) -> Iterator[Link]:
    """A link to the server: `served.by("alice", port=link.port.number)`."""
    if server.kind == "file":
        pytest.fail("a path has no link; choose other servers for this test")
    with Link(server.port) as made:
        yield made


@pytest.fixture
def other_machine() -> Iterator[Machine]:
    """Another machine with a cable to this one. Such a test is marked `namespaces`: not every system allows them."""
    with ExitStack() as stack:
        try:
            made = stack.enter_context(machine())
        except OSError as error:
            pytest.skip(f"no network namespaces: {error}")
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if (
        report.skipped
        and not hasattr(report, "wasxfail")
        and required(os.environ)
        and not item.get_closest_marker("namespaces")
    ):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped, but GITCOORD_REQUIRE_SERVERS is set: {reason}"
    server = getattr(item, "funcargs", {}).get("server")
    if report.failed and isinstance(server, Server) and server.log.exists():
        report.sections.append((f"log of the {server.kind} server", server.log.read_text(errors="replace")[-8000:]))
    return report


def required(environ: Mapping[str, str]) -> bool:
    return environ.get("GITCOORD_REQUIRE_SERVERS", "") not in ("", "0")

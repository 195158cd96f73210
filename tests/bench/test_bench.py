"""The benchmarks work: each runs with a few rounds of small sizes. No time is asserted here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.bench.__main__ import BENCHES, NEED_BROWSER, NEED_LFS
from tests.bench.build import spread_paths
from tests.bench.lfs_server import running
from tests.bench.measure import Target, compare, interleave
from tests.bench.page import has_browser
from tests.bench.place import ROOT, has_lfs, interpreter, make_shims
from tests.bench.remote import KINDS

# What each benchmark reports, and whether a target belongs to it.
_ROWS = {
    "claim": {"claim": True, "release": True, "release-tuned": False, "claim-python": False},
    "list": {"list": True},
    "check": {"check-free": True, "check-own": True},
    "views": {
        "status": True,
        "log": True,
        "start": True,
        "start-lines": True,
        "overview": True,
        "views-claim-list": True,
        "views-coord-status": True,
        "views-coord-task-list": True,
        "views-coord-agents": True,
        "views-coord-sweep": True,
        "views-claim-list-mine": True,
        "views-coord-start": True,
    },
    "checks": {"checks-doctor": True, "checks-audit": True, "checks-setup": True},
    "hooks": {
        "pre-commit": True,
        "pre-push": True,
        "commit": True,
        "pull": True,
        "gc": True,
        "pre-push-large": True,
        "hook-nowhere": True,
    },
    "guard": {
        "guard-write": True,
        "guard-read": True,
        "guard-shell": True,
        "guard-nowhere": True,
        "guard-action": True,
        "guard-autoclaim": True,
        "guard-after-written": True,
        "guard-after-claimed": True,
    },
    "server": {"receive": True, "receive-event": True, "receive-large": True},
    "remote": {
        **{f"remote-{kind}": True for kind in KINDS},
        **{f"client-{kind}": True for kind in KINDS if kind != "file"},
        "remote-ssh-push": True,
    },
    "remote-crowd": {"remote-crowd": True, "remote-crowd-failures": True, "remote-crowd-starved": True},
    "remote-beats": {"remote-beats": True},
    "crowd": {"crowd": True, "crowd-failures": True, "crowd-fairness": True},
    "crowd-library": {"crowd-library": True, "crowd-library-failures": True, "crowd-library-fairness": True},
    "spread": {"spread": True},
    "flat": {"flat": True},
    "events": {"events": True},
    "why": {"why": True, "why-log": True, "contention": True},
    "handing": {"handing": True},
    "watch": {"watch": True, "watch-idle": True},
    "page": {"page-paint": True, "page-event": True, "page-rest": True},
    "journal": {"journal": True},
    "tasks": {"tasks": True},
    "queue": {
        "queue-claim": True,
        "queue-refused": True,
        "queue-throughput": True,
        "queue-order": True,
        "queue-fairness": True,
        "queue-hand-over": True,
        "queue-hand-over-start": False,
        "queue-hand-over-told": False,
        "queue-ssh-order": True,
        "queue-ssh": True,
        "queue-ssh-connections": True,
        "queue-many-claim": True,
        "queue-many-list": True,
        "queue-many-refused": False,
    },
    "land": {"land-path": True, "land-ssh": True, "land-3": True, "land-checks-3": True, "land-3-lanes": True},
    "fleet": {
        f"fleet-3-{shape}{row}": target or (shape, row) == ("hot", "-landing")
        for shape in ("hot", "spread")
        for row, target in (("", True), ("-free", False), ("-landing", False), ("-merge", False))
    },
}


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plain commands on this checkout: the installer has tests of its own."""
    bin = tmp_path_factory.mktemp("place") / "bin"
    make_shims(bin, ROOT)
    return bin


def run_bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.bench", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_every_benchmark_is_listed_here() -> None:
    assert list(_ROWS) == list(BENCHES)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("names", [list(_ROWS)[start::4] for start in range(4)], ids=",".join)
def test_quick_run(names: list[str], commands: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    only = ",".join(names)
    done = run_bench("--quick", "--only", only, "--json", str(out), "--command-dir", str(commands), "--markdown")
    assert done.returncode == 0, done.stderr
    data: dict[str, Any] = json.loads(out.read_text())
    assert set(data) == {"version", "date", "quick", "commands", "machine", "results", "skipped"}
    skipped = {name for name in names if name in NEED_LFS and not has_lfs()}
    skipped |= {name for name in names if name in NEED_BROWSER and not has_browser()}
    assert data["quick"] is True and set(data["skipped"]) == skipped
    expected = {row: target for name in names if name not in skipped for row, target in _ROWS[name].items()}
    assert {row["name"]: row["target"] is not None for row in data["results"]} == expected
    for row in data["results"]:
        assert set(row) == {"name", "what", "ratio", "target", "met", "figures", "note"}
        assert row["ratio"] >= 0 and (row["met"] is None) == (row["target"] is None)
        assert f"| {row['what']} | {row['ratio']:.2f} |" in done.stdout
        if row["name"].endswith("-failures"):
            assert row["ratio"] == 0, row["note"]


def test_a_command_that_fails_is_told(tmp_path: Path, commands: Path) -> None:
    (tmp_path / "git-claim").write_text("#!/bin/sh\necho broken >&2\nexec false\n")
    (tmp_path / "git-claim").chmod(0o755)
    (tmp_path / "git-coord").symlink_to(commands / "git-coord")
    done = run_bench("--quick", "--only", "check", "--command-dir", str(tmp_path))
    assert done.returncode == 1
    assert "broken" in done.stderr


def test_an_unknown_benchmark_is_refused() -> None:
    done = run_bench("--only", "nonsense")
    assert done.returncode == 2 and "nonsense" in done.stderr


def test_some_transports_alone(commands: Path, tmp_path: Path) -> None:
    assert "carrier" in run_bench("--only", "remote", "--over", "file,carrier").stderr
    out = tmp_path / "out.json"
    words = ("--quick", "--only", "remote", "--over", "file", "--json", str(out), "--command-dir", str(commands))
    done = run_bench(*words)
    assert done.returncode == 0, done.stderr
    assert [row["name"] for row in json.loads(out.read_text())["results"]] == ["remote-file"]


# --- the parts ----------------------------------------------------------------------------------------------------


def test_interleave_turns_the_order() -> None:
    seen: list[str] = []

    def step(name: str) -> Step:
        return Step(name, seen)

    samples = interleave(2, {"a": step("a"), "b": step("b")}, {"c": step("c")}, warm=0)
    assert seen == ["a", "b", "c", "b", "a", "c"]
    assert samples == {"a": [1.0, 5.0], "b": [2.0, 4.0], "c": [3.0, 6.0]}


class Step:
    def __init__(self, name: str, seen: list[str]) -> None:
        self._name = name
        self._seen = seen

    def __call__(self, number: int) -> float:
        self._seen.append(self._name)
        return float(len(self._seen))


def test_compare_uses_the_middle() -> None:
    samples = {"ours": [0.010, 0.010, 9.0], "theirs": [0.020, 0.020, 0.0]}
    result = compare("x", "ours / theirs", samples, "ours", "theirs", Target(0.6))
    assert result.ratio == pytest.approx(0.5) and result.met is True
    assert result.figures["ours p50 ms"] == 10.0


def test_targets_work_both_ways() -> None:
    assert Target(0.9).met(0.9) and not Target(0.9).met(0.91)
    assert Target(0.8, at_most=False).met(0.8) and not Target(0.8, at_most=False).met(0.79)


def test_the_interpreter_of_a_command(tmp_path: Path) -> None:
    command = tmp_path / "git-claim"
    command.write_text("#!/opt/python/bin/python3 -IS\nimport sys\n")
    assert interpreter(command) == "/opt/python/bin/python3"
    command.write_text("#!/bin/sh\n# gitcoord\nexec '/opt/a b/python3' -IS '/x/y.py' \"$@\"\n")
    assert interpreter(command) == "/opt/a b/python3"


def test_spread_paths_look_like_a_repository() -> None:
    paths = spread_paths(10_000)
    directories = {path.rpartition("/")[0] for path in paths}
    assert len(set(paths)) == 10_000
    assert 500 < len(directories) < 5_000
    assert {path.count("/") for path in paths} >= {1, 2, 3, 4}


# --- the lock server ----------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[HTTPConnection]:
    with running(str(ROOT)) as url:
        connection = HTTPConnection(urlsplit(url).netloc, timeout=10)
        yield connection
        connection.close()


def ask(connection: HTTPConnection, method: str, path: str, body: object = None) -> tuple[int, Any]:
    connection.request(method, path, None if body is None else json.dumps(body))
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def test_lock_server(server: HTTPConnection) -> None:
    status, made = ask(server, "POST", "/locks", {"path": "a/b"})
    assert status == 201 and made["lock"]["path"] == "a/b"
    assert ask(server, "POST", "/locks", {"path": "a/b"})[0] == 409
    ask(server, "POST", "/locks", {"path": "c"})
    assert [lock["path"] for lock in ask(server, "GET", "/locks")[1]["locks"]] == ["a/b", "c"]
    assert [lock["path"] for lock in ask(server, "GET", "/locks?path=a%2Fb")[1]["locks"]] == ["a/b"]
    assert ask(server, "GET", "/locks?path=none")[1]["locks"] == []
    assert len(ask(server, "POST", "/locks/verify", {})[1]["ours"]) == 2
    id = made["lock"]["id"]
    assert ask(server, "POST", f"/locks/{id}/unlock", {})[1]["lock"]["path"] == "a/b"
    assert ask(server, "POST", f"/locks/{id}/unlock", {})[0] == 404
    assert [lock["path"] for lock in ask(server, "GET", "/locks")[1]["locks"]] == ["c"]
    assert ask(server, "GET", "/elsewhere")[0] == 404

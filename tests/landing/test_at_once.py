"""Two machines at the same moment: while the push of a landing is under way, trunk moves by another landing or by a person's push."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.ledger.remote.support import Fleet, Machine
from tests.server.support import claim_program, install

# Waits at its first call until the test lets it go on: it says so through one pipe, and reads from another.
_BARRIER = "if mkdir {place}/once 2>/dev/null; then echo here >{place}/here; read -r _ <{place}/go; fi\n"


class Case(NamedTuple):
    """The kind of server, what happens at the other machine meanwhile, and the exit code of the landing that was stopped."""

    server: str
    meanwhile: str
    code: int = 0


CASES = [
    Case("no gate", "landing"),
    Case("no gate", "push"),
    Case("no gate", "conflict", 1),
    Case("gate", "landing"),
    Case("gate", "push"),
    Case("not atomic", "push"),
    Case("not atomic", "conflict", 1),
]


def _stop_once(fleet: Fleet, machine: Machine, server: str) -> None:
    """Stop the machine's push before the server looks at it; where refs go one by one, the push of trunk."""
    for name in ("here", "go"):
        os.mkfifo(fleet.place / name)
    wait = _BARRIER.format(place=fleet.place)
    if server == "not atomic":
        fleet.hook("update", f'test "$1" = refs/heads/main || exit 0\n{wait}')
        return
    script = fleet.place / "slow-receive-pack"
    script.write_text(f'#!/bin/sh\n{wait}exec git receive-pack "$@"\n')
    script.chmod(0o755)
    machine.git("config", "remote.origin.receivepack", str(script))


def _branch(machine: Machine, name: str, files: dict[str, str]) -> None:
    machine.git("switch", "-q", "-c", name, "origin/main")
    machine.commit(files)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.server}, {case.meanwhile}")
def test_trunk_moves_while_a_landing_is_pushed(fleet: Fleet, tmp_path: Path, case: Case) -> None:
    if case.server == "gate":
        install(fleet.bare, claim_program(tmp_path))
    one, two = fleet.joined()
    if case.server == "not atomic":
        for machine in (one, two):
            machine.git("config", "gitcoord.atomic", "false")
    task = one.run("git-coord", "task", "add", "do it", "--json", agent="alice").json["tasks"][0]["id"]
    assert one.run("git-coord", "task", "take", task, agent="alice").code == 0
    _branch(one, "topic", {"new": "one\n"})
    _branch(two, "other", {"new" if case.meanwhile == "conflict" else "more": "two\n"})
    _stop_once(fleet, one, case.server)
    program = shutil.which("git-coord", path=one.env["PATH"])
    first = subprocess.Popen(
        [str(program), "land", "--task", task, "--json"], cwd=one.repo, env={**one.env, "GITCOORD_AGENT": "alice"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    (fleet.place / "here").read_text()
    if case.meanwhile == "landing":
        assert two.run("git-coord", "land", agent="bob").code == 0
    else:
        two.git("push", "-q", "origin", "other:main")
    (fleet.place / "go").write_text("go\n")
    out, err = first.communicate(timeout=60)
    assert first.returncode == case.code, (out, err)
    state = two.run("git-coord", "task", "show", task, "--json", agent="bob").json["task"]["state"]
    files = fleet.git("ls-tree", "--name-only", "main").splitlines()
    if case.code:
        assert '"error":"conflict"' in out and state == "active" and fleet.git("show", "main:new") == "two\n"
    else:
        assert {"new", "more"} <= set(files) and state == "done", (out, err)
        assert len([event for event in fleet.events("land") if event["branch"] == "topic"]) == 1
    fleet.assert_sound()

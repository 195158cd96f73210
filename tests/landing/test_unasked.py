"""A landing at a remote that is not asked before: what it must not do by an old copy, say twice or leave behind, and that one which asks does it right."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from gitcoord.base.errors import refused
from gitcoord.cli.caller import Caller
from gitcoord.cli.table.coord import VERBS
from gitcoord.landing import cli_land
from gitcoord.landing import trunk as trunk_module
from gitcoord.landing.trunk import Trunk
from gitcoord.ledger.context import Context
from gitcoord.ledger.remote.fetch import fetch, store_of
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.terminal.parser import Values
from gitcoord.world.open import environ, open_repository
from tests.cli.support import Done
from tests.ledger.remote.support import Fleet, Machine

SEQUENCE = '[sequence "migrations"]\n\tpattern = db/[0-9]*_*.sql\n\twidth = 4\n[land]\n\trenumber = migrations\n'


def _branch(machine: Machine, files: dict[str, str]) -> None:
    machine.git("switch", "-q", "-c", "topic", "origin/main")
    machine.commit(files)


def _land(machine: Machine, *words: str) -> Done:
    return machine.run("git-coord", "land", *words, agent="alice")


def _policy(machine: Machine, text: str, files: dict[str, str] | None = None) -> None:
    machine.commit({".gitcoord/config": text, **(files or {})})
    machine.git("push", "-q", "origin", "main")


def _signed(machine: Machine, place: Path) -> None:
    """A signed commit more."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / "key")], check=True)
    key = ("-c", "gpg.format=ssh", "-c", f"user.signingKey={place / 'key'}")
    machine.git(*key, "commit", "-q", "--allow-empty", "-S", "-m", "signed")


def _meanwhile(machine: Machine, place: Path, script: str) -> None:
    """While the machine's landing sends files of LFS, this happens once."""
    program = place / "with-lfs/git-lfs"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\ncat >/dev/null\nif mkdir {place}/once 2>/dev/null; then unset GIT_DIR; {script}; fi\n"
    )
    program.chmod(0o755)
    (machine.git_dir / "lfs").mkdir()
    machine.env = {**machine.env, "PATH": f"{program.parent}:{machine.env['PATH']}"}


@pytest.fixture
def inside(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """This process stands in the clone of the first machine, which has a branch."""
    one, _ = fleet.joined()
    _branch(one, {"free": "x\n"})
    monkeypatch.chdir(one.repo)
    for name, value in one.env.items():
        monkeypatch.setenv(name, value)
    fleet.connections()
    return fleet


# --- what trunk has by now ---------------------------------------------------------------------------------------------


def test_a_check_that_another_process_of_the_clone_fetches_meanwhile_is_run(fleet: Fleet, tmp_path: Path) -> None:
    """It went without a check by the tip that it knew, and would land on this one."""
    one, two = fleet.joined()
    _meanwhile(one, tmp_path, f"git -C {two.repo} push -q origin main; git -C {one.repo} fetch -q origin")
    _branch(one, {"free": "x\n"})
    two.commit({".gitcoord/config": "[land]\n\tcheck = test ! -e free\n"})
    done = _land(one, "--json")
    assert done.code == 1 and done.json["error"] == "check", done
    assert fleet.events("land") == []


def test_a_check_that_trunk_gets_meanwhile_is_run_in_a_turn(fleet: Fleet, tmp_path: Path) -> None:
    one, two = fleet.joined()
    assert two.run("git-coord", "start", agent="bob").code == 0
    assert one.claim("list", agent="alice").code == 0  # it has seen bob, and so asks before it lands
    _meanwhile(one, tmp_path, f"git -C {two.repo} push -q origin main")
    _branch(one, {"free": "x\n"})
    two.commit({".gitcoord/config": "[land]\n\tcheck = test -e free\n"})
    done = _land(one, "--json")
    assert done.code == 0 and [row["command"] for row in done.json["checks"]] == ["test -e free"], done
    assert one.claim("list", "--json").json["claims"] == []
    fleet.assert_sound()


# --- said once, counted once -------------------------------------------------------------------------------------------


def test_a_lost_signature_is_told_once(fleet: Fleet, tmp_path: Path) -> None:
    """Also where trunk was another one, and the commits are made twice."""
    one, two = fleet.joined()
    _branch(one, {"free": "x\n"})
    _signed(one, tmp_path)
    two.commit({"theirs": "x\n"})
    two.git("push", "-q", "origin", "main")
    done = _land(one, "--squash")
    assert done.code == 0 and done.err.count("signatures are not kept (1)") == 1, done
    assert "once more" not in done.err, "trunk has not moved meanwhile, this clone did not know it"


def test_numbers_are_given_once(fleet: Fleet, tmp_path: Path) -> None:
    one, _ = fleet.joined()
    corrects = f"echo ran >>{tmp_path}/ran; sed -i s/$(basename $OLD .sql)/$(basename $NEW .sql)/g db/list"
    _policy(one, f'{SEQUENCE}\trenumberCommand = "{corrects}"\n', {"db/0001_a.sql": "a\n", "db/list": "0001_a\n"})
    _branch(one, {"db/0005_b.sql": "b\n", "db/list": "0001_a\n0005_b\n"})
    done = _land(one)
    assert done.code == 0 and (tmp_path / "ran").read_text() == "ran\n", done


def test_lines_that_name_a_number_are_shown_once(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    _policy(one, SEQUENCE, {"db/0001_a.sql": "a\n", "db/list": "0001_a\n"})
    _branch(one, {"db/0005_b.sql": "b\n", "db/list": "0001_a\n0005_b\n"})
    done = _land(one)
    assert done.code == 1 and done.err.count("these lines name files") == 1, done


def test_a_refusal_by_an_old_copy_is_not_counted(fleet: Fleet) -> None:
    """Only the refusal of the landing that asked counts, and that of the queue."""
    one, _ = fleet.joined()
    _branch(one, {"free": "x\n"})
    assert one.claim("@land/main", agent="bob").code == 0
    assert _land(one, "--wait", "0").code == 1
    assert (one.git_dir / "gitcoord/refusals/alice").read_text() == '["@land/main","bob"]\n' * 2


# --- what is left behind -----------------------------------------------------------------------------------------------


def test_a_turn_from_before_is_given_back_where_the_host_refuses(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    _branch(one, {"free": "x\n"})
    assert one.claim("@land/main", agent="alice").code == 0
    fleet.hook("update", 'test "$1" != refs/heads/main || { echo protected branch; exit 1; }\n')
    fleet.connections()
    done = _land(one)
    assert done.code == 1 and "protected branch" in done.err, done
    assert one.claim("list", "--json").json["claims"] == []


def test_an_error_after_it_has_landed_is_not_taken_for_nothing_done(
    inside: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise refused("later", "what comes after the landing failed")

    monkeypatch.setattr(cli_land, "say_landed", fail)
    caller = Caller(Actor("alice"))
    try:
        row, failed = caller.call(VERBS["land"], {}, [])
    finally:
        caller.close()
    assert failed and row["error"] == "later"
    assert inside.connections() == ["receive-pack"] and len(inside.events("land")) == 1


def test_a_dry_run_leaves_no_trace_in_a_process_that_lives_on(inside: Fleet) -> None:
    caller = Caller(Actor("alice"))
    try:
        every: list[Values] = [{"dry-run": True}, {}]
        for values in every:
            row, failed = caller.call(VERBS["land"], values, [])
            assert not failed, row
            assert caller._ctx is not None and store_of(caller._ctx).remote.along == "", "each fetch would bring trunk"
    finally:
        caller.close()


# --- the remote is away, or slow ---------------------------------------------------------------------------------------


def test_going_on_without_the_remote_can_be_repeated(fleet: Fleet) -> None:
    one, two = fleet.joined()
    two.commit({"free": "theirs\n"})
    two.git("push", "-q", "origin", "main")
    _branch(one, {"free": "mine\n"})
    assert _land(one, "--json").json["error"] == "conflict"
    (one.repo / "free").write_text("both\n")
    one.git("add", "free")
    away = fleet.bare.with_name("away")
    os.rename(fleet.bare, away)
    done = _land(one, "--continue")
    assert done.code == 5 and "the conflict stays resolved: git coord land --continue" in done.err, done
    os.rename(away, fleet.bare)
    assert _land(one, "--continue").code == 0
    assert fleet.git("show", "main:free") == "both\n"


def test_without_a_landing_to_go_on_with_no_remote_is_needed_to_say_so(fleet: Fleet) -> None:
    one, _ = fleet.joined()
    os.rename(fleet.bare, fleet.bare.with_name("away"))
    done = _land(one, "--continue")
    assert done.code == 2 and "has no landing to go on with" in done.err, done


def test_a_slow_remote_is_asked_once(inside: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch that takes longer than what counts as recent."""
    ctx, passed = open_repository(environ(), writing=False), [0]
    mono = ctx.host.mono

    def slow(ctx: Context) -> None:
        fetch(ctx)
        passed[0] += 10_000

    monkeypatch.setattr(type(ctx.host), "mono", lambda _: mono() + passed[0])
    monkeypatch.setattr(trunk_module, "fetch", slow)
    try:
        trunk = Trunk(ctx, read_snapshot(ctx))
        trunk.look()
        trunk.fetch(trunk_module.RECENT)
    finally:
        ctx.store.close()
    assert inside.connections() == ["upload-pack"]


def test_a_process_that_lives_on_is_interrupted_again_after_a_landing(inside: Fleet) -> None:
    caller = Caller(Actor("alice"))
    try:
        assert caller.call(VERBS["land"], {}, [])[1] is False
    finally:
        caller.close()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])

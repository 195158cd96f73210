"""Landing as docs/landing.md has it for hosts: a gated server over ssh and http where landings are the only way in, and a job of CI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.server.servers import Client, Served
from tests.server.support import claim_program, install
from tests.support import COORD, git, run_command

_POLICY = '[land]\n\tonly = true\n\tcheck = test -e a\n[role "scout"]\n\tland = false\n[gitcoord]\n\trole = scout\n'
_POLICY += '[agent "alice"]\n\trole = writer\n[agent "ci"]\n\trole = writer\n'
_ACCOUNTS = '[account "alice"]\n\tagent = alice\n[account "bob"]\n\tagent = ci\n\tagent = eve\n'
_ACCOUNTS += '[account "carol"]\n\tagent = carol\n\tperson = true\n'
_IDENTITY = {"GIT_AUTHOR_NAME": "ci", "GIT_AUTHOR_EMAIL": "ci@example.com"}
_IDENTITY |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in _IDENTITY.items()}


def _coord(client: Client, place: Path, agent: str, *words: str, env: dict[str, str] | None = None) -> Done:
    """`git coord` over this account; `env` instead of the environment of the tests."""
    environ = {**(os.environ if env is None else env), **client.env, "GITCOORD_AGENT": agent}
    done = run_command([*COORD, *words], place, environ)
    assert b"Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def _commit(place: Path, name: str, text: str = "x\n") -> None:
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_text(text)
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", name)


@pytest.mark.parametrize("server", ["ssh", "http"], indirect=True)
def test_landings_are_the_only_way_in_and_a_job_lands(served: Served, tmp_path: Path) -> None:
    install(served.bare, claim_program(tmp_path))
    git(served.bare, "config", "gitcoord.server.account", served.server.variable)
    (served.bare / "gitcoord").mkdir(exist_ok=True)
    (served.bare / "gitcoord/accounts").write_text(_ACCOUNTS)
    alice, job, carol = (served.by(name) for name in ("alice", "bob", "carol"))

    # A person sets it up: the policy on trunk, and the ledger.
    carol.git(tmp_path, "clone", "-q", carol.url, "carol")
    _commit(tmp_path / "carol", "a")
    _commit(tmp_path / "carol", ".gitcoord/config", _POLICY)
    carol.git(tmp_path / "carol", "push", "-q", "origin", "HEAD:main")
    assert _coord(carol, tmp_path / "carol", "carol", "init", "--remote", "origin").code == 0

    # An agent pushes its branch, and lands it.
    alice.git(tmp_path, "clone", "-q", alice.url, "alice")
    tree = tmp_path / "alice"
    assert _coord(alice, tree, "alice", "init", "--remote", "origin").code == 0
    git(tree, "switch", "-q", "-c", "topic")
    _commit(tree, "b")
    pushed = alice.run(tree, "push", "origin", "topic:main")
    assert pushed.returncode and "'main' is moved by landings alone" in pushed.stderr, pushed
    landed = _coord(alice, tree, "alice", "land")
    assert landed.code == 0, landed
    git(tree, "switch", "-q", "-c", "second")
    _commit(tree, "c")
    alice.git(tree, "push", "-q", "origin", "second")

    # A person may push: the next landing is a merge.
    carol.git(tmp_path / "carol", "pull", "-q", "origin", "main")
    _commit(tmp_path / "carol", "d")
    carol.git(tmp_path / "carol", "push", "-q", "origin", "HEAD:main")

    # A job: a fresh shallow clone, no HOME, no terminal.
    bare = {"PATH": os.environ["PATH"]}
    job.git(tmp_path, "clone", "-q", "--depth", "1", job.url, "job")
    place = tmp_path / "job"
    assert _coord(job, place, "ci", "init", "--remote", "origin", env=bare).code == 0
    shallow = _coord(job, place, "ci", "land", "second", env=bare)
    assert shallow.code == 1 and "hint: git fetch --unshallow" in shallow.err, shallow
    job.git(place, "fetch", "-q", "--unshallow")
    nobody = _coord(job, place, "ci", "land", "second", env=bare)
    assert nobody.code == 1 and "GIT_COMMITTER_NAME" in nobody.err, nobody
    scout = _coord(job, place, "eve", "land", "second", env={**bare, **_IDENTITY})
    assert scout.code == 1 and "the role 'scout' of 'eve' does not land" in scout.err, scout
    unknown = _coord(job, place, "ci", "land", "nowhere", env={**bare, **_IDENTITY})
    assert unknown.code == 2 and "no branch 'nowhere' here, and none at 'origin'" in unknown.err, unknown
    done = _coord(job, place, "ci", "land", "second", env={**bare, **_IDENTITY})
    assert done.code == 0, done
    assert set("abcd") <= set(git(served.bare, "ls-tree", "--name-only", "main").decode().split())
    assert b"Agent: ci" in git(served.bare, "log", "-1", "--format=%B", "main")

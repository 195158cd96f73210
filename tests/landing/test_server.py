"""The server's gate: landings that nobody made, landings of others' claims, and trunk that moves by landings alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ledger.remote.support import Fleet, Machine
from tests.server.support import Site, claim_program, forge, install, unchanged
from tests.support import git


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path).setup()


def _landing(site: Site, agent: str, new: str, **more: Any) -> dict[str, Any]:
    old = git(site.bare, "rev-parse", "main").decode().strip()
    said = {"trunk": "main", "branch": "topic", "tip": new, "old": old, "new": new, "how": "merge", "checks": []}
    return {"session": 1, **said, "task": "", "released": [], **more}


def _land(body: dict[str, Any], agent: str, seq: int, **more: Any) -> dict[str, Any]:
    said = {key: body[key] for key in ("trunk", "branch", "old", "new", "task")}
    return {"owner": agent, "landing": seq, **said, "released": [], **more}


def _turn(site: Site, agent: str) -> int:
    """The turn, on the server too; gives the number of the next event."""
    site.claim("@land/main", agent=agent)
    assert site.sync().code == 0
    return len(site.world.events()) + 1


def test_a_land_event_without_trunk_is_refused(site: Site) -> None:
    """A task could be done without its code on trunk."""
    new = site.commit({"free/x": "new\n"})
    assert site.push("origin", "HEAD:refs/heads/topic").code == 0
    seq = _turn(site, "alice")
    body = _landing(site, "alice", new)
    forge(site, ("landing", "alice", body, {}), ("land", "alice", _land(body, "alice", seq), {}))
    before = site.refs()
    unchanged(site, site.sync(), before, "does not contain")
    trunk = site.push("--atomic", "origin", *site.refspecs(), "HEAD:refs/heads/main")
    assert trunk.code == 0, trunk


def test_a_landing_without_a_turn_and_of_what_others_hold(site: Site) -> None:
    new = site.commit({"free/x": "new\n"})
    assert site.push("origin", "HEAD:refs/heads/topic").code == 0
    site.claim("free/x", agent="bob")
    assert site.sync().code == 0
    head = site.world.head
    token = site.world.claim("list", "--json").json["claims"][0]["token"]
    row = {"space": "path", "path": "free/x", "agent": "bob", "token": token, "commit": "", "base": "", "files": []}
    with pytest.raises(AssertionError, match="without having the turn"):
        forge(site, ("landing", "bob", _landing(site, "bob", new), {}))
    _turn(site, "alice")
    forge(site, ("landing", "alice", _landing(site, "alice", new, released=[{**row, "landed": []}]), {}))
    assert site.world.head != head
    unchanged(site, site.sync(), site.refs(), "no commit that lands is by 'bob'")


def test_a_landing_that_hides_what_it_changes(site: Site) -> None:
    """The files below a released claim are made again by the server."""
    new = site.commit({"shared/a": "new\n"})
    assert site.push("origin", "HEAD:refs/heads/topic").code != 0, "unclaimed"
    site.claim("@land/main", "shared/a", agent="alice")
    assert site.sync().code == 0
    claims = {row["path"]: row for row in site.world.claim("list", "--json").json["claims"]}
    own = claims["shared/a"]
    row = {"space": "path", "path": "shared/a", "agent": "alice", "token": own["token"], "commit": "", "files": []}
    body = _landing(site, "alice", new, released=[{**row, "base": own["base"], "landed": []}])
    seq = len(site.world.events()) + 1
    freed = [{"space": "path", "path": "shared/a", "agent": "alice"}]
    forge(site, ("landing", "alice", body, {}), ("land", "alice", _land(body, "alice", seq, released=freed), {}))
    before = site.refs()
    done = site.push("--atomic", "origin", *site.refspecs(), "HEAD:refs/heads/main")
    unchanged(site, done, before, "in released")


def test_trunk_moves_by_landings_alone(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    one: Machine = fleet.machines[0]
    one.commit({".gitcoord/config": "[land]\n\tonly = true\n"})
    one.git("push", "-q", "origin", "main")
    install(fleet.bare, claim_program(tmp_path))
    fleet.joined()
    one.git("switch", "-q", "-c", "topic")
    one.commit({"free": "x\n"})
    pushed = one.run("git", "push", "-q", "origin", "topic:main", agent="alice")
    assert pushed.code and "moved by landings alone" in pushed.err and "git coord land" in pushed.err, pushed
    assert one.run("git", "push", "-q", "origin", "topic", agent="alice").code == 0
    landed = one.run("git-coord", "land", agent="alice")
    assert landed.code == 0, landed
    assert fleet.git("show", "main:free") == "x\n"

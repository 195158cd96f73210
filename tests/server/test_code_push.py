"""Pushes of code through the gate: claims, released work, roles, halts, people, deploys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.server.support import Site, forge, unchanged
from tests.support import git

CONFIG = """[role "watch"]
	overseer = true
[agent "bob"]
	role = watch
[role "reader"]
	readonly = true
[deploy "production"]
	ref = refs/heads/production
[rollout]
	guard = warn
[gitcoord]
	approver = ada
"""
ACCOUNTS = """
[account "alice"]
    agent = alice
[account "ada"]
    agent = ada
    agent = ada.*
    person = true
[account "ci"]
    agent = alice
    agent = bob
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path, config=CONFIG).setup()
    site.accounts(ACCOUNTS)
    return site


def push(site: Site, *words: str, account: str = "alice", agent: str = "") -> Done:
    return site.push("origin", *words, account=account, options=(f"agent={agent}",) if agent else ())


def test_work_under_a_claim_and_released_work_land(site: Site) -> None:
    site.world.git("checkout", "-q", "-b", "work")
    site.claim("shared/a", agent="alice")
    assert site.sync("alice").code == 0
    site.commit({"shared/a": "2\n"}, "alice")
    assert push(site, "work").code == 0
    site.claim("release", "shared/a", agent="alice")
    assert site.sync("alice").code == 0
    site.world.git("checkout", "-q", "main")
    site.world.git("merge", "-q", "--no-ff", "-m", "land", "work")
    assert push(site, "main", account="ada").code == 0, "somebody else lands what was released"
    before = site.refs()
    site.commit({"shared/a": "3\n"})
    unchanged(site, push(site, "main", account="ada"), before, "[unclaimed]")


def test_a_release_that_the_server_can_check(site: Site) -> None:
    """The files that a release names are those that git says changed; a base that was never pushed is no obstacle."""
    site.world.git("checkout", "-q", "-b", "work")
    site.commit({"free/x": "local\n"}, "alice")
    site.claim("shared/a", agent="alice")
    assert site.sync("alice").code == 0
    site.commit({"shared/a": "2\n"}, "alice")
    site.world.git("rebase", "-q", "--onto", "main", "HEAD~1")
    assert push(site, "work").code == 0
    site.claim("release", "shared/a", agent="alice")
    done = site.sync("alice")
    assert done.code == 0, done
    assert "shared/a" in git(site.bare, "ls-tree", "-r", "--name-only", "gitcoord", "lineage").decode()


def test_work_lands_on_a_server_that_has_a_remote_of_its_own(site: Site) -> None:
    """The trunk of a server is its own branch: what landed there is no longer on record, as the client says."""
    git(site.bare, "remote", "add", "origin", str(site.place / "elsewhere"))
    for content in ("2\n", "3\n"):
        site.claim("shared/a", agent="alice")
        assert site.sync("alice").code == 0
        site.commit({"shared/a": content}, "alice")
        assert push(site, "main").code == 0
        event = site.claim("release", "shared/a", agent="alice")
        done = site.sync("alice")
        assert done.code == 0, (event, done)
    assert '"landed":[["shared/a",' in site.world.git("log", "--format=%B", "-1", "gitcoord")


def test_a_release_that_names_a_base_which_was_never_pushed(site: Site) -> None:
    """An older client sends this. The server accepts it, requires the work of others, and never the base."""
    site.world.git("checkout", "-q", "-b", "work")
    base = site.commit({"free/x": "local\n"}, "alice")
    token = site.claim("shared/a", "--json", agent="alice").json["claims"][0]["token"]
    assert site.sync("alice").code == 0
    site.commit({"shared/a": "2\n"}, "alice")
    site.world.git("rebase", "-q", "--onto", "main", "HEAD~1")
    commit = site.world.git("rev-parse", "HEAD")
    assert push(site, "work").code == 0
    file = ["shared/a", "100644", site.blob(b"2\n")]
    entry = {"space": "path", "path": "shared/a", "token": token, "commit": commit, "base": base, "files": [file]}
    forge(site, ("release", "alice", {"released": [{**entry, "landed": []}]}, {}))
    assert site.sync("alice").code == 0
    site.world.git("checkout", "-q", "main")
    site.claim("shared/a", agent="bob")
    assert site.sync("ci").code == 0
    before = site.refs()
    site.commit({"shared/a": "bob\n"}, "bob")
    unchanged(site, push(site, "main", account="ci", agent="bob"), before, "[lineage]")
    site.world.git("reset", "-q", "--hard", "HEAD~1")
    site.world.git("merge", "-q", "work")
    site.commit({"shared/a": "both\n"}, "bob")
    assert push(site, "main", account="ci", agent="bob").code == 0


def test_halted_and_killed(site: Site) -> None:
    assert site.world.coord("halt", agent="bob").code == 0, "its role may"
    assert site.sync("ci").code == 0
    before = site.refs()
    site.commit({"free/x": "2\n"}, "alice")
    unchanged(site, push(site, "main"), before, "[halted]")
    unchanged(site, push(site, "main:refs/heads/new"), before, "[halted]")
    unchanged(site, push(site, "HEAD~1:refs/tags/t"), before, "[halted]")
    assert site.world.coord("unhalt", agent="alice").code == 1, "an agent lifts no halt"
    assert site.world.coord("unhalt", agent="bob").code == 0, "unless that is its role"
    assert site.sync("ci").code == 0
    assert push(site, "main").code == 0


def test_a_role_that_may_not_write(site: Site) -> None:
    """Roles are given by an approver's account; then the gate holds the agent to it."""
    before = site.refs()
    forge(site, ("role", "alice", {"target": "bob", "role": "reader"}, {}))
    unchanged(site, site.sync("alice"), before, "may give roles")
    _forget(site)
    forge(site, ("role", "ada.helper", {"target": "bob", "role": "reader"}, {}))
    unchanged(site, site.sync("ada"), before, "may give roles")
    _forget(site)
    forge(site, ("role", "ada", {"target": "alice", "role": "reader"}, {}))
    assert site.sync("ada").code == 0
    before = site.refs()
    site.commit({"free/x": "3\n"}, "alice")
    unchanged(site, push(site, "main"), before, "[role]")


def _forget(site: Site) -> None:
    """The clone's ledger goes back to the server's."""
    head = site.private()["refs/heads/gitcoord"]
    for ref in ("refs/heads/gitcoord", "refs/gitcoord/tip"):
        site.world.git("update-ref", ref, head)


def test_people_and_their_agents(site: Site) -> None:
    """The approver may change the guard's own files; her agent may not."""
    before = site.refs()
    site.commit({".gitcoord/config": CONFIG + "\n"})
    unchanged(site, push(site, "main", account="ada", agent="ada.helper"), before, "[own-files]")
    unchanged(site, push(site, "main"), before, "[own-files]")
    assert push(site, "main", account="ada").code == 0


def test_a_warning_is_shown_and_logged(site: Site) -> None:
    site.commit({"locked/z": "2\n"}, "alice")
    done = push(site, "main")
    assert done.code == 0 and "warning: locked/z" in done.err
    assert "warn alice locked/z" in (site.bare / "gitcoord/receive.log").read_text()


def test_a_stale_deploy(site: Site) -> None:
    old = site.world.git("rev-parse", "main")
    site.commit({"free/x": "2\n"}, "alice")
    assert push(site, "main").code == 0
    before = site.refs()
    unchanged(site, push(site, f"{old}:refs/heads/production"), before, "[stale-deploy]")
    assert push(site, "main:production").code == 0


@pytest.mark.parametrize("branch", ["main", "gitcoord-ui"])
def test_nothing_is_written_beside_the_refs(site: Site, branch: str) -> None:
    """Trial merges leave no object behind, also where the push is refused, and for any name of the branch."""
    site.world.git("checkout", "-q", "-b", "side")
    site.commit({"free/x": "side\n"}, "alice")
    site.world.git("checkout", "-q", "main")
    site.commit({"free/y": "main\n"}, "alice")
    site.world.git("merge", "-q", "--no-commit", "side")
    site.commit({"free/z": "not what a merge alone makes\n"}, "alice")
    site.commit({"shared/b": "no\n"}, "alice")
    objects = _objects(site)
    assert push(site, f"main:refs/heads/{branch}").code != 0
    assert _objects(site) == objects and not list((site.bare / "gitcoord/judging").iterdir())
    site.world.git("reset", "-q", "--hard", "HEAD~1")
    assert push(site, f"main:refs/heads/{branch}").code == 0
    new = set(git(site.top, "rev-list", "--objects", "main").decode().split("\n"))
    known = {line.split(" ")[0] for line in new}
    assert all(oid in known for oid in _objects(site) - objects)


def test_an_error_of_the_system_is_told_as_what_it_is(site: Site) -> None:
    """The directory for trial merges cannot be made."""
    before = site.refs()
    site.commit({"free/x": "2\n"}, "alice")
    (site.bare / "gitcoord/judging").write_text("in the way")
    unchanged(site, push(site, "main"), before, "could not be judged, so it is refused", "Not a directory")


def _objects(site: Site) -> set[str]:
    out = git(site.bare, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return set(out.decode().split())


def test_namespaces(site: Site) -> None:
    before = site.refs()
    unchanged(site, push(site, "main:refs/changes/1"), before, "gitcoord.server.allow")
    unchanged(site, push(site, "main:refs/gitcoord-ui/1"), before, "gitcoord.server.allow")
    for never in (f"refs/replace/{site.world.git('rev-parse', 'main')}", "refs/gitcoord/x"):
        done = push(site, f"main:{never}")
        unchanged(site, done, before)
        assert "gitcoord.server.allow" not in done.err, "no setting allows it"
    site.setting("allow", "refs/changes/ refs/keep/*")
    assert push(site, "main:refs/changes/1").code == 0
    assert push(site, "main:refs/keep/1").code == 0
    assert push(site, "main:refs/notes/x").code == 0


def test_too_many_commits_and_too_long(site: Site) -> None:
    before = site.refs()
    for number in range(3):
        site.commit({"free/x": f"{number}\n"}, "alice")
    site.setting("maxCommits", "2")
    unchanged(site, push(site, "main"), before, "gitcoord.server.maxCommits")
    site.setting("maxCommits", "3")
    assert push(site, "main").code == 0


def test_accounts_that_make_no_sense_close_the_gate(site: Site) -> None:
    before = site.refs()
    site.commit({"free/x": "2\n"}, "alice")
    for text in ("[account", '[account "alice"]\nagent = "no good"\n', '[account "alice"]\npersn = true\n'):
        site.accounts(text)
        unchanged(site, push(site, "main"), before, "could not be judged")

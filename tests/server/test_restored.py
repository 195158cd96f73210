"""Events that the server lost, brought back through the gate: who may, what is still checked, what is never replaced."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.realm import Realm
from tests.server.servers import Served
from tests.server.support import Site, forge, unchanged

LEDGER = "refs/heads/gitcoord"
ACCOUNTS = '[account "ada"]\nagent = ada\nperson = true\n[account "bob"]\nagent = bob\n'
WORDS = "the server is behind what this clone has seen"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """bob holds shared/b, and ada shared/a. The server was set back to before both claims."""
    site = Site(tmp_path).setup()
    shutil.copytree(site.bare, tmp_path / "backup.git")
    site.claim("shared/b", agent="bob")
    site.claim("shared/a", agent="ada")
    assert site.sync().code == 0
    restore(site)
    site.accounts(ACCOUNTS)
    return site


def restore(site: Site) -> None:
    shutil.rmtree(site.bare)
    shutil.copytree(site.place / "backup.git", site.bare)


def leap(site: Site, agent: str, seq: int = 1_000_000) -> str:
    return forge(site, ("epoch", agent, {"reason": "restored"}, {"seq": seq, "nonce": f"by{agent}{seq}"}))


def put_on_top(site: Site, forged: str) -> None:
    """The newest event is this commit in its place, and ada's epoch follows."""
    for ref in (LEDGER, "refs/gitcoord/tip", "refs/claims/path/shared/a/@ada"):
        site.world.git("update-ref", ref, forged)
    leap(site, "ada")


def test_a_person_brings_back_what_everybody_did(site: Site) -> None:
    before = site.refs()
    unchanged(site, site.sync("ada"), before, "may not act for 'bob'")
    leap(site, "ada")
    site.setting("maxEvents", "2")
    site.setting("maxHistory", "3")
    unchanged(site, site.sync("ada"), before, "more than 3 events", "gitcoord.server.maxHistory")
    site.setting("maxHistory", "1000")
    done = site.sync("ada")
    assert done.code == 0, done
    assert site.private() == site.local()
    site.claim("shared/c", agent="bob")
    assert site.sync("bob").code == 0, "and it goes on from there"


def test_an_agent_may_not(site: Site) -> None:
    before = site.refs()
    leap(site, "bob")
    unchanged(
        site, site.sync("bob"), before, "only a person's account may bring events back", "git coord fsck --repair"
    )
    unchanged(site, site.sync("ada"), before, "may not act for 'bob'")


def test_an_agent_may_leap(site: Site) -> None:
    """An epoch grants nothing; a clone whose numbers are higher needs no person."""
    site.world.git("update-ref", LEDGER, site.private()[LEDGER])
    site.world.git("update-ref", "refs/gitcoord/tip", site.private()[LEDGER])
    for ref, oid in site.local().items():
        if ref.startswith(("refs/claims/", "refs/gitcoord/sessions/")):
            site.world.git("update-ref", "-d", ref, oid)
    leap(site, "bob")
    done = site.sync("bob")
    assert done.code == 0, done
    before = site.refs()
    leap(site, "bob", 10**9)
    unchanged(site, site.sync("bob"), before, "only a person may leap")


def test_a_forged_tree_in_a_history(site: Site) -> None:
    before = site.refs()
    grant = site.world.git("rev-parse", LEDGER)
    tree = site.world.git("rev-parse", f"{LEDGER}~1^{{tree}}")
    data = site.world.git("cat-file", "commit", grant)
    forged = site.commit_object(data.replace(site.world.git("rev-parse", f"{grant}^{{tree}}"), tree, 1) + "\n")
    put_on_top(site, forged)
    unchanged(site, site.sync("ada"), before, "the tree of event")


def test_an_illegal_event_in_a_history(site: Site) -> None:
    """Its number leaps: also a person who vouches cannot bring that in."""
    before = site.refs()
    data = site.world.git("cat-file", "commit", LEDGER)
    seq = int(data.split("Seq: ")[1].split()[0])
    forged = site.commit_object(
        data.replace(f'"seq":{seq}', f'"seq":{seq + 7}').replace(f"Seq: {seq}", f"Seq: {seq + 7}") + "\n"
    )
    put_on_top(site, forged)
    unchanged(site, site.sync("ada"), before, "is not legal")


def test_claim_refs_come_along(site: Site) -> None:
    before = site.refs()
    leap(site, "ada")
    specs = [spec for spec in site.refspecs() if "shared/b/@bob" not in spec]
    unchanged(site, site.push("--atomic", "origin", *specs, account="ada"), before, "which must follow it")


def test_what_was_written_since_is_never_replaced(site: Site) -> None:
    """Only an epoch may be replaced, since it grants nothing; and numbers do not go back by that."""
    lost = site.world.git("rev-parse", LEDGER)
    head = leap(site, "ada")
    assert site.sync("ada").code == 0
    before = site.refs()
    # Another clone has seen an event more than ada's, on top of what she has brought back.
    for ref in (LEDGER, "refs/gitcoord/tip"):
        site.world.git("update-ref", ref, lost)
    site.claim("shared/c", agent="bob")
    unchanged(site, site.sync("ada"), before, "does not build on")
    longer = site.world.git("rev-parse", LEDGER)
    leap(site, "ada", 999_999)
    unchanged(site, site.sync("ada"), before, "does not leap above")
    for ref in (LEDGER, "refs/gitcoord/tip"):
        site.world.git("update-ref", ref, longer)
    leap(site, "ada", 3_000_000)
    done = site.sync("ada")
    assert done.code == 0 and site.private() == site.local(), done
    # Now somebody writes; the same again would undo it.
    site.claim("shared/d", agent="bob")
    assert site.sync("bob").code == 0
    before = site.refs()
    for ref in (LEDGER, "refs/gitcoord/tip"):
        site.world.git("update-ref", ref, head)
    leap(site, "ada", 9_000_000)
    unchanged(site, site.sync("ada"), before, "does not build on")


def test_where_events_are_signed_each_needs_its_own_signature(site: Site) -> None:
    site.setting("signing", "ssh")
    (site.bare / "gitcoord").mkdir(exist_ok=True)
    (site.bare / "gitcoord/allowed_signers").write_text("")
    before = site.refs()
    leap(site, "ada")
    unchanged(site, site.sync("ada"), before, "is not signed")


# --- real clients, a real server


@pytest.fixture
def realm(served: Served, tmp_path: Path) -> Iterator[Realm]:
    with contextlib.closing(Realm(served, tmp_path)) as made:
        (made.bare / "gitcoord/accounts").write_text(
            '[account "alice"]\nagent = alice\n[account "bob"]\nagent = bob\n[account "carol"]\nagent = carol\nperson = true\n'
        )
        yield made


@pytest.mark.parametrize("server", ["ssh"], indirect=True)
def test_accounts_over_ssh(realm: Realm) -> None:
    alice, bob, carol = (realm.clone(name, name) for name in ("alice", "bob", "carol"))
    backup = realm.place / "backup.git"
    shutil.copytree(realm.bare, backup, symlinks=True)
    assert alice.take("shared/a", "alice").code == 0
    assert bob.take("shared/b", "bob").code == 0
    assert carol.claim("list").code == 0
    for name in ("refs", "packed-refs", "objects"):  # as a backup program does, in place
        path = realm.bare / name
        if path.is_dir():
            shutil.rmtree(path)
            shutil.copytree(backup / name, path)
        elif (backup / name).exists():
            shutil.copy(backup / name, path)
    for clone, name in ((alice, "alice"), (bob, "bob")):
        found = clone.claim("--json", "shared/c", agent=name)
        assert found.code == 4 and WORDS in found.json["message"], found
    refused = bob.coord("fsck", "--repair", agent="bob")
    assert refused.code == 1 and "only a person's account" in refused.err, refused
    done = carol.coord("fsck", "--repair", agent="carol")
    assert done.code == 0 and "brought back" in done.out and "claim shared/b by bob" in done.out, done
    assert {"refs/claims/path/shared/a/@alice", "refs/claims/path/shared/b/@bob"} <= realm.refs().keys()
    for clone, name in ((alice, "alice"), (bob, "bob")):
        assert clone.take(f"shared/{'c' if name == 'alice' else 'd'}", name).json["token"] > 1_000_000


def test_an_agent_may_not_begin_a_ledger_with_what_others_did(site: Site) -> None:
    """A person brings the history back to a server that has lost it."""
    for ref in site.private():
        argv = ["git", "-c", "core.hooksPath=/dev/null", "update-ref", "-d", ref]
        subprocess.run(argv, cwd=site.bare, check=True)
    site.claim("shared/c", agent="bob")
    before = site.refs()
    unchanged(site, site.sync("bob"), before, "only a person's account may bring events back")

"""Signed events: the key decides who acts, not the account that pushes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.server.support import Site, unchanged
from tests.support import COORD

LEDGER = "refs/heads/gitcoord"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path).setup()
    for name in ("alice", "bob", "new"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(tmp_path / name)], check=True
        )
    site.setting("signing", "ssh")
    return site


def key(site: Site, *words: str, code: int = 0) -> str:
    verb, *rest = words
    done = subprocess.run(
        [*COORD, "server", "key", verb, str(site.bare), *rest], cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def sign(site: Site, name: str) -> None:
    """The ledger's last commits, all those that the server lacks, signed anew with this key."""
    old = site.private()[LEDGER]
    commits = site.world.git("rev-list", "--reverse", f"{old}..{LEDGER}").split()
    parent = old
    moved: dict[str, str] = {}
    for commit in commits:
        data = site.world.git("cat-file", "commit", commit)
        lines = data.split("\n")
        lines[1] = f"parent {parent}"
        payload = "\n".join(lines) + "\n"
        file = site.place / "payload"
        file.write_text(payload)
        (site.place / "payload.sig").unlink(missing_ok=True)
        subprocess.run(
            ["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(site.place / name), str(file)], check=True,
            capture_output=True,
        )  # fmt: skip
        signature = (site.place / "payload.sig").read_text().rstrip("\n").replace("\n", "\n ")
        head, _, message = payload.partition("\n\n")
        parent = moved[commit] = site.commit_object(f"{head}\ngpgsig {signature}\n\n{message}")
    for ref, oid in site.local().items():
        if oid in moved:
            site.world.git("update-ref", ref, moved[oid])
    site.world.git("update-ref", "refs/gitcoord/tip", parent)


def test_only_the_agents_own_key_counts(site: Site) -> None:
    key(site, "add", "alice", str(site.place / "alice.pub"))
    key(site, "add", "bob", str(site.place / "bob.pub"))
    before = site.refs()
    site.claim("shared/a", agent="alice")
    unchanged(site, site.sync(), before, "is not signed")
    sign(site, "bob")
    unchanged(site, site.sync(), before, "not signed by a key that the server knows as that of 'alice'")
    site.world.git("update-ref", LEDGER, before[LEDGER])
    for ref in list(site.local()):
        if ref not in before:
            site.world.git("update-ref", "-d", ref)
    site.world.git("update-ref", "refs/gitcoord/tip", before[LEDGER])
    site.claim("shared/a", agent="alice")
    sign(site, "alice")
    done = site.sync()
    assert done.code == 0, done


def test_a_key_is_rotated_and_revoked(site: Site) -> None:
    key(site, "add", "alice", str(site.place / "alice.pub"))
    site.claim("shared/a", agent="alice")
    sign(site, "alice")
    assert site.sync().code == 0
    key(site, "rotate", "alice", str(site.place / "new.pub"))
    before = site.refs()
    site.claim("shared/b", agent="alice")
    sign(site, "alice")
    unchanged(site, site.sync(), before, "not signed by a key")
    key(site, "add", "alice", str(site.place / "alice.pub"))
    assert site.sync().code == 0
    assert key(site, "list").count("alice ") == 2
    key(site, "revoke", "alice", str(site.place / "new.pub"))
    key(site, "revoke", "alice")
    assert key(site, "list") == ""
    key(site, "revoke", "alice", code=1)
    before = site.refs()
    site.claim("release", "shared/a", agent="alice")
    sign(site, "alice")
    unchanged(site, site.sync(), before, "refused")


def test_a_signed_event_is_not_played_again(site: Site) -> None:
    """A signature covers parent and tree: moved elsewhere in the ledger it is worth nothing."""
    key(site, "add", "alice", str(site.place / "alice.pub"))
    site.claim("shared/a", agent="alice")
    sign(site, "alice")
    assert site.sync().code == 0
    grant = site.refs()[LEDGER]
    site.claim("release", "shared/a", agent="alice")
    sign(site, "alice")
    assert site.sync().code == 0
    before = site.refs()
    data = site.world.git("cat-file", "commit", grant)
    tree, parent = site.world.git("rev-parse", f"{grant}^{{tree}}"), site.world.git("rev-parse", f"{grant}^")
    moved = (
        data.replace(parent, before[LEDGER])
        .replace('"seq":3', '"seq":5')
        .replace("Seq: 3", "Seq: 5")
        .replace('"part":1', '"part":0')
    )
    assert moved != data and tree in moved
    again = site.commit_object(moved + "\n")
    ref = "refs/claims/path/shared/a/@alice"
    done = site.push("--atomic", "origin", f"{again}:{LEDGER}", f"{again}:{ref}")
    unchanged(site, done, before, "not signed by a key")
    unchanged(site, site.push("--force", "origin", f"{grant}:{LEDGER}"), before, "does not build on")


def test_keys_that_are_none(site: Site, tmp_path: Path) -> None:
    key(site, "add", "alice", str(site.place / "alice"), code=2)
    key(site, "add", "alice", "/dev/null", code=2)
    key(site, "add", "Alice!", str(site.place / "alice.pub"), code=2)
    assert not (site.bare / "gitcoord/allowed_signers").exists() and os.path.exists(tmp_path)

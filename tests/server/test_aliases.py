"""Symbolic refs on the server: a push to an alias moves its target, so the target is judged. What git itself does, too."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.server.support import Site, unchanged
from tests.support import git

LEDGER = "refs/heads/gitcoord"
MAIN = "refs/heads/main"
A = "refs/claims/path/shared/a/@alice"
NOTHING = "0" * 40
ACCOUNTS = '[account "alice"]\n agent = alice\n[account "bob"]\n agent = bob\n'


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """`master` is an alias of main, which has two commits; alice holds shared/a."""
    site = Site(tmp_path)
    site.commit({"shared/b": "b2\n"})
    assert site.push("origin", "main").code == 0
    site.setup()
    site.accounts(ACCOUNTS)
    git(site.bare, "config", "receive.denyDeleteCurrent", "ignore")
    site.claim("shared/a", agent="alice")
    assert site.sync("alice").code == 0
    alias(site, "refs/heads/master", MAIN)
    return site


def alias(site: Site, name: str, target: str) -> None:
    git(site.bare, "symbolic-ref", name, target)


def raw(site: Site, account: str, *rows: str) -> Done:
    """A push as a client of one's own would make it: old value, new value and name as one likes. No object is sent."""
    lines = [row + ("\0report-status" if not number else "") + "\n" for number, row in enumerate(rows)]
    data = b"".join(f"{len(line) + 4:04x}{line}".encode() for line in lines) + b"0000"
    if any(row.split()[1] != NOTHING for row in rows):
        data += git(site.bare, "pack-objects", "--stdout", data=b"")
    done = subprocess.run(
        ["git", "receive-pack", str(site.bare)], input=data, capture_output=True, check=False, timeout=60,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GITCOORD_ACCOUNT": account},
    )  # fmt: skip
    assert b"this is a bug" not in done.stderr
    return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


# --- code


@pytest.mark.parametrize("name", ["refs/heads/master", "refs/heads/other", "refs/tags/main"])
def test_main_is_not_rewound_nor_deleted_through_an_alias(site: Site, name: str) -> None:
    if name != "refs/heads/master":
        alias(site, name, "refs/heads/master")  # an alias of an alias
    before = site.refs()
    straight = site.push("--force", "origin", f"main~1:{MAIN}", account="bob")
    unchanged(site, straight, before, "shared/b", "[unclaimed]")
    unchanged(site, site.push("--force", "origin", f"main~1:{name}", account="bob"), before, "shared/b", "[unclaimed]")
    unchanged(site, site.push("origin", f":{name}", account="bob"), before, "everybody's work lands", name)


def test_what_may_be_pushed_to_main_may_be_pushed_to_its_alias(site: Site) -> None:
    new = site.commit({"shared/a": "alice's\n"}, "alice")
    before = site.refs()
    unchanged(site, site.push("origin", "main:master", account="bob"), before, "shared/a")
    assert site.push("origin", "main:master", account="alice").code == 0
    assert site.refs()[MAIN] == site.refs()["refs/heads/master"] == new


def test_main_that_is_an_alias_itself_is_guarded_under_both_names(site: Site) -> None:
    git(site.bare, "-c", "core.hooksPath=/dev/null", "branch", "-m", "main", "trunk")
    alias(site, MAIN, "refs/heads/trunk")
    before = site.refs()
    for name in ("main", "trunk", "master"):
        unchanged(site, site.push("--force", "origin", f"main~1:{name}", account="bob"), before, "[unclaimed]")
        unchanged(site, site.push("origin", f":{name}", account="bob"), before, "everybody's work lands")


def test_the_alias_and_its_target_in_one_push(site: Site) -> None:
    """The same twice is one move; anything else is refused, by the gate before git would."""
    before, old = site.refs(), site.world.git("rev-parse", "main~1")
    assert site.push("--force", "origin", "main~1:main", "main~1:master", account="bob").code != 0
    new = site.commit({"shared/a": "alice's\n"}, "alice")
    rows = [f"{before[MAIN]} {new} {MAIN}", f"{before[MAIN]} {old} refs/heads/master"]
    assert site.push("origin", "main:refs/heads/work", account="alice").code == 0  # the objects are there
    for pushed in (rows, rows[::-1], [rows[1], f"{old} {new} refs/heads/third"]):
        alias(site, "refs/heads/third", MAIN)
        assert "ng " in raw(site, "alice", *pushed).out, pushed
        assert site.refs()[MAIN] == before[MAIN]
    assert site.push("origin", "main", "main:master", account="alice").code == 0
    assert site.refs()[MAIN] == new


def test_an_alias_of_what_is_not_there(site: Site) -> None:
    """git makes the target."""
    alias(site, "refs/heads/dangling", "refs/heads/new")
    alias(site, "refs/heads/below", f"{LEDGER}/x")
    alias(site, "refs/heads/private", "refs/gitcoord/tip")
    alias(site, "refs/heads/hidden", "refs/replace/" + site.refs()[MAIN])
    before = site.refs()
    for name in ("below", "private", "hidden"):
        done = site.push("origin", f"main:refs/heads/{name}", account="bob")
        unchanged(site, done, before, "refused")
    assert site.push("origin", "main:refs/heads/dangling", account="bob").code == 0
    assert site.refs()["refs/heads/new"] == before[MAIN]


def test_a_circle_and_a_broken_alias(site: Site) -> None:
    alias(site, "refs/heads/one", "refs/heads/two")
    (site.bare / "refs/heads/two").write_text("ref: refs/heads/one\n")
    (site.bare / "refs/heads/odd").write_text("ref: ../../config\n")
    before, config = site.refs(), (site.bare / "config").read_bytes()
    for name in ("one", "odd"):
        unchanged(site, site.push("origin", f"main:refs/heads/{name}", account="bob"), before, "could not be judged")
    assert (site.bare / "config").read_bytes() == config


def test_head_and_refs_that_are_links(site: Site) -> None:
    """git itself takes no name but below refs/; a link of the file system is a symbolic ref if it says so."""
    before, old = site.refs(), site.world.git("rev-parse", "main~1")
    assert "ng HEAD" in raw(site, "bob", f"{before[MAIN]} {old} HEAD").out
    assert "ng HEAD" in raw(site, "bob", f"{before[MAIN]} {NOTHING} HEAD").out
    (site.bare / "refs/heads/link").symlink_to("refs/heads/main")
    before = site.refs()
    unchanged(site, site.push("--force", "origin", "main~1:refs/heads/link", account="bob"), before, "[unclaimed]")


# --- the ledger


def test_the_ledger_and_claims_through_an_alias(site: Site) -> None:
    alias(site, "refs/heads/book", LEDGER)
    alias(site, "refs/heads/grant", A)
    alias(site, "refs/heads/beat", "refs/gitcoord/sessions/alice")
    before = site.refs()
    for words in (f"+{LEDGER}~1:refs/heads/book", ":refs/heads/book", "+main:refs/heads/book"):
        unchanged(site, site.push("origin", words, account="bob"), before, "refused")
    for name in ("grant", "beat"):
        for words in (f":refs/heads/{name}", f"+main:refs/heads/{name}"):
            unchanged(site, site.push("origin", words, account="bob"), before, "refused")


def test_a_legal_push_of_the_ledger_through_an_alias(site: Site) -> None:
    """It is judged as a push of the ledger, so it lands as one, and only whole."""
    alias(site, "refs/heads/book", LEDGER)
    site.claim("shared/b", agent="bob")
    specs = [spec.replace(f":{LEDGER}", ":refs/heads/book") for spec in site.refspecs()]
    before = site.refs()
    unchanged(site, site.push("--atomic", "origin", *specs, account="alice"), before, "may not act for 'bob'")
    unchanged(site, site.push("origin", specs[-1], account="bob"), before, "refused")
    assert site.push("--atomic", "origin", *specs, account="bob").code == 0
    assert site.private() == site.local()


@pytest.mark.parametrize("name", [LEDGER, A, "refs/gitcoord/probe/x", "refs/gitcoord/sessions/bob"])
def test_a_name_of_ours_that_is_an_alias(site: Site, name: str) -> None:
    """Neither the ledger nor main would be judged rightly."""
    git(site.bare, "-c", "core.hooksPath=/dev/null", "update-ref", "-d", name)
    alias(site, name, MAIN)
    before = site.refs()
    for words in (f"+main~1:{name}", f":{name}"):
        done = site.push("origin", words, account="bob")
        unchanged(site, done, before, "refused")
        assert name in done.err


def test_a_deploy_through_an_alias(tmp_path: Path) -> None:
    """A deploy branch is recognised by its own name and by its alias."""
    site = Site(tmp_path, config='[deploy "production"]\n\tref = refs/heads/production\n').setup()
    old = site.world.git("rev-parse", "main")
    site.commit({"free/x": "2\n"}, "alice")
    named = ("agent=alice",)
    assert site.push("origin", "main", "main:refs/heads/release", options=named).code == 0
    alias(site, "refs/heads/production", "refs/heads/release")
    before = site.refs()
    for name in ("production", "release"):
        done = site.push("--force", "origin", f"{old}:refs/heads/{name}", options=named)
        unchanged(site, done, before, "[stale-deploy]")

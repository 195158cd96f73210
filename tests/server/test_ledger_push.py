"""Pushes of the ledger through the gate: what clients do lands; what the rules would not have made does not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gitcoord.ledger.sessions import SLOT_MS
from tests.server.support import Site, unchanged
from tests.support import git

pytestmark = pytest.mark.both_gits


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path).setup()


def test_a_day_of_work_lands(site: Site) -> None:
    """Claims, a refusal, heartbeats, releases with work, sessions, a kill: each is one push, and each lands."""
    site.claim("shared/a", agent="alice")
    assert site.sync().code == 0
    site.claim("shared/b", "free", agent="bob")
    site.claim("--mode", "read", "src", agent="carol")
    assert site.sync().code == 0, "two agents of one machine in one push"
    commit = site.commit({"shared/a": "a2\n"}, "alice")
    site.claim("release", "shared/a", agent="alice")
    done = site.sync()
    assert done.code != 0 and "push it first" in done.err and commit[:12] in done.err
    assert site.push("origin", "HEAD:refs/heads/work").code == 0
    assert site.sync().code == 0
    for words in (["start"], ["halt", "--reason", "x"], ["unhalt"], ["kill", "bob"], ["revive", "bob"], ["stop"]):
        own = words[0] in ("start", "stop")
        done = site.world.coord(*words, agent="carol") if own else site.world.person(*words)
        assert done.code == 0, done
        assert site.sync().code == 0, words
    assert site.private() == site.local()


def test_a_silent_holder_is_expired(site: Site) -> None:
    site.claim("--ttl", "60s", "shared/a", agent="alice")
    assert site.sync().code == 0
    site.world.fall_silent("alice")
    assert site.sync().code == 0
    site.claim("shared/a", agent="bob")
    assert "expire shared/a" in "".join(site.world.events())
    done = site.sync()
    assert done.code == 0, done
    assert site.private() == site.local()


def test_an_expiry_against_the_servers_clock(site: Site) -> None:
    """The client is sure that alice has expired; the server has just received her heartbeat."""
    site.claim("--ttl", "60s", "shared/a", agent="alice")
    assert site.sync().code == 0
    before = site.refs()
    beat = site.local()["refs/gitcoord/sessions/alice"]
    site.world.fall_silent("alice")
    site.claim("shared/a", agent="bob")
    done = site.sync()
    unchanged(site, done, before, "held by alice")
    assert before["refs/gitcoord/sessions/alice"] == beat


def test_a_whole_history_may_begin_a_ledger(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.world.init()
    for name in ("alice", "bob"):
        site.claim(f"shared/{name}", agent=name)
    site.claim("release", "shared/bob", agent="bob")
    assert site.world.coord("stop", agent="bob").code == 0
    site.accounts('[account "alice"]\nagent = alice\nperson = true\n[account "bob"]\nagent = bob\n')
    assert "may not act for 'bob'" in site.sync("alice").err, "the last command is the pusher's own"
    assert "only a person's account" in site.sync("bob").err, "what others did is a person's to bring"
    site.accounts('[account "alice"]\nagent = alice\n[account "bob"]\nagent = bob\nperson = true\n')
    done = site.sync("bob")
    assert done.code == 0, done
    assert site.private() == site.local() and len(site.private()) == 4


def test_a_repository_without_a_ledger_is_open(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.commit({"shared/a": "2\n"})
    assert site.push("origin", "main").code == 0
    before = site.refs()
    unchanged(site, site.push("origin", "main:refs/replace/" + "a" * 40), before, "would hide commits")
    unchanged(site, site.push("origin", "main:refs/gitcoord/tip"), before, "not for pushing")
    unchanged(site, site.push("origin", "main:refs/claims/path/x/@alice"), before, "no ledger")


def test_a_probe_is_answered(site: Site) -> None:
    assert site.push("origin", "main:refs/gitcoord/probe/abc").code == 0
    assert site.push("origin", ":refs/gitcoord/probe/abc").code == 0


def test_claim_refs_may_be_mended(site: Site) -> None:
    """A push that only brings claim refs to what the ledger says; a client does that after a torn transaction."""
    site.claim("shared/a", agent="alice")
    assert site.sync().code == 0
    (ref,) = [ref for ref in site.private() if ref.startswith("refs/claims/")]
    oid = site.private()[ref]
    _by_hand(site, "update-ref", "-d", ref)
    before = site.refs()
    other = site.world.git("rev-parse", "refs/heads/gitcoord~1")
    unchanged(site, site.push("origin", f"{other}:{ref}"), before, "does not name the event")
    assert site.push("origin", f"{oid}:{ref}").code == 0
    site.claim("release", "shared/a", agent="alice")
    assert site.sync().code == 0
    _by_hand(site, "update-ref", ref, oid)
    assert site.push("origin", f":{ref}").code == 0


def _by_hand(site: Site, *words: str) -> None:
    git(site.bare, "-c", "core.hooksPath=/dev/null", *words)


def test_a_torn_push_is_mended(site: Site) -> None:
    """The server died between two refs: whichever half is there, the client's next push completes or clears it."""
    site.claim("shared/a", agent="alice")
    shutil.copytree(site.top / ".git/objects", site.bare / "objects", dirs_exist_ok=True)
    local = site.local()
    _by_hand(site, "update-ref", "refs/heads/gitcoord", local["refs/heads/gitcoord"])
    assert site.sync().code == 0 and site.private() == local, "the ledger moved, its refs did not"
    site.claim("shared/b", agent="alice")
    shutil.copytree(site.top / ".git/objects", site.bare / "objects", dirs_exist_ok=True)
    ref = "refs/claims/path/shared/b/@alice"
    _by_hand(site, "update-ref", ref, site.local()[ref])
    assert site.push("origin", f":{ref}").code == 0, "a claim ref without its event is nobody's"
    _by_hand(site, "update-ref", ref, site.local()[ref])
    assert site.sync().code == 0 and site.private() == site.local(), "a claim ref moved, the ledger did not"


def test_a_first_push_says_its_own_limit(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.world.init()
    site.claim("shared/a", agent="alice")
    before = site.refs()
    site.setting("maxHistory", "1")
    done = site.sync()
    unchanged(site, done, before, "more than 1 events", "gitcoord.server.maxHistory")
    assert "maxEvents" not in done.err


def test_limits_say_their_setting(site: Site) -> None:
    site.claim("shared/a", agent="alice")
    site.claim("shared/b", agent="alice")
    before = site.refs()
    site.setting("maxEvents", "1")
    unchanged(site, site.sync(), before, "gitcoord.server.maxEvents")
    site.setting("maxEvents", "100")
    site.setting("maxEventBytes", "100")
    unchanged(site, site.sync(), before, "gitcoord.server.maxEventBytes")
    site.setting("maxEventBytes", "nonsense")
    unchanged(site, site.sync(), before, "could not be judged")
    site.setting("maxEventBytes", "100000")
    assert site.sync().code == 0


def test_silence_is_counted_on_the_servers_own_clock(site: Site) -> None:
    """alice works on another machine. bob's machine has watched her heartbeat for hours; the server first saw it just now."""
    site.claim("--ttl", "60s", "shared/a", agent="alice")
    ref = "refs/gitcoord/sessions/alice"
    beat = json.loads(site.world.git("cat-file", "blob", ref)) | {"boot": "another machine"}
    text = json.dumps(beat, sort_keys=True, separators=(",", ":")) + "\n"
    site.world.git("update-ref", ref, site.blob(text.encode()))
    assert site.sync().code == 0
    before = site.refs()
    assert site.world.claim("shared/a", agent="bob").code == 1, "bob's machine sees it for the first time"
    _watched_for(site.top / ".git/gitcoord/seen/alice", 3600)
    site.claim("shared/a", agent="bob")
    unchanged(site, site.sync(), before, "held by alice")
    _watched_for(site.bare / "gitcoord/seen/alice", 20)
    unchanged(site, site.sync(), before, "held by alice")
    _watched_for(site.bare / "gitcoord/seen/alice", 60 + SLOT_MS // 1000)
    assert site.sync().code == 0, "a slot and ttl x 1.2 have passed"


def _watched_for(note: Path, seconds: int) -> None:
    """Let this host have seen the heartbeat so much earlier."""
    oid, boot, mono = note.read_text().split("\n")
    note.write_text(f"{oid}\n{boot}\n{max(0, int(mono) - seconds * 1000)}")  # this one may have started just now


def test_an_account_sets_up(tmp_path: Path) -> None:
    """The first event is by 'init' if no agent is named; from the second on the account's agents act."""
    site = Site(tmp_path)
    site.accounts('[account "alice"]\nagent = alice\n')
    site.world.init()
    assert site.sync("nobody").code != 0
    assert site.sync("alice").code == 0
    site.claim("shared/a", agent="alice")
    assert site.sync("alice").code == 0


def test_only_an_account_of_both_inherits(site: Site) -> None:
    """An agent inherits from an ended session if the same account acts for both."""
    site.setup()
    site.claim("src/a", agent="alice")
    assert site.sync().code == 0
    site.world.write("src/a", "half\n")
    site.world.coord("stop", "--keep", agent="alice")
    assert site.sync().code == 0
    site.accounts('[account "a"]\n\tagent = alice\n[account "b"]\n\tagent = bob\n[account "both"]\n\tagent = *\n')
    site.claim("src/a", agent="bob")
    assert "inherit src/a of alice by bob" in site.world.events()
    assert "may not act for 'alice'" in site.sync("b").err
    assert site.sync("both").code == 0

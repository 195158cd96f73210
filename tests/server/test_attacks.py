"""Attacks: each is refused, and every ref of the server is where it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server.support import CLAIM_BODY, Site, forge, unchanged
from tests.support import git

ACCOUNTS = """
[account "alice"]
    agent = alice
[account "bob"]
    agent = bob
    agent = bob.*
[account "ada"]
    agent = ada
    agent = ada_at_example.com
    person = true
[account "ci"]
    agent = *
"""
A = "refs/claims/path/shared/a/@alice"
LEDGER = "refs/heads/gitcoord"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """alice holds shared/a; alice, bob and the person ada have accounts."""
    site = Site(tmp_path).setup()
    site.accounts(ACCOUNTS)
    for agent, path in (("alice", "shared/a"), ("bob", "free")):
        site.claim(path, agent=agent)
        assert site.sync(agent).code == 0
    return site


# --- the ledger


def test_forged_agent(site: Site) -> None:
    before = site.refs()
    site.claim("release", "shared/a", agent="alice")
    unchanged(site, site.sync("bob"), before, "'bob' may not act for 'alice'")


def test_unknown_and_missing_accounts(site: Site) -> None:
    before = site.refs()
    site.claim("shared/b", agent="alice")
    unchanged(site, site.sync("eve"), before, "'eve' is not known")
    unchanged(site, site.sync(), before, "GITCOORD_ACCOUNT is not set")


def test_forged_token(site: Site) -> None:
    """A grant of what another holds; and one under a number that is not next."""
    before = site.refs()
    site.world.git("update-ref", "refs/keep", LEDGER)
    body = {**CLAIM_BODY, "items": [["path", "shared"]], "mode": "write"}
    head = site.world.git("rev-parse", LEDGER)
    tree = site.world.git("rev-parse", f"{LEDGER}^{{tree}}")
    _raw(site, head, tree, {**body, "seq": 6})
    unchanged(site, site.sync("bob"), before, "held by alice")
    _raw(site, head, tree, {**body, "items": [["path", "docs"]], "seq": 1000})
    unchanged(site, site.sync("bob"), before, "refused")


def _raw(site: Site, parent: str, tree: str, body: dict[str, object], agent: str = "bob", kind: str = "claim") -> str:
    """A commit written by hand, canonical in form, with a tree of the forger's choice."""
    at = int(site.world.git("log", "-1", "--format=%ct", LEDGER))
    event = {"v": 1, "kind": kind, "agent": agent, "at": at, "nonce": "raw", "part": 0, **body}
    line = json.dumps(event, sort_keys=True, separators=(",", ":"))
    items = event.get("items")
    name = items[0][1] if isinstance(items, list) else ""
    who = f"{agent} <{agent}@gitcoord.invalid> {at} +0000"
    text = f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\n{kind} {name} by {agent}\n\n{line}\n\nSeq: {event['seq']}\nKind: {kind}\n"
    oid = site.commit_object(text)
    site.world.git("-c", "core.hooksPath=/dev/null", "update-ref", LEDGER, oid)
    return oid


def test_a_tree_that_the_event_does_not_make(site: Site) -> None:
    """The event is one that the rules would make; its tree drops alice's claim beside."""
    before = site.refs()
    head = site.world.git("rev-parse", LEDGER)
    site.claim("shared/b", agent="bob")
    index = {"GIT_INDEX_FILE": str(site.place / "index")}

    def plumb(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=site.top, env={**os.environ, **index}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    plumb("read-tree", LEDGER)
    plumb("rm", "-q", "--cached", "claims/path/shared/a/@alice")
    data = site.world.git("cat-file", "commit", LEDGER)
    old = site.world.git("rev-parse", f"{LEDGER}^{{tree}}")
    forged = site.commit_object(data.replace(old, plumb("write-tree"), 1) + "\n")
    site.world.git("update-ref", LEDGER, forged)
    site.world.git("update-ref", "refs/claims/path/shared/b/@bob", forged)
    unchanged(site, site.sync("bob"), before, "the tree of event")
    assert head == before[LEDGER]


@pytest.mark.parametrize("change", [("author bob", "author eve"), ("\n\n", "\nx-more: 1\n\n"), ("claim ", "grant ")])
def test_a_commit_that_is_not_written_as_gitcoord_writes_it(site: Site, change: tuple[str, str]) -> None:
    before = site.refs()
    site.claim("shared/b", agent="bob")
    forged = site.commit_object(site.world.git("cat-file", "commit", LEDGER).replace(*change, 1) + "\n")
    site.world.git("update-ref", LEDGER, forged)
    site.world.git("update-ref", "refs/claims/path/shared/b/@bob", forged)
    unchanged(site, site.sync("bob"), before, "is not written as gitcoord writes it")


def test_rewound_rewritten_and_deleted_ledger(site: Site) -> None:
    before = site.refs()
    unchanged(
        site, site.push("--force", "origin", f"{LEDGER}~1:{LEDGER}", account="alice"), before, "does not build on"
    )
    unchanged(site, site.push("--force", "origin", f"main:{LEDGER}", account="alice"), before, "is no event")
    unchanged(site, site.push("origin", f":{LEDGER}", account="alice"), before, "may not be deleted")
    tree = site.world.git("rev-parse", f"{LEDGER}^{{tree}}")
    merge = site.world.git("commit-tree", tree, "-p", LEDGER, "-p", "main", "-m", "x")
    unchanged(site, site.push("origin", f"{merge}:{LEDGER}", account="alice"), before, "refused")


def test_another_ledger_in_its_place(site: Site, tmp_path: Path) -> None:
    before = site.refs()
    (tmp_path / "other").mkdir()
    other = Site(tmp_path / "other")
    other.world.init()
    other.world.git("remote", "set-url", "origin", str(site.bare))
    done = other.push("--force", "origin", LEDGER, account="alice")
    unchanged(site, done, before, "does not build on the ledger that is here")


def test_a_replayed_event(site: Site) -> None:
    """bob pushes an event of alice again after it was undone."""
    grant = site.refs()[A]
    site.claim("release", "shared/a", agent="alice")
    assert site.sync("alice").code == 0
    before = site.refs()
    unchanged(site, site.push("--force", "origin", f"{grant}:{LEDGER}", account="bob"), before, "does not build on")
    unchanged(site, site.push("origin", f"{grant}:{A}", account="bob"), before, "stands for no claim")
    data = site.world.git("cat-file", "commit", grant)
    parent = site.world.git("rev-parse", f"{grant}^")
    again = site.commit_object(data.replace(parent, before[LEDGER]) + "\n")
    unchanged(site, site.push("origin", f"{again}:{LEDGER}", account="alice"), before, "refused")


def test_only_people_mend_or_move_a_ledger(site: Site) -> None:
    before = site.refs()
    forge(site, ("epoch", "bob", {"reason": "x"}, {"seq": 10**9}))
    unchanged(site, site.sync("bob"), before, "only a person")


def test_a_takeover_by_an_agent(site: Site) -> None:
    before = site.refs()
    token = json.loads(site.world.git("show", f"{LEDGER}:claims/path/shared/a/@alice"))["token"]
    body = {"space": "path", "path": "shared/a", "holder": "alice", "token": token, "reason": "mine"}
    forge(site, ("takeover", "bob", body, {}), ("claim", "bob", {**CLAIM_BODY, "reason": "mine"}, {}))
    unchanged(site, site.sync("bob"), before, "only a person")


def test_a_clock_that_is_far_off(site: Site) -> None:
    before = site.refs()
    forge(site, ("halt", "bob", {"reason": ""}, {"at": 4_000_000_000}))
    unchanged(site, site.sync("bob"), before, "more than a day off")


def test_a_nonce_that_is_no_word(site: Site) -> None:
    before = site.refs()
    forge(site, ("halt", "bob", {"reason": ""}, {"nonce": "a/../b", "keep": {}}))
    unchanged(site, site.sync("bob"), before, "is not a nonce")


def test_a_branch_in_the_ledgers_way(tmp_path: Path) -> None:
    site = Site(tmp_path)
    unchanged(site, site.push("origin", "main:refs/heads/gitcoord/x"), site.refs(), "not for pushing")


# --- claim refs


def test_a_foreign_claim_deleted(site: Site) -> None:
    before = site.refs()
    unchanged(site, site.push("origin", f":{A}", account="bob"), before, "only the ledger ends it")
    unchanged(site, site.push("origin", f":{A}", account="alice"), before, "only the ledger ends it")


def test_a_claim_ref_that_points_elsewhere(site: Site) -> None:
    before = site.refs()
    site.world.git("tag", "-a", "-m", "x", "t", LEDGER)
    huge = site.blob(b"x" * 10_000_000)
    for target in ("refs/tags/t", "main^{tree}", huge, "main"):
        done = site.push("--force", "origin", f"{target}:{A}", account="alice")
        unchanged(site, done, before, "refused")
    done = site.push("origin", f"{before[A]}:refs/claims/path/other/@bob", account="bob")
    unchanged(site, done, before, "stands for no claim")


def test_a_grant_with_claim_refs_that_do_not_follow(site: Site) -> None:
    """The ledger alone; with another's ref; with one too many."""
    before = site.refs()
    site.claim("shared/b", agent="bob")
    b = "refs/claims/path/shared/b/@bob"
    unchanged(site, site.push("--atomic", "origin", LEDGER, account="bob"), before, "which must follow it")
    words = ("--atomic", "origin", LEDGER, f"{before[A]}:{b}")
    unchanged(site, site.push(*words, account="bob"), before, "not left where the ledger says")
    more = f"{LEDGER}:refs/claims/path/shared/c/@bob"
    unchanged(site, site.push("--atomic", "origin", LEDGER, b, more, account="bob"), before, "stands for no claim")
    assert site.sync("bob").code == 0


# --- heartbeats


def test_beating_for_another(site: Site) -> None:
    before = site.refs()
    site.world.fall_silent("alice")
    unchanged(site, site.sync("bob"), before, "may not act for 'alice'")


def test_heartbeats_that_are_none(site: Site) -> None:
    before = site.refs()
    ref = "refs/gitcoord/sessions/bob"
    beat = json.loads(site.world.git("cat-file", "blob", ref))
    wrong: list[dict[str, object]] = [
        {"agent": "alice"},
        {"session": 7},
        {"slot": 10**9},
        {"mono": 10**14},
        {"judged": 3},
        {"killed": 3},
        {"x": 1},
    ]
    for change in wrong:
        text = json.dumps({**beat, **change}, sort_keys=True, separators=(",", ":")) + "\n"
        done = site.push("--force", "origin", f"{site.blob(text.encode())}:{ref}", account="bob")
        unchanged(site, done, before, "refused")
    for target in (site.blob(b"x" * 100_000), "main", "main^{tree}"):
        unchanged(site, site.push("--force", "origin", f"{target}:{ref}", account="bob"), before, "refused")
    unchanged(site, site.push("origin", f":{ref}", account="bob"), before, "may not be deleted")
    unchanged(site, site.push("origin", "main:refs/gitcoord/sessions/a b", account="bob"), before)


def test_the_killed_do_not_beat(site: Site) -> None:
    old = site.private()["refs/gitcoord/sessions/alice"]
    assert site.world.person("kill", "alice").code == 0
    before = site.refs()
    unchanged(site, site.push("--atomic", "origin", LEDGER, f":{A}", account="ada"), before, "must also replace")
    assert site.sync("ada").code == 0
    before = site.refs()
    done = site.push("--force", "origin", f"{old}:refs/gitcoord/sessions/alice", account="alice")
    unchanged(site, done, before, "was killed")
    site.claim("release", "free", agent="bob")
    site.commit({"free/x": "2\n"}, "alice")
    unchanged(site, site.push("origin", "main", account="alice"), before, "[killed]")


def test_an_agents_account_kills_and_halts_nobody(site: Site) -> None:
    """Its client may say that a person acts; the account tells that none does."""
    before = site.refs()
    body = {"target": "alice", "session": 1, "reason": "", "freed": [["path", "shared/a"]]}
    tomb = {"agent": "alice", "session": 1, "slot": 1, "killed": 4}
    forge(site, ("kill", "bob", body, {}), beats=(tomb,))
    unchanged(site, site.sync("bob"), before, "only a person")
    assert site.world.coord("fsck").code == 0, "a ledger in which an agent killed another stays valid"


def test_an_expiry_that_leaves_the_heartbeat(site: Site) -> None:
    """Otherwise a heartbeat in between would not be noticed."""
    site.world.fall_silent("alice")
    assert site.sync("alice").code == 0
    before = site.refs()
    site.claim("shared/a", agent="bob")
    specs = [spec for spec in site.refspecs() if "sessions/alice" not in spec]
    unchanged(site, site.push("--atomic", "origin", *specs, account="bob"), before, "must also replace")
    assert site.sync("bob").code == 0


# --- code


def test_the_guard_changed_with_what_it_guards(site: Site) -> None:
    before = site.refs()
    site.commit({".gitattributes": "\n", "locked/z": "2\n"}, "bob")
    unchanged(
        site, site.push("origin", "main", account="bob", options=("agent=bob",)), before, "[guard]", "[own-files]"
    )


def test_an_unclaimed_and_a_held_path(site: Site) -> None:
    before = site.refs()
    site.commit({"shared/b": "2\n"}, "bob")
    done = site.push("origin", "main", account="bob", options=("agent=bob",))
    unchanged(site, done, before, "shared/b", "[unclaimed]")
    site.world.git("reset", "-q", "--hard", "HEAD~1")
    site.commit({"shared/a": "2\n"}, "bob")
    done = site.push("origin", "main", account="bob", options=("agent=bob",))
    unchanged(site, done, before, "shared/a", "[held]", "alice holds it")


def test_naming_the_holder_in_a_trailer(site: Site) -> None:
    """bob writes 'Agent: alice' under what he did."""
    before = site.refs()
    site.commit({"shared/a": "2\n"}, "alice")
    done = site.push("origin", "main", account="bob", options=("agent=bob",))
    unchanged(site, done, before, "[held]")
    assert site.push("origin", "main", account="alice").code == 0


def test_a_forced_push_that_drops_what_landed(site: Site) -> None:
    site.commit({"shared/a": "2\n"}, "alice")
    assert site.push("origin", "main", account="alice").code == 0
    before = site.refs()
    done = site.push("--force", "origin", "main~1:main", account="bob", options=("agent=bob",))
    unchanged(site, done, before, "shared/a", "[held]")
    unchanged(site, site.push("origin", ":main", account="bob", options=("agent=bob",)), before, "undo all of it")


def test_replace_refs(site: Site) -> None:
    """A pushed one is refused; one that is there already hides nothing."""
    before = site.refs()
    good, evil = site.world.git("rev-parse", "main"), site.commit({"shared/b": "2\n"}, "bob")
    done = site.push("origin", f"{good}:refs/replace/{evil}", account="bob")
    unchanged(site, done, before, "would hide commits")
    tree = site.world.git("rev-parse", f"{good}^{{tree}}")
    harmless = site.world.git("commit-tree", tree, "-p", good, "-m", "nothing")
    shutil.copytree(site.top / ".git/objects", site.bare / "objects", dirs_exist_ok=True)
    git(site.bare, "update-ref", f"refs/replace/{evil}", harmless)
    before = site.refs()
    done = site.push("origin", "main", account="bob", options=("agent=bob",))
    unchanged(site, done, before, "shared/b", "[unclaimed]")


def test_a_push_that_is_not_atomic(site: Site) -> None:
    """git moves the refs one by one, and might stop in the middle; from 2.51 on in one batch, which is whole or nothing."""
    before = site.refs()
    site.claim("shared/b", agent="bob")
    done = site.push("origin", *site.refspecs(), account="bob")
    if done.code == 0:
        assert site.private() == site.local()
    else:
        unchanged(site, done, before, "must move together", "--atomic")
        assert site.sync("bob").code == 0


@pytest.mark.parametrize("refused", ["refs/claims/*", "refs/heads/gitcoord"])
def test_a_push_of_which_git_drops_a_part(site: Site, refused: str) -> None:
    """Another hook refuses one ref. In a push that is not atomic git goes on with the others, and must not."""
    hook = site.bare / "hooks/update"
    hook.write_text(f"#!/bin/sh\ncase $1 in {refused}) exit 1 ;; esac\n")
    hook.chmod(0o755)
    before = site.refs()
    site.claim("shared/b", agent="bob")
    unchanged(site, site.push("origin", *site.refspecs(), account="bob"), before, "must move together")
    unchanged(site, site.sync("bob"), before)


def test_a_push_option_that_claims_another_identity(site: Site) -> None:
    before = site.refs()
    site.commit({"shared/a": "2\n"})
    done = site.push("origin", "main", account="bob", options=("agent=alice",))
    unchanged(site, done, before, "may not act for 'alice'")
    unchanged(site, site.push("origin", "main", account="bob", options=("agent=../x",)), before, "not an agent name")
    done = site.push("origin", "main", account="ci")
    unchanged(site, done, before, "git push -o agent=<name>")
    assert site.push("origin", "main", account="ci", options=("agent=alice",)).code == 0


def test_mirror_and_prune(site: Site, tmp_path: Path) -> None:
    """Accidents: a clone without the ledger mirrors what it has, which would wipe the claims."""
    before = site.refs()
    git(tmp_path, "clone", "-q", "--bare", "--single-branch", "-b", "main", str(site.bare), "copy")
    for words in (("--mirror",), ("--prune", "+refs/*:refs/*")):
        done = subprocess.run(
            ["git", "-C", str(tmp_path / "copy"), "push", words[0], str(site.bare), *words[1:]],
            env={**os.environ, "GITCOORD_ACCOUNT": "alice"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode != 0 and "refused" in done.stderr and site.refs() == before


def test_moving_refs_by_hand(site: Site) -> None:
    """On the server itself: a move by hand is distinguished from packing, which is allowed."""
    before = site.refs()
    for words in (("update-ref", "-d", A), ("update-ref", LEDGER, f"{LEDGER}~1"), ("update-ref", A, LEDGER)):
        git(site.bare, *words, ok=False)
        assert site.refs() == before
    git(site.bare, "pack-refs", "--all", "--prune")
    assert site.refs() == before
    git(site.bare, "update-ref", "-d", A, ok=False)
    assert site.refs() == before
    git(site.bare, "gc", "-q")
    assert site.refs() == before
    site.claim("release", "shared/a", agent="alice")
    assert site.sync("alice").code == 0, "a packed claim ref is deleted by a push"
    assert A not in site.refs()

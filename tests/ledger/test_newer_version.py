"""A ledger that a newer version has written, by its bytes: this one says to upgrade, writes nothing and repairs nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from gitcoord.base.codec import UPGRADE, NewerVersion, Record, dumps, loads
from gitcoord.base.codec import UPGRADE_SERVER as SERVER
from gitcoord.base.names import LEDGER, TIP
from gitcoord.ledger.event import Event, apply, commit_bytes, decode_event
from gitcoord.ledger.format import FORMAT_MINOR, LANDINGS, QUEUE, format_record
from gitcoord.ledger.state import State
from gitcoord.ledger.watch import Follower, place_now
from gitcoord.world.open import environ, open_repository
from tests.cli.support import Done, World
from tests.ledger.remote.support import Fleet
from tests.ledger.test_golden import history
from tests.server.support import Site, unchanged
from tests.support import git

COMMANDS = (
    ["claim", "y"],
    ["claim", "list"],
    ["claim", "release", "x"],
    ["coord", "fsck"],
    ["coord", "fsck", "--repair"],
)
Change = Callable[[str], str]
LATER: dict[str, Change] = {
    "the next version": lambda message: message.replace('"v":1', '"v":2'),
    "an unknown kind": lambda message: message.replace('"kind":"halt"', '"kind":"later"').replace(
        "Kind: halt", "Kind: later"
    ),
    "an unknown key": lambda message: message.replace('"nonce"', '"later":1,"nonce"'),
}


HALT: Record = {"reason": ""}


def put_on_top(
    where: Path, change: Change = str, *refs: str, kind: str = "halt", body: Record = HALT, seq: int = 0, minor: int = 0
) -> str:
    """One more event in this repository's ledger, changed as a newer version may write it; LEDGER and TIP, or `refs`, move to it."""
    parent, tree = git(where, "rev-parse", LEDGER, f"{LEDGER}^{{tree}}").decode().split()
    last = int(git(where, "log", "-1", "--format=%(trailers:key=Seq,valueonly)", LEDGER))
    event = Event(kind, seq or last + 1, "ada", int(time.time()), "n", 0, body)
    data = change(commit_bytes(event, _tree(where, minor) if minor else tree, parent).decode()).encode()
    oid = git(where, "hash-object", "-t", "commit", "-w", "--stdin", data=data).decode().strip()
    for ref in refs or (LEDGER, TIP):
        git(where, "-c", "core.hooksPath=/dev/null", "update-ref", ref, oid)
    return oid


def _tree(where: Path, minor: int) -> str:
    """The ledger's tree with another minor version of the format."""
    record = {**loads(git(where, "cat-file", "blob", f"{LEDGER}:format")), "minor": minor}
    blob = git(where, "hash-object", "-w", "--stdin", data=f"{dumps(record)}\n".encode()).decode().strip()
    rows = git(where, "ls-tree", LEDGER).decode().splitlines()
    rows = [f"100644 blob {blob}\tformat" if row.endswith("\tformat") else row for row in rows]
    return git(where, "mktree", data="".join(f"{row}\n" for row in rows).encode()).decode().strip()


def says_upgrade(done: Done, *words: str) -> None:
    assert done.code == 4 and f"hint: {UPGRADE}" in done.err, (words, done)
    assert "--repair" not in done.out + done.err and "repaired" not in done.out, (words, done)


@pytest.fixture
def here(tmp_path: Path) -> World:
    world = World(tmp_path / "here", ledger=True)
    assert world.claim("x", agent="ada").code == 0
    return world


def test_without_the_change_it_is_an_event(here: World) -> None:
    put_on_top(here.top)
    assert here.claim("list").code == 0


@pytest.mark.parametrize("name", LATER)
def test_an_event_on_top(here: World, name: str) -> None:
    put_on_top(here.top, LATER[name])
    before = here.refs()
    for verb, *words in COMMANDS:
        says_upgrade(getattr(here, verb)(*words, agent="ada"), *words)
    assert here.refs() == before


@pytest.mark.parametrize("name", LATER)
def test_an_event_below_others(here: World, name: str) -> None:
    put_on_top(here.top, LATER[name])
    put_on_top(here.top)
    before = here.refs()
    for words in (["fsck"], ["fsck", "--repair"]):
        says_upgrade(here.coord(*words, agent="ada"), *words)
    assert here.refs() == before


@pytest.mark.parametrize("gone", [TIP, LEDGER])
def test_a_repair_does_not_go_on_from_an_older_event(here: World, gone: str) -> None:
    put_on_top(here.top, LATER["the next version"])
    here.git("update-ref", "-d", gone)
    before = here.refs()
    says_upgrade(here.coord("fsck", "--repair", agent="ada"))
    assert here.refs() == before


def test_a_newer_minor_is_read_and_not_written(here: World) -> None:
    put_on_top(here.top, minor=FORMAT_MINOR + 1)
    before = here.refs()
    assert here.claim("list").code == 0
    for verb, *words in COMMANDS:
        if words != ["list"]:
            says_upgrade(getattr(here, verb)(*words, agent="ada"), *words)
    assert here.refs() == before


def test_a_repair_that_an_earlier_version_made_still_counts(here: World) -> None:
    """It has named the event that it did not know, so the ledger goes on without it."""
    seq = len(here.events())
    newer = put_on_top(here.top, LATER["an unknown kind"])
    put_on_top(here.top, kind="repair", body={"skipped": [newer], "reason": ""}, seq=seq + 1)
    assert here.coord("fsck").code == 0


@pytest.mark.parametrize("name", LATER)
def test_at_a_remote_without_a_gate(tmp_path: Path, name: str) -> None:
    fleet = Fleet(tmp_path, ("one",))
    (one,) = fleet.joined()
    assert one.claim("x", agent="ada").code == 0
    put_on_top(fleet.bare, LATER[name], LEDGER)
    before = fleet.refs()
    for verb, *words in COMMANDS:
        says_upgrade(one.run(f"git-{verb}", *words, agent="ada"), *words)
    two = fleet.add("two")
    says_upgrade(two.run("git-coord", "init", "--remote", "origin", agent="ada"), "init")
    assert not two.state()
    says_upgrade(two.run("git-coord", "setup", agent="ada"), "setup")
    assert fleet.refs() == before


@pytest.mark.parametrize("below", [False, True], ids=["on top", "below others"])
def test_at_a_remote_that_lost_it(tmp_path: Path, below: bool) -> None:
    """A repair would push the events again, without the claims that the newer one granted."""
    fleet = Fleet(tmp_path, ("one",))
    (one,) = fleet.joined()
    lost = fleet.refs()
    assert one.claim("x", agent="ada").code == 0
    put_on_top(one.repo, LATER["the next version"])
    if below:
        put_on_top(one.repo)
    fleet.git("update-ref", LEDGER, lost[LEDGER])
    before = fleet.refs()
    says_upgrade(one.run("git-coord", "fsck", "--repair", agent="ada"))
    assert fleet.refs() == before


def test_who_follows_the_ledger(here: World) -> None:
    with chdir(here.top):
        ctx = open_repository(environ(), writing=False)
        follower = Follower(ctx, place_now(ctx))
        put_on_top(here.top, LATER["the next version"])
        with pytest.raises(NewerVersion):
            list(follower.new())
        ctx.store.close()


def test_a_server_with_a_gate(tmp_path: Path) -> None:
    """It takes no such event, and judges nothing on top of one."""
    site = Site(tmp_path).setup()
    site.claim("shared/b", agent="bob")
    assert site.sync().code == 0
    before = site.refs()
    for change in LATER.values():
        old = site.world.head
        put_on_top(site.top, change)
        unchanged(site, site.sync(), before, "is no event of the ledger", SERVER)
        for ref in (LEDGER, TIP):
            site.world.git("update-ref", ref, old)
    newer = put_on_top(site.bare, LATER["the next version"], LEDGER)
    git(site.top, "fetch", "-q", "origin", f"{LEDGER}:{LEDGER}")
    before = site.refs()
    put_on_top(site.top)
    unchanged(site, site.sync(), before, "a newer version of gitcoord has written", SERVER)

    put_on_top(site.bare, str, LEDGER)
    site.accounts('[account "ada"]\nagent = ada\nperson = true\n')
    git(site.top, "fetch", "-q", "origin", f"+{LEDGER}:{LEDGER}")
    before = site.refs()
    put_on_top(site.top, kind="repair", body={"skipped": [newer], "reason": ""})
    put_on_top(site.top, kind="epoch", body={"reason": ""}, seq=1000)
    unchanged(site, site.sync("ada"), before, "this ledger has a newer format", SERVER)


def test_earlier_versions_are_told_to_upgrade() -> None:
    """They look at the format's minor version: it is raised no later than the first event that they do not know."""
    state = State()
    needed = {
        "wait": QUEUE,
        "leave": QUEUE,
        "promote": QUEUE,
        "note": QUEUE,
        "seen": QUEUE,
        "landing": LANDINGS,
        "land": LANDINGS,
    }
    found = set()
    for message in history()[0].log:
        record = loads(message.split(b"\n\n")[1])
        state = apply(state, decode_event(message))
        keys = {key for key in ("granted", "past") if key in record}
        found |= {record["kind"], *keys}
        least = max([needed.get(record["kind"], 0), *(QUEUE for _ in keys)])
        assert format_record(state).minor >= least, record
    assert found >= {*needed, "granted"}

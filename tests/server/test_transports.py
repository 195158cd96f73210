"""Every transport with the gate behind it: machines join, claim and are refused, and no account acts as another."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.ledger.remote.longlived import LongLived, pushes_by_git, with_pushes_noted
from tests.races.support import running, wait_until
from tests.server.realm import Clone, Realm
from tests.server.servers import Served

NAMED = pytest.mark.parametrize("server", ["ssh", "http", "gitolite"], indirect=True)
WIRED = pytest.mark.parametrize("server", ["file", "ssh", "http", "git"], indirect=True)


@pytest.fixture
def realm(served: Served) -> Iterator[Realm]:
    """In a directory with a short name, since the name of a clone is part of that of a socket, which has a limit."""
    with tempfile.TemporaryDirectory(prefix="gc-", dir="/tmp") as place:
        with contextlib.closing(Realm(served, Path(place))) as made:
            yield made


@pytest.fixture
def machines(realm: Realm) -> tuple[Clone, Clone]:
    """alice's and bob's."""
    return realm.clone("one", "alice"), realm.clone("two", "bob")


def refused(answer: Done, error: str, *words: str) -> None:
    assert (answer.code, answer.json["error"]) == (1, error), answer
    for word in words:
        assert word in answer.json["message"], answer


def test_two_machines(realm: Realm, machines: tuple[Clone, Clone]) -> None:
    """There is one holder for all machines; and code lands only under a claim, also without the client's hooks."""
    one, two = machines
    assert one.take("shared/a", "alice").code == 0
    found = two.take("shared/a", "bob")
    refused(found, "held")
    assert [row["agent"] for row in found.json["held"]] == ["alice"]
    two.work("shared/a", "bob")
    before = realm.refs()
    pushed = two.push()
    assert pushed.code == 1 and "remote: " in pushed.err and realm.refs() == before
    assert "shared/a" in pushed.err and "alice" in pushed.err and "[held]" in pushed.err, pushed
    two.work("shared/b", "bob")
    pushed = two.push()
    assert pushed.code == 1 and "[unclaimed]" in pushed.err and realm.refs() == before, pushed
    one.work("shared/a", "alice")
    assert one.push().code == 0
    assert one.release("shared/a", "alice").code == 0
    assert two.take("shared/a", "bob").code == 0
    two.work("shared/a", "bob")
    assert two.push().code == 0
    realm.assert_sound()


@WIRED
def test_a_process_that_lives_long(realm: Realm, machines: tuple[Clone, Clone]) -> None:
    one, two = machines
    with LongLived(one, "alice", with_pushes_noted(one)) as alice:
        for path in ("shared/a", "shared/b"):
            assert alice.ask("take", path) == "ok"
        refused(two.take("shared/a", "bob"), "held")
        assert two.take("shared/c", "bob").code == 0
        assert alice.ask("take", "shared/c").startswith("held ")
        assert alice.ask("release", "shared/a") == "ok"
        assert two.take("shared/a", "bob").code == 0
        assert alice.ask("take", "shared/d") == "ok"
    assert bool(pushes_by_git(one)) == (realm.served.server.kind == "file"), (
        "over a path git pushes, else the process itself"
    )
    realm.assert_sound()


@pytest.mark.parametrize("server", ["http"], indirect=True)
def test_a_process_that_lives_long_without_the_password(realm: Realm) -> None:
    """Only git knows the password: then git pushes."""
    one = realm.clone("one", "alice")
    one.git("remote", "set-url", "origin", one.client.url.replace("alice:secret-of-alice@", ""))
    one.git("config", "credential.helper", "!f() { echo username=alice; echo password=secret-of-alice; }; f")
    with LongLived(one, "alice") as alice:
        assert alice.ask("take", "shared/a") == "ok"
        assert alice.ask("release", "shared/a") == "ok"
    realm.assert_sound()


# --- another address ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("server", ["git", "http"], indirect=True)
def test_another_address_of_the_same_server(realm: Realm) -> None:
    one = realm.clone("one", "alice")
    two = realm.clone("two", "bob", joins=False)
    url = two.client.url.replace("127.0.0.1", "localhost")
    two.git("remote", "set-url", "origin", url)
    found = two.coord("init", "--remote", "origin", "--json")
    refused(found, "elsewhere")
    two.join("--same")
    assert one.take("shared/a", "alice").code == 0
    refused(two.take("shared/a", "bob"), "held")
    realm.assert_sound()


@pytest.mark.parametrize("server", ["http"], indirect=True)
def test_a_password_in_the_address_stays_here(realm: Realm) -> None:
    """Everybody reads the ledger."""
    one = realm.clone("one", "alice")
    assert "secret-of-alice" in one.client.url
    written = realm.git("log", "-p", "--format=%B", "refs/heads/gitcoord")
    assert "127.0.0.1" in written and "secret" not in written


# --- who pushes ---------------------------------------------------------------------------------------------------


@NAMED
def test_who_pushes(realm: Realm) -> None:
    """An account acts for its own agents only; where it has several, a push names one of them."""
    one, three = realm.clone("one", "alice"), realm.clone("three", "carol")
    for agent, path in (("carol", "shared/a"), ("dave", "shared/b"), ("ci-7", "shared/c")):
        assert three.take(path, agent).code == 0
    before = realm.refs()
    # Forged agents, in events and in code.
    found = one.take("shared/d", "dave")
    refused(found, "host", "may not act for 'dave'")
    assert "its agents are alice: GITCOORD_AGENT=<name>" in found.json["hints"], found
    refused(one.claim("release", "--json", "shared/b", agent="dave"), "host", "may not act for 'dave'")
    one.work("shared/b", "dave")
    forged = one.push(option="dave")
    assert forged.code == 1 and "may not act for 'dave'" in forged.err, forged
    forged = one.push()  # the trailer alone: it is alice who pushes
    assert forged.code == 1 and "[held]" in forged.err, forged
    # Several agents.
    three.work("shared/b", "nobody")
    done = three.push()
    assert done.code == 1 and "several agents" in done.err, done
    done = three.push(option="alice")
    assert done.code == 1 and "may not act for 'alice'" in done.err, done
    done = three.push(option="ci-7")
    assert done.code == 1 and "[held]" in done.err and realm.refs() == before, done
    three.work("shared/b", "dave")
    assert three.push(option="dave").code == 0
    realm.assert_sound()


# --- signing ------------------------------------------------------------------------------------------------------


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "keys"
    place.mkdir()
    for name in ("alice", "bob", "new"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(place / name)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    yield place


def signs(clone: Clone, key: Path | None) -> None:
    clone.git("config", "gitcoord.signing", "ssh" if key else "off")
    if key:
        clone.git("config", "gitcoord.signingKey", str(key))


@pytest.mark.parametrize("server", ["git"], indirect=True)
def test_signed_events(realm: Realm, machines: tuple[Clone, Clone], keys: Path) -> None:
    """An event counts if its agent's key signed it and the server lists the key, for any account that pushes."""
    one, two = machines
    realm.git("config", "gitcoord.server.signing", "ssh")

    def key(verb: str, agent: str, *files: str) -> None:
        done = realm.server("key", verb, str(realm.bare), agent, *(str(keys / file) for file in files))
        assert done.code == 0, done

    key("add", "alice", "alice.pub")
    key("add", "bob", "bob.pub")
    before = realm.refs()
    refused(one.take("shared/a", "alice"), "host", "is not signed")
    signs(one, keys / "bob")
    refused(one.take("shared/a", "alice"), "host", "not signed by a key that the server knows as that of 'alice'")
    assert realm.refs() == before
    signs(one, keys / "{agent}")
    signs(two, keys / "bob")
    assert one.take("shared/a", "alice").code == 0
    refused(two.take("shared/a", "bob"), "held")
    assert two.take("shared/b", "bob").code == 0
    key("rotate", "alice", "new.pub")
    before = realm.refs()
    refused(one.claim("release", "--json", "shared/a", agent="alice"), "host", "not signed by a key")
    signs(one, keys / "new")
    assert realm.refs() == before
    assert one.release("shared/a", "alice").code == 0
    key("revoke", "alice", "new.pub")
    before = realm.refs()
    refused(one.take("shared/a", "alice"), "host", "not signed by a key")
    assert realm.refs() == before and two.take("shared/a", "bob").code == 0
    realm.assert_sound()


@pytest.mark.parametrize("server", ["ssh"], indirect=True)
def test_a_waiter_keeps_one_connection(realm: Realm, served: Served, machines: tuple[Clone, Clone]) -> None:
    """A waiter looks through one connection."""
    one, two = machines
    assert two.take("shared/a", "bob").code == 0

    def logged(words: str) -> int:
        return served.server.log.read_text(errors="replace").count(words)

    apart = served.by("alice").env  # a clone here has a connection that is kept already
    with running(one.start("git-claim", "--wait", "5m", "shared/a", agent="alice", env=apart)) as waiter:
        assert waiter.stderr is not None and waiter.stdout is not None
        assert waiter.stderr.readline().startswith("waiting: 1st of 1")
        logins, looks = logged("Accepted publickey"), logged("Starting session")
        wait_until("it has looked four times", lambda: logged("Starting session") >= looks + 4)
        assert logged("Accepted publickey") <= logins + 1
        assert two.release("shared/a", "bob").code == 0
        assert waiter.stdout.readline().startswith("claimed shared/a")
    assert one.release("shared/a", "alice").code == 0
    realm.assert_sound()

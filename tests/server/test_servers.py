"""The servers themselves: each transport clones, pushes and pulls, tells hooks who pushes, and can be cut or killed."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Self

import pytest

from tests.server.link import Link, Way
from tests.server.machines import Machine
from tests.server.process import DEADLINE, Port, end_family, wait_for
from tests.server.secure import Sshd
from tests.server.servers import KINDS, Client, Served, kinds, serving
from tests.support import git

REMOTE = [kind for kind in KINDS if kind != "file"]
NETWORK = pytest.mark.parametrize("server", REMOTE, indirect=True)
# The hook says that it runs and waits until the test says go (a named pipe opens when both ends do).
WAITING = "echo entered >entered\nread word <go\n"


def commit(work: Path, text: str) -> str:
    (work / "file").write_text(text)
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", text)
    return head(work)


def head(work: Path) -> str:
    return git(work, "rev-parse", "HEAD").decode().strip()


def cloned(client: Client, work: Path) -> Path:
    client.git(work.parent, "clone", "-q", client.url, str(work))
    return work


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with a commit that no server has; quicker than a clone."""
    git(tmp_path, "init", "-q", "-b", "main", "work")
    commit(tmp_path / "work", "hello")
    return tmp_path / "work"


class Push:
    """A push that has been started, on another machine if one is given. Ended with the block, whatever happens there."""

    def __init__(self, client: Client, work: Path, there: Machine | None = None) -> None:
        words, env = client.command(work, "push", client.url, "HEAD:refs/heads/main")
        words = there.wrap(words) if there else words
        self._process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def runs(self) -> bool:
        return self._process.poll() is None

    def fails(self) -> bool:
        """Wait for its end; its words are shown if the test fails."""
        _, err = self._process.communicate(timeout=DEADLINE)
        print(err)
        return self._process.returncode != 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.runs():
            end_family(self._process.pid)
        self._process.communicate()


def go(served: Served) -> None:
    """The hook that waits goes on."""
    (served.bare / "go").write_text("go\n")


def hold_in_hook(served: Served) -> None:
    """From now on pre-receive waits until `go`."""
    os.mkfifo(served.bare / "go")
    served.hook("pre-receive", WAITING)


def wait_in_hook(served: Served, pushing: Push) -> None:
    wait_for("pre-receive", (served.bare / "entered").exists, pushing.runs)


def test_clone_push_and_pull(served: Served, tmp_path: Path) -> None:
    alice, bob = served.by("alice"), served.by("bob")
    one, two = cloned(alice, tmp_path / "one"), cloned(bob, tmp_path / "two")
    oid = commit(one, "hello")
    alice.git(one, "push", "-q", "origin", "main")
    assert served.tip() == oid
    bob.git(two, "pull", "-q", "origin", "main")
    assert (two / "file").read_text() == "hello"


def test_hook_sees_who_pushes(served: Served, work: Path) -> None:
    served.hook("pre-receive", "env >environment\n")
    for account in ("alice", "bob"):
        commit(work, account)
        client = served.by(account)
        env = dict(client.env)
        if served.server.variable:
            # What the client itself says about its account does not count, even if ssh sends it.
            env |= {"GITCOORD_ACCOUNT": "carol", "GL_USER": "carol", "REMOTE_USER": "carol"}
            env["GIT_SSH_COMMAND"] = env.get("GIT_SSH_COMMAND", "ssh") + " -o SendEnv='GITCOORD_* GL_* REMOTE_*'"
        Client(client.url, env).git(work, "push", "-q", client.url, "HEAD:refs/heads/main")
        seen = dict(
            line.split("=", 1) for line in (served.bare / "environment").read_text().splitlines() if "=" in line
        )
        assert seen.get(served.server.variable, "") == (account if served.server.variable else "")
        assert "carol" not in seen.values()


def test_hook_refuses_and_the_pusher_reads_why(served: Served, work: Path) -> None:
    served.hook("pre-receive", "echo 'not on a Friday' >&2\nexit 1\n")
    alice = served.by("alice")
    done = alice.run(work, "push", alice.url, "main")
    assert done.returncode == 1
    assert "remote: not on a Friday" in done.stderr
    assert served.tip() == ""


@pytest.mark.parametrize("server", ["ssh", "http", "gitolite"], indirect=True)
def test_a_stranger_gets_nothing(served: Served, tmp_path: Path) -> None:
    alice = served.by("alice")
    stranger = Client(alice.url.replace("secret-of-alice", "guessed"), alice.env)
    if isinstance(served.server, Sshd):
        key = tmp_path / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        config = (served.server.place / "alice.ssh").read_text()
        (tmp_path / "config").write_text(config.replace(str(served.server.place / "alice"), str(key)))
        stranger = Client(alice.url, {"GIT_SSH_COMMAND": f"ssh -F '{tmp_path}/config'"})
    done = stranger.run(tmp_path, "ls-remote", stranger.url)
    assert done.returncode == 128
    assert any(word in done.stderr for word in ("Permission denied", "Authentication failed")), done.stderr
    alice.git(tmp_path, "ls-remote", alice.url)


@pytest.mark.parametrize("server", ["ssh", "gitolite"], indirect=True)
def test_one_kept_connection(served: Served, tmp_path: Path) -> None:
    assert isinstance(served.server, Sshd)
    logins = served.server.log.read_text().count("Accepted publickey")
    with served.server.kept(served.by("alice")) as alice:
        for _ in range(3):
            alice.git(tmp_path, "ls-remote", alice.url)
    assert served.server.log.read_text().count("Accepted publickey") == logins + 1


@NETWORK
def test_cut_before_the_answer(served: Served, link: Link, work: Path) -> None:
    """The client fails, and yet the server has the commit."""
    alice = served.by("alice", port=link.port.number)
    oid = head(work)
    hold_in_hook(served)
    with Push(alice, work) as pushing:
        wait_in_hook(served, pushing)
        link.hold(down=True)
        go(served)
        wait_for("the server's commit", lambda: served.tip() == oid)
        assert pushing.runs()
        link.cut()
        assert pushing.fails()
    refused = alice.run(work, "ls-remote", alice.url)
    assert refused.returncode == 128
    link.mend()
    assert oid in alice.git(work, "ls-remote", alice.url)


@NETWORK
def test_stalled_and_resumed(served: Served, link: Link, work: Path) -> None:
    alice = served.by("alice", port=link.port.number)
    oid = head(work)
    hold_in_hook(served)
    with Push(alice, work) as pushing:
        wait_in_hook(served, pushing)
        link.hold(up=True, down=True)
        go(served)
        wait_for("the server's commit", lambda: served.tip() == oid)
        assert pushing.runs()
        link.resume()
        assert not pushing.fails()


def test_nothing_passes_a_held_link() -> None:
    target = Port()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((target.host, target.number))
        listener.listen()
        with Link(target) as link, socket.create_connection((target.host, link.port.number)) as client:
            server, _ = listener.accept()
            with server:
                ways: list[tuple[Way, socket.socket, socket.socket]] = [
                    ("up", client, server),
                    ("down", server, client),
                ]
                for way, sender, receiver in ways:
                    receiver.settimeout(DEADLINE)
                    sender.sendall(b"one")
                    assert receiver.recv(100) == b"one"
                    link.hold(up=way == "up", down=way == "down")
                    sender.sendall(b"two")
                    # The bytes are there at once (loopback), and the link has gone round more often than it needs.
                    assert [link.passed(way) for _ in range(20)] == [3] * 20
                    link.resume()
                    assert receiver.recv(100) == b"two"
                    link.hold_after(**{way: 2})
                    sender.sendall(b"three")
                    link.wait_reached()
                    assert receiver.recv(100) == b"th"
                    link.resume()
                    assert receiver.recv(100) == b"ree"
                link.cut()
                for end in (client, server):
                    with pytest.raises(ConnectionResetError):
                        end.recv(100)
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection((target.host, link.port.number))
    target.close()


@pytest.mark.parametrize("server", ["git", "http"], indirect=True)
@pytest.mark.parametrize("sent", [1, 100, 1000, 3000])
def test_cut_within_the_request(served: Served, link: Link, work: Path, sent: int) -> None:
    """Exactly so many bytes of it arrive, and nothing lands."""
    commit(work, os.urandom(3000).hex())
    alice = served.by("alice", port=link.port.number)
    link.cut_after(up=sent)
    with Push(alice, work) as pushing:
        link.wait_reached()
        assert pushing.fails()
    assert link.passed("up") == sent
    assert served.tip() == ""
    link.mend()
    with Push(alice, work) as pushing:
        assert not pushing.fails()
    assert served.tip() == head(work)


@pytest.mark.parametrize("server", ["git"], indirect=True)
def test_cut_within_the_answer(served: Served, link: Link, work: Path) -> None:
    """All but the last byte of what the server says, told by a push of the same size before."""
    alice = served.by("alice", port=link.port.number)
    with Push(alice, work) as pushing:
        assert not pushing.fails()
    answer = link.passed("down")
    git(served.bare, "update-ref", "-d", "refs/heads/main")
    link.cut_after(down=answer - 1)
    with Push(alice, work) as pushing:
        link.wait_reached()
        assert pushing.fails()
    assert link.passed("down") == 2 * answer - 1
    assert served.tip() == head(work)


@NETWORK
def test_killed_with_a_push_inside(served: Served, work: Path) -> None:
    """The whole server goes, the hook and the receive-pack around it too; afterwards it is there again, at its port."""
    alice, oid = served.by("alice"), head(work)
    hold_in_hook(served)
    with Push(alice, work) as pushing:
        wait_in_hook(served, pushing)
        served.server.stop()
        assert pushing.fails()
    # Nobody is left at the other end of the pipe.
    with pytest.raises(OSError, match="No such device or address"):
        os.open(served.bare / "go", os.O_WRONLY | os.O_NONBLOCK)
    assert alice.run(work, "ls-remote", alice.url).returncode == 128
    served.server.start()
    assert served.tip() == ""
    served.hook("pre-receive", "")
    alice.git(work, "push", "-q", alice.url, "main")
    assert served.tip() == oid


@pytest.mark.namespaces
def test_a_pulled_cable(other_machine: Machine, work: Path) -> None:
    """Nobody hears anything until it is plugged in again; then the push ends as if nothing had been."""
    with serving("git", other_machine.host) as server:
        served = server.create("repo")
        hold_in_hook(served)
        with Push(served.by("alice"), work, other_machine) as pushing:
            wait_in_hook(served, pushing)
            other_machine.cut()
            go(served)
            wait_for("the server's commit", lambda: served.tip() == head(work))
            assert pushing.runs()
            other_machine.mend()
            assert not pushing.fails()


def test_a_server_that_does_not_start_shows_its_log() -> None:
    server = kinds()["git"]()
    try:
        with socket.socket() as other:  # somebody else listens there
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind((server.port.host, server.port.number))
            other.listen()
            server.port.answers = lambda: False  # type: ignore[method-assign]
            with pytest.raises(AssertionError, match=r"git-daemon.*has ended(.|\n)*Address already in use"):
                server.start()
    finally:
        server.close()
    assert not server.place.exists()


@pytest.mark.parametrize(("value", "outcome"), [("1", "failed"), ("0", "skipped"), ("", "skipped")])
def test_a_skip_fails_where_servers_are_required(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, value: str, outcome: str
) -> None:
    monkeypatch.setenv("GITCOORD_REQUIRE_SERVERS", value)
    monkeypatch.setattr(kinds()["http"], "programs", ("nginx", "no-such-program"))
    assert kinds()["http"].missing() == "no-such-program"
    reason = "no http server: no-such-program not installed"
    call = pytest.CallInfo.from_call(lambda: pytest.skip(reason), "setup")
    report = request.node.ihook.pytest_runtest_makereport(item=request.node, call=call)
    assert report.outcome == outcome
    assert reason in str(report.longrepr)

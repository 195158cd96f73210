"""The servers themselves: they tell hooks who pushes, let no stranger in, and a held link passes nothing."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from tests.server.link import Link, Way
from tests.server.process import DEADLINE, Port
from tests.server.secure import Sshd
from tests.server.servers import Client, Served, kinds
from tests.support import git


def commit(work: Path, text: str) -> None:
    (work / "file").write_text(text)
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", text)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with a commit that no server has; quicker than a clone."""
    git(tmp_path, "init", "-q", "-b", "main", "work")
    commit(tmp_path / "work", "hello")
    return tmp_path / "work"


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

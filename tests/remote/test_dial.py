"""The ssh connection that is opened ahead of a push: as git itself would open it, one for each claim, and none left behind."""

import fcntl
import os
import signal
import subprocess
from pathlib import Path

import pytest

from gitcoord.store.dial import command
from gitcoord.store.process import clean_environ
from gitcoord.store.repo import Repo
from gitcoord.store.settings import SettingsReader
from tests.race.support import Answer, Project, scratch_env, wait_until
from tests.remote.support import Fleet, Machine

# Stands in for ssh: notes who started it and with what, then does what the test says with the command for the other side.
_SSH = """#!/bin/sh
name=$(tr '\\0' ' ' </proc/$PPID/cmdline)
case $name in *git-claim*) who=gitcoord ;; *) who=git ;; esac
for last; do :; done
echo "$who ${{last%% *}} $$" >>{log}
{does}
"""
_THROUGH = 'exec sh -c "$last"'
_OLD = 1_500_000_000_000_000_000


class Ssh:
    """Machines that reach their server by a stand-in for ssh."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.log = fleet.place / "ssh.log"
        self.program = fleet.place / "ssh"
        self.does(_THROUGH)
        del fleet.env["GIT_CONFIG_NOSYSTEM"]  # nothing is remembered with settings from the environment
        for machine in fleet.joined():
            machine.git("config", "--remove-section", "remote.origin")
            machine.git("config", "remote.origin.url", f"box:{fleet.bare}")
            machine.git("config", "core.sshCommand", str(self.program))
            self.settle(machine)
        self.log.write_text("")

    def settle(self, machine: Machine) -> None:
        """What was written long ago is remembered by the next command, and taken for granted by those after it."""
        os.utime(machine.git_dir / "config", ns=(_OLD, _OLD))
        assert machine.run("git-claim", "renew", agent="nobody").code in (0, 1)

    def does(self, text: str) -> None:
        self.program.write_text(_SSH.format(log=self.log, does=text))
        self.program.chmod(0o755)

    def calls(self) -> list[str]:
        """Who connected to what, since the last time somebody asked."""
        rows = [line.split() for line in self.log.read_text().splitlines()]
        self.log.write_text("")
        return [f"{who} {service}" for who, service, _ in rows]

    def running(self) -> list[int]:
        """Those that were started and have not ended."""
        pids = [int(line.split()[2]) for line in self.log.read_text().splitlines()]
        return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


@pytest.fixture
def ssh(fleet: Fleet) -> Ssh:
    return Ssh(fleet)


def take(machine: Project, path: str, agent: str = "alice", **more: str) -> Answer:
    return machine.run("git-claim", "take", path, "--json", agent=agent, env=more)


# --- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    env = scratch_env(tmp_path)
    subprocess.run(["git", "init", "-q", str(tmp_path / "r")], env=env, check=True)
    (tmp_path / "r/.git/gitcoord").mkdir()
    for name in ("ssh", "other"):
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nprintf "%s\\0" "$@" >{tmp_path}/said\nexit 255\n')
        (tmp_path / "bin" / name).chmod(0o755)
    git(tmp_path, "config", "gitcoord.authority", "origin")
    return tmp_path


def git(place: Path, *words: str, **more: str) -> "subprocess.CompletedProcess[bytes]":
    env = {**scratch_again(place), **more}
    return subprocess.run(["git", *words], cwd=place / "r", env=env, check=False, capture_output=True)


def scratch_again(place: Path) -> dict[str, str]:
    return {"PATH": f"{place / 'bin'}:{os.environ['PATH']}", "HOME": str(place / "home")}


def ours(place: Path, **more: str) -> "list[str] | None":
    environ = {os.fsencode(name): os.fsencode(value) for name, value in {**scratch_again(place), **more}.items()}
    top = str(place / "r")
    repo = Repo(f"{top}/.git", f"{top}/.git", top, "", clean_environ(environ))
    os.chdir(top)
    return command(SettingsReader(repo, environ).read(), environ)


def said(place: Path) -> list[bytes]:
    file = place / "said"
    words = file.read_bytes().split(b"\0")
    file.unlink()
    return words


@pytest.mark.parametrize(
    "url",
    [
        "box:repo.git",
        "box:/srv/a/b.git",
        "ana@box:repo",
        "ssh://box/srv/r.git",
        "ssh://ana@box:2222/srv/r",
        "ssh://10.0.0.1/~x/r",
    ],
)
@pytest.mark.parametrize(
    ("setting", "more"),
    [("", {}), ("ssh -F /none", {}), ("", {"GIT_SSH_COMMAND": "ssh -o 'X Y=1' -v"}), ("other", {"GIT_SSH_COMMAND": "ssh"}), ("", {"GIT_SSH_VARIANT": "ssh"})],
)  # fmt: skip
def test_it_is_what_git_would_run(
    place: Path, url: str, setting: str, more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    git(place, "remote", "add", "origin", url)
    if setting:
        git(place, "config", "core.sshCommand", setting)
    argv = ours(place, **more)
    if "~" in url:
        assert argv is None, "git has a way of its own with that"
        return
    assert argv is not None
    git(place, "commit", "-qm", "x", "--allow-empty", GIT_AUTHOR_NAME="a", GIT_COMMITTER_NAME="a", EMAIL="a@b")
    git(place, "push", "origin", "HEAD:refs/heads/x", **more)
    gits = said(place)
    subprocess.run(argv, env=scratch_again(place), check=False)
    assert said(place) == gits and gits[-2].startswith(b"git-receive-pack '")


@pytest.mark.parametrize(
    "url",
    ["/srv/r.git", "../r.git", "https://box/r", "git://box/r", "file:///r", "ssh://box/a%20b", "ssh://[::1]/r", "[box:22]:r",
     "-oProxyCommand=x:r", "ssh://-x/r", "ssh://box:x/r", "ssh://box:/r", "ssh://u:p@box/r", "box:a b", "box:it's", "box:", ":r", "ext::ssh x",
     "a/b:c", "ssh+git://box/r", "ssh://box", "box:a\nb", "ssh://box:²/r"],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_git(place: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    git(place, "config", "remote.origin.url", url)
    assert ours(place) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("remote.origin.pushurl", "box:other"),
        ("remote.origin.url", "box:other"),
        ("remote.origin.receivepack", "/opt/git-receive-pack"),
        ("url.https://box/.insteadOf", "box:"),
        ("url.box:.pushInsteadOf", "x:"),
        ("ssh.variant", "plink"),
        ("core.sshCommand", "plink -batch"),
        ("core.sshCommand", "/opt/my-ssh"),
        ("core.sshCommand", "'ssh'"),
        ("core.sshCommand", "ssh -v; true"),
        ("core.sshCommand", "ssh -F $HOME/x"),
        ("protocol.ssh.allow", "never"),
        ("gitcoord.authority", "upstream"),
    ],
)
def test_settings_that_lead_elsewhere(place: Path, key: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    git(place, "config", "remote.origin.url", "box:repo.git")
    assert ours(place) is not None
    git(place, "config", *(["--add"] if key == "remote.origin.url" else []), key, value)
    os.utime(place / "r/.git/config", ns=(_OLD, _OLD))
    assert ours(place) is None
    assert ours(place) is None, "also as remembered"


@pytest.mark.parametrize(
    "more", [{"GIT_SSH": "plink"}, {"GIT_SSH_COMMAND": "plink"}, {"GIT_SSH_VARIANT": "plink"}, {"GIT_ALLOW_PROTOCOL": "https"}]
)  # fmt: skip
def test_variables_that_lead_elsewhere(place: Path, more: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    git(place, "config", "remote.origin.url", "box:repo.git")
    assert ours(place, **more) is None


def test_no_secret_is_remembered(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    git(place, "config", "remote.origin.url", "https://ana:s3cret@box/r")
    git(place, "config", "remote.two.url", "ssh://ana:s3cret@box/r")
    git(place, "config", "remote.two.pushurl", "https://s3cret@box/r")
    git(place, "config", "url.https://s3cret@box/.insteadOf", "box:")
    os.utime(place / "r/.git/config", ns=(_OLD, _OLD))
    ours(place)
    kept = (place / "r/.git/gitcoord/settings").read_bytes()
    assert b"url\n-" in kept and b"s3cret" not in kept


# --- the line -------------------------------------------------------------------------------------------------------


def test_a_claim_connects_once_and_ahead(ssh: Ssh) -> None:
    one, two = ssh.fleet.machines
    assert take(one, "a").code == 0
    assert ssh.calls() == ["gitcoord git-receive-pack"]
    refused = take(two, "a", "bob")
    assert refused.code == 1 and refused.json["error"] == "held"
    ssh.calls()
    assert one.run("git-claim", "release", "a", agent="alice").code == 0
    assert ssh.calls() == ["gitcoord git-receive-pack"]
    assert one.refs("refs/heads/gitcoord")["refs/heads/gitcoord"] == ssh.fleet.refs()["refs/heads/gitcoord"]


def test_a_refusal_leaves_nothing_behind(ssh: Ssh) -> None:
    one, _ = ssh.fleet.machines
    assert take(one, "a").code == 0
    ssh.calls()
    before = ssh.fleet.refs()
    assert take(one, "a", "bob").code == 1
    assert ssh.running() == [] and "git git-upload-pack" in ssh.calls(), "what is refused was looked at first"
    assert take(one, "../outside").code == 2
    assert ssh.running() == [] and ssh.fleet.refs() == before


def test_one_that_was_opened_in_vain(ssh: Ssh) -> None:
    """The other side moves on while this one waits: what it saw there is old, so it is asked again."""
    one, two = ssh.fleet.machines
    assert take(one, "b").code == 0
    ssh.calls()
    with (one.git_dir / "gitcoord/queue.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = one.start("git-claim", "a", agent="alice")
        wait_until("it has connected", lambda: bool(ssh.log.read_text()))
        ssh.calls()
        assert take(two, "c", "bob").code == 0
    with process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "gitcoord git-receive-pack" in ssh.calls()
    assert {e["kind"] for e in ssh.fleet.events()} >= {"claim"} and len(ssh.fleet.events("claim")) == 3


def test_others_who_push_make_it_wait(ssh: Ssh) -> None:
    """What rides with others needs no connection of its own."""
    one, _ = ssh.fleet.machines
    (one.git_dir / "gitcoord/batch").mkdir(exist_ok=True)
    (one.git_dir / "gitcoord/batch/open").write_text("")
    assert take(one, "a").code == 0
    assert ssh.calls()[-1] == "git git-receive-pack"


def test_the_words_of_ssh(ssh: Ssh) -> None:
    one, _ = ssh.fleet.machines
    ssh.does("echo 'box: Permission denied (publickey).' >&2; exit 255")
    found = take(one, "a")
    assert found.code == 5 and "Permission denied (publickey)" in found.json["message"], found
    assert ssh.calls() == ["gitcoord git-receive-pack"] and "refs/claims" not in "".join(ssh.fleet.refs())


def test_the_words_of_the_host(ssh: Ssh) -> None:
    one, _ = ssh.fleet.machines
    hook = ssh.fleet.bare / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho closed for today >&2\nexit 1\n")
    hook.chmod(0o755)
    found = take(one, "a")
    assert found.code == 1 and found.json["error"] == "host" and "closed for today" in found.json["message"], found
    assert ssh.running() == []


@pytest.mark.parametrize("where", ["before it speaks", "in the middle"])
def test_a_host_that_does_not_answer(ssh: Ssh, where: str) -> None:
    one, _ = ssh.fleet.machines
    one.git("config", "gitcoord.remoteTimeout", "1")
    ssh.settle(one)
    ssh.calls()
    mute = "cat >/dev/null"  # until nobody speaks to it any more, its own end open
    ssh.does(mute if where == "before it speaks" else f'{{ sh -c "$last" | head -c 40; }} <&0; {mute}')
    found = take(one, "a")
    assert found.code == 5 and "no answer within 1 seconds" in found.json["message"], found
    wait_until("all connections have ended", lambda: not ssh.running())


def test_a_claim_that_is_killed_takes_its_connection_with_it(ssh: Ssh) -> None:
    one, _ = ssh.fleet.machines
    ssh.does("exec cat >/dev/null")
    with one.start("git-claim", "a", agent="alice") as process:
        wait_until("it has connected", lambda: bool(ssh.running()))
        process.send_signal(signal.SIGKILL)
    wait_until("its connection has ended", lambda: not ssh.running())
    ssh.does(_THROUGH)
    assert take(one, "a").code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
def test_a_repository_of_another_owner_starts_nothing(ssh: Ssh) -> None:
    """What is remembered there may be made up, and names a program to run."""
    one, _ = ssh.fleet.machines
    assert take(one, "a").code == 0 and ssh.calls() == ["gitcoord git-receive-pack"]
    for path in (one.repo, *one.repo.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    found = take(one, "b")
    assert found.code in (2, 4) and "safe.directory" in str(found) and ssh.calls() == []

"""OpenSSH, plain and under gitolite3: all users log in to the account that runs the tests, each with an own key."""

from __future__ import annotations

import getpass
import os
import pwd
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

from tests.server.process import program
from tests.server.servers import ACCOUNTS, Client, Served, Server

_SERVER = """ListenAddress {host}:{port}
HostKey {place}/host_key
AuthorizedKeysFile {keys}
AuthenticationMethods publickey
PermitRootLogin prohibit-password
UsePAM {pam}
StrictModes no
PermitUserRC no
PidFile none
UseDNS no
MaxStartups 500
MaxSessions 500
LogLevel VERBOSE
AcceptEnv GIT_PROTOCOL
SetEnv {env}
"""
_CLIENT = """Host *
    User {user}
    IdentityFile {key}
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile {place}/known_hosts
    GlobalKnownHostsFile none
    HostKeyAlias server
    StrictHostKeyChecking yes
    BatchMode yes
    LogLevel ERROR
"""
_RULES = """repo gitolite-admin
    RW+ = alice
repo work/..*
    C   = @all
    RW+ = @all
"""
# Without the lists for gitweb and git daemon that the default settings make at each change; they take seconds.
_SETTINGS = """%RC = (UMASK => 0077, ENABLE => ['help', 'info', 'create', 'ssh-authkeys']);
1;
"""


class Sshd(Server):
    """sshd whose forced commands set GITCOORD_ACCOUNT."""

    kind = "ssh"
    variable = "GITCOORD_ACCOUNT"
    programs = ("sshd", "ssh", "ssh-keygen", "git-shell")

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__(host)
        self._kept = count()
        self.authorized = self.home / ".ssh/authorized_keys"
        self.authorized.parent.mkdir(mode=0o700)

    @classmethod
    def missing(cls) -> str:
        shell = pwd.getpwuid(os.getuid()).pw_shell
        if Path(shell).name in ("nologin", "false"):
            return super().missing() or f"a login shell for {getpass.getuser()} (it has {shell})"
        return super().missing()

    def prepare(self) -> None:
        for name in ("host_key", *ACCOUNTS):
            words = [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(self.place / name)]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        (self.place / "known_hosts").write_text("server " + self.public("host_key"))
        self.authorize()
        self._write_server()
        for name in ACCOUNTS:
            text = _CLIENT.format(user=getpass.getuser(), key=self.place / name, place=self.place)
            (self.place / f"{name}.ssh").write_text(text)

    def public(self, name: str) -> str:
        return (self.place / f"{name}.pub").read_text()

    def authorize(self) -> None:
        forced = 'command="env GITCOORD_ACCOUNT={} git-shell -c \\"$SSH_ORIGINAL_COMMAND\\"",restrict {}'
        self.authorized.write_text("".join(forced.format(name, self.public(name)) for name in ACCOUNTS))

    def _write_server(self) -> None:
        config = self.place / "sshd_config"
        # HOME too: the shell that starts the forced command may read files there.
        env = " ".join(f'"{key}={value}"' for key, value in self.server_env().items())
        text = _SERVER.format(
            host=self.port.host, port=self.port.number, place=self.place, keys=self.authorized, env=env,
            pam="yes" if _locked() else "no",
        )  # fmt: skip
        # From 9.8 on, an address that often fails to log in is shut out; before, the word is an error.
        config.write_text(text + "PerSourcePenalties no\n")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # as its service would; sshd insists
        test = [program("sshd"), "-t", "-f", str(config)]
        if subprocess.run(test, capture_output=True, check=False).returncode:
            config.write_text(text)

    def launch(self) -> None:
        # sshd starts itself again for each connection, so it wants its full path.
        sshd = os.path.abspath(program("sshd"))
        self.run_daemon(sshd, "-D", "-e", "-f", str(self.place / "sshd_config")).wait_ready(self.port.answers)

    def client(self, name: str, account: str, port: int) -> Client:
        return self._client(f"{self.repositories}/{name}.git", account, port)

    def _client(self, path: str, account: str, port: int) -> Client:
        ssh = f"ssh -F {shlex.quote(str(self.place / f'{account}.ssh'))}"
        url = f"ssh://{self.port.host}:{port}/{path.lstrip('/')}"
        return Client(url, {"GIT_SSH_COMMAND": ssh, "GIT_SSH_VARIANT": "ssh"})

    @contextmanager
    def kept(self, client: Client) -> Iterator[Client]:
        """The same through one kept connection (ControlMaster), for any number of commands."""
        host, port = client.url.split("/")[2].split(":")
        ssh = f"{client.env['GIT_SSH_COMMAND']} -S {shlex.quote(str(self.place / f'kept{next(self._kept)}'))}"
        words = [*shlex.split(ssh), "-p", port, host]
        _quietly([*words, "-M", "-N", "-f"]).check_returncode()  # it returns when it is logged in
        try:
            yield Client(client.url, {**client.env, "GIT_SSH_COMMAND": ssh})
        finally:
            _quietly([*words, "-O", "exit"])


class Gitolite(Sshd):
    """gitolite3 in a HOME of its own, behind the same sshd; it tells hooks GL_USER."""

    kind = "gitolite"
    variable = "GL_USER"
    programs = ("sshd", "ssh", "ssh-keygen", "gitolite")

    def authorize(self) -> None:
        """alice administrates; everyone may create and write repositories below work/."""
        self.repositories = self.home / "repositories"
        base = self.home / ".gitolite"
        for name in ("conf", "keydir", "logs"):
            (base / name).mkdir(parents=True)
        for name in ACCOUNTS:
            (base / f"keydir/{name}.pub").write_text(self.public(name))
        (base / "conf/gitolite.conf").write_text(_RULES)
        (self.home / ".gitolite.rc").write_text(_SETTINGS)
        # gitolite 3.6.12 takes its rules from no other branch than master.
        master = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "init.defaultBranch", "GIT_CONFIG_VALUE_0": "master"}
        self._gitolite("setup", "-pk", str(self.place / "alice.pub"), **master)

    def _gitolite(self, *words: str, **env: str) -> None:
        done = subprocess.run(
            [program("gitolite"), *words], cwd=self.place, env={**self.server_env(), **env},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    def create(self, name: str) -> Served:
        self._gitolite("create", f"work/{name}", GL_USER="alice")
        bare = self.repositories / f"work/{name}.git"
        assert bare.is_dir()
        return Served(self, name, bare)

    def client(self, name: str, account: str, port: int) -> Client:
        return self._client(f"work/{name}", account, port)


def _quietly(words: list[str]) -> subprocess.CompletedProcess[bytes]:
    # Not captured: what stays in the background would keep the pipes open.
    nothing = subprocess.DEVNULL
    return subprocess.run(words, stdin=nothing, stdout=nothing, stderr=nothing, check=False)


@cache
def _locked() -> bool:
    """Return whether the password is locked. sshd without PAM then refuses the login; only root may use PAM."""
    if os.geteuid() != 0:
        return False
    lines = Path("/etc/shadow").read_text().splitlines() if Path("/etc/shadow").exists() else []
    return any(line.startswith(f"{getpass.getuser()}:!") for line in lines)

"""nginx, fcgiwrap and `git http-backend` with basic authentication.

Not apache: as root it will not serve as root, so everything would have to belong to somebody else.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
from pathlib import Path

from tests.server.process import program
from tests.server.servers import ACCOUNTS, Client, Server
from tests.support import git

_CONFIG = """{user}
daemon off;
pid {place}/nginx.pid;
error_log stderr info;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    access_log {place}/access.log;
    client_body_temp_path {place}/body;
    proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/fastcgi;
    uwsgi_temp_path {place}/uwsgi;
    scgi_temp_path {place}/scgi;
    server {{
        listen {host}:{port};
        client_max_body_size 0;
        auth_basic git;
        auth_basic_user_file {place}/users;
        location / {{
            fastcgi_pass unix:{place}/fcgi;
            fastcgi_read_timeout 600;
            fastcgi_param SCRIPT_FILENAME {backend};
            fastcgi_param GIT_PROJECT_ROOT {repositories};
            fastcgi_param GIT_HTTP_EXPORT_ALL 1;
            fastcgi_param PATH_INFO $uri;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param CONTENT_TYPE $content_type;
            fastcgi_param CONTENT_LENGTH $content_length;
            fastcgi_param REMOTE_ADDR $remote_addr;
            fastcgi_param REMOTE_USER $remote_user;
            fastcgi_param SERVER_PROTOCOL $server_protocol;
        }}
    }}
}}
"""


class Nginx(Server):
    """http with a password; git-http-backend hands REMOTE_USER on to the hooks."""

    kind = "http"
    variable = "REMOTE_USER"
    programs = ("nginx", "fcgiwrap")

    @classmethod
    def missing(cls) -> str:
        return super().missing() or ("" if _backend() else "git-http-backend")

    def prepare(self) -> None:
        (self.place / "users").write_text("".join(f"{name}:{{PLAIN}}{password(name)}\n" for name in ACCOUNTS))
        (self.place / "nginx.conf").write_text(
            _CONFIG.format(
                # Started by root its workers would change to somebody else, who may not read what is served.
                user=f"user {getpass.getuser()};" if os.geteuid() == 0 else "",
                place=self.place, host=self.port.host, port=self.port.number, backend=_backend(),
                repositories=self.repositories,
            )
        )  # fmt: skip

    def launch(self) -> None:
        (self.place / "fcgi").unlink(missing_ok=True)
        # So many requests at once; a request whose hook waits takes one up.
        self.run_daemon(program("fcgiwrap"), "-f", "-c", "24", "-s", f"unix:{self.place}/fcgi").wait_ready(
            self._accepts
        )
        nginx = program("nginx")
        self.run_daemon(
            nginx, "-p", str(self.place), "-e", "stderr", "-c", str(self.place / "nginx.conf")
        ).wait_ready(self.port.answers)  # fmt: skip

    def _accepts(self) -> bool:
        with socket.socket(socket.AF_UNIX) as test:
            return test.connect_ex(str(self.place / "fcgi")) == 0

    def client(self, name: str, account: str, port: int) -> Client:
        # The password in the URL: every client takes it from there, not only git.
        return Client(f"http://{account}:{password(account)}@{self.port.host}:{port}/{name}.git", {})


def password(account: str) -> str:
    return f"secret-of-{account}"


def _backend() -> str:
    return shutil.which("git-http-backend", path=git(Path("/"), "--exec-path").decode().strip()) or ""

"""`./install.sh --test` installs servers without starting them, and leaves no trace of how. With a stand-in for apt-get."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import ROOT

# Notes what Debian's scripts would be told about a start while packages are installed.
_APT = """#!/bin/sh
"$POLICY" nginx start; echo "$? $*" >>"$NOTES"
"""


class Place:
    def __init__(self, top: Path) -> None:
        self.policy = top / "policy-rc.d"
        self.notes = top / "notes"
        self._script = top / "install.sh"
        self._bin = top / "bin"
        self._bin.mkdir()
        text = (ROOT / "install.sh").read_text()
        assert text.endswith('\nmain "$@"\n')
        text = text.removesuffix('main "$@"\n')
        text += (ROOT / "tests/checkout.sh").read_text().replace("/run/systemd/system", "/nonexistent")
        self._script.write_text(text + 'POLICY=$1\nshift\n"$@"\n')
        self.program("apt-get", _APT)
        self.program("id", "#!/bin/sh\necho 0\n")

    def program(self, name: str, text: str) -> None:
        (self._bin / name).write_text(text)
        (self._bin / name).chmod(0o755)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {
            "PATH": f"{self._bin}:{os.environ['PATH']}", "POLICY": str(self.policy), "NOTES": str(self.notes), "HOME": "/"
        }  # fmt: skip
        command = ["sh", str(self._script), str(self.policy), *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    def asked(self) -> list[str]:
        """The answer that a started server would have got, once for each call of apt-get."""
        return [line.split()[0] for line in self.notes.read_text().splitlines()] if self.notes.exists() else []


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_no_server_is_started_and_nothing_left(place: Place) -> None:
    done = place.run("install_servers", "nginx", "gitolite3")
    assert done.returncode == 0, done.stderr
    assert place.asked() == ["101"]
    assert place.notes.read_text().endswith(" install nginx gitolite3\n")
    assert not list(place.policy.parent.glob("policy*"))


def test_nothing_left_when_apt_fails(place: Place) -> None:
    place.program("apt-get", _APT + "exit 100\n")
    assert place.run("install_servers", "nginx").returncode == 0
    assert set(place.asked()) == {"101"}
    assert not list(place.policy.parent.glob("policy*"))


def test_nothing_left_when_it_is_ended(place: Place) -> None:
    place.program("timeout", '#!/bin/sh\nshift\nkill -TERM "$PPID"\nexec "$@"\n')
    assert place.run("install_servers", "nginx").returncode == 143
    assert place.asked() == ["101"]
    assert not list(place.policy.parent.glob("policy*"))


def test_a_policy_of_the_machine_stays(place: Place) -> None:
    place.policy.write_text("#!/bin/sh\nexit 101\n")
    place.policy.chmod(0o755)
    assert place.run("install_servers", "nginx").returncode == 0
    assert place.asked() == ["101"]
    assert place.policy.read_text() == "#!/bin/sh\nexit 101\n"


def test_where_a_start_is_allowed_nothing_is_installed(place: Place) -> None:
    place.policy.write_text("#!/bin/sh\nexit 0\n")
    place.policy.chmod(0o755)
    done = place.run("install_servers", "nginx")
    assert done.returncode == 1
    assert "lets servers start, so these are not installed: nginx" in done.stdout
    assert place.asked() == []
    assert place.policy.read_text() == "#!/bin/sh\nexit 0\n"


def test_one_left_behind_by_a_killed_run(place: Place) -> None:
    place.program("timeout", '#!/bin/sh\nkill -KILL "$PPID"\n')
    place.run("install_servers", "nginx")
    assert "gitcoord" in place.policy.read_text()
    (place.policy.parent / "bin/timeout").unlink()
    assert subprocess.run([place.policy, "nginx", "start"], check=False).returncode == 0, "it should not bind others"
    assert place.run("install_servers", "nginx").returncode == 0
    assert place.asked() == ["101"]
    assert not place.policy.exists()


def test_not_root_installs_nothing(place: Place) -> None:
    place.program("id", "#!/bin/sh\necho 1000\n")
    assert place.run("install_servers", "nginx").returncode == 1
    assert place.asked() == []
    assert not place.policy.exists()

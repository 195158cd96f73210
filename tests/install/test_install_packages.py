"""install.sh's own functions: uv or pip, and a newer git from Debian. With stand-ins for uv, Python and apt-get."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import ROOT

# Notes its words. Makes an environment whose interpreter does the same, and fails where `pip-fails` is there.
_PYTHON = """#!/bin/sh
echo "python $*" >>"$NOTES"
case $* in
*" -m pip "*)
    echo "Collecting typer"
    [ ! -e "$TOP/pip-fails" ] || { echo "no route to host"; exit 1; }
    ;;
*" -m venv "*)
    for place; do :; done
    mkdir -p "$place/bin" && cp "$0" "$place/bin/python"
    ;;
esac
"""
_UV = """#!/bin/sh
echo "uv $*" >>"$NOTES"
[ ! -e "$TOP/uv-fails" ]
"""
# An archive that knows no newer suite.
_APT = """#!/bin/sh
. /etc/os-release
case $* in
*--print-uris*) printf "'%s' x 0\\n" "http://example.org/debian/dists/$VERSION_CODENAME/InRelease" ;;
*update*) cat "$TOP/.newer-git/apt/sources.list" >>"$NOTES" && exit 100 ;;
esac
"""


class Script:
    """install.sh without its main, and a PATH that begins with stand-ins."""

    def __init__(self, top: Path) -> None:
        self.top = top
        (top / "bin").mkdir()
        text = (ROOT / "install.sh").read_text()
        assert text.endswith('\nmain "$@"\n') and text.count("/etc/pip.conf") == 1
        text = text.removesuffix('main "$@"\n').replace("/etc/pip.conf", "/nonexistent")
        (top / "install.sh").write_text(text + (ROOT / "tests/checkout.sh").read_text() + '"$@"\n')
        self.program("python", _PYTHON)

    def program(self, name: str, text: str) -> None:
        (self.top / "bin" / name).write_text(text)
        (self.top / "bin" / name).chmod(0o755)

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        environ = {
            "PATH": f"{self.top}/bin:{os.environ['PATH']}", "HOME": str(self.top), "TOP": str(self.top),
            "NOTES": str(self.top / "notes"), "PY": f"{self.top}/bin/python", **env,
        }  # fmt: skip
        command = ["sh", str(self.top / "install.sh"), *words]
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)

    def notes(self) -> list[str]:
        """The notes since the last call."""
        path = self.top / "notes"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def make_venv(script: Script, **env: str) -> subprocess.CompletedProcess[str]:
    return script.run("make_venv", f"{script.top}/venv", "two things", "typer", **env)


def test_pip_installs_where_there_is_no_uv(script: Script) -> None:
    script.program("uv", "#!/bin/sh\nexit 1\n")
    (script.top / ".pip").mkdir()
    (script.top / ".pip/pip.conf").touch()  # uv would not read it
    done = make_venv(script)
    assert done.returncode == 0 and done.stdout == "making a virtual environment ...\ninstalling two things ...\n", done
    made, installed = script.notes()
    assert made == f"python -I -m venv {script.top}/venv" and installed.endswith(" install typer")
    assert not list((script.top / "venv").glob("*.log"))


def test_uv_does_it_where_pip_has_no_settings(script: Script) -> None:
    script.program("uv", _UV)
    assert make_venv(script).stdout == "installing with uv two things ...\n"
    assert [line.split()[:2] for line in script.notes()] == [["uv", "venv"], ["uv", "pip"]]
    make_venv(script, PIP_INDEX_URL="https://example.org/simple")
    assert {line.split()[0] for line in script.notes()} == {"python"}


def test_pip_is_tried_where_uv_fails(script: Script) -> None:
    script.program("uv", _UV)
    (script.top / "uv-fails").touch()
    done = make_venv(script)
    assert done.returncode == 0 and "uv failed" in done.stderr
    assert script.notes()[-1].endswith(" install typer")


def test_what_pip_says_is_shown_where_it_fails(script: Script) -> None:
    (script.top / "pip-fails").touch()
    done = make_venv(script, PIP_NO_INPUT="1")
    assert done.returncode == 1
    assert "no route to host\n" in done.stderr and "error: pip failed\nhint: " in done.stderr


@pytest.mark.skipif("ID=debian\n" not in Path("/etc/os-release").read_text(), reason="only Debian has Debian's archive")
def test_a_newer_git_comes_from_the_archive_of_this_machine(script: Script) -> None:
    script.program("apt-get", _APT)
    done = script.run("fetch_git")
    assert done.returncode == 1 and done.stdout == "fetching a newer git from Debian ...\n", done
    (line,) = script.notes()
    assert line.endswith("] http://example.org/debian unstable main"), line
    assert not (script.top / ".newer-git").exists(), "nothing is left of what could not be had"


def test_a_git_that_is_new_enough(script: Script) -> None:
    for version, code in (("2.53.9", 1), ("2.54.0.rc1", 0), ("3.0.1", 0), ("", 1)):
        script.program("git", f"#!/bin/sh\necho git version {version}\n")
        assert script.run("is_newer", "git").returncode == code, version


def test_a_run_of_pytest_that_chooses_nothing_is_no_failure_alone(script: Script) -> None:
    """The words after --test may choose tests of the other run only."""
    script.program("pytest", "#!/bin/sh\nexit 5\n")
    (script.top / ".venv").mkdir()
    (script.top / ".venv/bin").symlink_to(script.top / "bin")
    lines = '\nfailed="" tested=""\ncd "$TOP"\nstep one pytest\nstep two ruff\nsay "[$failed] [$tested]"\n'
    with (script.top / "install.sh").open("a") as file:
        file.write(lines)
    script.program("ruff", "#!/bin/sh\nexit 1\n")
    assert script.run("true").stdout.endswith("[ [two]] []\n")

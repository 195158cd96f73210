"""`git coord server install|status|uninstall`: beside what is there, and gone without a trace."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gitcoord.gates.hooks.cli import hook_sources
from gitcoord.gates.hooks.text import Kit, render
from gitcoord.server.install import EVENTS
from tests.cli.support import Done
from tests.cli.test_json import holds
from tests.gates.places import picture
from tests.server.support import Site, claim_program, unchanged
from tests.support import COORD, ROOT, git

pytestmark = pytest.mark.both_gits


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "--bare", "server.git")
    (tmp_path / "bin").mkdir()
    claim_program(tmp_path / "bin")
    return tmp_path / "server.git"


def server(bare: Path, *words: str, code: int = 0) -> Done:
    env = {**os.environ, "PATH": f"{bare.parent}/bin{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([*COORD, "server", *words], cwd="/", env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_in_and_out_byte_for_byte(bare: Path) -> None:
    """A hook that is there and one that is a link, as gitolite makes them, keep their say and come back as they were."""
    _script(bare / "hooks/pre-receive", f"#!/bin/sh\ncat >>{bare}/seen\n")
    _script(bare.parent / "common", f"#!/bin/sh\necho post >>{bare}/seen\n")
    (bare / "hooks/post-receive").symlink_to(bare.parent / "common")
    git(bare, "config", "receive.autogc", "true")
    before = picture(bare)
    plan = server(bare, "install", str(bare), "--dry-run", "--json").json
    assert picture(bare) == before and plan["dry_run"] and not plan["changed"]
    done = server(bare, "install", str(bare), "--json", "--account", "REMOTE_USER").json
    assert [row["action"] for row in done["hooks"]] == ["installed"] * 3
    keys = [row["key"] for row in done["settings"]]
    assert keys == ["receive.advertisePushOptions", "gitcoord.server.account"], "what somebody set stays"
    installed = picture(bare)
    assert server(bare, "install", str(bare), "--json", "--account", "REMOTE_USER").json["changed"] is False
    again, settled = ({k: v for k, v in seen.items() if k != "gitcoord/config"} for seen in (picture(bare), installed))
    assert again == settled  # but for a copy of git's settings, which is kept once they are old enough
    clone = bare.parent / "clone"
    git(bare.parent, "init", "-q", "-b", "main", str(clone))
    git(clone, "commit", "-q", "--allow-empty", "-m", "x")
    git(clone, "push", "-q", str(bare), "main")
    assert "refs/heads/main" in (bare / "seen").read_text() and "post" in (bare / "seen").read_text()
    git(clone, "push", "-q", str(bare), "main:refs/replace/" + "1" * 40, ok=False)
    assert "refs/replace" not in git(bare, "for-each-ref").decode()
    assert server(bare, "uninstall", str(bare), "--json").json["changed"]
    after = {k: v for k, v in picture(bare).items() if not k.startswith(("objects", "refs", "seen", "gitcoord"))}
    assert after == before
    assert server(bare, "uninstall", str(bare), "--json").json["changed"] is False


def test_the_hook_that_was_there_still_refuses(bare: Path) -> None:
    _script(bare / "hooks/pre-receive", "#!/bin/sh\necho never >&2\nexit 1\n")
    server(bare, "install", str(bare))
    clone = bare.parent / "clone"
    git(bare.parent, "init", "-q", "-b", "main", str(clone))
    git(clone, "commit", "-q", "--allow-empty", "-m", "x")
    git(clone, "push", "-q", str(bare), "main", ok=False)
    assert not git(bare, "for-each-ref")


def test_status_says_what_does_not_hold(bare: Path) -> None:
    found = server(bare, "status", str(bare), "--json", code=1).json
    assert [row["state"] for row in found["hooks"]] == ["missing"] * 3
    server(bare, "install", str(bare))
    found = server(bare, "status", str(bare), "--json").json
    assert found["open"] and any("any agent's name" in hole for hole in found["holes"])
    (bare / "gitcoord/accounts").write_text('[account "a"]\nagent = a\n')
    git(bare, "config", "gitcoord.server.signing", "ssh")
    found = server(bare, "status", str(bare), "--json").json
    assert (found["open"], found["accounts"], found["account_variable"]) == (False, ["a"], "GITCOORD_ACCOUNT")
    assert found["holes"] == []
    git(bare, "config", "gitcoord.server.inflight", "false")
    assert "may land after" in server(bare, "status", str(bare)).out


def test_a_directory_of_hooks_gets_one_more(bare: Path) -> None:
    """Gitea and Forgejo run all that lies in pre-receive.d."""
    for event in ("pre-receive", "post-receive"):
        (bare / f"hooks/{event}.d").mkdir()
        _script(bare / f"hooks/{event}", "#!/bin/sh\nfor h in hooks/${0##*/}.d/*; do $h || exit; done\n")
    before = picture(bare)
    server(bare, "install", str(bare))
    names = set(picture(bare)) - set(before)
    assert {"hooks/pre-receive.d/gitcoord", "hooks/post-receive.d/gitcoord", "hooks/reference-transaction"} <= names
    assert picture(bare)["hooks/pre-receive"] == before["hooks/pre-receive"]
    assert server(bare, "status", str(bare), "--json").json["hooks"][0]["state"] == "installed"
    server(bare, "uninstall", str(bare))
    assert {k: v for k, v in picture(bare).items() if not k.startswith("gitcoord/")} == before


def test_hooks_that_lie_elsewhere_are_left_alone(bare: Path) -> None:
    git(bare, "config", "core.hooksPath", str(bare.parent / "bin"))
    before = picture(bare)
    done = server(bare, "install", str(bare), "--json", code=1).json
    assert done["error"] == "managed" and picture(bare) == before


def test_wrong_words(bare: Path) -> None:
    server(bare, "install", str(bare.parent / "nowhere"), code=2)
    server(bare, "install", str(bare), "--account", "HOME", code=2)


def test_without_git_claim_nothing_lands(bare: Path) -> None:
    server(bare, "install", str(bare))
    (bare.parent / "bin/git-claim").unlink()
    clone = bare.parent / "clone"
    git(bare.parent, "init", "-q", "-b", "main", str(clone))
    git(clone, "commit", "-q", "--allow-empty", "-m", "x")
    done = subprocess.run(
        ["git", "push", "-q", str(bare), "main"], cwd=clone, env={**os.environ, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0 and "could not be judged" in done.stderr


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here")
@pytest.mark.parametrize("chained", [False, True])
def test_shellcheck_is_content_with_what_is_installed(chained: bool, tmp_path: Path) -> None:
    sources = hook_sources("server", EVENTS)
    assert set(sources) == {"before.sh", *(path.name for path in (ROOT / "githooks/server").iterdir())}
    for event in EVENTS:
        (tmp_path / event).write_bytes(render(Kit(sources, "/it's here/git-claim"), event, chained=chained))
    done = subprocess.run(["shellcheck", "-e", "SC2034,SC2317", *EVENTS], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_where_no_note_can_be_written_nothing_lands(bare: Path) -> None:
    """A full or broken disk closes the gate: without its entry the window would be open."""
    (bare.parent / "site").mkdir()
    site = Site(bare.parent / "site").setup()
    before = site.refs()
    shutil.rmtree(site.bare / "gitcoord/inflight")
    (site.bare / "gitcoord/inflight").write_text("in the way")
    site.claim("shared/a", agent="alice")
    unchanged(site, site.sync(), before, "could not be judged", "cannot note")
    site.commit({"free/x": "2\n"}, "alice")
    unchanged(site, site.push("origin", "main"), before, "could not be judged", "cannot note")
    (site.bare / "gitcoord/inflight").unlink()
    assert site.sync().code == 0 and site.push("origin", "main").code == 0


def test_what_json_prints_is_on_the_page(bare: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(bare.parent / "id")], check=True)
    place, file = str(bare), str(bare.parent / "id.pub")
    holds(server(bare, "status", place, "--json", code=1), "gate status")
    holds(server(bare, "install", place, "--json"), "gate installed")
    holds(server(bare, "status", place, "--json"), "gate status")
    holds(server(bare, "key", "add", place, "alice", file, "--json"), "key")
    holds(server(bare, "key", "rotate", place, "alice", file, "--json"), "key")
    holds(server(bare, "key", "list", place, "--json"), "keys")
    holds(server(bare, "key", "revoke", place, "alice", "--json"), "revoked keys")
    holds(server(bare, "key", "revoke", place, "alice", "--json", code=1), "revoked keys")
    holds(server(bare, "uninstall", place, "--json"), "removed hooks")

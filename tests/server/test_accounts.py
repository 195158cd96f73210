"""The account that pushes, by the variable in which each kind of host names it. In process: no such host runs here."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitcoord.base.errors import CouldNotJudge, Refused
from gitcoord.git.config import Settings
from gitcoord.git.host import Host
from gitcoord.ledger.context import Context
from gitcoord.server.accounts import DEFAULT_VARIABLE, SETTING, VARIABLES, Pusher, find_pusher
from gitcoord.world.client import ClientWorld
from tests.support import ROOT, git, plumbing_store, repo_at

ACCOUNTS = """
[account "Alice Liddell"]
    agent = alice
[account "farm"]
    agent = farm-*
    agent = ci
[account "ada"]
    agent = ada
    agent = ada.*
    person = true
"""
# Whoever pushes has set them all; only what the host itself sets afterwards may count.
LIES = dict.fromkeys(VARIABLES, "ada")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "--bare", "server.git")
    (tmp_path / "server.git/gitcoord").mkdir()
    (tmp_path / "server.git/gitcoord/accounts").write_text(ACCOUNTS)
    return tmp_path / "server.git"


def pusher(bare: Path, believed: str, environ: dict[str, str], option: str = "") -> Pusher:
    repo = repo_at(bare)
    settings = Settings([(SETTING, believed)] if believed else [])
    return find_pusher(Context(repo, settings, plumbing_store(repo, 40), Host(), ClientWorld), environ, option)


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_variable_of_the_host_is_believed_and_no_other(bare: Path, variable: str) -> None:
    for name, agent in (("Alice Liddell", "alice"), ("ada", "ada")):
        found = pusher(bare, variable, {**LIES, variable: name})
        assert (found.name, found.coder([]).agent, found.coder([]).person) == (name, agent, agent == "ada")
    with pytest.raises(Refused, match="'eve' is not known"):
        pusher(bare, variable, {**LIES, variable: "eve"})
    for silent in ({**LIES, variable: ""}, {name: "ada" for name in VARIABLES if name != variable}):
        with pytest.raises(Refused, match=f"{variable} is not set"):
            pusher(bare, variable, silent)


def test_without_a_setting_only_the_forced_command_is_believed(bare: Path) -> None:
    assert pusher(bare, "", {**LIES, DEFAULT_VARIABLE: "farm"}).name == "farm"


def test_where_an_account_stands_for_several_a_push_names_one_of_them(bare: Path) -> None:
    farm = {"GL_USERNAME": "farm"}
    assert pusher(bare, "GL_USERNAME", farm, "farm-7").coder([]).agent == "farm-7"
    assert pusher(bare, "GL_USERNAME", farm).coder(["", "farm-7", "ada", "farm-7"]).agent == "farm-7"
    for trailers in ([], ["ada"], ["farm-7", "ci"]):
        with pytest.raises(Refused, match="which one pushes"):
            pusher(bare, "GL_USERNAME", farm).coder(trailers)
    for option in ("ada", "farm", "alice"):
        with pytest.raises(Refused, match=f"may not act for '{option}'"):
            pusher(bare, "GL_USERNAME", farm, option)


def test_a_list_that_cannot_be_read_closes_the_gate(bare: Path) -> None:
    file = bare / "gitcoord/accounts"
    for text in ("[account", '[account "ada"]\nagnet = ada\n', '[account "a"]\nperson = maybe\n', '[account "a"]\nagent = A/B\n'):  # fmt: skip
        file.write_text(text)
        with pytest.raises(CouldNotJudge, match="accounts"):
            pusher(bare, "REMOTE_USER", {"REMOTE_USER": "ada"})
    file.unlink()
    assert pusher(bare, "REMOTE_USER", {}).account is None, "without one the gate is open, and status says so"


def test_the_guide_names_each_variable() -> None:
    text = (ROOT / "docs/server.md").read_text()
    assert [name for name in VARIABLES if f"| `{name}` |" not in text] == []

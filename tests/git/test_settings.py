"""Settings are remembered between commands, and never when that could be wrong."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gitcoord.git import config as module
from gitcoord.git.config import SettingsReader
from gitcoord.git.process import Child
from gitcoord.git.repo import Repo
from tests.support import git

_OLD = 1_500_000_000_000_000_000


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    git(tmp_path, "init", "-q", str(tmp_path / "project"))
    top = tmp_path / "project"
    (top / ".git" / "gitcoord").mkdir()
    (tmp_path / "home").mkdir()
    env = {b"PATH": os.environ["PATH"].encode(), b"HOME": bytes(tmp_path / "home")}
    return Repo(str(top / ".git"), str(top / ".git"), str(top), "", env)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Every time that git is started."""
    calls: list[list[str]] = []
    real = Child

    def child(argv: list[str], env: dict[bytes, bytes]) -> Child:
        calls.append(argv)
        return real(argv, env)

    monkeypatch.setattr(module, "Child", child)
    return calls


def age(path: Path) -> None:
    """Set the file's times as if it had been written long ago."""
    os.utime(path, ns=(_OLD, _OLD))


def read(repo: Repo, key: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(repo.worktree)
    return SettingsReader(repo, repo.env).read().get(key)


def test_git_is_asked_once(repo: Repo, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    git(Path(repo.worktree), "config", "gitcoord.agent", "alice")
    age(Path(repo.common_dir, "config"))
    assert [read(repo, "gitcoord.agent", monkeypatch) for _ in range(3)] == ["alice"] * 3
    assert len(asked) == 1


def test_a_change_is_seen(repo: Repo, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    for agent in ("alice", "bob", "carol"):
        git(Path(repo.worktree), "config", "gitcoord.agent", agent)
        assert read(repo, "gitcoord.agent", monkeypatch) == agent


def test_a_change_within_the_same_tick_is_seen(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same size, same inode, same time: only the rule about fresh files tells them apart."""
    config = Path(repo.common_dir, "config")
    git(Path(repo.worktree), "config", "gitcoord.agent", "aaa")
    before = config.stat().st_mtime_ns
    assert read(repo, "gitcoord.agent", monkeypatch) == "aaa"
    with config.open("r+") as file:
        text = file.read().replace("aaa", "bbb")
        file.seek(0)
        file.write(text)
    os.utime(config, ns=(before, before))
    assert read(repo, "gitcoord.agent", monkeypatch) == "bbb"


def test_a_new_file_is_seen(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    age(Path(repo.common_dir, "config"))
    assert read(repo, "gitcoord.agent", monkeypatch) == ""
    (Path(os.fsdecode(repo.env[b"HOME"])) / ".gitconfig").write_text("[gitcoord]\n\tagent = fromhome\n")
    assert read(repo, "gitcoord.agent", monkeypatch) == "fromhome"


def test_another_home_is_another_answer(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    age(Path(repo.common_dir, "config"))
    assert read(repo, "user.email", monkeypatch) == ""
    other = tmp_path / "other"
    other.mkdir()
    (other / ".gitconfig").write_text("[user]\n\temail = o@example.com\n")
    age(other / ".gitconfig")
    elsewhere = repo._replace(env={**repo.env, b"HOME": bytes(other)})
    assert [read(r, "user.email", monkeypatch) for r in (elsewhere, repo, elsewhere)] == [
        "o@example.com",
        "",
        "o@example.com",
    ]


def test_the_environment_and_includes_are_never_remembered(
    repo: Repo, asked: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {b"GIT_CONFIG_COUNT": b"1", b"GIT_CONFIG_KEY_0": b"gitcoord.agent", b"GIT_CONFIG_VALUE_0": b"env"}
    age(Path(repo.common_dir, "config"))
    assert read(repo._replace(env={**repo.env, **more}), "gitcoord.agent", monkeypatch) == "env"
    assert read(repo, "gitcoord.agent", monkeypatch) == ""
    included = tmp_path / "included"
    included.write_text("[gitcoord]\n\tagent = one\n")
    git(Path(repo.worktree), "config", "include.path", str(included))
    age(Path(repo.common_dir, "config"))
    assert read(repo, "gitcoord.agent", monkeypatch) == "one"
    included.write_text("[gitcoord]\n\tagent = two\n")
    assert read(repo, "gitcoord.agent", monkeypatch) == "two"


def test_where_to_look_is_a_part_of_the_question(
    repo: Repo, asked: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables that only tell where settings are: remembered for these, and for no others."""
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"[gitcoord]\n\tagent = {name}\n")
        age(tmp_path / name)
    age(Path(repo.common_dir, "config"))
    one, two = ({b"GIT_CONFIG_GLOBAL": bytes(tmp_path / name)} for name in ("one", "two"))
    system, both = {b"GIT_CONFIG_SYSTEM": bytes(tmp_path / "two")}, {**two, b"GIT_CONFIG_NOSYSTEM": b"1"}
    cases = [
        ({}, ""),
        (one, "one"),
        (two, "two"),
        (system, "two"),
        (both, "two"),
        ({**system, b"GIT_CONFIG_NOSYSTEM": b"1"}, ""),
    ]
    for first, answer in cases:
        for more, other in cases:
            asked.clear()
            assert [read(repo._replace(env={**repo.env, **first}), "gitcoord.agent", monkeypatch) for _ in "ab"] == [
                answer
            ] * 2
            assert len(asked) <= 1, first
            assert read(repo._replace(env={**repo.env, **more}), "gitcoord.agent", monkeypatch) == other, (first, more)
    (tmp_path / "one").write_text("[gitcoord]\n\tagent = new\n")
    assert read(repo._replace(env={**repo.env, **one}), "gitcoord.agent", monkeypatch) == "new"


def test_a_relative_path_is_never_remembered(
    repo: Repo, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    age(Path(repo.common_dir, "config"))
    for _ in range(2):
        read(repo._replace(env={**repo.env, b"GIT_CONFIG_GLOBAL": b"mine"}), "gitcoord.agent", monkeypatch)
    assert len(asked) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("what", ["the memory", "the repository"])
def test_what_another_may_have_made_up(
    repo: Repo, asked: list[list[str]], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    age(Path(repo.common_dir, "config"))
    read(repo, "gitcoord.agent", monkeypatch)
    memory = Path(repo.scratch, "config")
    memory.write_bytes(memory.read_bytes() + b"\0gitcoord.agent\nmallory")
    assert read(repo, "gitcoord.agent", monkeypatch) == "mallory", "it was believed until now"
    os.chown(memory if what == "the memory" else repo.common_dir, 65534, 65534)
    asked.clear()
    assert read(repo, "gitcoord.agent", monkeypatch) == "" and len(asked) == 1


def test_secrets_are_not_written_down(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    git(Path(repo.worktree), "config", "http.extraHeader", "Authorization: secret-word")
    git(Path(repo.worktree), "remote", "add", "origin", "https://me:secret-word@example.com/x")
    age(Path(repo.common_dir, "config"))
    read(repo, "gitcoord.agent", monkeypatch)
    assert b"secret-word" not in Path(repo.scratch, "config").read_bytes()


def test_work_trees_have_their_own(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = Path(repo.worktree)
    git(top, "commit", "-q", "--allow-empty", "-m", "one")
    git(top, "config", "extensions.worktreeConfig", "true")
    git(top, "worktree", "add", "-q", str(tmp_path / "second"))
    for place, agent in ((top, "alice"), (tmp_path / "second", "bob")):
        subprocess.run(["git", "config", "--worktree", "gitcoord.agent", agent], cwd=place, check=True)
    second = repo._replace(git_dir=f"{repo.common_dir}/worktrees/second", worktree=str(tmp_path / "second"))
    assert [read(r, "gitcoord.agent", monkeypatch) for r in (repo, second, repo, second)] == ["alice", "bob"] * 2

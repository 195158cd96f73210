"""The hooks themselves, as they lie in githooks/: cheap and open where gitcoord is not set up, closed without git-claim."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gitcoord.gates.hooks.managers import EVENTS
from gitcoord.gates.hooks.text import Kit, render
from tests.gates.places import Place
from tests.support import ROOT

HOOKS = ROOT / "githooks"
CLOSED = ("pre-commit", "pre-merge-commit", "reference-transaction", "pre-push")
MOVE = f"{'0' * 40} {'1' * 40} "
NO_PATH = {"PATH": "/nonexistent"}


@pytest.fixture
def place(git_repo: Path, tmp_path: Path) -> Place:
    return Place(git_repo, tmp_path)


def call(
    place: Place, event: str, *words: str, data: str = "", cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    words = words or (("prepared",) if event == "reference-transaction" else ())
    data = data or (f"{MOVE}refs/heads/main\n" if event == "reference-transaction" else "")
    return subprocess.run(
        [HOOKS / event, *words], input=data, cwd=cwd or place.top, env={**os.environ, **place.path, **(env or {})},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def set_up(place: Place, *gates: str) -> None:
    place.git("config", "gitcoord.root", "abc")
    for gate in gates or ("refs/heads/main",):
        place.git("config", "--add", "gitcoord.gateRef", gate)


@pytest.mark.parametrize("event", EVENTS)
def test_not_set_up_lets_everything_pass(place: Place, event: str) -> None:
    """This holds without git-claim too, and with any other settings."""
    place.git("config", "remote.root.url", "x")
    place.git("config", "gitcoord.sub.root", "x")
    place.git("config", "gitcoord.agent", "alice")
    done = call(place, event, env=NO_PATH)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert call(place, event).returncode == 0 and place.calls() == []
    place.git("config", "gitcoord.root", "abc")
    assert call(place, event, data=f"{MOVE}refs/claims/x\n").returncode == 0
    assert place.judged() == [event]


@pytest.mark.parametrize("event", EVENTS)
def test_without_git_claim_gates_are_closed(place: Place, event: str) -> None:
    set_up(place)
    done = call(place, event, env=NO_PATH)
    assert done.returncode == (1 if event in CLOSED else 0)
    assert ("could not judge" in done.stderr) is (event in CLOSED)
    assert ("./install.sh --uninstall --hooks" in done.stderr) is (event in CLOSED)


@pytest.mark.parametrize("event", EVENTS)
def test_arguments_input_and_verdict_go_through(place: Place, event: str) -> None:
    set_up(place)
    place.says(7)
    words = ("prepared",) if event == "reference-transaction" else ("a b", "", "*")
    data = f"{MOVE}refs/heads/main\n"
    assert call(place, event, *words, data=data).returncode == 7
    assert place.calls() == ["|".join(["--gate", event, *words, ""]), data.rstrip("\n")]


SPELLINGS = {
    "as git writes it": "[core]\n\tbare = false\n[gitcoord]\n\troot = abc\n\tgateRef = refs/heads/main\n",
    "no blanks": "[gitcoord]\nroot=abc\ngateref=refs/heads/main\n",
    "capitals": "[GitCoord]\n\tROOT = abc\n\tGATEREF = refs/heads/main\n",
    "one line": "[gitcoord] root = abc\n\tgateRef = refs/heads/main\n",
    "quoted": '[gitcoord]\n\troot = "abc"\n\tgateRef = "refs/heads/main"\n',
    "no last line end": "[gitcoord]\n\tgateRef = refs/heads/main\n\troot = abc",
    "a section between": "[gitcoord]\n\troot = abc\n[x]\n\troot = y\n[gitcoord]\n\tgateRef = refs/heads/main\n",
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_settings_are_read_as_git_reads_them(place: Place, text: str) -> None:
    (place.top / ".git/config").write_text(text)
    assert (
        place.git("config", "gitcoord.root") == "abc" and place.git("config", "gitcoord.gateRef") == "refs/heads/main"
    )
    for event in ("pre-commit", "reference-transaction"):
        assert call(place, event).returncode == 0
    assert place.judged() == ["pre-commit", "reference-transaction"]


@pytest.mark.parametrize("branch", ["fix#1", 'say"so"', "a;b", "x=y=", "100%"])
def test_a_gated_ref_may_have_any_name(place: Place, branch: str) -> None:
    set_up(place, f"refs/heads/{branch}")
    call(place, "reference-transaction", data=f"{MOVE}refs/heads/{branch}\n")
    assert place.judged() == ["reference-transaction"]


def test_only_gated_refs_are_handed_over(place: Place) -> None:
    set_up(place, "refs/heads/main", "refs/heads/release/*")
    gated = [
        "refs/heads/gitcoord",
        "refs/gitcoord/tip",
        "refs/claims/path/x/@a",
        "refs/heads/main",
        "refs/heads/release/1",
    ]
    others = [
        "HEAD",
        "refs/heads/mainline",
        "refs/heads/release",
        "refs/tags/main",
        "refs/heads/gitcoord2",
        "refs/x/refs/claims/y",
    ]
    for other in others:
        assert call(place, "reference-transaction", data=f"{MOVE}{other}\n").returncode == 0
    assert place.calls() == []
    mixed = [name for pair in zip(others, gated) for name in pair]
    call(place, "reference-transaction", data="".join(f"{MOVE}{name}\n" for name in mixed))
    assert place.calls() == ["--gate|reference-transaction|prepared|", *(f"{MOVE}{name}" for name in gated)]
    for state in ("preparing", "committed", "aborted"):
        assert call(place, "reference-transaction", state, data=f"{MOVE}refs/heads/main\n").returncode == 0
    assert place.calls() == []


def test_every_way_to_name_the_repository(place: Place, tmp_path: Path) -> None:
    """Linked work trees and submodules share or have their own settings; git may or may not say where."""
    set_up(place)
    tree = tmp_path / "a tree"
    place.git("worktree", "add", "-q", "--detach", str(tree))
    git_dir = Path(place.git("-C", str(tree), "rev-parse", "--git-dir"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ways: list[tuple[Path, dict[str, str]]] = [
        (tree, {}),
        (tree, {"GIT_DIR": str(git_dir)}),
        (place.top, {"GIT_DIR": ".git"}),
        (place.top / ".git", {"GIT_DIR": "."}),
        (elsewhere, {"GIT_DIR": str(git_dir), "GIT_COMMON_DIR": str(place.top / ".git")}),
    ]
    for cwd, env in ways:
        assert call(place, "pre-commit", cwd=cwd, env=env).returncode == 0
        assert place.judged() == ["pre-commit"], (cwd, env)
    assert call(place, "pre-commit", cwd=elsewhere).returncode == 0
    assert place.judged() == []


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here")
@pytest.mark.parametrize(
    ("event", "gitcoord"), [("reference-transaction", True), *((event, False) for event in EVENTS)]
)
def test_no_process_is_started_for_other_refs_nor_where_gitcoord_is_not_set_up(
    place: Place, event: str, gitcoord: bool, tmp_path: Path
) -> None:
    if gitcoord:
        set_up(place)
    trace = tmp_path / "trace"
    argv = ["strace", "-f", "-o", str(trace), "-e", "trace=process", str(HOOKS / event), "prepared"]
    subprocess.run(argv, input=f"{MOVE}refs/heads/topic\n".encode(), cwd=place.top, check=True)
    assert not any(call in trace.read_text() for call in ("clone(", "clone3(", "fork(")), trace.read_text()


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here")
@pytest.mark.parametrize("chained", [False, True])
def test_shellcheck_is_content_with_what_is_installed(chained: bool, tmp_path: Path) -> None:
    sources = {name: (HOOKS / name).read_text() for name in (*EVENTS, "gate.sh", "before.sh")}
    for event in EVENTS:
        (tmp_path / event).write_bytes(render(Kit(sources, "/it's here/git-claim"), event, chained=chained))
    done = subprocess.run(["shellcheck", "-e", "SC2034", *EVENTS], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout

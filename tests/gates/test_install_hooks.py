"""Installing hooks beside those that are there, and taking them away without a trace. Real git runs them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gitcoord.base.errors import StoreError
from gitcoord.gates.hooks.cli import kit
from gitcoord.gates.hooks.managers import EVENTS
from gitcoord.gates.hooks.text import KEPT
from tests.gates.places import CHAIN, CONFIG, WAYS, Place, picture, pretend
from tests.support import ROOT, git

pytestmark = pytest.mark.both_gits

# A hook of somebody's own: notes its name, its arguments and what it reads.
OLD = '#!/bin/sh\n{ echo "old %s" "$@"; cat; } >>"$(git rev-parse --git-common-dir)/old"\n'


@pytest.fixture(params=WAYS)
def place(git_repo: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    place = Place(git_repo, tmp_path, request.param)
    place.init()
    return place


only_chained = pytest.mark.parametrize("place", [CHAIN], indirect=True)
only_configured = pytest.mark.parametrize("place", WAYS[1:], indirect=True)


def with_old_hooks(place: Place, *events: str) -> None:
    for event in events or EVENTS:
        place.script(place.hooks / event, OLD % event)


def old_calls(place: Place) -> list[str]:
    notes = place.top / ".git/old"
    lines = notes.read_text().splitlines() if notes.exists() else []
    notes.unlink(missing_ok=True)
    return lines


def remote(place: Place, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "far.git")
    place.git("remote", "add", "far", str(tmp_path / "far.git"))


# --- what git runs ------------------------------------------------------------------------------------------------


def test_commit_merge_and_push_are_judged(place: Place, tmp_path: Path) -> None:
    place.ok("install-hooks")
    place.commit({"a": "1"})
    assert place.judged() == ["pre-commit", "prepare-commit-msg", "reference-transaction", "post-commit"]
    place.git("checkout", "-q", "-b", "topic", "HEAD^")
    place.commit({"b": "1"})
    assert place.judged() == ["pre-commit", "prepare-commit-msg", "post-commit"], "nobody guards this branch"
    place.git("checkout", "-q", "main")
    place.git("merge", "-q", "--no-edit", "topic")
    assert place.judged() == ["pre-merge-commit", "prepare-commit-msg", "reference-transaction"]
    remote(place, tmp_path)
    tip = place.git("rev-parse", "main")
    place.git("push", "-q", "far", "main")
    far = str(tmp_path / "far.git")
    assert place.calls() == [f"--gate|pre-push|far|{far}|", f"refs/heads/main {tip} refs/heads/main {'0' * 40}"]


def test_what_skips_pre_commit_does_not_skip_the_guarded_branch(place: Place) -> None:
    place.ok("install-hooks")
    place.git("checkout", "-q", "-b", "topic")
    tip = place.commit({"a": "1"})
    place.git("checkout", "-q", "main")
    place.calls()
    place.says(1)
    for words in (("merge", "--ff-only", "topic"), ("cherry-pick", "topic"), ("update-ref", "refs/heads/main", tip)):
        assert place.try_git(*words).code != 0, words
        assert place.git("rev-parse", "main") != tip
    assert set(place.judged()) >= {"reference-transaction"}
    place.git("update-ref", "refs/heads/free", tip)
    assert place.try_git("update-ref", "refs/heads/gitcoord", tip).code != 0, "the ledger is gitcoord's alone"
    assert place.try_git("branch", "-D", "gitcoord").code != 0


def test_a_refusal_stops_the_commit_and_the_push(place: Place, tmp_path: Path) -> None:
    place.ok("install-hooks")
    remote(place, tmp_path)
    place.says(1)
    head = place.git("rev-parse", "HEAD")
    assert place.try_git("commit", "-q", "--allow-empty", "-m", "x").code == 1
    assert place.git("rev-parse", "HEAD") == head and place.judged() == ["pre-commit"]
    assert place.try_git("push", "far", "main").code == 1
    assert git(tmp_path / "far.git", "for-each-ref") == b""


def test_gitcoords_own_swaps_start_no_hook(place: Place) -> None:
    place.ok("install-hooks")
    place.says(1)
    place.take("src/a.py")
    assert place.calls() == []


def test_a_lost_git_claim_closes_the_gates(place: Place) -> None:
    place.ok("install-hooks")
    place.stand_in.unlink()
    done = place.try_git("commit", "-q", "--allow-empty", "-m", "x", env={"PATH": _without_git_claim()})
    assert done.code == 1 and "could not judge" in done.err
    place.script(place.bin / "elsewhere/git-claim", "#!/bin/sh\nexit 0\n")
    path = f"{place.bin}/elsewhere{os.pathsep}{_without_git_claim()}"
    assert place.try_git("commit", "-q", "--allow-empty", "-m", "x", env={"PATH": path}).code == 0


def _without_git_claim() -> str:
    """The tests' PATH; gitcoord may well be installed on it."""
    words = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(word for word in words if not Path(word, "git-claim").exists())


def test_linked_work_trees_are_covered(place: Place, tmp_path: Path) -> None:
    place.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    place.ok("install-hooks")
    done = place.try_git("commit", "-q", "--allow-empty", "-m", "x", cwd=tmp_path / "tree")
    assert done.code == 0, done
    assert place.judged() == ["pre-commit", "prepare-commit-msg", "post-commit"]
    place.ok("uninstall-hooks")
    done = place.run_in(tmp_path / "tree", "install-hooks")
    assert done.code == 0 and place.hook("pre-push").exists(), done


# --- beside what was there ----------------------------------------------------------------------------------------


def test_old_hooks_run_with_the_same_words_and_input(place: Place, tmp_path: Path) -> None:
    remote(place, tmp_path)
    with_old_hooks(place)

    def work(name: str, content: str) -> list[str]:
        tip = place.commit({"a": content}, message="same")
        place.git("push", "-q", "far", f"main:{name}")
        place.git("checkout", "-q", "-b", f"side-{name}", "HEAD^")
        place.git("commit", "-q", "--allow-empty", "-m", "side")
        place.git("merge", "-q", "--no-edit", "main")
        place.git("checkout", "-q", "main")
        place.git("branch", "-q", "-D", f"side-{name}")
        text = "\n".join(old_calls(place))
        return text.replace(tip, "TIP").replace(name, "NAME").splitlines()

    def names(lines: list[str]) -> list[str]:
        return [" ".join(line.split()[:3]) for line in lines if line.startswith("old ")]

    before = work("one", "1")
    place.ok("install-hooks")
    place.calls()
    after = work("two", "2")
    assert names(after) == names(before) and {line.split()[1] for line in names(before)} == set(EVENTS)
    pushed = [line for line in before if line.endswith(f"refs/heads/NAME {'0' * 40}")]
    assert pushed and pushed == [line for line in after if line.endswith(f"refs/heads/NAME {'0' * 40}")]
    assert len(after) == len(before), "every line of input reached the old hook"
    assert set(place.judged()) == set(EVENTS)


@pytest.mark.parametrize(("event", "words"), [("pre-commit", ("commit", "--allow-empty", "-m", "x")), ("pre-push", ("push", "far", "main")), ("reference-transaction", ("update-ref", "refs/heads/main", "HEAD^0", ""))])  # fmt: skip
def test_a_failing_old_hook_fails_the_whole(place: Place, tmp_path: Path, event: str, words: tuple[str, ...]) -> None:
    remote(place, tmp_path)
    place.script(place.hooks / event, "#!/bin/sh\necho no >&2\nexit 3\n")
    place.ok("install-hooks")
    place.git("config", "gitcoord.gateRef", "refs/heads/nothing")
    if event == "reference-transaction":
        words = ("update-ref", "refs/heads/new", "HEAD")
    done = place.try_git(*words)
    assert done.code != 0 and "no" in done.err
    if place.way == CONFIG:
        return  # git runs those of its settings first
    assert event not in place.judged()
    arguments = ("prepared",) if event == "reference-transaction" else ()
    assert (
        subprocess.run([place.hooks / event, *arguments], cwd=place.top, input=b"", capture_output=True).returncode == 3
    )


def test_other_states_of_a_transaction_reach_the_old_hook(place: Place) -> None:
    with_old_hooks(place, "reference-transaction")
    place.ok("install-hooks")
    place.git("update-ref", "refs/heads/new", "HEAD")
    states = [line.split()[2] for line in old_calls(place) if line.startswith("old ")]
    assert states[-2:] == ["prepared", "committed"] and place.calls() == []


def test_a_large_transaction_reaches_both(place: Place) -> None:
    """More lines than a pipe holds."""
    with_old_hooks(place, "reference-transaction")
    place.ok("install-hooks")
    place.git("config", "--add", "gitcoord.gateRef", "refs/heads/many/*")
    oid = place.git("rev-parse", "HEAD")
    place.git(
        "update-ref", "--stdin", data="".join(f"create refs/heads/many/{n} {oid}\n" for n in range(2000)).encode()
    )
    lines = [f"{'0' * 40} {oid} refs/heads/many/{n}" for n in range(2000)]
    assert sorted(place.calls()[1:]) == sorted(lines)
    told = old_calls(place)
    states = sum(line.startswith("old ") for line in told)
    assert states >= 2 and sum("refs/heads/many" in line for line in told) == states * len(lines)


@pytest.mark.parametrize("event", ["pre-commit", "pre-push"])
def test_a_hook_that_goes_by_its_own_name_still_does(place: Place, tmp_path: Path, event: str) -> None:
    """husky 4 looks its own name up in package.json; it overwrites files with its mark at each `npm install`."""
    helper = 'echo "$(basename "$0") $#" >>"${0%/*}/ran"\ncat >/dev/null\nexit "$(cat "${0%/*}/code")"\n'
    place.script(place.hooks / event, '#!/bin/sh\n# husky\n\n. "$(dirname "$0")/husky.sh"\n')
    place.script(place.hooks / "husky.sh", helper)
    (place.hooks / "code").write_text("0")
    place.ok("install-hooks")
    if place.way == CHAIN:
        assert b"# husky" not in place.hook(event).read_bytes()
    act = ["commit", "-q", "--allow-empty", "-m", "x"]
    if event == "pre-push":
        place.git("init", "-q", "--bare", str(tmp_path / "o.git"))
        act = ["push", "-q", str(tmp_path / "o.git"), "HEAD:refs/heads/x"]
    place.git(*act)
    assert (place.hooks / "ran").read_text() == f"{event} {2 if event == 'pre-push' else 0}\n"
    (place.hooks / "code").write_text("3")
    assert place.try_git(*act[:-1], "HEAD:refs/heads/y" if event == "pre-push" else "y").code != 0


def test_a_hook_that_git_ignores_stays_ignored(place: Place) -> None:
    place.script(place.hooks / "pre-commit", "#!/bin/sh\nexit 1\n", mode=0o644)
    place.ok("install-hooks")
    place.git("commit", "-q", "--allow-empty", "-m", "x")
    assert "pre-commit" in place.judged()


# --- without a trace ----------------------------------------------------------------------------------------------


def test_uninstall_restores_byte_for_byte(place: Place) -> None:
    place.script(place.hooks / "pre-commit", "#!/bin/sh\nexit 0\n# no line end", mode=0o750)
    place.script(place.hooks / "pre-push", "\xff\x00 binary", mode=0o600)
    place.script(place.top / "tools/hook", "#!/bin/sh\nexit 0\n")
    (place.hooks / "post-commit").symlink_to("../../tools/hook")
    (place.hooks / "reference-transaction").symlink_to("nowhere")
    before, settings = picture(place.hooks), (place.top / ".git/config").read_text()
    place.ok("install-hooks")
    assert picture(place.hooks) != before
    actions = [row["action"] for row in place.ok("uninstall-hooks", "--json").json["hooks"]]
    assert ("restored" if place.way == CHAIN else "removed") in actions
    assert picture(place.hooks) == before
    assert (place.top / ".git/config").read_text() == settings
    assert "no hooks" in place.ok("uninstall-hooks").out


def test_a_linked_hook_still_finds_its_target(place: Place) -> None:
    place.script(place.top / "tools/hook", OLD % "linked")
    (place.hooks / "pre-commit").symlink_to("../../tools/hook")
    place.ok("install-hooks")
    place.git("commit", "-q", "--allow-empty", "-m", "x")
    assert old_calls(place) == ["old linked"]


def test_installing_twice_changes_nothing(place: Place) -> None:
    with_old_hooks(place, "pre-commit")
    place.ok("install-hooks")
    before, settings = picture(place.hooks), (place.top / ".git/config").read_text()
    done = place.ok("install-hooks", "--json")
    assert done.json["changed"] is False
    assert picture(place.hooks) == before and (place.top / ".git/config").read_text() == settings


def test_dry_run_changes_nothing(place: Place) -> None:
    with_old_hooks(place, "pre-commit")
    before, settings = picture(place.hooks), (place.top / ".git/config").read_text()
    done = place.ok("install-hooks", "--dry-run")
    first = "; the hook that was there runs first" if place.way == CHAIN else "\n"
    assert f"would install {place.hook('pre-commit')}{first}" in done.out
    assert picture(place.hooks) == before and (place.top / ".git/config").read_text() == settings
    place.ok("install-hooks")
    installed = picture(place.hooks)
    place.ok("uninstall-hooks", "--dry-run")
    assert picture(place.hooks) == installed


def test_an_upgrade_replaces_our_own_old_version(place: Place) -> None:
    with_old_hooks(place, "pre-commit")
    place.ok("install-hooks")
    place.move_stand_in()
    actions = {row["action"] for row in place.ok("install-hooks", "--json").json["hooks"]}
    assert actions == {"upgraded"}
    kept = f"pre-commit{KEPT}" if place.way == CHAIN else "pre-commit"
    assert (place.hooks / kept).read_text() == OLD % "pre-commit"
    place.git("commit", "-q", "--allow-empty", "-m", "x")
    assert old_calls(place) == ["old pre-commit"] and "pre-commit" in place.judged()
    place.ok("uninstall-hooks")
    assert (place.hooks / "pre-commit").read_text() == OLD % "pre-commit"


def test_lines_that_somebody_added_are_not_lost(place: Place, text: str = "") -> None:
    with_old_hooks(place, "pre-push")
    place.ok("install-hooks")
    hook = place.hook("pre-push")
    edited = text or hook.read_text() + "git lfs pre-push\n"
    hook.write_text(edited)
    place.move_stand_in()
    done = place.coordinate("install-hooks", "--json")
    assert (done.code, done.json["error"]) == (1, "edited-hook") and hook.read_text() == edited
    own = f"pre-push{KEPT}" if place.way == CHAIN else "a hook of your own"
    assert own in done.json["hints"][0]
    rows = {row["hook"]: row["action"] for row in place.ok("uninstall-hooks", "--json").json["hooks"]}
    assert rows["pre-push"] == "set aside"
    assert (place.hooks / "pre-push").read_text() == OLD % "pre-push"
    assert Path(f"{hook}.edited-gitcoord").read_text() == edited
    assert "hook.gitcoord" not in place.git("config", "--local", "--list")


@only_configured
def test_what_replaced_ours_is_not_lost(place: Place) -> None:
    test_lines_that_somebody_added_are_not_lost(place, "#!/bin/sh\necho new\n")


@only_chained
def test_a_hook_that_replaced_ours_is_not_overwritten(place: Place) -> None:
    with_old_hooks(place, "pre-commit")
    place.ok("install-hooks")
    place.script(place.hooks / "pre-commit", "#!/bin/sh\necho new\n")
    before = picture(place.hooks)
    done = place.coordinate("install-hooks", "--json")
    assert (done.code, done.json["error"]) == (1, "kept-hook") and picture(place.hooks) == before
    rows = {row["hook"]: row["action"] for row in place.ok("uninstall-hooks", "--json").json["hooks"]}
    assert rows["pre-commit"] == "left"
    assert (place.hooks / "pre-commit").read_text() == "#!/bin/sh\necho new\n"
    assert (place.hooks / f"pre-commit{KEPT}").read_text() == OLD % "pre-commit"


@only_chained
def test_an_interrupted_install_goes_on(place: Place) -> None:
    """The old hook has its second name already, and ours is not there yet."""
    with_old_hooks(place, "pre-commit")
    os.link(place.hooks / "pre-commit", place.hooks / f"pre-commit{KEPT}")
    place.ok("install-hooks")
    place.git("commit", "-q", "--allow-empty", "-m", "x")
    assert old_calls(place) == ["old pre-commit"] and "pre-commit" in place.judged()
    place.ok("uninstall-hooks")
    assert sorted(p.name for p in place.hooks.iterdir() if "sample" not in p.name) == ["pre-commit"]


@only_configured
def test_an_install_without_its_settings_goes_on(place: Place) -> None:
    """The files are there, and nothing names them yet; then only one half of what names one."""
    place.ok("install-hooks")
    settings = (place.top / ".git/config").read_text()
    for cut in ("--remove-section=hook.gitcoord-pre-commit", "--unset=hook.gitcoord-pre-commit.event"):
        word, _, name = cut.partition("=")
        place.git("config", word, name)
        place.git("commit", "-q", "--allow-empty", "-m", "x")
        assert "pre-commit" not in place.judged()
        assert place.ok("install-hooks", "--json").json["changed"] is True
        place.git("commit", "-q", "--allow-empty", "-m", "x")
        assert place.judged().count("pre-commit") == 1
    assert sorted((place.top / ".git/config").read_text().split()) == sorted(settings.split())


def test_no_hooks_directory_is_no_obstacle(place: Place) -> None:
    subprocess.run(["rm", "-r", place.hooks], check=True)
    place.ok("install-hooks")
    assert place.hook("pre-commit").stat().st_mode & 0o111


# --- which refs ---------------------------------------------------------------------------------------------------


def test_the_sync_branch_and_what_is_deployed_are_guarded(place: Place) -> None:
    place.commit({".gitcoord/config": '[deploy "web"]\n\tref = refs/heads/release/*\n[deploy "x"]\n\ttarget = y\n'})
    place.git("config", "gitcoord.gateRef", "refs/heads/mine")
    place.ok("install-hooks")
    assert place.git("config", "--get-all", "gitcoord.gateRef").splitlines() == [
        "refs/heads/mine",
        "refs/heads/main",
        "refs/heads/release/*",
    ]
    place.git("update-ref", "refs/heads/release/1", "HEAD")
    assert place.judged() == ["reference-transaction"]
    place.ok("install-hooks")
    place.ok("uninstall-hooks")
    assert place.git("config", "--get-all", "gitcoord.gateRef") == "refs/heads/mine", "it was the user's own"
    assert "no hooks" in place.ok("uninstall-hooks").out


def test_a_deploy_ref_that_makes_no_sense_is_named(place: Place) -> None:
    place.commit({".gitcoord/config": '[deploy "web"]\n\tref = production\n'})
    done = place.coordinate("install-hooks", "--json")
    assert (done.code, done.json["error"]) == (4, "could-not-judge") and "deploy.web.ref" in done.json["message"]
    assert not place.hook("pre-commit").exists()


# --- who else looks after hooks -----------------------------------------------------------------------------------


def managers(place: Place, tmp_path: Path) -> dict[str, tuple[str, dict[str, str], dict[str, str]]]:
    """Case -> (manager, files to write, settings to make)."""
    return {
        "husky": ("husky", {".husky/pre-commit": "npm test\n"}, {"core.hooksPath": ".husky/_"}),
        "husky, not yet installed": ("husky", {".husky/pre-commit": "npm test\n"}, {}),
        "husky 8": ("husky", {}, {"core.hooksPath": ".husky"}),
        "lefthook": ("lefthook", {"lefthook.yml": ""}, {}),
        "lefthook, hidden": ("lefthook", {".lefthook.toml": ""}, {}),
        "lefthook in .config": ("lefthook", {".config/lefthook.yaml": ""}, {}),
        "lefthook's hook": ("lefthook", {".git/hooks/pre-push": "#!/bin/sh\ncall_lefthook run pre-push\n"}, {}),
        "pre-commit": ("pre-commit", {".pre-commit-config.yaml": "repos: []\n"}, {}),
        "pre-commit's hook": (
            "pre-commit",
            {".git/hooks/pre-commit": "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n"},
            {},
        ),
        "a shared directory": ("core.hooksPath", {}, {"core.hooksPath": str(tmp_path / "shared")}),
        "the project's own directory": (
            "core.hooksPath",
            {".githooks/pre-commit": ""},
            {"core.hooksPath": ".githooks"},
        ),
    }


CASES = [
    "husky", "husky, not yet installed", "husky 8", "lefthook", "lefthook, hidden", "lefthook in .config", "lefthook's hook",
    "pre-commit", "pre-commit's hook", "a shared directory", "the project's own directory",
]  # fmt: skip


@only_chained
@pytest.mark.parametrize("case", CASES)
def test_a_manager_is_told_and_nothing_changed(place: Place, tmp_path: Path, case: str) -> None:
    manager, files, settings = managers(place, tmp_path)[case]
    for name, text in files.items():
        place.script(place.top / name, text)
    for key, value in settings.items():
        place.git("config", key, value)
    before = picture(place.top)
    done = place.coordinate("install-hooks", "--json")
    assert (done.code, done.json["error"], done.json["manager"]) == (1, "managed", manager), done
    for event in ("pre-commit", "pre-merge-commit", "prepare-commit-msg", "post-commit", "pre-push"):
        assert f"gitcoord-hooks/{event}" in done.json["snippet"]
    shown = place.coordinate("install-hooks")
    assert done.json["snippet"] in shown.out and manager in shown.err
    ours = [name for name in picture(place.top) if not name.startswith(".git/gitcoord/")]
    assert ours == [name for name in before if not name.startswith(".git/gitcoord/")]
    assert "gateRef" not in (place.top / ".git/config").read_text()


@only_configured
@pytest.mark.parametrize("case", CASES)
def test_beside_a_manager_nothing_of_its_own_changes(place: Place, tmp_path: Path, case: str) -> None:
    """Its hooks, wherever git looks for them, and ours run; ours are gone without a trace afterwards."""
    _, files, settings = managers(place, tmp_path)[case]
    for name, text in files.items():
        place.script(place.top / name, text)
    for key, value in settings.items():
        place.git("config", key, value)
    place.script(
        Path(place.git("rev-parse", "--path-format=absolute", "--git-path", "hooks")) / "post-commit", OLD % case
    )
    before = _theirs(place)
    assert place.ok("install-hooks", "--json").json["way"] == CONFIG
    place.git("commit", "-q", "--allow-empty", "-m", "x")
    assert place.judged() == ["pre-commit", "prepare-commit-msg", "reference-transaction", "post-commit"]
    assert old_calls(place) == [f"old {case}"]
    place.ok("uninstall-hooks")
    assert _theirs(place) == before


def _theirs(place: Place) -> dict[str, tuple[str, int, bytes]]:
    """All but what git writes with every commit, and gitcoord's scratch."""
    passing = (".git/gitcoord/", ".git/objects/", ".git/logs/", ".git/refs/", ".git/index", ".git/COMMIT_EDITMSG")
    return {name: row for name, row in picture(place.top).items() if not name.startswith(passing)}


@only_chained
def test_settings_of_the_whole_machine_are_not_used(place: Place, tmp_path: Path) -> None:
    """They are not used even where they lead into this repository: another repository's hooks would change too."""
    config = tmp_path / "gitconfig"
    config.write_text(f"[core]\n\thooksPath = {place.hooks}\n")
    done = place.coordinate("install-hooks", "--json", env={"GIT_CONFIG_GLOBAL": str(config)})
    assert (done.code, done.json.get("manager")) == (1, "core.hooksPath") and "global" in done.json["message"]


def test_a_directory_of_this_repositorys_own_is_used(place: Place) -> None:
    own = place.top / ".git/my hooks"
    place.git("config", "core.hooksPath", str(own))
    place.ok("install-hooks")
    place.git("commit", "-q", "--allow-empty", "-m", "x")
    assert "pre-commit" in place.judged()
    place.ok("uninstall-hooks")
    assert picture(own) == {}


def test_a_hooks_directory_that_is_a_link_is_not_ours(place: Place, tmp_path: Path) -> None:
    subprocess.run(["rm", "-r", place.hooks], check=True)
    (tmp_path / "shared").mkdir()
    place.hooks.symlink_to(tmp_path / "shared")
    done = place.coordinate("install-hooks", "--json")
    assert (done.code, done.json.get("manager")) == (1, "link") and not list((tmp_path / "shared").iterdir())


def snippet(place: Place, **settings: str) -> str:
    """The lines that a manager needs; the hooks that they call are installed."""
    for key, value in settings.items():
        place.git("config", key.replace("_", "."), value)
    assert place.coordinate("setup", "--no-tools").code == 1, "its files do not call them yet"
    return str(place.coordinate("install-hooks", "--json").json["snippet"])


@only_chained
def test_the_snippet_for_a_directory_works(place: Place, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    text = snippet(place, core_hooksPath=str(shared))
    for part in text.split("# add to ")[1:]:
        name, _, lines = part.partition(":\n")
        place.script(Path(name), f"#!/bin/sh\n{lines}\n")
    env = place.path
    assert place.try_git("commit", "-q", "--allow-empty", "-m", "x", env=env).code == 0
    events = list(dict.fromkeys(place.judged()))  # git has more transactions than that of the branch
    assert events == ["pre-commit", "prepare-commit-msg", "reference-transaction", "post-commit"]
    place.says(1)
    assert place.try_git("commit", "-q", "--allow-empty", "-m", "x", env=env).code == 1
    place.calls()
    place.git("config", "--unset", "gitcoord.root")
    assert place.try_git("commit", "-q", "--allow-empty", "-m", "x", env=env).code == 0
    assert place.calls() == [], "whoever does not use gitcoord is not bothered"


@only_chained
def test_the_snippet_for_pre_commit_works(place: Place) -> None:
    """pre-commit splits an entry into words as a shell does, and tells a push by its environment."""
    place.write(".pre-commit-config.yaml", "repos: []\n")
    entries = [line.split("entry: ")[1] for line in snippet(place).splitlines() if "entry: " in line]
    words = ("LOCAL_BRANCH", "TO_REF", "REMOTE_BRANCH", "FROM_REF", "REMOTE_NAME", "REMOTE_URL")
    env = {**os.environ, **place.path, **{f"PRE_COMMIT_{word}": word.lower() for word in words}}
    for entry in entries:
        subprocess.run([*shlex.split(entry), "message"], cwd=place.top, env=env, stdin=subprocess.DEVNULL, check=True)
    names = ("pre-commit", "pre-merge-commit", "prepare-commit-msg", "post-commit")
    assert place.calls() == [
        *(f"--gate|{name}|message|" for name in names),
        "--gate|pre-push|remote_name|remote_url|",
        "local_branch to_ref remote_branch from_ref",
    ]
    place.says(1)
    assert all(subprocess.run(shlex.split(e), cwd=place.top, env=env, input=b"").returncode == 1 for e in entries)


@only_chained
def test_pre_commit_leaves_the_range_out_where_a_root_is_pushed(place: Place) -> None:
    place.write(".pre-commit-config.yaml", "repos: []\n")
    (entry,) = [
        line.split("entry: ")[1]
        for line in snippet(place).splitlines()
        if "gitcoord-hooks/pre-push" in line and "entry" in line
    ]
    told = {"LOCAL_BRANCH": "refs/heads/main", "REMOTE_BRANCH": "refs/heads/new", "REMOTE_NAME": "o", "REMOTE_URL": "u"}
    env = {**os.environ, **place.path, **{f"PRE_COMMIT_{word}": value for word, value in told.items()}}
    subprocess.run(shlex.split(entry), cwd=place.top, env=env, stdin=subprocess.DEVNULL, check=True)
    assert place.calls()[1:] == [f"refs/heads/main {place.git('rev-parse', 'main')} refs/heads/new 0"]


@only_chained
def test_the_snippet_for_lefthook_works(place: Place) -> None:
    place.write("lefthook.yml", "")
    lines = [line.strip() for line in snippet(place).splitlines() if "gitcoord-hooks" in line]
    for line in lines:
        subprocess.run(["sh", "-c", line.replace("{0}", "a b")], cwd=place.top, input=b"in\n", check=True)
    events = [event for event in EVENTS if event != "reference-transaction"]
    assert place.calls() == [line for event in events for line in (f"--gate|{event}|a|b|", "in")]


# --- where it does not apply --------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_not_set_up_and_bare(git_repo: Path, tmp_path: Path, way: str) -> None:
    place = Place(git_repo, tmp_path, way)
    done = place.coordinate("install-hooks", "--json")
    assert (done.code, done.json["error"]) == (2, "not-initialised")
    assert "git coord setup" in " ".join(done.json["hints"]) and not place.hook("pre-commit").exists()
    place.init()
    git(tmp_path, "clone", "-q", "--bare", str(place.top), "bare.git")
    done = place.run_in(tmp_path / "bare.git", "install-hooks", "--json")
    assert done.code != 0 and not (tmp_path / "bare.git/hooks" / place.hook("pre-commit").name).exists()
    place.run_in(tmp_path / "bare.git", "init", "--adopt")
    done = place.run_in(tmp_path / "bare.git", "install-hooks", "--json")
    assert done.code == 2 and "no work tree" in done.json["message"]


def test_hooks_that_could_not_judge_are_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every commit would be refused."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(StoreError):
        kit()
    (tmp_path / "git-claim").touch(0o755)
    assert kit().git_claim == str(tmp_path / "git-claim")


def test_two_sections_are_made_one_first(place: Place) -> None:
    config = place.top / ".git/config"
    config.write_text(config.read_text() + "[x]\n\ty = z\n[gitcoord]\n\tagent = alice\n")
    done = place.coordinate("install-hooks", "--json")
    assert (done.code, done.json["error"]) == (2, "usage") and not place.hook("pre-commit").exists()


# --- from one git to another --------------------------------------------------------------------------------------


@pytest.fixture
def newer(git_repo: Path, tmp_path: Path) -> Place:
    """A repository with a git that says it is newer. An older git does not run such hooks: then the test runs them."""
    place = Place(git_repo, tmp_path, CONFIG)
    place.init()
    pretend(place.bin, CONFIG)
    return place


def configured(place: Place, event: str) -> str:
    assert place.git("config", f"hook.gitcoord-{event}.event") == event
    return place.git("config", f"hook.gitcoord-{event}.command")


def test_newer_git_takes_them_from_its_settings(newer: Place) -> None:
    """The hooks directory is left alone, with any hook manager."""
    with_old_hooks(newer, "pre-commit")
    newer.git("config", "core.hooksPath", ".husky/_")
    before, settings = picture(newer.hooks), (newer.top / ".git/config").read_text()
    assert newer.ok("install-hooks", "--json").json["way"] == "config"
    after = picture(newer.hooks)
    assert {name: after[name] for name in before} == before
    assert {name for name in after if name not in before} == {f"gitcoord-{event}" for event in EVENTS}
    for event in EVENTS:
        words = ["prepared"] if event == "reference-transaction" else ["a", "b"]
        argv = ["sh", "-c", configured(newer, event) + ' "$@"', "hook", *words]
        data = f"{'0' * 40} {'1' * 40} refs/heads/main\n"
        subprocess.run(argv, input=data, text=True, cwd=newer.top, check=True)
        assert newer.calls() == ["|".join(["--gate", event, *words, ""]), data.rstrip("\n")]
    assert newer.ok("install-hooks", "--json").json["changed"] is False
    newer.ok("uninstall-hooks")
    assert picture(newer.hooks) == before and (newer.top / ".git/config").read_text() == settings


def test_a_change_of_git_leaves_no_hook_twice(newer: Place) -> None:
    with_old_hooks(newer, "pre-commit")
    before = picture(newer.hooks)
    pretend(newer.bin, CHAIN)
    newer.ok("install-hooks")
    assert (newer.hooks / f"pre-commit{KEPT}").exists()
    pretend(newer.bin, CONFIG)
    newer.ok("install-hooks")
    assert (newer.hooks / "pre-commit").read_text() == OLD % "pre-commit"
    assert not (newer.hooks / "pre-push").exists() and configured(newer, "pre-push")
    pretend(newer.bin, CHAIN)
    newer.ok("install-hooks")
    assert "hook.gitcoord" not in newer.git("config", "--local", "--list") and (newer.hooks / "pre-push").exists()
    newer.git("commit", "-q", "--allow-empty", "-m", "x")
    assert newer.judged().count("pre-commit") == 1
    newer.ok("uninstall-hooks")
    assert picture(newer.hooks) == before


def test_every_source_is_there() -> None:
    assert {p.name for p in (ROOT / "githooks").iterdir()} == {*EVENTS, "gate.sh", "before.sh", "README.md", "server"}

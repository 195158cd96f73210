"""husky, lefthook and pre-commit: setup says what is not in place, and offers to edit their own files."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gitcoord.gates.hooks.managers import line_for
from tests.cli.support import Done
from tests.gates.places import CHAIN, Place, picture
from tests.support import COORD

HUSKYS = ["pre-commit", "pre-merge-commit", "pre-push"]
ALL = ["pre-commit", "pre-merge-commit", "reference-transaction", "pre-push"]
KNOWN_TO_HUSKY = ("pre-commit", "pre-merge-commit", "prepare-commit-msg", "post-commit", "pre-push")
SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture
def place(git_repo: Path, tmp_path: Path) -> Place:
    return Place(git_repo, tmp_path, CHAIN)


def install_husky(place: Place) -> None:
    """Install husky as `npx husky` does: wrappers that run the scripts of .husky with sh."""
    for event in KNOWN_TO_HUSKY:
        wrapper = '#!/bin/sh\ns=$(dirname "$(dirname "$0")")/%s\n[ ! -f "$s" ] || sh -e "$s" "$@"\n'
        place.script(place.top / ".husky/_" / event, wrapper % event)
    place.git("config", "core.hooksPath", ".husky/_")


def yaml(path: Path) -> Any:
    """The content, by a parser of YAML that is not gitcoord's."""
    program = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))"
    done = subprocess.run([SYSTEM_PYTHON, "-c", program, str(path)], capture_output=True, text=True, check=False)
    if "No module named" in done.stderr:
        pytest.skip("this machine has no PyYAML")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def at_terminal(place: Place, *words: str, answers: list[tuple[bytes, str]]) -> Done:
    with place.terminal(*words, argv=COORD, env=place.path) as shown:
        for question, answer in answers:
            shown.until(lambda text, question=question: question in text)  # type: ignore[misc]
            os.write(shown._master, f"{answer}\n".encode())
        return shown.end()


# --- what is not in place -----------------------------------------------------------------------------------------------


def test_setup_ends_with_what_is_not_in_place(place: Place) -> None:
    place.write(".husky/pre-commit", "npm test\n")
    install_husky(place)
    done = place.coordinate("setup")
    assert done.code == 1 and "not in place" in done.err.split("\n")[-5], done
    assert "pre-commit: .husky/pre-commit does not ask gitcoord" in done.err
    assert "gitcoord is set up\n" not in done.out
    assert max(map(len, done.out.splitlines())) < 160, "lines that a person can read"
    assert "git coord setup --edit-hooks" in done.err
    row = place.coordinate("setup", "--json")
    assert (row.code, row.json["ok"], row.json["missing_gates"]) == (1, False, HUSKYS)
    assert (place.top / ".husky/pre-commit").read_text() == "npm test\n"


def test_status_and_start_say_so_until_they_are_there(place: Place) -> None:
    place.write(".husky/pre-commit", "npm test\n")
    install_husky(place)
    place.coordinate("setup")
    line = "gates: pre-commit, pre-merge-commit, pre-push not in place here, so that changes are not judged"
    for words in (("status",), ("start",), ("start", "--brief")):
        assert line in place.coord(*words).out and "git coord setup" in place.coord(*words).out, words
    assert place.coord("status", "--json").json["missing_gates"] == HUSKYS
    assert place.coord("start", "--json").json["missing_gates"] == HUSKYS
    place.ok("setup", "--edit-hooks")
    assert "gates:" not in place.coord("status").out + place.coord("start").out
    assert place.coord("status", "--json").json["missing_gates"] == []


def test_without_a_manager_setup_puts_all_in_place(place: Place) -> None:
    place.init()
    assert place.coord("status", "--json").json["missing_gates"] == ALL
    assert place.ok("setup", "--json").json["missing_gates"] == []
    assert "gates:" not in place.coord("status").out


def test_a_hook_without_its_run_bit_does_not_run(place: Place) -> None:
    place.ok("setup")
    (place.hooks / "pre-push").chmod(0o644)
    assert place.coord("status", "--json").json["missing_gates"] == ["pre-push"]
    place.ok("setup")
    assert os.access(place.hooks / "pre-push", os.X_OK) and "gates:" not in place.coord("status").out


def test_a_kept_file_without_its_run_bit_is_not_said_to_run(place: Place) -> None:
    place.script(place.hooks / "pre-commit", "#!/bin/sh\nexit 1\n", mode=0o644)
    place.script(place.hooks / "pre-push", "#!/bin/sh\nexit 0\n")
    done = place.ok("setup")
    told = {line.partition(";")[0].rpartition("/")[2]: line for line in done.out.splitlines() if "will install" in line}
    assert "has no run bit" in told["pre-commit"] and "runs first" not in told["pre-commit"]
    assert "runs first" in told["pre-push"]
    place.git("commit", "-q", "--allow-empty", "-m", "x")


def test_a_shared_directory_is_named(place: Place, tmp_path: Path) -> None:
    place.git("config", "core.hooksPath", str(tmp_path / "shared"))
    done = place.coordinate("setup", "--json")
    assert done.code == 1 and done.json["missing_gates"] == ALL
    for event in ALL:
        place.script(tmp_path / "shared" / event, f"#!/bin/sh\n# {line_for(event)}\n")
    assert place.coord("status", "--json").json["missing_gates"] == ALL, "a comment asks nobody"
    for event in ALL:
        place.script(tmp_path / "shared" / event, f"#!/bin/sh\n{line_for(event)}\n")
    assert place.coord("status", "--json").json["missing_gates"] == []


# --- editing -----------------------------------------------------------------------------------------------------------------


def test_the_lines_are_shown_first_and_a_person_is_asked(place: Place) -> None:
    place.write(".husky/pre-commit", "npm test\n")
    install_husky(place)
    done = at_terminal(
        place, "setup", answers=[(b"add them to the files of husky? [Y/n] ", "n"), (b"go on? [Y/n] ", "y")]
    )
    assert done.code == 1 and "+ h=$(git" in done.out.partition("[Y/n]")[0], done
    assert (place.top / ".husky/pre-commit").read_text() == "npm test\n"
    done = at_terminal(
        place, "setup", answers=[(b"add them to the files of husky? [Y/n] ", "y"), (b"go on? [Y/n] ", "y")]
    )
    assert done.code == 0 and "not in place" not in done.out, done


def test_a_dry_run_edits_nothing(place: Place) -> None:
    place.write(".husky/pre-commit", "npm test\n")
    install_husky(place)
    done = place.ok("setup", "--dry-run", "--edit-hooks")
    assert "would add lines to .husky/pre-commit" in done.out
    assert (place.top / ".husky/pre-commit").read_text() == "npm test\n"


def test_husky_then_asks_gitcoord(place: Place) -> None:
    place.write(".husky/pre-commit", "echo first >>ran\nexit 0\n")
    place.write(".husky/pre-push", "cat >pushed\n")
    install_husky(place)
    place.ok("setup", "--edit-hooks")
    assert place.try_git("commit", "-q", "--allow-empty", "-m", "x", env=place.path).code == 0
    assert place.judged() == ["pre-commit", "prepare-commit-msg", "reference-transaction", "post-commit"]
    assert (place.top / "ran").read_text() == "first\n", "the project's own commands run too"
    place.says(1)
    assert place.try_git("commit", "-q", "--allow-empty", "-m", "x", env=place.path).code == 1
    before = (place.top / ".husky/pre-commit").read_text()
    assert "already there: the ledger, the policy, the hooks" in place.ok("setup", "--edit-hooks").out
    assert (place.top / ".husky/pre-commit").read_text() == before, "repeating it changes nothing"


def husky_project(place: Place) -> None:
    """husky as it is in a project whose lines for gitcoord are committed: `.husky/_` ignores itself."""
    place.write(".husky/pre-commit", "echo ran >>ran\n")
    place.write(".husky/_/.gitignore", "*")
    install_husky(place)
    place.ok("setup", "--edit-hooks")
    place.git("add", "-A")
    place.git("commit", "-q", "--no-verify", "-m", "husky")


def test_a_new_work_tree_has_the_gates_without_npm(place: Place) -> None:
    husky_project(place)
    found = place.coord("worktree", "add", "fix", "--json", agent="alice", env=place.path).json
    tree = Path(found["path"])
    assert found["missing_gates"] == [] and place.coord("status", "--json", cwd=str(tree)).json["missing_gates"] == []
    assert place.git("-C", str(tree), "status", "--porcelain") == ""
    place.says(1)
    assert place.try_git("-C", str(tree), "commit", "-q", "--allow-empty", "-m", "x", env=place.path).code == 1
    assert place.judged()[-1] == "pre-commit"
    place.ok("uninstall-hooks")
    assert not (tree / ".husky/_/reference-transaction").exists(), "it would refuse when gitcoord is gone"


def test_setup_brings_the_gates_to_a_work_tree_without_npm(place: Place, tmp_path: Path) -> None:
    husky_project(place)
    place.git("worktree", "add", "-q", str(tmp_path / "fix"))
    assert place.coord("status", "--json", cwd=str(tmp_path / "fix")).json["missing_gates"] == ALL
    done = place.coordinate("setup", cwd=str(tmp_path / "fix"))
    assert done.code == 0 and "will copy husky's own hooks" in done.out, done
    assert place.coord("status", "--json", cwd=str(tmp_path / "fix")).json["missing_gates"] == []
    assert "will" not in place.coordinate("setup", cwd=str(tmp_path / "fix")).out


def test_a_new_work_tree_without_husky_anywhere_says_what_works(place: Place) -> None:
    husky_project(place)
    shutil.rmtree(place.top / ".husky/_")
    done = place.coord("worktree", "add", "fix", agent="alice", env=place.path)
    assert "pre-commit: husky is not installed in this work tree: npm install, then git coord setup" in done.err, done
    assert "npm install, then git coord setup" in place.coord("doctor").out


@pytest.mark.parametrize("words", [("teardown", "--yes"), ("uninstall-hooks",)], ids=lambda words: words[0])
def test_its_lines_are_taken_out_again(place: Place, words: tuple[str, ...]) -> None:
    place.write(".husky/pre-commit", "#!/bin/sh\n# ours\necho ran\n")
    place.write(".husky/pre-push", "cat >pushed\n")
    install_husky(place)
    before = picture(place.top / ".husky")
    place.ok("setup", "--edit-hooks")
    edited = picture(place.top / ".husky")
    done = place.ok(words[0], "--dry-run")
    assert "would take gitcoord's lines out of .husky/pre-commit" in done.out, done
    assert done.out.endswith("nothing was changed\n") and done.out.count("out of .husky/pre-commit") == 1
    assert picture(place.top / ".husky") == edited
    done = place.ok(*words)
    assert words[0] != "teardown" or "will take gitcoord's lines out of .husky/pre-commit" in done.out, done
    assert "took gitcoord's lines out of .husky/pre-commit" in done.out and "by hand" not in done.err, done
    assert picture(place.top / ".husky") == before
    place.says(1)
    assert place.try_git("commit", "-q", "--allow-empty", "-m", "x", env=place.path).code == 0, "it asks nobody now"


def test_a_line_that_was_changed_since_is_named(place: Place) -> None:
    place.write(".husky/pre-commit", "echo ran\n")
    install_husky(place)
    place.ok("setup", "--edit-hooks")
    text = "echo more\n" + (place.top / ".husky/pre-commit").read_text().replace("exit 1", "exit 3")
    place.write(".husky/pre-commit", text)
    done = place.ok("uninstall-hooks")
    assert "by hand: .husky/pre-commit:2\n" in done.err, done
    assert (place.top / ".husky/pre-commit").read_text() == text
    assert place.ok("uninstall-hooks", "--json").json["changed"] is False


def test_without_git_claim_a_gate_is_closed_and_says_so(place: Place) -> None:
    """The hooks that the lines call know where git-claim was, so an editor needs no PATH of its own."""
    place.write(".husky/pre-commit", "echo ran >>ran\n")
    install_husky(place)
    place.ok("setup", "--edit-hooks")
    env = without_git_claim(place)
    assert place.try_git("commit", "-q", "--allow-empty", "-m", "x", env=env).code == 0
    assert place.judged() == ["pre-commit", "prepare-commit-msg", "reference-transaction", "post-commit"]
    (place.top / "ran").unlink()
    place.stand_in.unlink()
    done = place.try_git("commit", "-q", "--allow-empty", "-m", "x", env=env)
    assert done.code == 1 and not (place.top / "ran").exists(), done
    assert done.err.startswith(
        "gitcoord: pre-commit: could not judge this, so it is refused: git-claim is not where it was"
    )
    assert "git coord repositories --uninstall-hooks" in done.err and "staged" not in done.err
    assert "./install.sh --uninstall --hooks" in done.err and "not found" not in done.err, done
    for event, code in (("prepare-commit-msg", 0), ("post-commit", 0), ("pre-push", 1), ("pre-merge-commit", 1)):
        script = ["sh", "-e", f".husky/{event}"]
        ran = subprocess.run(script, cwd=place.top, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert ran.returncode == code and bool(ran.stderr) == bool(code), (event, ran)
    place.git("config", "--unset", "gitcoord.root")
    assert place.try_git("commit", "-q", "--allow-empty", "-m", "x", env=env).code == 0


def test_husky_runs_no_reference_transaction_so_gitcoord_puts_its_own_there(place: Place) -> None:
    """A fast-forward of trunk runs no other hook. husky's directory is ignored, so nothing of it is committed."""
    place.write(".husky/pre-commit", "true\n")
    place.write(".husky/_/.gitignore", "*")
    install_husky(place)
    place.ok("setup", "--edit-hooks")
    place.git("commit", "-q", "--allow-empty", "-m", "x")
    place.git("checkout", "-q", "-b", "work")
    place.git("commit", "-q", "--allow-empty", "-m", "y")
    place.git("checkout", "-q", "main")
    place.judged()
    place.git("merge", "-q", "--ff-only", "work")
    assert place.judged() == ["reference-transaction"]
    assert "reference-transaction" not in place.git("status", "--short", "-uall")
    (place.top / ".husky/_/reference-transaction").unlink()
    assert place.coord("status", "--json").json["missing_gates"] == ["reference-transaction"]
    done = place.ok("setup")
    assert place.coord("status", "--json").json["missing_gates"] == [], done


def test_a_hook_that_the_lines_call_and_that_is_gone_is_said(place: Place) -> None:
    """As in a fresh clone, which has the committed lines."""
    place.write(".husky/pre-commit", "true\n")
    install_husky(place)
    place.ok("setup", "--edit-hooks")
    (place.top / ".git/gitcoord-hooks/pre-push").unlink()
    assert place.coord("status", "--json").json["missing_gates"] == ["pre-push"]
    place.ok("setup")
    assert place.coord("status", "--json").json["missing_gates"] == []


def without_git_claim(place: Place) -> dict[str, str]:
    """An environment whose PATH has git and the tools of the system, and no git-claim."""
    tools = place.bin.parent / "tools"
    if not tools.exists():
        tools.mkdir()
        for name in ("git", "sh", "dirname", "cat"):
            (tools / name).symlink_to(shutil.which(name) or "")
    return {**os.environ, "PATH": str(tools)}


def test_husky_that_is_not_installed_is_said(place: Place) -> None:
    place.write(".husky/pre-commit", "npm test\n")
    done = place.coordinate("setup", "--edit-hooks")
    assert done.code == 1 and "husky is not installed in this clone: npm install, then git coord setup" in done.err, (
        done
    )
    install_husky(place)
    place.ok("setup")


@pytest.mark.parametrize("text", ["exit 0\n", "exec git lfs pre-push\n", "#!/usr/bin/env node\nprocess.exit(0)\n"])
def test_a_script_that_would_not_reach_the_line_is_left_to_its_owner(place: Place, text: str) -> None:
    place.write(".husky/pre-push", text)
    install_husky(place)
    done = place.coordinate("setup", "--edit-hooks")
    assert done.code == 1 and "to be edited by hand: .husky/pre-push" in done.err, done
    assert (place.top / ".husky/pre-push").read_text() == text


LEFTHOOK = {
    "empty": "",
    "another hook": "# ours\npre-commit:\n  parallel: true\n  commands:\n    lint:\n      run: make lint\n",
    "deep": "pre-push:\n    commands:\n        test:\n            run: make test # all\ncolors: false\n",
    "jobs": "pre-commit:\n  jobs:\n    - run: make lint\n\nassert_lefthook_installed: true\n",
}


@pytest.mark.parametrize("case", LEFTHOOK)
def test_lefthook_gets_the_command(place: Place, case: str) -> None:
    place.write("lefthook.yml", LEFTHOOK[case])
    before = yaml(place.top / "lefthook.yml") or {}
    original = (place.top / "lefthook.yml").read_text()
    done = place.coordinate("setup", "--edit-hooks")
    assert done.code == 1 and "lefthook install" in done.err, done
    after = yaml(place.top / "lefthook.yml")
    for event in KNOWN_TO_HUSKY:
        command = after[event]["commands"].pop("gitcoord")
        assert f"gitcoord-hooks/{event}" in command["run"] and command["use_stdin"] is True
        run = ["sh", "-c", command["run"].replace("{0}", "prepared")]
        subprocess.run(run, cwd=place.top, stdin=subprocess.DEVNULL, check=True)
        assert place.judged() == [event]
    left = {key: value for key, value in after.items() if value not in ({"commands": {}},)}
    for value in left.values():
        if isinstance(value, dict) and value.get("commands") == {}:
            del value["commands"]
    assert left == before
    assert all(line in (place.top / "lefthook.yml").read_text().split("\n") for line in LEFTHOOK[case].split("\n"))
    for event in HUSKYS:
        place.script(place.hooks / event, f"#!/bin/sh\ncall_lefthook run {event}\n")
    place.ok("setup")
    place.ok("uninstall-hooks")
    assert (place.top / "lefthook.yml").read_text().rstrip("\n") == original.rstrip("\n")


GENERATED = "#!/bin/sh\n# File generated by pre-commit: https://pre-commit.com\n"
PRE_COMMIT = {
    "empty": "repos: []\n",
    "flat": "repos:\n- repo: https://example.com/x\n  rev: v1\n  hooks:\n  - id: x\n",
    "indented": "default_stages: [pre-commit]\nrepos:\n  - repo: https://example.com/x\n    rev: v1\n    hooks:\n      - id: x\nfail_fast: true\n",
}


@pytest.mark.parametrize("case", PRE_COMMIT)
def test_pre_commit_gets_the_hooks(place: Place, case: str) -> None:
    file = place.top / ".pre-commit-config.yaml"
    file.write_text(PRE_COMMIT[case])
    before = yaml(file)
    place.git("add", file.name)
    done = place.coordinate("setup", "--edit-hooks")
    command = "pre-commit install -t pre-commit -t pre-merge-commit -t prepare-commit-msg -t post-commit -t pre-push"
    assert done.code == 1 and f"hint: then: {command}\n" in done.err, done
    assert "hint: stage it: git add .pre-commit-config.yaml\n" in done.err
    assert command in place.coord("doctor").out and command in place.coord("status").out
    after = yaml(file)
    local = after["repos"].pop(0)
    assert after == before and local["repo"] == "local"
    assert [hook["stages"] for hook in local["hooks"]] == [[event] for event in KNOWN_TO_HUSKY]
    for event in HUSKYS:
        place.script(place.hooks / event, GENERATED)
    names = ["prepare-commit-msg", "post-commit"]  # of the agent, in each commit
    assert place.coordinate("setup", "--json").json["missing_gates"] == names
    for event in names:
        place.script(place.hooks / event, GENERATED)
    place.ok("setup")
    for hook in local["hooks"]:
        (event,) = hook["stages"]
        subprocess.run(shlex.split(hook["entry"]), cwd=place.top, check=True, stdin=subprocess.DEVNULL)
        assert place.judged() == [event]
    place.ok("uninstall-hooks")
    assert file.read_text() == PRE_COMMIT[case]


def test_what_was_added_to_our_part_stays(place: Place) -> None:
    file = place.top / ".pre-commit-config.yaml"
    file.write_text("repos: []\n")
    place.coordinate("setup", "--edit-hooks")
    text = file.read_text().rstrip("\n") + "\n  - id: mine\n"
    file.write_text(text)
    done = place.ok("uninstall-hooks")
    assert file.read_text() == text and "by hand: .pre-commit-config.yaml:" in done.err, done


@pytest.mark.parametrize("name, text", [("lefthook.toml", ""), ("lefthook.yml", "pre-commit: {commands: {}}\n")])
def test_another_form_is_left_to_its_owner(place: Place, name: str, text: str) -> None:
    place.write(name, text)
    done = place.coordinate("setup", "--edit-hooks")
    assert done.code == 1 and f"to be edited by hand: {name}" in done.err and "/gitcoord-hooks/pre-push" in done.out
    assert (place.top / name).read_text() == text


def test_status_and_doctor_name_the_setup_that_edits_the_managers_files(place: Place) -> None:
    place.write(".husky/pre-commit", "echo ran >>ran\n")
    install_husky(place)
    assert place.coordinate("setup").code == 1
    assert "git coord setup --edit-hooks" in place.coordinate("status").out
    assert "git coord setup --edit-hooks" in place.coordinate("doctor").out

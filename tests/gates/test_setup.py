"""`git coord setup` and `teardown`: in one step in, in one step out, nothing lost."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.support import PERSON, Done
from tests.gates.places import CHAIN, CONFIG, WAYS, Place, picture
from tests.support import COORD, UNHOOKED

pytestmark = pytest.mark.both_gits

POLICY = [".gitcoord/config", ".gitcoord/rules.md", ".gitattributes"]


@pytest.fixture(params=WAYS)
def place(git_repo: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(git_repo, tmp_path, request.param)


def at_terminal(place: Place, *words: str, answer: str = "", agent: str = "") -> Done:
    """The command at a terminal, and what a person types when asked."""
    with place.terminal(*words, argv=COORD, env=place.path, agent=agent) as shown:
        if answer:
            shown.until(lambda text: b"[Y/n] " in text)
            shown.type(f"{answer}\n")
        return shown.end()


def everything(place: Place) -> dict[str, tuple[str, int, bytes]]:
    """All files but git's objects, logs and refs, what git writes at every turn, and what is remembered of its settings."""
    passing = (
        ".git/objects/",
        ".git/logs/",
        ".git/refs/",
        ".git/index",
        ".git/COMMIT_EDITMSG",
        ".git/gitcoord/config",
        ".git/gitcoord/policy.git",
    )
    return {name: row for name, row in picture(place.top).items() if not name.startswith(passing)}


# --- setup --------------------------------------------------------------------------------------------------------


def test_one_step_does_it_all(place: Place) -> None:
    done = place.ok("setup")
    assert "will make the ledger; work lands on 'main'" in done.out and "gitcoord is set up" in done.out
    assert len(place.events()) == 1
    assert all((place.top / name).exists() for name in POLICY)
    place.git("commit", "-q", "--allow-empty", "-m", "x")
    assert "pre-commit" in place.judged()
    assert place.git("config", "gitcoord.gateRef") == "refs/heads/main"


def test_repeating_it_changes_nothing_and_says_so(place: Place) -> None:
    place.ok("setup")
    before, refs = everything(place), place.refs()
    done = place.ok("setup")
    assert "already there: the ledger, the policy, the hooks" in done.out
    assert everything(place) == before
    assert place.refs() == refs


def test_it_adds_what_is_missing(place: Place) -> None:
    place.init()
    place.write(".gitcoord/rules.md", "ours\n")
    head = place.head
    row = place.ok("setup", "--json").json
    assert row["created"] is False and row["policy"] == [".gitcoord/config", ".gitattributes"]
    assert place.head == head and (place.top / ".gitcoord/rules.md").read_text() == "ours\n"
    assert {hook["action"] for hook in row["hooks"]} == {"installed"}


def test_a_dry_run_shows_it_and_changes_nothing(place: Place) -> None:
    before, refs = everything(place), place.refs()
    done = place.ok("setup", "--dry-run")
    assert "would make the ledger" in done.out and "would write .gitattributes" in done.out
    assert "would install" in done.out and "nothing was changed" in done.out
    assert everything(place) == before and place.refs() == refs
    assert place.ok("setup", "--dry-run", "--json").json["changed"] is False


def test_a_person_is_asked_once(place: Place) -> None:
    before = everything(place)
    done = at_terminal(place, "setup", answer="n")
    assert done.code == 1 and "nothing was changed" in done.out
    assert everything(place) == before and "refs/heads/gitcoord" not in place.refs()
    assert at_terminal(place, "setup", answer="y").code == 0
    assert "refs/heads/gitcoord" in place.refs()
    assert "[Y/n]" not in at_terminal(place, "setup").out, "nothing to do, so nothing to ask"
    place.ok("uninstall-hooks")
    assert "[Y/n]" not in at_terminal(place, "setup", "--yes").out
    assert place.hook("pre-commit").exists()


@pytest.mark.parametrize("place", [CHAIN], indirect=True)
def test_with_a_manager_the_rest_is_set_up(place: Place) -> None:
    place.write(".husky/pre-commit", "npm test\n")
    done = place.coordinate("setup")
    assert done.code == 1 and "husky looks after the hooks" in done.err and "/gitcoord-hooks/pre-push" in done.out
    assert "refs/heads/gitcoord" in place.refs() and not (place.hooks / "pre-commit").exists()
    row = place.coordinate("setup", "--json").json
    assert (row["way"], row["manager"], len(row["hooks"])) == ("managed", "husky", 6)


@pytest.mark.parametrize("place", WAYS[1:], indirect=True)
def test_beside_a_manager_all_is_set_up(place: Place) -> None:
    place.write(".husky/pre-commit", "npm test\n")
    row = place.ok("setup", "--json").json
    assert row["way"] == CONFIG and {hook["action"] for hook in row["hooks"]} == {"installed"}
    place.git("commit", "-q", "--allow-empty", "-m", "x")
    assert "pre-commit" in place.judged()


def test_what_cannot_be_done_is_said_before_anything_is(place: Place) -> None:
    """A link in the policy's place, a hook that somebody changed: the ledger is not made either."""
    (place.top / ".gitattributes").symlink_to("/nowhere")
    assert place.coordinate("setup").code == 2 and "refs/heads/gitcoord" not in place.refs()


def test_a_ledger_at_the_remote_is_told_before_anything_is_promised(place: Place) -> None:
    place.git("update-ref", "refs/remotes/origin/gitcoord", "main")
    done = place.coordinate("setup")
    assert (done.code, done.out) == (1, "") and "git coord init --adopt" in done.err, done
    assert place.coordinate("setup", "--dry-run").code == 1
    place.ok("init", "--adopt")
    place.ok("setup")


def test_a_changed_policy_is_for_a_person_to_commit(place: Place) -> None:
    place.ok("setup")
    place.git(*UNHOOKED, "add", "-A")
    place.git(*UNHOOKED, "commit", "-q", "-m", "policy")
    place.write(".gitcoord/config", (place.top / ".gitcoord/config").read_text() + "# more\n")
    hint = "and a person, at a terminal, runs: git claim .gitcoord/config"
    assert hint in place.ok("setup").err and "look at them, then: git claim" in at_terminal(place, "setup").out


def test_a_hook_without_gitcoord_says_what_a_refused_merge_leaves(place: Place) -> None:
    place.ok("setup")
    place.git("branch", "-q", "topic")
    place.git("switch", "-q", "topic")
    place.git(*UNHOOKED, "commit", "-q", "--allow-empty", "-m", "x")
    place.git("switch", "-q", "main")
    place.stand_in.unlink()
    git = os.path.dirname(shutil.which("git") or "")
    done = place.try_git("merge", "-q", "topic", env={"PATH": f"{git}:/usr/bin:/bin"})
    assert done.code and "may have left its new files staged" in done.err and "pipx install" in done.err, done


# --- teardown -----------------------------------------------------------------------------------------------------


def test_it_leaves_the_repository_as_it_was(place: Place) -> None:
    place.script(place.hooks / "pre-commit", "#!/bin/sh\nexit 0\n", mode=0o700)
    before, refs = everything(place), place.refs()
    place.ok("setup")
    place.take("src/a.py")
    place.free("alice")
    head = place.head
    row = place.ok("teardown", "--yes", "--json").json
    assert everything(place) == before
    assert place.refs() == {**refs, row["archive"]: head}
    assert row["archive"].startswith(f"refs/gitcoord-archive/{time.strftime('%Y')}") and row["files"] == POLICY
    assert "not set up here" in place.ok("teardown", "--yes").out


def test_it_can_be_brought_back(place: Place) -> None:
    place.ok("setup")
    place.take("src/a.py")
    place.fall_silent("alice")
    head, claims = place.head, place.claims()
    row = place.ok("teardown", "--yes", "--json").json
    assert place.claims() == []
    for command in row["bring_back"]:
        if command.startswith("git coord"):
            place.ok(*command.split()[2:])
        else:
            place.git(*command.replace("''", "").split()[1:], *([""] if command.endswith("''") else []))
    assert place.claims() == claims and head in place.git("rev-list", "gitcoord").split()
    assert place.ok("fsck").out.startswith("clean")
    assert place.claim("src/a.py", agent="bob").code == 1, "no heartbeat is known, so silence counts from now on"


def test_live_claims_are_named_and_nothing_is_touched(place: Place) -> None:
    place.ok("setup")
    place.take("src/a.py", "-m", "login")
    before, refs = everything(place), place.refs()
    done = place.coordinate("teardown", "--yes", "--json")
    assert (done.code, done.json["error"]) == (1, "live-claims")
    assert done.json["hints"] == ["ask the holders to release them: git claim release --all"]
    assert [(row["path"], row["agent"]) for row in done.json["held"]] == [("src/a.py", "alice")]
    for words in (("teardown", "--yes", "--force"), ("teardown", "--dry-run")):
        assert place.coordinate(*words).code == 1
    assert {n: r for n, r in everything(place).items() if "gitcoord/" not in n} == {
        n: r for n, r in before.items() if "gitcoord/" not in n
    }
    assert place.refs() == refs


def test_a_person_is_told_where_to_read_what_they_may_do_about_live_claims(place: Place) -> None:
    place.ok("setup")
    place.take("src/a.py")
    assert "git coord teardown -h" in at_terminal(place, "teardown", "--yes").out
    assert "teardown -h" not in place.coordinate("teardown", "--yes").err


def test_the_commands_for_what_stays_leave_nothing(place: Place) -> None:
    place.write(".gitattributes", "*.png binary\n")
    place.git("add", "-A")
    place.git("commit", "-q", "-m", "attributes")
    place.ok("setup")
    place.git(*UNHOOKED, "add", "-A")
    place.git(*UNHOOKED, "commit", "-q", "-m", "policy")
    lines = place.ok("teardown", "--yes").out.splitlines()
    first = lines.index("to remove them from the project, in its top directory:") + 1
    for command in (line.strip() for line in lines[first : lines.index("gitcoord is gone from this repository")]):
        subprocess.run(command, shell=True, cwd=place.top, check=True, capture_output=True)
    delete = next(line for line in lines if line.startswith("to delete it for good: "))
    place.git(*delete.partition(": git ")[2].split())
    assert "gitcoord-claim" not in (place.top / ".gitattributes").read_text() and "gitcoord" not in str(place.refs())
    assert place.git("status", "--porcelain") == "" and not (place.top / ".gitcoord/config").exists()
    assert "not set up" in place.coordinate("status").err


def test_force_is_for_a_person(place: Place) -> None:
    place.ok("setup")
    place.take("src/a.py")
    done = at_terminal(place, "teardown", "--force", "--yes", agent="bob")
    assert done.code == 1 and "only a person" in done.out and place.claims()
    place.commit({".gitcoord/config": "[gitcoord]\n\tapprover = somebody.else\n"})
    assert at_terminal(place, "teardown", "--force", "--yes").code == 1 and place.claims()
    place.commit({".gitcoord/config": f"[gitcoord]\n\tapprover = {PERSON}\n"})
    done = at_terminal(place, "teardown", "--force", "--yes")
    assert done.code == 0 and place.claims() == [], done


def test_without_a_terminal_it_must_be_meant(place: Place) -> None:
    place.ok("setup")
    done = place.coordinate("teardown")
    assert done.code == 2 and "--yes" in done.err and "refs/heads/gitcoord" in place.refs()
    assert at_terminal(place, "teardown", answer="n").code == 1 and "refs/heads/gitcoord" in place.refs()
    assert at_terminal(place, "teardown", answer="y").code == 0 and "refs/heads/gitcoord" not in place.refs()


def test_a_dry_run_of_teardown_changes_nothing(place: Place) -> None:
    place.ok("setup")
    before, refs = everything(place), place.refs()
    done = place.ok("teardown", "--dry-run")
    assert "would archive the ledger" in done.out and "would remove .gitattributes" in done.out
    assert everything(place) == before and place.refs() == refs


def test_policy_that_is_the_projects_own_stays(place: Place) -> None:
    place.ok("setup")
    place.git("add", ".gitattributes")
    (place.top / ".gitcoord/rules.md").write_text("our own rules\n")
    row = place.ok("teardown", "--yes", "--json").json
    assert row["files"] == [".gitcoord/config"]
    assert row["left"] == [".gitcoord/rules.md", ".gitattributes"]
    assert [(place.top / name).exists() for name in POLICY] == [False, True, True]
    assert "left in the tree" not in place.ok("teardown", "--yes").out


@pytest.mark.parametrize("old", ["*.png binary\n", "*.png binary", "\n", ""])
@pytest.mark.parametrize("tracked", [True, False])
def test_lines_that_were_added_are_taken_out_again(place: Place, old: str, tracked: bool) -> None:
    place.write(".gitattributes", old)
    if tracked:
        place.git("add", ".gitattributes")
        place.git("commit", "-q", "-m", "attributes")
    before = everything(place)
    if not old and not tracked:
        del before[".gitattributes"]  # an empty file that nobody added says nothing
    assert "will add lines to .gitattributes" in place.ok("setup").out
    row = place.ok("teardown", "--yes", "--json").json
    assert everything(place) == before and row["left"] == [] and ".gitattributes" in row["files"]


def test_added_lines_that_were_committed_stay(place: Place) -> None:
    place.write(".gitattributes", "*.png binary\n")
    place.ok("setup")
    place.git("add", ".gitattributes")
    held = (place.top / ".gitattributes").read_bytes()
    assert place.ok("teardown", "--yes", "--json").json["left"] == [".gitattributes"]
    assert (place.top / ".gitattributes").read_bytes() == held


def test_settings_that_the_user_made_stay(place: Place) -> None:
    config = place.top / ".git/config"
    config.write_text(
        config.read_text()
        + "[gitcoord]\n\tdeployer = walter ; me\n\tworktrees = /elsewhere\n\tgateRef = refs/heads/mine\n"
    )
    before = everything(place)
    place.ok("setup")
    assert "gitcoord.root" in place.ok("teardown", "--dry-run").out
    place.ok("teardown", "--yes")
    assert everything(place) == before


def test_an_interrupted_teardown_goes_on(place: Place) -> None:
    """Every state that the ref transaction may be torn into, since the archive is made first."""
    place.ok("setup")
    place.take("src/a.py")
    place.fall_silent("alice")
    head = place.head
    place.git(*UNHOOKED, "update-ref", "refs/gitcoord-archive/torn", head)
    place.git(*UNHOOKED, "update-ref", "-d", "refs/heads/gitcoord")
    row = place.ok("teardown", "--yes", "--json").json
    assert row["archive"] == "refs/gitcoord-archive/torn"
    assert [ref for ref in place.refs() if "gitcoord" in ref or "claims" in ref] == ["refs/gitcoord-archive/torn"]
    assert not place.hook("pre-commit").exists() and not (place.top / ".git/gitcoord").exists()


def test_a_missing_ledger_is_no_empty_one(place: Place) -> None:
    place.ok("setup")
    place.git(*UNHOOKED, "update-ref", "-d", "refs/heads/gitcoord")
    done = place.coordinate("teardown", "--yes", "--json")
    assert (done.code, done.json["error"]) == (4, "could-not-judge") and "refs/gitcoord/tip" in place.refs()


def test_an_earlier_lost_ledger_is_kept_too(place: Place) -> None:
    place.ok("setup")
    place.git(*UNHOOKED, "update-ref", "refs/gitcoord/lost/abc", "main")
    row = place.ok("teardown", "--yes", "--json").json
    assert place.refs()[f"{row['archive']}-lost-abc"] == place.git("rev-parse", "main")


def test_a_claim_made_meanwhile_wins(place: Place) -> None:
    """The ledger moved between the look and the swap: granted claims stay."""
    place.ok("setup")
    with place.terminal("teardown", argv=COORD, env=place.path) as shown:
        shown.until(lambda text: b"[Y/n] " in text)
        place.take("src/a.py")
        os.write(shown._master, b"y\n")
        done = shown.end()
    assert done.code == 1 and "src/a.py" in done.out
    assert place.claims() == ["path/src/a.py/@alice"] and place.hook("pre-commit").exists()


def test_scratch_is_removed_without_following_links(place: Place, tmp_path: Path) -> None:
    place.ok("setup")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    (place.top / ".git/gitcoord/link").symlink_to(precious)
    place.ok("teardown", "--yes")
    assert not (place.top / ".git/gitcoord").exists() and (precious / "file").exists()
    assert stat.S_ISDIR(precious.stat().st_mode)


def test_a_person_is_offered_to_commit_from_editors(place: Place) -> None:
    """Agents are not: they would commit as that person."""
    hint = "git config gitcoord.person ada@example.com"
    assert hint not in place.ok("setup", "--yes").err
    assert hint in place.at_terminal("setup", "--yes", argv=COORD, env=place.path).out
    assert hint not in place.at_terminal("setup", "--yes", argv=COORD, env=place.path, agent="alice").out
    place.git("config", "gitcoord.person", "ada@example.com")
    assert hint not in place.at_terminal("setup", "--yes", argv=COORD, env=place.path).out

"""Every verb of `git claim`, run as a command: what it prints, how it ends, what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import unicodedata
from pathlib import Path

import pytest

from tests.cli.support import PERSON, Done, World
from tests.cli.test_json import holds
from tests.support import CLAIM, git

NFC, NFD = (unicodedata.normalize(form, "café.py") for form in ("NFC", "NFD"))


CONFIG = """[gitcoord]
\tapprover = ada_at_example.com
[resource "gpu"]
\tcapacity = 3
\tttl = 5m
[resource "deploy/production"]
\tttl = 15m
\twrite = carol, dave
\tread = erin
"""


# --- take ----------------------------------------------------------------------------------------------------------


def test_take(world: World) -> None:
    assert world.claim("src/a.py") == Done(0, "claimed src/a.py, token 3, expires after 30m without activity\n", "")
    assert world.claims() == ["path/src/a.py/@alice"]
    assert world.events() == ["init by init", "start session 1 of alice", "claim src/a.py by alice"]


def test_take_of_several_is_one_event_with_one_token(world: World) -> None:
    done = world.claim("take", "src/a.py", "src/b.py", "new.txt", "--ttl", "1h30m", "-m", "rewrite", "--task", "T-1")
    assert done.code == 0 and done.err == ""
    assert done.out == "".join(
        f"claimed {path}, token 3, expires after 1h30m without activity\n"
        for path in ("src/a.py", "src/b.py", "new.txt (new)")
    )
    assert world.events()[2:] == ["claim src/a.py and 2 more by alice"]
    assert len(world.claims()) == 3


def test_a_claim_ref_tells_the_whole_claim(world: World) -> None:
    world.claim("src/a.py", "-m", "fix the parser", "--task", "T-7", "--expect", "20m")
    message = world.git("show", "-s", "--format=%B", "refs/claims/path/src/a.py/@alice")
    assert message.startswith("claim src/a.py by alice\n\n{")
    for part in (
        '"reason":"fix the parser"',
        '"task":"T-7"',
        '"expected":1200',
        '"mode":"write"',
        "Seq: 3\nKind: claim",
    ):
        assert part in message


def test_refused_names_holder_time_and_reason_and_the_next_command(world: World) -> None:
    world.claim("src/a.py", "-m", "fix the parser")
    done = world.claim("src", agent="bob")
    assert (done.code, done.out) == (1, "")
    lines = done.err.splitlines()
    assert lines[0] == "error: 'src' held by alice"
    assert lines[1].split("  ")[1:5] == ["src/a.py", "alice", "write", "#3"]
    assert lines[1].endswith("fix the parser") and "  expires in 30m" in lines[1]
    assert lines[2] == "hint: wait for it: git claim --wait 10m src"
    assert lines[3] == "hint: or take a place in the queue and go on: git claim --queue src"
    assert len(lines) == 4
    assert len(world.claims()) == 1


def test_a_hint_means_the_same_path_from_below(world: World) -> None:
    """Pasted in src/, 'git claim src/a.py' would wait for src/src/a.py, and get it."""
    world.take("src/a.py")
    done = world.claim("a.py", agent="bob", cwd="src")
    (hint,) = [line for line in done.err.splitlines() if line.startswith("hint: wait for it: git claim --wait 10m ")]
    path = hint.removeprefix("hint: wait for it: git claim --wait 10m ")
    assert world.claim("show", path, cwd="src", agent="bob").out.startswith("src/a.py\n")


def test_all_or_nothing_names_every_holder(world: World) -> None:
    world.take("src/a.py")
    world.take("docs", "etc", agent="bob")
    before = world.refs()
    done = world.claim("src", "docs/x", "etc/y", "free", agent="carol")
    assert done.code == 1
    assert done.err.splitlines()[0] == "error: 4 paths: nothing was claimed; held by alice, bob"
    assert [line.split()[:2] for line in done.err.splitlines()[1:4]] == [
        ["src/a.py", "alice"],
        ["docs", "bob"],
        ["etc", "bob"],
    ]
    assert world.refs() == before


def test_a_retake_that_changes_nothing_is_a_heartbeat(world: World) -> None:
    world.take("src", "-m", "why")
    head = world.head
    assert world.claim("src") == Done(0, "still hold src, token 3, expires after 30m without activity\n", "")
    assert world.claim("src", "-m", "why").out.startswith("still hold")
    assert world.head == head


def test_upgrade_and_downgrade_are_events(world: World) -> None:
    assert world.take("src", "--mode", "read") == 3
    assert world.claim("src") == Done(0, "claimed src, token 4, expires after 30m without activity\n", "")
    # Going down from write gives the work back first: a release, then the weaker claim.
    assert (
        world.claim("src", "--mode", "intent").out
        == "claimed src (intent), token 6, expires after 30m without activity\n"
    )
    assert (
        world.claim("src", "--ttl", "1h", "--mode", "intent").out
        == "claimed src (intent), token 7, expires after 1h without activity\n"
    )
    assert len(world.claims()) == 1


def test_options_that_are_not_given_stay_as_they_were(world: World) -> None:
    world.commit({".gitcoord/config": CONFIG})
    world.take("src/a.py", "--ttl", "2h", "--expect", "1h")
    world.take("@gpu", "--units", "2")
    world.take("src/a.py", "-m", "other")
    assert world.claim("src/a.py", "src/b.py", "@gpu").code == 0
    rows = {row["path"]: row for row in world.claim("list", "--json").json["claims"]}
    found = {path: (row["ttl_seconds"], row["expected_seconds"], row["units"]) for path, row in rows.items()}
    assert found == {"src/a.py": (7200, 3600, 1), "src/b.py": (1800, 0, 1), "@gpu": (300, 0, 2)}
    assert rows["src/a.py"]["reason"] == "other"
    assert world.claim("@gpu", "--units", "0").code == 2


def test_dry_run_changes_nothing(world: World) -> None:
    before = world.refs()
    assert world.claim("src", "-n") == Done(0, "would claim src\n", "")
    assert world.claim("take", "--dry-run", "src", "@gpu").out == "would claim src\nwould claim @gpu\n"
    world.take("src")
    held = world.refs()
    done = world.claim("src", "--dry-run", agent="bob")
    assert done.code == 1 and "held by alice" in done.err
    assert world.refs() == held != before


def test_outside_a_repository(tmp_path: Path, world: World) -> None:
    done = world.claim("list", cwd=str(tmp_path))
    assert done.code == 2 and "not a git repository" in done.err


def test_from_below_and_from_a_linked_work_tree(world: World, tmp_path: Path) -> None:
    assert world.claim("a.py", cwd="src").out.startswith("claimed src/a.py,")
    linked = str(tmp_path / "linked")
    world.git("worktree", "add", "-q", linked)
    done = world.claim("src/a.py", agent="bob", cwd=linked)
    assert done.code == 1 and "held by alice" in done.err
    assert world.claim("b.py", agent="bob", cwd=linked + "/src").out.startswith("claimed src/b.py,")


def test_a_bare_directory_beside_its_work_trees(world: World, tmp_path: Path) -> None:
    top = tmp_path / "project"
    top.mkdir()
    git(top, "clone", "-q", "--bare", str(world.top), str(top / ".bare"))
    (top / ".git").write_text("gitdir: ./.bare\n")
    git(top, "worktree", "add", "-q", "main")
    assert world.coord("init", "--adopt", cwd=str(top / "main")).code == 0
    for number, place in enumerate((top, top / "main")):
        assert world.claim(f"x{number}", cwd=str(place)).code == 0
        done = world.claim("release", f"x{number}", cwd=str(place))
        assert done.code == 0, done


def test_a_commit_that_does_not_carry_the_work_is_not_taken_for_it(world: World) -> None:
    world.take("src/a.py")
    base = world.git("rev-parse", "HEAD").strip()
    elsewhere = world.commit({"README": "other\n"})
    for commit in (base, elsewhere):
        done = world.claim("release", "src/a.py", "--commit", commit)
        assert done.code == 1 and "changes nothing of what is released" in done.err, done
    work = world.commit({"src/a.py": "work\n"})
    assert world.claim("release", "src/a.py", "--commit", work).code == 0


def test_work_that_was_committed_before_it_was_claimed_is_released_too(world: World) -> None:
    world.git("checkout", "-q", "-b", "work")
    commit = world.commit({"src/a.py": "early\n"})
    for _ in range(2):
        world.take("src/a.py")
        done = world.claim("release", "src/a.py", "--json")
        (row,) = done.json["released"]
        if row["files"]:
            assert (row["commit"], [file[0] for file in row["files"]]) == (commit, ["src/a.py"])
            assert row["base"] == world.git("rev-parse", "main").strip()
    assert row["files"] == [], "it is on record already"
    world.git("checkout", "-q", "main")
    world.take("src/a.py")
    assert world.claim("release", "src/a.py", "--json").json["released"][0]["files"] == []


# --- identity ------------------------------------------------------------------------------------------------------


def test_without_a_name_nobody_claims(world: World) -> None:
    before = world.refs()
    done = world.claim("src", agent="")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: nobody is named here")
    assert "an agent says its name before the command: GITCOORD_AGENT=<name>" in done.err
    assert world.refs() == before


def test_agents_in_one_checkout_are_told_apart_by_their_tools(world: World) -> None:
    names = set()
    for number in range(4):
        env = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": f"c0ffee00-0000-4000-8000-00000000000{number}"}
        done = world.claim(f"file{number}", "--json", agent="", env=env)
        names.add(done.json["claims"][0]["agent"])
    assert len(names) == 4
    nameless = world.claim("x", agent="", env={"CLAUDECODE": "1"})
    assert nameless.code == 2 and "cannot tell who acts" in nameless.err


def test_a_second_process_under_a_live_name_is_refused(world: World) -> None:
    assert world.claim("src", env={"GITCOORD_INSTANCE": "one"}).code == 0
    done = world.claim("docs", env={"GITCOORD_INSTANCE": "two"})
    assert done.code == 1 and "another process works as 'alice'" in done.err
    assert world.claim("docs", env={"GITCOORD_INSTANCE": "one"}).code == 0


def test_a_person_at_a_terminal_needs_no_name(world: World) -> None:
    done = world.at_terminal("src")
    assert done.code == 0
    assert world.claims() == [f"path/src/@{PERSON}"]
    in_tool = world.at_terminal("docs", env={"CLAUDECODE": "1"})
    assert in_tool.code == 2


# --- nonces --------------------------------------------------------------------------------------------------------


def test_a_repeat_under_a_nonce_gives_the_first_outcome(world: World) -> None:
    first = world.claim("src", "--nonce", "k1", "--json")
    head = world.head
    again = world.claim("src", "--nonce", "k1", "--json")
    assert again.code == 0 and world.head == head
    assert again.json["token"] == first.json["token"] == 3
    assert again.json["repeated"] is True


def test_a_repeat_says_what_is_gone_since(world: World) -> None:
    world.take("src", "--nonce", "k1")
    world.claim("release", "src")
    head = world.head
    done = world.claim("src", "--nonce", "k1")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "error: granted before under this nonce (token 3), but gone since: src\nhint: ask again under a new nonce\n"
    )
    assert world.head == head and world.claims() == []


# --- waiting -------------------------------------------------------------------------------------------------------


def _waits(process: subprocess.Popen[bytes]) -> str:
    """Until it says that it waits: from then on a release must reach it."""
    assert process.stderr is not None
    return process.stderr.readline().decode()


def test_a_waiter_gets_the_path_when_it_is_released(world: World) -> None:
    world.take("src")
    with world.started("--wait", "60s", "src/a.py", agent="bob") as waiter:
        assert _waits(waiter) == "waiting: 1st of 1; alice holds src\n"
        world.free()
        out, err = waiter.communicate(timeout=30)
    assert (waiter.returncode, err) == (0, b"")
    assert out.startswith(b"claimed src/a.py, token ")
    assert world.claims() == ["path/src/a.py/@bob"]


def test_a_waiter_gets_the_path_when_its_holder_falls_silent(world: World) -> None:
    world.take("src", "--ttl", "2s")
    done = world.claim("--wait", "30s", "src", agent="bob")
    assert done.code == 0
    assert "expire src of alice, for bob" in world.events()


def test_waiting_ends_in_time(world: World) -> None:
    world.take("src", "-m", "busy")
    done = world.claim("--wait", "1s", "src", agent="bob")
    assert (done.code, done.out) == (3, "")
    lines = done.err.splitlines()
    place = '1st of 1; alice holds it: "busy"'
    assert lines[:2] == [f"waiting: {place}", f"error: waited 1s: {place}; left the queue (ticket 5)"]
    assert lines[2].split()[:2] == ["src", "alice"]
    assert lines[3:] == [
        "hint: wait longer: git claim --wait 30m src",
        "hint: or take a place in the queue and do something else meanwhile: git claim --queue src",
    ]
    assert world.events()[-2:] == ["wait for src by bob", "leave src of bob"]
    row = world.claim("--wait", "1s", "src", "--json", agent="bob").json
    assert (row["ok"], row["error"], row["held"][0]["agent"]) == (False, "timeout", "alice")


def test_ctrl_c_withdraws(world: World) -> None:
    world.take("src")
    with world.started("--wait", "60s", "src", agent="bob") as waiter:
        _waits(waiter)
        waiter.send_signal(signal.SIGINT)
        out, err = waiter.communicate(timeout=30)
    assert (waiter.returncode, out) == (130, b"")
    assert err == b"interrupted: left the queue (ticket 5), nothing was claimed\n"
    assert world.events()[-1] == "leave src of bob"
    world.free()
    assert world.claims() == []


def test_ctrl_c_at_a_terminal_withdraws(world: World) -> None:
    world.take("src")
    with world.terminal("--wait", "60s", "src", agent="bob") as waiter:
        waiter.until(lambda shown: b"waiting " in shown and b"alice holds it" in shown)
        os.killpg(waiter.process.pid, signal.SIGINT)
        done = waiter.end()
    assert done.code == 130
    assert done.out.endswith("\r\x1b[Kinterrupted: left the queue (ticket 5), nothing was claimed\n")


def test_waiting_is_for_what_is_held_not_for_what_is_forbidden(world: World) -> None:
    world.commit({".gitcoord/config": CONFIG})
    done = world.claim("--wait", "60s", "@deploy/production")
    assert done.code == 1 and "may not write @deploy/production" in done.err


# --- release -------------------------------------------------------------------------------------------------------


def test_release_without_change(world: World) -> None:
    world.take("src/a.py")
    assert world.claim("release", "src/a.py") == Done(0, "released src/a.py (no change)\n", "")
    assert world.claims() == []
    assert world.events()[-1] == "release src/a.py by alice"
    assert world.git("ls-tree", "-r", "--name-only", "gitcoord", "lineage") == ""


def test_release_with_a_commit_leaves_its_lineage(world: World) -> None:
    world.take("src")
    commit = world.commit({"src/a.py": "new\n", "src/deep/c.py": "c\n"})
    assert world.claim("release", "src") == Done(0, f"released src (with {commit[:12]}, 2 files)\n", "")
    files = world.git("ls-tree", "-r", "--name-only", "gitcoord", "lineage").splitlines()
    assert files == ["lineage/src/a.py/@4", "lineage/src/deep/c.py/@4"]
    text = world.git("show", "gitcoord:lineage/src/a.py/@4")
    blob = world.git("rev-parse", f"{commit}:src/a.py")
    for part in (f'"commit":"{commit}"', f'"blob":"{blob}"', '"mode":"100644"', '"token":3'):
        assert part in text


def test_work_is_judged_from_where_the_claim_began(world: World) -> None:
    """Neither a renewal nor a re-take moves the base past work that is done already."""
    world.take("src/a.py", "src/b.py")
    commit = world.commit({"src/a.py": "new\n", "src/b.py": "new\n"})
    assert world.claim("src/a.py", "--ttl", "2h").code == 0
    assert world.claim("renew", "--ttl", "3h", "src/b.py").code == 0
    done = world.claim("release", "src/a.py", "src/b.py")
    assert done.out == "".join(f"released src/{name} (with {commit[:12]}, 1 file)\n" for name in ("a.py", "b.py"))


def test_a_downgrade_does_not_lose_the_work(world: World) -> None:
    """The release records the work that was committed under the write claim, in whatever mode the claim ends."""
    world.take("src")
    world.commit({"src/a.py": "new\n"})
    world.claim("src", "--mode", "read")
    world.free()
    assert world.git("ls-tree", "-r", "--name-only", "gitcoord", "lineage") != ""


@pytest.mark.parametrize(
    "fold, claimed, real", [(True, "SRC/A.PY", "src/a.py"), (False, NFC, NFD)], ids=["case", "unicode"]
)
def test_work_is_seen_under_any_spelling_of_the_claim(plain: World, fold: bool, claimed: str, real: str) -> None:
    """Twins are one path for a claim, so they must be one for its release."""
    plain.commit({real: "old\n"})
    plain.init(fold=fold)
    plain.take("--", claimed)
    plain.write(real, "new\n")
    assert plain.claim("release", claimed).code == 1, "it is not committed"
    commit = plain.commit({})
    assert f"(with {commit[:12]}, 1 file)" in plain.claim("release", claimed).out


def test_renew_takes_any_spelling_of_the_claim(plain: World) -> None:
    plain.init(fold=True)
    plain.take("README")
    assert plain.claim("renew", "readme").code == 0


def test_a_deletion_and_a_mode_are_work_too(world: World) -> None:
    world.take("src")
    world.git("rm", "-q", "src/a.py")
    world.git("update-index", "--chmod=+x", "src/b.py")
    os.chmod(world.top / "src/b.py", 0o755)
    world.git("commit", "-q", "-m", "work")
    row = world.claim("release", "src", "--json").json["released"][0]
    assert [[path, mode, bool(blob)] for path, mode, blob in row["files"]] == [
        ["src/a.py", "000000", False], ["src/b.py", "100755", True],
    ]  # fmt: skip


def test_uncommitted_work_is_not_released(world: World) -> None:
    world.take("src", "docs")
    world.write("src/new.py", "not committed\n")
    before = world.refs()
    done = world.claim("release", "src", "docs")
    assert done == Done(
        1,
        "",
        "error: uncommitted changes in src: nothing was released\nhint: commit them first; or, where they are not yours, release all the same: git claim release --dirty src\n",
    )
    assert world.refs() == before
    assert (
        world.claim("release", "src", "docs", "--dirty").out == "released src (no change)\nreleased docs (no change)\n"
    )


def test_uncommitted_work_elsewhere_does_not_matter(world: World) -> None:
    world.take("src/a.py")
    world.write("src/b.py", "changed\n")
    world.write("src/a.pyc", "not below the claim\n")
    assert world.claim("release", "src/a.py").code == 0


def test_release_names_the_commit_that_carries_the_work(world: World) -> None:
    world.take("src/a.py")
    commit = world.commit({"src/a.py": "new\n"})
    world.commit({"other.txt": "later\n"})
    assert (
        world.claim("release", "src/a.py", "--commit", "HEAD~1").out
        == f"released src/a.py (with {commit[:12]}, 1 file)\n"
    )


def test_release_after_a_rebase_sees_only_the_claimants_work(world: World) -> None:
    world.git("switch", "-q", "-c", "topic")
    world.take("src")
    world.commit({"src/a.py": "mine\n"})
    world.git("switch", "-q", "main")
    world.commit({"src/b.py": "landed by others\n"})
    world.git("switch", "-q", "topic")
    world.git("rebase", "-q", "main")
    row = world.claim("release", "src", "--json").json["released"][0]
    assert "src/a.py" in [path for path, _, _ in row["files"]]
    assert row["commit"] == world.git("rev-parse", "HEAD")


def test_release_of_what_is_not_held_releases_nothing(world: World) -> None:
    world.take("src/a.py")
    world.take("docs", agent="bob")
    before = world.refs()
    done = world.claim("release", "src/a.py", "docs", "nothing")
    assert done == Done(
        1,
        "",
        "error: 'alice' does not hold docs (held by bob), nothing: nothing was released\nhint: see what you hold: git claim list --mine\n",
    )
    assert world.refs() == before


def test_release_all(world: World) -> None:
    world.take("src/a.py", "docs")
    world.take("@gpu")
    world.take("etc", agent="bob")
    done = world.claim("release", "--all")
    assert (done.code, sorted(done.out.splitlines())) == (
        0, ["released @gpu (no change)", "released docs (no change)", "released src/a.py (no change)"],
    )  # fmt: skip
    assert world.claims() == ["path/etc/@bob"]
    assert world.claim("release", "-a") == Done(0, "you hold nothing\n", "")


# --- renew, disown -------------------------------------------------------------------------------------------------


def test_renew(world: World) -> None:
    done = world.claim("renew")
    assert done.code == 1 and "does not hold anything" in done.err
    world.take("src", "docs")
    head = world.head
    assert world.claim("renew") == Done(0, "renewed\n", "")
    assert world.claim("renew", "src") == Done(0, "renewed\n", "")
    assert world.head == head
    assert world.claim("renew", "--ttl", "2h").code == 0
    assert {row["ttl_seconds"] for row in world.claim("list", "--json").json["claims"]} == {7200}
    missing = world.claim("renew", "@gpu")
    assert missing.code == 1 and "does not hold @gpu" in missing.err


def test_renewing_several_keeps_what_each_was_claimed_for(world: World) -> None:
    world.take("src/a.py", "-m", "one", "--task", "T1")
    world.take("src/b.py", "-m", "two")
    assert world.claim("renew", "--ttl", "1h").code == 0
    rows = {row["path"]: row for row in world.claim("list", "--json").json["claims"]}
    assert (rows["src/a.py"]["reason"], rows["src/a.py"]["task"], rows["src/b.py"]["reason"]) == ("one", "T1", "two")


def test_disown_clears_the_lineage_on_record(world: World) -> None:
    world.take("src")
    world.commit({"src/a.py": "new\n", "src/b.py": "new\n"})
    world.claim("release", "src")
    assert world.claim("disown", "src", "--reason", "rewritten") == Done(0, "disowned 2 release(s) below src\n", "")
    assert world.git("ls-tree", "-r", "--name-only", "gitcoord", "lineage") == ""
    assert world.events()[-1] == "disown src by alice"
    again = world.claim("disown", "src", "--reason", "rewritten")
    assert again == Done(1, "", "error: no released work is on record below 'src'\n")


# --- what was lost -------------------------------------------------------------------------------------------------


def test_a_silent_holder_loses_the_path_to_whoever_asks_and_is_told_once(world: World) -> None:
    token = world.take("src")
    world.fall_silent("alice")
    assert world.claim("src", agent="bob").code == 0
    assert world.events()[-3:] == ["expire src of alice, for bob", "start session 1 of bob", "claim src by bob"]
    told = world.claim("docs")
    assert told.code == 0
    assert told.err == f"note: you lost src (token {token}) to bob: it expired without a heartbeat\n"
    assert world.claim("etc").err == ""


def test_check_of_what_was_lost_says_to_whom(world: World) -> None:
    token = world.take("src")
    world.fall_silent("alice")
    world.take("src", agent="bob")
    done = world.claim("check", "src", "docs")
    told = f"note: you lost src (token {token}) to bob: it expired without a heartbeat\n"
    assert done.code == 1 and done.err == told
    assert world.claim("check", "docs").err == ""
    (row,) = holds(world.claim("check", "src", "--json"), "verdicts")["lost"]
    assert (row["path"], row["by"]) == ("src", "bob")


@pytest.mark.parametrize("wait", [(), ("--wait", "1m")])
def test_uncommitted_work_of_an_expired_holder_is_told(world: World, wait: tuple[str, ...]) -> None:
    """In a shared work tree the next holder would commit it as its own."""
    for path in ("src/a.py", "src/b.py"):
        world.take(path)
    world.write("src/a.py", "alice's\n")
    world.fall_silent("alice")
    done = world.claim("src/a.py", "src/b.py", *wait, agent="bob")
    assert done.code == 0 and "src/b.py" not in done.err
    said = "note: alice, whose claim has expired, left uncommitted changes in src/a.py; "
    assert said + "look at them before you commit: git diff HEAD -- src/a.py\n" in done.err


def test_release_of_what_was_lost_says_to_whom(world: World) -> None:
    world.take("src")
    world.fall_silent("alice")
    world.take("src", agent="bob")
    done = world.claim("release", "src")
    assert done.code == 1 and "does not hold src (lost to bob)" in done.err


# --- list, show ----------------------------------------------------------------------------------------------------


def test_list(world: World) -> None:
    assert world.claim() == Done(0, "", "no claims\n")
    world.take("src/a.py", "-m", "fix")
    world.take("docs", "--mode", "read", "--ttl", "2h", agent="bob")
    done = world.claim("list")
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in done.out.splitlines()]
    assert [row[:4] for row in rows] == [["docs", "bob", "read", "#5"], ["src/a.py", "alice", "write", "#3"]]
    assert rows[1][-1] == "fix" and rows[0][4] in ("expires in 2h", "expires in 1h59m")
    assert world.claim().out.split("since")[0] == done.out.split("since")[0]
    assert [line.split()[0] for line in world.claim("list", "--mine").out.splitlines()] == ["src/a.py"]
    assert world.claim("list", agent="").code == 0


def test_when_it_expires_and_when_its_holder_expects_to_be_done_are_two_columns(world: World) -> None:
    world.take("src/a.py", "--expect", "5m", "-m", "fix")
    world.take("docs", agent="bob")
    rows = [line.split("  ") for line in world.claim("list").out.splitlines()]
    (row,) = [[cell.strip() for cell in row if cell.strip()] for row in rows if row[0] == "src/a.py"]
    assert row[4].startswith("expires in 30m") and row[5] in ("expected 5m more", "expected 4m59s more")
    assert len({line.index("since") for line in world.claim("list").out.splitlines()}) == 1, (
        "also where none is expected"
    )
    assert "  expects: " in world.claim("show", "src/a.py").out


def test_list_hides_silent_holders_and_says_so(world: World) -> None:
    world.take("src")
    world.take("docs", agent="bob")
    world.fall_silent("alice")
    done = world.claim("list", agent="bob")
    assert [line.split()[0] for line in done.out.splitlines()] == ["docs"]
    assert done.err == "hint: 1 expired: git claim list --all\n"
    everything = world.claim("list", "-a", agent="bob")
    assert "expired, free to take" in everything.out and everything.err == ""


def test_show(world: World) -> None:
    assert world.claim("show", "src") == Done(0, "", "no claim on, above or below src\n")
    world.claim("src/a.py", "-m", "fix", "--task", "T-1")
    head = world.git("rev-parse", "HEAD")
    lines = world.claim("show", "src").out.splitlines()
    assert lines[:4] == ["src/a.py", "  agent:   alice (session 1)", "  mode:    write", "  token:   3"]
    assert lines[4].startswith("  expires: ") and lines[4].endswith("(ttl 30m)")
    assert lines[5].startswith("  since:   ")
    assert lines[6:] == ["  reason:  fix", "  task:    T-1", f"  base:    {head}"]
    assert world.claim("show", "src/a.py/below").out.startswith("src/a.py\n")


# --- check ---------------------------------------------------------------------------------------------------------


def test_check(world: World) -> None:
    """0 = mine, or neither shared nor held; 1 = held by another."""
    world.take("src")
    assert world.claim("check", "src/a.py", "src") == Done(0, "src/a.py: yes, yours\nsrc: yes, yours\n", "")
    assert world.claim("check", "docs", agent="bob") == Done(0, "docs: yes, free\n", "")
    held = world.claim("check", "docs", "src/a.py", agent="bob")
    assert held.code == 1
    assert held.out.splitlines()[:2] == ["docs: yes, free", "src/a.py: no, held"]
    assert held.out.splitlines()[2].split()[:3] == ["src", "alice", "write"]
    assert world.claim("check", "-q", "src", agent="bob") == Done(1, "", "")


def test_check_of_a_shared_path(world: World) -> None:
    world.commit({".gitattributes": "api/** gitcoord-claim\napi/own.txt -gitcoord-claim\n", "api/x.py": "x\n"})
    done = world.claim("check", "api/x.py")
    assert done == Done(1, "api/x.py: no, shared and not claimed\n", "hint: git claim api/x.py\n")
    assert world.claim("check", "api/own.txt", "src/a.py").code == 0
    world.take("api/x.py", "--mode", "intent")
    assert world.claim("check", "api/x.py").code == 1
    world.take("api/x.py")
    assert world.claim("check", "api/x.py") == Done(0, "api/x.py: yes, yours\n", "")


def test_check_of_a_directory_that_holds_shared_paths(world: World) -> None:
    world.commit({".gitattributes": "api/** gitcoord-claim\n", "api/x.py": "x\n"})
    assert world.claim("check", "api").code == 1


def test_check_of_the_killed_and_the_halted(world: World) -> None:
    world.take("src")
    world.person("halt")
    halted = world.claim("check", "src")
    assert halted.code == 1 and halted.err == "no: everything was halted by ada_at_example.com\n"
    world.person("unhalt")
    assert world.claim("check", "src").code == 0
    world.person("kill", "alice")
    killed = world.claim("check", "src")
    assert killed.code == 1 and "'alice' was killed" in killed.err
    assert world.claim("check", "src", agent="bob").code == 0


def test_check_that_cannot_judge(world: World) -> None:
    world.take("src")
    world.git("update-ref", "-d", "refs/heads/gitcoord")
    done = world.claim("check", "src")
    assert done.code == 4 and "the ledger (refs/heads/gitcoord) is missing" in done.err
    assert world.claim("src", agent="bob").code == 4


def test_check_of_a_resource_with_units_left(world: World) -> None:
    world.commit({".gitcoord/config": CONFIG})
    world.take("@gpu", agent="bob")
    assert world.claim("check", "@gpu").code == 0
    world.take("@gpu")
    assert world.claim("check", "@gpu") == Done(0, "@gpu: yes, yours\n", "")
    world.take("@gpu", agent="carol")
    assert world.claim("check", "@gpu", agent="dave").code == 1


# --- resources -----------------------------------------------------------------------------------------------------


def test_a_resource_and_a_path_of_the_same_name_are_two_things(world: World) -> None:
    assert world.claim("@src") == Done(0, "claimed @src, token 3, expires after 30m without activity\n", "")
    assert world.claim("src", agent="bob").code == 0
    assert world.claim("@src/below", agent="bob").code == 1
    assert world.claims() == ["path/src/@bob", "resource/src/@alice"]


def test_capacity(world: World) -> None:
    world.commit({".gitcoord/config": CONFIG})
    assert world.claim("@gpu", "--units", "2") == Done(
        0, "claimed @gpu, token 3, expires after 5m without activity\n", ""
    )
    assert world.claim("@gpu", agent="bob").code == 0
    full = world.claim("@gpu", agent="carol")
    assert full.code == 1
    assert full.err.startswith("error: '@gpu' held by alice, bob\n  @gpu x2  alice")
    too_many = world.claim("@gpu", "--units", "4", agent="carol")
    assert too_many.err == "error: @gpu has 3 unit(s), 4 were asked for\n"
    world.claim("@gpu", "--units", "1")
    assert world.claim("@gpu", agent="carol").code == 0


def test_access_and_ttl_come_from_the_committed_settings(world: World) -> None:
    world.write(".gitcoord/config", CONFIG)
    assert world.claim("@deploy/production").code == 0, "what is not committed does not count"
    world.free()
    world.commit({})
    done = world.claim("@deploy/production")
    assert done == Done(
        1, "", "error: 'alice' may not write @deploy/production\n"
        'hint: the settings allow: carol, dave (.gitcoord/config, resource "deploy/production")\n',
    )  # fmt: skip
    assert (
        world.claim("@deploy/production", agent="carol").out
        == "claimed @deploy/production, token 6, expires after 15m without activity\n"
    )
    assert world.claim("@deploy/production", "--mode", "read", agent="mallory").code == 1
    world.free("carol")
    assert world.claim("@deploy/production", "--mode", "read", agent="erin").code == 0


def test_the_settings_of_the_sync_branch_count_not_those_of_a_topic(world: World) -> None:
    world.commit({".gitcoord/config": CONFIG})
    world.git("switch", "-q", "-c", "topic")
    world.commit({".gitcoord/config": ""})
    assert world.claim("@deploy/production").code == 1


# --- takeover ------------------------------------------------------------------------------------------------------


def _takeover(path: str, token: int) -> tuple[str, ...]:
    return ("takeover", path, "--token", str(token), "--force", "--reason", "it hangs")


def test_agents_cannot_take_over(world: World) -> None:
    token = world.take("src")
    before = world.refs()
    done = world.claim(*_takeover("src", token), agent="bob")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: only a person at a terminal may take a live claim away\n")
    assert "takeover" not in done.err
    assert world.claim(*_takeover("src", token), agent="").code == 2, "nobody at all"
    assert world.at_terminal(*_takeover("src", token), agent="bob").code == 1, "an agent at a terminal"
    assert world.refs() == before


def test_a_person_takes_over_naming_the_token(world: World) -> None:
    token = world.take("src")
    before = world.refs()
    wrong = world.at_terminal(*_takeover("src", token + 1))
    assert wrong.code == 1 and f"no claim on 'src' has token {token + 1}" in wrong.out
    assert "--force" not in wrong.out
    assert world.refs() == before
    done = world.at_terminal(*_takeover("src", token))
    assert (done.code, done.out) == (0, f"took over src from alice, token {len(world.events())}\n")
    assert world.claims() == [f"path/src/@{PERSON}"]
    assert f"takeover src from alice by {PERSON}" in world.events()


def test_who_lost_a_claim_to_a_takeover_is_told_so(world: World) -> None:
    token = world.take("src")
    assert world.at_terminal(*_takeover("src", token)).code == 0
    told = world.claim("docs")
    assert f"you lost src (token {token}) to {PERSON}" in told.err
    assert "silent" not in told.err, "it was not silent at all"


# --- exit codes ----------------------------------------------------------------------------------------------------


def test_exit_codes(world: World) -> None:
    """0 done; 1 refused; 2 usage; 3 timed out; 4 the store failed; 130 interrupted (above)."""
    world.take("src")
    assert world.claim("list").code == 0
    assert world.claim("src", agent="bob").code == 1
    assert world.claim("src", "--ttl", "never").code == 2
    assert world.claim("release", "src", "extra", "--nope").code == 2
    assert world.claim("--wait", "1s", "src", agent="bob").code == 3
    (world.top / ".git/refs/heads/gitcoord.lock").touch()
    stuck = world.claim("docs", agent="bob")
    assert stuck.code == 4 and "gitcoord.lock" in stuck.err
    (world.top / ".git/refs/heads/gitcoord.lock").unlink()
    assert world.claim("docs", agent="bob").code == 0


def test_a_session_that_is_over_never_claims_again(world: World) -> None:
    env = {"GITCOORD_SESSION": "1"}
    world.take("src")
    assert world.claim("docs", env=env).code == 0
    world.coord("stop", agent="alice")
    done = world.claim("docs", env=env)
    assert done.code == 1 and "session 1 of 'alice' has ended" in done.err
    assert world.claim("docs").code == 0, "a new session of the same name"


def test_a_bare_repository(tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    inside = World.__new__(World)
    inside.top, inside.coloured = bare, False
    inside.init()
    assert inside.claim("src").out == "claimed src, token 3, expires after 30m without activity\n"
    assert inside.claim("src/a.py", agent="bob").code == 1
    assert inside.claim("/src", agent="bob").code == 2
    assert inside.claim("release", "src").code == 0


def test_release_of_anothers_claim_names_the_holder(world: World) -> None:
    world.take("src/a.py", agent="bob")
    before = world.refs()
    done = world.claim("release", "src/a.py", "src/b.py")
    assert done.code == 1 and "does not hold src/a.py (held by bob), src/b.py: nothing was released" in done.err, done
    assert "'alice' does not hold src (bob holds src/a.py): nothing" in world.claim("release", "src").err
    assert "(held by bob)" in world.claim("release", "src/a.py", "--json").json["message"]
    assert world.refs() == before


def test_an_absolute_path_through_a_link_to_the_work_tree(world: World, tmp_path: Path) -> None:
    """The path is inside, as for git; also with the link above the work tree, and for a missing file."""
    link, above = tmp_path / "link", tmp_path / "above"
    link.symlink_to(world.top)
    above.symlink_to(world.top.parent)
    for number, place in enumerate((link, above / world.top.name, world.top)):
        for name in ("src/a.py", f"new/{number}", ""):
            done = world.claim("check", str(place / name), "--json")
            assert done.code == 0 and done.json["paths"][0]["path"] == (name or "."), done
    assert (
        world.run(["sh", "-c", f'cd "{link}/src" && exec "$@"', "-", *CLAIM], (f"{link}/src/b.py",), "alice").code == 0
    )
    assert world.claims() == ["path/src/b.py/@alice"]
    inner = tmp_path / "inner"
    inner.symlink_to(world.top / "src")
    outside = world.claim(str(inner / "a.py"))
    assert outside.code == 2 and "outside the repository" in outside.err, "as for git"
    (world.top / "loop").symlink_to(world.top)
    assert world.claim(str(link / "loop/src/a.py")).out.startswith("claimed src/a.py, token ")

"""A server restored from a backup: no clone that has seen more writes; one command restores; no token is given twice.

The server is a directory that is copied away and back, with and without the gate, as an administrator would do it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.ledger.remote.support import LEDGER, Fleet, Machine

WORDS = "the server is behind what this clone has seen"
TIP = "refs/gitcoord/tip"
COMMAND = "git coord fsck --repair"
LEAP = 1_000_000


class Site(Fleet):
    """A fleet whose server can be set back to an earlier day."""

    def __init__(self, place: Path, *, gate: bool) -> None:
        super().__init__(place)
        self.gate = gate
        if gate:
            self.install()
        self.one, self.two = self.joined()

    def install(self) -> None:
        argv = ["gitcoord-quick", "install", str(self.place / "bin/git-claim"), "GITCOORD_ACCOUNT"]
        subprocess.run(argv, cwd=self.bare, env=self.env, check=True)

    def back_up(self) -> None:
        shutil.rmtree(self.place / "backup.git", ignore_errors=True)
        shutil.copytree(self.bare, self.place / "backup.git", symlinks=True)

    def restore(self) -> None:
        shutil.rmtree(self.bare)
        shutil.copytree(self.place / "backup.git", self.bare, symlinks=True)

    def contains(self, oid: str) -> bool:
        argv = ["git", "merge-base", "--is-ancestor", oid, LEDGER]
        return subprocess.run(argv, cwd=self.bare, env=self.env, check=False, capture_output=True).returncode == 0

    def held(self) -> dict[str, str]:
        """The holders, by the server's claim refs."""
        found = [ref.removeprefix("refs/claims/path/") for ref in self.refs() if ref.startswith("refs/claims/")]
        return {path: agent for path, _, agent in (name.rpartition("/@") for name in found)}

    def delete(self) -> None:
        self.git("-c", "core.hooksPath=/dev/null", "update-ref", "-d", LEDGER)

    def assert_whole(self) -> None:
        """Numbers only grow, and each machine's replay is clean."""
        seqs = [event["seq"] for event in reversed(self.events())]
        assert seqs == sorted(set(seqs)) or seqs[::-1] == sorted(set(seqs)), seqs
        for machine in self.machines:
            assert machine.claim("list").code == 0
            found = machine.run("gitcoord-quick", "fsck")
            assert (found.code, found.out) == (0, ""), found


@pytest.fixture(params=[False, True], ids=["no gate", "gate"])
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    return Site(tmp_path, gate=request.param)


@pytest.fixture
def plain(tmp_path: Path) -> Site:
    return Site(tmp_path, gate=False)


def token(answer: Done) -> int:
    assert answer.code == 0, answer
    return int(answer.json["token"])


def take(machine: Machine, path: str, agent: str) -> int:
    return token(machine.claim("--json", path, agent=agent))


def refuses(site: Site, machine: Machine) -> None:
    """Assert that it writes nothing, and that the error names the command."""
    before = site.refs()
    for words, agent in ((["fresh"], "carol"), (["check", "src/app.py"], "alice")):
        found = machine.claim(*words, "--json", agent=agent)
        assert (found.code, found.json["error"]) == (4, "could-not-judge"), found
        assert WORDS in found.json["message"] and COMMAND in " ".join(found.json["hints"]), found
    assert site.refs() == before


def repaired(machine: Machine, agent: str) -> list[str]:
    """Repair as `git coord fsck --repair` does, without its start."""
    done = machine.run("gitcoord-quick", "repair", agent)
    assert done.code == 0, done
    return done.out.splitlines()


def shows(machine: Machine, *paths: str) -> None:
    """Looking shows what this clone has seen, and says why."""
    listed = machine.claim("list", "--json")
    assert listed.code == 0 and sorted(c["path"] for c in listed.json["claims"]) == sorted(paths), listed
    assert WORDS in listed.json["offline"] and COMMAND in listed.json["offline"]
    status = machine.coord("status", "--json")
    assert status.code == 0 and sorted(c["path"] for c in status.json["claims"]) == sorted(paths), status
    assert WORDS in status.json["offline"], status


# --- a clone that knows more


@pytest.mark.parametrize("how", ["look", "git fetch"])
def test_whoever_knows_more_says_so(plain: Site, how: str) -> None:
    one = plain.one
    take(one, "a", "alice")
    plain.back_up()
    take(one, "src/app.py", "alice")
    plain.restore()
    if how == "git fetch":
        one.git("fetch", "-q", "--prune")
    refuses(plain, one)
    shows(one, "a", "src/app.py")
    refuses(plain, one)
    told = one.claim("list")
    assert WORDS in told.err and COMMAND in told.err and "src/app.py" in told.out, told
    assert "what follows is the newer state that this clone has seen" in told.err
    logged = one.coord("log", "--json")
    assert "claim src/app.py by alice" in [event["subject"] for event in logged.json["events"]], logged
    told = one.coord("fsck")
    assert told.code == 1 and WORDS in told.out + told.err and "claim src/app.py by alice" in told.out, told


def test_a_clone_that_knows_no_more_goes_on(plain: Site) -> None:
    take(plain.one, "a", "alice")
    plain.back_up()
    take(plain.one, "src/app.py", "alice")
    plain.restore()
    assert plain.two.claim("list").err == ""


# --- bringing it back


@pytest.mark.parametrize("first", ["the shorter", "the longer"])
def test_the_longest_history_comes_back(site: Site, first: str) -> None:
    one, two = site.one, site.two
    take(one, "a", "alice")
    site.back_up()
    take(one, "src/app.py", "alice")
    last = take(two, "src/db.py", "bob")
    site.restore()
    refuses(site, two)
    shorter, longer = one.git("rev-parse", LEDGER).strip(), two.git("rev-parse", LEDGER).strip()
    assert shorter != longer
    for machine in (one, two) if first == "the shorter" else (two, one):
        machine.claim("list")
        told = repaired(machine, agent="ada")
        assert machine is not two or any("claim src/db.py by bob" in line for line in told), told
    assert site.contains(longer)
    assert site.held() == {"a": "alice", "src/app.py": "alice", "src/db.py": "bob"}
    assert take(one, "x", "alice") > last + LEAP
    assert take(two, "y", "bob") > last + LEAP
    assert one.claim("release", "src/app.py", agent="alice").code == 0
    site.assert_whole()


def test_no_token_is_given_twice_between_two_repairs(plain: Site) -> None:
    """Somebody writes after the first clone has brought its part back, before the one that knows more comes."""
    one, two = plain.one, plain.two
    plain.back_up()
    take(one, "a", "alice")
    lost = take(two, "src/db.py", "bob")
    plain.restore()
    one.claim("list")
    repaired(one, agent="ada")
    assert take(one, "x", "alice") > LEAP > lost
    refuses(plain, two)
    told = repaired(two, agent="ada")
    assert any("claim src/db.py by bob" in line for line in told), told
    assert plain.held() == {"a": "alice", "x": "alice"}
    assert two.claim("check", "src/db.py", agent="bob").code == 0, "free, and nobody's"
    assert "src/db.py" not in two.claim("list").out
    assert take(two, "src/db.py", "bob") > LEAP > lost
    plain.assert_whole()


@pytest.mark.parametrize("how", ["look", "git fetch"])
def test_the_ledger_deleted_at_the_server(plain: Site, how: str) -> None:
    one = plain.one
    take(one, "a", "alice")
    last = take(one, "src/app.py", "alice")
    tip = one.git("rev-parse", LEDGER).strip()
    plain.delete()
    if how == "git fetch":
        one.run("git", "fetch", "-q", "--prune")
    refuses(plain, one)
    shows(one, "a", "src/app.py")
    found = one.run("git-coord", "init", "--remote", "origin", "--json")
    assert found.code == 4 and LEDGER not in plain.refs(), "no second ledger in its place"
    repaired(one, agent="ada")
    assert plain.contains(tip) and plain.held() == {"a": "alice", "src/app.py": "alice"}
    plain.two.claim("list")
    assert take(plain.two, "y", "bob") > last
    plain.assert_whole()


# --- somebody wrote on the restored ledger


def diverged(site: Site) -> int:
    """Both machines have seen bob's claim; the server was set back, and a clone that knew less has written since."""
    site.back_up()
    take(site.one, "a", "alice")
    lost = take(site.two, "src/db.py", "bob")
    assert site.one.claim("list").code == 0
    site.restore()
    three = site.add("three")
    three.join()
    take(three, "a", "carol")
    take(three, "src/app.py", "carol")
    return lost


def test_a_new_epoch_where_histories_diverged(site: Site) -> None:
    lost = diverged(site)
    one, two, three = site.machines
    refuses(site, one)
    shows(one, "a", "src/db.py")
    preview = one.coord("fsck")
    assert preview.code == 1 and "claim src/db.py by bob" in preview.out, preview
    done = one.coord("fsck", "--repair", "--json", agent="ada")
    assert done.code == 0 and done.json["clean"], done
    told = done.json["repaired"]
    assert any("claim src/db.py by bob" in line for line in told) and any(
        "refs/gitcoord/lost/" in line for line in told
    )
    assert site.held() == {"a": "carol", "src/app.py": "carol"}, "what was written there stays"
    assert one.claim("--json", "a", agent="alice").json["error"] == "held"
    first = take(three, "x", "carol")
    assert first > lost + LEAP
    # The other clone is told too, and needs no epoch of its own.
    refuses(site, two)
    told = repaired(two, agent="bob")
    assert any("claim src/db.py by bob" in line for line in told), told
    assert len(site.events("epoch")) == 1
    assert take(two, "src/db.py", "bob") > first
    site.assert_whole()


def test_what_others_hold_where_the_server_went_on_is_shown(plain: Site) -> None:
    """`list` shows the claims at the server, and does not call this clone's history the newer one."""
    diverged(plain)
    one = plain.one
    listed = one.claim("list")
    assert "the two histories differ" in listed.err and "newer" not in listed.err, listed
    here, there = (len(one.git("rev-list", f"{a}..{b}").split()) for a, b in ((LEDGER, TIP), (TIP, LEDGER)))
    assert f"{here} event(s) that 'origin' lacks, and 'origin' has {there} that this clone lacks" in listed.err, listed
    marked = [line.split()[:5] for line in listed.out.splitlines() if line.startswith("at the server: ")]
    assert marked == [["at", "the", "server:", path, "carol"] for path in ("a", "src/app.py")], listed
    for found in (one.claim("list", "--json"), one.coord("status", "--json")):
        assert {(c["path"], c["agent"]) for c in found.json["claims"]} == {("a", "alice"), ("src/db.py", "bob")}, found
        rows = {(c["path"], c["agent"]) for c in found.json["server_claims"]}
        assert rows == {("a", "carol"), ("src/app.py", "carol")}, found
    assert one.coord("status").out.count("at the server: ") == 2
    for found in (one.claim("show", "src/app.py"), one.coord("why", "src/app.py")):
        assert "carol" in found.out and "nobody" not in found.out and "no claim" not in found.err, found
    for path in ("a", "src/app.py", "src/db.py"):
        found = one.claim("check", path, "--json", agent="dora")
        assert (found.code, found.json["error"]) == (4, "could-not-judge"), found
    repaired(one, agent="ada")
    listed = one.claim("list", "--json")
    assert "server_claims" not in listed.json and "offline" not in listed.json, listed


def test_a_server_that_only_lost_events_has_no_claims_of_its_own(plain: Site) -> None:
    """A claim whose release was lost is not shown as held: the repair restores the release."""
    take(plain.one, "a", "alice")
    plain.back_up()
    assert plain.one.claim("release", "a", agent="alice").code == 0
    plain.restore()
    listed = plain.one.claim("list", "--json")
    assert WORDS in listed.json["offline"] and listed.json["claims"] == [], listed
    assert "server_claims" not in listed.json


def test_an_epoch_that_does_not_leap_far_enough(plain: Site) -> None:
    """This clone has seen a later epoch than the one that was begun without it: its own repair leaps past that."""
    one, two = plain.one, plain.two
    plain.back_up()
    take(two, "src/db.py", "bob")
    plain.restore()
    two.claim("list")
    repaired(two, agent="ada")
    high = take(two, "y", "bob")
    plain.restore()
    assert take(one, "a", "alice") < LEAP
    refuses(plain, two)
    repaired(two, agent="ada")
    assert take(one, "b", "alice") > high
    assert take(two, "src/db.py", "bob") > high
    plain.assert_whole()


def test_two_who_repair_at_the_same_time(site: Site) -> None:
    lost = diverged(site)
    one, two, three = site.machines
    both = [machine.start("git-coord", "fsck", "--repair", "--json", agent="ada") for machine in (one, two)]
    for process in both:
        out, err = process.communicate(timeout=60)
        assert process.returncode in (0, 3), (out, err)
    for machine in (one, two):
        repaired(machine, agent="ada")
    assert take(three, "x", "carol") > lost + LEAP
    assert site.held() == {"a": "carol", "src/app.py": "carol", "x": "carol"}
    site.assert_whole()


def test_another_ledger_in_its_place(plain: Site) -> None:
    """Somebody made a new one at the server: neither is laid over the other."""
    one = plain.one
    take(one, "a", "alice")
    plain.delete()
    for ref in plain.refs():
        if ref.startswith(("refs/claims/", "refs/gitcoord/")):
            plain.git("update-ref", "-d", ref)
    plain.add("three").join()
    before = plain.refs()
    for words in (["fsck", "--repair"], ["start"]):
        done = one.coord(*words, agent="alice")
        assert done.code == 4 and "another ledger" in done.err, done
    assert plain.refs() == before


def test_what_the_server_took_by_force_is_never_taken_by_force_again(plain: Site) -> None:
    """The host takes no forced push: events that a later clone has in addition are reported, not lost silently."""
    one, two = plain.one, plain.two
    plain.back_up()
    take(one, "a", "alice")
    lost = take(two, "src/db.py", "bob")
    plain.restore()
    plain.git("config", "receive.denyNonFastForwards", "true")
    one.claim("list")
    repaired(one, agent="ada")
    told = repaired(two, agent="ada")
    assert any("claim src/db.py by bob" in line and "lost" in line for line in told), told
    assert take(two, "src/db.py", "bob") > LEAP > lost
    plain.assert_whole()


# --- forged at the server


def test_claims_on_top_of_a_forged_event(plain: Site) -> None:
    """Somebody with access to the server's files put it there; the gate judges pushes only."""
    one, two = plain.one, plain.two
    take(one, "a", "alice")
    seq = plain.events()[-1]["seq"] + 1
    event = {"v": 1, "kind": "unhalt", "seq": seq, "agent": "eve", "at": 1900000000, "nonce": "forged", "part": 0}
    line = json.dumps(event, sort_keys=True, separators=(",", ":"))
    tree = plain.git("rev-parse", f"{LEDGER}^{{tree}}").strip()
    message = f"forged\n\n{line}\n\nSeq: {seq}\nKind: unhalt\n"
    forged = plain.git("commit-tree", tree, "-p", LEDGER, "-m", message).strip()
    plain.git("-c", "core.hooksPath=/dev/null", "update-ref", LEDGER, forged)
    last = take(two, "src/db.py", "bob")
    told = repaired(one, agent="ada")
    assert any("over 1 commit(s)" in line for line in told), told
    assert plain.held() == {"a": "alice", "src/db.py": "bob"}
    assert two.claim("check", "src/db.py", agent="bob").code == 0
    assert take(two, "x", "bob") > last
    plain.assert_whole()


# --- rewritten by a tool


def rewrite(machine: Machine) -> None:
    """Rewrite every ref, the copies of the server's too, as a person does to change an address."""
    words = [
        "--env-filter",
        "export GIT_AUTHOR_EMAIL=new@example.com GIT_COMMITTER_EMAIL=new@example.com",
        "--",
        "--all",
    ]
    done = machine.run(
        "git", "-c", "core.hooksPath=/dev/null", "filter-branch", "-f", *words,
        env={"FILTER_BRANCH_SQUELCH_WARNING": "1"},
    )  # fmt: skip
    assert done.code == 0, done


@pytest.mark.parametrize("where", ["in a clone", "and pushed by force"])
def test_a_rewritten_ledger(plain: Site, where: str) -> None:
    one, two = plain.one, plain.two
    take(one, "a", "alice")
    take(two, "src/db.py", "bob")
    rewrite(two)
    if where == "and pushed by force":
        specs = [LEDGER, "refs/claims/*:refs/claims/*"]
        two.git("-c", "core.hooksPath=/dev/null", "push", "-q", "--no-verify", "--force", "origin", *specs)
    for machine in (one, two):
        for words in (["x"], ["check", "a"]):
            found = machine.claim(*words, agent="alice")
            assert found.code == 0 or (found.code == 4 and COMMAND in found.err), found
            if found.code == 0 and words == ["x"]:
                assert machine.claim("release", "x", agent="alice").code == 0
        repaired(machine, agent="ada")
    assert plain.held() == {"a": "alice", "src/db.py": "bob"}
    take(one, "y", "alice")
    take(two, "z", "bob")
    plain.assert_whole()

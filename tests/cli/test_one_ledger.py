"""One project, one ledger: clones join the ledger that the policy names, and never make a second one."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tests.cli.support import Done, World
from tests.support import CLAIM, COORD, HANDOFF, git

ROOT = "f" * 40


class Project:
    """A bare repository, and clones of it, each set up as its user likes."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.bare = place / "server.git"
        git(place, "init", "-q", "--bare", "-b", "main", str(self.bare))
        self.one = self.clone("one")
        self.one.git("checkout", "-q", "-B", "main")
        self.one.commit({"src/a.py": "a\n", "f": "f\n"})
        self.one.git("push", "-q", "-u", "origin", "main")

    def clone(self, name: str) -> World:
        git(self.place, "clone", "-q", str(self.bare), str(self.place / name))
        return World(self.place / name, made=True)

    def share_policy(self, world: World) -> None:
        """Commit what was set up, and push it to trunk."""
        world.git("add", "-A")
        world.git("commit", "-q", "--no-verify", "-m", "policy")
        world.git("push", "-q", "--no-verify", "origin", "main")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "git-claim").write_text("#!/bin/sh\nexit 0\n")
    (bin / "git-claim").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin}:{os.environ['PATH']}")
    return Project(tmp_path)


def refused(done: Done, error: str, code: int) -> None:
    assert (done.code, done.json["ok"], done.json["error"]) == (code, False, error), done


def ledgers(*worlds: World) -> set[str]:
    return {world.git("config", "gitcoord.root", ok=False) for world in worlds} - {""}


def follow(world: World, hint: str) -> Done:
    """Run the command that a hint names."""
    command = hint[hint.index("git coord ") :]
    return world.run(COORD, tuple(command.split()[2:]), "")


# --- clones ----------------------------------------------------------------------------------------------------------


def test_two_clones_that_each_run_setup_never_have_two_ledgers(project: Project) -> None:
    one = project.one
    assert one.coord("setup", "--no-tools").code == 0
    project.share_policy(one)
    two = project.clone("two")
    done = two.coord("setup", "--no-tools", "--json")
    refused(done, "no-ledger", 1)
    assert ledgers(two) == set() and "refs/heads/gitcoord" not in two.refs(), "nothing was made"
    assert one.take("f", agent="alice") == 3
    refused(two.claim("f", "--json", agent="bob"), "could-not-judge", 4)
    # The hints, followed literally: in the clone that has the ledger, then here.
    share, here = done.json["hints"][:2]
    assert follow(one, share).code == 0
    assert follow(two, here).code == 0
    assert len(ledgers(one, two)) == 1
    refused(two.claim("f", "--json", agent="bob"), "held", 1)


@pytest.mark.parametrize(
    "words", [("setup", "--no-tools"), ("init",), ("init", "--remote", "origin"), ("init", "--policy")]
)
def test_no_way_makes_a_second_one(project: Project, words: tuple[str, ...]) -> None:
    assert project.one.coord("setup", "--no-tools").code == 0
    project.share_policy(project.one)
    two = project.clone("two")
    before = two.refs(), (two.top / ".git/config").read_text(), git(project.bare, "for-each-ref")
    refused(two.coord(*words, "--json"), "no-ledger", 1)
    assert (two.refs(), (two.top / ".git/config").read_text(), git(project.bare, "for-each-ref")) == before


@pytest.mark.parametrize("words", [("setup", "--no-tools"), ("init",), ("init", "--remote", "origin")])
def test_a_clone_joins_the_remotes(project: Project, words: tuple[str, ...]) -> None:
    """It joins with a policy that names the remote and with one that does not."""
    assert project.one.coord("setup", "--no-tools").code == 0
    project.share_policy(project.one)
    assert project.one.coord("init", "--remote", "origin").code == 0
    two = project.clone("two")
    assert two.coord(*words).code == 0
    assert len(ledgers(project.one, two)) == 1 and two.git("config", "gitcoord.authority") == "origin"


def test_a_branch_without_the_policy_is_no_way_around(project: Project) -> None:
    """Trunk's policy names the ledger, also where another branch is checked out or nothing is."""
    old = project.one.git("rev-parse", "HEAD")
    assert project.one.coord("setup", "--no-tools").code == 0
    project.share_policy(project.one)
    two = project.clone("two")
    two.git("checkout", "-q", old)
    assert not (two.top / ".gitcoord").exists()
    for words in (("setup", "--no-tools"), ("init",), ("init", "--remote", "origin")):
        refused(two.coord(*words, "--json"), "no-ledger", 1)
    refused(two.claim("f", "--json"), "could-not-judge", 4)


def test_a_ledger_that_was_taken_away_is_brought_back(project: Project) -> None:
    one = project.one
    assert one.coord("setup", "--no-tools").code == 0
    project.share_policy(one)
    one.take("f")
    one.free()
    head = one.head
    assert one.coord("teardown", "--yes", agent="").code == 0
    done = one.coord("setup", "--no-tools", "--json")
    refused(done, "no-ledger", 1)
    for command in done.json["hints"][0].removeprefix("bring it back: ").split(" && "):
        if command.startswith("git coord"):
            assert follow(one, command).code == 0, command
        else:
            one.git(*[word.replace("''", "") for word in command.split()[1:]])
    assert one.coord("fsck").out.startswith("clean")
    assert one.git("merge-base", "--is-ancestor", head, "gitcoord") == "" and one.claim("f").code == 0


def test_setup_joins_what_it_finds_without_any_policy(project: Project) -> None:
    """The policy is not committed yet, and this clone has not fetched the ledger."""
    two = project.clone("two")
    assert project.one.coord("init", "--remote", "origin").code == 0
    done = two.coord("setup", "--no-tools")
    assert done.code == 0 and "will join the ledger of 'origin'" in done.out, done
    assert len(ledgers(project.one, two)) == 1


def test_the_remote_that_has_it_is_found_among_several(project: Project) -> None:
    assert project.one.coord("setup", "--no-tools").code == 0
    project.share_policy(project.one)
    assert project.one.coord("init", "--remote", "origin").code == 0
    two = project.clone("two")
    other = project.place / "other.git"
    git(project.place, "init", "-q", "--bare", "-b", "main", str(other))
    stranger = World(project.place / "stranger")
    stranger.git("remote", "add", "origin", str(other))
    assert stranger.coord("init", "--remote", "origin").code == 0
    two.git("remote", "rename", "origin", "upstream")
    two.git("remote", "add", "aaa", str(other))
    two.git("remote", "add", "empty", str(project.place / "nothing.git"))
    assert two.coord("setup", "--no-tools").code == 0
    assert two.git("config", "gitcoord.authority") == "upstream" and len(ledgers(project.one, two)) == 1


def test_another_ledger_at_the_remote_is_not_joined(project: Project) -> None:
    two = project.clone("two")  # it has not seen the policy
    assert project.one.coord("setup", "--no-tools").code == 0
    project.share_policy(project.one)
    three = project.clone("three")
    assert two.coord("init", "--remote", "origin").code == 0
    for words in (("setup", "--no-tools"), ("init",), ("init", "--remote", "origin")):
        refused(three.coord(*words, "--json"), "other-ledger", 1)
        assert ledgers(three) == set() and "refs/heads/gitcoord" not in three.refs()
    refused(project.one.coord("init", "--remote", "origin", "--json"), "other-ledger", 1)


# --- remotes that do not answer ----------------------------------------------------------------------------------------


def test_a_remote_that_does_not_answer_is_not_taken_for_one_without_a_ledger(project: Project) -> None:
    assert project.one.coord("setup", "--no-tools").code == 0
    project.share_policy(project.one)
    two = project.clone("two")
    project.bare.rename(project.place / "elsewhere.git")
    for words in (("setup", "--no-tools"), ("init",)):
        done = two.coord(*words, "--json")
        refused(done, "unreachable", 5)
    assert ledgers(two) == set()


def test_without_a_policy_a_silent_remote_stops_nobody(project: Project) -> None:
    """A remote that never answers: the look at it is bounded, and what could not be seen is said."""
    git(project.one.top, "config", "remote.origin.uploadpack", "sleep 600;:")
    done = project.one.coord("setup", "--no-tools")
    assert done.code == 0 and "'origin' was not looked at: no answer within 2 seconds" in done.err, done
    assert "authority: this clone alone" in done.out


# --- what setup says and offers ------------------------------------------------------------------------------------------


def test_a_relative_address_is_the_same_for_all_clones(project: Project) -> None:
    project.one.git("remote", "set-url", "origin", "../server.git")
    assert project.one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    (project.place / "link").symlink_to(project.bare)
    for name, url in (("two", str(project.bare)), ("three", "../server.git"), ("four", str(project.place / "link"))):
        world = project.clone(name)
        world.git("remote", "set-url", "origin", url)
        done = world.coord("setup", "--no-tools", agent="")
        assert done.code == 0 and len(ledgers(project.one, world)) == 1, done


@pytest.mark.parametrize("hooks", [True, False])
def test_a_clone_of_a_clone_with_a_ledger_of_its_own_is_told_how_to_share_it(project: Project, hooks: bool) -> None:
    """With hooks that refuse a probe, and without."""
    one = project.one
    assert one.coord("setup", "--no-tools").code == 0
    project.share_policy(one)
    if hooks:
        judge = f'#!/bin/sh\nexec {shlex.join(CLAIM)} "$@"\n'
        (project.place / "bin/git-claim").write_text(judge)
    git(project.place, "clone", "-q", str(one.top), str(project.place / "two"))
    done = World(project.place / "two", made=True).coord("setup", "--no-tools", "--json", agent="")
    refused(done, "elsewhere", 1)
    assert "git coord setup --remote <server>" in done.json["hints"][0], done


@pytest.mark.parametrize("pushed", [("--all",), ("--mirror",)])
def test_a_copy_at_the_remote_becomes_the_ledger(project: Project, pushed: tuple[str, ...]) -> None:
    """`git push --all` and a bare clone bring the branch along, with hooks that refuse a move of the ledger by hand."""
    one = project.one
    assert one.coord("setup", "--no-tools").code == 0 and one.claim("f", agent="alice").code == 0
    project.share_policy(one)
    one.git("push", "-q", "--no-verify", "origin", *pushed)
    assert one.claim("src/a.py", agent="alice").code == 0, "the copy is older"
    root = one.git("config", "gitcoord.root")
    done = one.coord("setup", "--no-tools", "--remote", "origin", agent="")
    assert done.code == 0 and "every clone that runs 'git coord setup' uses this ledger" in done.out, done
    assert one.coord("fsck").code == 0 and one.git("config", "gitcoord.root") == root
    two = project.clone("two")
    assert two.coord("setup", "--no-tools", agent="").code == 0
    assert two.claim("f", agent="bob").code == 1 and two.claim("src/a.py", agent="bob").code == 1


def test_setup_says_which_authority_holds_and_offers_the_remote(project: Project) -> None:
    one = project.one
    done = one.coord("setup", "--no-tools")
    assert "authority: this clone alone" in done.out and "git coord setup --remote origin" in done.err
    assert one.coord("setup", "--no-tools", "--json").json["authority"] == "local"
    done = one.coord("setup", "--no-tools", "--remote", "origin")
    assert done.code == 0 and "authority: 'origin'" in done.out, done
    assert one.coord("setup", "--no-tools", "--json").json["authority"] == "origin"
    assert one.git("config", "-f", ".gitcoord/config", "gitcoord.authority") == "origin"
    assert "refs/heads/gitcoord" in git(project.bare, "for-each-ref").decode()


def test_local_is_said_and_not_asked_again(project: Project) -> None:
    done = project.one.coord("setup", "--no-tools", "--local")
    assert done.code == 0 and "authority: this clone alone" in done.out and "--remote" not in done.err
    assert "refs/heads/gitcoord" not in git(project.bare, "for-each-ref").decode()
    refused(project.one.coord("setup", "--local", "--remote", "origin", "--json"), "usage", 2)


def test_at_a_terminal_sharing_is_asked(project: Project) -> None:
    with project.one.terminal("setup", "--no-tools", argv=COORD) as shown:
        shown.until(lambda text: b"share the ledger through 'origin'" in text and b"[Y/n] " in text)
        os.write(shown._master, b"y\n")
        shown.until(lambda text: b"go on? [Y/n] " in text)
        os.write(shown._master, b"y\n")
        done = shown.end()
    assert done.code == 0 and "authority: 'origin'" in done.out, done
    assert "refs/heads/gitcoord" in git(project.bare, "for-each-ref").decode()


def test_an_existing_policy_gets_the_authority(project: Project) -> None:
    one = project.one
    assert one.coord("init", "--policy").code == 0
    text = (one.top / ".gitcoord/config").read_text() + '# ours\n[resource "gpu"]\n\tcapacity = 2\n'
    (one.top / ".gitcoord/config").write_text(text)
    done = one.coord("init", "--remote", "origin", "--policy", "--json")
    assert done.code == 0 and done.json["policy"] == [".gitcoord/config"], done
    assert one.git("config", "-f", ".gitcoord/config", "gitcoord.authority") == "origin"
    after = (one.top / ".gitcoord/config").read_text()
    assert [line for line in after.split("\n") if "authority" not in line] == [
        line for line in text.split("\n") if "authority" not in line
    ]
    assert one.coord("init", "--remote", "origin", "--policy", "--json").json["policy"] == []


# --- another ledger -----------------------------------------------------------------------------------------------------


def other_ledger(project: Project) -> World:
    """A clone with a ledger of its own, whose policy names the one that 'origin' has."""
    two = project.clone("two")
    assert two.coord("init").code == 0 and two.coord("install-hooks").code == 0
    assert project.one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    project.share_policy(project.one)
    two.git("pull", "-q", "--no-verify", "origin", "main")
    return two


def test_another_ledger_grants_nothing_and_says_so(project: Project) -> None:
    two = other_ledger(project)
    for words in (("f",), ("check", "f"), ("release", "--all")):
        done = two.claim(*words, "--json", agent="bob")
        refused(done, "could-not-judge", 4)
        assert "is not the project's" in done.json["message"] and done.json["hints"] == [
            "use the project's: git coord setup"
        ]
    assert two.coord("fsck").code == 1 and "is not the project's" in two.coord("fsck").out
    assert two.coord("fsck", "--repair").code == 1
    refused(two.coord("policy", "check", "--json"), "could-not-judge", 4)
    for words in (("status",), ("log",), ("agents",)):
        done = two.coord(*words)
        assert done.code == 0 and done.err.count("is not the project's") == 1, done
    assert "is not the project's" in two.claim("list").err


def test_setup_joins_the_projects_and_keeps_the_other(project: Project) -> None:
    two = other_ledger(project)
    assert two.coord("install-hooks").code == 4  # nothing is built on the other one
    head = two.head
    refused(two.coord("setup", "--no-tools", "--json"), "person", 1)  # an agent asks a person
    done = two.coord("setup", "--no-tools", agent="")
    assert done.code == 0 and "will archive this clone's own ledger" in done.out, done
    assert len(ledgers(project.one, two)) == 1
    assert [oid for ref, oid in two.refs().items() if ref.startswith("refs/gitcoord-archive/")] == [head]
    assert two.claim("f", agent="bob").code == 0 and two.coord("fsck").code == 0
    assert two.coord("status", "--json").json["missing_gates"] == []
    assert project.one.claim("f", agent="alice").code == 1


def test_a_person_who_declines_keeps_the_other(project: Project) -> None:
    two = other_ledger(project)
    before = two.refs()
    with two.terminal("setup", "--no-tools", argv=COORD) as shown:
        shown.until(lambda text: b"go on? [Y/n] " in text)
        os.write(shown._master, b"n\n")
        done = shown.end()
    assert done.code == 1 and "will archive this clone's own ledger" in done.out and two.refs() == before
    assert two.coord("setup", "--no-tools", "--dry-run", agent="").code == 0 and two.refs() == before


def test_setup_archives_nothing_that_somebody_holds(project: Project) -> None:
    two = project.clone("two")
    assert two.coord("init").code == 0
    two.take("f", agent="bob")
    assert project.one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    project.share_policy(project.one)
    two.git("pull", "-q", "--no-verify", "origin", "main")
    before = two.refs()
    refused(two.coord("setup", "--no-tools", "--json", agent=""), "live-claims", 1)
    assert two.refs() == before


def test_setup_keeps_the_other_while_the_projects_is_nowhere(project: Project) -> None:
    two = project.clone("two")
    assert two.coord("init").code == 0
    two.write(".gitcoord/config", f"[gitcoord]\n\troot = {ROOT}\n")
    before = two.refs()
    refused(two.coord("setup", "--no-tools", "--json"), "no-ledger", 1)
    assert two.refs() == before


def test_trunks_policy_counts_where_a_branch_still_names_an_older_one(project: Project) -> None:
    one = project.one
    assert one.coord("setup", "--no-tools").code == 0
    project.share_policy(one)
    one.git("checkout", "-q", "-b", "old")
    one.write(".gitcoord/config", f"[gitcoord]\n\troot = {ROOT}\n")
    assert one.claim("f").code == 0
    one.git("checkout", "-q", "-f", "main")
    one.write(".gitcoord/config", "[gitcoord]\n\troot = \n")
    assert one.claim("f").code == 0


# --- two clones that were set up before the policy was committed ---------------------------------------------------------


POLICY = (".gitcoord/config", ".gitcoord/rules.md", ".gitattributes")


def set_up_apart(project: Project, *, files: bool) -> World:
    """Both clones have a ledger of their own; the second has fetched the first's policy, and its own `files` stay or go."""
    two = project.clone("two")
    assert project.one.coord("setup", "--no-tools").code == 0
    assert two.coord("setup", "--no-tools").code == 0
    project.share_policy(project.one)
    if not files:
        for name in POLICY:
            (two.top / name).unlink()
    two.git("fetch", "-q")
    return two


def policy_files(world: World) -> dict[str, bytes]:
    return {name: (world.top / name).read_bytes() for name in POLICY if (world.top / name).exists()}


def own_refs(world: World) -> dict[str, str]:
    """Without the remote-tracking refs, which a look at the remote's ledger may bring up to date."""
    return {ref: oid for ref, oid in world.refs().items() if not ref.startswith("refs/remotes/")}


@pytest.mark.parametrize("files", [True, False])
@pytest.mark.parametrize("words", [("setup", "--no-tools"), ("init", "--policy"), ("setup", "--no-tools", "--local")])
def test_no_policy_is_written_that_names_another_ledger_than_trunks(
    project: Project, words: tuple[str, ...], files: bool
) -> None:
    two = set_up_apart(project, files=files)
    before = policy_files(two), two.refs()
    done = two.coord(*words, "--json", agent="")
    refused(done, "no-ledger", 1)
    root = project.one.git("config", "gitcoord.root")
    assert f"begins at {root[:12]}" in done.json["message"], done
    assert done.json["hints"][0] == "share it from the clone that has it: git coord setup --remote origin"
    assert (policy_files(two), two.refs()) == before


@pytest.mark.parametrize("files", [True, False])
def test_status_warns_of_another_ledger_before_the_policy_is_pulled(project: Project, files: bool) -> None:
    two = set_up_apart(project, files=files)
    done = two.coord("status")
    assert "warning: this clone's ledger is not the project's" in done.err and "git coord setup" in done.err, done
    assert len(two.coord("status", "--json").json["warnings"]) == 1
    assert project.one.coord("status", "--json").json["warnings"] == []


@pytest.mark.parametrize("head", ["origin/HEAD", "followed"])
def test_trunk_is_any_remotes_default_or_the_followed_branch(project: Project, head: str) -> None:
    two = set_up_apart(project, files=False)
    if head == "followed":
        two.git("remote", "set-head", "origin", "-d")
    else:
        two.git("remote", "rename", "origin", "server")
        two.git("remote", "set-head", "server", "main")
        two.git("branch", "--unset-upstream")
    refused(two.coord("setup", "--no-tools", "--json", agent=""), "no-ledger", 1)
    assert policy_files(two) == {}


@pytest.mark.parametrize("files", [True, False])
@pytest.mark.parametrize("words", [(), ("--remote", "origin")])
def test_a_clone_that_was_set_up_apart_joins_and_pulls(project: Project, words: tuple[str, ...], files: bool) -> None:
    two = set_up_apart(project, files=files)
    head = two.head
    assert project.one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    done = two.coord("setup", "--no-tools", *words, agent="")
    assert done.code == 0 and "will archive this clone's own ledger" in done.out, done
    assert "hint: pull first: git pull" in done.err and policy_files(two) == {}, done
    assert len(ledgers(project.one, two)) == 1
    assert [oid for ref, oid in two.refs().items() if ref.startswith("refs/gitcoord-archive/")] == [head]
    two.git("pull", "-q")
    assert two.git("status", "--porcelain") == "" and set(policy_files(two)) == set(POLICY)
    assert two.claim("f", agent="bob").code == 0
    assert project.one.claim("f", agent="alice").code == 1


def test_a_remote_without_the_ledger_archives_nothing(project: Project) -> None:
    two = set_up_apart(project, files=False)
    before = two.refs()
    refused(two.coord("setup", "--no-tools", "--remote", "origin", "--json", agent=""), "no-ledger", 1)
    assert two.refs() == before


@pytest.mark.parametrize("files", [True, False])
def test_claims_that_end_with_the_other_ledger_are_named(project: Project, files: bool) -> None:
    two = set_up_apart(project, files=files)
    two.take("f", agent="bob")
    assert project.one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    before = two.refs()
    refused(two.coord("setup", "--no-tools", "--remote", "origin", "--json", agent=""), "live-claims", 1)
    refused(two.coord("setup", "--no-tools", "--yes", "--json", agent="carol"), "person", 1)
    with two.terminal("setup", "--no-tools", "--remote", "origin", argv=COORD) as shown:
        shown.until(lambda text: b"go on? [Y/n] " in text)
        os.write(shown._master, b"n\n")
        done = shown.end()
    assert done.code == 1 and "will end the claim of bob on 'f'" in done.out and two.refs() == before, done
    done = two.coord("setup", "--no-tools", "--remote", "origin", "--yes", agent="")
    assert done.code == 0 and "will end the claim of bob on 'f'" in done.out, done
    assert len(ledgers(project.one, two)) == 1
    assert any(ref.startswith("refs/gitcoord-archive/") for ref in two.refs())
    assert two.claim("f", agent="carol").code == 0


def test_a_claim_that_nobody_was_told_of_keeps_the_ledger(project: Project) -> None:
    two = set_up_apart(project, files=False)
    two.take("f", agent="bob")
    assert project.one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    with two.terminal("setup", "--no-tools", argv=COORD) as shown:
        shown.until(lambda text: b"go on? [Y/n] " in text)
        two.take("src/a.py", agent="dave")
        before = own_refs(two)
        os.write(shown._master, b"y\n")
        done = shown.end()
    assert done.code == 1 and "1 live claim" in done.err + done.out and own_refs(two) == before, done


@pytest.mark.parametrize("edited", [True, False])
def test_without_a_committed_policy_the_remote_that_was_asked_for_decides(project: Project, edited: bool) -> None:
    two = project.clone("two")
    assert two.coord("setup", "--no-tools").code == 0
    assert project.one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    if edited:
        with (two.top / ".gitcoord/config").open("a") as config:
            config.write("# ours\n")
    before = own_refs(two)
    refused(two.coord("setup", "--no-tools", "--remote", "origin", "--json", agent=""), "other-ledger", 1)
    assert own_refs(two) == before
    done = two.coord("setup", "--no-tools", "--remote", "origin", "--yes", agent="")
    if edited:
        assert done.code == 1 and own_refs(two) == before, done
        return
    assert done.code == 0 and "will archive this clone's own ledger" in done.out, done
    assert len(ledgers(project.one, two)) == 1
    assert two.git("config", "-f", ".gitcoord/config", "gitcoord.root") == two.git("config", "gitcoord.root")
    assert two.claim("f", agent="bob").code == 0 and project.one.claim("f", agent="alice").code == 1


@pytest.mark.parametrize("where", ["HEAD", "trunk"])
def test_a_committed_policy_is_not_given_up_for_a_remotes_ledger(project: Project, where: str) -> None:
    two = project.clone("two")
    assert two.coord("setup", "--no-tools").code == 0
    project.share_policy(two)
    if where == "trunk":  # the files stay, untracked
        two.git("update-ref", "refs/heads/main", "HEAD~")
        two.git("read-tree", "HEAD")
    assert project.one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    before = own_refs(two)
    refused(two.coord("setup", "--no-tools", "--remote", "origin", "--yes", "--json", agent=""), "other-ledger", 1)
    assert own_refs(two) == before


def test_setup_after_teardown_leaves_the_policy_to_the_pull(project: Project) -> None:
    two = set_up_apart(project, files=False)
    assert project.one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    assert two.coord("teardown", "--yes", agent="").code == 0
    done = two.coord("setup", "--no-tools", "--remote", "origin", "--json", agent="")
    assert done.code == 0 and done.json["policy"] == [] and policy_files(two) == {}, done
    two.git("pull", "-q")
    assert two.claim("f", agent="bob").code == 0


def test_a_clone_that_left_its_remote_joins_again_by_the_commands_that_were_printed(project: Project) -> None:
    one = project.one
    assert one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    project.share_policy(one)
    row = one.coord("teardown", "--yes", "--json", agent="").json
    for command in row["bring_back"]:
        assert follow(one, command).code == 0, command
    assert one.coord("status").out.startswith("nothing needs you") and one.claim("f").code == 0


def test_status_leads_out_of_a_copy_of_the_remotes_ledger(project: Project) -> None:
    """Somebody brought it back by hand, as if it were this clone's own."""
    one = project.one
    assert one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    project.share_policy(one)
    archive = one.coord("teardown", "--yes", "--json", agent="").json["archive"]
    for ref in ("refs/heads/gitcoord", "refs/gitcoord/tip"):
        one.git("update-ref", ref, archive)
    for _ in range(2):  # the ledger, then the hooks
        need = one.coord("status", "--json", agent="").json["needs_you"][0]
        assert follow(one, need["help"]).code == 0, need
    assert one.coord("status", "--json").json["needs_you"] == [] and one.claim("f").code == 0


def test_starter_files_of_a_clone_that_joined_are_not_in_the_way_of_the_policy(project: Project) -> None:
    """Both share one ledger before anybody has committed a policy, and each clone wrote its own."""
    assert project.one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    two = project.clone("two")
    assert two.coord("setup", "--no-tools").code == 0 and policy_files(two)
    project.share_policy(project.one)
    two.git("fetch", "-q")
    own = policy_files(two)
    assert "would take away" in two.coord("setup", "--no-tools", "--dry-run").out and policy_files(two) == own
    done = two.coord("setup", "--no-tools")
    assert done.code == 0 and "will take away what would be in the way" in done.out and policy_files(two) == {}, done
    two.git("pull", "-q")
    assert two.claim("f", agent="bob").code == 0


# --- every command agrees -------------------------------------------------------------------------------------------------


NOT_JOINED = (
    "claim f", "claim list", "claim show f", "claim check f", "coord status", "coord agents", "coord log", "coord fsck",
    "coord resources", "coord approvals", "coord role bob", "coord policy check", "coord policy explain f", "coord why f",
    "coord task list", "coord journal show", "coord rules show", "coord rules who", "coord deploys", "coord once --list",
    "coord worktree add fix", "coord commit -m x f", "coord start", "coord watch", "coord install-hooks", "handoff list",
)  # fmt: skip


def test_every_command_says_not_joined(project: Project) -> None:
    assert project.one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    project.share_policy(project.one)
    two = project.clone("two")
    two.write("f", "changed\n")
    for line in NOT_JOINED:
        command, *words = line.split()
        argv = {"claim": CLAIM, "coord": COORD, "handoff": HANDOFF}[command]
        done = two.run(argv, tuple(words), "bob")
        told = "error: this project has a ledger, which this clone has not joined\nhint: join it: git coord setup\n"
        assert (done.code, done.out, done.err) == (4, "", told), line
    for words in (["check", "f"], ["list", "--mine"]):
        assert two.claim(*words, agent="").err == told, "a script without a name is told the same"


# --- the policy on its way to the other clones ----------------------------------------------------------------------------


def test_the_hint_of_a_fresh_setup_ends_with_the_push(project: Project) -> None:
    """Followed literally, the next clone has the policy."""
    one = project.one
    done = one.coord("setup", "--yes", "--no-tools", "--remote", "origin", agent="")
    command = next(line for line in done.err.splitlines() if "git commit" in line).partition("then: ")[2]
    assert command.endswith("&& git push -q origin HEAD"), done
    assert one.run(["sh", "-c", command], (), "").code == 0
    two = project.clone("two")
    assert (two.top / ".gitcoord/config").is_file()


def test_a_clone_that_has_not_fetched_that_push(project: Project) -> None:
    """It was made before, and set up after it: the policy is not written a second time."""
    two = project.clone("two")
    done = project.one.coord("setup", "--yes", "--no-tools", "--remote", "origin", agent="")
    command = next(line for line in done.err.splitlines() if "git commit" in line).partition("then: ")[2]
    assert project.one.run(["sh", "-c", command], (), "").code == 0
    done = two.coord("setup", "--yes", "--no-tools", agent="")
    assert "no policy is pushed" not in done.err and "pull first: git pull" in done.err, done
    assert not (two.top / ".gitcoord").exists()
    two.git("pull", "-q")
    assert (two.top / ".gitcoord/config").is_file()


def test_a_clone_that_was_set_up_before_that_push(project: Project) -> None:
    """Its own policy is in the way of the project's: setup says so once, and nothing that contradicts it."""
    assert project.one.coord("setup", "--yes", "--no-tools", "--remote", "origin", agent="").code == 0
    two = project.clone("two")
    done = two.coord("setup", "--yes", "--no-tools", agent="")
    assert done.code == 0 and "no policy is pushed there yet" in done.err and "git fetch && git coord setup" in done.err
    project.share_policy(project.one)
    two.git("fetch", "-q")
    done = two.coord("setup", "--yes", "--no-tools", agent="")
    assert "will take away what would be in the way of the project's policy: .gitcoord/config" in done.out, done
    assert "nothing to do" not in done.out and "not committed yet" not in done.err, done
    two.git("pull", "-q", "--ff-only")
    done = two.coord("setup", "--yes", "--no-tools", agent="")
    assert done.code == 0 and "nothing to do: gitcoord is set up\n" in done.out and "not committed" not in done.err, (
        done
    )


def test_trunk_is_renamed_as_the_page_of_hooks_says(project: Project) -> None:
    one = project.one
    assert one.coord("setup", "--no-tools").code == 0
    project.share_policy(one)
    assert one.coord("teardown", "--yes", agent="").code == 0
    one.git("branch", "-m", "main", "trunk")
    one.git("config", "-f", ".gitcoord/config", "--unset", "gitcoord.root")
    one.git("commit", "-qam", "a new ledger")
    one.git("push", "-q", "origin", "trunk")
    one.git("branch", "-q", "--set-upstream-to", "origin/trunk")
    done = one.coord("setup", "--no-tools", agent="")
    assert done.code == 0 and "work lands on 'trunk'" in done.out, done
    assert one.claim("f").code == 0


# --- two clones that both commit a policy before one of them pushes it --------------------------------------------------------


def commit_policy(world: World) -> None:
    world.git("add", "-A")
    world.git("commit", "-q", "--no-verify", "-m", "policy")


@pytest.mark.parametrize("words", [("--remote", "origin"), ()])
def test_policies_of_one_ledger_merge_without_a_conflict(project: Project, words: tuple[str, ...]) -> None:
    """Also where two people wrote them."""
    one, two = project.one, project.clone("two")
    two.git("config", "user.email", "grace@example.com")
    assert one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    done = two.coord("setup", "--no-tools", *words, agent="")
    assert "the ledger was there already" in done.err and "wait for that push instead" in done.err, done
    project.share_policy(one)
    commit_policy(two)
    done = two.coord("sync", "--pull", agent="bob")
    assert done.code == 0 and two.git("diff", "origin/main") == "", done
    assert len(ledgers(one, two)) == 1 and two.claim("f", agent="bob").code == 0


def test_the_first_clone_is_not_told_that_the_ledger_was_there(project: Project) -> None:
    done = project.one.coord("setup", "--no-tools", "--remote", "origin", agent="")
    assert done.code == 0 and "there already, and no policy" not in done.err, done


def test_first_commits_of_an_empty_remote_are_put_on_top_of_each_other(project: Project) -> None:
    git(project.place, "init", "-q", "--bare", "-b", "main", str(project.place / "empty.git"))
    worlds = []
    for name in ("left", "right"):
        git(project.place, "clone", "-q", str(project.place / "empty.git"), str(project.place / name))
        worlds.append(World(project.place / name, made=True))
        assert worlds[-1].coord("setup", "--no-tools", "--remote", "origin").code == 0
    left, right = worlds
    project.share_policy(left)
    right.write("own", "mine\n")
    commit_policy(right)
    done = right.coord("sync", "--pull", agent="bob")
    assert done.code == 1 and "no common history" in done.err, done
    command = done.err.split("put your commits on top of it: git ")[1].split("\n")[0]
    right.git(*command.split())
    assert right.coord("sync", agent="bob").code == 0 and right.git("diff", "--name-only", "origin/main") == "own"


def test_two_ledgers_that_were_both_committed_end_as_one(project: Project) -> None:
    one, two = project.one, project.clone("two")
    for world in (one, two):
        assert world.coord("setup", "--no-tools").code == 0
    project.share_policy(one)
    commit_policy(two)
    done = two.coord("sync", "--pull", agent="bob")
    assert done.code == 1 and "git checkout --theirs .gitcoord/config" in done.err, done
    refused(two.coord("setup", "--no-tools", "--json", agent=""), "no-ledger", 1)  # says who is to share it
    assert one.coord("setup", "--no-tools", "--remote", "origin").code == 0
    done = two.coord("setup", "--no-tools", agent="")
    assert done.code == 0 and "will archive this clone's own ledger" in done.out, done
    assert "names another ledger" in done.err and "git coord sync --pull" in done.err, done
    assert len(ledgers(one, two)) == 1
    two.git("merge", "-q", "origin/main", ok=False)
    two.git("checkout", "--theirs", ".gitcoord/config")
    two.git("add", ".gitcoord/config")
    two.git("commit", "-q", "--no-verify", "--no-edit")
    assert two.coord("setup", "--no-tools", agent="").code == 0
    assert two.git("diff", "--stat", "origin/main", "--", ".gitcoord/rules.md", ".gitattributes") == ""
    assert two.claim("f", agent="bob").code == 0 and one.claim("f", agent="alice").code == 1


def test_a_policy_that_builds_on_trunks_may_name_another_ledger(project: Project) -> None:
    """It changes the project's: nothing is archived for what trunk named before."""
    one = project.one
    assert one.coord("setup", "--no-tools").code == 0
    own = (one.top / ".gitcoord/config").read_text()
    one.write(".gitcoord/config", f"[gitcoord]\n\troot = {ROOT}\n")
    project.share_policy(one)
    one.write(".gitcoord/config", own)
    commit_policy(one)
    before = one.refs()
    done = one.coord("setup", "--no-tools", agent="")
    assert done.code == 0 and "archive" not in done.said and one.refs() == before, done


def test_a_ledger_is_not_given_up_for_one_that_is_not_the_projects(project: Project) -> None:
    """Trunk names the first clone's own ledger, and the remote has the second's."""
    one, two = project.one, project.clone("two")
    assert one.coord("setup", "--no-tools").code == 0
    assert two.coord("setup", "--no-tools", "--remote", "origin").code == 0
    project.share_policy(one)
    commit_policy(two)
    two.git("fetch", "-q")
    before = own_refs(two)
    refused(two.coord("setup", "--no-tools", "--json", agent=""), "other-ledger", 1)
    assert own_refs(two) == before

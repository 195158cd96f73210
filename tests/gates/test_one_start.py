"""A commit that nothing stands against starts git-claim once; the later hooks rely on what pre-commit noted, and on nothing else."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done, World
from tests.gates.places import CHAIN, NEWER, WAYS, pretend, script
from tests.gates.support import refused
from tests.support import CLAIM, COORD, UNHOOKED, git

ONCE = ["pre-commit"]
JUDGED_AGAIN = ["pre-commit", "reference-transaction"]


class Place(World):
    """A repository with all hooks installed. Its git-claim notes each start; `between` runs after pre-commit, before the branch
    moves."""

    def __init__(self, place: Path, way: str = CHAIN) -> None:
        top = place / "project"
        git(place, "init", "-q", "-b", "main", str(top))
        super().__init__(top)
        self.bin, self.log, self.between_file = place / "bin", place / "starts", place / "between"
        noting = f'echo "$*" >>{shlex.quote(str(self.log))}\n'
        script(self.bin / "git-claim", f'#!/bin/sh\n{noting}exec {shlex.join(CLAIM)} "$@"\n')
        script(self.bin / "git-coord", f'#!/bin/sh\nexec {shlex.join(COORD)} "$@"\n')
        if way == CHAIN and NEWER:
            pretend(self.bin, CHAIN)
        self.env = {"PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"}
        files = {"src/a": "a\n", "src/b": "b\n", "free": "x\n", ".gitattributes": "src/** gitcoord-claim\n"}
        files[".gitcoord/config"] = '[role "overseer"]\n\toverseer = true\n[agent "boss"]\n\trole = overseer\n'
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")
        self.init()
        assert self.coord("install-hooks", agent="", env=self.env).code == 0
        script(top / ".git/hooks/commit-msg", f"#!/bin/sh\n[ ! -f {self.between_file} ] || . {self.between_file}\n")
        assert self.claim("src/a").code == 0

    def sh(self, *words: str, agent: str = "alice", cwd: Path | None = None, env: dict[str, str] | None = None) -> Done:
        environ = {**os.environ, **self.env, "GITCOORD_AGENT": agent, **(env or {})}
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.top, env=environ, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def between(self, *lines: str) -> None:
        """Set commands that others run while the commit is under way, without git's own variables."""
        self.between_file.write_text("\n".join(["unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE", *lines, ""]))

    def starts(self) -> list[str]:
        """The hooks that started git-claim since this was last asked."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line.split()[1] for line in lines if line.startswith("--gate ")]

    @property
    def note(self) -> Path:
        return self.top / ".git/gitcoord/judged"

    def change(self, *words: str, agent: str = "alice", text: str = "new\n") -> Done:
        self.write("src/a", text)
        return self.sh("commit", "-q", *(words or ("-a", "-m", "work")), agent=agent)

    def assert_judged_again(self, rule: str, *words: str) -> None:
        """The commit passes pre-commit, and is refused by this rule when the branch is to move."""
        before = self.git("rev-parse", "main")
        done = self.change(*words)
        assert refused(done, rule), done
        assert [hook for hook in self.starts() if hook in JUDGED_AGAIN] == JUDGED_AGAIN
        assert self.git("rev-parse", "main") == before


@pytest.fixture(params=WAYS)
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(tmp_path, request.param)


def message(place: Place) -> str:
    return place.git("log", "-1", "--format=%B")


# --- one start -------------------------------------------------------------------------------------------------------

COMMITS = {
    "all": ("-a", "-m", "work"),
    "by path": ("-m", "work", "src/a"),
    "only": ("-m", "work", "--only", "src/a"),
    "body": ("-a", "-m", "work", "-m", "Why: because"),
    "another branch": ("-a", "-m", "work"),
}


@pytest.mark.parametrize("words", COMMITS.values(), ids=COMMITS)
def test_a_commit_starts_git_claim_once(place: Place, words: tuple[str, ...], request: pytest.FixtureRequest) -> None:
    if "another" in request.node.name:
        place.git("checkout", "-q", "-b", "work")
    before = place.git("rev-parse", "HEAD")
    done = place.change(*words)
    assert done.code == 0 and place.starts() == ONCE, done
    assert place.git("rev-parse", "HEAD~1") == before
    assert place.git("log", "-1", "--format=%(trailers:key=Agent,valueonly)").strip() == "alice"


def test_what_is_staged_in_odd_ways(place: Place) -> None:
    place.sh("claim", "src")
    names = ['say "so"', "tab\there", "line\nend", "back\\slash", "ümlaut", "blank ", "-x", "\x7f"]
    for name in names:
        (place.top / "src" / name).write_text(name)
    (place.top / "src/b").unlink()
    (place.top / "src/link").symlink_to("a")
    (place.top / "src/a").chmod(0o755)
    git(place.top, "init", "-q", "src/module")
    git(place.top / "src/module", "commit", "-q", "--allow-empty", "-m", "x")
    place.git("add", "-A")
    place.starts()
    done = place.sh("commit", "-q", "-m", "odd")
    assert done.code == 0 and place.starts() == ONCE, done


def test_with_packed_refs_and_without_a_session(place: Place) -> None:
    place.git(*UNHOOKED, "pack-refs", "--all", "--prune")
    assert place.change().code == 0 and place.starts() == ONCE
    place.write("free", "new\n")
    assert place.sh("commit", "-q", "-am", "free", agent="nobody.yet").code == 0 and place.starts() == ONCE


def test_a_person_signs_nothing(place: Place) -> None:
    place.write("free", "new\n")
    done = place.at_terminal("commit", "-q", "-am", "by hand", argv=["git"], env=place.env)
    assert done.code == 0 and place.starts() == ONCE, done
    assert message(place) == "by hand"


def test_in_a_linked_work_tree_and_in_a_submodule(place: Place, tmp_path: Path) -> None:
    tree = tmp_path / "linked"
    place.git("worktree", "add", "-q", str(tree), "-b", "linked")
    place.git("config", "--add", "gitcoord.gateRef", "refs/heads/linked")
    (tree / "src/a").write_text("linked\n")
    done = place.sh("commit", "-q", "-am", "there", cwd=tree)
    assert done.code == 0 and place.starts() == ONCE, done
    upper = tmp_path / "upper"
    git(tmp_path, "init", "-q", "-b", "main", str(upper))
    git(upper, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(place.top), "lower")
    lower = upper / "lower"
    assert place.sh("coord", "init", "--adopt", cwd=lower).code == 0
    assert place.sh("coord", "install-hooks", cwd=lower, agent="").code == 0
    assert place.sh("claim", "src/a", cwd=lower).code == 0
    (lower / "src/a").write_text("lower\n")
    place.starts()
    done = place.sh("commit", "-q", "-am", "below", cwd=lower)
    assert done.code == 0 and place.starts() == ONCE, done


def test_hooks_that_run_through_a_shell(tmp_path: Path) -> None:
    """git runs hooks that its settings name like this."""
    place = Place(tmp_path)
    hooks = place.top / ".git/hooks"
    for event in ("pre-commit", "prepare-commit-msg", "reference-transaction", "post-commit"):
        (hooks / event).rename(hooks / f"ours-{event}")
        script(hooks / event, f'#!/bin/sh\n{hooks}/ours-{event} "$@"\nexit $?\n')
    assert place.change().code == 0 and place.starts() == ONCE


MESSAGES = (
    "subject",
    "subject\nmore",
    "fix: looks like a trailer",
    "subject\nAgent: bob",
    "subject\n\nbody",
    "subject\n\nReviewed-by: x <x@x>",
    "subject\n\nAgent: bob",
    "one\n\n---\ntwo",
    "subject\n#1",
    "subject\n \t\nbody: x",
)


def test_the_message_is_the_same_as_git_claim_would_make_it(place: Place) -> None:
    """The last line may end with or without a line break. A directory in the note's place prevents the note."""
    place.git("checkout", "-q", "-b", "work")
    found: dict[bool, list[str]] = {True: [], False: []}
    for noted, starts in ((True, ONCE), (False, [*ONCE, "prepare-commit-msg", "post-commit"])):
        if not noted:
            place.note.unlink()
            place.note.mkdir()
        for number, text in enumerate(MESSAGES):
            for end, cleanup in (("", "default"), ("", "verbatim"), ("\n", "verbatim")):
                (place.top / ".git/text").write_text(text + end)
                words = ("-aF", ".git/text", f"--cleanup={cleanup}")
                done = place.change(*words, text=f"{noted} {number} {cleanup}{end}\n")
                assert done.code == 0 and place.starts() == starts, done
                found[noted].append(place.sh("cat-file", "commit", "HEAD").out.partition("\n\n")[2])
    assert found[True] == found[False]


def test_a_commit_of_many_files_is_judged_again(place: Place) -> None:
    for number in range(101):
        place.write(f"many/{number}", "x\n")
    place.git("add", "-A")
    done = place.sh("commit", "-q", "-m", "many")
    assert done.code == 0 and place.starts() == [*ONCE, "prepare-commit-msg", "reference-transaction", "post-commit"]


# --- what the note does not cover is judged ----------------------------------------------------------------------------


def test_a_refused_commit_is_refused_at_each_gate(place: Place) -> None:
    assert refused(place.change(agent="bob"), "held") and place.starts() == ONCE
    assert refused(place.change("-a", "-m", "work", "--no-verify", agent="bob"), "held")
    assert place.starts() == ["prepare-commit-msg", "reference-transaction"]


AS = "GITCOORD_AGENT="
MEANWHILE = {
    "taken over": ("held", f"{AS}alice git claim release -q --dirty src/a", f"{AS}bob git claim -q src/a"),
    "released": ("unclaimed", f"{AS}alice git claim release -q --dirty src/a"),
    "killed": ("killed", f"{AS}boss git coord kill alice"),
    "halted": ("halted", f"{AS}boss git coord halt --reason stop"),
}


@pytest.mark.parametrize("case", MEANWHILE.values(), ids=MEANWHILE)
def test_what_happens_before_the_branch_moves(place: Place, case: tuple[str, ...]) -> None:
    place.between(*(f"{line} >/dev/null" for line in case[1:]))
    place.assert_judged_again(case[0])


def test_a_holder_that_was_silent_is_heard_of(place: Place) -> None:
    place.sh("claim", "free", agent="bob")
    place.fall_silent("bob")
    place.write("free", "new\n")
    assert place.sh("commit", "-q", "-am", "one").code == 0, "the silent bind nobody"
    assert "reference-transaction" in place.starts()
    place.fall_silent("bob")
    place.write("free", "newer\n")
    place.between(f"{AS}bob git claim --gate post-commit")
    assert refused(place.sh("commit", "-q", "-am", "two"), "held", "free")


def test_a_tombstone_that_the_ledger_does_not_know_yet(place: Place) -> None:
    """Half of a kill: only the agent's heartbeat has moved."""
    place.between(
        'beat=$(git cat-file blob refs/gitcoord/sessions/alice | sed \'s/,"mono"/,"killed":9&/\' | git hash-object -w --stdin)',
        f"git {shlex.join(UNHOOKED)} update-ref refs/gitcoord/sessions/alice $beat",
    )
    place.assert_judged_again("killed")


def _run_after_ours(place: Place, *lines: str) -> None:
    """A pre-commit hook that runs ours first and then goes on."""
    ours = place.top / ".git/hooks/pre-commit"
    if ours.exists():
        ours.rename(ours.with_name("ours"))
    call = f"{shlex.quote(str(ours.with_name('ours')))} || exit\n" if ours.with_name("ours").exists() else ""
    script(ours, f"#!/bin/sh\n{call}" + "\n".join(lines) + "\n")


def test_a_hook_that_stages_more_after_ours(place: Place) -> None:
    _run_after_ours(place, "echo more >src/b", "git add src/b")
    place.assert_judged_again("unclaimed")


def test_a_hook_that_stages_something_else_in_the_same_file(place: Place) -> None:
    _run_after_ours(place, "echo other >src/a", "git add src/a")
    assert place.change().code == 0 and place.starts() == JUDGED_AGAIN
    assert place.git("show", "HEAD:src/a") == "other"


def test_a_hook_that_changes_nothing_after_ours(place: Place) -> None:
    _run_after_ours(place, "git status --short >/dev/null")
    assert place.change().code == 0 and place.starts() == ONCE


def test_a_message_that_names_another_agent(place: Place) -> None:
    place.sh("claim", "src/b", agent="bob")
    place.person("kill", "bob")
    place.between('echo "work\n\nAgent: bob" >"$1"')
    place.assert_judged_again("killed")


def test_a_message_that_lost_its_agent(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write(".gitcoord/config", "[gitcoord]\n\tattribution = require\n")
    place.git("add", "-A")
    place.git(*UNHOOKED, "commit", "-q", "-m", "policy")
    assert place.change(text="signed\n").code == 0 and place.starts() == ONCE
    place.between('echo work >"$1"')
    place.assert_judged_again("attribution")


def test_an_amended_commit(place: Place) -> None:
    """pre-commit sees what is staged on HEAD; the branch gets what HEAD had besides."""
    place.write("src/b", "unclaimed\n")
    place.git(*UNHOOKED, "commit", "-q", "-am", "past the hooks")
    place.assert_judged_again("unclaimed", "-a", "--amend", "-m", "both")


def test_a_merge_that_is_concluded(place: Place) -> None:
    place.git(*UNHOOKED, "checkout", "-q", "-b", "side")
    place.write("src/b", "side\n")
    place.git(*UNHOOKED, "commit", "-q", "-am", "unclaimed")
    place.git(*UNHOOKED, "checkout", "-q", "main")
    place.sh("merge", "-q", "--no-commit", "--no-ff", "side")
    place.starts()
    assert refused(place.change("-a", "-m", "merged"), "unclaimed", "src/b")
    assert place.starts() == ["pre-commit"], "a merge is judged by what it brings before its commit"


def test_a_cherry_pick(place: Place) -> None:
    place.git(*UNHOOKED, "checkout", "-q", "-b", "side")
    place.write("src/b", "side\n")
    place.git(*UNHOOKED, "commit", "-q", "-am", "unclaimed")
    place.git(*UNHOOKED, "checkout", "-q", "main")
    assert refused(place.sh("cherry-pick", "side"), "unclaimed", "src/b")


def test_a_commit_on_the_ledger_branch(place: Place) -> None:
    place.git(*UNHOOKED, "checkout", "-q", "gitcoord")
    place.write("more", "x\n")
    place.git("add", "more")
    done = place.sh("commit", "-q", "-m", "by hand")
    assert refused(done, "ledger") and place.starts()[0] == "pre-commit"


def test_a_note_of_another_commit_does_not_count(place: Place) -> None:
    """A commit that pre-commit let pass and that then failed leaves its note; the same files, of somebody else."""
    place.between("exit 1")
    assert place.change().code == 1 and place.starts() == ONCE and place.note.exists()
    place.between_file.unlink()
    done = place.sh("commit", "-q", "-a", "-m", "work", "-m", "Agent: alice", "--no-verify", agent="bob")
    assert done.code == 0 and place.starts() == ["prepare-commit-msg", "reference-transaction", "post-commit"]


CHANGED = {
    "another process": "1s/^/9/",
    "begun at another time": "1s/$/9/",
    "too old": "2s/.*/1/",
    "no time": "2s/.*//",
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_note_of_another_process_or_time(place: Place, change: str) -> None:
    place.between(f"sed -i '{change}' .git/gitcoord/judged")
    assert place.change().code == 0
    assert place.starts() == ["pre-commit", "reference-transaction", "post-commit"]


def test_a_note_names_the_process_and_ends_soon(place: Place) -> None:
    place.between("cp .git/gitcoord/judged ../kept; cat /proc/uptime /proc/$PPID/stat >../seen")
    assert place.change().code == 0
    process, ends, *_ = (place.top / "../kept").read_text().split("\n")
    uptime, stat, _ = (place.top / "../seen").read_text().split("\n")
    now = float(uptime.split()[0])
    assert now - 60 < int(ends) <= now + 10
    words = stat.split()
    assert process == f"{words[0]} {words[21]}"


def test_only_the_very_move_that_was_judged(tmp_path: Path) -> None:
    """Other moves that the same process could make: from elsewhere, of two refs, to another commit."""
    place = Place(tmp_path)
    first = place.git("rev-parse", "HEAD")
    place.git(*UNHOOKED, "commit", "-q", "--allow-empty", "-m", "second")
    head = place.git("rev-parse", "HEAD")
    place.write("src/a", "new\n")
    place.git("add", "-A")
    tree = place.git("write-tree")
    new, unsigned, elsewhere = (
        place.git("commit-tree", tree, "-p", parent, "-m", "work", *more)
        for parent, more in ((head, ("-m", "Agent: alice")), (head, ()), (first, ("-m", "Agent: alice")))
    )
    moves = [[(head, new)], [(first, new)], [(head, new)] * 2, [(head, unsigned)], [(head, elsewhere)]]
    lines = ["".join(f"{old} {to} refs/heads/main\\n" for old, to in move) for move in moves]
    hook = f"{place.top}/.git/hooks/reference-transaction"
    place.between(*(f"printf '{line}' | {hook} prepared; echo move >>{place.log}" for line in lines), "exit 1")
    place.sh("commit", "-q", "-m", "work")
    words = place.log.read_text().split("\n")
    assert words[:2] == ["--gate pre-commit", "move"], "what was judged"
    assert words[2:-1] == ["--gate reference-transaction prepared", "move"] * 4


def test_claims_that_end_soon_get_a_sign_of_life_after_the_commit_too(place: Place) -> None:
    assert place.sh("claim", "src/b", "--ttl", "2s").code == 0
    place.starts()
    assert place.change().code == 0
    assert place.starts()[-1] == "post-commit"


def test_other_managers_call_git_claim_for_each_hook(place: Place) -> None:
    """They run no hook of ours, so nothing is noted."""
    hooks = place.top / ".husky"
    for event in ("pre-commit", "prepare-commit-msg", "post-commit"):
        script(hooks / event, f'#!/bin/sh\ngit-claim --gate {event} "$@" || exit 1\n')
    place.git("config", "core.hooksPath", ".husky")
    for event in ("pre-commit", "prepare-commit-msg", "post-commit"):
        place.git("config", f"hook.gitcoord-{event}.enabled", "false")
    assert place.change().code == 0
    assert place.starts()[:2] == ["pre-commit", "prepare-commit-msg"] and not place.note.exists()


# --- packing


def test_packing_starts_nothing(place: Place) -> None:
    """git only moves refs between files of their own and packed-refs; the shell can tell."""
    assert place.change().code == 0
    place.log.unlink(missing_ok=True)
    before = place.refs()
    for words in (["gc", "-q"], ["pack-refs", "--all"]):
        assert place.change(text=" ".join(words)).code == 0
        before = place.refs()
        place.log.unlink(missing_ok=True)
        done = place.sh(*words)
        assert done.code == 0 and not place.log.exists() and place.refs() == before, done


@pytest.mark.parametrize("stored", ["loose", "packed", "both"])
@pytest.mark.parametrize("way", ["update-ref -d REF", "branch -D gitcoord", "update-ref REF OLD"])
def test_nobody_takes_a_change_for_packing(place: Place, stored: str, way: str) -> None:
    if stored != "loose":
        place.git(*UNHOOKED, "pack-refs", "--all")
    if stored == "both":
        assert place.sh("claim", "src/b", agent="bob").code == 0
    before, old = place.refs(), place.git("rev-parse", "gitcoord~1")
    done = place.sh(*way.replace("REF", "refs/heads/gitcoord").replace("OLD", old).split())
    assert refused(done, "ledger") and place.refs() == before, done

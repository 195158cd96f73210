"""Packing refs changes no value: it is never refused, whatever writers do meanwhile; similar changes are."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.gates.support import Project, refused
from tests.races.support import wait_until
from tests.support import CLAIM

pytestmark = pytest.mark.both_gits

LEDGER = "refs/heads/gitcoord"
NOTHING = "0" * 40
A = "refs/claims/path/shared/a/@alice"

# In the hook of a git that packs: once, `meanwhile` runs while git waits for the hook; then the gate is asked.
_HOOK = """#!/bin/sh
[ "$1" = prepared ] || exit 0
rows=$(cat)
case $rows in
*"{row}"*)
    if mv "{place}/meanwhile" "{place}/now" 2>/dev/null; then
        sh "{place}/now" >"{place}/said" 2>&1
        echo $? >"{place}/code"
    fi
    ;;
esac
[ -z "$rows" ] || echo "$rows" >>"{place}/rows"
exec {claim} --gate reference-transaction "$@" <<END
$rows
END
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.claim("shared/a", agent="alice")
    return made


def meanwhile(project: Project, row: str, script: str) -> None:
    """While a hook of this repository is asked about such a row, for the first time, the script runs."""
    hook = project.top / ".git/hooks/reference-transaction"
    hook.write_text(_HOOK.format(row=row, place=project.place, claim=shlex.join(CLAIM)))
    (project.place / "meanwhile").write_text(f"cd {shlex.quote(str(project.top))} || exit 9\nunset GIT_DIR\n{script}\n")


def said(project: Project) -> Done:
    """Exit code and output of the script."""
    return Done(int((project.place / "code").read_text()), "", (project.place / "said").read_text())


def refs(project: Project) -> list[str]:
    """All but heartbeats, which every command may renew."""
    rows = project.git("for-each-ref", "--format=%(objectname) %(refname)").splitlines()
    return [row for row in rows if " refs/gitcoord/sessions/" not in row]


def claim(*words: str) -> str:
    return f"GITCOORD_AGENT=alice {shlex.join([*CLAIM, *words])}"


# --- beside writers


@pytest.mark.parametrize("words", [["pack-refs", "--all"], ["gc", "-q"], ["maintenance", "run", "--task=pack-refs"]])
def test_the_ledger_moves_while_git_packs_it(project: Project, words: list[str]) -> None:
    """git is about to write what it read before: that value is an old one by now."""
    before = refs(project)
    meanwhile(project, LEDGER, claim("shared/b"))
    done = project.try_git(*words)
    assert done.code == 0 and "hook" not in done.err, done
    assert said(project).code == 0 and refs(project) != before, said(project)
    assert project.coord("fsck").code == 0
    assert len(project.world.claims()) == 2


def test_another_git_holds_packed_refs_while_loose_refs_are_dropped(project: Project) -> None:
    oid = project.git("rev-parse", LEDGER)
    meanwhile(project, f"{oid} {NOTHING} {LEDGER}", ": >.git/packed-refs.lock")
    done = project.try_git("pack-refs", "--all")
    assert done.code == 0 and "hook" not in done.err, done
    assert not (project.top / ".git" / LEDGER).exists() and project.git("rev-parse", LEDGER) == oid


def test_another_git_is_writing_packed_refs_while_loose_refs_are_dropped(project: Project) -> None:
    """It has not reached this ref yet: a deletion would look the same, except that it would stay so."""
    oid = project.git("rev-parse", LEDGER)
    # A pipe, since whoever writes into it knows when it is read.
    script = (
        ": >.git/packed-refs.lock; mkfifo .git/packed-refs.new\n"
        "{ timeout 60 sh -c \"echo '# pack-refs with: peeled fully-peeled sorted ' >.git/packed-refs.new\"\n"
        "rm .git/packed-refs.new .git/packed-refs.lock; } >/dev/null 2>&1 &"
    )
    meanwhile(project, f"{oid} {NOTHING} {LEDGER}", script)
    done = project.try_git("pack-refs", "--all")
    assert done.code == 0 and "hook" not in done.err, done
    assert not (project.top / ".git" / LEDGER).exists() and project.git("rev-parse", LEDGER) == oid


def test_another_git_packs_at_the_same_time(project: Project) -> None:
    meanwhile(project, f"{NOTHING} {LEDGER}", "git pack-refs --all")
    done = project.try_git("pack-refs", "--all")
    assert done.code == 0 and "hook" not in done.err, done


# --- by hand


def test_the_ledger_is_not_rewound_while_git_packs(project: Project) -> None:
    """The value that git is about to pack is the very one to which a hand would move it back."""
    project.git("pack-refs", "--all")
    old = project.git("rev-parse", LEDGER)
    project.claim("shared/b", agent="alice")
    project.claim("release", "--dirty", "shared/b", agent="alice")
    project.unhooked("update-ref", LEDGER, old)
    ahead = project.git("rev-parse", "refs/gitcoord/tip")
    script = f"git -c core.hooksPath=/dev/null update-ref {LEDGER} {ahead}\nGITCOORD_AGENT=alice git update-ref {LEDGER} {old}"
    meanwhile(project, f"{old} {LEDGER}", script)
    done = project.try_git("pack-refs", "--all")
    assert refused(said(project), "ledger"), said(project)
    assert done.code == 0 and project.git("rev-parse", LEDGER) == ahead


@pytest.mark.parametrize("stored", ["loose", "packed", "both"])
@pytest.mark.parametrize("way", ["delete", "delete this", "rewind", "rewind from this"])
def test_no_hand_moves_or_deletes_it_however_it_is_stored(project: Project, stored: str, way: str) -> None:
    if stored != "loose":
        project.unhooked("pack-refs", "--all", "--prune" if stored == "packed" else "--no-prune")
    before, other = refs(project), project.git("rev-parse", f"{LEDGER}~1")
    for ref in (LEDGER, A, "refs/gitcoord/tip"):
        old = project.git("rev-parse", ref)
        words = {"delete": ["-d", ref], "delete this": ["-d", ref, old], "rewind": [ref, other]}
        done = project.try_git("update-ref", *words.get(way, [ref, other, old]), agent="alice")
        assert refused(done, "ledger"), (ref, done)
    assert refs(project) == before


def test_a_deletion_of_what_is_packed_is_none_of_packing(project: Project) -> None:
    """Newer gits ask once for a deletion. It holds the packed refs that will be left."""
    project.unhooked("pack-refs", "--all", "--no-prune")
    oid = project.git("rev-parse", LEDGER)
    packed = project.top / ".git/packed-refs"
    lines = packed.read_text().splitlines(keepends=True)
    packed.with_name("packed-refs.lock").touch()
    packed.with_name("packed-refs.new").write_text("".join(line for line in lines if f" {LEDGER}\n" not in line))
    hook = project.top / ".git/hooks/reference-transaction"
    row = f"{oid} {NOTHING} {LEDGER}\n"
    done = project.world.run([str(hook)], ("prepared",), "alice", env={"GIT_DIR": ".git"}, data=row.encode())
    assert refused(done, "ledger"), done


def test_no_hand_makes_a_ref_of_ours(project: Project) -> None:
    done = project.try_git("update-ref", "refs/claims/path/x/@bob", LEDGER, agent="bob")
    assert refused(done, "ledger") and "@bob" not in refs(project)


# --- gitcoord's own


@pytest.mark.parametrize("own", [False, True], ids=["", "pre-auto-gc"])
def test_our_own_maintenance_asks_no_hook_of_ours(project: Project, own: bool) -> None:
    """gc --auto packs refs, once for each of them. A hook by which the user puts it off is asked."""
    git_dir = project.top / ".git"
    meanwhile(project, "-", "")
    if own:
        hook = git_dir / "hooks/pre-auto-gc"
        hook.write_text("#!/bin/sh\n: >.git/put-off\nexit 1\n")
        hook.chmod(0o755)
    rows = "".join(f"create refs/tags/t{number} HEAD\n" for number in range(20))  # newer gits pack no fewer than 16
    project.world.git("update-ref", "--stdin", data=rows.encode())
    for text in ("x\n", "y\n"):
        project.commit({"free/new": text})
        project.git("repack", "-q")
    project.git("config", "gc.auto", "6700")
    project.git("config", "gc.autoPackLimit", "1")
    project.write({"free/x": "y\n"})
    done = project.coord("commit", "-m", "x", "free/x", agent="alice")
    assert done.code == 0, done
    if own:
        wait_until("the user's hook was asked", (git_dir / "put-off").exists)
        assert not (git_dir / "packed-refs").exists()
    else:
        wait_until("git has packed", lambda: (git_dir / "packed-refs").exists() and not (git_dir / "gc.pid").exists())
        assert LEDGER not in (project.place / "rows").read_text()

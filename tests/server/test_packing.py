"""git's own maintenance on the server, beside pushes: packing changes no value, so the gate lets it through."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Done
from tests.server.support import Site
from tests.support import git

pytestmark = pytest.mark.both_gits

LEDGER = "refs/heads/gitcoord"
NOTHING = "0" * 40
A = "refs/claims/path/shared/a/@alice"
# The administrator's own hook runs first. Once, where git asks about such a row, `meanwhile` runs while git waits.
_HOOK = """#!/bin/sh
[ "$1" = prepared ] || exit 0
case $(cat) in
*"{row}"*) ! mv "{place}/meanwhile" "{place}/now" 2>/dev/null || sh "{place}/now" >"{place}/said" 2>&1 ;;
esac
exit 0
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path).setup()
    made.claim("shared/a", agent="alice")
    assert made.sync().code == 0
    return made


def meanwhile(site: Site, row: str, script: str) -> None:
    hook = site.bare / "hooks/reference-transaction.before-gitcoord"
    hook.write_text(_HOOK.format(row=row, place=site.place))
    hook.chmod(0o755)
    (site.place / "meanwhile").write_text(f"unset GIT_DIR\ncd {shlex.quote(str(site.bare))} || exit 9\n{script}\n")


def on_server(site: Site, *words: str) -> Done:
    done = subprocess.run(["git", *words], cwd=site.bare, capture_output=True, text=True, check=False, timeout=60)
    return Done(done.returncode, done.stdout, done.stderr)


def packs(site: Site, *words: str) -> None:
    done = on_server(site, *words)
    assert done.code == 0 and "hook" not in done.err, done


@pytest.mark.parametrize("words", [["pack-refs", "--all"], ["gc", "-q"], ["maintenance", "run", "--task=pack-refs"]])
def test_a_push_lands_while_git_packs(site: Site, words: list[str]) -> None:
    site.claim("shared/b", agent="alice")
    push = ["git", "-C", str(site.top), "-c", "core.hooksPath=/dev/null", "push", "-q", "--atomic", "origin"]
    meanwhile(site, LEDGER, shlex.join([*push, *site.refspecs()]))
    packs(site, *words)
    assert site.private() == site.local(), (site.place / "said").read_text()


def test_another_git_holds_packed_refs_while_loose_refs_are_dropped(site: Site) -> None:
    """It has not reached this ref yet: a deletion would look the same, except that it would stay so."""
    before = site.refs()
    # A pipe, since whoever writes into it knows when it is read.
    writes = "timeout 60 sh -c 'echo >packed-refs.new'; rm packed-refs.new packed-refs.lock"
    script = f": >packed-refs.lock; mkfifo packed-refs.new; ({writes}) >/dev/null 2>&1 &"
    meanwhile(site, f"{before[LEDGER]} {NOTHING} {LEDGER}", script)
    packs(site, "pack-refs", "--all")
    assert site.refs() == before and not (site.bare / LEDGER).exists()


def test_the_ledger_is_not_rewound_while_git_packs(site: Site) -> None:
    """The value that git is about to pack is the very one to which a hand would move it back."""
    git(site.bare, "pack-refs", "--all")
    ahead, old = site.refs()[LEDGER], git(site.bare, "rev-parse", f"{LEDGER}~1").decode().strip()
    git(site.bare, "-c", "core.hooksPath=/dev/null", "update-ref", LEDGER, old)
    script = f"git -c core.hooksPath=/dev/null update-ref {LEDGER} {ahead}; git update-ref {LEDGER} {old}"
    meanwhile(site, f"{old} {LEDGER}", script)
    packs(site, "pack-refs", "--all")
    assert "moves only with a push" in (site.place / "said").read_text()
    assert site.refs()[LEDGER] == ahead


@pytest.mark.parametrize("stored", ["--prune", "--no-prune"])
def test_no_hand_moves_or_deletes_what_is_packed(site: Site, stored: str) -> None:
    git(site.bare, "pack-refs", "--all", stored)
    before = site.refs()
    for ref in (LEDGER, A, "refs/gitcoord/sessions/alice"):
        old = before[ref]
        for words in (["-d", ref], ["-d", ref, old], [ref, before["refs/heads/main"]], [ref, f"{LEDGER}~1", old]):
            assert on_server(site, "update-ref", *words).code != 0, words
    assert site.refs() == before


def test_git_packs_in_a_linked_work_tree_of_the_server(site: Site) -> None:
    """Its hooks are asked there with another git directory."""
    tree = site.place / "deployed"
    subprocess.run(["git", "worktree", "add", "-q", "--detach", str(tree), "main"], cwd=site.bare, check=True)
    done = subprocess.run(["git", "pack-refs", "--all"], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    moved = subprocess.run(["git", "update-ref", "-d", LEDGER], cwd=tree, capture_output=True, text=True, check=False)
    assert moved.returncode != 0 and "refused" in moved.stderr

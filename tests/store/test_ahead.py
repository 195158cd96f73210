"""A swap that is begun before it is wanted holds nothing, sees nothing, and changes nothing without the word."""

import os
import signal
from pathlib import Path

import pytest

from gitcoord.errors import StoreError
from gitcoord.store.far import Far, Move, nothing
from gitcoord.store.interface import Create, Delete, SwapFailed, Update, Verify
from gitcoord.store.plumbing import PlumbingStore
from gitcoord.store.remote import RemoteStore
from tests.race.support import wait_until
from tests.support import git, plumbing_store, repo_at

REF, OTHER = "refs/heads/gitcoord", "refs/gitcoord/tip"
TRIES = 8


class Here:
    def __init__(self, top: Path) -> None:
        git(top, "init", "-q", str(top / "project"))
        self.top = top / "project"
        self.scratch = self.top / ".git/gitcoord"
        self.scratch.mkdir()
        repo = repo_at(self.top / ".git", worktree=self.top)
        self.store: PlumbingStore = plumbing_store(repo, 40)
        tree = git(self.top, "hash-object", "-t", "tree", "-w", "/dev/null").decode().strip()
        self.commits = [git(self.top, "commit-tree", "-m", str(n), tree).decode().strip() for n in range(2 * TRIES + 2)]

    def at(self, ref: str) -> str:
        return git(self.top, "rev-parse", "-q", "--verify", ref, ok=False).decode().strip()

    def put(self, ref: str, oid: str) -> None:
        git(self.top, "update-ref", ref, oid)

    def locks(self) -> list[Path]:
        return list((self.top / ".git/refs").rglob("*.lock"))

    def notes(self) -> list[Path]:
        return [path for path in (self.scratch / "locks").iterdir() if path.name != "spare"]


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def test_it_waits_for_the_word(here: Here) -> None:
    one, two, three = here.commits[:3]
    here.put(REF, one)
    here.put("refs/claims/path/a/@x", one)
    ahead = here.store.ahead([Update(REF, one, two), Create(OTHER, two), Delete("refs/claims/path/a/@x", one)])
    assert ahead is not None and ahead.waits
    git(here.top, "update-ref", REF, one, one)  # nobody is kept from it
    assert here.at(REF) == one and not here.locks() and not (here.top / ".git/gitcoord/locks").exists()
    done: list[str] = []
    ahead.swap(lambda: done.append("meanwhile"))
    assert (here.at(REF), here.at(OTHER), here.at("refs/claims/path/a/@x")) == (two, two, "")
    assert done and not here.notes()
    here.store.swap([Update(REF, two, three)])
    assert here.at(REF) == three


def test_without_the_word_nothing_changes(here: Here) -> None:
    one, two, three = here.commits[:3]
    here.put(REF, one)
    ahead = here.store.ahead([Update(REF, one, two)])
    here.store.swap([Update(REF, one, three)])
    assert ahead is not None and not ahead.waits and here.at(REF) == three
    ahead = here.store.ahead([Update(REF, three, one)])
    here.store.close()
    assert ahead is not None and not ahead.waits and here.at(REF) == three
    assert not here.locks()


def test_what_moved_meanwhile_is_seen(here: Here) -> None:
    """All or nothing, and as if it had been asked now: also where others packed the refs twice (see test_stale_git)."""
    here.put(OTHER, here.commits[-1])
    last = here.commits[0]
    here.put(REF, last)
    git(here.top, "pack-refs", "--all")
    for number in range(1, 2 * TRIES, 2):
        ahead = here.store.ahead([Verify(OTHER, here.commits[-1]), Update(REF, last, here.commits[-1])])
        for oid in here.commits[number : number + 2]:
            here.put(REF, oid)
            git(here.top, "pack-refs", "--all")
            last = oid
        assert ahead is not None
        with pytest.raises(SwapFailed):
            ahead.swap(nothing)
        assert here.at(REF) == last and not here.notes()


def test_an_error_meanwhile_leaves_no_answer_unread(here: Here) -> None:
    two = here.commits[1]
    ahead = here.store.ahead([Create(REF, two)])
    assert ahead is not None

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ahead.swap(fail)
    assert here.at(REF) == two and not here.notes()


def test_a_clone_follows_by_what_it_finds_then(here: Here) -> None:
    """What was expected is used only where that is still what is to be done."""
    one, two, three = here.commits[:3]
    here.put(REF, one)
    store = RemoteStore(here.store, Far({}, "origin"))
    moves = [Move(REF, one, two), Move(OTHER, None, two)]
    notes: list[str] = []

    def follow() -> bool:
        return store.follow(moves, lambda: notes.append("note"))

    store.expect(moves)
    here.put(OTHER, three)  # another put it there: the copy goes on from what it is
    assert follow() and (here.at(REF), here.at(OTHER)) == (two, two)
    assert not follow(), "the ledger is elsewhere"
    here.put(REF, one)
    store.expect(moves)
    here.store.swap([Verify(REF, one)])  # ends what waited
    assert follow() and here.at(REF) == two
    assert notes == ["note"] * 3, "done at any rate, and once"


class Sending(Far):
    """Needs nothing of what it pushes in this clone."""

    sends = True


def test_what_is_sent_first_is_written_before_any_ref_leads_to_it(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RemoteStore(here.store, Sending({}, "origin"))
    blob = store.write("blob", b"first")
    assert blob == git(here.top, "hash-object", "--stdin", data=b"first").decode().strip()
    assert here.store.read([blob]) == [None]
    store.swap([Create(OTHER, blob)])
    assert here.at(OTHER) == blob and git(here.top, "cat-file", "blob", blob) == b"first"
    blob = store.write("blob", b"second")

    def full(*_: object) -> str:
        raise StoreError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(here.store, "write", full)
        with pytest.raises(StoreError):
            store.flush()
    store.flush()
    assert git(here.top, "cat-file", "blob", blob) == b"second", "what could not be written is not forgotten"


@pytest.mark.parametrize("killed", [True, False])
def test_a_git_that_was_killed_while_the_disk_failed_is_still_known(here: Here, killed: bool) -> None:
    """Nothing is committed where an object cannot be kept; if git is killed in that moment, its locks stay, and so does its note."""
    one, two = here.commits[:2]
    here.put(REF, one)
    store = here.store
    objects, _ = store._write_parts()

    def fail() -> None:
        wait_until("git has its locks", lambda: bool(here.locks()))
        if killed:
            assert store._update is not None
            os.kill(store._update.pid, signal.SIGKILL)
        raise StoreError("the disk failed")

    objects.settle = fail  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="the disk failed"):
        store.swap([Update(REF, one, two)])
    assert bool(here.locks()) == bool(here.notes()) == killed
    del objects.settle
    assert store.recover([Update(REF, one, two)]) == killed
    store.swap([Update(REF, one, two)])
    assert here.at(REF) == two and not here.notes()

"""The ledger deleted, rewound, replaced, edited, copied: never a grant that should not be, always a way back."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from tests.faults.world import LEDGER, SOAK, TIP, World, make_world

pytestmark = pytest.mark.faults


def delete_branch(world: World) -> None:
    world.git("branch", "-D", "gitcoord")


def delete_tip(world: World) -> None:
    world.git("update-ref", "-d", TIP)


def delete_both(world: World) -> None:
    delete_branch(world)
    delete_tip(world)


def rewind(world: World) -> None:
    world.git("update-ref", LEDGER, f"{LEDGER}~1")


def rewind_to_the_root(world: World) -> None:
    world.git("update-ref", LEDGER, world.git("rev-list", "--max-parents=0", LEDGER))


def rewind_and_forget(world: World) -> None:
    """The tip that would tell goes with it."""
    rewind(world)
    delete_tip(world)


def replace_by_orphan(world: World) -> None:
    tree = world.git("mktree", data=b"")
    world.git("update-ref", LEDGER, world.git("commit-tree", tree, "-m", "something else"))


def replace_by_code(world: World) -> None:
    world.git("update-ref", LEDGER, "HEAD")


def replace_by_another_ledger(world: World) -> None:
    """One that is legal in itself, made elsewhere."""
    other = make_world(world.scrap / "other")
    assert other.claim("elsewhere", agent="eve").code == 0
    world.git("fetch", "-q", str(other.top), f"+{LEDGER}:{LEDGER}")


def replace_by_a_fork(world: World) -> None:
    """The same root, another history: an older event, and one of somebody's own upon it."""
    world.append(world.git("log", "-1", "--format=%B", LEDGER).encode() + b"\n", parent=world.rev(f"{LEDGER}~1"))
    world.git("update-ref", TIP, f"{LEDGER}@{{1}}")


def commit_on_it(world: World) -> None:
    """A person checks the ledger out and commits."""
    place = world.scrap / "ledger-checkout"
    world.git("worktree", "add", "-q", str(place), "gitcoord")
    (place / "notes.txt").write_text("mine\n")
    world.git("-C", str(place), "add", "notes.txt")
    world.git("-C", str(place), "commit", "-q", "-m", "notes")
    world.git("worktree", "remove", "--force", str(place))


def remove_a_claim_by_hand(world: World) -> None:
    """A person deletes another's claim from the tree and commits that."""
    place = world.scrap / "ledger-checkout"
    world.git("worktree", "add", "-q", str(place), "gitcoord")
    world.git("-C", str(place), "rm", "-q", "-r", "claims/path/src")
    world.git("-C", str(place), "commit", "-q", "-m", "free src")
    world.git("worktree", "remove", "--force", str(place))


def commit_twice(world: World) -> None:
    commit_on_it(world)
    commit_on_it_again = world.git("commit-tree", f"{LEDGER}^{{tree}}", "-p", LEDGER, "-m", "and again")
    world.git("update-ref", LEDGER, commit_on_it_again)


def amend(world: World) -> None:
    """The event's message on another tree."""
    place = world.scrap / "ledger-checkout"
    world.git("worktree", "add", "-q", str(place), "gitcoord")
    (place / "notes.txt").write_text("mine\n")
    world.git("-C", str(place), "add", "notes.txt")
    world.git("-C", str(place), "commit", "-q", "--amend", "--no-edit")
    world.git("worktree", "remove", "--force", str(place))


def merge_on_it(world: World) -> None:
    tree = world.rev(f"{LEDGER}^{{tree}}")
    oid = world.git("commit-tree", tree, "-p", LEDGER, "-p", "HEAD", "-m", "merge")
    world.git("update-ref", LEDGER, oid)


# What was done -> what fsck must say about it.
LOSSES: dict[Callable[[World], None], str] = {
    delete_branch: "missing",
    delete_tip: "missing",
    delete_both: "missing",
    rewind: "rewound",
    rewind_to_the_root: "rewound",
    rewind_and_forget: "missing",
    replace_by_orphan: "rewound or replaced",
    replace_by_code: "rewound or replaced",
    replace_by_another_ledger: "rewound or replaced",
    replace_by_a_fork: "rewound or replaced",
    commit_on_it: "no legal event",
    commit_twice: "no legal event",
    remove_a_claim_by_hand: "no legal event",
    amend: "rewound or replaced",
    merge_on_it: "no legal event",
}


def tidy(world: World) -> None:
    """Expire reflogs, pack refs and prune: objects that no ref needs are gone afterwards."""
    world.git("reflog", "expire", "--expire=now", "--all")
    world.git("pack-refs", "--all")
    world.git("gc", "-q", "--prune=now")


def _go_on(world: World) -> World:
    assert world.claim("docs", agent="bob").code == 0
    assert world.claim("extra", agent="bob").code == 0
    assert world.claim("release", "extra", agent="bob").code == 0
    return world


@pytest.fixture
def long(world: World) -> World:
    """Alice holds src/app.py, bob docs; bob had more and gave it back, so that the last token is no live claim's."""
    return _go_on(world)


_HANGS_ON_A_THREAD = (delete_branch, delete_both, rewind, rewind_and_forget, replace_by_another_ledger)


@pytest.mark.parametrize("tidied", [False, True], ids=["", "then-gc"])
@pytest.mark.parametrize("loss", list(LOSSES), ids=lambda loss: loss.__name__)
def test_loss(long: World, loss: Callable[[World], None], tidied: bool) -> None:
    if tidied and not SOAK and loss not in _HANGS_ON_A_THREAD:
        pytest.skip("only in a soak run")
    newest = long.seqs()[-1]
    loss(long)
    if tidied:
        tidy(long)
    before = long.refs()

    # In a quick run only those whose answer would do harm.
    for words, agent in (
        (["src/app.py"], "carol"), (["fresh"], "carol"), (["src/app.py"], "alice"), (["release", "docs"], "bob"),
        (["renew"], "bob"), (["check", "src/app.py"], "alice"), (["check", "fresh"], "carol"),
    )[:: 1 if SOAK else 2]:  # fmt: skip
        done = long.claim(*words, agent=agent)
        assert done.code == 4, (words, agent, done)
        assert "fsck" in done.err, done.err
        assert long.refs() == before, (words, agent)
    for words in (["start"], ["stop"], ["kill", "bob"], ["sweep"]) if SOAK else (["kill", "bob"],):
        done = long.coord(*words, agent="carol")
        assert done.code == 4, (words, done)
    assert long.refs() == before

    told = long.fsck()
    assert told.code == 1 and LOSSES[loss] in told.out, told
    mended = long.fsck(repair=True)
    assert mended.code == 0 and mended.json["clean"], mended
    # Alice's claim was made before any of this; nobody gets it, and no token comes twice.
    assert long.claim("src/app.py", agent="carol").code == 1
    granted = long.claim("fresh", "--json", agent="carol")
    assert granted.code == 0, granted
    assert granted.json["token"] > newest
    assert long.claim("check", "src/app.py", agent="alice").code == 0
    long.assert_works("more", agent="dora")
    seqs = long.seqs()
    assert len(seqs) == len(set(seqs)) and seqs == sorted(seqs)


@pytest.mark.parametrize("tidied", [False, True], ids=["", "then-pack"])
def test_everything_lost_while_nobody_held_anything(world: World, tidied: bool) -> None:
    """No claim's ref is left to begin from; the events are still in the object store until git prunes them."""
    assert world.claim("release", "--all", agent="alice").code == 0
    newest = world.seqs()[-1]
    delete_both(world)
    if tidied:
        world.git("reflog", "expire", "--expire=now", "--all")
        world.git("gc", "-q")
    assert world.claim("fresh", agent="carol").code == 4
    mended = world.fsck(repair=True)
    assert mended.code == 0 and mended.json["clean"], mended
    granted = world.claim("fresh", "--json", agent="carol")
    assert granted.code == 0 and granted.json["token"] > newest, granted


def test_nothing_is_left_at_all(world: World) -> None:
    """Neither an object nor the redo log is left: the error says so, and no new ledger begins by itself."""
    assert world.claim("release", "--all", agent="alice").code == 0
    delete_both(world)
    for name in world.refs():
        if name.startswith("refs/gitcoord/"):
            world.git("update-ref", "-d", name)
    tidy(world)
    shutil.rmtree(world.git_dir / "gitcoord/redo")
    assert world.coord("init").code == 4
    assert world.claim("fresh", agent="carol").code == 4
    done = world.fsck(repair=True)
    assert done.code == 4 and "restore it from a backup" in done.out + done.err, done
    assert world.rev(LEDGER) == ""


def test_tidying_alone_is_harmless(long: World) -> None:
    tidy(long)
    assert long.claim("src/app.py", agent="carol").code == 1
    assert long.claim("release", "docs", agent="bob").code == 0
    tidy(long)
    long.assert_works()


def test_a_replaced_ledger_is_kept(long: World) -> None:
    replace_by_another_ledger(long)
    other = long.rev(LEDGER)
    assert long.fsck(repair=True).code == 0
    assert other in [oid for ref, oid in long.refs().items() if ref.startswith("refs/gitcoord/lost/")]


def test_init_does_not_hide_a_loss(long: World) -> None:
    for loss in (delete_branch, delete_tip):
        loss(long)
        before = long.refs()
        done = long.coord("init")
        assert done.code == 4 and "fsck --repair" in done.err, done
        assert long.refs() == before


# --- copies and moves ---------------------------------------------------------------------------------------------


def test_a_copy_is_refused_until_adopted(long: World) -> None:
    copy = World(long.scrap / "copy")
    shutil.copytree(long.top, copy.top, symlinks=True)
    before = copy.refs()
    for words in (["fresh"], ["release", "docs"], ["check", "docs"], ["renew"]):
        done = copy.claim(*words, agent="bob")
        assert done.code == 4 and "git coord init --adopt" in done.err, done
    done = copy.coord("init")
    assert done.code == 4 and "--adopt" in done.err, done
    assert copy.refs() == before
    assert long.claim("fresh", agent="carol").code == 0  # the original is not disturbed

    assert copy.coord("init", "--adopt").code == 0
    copy.assert_works("fresh", agent="dora")
    assert copy.claim("docs", agent="dora").code == 1
    long.assert_works("more", agent="dora")
    adopted = copy.refs()
    assert copy.coord("init", "--adopt").code == 0
    assert copy.refs()[LEDGER] == adopted[LEDGER]  # adopting twice is no second event


def test_a_clone_has_no_authority(long: World) -> None:
    clone = World(long.scrap / "clone")
    long.git("clone", "-q", str(long.top), str(clone.top))
    done = clone.coord("init")
    assert done.code == 1 and "--remote" in done.err and "--adopt" in done.err, done
    assert clone.claim("fresh", agent="bob").code == 2
    clone.git("branch", "gitcoord", "origin/gitcoord")
    assert clone.claim("fresh", agent="bob").code == 4


def test_a_move_is_no_copy(own: World) -> None:
    _go_on(own)
    moved = World(own.scrap / "moved")
    own.top.rename(moved.top)
    assert moved.claim("docs", agent="carol").code == 1
    assert moved.claim("release", "docs", agent="bob").code == 0
    moved.assert_works()


# --- init ---------------------------------------------------------------------------------------------------------


def _everything(world: World) -> dict[str, bytes]:
    """Every file of the git directory but the scratch notes."""
    files = [p for p in world.git_dir.rglob("*") if p.is_file() and not p.is_relative_to(world.git_dir / "gitcoord")]
    return {str(p.relative_to(world.git_dir)): p.read_bytes() for p in files}


def test_init_with_a_branch_in_the_way(plain: World) -> None:
    plain.git("branch", "gitcoord/x")
    before = _everything(plain)
    for packed in (False, True):
        if packed:
            plain.git("pack-refs", "--all")
            before = _everything(plain)
        done = plain.coord("init")
        assert done.code == 2 and "gitcoord/x" in done.err, done
        assert _everything(plain) == before


def test_init_where_a_remote_has_a_ledger(plain: World) -> None:
    assert plain.coord("init").code == 0
    plain.git("update-ref", "refs/remotes/origin/gitcoord", LEDGER)
    for ref in (LEDGER, TIP):
        plain.git("update-ref", "-d", ref)
    plain.git("config", "--remove-section", "gitcoord")
    before = _everything(plain)
    done = plain.coord("init")
    assert done.code == 1 and "git coord setup --remote origin" in done.err and "git coord init --adopt" in done.err, (
        done
    )
    assert _everything(plain) == before


def test_init_over_a_branch_of_that_name(plain: World) -> None:
    """Somebody's own branch `gitcoord` is no ledger, and stays."""
    plain.git("branch", "gitcoord")
    before = _everything(plain)
    done = plain.coord("init")
    assert done.code in (2, 4) and "Traceback" not in done.err, done
    assert _everything(plain) == before

"""Cost of the gate's judgement of many paths: twice the paths cost twice as much; and many refs are judged like few."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cost import SECTIONS, Cost, Counter, assert_each_is_linear
from tests.server.support import Site, unchanged
from tests.support import git

NOTHING = "0" * 40


def pushes(place: Path, size: int) -> dict[str, Cost]:
    """Many paths claimed, handed over, worked on and given back; each command is pushed, and the gate is counted."""
    site, counter, costs = Site(place).setup(), Counter(place), {}
    counter.program(place / "git-claim")
    paths = [f"free{n % 7}/file{n}" for n in range(size)]

    def push(name: str) -> None:
        done = site.sync()
        assert done.code == 0, done
        costs[name] = counter.taken()

    site.claim("take", "--", *paths, agent="alice")
    push("claim")
    git(site.bare, "-c", "core.hooksPath=/dev/null", "pack-refs", "--all")
    assert site.world.handoff("new", *SECTIONS).code == 0
    push("handoff new")
    assert site.world.handoff("accept", f"h{len(site.world.events())}", agent="bob").code == 0
    push("handoff accept")
    for number in ("", " again"):
        site.commit(dict.fromkeys(paths, f"by bob{number}\n"))
        assert site.push("-o", "agent=bob", "origin", "main").code == 0
        counter.taken()
        site.claim("release", *paths, agent="bob")
        push(f"release{number}")
        site.claim("take", "--", *paths, agent="bob")
        push(f"claim{number or ' anew'}")
    for path in paths:
        site.world.write(path, "not committed\n")
    assert site.world.coord("stop", "--keep", agent="bob").code == 0
    push("stop --keep")
    assert site.world.coord("start", agent="bob").code == 0
    push("start")
    return costs


@pytest.mark.slow
def test_many_paths_cost_as_they_are_many(tmp_path: Path) -> None:
    assert_each_is_linear(tmp_path, pushes)


class Hook:
    """The server's `reference-transaction`, as git calls it in a push that was judged to move these refs."""

    def __init__(self, site: Site, size: int) -> None:
        self.site = site
        self.old = git(site.bare, "rev-parse", "main").decode().strip()
        self.new = git(site.bare, "commit-tree", "-m", "new", "main^{tree}").decode().strip()
        self.held = [f"refs/claims/path/held{n}/@bob" for n in range(size)]
        lines = "".join(f"create {ref} {self.old}\n" for ref in self.held)
        git(site.bare, "-c", "core.hooksPath=/dev/null", "update-ref", "--stdin", data=lines.encode())
        self.judged = [f"{self.old} {self.new} {ref}" for ref in self.held[1:]]
        self.judged.append(f"{self.old} {NOTHING} {self.held[0]}")
        self.judged += [f"{NOTHING} {self.new} refs/claims/path/made{n}/@bob" for n in range(size)]

    def says(self, moved: list[str]) -> str:
        """The text of the hook's refusal; '' where the hook passes."""
        notes = self.site.bare / "gitcoord/inflight"
        notes.mkdir(parents=True, exist_ok=True)
        note = notes / f"refs.{os.getpid()}"  # this process stands for receive-pack
        note.write_text("# a note\n" + "".join(f"{line}\n" for line in self.judged))
        done = subprocess.run(
            [str(self.site.bare / "hooks/reference-transaction"), "prepared"], cwd=self.site.bare,
            env={**os.environ, "GIT_DIR": str(self.site.bare)}, input="".join(f"{line}\n" for line in moved),
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        note.unlink()
        assert (done.returncode == 0) == (done.stderr == ""), done
        return done.stderr


@pytest.mark.parametrize("size", [2, 150])
def test_refs_move_as_they_were_judged_however_many(tmp_path: Path, size: int) -> None:
    hook = Hook(Site(tmp_path), size)
    moved = hook.judged
    assert hook.says(moved) == hook.says(moved[::-1]) == ""
    assert hook.says([*moved, f"{hook.old} {hook.new} refs/heads/other"]) == "", "the code of the same push"
    assert "must move together" in hook.says(moved[1:])
    assert "more would move" in hook.says([*moved, f"{NOTHING} {hook.new} refs/claims/path/more/@bob"])
    assert "must move together" in hook.says([moved[0].replace(hook.new, hook.old), *moved[1:]])
    packed = [f"{NOTHING} {NOTHING} {ref}" for ref in hook.held]
    hook.judged = [f"{hook.old} {NOTHING} {ref}" for ref in hook.held]
    assert hook.says(packed) == ""
    assert "more would be deleted" in hook.says([*packed, f"{NOTHING} {NOTHING} refs/claims/path/more/@bob"])


@pytest.mark.parametrize("size", [2, 150])
def test_refs_that_moved_meanwhile_are_seen_however_many(tmp_path: Path, size: int) -> None:
    hook = Hook(Site(tmp_path), size)
    by_hand = ("-c", "core.hooksPath=/dev/null", "update-ref")
    git(hook.site.bare, *by_hand, "refs/claims/path/made1/@bob", hook.old)
    assert "there already" in hook.says(hook.judged)
    git(hook.site.bare, *by_hand, "-d", "refs/claims/path/made1/@bob")
    assert hook.says(hook.judged) == ""
    git(hook.site.bare, *by_hand, hook.held[1], hook.new)
    assert "moved meanwhile" in hook.says(hook.judged)


def test_many_claims_move_together_or_not_at_all(tmp_path: Path) -> None:
    site = Site(tmp_path).setup()
    site.claim("take", "--", *(f"free/file{n}" for n in range(120)), agent="bob")
    before = site.refs()
    unchanged(site, site.push("origin", *site.refspecs()), before, "must move together", "--atomic")
    assert site.sync().code == 0 and len(site.private()) > 120

"""The gates of a clone, clause by clause: the judged moves, the commits accepted before, and the policy that applies.

Real git, but no hooks and no other processes of gitcoord: `test_commit_gate.py` and `test_push_gate.py` have those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import LEDGER, TIP
from gitcoord.claims.model import Item
from gitcoord.claims.service import release, take
from gitcoord.claims.take import Take
from gitcoord.gates import gate as judging
from gitcoord.gates.client_gate import Gate
from gitcoord.gates.gate import Verdicts
from gitcoord.gates.git_history import GitHistory
from gitcoord.gates.history import net_changes
from gitcoord.gates.judge import Change, Verdict, judge
from gitcoord.git.commands import objects
from gitcoord.git.process import Answer, run
from gitcoord.git.store import RefUpdate
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import init
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.state import Part, State
from gitcoord.ledger.transaction import transact
from gitcoord.sessions.events import halt, kill
from gitcoord.sessions.service import start
from tests.gates.repository import GONE, Repository
from tests.support import git

SYNC, MINE = "refs/heads/main", "refs/heads/mine"
RULES = "shared/** gitcoord-claim\n"
UNCLAIMED = [("unclaimed", "shared/a")]


class Clone(Repository):
    """A clone whose trunk, here and remote-tracking, is at m1; its remote `origin` is an empty repository."""

    def __init__(self, place: Path, settings: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(place / "clone", (("remote.origin.url", ""), *settings))
        self.origin = place / "origin.git"
        git(place, "init", "-q", "--bare", str(self.origin))
        git(self.top, "remote", "add", "origin", str(self.origin))
        self.commit("m0", {".gitattributes": RULES, "shared/a": "0\n", "shared/b": "0\n", "x": "0\n"})
        self.commit("m1", {"shared/a": "1\n", "shared/b": "1\n", "x": "1\n"}, "m0")
        self.set("refs/heads/main", "m1")
        self.set("refs/remotes/origin/main", "m1")
        init(self.ctx, Actor("init"), sync="main", fold=False)

    def set(self, ref: str, name: str) -> None:
        git(self.top, "update-ref", *((ref, self.commits[name]) if name else ("-d", ref)))
        self.ctx.store.refresh()

    def config(self, text: str, base: str = "m1") -> None:
        """Commit these settings as m2 on trunk, here and remote-tracking."""
        self.commit("m2", {".gitcoord/config": text}, base)
        self.set("refs/heads/main", "m2")
        self.set("refs/remotes/origin/main", "m2")

    def released(self, name: str, path: str, text: str, base: str) -> None:
        """Work of bob's."""
        self.set("HEAD", base)
        take(self.ctx, Take(actor=Actor("bob"), items=(Item("path", path),)))
        self.commit(name, {path: text}, base)
        release(self.ctx, Actor("bob"), (Item("path", path),), commit=self.commits[name], dirty=True)

    # --- the gates

    def gate(self, actor: Actor | None = None) -> Gate:
        self.ctx.store.refresh()
        return Gate(self.ctx, lambda: actor or Actor("ann"))

    def push(
        self, new: str, old: str = "m1", ref: str = SYNC, remote: str = "origin", actor: Actor | None = None
    ) -> Verdicts:
        return self.gate(actor).push(remote, [self.move(new, old, ref)])

    def moves(self, new: str, old: str = "m1", ref: str = SYNC, actor: Actor | None = None) -> Verdicts:
        return self.gate(actor).moves([self.move(new, old, ref)])

    def ends(self, *names: str) -> tuple[str, str]:
        one, other = (self.commits[name] for name in names)
        return one, other

    def move(self, new: str, old: str, ref: str) -> RefUpdate:
        return RefUpdate(ref, self.commits.get(old, old), self.commits.get(new, new))


def rules(outcome: Verdicts) -> list[tuple[str, str]]:
    return [(verdict.rule, verdict.path) for verdict in outcome.verdicts]


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Clone]:
    made = Clone(tmp_path)
    yield made
    made.ctx.store.close()


# --- what is new ---------------------------------------------------------------------------------------------------


def test_each_new_commit_is_judged(clone: Clone) -> None:
    clone.commit("x1", {"x": "x\n"}, "m1")
    assert rules(clone.push("x1")) == []
    clone.commit("x2", {"shared/a": "x\n"}, "x1")
    clone.commit("x3", {"shared/a": "1\n"}, "x2")
    for outcome in (
        clone.push("x3"),
        clone.moves("x3"),
        clone.push("x3", "", MINE),
        clone.gate().range(*clone.ends("m1", "x3")),
    ):
        assert rules(outcome) == UNCLAIMED
        assert outcome.verdicts[0].commit == clone.commits["x2"]


def test_an_accepted_commit_is_not_judged_again(clone: Clone) -> None:
    clone.commit("x1", {"shared/a": "x\n"}, "m1")
    clone.commit("x2", {"x": "x\n"}, "x1")
    assert rules(clone.push("x2", "", MINE)) == UNCLAIMED
    for ref in ("refs/remotes/origin/main", "refs/remotes/origin/other", "refs/heads/main"):
        clone.set(ref, "x1")
        assert rules(clone.push("x2", "", MINE)) == [], ref
        assert rules(clone.push("x2", "", MINE, "backup")) == (UNCLAIMED if ref.endswith("other") else [])
        clone.set(ref, "" if ref.endswith("other") else "m1")
    assert rules(clone.push("x2", "x1", MINE)) == [], "its old tip"
    clone.set("refs/remotes/backup/other", "x1")
    assert rules(clone.push("x2", "", MINE)) == UNCLAIMED, "what another remote has"
    assert rules(clone.push("x2", "", MINE, "backup")) == []
    assert rules(clone.push("x2", "", MINE, "")) == UNCLAIMED


def test_what_landed_at_the_usual_remote_is_accepted_by_others(clone: Clone) -> None:
    clone.commit("x1", {"shared/a": "x\n"}, "m1")
    clone.set("refs/remotes/origin/main", "x1")
    assert rules(clone.push("x1", "m0", remote="backup")) == []
    assert rules(clone.push("x1", "", remote="backup")) == []
    assert rules(clone.push("x1", "", remote="origin")) == [], "its trunk was deleted, and is made again"
    clone.commit("x2", {"x": "x\n"}, "x1")
    clone.set("refs/remotes/origin/main", "x2")
    assert rules(clone.push("x2", "m1")) == UNCLAIMED, "git names the true tip, which is not what was fetched"


def test_the_sync_branch_here_counts_where_no_other_does(clone: Clone) -> None:
    clone.commit("x1", {"shared/a": "x\n"}, "m1")
    clone.set("refs/remotes/origin/main", "")
    assert rules(clone.moves("x1", "")) == UNCLAIMED
    clone.commit("x2", {"x": "x\n"}, "m1")
    assert rules(clone.moves("x2", "")) == []
    clone.set("refs/heads/main", "x1")
    assert rules(clone.moves("x1", "")) == []
    clone.set("refs/remotes/origin/main", "m1")
    assert rules(clone.push("x1", "")) == rules(clone.moves("x1", "")) == UNCLAIMED


@pytest.mark.parametrize("ref", [SYNC, MINE])
def test_the_first_push_to_an_empty_remote_is_judged_since_there_are_rules(clone: Clone, ref: str) -> None:
    """Trunk here may have moved without its hook."""
    clone.set("refs/remotes/origin/main", "")
    clone.commit("m2", {"sub/.gitattributes": "x text\n"}, "m0")
    clone.set("refs/heads/main", "m2")
    assert rules(clone.push("m2", "", ref)) == []
    clone.commit("x1", {"shared/a": "x\n"}, "m2")
    clone.set("refs/heads/main", "x1")
    assert rules(clone.push("x1", "", ref)) == UNCLAIMED
    clone.commit("y0", {"shared/a": "0\n"})
    clone.commit("y1", {"shared/a": "1\n"}, "y0")
    clone.commit("y2", {"shared/a": "1\n", ".gitcoord/config": "[rollout]\n", ".gitattributes": RULES}, "y1")
    clone.set("refs/heads/main", "y2")
    assert rules(clone.push("y2", "", ref)) == [], "no rules held before"
    clone.set("refs/heads/main", "y1")
    assert rules(clone.push("y1", "", ref)) == [], "there are none"


def test_a_merge_that_is_being_made_is_judged_by_what_it_brings(clone: Clone) -> None:
    """As reference-transaction would, which many hook managers do not know."""
    clone.commit("x1", {"shared/a": "x\n"}, "m1")
    clone.commit("y1", {"y": "y\n"}, "m1")

    def merge(ours: str, theirs: str, branch: str = "main") -> list[tuple[str, str]]:
        clone.set(f"refs/heads/{branch}", ours)
        git(clone.top, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
        git(clone.top, "reset", "-q", "--hard")
        git(clone.top, "merge", "-q", "--no-commit", "--no-ff", clone.commits[theirs])
        found = rules(clone.gate().index(b"", clone.ends(ours, theirs)))
        git(clone.top, "merge", "--abort")
        return found

    assert merge("y1", "x1") == UNCLAIMED
    assert merge("y1", "x1", "mine") == [], "not a branch that is judged"
    assert merge("x1", "y1") == []
    clone.set("refs/remotes/origin/main", "x1")
    assert merge("y1", "x1") == [], "it has landed"


def test_what_a_branch_held_is_not_judged_again(clone: Clone) -> None:
    """This includes commits that have not left this clone yet."""
    clone.commit("x1", {"shared/a": "x\n"}, "m1")
    clone.commit("x2", {"x": "x\n"}, "x1")
    clone.set("refs/heads/main", "x1")
    assert rules(clone.moves("x2", "x1")) == []


def test_a_ref_without_a_remote_is_none_of_a_remote(clone: Clone) -> None:
    git(clone.top, "remote", "remove", "origin")
    clone.commit("x1", {"shared/a": "x\n"}, "m1")
    clone.set("refs/remotes/main", "x1")
    assert rules(clone.moves("x1")) == UNCLAIMED


# --- what the result changes besides -------------------------------------------------------------------------------


def test_a_way_back_is_a_change_of_the_sync_branch(clone: Clone) -> None:
    both = [*UNCLAIMED, ("unclaimed", "shared/b")]
    for outcome in (clone.push("m0"), clone.moves("m0"), clone.gate().range(*clone.ends("m1", "m0"))):
        assert rules(outcome) == both
        assert outcome.verdicts[0].bases == (clone.commits["m1"],)
    assert rules(clone.push("m0", "m1", MINE)) == []


def test_also_where_a_new_commit_changes_the_same(clone: Clone) -> None:
    """bob may change it, but the push also undoes the content of the old tip."""
    take(clone.ctx, Take(actor=Actor("bob"), items=(Item("path", "shared/a"),)))
    clone.commit("y1", {"shared/a": "y\n", "shared/b": "1\n"}, "m0", agent="bob")
    found = clone.push("y1").verdicts
    assert [(v.rule, v.path, v.agent) for v in found] == [("unclaimed", "shared/b", "bob"), ("held", "shared/a", "ann")]
    clone.commit("x1", {"shared/a": "y\n"}, "m1", agent="bob")
    assert rules(clone.push("x1")) == []


def test_what_landed_at_the_remote_is_no_change(clone: Clone) -> None:
    """The state that `git pull` leaves, with a commit of one's own on top."""
    clone.set("refs/heads/main", "m0")
    clone.commit("x1", {"x": "x\n"}, "m1")
    assert rules(clone.moves("m1", "m0")) == rules(clone.moves("x1", "m0")) == []
    clone.commit("y1", {"shared/a": "0\n"}, "m1")
    assert rules(clone.moves("y1", "m0")) == UNCLAIMED
    clone.set("refs/remotes/origin/main", "m0")
    assert rules(clone.moves("m1", "m0")) == [*UNCLAIMED, ("unclaimed", "shared/b")]


def test_a_branch_may_be_put_anywhere_that_was_accepted(clone: Clone) -> None:
    clone.commit("m2", {"shared/a": "2\n"}, "m1")
    clone.set("refs/remotes/origin/main", "m2")
    clone.commit("y1", {"x": "y\n"}, "m0")
    clone.commit("y2", {"x": "y\n"}, "m1")
    assert rules(clone.push("y2", "y1", MINE)) == rules(clone.push("m0", "y2", MINE)) == []


def test_nobody_who_may_not_act_moves_a_gated_branch(clone: Clone) -> None:
    clone.commit("x1", {}, "m1")
    clone.set("refs/remotes/origin/main", "x1")
    assert rules(clone.moves("x1")) == rules(clone.push("x1", "x1")) == rules(clone.push("x1", "", MINE)) == []
    transact(clone.ctx, halt.decide, halt.Halt(Actor("eve", person=True)))
    assert rules(clone.moves("x1")) == rules(clone.push("x1", "x1")) == [("halted", "")]
    assert rules(clone.push("x1", "", MINE)) == [("halted", "")]
    assert rules(clone.gate().range(*clone.ends("x1", "x1"))) == []
    clone.commit("x2", {"shared/a": "x\n"}, "x1")
    assert rules(clone.moves("x2", "x1")) == [("halted", ""), *UNCLAIMED]


def test_nobody_is_asked_who_acts_where_there_is_nothing_to_judge(clone: Clone) -> None:
    asked: list[str] = []

    def who() -> Actor:
        asked.append("who")
        return Actor("ann")

    clone.commit("x1", {"shared/a": "x\n"}, "m1")
    gate = Gate(clone.ctx, who)
    assert gate.moves([clone.move("x1", "m1", MINE)]).verdicts == []
    assert asked == []
    assert len(gate.moves([clone.move("x1", "m1", SYNC)]).verdicts) == 1 and gate.actor.agent == "ann"
    assert asked == ["who"]


def test_a_look_at_the_ledger_may_be_given(clone: Clone) -> None:
    snapshot = read_snapshot(clone.ctx)
    transact(clone.ctx, halt.decide, halt.Halt(Actor("eve", person=True)))
    clone.ctx.store.refresh()
    clone.commit("x1", {"x": "x\n"}, "m1")
    move = clone.move("x1", "m1", SYNC)
    assert rules(Gate(clone.ctx, lambda: Actor("ann")).moves([move])) == [("halted", "")]
    assert rules(Gate(clone.ctx, lambda: Actor("ann"), snapshot).moves([move])) == []


def test_the_last_commit_of_the_killed_is_named(clone: Clone) -> None:
    start(clone.ctx, Actor("ann"))
    transact(clone.ctx, kill.decide, kill.Kill(Actor("eve", person=True), "ann"))
    clone.commit("x1", {"x": "x\n"}, "m1")
    clone.commit("x2", {"x": "y\n"}, "x1")
    (verdict,) = clone.moves("x2").verdicts
    assert (verdict.rule, verdict.commit, verdict.bases) == ("killed", clone.commits["x2"], (clone.commits["x1"],))


def test_little_is_read_for_little(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two commits are compared no more often than needed, and the ledger's parts are read at once only for many paths."""
    compared: list[tuple[object, ...]] = []
    loaded: list[Part] = []

    def comparing(*words: object) -> list[Change]:
        compared.append(words)
        return net_changes(*words)  # type: ignore[arg-type]

    def loading(state: State, parts: Iterable[Part]) -> None:
        parts = list(parts)
        loaded.extend(part for part in parts if part == ("below", "approvals"))
        prefetch(state, parts)

    prefetch = State.prefetch

    monkeypatch.setattr(judging, "net_changes", comparing)
    monkeypatch.setattr(State, "prefetch", loading)
    clone.commit("x1", {f"f{number}": "x\n" for number in range(16)}, "m1")
    assert rules(clone.push("x1")) == [] and (len(compared), len(loaded)) == (1, 0)
    clone.commit("x2", {"f16": "x\n"}, "x1")
    assert rules(clone.push("x2")) == [] and (len(compared), len(loaded)) == (2, 1)


def test_git_is_asked_once(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def noted(argv: list[str], *more: object) -> Answer:
        started.append(argv)
        return run(argv, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(objects, "run", noted)
    past = GitHistory(clone.ctx, read_snapshot(clone.ctx), {"x"})
    for _ in range(3):
        assert past.is_ancestor(*clone.ends("m0", "m1")) is True
    assert len(started) == 1


def test_a_push_is_judged_once(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much of the ledger and of git is read on the way; and who acts is asked for once."""
    judged: list[str] = []
    asked: list[str] = []

    def counting(*words: Any) -> list[Verdict]:
        judged.append("judge")
        return judge(*words)

    def who() -> Actor:
        asked.append("who")
        return Actor("ann")

    monkeypatch.setattr(judging, "judge", counting)
    clone.released("b1", "shared/a", "bob\n", "m1")
    clone.commit("x1", {"shared/a": "x\n", "shared/b": "x\n", "x": "x\n"}, "m1")
    clone.ctx.store.refresh()
    assert Gate(clone.ctx, who).push("origin", [clone.move("x1", "m1", SYNC)]).refused
    assert (judged, asked) == (["judge"], ["who"])
    assert not Gate(clone.ctx, who).push("origin", [clone.move("m1", "m1", MINE)]).verdicts
    assert (judged, asked) == (["judge"] * 2, ["who"] * 2), "without new commits too: the killed push nothing"


def test_a_world_answers_a_question_once(clone: Clone) -> None:
    snapshot = read_snapshot(clone.ctx)
    world = clone.ctx.world(snapshot)
    clone.set("HEAD", "m0")
    assert world.head() == clone.commits["m0"] and world.within(clone.commits["m1"], [clone.commits["m0"]])
    clone.set("HEAD", "m1")
    assert world.head() == clone.commits["m0"]
    assert clone.ctx.world(snapshot).head() == clone.commits["m1"]


# --- by whose policy -----------------------------------------------------------------------------------------------


def test_a_push_to_the_sync_branch_is_judged_by_its_old_tip(clone: Clone) -> None:
    clone.commit("w1", {".gitattributes": None}, "m1")
    clone.commit("x1", {"shared/a": "x\n"}, "m1")
    clone.set("refs/heads/main", "w1")
    assert UNCLAIMED[0] in rules(clone.push("x1")) and UNCLAIMED[0] in rules(clone.moves("x1"))
    assert UNCLAIMED[0] not in rules(clone.push("x1", "w1"))
    assert rules(clone.push("x1", "", MINE)) == [], "other branches by trunk here"


def test_where_else_the_policy_may_come_from(clone: Clone) -> None:
    clone.commit("w1", {".gitattributes": None, "shared/a": "w\n"}, "m1")
    clone.commit("x1", {"shared/b": "x\n"}, "w1")
    git(clone.top, "symbolic-ref", "HEAD", "refs/heads/other")
    clone.set("refs/heads/other", "w1")
    clone.set("refs/heads/main", "")
    assert rules(clone.push("x1", "w1", MINE)) == [("unclaimed", "shared/b")], "what was fetched"
    clone.set("refs/remotes/origin/main", "w1")
    clone.set("refs/heads/other", "m1")
    assert rules(clone.push("x1", "w1", MINE)) == []
    clone.set("refs/remotes/origin/main", "")
    assert rules(clone.push("x1", "w1", MINE)) == [("unclaimed", "shared/b")], "else HEAD's"
    clone.set("refs/heads/other", "")
    assert rules(clone.push("x1", "w1", MINE)) == [], "else there is none"


def test_only_pushes_need_a_reader(clone: Clone) -> None:
    clone.commit("m2", {".gitcoord/config": "[rules]\n\tack = true\n", ".gitcoord/rules.md": "be good\n"}, "m1")
    clone.set("refs/heads/main", "m2")
    clone.set("refs/remotes/origin/main", "m2")
    clone.commit("x1", {"x": "x\n"}, "m2", agent="bob")
    clone.commit("x2", {"x": "y\n"}, "x1")

    def readers(outcome: Verdicts) -> list[str]:
        return [verdict.agent for verdict in outcome.verdicts if verdict.rule == "rules"]

    assert readers(clone.push("x2", "m2")) == ["ann"]
    assert readers(clone.moves("x2", "m2")) == []
    assert readers(clone.push("x2", "m2", actor=Actor("ada", person=True))) == []
    ends = clone.ends("m2", "x2")
    assert readers(clone.gate().range(*ends)) == ["ann"]
    assert readers(clone.gate().range(*ends, named=False)) == ["bob"], "CI is nobody in particular"


# --- what is staged ------------------------------------------------------------------------------------------------


def test_what_is_staged(clone: Clone) -> None:
    gate, (m0, m1) = clone.gate(), clone.ends("m0", "m1")
    git(clone.top, "read-tree", m1)
    assert rules(gate.index(b"", [m1])) == []
    assert rules(gate.index(b"", [m0])) == [*UNCLAIMED, ("unclaimed", "shared/b")]
    assert rules(gate.index(b"", [m0, m1])) == []
    assert ("unclaimed", "shared/a") not in rules(gate.index(b"", [])), "the first commit has no policy before it"
    other = clone.top / "index"
    git(clone.top, "read-tree", f"--index-output={other}", m0)
    assert rules(gate.index(bytes(other), [m0])) == []


def test_where_nothing_is_staged_it_is_asked_who_acts(clone: Clone) -> None:
    """A commit of nothing but a message is not for the killed, nor while everything is halted."""
    git(clone.top, "read-tree", clone.commits["m1"])
    assert rules(clone.gate().index(b"", [clone.commits["m1"]])) == []
    transact(clone.ctx, halt.decide, halt.Halt(Actor("eve", person=True)))
    git(clone.top, "read-tree", clone.commits["m1"])
    assert rules(clone.gate().index(b"", [clone.commits["m1"]])) == [("halted", "")]
    assert ("halted", "") in rules(clone.gate().index(b"", [clone.commits["m0"]]))


def test_all_that_is_staged_first_is_judged(clone: Clone) -> None:
    """Against nothing: a claim of another counts on every path."""
    take(clone.ctx, Take(actor=Actor("bob"), items=(Item("path", "x"),)))
    git(clone.top, "read-tree", clone.commits["m1"])
    assert rules(clone.gate().index(b"", [])) == [("held", "x")]


# --- refs that are no work -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ref", [LEDGER, "refs/claims/path/a/@ann", "refs/gitcoord/sessions/ann", TIP])
def test_gitcoords_own_refs_are_not_moved_by_hand(clone: Clone, ref: str) -> None:
    for outcome in (clone.moves("m1", "", ref), clone.push("m1", "", ref)):
        (verdict,) = outcome.verdicts
        assert verdict[:3] == ("ledger", "enforce", "") and verdict.message == f"{ref} may not be moved by hand"
    for outcome in (clone.moves("", "m1", ref), clone.push("", "m1", ref)):
        assert outcome.verdicts[0].message == f"{ref} may not be deleted"


def test_refs_that_only_look_like_them(clone: Clone) -> None:
    for ref in ("refs/heads/gitcoord2", "refs/heads/claims/x"):
        assert rules(clone.moves("m1", "", ref)) == rules(clone.push("m1", "", ref)) == []


def test_a_copy_of_the_ledger_may_be_pushed(clone: Clone) -> None:
    old = git(clone.top, "rev-parse", LEDGER).decode().strip()
    transact(clone.ctx, halt.decide, halt.Halt(Actor("eve", person=True)))
    new = git(clone.top, "rev-parse", LEDGER).decode().strip()
    forked = git(clone.top, "commit-tree", f"{old}^{{tree}}", "-p", old, "-m", "x").decode().strip()
    ledger = [("ledger", "")]
    assert (
        rules(clone.push(new, "", LEDGER))
        == rules(clone.push(new, old, LEDGER))
        == rules(clone.push(old, "", LEDGER))
        == []
    )
    assert rules(clone.push(old, new, LEDGER)) == ledger, "it only goes forward"
    assert rules(clone.push(forked, old, LEDGER)) == rules(clone.push(forked, "", LEDGER)) == ledger, "it is no copy"
    assert rules(clone.push(new, forked, LEDGER)) == ledger
    assert rules(clone.push("", new, LEDGER)) == ledger
    assert rules(clone.push(new, "", "refs/claims/x")) == ledger


def test_a_clone_that_follows_may_fetch(clone: Clone) -> None:
    """With a remote authority, the refs here are copies."""
    gate = clone.gate()
    clone.ctx.remote = "origin"
    old = git(clone.top, "rev-parse", LEDGER).decode().strip()
    new = git(clone.top, "commit-tree", f"{old}^{{tree}}", "-p", old, "-m", "x").decode().strip()

    def refused(new: str, old: str, ref: str) -> bool:
        return bool(gate.moves([clone.move(new, old, ref)]).verdicts)

    assert not refused(new, old, LEDGER) and not refused(old, "", LEDGER)
    assert refused(old, new, LEDGER) and refused("", old, LEDGER), "it only goes forward"
    for ref in ("refs/claims/path/a/@ann", "refs/gitcoord/sessions/ann"):
        assert not refused("m0", "m1", ref) and not refused("", "m0", ref)
    assert refused(new, old, TIP) and refused(new, "", TIP), "it is no copy of anything"


@pytest.mark.parametrize("gate", ["moves", "push"])
def test_the_sync_branch_is_not_deleted(clone: Clone, gate: str) -> None:
    judged = clone.moves if gate == "moves" else clone.push
    (verdict,) = judged("", "m1").verdicts
    assert verdict[:3] == ("lineage", "enforce", "") and "where everybody's work lands" in verdict.message
    assert rules(judged("", "m1", MINE)) == []


def test_what_is_no_commit_is_not_judged(clone: Clone) -> None:
    clone.commit("x1", {"shared/a": "x\n"}, "m1")
    blob = clone.blob("x\n")
    assert rules(clone.push(blob, "", "refs/tags/v1")) == []
    assert rules(clone.push("x1", "m1", "refs/notes/commits")) == []
    clone.config('[deploy "rel"]\n\ttag = rel\n')
    assert rules(clone.push(blob, "", "refs/tags/v1")) == [], "it deploys nothing"
    with pytest.raises(CouldNotJudge, match="this push brings no commit") as deployed:
        clone.push(blob, "", "refs/tags/rel")
    assert deployed.value.hints == ("push a commit, or a tag of one",)
    assert rules(clone.push("x1", blob, "refs/tags/v1")) == UNCLAIMED
    assert rules(clone.push("x1", GONE, MINE)) == UNCLAIMED, "what the branch had is not here"


def test_what_the_sync_branch_holds_must_be_here(clone: Clone) -> None:
    with pytest.raises(CouldNotJudge, match="'main' at origin has moved: somebody pushed before you"):
        clone.push("m1", GONE)


def test_several_at_once(clone: Clone) -> None:
    clone.commit("x1", {"shared/a": "x\n"}, "m1")
    clone.commit("x2", {"shared/b": "x\n"}, "m1")
    moves = [clone.move(name, "", f"refs/heads/{name}") for name in ("m1", "x1", "x2", "m0")]
    outcome = clone.gate().push("origin", moves)
    assert rules(outcome) == [*UNCLAIMED, ("unclaimed", "shared/b")]
    assert outcome.policy.present, "of one that was asked"
    assert rules(clone.gate().moves([])) == []


# --- which branches are gated --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ref", "gated"),
    [
        (SYNC, True),
        (MINE, False),
        ("refs/heads/exact", True),
        ("refs/heads/exactly", False),
        ("refs/heads/exac", False),
        ("refs/heads/star/x", True),
        ("refs/heads/one1", True),
        ("refs/heads/two2", True),
        ("refs/heads/prod", True),
        ("refs/heads/main2", False),
        ("refs/tags/rel", False),  # pushes deploy tags, moves here do not
    ],
)
def test_which_branches_are_gated(tmp_path: Path, ref: str, gated: bool) -> None:
    names = ("exact", "star/*", "one?", "two[0-9]")
    clone = Clone(tmp_path, tuple(("gitcoord.gateref", f"refs/heads/{name}") for name in names))
    clone.config('[deploy "prod"]\n\tremote = origin\n\tref = refs/heads/prod\n\ttag = rel\n')
    clone.commit("x1", {"shared/a": "x\n"}, "m2")
    assert rules(clone.moves("x1", "m2", ref)) == (UNCLAIMED if gated else [])
    assert rules(clone.moves("", "m2", ref)) == ([("lineage", "")] if ref == SYNC else [])
    clone.ctx.store.close()


# --- a fetch into trunk --------------------------------------------------------------------------------------------


@pytest.fixture
def fetched(clone: Clone) -> Clone:
    """origin's trunk is at x1, which is not fetched here; another branch is checked out. It records each request."""
    clone.commit("x1", {"shared/a": "x\n"}, "m1")
    clone.commit("x2", {"shared/a": "y\n"}, "x1")
    git(clone.top, "push", "-q", str(clone.origin), "x1:refs/heads/main", "x1:refs/heads/prod")
    git(clone.top, "symbolic-ref", "HEAD", "refs/heads/m0")
    script = clone.top / "upload-pack"
    script.write_text(f'#!/bin/sh\ntouch "{clone.top}/asked"\nexec git-upload-pack "$@"\n')
    script.chmod(0o755)
    git(clone.top, "config", "remote.origin.uploadpack", str(script))
    return clone


def was_asked(clone: Clone) -> bool:
    asked = clone.top / "asked"
    there = asked.exists()
    asked.unlink(missing_ok=True)
    return there


def test_the_remote_tells_what_landed(fetched: Clone) -> None:
    assert rules(fetched.moves("x1")) == [] and was_asked(fetched)
    assert rules(fetched.moves("x2")) == UNCLAIMED and was_asked(fetched)
    assert rules(fetched.moves("m1", "m0")) == [] and not was_asked(fetched), "only where it matters"


def test_not_where_the_branch_is_checked_out(fetched: Clone) -> None:
    """git never fetches into it; unless there is no work tree."""
    git(fetched.top, "symbolic-ref", "HEAD", SYNC)
    assert rules(fetched.moves("x1")) == UNCLAIMED and not was_asked(fetched)
    fetched.ctx.repo = fetched.ctx.repo._replace(worktree="")
    assert rules(fetched.moves("x1")) == []


def test_nor_of_other_branches(fetched: Clone) -> None:
    fetched.ctx.settings.pairs.append(("gitcoord.gateref", "refs/heads/prod"))
    assert rules(fetched.moves("x1", "m1", "refs/heads/prod")) == UNCLAIMED and not was_asked(fetched)


def test_nor_where_the_remote_does_not_answer(fetched: Clone) -> None:
    git(fetched.top, "config", "remote.origin.url", str(fetched.top / "nowhere"))
    assert rules(fetched.moves("x1")) == UNCLAIMED
    git(fetched.top, "remote", "remove", "origin")
    assert rules(fetched.moves("x1")) == UNCLAIMED


def test_nobody_is_asked_for_a_password_in_between(fetched: Clone) -> None:
    ssh = fetched.top / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(f'#!/bin/sh\necho "$*" >"{fetched.top}/told"\nexit 1\n')
    ssh.chmod(0o755)
    env = fetched.ctx.repo.env
    fetched.ctx.repo = fetched.ctx.repo._replace(env={**env, b"PATH": bytes(ssh.parent) + b":" + env[b"PATH"]})
    git(fetched.top, "config", "remote.origin.url", "host.invalid:x")
    assert rules(fetched.moves("x1")) == UNCLAIMED
    assert "BatchMode=yes" in (fetched.top / "told").read_text()


# --- deploys -------------------------------------------------------------------------------------------------------


@pytest.fixture
def deploying(clone: Clone) -> Clone:
    """A push of prod to origin deploys; the commit is stale, since origin's trunk has moved."""
    clone.config(
        '[deploy "prod"]\n\tremote = origin\n\tref = refs/heads/prod\n[deploy "any"]\n\tref = refs/heads/any\n'
    )
    clone.commit("m3", {"x": "3\n"}, "m2")
    git(clone.top, "push", "-q", str(clone.origin), "m3:refs/heads/main")
    git(clone.top, "remote", "add", "backup", str(clone.origin))
    return clone


STALE = [("stale-deploy", "")]


@pytest.mark.parametrize(
    ("remote", "ref", "stale"),
    [
        ("origin", "refs/heads/prod", True),
        ("origin", "refs/heads/production", False),
        ("backup", "refs/heads/prod", False),
        ("backup", "refs/heads/any", True),
        ("/any/where", "refs/heads/prod", True),  # a bare address may be any remote
        ("origin", MINE, False),
    ],
)
def test_what_a_push_deploys(deploying: Clone, remote: str, ref: str, stale: bool) -> None:
    outcome = deploying.push("m2", "m2", ref, remote)
    assert rules(outcome) == (STALE if stale else [])
    for verdict in outcome.verdicts:
        assert verdict.stage == "enforce" and verdict.commit == deploying.commits["m2"] and verdict.hints


def test_a_target_without_a_remote_is_deployed_to_any_address(deploying: Clone) -> None:
    """Landed work cannot be fetched from a bare address, so the push cannot be judged."""
    with pytest.raises(CouldNotJudge, match="cannot be fetched from"):
        deploying.push("m2", "m2", "refs/heads/any", str(deploying.origin))


def test_a_deploy_that_is_up_to_date(deploying: Clone) -> None:
    assert rules(deploying.push("m3", "m2", "refs/heads/prod")) == []
    deploying.commit("x1", {"shared/a": "x\n"}, "m2")
    assert rules(deploying.push("x1", "m2", "refs/heads/prod")) == [*STALE, *UNCLAIMED]
    transact(deploying.ctx, halt.decide, halt.Halt(Actor("eve", person=True)))
    assert rules(deploying.push("m3", "m3", "refs/heads/prod")) == [("halted", "")], "it is gated"


def test_a_stale_deploy_counts_as_the_policy_says(deploying: Clone) -> None:
    text = '[deploy "prod"]\n\tref = refs/heads/prod\n[rollout]\n\tstale-deploy = warn\n'
    deploying.config(text, "m1")
    outcome = deploying.push("m2", "m2", "refs/heads/prod")
    assert rules(outcome) == STALE and outcome.refused == [] and outcome.noted == outcome.verdicts
    message = outcome.verdicts[0].message
    assert "lacks 2 commits of 'main'" in message and "a deploy from here would take back: x" in message


# --- validators ----------------------------------------------------------------------------------------------------

NEWS = '[validator "changelog"]\n\tpath = x\n\tfile = NEWS\n\ton = commit\n\ton = push\n'


def names(outcome: Verdicts) -> list[str]:
    return [verdict.rule for verdict in outcome.verdicts]


def test_validators_speak_beside_the_judge(clone: Clone) -> None:
    clone.config(NEWS)
    clone.commit("x1", {"x": "x\n", "shared/a": "x\n"}, "m2")
    git(clone.top, "read-tree", clone.commits["x1"])
    both = ["unclaimed", "changelog"]
    assert names(clone.gate().index(b"", [clone.commits["m2"]])) == both
    assert names(clone.push("x1", "m2")) == names(clone.push("x1", "", MINE)) == both
    assert names(clone.gate().range(*clone.ends("m2", "x1"))) == both
    clone.commit("x2", {"NEWS": "x\n"}, "x1")
    assert names(clone.push("x2", "m2")) == ["unclaimed"]
    clone.commit("x3", {"z": "x\n"}, "x1")
    assert names(clone.push("x3", "x1")) == [], "trunk from where it is"
    clone.commit("y1", {"z": "y\n"}, "m2")
    assert "changelog" in names(clone.push("y1", "x1")), "also what a way back would undo"
    clone.config("")
    git(clone.top, "read-tree", clone.commits["x1"])
    assert "changelog" not in names(clone.gate().index(b"", [clone.commits["m2"]]))


def test_a_branch_is_validated_from_where_it_left_what_landed(clone: Clone) -> None:
    clone.config(NEWS)
    clone.commit("y1", {"x": "y\n"}, "m2")
    clone.commit("y2", {"z": "y\n"}, "y1")
    assert names(clone.push("y2", "y1", MINE)) == ["changelog"], "each push has the whole of it"
    for ref in ("refs/heads/main", "refs/remotes/origin/main"):
        clone.set(ref, "y1")
        assert names(clone.push("y2", "y1", MINE)) == [], ref
        clone.set(ref, "m2")


def test_commands_are_those_of_where_work_lands(clone: Clone) -> None:
    """A commit on a branch may not bring the command that judges it; a push is judged by the policy that counts anyway."""
    own = '[validator "own"]\n\tcommand = "echo {0}; exit 1"\n\ton = commit\n\ton = push\n'
    clone.config(own.format("landed"))
    clone.commit("y1", {".gitcoord/config": own.format("mine")}, "m2")
    clone.commit("y2", {"x": "y\n"}, "y1")
    git(clone.top, "read-tree", clone.commits["y2"])

    def said(outcome: Verdicts) -> list[str]:
        return [verdict.message for verdict in outcome.verdicts if verdict.rule == "own"]

    assert said(clone.gate().index(b"", [clone.commits["y1"]])) == said(clone.push("y2", "y1", MINE)) == ["landed"]
    gate = clone.gate()
    gate._runs_commands = False
    assert said(gate.push("origin", [clone.move("y2", "y1", MINE)])) == [], "a server runs none"


def test_deploys_have_validators_of_their_own(clone: Clone) -> None:
    text = '[deploy "prod"]\n\tref = refs/heads/prod\n[validator "placeholders"]\n\tpath = x\n'
    clone.config(text)
    git(clone.top, "push", "-q", str(clone.origin), "m2:refs/heads/main")
    clone.commit("x1", {"x": "TODO: finish this, lorem ipsum\n"}, "m2")
    assert names(clone.push("x1", "m2", "refs/heads/prod")) == ["placeholders"]
    assert names(clone.push("x1", "m2", MINE)) == []

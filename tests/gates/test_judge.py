"""The judgement, clause by clause: who acts, who holds, what is guarded. Lineage has a file of its own."""

from __future__ import annotations

import pytest

from gitcoord.gates.judge import Change, CommitChange, is_family, path_word
from gitcoord.gates.model import Approval
from gitcoord.ledger.sessions import Actor
from gitcoord.policy.model import BLOCK, CHECKPOINT, WARN, Attributes, Role
from gitcoord.policy.parse import parse_policy
from tests.ledger.past import FILE, Ledger, Past

PERSON = Actor("ada", person=True)


@pytest.fixture
def past() -> Past:
    made = Past()
    made.commit("m0", {"a": "aa", "b": "bb"})
    return made


@pytest.fixture
def ledger(past: Past) -> Ledger:
    return Ledger(past)


# --- who -----------------------------------------------------------------------------------------------------------


def test_without_a_step_there_is_nothing_to_judge(ledger: Ledger) -> None:
    ledger.kill("ann")
    assert ledger.verdicts() == []


def test_whoever_acts_must_live(past: Past, ledger: Ledger) -> None:
    ledger.kill("ann")
    step = past.commit("m1", {"a": "ax"}, "m0", agent="bob")
    (verdict,) = ledger.verdicts(step)
    assert (verdict.rule, verdict.agent, verdict.commit, verdict.bases) == ("killed", "ann", "m1", ("m0",))
    assert "revive" in verdict.hints[0]


def test_so_must_whoever_made_a_change(past: Past, ledger: Ledger) -> None:
    ledger.kill("bob")
    empty = past.commit("m1", {}, "m0", agent="bob")
    assert ledger.rules(empty) == []
    (verdict,) = ledger.verdicts(empty, past.commit("m2", {"a": "ax"}, "m1", agent="bob"))
    assert (verdict.rule, verdict.agent) == ("killed", "bob")


@pytest.mark.parametrize("reason", ["", "fire"])
def test_nothing_moves_while_everything_is_halted(past: Past, ledger: Ledger, reason: str) -> None:
    ledger.state.load_file("halt", {"v": 1, "by": "ada", "reason": reason, "seq": 2, "at": 0})
    (verdict,) = ledger.verdicts(past.commit("m1", {}, "m0"))
    told = "everything was halted by ada" + (": fire" if reason else "")
    assert (verdict.rule, verdict.message, verdict.commit, verdict.bases) == ("halted", told, "", ())


@pytest.mark.parametrize(
    ("ack", "rules", "asked"), [(True, "7" * 40, True), (True, "", False), (False, "7" * 40, False)]
)
def test_the_rules_are_read_where_the_policy_asks_for_it(
    past: Past, ledger: Ledger, ack: bool, rules: str, asked: bool
) -> None:
    policy = parse_policy(())._replace(ack=ack, rules=rules)
    ledger.state.load_file("acks/bob", {"v": 1, "agent": "bob", "read": [{"version": rules, "seq": 1, "at": 0}]})
    found = ledger.verdicts(past.commit("m1", {}, "m0"), policy=policy, readers=("bob", "cyd"))
    assert [(verdict.rule, verdict.agent) for verdict in found] == ([("rules", "cyd")] if asked else [])


def test_all_who_have_not_read_the_rules_are_named(past: Past, ledger: Ledger) -> None:
    policy = parse_policy(())._replace(ack=True, rules="7" * 40)
    (verdict,) = ledger.verdicts(past.commit("m1", {}, "m0"), policy=policy, readers=("bob", "cyd"))
    assert verdict.message == "'bob', 'cyd' have not read the rules (777777777777)" and verdict.agent == "bob"


@pytest.mark.parametrize("asks", [True, False])
def test_commits_that_change_something_say_whose_they_are(past: Past, ledger: Ledger, asks: bool) -> None:
    policy = parse_policy([("gitcoord.attribution", "require" if asks else "off")])
    steps = [past.commit("m1", {"a": "ax"}, "m0", agent="ann"), past.commit("m2", {}, "m1")]
    assert ledger.rules(*steps, policy=policy) == []
    (*found,) = ledger.verdicts(*steps, past.commit("m3", {"a": "ay"}, "m2"), policy=policy)
    assert [(verdict.rule, verdict.commit) for verdict in found] == ([("attribution", "m3")] if asks else [])


# --- who holds -----------------------------------------------------------------------------------------------------


def test_a_shared_path_needs_a_claim(past: Past, ledger: Ledger) -> None:
    step = past.commit("m1", {"a": "ax", "b": "bx"}, "m0", agent="bob")
    (verdict,) = ledger.verdicts(step, shared=["a"])
    assert verdict[:4] == ("unclaimed", "enforce", "a", "bob") and "'bob'" in verdict.message
    assert (verdict.commit, verdict.mode, verdict.blob, verdict.bases) == ("m1", FILE, "ax", ("m0",))
    assert verdict.hints == ("git claim a",)
    index = past.index({"a": "ax"}, "m0")
    (verdict,) = ledger.verdicts(index, shared=["a"])
    assert (verdict.agent, verdict.commit, verdict.bases) == ("ann", "", ("m0",))


def test_each_path_is_told_once(past: Past, ledger: Ledger) -> None:
    steps = [past.commit("m1", {"a": "ax"}, "m0"), past.commit("m2", {"a": "ay", "b": "by"}, "m1")]
    found = ledger.verdicts(*steps, shared=["a", "b"])
    assert [(verdict.path, verdict.commit) for verdict in found] == [("a", "m1"), ("b", "m2")]


def test_a_rule_counts_as_the_policy_says(past: Past, ledger: Ledger) -> None:
    policy = parse_policy([("rollout.unclaimed", "warn")])
    (verdict,) = ledger.verdicts(past.commit("m1", {"a": "ax"}, "m0"), shared=["a"], policy=policy)
    assert verdict.stage == "warn"


@pytest.mark.parametrize("paths", [1, 40])
@pytest.mark.parametrize(
    ("holder", "at", "mode", "silent", "expected"),
    [
        ("ann", "d/f00", "write", False, []),
        ("ann", "d", "write", False, []),
        ("ann", "d/f", "write", False, ["unclaimed"]),
        ("ann", "d/f00", "write", True, []),  # the gate is a sign of life
        ("ann.sub", "d/f00", "write", False, []),
        ("ann", "d/f00", "read", False, ["unclaimed"]),
        ("ann", "d/f00", "intent", False, ["unclaimed"]),
        ("cyd", "d/f00", "write", False, ["held"]),
        ("cyd", "d", "write", False, ["held"]),
        ("cyd", "d/f00", "write", True, ["unclaimed"]),
        ("cyd", "d/f00", "read", False, ["held"]),
        ("cyd", "d/f00", "intent", False, ["held"]),
        ("cyd", "d", "read", False, ["held"]),
        ("cyd", "d/f00", "read", True, ["unclaimed"]),
        ("ann.sub", "d/f00", "intent", False, ["unclaimed"]),
        ("bob", "d/f00", "write", False, []),  # whom the commit names
        ("", "", "", False, ["unclaimed"]),
    ],
)
def test_who_holds_it(
    past: Past, ledger: Ledger, holder: str, at: str, mode: str, silent: bool, expected: list[str], paths: int
) -> None:
    """The claims on a few paths are looked up, those on many are read at once: the answer is the same."""
    if holder:
        ledger.claim(at, holder, mode, silent=silent)
    step = past.commit("m1", {f"d/f{number:02}": "x" for number in range(paths)}, "m0", agent="bob")
    assert ledger.rules(step, shared=["d/f00"]) == [
        *((rule, "d/f00") for rule in expected),
        *(("held", f"d/f{number:02}") for number in range(1, paths) if (holder, at) == ("cyd", "d")),
    ]


@pytest.mark.parametrize("paths", [16, 17])
def test_many_claims_are_read_at_once(past: Past, ledger: Ledger, paths: int) -> None:
    step = past.commit("m1", {f"f{number}": "x" for number in range(paths)}, "m0")
    ledger.verdicts(step)
    assert (
        ("below", "claims/path") in ledger.state.asked
        if paths > 16
        else ("below", "claims/path") not in ledger.state.asked
    )
    looked = [what for kind, what in ledger.state.asked if kind == "leaves" and what.startswith("claims/")]
    assert len(looked) == (2 * paths if paths <= 16 else 0)


def test_whoever_holds_it_is_named(past: Past, ledger: Ledger) -> None:
    ledger.claim("a", "cyd")
    (verdict,) = ledger.verdicts(past.commit("m1", {"a": "ax"}, "m0"))
    assert verdict.message == "cyd holds it" and [row["agent"] for row in verdict.held] == ["cyd"]
    assert "--wait" in verdict.hints[0]


@pytest.mark.parametrize("others", [0, 40])
def test_keys_are_folded_where_the_ledger_says_so(past: Past, others: int) -> None:
    ledger = Ledger(past, fold_case=True)
    ledger.claim("Dir/A", "cyd")
    step = past.commit("m1", {"dir/a": "x", **{f"x{number}": "x" for number in range(others)}}, "m0")
    assert ledger.rules(step) == [("held", "dir/a")]


def test_families() -> None:
    assert is_family("ann", "ann") and is_family("ann", "ann.sub") and is_family("ann.sub", "ann")
    assert not is_family("ann", "anna") and not is_family("anna", "ann") and not is_family("ann.a", "ann.b")


def test_a_path_in_a_hint_can_be_typed() -> None:
    assert [path_word(path) for path in ("a", "@a", ":a", "-a", "a b")] == ["a", "./@a", "./:a", "./-a", "'a b'"]
    assert {path_word(path) for path in ("*", "?", "[")} == {"':(literal)*'", "':(literal)?'", "':(literal)['"}


# --- roles ---------------------------------------------------------------------------------------------------------

ROLES = parse_policy(())._replace(roles={"read": Role(readonly=True)}, agents={"ann": "read", "bob": "code"})


def test_a_role_writes_where_it_may(past: Past, ledger: Ledger) -> None:
    step = past.commit("m1", {"a": "ax"}, "m0")
    (verdict,) = ledger.verdicts(step, policy=ROLES)
    assert verdict[:4] == ("role", "enforce", "a", "ann") and "ann <role>" in verdict.hints[0]
    assert ledger.rules(step, policy=ROLES, actor="bob") == []
    for agent, writers, expected in (
        ("bob", ("test",), ["role"]),
        ("bob", ("code",), []),
        ("ann", ("read",), ["role"]),
    ):
        found = ledger.verdicts(step, policy=ROLES, actor=agent, classes={"a": Attributes(writers=writers)})
        assert [verdict.rule for verdict in found] == expected


def test_each_agent_has_a_role_of_its_own(past: Past, ledger: Ledger) -> None:
    steps = [past.commit("m1", {"a": "ax"}, "m0", agent="bob"), past.commit("m2", {"b": "bx"}, "m1", agent="ann")]
    assert ledger.rules(*steps, policy=ROLES) == [("role", "b")]


def test_a_role_is_looked_up_once(past: Past, ledger: Ledger) -> None:
    ledger.verdicts(past.commit("m1", {f"f{number}": "x" for number in range(40)}, "m0"), policy=ROLES, actor="bob")
    assert ledger.state.asked.count(("get", "roles/bob")) == 1


def test_landing_the_work_of_others_is_no_writing(past: Past, ledger: Ledger) -> None:
    """Unless the one who lands it holds it, and so writes."""
    past.commit("b1", {"a": "ax"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    squash = past.commit("m1", {"a": "ax"}, "m0")
    assert ledger.rules(squash, policy=ROLES, shared=["a"]) == []
    ledger.claim("a", "ann")
    assert ledger.rules(squash, policy=ROLES, shared=["a"]) == [("role", "a")]


def test_what_another_holds_may_be_landed_where_it_was_released(past: Past, ledger: Ledger) -> None:
    past.commit("b1", {"a": "ax"}, "m0")
    ledger.release("a", "b1", "m0", 5)
    ledger.claim("a", "cyd")
    assert ledger.rules(past.commit("m1", {"a": "ax"}, "m0"), shared=["a"]) == []


# --- guards --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tier", "private", "expected"),
    [
        ("", False, None),
        ("", True, None),
        (BLOCK, False, ("guard", "monitor", "it is blocked", False)),
        (WARN, False, ("guard", "warn", "it is guarded", False)),
        (CHECKPOINT, False, ("guard", "monitor", "a person must approve", True)),
        (BLOCK, True, ("private", "monitor", "a private rule", False)),
        (WARN, True, ("private", "warn", "a private rule", False)),
        (CHECKPOINT, True, ("private", "monitor", "a private rule", False)),
    ],
)
def test_guard_tiers(
    past: Past, ledger: Ledger, tier: str, private: bool, expected: tuple[str, str, str, bool] | None
) -> None:
    policy = parse_policy([("rollout.guard", "monitor")])
    classes = {"a": Attributes(guard=tier, private=private)}
    found = ledger.verdicts(past.commit("m1", {"a": "ax"}, "m0"), classes=classes, policy=policy)
    assert len(found) == (expected is not None)
    for verdict in found:
        rule, stage, words, asks = expected or ("", "", "", False)
        assert (verdict.rule, verdict.stage, verdict.asks) == (rule, stage, asks) and verdict.message.startswith(words)


@pytest.mark.parametrize(
    ("path", "present", "telling", "expected"),
    [
        (".gitcoord/config", True, False, True),
        (".gitcoord/config", False, False, False),
        ("a", True, False, False),
        (".gitattributes", True, True, True),
        (".gitattributes", True, False, False),
        ("d/.gitattributes", True, True, True),
    ],
)
@pytest.mark.parametrize("parents", [("m0",), ()])
def test_own_files_are_changed_with_approval(
    past: Past, ledger: Ledger, path: str, present: bool, telling: bool, expected: bool, parents: tuple[str, ...]
) -> None:
    past.told["attributes", "m0" if parents else "", path, "new"] = telling
    step = CommitChange("m1", parents, "", (Change(path, FILE, "new"),))
    policy = parse_policy(())._replace(present=present)
    assert ledger.rules(step, policy=policy) == ([("own-files", path)] if expected else [])


def approval(ledger: Ledger, state: str, number: int = 1, path: str = "a", mode: str = FILE, blob: str = "ax") -> None:
    record = Approval(str(number), path, mode, blob, "guard", "m1", ["m0"], "ann", 0, state, "eve").to_record()
    ledger.state.load_file(f"approvals/{number}", record)


def checkpoint(past: Past, ledger: Ledger, actor: Actor | str = "ann", *, agent: str = "") -> list[tuple[str, bool]]:
    step = past.commit("m1", {"a": "ax"}, "m0", agent=agent)
    past.told["left again", "m0", "a", FILE, "ax", "m0"] = past.told.get(("used",), False)
    policy = parse_policy([("gitcoord.approver", "ada")])
    found = ledger.verdicts(step, actor=actor, policy=policy, classes={"a": Attributes(guard=CHECKPOINT)})
    assert all(verdict.rule == "guard" and verdict.hints == ("git coord approvals",) for verdict in found)
    return [(verdict.message, verdict.asks) for verdict in found]


ASKED = [("a person must approve this change", True)]


def test_a_person_who_may_approve_needs_no_approval(past: Past, ledger: Ledger) -> None:
    assert checkpoint(past, ledger, PERSON) == []
    assert checkpoint(past, ledger, Actor("ada")) == ASKED
    assert checkpoint(past, ledger, Actor("eve", person=True)) == ASKED
    assert checkpoint(past, ledger, PERSON, agent="bob") == ASKED, "it is another's work"
    assert checkpoint(past, ledger, "bob", agent="bob") == ASKED


@pytest.mark.parametrize(
    ("state", "what", "expected"),
    [
        ("approved", {}, []),
        ("approved", {"path": "b"}, ASKED),
        ("approved", {"mode": "100755"}, ASKED),
        ("approved", {"blob": "ay"}, ASKED),
        ("asked", {}, ASKED),
        ("denied", {}, [("eve denied this change", False)]),
        ("denied", {"blob": "ay"}, ASKED),
    ],
)
def test_an_approval_is_for_exactly_this_content(
    past: Past, ledger: Ledger, state: str, what: dict[str, str], expected: list[tuple[str, bool]]
) -> None:
    approval(ledger, state, **what)  # type: ignore[arg-type]
    assert checkpoint(past, ledger) == expected


def test_an_approval_is_used_once(past: Past, ledger: Ledger) -> None:
    approval(ledger, "approved")
    past.told["used",] = True
    assert checkpoint(past, ledger) == ASKED
    approval(ledger, "denied", 2)
    assert checkpoint(past, ledger) == [("eve denied this change", False)]


def test_a_denial_tells_why(past: Past, ledger: Ledger) -> None:
    approval(ledger, "denied")
    record = ledger.state.get("approvals/1")
    assert record is not None
    record["reason"] = "too much"
    assert checkpoint(past, ledger) == [("eve denied this change: too much", False)]

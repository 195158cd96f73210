"""The rules of what needs a person: for each kind a case in which it is there, and those in which it is not."""

from __future__ import annotations

from gitcoord.base.errors import Refusal
from gitcoord.claims.model import WRITE, Claim, Item
from gitcoord.claims.requests import Request
from gitcoord.gates.model import Approval
from gitcoord.landing.model import OpenLanding, Unfinished
from gitcoord.sessions.admission import Halted
from gitcoord.tasks.model import STATES, Task
from gitcoord.views import needs
from gitcoord.views.needs import Held, Need

NOW = 10_000


def claim(agent: str = "alice", path: str = "src/a.py", at: int = 0, ttl: int = 1800, expected: int = 0) -> Claim:
    return Claim(path, "path", agent, 1, WRITE, 3, ttl, expected, "", "", "", "n", at, 1)


def request(agent: str = "bob", at: int = 0, ticket: int = 7) -> Request:
    item = (Item("path", "src/a.py"),)
    return Request(ticket, agent, 1, item, WRITE, 1, "normal", 0, True, 0, 60, 1800, 0, "", "", "", at)


def kinds(found: list[Need]) -> list[str]:
    return [need.kind for need in found]


def test_a_halt() -> None:
    (need,) = needs.of_halt(Halted("ada", "stop it", 9, 5))
    assert need.message.startswith("HALTED by ada: stop it") and need.source == "event 9" and need.since == 5
    assert needs.of_halt(None) == []


def test_the_reader_was_killed() -> None:
    (need,) = needs.of_killed("bob", Refusal("killed", "'bob' was killed", hints=("ask",)))
    assert (need.message, need.help) == ("'bob' was killed", "ask")
    assert needs.of_killed("bob", None) == [] and needs.divided([need], "bob") == ([need], [])


def test_approvals_that_nobody_answered_for_those_who_may() -> None:
    asked = Approval("12.1", "a/secret.py", "100644", "b" * 40, "guard", "", [], "alice", 5)
    (need,) = needs.of_approvals([asked, asked._replace(state="approved")], may_approve=True)
    assert (need.subject, need.source, need.help) == ("a/secret.py", "event 12", "git coord approvals --diff")
    assert needs.of_approvals([asked], may_approve=False) == []
    assert needs.of_approvals([asked._replace(state="denied")], may_approve=True) == []


def test_tasks_that_wait_for_a_person() -> None:
    task = Task(
        "t5", "choose", "", "open", "", 0, 0, 60, 0, 3, "normal", [], [], "", "", "", 0, True, False, "", "", "yours",
        "", "ada", 1, 2, {},
    )  # fmt: skip
    found = needs.of_tasks(task._replace(state=state) for state in STATES)
    assert [(need.message, need.help) for need in found] == [
        ("t5 needs a person: choose (yours)", "git coord task show t5")
    ]


# --- waiting ---------------------------------------------------------------------------------------------------------


def test_a_wait_of_more_than_twice_what_the_holder_expects() -> None:
    held = Held(claim(expected=600), waiters=(request(),))
    (need,) = needs.of_waits([held], 1201)
    assert (need.kind, need.subject, need.agent, need.source) == ("wait", "src/a.py", "alice", "event 7")
    assert need.message == "bob waited 20m1s for src/a.py, held by alice" and need.help == "git coord why src/a.py"
    assert needs.of_waits([held], 1200) == [], "not yet"


def test_without_an_expectation_its_ttl_counts() -> None:
    held = Held(claim(ttl=100), waiters=(request(), request("carol", ticket=8)))
    assert needs.of_waits([held], 200) == []
    assert needs.of_waits([held], 201)[0].message.startswith("bob and 1 more waited")


def test_waits_that_need_nobody() -> None:
    late = Held(claim(expected=10), waiters=(request(),))
    assert kinds(needs.of_waits([late], NOW)) == ["wait"]
    assert needs.of_waits([late._replace(expired=True)], NOW) == [], "the waiter gets it"
    assert needs.of_waits([late._replace(is_turn=True)], NOW) == [], "a check may take its time; a turn expires"
    assert needs.of_waits([late._replace(waiters=())], NOW) == []
    new = late._replace(claim=claim(expected=10, at=NOW - 5))
    assert needs.of_waits([new], NOW) == [], "this holder has had it for five seconds, however long bob waits"


def test_a_deadlock_whose_agent_still_holds_what_others_wait_for() -> None:
    note = {"agent": "alice", "at": NOW - 60, "message": "alice and bob wait for each other"}
    wanted = Held(claim(), waiters=(request(),))
    (need,) = needs.of_deadlocks([note], [wanted], NOW)
    assert need.agent == "alice" and need.message == "deadlock refused: alice and bob wait for each other"
    assert needs.of_deadlocks([note], [wanted._replace(waiters=())], NOW) == [], "nobody is stuck"
    assert needs.of_deadlocks([note], [], NOW) == [], "it released"
    assert needs.of_deadlocks([{**note, "at": NOW - 601}], [wanted], NOW) == [], "long ago"


# --- work that was left ------------------------------------------------------------------------------------------------


def test_an_expired_holder_with_uncommitted_work_here() -> None:
    left = Held(claim(path="a b.py"), expired=True, dirty=True)
    (need,) = needs.of_expired([left])
    assert need.message == "alice has expired and left uncommitted work in a b.py"
    assert need.help == "git status -- ':/a b.py'" and need.source.startswith("heartbeat of alice")
    assert needs.of_expired([left._replace(waiters=(request(),))])[0].message.endswith("; bob waits for it")
    assert needs.of_expired([left._replace(dirty=False)]) == [], "nobody needs to do anything about it"
    assert needs.of_expired([left._replace(dirty=False, waiters=(request(),))]) == [], "the waiter gets it"
    assert needs.of_expired([left._replace(expired=False)]) == [], "it is at work"


def test_an_interrupted_landing() -> None:
    landing = OpenLanding("alice", 9, 5, "main", "topic", "", "", "", "merge", [], "", [{"path": "land/main"}])
    (need,) = needs.of_landings([landing], [])
    assert need.source == "event 9" and need.help == "git coord land topic"
    assert kinds(needs.of_landings([landing], ["bob"])) == ["landing"]
    assert needs.of_landings([landing], ["alice"]) == [], "it is under way"
    assert needs.of_landings([landing._replace(released=[])], []) == [], "it was only checked: trunk did not move"


def test_a_failed_landing_whose_agent_is_gone() -> None:
    failed = Unfinished("alice", "topic", "the check ended with 1", 5, output="/out put")
    (need,) = needs.of_unfinished([failed], live=["bob"], viewer="ada")
    assert need.message.endswith("failed: the check ended with 1") and need.help == "cat '/out put'"
    assert needs.of_unfinished([failed], live=["alice"], viewer="ada") == [], "it was told, and is at work on it"
    assert kinds(needs.of_unfinished([failed], live=["alice"], viewer="alice")) == ["landing"]


def test_a_conflict_of_a_landing() -> None:
    stands = Unfinished("alice", "topic", "conflicts with trunk", 5, tree="/trees/alice")
    assert needs.of_unfinished([stands], live=[], viewer="ada")[0].help == "git -C /trees/alice status"
    assert needs.of_unfinished([stands], live=["alice"], viewer="alice")[0].help == "git coord land --continue"
    assert needs.of_unfinished([stands], live=["alice"], viewer="") == []


# --- this clone --------------------------------------------------------------------------------------------------------


def test_gates_and_guards_that_do_not_run() -> None:
    (need,) = needs.of_gates(["pre-push"], "git coord setup")
    assert "pre-push" in need.message and need.help == "git coord setup"
    assert needs.of_gates([], "git coord setup") == []
    (need,) = needs.of_guards([{"agent": "alice", "tool": "Codex", "needs": "trust"}])
    assert (need.agent, need.help) == ("alice", "what it needs: trust")
    assert needs.of_guards([]) == []


def test_handoffs_to_the_reader_by_name_or_role() -> None:
    row = {"id": "h7", "from": "bob", "to": "alice", "role": "", "at": 5, "next": "land it", "for_you": True}
    (need,) = needs.of_handoffs([row], "alice")
    assert (need.subject, need.help, need.agent) == ("h7", "git handoff show h7", "alice") and "land it" in need.message
    assert len(needs.of_handoffs([{**row, "to": "", "role": "code"}], "alice")) == 1
    assert needs.of_handoffs([{**row, "to": ""}, {**row, "for_you": False}], "alice") == []


def test_a_ledger_that_may_not_be_used() -> None:
    assert needs.of_ledger("it was rewound", "git coord fsck")[0].help == "git coord fsck"
    assert needs.of_ledger("", "") == []


def test_an_agent_is_told_what_it_can_settle_and_what_waits_for_a_person() -> None:
    found = [Need("wait", "a", "", "", "", "alice"), Need("hooks", "", "", "", ""), Need("approval", "b", "", "", "")]
    assert needs.divided(found, "") == (found, [])
    assert needs.divided(found, "alice") == (found[:2], found[2:])
    assert needs.divided(found, "bob") == (found[1:2], [found[0], found[2]])

"""Roles, guard tiers, the guard's own files, approvals, rollout stages, attribution: each rule by real commits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gates.support import SHARED, Project, refused
from tests.support import COORD

CONFIG = """[gitcoord]
\trole = code
[role "explore"]
\treadonly = true
\tscratch = scratch/{agent}
[role "orchestrator"]
\treadonly = true
[agent "eve"]
\trole = explore
"""
ATTRIBUTES = SHARED + (
    "tests/** gitcoord-writers=test,orchestrator\n"
    "secret/** gitcoord-guard=block\n"
    "money/** gitcoord-guard=checkpoint\n"
    "delicate/** gitcoord-guard=warn\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path, ATTRIBUTES, CONFIG)
    made.branch("work")
    return made


# --- roles ---------------------------------------------------------------------------------------------------------


def test_writers_limit_a_path_to_roles(project: Project) -> None:
    assert refused(project.try_commit({"tests/t": "x\n"}, "alice"), "role", "tests/t")
    assert project.as_person("role", "alice", "test").code == 0
    assert project.try_commit({}, "alice").code == 0
    assert project.coord("role", "alice", "--json").json["role"] == "test"
    assert project.as_person("role", "alice", "--clear").code == 0
    assert project.coord("role", "alice", "--json").json["role"] == "code", "the default of the settings"


def test_an_approver_writes_whatever_roles_may(project: Project) -> None:
    project.write({"tests/t": "x\n"})
    project.git("add", "-A")
    done = project.person_git("commit", "-q", "-m", "by a person")
    assert done.code == 0, done


def test_an_agent_gives_no_roles(project: Project) -> None:
    done = project.coord("role", "alice", "test", agent="alice")
    assert done.code == 1 and "only a person" in done.err


def test_a_role_that_the_policy_does_not_know_is_told(project: Project) -> None:
    """A slip would make a read-only worker a writer."""
    done = project.as_person("role", "dan", "explroe")
    assert done.code == 0 and "has no role 'explroe'" in done.out and "explore" in done.out
    assert "warning" not in project.as_person("role", "dan", "explore").out
    assert "warning" not in project.as_person("role", "dan", "test").out, "it writes below tests/"
    assert "warning" not in project.as_person("role", "dan", "--clear").out


def test_check_knows_roles(project: Project) -> None:
    done = project.world.claim("check", "tests/t", "--json", agent="alice")
    assert done.code == 1 and done.json["paths"][0]["verdict"] == "role"


# --- guards --------------------------------------------------------------------------------------------------------


def test_warn_lets_through_and_leaves_a_record(project: Project) -> None:
    done = project.try_commit({"delicate/x": "x\n"}, "alice")
    assert done.code == 0 and "warning: delicate/x: it is guarded: take care" in done.err
    (event,) = project.events("notice")
    assert [(row["rule"], row["stage"], row["path"]) for row in event["rows"]] == [("guard", "warn", "delicate/x")]
    assert "notice at pre-commit" in project.coord("log").out


def test_a_checkpoint_waits_for_a_person_and_exactly_this_content(project: Project) -> None:
    assert refused(project.try_commit({"money/x": "10\n"}, "alice"), "guard", "money/x")
    assert refused(project.try_commit({}, "alice"), "guard", "money/x")
    (request,) = project.coord("approvals", "--json").json["approvals"]
    assert (request["path"], request["agent"], request["state"]) == ("money/x", "alice", "open"), "asked for once"
    shown = project.coord("approvals", "--diff").out.splitlines()
    assert shown[1:] == ["  mode none -> 100644", "  @@ -0,0 +1 @@", "  +10"]
    assert project.coord("approve", request["id"], agent="alice").code == 1, "an agent approves nothing"
    assert project.as_person("approve", request["id"], "--blob", "0" * 40).code == 1, "not what was shown"
    assert project.as_person("approve", request["id"]).code == 0
    assert refused(project.try_commit({"money/x": "10000\n"}, "alice"), "guard", "money/x"), "another content"
    assert project.try_commit({"money/x": "10\n"}, "alice").code == 0
    assert project.push("work", agent="alice").code == 0


def approved(project: Project, files: dict[str, str | None]) -> str:
    """Refused, approved by a person, committed; gives the commit."""
    assert refused(project.try_commit(files, "alice"), "guard", "money/x")
    (request,) = project.coord("approvals", "--json").json["approvals"]
    assert project.as_person("approve", request["id"]).code == 0
    done = project.try_commit({}, "alice")
    assert done.code == 0, done
    return project.git("rev-parse", "HEAD")


def land(project: Project) -> None:
    for words in (["push", "-q", "origin", "HEAD:main"], ["fetch", "-q"]):
        done = project.try_git(*words, agent="alice")
        assert done.code == 0, done


@pytest.mark.parametrize("way", ["text", "deletion"])
def test_an_approval_is_used_up_once_its_content_was_replaced(project: Project, way: str) -> None:
    first: dict[str, str | None] = {"money/x": "10\n"}
    if way == "deletion":
        project.commit({"money/x": "0\n"})
        project.unhooked("push", "-q", "origin", "HEAD:main")
        first = {"money/x": None}
    approved(project, first)
    land(project)
    approved(project, {"money/x": "20\n"})
    land(project)
    assert refused(project.try_commit(first, "alice"), "guard", "money/x"), "back to the first"
    project.commit({}, "past the hooks")
    assert refused(project.push("HEAD:main", agent="alice"), "guard", "money/x")
    project.unhooked("reset", "-q", "--mixed", "HEAD~1")
    approved(project, {})
    land(project)
    assert refused(project.try_commit({"money/x": "20\n"}, "alice"), "guard", "money/x"), "and forth again"


@pytest.mark.parametrize("way", ["rebase", "squash"])
def test_before_it_landed_an_approved_content_needs_no_second_approval(project: Project, way: str) -> None:
    commit = approved(project, {"money/x": "10\n"})
    assert project.push("work", agent="alice").code == 0
    project.switch("main")
    project.commit({"free/x": "landed meanwhile\n"})
    project.unhooked("push", "-q", "origin", "main")
    if way == "rebase":
        project.switch("work")
        assert project.try_git("rebase", "-q", "main", agent="alice").code == 0
    else:
        project.branch("work", "main")
        assert project.try_git("merge", "-q", "--squash", commit, agent="alice").code == 0
        assert project.try_commit({}, "alice").code == 0
    done = project.push("work", agent="alice", force=True)
    assert done.code == 0, done
    land(project)
    assert project.coord("approvals", "--json").json["approvals"] == []


def test_a_merge_takes_the_approved_side(project: Project) -> None:
    """The approved content is on that side, and was not replaced."""
    commit = approved(project, {"money/x": "10\n"})
    project.branch("other", f"{commit}^")
    project.commit({"money/x": "20\n"})
    done = project.try_git("merge", "-q", "-X", "theirs", "--no-edit", commit, agent="alice")
    assert done.code == 0, done


def test_going_back_to_something_older_is_approved_for_good(project: Project) -> None:
    """Content that was there before the request does not use the approval up."""
    project.commit({"money/x": "10\n"})
    project.commit({"money/x": "20\n"})
    project.unhooked("push", "-q", "origin", "HEAD:main")
    approved(project, {"money/x": "10\n"})
    land(project)


def test_denied_is_denied_and_says_why(project: Project) -> None:
    project.try_commit({"money/x": "10\n"}, "alice")
    (request,) = project.coord("approvals", "--json").json["approvals"]
    assert project.as_person("deny", request["id"], "--reason", "too much").code == 0
    done = project.try_commit({}, "alice")
    assert refused(done, "guard", "money/x") and "too much" in done.err
    assert project.coord("approvals", "--json").json["approvals"] == []


def test_nobody_answers_what_they_asked_themselves(project: Project) -> None:
    """A person who acts under a name that an agent has used counts as the one that asked."""
    person = "ada_at_example.com"
    project.try_commit({"money/x": "10\n"}, person)
    (request,) = project.coord("approvals", "--json").json["approvals"]
    done = project.as_person("approve", request["id"])
    assert done.code == 1 and "the one who asked may not answer" in done.out


# --- the guard's own files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".gitcoord/config", "[rollout]\n\tunclaimed = monitor\n"),
        ("shared/.gitattributes", "* -gitcoord-claim\n"),
    ],
)
def test_the_guard_guards_itself(project: Project, path: str, text: str) -> None:
    project.claim("shared", agent="alice")
    assert refused(project.try_commit({path: text}, "alice"), "own-files", path)
    (request,) = project.coord("approvals", "--json").json["approvals"]
    assert request["path"] == path and project.as_person("approve", request["id"]).code == 0
    assert project.try_commit({}, "alice").code == 0


def test_an_attributes_file_that_git_may_not_read_is_telling(project: Project) -> None:
    """The same rules, and more than git takes of such a file: then none of them would hold."""
    padding = "# nothing\n" * 120_000
    assert refused(project.try_commit({".gitattributes": ATTRIBUTES + padding}, "alice"), "own-files")


def test_a_macro_that_is_used_is_seen(project: Project) -> None:
    project.commit({".gitattributes": "[attr]open -gitcoord-claim\n" + ATTRIBUTES})
    assert refused(project.try_commit({"shared/.gitattributes": "* open\n"}, "alice"), "unclaimed")
    project.claim("shared", agent="alice")
    assert refused(project.try_commit({}, "alice"), "own-files", "shared/.gitattributes")


def test_a_person_changes_the_policy(project: Project) -> None:
    project.write({".gitcoord/config": CONFIG + "[rollout]\n\tlineage = warn\n"})
    project.git("add", "-A")
    done = project.person_git("commit", "-q", "-m", "policy")
    assert done.code == 0, done


def test_only_listed_people_approve(project: Project) -> None:
    project.commit({".gitcoord/config": CONFIG + "[gitcoord]\n\tapprover = grace_at_example.com\n"})
    project.unhooked("branch", "-f", "main", "work")
    project.try_commit({"money/x": "10\n"}, "alice")
    (request,) = project.coord("approvals", "--json").json["approvals"]
    done = project.as_person("approve", request["id"])
    assert done.code == 1 and "approver" in done.out
    project.git("config", "user.email", "grace@example.com")
    assert project.as_person("approve", request["id"]).code == 0


# --- rollout and attribution ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stage", "shown"), [("monitor", False), ("warn", True)])
def test_a_rule_is_rolled_out_in_stages(tmp_path: Path, stage: str, shown: bool) -> None:
    project = Project(tmp_path, SHARED, f"[rollout]\n\tunclaimed = {stage}\n")
    project.branch("work")
    done = project.try_commit({"shared/a": "new\n"}, "alice")
    assert done.code == 0 and ("warning: shared/a" in done.err) == shown
    (event,) = project.events("notice")
    assert event["rows"][0]["rule"] == "unclaimed" and event["rows"][0]["stage"] == stage


def test_a_refusal_names_the_projects_own_record(tmp_path: Path) -> None:
    project = Project(tmp_path, SHARED, '[rule "unclaimed"]\n\trecord = docs/adr/0007.md\n')
    project.branch("work")
    assert "docs/adr/0007.md" in project.try_commit({"shared/a": "new\n"}, "alice").err


def test_attribution_where_it_is_required(tmp_path: Path) -> None:
    project = Project(tmp_path, SHARED, "[gitcoord]\n\tattribution = require\n")
    project.branch("work")
    project.commit({"free/x": "new\n"})
    assert refused(project.push("work", agent="alice"), "attribution")
    project.unhooked("commit", "-q", "--amend", "--no-edit", "--trailer", "Agent: alice")
    assert project.push("work", agent="alice").code == 0
    assert project.try_commit({"free/x": "newer\n"}, "alice").code == 0, (
        "the trailer is added after pre-commit has judged"
    )


# --- explain, check, gate ------------------------------------------------------------------------------------------


def test_explain_names_the_line_that_decides(project: Project) -> None:
    project.commit({"shared/.gitattributes": "\n# closer\na -gitcoord-claim\nb gitcoord-guard=warn\n"})
    project.unhooked("branch", "-f", "main", "work")
    rows = project.coord("policy", "explain", "shared/a", "shared/b", "free/x", "--json").json["paths"]
    told = {row["path"]: [(r["attribute"], r["value"], r["file"], r["line"]) for r in row["rules"]] for row in rows}
    assert told == {
        "shared/a": [],
        "shared/b": [
            ("gitcoord-claim", "set", ".gitattributes", 1),
            ("gitcoord-guard", "warn", "shared/.gitattributes", 4),
        ],
        "free/x": [],
    }
    lifted = [(row["path"], [(r["attribute"], r["file"], r["line"]) for r in row["lifted"]]) for row in rows]
    assert lifted == [("shared/a", [("gitcoord-claim", "shared/.gitattributes", 3)]), ("shared/b", []), ("free/x", [])]
    assert "no rule" in project.coord("policy", "explain", "free/x").out
    shown = project.coord("policy", "explain", "shared/a").out
    assert "no rule" in shown and "gitcoord-claim is lifted  (shared/.gitattributes:3)" in shown


def test_explain_before_anything_is_committed(project: Project) -> None:
    def told(*words: str) -> list[str]:
        row = project.coord("policy", "explain", "free/x", "--json", *words).json["paths"][0]
        return [f"{rule['attribute']}={rule['value']}" for rule in row["rules"]]

    project.write({".gitattributes": ATTRIBUTES + "free/** gitcoord-claim\n"})
    assert (told(), told("--index"), told("--worktree")) == ([], [], ["gitcoord-claim=set"])
    project.git("add", "-A")
    project.write({".gitattributes": ATTRIBUTES})
    assert (told("--index"), told("--worktree")) == (["gitcoord-claim=set"], [])
    assert project.git("diff", "--cached", "--name-only") == ".gitattributes", "what is staged stays staged"
    assert project.coord("policy", "explain", "free/x", "--index", "--worktree").code == 2


def test_check_finds_what_makes_no_sense(project: Project) -> None:
    project.commit(
        {
            ".gitattributes": "shared gitcoord-claim\nshared/** gitcoord-claim\nshared/** -gitcoord-claim\n",
            ".gitcoord/config": "[rollout]\n\tunclamed = warn\n",
        }
    )
    project.unhooked("branch", "-f", "main", "work")
    done = project.coord("policy", "check", "--json")
    told = {(problem["where"], problem["what"].split(" ")[-1]) for problem in done.json["problems"]}
    assert done.code == 1
    assert {where for where, _ in told} == {".gitcoord/config", ".gitattributes:1", ".gitattributes:2"}
    texts = json.dumps(done.json["problems"])
    assert "rollout.unclamed" in texts and "'shared/**' for all below" in texts and ".gitattributes:3 decides" in texts


def test_check_finds_misspelt_attributes(project: Project) -> None:
    rules = ["shared/a gitcoord-claims", "shared/b gitcoord-guard=blok", "free/** gitcoord-guard=warn -gitcoord-claim"]
    project.commit({".gitattributes": "\n".join([*rules, ""])})
    problems = project.coord("policy", "check", "--commit", "work", "--json").json["problems"]
    assert problems == [
        {"where": ".gitattributes:1", "what": "gitcoord-claims is not known"},
        {"where": ".gitattributes:2", "what": "gitcoord-guard=blok is not known"},
    ]


def test_the_gate_of_ci_is_the_same_judge(project: Project) -> None:
    project.commit({"shared/a": "new\n"})
    done = project.coord("gate", "main..work", "--agent", "alice")
    assert refused(done, "unclaimed", "shared/a") and done.code == 1
    told = project.coord("gate", "main..work", "--agent", "alice", "--json")
    assert told.code == 1 and told.json["verdicts"][0]["rule"] == "unclaimed"
    project.claim("shared/a", agent="alice")
    assert project.coord("gate", "main..work", "--agent", "alice").code == 0
    assert project.coord("gate", "nonsense", agent="alice").code == 2
    assert project.world.run(COORD, ("gate", "main..nowhere"), "alice").code == 2

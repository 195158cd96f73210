"""`git coord start` and `stop` with real processes: their answers, in order, and the claims that are taken again."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitcoord.sessions.cli_brief import brief_lines, whole_sentences
from tests.cli.support import World
from tests.cli.test_json import holds, refused
from tests.support import git

CONFIG = "[start]\n\tstate = docs/state.md\n\tdecisions = docs/decisions.md\n\tlessons = docs/lessons.md\n"
FILES = {
    ".gitcoord/config": CONFIG, ".gitcoord/rules.md": "# Rules\n\n1. Claim first.\n   Always.\n2. Say why.\n",
    "docs/state.md": "The parser works.\n", "docs/lessons.md": "Never on a \x1b[31mFriday.\n",
}  # fmt: skip
ORDER = (
    "session ", "how work goes here", "rules: ", "state: ", "decisions: ", "lessons: ", "copy: ", "you hold: ", "you wait for: ",
    "you were doing", "handoffs for you: ", "next tasks", "others here: ", "gates: ",
)  # fmt: skip
SAID = ("--state", "it parses", "--changed", "the lexer", "--remaining", "the printer", "--next", "print")


@pytest.fixture
def world(plain: World) -> World:
    plain.commit(FILES)
    return plain.init()


def test_the_order_is_fixed(world: World) -> None:
    world.take("src/b.py", agent="bob")
    world.handoff("new", *SAID, agent="bob")
    out = world.coord("start").out
    lines = [line for line in out.splitlines() if line[:1].strip()]
    assert [next(head for head in ORDER if line.startswith(head)) for line in lines] == list(ORDER), out


def test_the_brief_form_says_what_there_is_and_nothing_else(world: World) -> None:
    world.take("src/b.py", "-m", "new login", agent="bob")
    world.take("src/a.py")
    out = world.coord("start", "--brief").out
    assert "  1. Claim first." in out and "Always" not in out and "The parser works." not in out
    assert "You hold src/a.py\n" in out and "bob holds src/b.py: new login\n" in out
    assert not any(word in out for word in ("nothing", "none", "nobody", "not there"))


def test_the_brief_form_has_at_most_25_lines(world: World) -> None:
    world.commit({".gitcoord/rules.md": "".join(f"{n}. Rule {n}.\n" for n in range(1, 60))})
    for number in range(30):
        world.take(f"src/{number}", agent=f"agent-{number}")
    lines = world.coord("start", "--brief").out.splitlines()
    assert len(lines) <= 24 and "  the other rules are in .gitcoord/rules.md" in lines  # and who the reader is
    assert "Others hold 24 more: git claim list --all" in lines


def test_rules_and_memory_are_those_of_the_sync_branch(world: World) -> None:
    world.git("switch", "-q", "-c", "topic")
    world.commit({".gitcoord/rules.md": "1. Do as you like.\n", "docs/state.md": "All is done.\n"})
    row = holds(world.coord("start", "--json"), "started")
    assert row["rules"]["text"] == FILES[".gitcoord/rules.md"]
    assert row["rules"]["version"] == world.git("rev-parse", "main:.gitcoord/rules.md")
    assert [(m["kind"], m["text"]) for m in row["memory"]] == [
        ("state", "The parser works.\n"), ("decisions", ""), ("lessons", "Never on a \x1b[31mFriday.\n"),
    ]  # fmt: skip
    brief = holds(world.coord("start", "--brief", "--json"), "started")
    assert brief["rules"]["text"] == "# Rules\n1. Claim first.\n2. Say why." and brief["memory"][0]["text"] == ""
    assert "(not there)" in world.coord("start").out


def test_a_stale_copy(world: World, tmp_path: Path) -> None:
    assert holds(world.coord("start", "--json"), "started")["copy"]["behind"] == 0
    world.git("switch", "-q", "-c", "topic")
    world.git("switch", "-q", "main")
    world.commit({"src/a.py": "2\n"})
    world.commit({"src/a.py": "3\n"})
    world.git("switch", "-q", "topic")
    assert "2 commit(s) behind 'main': git coord sync --pull" in world.coord("start").out
    # A remote that was fetched counts too.
    other = tmp_path / "other.git"
    git(tmp_path, "clone", "-q", "--bare", str(world.top), str(other))
    world.git("remote", "add", "origin", str(other))
    world.git("fetch", "-q", "origin")
    world.git("merge", "-q", "main")
    world.git(
        "update-ref", "refs/remotes/origin/main", world.git("commit-tree", "-p", "main", "-m", "x", "main^{tree}")
    )
    row = holds(world.coord("start", "--json"), "started")["copy"]
    assert (row["behind"], row["remote"]) == (1, "origin")


def test_what_expired_and_is_free_is_taken_again(world: World) -> None:
    world.take("src/a.py", "-m", "mine", "--ttl", "5m", "--mode", "intent")
    world.take("src/b.py", "docs", "--ttl", "7m")
    world.fall_silent("alice")
    world.take("src/b.py", "--ttl", "1m", agent="bob")
    assert holds(world.coord("sweep", "--json", agent="bob"), "swept")["expired"]
    row = holds(world.coord("start", "--json"), "started")
    assert sorted(row["again"]) == ["docs", "src/a.py"]
    claims = {claim["path"]: claim for claim in row["claims"]}
    assert (claims["src/a.py"]["mode"], claims["src/a.py"]["ttl_seconds"], claims["src/a.py"]["reason"]) == (
        "intent",
        300,
        "mine",
    )
    assert claims["docs"]["ttl_seconds"] == 420 and claims["docs"]["token"] > 7
    assert [(lost["path"], lost["by"]) for lost in row["lost"]] == [("src/b.py", "bob")]
    assert world.claims() == ["path/docs/@alice", "path/src/a.py/@alice", "path/src/b.py/@bob"]
    again = holds(world.coord("start", "--json"), "started")
    assert again["again"] == [] and again["lost"] == [] and again["opened"] is False
    assert world.coord("fsck", "--json").json["clean"] is True


def test_a_task_that_was_lost_is_taken_again_with_its_claims(world: World) -> None:
    for title, path in (("one", "src/a.py"), ("two", "src/b.py")):
        assert world.coord("task", "add", title, "--path", path, agent="boss").code == 0
        assert world.coord("task", "next").code == 0
    world.fall_silent("alice")
    assert world.coord("task", "take", "t2", agent="bob").code == 0, "which opens the other one too"
    row = holds(world.coord("start", "--json"), "started")
    assert row["again"] == ["t6", "src/b.py"] and [claim["path"] for claim in row["claims"]] == ["src/b.py"]
    assert {lost["path"] for lost in row["lost"]} == {"t2", "src/a.py"}
    doing = {task["id"]: (task["state"], task["owner"]) for task in row["interrupted"]["tasks"]}
    assert doing == {"t6": ("active", "alice"), "t2": ("active", "bob")}
    assert world.claims() == ["path/src/a.py/@bob", "path/src/b.py/@alice"]


def test_what_one_was_doing(world: World) -> None:
    world.take("src")
    world.write("src/a.py", "half\n")
    world.write("src/new\x07.py", "half\n")
    world.handoff("new", "--to", "bob", *SAID)
    row = holds(world.coord("start", "--json"), "started")["interrupted"]
    assert sorted(row["dirty"]) == ["src/a.py", "src/new\x07.py"]
    assert [handoff["to"] for handoff in row["handoffs"]] == ["bob"]
    bob = holds(world.coord("start", "--json", agent="bob"), "started")
    assert [handoff["from"] for handoff in bob["handoffs"]] == ["alice"]
    assert [other["agent"] for other in bob["others"]] == ["alice"]
    world.fall_silent("alice")
    assert holds(world.coord("start", "--json", agent="bob"), "started")["others"] == []


def test_who_may_not_start(world: World) -> None:
    env = {"GITCOORD_INSTANCE": "one"}
    assert world.coord("start", env=env).code == 0
    refused(world.coord("start", "--json", env={"GITCOORD_INSTANCE": "two"}), "instance")
    world.person("kill", "alice")
    refused(world.coord("start", "--json"), "killed")
    world.person("halt")
    refused(world.coord("start", "--json", agent="carol"), "halted")


def test_settings_that_make_no_sense(world: World) -> None:
    world.commit({".gitcoord/config": "[start]\n\tstate = ../../etc/passwd\n"})
    row = refused(world.coord("start", "--json"), "could-not-judge", 4)
    assert "start.state" in row["message"]
    world.commit({".gitcoord/config": "[start]\n\tstate = docs\n"})
    assert holds(world.coord("start", "--json"), "started")["memory"][0]["version"] == ""


def test_the_queue_at_the_start(world: World) -> None:
    world.take("src")
    assert world.claim("--queue", "src", "-m", "new login", agent="bob").code == 3
    row = holds(world.coord("start", "--json", agent="bob"), "started")
    assert [(wait["paths"], wait["position"], wait["of"]) for wait in row["waits"]] == [(["src"], 1, 1)]
    assert [wait["agent"] for wait in holds(world.coord("start", "--json"), "started")["waiters"]] == ["bob"]
    ticket = row["waits"][0]["ticket"]
    assert f"you wait for: 1\n  src: 1 of 1, ticket {ticket}, since " in world.coord("start", agent="bob").out
    assert "they wait for what you hold: 1\n  bob waits for src (since " in world.coord("start").out
    assert f"you wait for src: 1 of 1, ticket {ticket}" in world.coord("start", "--brief", agent="bob").out
    assert "bob waits for what you hold: git claim list" in world.coord("start", "--brief").out
    assert world.claim("--queue", "--priority", "high", "src", agent="carol").code == 3
    waiters = holds(world.coord("start", "--json"), "started")["waiters"]
    assert [wait["agent"] for wait in waiters] == ["carol", "bob"], "in the order in which they go"
    assert "carol, bob wait for what you hold: git claim list" in world.coord("start", "--brief").out


def test_how_work_goes_here_with_the_projects_names(world: World) -> None:
    config = '[sequence "migrations"]\n\tpattern = db/[0-9]*.sql\n[deploy "prod"]\n\tref = refs/heads/prod\n'
    config += '[land]\n\tcheck = make test\n[resource "gpu"]\n\tcapacity = 2\n'
    marks = "/src/*.py gitcoord-claim\ndoc/** gitcoord-claim=landing\n# x gitcoord-claim\n.gitcoord/** gitcoord-claim\n"
    world.commit({".gitcoord/config": config, ".gitattributes": marks, "lib/.gitattributes": "core gitcoord-claim\n"})
    out = world.coord("start").out
    for words in (
        "before you change what is shared: src/*.py, lib/core, gitcoord's own files; the rest is free\n",
        "git coord number migrations             a number of your own for db/[0-9]*.sql; --file 'db/{n}_<name>.sql' claims its file too\n",
        "your branch onto 'main', after make test; it releases your claims\n",
        "it claims doc/** itself: change these freely on your branch\n",
        "git coord deploy prod -- <command>",
        "before you use it: @gpu\n",
    ):
        assert f"{words}" in out, out
    project = holds(world.coord("start", "--json"), "started")["project"]
    assert (project["shared"], project["landing"], project["resources"]) == (
        ["src/*.py", "lib/core"],
        ["doc/**"],
        ["@gpu"],
    )


def test_files_that_get_their_numbers_when_they_land(world: World) -> None:
    sequence = '[sequence "migrations"]\n\tpattern = db/[0-9]*.sql\n'
    world.commit({".gitcoord/config": f"{sequence}[land]\n\trenumber = migrations\n"})
    out = world.coord("start").out
    assert "it gives new files of db/[0-9]*.sql their numbers: take any that is free here\n" in out, out
    assert "git coord number" not in out, "it is refused for them"
    assert holds(world.coord("start", "--json"), "started")["project"]["renumbered"] == ["db/[0-9]*.sql"]


def test_it_says_what_others_do_and_how_many_tasks_there_are(world: World) -> None:
    for number in range(5):
        world.coord("task", "add", f"job {number}", agent="bob")
    id = world.coord("task", "next", "--json", agent="bob").json["task"]["id"]
    out = world.coord("start", agent="alice").out
    assert f"does {id}\n" in out and "  and 1 more: git coord task list\n" in out, out
    found = holds(world.coord("start", "--json", agent="alice"), "started")
    assert (found["more_tasks"], [row["task"] for row in found["others"]]) == (1, [id])


def test_sections_of_the_rules_without_a_rule_are_left_out(world: World) -> None:
    text = "# Rules\n\n1. Claim.\n\n## Empty\n\n## Ours\n\n2. Test.\n\n## To come\n\n<!-- 3. -->\n\n## Deep\n\n### Part\n\n3. Land.\n"
    world.commit({".gitcoord/rules.md": text})
    out = world.coord("start").out
    assert (
        "  ## Deep\n\n  ### Part\n" in out
        and "  ## Ours\n\n  2. Test.\n" in out
        and "Empty" not in out
        and "To come" not in out
    ), out


def test_at_most_sixty_lines(world: World) -> None:
    rules = "# Rules\n\n" + "".join(f"{n}. Rule {n}.\nIt goes on.\n\n" for n in range(1, 15))
    memory = {f"docs/{kind}.md": f"# {kind}\n" + "a line\n" * 100 for kind in ("state", "decisions", "lessons")}
    config = "[start]\n\tstate = docs/state.md\n\tdecisions = docs/decisions.md\n\tlessons = docs/lessons.md\n"
    world.commit({".gitcoord/rules.md": rules, ".gitcoord/config": config, **memory})
    world.take("--", *(f"many/{n}" for n in range(3)))
    lines = world.coord("start").out.splitlines()
    assert len(lines) <= 60
    assert "  14. Rule 14." in lines and "  ... (the rest is in .gitcoord/rules.md)" in lines
    assert "  # lessons" in lines and "  ... (the rest is in docs/lessons.md)" in lines


def test_lists_give_way_before_the_rules_do(plain: World) -> None:
    rules = "".join(f"{n}. Rule {n}.\n" for n in range(1, 8))
    memory = {".gitcoord/config": "[start]\n\tstate = docs/state.md\n", "docs/state.md": "It works.\n" * 80}
    plain.commit({".gitcoord/rules.md": f"# Rules\n\n{rules}", **memory})
    plain.init()
    files = {f"src/f{n}.py": "x\n" for n in range(20)}
    plain.take("--", *files)
    for name in files:
        plain.write(name, "x\n")
    lines = plain.coord("start").out.splitlines()
    assert 40 < len(lines) <= 60 and all(f"  {rule}" in lines for rule in rules.splitlines())
    assert "  ... (the rest is in .gitcoord/rules.md)" not in lines and "  ... (the rest is in docs/state.md)" in lines
    assert "  and 10 more: git claim list --mine" in lines and "  and 10 more: git status" in lines


def test_everything_large_at_once(plain: World) -> None:
    rules = "# Rules\n\n" + "".join(f"{n}. Rule {n}.\nIt goes on.\n\n" for n in range(1, 40))
    memory = {f"docs/{kind}.md": f"# {kind}\n" + "a line\n" * 100 for kind in ("state", "decisions", "lessons")}
    config = CONFIG + "".join(
        f'[sequence "s{n}"]\n\tpattern = db{n}/[0-9]*.sql\n[deploy "prod{n}"]\n\tref = refs/heads/prod{n}\n'
        f'[resource "gpu{n}"]\n\tcapacity = 2\n'
        for n in range(12)
    )
    plain.commit({".gitcoord/rules.md": rules, ".gitcoord/config": config, **memory})
    plain.init()
    plain.take("--", *(f"many/{n}" for n in range(30)))
    for n in range(8):
        agent = f"agent{n}"
        plain.take("--", f"o{n}/0", f"o{n}/1", agent=agent)
        assert plain.claim("--queue", "many/0", agent=agent).code == 3
        assert plain.claim("--queue", f"o{n}/0").code == 3
        plain.handoff("new", "--to", "alice", *SAID, agent=agent)
        plain.coord("note", f"many/{n}", "-m", "\n".join(["Look at this."] * 9), agent=agent)
        plain.coord("task", "add", f"do {n}", agent="boss")
    for n in range(30):
        plain.write(f"many/{n}", "x\n")

    brief = plain.coord("start", "--brief").out.splitlines()
    assert len(brief) <= 25
    assert "  8. Rule 8." in brief and "  the other rules are in .gitcoord/rules.md" in brief
    assert "Handed over to you: h8 h15 h22 h29 h36 h43 and 2 more; read it: git handoff show h8" in brief
    assert next(line for line in brief if line.startswith("you wait")).endswith(" (and 7 more: git claim list)")
    assert brief[-2] == "Others hold 15 more: git claim list --all" and brief[-1].startswith("gates: ")
    row = plain.coord("start", "--brief", "--json", agent="bob").json
    assert brief_lines(row, 5)[-1] == "There is more: git coord start" and len(brief_lines(row, 5)) == 5

    lines = plain.coord("start").out.splitlines()
    assert len(lines) <= 60
    for command in ("claim list --mine", "claim list", "status", "coord task list", "coord agents", "handoff list"):
        assert f"  all of them: git {command}" in lines, command
    assert "  git coord number <sequence>             the others: s1, s2, s3, s4, s5 and 6 more" in lines
    assert "  8. Rule 8." in lines and "  ... (the rest is in .gitcoord/rules.md)" in lines and "  # lessons" in lines
    assert not any(line.strip() == "a line" for line in lines), "a sentence that goes on"
    # A note that was shown is seen; one that was not is shown by the next start.
    assert lines[-5].startswith("note by agent0 on many/0") and lines[-1] == "  and 7 more: git coord note"
    assert lines[-2] == "    (the whole note: git coord note many/0)"
    again = plain.coord("start").out.splitlines()
    assert again[-5].startswith("note by agent1 on many/1") and again[-1] == "  and 6 more: git coord note"


def test_a_text_is_cut_after_a_whole_sentence() -> None:
    text = ["# State", "", "It parses", "names.", "- one", "  goes on", "- two"]
    assert [len(whole_sentences(text, most)) for most in range(8)] == [0, 1, 2, 2, 4, 4, 6, 7]


def test_files_that_are_not_on_trunk_are_named(world: World) -> None:
    world.git("rm", "-q", "--cached", ".gitcoord/rules.md", "docs/state.md")
    world.git("commit", "-q", "-m", "without them")
    for words in ([], ["--brief"]):
        out = world.coord("start", *words).out
        for name in (".gitcoord/rules.md", "docs/state.md"):
            assert f"{name} is here, but not on trunk: commit and land it" in out
        assert "docs/decisions.md is here" not in out


def test_versions_that_have_not_landed_are_named(world: World) -> None:
    words = "docs/state.md is another one here than on trunk, which all others read: commit and land it"

    def said() -> list[int]:
        return [world.coord("start", *form).out.count(words) for form in ([], ["--brief"])]

    assert said() == [0, 0]
    world.git("switch", "-q", "-c", "side")
    world.write("docs/state.md", "The parser flies.\n")
    assert said() == [1, 1], "not committed"
    world.git("commit", "-q", "-a", "-m", "state")
    assert said() == [1, 1], "not landed"
    world.git("switch", "-q", "main")
    world.git("merge", "-q", "--ff-only", "side")
    assert said() == [0, 0]
    world.git("switch", "-q", "-c", "old", "main~1")
    assert said() == [0, 0], "an older version of trunk"


def test_it_says_what_others_hold(world: World) -> None:
    for path in ("a", "b", "c", "d"):
        world.take(path, agent="bob")
    assert world.coord("start", agent="carol").code == 0
    lines = world.coord("start").out.splitlines()
    bob, carol = (next(line for line in lines if line.strip().startswith(name)) for name in ("bob", "carol"))
    assert bob.endswith("holds a, b, c and 1 more") and "holds" not in carol

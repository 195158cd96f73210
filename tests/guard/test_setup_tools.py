"""Agent tools set up in a project and removed again: every byte that is not ours stays, in any form of settings."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcoord.guard import tools
from gitcoord.guard.setup import jsontext, plan, sections, settings, texts
from gitcoord.guard.setup.jsontext import Unsafe
from gitcoord.guard.setup.known import COMMAND, KNOWN, Known
from gitcoord.guard.setup.plan import SetupChange, SetupPlace
from tests.gates.places import CHAIN, picture
from tests.gates.places import Place as Repository
from tests.guard.protocol import Said, reason, understood

HOOKED = [known for known in KNOWN if known.hooks]
NAMED = {known.name: known for known in KNOWN}


def meaning(text: str) -> Any:
    return jsontext.parse(text).value


# --- settings as text -------------------------------------------------------------------------------------------------

FOREIGN = {"matcher": "Bash", "hooks": [{"type": "command", "command": "./mine.sh // no comment"}]}
leaves = st.sampled_from([None, True, 0, 1.5, "", "é", "a // b", 'q"\\', "git coord guardian"])
foreign = st.sampled_from([FOREIGN, {"command": "x"}, {"bash": "y"}, "word", {}, []])
events = sorted({event for known in HOOKED for event in known.hooks} | {"Other"})
hooks = st.dictionaries(st.sampled_from(events), st.lists(foreign, max_size=3), max_size=3)
rest = st.dictionaries(
    st.sampled_from(["model", "version", "a b", "x"]), leaves | st.lists(leaves, max_size=2), max_size=3
)
content = st.tuples(rest, st.none() | hooks, st.booleans()).map(
    lambda both: (
        both[0] if both[1] is None else {"hooks": both[1], **both[0]} if both[2] else {**both[0], "hooks": both[1]}
    )
)
BLANKS = ["", "", " ", "\n", "\n  ", "\r\n\t", " /* , } */ ", " // ] \n"]


@st.composite
def written(draw: st.DrawFn, value: object) -> str:
    """`value` as somebody wrote it: any white space, comments, trailing commas."""
    blank: st.SearchStrategy[str] = st.sampled_from(BLANKS)
    if not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    pieces = []
    for key in value:
        inner = draw(written(value[key] if isinstance(value, dict) else key))
        name = f"{json.dumps(key)}{draw(blank)}:{draw(blank)}" if isinstance(value, dict) else ""
        pieces.append(f"{draw(blank)}{name}{inner}{draw(blank)}")
    ends = "{}" if isinstance(value, dict) else "[]"
    trailing = draw(st.sampled_from(["", ","])) if pieces else ""
    return ends[0] + ",".join(pieces) + trailing + draw(blank) + ends[1]


def _indented(value: object) -> st.SearchStrategy[str]:
    shapes = st.sampled_from([2, 4, "\t", None])
    plain = shapes.map(lambda indent: json.dumps(value, indent=indent) + "\n")
    return plain | plain.map(lambda text: "\ufeff" + text.replace("\n", "\r\n"))


files = content.flatmap(lambda value: _indented(value) | written(value))


@given(files)
def test_the_reader_agrees_with_json(text: str) -> None:
    try:
        strict = json.loads(text.lstrip("\ufeff"))
    except ValueError:
        return  # comments and trailing commas are for us alone
    assert meaning(text) == strict


@given(st.sampled_from(HOOKED), files)
def test_in_and_out_again_to_the_byte(known: Known, text: str) -> None:
    inside = settings.put(text, known)
    assert inside != text
    assert settings.put(inside, known) == inside, "repeating changes nothing"
    assert settings.take(inside, known) == text
    found, before = meaning(inside), meaning(text)
    assert {key: value for key, value in found.items() if key != "hooks"} == {
        key: value for key, value in before.items() if key != "hooks"
    }
    for event in {*found["hooks"], *before.get("hooks", {})}:
        ours = [known.hooks[event]] if event in known.hooks else []
        assert found["hooks"][event] == before.get("hooks", {}).get(event, []) + ours
    # Nothing of what was there is written anew: it is the text with pieces put in.
    pieces = iter(inside)
    assert all(char in pieces for char in text)


@given(st.sampled_from(HOOKED), files)
def test_an_older_entry_of_ours_is_replaced(known: Known, text: str) -> None:
    older = known._replace(hooks={event: _older(entry) for event, entry in [*known.hooks.items()][:3]})
    upgraded = settings.put(settings.put(text, older), known)
    assert upgraded == settings.put(text, known)


def _older(entry: dict[str, Any]) -> dict[str, Any]:
    older: dict[str, Any] = json.loads(json.dumps(entry).replace(COMMAND, f"{COMMAND} --old"))
    return older | {"matcher": "Write"}


@given(st.sampled_from(HOOKED), st.sampled_from(["list", "group", "file"]), st.sampled_from([0, 1]), st.data())
def test_what_others_add_beside_ours_stays(known: Known, where: str, at: int, data: st.DataObject) -> None:
    """In a file that was made for us, in our lists, and in our groups; before ours or behind."""
    value = meaning(settings.put(None, known))
    event = data.draw(st.sampled_from(sorted(known.hooks)))
    entries, mine = value["hooks"][event], {"type": "command", "command": "mine"}
    expected: dict[str, Any] = {**known.skeleton, "hooks": {event: [mine]}}
    if where == "file":
        value["mine"], expected = 1, {**known.skeleton, "mine": 1}
    elif where == "group" and "hooks" in entries[0]:
        entries[0]["hooks"].insert(at, mine)
        expected["hooks"][event] = [{"hooks": [mine]}]
    else:
        entries.insert(at, mine)
    text = data.draw(_indented(value))
    left = settings.take(text, known)
    assert left is not None and COMMAND not in left
    found = meaning(left)
    # Somebody who writes it all into one line gets empty lists back: whose they were cannot be told.
    found["hooks"] = {name: entries for name, entries in found.get("hooks", {}).items() if entries}
    assert {key: value for key, value in found.items() if value} == expected


@pytest.mark.parametrize("known", HOOKED, ids=lambda known: known.name)
def test_the_table_in_the_documentation_has_what_is_hooked(known: Known) -> None:
    page = (Path(__file__).parents[2] / "docs/guard.md").read_text()
    (row,) = (line.split(" | ") for line in page.splitlines() if line.startswith(f"| {known.title} |"))
    assert row[1].split(", ") == list(known.hooks)


def test_only_actions_of_cursor_fail_closed() -> None:
    hooks = NAMED["cursor"].hooks
    assert [event for event in hooks if "failClosed" in hooks[event]] == ["preToolUse"]
    assert {"sessionStart", "postToolUse", "stop"} < set(hooks)


@pytest.mark.parametrize("known", HOOKED, ids=lambda known: known.name)
def test_a_file_that_was_made_for_us_goes(known: Known) -> None:
    made = settings.put(None, known)
    assert json.loads(made)["hooks"] and made.endswith("}\n")
    assert settings.put(made, known) == made
    assert settings.take(made, known) is None
    older = known._replace(hooks={event: _older(entry) for event, entry in known.hooks.items()})
    older.hooks["noMore"] = next(iter(older.hooks.values()))  # an event that is not asked for any more
    assert settings.put(settings.put(None, older), known) == made
    # But not one that a person had made, though it looks much the same.
    same = json.dumps(known.skeleton, indent=2) + "\n"
    assert settings.take(settings.put(same, known), known) == same


BROKEN = [
    "",
    "{",
    '{"a": 1',
    '{"a" 1}',
    "{'a': 1}",
    "[]",
    "1",
    '{"hooks": []}',
    '{"hooks": {"%s": {}}}',
    '{"a":1,"a":2}',
]
BROKEN += [
    '{"a": NaN}',
    '{"a": 1} x',
    '{"a": 1 "b": 2}',
    '{"a": [1 2]}',
    "{,}",
    '{"a": 1,,}',
    "/* never ends",
    "{" * 5000,
]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_what_cannot_be_edited_safely_is_not(text: str) -> None:
    for known in HOOKED:
        with pytest.raises(Unsafe):
            settings.put(text.replace("%s", next(iter(known.hooks))), known)


# --- sections ---------------------------------------------------------------------------------------------------------

lines = st.lists(st.sampled_from(["# Rules", "", "text é", "<!-- a comment -->", "```"]), max_size=5)


@given(lines, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_section_goes_in_and_out_to_the_byte(words: list[str], newline: str, ended: bool) -> None:
    text = newline.join(words) + (newline if ended else "")
    inside = sections.put(text, "one\ntwo")
    assert inside.startswith(text) and sections.put(inside, "one\ntwo") == inside
    assert sections.take(inside) == text
    renewed = sections.put(inside, "three")
    assert "one" not in renewed and sections.take(renewed) == text
    assert sections.take(inside + "more\n") == text + "more\n"
    if newline == "\r\n" and newline in text:
        assert "\n" not in inside.replace("\r\n", "")


def test_torn_markers_are_left_alone() -> None:
    inside = sections.put("x\n", "one")
    for torn in (
        inside + inside,
        inside.replace(sections.END, ""),
        inside.replace(sections.BEGIN, ""),
        "a " + sections.put(None, "one"),
    ):
        for act in (lambda text: sections.put(text, "y"), sections.take):
            with pytest.raises(sections.Torn):
                act(torn)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> SetupPlace:
    top, home = tmp_path / "top", tmp_path / "home"
    top.mkdir()
    home.mkdir()
    return SetupPlace(str(top), {"HOME": str(home)})


def here(place: SetupPlace, name: str, text: str) -> Path:
    file = Path(place.top, name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def set_up(place: SetupPlace, *names: str) -> list[SetupChange]:
    known = [NAMED[name] for name in names] or plan.in_use(place)
    return plan.apply(plan.plan_setup(known, place), place)


@pytest.mark.parametrize("user", [False, True])
@pytest.mark.parametrize("name", NAMED)
def test_each_tool_in_and_out(place: SetupPlace, name: str, user: bool) -> None:
    place = place._replace(user=user)
    top = Path(place.environ["HOME"]) if user else Path(place.top)
    if user:
        plan._home(NAMED[name].home, place.environ).mkdir(parents=True)
    before = picture(top)
    done = set_up(place, name)
    assert {change.action for change in done} == {"written"} and picture(top) != before
    assert {"skill"} < {change.what for change in done} and all(change.file.is_relative_to(top) for change in done)
    again = plan.plan_setup([NAMED[name]], place)
    assert {change.action for change in again} == {"unchanged"}
    gone = plan.apply(plan.plan_teardown(place), place)
    assert {change.action for change in gone} == {"removed"} and len(gone) == len(done)
    assert picture(top) == before and plan.plan_teardown(place) == []


def test_all_of_them_in_a_project_that_has_it_all(place: SetupPlace) -> None:
    for known in HOOKED:
        here(place, known.settings, '{ // mine\n\t"a": 1,\n}\n' if known.name != "copilot" else '{"version": 1}')
    for name in ("AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"):
        here(place, name, f"# {name}\r\nwithout an end")
    before = picture(Path(place.top))
    done = set_up(place, *NAMED)
    assert {change.action for change in done} == {"written", "changed"}
    skills = [change.shown for change in done if change.what == "skill"]
    assert len(skills) == len({*skills}) == 5
    plan.apply(plan.plan_teardown(place), place)
    assert picture(Path(place.top)) == before


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_a_tool_is_found_by_what_it_leaves(place: SetupPlace, known: Known) -> None:
    assert plan.in_use(place) == []
    for mark in known.marks:
        at = Path(place.top, mark)
        at.parent.mkdir(exist_ok=True)
        at.mkdir()
        assert known in plan.in_use(place), mark
        at.rmdir()
    assert plan.in_use(place) == []
    home = Path(place.environ["HOME"], known.home.below)
    home.mkdir(parents=True)
    assert plan.in_use(place) == [known]
    if known.home.variable:
        elsewhere = Path(place.top).parent / "elsewhere"
        moved = place._replace(environ={**place.environ, known.home.variable: str(elsewhere)})
        assert plan.in_use(moved) == []
        (elsewhere / known.home.inside).mkdir(parents=True)
        assert plan.in_use(moved) == [known]


def test_instructions_that_lead_to_others_are_left_to_those(place: SetupPlace) -> None:
    here(place, "CLAUDE.md", "@AGENTS.md\n")
    Path(place.top, "GEMINI.md").symlink_to("AGENTS.md")
    done = set_up(place, "claude", "gemini")
    assert [change.shown for change in done if change.what == "instructions"] == ["AGENTS.md"]
    assert Path(place.top, "CLAUDE.md").read_text() == "@AGENTS.md\n"
    assert sections.find(Path(place.top, "GEMINI.md").read_text()) is not None
    plan.apply(plan.plan_teardown(place), place)
    assert not Path(place.top, "AGENTS.md").exists()


def test_links_of_a_project_are_not_followed(place: SetupPlace, tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    Path(place.top, ".claude").symlink_to(tmp_path / "away")
    Path(place.top, "CLAUDE.md").symlink_to(tmp_path / "away" / "x.md")
    done = set_up(place, "claude")
    assert {(change.action, change.problem) for change in done if change.what != "instructions"} == {
        ("left", ".claude is a symbolic link")
    }
    assert [*(tmp_path / "away").iterdir()] == []
    # A person's own settings often are links, and are theirs to share.
    mine = place._replace(user=True)
    kept = tmp_path / "dotfiles.json"
    kept.write_text("{}")
    kept.chmod(0o600)
    own = Path(place.environ["HOME"], ".claude")
    own.mkdir()
    (own / "settings.json").symlink_to(kept)
    set_up(mine, "claude")
    assert (own / "settings.json").is_symlink() and COMMAND in kept.read_text() and kept.stat().st_mode & 0o777 == 0o600
    plan.apply(plan.plan_teardown(mine), mine)
    assert kept.read_text() == "{}" and (own / "settings.json").is_symlink()


def test_what_is_not_ours_is_not_touched(place: SetupPlace) -> None:
    """Files of our names that somebody else wrote, or ours that somebody changed."""
    skill = here(place, ".claude/skills/gitcoord-protocol/SKILL.md", "---\nname: x\n---\ntheirs\n")
    script = here(place, ".opencode/plugins/gitcoord.js", "export const Mine = 1\n")
    bad = here(place, ".claude/settings.json", "{ not json")
    latin = here(place, "CLAUDE.md", "")
    latin.write_bytes(b"caf\xe9\n")
    before = picture(Path(place.top))
    done = {change.shown: change for change in set_up(place, "claude", "opencode") if change.problem}
    assert {*done} == {str(file.relative_to(place.top)) for file in (skill, script, bad, latin)}
    assert all(picture(Path(place.top))[name] == row for name, row in before.items())
    assert '"PreToolUse"' in done[".claude/settings.json"].snippet and "git claim" in done["CLAUDE.md"].snippet
    plan.apply(plan.plan_teardown(place), place)
    assert picture(Path(place.top)) == before
    script.write_text(texts.plugin(None) + "// my line\n")
    assert any(change.problem for change in plan.plan_teardown(place))


def test_a_file_that_changes_meanwhile_is_left_alone(place: SetupPlace) -> None:
    file = here(place, ".claude/settings.json", "{}")
    changes = plan.plan_setup([NAMED["claude"]], place)
    file.write_text('{"new": 1}')
    done = plan.apply(changes, place)
    assert file.read_text() == '{"new": 1}' and "meanwhile" in done[0].problem


def test_each_tool_has_its_file_on_the_quick_path_and_its_events_are_known_there() -> None:
    assert tuple(known.name for known in KNOWN) == tools.NAMES
    for known in HOOKED:
        source = Path(tools.__file__).with_name(f"{known.name}.py").read_text()
        told = source + (Path(tools.__file__).with_name("claude.py").read_text() if known.name == "codex" else "")
        for event in known.hooks:
            assert re.search(rf"\b{event}\b", told), f"{known.name}: {event} is hooked, and not known"


def test_the_skill_has_the_front_matter_that_tools_want() -> None:
    front, body = texts.skill()
    found = re.fullmatch(r"---\nname: ([a-z0-9]+(?:-[a-z0-9]+)*)\ndescription: (.{1,1024})\n---\n", front)
    assert found is not None and found[1] == "gitcoord-protocol"
    for verb in ("git coord start", "git claim <path>", "git claim check", "git coord commit", "git claim release"):
        assert verb in body
    assert "takeover" not in front + body + texts.section() and "--force" not in body


# --- OpenCode's plugin, run by node ----------------------------------------------------------------------------------

DRIVER = """
import { Gitcoord } from %s
const hooks = await Gitcoord({ client: { session: { get: async () => ({ data: { parentID: "" } }) } }, directory: process.cwd() })
const out = []
await hooks.event({ event: { type: "session.created", properties: { info: { id: "s1" } } } })
const system = []
await hooks["experimental.chat.system.transform"]({ sessionID: "s1" }, { system })
out.push(system)
try {
  await hooks["tool.execute.before"]({ tool: "edit", sessionID: "s1", callID: "c" }, { args: { filePath: "a.py" } })
  out.push("allowed")
} catch (error) { out.push(error.message) }
const result = { title: "", output: "done", metadata: { exit: 2 } }
await hooks["tool.execute.after"]({ tool: "edit", sessionID: "s1", callID: "c" }, result)
out.push(result.output)
const info = { id: "m", sessionID: "s1", role: "assistant", tokens: { input: 5, output: 6 } }
await hooks.event({ event: { type: "message.updated", properties: { info } } })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s1" } } })
const shell = { env: {} }
await hooks["shell.env"]({ cwd: ".", sessionID: "s1" }, shell)
out.push(shell.env)
await hooks.event({ event: { type: "session.deleted", properties: { info: { id: "s1" } } } })
await hooks.event({ event: { type: "session.created", properties: { info: { id: "s2" } } } })
await hooks.dispose()
console.log(JSON.stringify(out))
"""


def _drive(tmp_path: Path, answer: str) -> tuple[list[Any], list[dict[str, Any]]]:
    """The plugin in node, with a `git coord` that notes what it is asked and answers by shell lines."""
    plugin = tmp_path / "gitcoord.mjs"
    plugin.write_text(texts.plugin(None))
    (tmp_path / "drive.mjs").write_text(DRIVER % json.dumps(str(plugin)))
    fake = tmp_path / "bin" / "git-coord"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\n[ "$1" = guard ] || exit 9\nask=$(cat)\necho "$ask" >> {tmp_path}/asked\n{answer}\n')
    fake.chmod(0o755)
    env = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["node", "drive.mjs"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    return json.loads(done.stdout), asked


node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@node
def test_the_plugin_asks_in_words_that_are_understood(tmp_path: Path) -> None:
    said, asked = _drive(tmp_path, """echo '{"context":"hello","decision":"allow"}'""")
    assert said == [["hello"], "allowed", "done\n\nhello", {"OPENCODE_SESSION_ID": "s1"}]
    events = [tools.detect(row).read(row) for row in asked]
    assert [(event.phase, event.final) for event in events] == [
        ("start", False), ("before", False), ("after", False), ("stop", False), ("stop", True),
        ("start", False), ("stop", True),
    ]  # fmt: skip
    assert events[1].writes == ("a.py",) and events[2].failed and events[3].spent == 11
    assert {(event.tool, event.conversation, event.cwd) for event in events[:5]} == {("opencode", "s1", str(tmp_path))}
    assert {event.conversation for event in events[5:]} == {"s2"}, "what is not deleted ends with the process"


@node
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("""echo '{"decision":"deny","reason":"held by bob"}'""", "held by bob"),
        ("echo 'held' >&2; exit 2", "held"),
        ("exit 0", "could not judge"),
        ("echo allow", "could not judge"),
        ("""echo '{"decision":"maybe"}'""", "does not allow"),
        ("kill -9 $$", "signal 9"),
    ],
)
def test_the_plugin_allows_nothing_else(tmp_path: Path, answer: str, reason: str) -> None:
    said, _ = _drive(tmp_path, answer)
    assert reason in said[1]


@node
def test_without_gitcoord_the_plugin_does_nothing(tmp_path: Path) -> None:
    """The plugin is committed, and colleagues may not have gitcoord."""
    (tmp_path / "gitcoord.mjs").write_text(texts.plugin(None))
    program = "import { Gitcoord } from './gitcoord.mjs'; console.log(JSON.stringify(await Gitcoord({})))"
    (tmp_path / "drive.mjs").write_text(program)
    env = {**os.environ, "PATH": str(tmp_path), "HOME": str(tmp_path)}
    argv = [str(shutil.which("node")), "drive.mjs"]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {} and "gitcoord is not installed" in done.stderr


# --- the line in committed settings -----------------------------------------------------------------------------------


def commands_of(known: Known) -> list[str]:
    """Every command of ours in the settings of a tool."""
    found: list[str] = []
    for entry in known.hooks.values():
        inner = entry.get("hooks", [entry])
        found += [hook.get("command", hook.get("bash")) for hook in inner]
    return found


def run_line(line: str, place: Path, path: Path) -> subprocess.CompletedProcess[str]:
    """As a tool runs it, with these programs first on PATH and no other git-coord."""
    programs = place / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("sh", "git"):
        if not (programs / name).exists():
            (programs / name).symlink_to(str(shutil.which(name)))
    env = {"HOME": str(place), "PATH": f"{path}:{programs}"}
    argv = [str(shutil.which("sh")), "-c", line]
    return subprocess.run(argv, cwd=place, env=env, input="{}", capture_output=True, text=True, check=False)


@pytest.mark.parametrize("known", HOOKED, ids=[known.name for known in HOOKED])
def test_where_gitcoord_is_not_installed_committed_settings_stop_nobody(known: Known, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    allowed = '{"permission":"allow"}\n' if known.name == "cursor" else ""
    said = []
    for line in commands_of(known):
        done = run_line(line, tmp_path, tmp_path / "none")
        assert (done.returncode, done.stdout) == (0, allowed), done
        said.append(done.stderr)
    assert "gitcoord is not installed" in said[0] and not any(said[1:]), "it is said once"


@pytest.mark.parametrize("known", HOOKED, ids=[known.name for known in HOOKED])
@pytest.mark.parametrize(("place", "ending"), [("bin", "exit 2"), (".local/bin", "exit 1"), ("bin", "kill -9 $$")])
def test_where_gitcoord_is_installed_and_fails_they_refuse(
    known: Known, place: str, ending: str, tmp_path: Path
) -> None:
    """Also where the tool's PATH lacks the directory into which gitcoord is installed. At an end nobody is sent back for it."""
    program = tmp_path / place / "git-coord"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\n[ "$*" = guard ] || exit 9\necho broken >&2\n{ending}\n')
    program.chmod(0o755)
    for event, entry in known.hooks.items():
        (line,) = commands_of(known._replace(hooks={event: entry}))
        done = run_line(line, tmp_path, tmp_path / "bin")
        err = "" if known.name == "copilot" else done.stderr  # which it does not read
        said = Said(done.stdout.encode(), err.encode(), done.returncode)
        if event in _BEFORE:
            assert understood(known.name, said) == "deny" and reason(known.name, said), (event, done)
            assert done.returncode == 2 or known.name in ("cursor", "copilot"), done
            assert (
                ending == "exit 2"
                or known.name == "cursor"
                or "gitcoord failed, so this is refused" in reason(known.name, said)
            )
        elif known.name != "cursor":
            assert done.returncode == 1 and not done.stdout, (event, done)


_BEFORE = (
    "PreToolUse",
    "BeforeTool",
    "preToolUse",
    "pre_read_code",
    "pre_write_code",
    "pre_run_command",
    "pre_mcp_tool_use",
)


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(git_repo: Path, tmp_path: Path) -> Repository:
    return Repository(git_repo, tmp_path, CHAIN)


def test_setup_shows_does_repeats_and_teardown_undoes(repository: Repository) -> None:
    repository.write(".claude/settings.json", '{\n  "a": 1 // mine\n}\n')
    repository.write(".codex/config.toml", "")
    repository.write("AGENTS.md", "# Rules")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "tools")
    before = picture(repository.top)
    shown = repository.ok("setup", "--dry-run")
    assert "would add the hooks of Claude Code to .claude/settings.json" in shown.out
    assert "would write .codex/hooks.json with the hooks of Codex CLI" in shown.out
    assert "would add a section to AGENTS.md" in shown.out and picture(repository.top) == before
    done = repository.ok("setup")
    assert "without gitcoord they do nothing" in done.err and "git coord setup --user" in done.err
    assert "trust them" in done.err and COMMAND in (repository.top / ".claude/settings.json").read_text()
    assert (repository.top / ".gitcoord/config").read_text().count("autoclaim = true") == 1
    again = repository.ok("setup")
    assert "already there: the ledger, the policy, the hooks, the agent tools" in again.out
    assert {row["action"] for row in repository.ok("setup", "--json").json["tools"]} == {"unchanged"}
    going = repository.ok("teardown", "--dry-run")
    assert "would take the part of gitcoord out of .claude/settings.json" in going.out
    repository.ok("teardown", "--yes")
    assert repository.git("status", "--porcelain") == ""


def test_which_tools(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    assert repository.ok("setup", "--dry-run", "--json").json["tools"] == []
    (repository.top / ".claude").mkdir()
    assert repository.ok("setup", "--dry-run", "--no-tools", "--json").json["tools"] == []
    named = repository.ok("setup", "--dry-run", "--tool", "gemini", "--tool", "windsurf", "--json").json["tools"]
    assert {row["tool"] for row in named} == {"gemini", "windsurf"}
    own = repository.ok("setup", "--user", "--json").json["tools"]
    assert [row["file"] for row in own] == ["~/.claude/settings.json", "~/.claude/skills/gitcoord-protocol/SKILL.md"]
    assert repository.ok("teardown", "--yes", "--json").json["tools"] == []
    both = repository.ok("teardown", "--yes", "--user", "--json").json["tools"]
    assert {row["action"] for row in both} == {"removed"}
    for wrong in (("--tool", "emacs"), ("--no-tools", "--user"), ("--no-tools", "--tool", "claude")):
        assert repository.coordinate("setup", *wrong).code == 2


def test_settings_that_cannot_be_edited_are_told_with_what_to_add(repository: Repository) -> None:
    repository.write(".claude/settings.json", "{ broken")
    done = repository.ok("setup")
    assert ".claude/settings.json was left as it is" in done.err and '"onFailure": "block"' in done.err
    assert (repository.top / ".claude/settings.json").read_text() == "{ broken"
    row = next(row for row in repository.ok("setup", "--json").json["tools"] if row["action"] == "left")
    assert row["problem"] and json.loads(row["snippet"])["hooks"]["PreToolUse"]


def test_setup_says_what_each_tool_needs(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the hooks of a project the command that always counts; for one's own only what holds for them too."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    words = ("--tool", "claude", "--tool", "codex", "--tool", "gemini", "--tool", "copilot")
    project = repository.ok("setup", *words).err
    for tool in ("claude", "gemini", "copilot"):
        assert f"your own run everywhere: git coord setup --user --tool {tool}\n" in project
    assert "Codex skips hooks that are not trusted" in project
    own = repository.ok("setup", "--user", *words).err
    assert "run everywhere" not in own and "Codex skips hooks that are not trusted" in own

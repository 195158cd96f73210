"""The agent tools themselves, in a project that `git coord setup` has set up, asked by a scripted model for one action after the other.

They are installed from npm, which takes too long for every run: `python -m tests.guard.real` does it and runs these tests.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.guard.real.model import Act, Model
from tests.guard.real.tools import REAL_TOOLS, RealTool, Workplace
from tests.support import UNHOOKED

pytestmark = [
    pytest.mark.skipif(not os.environ.get("GITCOORD_TOOLS"), reason="it needs the tools: python -m tests.guard.real"),
    pytest.mark.timeout(300),
]
EACH = pytest.mark.parametrize("tool", REAL_TOOLS.values(), ids=lambda tool: tool.name)
RECORDED = Path(__file__).parent.parent / "recorded/real"
OVERWRITE = "python3 fmt.py"  # the guard cannot tell what it writes
SCRIPT = 300  # characters of a text that are recorded


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    """A project in which bob holds a file and has not committed what he wrote there."""
    top = tmp_path / "project"
    for name, text in (("shared/a", "a\n"), ("shared/b", "b\n"), ("free/x", "x\n"), ("sub/y", "y\n")):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    (top / "fmt.py").write_text(f"open(bytes.fromhex('{b'free/x'.hex()}'), 'w').write('gone')\n")
    (top / ".gitattributes").write_text("shared/** gitcoord-claim\n")
    workplace = Workplace(tmp_path, top)
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "work")):
        assert workplace.run(("git", *words)).code == 0
    return workplace


def set_up(workplace: Workplace, tool: RealTool, *words: str) -> None:
    done = workplace.coord("setup", "--tool", tool.name.partition("-")[0], *words)
    assert done.code == 0, done
    for line in (("add", "-A"), ("commit", "-qm", "gitcoord", "--allow-empty")):
        assert workplace.run(("git", *UNHOOKED, *line)).code == 0
    claimed = workplace.run(("git", "claim", "-m", "new login", "--expect", "20m", "free/x"), GITCOORD_AGENT="bob")
    assert claimed.code == 0, claimed
    (workplace.top / "free/x").write_text("x\nof bob\n")


def at(workplace: Workplace, name: str) -> str:
    return str(workplace.top / name)


def flat(texts: list[str]) -> str:
    """The texts that the model read, without the entities and escapes of some tools."""
    return "\n".join(texts).replace("&lt;", "<").replace("&gt;", ">").replace("\\n", "\n").replace('\\"', '"')


@EACH
def test_a_conversation(workplace: Workplace, tool: RealTool) -> None:
    """The brief at the start; a held file denied and unchanged; an overwrite by a program told; a free file claimed; the end."""
    set_up(workplace, tool)
    script = [
        tool.read(at(workplace, "shared/a")),
        tool.write(at(workplace, "shared/a"), "a", "mine"),
        tool.read(at(workplace, "free/x")),
        tool.write(at(workplace, "free/x"), "x", "mine"),
        tool.shell("cat free/x"),
        tool.shell(OVERWRITE),
    ]
    with Model(main=script) as model:
        done = workplace.play(tool, model)
    assert done.code == 0, done
    results = model.results()
    assert len(results) == len(script), (done, results)
    brief = model.prompt()
    assert brief.count("gitcoord coordinates who writes here") == 1
    assert "bob holds free/x: new login" in brief
    denied = results[3]
    assert "nothing was" in denied and "bob" in denied and "git claim --wait 10m free/x\n" in f"{flat([denied])}\n", (
        denied
    )
    assert "of bob" in results[4]  # the held file is unchanged
    assert (workplace.top / "free/x").read_text() == "gone"
    assert "free/x" in flat(results[4:]) and "refs/gitcoord/kept/" in flat(results[4:]), results
    assert (workplace.top / "shared/a").read_text() == "mine\n"
    if tool.name != "opencode":  # which holds nobody back
        assert "-- shared/a\n" in flat(results[5:]), results
    rows = json.loads(workplace.run(("git", "claim", "list", "--all", "--json"), GITCOORD_AGENT="bob").out)["claims"]
    held = {row["path"]: row["agent"] for row in rows}
    assert held["free/x"] == "bob" and held["shared/a"].startswith(tool.name.partition("-")[0])
    assert "stop session 1 of " in workplace.coord("log", "-n", "1").out  # the end was told
    record(workplace, tool)


# Tools that read the hooks of a project only where they are started.
AT_THE_TOP = ("claude", "gemini", "copilot")
UNTRUSTED = ("codex", "codex-code", "copilot", "gemini")


def _writes_held(workplace: Workplace, tool: RealTool, *, cwd: str = "", trusted: bool = True) -> bool:
    """Whether the tool changes the file that bob holds."""
    script = [
        tool.read(at(workplace, "free/x")),
        tool.write(at(workplace, "free/x"), "x", "mine"),
        tool.shell("git claim shared/b 2>&1; true"),
    ]
    with Model(main=script) as model:
        done = workplace.play(tool, model, cwd=workplace.top / cwd, trusted=trusted)
    assert len(model.results()) == len(script), (done, model.results())
    return (workplace.top / "free/x").read_text() != "x\nof bob\n"


@EACH
def test_started_in_a_subdirectory(workplace: Workplace, tool: RealTool) -> None:
    """The hooks of `setup --user` run; those of a project do not in some tools, and then `git claim` says so."""
    set_up(workplace, tool)
    _writes_held(workplace, tool, cwd="sub")
    assert bool(workplace.events()) == (tool.name not in AT_THE_TOP)
    assert workplace.coord("setup", "--user", "--tool", tool.name.partition("-")[0]).code == 0
    (workplace.top / "free/x").write_text("x\nof bob\n")
    assert not _writes_held(workplace, tool, cwd="sub")
    assert workplace.events()


@EACH
def test_not_trusted(workplace: Workplace, tool: RealTool) -> None:
    set_up(workplace, tool)
    written = _writes_held(workplace, tool, trusted=False)
    assert written == (not workplace.events()) == (tool.name in UNTRUSTED)


@EACH
@pytest.mark.parametrize("line", ["kill -9 $$", "exit 1"])
def test_a_guard_that_fails_refuses(workplace: Workplace, tool: RealTool, line: str) -> None:
    """Nothing that gitcoord cannot judge happens, and an agent still comes to its end."""
    set_up(workplace, tool)
    workplace.install_guard(line)
    assert not _writes_held(workplace, tool)
    assert len(workplace.events()) < 20


@EACH
def test_where_gitcoord_is_not_installed_nobody_is_stopped(workplace: Workplace, tool: RealTool) -> None:
    set_up(workplace, tool)
    for file in workplace.bin.iterdir():
        file.unlink()
    assert _writes_held(workplace, tool)


def test_a_subagent_of_gemini_is_told(workplace: Workplace) -> None:
    """It reports no start of its subagents, so the text goes into the prompt that they get."""
    tool = REAL_TOOLS["gemini"]
    set_up(workplace, tool)
    given = {"agent_name": "generalist", "prompt": "Do a part. [[script part]]"}
    part = [tool.read(at(workplace, "free/x")), tool.write(at(workplace, "free/x"), "x", "mine")]
    with Model(main=[Act("invoke_agent", given)], part=part) as model:
        done = workplace.play(tool, model)
    assert "gitcoord coordinates who writes here" in model.prompt("part"), done
    assert "bob holds free/x: new login" in model.prompt("part")
    assert "nothing was done" in model.results("part")[1]


def test_a_commit_of_gemini_is_judged(workplace: Workplace) -> None:
    """Its shell switches git's hooks off and hides the user's name; the hinted command works all the same."""
    tool = REAL_TOOLS["gemini"]
    set_up(workplace, tool)
    script = [
        tool.read(at(workplace, "shared/a")),
        tool.write(at(workplace, "shared/a"), "a", "mine"),
        tool.shell("git commit -qam all"),
        tool.shell('env -u GIT_CONFIG_COUNT -u GIT_CONFIG_GLOBAL git commit -qam "all"'),
        tool.shell('env -u GIT_CONFIG_COUNT -u GIT_CONFIG_GLOBAL git coord commit -m "mine" -- shared/a'),
    ]
    with Model(main=script) as model:
        done = workplace.play(tool, model)
    denied, judged, committed = model.results()[2:]
    assert "nothing was done" in denied and f"{script[4].args['command']}".replace("mine", "...") in denied, (
        done,
        denied,
    )
    assert "this commit is refused" in judged and "bob holds it" in judged
    assert workplace.run(("git", "log", "-1", "--format=%s")).out == "mine\n", committed


def record(workplace: Workplace, tool: RealTool) -> None:
    """Write down what the tool sent, with the names of a home that is nobody's, where that was asked for."""
    if not os.environ.get("GITCOORD_TOOLS_RECORD"):
        return
    version = workplace.run((tool.words[0], "--version")).out.strip()
    rows: list[object] = [{"tool": tool.name.partition("-")[0], "version": version.splitlines()[0]}]
    for event in workplace.events():
        text = json.dumps(shortened(event)).replace(str(workplace.top), "/home/ana/shop")
        text = text.replace(str(workplace.home), "/home/ana")
        rows.append(json.loads(text.replace(str(workplace.top).replace("/", "-").replace("_", "-"), "-home-ana-shop")))
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{tool.name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def shortened(value: object) -> object:
    if isinstance(value, dict):
        return {key: shortened(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shortened(one) for one in value]
    return value[:SCRIPT] if isinstance(value, str) else value

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


DESTROYS = (
    "git checkout -- sub/y", "git restore sub/y", "git stash", "git reset --hard", "git clean -fdx sub", "rm sub/new", "rm -rf sub",
    "git add -A && git commit -qm all", "cat > sub/y <<EOF\nmine\nEOF",
    "git checkout -b mine", "git switch -c mine",
    "find . -delete", "find . -name .git -exec rm -rf {} +", "rsync -a --delete /tmp/empty/ ./", "ls -A | xargs rm -rf",
    "echo '{\"disableAllHooks\": true}' > .claude/settings.local.json",
)  # fmt: skip


@EACH
def test_uncommitted_work_of_another_in_the_same_tree(workplace: Workplace, tool: RealTool) -> None:
    """While another conversation is alive, nothing takes away or commits what it wrote and nobody claimed, and its branch stays."""
    set_up(workplace, tool)
    other = REAL_TOOLS["claude"]
    if tool is not other:
        assert workplace.coord("setup", "--tool", "claude").code == 0
        assert workplace.run(("git", *UNHOOKED, "commit", "-qam", "claude")).code == 0
    path = at(workplace, "sub/y")
    script = [tool.read(path), *map(tool.shell, DESTROYS), tool.write(path, "of another", "mine")]
    before: list[str] = []

    def meanwhile() -> Act:
        before.append(state_of(workplace))
        with Model(main=script) as model:
            workplace.play(tool, model)
        results.extend(model.results())
        return other.shell("true")

    results: list[str] = []
    with Model(
        main=[
            other.read(at(workplace, "sub/y")),
            other.write(at(workplace, "sub/y"), "y", "of another"),
            other.write(at(workplace, "sub/new"), "", "new"),
            meanwhile,
        ]
    ) as model:
        done = workplace.play(other, model)
    assert len(results) == len(script), (done, results)
    for act, result in zip(script[1:], results[1:]):
        assert "nothing was done" in result, (act, result)
    assert "git coord worktree add" in flat(results)
    assert state_of(workplace) == before[0]


def state_of(workplace: Workplace) -> str:
    """Branch, last commit and changes of the work tree, with what the files of the other conversation contain."""
    shown = [workplace.run(("git", *words)).out for words in (("status", "-sbuall"), ("log", "-1"))]
    return "\n".join([*shown, *(at.read_text() for at in sorted((workplace.top / "sub").iterdir()))])


@EACH
def test_a_write_into_the_primary_copy_is_denied_once(workplace: Workplace, tool: RealTool) -> None:
    """Gemini does not even ask: it refuses paths outside the directory in which it was started."""
    set_up(workplace, tool)
    tree = workplace.place / "tree"
    assert workplace.run(("git", "worktree", "add", "-q", str(tree))).code == 0
    wrong = at(workplace, "sub/y")
    with Model(main=[tool.read(wrong), tool.write(wrong, "y", "mine")]) as model:
        workplace.play(tool, model, cwd=tree)
    denied = model.results()[1]
    if tool.name != "gemini":
        assert "nothing was done" in denied and str(tree / "sub/y") in denied
    assert (workplace.top / "sub/y").read_text() == "y\n"


@EACH
def test_the_next_conversation_inherits(workplace: Workplace, tool: RealTool) -> None:
    """Uncommitted work of one does not lock out the next, which is told of it."""
    set_up(workplace, tool)
    path = at(workplace, "shared/a")
    for old, new in (("a", "first"), ("first", "second")):
        with Model(main=[tool.read(path), tool.write(path, old, new)]) as model:
            done = workplace.play(tool, model)
        assert "nothing was done" not in flat(model.results()), (done, model.results())
        assert (workplace.top / "shared/a").read_text() == f"{new}\n"
    assert "shared/a" in model.prompt()


# How each tool starts a subagent, with the prompt for it. Gemini's and Codex's are tested elsewhere or start none without a person.
SUBAGENTS = {
    "claude": lambda prompt: Act("Agent", {"description": "a part", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": False}),
    "opencode": lambda prompt: Act("task", {"description": "a part", "prompt": prompt, "subagent_type": "general"}),
    "copilot": lambda prompt: Act("task", {"name": "part", "description": "a part", "prompt": prompt, "agent_type": "general-purpose"}),
    "gemini": lambda prompt: Act("invoke_agent", {"agent_name": "generalist", "prompt": prompt}),
}  # fmt: skip


@pytest.mark.parametrize("name", SUBAGENTS)
def test_subagents_one_after_the_other(workplace: Workplace, name: str) -> None:
    """Uncommitted work of a finished subagent is its parent's, so the next one may write it."""
    tool = REAL_TOOLS[name]
    set_up(workplace, tool)
    path = at(workplace, "shared/a")
    parts = {
        f"part{number}": [tool.read(path), tool.write(path, old, new)]
        for number, (old, new) in enumerate((("a", "first"), ("first", "second")))
    }
    main = [SUBAGENTS[name](f"Do a part. [[script {part}]]") for part in parts]
    with Model(main=main, **parts) as model:
        done = workplace.play(tool, model)
    for part in parts:
        assert "nothing was done" not in flat(model.results(part)), (done, model.results(part))
    assert (workplace.top / "shared/a").read_text() == "second\n", (done, model.results())


@EACH
def test_without_its_ledger_reading_and_looking_at_it_go_on(workplace: Workplace, tool: RealTool) -> None:
    set_up(workplace, tool)
    assert workplace.run(("git", *UNHOOKED, "update-ref", "-d", "refs/heads/gitcoord")).code == 0
    path = at(workplace, "sub/y")
    script = [tool.read(path), tool.shell("ls"), tool.shell("git coord doctor; true"), tool.write(path, "y", "mine")]
    with Model(main=script) as model:
        done = workplace.play(tool, model)
    read, listed, looked, wrote = model.results()
    assert "y" in read and "shared" in listed and "ledger" in looked, (done, model.results())
    assert "ask a person to run" in wrote and (workplace.top / "sub/y").read_text() == "y\n", wrote


@EACH
def test_what_a_program_overwrote_is_put_back(workplace: Workplace, tool: RealTool) -> None:
    """With `after = restore`, where the holder's own tool is hooked."""
    set_up(workplace, tool)
    policy = workplace.top / ".gitcoord/config"
    policy.write_text(policy.read_text() + "\n[guard]\n\tafter = restore\n")
    assert workplace.run(("git", *UNHOOKED, "commit", "-qam", "restore")).code == 0
    other = REAL_TOOLS["claude"]
    if tool is not other:
        assert workplace.coord("setup", "--tool", "claude").code == 0
    (workplace.top / "fmt.py").write_text(f"open(bytes.fromhex('{b'shared/a'.hex()}'), 'w').write('gone')\n")
    results: list[str] = []

    def meanwhile() -> Act:
        with Model(main=[tool.shell(OVERWRITE)]) as model:
            workplace.play(tool, model)
        results.extend([*model.results(), model.prompt()])  # Codex puts it before the result
        return other.shell("true")

    path = at(workplace, "shared/a")
    with Model(main=[other.read(path), other.write(path, "a", "of another"), meanwhile]) as model:
        workplace.play(other, model)
    assert (workplace.top / "shared/a").read_text() == "of another\n", results
    assert "put back" in flat(results), results


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

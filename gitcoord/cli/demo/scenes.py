"""The scenes of `git coord demo`: a title, and its steps in order. A step returns whether it went as expected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

from gitcoord.cli.demo import Stage

Step = Callable[[Stage], bool]
_CONFIG = (
    '[deploy "production"]\n\tremote = origin\n\tref = refs/heads/production\n[land]\n\tcheck = "! grep BURNT menu"\n'
)
_SECTIONS = (
    "--state='The parser reads numbers; strings still fail.' --changed='Added the number branch in src/parse.py.'"
    " --remaining='Strings, and a test for both.' --next='Write the string branch below the number branch in src/parse.py.'"
)


def run(agent: str, line: str, *, refused: bool = False) -> Step:
    """`git <line>` is shown, and succeeds or is refused."""
    return lambda stage: bool(stage.show(agent, line)) is refused


def note(text: str) -> Step:
    return lambda stage: print(f"  {text}") is None


def edit(agent: str, line: str) -> Step:
    """The agent adds a line to src/parse.py and commits it."""

    def step(stage: Stage) -> bool:
        file = stage.repo / "src/parse.py"
        stage.write("src/parse.py", (file.read_text() if file.exists() else "") + line + "\n")
        stage.git("add src/parse.py")
        return stage.show(agent, f"commit -q -m '{line}'") == 0

    return step


def work(branch: str, old: str, new: str) -> Step:
    """A line of src/core.py is changed and committed, past the hooks, on a branch from main."""

    def step(stage: Stage) -> bool:
        stage.git(f"checkout -q -b {branch} main")
        stage.write("src/core.py", (stage.repo / "src/core.py").read_text().replace(old, new))
        stage.git(f"commit --no-verify -qam '{new}'")
        stage.names[branch] = stage.git("rev-parse --short=12 HEAD").strip()
        return True

    return step


def race(stage: Stage) -> bool:
    print("  alice$ git claim src/app.py     bob$ git claim src/app.py")
    racers = {name: stage.start(name, f'claim src/app.py -m "{name}\'s idea"') for name in ("alice", "bob")}
    for name, process in racers.items():
        stage.print_answer(process.communicate()[0], f"{name}: ")
    stage.names["winner"] = next((name for name, process in racers.items() if not process.returncode), "")
    return sorted(process.returncode for process in racers.values()) == [0, 1]


def kill(name: str) -> Step:
    """Only a person at a terminal may kill an agent, so this one has a terminal."""

    def step(stage: Stage) -> bool:
        agent = name.format(**stage.names)
        print(f"  $ git coord kill {agent} --reason 'runs wild'")
        controller, terminal = os.openpty()
        env = {**stage.env, "TERM": "dumb"}
        argv = [sys.executable, "-m", "gitcoord.cli", "coord", "kill", agent, "--reason", "runs wild"]
        killed = subprocess.run(
            argv, cwd=stage.repo, env=env, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, check=False
        )
        stage.print_answer(killed.stdout.decode())
        os.close(controller)
        os.close(terminal)
        return killed.returncode == 0

    return step


def wait(agent: str, line: str) -> Step:
    """`git <line>` is shown and begins to wait; the first line that it says is shown too."""

    def step(stage: Stage) -> bool:
        print(f"  {agent}$ git {line}")
        process = stage.waiters[agent] = stage.start(agent, line)
        assert process.stdout is not None
        said = process.stdout.readline()
        stage.print_answer(said)
        return said.startswith("waiting: ")

    return step


def answered(agent: str, *, refused: bool = False) -> Step:
    """The command with which this agent waits has ended; its last word is shown."""

    def step(stage: Stage) -> bool:
        process = stage.waiters.pop(agent)
        with process:
            assert process.stdout is not None
            said = [line for line in process.stdout.read().splitlines() if not line.startswith(("waiting: ", "hint: "))]
        stage.print_answer("\n".join(said[:1]), f"{agent}: ")
        return bool(process.returncode) is refused

    return step


def _sleep(stage: Stage) -> bool:
    time.sleep(2.5)
    return True


def quietly(*lines: str) -> Step:
    """Commands of git's own that are not shown."""
    return lambda stage: bool([stage.git(line) for line in lines])


def write(name: str, text: str) -> Step:
    return lambda stage: bool((stage.repo / name).write_text(text))


def share(stage: Stage) -> bool:
    """A bare remote, a policy, and `git-claim` on the path of the hooks."""
    command = stage.home / "bin/git-claim"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gitcoord.cli claim "$@"\n')
    command.chmod(0o755)
    stage.env["PATH"] = f"{command.parent}:{stage.env['PATH']}"
    stage.write(".gitattributes", "src/** gitcoord-claim\n")
    stage.write("src/core.py", "# core.py\nfast = False\n\n\n\nslow = True\n")
    stage.write(".gitcoord/config", _CONFIG)
    stage.write("menu", "starter: soup\nmain: stew\n\n\n\ndrink: water\n")
    stage.git("add .")
    stage.git("commit -q -m 'src is shared; production is deployed'")
    stage.git(f"init -q --bare -b main {stage.home}/origin.git")
    stage.git(f"remote add origin {stage.home}/origin.git")
    stage.git("push -q -u origin main")
    return True


def find_task_of(agent: str) -> Step:
    def step(stage: Stage) -> bool:
        stage.names["task"] = stage.answer(agent, "coord task list --mine")["tasks"][0]["id"]
        return True

    return step


def kitchen(stage: Stage) -> bool:
    """A work tree with a branch for each of three agents, who change the menu."""
    for agent in ("mia", "noah", "olga"):
        stage.places[agent] = stage.home / agent
        stage.git(f"worktree add -q -b {agent} {stage.places[agent]} main")
    return order("mia", "pie")(stage) and order("noah", "fish")(stage)


def order(agent: str, dish: str) -> Step:
    """The agent changes one line of the menu in its own work tree, and commits it."""

    def step(stage: Stage) -> bool:
        menu = stage.places[agent] / "menu"
        key = "drink" if dish.startswith("tea") else "main"
        lines = [f"{key}: {dish}" if line.startswith(key) else line for line in menu.read_text().splitlines()]
        menu.write_text("\n".join(lines) + "\n")
        return stage.show(agent, f"commit -q -a -m '{dish}'") == 0

    return step


def land_at_once(stage: Stage) -> bool:
    print("  mia$ git coord land     noah$ git coord land")
    landing = {name: stage.start(name, "coord land") for name in ("mia", "noah")}
    for name, process in landing.items():
        stage.print_answer(process.communicate()[0], f"{name}: ")
    stage.names["late"] = next((name for name, process in landing.items() if process.returncode), "")
    return sorted(process.returncode for process in landing.values()) == [0, 1]


def resolve(stage: Stage) -> bool:
    menu = stage.places[stage.names["late"]] / "menu"
    menu.write_text("starter: soup\nmain: pie or fish\n\n\n\ndrink: water\n")
    return stage.show(stage.names["late"], "add menu") == 0


def task_is_done(agent: str) -> Step:
    def step(stage: Stage) -> bool:
        shown = stage.show(agent, "coord task show {task}") == 0
        return shown and stage.answer(agent, f"coord task show {stage.names['task']}")["task"]["state"] == "done"

    return step


def find_handoff(stage: Stage) -> bool:
    stage.names["handoff"] = stage.answer("judy", "handoff list")["handoffs"][0]["id"]
    return True


def ask_guard(conversation: str, tool: str, key: str, value: str, *, refused: bool = False) -> Step:
    """An agent tool asks the guard before it acts."""

    def step(stage: Stage) -> bool:
        event = {"hook_event_name": "PreToolUse", "session_id": conversation, "cwd": str(stage.repo), "tool_name": tool}
        print(f"  {conversation}'s tool: {tool} {value}")
        guard = stage.start("", "coord guard", subprocess.PIPE)
        out, _ = guard.communicate(json.dumps({**event, "tool_input": {key: value}}))
        told = json.loads(out)["hookSpecificOutput"]["permissionDecisionReason"] if out else ""
        stage.print_answer(told or "(goes ahead)")
        return bool(told) is refused

    return step


def show_refs(stage: Stage) -> bool:
    print("  $ git for-each-ref refs/claims")
    print(stage.git("for-each-ref --format='      %(refname) -> %(objectname:short)' refs/claims"), end="", flush=True)
    return True


SCENES: dict[str, tuple[Step, ...]] = {
    "Set up once": (run("", "coord init"),),
    "Two agents ask for the same file at the same moment: exactly one gets it": (race,),
    "Several files are granted together or not at all": (
        run("carol", "claim src/db.py src/app.py", refused=True),
        run("carol", "claim list --mine"),
        run("carol", "claim src/db.py src/api.py"),
    ),
    "An agent that a person kills is fenced: its claims are free, and nothing of it gets through": (
        kill("{winner}"),
        lambda stage: stage.show(stage.names["winner"], "claim src/api.py") == 1,
    ),
    "A claim without heartbeats expires: dave takes one for a second and does nothing more, erin simply asks": (
        run("dave", "claim src/app.py --ttl 1s -m 'short work'"),
        _sleep,
        run("erin", "claim src/app.py"),
        run("dave", "claim release src/app.py", refused=True),
    ),
    "erin commits and releases; the ledger remembers which commit carries the work": (
        write("src/app.py", "# app.py\nprint('hello')\n"),
        quietly("commit -qam greet"),
        run("erin", "claim release src/app.py"),
    ),
    "Waiting is a queue: three wait for mia, pat has priority, nora is killed, and nobody waits for her": (
        run("mia", "claim src/app.py -m 'new login' --expect 5m"),
        wait("nora", "claim --wait 5m src/app.py"),
        wait("omar", "claim --wait 5m src/app.py"),
        wait("pat", "claim --wait 5m --priority high src/app.py"),
        run("mia", "claim list"),
        kill("nora"),
        answered("nora", refused=True),
        run("mia", "claim release src/app.py"),
        answered("pat"),
        run("pat", "claim release src/app.py"),
        answered("omar"),
    ),
    "Two that would wait for each other for ever: the one who closes the circle is told so at once": (
        run("mia", "claim src/login.py"),
        wait("omar", "claim --wait 5m src/login.py"),
        run("mia", "claim --wait 5m src/app.py", refused=True),
        note("she releases hers, as the hint says, and omar goes on"),
        run("mia", "claim release src/login.py"),
        answered("omar"),
        run("omar", "claim release --all"),
        run("", "coord contention"),
    ),
    "With hooks, what nobody claimed does not leave: fred pushes a change of a shared file": (
        share,
        run("fred", "coord install-hooks"),
        work("fred", "fast = False", "fast = True"),
        run("fred", "push -q origin fred", refused=True),
        run("fred", "claim src/core.py"),
        run("fred", "push -q origin fred"),
        run("fred", "claim release src/core.py"),
    ),
    "The claim is free again, but fred's work must not get lost: gina starts from a copy without it": (
        run("gina", "claim src/core.py"),
        work("gina", "slow = True", "slow = False"),
        run("gina", "push -q origin gina", refused=True),
        note("she does what the hint says"),
        run("gina", "merge -q --no-edit {fred}"),
        run("gina", "push -q origin gina"),
        run("gina", "claim release src/core.py"),
    ),
    "Nothing is deployed from a stale copy: gina's work landed meanwhile, and hugo does not have it": (
        run("gina", "push -q origin gina:main"),
        quietly("checkout -q main"),
        run("hugo", "push -q origin main:production", refused=True),
        run("hugo", "coord sync --pull"),
        run("hugo", "push -q origin main:production"),
    ),
    "Work is handed over whole: ivan takes a task, stops in the middle, and judy goes on where he was": (
        run("boss", "coord task add 'Read numbers and strings' --path src/parse.py"),
        run("ivan", "coord task next"),
        edit("ivan", "numbers = True"),
        note("ivan must leave; he cannot just go"),
        run("ivan", "coord stop", refused=True),
        find_task_of("ivan"),
        run("ivan", f"handoff new --to judy --task {{task}} {_SECTIONS}"),
        run("ivan", "coord stop"),
        find_handoff,
        run("judy", "coord start --brief"),
        run("judy", "handoff show {handoff}"),
        run("judy", "handoff accept {handoff}"),
        edit("judy", "strings = True"),
        run("ivan", "coord task complete {task} -m done --not-done none", refused=True),
        run("judy", "coord task complete {task} -m 'numbers and strings' --not-done 'a test' -q"),
        run("judy", "coord why src/parse.py"),
    ),
    "Two agents land at once, and both changed the same line: one lands, the other resolves it in its turn": (
        kitchen,
        land_at_once,
        resolve,
        lambda stage: stage.show(stage.names["late"], "coord land --continue") == 0,
    ),
    "A failing check is sent back, and a task is done when its code is on trunk": (
        run("boss", "coord task add 'Serve tea'"),
        run("olga", "coord task next"),
        find_task_of("olga"),
        order("olga", "tea BURNT"),
        run("olga", "coord land --task {task}", refused=True),
        order("olga", "tea"),
        run("olga", "coord land --task {task}"),
        task_is_done("olga"),
    ),
    "At the moment of writing: two agent tools share one work tree, and neither undoes the other": (
        run("claude-kim", "claim src/parse.py -m 'smaller functions'"),
        ask_guard("kim", "Edit", "file_path", "src/parse.py"),
        ask_guard("lee", "Edit", "file_path", "src/parse.py", refused=True),
        ask_guard("lee", "Bash", "command", "sed -i s/numbers/digits/ src/parse.py", refused=True),
        ask_guard("lee", "Bash", "command", "git commit --no-verify -am mine", refused=True),
        run("claude-kim", "claim release --all --dirty"),
    ),
    "Everything is on record, in git": (run("", "coord log"), show_refs, run("", "coord fsck")),
}

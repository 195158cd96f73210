"""Cost of the guard per tool call: a write, a read, a shell command, where gitcoord is not set up, and the look after a command."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.bench.gates import Call
from tests.bench.measure import Result, Target, compare, interleave
from tests.bench.place import Place

_FILES = {".gitattributes": "src/** gitcoord-claim\n", ".gitcoord/config": "[guard]\n\tautoclaim = true\n"}
_COMMAND = "cd src && sed -i 's/one/two/' a.txt && git status --short | head -n 5 && cat ../free.txt > b.txt"


def judged(place: Place, rounds: int) -> list[Result]:
    where = place.repository("guarded", ["src/a.txt", "src/b.txt", "free.txt"])
    for name, text in _FILES.items():
        (where / name).parent.mkdir(exist_ok=True)
        (where / name).write_text(text)
    for words in (("add", "-A"), ("commit", "-q", "-m", "policy"), ("claim", "src")):
        place.run(where, "git", *words)
    nowhere = place.repository("unguarded", ["a.txt"], ledger=False)
    calls = {
        "write": _call(place, where, "Edit", {"file_path": str(where / "src/a.txt")}),
        "read": _call(place, where, "Read", {"file_path": str(where / "src/a.txt")}),
        "shell": _call(place, where, "Bash", {"command": _COMMAND}),
        "nowhere": _call(place, nowhere, "Edit", {"file_path": str(nowhere / "a.txt")}),
    }
    samples = interleave(
        rounds,
        {**calls, "python": lambda _: place.bare_python()},
        warm=2,
    )
    floor = "python3 -I -S -c pass"
    return [
        compare("guard-write", f"guard, a write / {floor}", samples, "write", "python", Target(3.5)),
        compare("guard-read", f"guard, a read / {floor}", samples, "read", "python", Target(3.5)),
        compare("guard-shell", f"guard, a shell command / {floor}", samples, "shell", "python", Target(6)),
        compare(
            "guard-nowhere", f"guard where gitcoord is not set up / {floor}", samples, "nowhere", "python", Target(2)
        ),
    ]


_MANY = 50  # files that another holds
_ROUNDS = 1000  # more than are ever run: a free path for each


def looked(place: Place, rounds: int) -> list[Result]:
    """Whole actions, with the hook before and the one after: a write, and a command where others hold nothing, or fifty files."""
    trees = {name: _tree(place, name) for name in ("alone", "written", "claimed")}
    names = [f"held/{number}.txt" for number in range(_MANY)]
    for file in names:
        (trees["claimed"] / file).write_text("of bob\n")
    _let_bob_write(place, trees["written"], names)
    place.run(trees["claimed"], "git", "claim", *names, env={**place.env, "GITCOORD_AGENT": "bob"})
    own = trees["alone"] / "src/a.txt"
    steps = {
        "action": _both(place, trees["alone"], "Edit", {"file_path": str(own)}),
        **{name: _both(place, tree, "Bash", {"command": "git status --short"}) for name, tree in trees.items()},
        "autoclaim": lambda number: _call(
            place, trees["alone"], "Write", {"file_path": str(trees["alone"] / f"auto/{number % _ROUNDS}.txt"), "content": "x"}
        )(number),
        "python": lambda _: place.bare_python(),
    }  # fmt: skip
    samples = interleave(rounds, steps, warm=2)
    assert place.run(trees["alone"], "git", "claim", "list", "--all").count("auto/") >= rounds
    for name in ("written", "claimed"):
        samples[f"{name}-more"] = [max(1e-6, a - b) for a, b in zip(samples[name], samples["alone"], strict=True)]
    floor = "python3 -I -S -c pass"
    more = f"files, what the look adds to a command / {floor}"
    return [
        compare("guard-action", f"guard, both hooks of a write / {floor}", samples, "action", "python", Target(5)),
        compare(
            "guard-autoclaim", f"guard, a write that claims / {floor}", samples, "autoclaim", "python", Target(4.5)
        ),
        compare("guard-after-written", f"others wrote {_MANY} {more}", samples, "written-more", "python", Target(1.2)),
        compare("guard-after-claimed", f"others hold {_MANY} {more}", samples, "claimed-more", "python", Target(1.2)),
    ]


def _let_bob_write(place: Place, where: Path, names: list[str]) -> None:
    """One patch of another agent's tool, so that each file is its uncommitted work."""
    lines = "".join(f"*** Update File: {name}\n@@\n-x\n+y\n" for name in names)
    for event in ("PreToolUse", "PostToolUse"):
        told = {
            "session_id": "bob",
            "turn_id": "t",
            "cwd": str(where),
            "hook_event_name": event,
            "tool_name": "apply_patch",
        }
        data = json.dumps({**told, "tool_input": {"command": f"*** Begin Patch\n{lines}*** End Patch\n"}}).encode()
        words, env = [str(place.commands / "git-coord"), "guard"], {**place.env, "GITCOORD_AGENT": "bob"}
        done = subprocess.run(words, cwd=where, env=env, input=data, capture_output=True, check=True)
        assert not done.stdout, done
        for name in names:
            (where / name).write_text("of bob\n")


def _tree(place: Place, name: str) -> Path:
    files = ["src/a.txt", *(f"held/{number}.txt" for number in range(_MANY))]
    where = place.repository(f"after-{name}", files)
    for file, text in {**_FILES, ".gitattributes": "src/** gitcoord-claim\nauto/** gitcoord-claim\n"}.items():
        (where / file).parent.mkdir(exist_ok=True)
        (where / file).write_text(text)
    for words in (("add", "-A"), ("commit", "-q", "-m", "policy"), ("claim", "src")):
        place.run(where, "git", *words)
    return where


def _both(place: Place, where: Path, tool: str, arguments: dict[str, str]) -> Callable[[int], float]:
    calls = [_call(place, where, tool, arguments, event) for event in ("PreToolUse", "PostToolUse")]
    return lambda number: sum(call(number) for call in calls)


def _call(place: Place, where: Path, tool: str, arguments: dict[str, str], event: str = "PreToolUse") -> Call:
    """The event as the tool would send it; the agent is the one that holds `src`."""
    told = {
        "session_id": "0b7f4c1e-5a52-4c1b-9f0e-2f6a1d3c4b5a", "cwd": str(where), "hook_event_name": event,
        "tool_name": tool, "tool_input": arguments, "transcript_path": str(where / "t.jsonl"),
    }  # fmt: skip
    return Call(place, where, (str(place.commands / "git-coord"), "guard"), json.dumps(told).encode())

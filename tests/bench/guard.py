"""Cost of the guard per tool call: a write, a read, a shell command, and where gitcoord is not set up."""

from __future__ import annotations

import json
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


def _call(place: Place, where: Path, tool: str, arguments: dict[str, str]) -> Call:
    """The event as the tool would send it; the agent is the one that holds `src`."""
    event = {
        "session_id": "0b7f4c1e-5a52-4c1b-9f0e-2f6a1d3c4b5a", "cwd": str(where), "hook_event_name": "PreToolUse",
        "tool_name": tool, "tool_input": arguments, "transcript_path": str(where / "t.jsonl"),
    }  # fmt: skip
    return Call(place, where, (str(place.commands / "git-coord"), "guard"), json.dumps(event).encode())

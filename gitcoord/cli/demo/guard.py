"""The fourth act of `git coord demo`: two agent tools in one work tree, and the guard that each asks before it writes."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gitcoord.cli.demo import Stage

_CONVERSATIONS = ("kim", "lee")


def _asks(stage: Stage, conversation: str, tool: str, arguments: dict[str, str]) -> str:
    """The guard's answer to an agent tool that is about to act; '' for yes."""
    event = {
        "hook_event_name": "PreToolUse", "session_id": conversation, "cwd": str(stage.repo), "tool_name": tool,
        "tool_input": arguments,
    }  # fmt: skip
    print(f"  {conversation}'s tool: {tool} {' '.join(arguments.values())}")
    done = subprocess.run(
        stage.argv("coord", "guard"), input=json.dumps(event), cwd=stage.repo, env=stage.env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    told = json.loads(done.stdout)["hookSpecificOutput"]["permissionDecisionReason"] if done.stdout else done.stderr
    for line in told.splitlines() or ["(goes ahead)"]:
        print(f"      {line}")
    return str(told)


def scene_guard(stage: Stage) -> bool:
    """At the moment of writing: two agent tools share one work tree, and neither undoes the other"""
    one, two = _CONVERSATIONS
    claimed = stage.show(f"claude-{one}", "claim", "src/parse.py", "-m", "smaller functions")
    allowed = _asks(stage, one, "Edit", {"file_path": "src/parse.py"})
    denied = _asks(stage, two, "Edit", {"file_path": "src/parse.py"})
    shell = _asks(stage, two, "Bash", {"command": "sed -i s/numbers/digits/ src/parse.py"})
    around = _asks(stage, two, "Bash", {"command": "git commit --no-verify -am mine"})
    released = stage.show(f"claude-{one}", "claim", "release", "--all", "--dirty")
    return not (claimed or released or allowed) and all((denied, shell, around))


SCENES = (scene_guard,)

"""The third act of `git coord demo`: one agent stops in the middle of a task, hands it over, and the other finishes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gitcoord.cli.demo import Stage

_SECTIONS = (
    "--state=The parser reads numbers; strings still fail.",
    "--changed=Added the number branch in src/parse.py.",
    "--remaining=Strings, and a test for both.",
    "--next=Write the string branch below the number branch in src/parse.py.",
)


def _edit(stage: Stage, agent: str, line: str) -> int:
    file = stage.repo / "src" / "parse.py"
    file.write_text((file.read_text() if file.exists() else "") + line + "\n")
    stage.git("add", str(file))
    return stage.plain(agent, "commit", "-q", "-m", line)


def scene_handover(stage: Stage) -> bool:
    """Work is handed over whole: ivan takes a task, stops in the middle, and judy goes on where he was"""
    stage.git("checkout", "-q", "main")
    added = stage.show("boss", "coord", "task", "add", "Read numbers and strings", "--path", "src/parse.py")
    taken = stage.show("ivan", "coord", "task", "next")
    worked = _edit(stage, "ivan", "numbers = True")
    print("  ivan must leave; he cannot just go")
    refused = stage.show("ivan", "coord", "stop")
    id = stage.output("ivan", "coord", "task", "list", "--mine", "--json")["tasks"][0]["id"]
    offered = stage.show("ivan", "handoff", "new", "--to", "judy", "--task", id, *_SECTIONS)
    stopped = stage.show("ivan", "coord", "stop")
    handoff = stage.output("judy", "handoff", "list", "--json")["handoffs"][0]["id"]
    started = stage.show("judy", "coord", "start", "--brief")
    shown = stage.show("judy", "handoff", "show", handoff)
    accepted = stage.show("judy", "handoff", "accept", handoff)
    finished = _edit(stage, "judy", "strings = True")
    late = stage.show("ivan", "coord", "task", "complete", id, "-m", "done", "--not-done", "none")
    done = stage.show(
        "judy", "coord", "task", "complete", id, "-m", "numbers and strings", "--not-done", "a test", "-q"
    )
    story = stage.show("judy", "coord", "why", "src/parse.py")
    went = (added, taken, worked, offered, stopped, started, shown, accepted, finished, done, story)
    return not any(went) and refused != 0 and late != 0


SCENES = (scene_handover,)

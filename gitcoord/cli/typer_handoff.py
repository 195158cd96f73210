"""The full `git handoff`: the verbs of the table with typer's help."""

from __future__ import annotations

from gitcoord.cli.table import HANDOFF
from gitcoord.cli.typer_call import new_app, run_app
from gitcoord.cli.typer_table import add_verbs

HELP = """Hand your work over to another, whole: the claims, the task, the branch and what they need to know.

git handoff alone lists those that wait."""

app = new_app("handoff", HELP)
add_verbs(app, HANDOFF, {})


def main(words: list[str]) -> int:
    return run_app(app, "handoff", words)

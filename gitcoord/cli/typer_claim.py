"""The full `git claim`: the same verbs and options as the quick parser, made from the same table, with typer's help."""

from __future__ import annotations

from gitcoord.cli.typer_call import new_app, run_app
from gitcoord.cli.typer_table import add_verbs
from gitcoord.terminal.parser import VERBS, arrange

HELP = """Claim paths before you change them.

git claim PATH... claims, git claim alone lists. A path called like a verb is written after '--'; @name is a resource
that is no file (a deploy target, a database, a GPU)."""


app = new_app("claim", HELP)
add_verbs(app, VERBS, {})


def main(words: list[str]) -> int:
    """Like the quick parser: words that begin with no verb are a `take`, unless help is asked for."""
    words = arrange(words)
    if words and words[0] not in VERBS and words[0] not in ("-h", "--help"):
        words = ["take", *words]
    return run_app(app, "claim", words)

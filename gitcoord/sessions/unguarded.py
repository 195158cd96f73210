"""Agent tools whose guard does not run: a command inside a conversation of which no event has reached the guard says so.

Tools skip hooks without a word: of a project that is not trusted, or when started in a subdirectory.
"""

from __future__ import annotations

from gitcoord.git.process import Environ
from gitcoord.ledger.context import Context
from gitcoord.sessions.identity import conversation_actor, is_heard

_NEEDS = {
    "claude": ("Claude Code", "it reads the project's settings only when it is started at the top of the work tree"),
    "codex": ("Codex", "a person trusts its hooks: /hooks"),
    "gemini": (
        "Gemini CLI",
        "it is started at the top of the work tree, in a folder that a person trusted, without --skip-trust",
    ),
    "copilot": (
        "Copilot",
        "a person trusts the folder; for copilot -p: GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS=true",
    ),
}


def unguarded_lines(ctx: Context, environ: Environ) -> list[str]:
    """A warning where this process runs below a conversation that the guard has not heard of; [] elsewhere."""
    actor = conversation_actor(environ)
    if actor is None or is_heard(ctx, actor.agent):
        return []
    tool = actor.instance.partition(":")[0]
    name, needs = _NEEDS.get(tool, (tool, "its hooks are set up"))
    return [
        f"warning: the guard of {name} does not run here: no event of this conversation has reached it",
        f"hint: what it needs: {needs}",
        f"hint: set up for all your projects, it runs wherever the tool is started: git coord setup --user --tool {tool}",
    ]

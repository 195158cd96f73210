"""Agent tools whose guard does not run: a command inside a conversation of which no event has reached the guard says so.

Tools skip hooks without a word: of a project that is not trusted, or when started in a subdirectory.
"""

from __future__ import annotations

from gitcoord.base.agent_tools import HOOKS_ON, hooks_off
from gitcoord.git.files import exists, write_file
from gitcoord.git.process import Environ
from gitcoord.ledger.context import Context
from gitcoord.sessions.identity import conversation_actor, is_heard, silent_tool

_NEEDS = {
    "claude": ("Claude Code", "it reads the project's settings only when it is started at the top of the work tree"),
    "codex": ("Codex", "a person trusts its hooks: /hooks"),
    "gemini": (
        "Gemini CLI",
        "it is started at the top of the work tree, in a folder that a person trusted, without --skip-trust",
    ),
    "copilot": (
        "Copilot",
        "it is started at the top of the work tree, in a folder that a person trusted; for copilot -p: GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS=true",
    ),
}


def unguarded_agents(ctx: Context, rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Live agents that a command here has warned that their tool's guard does not run, and of which no event came since."""
    found: list[dict[str, object]] = []
    for row in rows:
        agent = str(row["agent"])
        if row["live"] and exists(_note(ctx, agent)) and not is_heard(ctx, agent):
            tool = str(row["instance"]).partition(":")[0]
            name, needs = _NEEDS.get(tool, (tool, "its hooks are set up"))
            found.append({"agent": agent, "tool": name, "needs": needs, "source": "hook of the tool"})
    return found


def _note(ctx: Context, agent: str) -> str:
    return f"{ctx.repo.scratch}/guard/unheard/{agent}"


def unguarded_lines(ctx: Context, environ: Environ) -> list[str]:
    """A warning where this process runs below a conversation that the guard has not heard of; [] elsewhere."""
    actor = conversation_actor(environ)
    tool = actor.instance.partition(":")[0] if actor is not None else silent_tool(ctx, environ)
    if not tool or (actor is not None and is_heard(ctx, actor.agent)):
        return []
    name, needs = _NEEDS.get(tool, (tool, "its hooks are set up"))
    if actor is not None and not exists(_note(ctx, actor.agent)):
        write_file(ctx.scratch(f"guard/unheard/{actor.agent}"), b"")
    unjudged = [
        "warning: its shell switches git's hooks off too, so with git before 2.54 nobody judges your commits there",
        f'hint: commit with the hooks on: {HOOKS_ON}git coord commit -m "..." -- <file>...',
    ]
    return [
        f"warning: the guard of {name} does not run here: no event of this conversation has reached it",
        f"hint: what it needs: {needs}",
        f"hint: set up for all your projects, it runs wherever the tool is started: git coord setup --user --tool {tool}",
        *(unjudged if hooks_off(tool) else ()),
    ]

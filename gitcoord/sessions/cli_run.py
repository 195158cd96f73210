"""`git coord run`: launch an agent, send its heartbeats, end its session with it, end it on a kill."""

from __future__ import annotations

import os
import signal

from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import check_agent, printable
from gitcoord.git.files import read_file, remove_file, write_file
from gitcoord.git.host import runs_still, start_time
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.sessions import service as sessions
from gitcoord.sessions.cli_supervisor import Supervisor, exit_code, spawn
from gitcoord.sessions.identity import named_actor, note_process
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values


def run(call: Call, values: Values, command: list[str]) -> int:
    """Run the command as an agent; gives its exit code."""
    name = str(values.get("as", ""))
    outer_actor = named_actor(call.ctx, call.environ)
    outer = outer_actor.agent if outer_actor is not None and outer_actor.instance else ""
    if outer and not name:
        return _wait(spawn(command, dict(os.environ)))  # it belongs to the session around it
    agent = check_agent(name) if name else _generated_name(command[0], call.ctx.host.random())
    actor = Actor(agent, f"run:{call.ctx.host.random()}", parent=outer if outer != agent else "")
    opened = sessions.start(call.ctx, actor, fresh=True)
    actor = actor._replace(session=int(str(opened["session"])))
    env = {
        **os.environ,
        "GITCOORD_AGENT": agent,
        "GITCOORD_INSTANCE": actor.instance,
        "GITCOORD_SESSION": str(actor.session),
        "GITCOORD_LEDGER": call.ctx.settings.get("gitcoord.ledger"),
    }
    return _supervised(call, actor, command, env)


def _generated_name(command: str, random: str) -> str:
    word = "".join(c for c in os.path.basename(command).lower() if c in "abcdefghijklmnopqrstuvwxyz0123456789-_")
    return check_agent(f"{word.strip('-_')[:40] or 'agent'}-{random[:6]}")


def _wait(pid: int) -> int:
    while True:
        try:
            _, status = os.waitpid(pid, 0)
            return exit_code(status)
        except KeyboardInterrupt:
            continue  # the child got it too


def _supervised(call: Call, actor: Actor, command: list[str], env: dict[str, str]) -> int:
    supervisor = Supervisor(call, actor)
    notes = []
    try:
        pid = supervisor.start(command, env)
        notes = [note_process(call.ctx, pid, actor), _note_run(call.ctx, actor)]
        return supervisor.watch()
    finally:
        for note in notes:
            remove_file(note)
        _end(call, actor, supervisor)


def _end(call: Call, actor: Actor, supervisor: Supervisor) -> None:
    """End the session. Claims with uncommitted work stay until they expire."""
    try:
        result = sessions.stop(call.ctx, actor, keep=True)
    except (GitcoordError, OSError) as error:
        if not supervisor.killed:
            supervisor.warn(f"the session could not be ended: {error}")
        return
    for path in result["kept"]:  # type: ignore[attr-defined]
        call.screen.note(f"gitcoord: {printable(path)} has uncommitted changes: its claim stays until it expires")


# --- notes of running agents ---------------------------------------------------------------------------------------


def _note_run(ctx: Context, actor: Actor) -> str:
    path = ctx.scratch(f"runs/{actor.agent}")
    words = (str(os.getpid()), start_time(os.getpid()), ctx.host.boot, actor.instance)
    write_file(path, "\n".join(words).encode())
    return path


def wake(ctx: Context, agent: str) -> bool:
    """Make the agent's supervisor read the ledger now, if it runs on this machine."""
    words = read_file(f"{ctx.repo.scratch}/runs/{agent}").decode("ascii", "replace").split("\n")
    if len(words) != 4 or words[2] != ctx.host.boot or not runs_still(words[0], words[1]):
        return False
    try:
        os.kill(int(words[0]), signal.SIGUSR1)
        return True
    except (ProcessLookupError, PermissionError):
        return False

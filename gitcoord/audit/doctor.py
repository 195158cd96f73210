"""`git coord doctor`: is gitcoord set up here, and does it work? Each check is independent of the others."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Container, Mapping

from gitcoord.audit.model import ADVICE, BAD, UNKNOWN, Check, ask, ok
from gitcoord.base.names import CONFIG, shell_word
from gitcoord.gates.hooks.install import git_version
from gitcoord.gates.hooks.manager_files import files_that_ask
from gitcoord.gates.hooks.managers import find_manager
from gitcoord.gates.hooks.presence import command_for, missing_gates
from gitcoord.git.commands.objects import count_loose
from gitcoord.git.commands.remotes import remote_url, ssh_host, ssh_settings
from gitcoord.git.files import exists, read_file
from gitcoord.guard.setup.plan import SetupPlace, in_use, plan_setup
from gitcoord.guard.unknown_commands import tally
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.named_ledger import no_ledger, setup_command
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import find_other_ledger
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.policy.cache import sync_policy_commit, trunk_source
from gitcoord.policy.parse import unknown_settings
from gitcoord.policy.starter import FILES
from gitcoord.policy.uncommitted import commit_command, uncommitted
from gitcoord.sessions.unguarded import unguarded_agents
from gitcoord.terminal.screen import counted
from gitcoord.views.status import known_agents

OLDEST_GIT = (2, 38)
_MANY_LOOSE = 20_000  # from about here on git's automatic gc gives up
_COMMANDS = ("git-claim", "git-coord", "git-handoff")
_SETUP = "git coord setup"
_LARGEST = 1 << 20


def examine(
    ctx: Context, actor: Actor | None, environ: Mapping[str, str], is_set_up: bool, but: Container[str] = ()
) -> list[Check]:
    """All checks, `but` these, the fundamental ones first. A clone that is not set up is asked only what does not need a ledger."""
    checks = [_git(ctx), _commands(environ), _parser()]
    if not is_set_up:
        return [*checks, Check("ledger", BAD, no_ledger(ctx).message, setup_command(ctx))]
    looks: dict[str, Callable[[], Check]] = {
        "ledger": lambda: _ledger(ctx),
        "authority": lambda: _authority(ctx),
        "policy": lambda: _policy(ctx, environ),
        "hooks": lambda: _hooks(ctx),
        "tools": lambda: _tools(ctx, environ),
        "guard": lambda: _guard(ctx),
        "objects": lambda: _objects(ctx),
    }
    asked = [ask(id, look) for id, look in looks.items() if id not in but]
    return [*checks, *asked, _identity(actor), *([] if "ssh" in but else _ssh(ctx))]


def not_in_place(ctx: Context, actor: Actor | None, environ: Mapping[str, str], but: Container[str]) -> list[Check]:
    """The checks that fail, without advice: the short form."""
    return [check for check in examine(ctx, actor, environ, True, but) if check.state in (BAD, UNKNOWN)]


def _git(ctx: Context) -> Check:
    found = git_version(ctx)
    words = f"git {'.'.join(map(str, found)) or 'of an unknown version'}"
    if found < OLDEST_GIT:
        return Check("git", BAD, f"{words}, which is older than 2.38", "install a newer git")
    return ok("git", words)


def _commands(environ: Mapping[str, str]) -> Check:
    lacking = [name for name in _COMMANDS if shutil.which(name, path=environ.get("PATH")) is None]
    if lacking:
        words = f"not on PATH: {', '.join(lacking)}; hooks and agent tools cannot find gitcoord"
        return Check("commands", BAD, words, "PATH=$HOME/.local/bin:$PATH, or where gitcoord was installed")
    return ok("commands", "git claim, git coord and git handoff are on PATH")


def _parser() -> Check:
    """The guard reads shell commands by a compiled library, which may lack a build for this machine."""
    from gitcoord.shell.parse import analyse

    try:
        effects = analyse("rm a", cwd="/", home="/")
    except Exception as error:  # whatever a compiled library raises when it is loaded
        return Check("parser", BAD, f"shell commands cannot be parsed: {error}", "install gitcoord again")
    if not any(effect.path == "/a" for effect in effects):
        return Check("parser", BAD, "shell commands are not understood", "install gitcoord again")
    return ok("parser", "shell commands can be parsed")


def _ledger(ctx: Context) -> Check:
    other = find_other_ledger(ctx)
    if other is not None:
        return Check("ledger", BAD, other.message, other.hints[0] if other.hints else _SETUP)
    seq = read_snapshot(ctx).state.seq
    return ok("ledger", f"one ledger, {counted(seq, 'event')}; its refs agree")


def _authority(ctx: Context) -> Check:
    if not ctx.remote:
        return ok("authority", "this repository decides")
    from gitcoord.ledger.remote.fetch import fetch

    fetch(ctx)
    return ok("authority", f"'{ctx.remote}' decides, and answers")


def _policy(ctx: Context, environ: Mapping[str, str]) -> Check:
    snapshot = read_snapshot(ctx, trusting=True)
    trunk = format_record(snapshot.state).sync
    commit = sync_policy_commit(ctx, snapshot)
    source = trunk_source(ctx, snapshot)
    pairs = source.pairs
    source.policy([])  # CouldNotJudge where a value is invalid
    if not pairs:
        words = f"'{trunk}' has no policy, so nothing is shared and no rule is set"
        if ctx.repo.worktree and exists(f"{ctx.repo.worktree}/{CONFIG}"):
            help = commit_command(ctx, uncommitted(ctx, _written(ctx, environ)), ctx.remote)
            return Check("policy", BAD, f"{words}: {CONFIG} is not committed", help)
        return Check("policy", BAD, words, _SETUP)
    committed = ctx.local.read([f"{commit}:{CONFIG}"])[0]
    if ctx.repo.worktree and (
        committed is None or read_file(f"{ctx.repo.worktree}/{CONFIG}", _LARGEST) != committed.data
    ):
        words = f"{CONFIG} differs here from that of '{trunk}', which applies"
        return Check("policy", ADVICE, words, f"git diff {shell_word(trunk)} -- {CONFIG}")
    unknown = unknown_settings(pairs)
    if unknown:
        return Check(
            "policy", ADVICE, f"{CONFIG} has unknown settings: {', '.join(unknown[:3])}", "git coord policy check"
        )
    return ok("policy", f"the policy of '{trunk}' applies, {len(pairs)} settings")


def _written(ctx: Context, environ: Mapping[str, str]) -> list[str]:
    """The files of the project that have gitcoord's part: they are committed together, since later only a person changes them."""
    place = SetupPlace(ctx.repo.worktree, environ)
    tools = [change.shown for change in plan_setup(in_use(place), place) if change.action == "unchanged"]
    manager = find_manager(ctx, f"{ctx.repo.common_dir}/hooks", ctx.repo.common_dir)
    return [*FILES, *(files_that_ask(ctx.repo.worktree, manager) if manager is not None else []), *tools]


def _hooks(ctx: Context) -> Check:
    missing = missing_gates(ctx)
    if missing:
        words = "; ".join(f"{gate.event}: {gate.why}" for gate in missing)
        return Check("hooks", BAD, f"gates that do not run here: {words}", command_for(missing))
    return ok("hooks", "git asks gitcoord at commits, merges, ref changes and pushes")


def _tools(ctx: Context, environ: Mapping[str, str]) -> Check:
    found = in_use(SetupPlace(ctx.repo.worktree, environ))
    if not found:
        return ok("tools", "no agent tool is in use here")
    lacking = []
    for tool in found:
        if not is_hooked(tool.name, SetupPlace(ctx.repo.worktree, environ)):
            lacking.append(tool.name)
    if lacking:
        words = f"tools in use that do not ask gitcoord: {', '.join(lacking)}"
        return Check("tools", BAD, words, f"{_SETUP} {' '.join(f'--tool {name}' for name in lacking)}")
    return ok("tools", f"asked by {', '.join(tool.title for tool in found)}")


def is_hooked(name: str, place: SetupPlace) -> bool:
    """Do the settings of this tool ask gitcoord, in the project or in the person's own directories?"""
    for where in (place, place._replace(user=True)):
        changes = plan_setup([tool for tool in in_use(where) if tool.name == name], where)
        hooks = [change for change in changes if change.what in ("hooks", "plugin")]
        if hooks and all(change.action == "unchanged" for change in hooks):
            return True
    return False


def _guard(ctx: Context) -> Check:
    agents: list[dict[str, object]] = known_agents(ctx)["agents"]  # type: ignore[assignment]
    rows = unguarded_agents(ctx, agents)
    if rows:
        words = "; ".join(f"{row['tool']} does not run its guard for {row['agent']}" for row in rows)
        return Check("guard", BAD, words, f"what it needs: {rows[0]['needs']}")
    unknown = tally(ctx)
    words = "no agent here is known to work without its guard"
    if unknown:
        number, most = sum(count for count, _ in unknown), unknown[0]
        words += f"; what {number} commands write could not be told, {most[0]} times: {most[1]}"
    return ok("guard", words)


def _objects(ctx: Context) -> Check:
    count = count_loose(ctx.repo.env)
    if count >= _MANY_LOOSE:
        return Check("objects", ADVICE, f"{count} loose objects make every git command slower", "git gc")
    return ok("objects", f"{count} loose objects")


def _identity(actor: Actor | None) -> Check:
    if actor is None:
        words = "nobody is named here, so that claims cannot be made"
        return Check("identity", ADVICE, words, "launch an agent: git coord run --as <name> -- <command>")
    return ok("identity", f"you are {'the person' if actor.person else 'the agent'} '{actor.agent}'")


def _ssh(ctx: Context) -> list[Check]:
    """A new ssh connection for each command costs most of its time; a shared one does not."""
    host = ssh_host(remote_url(ctx.repo.env, ctx.remote).text) if ctx.remote else ""
    if not host or shutil.which("ssh") is None:
        return []
    if "controlmaster auto" not in ssh_settings(ctx.repo.env, host).lines:
        words = f"each command opens a new connection to {host}"
        return [
            Check(
                "ssh", ADVICE, words, "in ~/.ssh/config: ControlMaster auto, ControlPath ~/.ssh/%C, ControlPersist 60"
            )
        ]
    return [ok("ssh", f"connections to {host} are shared")]

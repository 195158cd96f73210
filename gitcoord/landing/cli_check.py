"""The checks of a landing: in a scratch work tree of what would land, bounded, without identity, keys and agent sockets."""

from __future__ import annotations

import time

from gitcoord.base.agent_tools import TOOLS
from gitcoord.base.durations import format_duration
from gitcoord.base.errors import GitcoordError, UsageError
from gitcoord.base.names import printable
from gitcoord.git.commands.refs import rev_parse
from gitcoord.git.files import list_files, remove_file, write_file
from gitcoord.git.host import isatty, terminal_width
from gitcoord.git.long_process import run_check
from gitcoord.git.process import Environ
from gitcoord.landing.bring import tree_of
from gitcoord.landing.model import MAX_CHECKS, Rules
from gitcoord.landing.scratch import Scratch
from gitcoord.landing.trunk import Trunk
from gitcoord.landing.turn import Turn
from gitcoord.startup.annotations import Callable, Iterable
from gitcoord.terminal.call import Call
from gitcoord.terminal.screen import Row, Screen, put

_KEPT = 20  # outputs of failed checks
_SECRET = (b"GITCOORD_", b"GIT_", b"SSH_", b"GPG_", b"GNUPG")
_MINUTE = 60
_SHOWN = 12  # last lines of a failed check's output


class CheckFailed(GitcoordError):
    exit_code = 1
    code = "check"


class Running:
    """Says how long a check has run: at a terminal in one line that counts up, elsewhere in a line a minute. Called as `run_check` calls `tick`, which it calls in its
    turn."""

    def __init__(self, screen: Screen, command: str, timeout: int, tick: Callable[[], float], *, live: bool) -> None:
        self._screen, self._tick, self._live = screen, tick, live
        self._what = f"of at most {format_duration(timeout)}: {printable(command)}"
        self._began = time.monotonic()
        self._due = 0.0  # when `tick` is called next
        self._next = 0 if live else _MINUTE  # seconds after which it says so next

    def __call__(self) -> float:
        now = time.monotonic()
        if now >= self._due:
            self._due = now + self._tick()
        ran = int(now - self._began)
        if ran >= self._next:
            words = f"checking for {format_duration(ran)} {self._what}"
            if self._live:
                put(2, "\r\x1b[K" + words[: terminal_width(2) - 1])
            else:
                self._screen.note(words)
            self._next = ran + 1 if self._live else ran - ran % _MINUTE + _MINUTE
        return min(self._due, self._began + self._next) - now

    def end(self) -> None:
        if self._live:
            put(2, "\r\x1b[K")


class Checks:
    """The checks of one landing. The same files are checked once."""

    def __init__(self, call: Call, trunk: Trunk, added: list[str], turn: Turn) -> None:
        self._call = call
        self._trunk = trunk
        self._added = added
        self.tick = turn.tick  # called while a check runs
        self._scratch = Scratch(call.ctx)
        self._known: dict[tuple[str, tuple[str, ...]], list[Row] | CheckFailed] = {}  # by the files and the commands

    def __enter__(self) -> Checks:
        return self

    def __exit__(self, *_: object) -> None:
        self._scratch.__exit__()

    def run(self, old: str, commit: str) -> list[Row]:
        """Run all checks on this commit, with the guarded files of `old`, the tip of trunk; CheckFailed at the first that fails."""
        rules = self._trunk.rules(old)  # trunk may have other checks than when this command began
        require_few(rules, self._added)
        commands = (*rules.checks, *self._added)
        if not commands:
            return []
        env = self._call.ctx.repo.env
        guarded = [rev_parse(env, f"{old}:{path.rstrip('/')}").text for path in rules.guarded]
        key = " ".join([tree_of(env, commit), *guarded]), commands
        if key not in self._known:
            try:
                self._known[key] = self._run_all(old, commit, rules, commands)
            except CheckFailed as error:
                self._known[key] = error
        known = self._known[key]
        if isinstance(known, CheckFailed):
            raise known
        return known

    def _run_all(self, old: str, commit: str, rules: Rules, commands: Iterable[str]) -> list[Row]:
        from gitcoord.sessions.cli_supervisor import become_subreaper

        become_subreaper()
        place = self._scratch.fill(commit)
        changed = self._scratch.take_from(old, commit, rules.guarded)
        if changed:
            self._call.screen.note(f"checked with trunk's {printable(', '.join(changed[:5]))} ([land] guarded)")
        return [self._run(command, place, commit, rules.timeout) for command in commands]

    def _run(self, command: str, place: str, commit: str, timeout: int) -> Row:
        self._call.screen.note(f"checking {commit[:12]}: {printable(command)}")
        began = time.monotonic()
        env, screen = check_environ(self._call.environ, self._scratch), self._call.screen
        live = isatty(2) and not (screen.quiet or screen.json)
        running = Running(screen, command, timeout, self.tick, live=live)
        try:
            code, output = run_check(command, place, env, timeout, running)
        finally:
            running.end()
        seconds = int(time.monotonic() - began)
        if code == 0:
            return {"command": command, "code": 0, "seconds": seconds}
        file = self._keep(commit, output)
        how = f"ended with {code}" if code is not None else f"took longer than {format_duration(timeout)}"
        lines = output.decode("utf-8", "replace").rstrip().split("\n")[-_SHOWN:]
        self._call.screen.note(*(f"  {printable(line)}" for line in lines if line.strip()))
        raise CheckFailed(
            f"the check {how} ({printable(command)}): nothing has landed",
            hints=(f"its output: {file}", "correct it, commit, and land again; others may land meanwhile"),
            data={"command": command, "exit_code": code, "seconds": seconds, "output": file, "commit": commit},
        )

    def _keep(self, commit: str, output: bytes) -> str:
        """Keep the output of a failed check; gives its file. The oldest ones go."""
        ctx = self._call.ctx
        from gitcoord.git.locate import resolve

        file = resolve(ctx.scratch(f"landing/output/{ctx.host.wall()}-{commit[:12]}.txt"), last=True)
        write_file(file, output)
        directory = file.rpartition("/")[0]
        for name in sorted(list_files(directory))[:-_KEPT]:
            remove_file(f"{directory}/{name}")
        return file


def require_few(rules: Rules, added: list[str]) -> None:
    """UsageError where `--check` adds more checks than a landing has room for: none is left out."""
    room = MAX_CHECKS - len(rules.checks)
    if len(added) > room:
        raise UsageError(
            f"a landing has at most {MAX_CHECKS} checks: trunk's policy has {len(rules.checks)}, --check adds {len(added)}",
            hints=("give --check one command that runs them all",) if room else ("land without --check",),
        )


def check_environ(environ: Environ, scratch: Scratch) -> dict[bytes, bytes]:
    """The environment of a check: without gitcoord's identity, git's variables, keys and agent sockets, and without what shows an agent
    tool."""
    tools = {name for tool in TOOLS for name in (*tool.markers, *tool.ids)}
    kept = {name: value for name, value in environ.items() if name not in tools and not name.startswith(_SECRET)}
    return {**kept, b"GNUPGHOME": scratch.gpg_home.encode("utf-8", "surrogateescape")}

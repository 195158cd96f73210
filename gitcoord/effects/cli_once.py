"""`git coord once`: an outside effect, at most once over all agents."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from gitcoord.base.errors import GitcoordError, TimedOut, UsageError
from gitcoord.base.names import LEDGER, printable
from gitcoord.claims.cli_sleep import Bell
from gitcoord.effects.events.done import NOT_STARTED
from gitcoord.effects.once import MOST_CODE, check_key
from gitcoord.effects.service import Runner, forget, listing
from gitcoord.sessions.cli_supervisor import Supervisor, block_signals
from gitcoord.terminal.call import Call, duration
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import ago

_LOOK = 15.0  # the death of a runner sends no notification
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def once(call: Call, values: Values, words: list[str]) -> int:
    if values.get("list"):
        return _list(call)
    key, command = "".join(words[:1]), words[1:]
    check_key(key)
    if values.get("forget"):
        return _forget(call, key, str(values.get("reason", "")))
    if not command:
        raise UsageError("there is no command", hints=(f"git coord once {printable(key)} -- <command>...",))
    return _once(call, key, command, duration(values, "wait"))


def _once(call: Call, key: str, command: list[str], wait: int) -> int:
    actor = call.actor()
    runner = Runner(call.ctx, actor, key)
    block_signals()  # from the record of its beginning to that of its end nothing ends this quietly
    try:
        row = _begin(call, runner, wait)
        if not row["begun"]:
            return _say_outcome(call, row)
        try:
            supervisor = Supervisor(call, actor._replace(session=int(row["session"])))
            supervisor.start(command, {**os.environ, "GITCOORD_ONCE_KEY": key}, to_stderr=call.screen.json)
        except (GitcoordError, OSError):
            runner.end(NOT_STARTED)  # nothing happened: the key is free again
            raise
        code = min(supervisor.watch(), MOST_CODE)
        try:
            result = runner.end(code)
        except GitcoordError as error:
            call.screen.note(f"error: that it ended with {code} is not on record: {printable(error.message)}")
            call.screen.answer({**row, "recorded": False, "code": code}, ok=False)
            return code or error.exit_code
        return _say_outcome(call, {**result, "begun": True})
    finally:
        runner.unlock()


def _begin(call: Call, runner: Runner, wait: int) -> dict[str, Any]:
    """Begin, or wait for the outcome of another runner."""
    bell = Bell(f"{call.ctx.repo.common_dir}/{LEDGER.rpartition('/')[0]}")
    end, noted = time.monotonic() + wait, False
    try:
        while True:
            try:
                return runner.begin()
            except TimedOut as late:
                left = end - time.monotonic()
                if left <= 0:
                    raise
                if not noted:
                    call.screen.note(f"waiting: {printable(late.message)}")
                noted = True
                if bell.wait(min(left, _LOOK), *_STOPPING)[0] in _STOPPING:
                    raise KeyboardInterrupt from None
    finally:
        bell.close()


def _say_outcome(call: Call, row: dict[str, Any]) -> int:
    """The outcome, also of a run that was another's; its exit code is ours."""
    code = int(row["code"])
    call.screen.answer(row, ok=not code)
    if not row["begun"]:
        when = f"{ago(row['ended'])} (event {row['token']})"
        call.screen.note(f"{row['agent']} ran '{row['key']}' {when}, with exit code {code}: it is not run again")
    return code


def _forget(call: Call, key: str, reason: str) -> int:
    result = forget(call.ctx, call.actor(), key, reason)
    call.screen.answer(result)
    call.screen.say(f"'{key}' may be run again")
    return 0


def _list(call: Call) -> int:
    result = call.show(lambda: listing(call.ctx), effects=[])
    if result is None:
        return 0
    rows = [[row["key"], row["agent"], ago(row["at"]), _outcome(row)] for row in result["effects"]]
    call.screen.say(*call.screen.table(rows, ["bold", "cyan", "dim", "yellow"]))
    return 0


def _outcome(row: dict[str, Any]) -> str:
    words = {"running": "under way", "unknown": "outcome unknown"}
    return words.get(row["state"], f"exit code {row['code']}")

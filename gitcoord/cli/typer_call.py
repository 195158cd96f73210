"""What every command of the full command line shares: opening, errors, exit codes, typer without surprises."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from gitcoord.base.codec import dumps
from gitcoord.base.names import printable
from gitcoord.terminal.call import Call
from gitcoord.terminal.screen import Screen, guarded
from gitcoord.world.open import environ, open_repository

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]


def new_app(name: str, help: str) -> typer.Typer:
    """Plain help, no completion options in it (install.sh installs completion), -h as well as --help."""
    return typer.Typer(
        name=name,
        help=help,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def run_app(app: typer.Typer, name: str, words: list[str]) -> int:
    """Run a typer app with git's exit codes: 2 for wrong words, 130 for Ctrl-C."""
    command = typer.main.get_command(app)
    try:
        result = command.main(words or ["--help"], prog_name=f"git {name}", standalone_mode=False)
    except typer.TyperException as error:
        at = getattr(error, "ctx", None)  # the command whose words were wrong, where it got that far
        message, hint = error.format_message(), f"{at.command_path if at else f'git {name}'} -h"
        if "--json" in words:
            print(dumps({"ok": False, "error": "usage", "message": message, "hints": [hint]}))
        else:
            print(f"error: {printable(message)}\nhint: {hint}", file=sys.stderr)
        return 2
    except (typer.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return 130
    except typer.Exit as error:
        return int(error.exit_code)
    return result if isinstance(result, int) else 0


def act(
    body: Callable[[Call], int], *, json: bool, quiet: bool = False, writing: bool = True, stays: bool = False
) -> int:
    """Open the repository, run one use case, tell its errors. `stays`: it lives long."""
    env = environ()
    screen = Screen(env, json=json, quiet=quiet)

    def opened() -> int:
        ctx = open_repository(env, writing=writing, stays=stays)
        screen.use_settings(ctx.settings)
        if not json:
            ctx.listen(screen.note)
        try:
            return body(Call(ctx, screen, env))
        finally:
            ctx.store.close()

    return guarded(screen, opened)


def not_set_up(call: Call, result: dict[str, object]) -> bool:
    if result["initialised"]:
        return False
    call.screen.note("note: gitcoord is not set up in this repository")
    return True

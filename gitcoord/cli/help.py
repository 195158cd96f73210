"""The full command line, made from the table: typer's help, its words for mistakes, its suggestions."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from keyword import iskeyword
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from gitcoord.base.codec import dumps
from gitcoord.base.names import printable
from gitcoord.cli.meant import meant
from gitcoord.cli.table import claim, coord, expand, handoff, table_of
from gitcoord.terminal.parser import Option, Values, Verb, labels

_ID = re.compile("[a-z][0-9]+")  # of a task or handoff
CallVerb = Callable[[Verb, Values, list[str]], int]

_HELP = {"claim": claim.HELP, "coord": coord.HELP, "handoff": handoff.HELP}


def main(command: str, argv: list[str], call_verb: CallVerb) -> int:
    """Help and usage errors, with git's exit codes: 2 for a usage error, 130 for Ctrl-C. `call_verb` runs a row."""
    words = expand(command, argv) if argv else ["--help"]
    try:
        result = full_command(command, words[0], call_verb).main(
            words, prog_name=f"git {command}", standalone_mode=False
        )
    except typer.TyperException as error:
        at = getattr(error, "ctx", None)  # the command whose words were wrong, where it got that far
        message, name = error.format_message(), at.command_path if at else f"git {command} {_row_of(command, words)}"
        hints = [*_meant(command, argv, words), f"{name.strip()} -h"]
        if "--json" in words:
            print(dumps({"ok": False, "error": "usage", "message": message, "hints": hints}))
        else:
            print(
                f"error: {printable(message)}",
                *(f"hint: {printable(line)}" for line in hints),
                sep="\n",
                file=sys.stderr,
            )
        return 2
    except (typer.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return 130
    except typer.Exit as error:
        return int(error.exit_code)
    return result if isinstance(result, int) else 0


def _row_of(command: str, words: list[str]) -> str:
    """The verb that the words begin with; '' for none."""
    names = (" ".join(words[:count]) for count in (3, 2, 1))
    return next((name for name in names if name in table_of(command)), "")


def _meant(command: str, argv: list[str], words: list[str]) -> list[str]:
    """The command that was meant: a verb written as an option, an id without its verb, a verb of another command."""
    line = ""
    if argv and argv[0].startswith("--"):
        line = meant(argv[0][2:], [word for word in argv[1:] if word != "--json"], exact=True)
    for at in range(min(2, len(words))):
        if _ID.fullmatch(words[at]) and " ".join([*words[:at], "show"]) in table_of(command):
            line = f"git {' '.join([command, *words[:at], 'show', words[at]])}"
    return [line] if line else _of_another_command(command, words)


def _of_another_command(command: str, words: list[str]) -> list[str]:
    """The command that was meant, where the first word is a verb of another one."""
    if any(name.split()[0] == words[0] for name in table_of(command)):
        return []
    line = meant(words[0], [word for word in words[1:] if word != "--json"], exact=True)
    return [line] if line else []


class Group(TyperGroup):
    """Lists its commands with their whole help; those of `git coord` under headings, in the table's order."""

    headings: dict[str, str] = {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        for heading, names in (self.headings or {"Commands": " ".join(self.commands)}).items():
            rows = [(name.ljust(width), self.commands[name].help) for name in names.split() if name in self.commands]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class Row(TyperCommand):
    """Shows its words as the table has them."""

    words = ""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", *self.words.split()]


def full_command(command: str, only: str, call_verb: CallVerb) -> Any:
    """The whole command line, or, to be quick, no more of it than the verb or group called `only`, if there is one."""
    table = table_of(command)
    firsts = dict.fromkeys(name.split()[0] for name in table)
    wanted = {name: verb for name, verb in table.items() if only not in firsts or name.split()[0] == only}
    more = f"'git {command} <command> -h' shows its options and an example; 'git {command} --version' the version."
    apps = {"": _new_app(command, _HELP[command], epilog=more)}
    for name, verb in wanted.items():
        group, _, own = name.rpartition(" ")
        _group(apps, group).command(
            own,
            cls=type("Row", (Row,), {"words": verb.words}),
            context_settings=_LAUNCHES if verb.words.startswith("-- COMMAND") else None,
            epilog=f"\b\nExample:\n  git {command} {verb.example or name}",
        )(_function(verb, call_verb))
    made: Any = typer.main.get_command(apps[""])
    made.headings = coord.HEADINGS if command == "coord" else {}
    return made


# A verb that launches a command takes no option after the command's name.
_LAUNCHES = {"allow_interspersed_args": False, "ignore_unknown_options": True}


def _new_app(name: str, help: str, **more: Any) -> typer.Typer:
    """Plain help, no completion options in it (install.sh installs completion), -h as well as --help."""
    app = typer.Typer(
        name=name,
        help=help,
        cls=Group,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **more,
    )
    app.callback()(lambda: None)  # a group, also with one command
    return app


def _group(apps: dict[str, typer.Typer], name: str) -> typer.Typer:
    """The app of a group of verbs, made within the one above it."""
    if name not in apps:
        above, _, own = name.rpartition(" ")
        apps[name] = _new_app(own, coord.GROUPS[name])
        _group(apps, above).add_typer(apps[name], name=own, help=coord.GROUPS[name])
    return apps[name]


def _function(verb: Verb, call_verb: CallVerb) -> Callable[..., int]:
    """The function that typer calls, with a parameter for each option and each word of the row."""
    wanted = labels(verb.words)

    def function(**given: Any) -> int:
        words: list[str] = []
        for number in range(len(wanted)):
            found = given.pop(f"word{number}")
            words += [found] if isinstance(found, str) else found or []
        values = {
            key.rstrip("_").replace("_", "-"): value for key, value in given.items() if value not in (None, False, [])
        }
        missing = [option.name for option in verb.options if option.required and option.name not in values]
        if missing:
            raise typer.BadParameter(f"'--{missing[0]}' is missing")
        return call_verb(verb, values, words)

    parameters = [_option(option) for option in verb.options]
    parameters += [_word(number, label) for number, label in enumerate(wanted)]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__doc__ = verb.help
    return function


def _option(option: Option) -> inspect.Parameter:
    flags = [f"--{name}" for name in (option.name, option.also) if name]
    flags += [f"-{option.short}"] if option.short else []
    kind: Any = str
    default: Any = None
    extra: dict[str, Any] = {"help": option.help}
    if option.kind == "flag":
        kind, default = bool, False
    elif "|" in option.kind:
        kind = Literal[tuple(option.kind.split("|"))]
    else:
        extra["metavar"] = label_of(option)
        kind = list[str] if option.kind == "texts" else str
    if option.required and option.kind != "flag":
        default = inspect.Parameter.empty
    name = option.name.replace("-", "_")
    return _parameter(name + "_" * iskeyword(name), kind, typer.Option(*flags, **extra), default)


def label_of(option: Option) -> str:
    """The name of an option's value in the help."""
    return option.label or option.kind.removesuffix("s").upper()


def _word(number: int, label: str) -> inspect.Parameter:
    kind: Any = list[str] if "..." in label else str
    default = None if label.startswith("[") else inspect.Parameter.empty
    return _parameter(f"word{number}", kind, typer.Argument(metavar=label.strip("[]"), hidden=True), default)


def _parameter(name: str, kind: Any, info: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])

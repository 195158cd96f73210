"""Commands of the full command line made from a table of verbs: the same words as the quick parser's, with typer's help."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from keyword import iskeyword
from typing import Annotated, Any, Literal

import typer

from gitcoord.cli.entry import call_verb
from gitcoord.cli.typer_call import new_app
from gitcoord.terminal.parser import Option, Verb


def _parameter(option: Option) -> inspect.Parameter:
    flags = [f"--{option.name}", *([f"-{option.short}"] if option.short else [])]
    if option.kind == "flag":
        kind: Any = bool
        default: Any = False
    elif option.kind == "texts":
        kind, default = list[str], None
    else:
        kind = Literal[tuple(option.kind.split("|"))] if "|" in option.kind else str
        default = None
    extra: dict[str, Any] = {"help": option.help}
    if option.kind != "flag" and "|" not in option.kind:
        extra["metavar"] = option.kind.removesuffix("s").upper()
    if option.required:
        default = inspect.Parameter.empty
        if option.kind == "flag":
            default = False
    annotation = Annotated[kind, typer.Option(*flags, **extra)]
    return inspect.Parameter(
        _as_python(option.name), inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _as_python(name: str) -> str:
    name = name.replace("-", "_")
    return name + "_" * iskeyword(name)


def _command(name: str, verb: Verb) -> Callable[..., int]:
    def command(**given: Any) -> int:
        words = given.pop("words", None) or []
        words = [words] if isinstance(words, str) else list(words)
        values = {
            key.rstrip("_").replace("_", "-"): value for key, value in given.items() if value not in (None, False, [])
        }
        missing = [o.name for o in verb.options if o.required and o.kind == "flag" and o.name not in values]
        if missing:
            raise typer.BadParameter(f"'--{missing[0]}' is missing")
        return call_verb(name, verb, values, words)

    parameters = [_parameter(option) for option in verb.options]
    if verb.paths != "none":
        kind: Any = str if verb.paths == "one" else list[str]
        default = None if verb.paths == "any" else inspect.Parameter.empty
        argument = Annotated[
            kind, typer.Argument(metavar=verb.label + "..." * (verb.paths != "one"), show_default=False)
        ]
        parameters.append(
            inspect.Parameter("words", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=argument)
        )
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__doc__ = verb.help
    command.__name__ = name.rpartition(" ")[2]
    return command


def add_verbs(app: typer.Typer, table: Mapping[str, Verb], groups: Mapping[str, str]) -> None:
    """Every verb of the table as a command; one of two words goes into its group."""
    made: dict[str, typer.Typer] = {}
    for name, verb in table.items():
        group, _, own = name.rpartition(" ")
        if group and group not in made:
            made[group] = new_app(group, groups[group])
            app.add_typer(made[group], name=group)
        made.get(group, app).command(own)(_command(name, verb))

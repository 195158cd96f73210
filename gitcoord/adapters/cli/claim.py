"""The full `git claim`: the same verbs and options as the quick parser, made from the same table, with typer's help."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from gitcoord.adapters.cli.shared import new_app, run_app
from gitcoord.hot.main import call_verb
from gitcoord.hot.options import VERBS, Option, Verb, arrange

HELP = """Claim paths before you change them.

git claim PATH... claims, git claim alone lists. A path called like a verb is written after '--'; @name is a resource
that is no file (a deploy target, a database, a GPU)."""


def _parameter(option: Option) -> inspect.Parameter:
    flags = [f"--{option.name}", *([f"-{option.short}"] if option.short else [])]
    if option.kind == "flag":
        kind: Any = bool
        default: Any = False
    else:
        kind = Literal[tuple(option.kind.split("|"))] if "|" in option.kind else str
        default = None
    extra: dict[str, Any] = {"help": option.help}
    if option.kind != "flag" and "|" not in option.kind:
        extra["metavar"] = option.kind.upper()
    if option.required:
        default = inspect.Parameter.empty
        if option.kind == "flag":
            default = False
    annotation = Annotated[kind, typer.Option(*flags, **extra)]
    name = option.name.replace("-", "_")
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _command(name: str, verb: Verb) -> Callable[..., int]:
    def command(**given: Any) -> int:
        words = given.pop("path", None) or []
        words = [words] if isinstance(words, str) else list(words)
        values = {key.replace("_", "-"): value for key, value in given.items() if value not in (None, False)}
        missing = [o.name for o in verb.options if o.required and o.kind == "flag" and o.name not in values]
        if missing:
            raise typer.BadParameter(f"'--{missing[0]}' is missing")
        return call_verb(name, values, words)

    parameters = [_parameter(option) for option in verb.options]
    if verb.paths != "none":
        kind: Any = str if verb.paths == "one" else list[str]
        default = None if verb.paths == "any" else inspect.Parameter.empty
        argument = Annotated[
            kind, typer.Argument(metavar="PATH" if verb.paths == "one" else "PATH...", show_default=False)
        ]
        parameters.append(
            inspect.Parameter("path", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=argument)
        )
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__doc__ = verb.help
    command.__name__ = name
    return command


app = new_app("claim", HELP)
for _name, _verb in VERBS.items():
    app.command(_name)(_command(_name, _verb))


def main(words: list[str]) -> int:
    """Like the quick parser: words that begin with no verb are a `take`, unless help is asked for."""
    words = arrange(words)
    if words and words[0] not in VERBS and words[0] not in ("-h", "--help"):
        words = ["take", *words]
    return run_app(app, "claim", words)

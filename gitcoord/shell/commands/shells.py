"""Shells and interpreters: a script given as text is followed; anything else that they run may do anything."""

from __future__ import annotations

from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import parse
from gitcoord.shell.state import Arg

_SHELLS = ("bash", "sh", "dash", "zsh", "ksh", "ash", "fish")
# `python -m <module>` that is a program of its own name.
_MODULES = {"pip": "pip", "pytest": "pytest", "unittest": "unittest", "mypy": "mypy", "ruff": "ruff", "black": "black", "isort": "isort",
            "flake8": "flake8", "pylint": "pylint", "coverage": "coverage", "pre_commit": "pre-commit", "poetry": "poetry",
            "autopep8": "autopep8", "yapf": "yapf", "pipx": "pipx", "uv": "uv", "tox": "tox", "nox": "nox"}  # fmt: skip
_QUIET_MODULES = (
    "venv", "ensurepip", "http.server", "build", "compileall", "py_compile", "timeit", "doctest", "site", "sysconfig", "platform", "this",
    "pydoc", "ast", "tokenize", "dis", "zipfile", "twine", "sphinx", "mkdocs", "uvicorn", "flask", "virtualenv", "pyflakes", "calendar",
    "idlelib", "bandit", "vulture", "pydocstyle", "notebook", "jupyter",
)  # fmt: skip
# Words of tmux and screen with which they run a command in another terminal.
_ELSEWHERE = (
    "send-keys", "send", "new", "new-session", "neww", "new-window", "split-window", "-X", "respawn-pane",
)  # fmt: skip
# An interpreter asked only about itself.
_ABOUT = ("--version", "-V", "-VV", "--help", "-h", "-v")


def perform(run: Run, call: Call) -> None:
    name = call.name
    if name in _SHELLS:
        _shell(run, call)
    elif name == "eval":
        run.text(call.args, "eval")
    elif name in ("source", "."):
        _source(run, call)
    elif name == "trap":
        if len(call.args) > 1 and call.args[0].text not in ("-", "") and not call.args[0].text.startswith("-"):
            run.text(call.args[:1], "trap")
            if call.args[0].known:
                run.last.append((call.args[0].text, call.raw))
    elif name.startswith(("python", "pypy")):
        _python(run, call)
    elif name in ("tmux", "screen"):
        if any(arg.text in _ELSEWHERE for arg in call.args):
            run.unknown(call.raw, f"{name} runs commands elsewhere")
    elif name == "crontab" and any(arg.text == "-l" for arg in call.args) or _about(call):
        return
    else:
        run.unknown(call.raw, f"{name} runs a program, which may do anything")


def _about(call: Call) -> bool:
    return len(call.args) == 1 and call.args[0].text in _ABOUT


def _shell(run: Run, call: Call) -> None:
    if _about(call):
        return
    args = [*call.args]
    is_text = is_input = False
    while args and args[0].text[:1] in ("-", "+") and len(args[0].text) > 1:
        option = args.pop(0).text
        if option == "--":
            break
        if option in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file"):
            args = args[1:]
        elif not option.startswith("--"):
            is_text = is_text or "c" in option
            is_input = is_input or "s" in option
    run.apart(lambda: _new_shell(run, call, args, is_text=is_text, is_input=is_input))


def _new_shell(run: Run, call: Call, args: list[Arg], *, is_text: bool, is_input: bool) -> None:
    run.state.functions, run.state.aliases = {}, {}
    if is_text and args:
        run.positional(args[2:])
        run.text(args[:1], call.name)
    elif args and args[0].text != "-" and not is_input:
        if any(arg.text == "-n" for arg in call.args):
            run.read(args[0], f"{call.name} -n reads it")
        else:
            run.unknown(call.raw, f"{call.name} runs a script, which may do anything")
    elif (said := call.text if call.text is not None else _fed(run, call)) is not None:
        run.positional(args if is_input else [])
        run.script(said, call.raw)
    elif call.stdin:
        run.unknown(call.raw, f"{call.name} runs what comes in, which cannot be seen")


def _fed(run: Run, call: Call) -> str | None:
    """The output of the command before in a pipe, if it is known exactly."""
    fed = run.piped_text.choices if call.stdin == "pipe" else ()
    return " ".join(fed[0]) if len(fed) == 1 else None


def _source(run: Run, call: Call) -> None:
    for arg in call.args[:1]:
        run.read(arg, f"{call.name} reads it")
        # The one script that is sourced all the time and only sets variables.
        if not (arg.known and arg.text.endswith("bin/activate")):
            run.unknown(call.raw, f"{call.name} runs a script, which may do anything")


def _python(run: Run, call: Call) -> None:
    args = [*call.args]
    while args and args[0].text.startswith("-") and len(args[0].text) > 1:
        option = args.pop(0).text
        if option in _ABOUT and not args:
            return
        if option in ("-W", "-X"):
            args = args[1:]
        elif option.endswith("m") and not option.startswith("--"):
            _module(run, call, args)
            return
        elif option.endswith("c") and not option.startswith("--"):
            break
    run.unknown(call.raw, f"{call.name} runs a program, which may do anything")


def _module(run: Run, call: Call, args: list[Arg]) -> None:
    name = args[0].text if args else ""
    if name in _MODULES:
        run.call(call._replace(name=_MODULES[name], args=args[1:]))
    elif name == "json.tool":
        files = parse(args[1:], "--indent").operands
        run.read_all(files[:1], "json.tool reads it")
        run.write_all(files[1:2], "json.tool writes it")
    elif name not in _QUIET_MODULES:
        run.unknown(call.raw, f"{call.name} -m {name} may do anything")

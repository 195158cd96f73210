"""Shells and interpreters: a script given as text is followed; anything else that they run may do anything."""

from __future__ import annotations

from gitcoord.shell.commands.table import TABLE
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import parse
from gitcoord.shell.state import Arg

MAX_NESTED = 12  # scripts that run scripts
_SHELLS = ("bash", "sh", "dash", "zsh", "ksh", "ash", "fish")
# `python -m <module>` that is a program of its own name.
_MODULES = {"pip": "pip", "pytest": "pytest", "unittest": "unittest", "mypy": "mypy", "ruff": "ruff", "black": "black", "isort": "isort",
            "flake8": "flake8", "pylint": "pylint", "coverage": "coverage", "pre_commit": "pre-commit", "poetry": "poetry",
            "lib2to3": "2to3", "pipx": "pipx", "uv": "uv", "tox": "tox", "nox": "nox"}  # fmt: skip
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
    elif name.startswith(("python", "pypy")):
        _python(run, call)
    elif name in ("tmux", "screen"):
        if any(arg.text in _ELSEWHERE for arg in call.args):
            run.unknown(call.raw, f"{name} runs commands elsewhere")
    elif name == "crontab" and any(arg.text == "-l" for arg in call.args) or _about(call):
        return
    else:
        interpreted(run, call, call.args)


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
    run.state.functions = {}
    if is_text and args:
        run.positional(args[2:])
        run.text(args[:1], call.name)
    elif args and args[0].text != "-" and not is_input:
        if any(arg.text == "-n" for arg in call.args):
            run.read(args[0], f"{call.name} -n reads it")
        else:
            script_file(run, call, args[0], args[1:])
    elif call.text is not None:
        run.positional(args if is_input else [])
        run.script(call.text, call.raw)
    elif call.stdin:
        run.unknown(call.raw, f"{call.name} runs what comes in, which cannot be seen")


def script_file(run: Run, call: Call, file: Arg, args: list[Arg]) -> None:
    """A script of the project's own is followed as it lies there."""
    paths = run.resolve(file)
    text = run.text_at(paths[0]) if len(paths) == 1 else None
    if text is None or run.depth > MAX_NESTED:
        run.unknown(call.raw, f"{call.name} runs a script, which may do anything")
        return
    run.positional(args)
    outer, run.in_script = run.in_script, run.in_script or run.is_untouched(paths[0])
    run.script(text, call.raw)
    run.in_script = outer


def _source(run: Run, call: Call) -> None:
    for arg in call.args[:1]:
        run.read(arg, f"{call.name} reads it")
        # The one script that is sourced all the time and only sets variables.
        if not (arg.known and arg.text.endswith("bin/activate")):
            script_file(run, call, arg, call.args[1:])


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
    interpreted(run, call, call.args)


# Options of interpreters that are followed by the program.
_TEXT = ("-c", "-e", "-r", "--eval", "-p", "--print", "-pe", "-Command", "-command", "eval")


def interpreted(run: Run, call: Call, args: list[Arg]) -> None:
    """A program: its text is looked at, and that of a script which the command wrote before.

    A script of the project's own has branches for more than this call; what it writes is seen afterwards.
    """
    args = [part for arg in args for part in _apart(arg)]
    texts = [(args[i + 1], args[i + 2 :]) for i, arg in enumerate(args[:-1]) if arg.text in _TEXT]
    operands = [(i, arg) for i, arg in enumerate(args) if not arg.text.startswith("-") and arg.text != "run"]
    text: str | None = None
    rest: list[Arg] = []
    if texts:
        text, rest = texts[0][0].text, texts[0][1]  # as far as it is known
    elif (
        (not operands or operands[0][1].text == "/dev/stdin" or args[operands[0][0] - 1].text == "-")
        or args[:1]
        and args[0].text == "-"
    ):
        text, rest = call.text, [arg for _, arg in operands]
    else:
        at, script = operands[0]
        paths = run.resolve(script)
        run.read(script, f"{call.name} runs it")
        text, rest = (run.contents.get(paths[0]) if len(paths) == 1 else None), args[at + 1 :]
    if text is None:
        run.unknown(call.raw, f"{call.name} runs a program, which may do anything")
        return
    from gitcoord.shell.commands.programs import program

    program(run, call, text, rest)


def _apart(arg: Arg) -> list[Arg]:
    """`--eval=text` as two words."""
    name, equals, text = arg.text.partition("=")
    return [arg._replace(text=name), arg._replace(text=text)] if equals and name in ("--eval", "--print") else [arg]


def _module(run: Run, call: Call, args: list[Arg]) -> None:
    name = args[0].text if args else ""
    tool = _MODULES.get(name, name.replace("_", "-"))
    if name in _MODULES or tool in TABLE:
        run.call(call._replace(name=tool, args=args[1:]))
    elif name in ("zipfile", "tarfile") and args[1:2] and args[1].text in ("-e", "--extract"):
        words = [*args[2:3], Arg("-d", call.raw), *(args[3:4] or [Arg(".", call.raw)])]
        run.call(call._replace(name="unzip", args=words))
    elif name == "json.tool":
        files = parse(args[1:], "--indent").operands
        run.read_all(files[:1], "json.tool reads it")
        run.write_all(files[1:2], "json.tool writes it")
    elif name not in _QUIET_MODULES:
        run.unknown(call.raw, f"{call.name} -m {name} may do anything")

"""Shell builtins (cd, variables, echo), and small programs whose output can be predicted."""

from __future__ import annotations

from gitcoord.shell import bypass
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import parse
from gitcoord.shell.paths import base_name, dir_name, join
from gitcoord.shell.state import NOT_KNOWN, Arg, Value, value_of
from gitcoord.shell.words import ansi_c


def perform(run: Run, call: Call) -> None:
    name = call.name
    if name in ("cd", "pushd", "popd"):
        {"cd": _cd, "pushd": _pushd, "popd": _popd}[name](run, call)
    elif name in ("export", "declare", "typeset", "local", "readonly"):
        _declare(run, call)
    elif name in ("kill", "pkill", "killall"):
        _kill(run, call)
    elif name in _OUTPUT:
        _output(run, call)
    else:
        handlers = {"unset": _unset, "set": _set, "shift": _shift}
        handlers.get(name, _reads_variable)(run, call)


# --- where the shell stands -------------------------------------------------------------------------------------------


def _cd(run: Run, call: Call) -> None:
    operands = parse(call.args).operands
    state = run.state
    if not operands and any(arg.text == "-" for arg in call.args):
        operands = [arg for arg in call.args if arg.text == "-"]
    if operands and operands[0].known and operands[0].text == "-":
        state.cwds, state.old = state.old, state.cwds
        return
    change_directory(run, operands[0] if operands else None)


def change_directory(run: Run, arg: Arg | None) -> None:
    """Change the current directory. If it does not exist now, the change may fail, so the old one stays possible."""
    state = run.state
    found = run.resolve(arg) if arg is not None else (run.home,) if run.home else ()
    if not all(map(run.is_dir, found)):
        state.unless_cd_failed = tuple(dict.fromkeys((*state.unless_cd_failed, *state.cwds)))
    state.old, state.cwds = state.cwds, found
    state.variables["PWD"] = value_of(*found) if found else NOT_KNOWN


def _pushd(run: Run, call: Call) -> None:
    state = run.state
    state.stack.append(state.cwds)
    operands = parse(call.args).operands
    sure = len(state.unless_cd_failed)
    if any(arg.text[:1] in ("+", "-") for arg in call.args):  # the stack itself is changed
        state.cwds, state.stack = (), [() for _ in state.stack]
    elif operands:
        change_directory(run, operands[0])
    else:
        state.cwds = ()
    if len(state.unless_cd_failed) > sure:
        state.stack = [() for _ in state.stack]  # it may not have been put there at all


def _popd(run: Run, call: Call) -> None:
    run.state.cwds = run.state.stack.pop() if run.state.stack and not call.args else ()


# --- variables -------------------------------------------------------------------------------------------------------


def _declare(run: Run, call: Call) -> None:
    """`export X=1`: assignments came as such; words that only the expansion shows are taken apart here."""
    if call.name == "export" and any(arg.text == "-n" for arg in call.args):
        for arg in call.args:
            bypass.variable(run, arg.text, "")
    if any(arg.text.startswith("-f") for arg in call.args):
        return
    run.assign(call.assigns, keep=True)
    if call.name not in ("export", "readonly") and any(
        arg.text[:1] == "-" and not {*"nuli"}.isdisjoint(arg.text) for arg in call.args
    ):
        for one in call.assigns:  # another variable's name, or a text that is changed
            run.state.variables[one.name] = NOT_KNOWN
    for arg in call.args:
        name, equals, text = arg.text.partition("=")
        if equals:
            bypass.variable(run, name, text)
            run.state.variables[name] = value_of(text) if arg.known else NOT_KNOWN


def _unset(run: Run, call: Call) -> None:
    for arg in call.args:
        if arg.text.startswith("-"):
            continue
        bypass.variable(run, arg.text, "")
        run.state.variables.pop(arg.text, None)
        run.state.functions.pop(arg.text, None)


def _set(run: Run, call: Call) -> None:
    for index, arg in enumerate(call.args):
        if arg.text == "--":
            run.positional(call.args[index + 1 :])
            return
        if arg.text[:1] in ("-", "+") and "e" in arg.text and arg.text[1:2] != "o":
            run.state.errexit = arg.text[0] == "-" and not run.state.unless_cd_failed  # behind && it may not be reached


def _shift(run: Run, call: Call) -> None:
    for name in [name for name in run.state.variables if name == "@" or name.isdigit()]:
        run.state.variables[name] = NOT_KNOWN


def _reads_variable(run: Run, call: Call) -> None:
    """read, mapfile, getopts, let: variables that get lines of the input, or what cannot be told."""
    if call.name in ("hash", "shopt", "enable"):
        run.state.globstar = run.state.globstar or [arg.text for arg in call.args] == ["-s", "globstar"]
        return
    given = parse(call.args, "-a -d -i -n -N -p -t -u" if call.name == "read" else "-d -n -O -s -u -c -C")
    names = [arg.text.partition("=")[0] for arg in [*given.values("-a"), *given.operands]]
    for name in names or ["REPLY", "MAPFILE"]:
        bypass.variable(run, name, "")
        run.state.variables[name] = Value((), run.feed.below) if len(names) == 1 else NOT_KNOWN
    text = call.text if call.text is not None else run.line
    if text is None or call.name not in ("read", "mapfile", "readarray"):
        return
    lines = [line for line in text.replace("\0", "\n").split("\n") if line]
    if call.name != "read":
        run.state.variables[names[0] if names else "MAPFILE"] = Value((tuple(lines),))
    elif given.has("-a") and lines:
        run.state.variables[names[0]] = Value((tuple(lines[0].split()),))
    elif lines and (len(names) == 1 or not any(one.name == "IFS" for one in call.assigns)):
        words = lines[0].split(None, max(len(names) - 1, 0)) if len(names) > 1 else [lines[0].strip()]
        for index, name in enumerate(names or ["REPLY"]):
            run.state.variables[name] = value_of(words[index] if index < len(words) else "")


# --- output ----------------------------------------------------------------------------------------------------------

_OUTPUT = ("printf", "echo", "pwd", "dirname", "basename", "realpath", "readlink", "which", "type")


def _output(run: Run, call: Call) -> None:
    """Set the command's output, for `$(...)`."""
    args = call.args
    if call.name == "pwd":
        run.output = value_of(*run.state.cwds) if run.state.cwds else NOT_KNOWN
        return
    if call.name == "printf":
        _printf(run, args)
        return
    if not all(arg.known for arg in args):
        return
    if call.name == "echo":
        words = [arg.text for arg in args]
        if not words or words[0] not in ("-e", "-E", "-ne", "-en"):
            run.output = value_of(" ".join(words[1:] if words[:1] == ["-n"] else words))
        return
    operands = [arg.text for arg in parse(args, "-s --suffix").operands]
    if call.name == "which" or call.name == "type":
        run.output = value_of(operands[-1]) if operands else NOT_KNOWN
    elif call.name == "dirname" and len(operands) == 1:
        run.output = value_of(dir_name(operands[0]))
    elif call.name == "basename" and operands:
        name = base_name(operands[0])
        run.output = value_of(name.removesuffix(operands[1]) if len(operands) == 2 and name != operands[1] else name)
    elif len(operands) == 1 and run.state.cwds and (call.name == "realpath" or len(args) > 1):
        run.output = value_of(*(join(cwd, operands[0]) for cwd in run.state.cwds))


def _printf(run: Run, args: list[Arg]) -> None:
    if args[:1] and args[0].text == "-v" and len(args) > 1:
        bypass.variable(run, args[1].text, "")
        run.state.variables[args[1].text] = NOT_KNOWN
        if len(args) > 3 and args[2].text == "%s" and args[3].known:
            run.state.variables[args[1].text] = value_of(args[3].text)
        return
    words = [arg.text for arg in args if arg.text != "--"]
    if not all(arg.known for arg in args) or not words:
        return
    format, rest = ansi_c(words[0].replace("'", "\\'"), 0)[0], words[1:]
    holes = format.replace("%%", "").count("%")
    if holes != format.count("%s") + format.count("%d") or not holes and rest:
        return
    parts: list[str] = []
    while rest or not parts:
        taken, rest = rest[:holes], rest[holes:]
        pieces = format.replace("%d", "%s").split("%s")
        parts += [a + b for a, b in zip(pieces, [*taken, *[""] * len(pieces)])]
    run.output = value_of("".join(parts).replace("%%", "%").rstrip("\n"))


# --- processes -------------------------------------------------------------------------------------------------------


def _kill(run: Run, call: Call) -> None:
    for arg in call.args:
        if bypass.is_gitcoord(arg.text) or bypass.is_gitcoord(arg.raw):
            run.bypass(arg.raw, f"{call.name} ends gitcoord")
        elif not arg.known and bypass.is_gitcoord(run.pipeline):
            run.bypass(run.pipeline, f"{call.name} ends gitcoord")

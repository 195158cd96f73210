"""Commands that run another one: sudo, env, timeout, xargs, npx and the like."""

from __future__ import annotations

from gitcoord.shell import bypass
from gitcoord.shell.commands.builtins import change_directory
from gitcoord.shell.commands.find import on_each
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import Given, is_assignment, parse
from gitcoord.shell.state import Arg, value_of
from gitcoord.shell.walk import MAX_NAMES

# Options with a value, and how many words stand between the options and the command.
_PLAIN = {
    "sudo": ("-u -g -h -p -C -T -r -t -U -D -R --user --group --chdir --host", 0), "doas": ("-u -C", 0), "nice": ("-n --adjustment", 0),
    "timeout": ("-s -k --signal --kill-after", 1), "gtimeout": ("-s -k --signal --kill-after", 1), "nohup": ("", 0),
    "time": ("-f -o --format --output", 0), "command": ("", 0), "builtin": ("", 0), "exec": ("-a", 0),
    "stdbuf": ("-i -o -e --input --output --error", 0), "setsid": ("", 0), "ionice": ("-c -n -p --class --classdata", 0),
    "chrt": ("-T -P -D", 1), "taskset": ("", 1), "unbuffer": ("", 0), "watch": ("-n -d --interval", 0), "chronic": ("", 0),
    "entr": ("", 0), "caffeinate": ("-t -w", 0), "npx": ("-p -c --package --call", 0), "bunx": ("", 0), "pnpx": ("", 0),
    "uvx": ("--from --with -p --python", 0), "pipx": ("--spec", 0), "coproc": ("", 0), "strace": ("-o -e -p -s -u -E -O -S -a", 0),
    "ltrace": ("-o -e -p -s -n", 0), "busybox": ("", 0), "toybox": ("", 0), "fakeroot": ("", 0), "proxychains": ("-f", 0), "rtk": ("", 0), "flock": ("-w -E --timeout", 1),
}  # fmt: skip
_WRITES = {"time": ("-o", "--output"), "strace": ("-o",), "ltrace": ("-o",)}


def perform(run: Run, call: Call) -> None:
    name = call.name
    if name in _PLAIN:
        _plain(run, call)
    elif name == "env":
        _env(run, call)
    elif name in ("xargs", "parallel"):
        _xargs(run, call)
    else:
        _as_text(run, call, "-c --command")


def _plain(run: Run, call: Call) -> None:
    valued, skipped = _PLAIN[call.name]
    given = parse(call.args, valued, mixed=False)
    if call.name == "command" and given.has("-v", "-V"):
        run.output = value_of(given.operands[0].text) if given.operands and given.operands[0].known else run.output
        return
    run.write_all(given.values(*_WRITES.get(call.name, ())), f"{call.name} writes it")
    if call.name == "sudo" and given.has("-e", "--edit"):
        run.write_all(given.operands, "sudo -e edits it")
        return
    for arg in given.values("-c", "--call") if call.name == "npx" else ():
        run.text([arg], call.name)
    words = given.operands[skipped:]
    if call.name in ("sudo", "doas"):
        words = _variables(run, words)
    if call.name == "pipx":
        words = words[1:] if words[:1] and words[0].text == "run" else []
    if call.name in ("npx", "uvx", "bunx", "pnpx") and words:
        words = [words[0]._replace(text=words[0].text.rpartition("@")[0] or words[0].text), *words[1:]]
    if call.name == "watch" and (len(words) == 1 or not given.has("-x", "--exec")):
        run.text(words, call.name)
        return
    _wrapped(run, call, words)


def _wrapped(run: Run, call: Call, words: list[Arg]) -> None:
    if call.name == "coproc" and len(words) > 1 and words[1].text == "{":
        words = words[1:]
    while words and words[0].text in ("{", "!"):  # `time { a; b; }`: the grammar takes them for words
        words = words[1:]
    if words:
        run.call(call._replace(name=words[0].text, args=words[1:]), words[0])


def _variables(run: Run, words: list[Arg]) -> list[Arg]:
    """`NAME=value` words before the command."""
    while words and is_assignment(words[0].text):
        name, _, held = words[0].text.partition("=")
        bypass.variable(run, name, held)
        words = words[1:]
    return words


def _env(run: Run, call: Call) -> None:
    given = parse(call.args, "-u -C -S --unset --chdir --split-string", mixed=False)
    for arg in given.values("-u", "--unset"):
        bypass.variable(run, arg.text, "")
    words = _variables(run, given.operands)
    bare = given.has("-i", "--ignore-environment") or words[:1] and words[0].text == "-"
    if words[:1] and words[0].text == "-":
        words = _variables(run, words[1:])
    if bare and words and words[0].text.rpartition("/")[2].startswith("git"):
        run.bypass(call.raw, "hides from git and gitcoord who acts")
    run.apart(lambda: _in_env(run, call, given, words))


def _in_env(run: Run, call: Call, given: Given, words: list[Arg]) -> None:
    for arg in given.values("-C", "--chdir"):
        change_directory(run, arg)
    for arg in given.values("-S", "--split-string"):
        run.text([arg, *words], call.name)
        words = []
    _wrapped(run, call, words)


_XARGS = "-a -d -E -I -L -n -P -s -J -R --arg-file --delimiter --eof --replace --max-lines --max-args --max-procs --max-chars"
_PARALLEL = "-j -N -n -L -a -S -C --jobs --arg-file --colsep --results --joblog --delay --timeout --retries --sshlogin"


def _xargs(run: Run, call: Call) -> None:
    """The command gets the words of the input where these are known, else files of which at most the directory is."""
    given = parse(call.args, _XARGS if call.name == "xargs" else _PARALLEL, mixed=False)
    lists = given.values("-a", "--arg-file")
    run.read_all(lists, f"{call.name} reads it")
    place = next(
        (arg.text for arg in given.values("-I", "-J", "--replace")), "{}" * (call.name == "parallel" or given.has("-i"))
    )
    words = given.operands
    listed = next((i for i, arg in enumerate(words) if arg.text in (":::", "::::", ":::+")), len(words))
    words, literal = words[:listed], words[listed + 1 :]
    if not words or call.name == "parallel" and words[0].known and " " in words[0].text and len(words) > 1:
        if call.name == "parallel":
            run.unknown(call.raw, "parallel runs commands that cannot be told")
        return
    if call.name == "parallel" and len(words) == 1 and " " in words[0].text:
        words = [Arg("sh", words[0].raw), Arg("-c", words[0].raw), words[0]]
        words[2] = words[2] if "{}" in words[2].text else words[2]._replace(text=words[2].text + " {}")
    text, below = call.text, run.feed.below
    if lists:
        paths = [path for arg in lists for path in run.resolve(arg)]
        text, below = run.text_at(paths[0]) if len(paths) == 1 else None, ()
    if text is None and not lists and call.stdin == "pipe" and not run.feed.is_patch:
        text = run.feed.choices[0][0] if run.feed.choices else None  # a part of it
    singly = (
        bool(place) or any(arg.text == "1" for arg in given.values("-n", "-L", "--max-args")) or call.name == "parallel"
    )
    by_line = bool(place) or given.has("-0", "--null", "-d", "--delimiter", "-L") or call.name == "parallel"
    names = _input_words(text, by_line=by_line) if text is not None else []
    names = [arg.text for arg in literal] if literal else names
    more = () if literal or text is not None and not below else below or ("",)
    on_each(
        run, call, words, names[:MAX_NAMES], more if len(names) <= MAX_NAMES else more or ("",), place, singly=singly
    )


def _input_words(text: str, *, by_line: bool) -> list[str]:
    lines = [line for line in text.replace("\0", "\n").split("\n") if line.strip()]
    if by_line:
        return lines
    return [word.strip("'\"") for line in lines for word in line.split()]


def _as_text(run: Run, call: Call, valued: str) -> None:
    """su, runuser, script: a command in an option."""
    given = parse(call.args, f"{valued} -s -g -G -t --shell -T")
    commands = given.values(*valued.split())
    for arg in commands:
        run.text([arg], call.name)
    if call.name == "script":
        run.write_all(given.operands[:1] or [Arg("typescript", call.name)], "script writes what it sees")
    if not commands:
        run.unknown(call.raw, f"{call.name} starts a shell")

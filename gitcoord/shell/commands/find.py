"""find, fd and ls: what they run on the files they find, and which names they print."""

from __future__ import annotations

from gitcoord.shell.glob import matches
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import parse
from gitcoord.shell.state import Arg, Value, fill

_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_FILES = ("-fprint", "-fprint0", "-fprintf", "-fls")


def perform(run: Run, call: Call) -> None:
    if call.name == "ls":
        # ls prints bare names, which the next command looks up in the current directory.
        named = parse(call.args, "-I -w -T --ignore --color --hide").operands
        listed = tuple(dict.fromkeys((*run.state.cwds, *_roots(run, named))))
        hidden = any("a" in arg.text.lower() for arg in call.args if arg.text.startswith("-"))
        run.output = Value((), listed, run.state.cwds if hidden and not named else ())
    elif call.name == "find":
        _find(run, call)
    else:
        _fd(run, call)


def _roots(run: Run, args: list[Arg]) -> tuple[str, ...]:
    found: list[str] = []
    for arg in args:
        paths = run.resolve(arg) or arg.below
        if not paths:
            return ()
        found += paths
    return tuple(dict.fromkeys(found))


def _find(run: Run, call: Call) -> None:
    args = call.args
    at = 0
    while at < len(args) and args[at].text in ("-H", "-L", "-P"):
        at += 1
    start = at
    while at < len(args) and not args[at].text.startswith(("-", "(", "!")):
        at += 1
    roots = _roots(run, args[start:at]) if at > start else run.state.cwds
    whole = _means(args[at:], roots)
    run.output = Value((), roots, whole)
    _actions(run, call, args[at:], roots, whole)


# They choose no files by name, time, size or owner.
_NEUTRAL = frozenset(
    [
        "-delete",
        "-depth",
        "-d",
        "-print",
        "-print0",
        "-xdev",
        "-mount",
        "-follow",
        "-noleaf",
        "-ls",
        "-a",
        "-and",
        "-true",
        "-daystart",
        "-ignore_readdir_race",
        "-prune",
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-fprint",
        "-fprint0",
        "-fls",
        "-fprintf",
        "-printf",
        "-mindepth",
        "-maxdepth",
        "-type",
    ]
)
_OF_NAME = ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename")
_NOT = ("!", "-not")
_GIT = (".git", "./.git", "./.git/config")


def _means(args: list[Arg], roots: tuple[str, ...]) -> tuple[str, ...]:
    """The directories of which find means everything: its roots, or git's own directory in them; () where it chooses files."""
    inside = _command_words(args)
    tests = [i for i, arg in enumerate(args) if i not in inside and (arg.text.startswith("-") or arg.text in _NOT)]
    names = []
    for index in tests:
        word, value = args[index].text, args[index + 1].text if index + 1 < len(args) else ""
        negated = index > 0 and args[index - 1].text in _NOT
        if word in _OF_NAME and not negated:
            names.append(value)
        elif word not in _NEUTRAL or (word == "-type" and not {"f", "d"} & set(value)):
            return ()
    if not all(any(matches(name, word) for word in _GIT) for name in names):
        return ()
    anything = all(matches(name, "x") or matches(name, "./x") for name in names)
    return roots if anything else tuple(f"{root}/.git" for root in roots)


def _command_words(args: list[Arg]) -> set[int]:
    """The words of the commands that find runs."""
    found: set[int] = set()
    running = False
    for index, arg in enumerate(args):
        if running:
            found.add(index)
        running = arg.text in _RUNS or (running and arg.text not in (";", "+"))
    return found


def is_deleting(word: Arg) -> bool:
    return word.known and word.text.rpartition("/")[2] in ("rm", "unlink", "shred", "srm", "trash")


def _actions(run: Run, call: Call, args: list[Arg], roots: tuple[str, ...], whole: tuple[str, ...]) -> None:
    names = run.output
    at = 0
    while at < len(args):
        word = args[at].text
        at += 1
        if word == "-delete":
            for root in whole:
                run.delete(Arg(root, call.raw), "find deletes all that lies there")
            for root in () if whole else roots or ("",):
                run.unknown("-delete", "find deletes what it finds there", root)
        elif word in _FILES and at < len(args):
            run.write(args[at], f"find {word} writes it")
        elif word in _RUNS:
            end = at
            while end < len(args) and args[end].text not in (";", "+"):
                end += 1
            if at < end and is_deleting(args[at]):
                for root in whole:
                    run.delete(Arg(root, call.raw), f"{args[at].text} deletes all that lies there")
            _on_each(run, call, args[at:end], roots)
            at = end + 1
    run.output = names


def _on_each(run: Run, call: Call, words: list[Arg], roots: tuple[str, ...]) -> None:
    """A command that is run with '{}' in the place of a file below the roots."""
    if words:
        filled = [fill(word, "{}", roots) for word in words]
        run.call(call._replace(name=filled[0].text, args=filled[1:], stdin="", text=None), filled[0])


def _fd(run: Run, call: Call) -> None:
    args = call.args
    at = next((i for i, arg in enumerate(args) if arg.text in ("-x", "-X", "--exec", "--exec-batch")), len(args))
    given = parse(
        args[:at], "-e -t -d -E -S -c -j --extension --type --max-depth --exclude --size --changed-within --color"
    )
    roots = _roots(run, given.operands[1:]) if len(given.operands) > 1 else run.state.cwds
    run.output = Value((), roots)
    words = args[at + 1 :]
    if words and not any("{" in word.text for word in words):
        words = [*words, Arg("{}", "{}")]
    _on_each(run, call, words, roots)
    run.output = Value((), roots)

"""Files below a directory, and the lines of files that a pattern finds: what find, grep, formatters and programs go through."""

from __future__ import annotations

from gitcoord.shell.glob import matches
from gitcoord.shell.state import Arg, Value, names_of
from gitcoord.startup.annotations import Callable
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.shell.effect_collector import FileSystem
    from gitcoord.shell.interpreter import Run

MAX_NAMES = 256  # beyond that the directory is told
_MAX_WALKED = 10_000
_MAX_SEARCHED = 2 << 20  # characters
_DERIVED = ("node_modules", "__pycache__", ".venv", "venv", ".tox", "target", ".mypy_cache")


class FoundFile(NamedTuple):
    name: str  # as it is spelled
    path: str
    depth: int
    is_dir: bool


class Files(NamedTuple):
    entries: list[FoundFile]
    complete: bool = True


def walk(fs: FileSystem, name: str, path: str, visit: Callable[[FoundFile], bool], most: int = _MAX_WALKED) -> Files:
    """All at or below a place, directories before what is in them. Of git's own directory only the first level.

    `visit` is called for each, and tells of a directory whether it is gone into.
    """
    found: list[FoundFile] = []
    open_ones = [FoundFile(name, path, 0, fs.is_dir(path))]
    while open_ones:
        entry = open_ones.pop()
        found.append(entry)
        if len(found) > most:
            return Files(found, complete=False)
        if not visit(entry) or not entry.is_dir or entry.depth and "/.git/" in entry.path:
            continue
        names = fs.listing(entry.path)
        if names is None:
            return Files(found, complete=False)
        for one in sorted(names, reverse=True):
            place = f"{entry.path.rstrip('/')}/{one}"
            open_ones.append(
                FoundFile(f"{entry.name.rstrip('/')}/{one}", place, entry.depth + 1, fs.kind(place) == "d")
            )
    return Files(found)


def source_files(run: Run, arg: Arg, fits: Callable[[FoundFile], bool]) -> tuple[list[Arg], bool]:
    """The files below a directory that a tool would take, hidden and derived ones left out; whether these are all."""
    found: list[Arg] = []
    complete = True
    for path in run.resolve(arg):
        files = walk(run.fs, arg.text, path, lambda entry: not entry.depth or not is_hidden(entry.name))
        complete = complete and files.complete
        found += [
            arg._replace(text=entry.name)
            for entry in files.entries
            if not entry.is_dir and not (entry.depth and is_hidden(entry.name)) and fits(entry)
        ]
    return found[:MAX_NAMES], complete and len(found) <= MAX_NAMES


def is_hidden(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last.startswith(".") and last not in (".", "..") or last in _DERIVED


def has_ending(endings: str) -> Callable[[FoundFile], bool]:
    """`endings`: '.py .pyi'; none: any file."""
    wanted = tuple(endings.split())
    return lambda entry: entry.name.endswith(wanted) if wanted else True


def searcher(pattern: str, *, fixed: bool, basic: bool, folds: bool, words: bool) -> Callable[[str], bool] | None:
    """Whether a line has the pattern; None where that is not tried."""
    if words or not fixed and any(char in "\\^$.*[]+?(){}|" for char in pattern):
        from gitcoord.shell.patterns import by_expression

        return by_expression(pattern, fixed=fixed, basic=basic, folds=folds, words=words)
    wanted = pattern.lower() if folds else pattern
    return lambda line: wanted in (line.lower() if folds else line)


def search(run: Run, names: list[Arg], has: Callable[[str], bool], *, lacking: bool) -> tuple[list[str], bool]:
    """The files of which a line has it, as they are spelled; whether all were searched."""
    found: list[str] = []
    budget = _MAX_SEARCHED
    for arg in names:
        paths = run.resolve(arg)
        text = run.text_at(paths[0]) if len(paths) == 1 else None
        if text is None or budget < 0:
            return found, False
        budget -= len(text)
        if any(map(has, text.split("\n"))) != lacking:
            found.append(arg.text)
    return found, True


def listed(run: Run, names: list[str], complete: bool, roots: tuple[str, ...]) -> Value:
    """The output of a command that prints these names."""
    whole = complete and len(names) <= MAX_NAMES
    return names_of(names[:MAX_NAMES], more=() if whole else roots or run.state.cwds)


def lines_of(value: Value) -> list[str] | None:
    """The lines of an output that is known to the letter."""
    if len(value.choices) != 1 or value.is_patch:
        return None
    text = "\n".join(value.choices[0])
    return [line for line in text.replace("\0", "\n").split("\n") if line]


def name_fits(name: str, patterns: list[str]) -> bool:
    return any(matches(pattern, name.rpartition("/")[2]) or matches(pattern, name) for pattern in patterns)

"""Collects the effects of a command while it is followed: paths are resolved, devices left out."""

from __future__ import annotations

from gitcoord.shell.effects import BUILD, BYPASS, DELETE, READ, UNKNOWN, WRITE, FileEffect
from gitcoord.shell.paths import in_git_dir, is_below_descriptor, is_device, join
from gitcoord.shell.state import Arg, ShellState
from gitcoord.startup.annotations import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from posix import stat_result
    from typing import Protocol

    class FileSystem(Protocol):
        """Questions to the file system (`parse_files.py`). Bounded: None and False where an answer would take long."""

        def listing(self, path: str) -> tuple[str, ...] | None: ...
        def look(self, path: str, *, follows: bool = False) -> stat_result | None: ...
        def kind(self, path: str) -> str: ...
        def is_dir(self, path: str) -> bool: ...
        def is_file(self, path: str) -> bool: ...
        def exists(self, path: str) -> bool: ...
        def text(self, path: str) -> str | None: ...
        def top(self, path: str) -> str: ...
        def git_names(self, cwd: str, words: list[str]) -> list[str] | None: ...
        def members(self, path: str) -> list[str] | None: ...


MAX_EFFECTS, MAX_WORD, MAX_LINKED = 1000, 200, 20
_HERE = "/proc/self/cwd/"  # where the shell stands, by another name


class TooMuch(Exception):
    """The command does more than is followed."""


class EffectCollector:
    """Effects of one command in the order in which they were met, each once."""

    def __init__(self, fs: FileSystem) -> None:
        self.fs = fs
        self.state = ShellState((), {})
        self.effects: dict[FileEffect, None] = {}
        self.gone: set[str] = set()  # what the command deletes
        self.links: dict[str, str] = {}  # links that the command makes, and where they lead

    def record(self, kind: str, path: str, word: str, detail: str) -> None:
        if len(self.effects) >= MAX_EFFECTS:
            raise TooMuch("it does too much to be followed")
        self.effects.setdefault(
            FileEffect(kind, path, word if len(word) <= MAX_WORD else word[:MAX_WORD] + "...", detail)
        )

    def write(self, arg: Arg, detail: str, kind: str = WRITE) -> None:
        if arg.known and not arg.text:
            return
        for path in self.through_links(self.resolve(arg), itself=kind == DELETE):
            if is_device(path):
                continue
            if kind == DELETE:
                self.gone.add(path)
            if in_git_dir(path):
                self.record(BYPASS, path, arg.raw, f"{detail}: git's own files are changed by hand")
            else:
                self.record(kind, path, arg.raw, detail)
        if not self.resolve(arg):
            self.unknown_write(arg, detail)

    def delete(self, arg: Arg, detail: str) -> None:
        self.write(arg, detail, DELETE)

    def write_all(self, args: Iterable[Arg], detail: str) -> None:
        """Record a write of each. '-' is the standard output."""
        for arg in args:
            if arg.text != "-":
                self.write(arg, detail)

    def read(self, arg: Arg, detail: str) -> None:
        if arg.known and not arg.text:
            return
        found = self.through_links(self.resolve(arg), itself=False) or arg.below or ("",)
        for path in found:
            if not is_device(path):
                self.record(READ, path, arg.raw, detail if path else f"{detail}: which file cannot be told")

    def read_all(self, args: Iterable[Arg], detail: str) -> None:
        """Record a read of each. '-' is the standard input."""
        for arg in args:
            if arg.text != "-":
                self.read(arg, detail)

    def unknown_write(self, arg: Arg, detail: str) -> None:
        """A change to a file whose name is not known."""
        for path in arg.below or ("",):
            self.unknown(arg.raw, f"{detail}: which file cannot be told", path)

    def unknown(self, word: str, detail: str, path: str = "") -> None:
        if path and in_git_dir(path):
            self.record(BYPASS, path, word, f"{detail}: git's own files are changed by hand")
        else:
            self.record(UNKNOWN, path, word, detail)

    def build(self, word: str, name: str) -> None:
        self.record(BUILD, "", word, f"'{name}' runs the project's own code")

    def bypass(self, word: str, detail: str) -> None:
        self.record(BYPASS, "", word, detail)

    def resolve(self, arg: Arg) -> tuple[str, ...]:
        """The absolute paths that an argument may mean; none if unknown."""
        if not arg.known or not arg.text:
            return ()
        if arg.text.startswith(_HERE):
            arg = arg._replace(text="./" + arg.text[len(_HERE) :])
        if arg.text.startswith("/"):
            return (join("/", arg.text),) if not is_below_descriptor(arg.text) else ()
        return tuple(dict.fromkeys(join(cwd, arg.text) for cwd in self.state.cwds))

    def through_links(self, paths: tuple[str, ...], *, itself: bool) -> tuple[str, ...]:
        """These paths, and their targets by links that the command made before. `itself`: the effect is on a link, not on its target."""
        if not self.links:
            return paths
        more = list(paths)
        for path in more:
            for link, end in self.links.items():
                at = path == link and not itself or path.startswith(link + "/")
                if at and len(more) < MAX_LINKED and end + path[len(link) :] not in more:
                    more.append(end + path[len(link) :])
        return tuple(more)

    def unknown_below(self, places: list[Arg], word: str, detail: str) -> None:
        """Unknown files at or below the last of these places are changed; without one, below the current directory."""
        paths = self.resolve(places[-1]) or places[-1].below if places else self.state.cwds
        for path in paths or ("",):
            self.unknown(word, detail, path)

    def unknown_worktree(self, word: str, detail: str) -> None:
        """Unknown files of the whole work tree are changed."""
        for cwd in self.state.cwds or ("",):
            self.unknown(word, detail, (self.fs.top(cwd) or cwd) if cwd else "")

    def unknown_here(self, word: str, detail: str) -> None:
        """Unknown files at or below the current directory are changed."""
        self.unknown_below([], word, detail)

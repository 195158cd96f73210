"""The changes of setup and teardown for the agent tools, file by file: planned, shown and made.

A file is read once for the plan; if it is another one when it is written, it is left alone. In a project no link is followed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from gitcoord.guard.setup import sections, settings, texts
from gitcoord.guard.setup.jsontext import Unsafe
from gitcoord.guard.setup.known import KNOWN, SKILL, Home, Known


class SetupPlace(NamedTuple):
    """The project at `top` ('' in a bare repository), or with `user` the person's own directories."""

    top: str
    environ: Mapping[str, str]
    user: bool = False


class SetupChange(NamedTuple):
    """The change of one file. `after` None removes it; with a `problem` nothing is done, `snippet` is to be added."""

    tool: str
    what: str  # hooks, plugin, skill, instructions
    file: Path
    shown: str
    before: bytes | None
    after: bytes | None
    problem: str = ""
    snippet: str = ""

    @property
    def action(self) -> str:
        if self.problem:
            return "left"
        if self.before == self.after:
            return "unchanged"
        if self.after is None:
            return "removed"
        return "written" if self.before is None else "changed"

    def row(self) -> dict[str, str]:
        row = {"tool": self.tool, "what": self.what, "file": self.shown, "action": self.action}
        return {**row, "problem": self.problem, "snippet": self.snippet} if self.problem else row


Edit = Callable[[str | None], str | None]


def in_use(place: SetupPlace) -> list[Known]:
    """The tools that the project or the person uses."""
    return [known for known in KNOWN if _marked(known, place.top) or _home(known.home, place.environ).is_dir()]


def _marked(known: Known, top: str) -> bool:
    return bool(top) and any(os.path.lexists(os.path.join(top, mark)) for mark in known.marks)


def _home(home: Home, environ: Mapping[str, str]) -> Path:
    given = environ.get(home.variable, "") if home.variable else ""
    return Path(given, home.inside) if given else Path(environ.get("HOME") or "/nowhere", home.below)


# --- what is wanted where ---------------------------------------------------------------------------------------------


def plan_setup(tools: Iterable[Known], place: SetupPlace) -> list[SetupChange]:
    return [*_changes([*tools], place, on=True)]


def plan_teardown(place: SetupPlace) -> list[SetupChange]:
    """The changes of teardown, for every known tool: it is not recorded which tools were set up."""
    gone = [change for change in _changes([*KNOWN], place, on=False) if change.before is not None]
    return [change for change in gone if change.action != "unchanged"]


def _changes(tools: list[Known], place: SetupPlace, *, on: bool) -> Iterable[SetupChange]:
    if not place.user and not place.top:
        return
    done: set[Path] = set()
    for known in tools:
        for what, base, below, edit in _wanted(known, place, on=on):
            file = Path(os.path.normpath(base / below))
            if file not in done:  # a skill is shared by several tools
                done.add(file)
                yield _change(known, what, file, place, edit)
    if not place.user:
        for tool, name in _instructions(tools, Path(place.top), on=on):
            yield _change(tool, "instructions", Path(place.top, name), place, _section(on=on))


def _wanted(known: Known, place: SetupPlace, *, on: bool) -> Iterable[tuple[str, Path, str, Edit]]:
    base = _home(known.home, place.environ) if place.user else Path(place.top)
    where = known.own_settings if place.user else known.settings
    if known.hooks:
        yield "hooks", base, where, _hooks(known, on=on)
    else:
        yield "plugin", base, where, (texts.plugin if on else _if_present(texts.remove_plugin))
    skill = known.own_skill if place.user else known.skill
    yield "skill", base, os.path.join(skill, SKILL), _section_with_front(*texts.skill(), on=on)
    for name in known.texts:
        if name.endswith(".mdc") and not place.user:
            yield "instructions", base, name, _section_with_front(*texts.rule(), on=on)


def _instructions(tools: list[Known], top: Path, *, on: bool) -> Iterable[tuple[Known, str]]:
    """The shared text files to change. One that only refers to AGENTS.md, by a link or an import, is left alone."""
    names = {name: known for known in reversed(tools) for name in known.texts if name.endswith(".md")}
    agents = {"AGENTS.md": names.pop("AGENTS.md")} if "AGENTS.md" in names else {}
    for name in [*names]:
        if on and _leads_to_agents(top / name):
            agents.setdefault("AGENTS.md", names.pop(name))
    if tools and (top / "AGENTS.md").exists():
        agents.setdefault("AGENTS.md", tools[0])
    return ((known, name) for name, known in {**agents, **dict(reversed(names.items()))}.items())


def _leads_to_agents(file: Path) -> bool:
    if file.is_symlink():
        return os.path.basename(os.readlink(file)) == "AGENTS.md"
    lines = file.read_text("utf-8", "replace").splitlines() if file.is_file() else []
    return any(line.strip() in ("@AGENTS.md", "@./AGENTS.md") for line in lines)


def _hooks(known: Known, *, on: bool) -> Edit:
    if on:
        return lambda text: settings.put(text, known)
    return _if_present(lambda text: settings.take(text, known))


def _section(*, on: bool) -> Edit:
    if on:
        return lambda text: sections.put(text, texts.section())
    return _if_present(sections.take)


def _section_with_front(front: str, body: str, *, on: bool) -> Edit:
    return (lambda text: texts.put_section(text, front, body)) if on else _if_present(texts.remove_section)


def _if_present(take: Callable[[str], str | None]) -> Edit:
    return lambda text: None if text is None else take(text)


def _change(known: Known, what: str, file: Path, place: SetupPlace, edit: Edit) -> SetupChange:
    shown = os.path.relpath(file, place.top) if not place.user else _tilde(file, place.environ)
    snippet = settings.snippet(known) if what == "hooks" else texts.section() if what == "instructions" else ""
    change = SetupChange(known.name, what, file, shown, None, None, "", snippet)
    try:
        change = change._replace(before=_read(file, None if place.user else Path(place.top)))
        text = None if change.before is None else change.before.decode("utf-8")
        after = edit(text)
    except UnicodeDecodeError:
        return change._replace(problem="it is no UTF-8")
    except (Unsafe, sections.Torn, texts.Foreign, OSError) as error:
        return change._replace(problem=error.strerror or "" if isinstance(error, OSError) else str(error))
    return change._replace(after=None if after is None else after.encode("utf-8"))


def _tilde(file: Path, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    return f"~/{file.relative_to(home)}" if home and file.is_relative_to(home) else str(file)


def _read(file: Path, top: Path | None) -> bytes | None:
    """The content; None if there is no file. Below `top`, neither it nor a directory on the way may be a link."""
    if top is not None:
        for part in (file, *file.parents):
            if part == top:
                break
            if part.is_symlink():
                raise texts.Foreign(f"{part.relative_to(top)} is a symbolic link")
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise texts.Foreign("its directory is a file") from None


# --- done -------------------------------------------------------------------------------------------------------------


def apply(changes: Iterable[SetupChange], place: SetupPlace) -> list[SetupChange]:
    """Make the changes; return them with the problems that came up."""
    return [_done(change, place) for change in changes]


def _done(change: SetupChange, place: SetupPlace) -> SetupChange:
    if change.action in ("left", "unchanged"):
        return change
    try:
        if _read(change.file, None if place.user else Path(place.top)) != change.before:
            return change._replace(problem="it changed meanwhile; run this again")
        if change.after is None:
            change.file.unlink()
            _tidy(change.file.parent, place)
        else:
            _write(change.file, change.after)
    except OSError as error:
        return change._replace(problem=error.strerror or str(error))
    return change


def _write(file: Path, data: bytes) -> None:
    """Write the file atomically, with the permissions that it had; a person's own link is followed."""
    file = Path(os.path.realpath(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.gitcoord-{os.getpid()}")
    try:
        beside.write_bytes(data)
        if file.exists():
            beside.chmod(file.stat().st_mode & 0o7777)
        os.replace(beside, file)
    finally:
        beside.unlink(missing_ok=True)


def _tidy(directory: Path, place: SetupPlace) -> None:
    """Remove directories that are empty now. A tool's own ones, below the home directory, stay."""
    stays = {_home(known.home, place.environ) for known in KNOWN} | {Path(place.environ.get("HOME") or "/")}
    while directory != Path(place.top) and directory not in stays and directory != directory.parent:
        try:
            directory.rmdir()
        except OSError:
            return
        directory = directory.parent

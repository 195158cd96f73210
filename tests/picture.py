"""`python -m tests.picture`: makes docs/session.svg, a terminal session, from what the commands really print."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from html import escape
from pathlib import Path
from typing import NamedTuple

from tests.cli.support import World
from tests.support import CLAIM, COORD, ROOT, git

FILE = ROOT / "docs/session.svg"
_LINE, _LETTER, _LEFT, _TOP = 20, 8.43, 20, 56
_COLOURS = {"1": "#ffffff", "2": "#8b949e", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff"}
_PLAIN = "#c9d1d9"


class Step(NamedTuple):
    """One command in a terminal: who types it, what, and its exit code."""

    who: str
    command: str
    code: int = 0


SESSION = (
    Step("alice", "git claim src/login.py -m 'new login form'"),
    Step("bob", "git claim src", 1),
    Step("bob", "git commit -am 'quick fix'", 1),
    Step("alice", "git commit -qam 'new login form' && git claim release src/login.py"),
    Step("bob", "git claim src/login.py -m 'quick fix'"),
    Step("bob", "git coord why src/login.py"),
)


def record() -> list[str]:
    """The lines of the session, with the colours of a terminal."""
    with tempfile.TemporaryDirectory(prefix="gitcoord-picture-") as place:
        world = _project(Path(place))
        lines: list[str] = []
        for step in SESSION:
            lines += ["", *_run(world, step)] if lines else _run(world, step)
        return lines


def _project(place: Path) -> World:
    bin = place / "bin"
    bin.mkdir()
    for name, argv in (("git-claim", CLAIM), ("git-coord", COORD)):
        command = shlex.join(argv)
        (bin / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (bin / name).chmod(0o755)
    top = place / "project"
    (top / "src").mkdir(parents=True)
    git(top, "init", "-q", "-b", "main")
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.com"), ("color.ui", "always")):
        git(top, "config", key, value)
    world = World(top, made=True)
    world.commit({"src/login.py": "old\n", ".gitattributes": "src/** gitcoord-claim\n"})
    world.init()
    world.coloured = True
    done = world.coord("install-hooks")
    assert done.code == 0, done
    return world


def _run(world: World, step: Step) -> list[str]:
    world.write("src/login.py", f"{step.who}: {step.command}\n") if "commit" in step.command else None
    env = world.environ(step.who, {})
    env["PATH"] = f"{world.top.parent}/bin:{env['PATH']}"
    done = subprocess.run(
        ["sh", "-c", step.command],
        cwd=world.top,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    text = done.stdout.decode()
    assert done.returncode == step.code, (step, text)
    if step.code and "commit" in step.command:
        git(world.top, "checkout", "-q", "--", ".")
    return [f"\x1b[36m{step.who}\x1b[m \x1b[32m$\x1b[m \x1b[1m{step.command}\x1b[m", *text.rstrip("\n").split("\n")]


def without_colours(line: str) -> str:
    return re.sub("\x1b\\[[0-9;]*[mK]", "", line)


def svg(lines: list[str]) -> str:
    width = max(760, round(2 * _LEFT + _LETTER * max(len(without_colours(line)) for line in lines)))
    height = _TOP + _LINE * len(lines) + 8
    rows = "\n".join(
        f'<text x="{_LEFT}" y="{_TOP + _LINE * number}" xml:space="preserve">{_spans(line)}</text>'
        for number, line in enumerate(lines)
        if line
    )
    dots = "".join(
        f'<circle cx="{_LEFT + 6 + 20 * n}" cy="20" r="6" fill="{colour}"/>'
        for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" fill="{_PLAIN}">\n'
        f"<title>Two agents, one file: the second is refused until the first has released its work</title>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n{dots}\n{rows}\n</svg>\n'
    )


def _spans(line: str) -> str:
    """The parts of a line, each in its colour."""
    found, colour = [], ""
    for number, part in enumerate(re.split("\x1b\\[([0-9;]*)[mK]", line)):
        if number % 2:
            colour = _COLOURS.get(part.rpartition(";")[2], "")
        elif part:
            fill = f' fill="{colour}"' if colour else ""
            found.append(f"<tspan{fill}>{escape(part, quote=False)}</tspan>")
    return "".join(found)


if __name__ == "__main__":
    FILE.write_text(svg(record()))

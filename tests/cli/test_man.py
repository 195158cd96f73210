"""The man pages say everything that the command lines understand, in git's own order, and are well-formed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer

from gitcoord import __version__
from gitcoord.cli.table import HANDOFF
from gitcoord.cli.typer_coord import make_app
from gitcoord.policy.model import KNOWN
from gitcoord.terminal.parser import VERBS, Option
from gitcoord.validators import OWN, SHIPPED

MAN = Path(__file__).parents[2] / "docs/man"
PAGES = sorted(MAN.glob("*.1"))
SECTIONS = [
    "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "OUTPUT", "EXIT STATUS", "ENVIRONMENT", "CONFIGURATION", "FILES",
    "EXAMPLES", "SEE ALSO",
]  # fmt: skip


def plain(page: str) -> str:
    """A page's text without fonts and escapes."""
    return re.sub(r"\\f[BIR]", "", (MAN / page).read_text()).replace("\\-", "-")


def section(page: str, name: str) -> str:
    return plain(page).partition(f".SH {name}\n")[2].partition("\n.SH ")[0]


def entries(page: str, name: str) -> list[str]:
    """The tagged lines of a section: what stands after `.TP`."""
    return re.findall(r"^\.TP\n(.*)$", section(page, name), re.MULTILINE)


def coord_commands() -> dict[str, set[str]]:
    """Each command of `git coord` with its options (and those of its subcommands), from the command line itself."""
    return {name: _options(command) for name, command in typer.main.get_command(make_app()).commands.items()}  # type: ignore[attr-defined]


def _options(command: Any) -> set[str]:
    shown = [option for option in command.params if not getattr(option, "hidden", False)]
    words = (word for option in shown for word in (*option.opts, *option.secondary_opts))
    below = getattr(command, "commands", {}).values()
    return {word for word in words if word[0] == "-"} | {word for inner in below for word in _options(inner)}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_git_claim_is_described(verb: str) -> None:
    assert any(entry.split()[0] == verb for entry in entries("git-claim.1", "COMMANDS"))
    synopsis = section("git-claim.1", "SYNOPSIS").replace("[", "").replace("]", "")
    assert f"git claim {verb}" in synopsis


@pytest.mark.parametrize(
    ("verb", "option"), [pytest.param(v, o, id=f"{v}-{o.name}") for v in VERBS for o in VERBS[v].options]
)
def test_every_option_of_git_claim_is_described(verb: str, option: Option) -> None:
    words = [word for entry in entries("git-claim.1", "OPTIONS") for word in re.split(r"[,\s=]+", entry)]
    assert f"--{option.name}" in words
    assert not option.short or f"-{option.short}" in words
    (usage,) = re.findall(rf"^git claim \[?{verb}\b.*(?:\n .*)*", section("git-claim.1", "SYNOPSIS"), re.MULTILINE)
    spellings = [f"--{option.name}", *([f"-{option.short}"] if option.short else [])]
    assert any(re.search(rf"{spelling}\b", usage) for spelling in spellings)


def test_nothing_is_described_that_git_claim_does_not_know() -> None:
    known = {f"--{option.name}" for verb in VERBS.values() for option in verb.options} | {"--help", "--worktree"}
    assert set(re.findall(r"--[a-z][a-z-]*", section("git-claim.1", "SYNOPSIS"))) <= known
    assert {word for e in entries("git-claim.1", "OPTIONS") for word in re.findall(r"--[a-z][a-z-]*", e)} <= known
    assert {entry.split()[0] for entry in entries("git-claim.1", "COMMANDS")} == set(VERBS)


@pytest.mark.parametrize("verb", HANDOFF)
def test_every_verb_and_option_of_git_handoff_is_described(verb: str) -> None:
    assert any(entry.split()[0] == verb for entry in entries("git-handoff.1", "COMMANDS"))
    words = [word for entry in entries("git-handoff.1", "OPTIONS") for word in re.split(r"[,\s=]+", entry)]
    (usage,) = re.findall(rf"^git handoff \[?{verb}\b.*(?:\n .*)*", section("git-handoff.1", "SYNOPSIS"), re.MULTILINE)
    for option in HANDOFF[verb].options:
        assert f"--{option.name}" in words and f"--{option.name}" in usage
        assert not option.short or f"-{option.short}" in words
    known = {f"--{option.name}" for row in HANDOFF.values() for option in row.options}
    assert {word for word in words if word.startswith("--")} == known


def test_every_command_of_git_coord_is_described() -> None:
    described = {entry.split()[0] for entry in entries("git-coord.1", "COMMANDS")}
    assert described == set(coord_commands())
    synopsis = set(re.findall(r"[\w-]+", section("git-coord.1", "SYNOPSIS")))
    assert described <= synopsis


def test_every_setting_of_the_policy_is_described() -> None:
    """All but those of resources, which git-claim(1) tells, and what is only reserved."""
    words = set(re.split(r"[,\s=]+", "\n".join(entries("git-coord.1", "CONFIGURATION"))))
    for part in ("gitcoord", "rule", "role", "agent", "deploy", "rules", "sequence"):
        middle = {"gitcoord": "", "rules": "", "deploy": "<target>."}.get(part, f"<{part}>.")
        settings = {f"{part}.{middle}{name}" for name in KNOWN[part] if name not in ("authority", "sync")}
        assert settings <= words
    for name, known in SHIPPED.items():
        shared = {"path", "on"}  # told once for all
        assert {f"validator.{name}.{setting}" for setting in known if setting not in shared} <= words
    assert {f"validator.<validator>.{setting}" for setting in (*OWN, "enabled")} <= words
    assert "gitcoord.overlay" in words
    assert "rollout.<rule>" in words
    assert set(KNOWN["rollout"]) <= set(re.findall(r"[a-z-]+", section("git-coord.1", "CONFIGURATION")))
    assert {"gitcoord-claim", "gitcoord-guard", "gitcoord-writers"} <= words


def test_every_option_of_git_coord_is_described() -> None:
    known = {option for options in coord_commands().values() for option in options}
    described = {
        word for e in entries("git-coord.1", "OPTIONS") for word in re.findall(r"(?<![\w-])--?[A-Za-z][a-z-]*", e)
    }
    assert described - {"-h", "--help"} == known - {"-h", "--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sections_stand_in_gits_order(page: Path) -> None:
    found = re.findall(r"^\.SH (.*)$", page.read_text(), re.MULTILINE)
    assert found == [name for name in SECTIONS if name in found]
    assert set(SECTIONS) - set(found) <= {"COMMANDS"}
    assert f'"gitcoord {__version__}"' in page.read_text()


def test_every_command_has_a_page() -> None:
    assert [page.name for page in PAGES] == ["git-claim.1", "git-coord.1", "git-handoff.1"]


@pytest.mark.skipif(shutil.which("man") is None, reason="no man here")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_render_without_a_warning(page: Path) -> None:
    argv = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)]
    result = subprocess.run(argv, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"})
    if "unrecognized option" in result.stderr or "illegal option" in result.stderr:
        pytest.skip("this man is not man-db")
    assert result.returncode == 0 and result.stderr == ""

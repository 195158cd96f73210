"""The man pages say what the table says, in git's own order, and are well-formed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gitcoord import __version__
from gitcoord.cli import docs
from gitcoord.cli.table import COMMANDS, table_of
from gitcoord.policy.parse import KNOWN
from gitcoord.validators import OWN, SHIPPED

MAN = Path(__file__).parents[2] / "docs/man"
PAGES = sorted(MAN.glob("*.1"))
SECTIONS = [
    "NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "OUTPUT", "EXIT STATUS", "ENVIRONMENT", "CONFIGURATION", "FILES",
    "EXAMPLES", "SEE ALSO",
]  # fmt: skip


def section(page: str, name: str) -> str:
    """A section's text without fonts and escapes."""
    plain = re.sub(r"\\f[BIR]", "", page).replace("\\-", "-")
    return plain.partition(f".SH {name}\n")[2].partition("\n.SH ")[0]


def test_every_command_has_a_page() -> None:
    assert [page.name for page in PAGES] == [f"git-{command}.1" for command in COMMANDS]


@pytest.mark.parametrize("command", COMMANDS)
def test_pages_are_made_from_the_table(command: str) -> None:
    """`python -m gitcoord.cli.docs` makes them anew."""
    page = (MAN / f"git-{command}.1").read_text()
    assert docs.man_page(command, page) == page
    usage = section(page, "SYNOPSIS").replace("[", "").replace("]", "")
    for name, verb in table_of(command).items():
        assert f"git {command} {name}" in usage and verb.help in section(page, "COMMANDS")
        for option in verb.options:
            assert f"--{option.name}" in section(page, "OPTIONS")


def test_prose_stays_with_its_entry_and_the_rest_is_made_anew() -> None:
    page = (MAN / "git-claim.1").read_text()
    changed = page.replace(table_of("claim")["take"].help, "Something else.").replace(
        "\\fBrenew\\fR [<path>...]", "\\fBrenew\\fR x"
    )
    assert changed != page and docs.man_page("claim", changed) == page
    longer = page.replace("the token stays.\n", "the token stays.\nBy hand.\n")
    assert docs.man_page("claim", longer) == longer != page


def test_every_setting_of_the_policy_is_described() -> None:
    """All but those of resources, which git-claim(1) tells, and what is only reserved."""
    configuration = section((MAN / "git-coord.1").read_text(), "CONFIGURATION")
    words = set(re.split(r"[,\s=]+", "\n".join(re.findall(r"^\.TP\n(.*)$", configuration, re.MULTILINE))))
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
    assert set(KNOWN["rollout"]) <= set(re.findall(r"[a-z-]+", configuration))
    assert {"gitcoord-claim", "gitcoord-guard", "gitcoord-writers"} <= words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sections_stand_in_gits_order(page: Path) -> None:
    found = re.findall(r"^\.SH (.*)$", page.read_text(), re.MULTILINE)
    assert found == SECTIONS
    assert f'"gitcoord {__version__}"' in page.read_text()


@pytest.mark.skipif(shutil.which("man") is None, reason="no man here")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_render_without_a_warning(page: Path) -> None:
    argv = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)]
    result = subprocess.run(argv, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"})
    if "unrecognized option" in result.stderr or "illegal option" in result.stderr:
        pytest.skip("this man is not man-db")
    assert result.returncode == 0 and result.stderr == ""

"""docs/policy.md names every setting and every attribute, and none that does not exist."""

from __future__ import annotations

import re

import pytest

from gitcoord.policy.model import ATTRIBUTES, RULES
from gitcoord.policy.parse import KNOWN
from gitcoord.validators import OWN, SHIPPED
from tests.support import ROOT

PAGE = (ROOT / "docs/policy.md").read_text()
WORDS = {word.lower() for line in PAGE.splitlines() for word in re.findall(r"`([^`]+)`", line)}


def settings_of(section: str) -> set[str]:
    """The settings in the first cells of the table below the section's heading, and in those that name the section."""
    found: set[str] = set()
    heading = ""
    for line in PAGE.lower().splitlines():
        heading = line if line.startswith("#") else heading
        first = line.split("|")[1] if line.startswith("|") else ""
        if f"[{section}]" in heading or f"[{section}]" in first or f"[{section} " in first:
            found |= {word.rpartition("] ")[2] for word in re.findall(r"`([^`]+)`", first)}
    return found


@pytest.mark.parametrize("section", [section for section in KNOWN if section not in ("rollout", "validator")])
def test_every_setting_of_the_policy_is_on_the_page(section: str) -> None:
    assert settings_of(section) == set(KNOWN[section])


def test_every_rule_and_validator_is_on_the_page() -> None:
    assert settings_of("rollout") == RULES.keys()
    for rule, purpose in RULES.items():
        assert f"| `{rule}` | {purpose} |" in PAGE
    for name, settings in {**SHIPPED, "one of the project's own": OWN}.items():
        (row,) = [
            line
            for line in PAGE.splitlines()
            if line.startswith((f"| `{name}` |", f"| {name} |")) and "purpose" not in line
        ][-1:]
        assert {f"`{setting}`" for setting in settings} <= set(re.findall("`[a-z]+`", row)), name


def test_every_attribute_is_on_the_page() -> None:
    shown = {word.partition("=")[0] for word in WORDS if word.startswith("gitcoord-")}
    assert shown == set(ATTRIBUTES)


def test_every_setting_of_a_clone_is_on_the_page() -> None:
    sources = [path.read_text() for path in (ROOT / "gitcoord").rglob("*.py")]
    read = {key for text in sources for key in re.findall(r'settings\.\w+\(\s*"(gitcoord\.[a-z]+)"', text)}
    assert len(read) > 15 and read <= WORDS, read - WORDS

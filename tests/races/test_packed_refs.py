"""A long-lived process and a packed-refs that looks unchanged.

git keeps what it read of packed-refs for as long as the file's inode, size and times (in whole seconds) stay the same.
Packed twice within a second, a file of the same size often has the first one's inode again: a `cat-file` or `update-ref`
that lives on then sees refs that are gone, and the latter even compares the expected value with them. One-shot git
processes never do. So whoever keeps git processes must not trust them for longer than one look or one swap.
"""

from __future__ import annotations

import pytest

from tests.races.history import check_ledger
from tests.races.support import Project, arena, soak

pytestmark = pytest.mark.race


def test_a_long_lived_process_sees_what_was_packed_meanwhile(project: Project) -> None:
    """The same refs are packed before and after, only their values differ. Each step takes milliseconds."""
    with arena(project, 2) as place:
        old, other = place.contenders
        assert old.ask("take", items=["q"], mode="intent")["outcome"] == "granted"
        for number in range(soak(24, 1000)):
            for path in ("y", "w"):
                assert other.ask("take", items=[path])["outcome"] == "granted"
            assert other.ask("release", items=["w"])["outcome"] == "released"
            project.git("pack-refs", "--all")
            # The old one looks and swaps, so that its git processes know this packed-refs.
            assert old.ask("take", items=["q"], mode=("write", "read")[number % 2])["outcome"] == "granted"
            assert other.ask("release", items=["y"])["outcome"] == "released"
            assert other.ask("take", items=["z"])["outcome"] == "granted"
            for _ in range(1 + number % 4):
                project.git("pack-refs", "--all")
            asked = old.ask("take", items=["z"])
            assert asked["outcome"] == "refused" and asked["held"][0][1] == other.agent, (number, asked)
            assert other.ask("release", items=["z"])["outcome"] == "released"
    problems = check_ledger(project.events(), place.rows())
    assert not problems, "\n".join(problems[:20])
    project.assert_clean()

"""handoff: whoever ends its work leaves nothing half done that nobody knows of."""

from __future__ import annotations

from gitcoord.validators import BLOCK
from gitcoord.validators.changelog import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.validators import Result, Validator


def judge(validator: Validator, held: list[str], dirty: list[str], tasks: list[str]) -> list[Result]:
    """All of it without what waits in a handoff: paths held, those with uncommitted work, and tasks in hand."""
    results = []
    if tasks:
        results.append(
            validator.said(
                BLOCK,
                f"{', '.join(tasks)} would be left without a word",
                (
                    f"hand it over: git handoff new --task {tasks[0]}",
                    f"or finish it: git coord task complete {tasks[0]}",
                ),
            )
        )
    if dirty:
        results.append(
            validator.said(
                BLOCK,
                f"uncommitted work in {named(sorted(dirty))} is in no handoff",
                ("commit it and release it: git claim release --all", "or hand it over: git handoff new"),
            )
        )
    rest = sorted(set(held) - set(dirty))
    if rest and validator.flag("release"):
        results.append(
            validator.said(
                BLOCK,
                f"{named(rest)} is still claimed, and in no handoff",
                ("release it: git claim release --all", "or hand it over: git handoff new"),
            )
        )
    return results

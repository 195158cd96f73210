"""handoff: an agent that ends its session leaves no unfinished work outside a handoff."""

from __future__ import annotations

from gitcoord.validators import BLOCK, Result, Validator
from gitcoord.validators.changelog import first_paths


def judge(validator: Validator, held: list[str], dirty: list[str], tasks: list[str]) -> list[Result]:
    """Judge what is in no handoff: held paths, paths with uncommitted work, and active tasks."""
    results = []
    if tasks:
        hints = (
            f"hand it over: git handoff new --task {tasks[0]}",
            f"or finish it: git coord task complete {tasks[0]}",
        )
        results.append(validator.result(BLOCK, f"{', '.join(tasks)} would be left without a handoff", hints))
    if dirty:
        hints = ("commit it and land it: git coord land", "or hand it over: git handoff new")
        results.append(
            validator.result(BLOCK, f"uncommitted work in {first_paths(sorted(dirty))} is in no handoff", hints)
        )
    rest = sorted(set(held) - set(dirty))
    if rest and validator.flag("release"):
        hints = ("release it: git claim release --all", "or hand it over: git handoff new")
        results.append(validator.result(BLOCK, f"{first_paths(rest)} is still claimed, and in no handoff", hints))
    return results

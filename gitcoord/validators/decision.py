"""decision: a change of certain paths comes with a decision record."""

from __future__ import annotations

from gitcoord.base.names import covers, printable
from gitcoord.startup.annotations import Iterable
from gitcoord.validators import BLOCK, Result, Validator
from gitcoord.validators.changelog import first_paths

RECORDS = "docs/adr"


def judge(validator: Validator, concerned: Iterable[str], left: Iterable[str]) -> Result | None:
    """`concerned`: the changed paths that the section names; `left`: all changed paths that exist afterwards."""
    places = [place.rstrip("/") for place in validator.every("records") or [RECORDS]]
    paths = sorted(path for path in concerned if not _below(path, places))
    if not paths or any(_below(path, places) for path in left):
        return None
    where = printable(" or ".join(places))
    message = f"{first_paths(paths)} changed, and no record below {where} came with it"
    return validator.result(BLOCK, message, (f"write down what was decided and why, below {where}",))


def _below(path: str, places: list[str]) -> bool:
    return any(covers(place, path) for place in places)

"""How work goes in this project, by the policy of trunk: what is shared, what is numbered, claimed and deployed, and how work lands."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import GitcoordError
from gitcoord.deploy.targets import targets
from gitcoord.effects.sequences import sequences
from gitcoord.landing.model import rules_of
from gitcoord.ledger.context import Context
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.policy.cache import trunk_source
from gitcoord.policy.model import LANDING, is_own_file
from gitcoord.policy.reader import Source

_CLAIM = "gitcoord-claim"


def project_facts(ctx: Context, source: Source, trunk: str) -> Record:
    """The names that an agent needs. `shared`: patterns that need a claim before a change; `landing`: only where they land."""
    pairs = source.pairs
    marks = _marks(ctx, source)
    resources = dict.fromkeys(
        key.split(".", 1)[1].rpartition(".")[0] for key, _ in pairs if key.startswith("resource.")
    )
    at_landing = rules_of(pairs).renumber
    declared = sequences(pairs).values()
    return {
        "trunk": trunk,
        "shared": [pattern for pattern, value in marks if value != LANDING],
        "landing": [pattern for pattern, value in marks if value == LANDING],
        "sequences": [
            {"name": sequence.name, "pattern": sequence.patterns[0] if sequence.patterns else ""}
            for sequence in declared
            if sequence.name not in at_landing
        ],
        "renumbered": [
            pattern for sequence in declared if sequence.name in at_landing for pattern in sequence.patterns
        ],
        "resources": [f"@{name}" for name in resources if name],
        "targets": list(targets(pairs)),
        "checks": [value for key, value in pairs if key == "land.check"],
    }


def marked_for_landing(ctx: Context) -> list[str]:
    """The patterns of paths that are claimed where they land; none where that cannot be told."""
    try:
        source = trunk_source(ctx, read_snapshot(ctx))
        return [pattern for pattern, value in _marks(ctx, source) if value == LANDING]
    except GitcoordError:
        return []


def _marks(ctx: Context, source: Source) -> list[tuple[str, str]]:
    """The patterns of trunk's attributes files that mark paths as shared, each with its value; gitcoord's own files left out."""
    files = source.attribute_files
    found = []
    for (file, _), blob in zip(files, ctx.local.read([blob for _, blob in files]) if files else []):
        above = file.rpartition("/")[0]
        for line in (blob.data if blob is not None else b"").decode("utf-8", "replace").split("\n"):
            pattern, *words = line.split() or ["#"]
            values = [word.partition("=")[2] for word in words if word.partition("=")[0] == _CLAIM]
            name = pattern.removeprefix("/")
            if values and not pattern.startswith("#") and not is_own_file(name) and not name.startswith(".gitcoord/"):
                found.append((f"{above}/{name}" if above else name, values[-1]))
    return found

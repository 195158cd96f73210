"""Runs one use case in a quick interpreter (`python -I -S driver.py <root> <verb>`): what `git coord` does, without typer.

The kill sweep needs a process with few system calls of its own, and hundreds of looks at a ledger have to cost little.
"""

from __future__ import annotations

import posix
import sys

sys.path.insert(0, sys.argv[1])

from gitcoord.base.codec import dumps
from gitcoord.base.errors import GitcoordError, NotInitialised
from gitcoord.claims.model import all_claims
from gitcoord.ledger import fsck
from gitcoord.ledger.repair import service as repair
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.setup import init
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.world.open import environ, open_repository


def run(verb: str) -> tuple[dict[str, object], int]:
    ctx = open_repository(environ(), writing=verb in ("init", "repair"))
    if verb == "init":
        return init(ctx, Actor("setup")), 0
    try:
        result = repair.repair(ctx, Actor("fsck")) if verb == "repair" else fsck.fsck(ctx)
    except NotInitialised:
        return {"initialised": False, "clean": True, "differences": [], "claims": [], "seq": 0}, 0
    if verb != "observe":
        return result, 0 if result["clean"] else 1
    claims = [claim.to_record() for claim in all_claims(read_snapshot(ctx, trusting=True).state)]
    return {**result, "initialised": True, "claims": claims}, 0


def main(verb: str) -> int:
    try:
        result, code = run(verb)
    except (GitcoordError, OSError) as error:
        hints = getattr(error, "hints", ())
        posix.write(
            2, f"error: {error}\n{''.join(f'hint: {hint}' for hint in hints)}\n".encode("utf-8", "backslashreplace")
        )
        return getattr(error, "exit_code", 4)
    posix.write(1, dumps(result).encode() + b"\n")
    return code


posix._exit(main(sys.argv[2]))

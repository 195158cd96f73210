"""Clauses that change no answer when they are disabled, each with the reason: they are there for speed."""

from __future__ import annotations

_GATE, _JUDGING = "gitcoord/app/gate.py Gate.", "gitcoord/app/judging.py Judging."

EQUAL: dict[str, str] = {
    f"{_GATE}_pushed: move.old and self._is_commit(move.old): without move.old": "git is not asked about no commit",
    f"{_GATE}_name_of: not wanted or wanted == remote: without wanted == remote": "git is not asked for the remotes' names",
    f"{_JUDGING}_validated: never not outcome.policy.validators": "most projects have none: nothing is loaded",
    f"{_JUDGING}_unfinished: always deploys": "most pushes deploy nothing: the policy is not read",
    f"{_JUDGING}_unfinished: never not policy.validators": "most projects have none: nothing is loaded",
}

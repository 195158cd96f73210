"""Clauses that change no answer when they are disabled, each with the reason: for speed, or so as not to lean on another place."""

from __future__ import annotations

_GATE, _JUDGING = "gitcoord/app/gate.py Gate.", "gitcoord/app/judging.py Judging."

_SCRATCH = "covers(key_of(state, Item('path', scratch)), key_of(state, Item('path', path)))"

EQUAL: dict[str, str] = {
    f"gitcoord/core/roles.py out_of_role: scratch and {_SCRATCH}: without scratch": "no key is above all but '.', which '' is not",
    "gitcoord/app/ancestry.py _is_telling: oid or 'refs/none': without 'refs/none'": "an empty name names nothing either",
    f"{_GATE}_accepted: always remote": "git names no remote ''",
    f"{_GATE}_pushed: move.old and self._is_commit(move.old): without move.old": "git is not asked about no commit",
    f"{_GATE}_name_of: not wanted or wanted == remote: without wanted == remote": "git is not asked for the remotes' names",
    f"{_JUDGING}_is_commit: never found is not None and found.kind == 'commit'": "what lies loose needs no git to be looked at",
    f"{_JUDGING}_validated: never not outcome.policy.validators": "most projects have none: nothing is loaded",
    f"{_JUDGING}_unfinished: always deploys": "most pushes deploy nothing: the policy is not read",
    f"{_JUDGING}_unfinished: never not policy.validators": "most projects have none: nothing is loaded",
}

"""Judging a tool call while the ledger is missing or cannot be read: reading goes on, so that somebody can look, and nothing is written."""

from __future__ import annotations

from gitcoord.base.codec import NewerVersion
from gitcoord.base.errors import CouldNotJudge, GitcoordError, LockHeld, StoreError, Unreachable
from gitcoord.base.names import ROOT
from gitcoord.git.files import is_directory
from gitcoord.git.locate import Place
from gitcoord.guard.effects import FileEffects, absolute
from gitcoord.guard.findings import Finding
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.policy.model import DENY, Guard
from gitcoord.policy.reader import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.guard.hook import Invocation

READING_GOES_ON = "reading goes on; look at it: git coord fsck"
_HINTS = ("until it is repaired nothing is written here: ask a person to run: git coord fsck --repair", READING_GOES_ON)


def read_findings(invocation: Invocation, effects: FileEffects, home: Place, error: GitcoordError) -> list[Finding]:
    """The findings against a call that only reads, by the policy of HEAD. Raises `error`, with what helps, for any other call."""
    ctx = invocation.open(home.top)
    try:
        read_snapshot(ctx)
    except StoreError as broken:
        if effects.writes or effects.changed_below or effects.bypasses or effects.unknown:
            # With these nothing is broken, and their own hints help.
            passing = isinstance(broken, (LockHeld, Unreachable, NewerVersion))
            raise broken if passing else CouldNotJudge(broken.message, hints=_HINTS) from None
    else:
        raise error  # the ledger is well
    source = Source(ctx, ctx.store.target("HEAD") or "")
    if not source.says_who_reads:
        return []
    names = {place: _name(place) for place in effects.reads if place.top == home.top and not place.inner}
    policy = source.policy(dict.fromkeys(names.values()))
    return [
        Finding(DENY, "its content is not for agents", "read", place.path)
        for place, name in names.items()
        if policy.of(name).read
    ]


def guard_settings(invocation: Invocation, home: Place) -> Guard:
    """`[guard]` of HEAD's policy."""
    ctx = invocation.open(home.top)
    return Source(ctx, ctx.store.target("HEAD") or "").policy(()).guard


def _name(place: Place) -> str:
    """Attributes match files, so a directory is judged as a new file in it."""
    if not is_directory(absolute(place)):
        return place.path
    return "a-new-file" if place.path == ROOT else f"{place.path}/a-new-file"

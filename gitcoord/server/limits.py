"""Limits of one push. Each is a setting, and each refusal names it."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, refused
from gitcoord.base.names import Oid, printable
from gitcoord.git.plumbing_store import PlumbingStore
from gitcoord.ledger.context import Context
from gitcoord.startup.namedtuple import NamedTuple

_DEFAULTS = {"maxEvents": 1000, "maxHistory": 1_000_000, "maxEventBytes": 8 << 20, "maxCommits": 100_000, "wait": 30}
BEAT_BYTES = 4096


class Limits(NamedTuple):
    """`events`: in one push of the ledger, by the setting `events_key`; `size`: bytes of one event; `commits`: in one push of
    code; `wait`: seconds."""

    events: int
    events_key: str
    size: int
    commits: int
    wait: int

    def check_size(self, ctx: Context, oid: Oid, kind: str, what: str, limit: int = 0) -> None:
        """Raise Refused unless the object has this type and is small enough to be read."""
        assert isinstance(ctx.store, PlumbingStore)
        found, actual, size = ctx.store.headers([oid])[0]
        if found is None or actual != kind:
            raise refused("object", f"{what} is {f'a {actual}' if actual else 'missing'}, not a {kind}")
        if size > (limit or self.size):
            hint = () if limit else ("the server's administrator may raise gitcoord.server.maxEventBytes",)
            raise refused("limit", f"{what} has {size} bytes, more than {limit or self.size}", *hint)


def read_limits(ctx: Context, *, beginning: bool) -> Limits:
    """The limits. `beginning`: the push makes the ledger, and may bring a whole history."""
    found = {key: _number(ctx, key, default) for key, default in _DEFAULTS.items()}
    events = "maxHistory" if beginning else "maxEvents"
    return Limits(found[events], events, found["maxEventBytes"], found["maxCommits"], found["wait"])


def _number(ctx: Context, key: str, default: int) -> int:
    wish = ctx.settings.get(f"gitcoord.server.{key}".lower())
    if wish and not (wish.isascii() and wish.isdecimal() and len(wish) < 12):
        raise CouldNotJudge(f"gitcoord.server.{key} is no number: '{printable(wish)}'")
    return int(wish) if wish else default

"""`git coord page`: start the server, print its link, open a browser, end with a signal."""

from __future__ import annotations

from gitcoord.base.errors import UsageError, refused
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values

_LIBRARIES = ("starlette", "uvicorn", "h11", "anyio")
_HINTS = (
    "where install.sh installed gitcoord: ./install.sh --with-page",
    "where pip did: pip install 'gitcoord[page]'",
)


def page(call: Call, values: Values, words: list[str]) -> int:
    """Serve until a signal comes; a clear error where the libraries are not there."""
    try:
        from gitcoord.page.server import Wish, serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _LIBRARIES:
            raise
        raise UsageError("the page needs libraries that are not installed: starlette, uvicorn", hints=_HINTS) from None
    from gitcoord.ledger.snapshot import read_snapshot
    from gitcoord.page.security import is_loopback
    from gitcoord.terminal.call import number

    read_snapshot(call.ctx, trusting=True)  # where gitcoord is not set up, it says so now
    acts = bool(values.get("act"))
    listen = str(values.get("listen", "")) or "127.0.0.1"
    if acts:
        actor = call.person("act from a page")
        if not actor.person:
            raise refused(
                "person",
                "only a person at a terminal may act from a page",
                "ask one of them; without --act it only shows",
            )
        if not is_loopback(listen):
            raise UsageError(
                "--act and --listen do not go together: what is sent over a network is not encrypted",
                hints=("from another machine: ssh -L 8417:127.0.0.1:8417 <this one>, and git coord page --act",),
            )
    port = number(values, "port") if "port" in values else None
    if port is not None and port > 65535:
        raise UsageError("--port is more than 65535")
    return serve(call, Wish(listen, port, acts, opens=not values.get("no-open")))

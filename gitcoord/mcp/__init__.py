"""The MCP server: the everyday verbs as tools of the Model Context Protocol. Its library is an extra, `gitcoord[mcp]`."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.terminal.screen import Screen, guarded
from gitcoord.world.open import environ

_HINTS = (
    "where install.sh installed gitcoord: ./install.sh --with-mcp",
    "where pip did: pip install 'gitcoord[mcp]'",
)


def start() -> int:
    """Serve until the client closes its end; a clear error where the library is not there."""

    def body() -> int:
        try:
            from gitcoord.mcp.server import serve
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("mcp", "pydantic"):
                raise
            raise UsageError("the MCP server needs a library that is not installed: mcp", hints=_HINTS) from None
        serve()
        return 0

    return guarded(Screen(environ()), body)

"""The MCP server: the everyday verbs as tools of the Model Context Protocol. Its library is an extra, `gitcoord[mcp]`."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Values

_HINTS = (
    "where install.sh installed gitcoord: ./install.sh --with-mcp",
    "where pip did: pip install 'gitcoord[mcp]'",
)


def start(call: Call, values: Values, words: list[str]) -> int:
    """Serve until the client closes its end; a clear error where the library is not there."""
    try:
        from gitcoord.mcp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "pydantic"):
            raise
        raise UsageError("the MCP server needs a library that is not installed: mcp", hints=_HINTS) from None
    serve()
    return 0

"""Longer input: a text or a JSON value from a file or stdin, bounded."""

from __future__ import annotations

from _json import encode_basestring_ascii

from gitcoord.base.codec import MAX_BYTES, Malformed, loads
from gitcoord.base.errors import UsageError
from gitcoord.base.names import quote
from gitcoord.git.files import close, open_to_read, read
from gitcoord.git.host import isatty

_READ = 1 << 16


def read_text(name: str) -> str:
    """The text in a file, or on stdin where the name is '-'; bytes that are no UTF-8 are kept as they are."""
    return _bytes(name).decode("utf-8", "surrogateescape")


def text_from(word: str) -> str:
    """The text itself, or stdin where it is '-'."""
    return _strict("-") if word == "-" else word


def json_from(name: str) -> object:
    """The JSON value in a file, or on stdin where the name is '-'."""
    return parse_json(_strict(name), _called(name))


def parse_json(text: str, what: str) -> object:
    """The JSON value of a text. Outside strings JSON is ASCII, and inside an escape is the same."""
    plain = "".join(char if char.isascii() else encode_basestring_ascii(char)[1:-1] for char in text.strip())
    try:
        return loads(plain.encode())
    except Malformed as error:
        raise UsageError(f"{what} is not usable JSON: {error.message}") from None


def _strict(name: str) -> str:
    if name == "-" and isatty(0):
        raise UsageError("stdin is a terminal: pipe the text in")
    try:
        return _bytes(name).decode()
    except UnicodeDecodeError:
        raise UsageError(f"{_called(name)} is not UTF-8 text") from None


def _bytes(name: str) -> bytes:
    """The whole content; UsageError where it is longer than any text may be."""
    parts: list[bytes] = []
    size = 0
    try:
        fd = 0 if name == "-" else open_to_read(name)
        while size <= MAX_BYTES and (part := read(fd, _READ)):
            parts.append(part)
            size += len(part)
        if fd:
            close(fd)
    except (OSError, ValueError) as error:
        raise UsageError(f"{_called(name)} cannot be read: {getattr(error, 'strerror', error)}") from None
    if size > MAX_BYTES:
        raise UsageError(f"{_called(name)} holds more than {MAX_BYTES} bytes")
    return b"".join(parts)


def _called(name: str) -> str:
    return "stdin" if name == "-" else quote(name[:200])

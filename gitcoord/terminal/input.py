"""Longer input: a text or a JSON value from a file or stdin, bounded and read strictly."""

from __future__ import annotations

from gitcoord.base.codec import MAX_BYTES, Malformed, loads
from gitcoord.base.errors import UsageError
from gitcoord.base.names import quote
from gitcoord.git.files import close, open_to_read, read
from gitcoord.git.host import isatty

_READ = 1 << 16


def text_from(word: str) -> str:
    """The text itself, or stdin where it is '-'."""
    return _decoded(_stdin(), "stdin") if word == "-" else word


def json_from(name: str) -> object:
    """The JSON value in a file, or on stdin where the name is '-'."""
    text = _decoded(_bytes(name), name)
    try:
        return loads(_ascii(text))
    except Malformed as error:
        raise UsageError(f"{_called(name)} is not usable JSON: {error.message}") from None


def _ascii(text: str) -> bytes:
    """The same JSON without anything but ASCII: outside strings there is nothing else, and inside an escape is the same."""
    found = []
    for char in text:
        code = ord(char)
        if code < 128:
            found.append(char)
        elif code < 0x10000:
            found.append(f"\\u{code:04x}")
        else:
            code -= 0x10000
            found.append(f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}")
    return "".join(found).strip().encode()


def _bytes(name: str) -> bytes:
    if name == "-":
        return _stdin()
    try:
        fd = open_to_read(name, waits=False)
    except OSError as error:
        raise UsageError(f"{quote(name[:200])} cannot be read: {error.strerror}") from None
    try:
        return _all(fd, quote(name[:200]))
    except OSError as error:
        raise UsageError(f"{quote(name[:200])} cannot be read: {error.strerror}") from None
    finally:
        close(fd)


def _stdin() -> bytes:
    if isatty(0):
        raise UsageError("stdin is a terminal: pipe the text in")
    return _all(0, "stdin")


def _all(fd: int, what: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        part = read(fd, _READ)
        if not part:
            return b"".join(parts)
        size += len(part)
        if size > MAX_BYTES:
            raise UsageError(f"{what} holds more than {MAX_BYTES} bytes")
        parts.append(part)


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{_called(name)} is not UTF-8 text") from None


def _called(name: str) -> str:
    return "stdin" if name in ("-", "stdin") else quote(name[:200])

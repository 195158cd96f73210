"""Words taken apart: quotes, escapes, variables. What remains to be put in their place is left to `expand.py`."""

from __future__ import annotations

from gitcoord.shell.syntax import Sub, Word
from gitcoord.startup.namedtuple import NamedTuple

# DIGITS: a number that is not known, which can therefore hold no slash. RUN: a command whose output goes elsewhere.
TEXT, VAR, SUB, DIGITS, OTHER, RUN = "text", "var", "sub", "digits", "odd", "run"


class Part(NamedTuple):
    kind: str
    text: str = ""  # of a variable: its name; of an odd part: a command to run
    quoted: bool = False
    op: str = ""  # of a variable: ':-', '%', '@' (all elements), ...
    value: str = ""  # of a variable: what follows op, as it was written
    sub: Sub | None = None


_NUMBERS = "$?#!"
_OPERATORS = (":-", ":=", ":+", ":?", "##", "%%", "//", "^^", ",,", "-", "=", "+", "?", "#", "%", "/", "[", ":")
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")


def split_word(word: Word) -> list[Part]:
    return _Lexer().read(word.pieces)


def here_document(word: Word) -> list[Part]:
    """A here-document's text: as between double quotes, but these themselves are plain."""
    return _Lexer(body=True).read(word.pieces)


def _together(pieces: tuple[str | Sub, ...]) -> list[str | Sub]:
    """Texts side by side are one: the grammar cuts `$"a"` apart."""
    found: list[str | Sub] = []
    for piece in pieces:
        if found and isinstance(piece, str) and isinstance(found[-1], str):
            found[-1] += piece
        else:
            found.append(piece)
    return found


class _Lexer:
    """One pass over the pieces. A `${...}` or `$((...))` that has a command inside goes on over several pieces."""

    __slots__ = ("body", "closing", "depth", "parts", "plain", "quoted", "text")

    def __init__(self, body: bool = False) -> None:
        self.body = body
        self.quoted = body
        self.parts: list[Part] = []
        self.text: list[str] = []
        self.plain = True  # whether text is collected without quotes
        self.closing = ""  # inside a bracket that goes on over pieces: what ends it
        self.depth = 0

    def read(self, pieces: tuple[str | Sub, ...]) -> list[Part]:
        for piece in _together(pieces):
            if isinstance(piece, Sub):
                self.flush()
                self.parts.append(Part(RUN if self.closing else SUB, quoted=self.quoted, sub=piece))
            else:
                self.scan(piece)
        self.flush()
        if self.closing:
            self.parts.append(Part(OTHER, quoted=self.quoted))
        return self.parts

    def add(self, text: str, *, literal: bool) -> None:
        """Text; literal text is never a pattern, a brace or a tilde."""
        if self.text and self.plain == literal:
            self.flush()
        self.plain = not literal
        self.text.append(text)

    def flush(self) -> None:
        if self.text:
            self.parts.append(Part(TEXT, "".join(self.text), quoted=not self.plain))
            self.text = []

    def scan(self, piece: str) -> None:
        i = 0
        while i < len(piece):
            if self.closing:
                i = self.skip(piece, i)
            elif piece[i] == "\\":
                i = self.escaped(piece, i)
            elif piece[i] == '"' and not self.body:
                self.quoted = not self.quoted
                self.add("", literal=True)
                i += 1
            elif piece[i] == "'" and not self.quoted:
                end = _end(piece, "'", i + 1)
                self.add(piece[i + 1 : end], literal=True)
                i = end + 1
            elif piece[i] == "$":
                i = self.dollar(piece, i)
            elif piece[i] == "`":
                i = self.backquoted(piece, i)
            else:
                self.add(piece[i], literal=self.quoted)
                i += 1

    def escaped(self, piece: str, i: int) -> int:
        after = piece[i + 1 : i + 2]
        if after != "\n":
            keeps = self.quoted and after not in ("$", "`", '"', "\\") or not after or self.body and after == '"'
            self.add("\\" + after if keeps else after, literal=True)
        return i + 2

    def backquoted(self, piece: str, i: int) -> int:
        """A command that the parser left inside text, as it does in a here-document."""
        end = i + 1
        while end < len(piece) and piece[end] != "`":
            end += 1 + (piece[end] == "\\")
        self.flush()
        self.parts.append(Part(OTHER, piece[i + 1 : end].replace("\\`", "`"), quoted=self.quoted))
        return end + 1

    def other(self, kind: str = OTHER) -> None:
        self.flush()
        self.parts.append(Part(kind, quoted=self.quoted))

    def skip(self, piece: str, i: int) -> int:
        """Inside a bracket, up to its end."""
        opening = {"}": "{", ")": "("}[self.closing]
        if piece[i] == "\\":
            return i + 2
        if piece[i] == opening:
            self.depth += 1
        elif piece[i] == self.closing:
            self.depth -= 1
            if not self.depth:
                self.other(DIGITS if self.closing == ")" else OTHER)
                self.closing = ""
        return i + 1

    def dollar(self, piece: str, i: int) -> int:
        after = piece[i + 1 : i + 2]
        if after == "'" and not self.quoted:
            text, end = ansi_c(piece, i + 2)
            self.add(text, literal=True)
            return end
        if after == '"' and not self.quoted:
            return i + 1
        if after == "{":
            return self.braced(piece, i)
        if after == "(":  # arithmetic: a command would be a piece of its own
            self.flush()
            self.closing, self.depth = ")", 0
            return i + 1
        if after == "[":
            self.other(DIGITS)
            return _end(piece, "]", i) + 1
        if after and after in _NUMBERS:
            self.other(DIGITS)
            return i + 2
        if after in ("@", "*"):
            self.variable(Part(VAR, "@", op="@"))
            return i + 2
        end = i + 1
        while end < len(piece) and piece[end] in _NAME and (end == i + 1 or not after.isdigit()):
            end += 1
        if end == i + 1:
            self.add("$", literal=True)
        else:
            self.variable(Part(VAR, piece[i + 1 : end]))
        return end

    def variable(self, part: Part) -> None:
        self.flush()
        self.parts.append(part._replace(quoted=self.quoted))

    def braced(self, piece: str, i: int) -> int:
        """`${...}`: what is understood becomes a variable, the rest an odd part."""
        end, depth = i + 2, 1
        while end < len(piece) and depth:
            if piece[end] == "\\":
                end += 1
            depth += (piece[end : end + 1] == "{") - (piece[end : end + 1] == "}")
            end += 1
        if depth:
            self.flush()
            self.closing, self.depth = "}", depth
            return len(piece)
        part = _expansion(piece[i + 2 : end - 1])
        if "`" in piece[i:end]:
            self.backquoted(piece, piece.index("`", i))  # what it prints goes into what is not understood
        elif part is None:
            self.other()
        elif part.kind == DIGITS:
            self.other(DIGITS)
        else:
            self.variable(part)
        return end


def _expansion(inside: str) -> Part | None:
    """Parse the text between `${` and `}`; None if it is not understood."""
    if inside[:1] == "#" and len(inside) > 1:
        return Part(DIGITS)
    if inside in _NUMBERS:
        return Part(DIGITS)
    at = 0
    while at < len(inside) and inside[at] in _NAME:
        at += 1
    name, rest = inside[:at], inside[at:]
    if inside[:1] in ("@", "*"):
        name, rest = "@", inside[1:] or "[@]"
    if not name:
        return None
    if not rest:
        return Part(VAR, name)
    if rest in ("[@]", "[*]"):
        return Part(VAR, name, op="@")
    for op in _OPERATORS:
        if rest.startswith(op):
            return Part(VAR, name, op=op, value=rest[len(op) :])
    return None


def _end(text: str, char: str, start: int) -> int:
    at = text.find(char, start)
    return len(text) if at < 0 else at


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_HEX, _OCTAL = "0123456789abcdefABCDEF", "01234567"


def ansi_c(text: str, i: int) -> tuple[str, int]:
    """The inside of `$'...'` and where what follows begins."""
    out: list[str] = []
    while i < len(text) and text[i] != "'":
        if text[i] != "\\" or i + 1 == len(text):
            out.append(text[i])
            i += 1
            continue
        char = text[i + 1]
        i += 2
        if char in "xuU":
            code, i = _number(text, i, _HEX, {"x": 2, "u": 4, "U": 8}[char])
            out.append(_char(code) if code >= 0 else "\\" + char)
        elif char in _OCTAL:
            code, i = _number(text, i - 1, _OCTAL, 3)
            out.append(_char(code & 0xFF))
        elif char == "c":
            out.append(chr(ord(text[i]) & 0x1F) if i < len(text) else "")
            i += 1
        else:
            out.append(_ESCAPES.get(char, char if char in "\\'\"?" else "\\" + char))
    return "".join(out), i + 1


def _number(text: str, i: int, digits: str, most: int) -> tuple[int, int]:
    end = i
    while end < len(text) and end - i < most and text[end] in digits:
        end += 1
    return (int(text[i:end], len(digits) if len(digits) == 8 else 16) if end > i else -1), end


def _char(code: int) -> str:
    return chr(code) if 0 <= code < 0x110000 else ""

"""Cuts the text of a program into strings, names and marks, whatever its language."""

from __future__ import annotations

from gitcoord.startup.namedtuple import NamedTuple

MAX_TOKENS = 20_000
STRING, NAME, MARK, SHELL = "string", "name", "mark", "shell"


class Token(NamedTuple):
    kind: str
    text: str
    exact: bool = True  # of a string: nothing is put into it


def tokens_of(text: str, *, hashes: bool) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(text) and len(found) <= MAX_TOKENS:
        char = text[at]
        if char in "'\"`":
            prefix = found[-1].text.lower() if found and found[-1].kind == NAME else ""
            prefix = found.pop().text.lower() if prefix in ("r", "b", "f", "u", "rb", "br", "fr", "rf") else ""
            token, at = _string(text, at, prefix)
            found.append(token._replace(kind=SHELL) if char == "`" and hashes else token)
        elif text.startswith(("%w", "qw"), at) and text[at + 2 : at + 3] in tuple("[({"):
            end = min((i for i in (text.find(mark, at) for mark in "])}") if i > 0), default=len(text))
            found += [Token(STRING, word) for word in text[at + 3 : end].split()]
            at = end
        elif text.startswith("$^I", at):  # perl changes its operands in place
            found.append(Token(NAME, "inplace"))
            at += 3
        elif char.isalnum() or char in "_$@":
            end = at + 1
            while end < len(text) and (text[end].isalnum() or text[end] in "_!?"):
                end += 1
            found.append(Token(NAME, text[at:end].lstrip("$@").rstrip("!?") or char))
            at = end
        elif char == "#" and hashes and (not at or text[at - 1].isspace()) or text.startswith("//", at) and not hashes:
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif char.isspace() and char != "\n":
            at += 1
        elif text.startswith(("->", "::"), at):
            found.append(Token(MARK, "."))
            at += 2
        else:
            found.append(Token(MARK, char))
            at += 1
    return found


def _string(text: str, at: int, prefix: str) -> tuple[Token, int]:
    """A string, to its quote; one that ends with its line is a stray quote."""
    quote = text[at : at + 3] if text[at : at + 3] in ("'''", '"""') else text[at]
    start = end = at + len(quote)
    while end < len(text) and not text.startswith(quote, end):
        end += 1 + (text[end] == "\\")
    inside = text[start:end]
    filled = "${" in inside or "#{" in inside or "{" in inside and "f" in prefix
    if "r" not in prefix:
        inside = inside.replace("\\\\", "\\").replace("\\/", "/")
    return Token(STRING, inside, not filled), end + len(quote)

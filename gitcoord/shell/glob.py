"""Shell patterns: which names match, and which files a pattern means, by listings that are handed in."""

from __future__ import annotations

from gitcoord.startup.annotations import Callable

Listing = Callable[[str], "tuple[str, ...] | None"]


MAX_FOUND = 256
MAX_WALKED = 5000
ACTIVE = "*?["


def escape(text: str) -> str:
    """Text that a pattern matches as it is."""
    for char in "\\*?[":
        text = text.replace(char, "\\" + char)
    return text


def unescape(pattern: str) -> str:
    out, i = [], 0
    while i < len(pattern):
        i += pattern[i] == "\\" and i + 1 < len(pattern)
        out.append(pattern[i])
        i += 1
    return "".join(out)


def is_pattern(text: str) -> bool:
    i = 0
    while i < len(text):
        if text[i] == "\\":
            i += 1
        elif text[i] in "*?" or text[i] == "[" and "]" in text[i + 1 :]:
            return True
        i += 1
    return False


def matches(pattern: str, name: str) -> bool:
    """Return whether the whole name matches. '*' backtracks to its last place only, which bounds the time."""
    p = n = 0
    star, mark = -1, 0
    while n < len(name):
        step = _one(pattern, p, name[n]) if p < len(pattern) and pattern[p] != "*" else 0
        if step:
            p, n = p + step, n + 1
        elif p < len(pattern) and pattern[p] == "*":
            star, mark = p, n
            p += 1
        elif star >= 0:
            mark += 1
            p, n = star + 1, mark
        else:
            return False
    while p < len(pattern) and pattern[p] == "*":
        p += 1
    return p == len(pattern)


def _one(pattern: str, p: int, char: str) -> int:
    """The length of the pattern's part that matches one character of the name; 0: no match."""
    if pattern[p] == "?":
        return 1
    if pattern[p] == "\\" and p + 1 < len(pattern):
        return 2 if pattern[p + 1] == char else 0
    if pattern[p] == "[":
        end = _set_end(pattern, p)
        if end > 0:
            return end + 1 - p if _in_set(pattern[p + 1 : end], char) else 0
    return 1 if pattern[p] == char else 0


def _set_end(pattern: str, p: int) -> int:
    """The end of the set that begins at p; a ']' that stands first, or ends '[:class:', does not end it."""
    at = p + 2 + (pattern[p + 1 : p + 2] in ("!", "^"))
    while True:
        end = pattern.find("]", at)
        if end < 0 or pattern[end - 1] != ":" or pattern.find("[:", p + 1, end - 1) < 0:
            return end
        at = end + 1


_CLASSES = {
    "alpha": str.isalpha, "digit": str.isdigit, "alnum": str.isalnum, "upper": str.isupper,
    "lower": str.islower, "space": str.isspace,
}  # fmt: skip


def _in_set(inside: str, char: str) -> bool:
    if inside[:1] in ("!", "^"):
        return not _in_set(inside[1:], char)
    i = 0
    while i < len(inside):
        end = inside.find(":]", i) if inside[i : i + 2] == "[:" else -1
        if end > 0:
            if inside[i + 2 : end] in _CLASSES and _CLASSES[inside[i + 2 : end]](char):
                return True
            i = end + 2
        elif inside[i + 1 : i + 2] == "-" and i + 2 < len(inside):
            if inside[i] <= char <= inside[i + 2]:
                return True
            i += 3
        else:
            if inside[i] == char:
                return True
            i += 1
    return False


def find(pattern: str, base: str, listing: Listing, *, deep: bool = False) -> list[str] | None:
    """The files that a pattern means, as they would be spelled; None if unknown. `deep`: '**' goes through directories."""
    found = ["/"] if pattern.startswith("/") else [""]
    for part in pattern.split("/"):
        if not part:
            continue
        if not is_pattern(part):
            found = [f"{head}{unescape(part)}/" for head in found]
            continue
        more: list[str] = []
        if deep and part == "**":
            found = _all_below(found, base, listing)
            continue
        for head in found:
            names = listing(head if head.startswith("/") else f"{base}/{head}")
            if names is None and deep:
                continue
            if names is None:
                return None
            more += [
                f"{head}{name}/" for name in sorted(names) if (name[0] != "." or part[0] == ".") and matches(part, name)
            ]
            if len(more) > MAX_FOUND:
                return None
        found = more
    return [name.rstrip("/") for name in found if name]


def _all_below(heads: list[str], base: str, listing: Listing) -> list[str]:
    """These directories and all below them; files too, which have nothing below."""
    found = [*heads]
    for head in found:
        for name in sorted(listing(head if head.startswith("/") else f"{base}/{head}") or ()):
            if name[0] != "." and len(found) < MAX_WALKED:
                found.append(f"{head}{name}/")
    return found


def fixed_part(pattern: str) -> str:
    """The directory below which all that a pattern can match lies, as it is spelled: 'src/' of 'src/*.py'."""
    fixed: list[str] = []
    for part in pattern.split("/")[:-1]:
        if is_pattern(part):
            break
        fixed.append(unescape(part))
    return "/".join(fixed) + "/" if fixed else ""


def trim(value: str, pattern: str, *, front: bool, longest: bool) -> str:
    """`${x#pattern}`, `##`, `%` and `%%`."""
    ends = [*range(len(value) + 1)]
    order = ends if front != longest else ends[::-1]
    for at in order:
        if matches(pattern, value[:at] if front else value[at:]):
            return value[at:] if front else value[:at]
    return value

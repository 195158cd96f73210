"""Brace expansion: `{a,b}` and `{1..3}` in what is not quoted, before anything else is expanded."""

from __future__ import annotations

from gitcoord.shell.words import OTHER, TEXT, Part

MAX_WORDS, MAX_BRACES = 256, 64


def braces(parts: list[Part]) -> list[list[Part]]:
    """The words that a word becomes, in bash's order; too many of them: one that is not known."""
    if not any(part.kind == TEXT and not part.quoted and "{" in part.text for part in parts):
        return [parts]
    atoms: list[str | Part] = []  # one character without quotes, or a whole part
    for part in parts:
        if part.kind == TEXT and not part.quoted:
            atoms += part.text
        else:
            atoms.append(part)
    if atoms.count("{") > MAX_BRACES:
        return [[Part(OTHER)]]
    found = _expand(atoms)
    return [[Part(OTHER)]] if len(found) > MAX_WORDS else [_joined(one) for one in found]


def _joined(atoms: list[str | Part]) -> list[Part]:
    parts: list[Part] = []
    text = ""
    for atom in [*atoms, Part(TEXT)]:
        if isinstance(atom, str):
            text += atom
            continue
        if text:
            parts.append(Part(TEXT, text))
            text = ""
        parts.append(atom)
    return parts[:-1]


def _expand(atoms: list[str | Part]) -> list[list[str | Part]]:
    """Expand the first brace with a comma or a range, then the rest behind it."""
    start = 0
    while "{" in atoms[start:]:
        start = atoms.index("{", start)
        end, commas = _close(atoms, start)
        if end < 0:
            start += 1
            continue
        inside = atoms[start + 1 : end]
        choices = _range(inside) if not commas else _pieces(atoms, start, end, commas)
        if choices is None:
            start += 1
            continue
        tails = _expand(atoms[end + 1 :])
        found = [[*atoms[:start], *choice, *tail] for choice in choices for tail in tails]
        return found[: MAX_WORDS + 1]
    return [atoms]


def _close(atoms: list[str | Part], start: int) -> tuple[int, list[int]]:
    """The end of the brace at `start` (-1: it has none), and its commas."""
    depth = 0
    commas: list[int] = []
    for at in range(start, len(atoms)):
        if atoms[at] == "{":
            depth += 1
        elif atoms[at] == "}":
            depth -= 1
            if not depth:
                return at, commas
        elif atoms[at] == "," and depth == 1:
            commas.append(at)
    return -1, []


def _pieces(atoms: list[str | Part], start: int, end: int, commas: list[int]) -> list[list[str | Part]]:
    found: list[list[str | Part]] = []
    for left, right in zip([start, *commas], [*commas, end]):
        found += _expand(atoms[left + 1 : right])
    return found


def _range(inside: list[str | Part]) -> list[list[str | Part]] | None:
    """`1..3`, `a..e`, `01..10..3`."""
    text = "".join(atom if isinstance(atom, str) else "\0" for atom in inside)
    ends = text.split("..")
    if len(ends) not in (2, 3) or not all(ends):
        return None
    numbers = [_number(end) for end in ends]
    step = abs(numbers[2] or 1) if len(ends) == 3 else 1
    if len(ends) == 3 and numbers[2] is None:
        return None
    low, high = numbers[:2]
    if low is not None and high is not None:
        wide = (
            max(len(ends[0]), len(ends[1])) if ends[0].lstrip("-")[:1] == "0" or ends[1].lstrip("-")[:1] == "0" else 0
        )
        return [list(f"{n:0{wide}d}" if wide > 1 else str(n)) for n in _steps(low, high, step)]
    if len(ends[0]) == len(ends[1]) == 1 and ends[0].isalpha() and ends[1].isalpha():
        return [[chr(n)] for n in _steps(ord(ends[0]), ord(ends[1]), step)]
    return None


def _number(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("-", "+") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def _steps(low: int, high: int, step: int) -> range:
    """At most one more than may be used."""
    made = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    return made[: MAX_WORDS + 1]

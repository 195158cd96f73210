"""Brace expansion: `{a,b}` and `{1..3}` in what is not quoted, before anything else is expanded."""

from __future__ import annotations

from gitcoord.shell.words import OTHER, TEXT, Part

MAX_WORDS, MAX_BRACES = 256, 64
Atoms = list["str | Part"]  # one character without quotes, or a whole part


def braces(parts: list[Part]) -> list[list[Part]]:
    """The words that a word becomes, in bash's order; too many of them: one that is not known."""
    if not any(part.kind == TEXT and not part.quoted and "{" in part.text for part in parts):
        return [parts]
    atoms: Atoms = []
    for part in parts:
        atoms += part.text if part.kind == TEXT and not part.quoted else [part]
    found = _expand(atoms) if atoms.count("{") <= MAX_BRACES else []
    return [_joined(one) for one in found] if 0 < len(found) <= MAX_WORDS else [[Part(OTHER)]]


def _joined(atoms: Atoms) -> list[Part]:
    parts: list[Part] = []
    for atom in atoms:
        if not isinstance(atom, str):
            parts.append(atom)
        elif parts and parts[-1].kind == TEXT and not parts[-1].quoted:
            parts[-1] = Part(TEXT, parts[-1].text + atom)
        else:
            parts.append(Part(TEXT, atom))
    return parts


def _expand(atoms: Atoms) -> list[Atoms]:
    """Expand the first brace with a comma or a range, then the rest behind it."""
    for start, atom in enumerate(atoms):
        commas = _commas(atoms, start) if atom == "{" else []
        if commas:
            inside = [atoms[commas[n] + 1 : commas[n + 1]] for n in range(len(commas) - 1)]
            choices = [one for piece in inside for one in _expand(piece)] if len(inside) > 1 else _range(inside[0])
            if choices:
                tails = _expand(atoms[commas[-1] + 1 :])
                return [[*atoms[:start], *choice, *tail] for choice in choices for tail in tails][: MAX_WORDS + 1]
    return [atoms]


def _commas(atoms: Atoms, start: int) -> list[int]:
    """The places of the brace, its commas and its end; none where it has no end."""
    depth, found = 0, [start]
    for at in range(start, len(atoms)):
        depth += (atoms[at] == "{") - (atoms[at] == "}")
        if not depth:
            return [*found, at]
        if atoms[at] == "," and depth == 1:
            found.append(at)
    return []


def _range(inside: Atoms) -> list[Atoms]:
    """`1..3`, `a..e`, `01..10..3`."""
    ends = "".join(atom if isinstance(atom, str) else "\0" for atom in inside).split("..")
    numbers = [int(end) for end in ends if _is_number(end)]
    if len(ends) not in (2, 3) or len(ends) == 3 and not _is_number(ends[2]):
        return []
    step = abs(numbers[2] if len(numbers) == 3 else 1) or 1
    if len(numbers) == len(ends):
        wide = max(map(len, ends[:2])) if any(end.lstrip("-")[:1] == "0" and len(end) > 1 for end in ends[:2]) else 0
        return [list(f"{n:0{wide}d}" if wide else str(n)) for n in _steps(numbers[0], numbers[1], step)]
    if len(ends[0]) == len(ends[1]) == 1 and ends[0].isalpha() and ends[1].isalpha():
        return [[chr(n)] for n in _steps(ord(ends[0]), ord(ends[1]), step)]
    return []


def _is_number(text: str) -> bool:
    digits = text[1:] if text[:1] in ("-", "+") else text
    return digits.isascii() and digits.isdigit() and len(digits) < 10


def _steps(low: int, high: int, step: int) -> range:
    """At most one more than may be used."""
    made = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    return made[: MAX_WORDS + 1]

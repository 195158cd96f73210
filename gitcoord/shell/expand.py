"""Words expanded as bash does it: braces, tilde, variables, output of commands, splitting, patterns.

A word becomes one or more choices, each a list of arguments. An unknown part makes an unknown argument.
"""

from __future__ import annotations

from gitcoord.shell import bypass, glob
from gitcoord.shell.braces import braces
from gitcoord.shell.paths import join
from gitcoord.shell.state import MAX_CHOICES, NOT_KNOWN, Arg, Value
from gitcoord.shell.syntax import Word
from gitcoord.shell.words import DIGITS, RUN, SUB, TEXT, VAR, Part, here_document, split_word
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.shell.interpreter import Run

_SPECIAL = frozenset("\\'\"$`*?[{~<>(")


class _Chunk(NamedTuple):
    text: str
    quoted: bool = False
    known: bool = True
    slashes: bool = True  # where not known: whether it may hold some
    below: tuple[str, ...] = ()


# A field is a list of chunks; an option is a list of fields that a part may become.
_UNKNOWN = _Chunk("", known=False)


def expand(run: Run, word: Word) -> list[list[Arg]]:
    """The choices for a word; never none."""
    if len(word.pieces) == 1 and _SPECIAL.isdisjoint(word.raw):
        return [[Arg(word.raw, word.raw)]]
    choices: list[list[Arg]] = [[]]
    for parts in braces(split_word(word)):
        more = [_args(run, fields, word.raw) for fields in _fields(run, parts)]
        choices = [[*one, *other] for one in choices for other in more]
        if len(choices) > MAX_CHOICES:
            return [[Arg("", word.raw, known=False)]]
    return choices


def expand_all(run: Run, words: tuple[Word, ...]) -> list[list[Arg]]:
    """The choices for all words of a command."""
    choices: list[list[Arg]] = [[]]
    for word in words:
        more = expand(run, word)
        if len(choices) * len(more) > MAX_CHOICES:
            more = [[Arg("", word.raw, known=False)]]
        if len(more) == 1:  # in place: a command may have a great many words
            for one in choices:
                one += more[0]
        else:
            choices = [[*one, *other] for one in choices for other in more]
    return choices


def value(run: Run, word: Word | None) -> Value:
    """The value of a variable after `x=word`: no splitting and no patterns."""
    if word is None:
        return Value((("",),))
    found = []
    for fields in _fields(run, [part._replace(quoted=part.text[:1] != "~") for part in split_word(word)]):
        chunks = [chunk for field in fields for chunk in field if chunk.text or not chunk.known]
        if not all(chunk.known for chunk in chunks):
            return Value((), chunks[0].below if len(chunks) == 1 else ())
        found.append(("".join(chunk.text for chunk in chunks),))
    return Value(tuple(found))


def text_of(run: Run, word: Word) -> str | None:
    """The text of a here-document; None where it is not known. Commands inside it are followed."""
    parts = here_document(word)
    found = _fields(run, parts)
    if len(found) != 1:
        return None
    chunks = [chunk for field in found[0] for chunk in field]
    return "".join(chunk.text for chunk in chunks) if all(chunk.known for chunk in chunks) else None


def _fields(run: Run, parts: list[Part]) -> list[list[list[_Chunk]]]:
    """Choices of fields."""
    choices: list[list[list[_Chunk]]] = [[[]]]
    for index, part in enumerate(parts):
        options = _options(run, part, first=index == 0)
        if len(options) * len(choices) > MAX_CHOICES:
            options = [[[_UNKNOWN]]]
        if len(options) > 1:
            choices = [[*one[:-1], [*one[-1]]] for one in choices for _ in options]
        for at, one in enumerate(choices):
            _append_fields(one, options[at % len(options)])
    return choices


def _append_fields(fields: list[list[_Chunk]], option: list[list[_Chunk]]) -> None:
    """Append in place, since a text may have very many parts."""
    if option:
        fields[-1] += option[0]
        fields += [[*field] for field in option[1:]]


def _options(run: Run, part: Part, *, first: bool) -> list[list[list[_Chunk]]]:
    if part.kind == TEXT:
        if first and not part.quoted and part.text.startswith("~"):
            return [[_tilde(run, part.text)]]
        return [[[_Chunk(part.text, part.quoted)]]]
    if part.kind == DIGITS:
        return [[[_Chunk("", known=False, slashes=False)]]]
    if part.kind == RUN and part.sub is not None:
        run.substitute(part.sub)
        return [[]]
    if part.kind == SUB and part.sub is not None:
        if part.sub.how != "$(":
            run.substitute(part.sub)
            return [[[_Chunk("/dev/fd/63", quoted=True)]]]
        return _of_value(run, run.substitute(part.sub), part)
    if part.kind == VAR:
        return _of_value(run, variable(run, part), part)
    if part.text:
        run.apart(lambda: run.script(part.text, part.text))
    return [[[_UNKNOWN]]]


def _of_value(run: Run, found: Value, part: Part) -> list[list[list[_Chunk]]]:
    if not part.quoted and "IFS" in run.state.variables and _splits_otherwise(run.state.variables["IFS"], found):
        return [[[_UNKNOWN]]]
    if not found.choices:
        return [[[_Chunk("", known=False, below=found.below)]]]
    whole = part.op == "@"
    more = [[_Chunk("", known=False, below=found.below)]] if found.below else []
    return [[*_split(choice if whole else choice[:1], quoted=part.quoted), *more] for choice in found.choices]


def _splits_otherwise(separators: Value, found: Value) -> bool:
    """Words that IFS takes apart in its own way."""
    marks = "".join(choice[0] for choice in separators.choices) + " \t\n"
    return any(mark in element for choice in found.choices for element in choice for mark in marks)


def _split(elements: tuple[str, ...], *, quoted: bool) -> list[list[_Chunk]]:
    if quoted:
        return [[_Chunk(element, quoted=True)] for element in elements]
    fields: list[list[_Chunk]] = [[]]
    for index, element in enumerate(elements):
        words = element.split()
        if index or words and element[:1].isspace():
            fields.append([])
        for number, word in enumerate(words):
            if number:
                fields.append([])
            fields[-1].append(_Chunk(word))
        if words and element[-1:].isspace():
            fields.append([])
    return fields


def _tilde(run: Run, text: str) -> list[_Chunk]:
    user, slash, rest = text[1:].partition("/")
    if user == "" and run.home:
        return [_Chunk(run.home, quoted=True), _Chunk(slash + rest)]
    if user == "+" and len(run.state.cwds) == 1:
        return [_Chunk(run.state.cwds[0], quoted=True), _Chunk(slash + rest)]
    return [_UNKNOWN, _Chunk(slash + rest)]


def variable(run: Run, part: Part) -> Value:
    """A variable's value after what stands behind its name in `${...}`."""
    held = run.state.variables.get(part.text, NOT_KNOWN)
    op = part.op.lstrip(":") or part.op
    if not op or op == "@":
        return held
    if op in ("/", "//", "[", "^^", ",,", ":"):
        return Value(tuple(_changed(choice, op, part.value) for choice in held.choices))
    if op == "=":
        bypass.variable(run, part.text, part.value)
    if op in ("#", "##", "%", "%%"):
        if not held.choices or not _SPECIAL.isdisjoint(part.value.replace("*", "").replace("?", "")):
            return NOT_KNOWN
        cut = [
            tuple(glob.trim(one, part.value, front=op[0] == "#", longest=len(op) == 2) for one in choice)
            for choice in held.choices
        ]
        return Value(tuple(cut))
    if op in ("-", "=", "?") and held.choices and all(choice[0] for choice in held.choices if choice):
        return held
    if op in ("-", "=", "+"):  # a variable that the command does not set has its default: that is what its text shows
        given = value(run, Word((part.value,), part.value))
        if op == "=":
            run.state.variables[part.text] = given
        return given
    return NOT_KNOWN


def _changed(choice: tuple[str, ...], op: str, how: str) -> tuple[str, ...]:
    """`${x/old/new}`, `${x[1]}`, `${x^^}`, `${x,,}` and `${x:2:3}`."""
    if op == "[":
        number = how.rstrip("]")
        at = int(number) if number.lstrip("-").isdigit() and len(number) < 6 else 0
        return choice[at : at + 1 or None] or ("",)
    if op in ("^^", ",,"):
        return tuple(map(str.upper if op == "^^" else str.lower, choice))
    if op == ":":
        first, _, size = how.partition(":")
        start = int(first) if first.strip().lstrip("-").isdigit() and len(first) < 6 else 0
        return tuple(one[start:][: int(size)] if size.isdigit() and len(size) < 6 else one[start:] for one in choice)
    old, _, new = how.partition("/")
    return tuple(one.replace(old, new) if op == "//" else one.replace(old, new, 1) for one in choice) if old else choice


def _args(run: Run, fields: list[list[_Chunk]], raw: str) -> list[Arg]:
    found: list[Arg] = []
    for chunks in fields:
        if not chunks:
            continue  # an unquoted variable that is empty
        if all(chunk.known for chunk in chunks):
            found += _names(run, chunks, raw)
        else:
            found.append(_unknown_arg(run, chunks, raw))
    return found


def _names(run: Run, chunks: list[_Chunk], raw: str) -> list[Arg]:
    """The files that match if the text is a pattern; otherwise the text."""
    pattern = "".join(glob.escape(chunk.text) if chunk.quoted else chunk.text for chunk in chunks)
    plain = "".join(chunk.text for chunk in chunks)
    if all(chunk.quoted for chunk in chunks) or not glob.is_pattern(pattern):
        return [Arg(plain, raw)]
    if "://" in plain:
        return [Arg(plain, raw)]  # an address
    below = _below(run, glob.fixed_part(pattern))
    if len(run.state.cwds) != 1:
        return [Arg(plain, raw, known=False, below=below)]
    found = glob.find(pattern, run.state.cwds[0], run.listing, deep=run.state.globstar)
    if not found:
        # Nothing there yet, or it cannot be told: whatever comes to match lies below the fixed part.
        return [Arg(plain, raw, known=False, below=below)]
    return [Arg(name, raw) for name in found]


def _unknown_arg(run: Run, chunks: list[_Chunk], raw: str) -> Arg:
    """An argument of which something is not known. Where it lies can still be said if that holds no slash."""
    chunks = [chunk for chunk in chunks if chunk.text or not chunk.known]
    at = next(i for i, chunk in enumerate(chunks) if not chunk.known)
    before = "".join(chunk.text for chunk in chunks[:at])
    rest = [chunk for chunk in chunks[at:] if chunk.known]
    unknown = [chunk for chunk in chunks if not chunk.known]
    climbs = ".." in "".join(chunk.text for chunk in rest).split("/")
    if climbs:
        return Arg(before, raw, known=False)
    if at == 0 and len(unknown) == 1 and unknown[0].below:
        return Arg("", raw, known=False, below=unknown[0].below)
    if any(chunk.slashes for chunk in unknown):
        return Arg(before, raw, known=False)
    return Arg(before, raw, known=False, below=_below(run, before.rpartition("/")[0] + "/" if "/" in before else ""))


def _below(run: Run, fixed: str) -> tuple[str, ...]:
    if fixed.startswith("/"):
        return (join("/", fixed),)
    return tuple(dict.fromkeys(join(cwd, fixed) for cwd in run.state.cwds))

"""The strict codec: one canonical line of ASCII JSON out, and nothing lenient in.

Refused: duplicate keys, NaN and infinities, fractions, numbers beyond 15 digits, nesting beyond 8, more than a
megabyte (an event: 32), anything after the value, and (by `check`) unknown versions, unknown or missing keys and wrong types.
"""

from __future__ import annotations

from _json import encode_basestring_ascii, make_scanner

from gitcoord.base.errors import CouldNotJudge
from gitcoord.startup.annotations import Any, Iterable, Mapping

Record = dict[str, "Any"]
Shape = type | list["Shape"] | tuple["Shape", ...] | dict[str, "Shape"]

MAX_BYTES = 1 << 20
MAX_EVENT = 1 << 25  # a release names each file that changed below a directory
MAX_DEPTH = 8
MAX_DIGITS = 15
VERSION = 1
UPGRADE, UPGRADE_SERVER = "upgrade gitcoord on this side", "upgrade gitcoord on the server"


class Malformed(CouldNotJudge):
    """Bytes that are not a valid record."""

    code = "malformed"


class NewerVersion(Malformed):
    """A record, or a ledger, that a newer version of gitcoord has written: it is no damage, and is never repaired."""

    code = CouldNotJudge.code


def dumps(value: object) -> str:
    """`value` as canonical JSON: sorted keys, no spaces, ASCII only."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        if abs(value) >= 10**MAX_DIGITS:
            raise Malformed("a number has too many digits")
        return int.__repr__(value)
    if isinstance(value, dict):
        items = [f"{encode_basestring_ascii(key)}:{dumps(value[key])}" for key in sorted(value)]
        return "{" + ",".join(items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([dumps(item) for item in value]) + "]"
    raise TypeError(f"not for a record: {type(value).__name__}")


def _pairs(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise Malformed("a record has a key twice")
    return record


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise Malformed("a number has too many digits")
    return int(digits)


def _no_number(text: str) -> None:
    raise Malformed(f"a number is not an integer: {text[:20]}")


class _Settings:
    strict = True
    object_hook = None
    object_pairs_hook = staticmethod(_pairs)
    parse_float = staticmethod(_no_number)
    parse_int = staticmethod(_integer)
    parse_constant = staticmethod(_no_number)
    memo: dict[str, str] = {}


_scan = make_scanner(_Settings())  # type: ignore[arg-type]


def loads(data: bytes, limit: int = MAX_BYTES) -> Any:
    """The value in `data`, or `Malformed`."""
    if len(data) > limit:
        raise Malformed("a record is too large")
    try:
        text = data.decode("ascii").rstrip("\n")
        value, end = _scan(text, 0)
    except (StopIteration, ValueError, RecursionError, SystemError):
        # SystemError: without `json` in sys.modules the C scanner cannot make its own error (Python 3.11).
        raise Malformed("a record is not the JSON it should be") from None
    if end != len(text):
        raise Malformed("there is data after a record")
    _depth(value, MAX_DEPTH)
    return value


_FENCE = "---\n"


def encode_file(key: str, record: Record) -> bytes:
    """The bytes of a file of the ledger's tree: a record in one line, or Markdown where the name ends in '.md'.

    Markdown has the record's other keys in front, one a line, `key: <JSON>` between two lines of '---' (which YAML reads
    too), and `text` below; with no other keys it is the text alone. What could not be read back is Malformed.
    """
    if key.endswith(".md"):
        front = "".join(f"{name}: {dumps(record[name])}\n" for name in sorted(record) if name != "text")
        data = (f"{_FENCE}{front}{_FENCE}\n{record['text']}" if front else str(record["text"])).encode()
    else:
        data = (dumps(record) + "\n").encode()
    if len(data) > MAX_BYTES:
        raise Malformed(f"{key} would be too large", hints=("say less at a time",))
    return data


def decode_file(key: str, data: bytes) -> Record:
    if not key.endswith(".md"):
        record: Record = loads(data)
        return record
    if len(data) > MAX_BYTES:
        raise Malformed(f"{key} is too large")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Malformed(f"{key} is not text") from None
    if not text.startswith(_FENCE):
        return {"text": text}
    front, fence, text = text[len(_FENCE) :].partition("\n" + _FENCE)
    rows = [line.partition(": ") for line in front.split("\n")]
    record = {name: loads(value.encode("utf-8", "surrogateescape")) for name, _, value in rows}
    record["text"] = text[1:]
    if not fence or encode_file(key, record) != data:
        raise Malformed(f"{key} is not as gitcoord writes it")
    return record


def _depth(value: object, left: int) -> None:
    if isinstance(value, (dict, list)):
        if not left:
            raise Malformed("a record is nested too deep")
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, (dict, list)):
                _depth(item, left - 1)


def check(
    record: object, fields: Mapping[str, Shape], what: str, optional: Mapping[str, Shape] | None = None
) -> Record:
    """`record` if it is of this version and has exactly these keys with values of these shapes."""
    if not isinstance(record, dict):
        raise Malformed(f"{what}: not a record")
    version = record.get("v")
    if version != VERSION or version is True:
        message = f"{what}: version {version!r} is not known here"
        if type(version) is int and version > VERSION:
            raise NewerVersion(message, hints=(UPGRADE,))
        raise Malformed(message)
    rest = optional or {}
    for key, value in record.items():
        shape = fields.get(key) or rest.get(key)
        if type(value) is not shape and key != "v":
            if shape is None:
                raise NewerVersion(f"{what}: {key!r} is not known here", hints=(UPGRADE,))
            if not has_shape(value, shape):
                raise Malformed(f"{what}: {key!r} is of the wrong type")
    for key in fields:
        if key not in record:
            raise Malformed(f"{what}: {key!r} is missing")
    return record


def values_of(record: object, fields: Mapping[str, Shape], what: str) -> list[Any]:
    """The values of such a record in the order of `fields`: what the class of the record is made of."""
    found = check(record, fields, what)
    return [found[key] for key in fields]


def record_of(fields: Iterable[str], values: Iterable[object]) -> Record:
    """The record that has these values: the way back."""
    return {"v": VERSION, **dict(zip(fields, values))}


def has_shape(value: object, shape: Shape) -> bool:
    """A shape is a type, [shape] for a list of any length, (shape, ...) for a list of just these, {key: shape}."""
    if isinstance(shape, type):
        return type(value) is shape
    if isinstance(shape, list):
        return type(value) is list and all(has_shape(item, shape[0]) for item in value)
    if isinstance(shape, tuple):
        return type(value) is list and len(value) == len(shape) and all(map(has_shape, value, shape))
    return type(value) is dict and value.keys() == shape.keys() and all(has_shape(value[k], shape[k]) for k in shape)

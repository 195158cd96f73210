"""The strict codec: what it refuses, one by one, and that what it writes it reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcoord.base.codec import MAX_BYTES, MAX_DEPTH, Malformed, check, decode_file, dumps, encode_file, loads


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + closing * depth


REFUSED = {
    "nothing": b"",
    "a newline": b"\n",
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":Infinity}',
    "-Infinity": b'[-Infinity]',
    "a fraction": b'{"a":1.5}',
    "a fraction that is whole": b'{"a":1.0}',
    "an exponent": b'{"a":1e5}',
    "a large exponent": b'{"a":1E400}',
    "16 digits": b'{"a":1234567890123456}',
    "5000 digits": b'{"a":' + b"9" * 5000 + b"}",
    "5000 negative digits": b"[-" + b"9" * 5000 + b"]",
    "a leading zero": b'{"a":01}',
    "a plus sign": b'{"a":+1}',
    "a hexadecimal": b'{"a":0x10}',
    "a key twice": b'{"a":1,"a":1}',
    "a key twice, deep": b'{"x":[{"a":1,"b":2,"a":3}]}',
    "a key twice by escape": b'{"a":1,"\\u0061":2}',
    "depth 9": nested(MAX_DEPTH + 1),
    "depth 9 of objects": b'{"a":' * 9 + b"1" + b"}" * 9,
    "depth 100000": nested(100_000),
    "depth that never closes": b"[" * 500_000,
    "2 MB": b'"' + b"x" * (2 << 20) + b'"',
    "one byte too many": b'"' + b"x" * (MAX_BYTES - 1) + b'"',
    "two values": b"{}{}",
    "words after": b"{} x",
    "a NUL after": b"{}\0",
    "a space after": b"{} ",
    "a space before": b" {}",
    "a carriage return": b"{}\r\n",
    "a BOM": b"\xef\xbb\xbf{}",
    "UTF-16": "{}".encode("utf-16"),
    "raw UTF-8": '{"a":"é"}'.encode(),
    "no UTF-8": b'{"a":"\xff"}',
    "a control byte in a string": b'{"a":"\x01"}',
    "a newline in a string": b'{"a":"\n"}',
    "single quotes": b"{'a':1}",
    "a comma too many": b'{"a":1,}',
    "a comment": b'{"a":1/*x*/}',
    "half": b'{"a":',
    "a bare word": b"yes",
    "a bare key": b'{a:1}',
    "an escape of Python's": b'{"a":"\\x41"}',
    "a cut escape": b'"\\u12"',
    "Python's None": b"None",
}  # fmt: skip


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED.keys())
def test_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        loads(data)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"{}", {}), (b"{}\n", {}), (b"[]", []), (b'"x"', "x"), (b"0", 0), (b"-1", -1), (b"true", True), (b"null", None),
        (b"123456789012345", 123456789012345), (nested(MAX_DEPTH), [[[[[[[[]]]]]]]]), (b'"\\u00e9"', "é"),
        (b'"\\udcff"', "\udcff"),
    ],
)  # fmt: skip
def test_taken(data: bytes, value: object) -> None:
    assert loads(data) == value


FIELDS: dict[str, type] = {"name": str, "count": int, "more": list}
GOOD: dict[str, Any] = {"v": 1, "name": "x", "count": 1, "more": []}


def test_a_record_that_is_right() -> None:
    assert check(GOOD, FIELDS, "thing") is GOOD
    full = {**GOOD, "extra": {}}
    assert check(full, FIELDS, "thing", {"extra": dict}) is full
    assert check(GOOD, FIELDS, "thing", {"extra": dict}) is GOOD


WRONG: dict[str, object] = {
    "no record": [],
    "text": "x",
    "nothing": None,
    "no version": {"name": "x", "count": 1, "more": []},
    "a newer version": {**GOOD, "v": 2},
    "version 0": {**GOOD, "v": 0},
    "version true": {**GOOD, "v": True},
    "version as text": {**GOOD, "v": "1"},
    "version null": {**GOOD, "v": None},
    "an extra key": {**GOOD, "extra": 1},
    "a key missing": {"v": 1, "name": "x", "count": 1},
    "true for a number": {**GOOD, "count": True},
    "text for a number": {**GOOD, "count": "1"},
    "a number for text": {**GOOD, "name": 1},
    "null for text": {**GOOD, "name": None},
    "an object for a list": {**GOOD, "more": {}},
}


@pytest.mark.parametrize("record", WRONG.values(), ids=WRONG.keys())
def test_a_record_that_is_wrong(record: object) -> None:
    with pytest.raises(Malformed):
        check(record, FIELDS, "thing")


def test_an_optional_key_of_the_wrong_type() -> None:
    with pytest.raises(Malformed):
        check({**GOOD, "extra": []}, FIELDS, "thing", {"extra": dict})


def test_a_newer_version_says_what_to_upgrade() -> None:
    with pytest.raises(Malformed) as caught:
        check({**GOOD, "v": 2}, FIELDS, "thing")
    assert "upgrade" in caught.value.hints[0]


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**13), 10**15 - 1), st.text(max_size=12)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
    max_leaves=12,
)


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


@given(values.filter(lambda value: depth(value) <= MAX_DEPTH))
def test_what_is_written_is_read(value: object) -> None:
    line = dumps(value)
    assert loads(line.encode("ascii")) == value
    assert "\n" not in line and json.loads(line) == value


@given(values.filter(lambda value: depth(value) <= MAX_DEPTH))
def test_one_value_has_one_line(value: object) -> None:
    """Canonical: writing a decoded value gives the same bytes, for any order of keys."""
    assert dumps(loads(json.dumps(value, separators=(",", ":")).encode())) == dumps(value)


@given(st.binary(max_size=60))
def test_bytes_are_a_value_or_malformed(data: bytes) -> None:
    try:
        loads(data)
    except Malformed:
        pass


@given(
    st.lists(
        st.sampled_from([b"{", b"}", b"[", b"]", b",", b":", b'"a"', b'"b"', b"1", b"-", b"true", b"NaN", b" "]),
        max_size=12,
    )
)
def test_whatever_is_taken_json_takes_too(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    try:
        value = loads(data)
    except Malformed:
        return
    assert json.loads(data) == value


def test_what_no_record_holds() -> None:
    for value in (1.5, b"x", {1}, object()):
        with pytest.raises(TypeError):
            dumps({"a": value})


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_files_of_text_and_of_records(words: str) -> None:
    assert decode_file("README.md", encode_file("README.md", {"text": words})) == {"text": words}
    assert decode_file("agents/x", encode_file("agents/x", {"text": words})) == {"text": words}


def test_a_text_file_that_is_none() -> None:
    with pytest.raises(Malformed):
        decode_file("README.md", b"\xff")


# --- Markdown with front matter --------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**14), 10**14) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ENCODABLE = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), VALUES, min_size=1, max_size=5), ENCODABLE)
def test_front_matter_comes_back(front: dict[str, Any], text: str) -> None:
    record = {**front, "text": text}
    assert decode_file("tasks/t1.md", encode_file("tasks/t1.md", record)) == record


def test_front_matter_is_what_people_and_yaml_read() -> None:
    record = {"v": 1, "title": 'a "b": c', "needs": ["t1"], "text": "---\nx: 1\n---\nHello\n"}
    wanted = '---\nneeds: ["t1"]\ntitle: "a \\"b\\": c"\nv: 1\n---\n\n---\nx: 1\n---\nHello\n'
    assert encode_file("a.md", record) == wanted.encode()


@pytest.mark.parametrize(
    "data",
    [b"---\n", b"---\nv: 1\n", b"---\nv: 1\n---", b"---\nv: 1\n---\nno empty line", b"---\nv: 1\nv: 1\n---\n\n",
     b"---\nz: 1\na: 1\n---\n\n", b"---\nv:  1\n---\n\n", b"---\nv: {\"b\":1, \"a\":2}\n---\n\n", b"---\ntext: 1\n---\n\n",
     b"---\n---\n\nx", b"---\nv: !!python/object:os.system x\n---\n\n", b"---\nv: 1.5\n---\n\n",
     b"---\n\xff: 1\n---\n\n"],
)  # fmt: skip
def test_front_matter_by_another_hand_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_file("a.md", data)


def test_a_text_without_front_matter_is_itself() -> None:
    assert decode_file("README.md", b"# Hello\n") == {"text": "# Hello\n"}
    assert encode_file("README.md", {"text": "# Hello\n"}) == b"# Hello\n"

"""Names: paths into refs one to one, agents, emails, and what lies in git's own directory."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from gitcoord.base.errors import UsageError
from gitcoord.base.names import (
    ROOT,
    agent_from_email,
    ancestors,
    check_agent,
    check_path,
    check_resource,
    check_word,
    claim_file,
    covers,
    encode,
    encode_path,
    fold,
    is_oid,
    printable,
    quote,
)
from tests.support import git

LIMIT = 255 - len(".lock")


def text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def decoded(encoded: str) -> str:
    """Decode as docs/format.md says: bytes by their numbers, and pieces of a long component joined."""
    return text(unquote_to_bytes(encoded.replace("%+/", "").encode("utf-8", "surrogateescape")))


_pieces = [
    b".", b"..", b"@", b"@{", b"{", b".lock", b"%", b"%+", b"%0", b"-", b"~", b"^", b":", b"?", b"*", b"[", b"\\", b" ",
    b"\xff", b"\xc3", b"\xa9", "é".encode(), "e\u0301".encode(), "\u2028".encode(), "\x85".encode(), b"\x7f", b"\n",
    b"a", b"A", b"lock", b"x" * 120, b"x" * 239, b"x" * 240, b"." * 130, b"\xff" * 90, "漢".encode() * 79,
]  # fmt: skip
components = st.one_of(
    st.binary(min_size=1, max_size=40),
    st.lists(st.sampled_from(_pieces), min_size=1, max_size=8).map(b"".join),
).map(lambda raw: raw.replace(b"\0", b"0").replace(b"/", b"1")).filter(lambda raw: raw not in (b".", b".."))  # fmt: skip
paths = st.lists(components, min_size=1, max_size=4).map(b"/".join).map(text)


@given(paths)
@example("x" * 240 + ".lock")
@example("x" * 236 + ".lock" + "y")
@example("a.lock")
@example("." * 500)
@example("%+")
@example("@" * 300)
def test_encoding_is_one_to_one(path: str) -> None:
    assert decoded(encode_path(path)) == path


@given(paths, paths)
def test_different_paths_have_different_refs(one: str, other: str) -> None:
    assume(one != other)
    assert encode_path(one) != encode_path(other)


@given(paths)
def test_every_piece_fits_a_file_name_and_none_looks_like_a_leaf(path: str) -> None:
    for piece in encode_path(path).split("/"):
        assert 0 < len(piece.encode("utf-8")) <= LIMIT
        assert piece[0] not in "@.-"
        assert not (len(piece) == 2 and piece[0] == "%"), "looks like a bucket"
        assert not piece.endswith((".", ".lock"))
        assert piece.isprintable() or not piece.isascii()


@given(paths)
def test_a_claim_on_a_directory_and_one_below_never_clash(path: str) -> None:
    parts = path.split("/")
    for count in range(len(parts)):
        above = claim_file("path", "/".join(parts[:count]) or ROOT, "alice")
        below = claim_file("path", path, "alice")
        assert above != below and not below.startswith(above + "/") and not above.startswith(below + "/")


def test_the_root_is_its_own_leaf() -> None:
    assert encode_path(ROOT) == ""
    assert claim_file("path", ROOT, "alice") == "claims/path/@alice"
    assert claim_file("path", "src/app.py", "alice") == "claims/path/src/app.py/@alice"
    assert claim_file("resource", "deploy/production", "bob") == "claims/resource/deploy/production/@bob"


def test_git_takes_every_name(tmp_path: Path) -> None:
    """One git process judges many: a ref that it did not take would not be among those it lists."""
    every = [bytes([number]) for number in range(1, 256) if number != 0x2F]
    raw = [
        *_pieces,
        *every,
        *(b"a" + e for e in every),
        *(e + b"a" for e in every),
        *(p + q for p in _pieces for q in _pieces),
    ]
    names = {text(r.replace(b"/", b"")) for r in raw} - {"", ".", ".."}
    git(tmp_path, "init", "--quiet")
    blob = git(tmp_path, "hash-object", "-w", "--stdin", data=b"x").strip()
    refs = sorted(f"refs/{claim_file('path', name, 'alice')}".encode("utf-8", "surrogateescape") for name in names)
    for ref in refs[:: len(refs) // 12]:
        git(tmp_path, "check-ref-format", ref)
    git(tmp_path, "update-ref", "--stdin", data=b"".join(b"create %s %s\n" % (ref, blob) for ref in refs))
    listed = git(tmp_path, "for-each-ref", "--format=%(refname)", "refs/claims").split(b"\n")[:-1]
    assert sorted(listed) == refs
    assert {decoded(text(ref)[len("refs/claims/path/") : -len("/@alice")]) for ref in listed} == names


@pytest.mark.parametrize(
    ("given_path", "clean"),
    [("a/b", "a/b"), ("./a//b/", "a/b"), ("a/../b", "b"), (".", ROOT), ("", ROOT), ("a/..", ROOT), ("./@x", "@x"),
     ("-rf", "-rf"), ("x.lock", "x.lock"), ("a\nb", "a\nb"), ("\udcff", "\udcff"), ("...", "..."), (".gitignore", ".gitignore"),
     (".github/x", ".github/x"), ("git", "git"), (".gitx", ".gitx"), ("a.git", "a.git"), ("git~2", "git~2")],
)  # fmt: skip
def test_paths_as_git_names_them(given_path: str, clean: str) -> None:
    assert check_path(given_path) == clean


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "a\0b", "x" * 4097, "/".join(["x" * 200] * 20)])
def test_paths_that_are_refused(path: str) -> None:
    with pytest.raises(UsageError):
        check_path(path)


def test_a_path_whose_ref_would_not_fit_is_refused() -> None:
    """The limit is one of bytes: git could not make this ref, so it must not be asked for."""
    path = "/".join(["漢" * 80] * 35)
    assert len(claim_file("path", path, "alice").encode()) > 4096
    with pytest.raises(UsageError):
        check_path(path)


@pytest.mark.parametrize(
    "twin",
    [".git", ".GIT", ".Git", ".git.", ".git ", ".git . .", ".git::$INDEX_ALLOCATION", ".git:stream", "git~1", "GIT~1",
     "git~1.", ".g\u200cit", "\u200d.git", ".git\ufeff", ".gi\u202et", ".git\\config", ".GIT\\", "git~1\\x"],
    ids=ascii,
)  # fmt: skip
@pytest.mark.parametrize("place", ["{}", "sub/{}/hooks/x"])
def test_gits_own_directory_and_its_twins(twin: str, place: str) -> None:
    with pytest.raises(UsageError):
        check_path(place.format(twin))


@pytest.mark.parametrize("name", ["alice", "a", "0", "a.b-c_d", "x" * 64, "claude-1", "parent.child"])
def test_agent_names(name: str) -> None:
    assert check_agent(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "x" * 65, "Alice", "-a", ".a", "_a", "@a", "a b", "a..b", "a.", "a.lock", "a/b", "é", "a\n", "a\0", "a~", "\x1b[1m"],
)  # fmt: skip
def test_what_is_no_agent_name(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_agent(name)
    assert caught.value.message.isprintable()


emails = st.one_of(
    st.emails(),
    st.lists(st.sampled_from(["a", "b", ".", "_", "-", "+", "@", "é", "lock", ".lock", "_at_", "_2e", "x_x", "5f", "x" * 30]),
             min_size=1, max_size=8).map("".join),
)  # fmt: skip


@given(emails)
def test_every_email_gives_an_agent_name(email: str) -> None:
    assume(email.strip())
    name = agent_from_email(email)
    assert check_agent(name) == name


@given(st.lists(emails, max_size=40))
def test_different_emails_are_different_people(every: list[str]) -> None:
    known = {email.strip().lower() for email in every} - {""}
    assert len({agent_from_email(email) for email in known}) == len(known)


@pytest.mark.parametrize(
    ("email", "name"),
    [("ada@example.com", "ada_at_example.com"), ("Ada@Example.com", "ada_at_example.com"), ("a_b@x", "a_5fb_at_x"),
     ("a+b@x", "a_2bb_at_x"), ("x@y.lock", "x_at_y_2elock"), ("a..b@x", "a_2e.b_at_x"), ("@x", "x_x_at_x")],
)  # fmt: skip
def test_emails_one_by_one(email: str, name: str) -> None:
    assert agent_from_email(email) == name


def test_no_email_is_nobody() -> None:
    with pytest.raises(UsageError):
        agent_from_email("  ")


@pytest.mark.parametrize("name", ["deploy/production", "db", "GPU-1", "a.b_c", "x" * 200])
def test_resources(name: str) -> None:
    assert check_resource(name) == name


@pytest.mark.parametrize(
    "name", ["", "/", "a/", "/a", "a//b", ".", "..", "a/../b", ".git", "-x", "a b", "é", "x" * 201, "a\n"]
)
def test_what_is_no_resource(name: str) -> None:
    with pytest.raises(UsageError):
        check_resource(name)


@pytest.mark.parametrize("word", ["", ".x", "-x", "a b", "a/b", "é", "x" * 129, "a\n"])
def test_what_is_no_word(word: str) -> None:
    with pytest.raises(UsageError):
        check_word(word, "nonce")


@given(st.text(max_size=20), st.booleans())
def test_folding_twice_is_folding_once(path: str, case: bool) -> None:
    key = fold(path, case=case)
    assert fold(key, case=case) == key
    assert key.count("/") == path.count("/")


def test_twins_have_one_key() -> None:
    assert fold("é", case=False) == fold("e\u0301", case=False)
    assert fold("README", case=False) != fold("readme", case=False)
    assert fold("README", case=True) == fold("readme", case=True)
    assert fold("É", case=True) == fold("e\u0301", case=True)


@given(st.lists(st.sampled_from("abc"), max_size=4), st.lists(st.sampled_from("abc"), max_size=4))
def test_cover_is_by_whole_components(above: list[str], below: list[str]) -> None:
    one, other = "/".join(above) or ROOT, "/".join(below) or ROOT
    assert covers(one, other) == (below[: len(above)] == above)
    assert (one in ancestors(other)) == (below[: len(above)] == above and above != below)


def test_a_name_is_no_directory_of_its_longer_sisters() -> None:
    assert not covers("src", "src2/x") and not covers("src/a", "src/a.py")


def test_ids_of_both_formats() -> None:
    assert is_oid("0a" * 20) and is_oid("0a" * 32)
    assert not any(map(is_oid, ("", "0a" * 19, "0A" * 20, "g" * 40, "HEAD", "refs/heads/main")))


@given(st.text(max_size=30))
def test_nothing_printable_confuses_a_terminal(words: str) -> None:
    assert printable(words).isprintable()
    assert quote(words).startswith("'")


def test_one_component_in_several_pieces() -> None:
    pieces = encode("x" * 500).split("/")
    assert [piece.endswith("%+") for piece in pieces] == [True, True, False]

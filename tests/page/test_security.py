"""Requests that the page refuses: by name, origin, method, session; and that nothing was changed by it. No browser here."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from gitcoord.page.security import MOST_SESSIONS, Sessions, host_name, is_loopback, of_another_user, serves
from tests.cli.support import World
from tests.page.support import Page, acting, first_url, process, raw, serving

JSON = {"Content_Type": "application/json"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(tmp_path_factory.mktemp("page")).init()
    made.take("src/a.py", "-m", "<b>login</b>")
    return made


@pytest.fixture(scope="module")
def page(world: World) -> Iterator[Page]:
    """A page of which a person could act, opened."""
    with acting(world) as found:
        yield found


# --- rules


def test_names_that_a_page_answers_to() -> None:
    for host in ("127.0.0.1:8417", "localhost:8417", "LOCALHOST", "[::1]:9", "127.0.0.2"):
        assert serves("127.0.0.1", host), host
    for host in ("evil.example", "127.0.0.1.evil.example:8417", "", "127.0.0.1:80@evil.example", "192.0.2.7", "localhost.evil.example", "127.0.0.1:x"):  # fmt: skip
        assert not serves("127.0.0.1", host), host
    assert serves("0.0.0.0", "192.0.2.7:8417") and not serves("0.0.0.0", "evil.example:8417")
    assert serves("box.lan", "box.lan:8417") and not serves("box.lan", "evil.lan:8417")
    assert host_name("[::1]:80") == "::1" and host_name("[::1]") == "::1" and is_loopback("::1")


def test_a_link_works_once_and_old_sessions_go() -> None:
    sessions = Sessions(1)
    first = sessions.link_key
    opened = sessions.open(first)
    assert opened is not None and sessions.has(*opened)
    assert sessions.open(first) is None and sessions.open("") is None and sessions.link_key != first
    assert not sessions.has(opened[0], "") and not sessions.has("", opened[1]) and not sessions.has(*opened[::-1])
    for _ in range(MOST_SESSIONS):
        sessions.open(sessions.link_key)
    assert not sessions.has(*opened)


def test_a_connection_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    row = "   1: 0100007F:D431 0100007F:20E1 01 00000000:00000000 00:00000000 00000000  %d 0 1 1\n"
    told = b"  sl  local_address rem_address\n"
    monkeypatch.setattr("gitcoord.page.security.read_file", lambda *_: told + (row % 65534).encode())
    assert of_another_user("127.0.0.1", 0xD431)
    assert not of_another_user("127.0.0.1", 0xD432) and not of_another_user("192.0.2.7", 0xD431)
    monkeypatch.setattr("gitcoord.page.security.read_file", lambda *_: told + (row % 0).encode())
    assert not of_another_user("127.0.0.1", 0xD431), "root may do everything anyway"


# --- a real server


def _unchanged(world: World, page: Page, method: str, path: str, body: bytes | None = None, **headers: str) -> int:
    before = world.head
    answer = page.send(method, path, body, **headers)
    assert world.head == before
    assert b"login" not in answer.body, "told what was claimed"
    return answer.status


def test_dns_rebinding(world: World, page: Page) -> None:
    for host in ("evil.example", f"evil.example:{page.port}", "127.0.0.1.evil.example"):
        assert _unchanged(world, page, "GET", "/api/overview", None, Host=host, **page.proof) == 421
        assert _unchanged(world, page, "GET", "/", Host=host) == 421
    with raw(page, b"GET /api/overview HTTP/1.0\r\n\r\n") as bare:
        assert b" 421 " in bare.recv(4096)
    with raw(page, f"GET / HTTP/1.1\r\nHost: localhost\r\nHost: {page.host}\r\n\r\n".encode()) as two:
        assert b" 4" in two.recv(4096).partition(b"\r\n")[0]


def test_another_site(world: World, page: Page) -> None:
    halt = json.dumps({"action": "halt", "subject": "", "value": "", "seal": page.get("plan", action="halt").json["seal"]})  # fmt: skip
    body = halt.encode()
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{page.port + 1}", f"https://127.0.0.1:{page.port}", "http://127.0.0.1"):  # fmt: skip
        assert _unchanged(world, page, "POST", "/api/act", body, Origin=origin, **JSON, **page.proof) == 403
    assert _unchanged(world, page, "POST", "/api/act", body, **JSON, **page.proof) == 403, "a form without an origin"
    form = {"Content_Type": "text/plain", "Origin": page.origin}
    assert _unchanged(world, page, "POST", "/api/act", body, **form, **page.proof) == 415, "what needs no preflight"
    same_machine = {"Sec_Fetch_Site": "same-site"}  # another port of it: browsers send the cookie there too
    assert _unchanged(world, page, "GET", "/api/overview", None, **same_machine, **page.proof) == 403
    assert page.send("GET", "/api/overview", None, Sec_Fetch_Site="same-origin", **page.proof).status == 200
    assert page.send("OPTIONS", "/api/act", Origin="http://evil.example").status == 405


def test_a_session_needs_both_secrets(world: World, page: Page) -> None:
    cookie, key = page.proof["Cookie"], page.key
    name, _, value = cookie.partition("=")
    for given in (
        {}, {"Cookie": cookie}, {"X_Gitcoord_Page": key}, {"Cookie": cookie, "X_Gitcoord_Page": key[::-1]},
        {"Cookie": f"{name}={value[::-1]}", "X_Gitcoord_Page": key}, {"Cookie": f"{cookie}; {cookie}", "X_Gitcoord_Page": key}, {"Cookie": f"x{cookie}", "X_Gitcoord_Page": key},
    ):  # fmt: skip
        for path in ("/api/overview", "/api/path?of=src%2Fa.py", "/api/timeline", "/api/plan?action=halt"):
            assert _unchanged(world, page, "GET", path, None, **given) == 401
        assert _unchanged(world, page, "POST", "/api/act", b"{}", Origin=page.origin, **JSON, **given) == 401
    assert _unchanged(world, page, "GET", "/api/stream", Cookie=cookie) == 401
    assert _unchanged(world, page, "GET", f"/api/stream?key={key}") == 401


def test_a_used_link_and_wrong_ones(world: World, page: Page) -> None:
    again = Page(page.url)
    assert again.open().status == 401 and not again.cookie
    for key in ("x", page.key, page.cookie.partition("=")[2]):
        assert again.open(key).status == 401
    assert "set-cookie" not in again.send("GET", "/").headers


def test_nothing_of_an_earlier_start_is_good(world: World) -> None:
    """Neither cookie and page key, nor the link that was printed then: they are kept in memory alone."""
    with serving(world) as first:
        assert first.open().status == 200 and first.get("overview").status == 200
        with process(world) as started:
            unused = Page(first_url(started))
        proof, port = first.proof, first.port
    with serving(world, "--port", str(port)) as page:
        assert page.send("GET", "/api/overview", None, **proof).status == 401
        for key in (first.link_key, unused.link_key):
            assert page.open(key).status == 401
        assert page.open().status == 200


def test_the_cookie_and_the_headers(world: World) -> None:
    with serving(world) as page:
        told = page.open()
        assert (
            "; HttpOnly; SameSite=Strict" in told.headers["set-cookie"] and "Domain" not in told.headers["set-cookie"]
        )
        for answer in (told, page.send("GET", "/"), page.send("GET", "/page.js"), page.get("overview"), page.send("GET", "/nothing"), page.send("GET", "/api/x")):  # fmt: skip
            headers = answer.headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
            assert headers["cache-control"] == "no-store" and "server" not in headers
            assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    ["/../page.html", "/static/page.html", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/api/../api/overview", "/API/overview",
     "/api//overview", "/api/overview/", "/page.js%00", "/api%2foverview", "/.git/config"],
)  # fmt: skip
def test_path_tricks(world: World, page: Page, path: str) -> None:
    assert _unchanged(world, page, "GET", path) in (401, 404)


def test_nothing_changes_by_get(world: World, page: Page) -> None:
    for path in ("act", "session"):
        answer = page.get(path, action="halt", key=page.link_key)
        assert answer.status == 405, answer
    for method in ("PUT", "DELETE", "PATCH", "TRACE"):
        assert page.send(method, "/api/act", None, **page.proof).status == 405
    before = world.refs()
    for path, query in (
        ("overview", {}), ("overview", {"seq": 1}), ("rows", {"list": "claims"}), ("timeline", {}), ("path", {"of": "src/a.py"}),
        ("agent", {"of": "alice"}), ("landing", {"of": "alice"}), ("contention", {}), ("plan", {"action": "kill", "subject": "alice"}),
    ):  # fmt: skip
        assert page.get(path, **query).status == 200, path
    assert world.refs() == before


def test_without_act_nothing_is_done(world: World) -> None:
    before = world.head
    with serving(world) as page:
        page.open()
        assert page.get("plan", action="halt").json["error"] == "read-only"
        assert page.post("act", {"action": "halt", "subject": "", "seal": ""}).json["error"] == "read-only"
        assert page.get("overview").json["acts"] is False
    assert world.head == before


def test_who_may_start_one_that_acts(world: World) -> None:
    done = world.coord("page", "--act", "--no-open", agent="alice")
    assert done.code == 1 and "only a person at a terminal" in done.err
    done = world.coord("page", "--act", "--no-open", agent="")
    assert done.code == 2 and "only a person at a terminal" in done.err
    shown = world.person("page", "--act", "--no-open", "--listen", "0.0.0.0")
    assert shown.code == 2 and "not encrypted" in shown.out


def test_hostile_words_in_requests(world: World, page: Page) -> None:
    """Wrong words are answered, never a trace."""
    for path, query in (
        ("path", {"of": ""}), ("path", {"of": "../x"}), ("path", {"of": "a\0b"}), ("path", {"of": "@"}), ("agent", {"of": "<script>"}),
        ("agent", {"of": "nobody"}), ("task", {"of": "t999999999999999999"}), ("task", {"of": ""}), ("approval", {"of": "'"}),
        ("contention", {"of": "soon"}), ("overview", {"seq": "99999999"}), ("rows", {"list": "__class__"}), ("plan", {"action": "__init__"}),
        ("plan", {"action": "kill", "subject": "../x"}), ("plan", {"action": "raise", "subject": "1", "value": "now"}), ("nothing", {}),
    ):  # fmt: skip
        answer = page.get(path, **query)
        assert answer.status in (200, 400, 404, 409), (path, query, answer)
        assert b"Traceback" not in answer.body and answer.headers["content-type"] == "application/json"
    for body in (b"", b"[]", b"{", b'"x"', b"[" * 8000, b"\xff", b'{"action":["halt"]}'):
        answer = page.send("POST", "/api/act", body, Origin=page.origin, **JSON, **page.proof)
        assert answer.status in (400, 409), (body[:20], answer)

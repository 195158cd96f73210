"""The ledger and every `--json` are exactly as docs/format.md describes them: its tables are read here."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gitcoord.base import errors
from gitcoord.ledger.kinds import KINDS, kind_of
from tests.cli.support import Done, World
from tests.gates.places import CHAIN, CONFIG, pretend
from tests.support import COORD, ROOT

PAGE = (ROOT / "docs/format.md").read_text()
Table = dict[str, str]  # key (with '?' where it may be missing) -> type


def _tables() -> dict[str, Table]:
    """The table below each heading 'Shape: x', 'Event: x' or 'Record: x'."""
    found: dict[str, Table] = {}
    name = ""
    for line in PAGE.splitlines():
        if line.startswith("#"):
            name = line.lstrip("# ")
        elif line.startswith("| `") and ": " in name:
            key, kind = (cell.strip() for cell in line.strip("|").split("|")[:2])
            found.setdefault(name, {})[key.strip("`")] = kind
        elif line.startswith("| key") and ": " in name:
            found.setdefault(name, {})
    found["Shape: granted claim"] = {**found["Shape: held claim"], **found["Shape: granted claim"]}
    found["Shape: shown claim"] = {**found["Shape: held claim"], **found["Shape: shown claim"]}
    return found


TABLES = _tables()
_PLACES = {
    "pair": (str, str), "numbered path": (str, int), "file": (str, str, str), "counted file": (str, int, int),
}  # fmt: skip
_SCALARS = {"string": str, "integer": int, "boolean": bool, "object": dict}


def wrong(value: object, kind: str, where: str = "") -> Iterator[str]:
    """Every place where the value is not what the page says."""
    if kind.endswith(" or null"):
        if value is not None:
            yield from wrong(value, kind.removesuffix(" or null"), where)
    elif kind.startswith("list of "):
        if type(value) is not list:
            yield f"{where} is no list: {value!r}"
        else:
            for index, item in enumerate(value):
                yield from wrong(item, kind.removeprefix("list of "), f"{where}[{index}]")
    elif kind in _SCALARS:
        if type(value) is not _SCALARS[kind]:
            yield f"{where} is no {kind}: {value!r}"
    elif kind in _PLACES:
        if type(value) is not list or tuple(map(type, value)) != _PLACES[kind]:
            yield f"{where} is no {kind}: {value!r}"
    else:
        yield from wrong_table(value, TABLES[f"Shape: {kind}"], where)


def wrong_table(value: object, table: Table, where: str = "") -> Iterator[str]:
    if type(value) is not dict:
        yield f"{where} is no object: {value!r}"
        return
    kinds = {key.rstrip("?"): kind for key, kind in table.items()}
    for key in value:
        if key not in kinds:
            yield f"{where}.{key} is not documented"
        else:
            yield from wrong(value[key], kinds[key], f"{where}.{key}")
    for key in table:
        if not key.endswith("?") and key not in value:
            yield f"{where}.{key} is missing"


def holds(done: Done, shape: str) -> Any:
    """Assert that the command printed one line of ASCII with exactly this shape, and return it."""
    assert done.out.isascii() and done.out.endswith("\n") and done.out.count("\n") == 1, done
    row = dict(done.json)
    for key, kind in (("news", "news"), ("granted_to", "list of named request")):
        assert list(wrong(row.pop(key), kind, f".{key}") if key in row else ()) == []
    assert list(wrong(row, shape)) == []
    assert done.json["ok"] is (done.code == 0)
    return done.json


def refused(done: Done, error: str, code: int = 1) -> Any:
    row = holds(done, "error")
    assert (row["error"], done.code) == (error, code)
    return row


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One repository with a little of everything; the tests below read it, or leave it as it was."""
    with tempfile.TemporaryDirectory() as name:
        world = World(Path(name))
        world.commit({".gitcoord/config": '[resource "gpu"]\n\tcapacity = 2\n[resource "db"]\n\twrite = carol\n'})
        world.init()
        world.take("src/a.py", "docs", "-m", "fix", "--task", "T-1", "--nonce", "n1")
        world.take("@gpu", agent="bob")
        yield world


# --- the page itself -----------------------------------------------------------------------------------------------


def test_every_type_on_the_page_is_known() -> None:
    for name, table in TABLES.items():
        for key, kind in table.items():
            for word in kind.removesuffix(" or null").split("list of "):
                assert not word or word in _SCALARS or word in _PLACES or f"Shape: {word}" in TABLES, (name, key, kind)


def test_the_check_can_fail() -> None:
    assert list(wrong({"ok": True, "version": 1}, "version")) == [".version is no string: 1"]
    assert list(wrong({"ok": 1, "more": 2}, "version")) == [
        ".ok is no boolean: 1",
        ".more is not documented",
        ".version is missing",
    ]
    assert list(wrong([["a", "b"], ["a", 1]], "list of pair", "x")) == ["x[1] is no pair: ['a', 1]"]


def _all_errors(base: type[errors.GitcoordError]) -> Iterator[type[errors.GitcoordError]]:
    yield base
    for below in base.__subclasses__():
        yield from _all_errors(below)


def test_every_error_code_is_on_the_page() -> None:
    paragraph = PAGE[PAGE.index("Every `error` has the exit code") : PAGE.index("### Shape: error")]
    codes = {error.code for error in _all_errors(errors.GitcoordError) if error is not errors.Refused}
    for source in (ROOT / "gitcoord").rglob("*.py"):
        lines = source.read_text().replace("Refusal(\n", "Refusal(").splitlines()
        codes |= {
            line.split("Refusal(")[1].strip().split('"')[1]
            for line in lines
            if "Refusal(" in line and line.split("Refusal(")[1].strip().startswith('"')
        }
    missing = {code for code in codes if f"`{code}`" not in paragraph}
    assert not missing


# --- the ledger ----------------------------------------------------------------------------------------------------


def _shape_of(kind: str) -> object:
    """The page's type as the codec spells it."""
    if kind.startswith("list of "):
        return [_shape_of(kind.removeprefix("list of "))]
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind in _PLACES:
        return _PLACES[kind]
    return {key: _shape_of(k) for key, k in TABLES[f"Shape: {kind}"].items()}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_event_has_the_fields_of_the_page(kind: str) -> None:
    found = kind_of(kind)
    expected = {**found.fields, **{f"{key}?": shape for key, shape in found.optional.items()}}
    assert {key: _shape_of(k) for key, k in TABLES[f"Event: {kind}"].items()} == expected


def test_no_kind_on_the_page_is_unknown() -> None:
    assert {name.removeprefix("Event: ") for name in TABLES if name.startswith("Event: ")} == {*KINDS, "every kind"}


def test_the_ledger_is_as_described(git_repo: Path) -> None:
    """Every event and every file that ordinary work leaves."""
    world = World(git_repo, ledger=True)
    world.take("src", "--nonce", "n1")
    world.claim("src", agent="bob")
    world.take("docs", agent="bob")
    world.commit({"src/a.py": "new\n"})
    world.claim("release", "src")
    world.take("src/b.py")
    world.fall_silent("alice")
    world.take("src/b.py", agent="bob")
    world.person("kill", "bob")
    world.person("halt", "-m", "x")
    for message in world.git("log", "--format=%B%x00", "gitcoord", "--").split("\0"):
        if not message.strip():
            continue
        subject, line, trailers = message.strip("\n").split("\n\n")
        record = json.loads(line)
        table = {**TABLES["Event: every kind"], **TABLES[f"Event: {record['kind']}"]}
        assert list(wrong_table(record, table)) == []
        assert line == json.dumps(record, sort_keys=True, separators=(",", ":"))
        assert trailers == f"Seq: {record['seq']}\nKind: {record['kind']}" and 0 < len(subject) <= 100
    seen = set()
    for file in world.git("ls-tree", "-r", "--name-only", "gitcoord").splitlines():
        top = file.split("/")[0]
        seen.add(top)
        if top != "README.md":
            name = {"claims": "claim", "agents": "agent", "nonces": "nonce"}.get(top, top)
            assert (
                list(wrong_table(json.loads(world.git("show", f"gitcoord:{file}")), TABLES[f"Record: {name}"])) == []
            ), file
    assert seen == {"README.md", "format", "agents", "lineage", "nonces", "halt"}
    for agent in ("alice", "bob"):
        beat = json.loads(world.git("cat-file", "blob", f"refs/gitcoord/sessions/{agent}"))
        assert list(wrong_table(beat, TABLES["Record: heartbeat"])) == []
    assert "judged" in json.loads(world.git("cat-file", "blob", "refs/gitcoord/sessions/alice")) or "killed" in beat


def test_a_claim_file_is_as_described(world: World) -> None:
    record = json.loads(world.git("show", "gitcoord:claims/path/src/a.py/@alice"))
    assert list(wrong_table(record, TABLES["Record: claim"])) == []


def test_settings_and_notes_are_on_the_page(world: World) -> None:
    for line in world.git("config", "--local", "--list").splitlines():
        if line.startswith("gitcoord."):
            assert f"`{line.split('=')[0]}`" in PAGE
    for path in (world.top / ".git/gitcoord").rglob("*"):
        if path.is_file():
            name = str(path.relative_to(world.top / ".git/gitcoord"))
            assert f"`{name}`" in PAGE or f"`{name.split('/')[0]}/<" in PAGE, name


def test_refs_are_on_the_page(world: World) -> None:
    for ref in world.refs():
        known = [
            f"`{ref}`" in PAGE,
            ref.startswith(("refs/claims/path/", "refs/claims/resource/", "refs/gitcoord/sessions/")),
            ref == "refs/heads/main",
        ]
        assert any(known), ref


# --- git claim -----------------------------------------------------------------------------------------------------


def test_take(world: World) -> None:
    row = holds(world.claim("src/b.py", "--json"), "grant")
    assert row["claims"][0]["path"] == "src/b.py" and row["claims"][0]["token"] == row["token"]
    assert holds(world.claim("src/b.py", "--json"), "grant")["renewed"] is True
    assert (
        holds(world.claim("src/a.py", "docs", "-m", "fix", "--task", "T-1", "--nonce", "n1", "--json"), "grant")[
            "repeated"
        ]
        is True
    )
    assert holds(world.claim("x", "-n", "--json"), "would grant")["dry_run"] is True
    released = holds(world.claim("release", "src/b.py", "--json"), "releases")["released"]
    assert [(row["kind"], row["path"], row["files"]) for row in released] == [("path", "src/b.py", [])]


def test_take_refused(world: World) -> None:
    row = refused(world.claim("src", "docs", "--json", agent="bob"), "held")
    assert [held["path"] for held in row["held"]] == ["src/a.py", "docs"]
    assert row["held"][0]["reason"] == "fix" and 1700 < row["held"][0]["expires_in_seconds"] <= 1830
    refused(world.claim("@db", "--json"), "access")
    refused(world.claim("@gpu", "--units", "3", "--json"), "capacity")
    refused(world.claim("x", "--nonce", "n1", "--json"), "nonce")
    refused(world.claim("x", "--ttl", "never", "--json"), "usage", 2)
    refused(world.claim("x", "--json", agent=""), "usage", 2)
    row = refused(world.claim("docs", "--wait", "1s", "--json", agent="bob"), "timeout", 3)
    assert f"left the queue (ticket {row['ticket']})" in row["message"] and "stays" not in row
    assert (row["position"], row["of"], row["before"], row["held"][0]["path"]) == (1, 1, [], "docs")
    refused(world.claim("release", "nothing", "--json"), "not-held")
    refused(world.claim("renew", "nothing", "--json"), "not-held")
    refused(world.claim("disown", "src", "--reason", "x", "--json"), "no-lineage")
    refused(
        world.claim("takeover", "src/a.py", "--token", "3", "--force", "--reason", "x", "--json", agent="bob"), "person"
    )
    refused(world.claim("x", "--json", env={"GITCOORD_SESSION": "99"}), "session-over")


def test_list_and_show(world: World) -> None:
    row = holds(world.claim("list", "--json"), "listing")
    assert [claim["path"] for claim in row["claims"]] == ["docs", "src/a.py", "@gpu"]
    holds(world.claim("--json"), "listing")
    holds(world.claim("list", "--mine", "--all", "--json"), "listing")
    assert [claim["path"] for claim in holds(world.claim("show", "src", "--json"), "around")["claims"]] == ["src/a.py"]
    assert holds(world.claim("show", "nothing", "--json"), "around")["claims"] == []


def test_check(world: World) -> None:
    assert [row["verdict"] for row in holds(world.claim("check", "docs", "x", "--json"), "verdicts")["paths"]] == [
        "mine",
        "free",
    ]
    row = holds(world.claim("check", "docs", "--json", agent="bob"), "verdicts")
    assert row["allowed"] is False and row["paths"][0]["held"][0]["agent"] == "alice"


def test_renew_release_disown_and_what_was_lost(git_repo: Path) -> None:
    world = World(git_repo, ledger=True)
    world.take("src")
    world.take("etc")
    holds(world.claim("renew", "--json"), "grant")
    world.commit({"src/a.py": "new\n"})
    row = holds(world.claim("release", "src", "--json"), "releases")["released"][0]
    assert row["files"] == [["src/a.py", "100644", world.git("rev-parse", "HEAD:src/a.py")]]
    world.fall_silent("alice")
    assert holds(world.coord("sweep", "--json", agent="bob"), "swept")["expired"][0]["path"] == "etc"
    assert holds(world.claim("disown", "src", "--reason", "x", "--json"), "disowned")["lost"][0]["path"] == "etc"
    token = world.take("src")
    taken = world.at_terminal("takeover", "src", "--token", str(token), "--force", "--reason", "x", "--json")
    assert holds(taken, "taken")["taken_from"]["token"] == token
    assert holds(world.claim("x", "--json"), "grant")["lost"][0]["token"] == token
    holds(by_person(world, "halt"), "halted")
    assert holds(world.claim("check", "src", "--json"), "verdicts")["refused"] == "halted"
    refused(world.claim("y", "--json"), "halted")
    refused(world.coord("unhalt", "--json"), "person")
    holds(world.person("unhalt", "--json"), "halted")


# --- git coord -----------------------------------------------------------------------------------------------------


def test_init(git_repo: Path) -> None:
    world = World(git_repo)
    assert holds(world.coord("init", "--policy", "--json"), "set up")["policy"] == [
        ".gitcoord/config",
        ".gitcoord/rules.md",
        ".gitattributes",
    ]
    assert holds(world.coord("init", "--json"), "set up")["created"] is False
    assert holds(world.coord("init", "--adopt", "--json"), "set up")["adopted"] is False
    world.git("update-ref", "-d", "refs/heads/gitcoord")
    refused(world.claim("x", "--json"), "could-not-judge", 4)


def by_person(world: World, *words: str) -> Done:
    """The answer alone, without the hints that a terminal shows in the same stream."""
    done = world.person(*words, "--json")
    return done._replace(out=done.out.splitlines(keepends=True)[0])


def test_sessions(git_repo: Path) -> None:
    world = World(git_repo, ledger=True)
    assert holds(world.coord("start", "--json"), "started")["opened"] is True
    world.take("src")
    assert holds(world.coord("stop", "--json"), "stopped")["released"] == ["src"]
    assert holds(world.coord("stop", "--json"), "stopped")["stopped"] is False
    world.take("src")
    assert holds(by_person(world, "kill", "alice"), "killed")["freed"][0]["path"] == "src"
    refused(world.claim("src", "--json"), "killed")
    refused(world.person("kill", "nobody", "--json"), "no-agent")
    assert holds(world.person("revive", "alice", "--json"), "revived")["revived"] is True


def test_the_queue(tmp_path: Path) -> None:
    world = World(tmp_path, ledger=True)
    world.take("src")
    place = world.claim("--queue", "src", "-m", "fix", "--json", agent="bob")
    assert place.code == 3 and list(wrong(place.json, "place in the queue")) == []
    ticket = str(place.json["ticket"])
    assert holds(world.claim("list", "--json"), "listing")["news"]["waiters"][0]["ticket"] == place.json["ticket"]
    assert holds(world.claim("check", "src", "--json"), "verdicts")["paths"][0]["waits"]
    assert holds(world.claim("show", "src", "--json"), "around")["waits"]
    assert holds(world.coord("status", "--json"), "status")["waits"]
    raised = world.at_terminal("--ticket", ticket, "--priority", "high", "--json")
    assert list(wrong(raised.json, "raised request")) == []
    assert holds(world.claim("--leave", "--json", agent="bob"), "left the queue")["left"]
    assert world.claim("--queue", "src", agent="bob").code == 3
    assert holds(world.claim("release", "src", "--json"), "releases")["granted_to"]
    assert holds(world.claim("check", "src", "--json", agent="bob"), "verdicts")["news"]["granted"]
    assert holds(world.coord("log", "--json"), "log")["events"][0]["event"]["granted"]


def test_looking(world: World) -> None:
    row = holds(world.coord("status", "--json"), "status")
    assert row["ledger"] == world.head and [agent["agent"] for agent in row["agents"]] == ["alice", "bob"]
    holds(world.coord("agents", "--json"), "agents")
    events = holds(world.coord("log", "--json"), "log")["events"]
    assert [event["seq"] for event in events] == list(range(len(world.events()), 0, -1))
    for event in events:
        assert (
            list(wrong_table(event["event"], {**TABLES[f"Event: {event['kind']}"], "refused": "list of refusal count"}))
            == []
        )
    assert holds(world.coord("fsck", "--json"), "fsck")["clean"] is True
    rows = holds(world.coord("resources", "--json"), "resources")["resources"]
    assert [(row["resource"], row["declared"], row["capacity"]) for row in rows] == [
        ("@db", True, 1),
        ("@gpu", True, 2),
    ]
    holds(world.coord("version", "--json"), "version")
    refused(world.coord("log", "--kind", "nonsense", "--json"), "usage", 2)
    halted = holds(world.at_terminal("status", "--json", argv=COORD), "status")
    assert halted["halted"] is None


@pytest.mark.parametrize("way", [CHAIN, CONFIG])
def test_hooks_setup_and_teardown(git_repo: Path, tmp_path: Path, way: str) -> None:
    world = World(git_repo)
    pretend(tmp_path, way)
    (tmp_path / "git-claim").write_text("#!/bin/sh\n")
    (tmp_path / "git-claim").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def coord(*words: str) -> Done:
        return world.coord(*words, "--json", agent="", env=env)

    refused(coord("install-hooks"), "not-initialised", 2)
    world.write(".git/hooks/pre-commit", "#!/bin/sh\n")
    world.write(".claude/settings.json", "{ broken")
    assert holds(coord("setup", "--dry-run"), "set up whole")["created"] is True
    first = holds(coord("setup"), "set up whole")["hooks"][0]
    assert first.get("before", "").endswith("pre-commit.before-gitcoord") or way == CONFIG
    rows = holds(coord("setup"), "set up whole")["tools"]
    assert {row["action"] for row in rows} == {"left", "unchanged"}
    assert holds(coord("install-hooks"), "installed hooks")["changed"] is False
    assert holds(coord("repositories"), "repositories")["repositories"]
    assert holds(coord("uninstall-hooks"), "removed hooks")["changed"] is True
    if way == CHAIN:
        world.write("lefthook.yml", "")
        assert refused(coord("install-hooks"), "managed")["manager"] == "lefthook"
        assert holds(coord("setup"), "set up whole")["way"] == "managed"
    world.take("src")
    refused(coord("teardown", "--yes"), "live-claims")
    refused(coord("teardown"), "usage", 2)
    world.free("alice")
    assert holds(coord("teardown", "--dry-run"), "torn down")["removed"] is False
    assert holds(coord("teardown", "--yes"), "torn down")["bring_back"]
    assert holds(coord("teardown", "--yes"), "torn down")["archive"] == ""


def test_fsck_with_differences(git_repo: Path) -> None:
    world = World(git_repo, ledger=True)
    commit = world.git("commit-tree", "gitcoord^{tree}", "-p", "gitcoord", "-m", "by hand")
    world.git("update-ref", "refs/heads/gitcoord", commit)
    assert holds(world.coord("fsck", "--json"), "fsck")["differences"]
    assert holds(world.coord("log", "--json"), "log")["events"][0]["kind"] == "?"
    assert holds(world.coord("fsck", "--repair", "--json"), "fsck")["repaired"]
    world.person("halt", "-m", "x")
    assert holds(world.coord("status", "--json"), "status")["halted"]["reason"] == "x"

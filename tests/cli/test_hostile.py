"""Hostile words and records, each with the one right answer. A refused command changes nothing at all.

`World.run` itself holds that no control byte ever reaches stdout or stderr.
"""

from __future__ import annotations

import os
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.support import World

NFC = unicodedata.normalize("NFC", "café.py")
NFD = unicodedata.normalize("NFD", "café.py")
BIDI = "invoice\u202efdp.exe"
LONG = "n" * 300


def _make(path: Path, *, fold: bool = False) -> World:
    world = World(path)
    elsewhere = path / ".git/elsewhere"
    elsewhere.mkdir()
    os.symlink(elsewhere, path / "out")
    os.symlink("src", path / "link")
    (path / "sub").mkdir()
    (path / "star*.txt").write_text("a glob that is a name\n")
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "links")
    return world.init(fold=fold)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One repository for the whole table: what is refused leaves it as it was, what is granted is given back."""
    with tempfile.TemporaryDirectory() as name:
        yield _make(Path(name))


@pytest.fixture(scope="module")
def folding() -> Iterator[World]:
    with tempfile.TemporaryDirectory() as name:
        yield _make(Path(name), fold=True)


class Bad(NamedTuple):
    name: str
    words: tuple[str | bytes, ...]
    message: str
    code: int = 2
    env: dict[str, str] = {}
    cwd: str = ""


REFUSED = (
    # --- paths
    Bad("parent", ("../x",), "outside the repository"),
    Bad("parent-inside", ("src/../../x",), "outside the repository"),
    Bad("parent-from-below", ("../../x",), "outside the repository", cwd="sub"),
    Bad("absolute-outside", ("/etc/passwd",), "outside the repository"),
    Bad("root-of-all", ("/",), "outside the repository"),
    Bad("empty", ("",), "a path is empty"),
    Bad("dot-git", (".git/config",), "git's own directory"),
    Bad("dot-git-itself", (".git",), "git's own directory"),
    Bad("dot-git-upper", (".GIT/config",), "git's own directory"),
    Bad("dot-git-below", ("src/.git/config",), "git's own directory"),
    Bad("dot-git-dot", (".git./x",), "git's own directory"),
    Bad("dot-git-space", (".git /x",), "git's own directory"),
    Bad("dot-git-short", ("git~1",), "git's own directory"),
    Bad("dot-git-short-upper", ("GIT~1/config",), "git's own directory"),
    Bad("dot-git-ignorable", (".g\u200cit/x",), "git's own directory"),
    Bad("dot-git-bom", ("\ufeff.git/x",), "git's own directory"),
    Bad("dot-git-stream", (".git::$INDEX_ALLOCATION/x",), "git's own directory"),
    Bad("dot-git-through-dots", ("src/../.git/config",), "git's own directory"),
    Bad("dot-git-backslash", (".git\\config",), "git's own directory"),
    Bad("option", ("-rf",), "No such option"),
    Bad("long-option", ("--no-such-option", "x"), "No such option"),
    Bad("escape-option", ("--\x1b[31mred", "x"), "No such option"),
    Bad("escape-extra", ("list", "\x1b[31mred"), "unexpected extra argument"),
    Bad("4-KiB", ("d/" * 2040 + "x",), "too long for a claim"),
    Bad("4-KiB-component", ("x" * 4096,), "too long for a claim"),
    Bad("5-KiB-component", ("x" * 5000,), "too long"),
    Bad("long-escapes", ("\x01" * 1100,), "too long for a claim"),
    Bad("beyond-link-out", ("out/x",), "leads out of the work tree"),
    Bad("glob-without-match", ("nothing-*.zip",), "no tracked file matches"),
    Bad("glob-outside", ("../*",), "outside repository"),
    Bad("pathspec-magic-unknown", (":(nonsense)src",), "magic"),
    Bad("pathspec-without-match", (":(top)nothing",), "no tracked file matches"),
    Bad("escape-in-bad-path", ("../\x1b]red",), "outside the repository"),
    Bad("escape-in-bad-glob", ("../\x1b[31mred*",), "outside repository"),
    Bad("good-and-bad", ("src/a.py", "../x"), "outside the repository"),
    Bad("show-glob-of-many", ("show", "src/*"), "one is needed"),
    Bad("release-of-what-is-not-held", ("release", "src/a.py"), "does not hold", code=1),
    Bad("release-nothing-named", ("release",), "name the paths"),
    Bad("release-all-and-paths", ("release", "--all", "src/a.py"), "without paths"),
    Bad("release-commit-option", ("release", "src", "--commit", "--output=/tmp/x"), "is not a commit"),
    Bad("release-commit-escape", ("release", "src", "--commit", "\x1b[31m"), "is not a commit"),
    Bad("release-commit-range", ("release", "src", "--commit", "HEAD..HEAD"), "is not a commit"),
    # --- resources
    Bad("resource-empty", ("@",), "not a resource name"),
    Bad("resource-double-slash", ("@a//b",), "not a resource name"),
    Bad("resource-parent", ("@../x",), "not a resource name"),
    Bad("resource-slash-end", ("@a/",), "not a resource name"),
    Bad("resource-space", ("@a b",), "not a resource name"),
    Bad("resource-escape", ("@\x1b[31m",), "not a resource name"),
    Bad("resource-unicode", ("@datenbänke",), "not a resource name"),
    Bad("resource-option", ("@-x",), "not a resource name"),
    Bad("resource-long", ("@" + "r" * 201,), "not a resource name"),
    Bad("resource-without-lineage", ("disown", "@gpu", "--reason", "x"), "no lineage"),
    # --- agents
    *(
        Bad(f"agent-{name[:8].strip()!a}", ("src",), "is not an agent name", env={"GITCOORD_AGENT": name})
        for name in (
            "Alice", "a/b", "..", "a..b", "a.lock", "a.", ".a", "-a", "@a", "a" * 65, "a b", "a\nb", "\x1b[31m", "ä", "a\u200b",
            "*", "$(id)", "a@{0}", "refs/heads/main", " ",
        )
    ),
    Bad("agent-empty", ("src",), "nobody is named here", env={"GITCOORD_AGENT": ""}),
    Bad("session-garbage", ("src",), "GITCOORD_SESSION", env={"GITCOORD_SESSION": "garbage"}),
    Bad("session-negative", ("src",), "GITCOORD_SESSION", env={"GITCOORD_SESSION": "-1"}),
    Bad("session-digits", ("src",), "GITCOORD_SESSION", env={"GITCOORD_SESSION": "9" * 5000}),
    Bad("session-arabic", ("src",), "GITCOORD_SESSION", env={"GITCOORD_SESSION": "٣"}),
    Bad("session-unknown", ("src",), "has ended", code=1, env={"GITCOORD_SESSION": "99"}),
    # --- ttls
    *(
        Bad(f"ttl-{ttl[:8]}", ("src", "--ttl", ttl), message)
        for ttl, message in (
            ("0", "out of range"), ("0s", "out of range"), ("-5m", "is not a duration"), ("1e9", "is not a duration"),
            ("nan", "is not a duration"), ("inf", "is not a duration"), ("1.5h", "is not a duration"),
            ("9" * 5000, "is not a duration"), ("99999999999", "out of range"), ("8d", "out of range"), ("", "is not a duration"),
            ("1h30", "is not a duration"), ("m", "is not a duration"), (" 5m", "is not a duration"), ("5m\n", "is not a duration"),
            ("٣m", "is not a duration"), ("0x10", "is not a duration"), ("+5m", "is not a duration"), ("5 m", "is not a duration"),
            ("5M", "is not a duration"), ("\x1b[31m", "is not a duration"),
        )
    ),
    Bad("wait-0", ("src", "--wait", "0"), "out of range"),
    Bad("wait-words", ("src", "--wait", "forever"), "is not a duration"),
    Bad("expect-words", ("src", "--expect", "soon"), "is not a duration"),
    # --- numbers
    Bad("units-0", ("@gpu", "--units", "0"), "units"),
    Bad("units-negative", ("@gpu", "--units", "-1"), "needs a number"),
    Bad("units-huge", ("@gpu", "--units", "99999999999999999999"), "needs a number"),
    Bad("units-15-digits", ("@gpu", "--units", "9" * 15), "unit(s)", code=1),
    Bad("units-fraction", ("@gpu", "--units", "1.5"), "needs a number"),
    Bad("units-words", ("@gpu", "--units", "many"), "needs a number"),
    Bad("units-on-a-path", ("src", "--units", "2"), "for resources"),
    Bad("token-digits", ("takeover", "src", "--force", "--reason", "x", "--token", "9" * 5000), "needs a number"),
    Bad("token-negative", ("takeover", "src", "--force", "--reason", "x", "--token=-3"), "needs a number"),
    Bad("token-empty", ("takeover", "src", "--force", "--reason", "x", "--token="), "needs a number"),
    Bad("token-missing", ("takeover", "src", "--force", "--reason", "x"), "Missing option"),
    Bad("force-missing", ("takeover", "src", "--token", "3", "--reason", "x"), "--force"),
    Bad("reason-missing", ("takeover", "src", "--token", "3", "--force"), "Missing option"),
    Bad("mode-unknown", ("src", "--mode", "exclusive"), "exclusive"),
    Bad("mode-escape", ("src", "--mode", "\x1b[31m"), "is not one of"),
    # --- nonces, tasks
    *(
        Bad(f"nonce-{number}", ("src", "--nonce", nonce), "is not a nonce")
        for number, nonce in enumerate(("a b", "a/b", "../x", "n" * 5000, "", "-x", ".x", "ü", "a\nb", "\x1b[31m", "a\u202eb", "@{0}"))
    ),
    Bad("task-slash", ("src", "--task", "a/b"), "is not a task"),
    Bad("task-escape", ("src", "--task", "\x1b]0;x\x07"), "is not a task"),
    # --- reasons
    Bad("reason-10-kB", ("src", "-m", "x" * 10_000), "longer than"),
    Bad("reason-escape", ("src", "-m", "\x1b[31mred"), "cannot be printed"),
    Bad("reason-newline", ("src", "-m", "two\nlines"), "cannot be printed"),
    Bad("reason-bidi", ("src", "-m", "abc\u202edef"), "cannot be printed"),
    Bad("reason-c1", ("src", "-m", "a\x9b31mb"), "cannot be printed"),
    Bad("reason-not-utf-8", ("src", "-m", b"a\xffb"), "cannot be printed"),
    Bad("disown-reason-escape", ("disown", "src", "--reason", "\x1b[31m"), "cannot be printed"),
    Bad("disown-reason-empty", ("disown", "src", "--reason", ""), "needs a reason"),
)  # fmt: skip


@pytest.mark.parametrize("bad", REFUSED, ids=lambda bad: bad.name)
def test_refused_and_nothing_changed(world: World, bad: Bad) -> None:
    before = world.refs()
    done = world.claim(*bad.words, cwd=bad.cwd, env=bad.env)
    after = world.refs()
    if after != before:
        world.free()
    assert done.code == bad.code, done
    assert done.out == ""
    assert bad.message in done.err
    assert done.err.startswith("error: ")
    assert after == before


class Good(NamedTuple):
    name: str
    words: tuple[str | bytes, ...]
    paths: tuple[str, ...]
    cwd: str = ""


GRANTED = (
    Good("option-after-dashes", ("--", "-rf"), ("-rf",)),
    Good("verb-after-dashes", ("--", "list"), ("list",)),
    Good("dashes-after-dashes", ("--", "--"), ("--",)),
    Good("dash", ("-",), ("-",)),
    Good("newline", ("new\nline.txt",), ("new\nline.txt",)),
    Good("tab", ("a\tb",), ("a\tb",)),
    Good("escape", ("\x1bc.txt",), ("\x1bc.txt",)),
    Good("title", ("\x1b]0;owned\x07.txt",), ("\x1b]0;owned\x07.txt",)),
    Good("c1", ("\x9b31m.txt",), ("\x9b31m.txt",)),
    Good("bidi", (BIDI,), (BIDI,)),
    Good("not-utf-8", (b"caf\xe9/\xff\xfe",), ("caf\udce9/\udcff\udcfe",)),
    Good("300-bytes", (LONG,), (LONG,)),
    Good("300-bytes-deep", (f"a/{LONG}/b",), (f"a/{LONG}/b",)),
    Good("emoji", ("docs/👩\u200d🚀.md",), ("docs/👩\u200d🚀.md",)),
    Good("lock", ("x.lock",), ("x.lock",)),
    Good("lock-inside", ("x.lock/y",), ("x.lock/y",)),
    Good("reflog", ("a@{0}",), ("a@{0}",)),
    Good("double-slash", ("a//b",), ("a/b",)),
    Good("dot", ("a/./b",), ("a/b",)),
    Good("dots", ("a/../b",), ("b",)),
    Good("slash-end", ("src/",), ("src",)),
    Good("many-slashes", ("src///",), ("src",)),
    Good("top", (".",), (".",)),
    Good("top-from-below", ("..",), (".",), cwd="sub"),
    Good("here", (".",), ("sub",), cwd="sub"),
    Good("from-below", ("../src/a.py",), ("src/a.py",), cwd="sub"),
    Good("the-link-itself", ("out",), ("out",)),
    Good("the-other-link-itself", ("link",), ("link",)),
    Good("trailing-dot", ("x.",), ("x.",)),
    Good("dots-in-name", ("a..b",), ("a..b",)),
    Good("three-dots", ("...",), ("...",)),
    Good("hidden", (".env",), (".env",)),
    Good("gitignore", (".gitignore",), (".gitignore",)),
    Good("git-like", (".gitx/git~2",), (".gitx/git~2",)),
    Good("percent", ("100%/%2e%2e",), ("100%/%2e%2e",)),
    Good("percent-plus", ("a%+/b",), ("a%+/b",)),
    Good("bucket-like", ("%0/%f",), ("%0/%f",)),
    Good("at-path", ("./@x",), ("@x",)),
    Good("leaf-like", ("src/@alice",), ("src/@alice",)),
    Good("resource", ("@deploy/production",), ("@deploy/production",)),
    Good("quotes", ("it's \"so\".txt",), ("it's \"so\".txt",)),
    Good("shell", ("$(touch owned);`x`|&<>",), ("$(touch owned);`x`|&<>",)),
    Good("ref-specials", ("a~1^2:c\\e",), ("a~1^2:c\\e",)),
    Good("backslash", ("a\\b",), ("a\\b",)),
    Good("glob", ("src/*.py",), ("src/a.py", "src/b.py")),
    Good("glob-from-below", ("../src/*.py",), ("src/a.py", "src/b.py"), cwd="sub"),
    Good("magic-top", (":(top)src/a.py",), ("src/a.py",), cwd="sub"),
    Good("a-name-that-is-a-glob", ("star*.txt",), ("star*.txt",)),
    Good("same-twice", ("src/a.py", "./src//a.py"), ("src/a.py",)),
    Good("windows-device", ("CON",), ("CON",)),
    Good("spaces", (" lead and trail ",), (" lead and trail ",)),
    Good("head", ("HEAD",), ("HEAD",)),
)  # fmt: skip


@pytest.mark.parametrize("good", GRANTED, ids=lambda good: good.name)
def test_granted_one_to_one(world: World, good: Good) -> None:
    words = good.words if good.words[0] == "--" else ("--", *good.words)
    done = world.claim("take", "--json", *words, cwd=good.cwd)
    assert done.code == 0, done
    assert tuple(claim["path"] for claim in done.json["claims"]) == good.paths
    assert len(world.claims()) == len(good.paths)
    held = world.claim(*words, agent="bob", cwd=good.cwd)
    assert held.code == 1 and "held by alice" in held.err
    world.free()
    assert world.claims() == []


@pytest.mark.parametrize("path", ["what?", "a*b"])
def test_a_new_name_with_glob_characters_says_what_it_was_taken_for(world: World, path: str) -> None:
    done = world.claim(path)
    assert done.code == 2 and "no tracked file matches" in done.err and "hint: " in done.err


def test_a_new_name_with_glob_characters_can_be_claimed(world: World) -> None:
    """Routes are often called like this: src/[slug].tsx."""
    for word in (":(literal)src/[slug].tsx", "src/[slug].tsx"):
        done = world.claim(word, "--json")
        assert done.code == 0, done
        world.free()
        assert done.json["claims"][0]["path"] == "src/[slug].tsx"


def test_absolute_inside_works(world: World) -> None:
    done = world.claim(str(world.top / "src/a.py"), "--json")
    assert done.json["claims"][0]["path"] == "src/a.py"
    assert world.claim("release", str(world.top / "src/a.py")).code == 0


def test_hostile_names_are_shown_escaped(world: World) -> None:
    world.take("new\nline", "\x1bcred", BIDI)
    out = world.claim("list").out
    shown = world.claim("show", ".")
    assert shown.code == 0 and "\\x1bcred\n  agent:" in shown.out
    assert "new\\nline" in out and "\\x1bcred" in out and "invoice\\u202efdp.exe" in out
    assert len(out.splitlines()) == 3
    refused = world.claim("new\nline", agent="bob")
    assert "'new\\nline' held by alice" in refused.err
    world.free()


def test_a_hint_is_safe_to_paste(world: World) -> None:
    """Agents run what a hint says; a file's name must not become a command."""
    world.take("x; touch owned")
    hints = [line for line in world.claim("x; touch owned", agent="bob").err.splitlines() if line.startswith("hint:")]
    world.free()
    assert hints and all("x; touch" not in hint.replace("'x; touch owned'", "") for hint in hints), hints


def test_names_that_are_bytes_conflict_with_themselves_only(world: World) -> None:
    world.claim(b"caf\xe9")
    assert world.claim(b"caf\xe9", agent="bob").code == 1
    assert world.claim("café", agent="bob").code == 0
    assert world.claim("caf%E9", agent="bob").code == 0
    assert sorted(world.claims()) == ["path/caf%25E9/@bob", "path/caf%E9/@alice", "path/café/@bob"]
    world.free("alice", "bob")


def test_unicode_forms_are_one_path(world: World) -> None:
    world.take(NFC)
    assert world.claim(NFD, agent="bob").code == 1
    assert world.claim("check", NFD, agent="bob").code == 1
    assert world.claim("check", NFD).code == 0
    assert world.claim("release", NFD).code == 0
    assert world.claims() == []


def test_case_twins_are_two_paths_unless_init_said_otherwise(world: World, folding: World) -> None:
    for here, code in ((world, 0), (folding, 1)):
        here.take("README.md")
        assert here.claim("readme.md", agent="bob").code == code
        assert here.claim("--", "README.MD/x", agent="bob").code == code
        here.free("alice", "bob")
    folding.take("STRASSE")
    assert folding.claim("straße", agent="bob").code == 1
    assert folding.claim("release", "strasse").code == 0


def test_a_copy_of_a_bad_setting_is_refused(world: World) -> None:
    """The work tree's own agent name is judged like any other."""
    world.git("config", "gitcoord.agent", "../../x")
    try:
        done = world.claim("src", agent="")
        assert (done.code, done.out) == (2, "") and "is not an agent name" in done.err
    finally:
        world.git("config", "--unset", "gitcoord.agent")


# --- the project's settings ---------------------------------------------------------------------------------------


SETTINGS = (
    ('[resource "gpu"]\n\tcapacity = 0\n', "gpu"),
    ('[resource "gpu"]\n\tcapacity = -1\n', "gpu"),
    ('[resource "gpu"]\n\tcapacity = many\n', "gpu"),
    ('[resource "gpu"]\n\tcapacity = 10000000000000000000\n', "gpu"),
    ('[resource "gpu"]\n\tcapacity = 1e3\n', "gpu"),
    ('[resource "gpu"]\n\tcapacity\n', "gpu"),
    ('[resource "gpu"]\n\tttl = soon\n', "config"),
    ('[resource "gpu"]\n\tttl = 400d\n', "config"),
    ('[resource "gpu"]\n\tttl = 8d\n', "config"),
    ("[resource\n", "config"),
    ('[resource "gpu"]\n\tcapacity = 2\n\tcapacity = \x1b[31m\n', "gpu"),
)


@pytest.mark.parametrize("text, message", SETTINGS, ids=range(len(SETTINGS)))
def test_settings_that_make_no_sense_are_no_grant(git_repo: Path, text: str, message: str) -> None:
    """Exit 4, could not judge: not the caller's mistake. The ledger stays usable."""
    world = World(git_repo)
    world.commit({".gitcoord/config": text})
    world.init()
    before = world.refs()
    done = world.claim("@gpu")
    assert done.code == 4, done
    assert message in done.err
    assert world.refs() == before
    # A file that git itself cannot read may hold roles that keep this agent from writing: nothing is granted on it.
    assert world.claim("src").code == (4 if text == "[resource\n" else 0)


def test_names_in_the_settings_cannot_upset_a_terminal(git_repo: Path) -> None:
    world = World(git_repo)
    world.commit({".gitcoord/config": '[resource "a\x1b[31mb"]\n\twrite = x\x1b[32my\n'})
    world.init()
    assert world.coord("resources").code == 0


@pytest.mark.parametrize("sync", ["ma\nin", "../x", "-x", "a b", "@{-1}"])
def test_a_sync_branch_that_is_no_branch_name_is_refused(git_repo: Path, sync: str) -> None:
    world = World(git_repo)
    before = world.refs()
    done = world.coord("init", f"--sync={sync}")
    assert done.code == 2, done
    assert world.refs() == before

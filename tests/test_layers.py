"""The directions between layers, read from the sources; and the exact modules that an everyday verb loads."""

from __future__ import annotations

import ast
import marshal
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import NamedTuple

import pytest

from gitcoord.hot import bundle
from tests.support import git

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gitcoord"


class Import(NamedTuple):
    """One name that a module imports, where, and whether only a type checker sees it."""

    name: str
    line: int
    checking: bool


def _is_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _imports(node: ast.AST, checking: bool = False) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, checking) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"a relative import in line {child.lineno}"
            module = child.module or ""
            yield Import(module, child.lineno, checking)
            # `from gitcoord.app import sessions` imports a module too.
            yield from (
                Import(f"{module}.{alias.name}", child.lineno, checking)
                for alias in child.names
                if _is_module(f"{module}.{alias.name}")
            )
        elif isinstance(child, ast.If) and _is_checking(child.test):
            for inner in child.body:
                yield from _imports(ast.Module([inner], []), True)
            for inner in child.orelse:
                yield from _imports(ast.Module([inner], []), checking)
        else:
            yield from _imports(child, checking)


def _is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


SOURCES = {
    str(path.relative_to(PACKAGE)): list(_imports(ast.parse(path.read_text(), str(path))))
    for path in sorted(PACKAGE.rglob("*.py"))
}
LAYERS = ("core", "store", "app", "hot", "adapters")


def _layer(file: str) -> str:
    return file.split("/")[0] if "/" in file else ""


def _target(name: str) -> str:
    """The layer that an import reaches: core, store, ..., or the top module (names, errors, record)."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


def _of_layer(layer: str) -> list[tuple[str, Import]]:
    return [(file, found) for file, imports in SOURCES.items() if _layer(file) == layer for found in imports]


# What a layer may import of gitcoord, for type checkers too.
ALLOWED = {
    "core": {"core", "names", "errors", "record"},
    "store": {"store", "names", "errors", "record"},
    "app": {"app", "core", "store", "names", "errors", "record"},
    "hot": {"hot", "app", "core", "store", "names", "errors", "record"},
    "adapters": {"adapters", "hot", "app", "core", "store", "names", "errors", "record", "__version__"},
}


@pytest.mark.parametrize("layer", LAYERS)
def test_directions(layer: str) -> None:
    wrong = [
        f"{file}:{found.line} {found.name}"
        for file, found in _of_layer(layer)
        if found.name.startswith("gitcoord.") and _target(found.name) not in ALLOWED[layer]
    ]
    # The entries fall back to the full command line for help and mistakes; nothing else of `hot` reaches up.
    entries = {"hot/main.py": "claim", "hot/coord.py": "coord", "hot/handoff.py": "handoff"}
    wrong = [w for w in wrong if f" gitcoord.adapters.cli.{entries.get(w.partition(':')[0], '?')}" not in w]
    assert not wrong


def test_the_top_modules_know_no_layer() -> None:
    for file in ("names.py", "errors.py", "record.py"):
        reached = {_target(found.name) for found in SOURCES[file] if found.name.startswith("gitcoord.")}
        assert reached <= {"errors", "record", "names"}, file


def test_the_core_is_pure() -> None:
    """No I/O, no clock, no environment: C accelerators without side effects are all it may have, and a calendar."""
    pure = {"__future__", "_json", "zlib", "unicodedata", "_collections", "time"}
    wrong = [
        f"{file}:{found.line} {found.name}"
        for file, found in _of_layer("core")
        if not found.checking and not found.name.startswith("gitcoord") and found.name not in pure
    ]
    assert not wrong
    for file in (file for file in SOURCES if _layer(file) == "core"):
        text = (PACKAGE / file).read_text()
        assert "import time" not in text and "from time import" not in text.replace("from time import gmtime\n", ""), (
            file
        )


def test_the_use_cases_read_no_clock_environment_or_terminal() -> None:
    """What they need of the machine is handed in (`Host`, `Repo.env`); files are the store's business."""
    banned = {
        "os",
        "posix",
        "sys",
        "time",
        "signal",
        "_signal",
        "random",
        "fcntl",
        "socket",
        "subprocess",
        "_posixsubprocess",
    }
    wrong = [
        f"{file}:{found.line} {found.name}"
        for file, found in _of_layer("app")
        if not found.checking and found.name.split(".")[0] in banned
    ]
    assert not wrong


def test_only_adapters_and_hot_print() -> None:
    wrong = []
    for file in SOURCES:
        if _layer(file) in ("core", "store", "app", ""):
            for node in ast.walk(ast.parse((PACKAGE / file).read_text())):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name)
                    and node.func.id in ("print", "input")
                ):
                    wrong.append(f"{file}:{node.lineno}")
    assert not wrong


HEAVY = {
    "typing", "dataclasses", "enum", "re", "json", "subprocess", "pathlib", "logging", "collections", "os", "functools",
    "contextlib", "argparse", "typer", "rich", "pygit2", "dulwich", "shutil", "tempfile", "datetime", "random", "signal", "hashlib", "threading",
}  # fmt: skip


def _everyday() -> set[str]:
    """The files of the modules that the bundle loads in groups: those of everyday verbs, hooks and the guard."""
    _, modules, groups = marshal.loads(bundle.build(ROOT)[len(MAGIC_NUMBER) : bundle.HEAD])
    names = {name: is_package for name, (is_package, *_) in modules.items()}
    paths = {
        name: name.removeprefix("gitcoord").lstrip(".").replace(".", "/") for group in groups.values() for name in group
    }
    return {f"{path}/__init__.py".lstrip("/") if names[name] else f"{path}.py" for name, path in paths.items()}


def test_everyday_modules_import_nothing_heavy() -> None:
    """At any level of any function: what is imported late is paid for late, but paid for."""
    everyday = _everyday()
    assert "app/claims.py" in everyday and "app/worktree.py" not in everyday
    wrong = [
        f"{file}:{found.line} {found.name}"
        for file, imports in SOURCES.items()
        if file in everyday
        for found in imports
        if not found.checking and found.name.split(".")[0] in HEAVY
    ]
    assert not wrong


def test_the_rule_can_fail() -> None:
    source = "def f():\n    if x:\n        import re\nif TYPE_CHECKING:\n    import typing\nelse:\n    import os.path\n"
    assert list(_imports(ast.parse(source))) == [
        Import("re", 3, False),
        Import("typing", 5, True),
        Import("os.path", 7, False),
    ]


# --- what an everyday verb loads -----------------------------------------------------------------------------------

# Every verb. Whoever adds an import to the everyday path adds it here, and knows what it costs. The kinds are those of
# the events that the verb meets: the ledger's last one, and its own.
EVERY = """
__future__ _collections _json _sha1 zlib
gitcoord gitcoord.errors gitcoord.names gitcoord.record
gitcoord.app gitcoord.app.context gitcoord.app.ledger
gitcoord.core gitcoord.core.claims gitcoord.core.codec gitcoord.core.durations gitcoord.core.events gitcoord.core.nonces
gitcoord.core.rules gitcoord.core.sessions gitcoord.core.state
gitcoord.core.kinds gitcoord.core.kinds.claim
gitcoord.hot gitcoord.hot.host gitcoord.hot.identity gitcoord.hot.main gitcoord.hot.open gitcoord.hot.options
gitcoord.hot.paths gitcoord.hot.render gitcoord.hot.verbs
gitcoord.store gitcoord.store.files gitcoord.store.interface gitcoord.store.loose gitcoord.store.objects
gitcoord.store.plumbing gitcoord.store.process gitcoord.store.reading gitcoord.store.repo gitcoord.store.settings gitcoord.store.tree
"""
WRITING = """
fcntl
gitcoord.app.claims gitcoord.app.heal gitcoord.app.refusals gitcoord.app.step gitcoord.app.transact gitcoord.app.trees
gitcoord.core.kinds.start gitcoord.hot.changing
gitcoord.store.durable gitcoord.store.locks gitcoord.store.queue
"""
LOADED = {
    "check": EVERY
    + "gitcoord.app.look gitcoord.hot.looking gitcoord.app.policy gitcoord.app.restrict gitcoord.core.policy gitcoord.core.roles",
    "list": EVERY + "gitcoord.app.look gitcoord.hot.looking",
    "take": EVERY
    + WRITING
    + "gitcoord.app.restrict gitcoord.app.retired gitcoord.core.asking gitcoord.core.kinds.init",
    "release": EVERY
    + WRITING
    + "gitcoord.app.facts gitcoord.app.workfacts gitcoord.core.kinds.release gitcoord.core.released",
}
WORDS = {
    "check": ["check", "src"],
    "take": ["src"],
    "release": ["release", "src"],
    "list": ["list"],
    "guard": ["guard"],
}
# What the guard of agents' tools loads before a write: it runs more often than all the others together.
LOADED["guard"] = (
    EVERY.replace("gitcoord.hot.paths gitcoord.hot.render gitcoord.hot.verbs", "")
    + """
errno fcntl gitcoord.app.guard gitcoord.app.look gitcoord.app.policy gitcoord.app.restrict gitcoord.app.seen
gitcoord.app.validators gitcoord.core.guarding gitcoord.core.judge gitcoord.core.lineage gitcoord.core.released
gitcoord.core.policy gitcoord.core.roles gitcoord.core.seen gitcoord.core.toolevents gitcoord.core.validators
gitcoord.hot.conversations gitcoord.hot.coord gitcoord.hot.deeds gitcoord.hot.guard gitcoord.hot.guarding
gitcoord.hot.tools gitcoord.hot.tools.claude gitcoord.hot.tools.words gitcoord.store.notes
gitcoord.store.places
"""
)

_PROGRAM = f"""
import sys
before = set(sys.modules)
sys.path.insert(0, {str(ROOT)!r})
if sys.argv[1] == "guard":
    from gitcoord.hot.coord import main
else:
    from gitcoord.hot.main import main
code = main(sys.argv[1:])
names = sorted(set(sys.modules) - before)
sys.stderr.write("\\n" + " ".join(names))
sys.exit(code)
"""


_EVENT = '{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Edit","tool_input":{"file_path":"src"}}'


def _modules(top: Path, verb: str, event: str = _EVENT) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _PROGRAM, *WORDS[verb]], cwd=top, env={**os.environ, "GITCOORD_AGENT": "alice"},
        capture_output=True, text=True, check=False, input=event if verb == "guard" else "",
    )  # fmt: skip
    assert done.returncode == 0 and (verb != "guard" or not done.stdout or event != _EVENT), done
    return done.stderr.rsplit("\n", 1)[1].split()


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Each verb once, one after the other."""
    top = tmp_path_factory.mktemp("loaded")
    _project(top)
    found = {}
    for verb in ("take", "check", "list", "guard", "release"):
        before = git(top, "for-each-ref", "refs/gitcoord/sessions")
        found[verb] = _modules(top, verb)
        # Looking beats too, where a new slot has just begun: the next look within it is what is meant.
        if verb in ("check", "list", "guard") and git(top, "for-each-ref", "refs/gitcoord/sessions") != before:
            found[verb] = _modules(top, verb)
    return found


def _project(top: Path) -> None:
    """A repository with one file and no settings."""
    git(top, "init", "-q", "-b", "main")
    (top / "src").write_text("x\n")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "one")
    init = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from gitcoord.hot.open import open_repository, environ; "
        "from gitcoord.app.init import init; from gitcoord.core.sessions import Actor; "
        "init(open_repository(environ(), writing=True), Actor('init'), sync='main')"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", init], cwd=top, check=True)


@pytest.mark.parametrize("verb", WORDS)
def test_exactly_these_modules_are_loaded(loaded: dict[str, list[str]], verb: str) -> None:
    # A heartbeat that happens to be due, once in thirty seconds, brings its own housekeeping.
    beat = {"gitcoord.app.retired"}
    there, table = set(loaded[verb]) - beat, set(LOADED[verb].split()) - beat
    assert (sorted(there - table), sorted(table - there)) == ([], []), (
        "(loaded but not in the table, in the table but not loaded)"
    )


def test_only_after_a_command_of_codex_its_record_is_looked_into(tmp_path: Path) -> None:
    _project(tmp_path)
    event = (
        '{"hook_event_name":"%s","session_id":"c","cwd":"%s","turn_id":"1","tool_use_id":"t","transcript_path":"/x",'
        '"tool_name":"Bash","tool_input":{"command":"true"},"tool_response":""}'
    )
    for name, looks in (("PreToolUse", False), ("PostToolUse", True)):
        there = set(_modules(tmp_path, "guard", event % (name, tmp_path)))
        assert "gitcoord.hot.tools.codex" in there and ("gitcoord.hot.rollout" in there) == looks

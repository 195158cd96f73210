"""The packages that each package may import, read from the sources; and how many modules an everyday verb loads."""

from __future__ import annotations

import ast
import marshal
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import NamedTuple

import pytest
import tree_sitter

from gitcoord.startup import bundle
from tests.modules_page import PAGE, page
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
            # `from gitcoord.ledger import sessions` imports a module too.
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


@cache
def parsed() -> dict[str, ast.Module]:
    """All modules. Not parsed on import, since each worker of pytest imports this file."""
    return {
        str(path.relative_to(PACKAGE)): ast.parse(path.read_text(), str(path)) for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def sources() -> dict[str, list[Import]]:
    """The imports of each module."""
    return {file: list(_imports(tree)) for file, tree in parsed().items()}


# The packages, lowest first: a module imports only from its own package and from those before it.
PACKAGES = (
    "startup", "base", "git", "ledger", "validators", "policy", "sessions", "terminal", "claims", "deploy", "gates", "effects", "tasks",
    "handoff", "journal", "worktrees", "radar", "landing", "world", "views", "server", "simulation", "shell", "guard", "audit", "cli", "mcp", "page",
)  # fmt: skip

# The rules: pure functions and records. They may know each other across packages, as events name what other packages keep; they
# know nothing else.
RULES = {
    "claims": "model take family held renew released recall requests queue grants deadlock",
    "deploy": "model targets",
    "effects": "once sequences",
    "gates": "judge lineage model",
    "guard": "findings holds seen",
    "handoff": "model session_hooks",
    "journal": "contention model story",
    "landing": "model",
    "ledger": "event format kinds nonces sessions state world",
    "policy": "model overlay parse roles waiting",
    "radar": "model",
    "server": "retrace",
    "sessions": "admission",
    "tasks": "contracts model session_hooks waiters workers",
    "views": "early needs",
}
PURE_PACKAGES = ("base", "validators", "shell")
NOT_PURE = ("shell/parse",)  # these know the parser's library


def _package(file: str) -> str:
    return file.split("/")[0] if "/" in file else ""


def _file(name: str) -> str:
    """The file of a module of gitcoord, '' for anything else that is imported."""
    path = name.removeprefix("gitcoord").lstrip(".").replace(".", "/")
    if not name.startswith("gitcoord"):
        return ""
    return next((file for file in (f"{path}.py", f"{path}/__init__.py".lstrip("/")) if file in sources()), "")


def _is_rule(file: str) -> bool:
    package, _, rest = file.partition("/")
    named = rest.removesuffix(".py") in RULES.get(package, "").split()
    return (named or "/events/" in file or file.startswith(PURE_PACKAGES)) and not file.startswith(NOT_PURE)


def _is_edge(file: str) -> bool:
    """Handlers of verbs and hooks: beside the package's own, they know the terminal and the command line."""
    return file.rpartition("/")[2].startswith(("cli.py", "cli_", "hook.py"))


def test_every_package_is_in_the_order() -> None:
    assert {_package(file) for file in sources() if _package(file)} == set(PACKAGES)
    missing = [
        f"{package}/{name}"
        for package, names in RULES.items()
        for name in names.split()
        if f"{package}/{name}.py" not in sources()
    ]
    assert not missing, "RULES names modules that are not there"


def test_packages_import_downwards() -> None:
    rank = {package: index for index, package in enumerate(PACKAGES)}
    wrong = []
    for file, imports in sources().items():
        for found in imports:
            target = _file(found.name)
            if not target or not _package(file) or not _package(target) or _is_rule(target):
                continue
            if rank[_package(target)] > rank[_package(file)] and not _is_edge(file):
                wrong.append(f"{file}:{found.line} {found.name}")
    assert not wrong


def _in_cycles(graph: dict[str, set[str]]) -> set[str]:
    """The nodes that can be reached from themselves."""

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        todo = [start]
        while todo:
            new = graph[todo.pop()] - found
            found |= new
            todo += new
        return found

    return {node for node in graph if node in reached(node)}


def test_no_module_imports_itself_in_a_circle() -> None:
    """Also where an import inside a function hides it. Kinds and session hooks are found by name, in `ledger/kinds.py` alone."""
    graph = {
        file: {_file(found.name) for found in imports if not found.checking} - {"", file}
        for file, imports in sources().items()
    }
    graph = {
        file: {target for target in targets if not target.endswith("__init__.py")} for file, targets in graph.items()
    }
    assert _in_cycles(graph) == set()
    assert _in_cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {"b", "c"}


def test_rules_know_only_rules() -> None:
    wrong = [
        f"{file}:{found.line} {found.name}"
        for file, imports in sources().items()
        if _is_rule(file)
        for found in imports
        if (target := _file(found.name))
        and not _is_rule(target)
        and _package(target) != "startup"
        and not target.endswith("__init__.py")
    ]
    assert not wrong


def test_rules_are_pure() -> None:
    """No I/O, no clock, no environment: C accelerators without side effects are all they may have, and a calendar."""
    pure = {"__future__", "_json", "zlib", "unicodedata", "_collections", "time", "re"}
    wrong = [
        f"{file}:{found.line} {found.name}"
        for file, imports in sources().items()
        if _is_rule(file)
        for found in imports
        if not found.checking and not found.name.startswith("gitcoord") and found.name not in pure
    ]
    assert not wrong
    for file in filter(_is_rule, sources()):
        text = (PACKAGE / file).read_text().replace("from time import gmtime\n", "")
        assert "import time" not in text and "from time import" not in text, file


MACHINE = {
    "os", "posix", "sys", "time", "signal", "_signal", "random", "fcntl", "socket", "subprocess", "_posixsubprocess",
}  # fmt: skip


def test_services_read_no_clock_environment_or_terminal() -> None:
    """They are handed what they need of the machine (`Host`, `Repo.env`); files are the business of `git/`."""
    free = ("startup", "git", "terminal", "guard", "cli", "mcp", "page", "shell", "base", "simulation")
    names = {
        "sessions/identity.py",
        "server/inflight.py",
        "server/hook.py",
        "world/open.py",
        "ledger/remote/client.py",
        "claims/pathspec.py",
        "gates/hooks/files.py",
        "worktrees/index.py",
    }
    wrong = [
        f"{file}:{found.line} {found.name}"
        for file, imports in sources().items()
        if _package(file) not in free and file not in names and not _is_edge(file) and not _is_rule(file)
        for found in imports
        if not found.checking and found.name.split(".")[0] in MACHINE
    ]
    assert not wrong


# --- one way to git ------------------------------------------------------------------------------------------------

# They start a program that is none of git's: ssh-keygen, ssh.
STARTERS = {"ledger/signing.py", "ledger/remote/client.py", "server/install.py", "server/signatures.py"}
# What starts git, and the beginnings of its command lines.
STARTING = {"run", "Child", "finish", "run_bounded", "watched", "GIT", "ORIGINAL", "LITERAL", "UNHOOKED"}


def _starts_git(tree: ast.Module, *, may_start: bool = False) -> list[int]:
    """The lines of a module that write a command line of git, or take what starts one from `git/` at run time."""
    wrong = []
    for node, checking in _nodes(tree):
        if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
            first = node.elts[0]
            if isinstance(first, ast.Constant) and first.value == "git":
                wrong.append(node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module in ("gitcoord.git.process", "gitcoord.git.long_process"):
            if not checking and not may_start and STARTING & {alias.name for alias in node.names}:
                wrong.append(node.lineno)
    return wrong


def _nodes(node: ast.AST, checking: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        inside = checking or (isinstance(node, ast.If) and _is_checking(node.test) and child in node.body)
        yield child, inside
        yield from _nodes(child, inside)


def test_only_one_package_writes_command_lines_of_git() -> None:
    """`git/commands/` has a function for each; demonstration and drill act as users do, and `shell/` reads those of others."""
    words = {"sessions/identity.py"}  # names of programs, git's among them
    wrong = [
        f"{file}:{line}"
        for file, tree in parsed().items()
        if _package(file) not in ("git", "shell")
        and not file.startswith(("cli/demo/", "cli/drill/"))
        and file not in words
        for line in _starts_git(tree, may_start=file in STARTERS)
    ]
    assert not wrong


def test_the_rule_about_git_can_fail() -> None:
    lines = 'argv = ["git", *words]\nargv = ("git", "log")\nf(["ssh-keygen", "git"])\n'
    assert _starts_git(ast.parse(lines)) == [1, 2]
    taken = ast.parse("from gitcoord.git.process import runs_still, run\n")
    assert _starts_git(taken) == [1] and not _starts_git(taken, may_start=True)
    assert not _starts_git(ast.parse("if TYPE_CHECKING:\n    from gitcoord.git.process import Child\n"))


# The modules that use the system's own interface. The others take what they need of it from `git/files.py`, `git/host.py` and
# `git/process.py`.
SYSTEM = {
    "startup/treesitter.py", "git/files.py", "git/host.py", "git/process.py", "git/long_process.py", "cli/entry.py",
}  # fmt: skip


def test_few_modules_use_the_systems_own_interface() -> None:
    found = {file for file, imports in sources().items() if any(i.name == "posix" and not i.checking for i in imports)}
    assert found == SYSTEM
    kinds = [file for file in sources() if "0o170000" in (PACKAGE / file).read_text()]
    assert kinds == ["git/files.py"]


def test_only_the_edge_prints() -> None:
    wrong = []
    for file, tree in parsed().items():
        if _package(file) not in ("terminal", "cli", "mcp") and not _is_edge(file):
            for node in ast.walk(tree):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name)
                    and node.func.id in ("print", "input")
                ):
                    wrong.append(f"{file}:{node.lineno}")
    assert not wrong


def test_folders_are_small_and_every_module_says_its_duty() -> None:
    folders: dict[str, int] = {}
    for file, tree in parsed().items():
        folder = file.rpartition("/")[0]
        folders[folder] = folders.get(folder, 0) + 1
        assert ast.get_docstring(tree), f"{file} does not say what it is for"
    assert not {folder: count for folder, count in folders.items() if count > 26}  # 25 and __init__


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
    assert "claims/service.py" in everyday and "gates/explain.py" not in everyday
    wrong = [
        f"{file}:{found.line} {found.name}"
        for file, imports in sources().items()
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

# How many modules of gitcoord each verb loads at most, packages not counted. Adding one to the everyday path costs every edit of every
# agent a little: raise the number only where that is worth it.
BUDGET = {"check": 49, "list": 42, "take": 54, "release": 57, "guard": 63}  # release: one more where a heartbeat is due
# What they load besides: C modules that come with the interpreter.
BUILT_IN = {"__future__", "_collections", "_json", "_sha1", "zlib", "fcntl", "errno"}
WORDS = {
    "check": ["check", "src"],
    "take": ["src"],
    "release": ["release", "src"],
    "list": ["list"],
    "guard": ["guard"],
}
_PROGRAM = f"""
import sys
before = set(sys.modules)
sys.path[:0] = [{str(ROOT)!r}, {str(Path(tree_sitter.__file__).parents[1])!r}]
from gitcoord.cli.entry import main
code = main("coord" if sys.argv[1] == "guard" else "claim", sys.argv[1:])
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
    """Each verb once, one after the other, where the policy of this commit was read before."""
    top = tmp_path_factory.mktemp("loaded")
    _project(top)
    for verb in ("take", "release"):
        _modules(top, verb)
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
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from gitcoord.world.open import open_repository, environ; "
        "from gitcoord.ledger.setup import init; from gitcoord.ledger.sessions import Actor; "
        "init(open_repository(environ(), writing=True), Actor('init'), sync='main')"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", init], cwd=top, check=True)


@pytest.mark.parametrize("verb", WORDS)
def test_everyday_verbs_load_little(loaded: dict[str, list[str]], verb: str) -> None:
    ours = [name for name in loaded[verb] if _file(name) and not _file(name).endswith("__init__.py")]
    assert len(ours) <= BUDGET[verb], " ".join(ours)
    assert {name for name in loaded[verb] if not name.startswith("gitcoord")} <= BUILT_IN


def test_only_after_a_command_of_codex_its_record_is_looked_into(tmp_path: Path) -> None:
    _project(tmp_path)
    event = (
        '{"hook_event_name":"%s","session_id":"c","cwd":"%s","turn_id":"1","tool_use_id":"t","transcript_path":"/x",'
        '"tool_name":"Bash","tool_input":{"command":"true"},"tool_response":""}'
    )
    for name, looks in (("PreToolUse", False), ("PostToolUse", True)):
        there = set(_modules(tmp_path, "guard", event % (name, tmp_path)))
        assert "gitcoord.guard.tools.codex" in there and ("gitcoord.guard.tools.codex_rollout" in there) == looks


def test_the_page_of_modules_is_current() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.modules_page"


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{file}:{node.name}"
        for file, tree in parsed().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 60
    ]
    assert not long

"""The everyday modules compiled into one file, made at installation: to open forty files takes longer than a claim may.

`install.sh` calls `main(SITE, TREE)`: it compiles the modules in SITE/gitcoord into TREE/gitcoord.bundle, without what only the
full command line uses, and writes the programs of the commands, which load that file, beside it. Where the file is missing, or another Python made
it, they import the same modules from SITE.
"""

from __future__ import annotations

import ast
import marshal
from importlib.util import MAGIC_NUMBER
from pathlib import Path

PROGRAMS = {"git-claim": "claim", "git-coord": "coord", "git-handoff": "handoff"}  # functions of cli/entry.py
# Only the full command line uses these, or a process that lives long.
LEFT_OUT = (
    "cli/__main__.py", "cli/demo", "cli/drill", "cli/docs.py", "cli/help.py", "cli/setup.py", "cli/setup_person.py", "cli/teardown.py", "git/libgit2_reader.py",
    "guard/setup", "ledger/cli_watch.py", "ledger/remote/client.py", "mcp", "page", "simulation", "startup/bundle.py", "tasks/cli_dispatch.py",
)  # fmt: skip
HEAD = 32768  # bytes for the index at the beginning of the file

# Modules that are loaded together; what their top level imports is added. `start` is loaded before git's processes are started, one of
# the others while these get ready, `remote` after one that writes. A module that a group lacks is loaded when it is imported.
_HOOK = "git.host ledger.context world.client git.loose_reader claims.events.claim "
_EVERY = "terminal.screen terminal.call " + _HOOK
_CHANGING = (
    _EVERY
    + "claims.cli claims.service git.locks.owners git.loose_writer git.locks.queue git.redo_log claims.events.release "
)
_SHELL = "shell.commands."
GROUPS = {
    "start": "cli.entry cli.table.claim",
    "reading": _EVERY + "claims.cli_views claims.query",
    "taking": _CHANGING + "claims.take policy.cache",
    "writing": _CHANGING + "claims.facts claims.work_facts claims.cli_trunk",
    "landing": "landing.cli_land landing.cli_finish policy.cache gates.client_gate",
    "remote": "ledger.remote.transaction",
    "gate": "terminal.screen "
    + _HOOK
    + "gates.hook sessions.identity gates.client_gate gates.commit_note sessions.service",
    "guard": _HOOK + "guard.before_after gates.validation",
    "shell": f"shell.parse shell.parse_tree {_SHELL}dispatch {_SHELL}builtins {_SHELL}text",
    "receive": _HOOK + "server.hook server.receive server.accounts server.inflight claims.recall",
}

# Runs inside the command, before anything else of gitcoord. The modules of a group are made without the search of the import system,
# which costs more than most of them.
BOOT = """
import sys
from _frozen_importlib import ModuleSpec, module_from_spec
from marshal import loads
from posix import pread

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name not in modules:
            return None
        spec = ModuleSpec(name, self, is_package=modules[name][0])
        if modules[name][0]:
            spec.submodule_search_locations = [root + "/" + name.replace(".", "/")]
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(loads(pread(fd, *modules[module.__name__][1:])), module.__dict__)

def preload(group):
    for name in groups[group]:
        if name not in sys.modules:
            module = sys.modules[name] = module_from_spec(finder.find_spec(name))
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], child, module)
            finder.exec_module(module)

finder = Finder()
sys.meta_path.insert(0, finder)
preload("start")
sys.modules["gitcoord"].preload = preload
"""

PROGRAM = """
import gc
gc.disable()
import posix, sys
from _frozen_importlib_external import MAGIC_NUMBER
from marshal import loads
sys.path.insert(0, {root!a})
boot = None
try:
    fd = posix.open({bundle!a}, posix.O_RDONLY | posix.O_CLOEXEC)
    head = posix.read(fd, {head})
    if head.startswith(MAGIC_NUMBER):
        boot, modules, groups = loads(head[len(MAGIC_NUMBER):])
except (OSError, EOFError, ValueError, TypeError):
    pass
if boot is not None:
    exec(boot, {{"fd": fd, "root": {root!a}, "modules": modules, "groups": groups}})
import gitcoord
gitcoord.python = {python!a}
from gitcoord.cli.entry import {function} as entry
entry()
"""


class Strip(ast.NodeTransformer):
    """Removes docstrings and annotations, and writes out the fields of named tuples, which `startup.namedtuple` reads from annotations."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if isinstance(node.value, ast.Constant) else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if node.module == "__future__" else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        return ast.copy_location(ast.Assign([node.target], node.value) if node.value else ast.Pass(), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in node.bases):
            fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
            node.body = [*_written_out(fields), *(part for part in node.body if part not in fields)]
        return self.generic_visit(node)


def _written_out(fields: list[ast.AnnAssign]) -> list[ast.stmt]:
    names = [ast.unparse(field.target) for field in fields]
    defaults = [f"{name!r}: {ast.unparse(field.value)}" for name, field in zip(names, fields) if field.value]
    getters = [f"{name} = NamedTuple._getter({index}, '')" for index, name in enumerate(names)]
    return ast.parse("\n".join([f"_fields = {tuple(names)}", f"_defaults = {{{', '.join(defaults)}}}", *getters])).body


def build(root: Path) -> bytes:
    """The bundle: Python's magic number and the index (the boot code, modules by name, groups), then the modules' code."""
    modules: dict[str, tuple[bool, int, int]] = {}  # name -> is it a package, size, offset
    imports: dict[str, list[str]] = {}
    codes = b""
    for path in sorted((root / "gitcoord").rglob("*.py")):
        if path.relative_to(root / "gitcoord").as_posix().startswith(LEFT_OUT):
            continue
        is_package = path.stem == "__init__"
        name = ".".join((path.parent if is_package else path.with_suffix("")).relative_to(root).parts)
        source = ast.parse(path.read_bytes(), path)
        if _reads_annotations(source):
            continue
        tree = Strip().visit(source)
        code = marshal.dumps(compile(tree, path, "exec", dont_inherit=True))
        modules[name] = is_package, len(code), HEAD + len(codes)
        codes += code
        found = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        imports[name] = [
            f"{node.module}{part}" for node in found for part in ("", *(f".{alias.name}" for alias in node.names))
        ]
    groups = {
        group: _in_order([f"gitcoord.{name}" for name in names.split()], imports) for group, names in GROUPS.items()
    }
    head = MAGIC_NUMBER + marshal.dumps((compile(BOOT, "<gitcoord>", "exec", dont_inherit=True), modules, groups))
    assert len(head) <= HEAD, "the index outgrew its place"
    return head.ljust(HEAD, b"\0") + codes


def _reads_annotations(tree: ast.Module) -> bool:
    """Return whether a module makes classes from annotations, which `Strip` removes: it is imported from SITE."""
    found = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    return any(node.module == "dataclasses" or _imports_named_tuple(node) for node in found)


def _imports_named_tuple(node: ast.ImportFrom) -> bool:
    return node.module == "typing" and any(alias.name in ("NamedTuple", "TypedDict") for alias in node.names)


def _in_order(names: list[str], imports: dict[str, list[str]]) -> list[str]:
    """These modules and all that they import, each after its package and what it imports."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name in imports and name not in order:
            # A module that a package imports from below itself needs the package first.
            below = [found for found in imports[name] if not f"{found}.".startswith(f"{name}.")]
            for found in (name.rpartition(".")[0], *below):
                visit(found)
            order.append(name)

    for name in names:
        visit(name)
    return order


def program(root: Path, bundle: Path, python: Path, function: str) -> str:
    """The text of a command that enters by this function of `cli/entry.py`; `python` has all libraries."""
    return PROGRAM.format(root=str(root), bundle=str(bundle), python=str(python), function=function, head=HEAD).lstrip()


def main(site: str, tree: str) -> None:
    bundle = Path(tree, "gitcoord.bundle")
    bundle.write_bytes(build(Path(site)))
    for name, function in PROGRAMS.items():
        Path(tree, f"{name}.py").write_text(program(Path(site), bundle, Path(tree, "bin/python"), function))

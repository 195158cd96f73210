"""The hot modules in one file, made at installation: opening forty files takes longer than a claim may.

`--output FILE --root DIR` compiles what lies in DIR/gitcoord (without adapters and what they alone use) into FILE;
`--shim FILE DIR` prints the body of the `git-claim` command that loads it. The sources stay the one implementation:
without the file, or with one of another Python, the same modules are imported in the ordinary way.
"""

import argparse
import ast
import marshal
import os
import sys
from importlib.util import MAGIC_NUMBER
from pathlib import Path

LEFT_OUT = ("gitcoord/adapters", "gitcoord/hot/bundle.py", "gitcoord/store/memory.py", "gitcoord/store/libgit2.py")

# Runs inside the command, before anything else of gitcoord: finds modules in the bundle.
BOOT = """
import sys
from _frozen_importlib import ModuleSpec
from marshal import loads

class Bundle:
    def __init__(self, root, modules):
        self.root = root
        self.modules = modules

    def find_spec(self, name, path=None, target=None):
        found = self.modules.get(name)
        if found is None:
            return None
        spec = ModuleSpec(name, self, is_package=found[0])
        if found[0]:
            spec.submodule_search_locations = [self.root + "/" + name.replace(".", "/")]
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(loads(self.modules[module.__spec__.name][1]), module.__dict__)

sys.meta_path.insert(0, Bundle(root, modules))
"""

SHIM = """
import gc
gc.disable()
import posix, sys
from _frozen_importlib_external import MAGIC_NUMBER
from marshal import loads
sys.path.insert(0, {root!r})
try:
    fd = posix.open({bundle!r}, posix.O_RDONLY | posix.O_CLOEXEC)
    data = posix.read(fd, {size})
    posix.close(fd)
    if data[:16] == MAGIC_NUMBER.ljust(16, b"\\0"):
        boot, modules = loads(data[16:])
        exec(boot, {{"root": {root!r}, "modules": modules}})
except OSError:
    pass
from gitcoord.hot.main import entry
entry()
"""


class _Lean(ast.NodeTransformer):
    """Drops what only checkers read: annotations of functions and `if TYPE_CHECKING` blocks."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        for arg in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]:
            if arg is not None:
                arg.annotation = None
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return node.orelse or ast.copy_location(ast.Pass(), node)
        return node


def build(root: Path) -> bytes:
    """The bundle's bytes: Python's magic number, then the boot code and the modules."""
    modules = {}
    for path in sorted((root / "gitcoord").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.startswith(LEFT_OUT):
            continue
        tree = _Lean().visit(ast.parse(path.read_text(), name))
        code = compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True, optimize=2)
        parts = name.removesuffix(".py").split("/")
        is_package = parts[-1] == "__init__"
        modules[".".join(parts[:-1] if is_package else parts)] = (is_package, marshal.dumps(code))
    boot = compile(BOOT, "<gitcoord>", "exec", dont_inherit=True, optimize=2)
    return MAGIC_NUMBER.ljust(16, b"\0") + marshal.dumps((boot, modules))


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gitcoord.hot.bundle", description="Build the bundle of the hot modules.")
    parser.add_argument("--output", metavar="FILE")
    parser.add_argument("--root", metavar="DIR")
    parser.add_argument("--shim", nargs=2, metavar=("FILE", "DIR"))
    given = parser.parse_args(words)
    if given.output and given.root:
        temporary = Path(f"{given.output}.{os.getpid()}.tmp")
        temporary.write_bytes(build(Path(given.root)))
        temporary.replace(given.output)
    if given.shim:
        bundle, root = given.shim
        size = 2 * Path(bundle).stat().st_size
        print(SHIM.format(bundle=bundle, root=root, size=size).strip())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A module's source on its way into the bundle: what nobody needs at run time is left out, what costs at start-up is written out.

The meaning stays the same. Left out: annotations of functions, what only checkers read, docstrings, line numbers. Written out:
the fields of named tuples, which `record.NamedTuple` would otherwise find by itself in each process. `linked` also leaves out the
imports of modules that are there already: the bundle hands over their names.
"""

import ast
from collections.abc import Container, Sequence
from types import CodeType
from typing import TypeGuard

Links = tuple[tuple[str, tuple[str, ...]], ...]


class Source:
    """One module, parsed. `needs` are the modules of gitcoord that its top level imports from (or names that may be modules)."""

    def __init__(self, name: str, path: str, text: str, is_package: bool) -> None:
        self.name = name
        self.is_package = is_package
        self._path = path
        self._tree = ast.parse(text, path)
        self._tree.body = _lean(self._tree.body)
        self._codes: dict[tuple[int, ...], CodeType] = {}
        self.needs = [needed for node in self._imports() for needed in _needed(node)]

    def _imports(self) -> list[ast.ImportFrom]:
        return [node for node in self._tree.body if _is_ours(node)]

    def whole(self) -> CodeType:
        return self._without([])

    def linked(self, there: Sequence[str], modules: Container[str]) -> tuple[Links, CodeType]:
        """What is to be handed over from modules that are there, and the code without those imports."""

        def is_there(node: ast.stmt) -> bool:
            if not _is_ours(node) or node.module not in there or any(alias.asname for alias in node.names):
                return False
            return all(needed in there for needed in _needed(node) if needed in modules)

        taken = [node for node in self._imports() if is_there(node)]
        links = tuple((str(node.module), tuple(alias.name for alias in node.names)) for node in taken)
        return links, self._without(taken)

    def _without(self, taken: Sequence[ast.stmt]) -> CodeType:
        """The code without these statements. Most groups leave out the same ones."""
        key = tuple(map(id, taken))
        if key not in self._codes:
            body = [node for node in self._tree.body if node not in taken]
            tree = ast.Module(body or [_nothing()], type_ignores=[])
            self._codes[key] = _bare(compile(tree, self._path, "exec", dont_inherit=True, optimize=2))
        return self._codes[key]


def _is_ours(node: ast.stmt) -> TypeGuard[ast.ImportFrom]:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gitcoord")


def _needed(node: ast.ImportFrom) -> list[str]:
    return [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]


def _lean(body: list[ast.stmt], *, in_function: bool = False) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            kept += _lean(node.orelse, in_function=in_function)
            continue
        if isinstance(node, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id == "NamedTuple" for b in node.bases):
            node.body = _written_out(node.body)
        if isinstance(node, ast.AnnAssign) and not in_function and isinstance(node.target, ast.Name):
            # Within a function nobody evaluates it.
            if node.value is not None:
                kept.append(ast.copy_location(ast.Assign([node.target], node.value), node))
            continue
        if isinstance(node, ast.FunctionDef):
            _forget_annotations(node)
        # Functions lie in statements only: the expressions, most of a tree, need no look.
        within = in_function or isinstance(node, ast.FunctionDef)
        for inner in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            for name in ("body", "orelse", "finalbody"):
                if getattr(inner, name, None):
                    setattr(inner, name, _lean(getattr(inner, name), in_function=within) or [_nothing()])
        kept.append(node)
    return kept


def _forget_annotations(node: ast.FunctionDef) -> None:
    node.returns = None
    given = node.args
    for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if arg is not None:
            arg.annotation = None


def _written_out(body: list[ast.stmt]) -> list[ast.stmt]:
    """The fields of a named tuple as `record.NamedTuple` would make them."""
    fields = [node for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    names = [ast.unparse(node.target) for node in fields]
    lines = [f"_fields = {tuple(names)!r}", *(f"{name} = NamedTuple._getter({n}, '')" for n, name in enumerate(names))]
    defaults = ", ".join(
        f"{n!r}: {ast.unparse(node.value)}" for n, node in zip(names, fields) if node.value is not None
    )
    lines.append(f"_defaults = {{{defaults}}}")
    return [*ast.parse("\n".join(lines)).body, *(node for node in body if node not in fields)]


def _nothing() -> ast.Pass:
    return ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


def _bare(code: CodeType) -> CodeType:
    """Without line numbers, a third of the size."""
    consts = tuple(_bare(const) if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=consts)

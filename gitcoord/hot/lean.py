"""A module's source on its way into the bundle: what nobody needs at run time is left out, what costs at start-up is written out.

The meaning stays the same. Left out: annotations of functions, what only checkers read, docstrings, line numbers. Written out:
the fields of named tuples, which `record.NamedTuple` would otherwise find by itself in each process. `linked` also leaves out the
imports of modules that are there already, whose names the bundle hands over; and the errors, each of which is made when it is
first needed: to make a class takes as long as to run a dozen functions, and where all goes well nobody raises anything.
"""

import ast
import marshal
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from copy import deepcopy
from types import CodeType
from typing import NamedTuple, TypeGuard

Links = tuple[tuple[str, tuple[str, ...]], ...]
Errors = dict[str, str]  # the name of an error in a module -> the module that defines it


class Linked(NamedTuple):
    """A module as a part of a group: what to hand over from modules that are there; the modules that define the errors it names;
    those errors, its own as code that is still to be run, others by their module; and the rest of its code."""

    links: Links
    homes: tuple[str, ...]
    late: dict[str, bytes | str]
    code: CodeType


class Source:
    """One module, parsed. `needs` are the modules of gitcoord that its top level imports from (or names that may be modules)."""

    def __init__(self, name: str, path: str, text: str, is_package: bool) -> None:
        self.name = name
        self.is_package = is_package
        self._path = path
        self._tree = ast.parse(text, path)
        self._tree.body = _lean(self._tree.body)
        self._linked: dict[tuple[int, ...], Linked] = {}
        self._known: Errors | None = None
        self._bound = Counter(name for node in ast.walk(self._tree) for name in _binds(node))
        self.needs = [needed for node in self._imports() for needed in _needed(node)]

    def _imports(self) -> list[ast.ImportFrom]:
        return [node for node in self._tree.body if _is_ours(node)]

    def whole(self) -> CodeType:
        return self._compiled(self._tree.body)

    def _compiled(self, body: Sequence[ast.stmt]) -> CodeType:
        tree = ast.Module([*body] or [_nothing()], type_ignores=[])
        return _bare(compile(tree, self._path, "exec", dont_inherit=True, optimize=2))

    def errors(self, sources: "Mapping[str, Source]") -> Errors:
        """The errors that this module knows by name, its own and those it imports."""
        if self._known is None:
            self._known = {}  # for whoever imports it in a circle
            known: Errors = {"Exception": ""}
            for imported in self._imports():
                theirs = sources[str(imported.module)].errors(sources) if imported.module in sources else {}
                known |= {alias.name: theirs[alias.name] for alias in imported.names if alias.name in theirs}
            # A module that finds names in a way of its own keeps its errors.
            for node in [] if self._bound["__getattr__"] else self._tree.body:
                if isinstance(node, ast.ClassDef) and _is_plain(node) and _is_one_of(node.bases[0], known):
                    known[node.name] = self.name
            del known["Exception"]
            # A name that means something else too, somewhere in the module, is left alone.
            self._known = {name: home for name, home in known.items() if self._bound[name] == 1}
        return self._known

    def linked(self, there: Sequence[str], sources: "Mapping[str, Source]") -> Linked:
        """For a group that comes after the modules that are there."""

        def is_there(node: ast.stmt) -> bool:
            if not _is_ours(node) or node.module not in there:
                return False
            if any(alias.asname or alias.name == "*" for alias in node.names):
                return False
            return all(needed in there for needed in _needed(node) if needed in sources)

        taken = [node for node in self._imports() if is_there(node)]
        handed = {alias.name for node in taken for alias in node.names}
        late = {name: home for name, home in self.errors(sources).items() if home == self.name or name in handed}
        key = tuple(map(id, taken))
        if key not in self._linked:
            self._linked[key] = self._link(taken, late)
        return self._linked[key]

    def _link(self, taken: "list[ast.ImportFrom]", late: Errors) -> Linked:
        wanted = ((str(node.module), [a.name for a in node.names if a.name not in late]) for node in taken)
        links = tuple((module, tuple(names)) for module, names in wanted if names)
        body = [node for node in self._tree.body if node not in taken]
        if not late:
            return Linked(links, (), {}, self._compiled(body))
        body = [_Later(late).visit(node) for node in deepcopy(body)]
        own = [node for node in body if isinstance(node, ast.ClassDef) and late.get(node.name) == self.name]
        made = {node.name: marshal.dumps(self._compiled([node])) for node in own}
        rest = self._compiled([node for node in body if node not in own])
        return Linked(links, tuple(dict.fromkeys(late.values())), {**late, **made}, rest)


class _Later(ast.NodeTransformer):
    """Errors by way of the modules that define them, which are there under their full names."""

    def __init__(self, late: Errors) -> None:
        self._late = late

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._late:
            return node
        home = ast.copy_location(ast.Name(self._late[node.id], ast.Load()), node)
        return ast.copy_location(ast.Attribute(home, node.id, ast.Load()), node)


def _is_one_of(node: ast.expr, names: Container[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _is_plain(node: ast.ClassDef) -> bool:
    """Is it the same whenever it is made? One base, and nothing within but functions and what is written out."""
    if len(node.bases) != 1 or node.keywords or node.decorator_list:
        return False
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            given = [*part.args.defaults, *filter(None, part.args.kw_defaults)]
            if part.decorator_list or part.name == "__init_subclass__" or not all(map(_is_written_out, given)):
                return False
        elif not (
            isinstance(part, (ast.Assign, ast.Expr)) and _is_written_out(part.value) or isinstance(part, ast.Pass)
        ):
            return False
    return True


def _is_written_out(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or isinstance(node, ast.Tuple) and all(map(_is_written_out, node.elts))


def _binds(node: ast.AST) -> list[str]:
    """The names that this becomes, in whatever function."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.MatchMapping):
        return [node.rest or ""]
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
    return [node.name or ""] if isinstance(node, named) else []


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

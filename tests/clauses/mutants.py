"""Copies of a source file, each with one clause disabled.

A clause is what decides: a condition, one side of an `and` or `or`, a `not`, an answer, a call made for its effect, one of
several ways that are tried. Numbers, words and the order of things are none, nor is it one that what is known is not asked
for again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TRUTHS = ("any", "all", "bool")


class Mutant(NamedTuple):
    file: str
    line: int
    where: str  # the function
    what: str  # which clause, and what became of it
    statement: str  # the key of the statement that it is in
    source: str

    @property
    def name(self) -> str:
        """Without the line, which moves."""
        return f"{self.file} {self.where}: {self.what}"


class _Site(NamedTuple):
    """A place in the tree: `owner.field`, or one of its elements."""

    owner: ast.AST
    field: str
    place: int | None
    node: ast.AST


def statement_key(file: str, where: str, node: ast.stmt) -> str:
    """Names a statement so that changes elsewhere leave the name alone."""
    return f"{file} {where}: {ast.unparse(node).splitlines()[0]}"


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The outermost functions, and those of classes; what lies inside one belongs to it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, _FUNCTIONS):
            yield prefix + node.name, node


def mutants(file: str, source: str) -> list[Mutant]:
    tree = ast.parse(source)
    found: dict[str, Mutant] = {}
    for where, function in functions(tree):
        is_bool = isinstance(function.returns, ast.Name) and function.returns.id == "bool"
        for statement, site in _sites(function):
            for what, new in _disabled(site, is_bool=is_bool):
                line = getattr(site.node, "lineno", statement.lineno)
                key = statement_key(file, where, statement)
                _put(site, new)
                text = ast.unparse(ast.fix_missing_locations(tree))
                _put(site, site.node)
                found.setdefault(text, Mutant(file, line, where, what, key, text))
    return list(found.values())


def _put(site: _Site, node: ast.AST) -> None:
    if site.place is None:
        setattr(site.owner, site.field, node)
    else:
        getattr(site.owner, site.field)[site.place] = node


def _sites(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[ast.stmt, _Site]]:
    """Every place below a function, with the statement that it is in."""

    def below(owner: ast.AST, statement: ast.stmt | None) -> Iterator[tuple[ast.stmt, _Site]]:
        for field, value in ast.iter_fields(owner):
            children = value if isinstance(value, list) else [value]
            for index, node in enumerate(children):
                if not isinstance(node, ast.AST):
                    continue
                inner = node if isinstance(node, ast.stmt) else statement
                if inner is not None and isinstance(node, (ast.stmt, ast.expr)):
                    yield inner, _Site(owner, field, index if isinstance(value, list) else None, node)
                yield from below(node, inner)

    for index, node in enumerate(function.body):
        yield node, _Site(function, "body", index, node)
        yield from below(node, node)


def _disabled(site: _Site, *, is_bool: bool) -> Iterator[tuple[str, ast.AST]]:
    """Each way in which what stands here can be disabled."""
    owner, field, node = site.owner, site.field, site.node
    told = ast.unparse(node).splitlines()[0]
    if (isinstance(owner, (ast.If, ast.IfExp)) and field == "test") or field == "ifs":
        yield f"never {told}", ast.Constant(False)
        if not (isinstance(owner, ast.If) and _is_cache(owner)):
            yield f"always {told}", ast.Constant(True)
    elif isinstance(owner, ast.While) and field == "test":
        yield f"never {told}", ast.Constant(False)
    elif isinstance(owner, (ast.Return, ast.Assign, ast.keyword)) and isinstance(node, ast.expr):
        yield from _answers(node, told, returned=isinstance(owner, ast.Return) and is_bool)
    if isinstance(node, ast.BoolOp):
        for operand in node.values:
            rest = [value for value in node.values if value is not operand]
            new = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            yield f"{told}: without {ast.unparse(operand)}", new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"{told}: without not", node.operand
    elif isinstance(node, (ast.List, ast.Tuple)) and isinstance(node.ctx, ast.Load):
        for element in _droppable(owner, field, node):
            yield (
                f"{told}: without {ast.unparse(element)}",
                type(node)([e for e in node.elts if e is not element], node.ctx),
            )
    elif isinstance(node, (ast.Expr, ast.Raise)) and not _is_docstring(node) and not _is_alone(owner, field):
        yield f"no {told}", ast.Pass()


def _answers(node: ast.expr, told: str, *, returned: bool) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield f"{node.value} as {not node.value}", ast.Constant(not node.value)
    elif returned or _is_truth(node):
        yield f"True for {told}", ast.Constant(True)
        yield f"False for {told}", ast.Constant(False)


def _is_truth(node: ast.expr) -> bool:
    """Is it surely a bool?"""
    if isinstance(node, ast.BoolOp):
        return all(_is_truth(value) for value in node.values)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _TRUTHS
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _droppable(owner: ast.AST, field: str, node: ast.List | ast.Tuple) -> list[ast.expr]:
    """The elements that are each one of several ways; not the words of a command."""
    if field in ("iter", "comparators"):
        is_set = field == "iter" or (isinstance(owner, ast.Compare) and isinstance(owner.ops[0], (ast.In, ast.NotIn)))
        return list(node.elts) if is_set else []
    return [e for e in node.elts if isinstance(e, ast.Starred) and not ast.unparse(e.value).isupper()]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_alone(owner: ast.AST, field: str) -> bool:
    """The whole of an `if` without `else`: the same as never."""
    return isinstance(owner, ast.If) and field == "body" and len(owner.body) == 1 and not owner.orelse


def _is_cache(node: ast.If) -> bool:
    """`if key not in known:` or `if known is None:` where just that is put there."""
    test = node.test
    if not isinstance(test, ast.Compare):
        return False
    kept = ast.unparse(test.left)
    if isinstance(test.ops[0], ast.NotIn):
        kept = f"{ast.unparse(test.comparators[0])}[{kept.strip('()')}]"
    elif ast.unparse(test) != f"{kept} is None":
        return False
    assigned = [each for part in node.body for each in ast.walk(part) if isinstance(each, ast.Assign)]
    return kept in [ast.unparse(target) for each in assigned for target in each.targets]

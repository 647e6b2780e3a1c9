"""Programs that are wrong in one place, by kinds of change in turn; in ``while`` loops, which may not end, last."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from harness.benchmarks.programs import parse

MOST_MUTANTS = 16

_PAIRS = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)]
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {**dict(_PAIRS), **{b: a for a, b in _PAIRS}}
# No operator is replaced by one whose result can be astronomically larger.
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.FloorDiv,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.BitAnd,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Likeliest to fail the tests first: a moved bound ("comparison") is often one that no test reaches.
_KINDS = ("condition", "operator", "constant", "comparison", "name", "return")


class _Site(NamedTuple):
    kind: str
    in_while: bool
    node: ast.AST
    field: str
    value: Any


@functools.lru_cache(maxsize=2048)
def mutants(source: str, entry_point: str) -> tuple[str, ...]:
    """Return at most 16 distinct variants, likeliest to fail first, unexecuted; raise ValueError for no program."""
    tree = parse(source)
    if tree is None:
        raise ValueError(f"there are no mutants of what is no program: {source[:60]!r}")
    original = ast.unparse(tree)
    named = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    named.sort(key=lambda node: node.name != entry_point)
    sites = [site for node in named for statement in node.body for site in _sites(statement, in_while=False)]
    variants = dict.fromkeys(_unparse_changed(tree, site) for site in _in_turn(sites))
    variants.pop(original, None)
    bodies = ("return None", "raise NotImplementedError")
    last_resorts = [f"{original}\n\ndef {entry_point}(*args, **kwargs):\n    {body}" for body in bodies]
    return (*list(variants)[: MOST_MUTANTS - len(last_resorts)], *last_resorts)


def _unparse_changed(tree: ast.Module, site: _Site) -> str:
    before = getattr(site.node, site.field)
    setattr(site.node, site.field, site.value)
    try:
        return ast.unparse(tree)
    finally:
        setattr(site.node, site.field, before)


def _in_turn(sites: list[_Site]) -> Iterator[_Site]:
    for in_while in (False, True):
        rows = [[site for site in sites if site.kind == kind and site.in_while is in_while] for kind in _KINDS]
        for row in itertools.zip_longest(*rows):
            yield from (site for site in row if site is not None)


def _sites(node: ast.AST, in_while: bool) -> Iterator[_Site]:
    in_while = in_while or isinstance(node, ast.While)
    for kind, field, value in _changes(node):
        yield _Site(kind, in_while, node, field, value)
    for child in ast.iter_child_nodes(node):
        yield from _sites(child, in_while)


def _changes(node: ast.AST) -> Iterator[tuple[str, str, Any]]:
    match node:
        case ast.Compare(ops=[first, *others]):
            yield "comparison", "ops", [_COMPARISONS[type(first)](), *others]
        case ast.Constant(value=bool(value)):
            yield "condition", "value", not value
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", "value", value + 1
            yield "constant", "value", value - 1
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _OPERATORS:
            yield "operator", "op", _OPERATORS[type(op)]()
        case ast.BoolOp(op=op):
            yield "condition", "op", ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.If(test=test) | ast.IfExp(test=test):
            yield "condition", "test", ast.UnaryOp(ast.Not(), test)
        case ast.comprehension(ifs=[_, *others]):
            yield "condition", "ifs", others
        case ast.Name(id=name) if name in _NAMES:
            yield "name", "id", _NAMES[name]
        case ast.Return(value=ast.expr()):
            yield "return", "value", ast.Constant(None)

"""The expressions of ``claims.yaml``: arithmetic and calls of a vocabulary's functions, and nothing else.

Jinja2's sandbox compiles them; the few kinds of syntax they may be made of are listed here, so that an expression can
reach no attribute, no filter and no name besides its own functions and variables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.errors import UserError, unknown

if TYPE_CHECKING:
    from jinja2 import nodes
    from jinja2.environment import TemplateExpression

_SYNTAX = ("Name", "Const", "Call", "Keyword", "Add", "Sub", "Mul", "Div", "Neg", "Pos")


class _Compiled(NamedTuple):
    run: TemplateExpression
    called: frozenset[str]
    named: frozenset[str]


def evaluate(text: str, functions: Mapping[str, Callable[..., Any]], variables: Mapping[str, Any]) -> Any:
    """The value of an expression.

    Raises:
        UserError: It is no expression of this language, calls or names what is not given, or calls a function in a way
            that it does not take.
    """
    check(text, functions, variables)
    try:
        return _compiled(text).run(**variables, **functions)
    except TypeError as error:
        raise UserError(f"expression {text!r}: {error}; correct the arguments (docs/claims.md lists them)") from error


def check(text: str, functions: Collection[str], variables: Collection[str]) -> None:
    """Refuse an expression that could not be evaluated with these functions and variables.

    Raises:
        UserError: Names what is wrong with it.
    """
    compiled = _compiled(text)
    for name in sorted(set(functions) & set(variables)):
        raise UserError(f"the variable {name!r} has the name of a function; give it another")
    for name in sorted(compiled.called - set(functions)):
        raise unknown("function", name, functions, f"docs/claims.md; expression {text!r}")
    for name in sorted(compiled.named - set(variables)):
        raise UserError(f"expression {text!r} names {name!r}; expected {_listed(variables)}; put text in quotes")


@cache
def _compiled(text: str) -> _Compiled:
    from jinja2 import TemplateSyntaxError
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(optimized=False)
    environment.globals.clear()
    try:
        tree = Parser(environment, text, state="variable").parse_expression()
        run = environment.compile_expression(text, undefined_to_none=False)
    except TemplateSyntaxError as error:
        raise UserError(f"expression {text!r}: {error.message}; expected arithmetic and calls of functions") from error
    found = [tree, *_below(tree)]
    for node in found:
        if type(node).__name__ not in _SYNTAX:
            raise UserError(
                f"expression {text!r} has a {type(node).__name__}; expected numbers, quoted text, + - * / and calls"
            )
    called = _called(text, found)
    named = frozenset(node.name for node in _of(found, "Name")) - called
    return _Compiled(run, called, named)


def _below(tree: nodes.Node) -> Iterator[nodes.Node]:
    for child in tree.iter_child_nodes():
        yield child
        yield from _below(child)


def _of(found: list[nodes.Node], kind: str) -> list[Any]:
    return [node for node in found if type(node).__name__ == kind]


def _called(text: str, found: list[nodes.Node]) -> frozenset[str]:
    for node in _of(found, "Call"):
        if type(node.node).__name__ != "Name" or node.dyn_args or node.dyn_kwargs:
            raise UserError(f"expression {text!r} calls something without a name; expected function(argument, ...)")
    return frozenset(node.node.name for node in _of(found, "Call"))


def _listed(names: Collection[str]) -> str:
    return f"one of {', '.join(sorted(names))}" if names else "no variable, as the claim has no `over`"

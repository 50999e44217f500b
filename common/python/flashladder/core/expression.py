"""Expressions of stage.toml: whole numbers, names, arithmetic, comparisons; read without Python's eval."""

import ast
import operator
import re
from collections.abc import Mapping

from flashladder.core.errors import FlashLadderError

RELATIONS = {"==": operator.eq, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: operator.mod,
               ast.Div: operator.floordiv, ast.FloorDiv: operator.floordiv}  # fmt: skip
_COMPARISONS = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.LtE: operator.le, ast.GtE: operator.ge,
                ast.Lt: operator.lt, ast.Gt: operator.gt}  # fmt: skip
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Mod: "%", ast.Div: "/", ast.FloorDiv: "/",
          ast.Eq: "==", ast.NotEq: "!=", ast.LtE: "<=", ast.GtE: ">=", ast.Lt: "<", ast.Gt: ">"}  # fmt: skip
_FUNCTIONS = {"min": min, "max": max}
_MOST_CHARACTERS = 1000


def evaluate(text: str, names: Mapping[str, int]) -> int:
    """The value of text, a whole number or True or False.

    It may have whole numbers, names such as Nq and shared.load.ideal, + - * / %, parentheses, comparisons, and, or,
    not, min() and max(); / rounds down. FlashLadderError names what is anything else, and what is unknown.
    """
    try:
        return _value(_parsed(text), names)
    except (SyntaxError, ZeroDivisionError, RecursionError, FlashLadderError) as error:
        said = error.msg if isinstance(error, SyntaxError) else error
        raise FlashLadderError(f"'{text}' is no expression of stage.toml: {said}") from error


def _parsed(text: str) -> ast.expr:
    if len(text) > _MOST_CHARACTERS:
        raise FlashLadderError(f"it has more than {_MOST_CHARACTERS} characters")
    # A name may begin as a word of Python's does: global.load.bytes.
    return ast.parse(re.sub(r"\bglobal\b", "global_", text), mode="eval").body


def tree(text: str) -> int | str | list:
    """An expression that evaluate() takes, for a reader without a parser: a whole number, a name, or a list of an
    operation ("+", "/" that rounds down, "<=", "and", "min", ...) and its operands."""
    return _tree(_parsed(text))


def _tree(node: ast.expr) -> int | str | list:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _name(node)
    if isinstance(node, ast.BinOp):
        return [_SIGNS[type(node.op)], _tree(node.left), _tree(node.right)]
    if isinstance(node, ast.UnaryOp):
        return ["not", _tree(node.operand)] if isinstance(node.op, ast.Not) else ["-", 0, _tree(node.operand)]
    if isinstance(node, ast.BoolOp):
        return ["and" if isinstance(node.op, ast.And) else "or", *map(_tree, node.values)]
    if isinstance(node, ast.Compare):
        return [_SIGNS[type(node.ops[0])], _tree(node.left), _tree(node.comparators[0])]
    return [node.func.id, *map(_tree, node.args)]


def is_counted(text: str) -> bool:
    """Whether an expression has a name in it, and is no plain number."""
    return bool(re.search(r"[A-Za-z_]", text))


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _named(_name(node), names)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        return _ARITHMETIC[type(node.op)](_value(node.left, names), _value(node.right, names))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, names)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _value(node.operand, names)
    if isinstance(node, ast.BoolOp):
        values = (_value(one, names) for one in node.values)
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        return _COMPARISONS[type(node.ops[0])](_value(node.left, names), _value(node.comparators[0], names))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        if node.args and not node.keywords:
            return _FUNCTIONS[node.func.id]([_value(one, names) for one in node.args])
    raise FlashLadderError(f"it may not have '{ast.unparse(node)}'")


def _name(node: ast.expr) -> str:
    return ast.unparse(node).replace("global_", "global")


def _named(name: str, names: Mapping[str, int]) -> int:
    try:
        return names[name]
    except KeyError:
        raise FlashLadderError(f"there is no '{name}'; there are {', '.join(names)}") from None

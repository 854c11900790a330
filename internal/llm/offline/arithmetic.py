"""Evaluates arithmetic expressions without executing code."""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

_MAX_CHARACTERS = 100
_HIGHEST_POWER = 64
_MAX_VALUE = 1e100
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def evaluate(text: str) -> str | None:
    """Return the value of an arithmetic expression, or None if there is no presentable one."""
    if len(text) > _MAX_CHARACTERS:
        return None
    try:
        value = _value(ast.parse(text.strip(), mode="eval").body)
    except (ArithmeticError, ValueError, SyntaxError, RecursionError):
        return None
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _value(node: ast.expr) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return _sane(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            one, other = _value(left), _value(right)
            if isinstance(op, ast.Pow) and abs(other) > _HIGHEST_POWER:
                raise OverflowError("that number would fill the screen")
            return _sane(_BINARY[type(op)](one, other))
        case _:
            raise ValueError("no arithmetic")


def _sane(value: Any) -> int | float:
    if not isinstance(value, int | float) or abs(value) > _MAX_VALUE:  # (-8) ** 0.5 is complex
        raise OverflowError("out of range")
    return value

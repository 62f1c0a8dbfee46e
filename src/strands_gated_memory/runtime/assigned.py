"""A context variable with another value inside a `with` block."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Assigned(Generic[_T]):
    """Gives a context variable a value for the length of a `with` block; used once."""

    def __init__(self, variable: ContextVar[_T], value: _T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        self._token: Token[_T] = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)

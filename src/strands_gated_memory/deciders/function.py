"""A decision model from a plain function in System One wire shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.questions import Answer, Question, State

DecisionFunction = Callable[[Any, Any], Any]
"""(state, questions) -> answers, all in wire shape:
questions as {id: {"type", "instructions", "criteria"}}, answers as {id: {"type": "noul", "noul": 0.9}}."""


class FunctionDecider:
    """Calls a function of the user's own.

    Args:
        function: Called with plain dictionaries; what it returns is checked by the pipeline. One that never waits
            for anything may say so, `function.bounded = True`: it is called in the turn's own thread.
    """

    def __init__(self, function: DecisionFunction) -> None:
        self._function = function
        self.bounded = getattr(function, "bounded", False) is True

    def decide(self, state: State, questions: Mapping[str, Question]) -> Mapping[str, Answer]:
        """Ask the function; it sees the wire fields of the questions alone."""
        answers: Mapping[str, Answer] = self._function(
            dict(state), {name: question.wire() for name, question in questions.items()}
        )
        return answers

    def __repr__(self) -> str:
        return f"FunctionDecider({getattr(self._function, '__qualname__', type(self._function).__name__)})"

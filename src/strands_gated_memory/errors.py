"""Every error of this package, in one tree: `GatedMemoryError` is the base.

A `StageError`, of a decider or of a search, is counted by the pipeline and never raised into an agent's turn. Each
has one `kind`, the word that counters and log lines use for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, ClassVar

CAUSE_CHARACTERS = 300
"""Characters of a cause that are logged."""
_MOST_COMPARED = 10_000
"""Characters of an error's text that are compared with the turn."""


class GatedMemoryError(Exception):
    """Base of every error that this package raises."""


class ConfigurationError(GatedMemoryError, ValueError):
    """A setting is wrong. The message says which, its value, and what to write instead."""


class RecallFailed(GatedMemoryError):
    """What would have failed open, where `RecallPolicy(on_failure="raise")` asks for an exception.

    Attributes:
        stage: Where: "gate", "retrieve", "validator", "select" or "turn".
        kind: What: the word that the counters use.
        cause: What failed, in words; None when nothing is known.
        recall: The `Recall` that failing open would have given; None outside `RecallPipeline.recall`.
    """

    def __init__(self, stage: str, kind: str, cause: str | None = None, recall: Any = None) -> None:
        super().__init__(
            f'recall failed in stage {stage!r}: {kind} ({cause}); on_failure="open" would go on without it'
        )
        self.stage = stage
        self.kind = kind
        self.cause = cause
        self.recall = recall

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.stage, self.kind, self.cause, self.recall)


class TraceFileError(GatedMemoryError, ValueError):
    """A line of a trace file cannot be read. The message names file and line."""


class StageError(GatedMemoryError):
    """A stage of the recall failed. The pipeline counts it under `kind` and fails open."""

    kind: ClassVar[str] = "error"


class DeciderError(StageError):
    """The decision model gave no usable answer.

    Args:
        message: What happened; never a key, never a user's text.
        retry_after_s: After how many seconds another attempt makes sense; None: not at all.
    """

    def __init__(self, message: str = "", *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DeciderTimeout(DeciderError):
    """The decision model gave no answer within the deadline."""

    kind = "timeout"


class DeciderUnavailable(DeciderError):
    """The decision model cannot be reached."""

    kind = "unavailable"


class DeciderOverloaded(DeciderUnavailable):
    """Every worker waits for a decision model that hangs, or too many calls wait for one."""

    kind = "overloaded"


class DeciderSkipped(DeciderUnavailable):
    """The decision model was not asked: it failed repeatedly just before."""

    kind = "circuit_open"


class DeciderThrottled(DeciderError):
    """The decision model's rate of requests was exceeded (429)."""

    kind = "throttled"


class DeciderDenied(DeciderError):
    """The decision model refuses the key or the credentials (401, 403)."""

    kind = "access_denied"


class DeciderNotFound(DeciderError):
    """There is no such address, endpoint or model (404)."""

    kind = "not_found"


class DeciderRejected(DeciderError):
    """The decision model refused the request as invalid (400, 422)."""

    kind = "rejected"


class PromptTooLong(DeciderRejected):
    """The state and a question together do not fit the model's window."""

    kind = "too_long"


class BadAnswer(DeciderError):
    """The decision model answered, but not with a mapping of question id to answer."""

    kind = "bad_answer"


class BadReturn(BadAnswer):
    """A decider in this process returned what is no mapping; the message names its type and quotes nothing."""


class RetrievalError(StageError):
    """A namespace could not be searched."""


class Throttled(RetrievalError):
    """The account's rate of requests was exceeded (429)."""

    kind = "throttled"


class AccessDenied(RetrievalError):
    """The credentials may not search this memory or namespace (403)."""

    kind = "access_denied"


class NotFound(RetrievalError):
    """The memory does not exist, or the service lost an item of it (404)."""

    kind = "not_found"


class Rejected(RetrievalError):
    """The service refused the request as invalid or over quota (400, 402)."""

    kind = "rejected"


class ServiceFailed(RetrievalError):
    """The service failed (500)."""

    kind = "service_failed"


class BadResponse(RetrievalError):
    """The service's reply cannot be read, such as a record without text."""

    kind = "bad_response"


class RetrievalUnavailable(RetrievalError):
    """The service cannot be reached."""

    kind = "unavailable"


class RetrievalOverloaded(RetrievalUnavailable):
    """Every worker waits for a search that hangs, or too many searches wait for one."""

    kind = "overloaded"


class RetrievalSkipped(RetrievalUnavailable):
    """The namespace was not searched: its searches failed repeatedly just before."""

    kind = "circuit_open"


class RetrievalTimeout(RetrievalError):
    """The service gave no answer within the deadline."""

    kind = "timeout"


def error_kind(error: BaseException) -> str:
    """Return the word under which an error is counted.

    Args:
        error: Any exception that a stage ended with.

    Returns:
        `StageError.kind`; "timeout" for a `TimeoutError` of anybody's; else the class name.
    """
    if isinstance(error, StageError) and error.kind != "error":
        return error.kind
    if isinstance(error, TimeoutError):
        return "timeout"
    return type(error).__name__


def cause_of(error: BaseException, private: Iterable[str]) -> str:
    """Return an error's text for the log; one that quotes the turn is reduced to its class.

    Args:
        error: Any exception that a stage ended with.
        private: The texts of the turn.
    """
    name = type(error).__name__
    if isinstance(error, BadReturn):
        return str(error)[:CAUSE_CHARACTERS]
    try:
        text, said = repr(error), str(error)
    except Exception:  # of somebody else's class
        return name
    words = _words(f"{text[:_MOST_COMPARED]} {said[:_MOST_COMPARED]}".replace(name, " "))
    whole, marks = f" {' '.join(words)} ", _marks(words)
    for text_of_turn in private:
        secret = _words(text_of_turn)
        if marks & _marks(secret) or (secret and f" {' '.join(secret)} " in whole):
            return f"{name} (its message shares words with the turn and is withheld)"
    return text[:CAUSE_CHARACTERS]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


_MARK = re.compile(r"\w{5}|(?=\d|[^\W\d]+\d)\w{3,}|(?=\w*[^\x00-\x7f])\w{2,}")
"""What tells a text apart: the beginning of a longer word, as it may be cut; a number; a short word in a script where a
sentence may be one."""


def _marks(words: Iterable[str]) -> set[str]:
    return {mark[0] for word in words if (mark := _MARK.match(word))}

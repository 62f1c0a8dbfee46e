"""Namespace templates and paths. Pure."""

from __future__ import annotations

import string

from ..errors import ConfigurationError

PLACEHOLDERS = ("actorId", "sessionId", "memoryStrategyId")


def check_template(namespace: str) -> None:
    """Check that a namespace template can be filled.

    Raises:
        ConfigurationError: It is empty, or has an unknown or empty placeholder, one with a format, or an unbalanced
            brace.
    """
    if not namespace.strip():
        raise ConfigurationError(
            f"retrieval_config namespace {namespace!r} is empty; write the path where a strategy of yours keeps its "
            "records, such as '/facts/{actorId}/': the records of every user stand under '/'"
        )
    try:
        fields = [field for field in string.Formatter().parse(namespace) if field[1] is not None]
    except ValueError as error:
        raise ConfigurationError(
            f"retrieval_config namespace {namespace!r} has an unbalanced brace: {error}"
        ) from error
    for _, name, format_spec, conversion in fields:
        if format_spec or conversion:
            raise ConfigurationError(
                f"retrieval_config namespace {namespace!r} formats the placeholder {name!r}; write {{{name}}} alone"
            )
        if name not in PLACEHOLDERS:
            raise ConfigurationError(
                f"retrieval_config namespace {namespace!r} has the placeholder {{{name}}}; "
                f"only {', '.join(f'{{{known}}}' for known in PLACEHOLDERS)} can be filled"
            )


def fill(namespace: str, *, actor_id: str, session_id: str, strategy_id: str | None) -> str:
    """Return the path to search: the template with one slash at the end, its placeholders filled.

    Without the slash a search for "/users/Bob" would match "/users/Bobby" too. Slashes of an id are kept:
    "Bob/" is another user than "Bob", and an empty value must not search the folder above.
    """
    template = namespace.rstrip("/") + "/"
    return template.format(actorId=actor_id, sessionId=session_id, memoryStrategyId=strategy_id or "")


def in_scope(record_namespace: str, path: str) -> bool:
    """Tell whether a record's namespace is the searched path or below it, segment by segment."""
    return record_namespace.startswith(path) or (not record_namespace.endswith("/") and record_namespace + "/" == path)


def is_of_session(record_namespace: str, template: str, path: str, session_id: str) -> bool:
    """Tell whether a record in a searched path belongs to the running session.

    Args:
        record_namespace: The record's own namespace, the path or one below it.
        template: The namespace as configured.
        path: The searched path: the template, filled. Only what stands below it can name the session, as the user
            may have the same id.
        session_id: The running session.
    """
    return "{sessionId}" in template or f"/{session_id}/" in f"/{record_namespace[len(path) :].strip('/')}/"


def is_summary(record_namespace: str, text: str) -> bool:
    """Tell whether a record sums up a session."""
    return "summar" in record_namespace.lower() or text.lstrip().startswith("<topic")

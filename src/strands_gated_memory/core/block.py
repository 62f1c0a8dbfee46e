"""From chosen records to the text that the model sees: escaped, a record a line, in one tag.

Record text comes from users and tools, so it is untrusted: it can neither close the tag nor open one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from ..errors import ConfigurationError
from .types import Record, Row

_TAG = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def check_tag(context_tag: str) -> None:
    """Check that a block's tag is a plain XML name, which no record can close.

    Raises:
        ConfigurationError: It is not.
    """
    if not isinstance(context_tag, str) or not _TAG.fullmatch(context_tag):
        raise ConfigurationError(
            f"context_tag must be a plain XML name of letters, digits, '_', '-' and '.', got {context_tag!r}; "
            "write for instance 'user_context'"
        )


def line_of(rendered: str, record: Record, show_dates: bool) -> str:
    """Return one record as a line of the block.

    Args:
        rendered: The record as text.
        record: Where its date comes from.
        show_dates: Whether to print the date, as "[2026-03-15] ".
    """
    date = f"[{record.created_at:%Y-%m-%d}] " if show_dates and isinstance(record.created_at, datetime) else ""
    return date + escape(rendered)


def with_lines(rows: Sequence[Row], show_dates: bool) -> list[Row]:
    """Return the rows, each that is not left out with its line of the block."""
    return [
        row if row.reason is not None else row._replace(line=line_of(row.text, row.record, show_dates)) for row in rows
    ]


def escape(text: str) -> str:
    """Return text that cannot open or close a tag: `&`, `<` and `>` as entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def block_of(lines: Sequence[str], context_tag: str) -> str | None:
    """Return the block, or None when there is nothing to show."""
    if not lines:
        return None
    return "\n".join([f"<{context_tag}>", *lines, f"</{context_tag}>"])

"""Does a conversation still hold the beginning of its session? If not, the session's summary has something to add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Beginning:
    """The beginning of one agent's session.

    Args:
        whole: Whether the conversation was the whole session when the agent joined it: a new session, or one whose
            messages were restored from the first to the last.
        messages: The conversation then.
    """

    def __init__(self, whole: bool, messages: Sequence[Mapping[str, Any]]) -> None:
        self.whole = whole
        self._first = messages[0] if messages else None

    def is_held(self, messages: Sequence[Mapping[str, Any]], removed: object) -> bool:
        """Tell whether the conversation still holds it.

        Args:
            messages: The conversation, the user's ask included.
            removed: How many messages the conversation manager says that it has removed; a summarising one counts
                those that it has summed up. Anything but 0 means that some are gone.
        """
        if not self.whole or removed != 0 or not messages:
            return False
        if self._first is None:
            self._first = messages[0]
        # An application may cut the conversation itself, which no conversation manager counts.
        return messages[0] is self._first or _same_id(messages[0], self._first)


def _same_id(message: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    known = message.get("tracking_id")
    return known is not None and known == other.get("tracking_id")

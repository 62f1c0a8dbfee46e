"""What a way to a decision model does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Transport(Protocol):
    """Sends one document and returns the one that comes back.

    May also carry `prepare()` (load or look up what the first request needs; may raise) and `about`
    (what is known of the server: "model", "window_tokens", "device").
    """

    def send(self, document: Mapping[str, Any], until: float) -> object:
        """Send a request.

        Args:
            document: The request's JSON document.
            until: The moment on the monotonic clock by which to give up.

        Returns:
            The response's JSON document.

        Raises:
            DeciderError: The most specific one, with `retry_after_s` where another attempt makes sense.
        """
        ...

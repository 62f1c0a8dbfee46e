"""Keys that cannot be printed by accident, and texts from which they are taken out."""

from __future__ import annotations

import re

from ..errors import ConfigurationError

_SHORTEST = 6
"""Shorter keys are not masked in foreign texts: they would blot out ordinary words."""


class Secret:
    """An API key. `str`, `repr` and formatting show `***`; only `reveal` gives it away.

    Args:
        value: The key.
        origin: Where it came from, for error messages, such as "TYPESAFE_API_KEY".

    Raises:
        ConfigurationError: The key is empty or cannot be sent in a header.
    """

    __slots__ = ("_value", "origin")

    def __init__(self, value: str, origin: str) -> None:
        if not isinstance(value, str):
            raise ConfigurationError(f"{origin} must be a string, got {type(value).__name__}")
        stripped = value.strip()
        if not stripped:
            raise ConfigurationError(f"{origin} is empty; set it to your API key")
        if not stripped.isascii() or not stripped.isprintable():
            raise ConfigurationError(f"{origin} holds characters that no API key has; copy the key again")
        self._value = stripped
        self.origin = origin

    def reveal(self) -> str:
        """Return the key itself."""
        return self._value

    def mask(self, text: str) -> str:
        """Return a text without the key in it."""
        return self.mask_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def mask_bytes(self, data: bytes) -> bytes:
        """Return bytes without the key in them, neither plain nor with the escapes of JSON."""
        if len(self._value) < _SHORTEST:
            return data
        masked = data.replace(self._value.encode(), b"***")
        if b"\\" not in masked:
            return masked
        escaped = "".join(
            rf"(?:\\?{re.escape(character)}|\\u(?i:{ord(character):04x}))" for character in self._value
        )  # JSON may write any character so, and a parser undoes it
        return re.sub(escaped.encode(), b"***", masked)

    def __repr__(self) -> str:
        return f"Secret({self.origin}=***)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a Secret cannot be pickled or copied into a file")

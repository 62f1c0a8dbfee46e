"""Specifications of decision models as texts: which names there are, and lists with commas. Makes none."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

NAMES = (
    "embedded", "strands-decider", "systemone", "jev", "openrouter", "openai", "liquid", "sagemaker", "agentcore",
    "llm", "fitted", "auto",
)  # fmt: skip
"""What may stand before the colon; a URL is the other form."""

_MOST_SHOWN = 100

_URL = re.compile(r"https?://", re.IGNORECASE)
_OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:?//|https?:[/\\]*", re.IGNORECASE)
_ADDRESS = re.compile(
    r"""(?:[\w-]+(?:\.[\w-]+)*|\[[0-9a-f:.]+\])       # a host, or an IPv6 address in brackets
        (?::\d+)?(?:/.*)?""",
    re.IGNORECASE | re.VERBOSE,
)
_MAY_HOLD_COMMAS = re.compile(r"\s*(?:(?:[\w-]+:\s*)?https?://[^/?#]*[/?#]|fitted:)", re.IGNORECASE)
"""From where on commas may follow: the path of an address, or of a file."""


def specs_in(text: str, names: Collection[str] = NAMES) -> list[str]:
    """Return the specifications in a text like "jev,embedded", without the space around them.

    After a URL's host, and in the file of `fitted:`, a comma parts only where a URL or a known name follows; in a
    URL `%2C` never does.

    Args:
        text: One specification or several, with commas.
        names: The known names.
    """
    found: list[str] = []
    for part in text.split(","):
        if found and _MAY_HOLD_COMMAS.match(found[-1]) and not _begins_a_spec(part, names):
            found[-1] += f",{part}"
        else:
            found.append(part)
    return [part.strip() for part in found]


def why_unknown(spec: str, names: Collection[str] = NAMES) -> str | None:
    """Return what is wrong with the name of one specification, to go on a sentence; None when it is known."""
    known = f"Known names: {', '.join(map(repr, names))}"
    if not spec.strip():
        return f"is empty (in a list: beside a comma). {known}"
    name = spec.partition(":")[0]
    if name in names or _URL.match(spec):
        return None
    near = difflib.get_close_matches(name[:40], names, n=1)
    if not near and (why := _why_no_address(spec)):
        return why
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"is unknown{hint} {known}"


def _why_no_address(spec: str) -> str | None:
    """Return what an address lacks, None for what does not look like one."""
    scheme = _OTHER_SCHEME.match(spec)
    address = spec[scheme.end() :] if scheme else spec
    host = address.partition("/")[0]
    if scheme:
        lacks = "has a scheme that cannot be used"
    elif _ADDRESS.fullmatch(spec) and (host == "localhost" or re.search(r"[./:\[]", spec)):
        lacks = "is an address without a scheme"
    else:
        return None
    if "@" in spec or "?" in spec or not re.search("[:/]", address):  # it may be or hold a credential: not repeated
        return f"{lacks}; write http:// or https:// before the host"
    return f"{lacks}; write 'http://{address[:_MOST_SHOWN]}' or 'https://{address[:_MOST_SHOWN]}'"


def _begins_a_spec(text: str, names: Collection[str]) -> bool:
    start = text.strip()
    return bool(_URL.match(start)) or start.partition(":")[0] in names

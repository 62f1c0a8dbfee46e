"""Which releases of the two SDKs this package works with, and a clear error outside of them."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

SUPPORTED = {"bedrock-agentcore": ((1, 23, 1), (2,)), "strands-agents": ((1, 62), (2,))}
"""Package -> first supported release, first release no longer supported."""


def check_versions() -> None:
    """Check the installed SDKs.

    Raises:
        ImportError: One is missing or outside the supported range; the message says what to install.
    """
    for package, (lowest, limit) in SUPPORTED.items():
        wanted = f"{package}>={_dotted(lowest)},<{_dotted(limit)}"
        try:
            installed = version(package)
        except PackageNotFoundError:
            raise ImportError(f"strands-gated-memory needs {wanted}; run: pip install '{wanted}'") from None
        if not lowest <= _numbers(installed) < limit:
            raise ImportError(f"strands-gated-memory needs {wanted}, found {installed}; run: pip install '{wanted}'")


def _numbers(release: str) -> tuple[int, ...]:
    match = re.match(r"\d+(\.\d+)*", release)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))

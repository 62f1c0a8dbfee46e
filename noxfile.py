"""The compatibility matrix: the core tests against each supported pair of SDK releases, and store packages of others.

`nox` runs all pairs and prints a table; `nox -s "compatibility(strands='1.62.0', agentcore='1.23.1')"` runs one.
`nox -s stores` runs the memory manager over memory stores from the package index.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from xml.etree import ElementTree

import nox

AGENTCORE = ("1.23.1", "1.24.2", "1.25.0")
STRANDS = ("1.62.0",)
CORE = (
    "tests/test_memory_manager_seams.py",
    "tests/test_parent_seams.py",
    "tests/test_public_surface.py",
    "tests/turns",
    "tests/testing/test_agentcore_session_manager.py",
)
"""What has to hold whatever the SDKs' releases: the seams, the surface, whole turns with real agents."""

STORES = ("mem0-strands==0.1.1", "zep-strands==1.0.0")
"""Packages with a `MemoryStore`; each brings the SDK of its service."""

# One environment per pair, so that a pair shows what a user of these releases gets.
nox.options.sessions = ["compatibility", "table"]
nox.options.stop_on_first_error = False

_RESULTS = "compatibility"
_TEST_TOOLS = ("hypothesis>=6.100", "pytest>=8.3", "pytest-socket>=0.7", "pytest-timeout>=2.3", "rich>=13")
_SHOWN = ("bedrock-agentcore", "strands-agents", "mcp", "boto3")


@nox.session
@nox.parametrize("agentcore", AGENTCORE)
@nox.parametrize("strands", STRANDS)
def compatibility(session: nox.Session, strands: str, agentcore: str) -> None:
    """Install one pair and run the core tests against it."""
    # The SDK's own extra [strands-agents] wants mcp < 2, which strands 1.62 does not: the two are named apart.
    session.install(
        "--quiet", f"bedrock-agentcore=={agentcore}", f"strands-agents=={strands}", ".[testing]", *_TEST_TOOLS
    )
    pair = _results(session) / f"agentcore-{agentcore}-strands-{strands}"
    report = Path(f"{pair}.xml")
    report.unlink(missing_ok=True)
    versions = session.run("python", "-c", _VERSIONS, silent=True)
    Path(f"{pair}.json").write_text(str(versions), encoding="utf-8")
    started = time.monotonic()
    try:
        session.run("python", "-m", "pytest", f"--junitxml={report}", *(session.posargs or CORE))
    finally:
        session.log(f"{time.monotonic() - started:.0f} s")


@nox.session
def stores(session: nox.Session) -> None:
    """Run the memory manager over store packages of others, in an environment that has them."""
    session.install("--quiet", *STORES, ".[testing]", *_TEST_TOOLS)
    session.run("python", "-c", "import mem0_strands, zep_strands")  # without them every test would be skipped
    session.run("python", "-m", "pytest", *(session.posargs or ("tests/stores",)))


@nox.session(venv_backend="none")
def table(session: nox.Session) -> None:
    """Print what the pairs gave."""
    head = ("bedrock-agentcore", "strands-agents", "mcp", "boto3", "passed", "failed", "skipped", "seconds")
    rows = [head, *(_row(path) for path in sorted(_results(session).glob("*.json")))]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    for row in rows:
        session.log("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


_VERSIONS = f"import json, importlib.metadata as m; print(json.dumps({{n: m.version(n) for n in {_SHOWN}}}))"


def _results(session: nox.Session) -> Path:
    found = Path(session.cache_dir) / _RESULTS
    found.mkdir(exist_ok=True)
    return found


def _row(path: Path) -> tuple[str, ...]:
    versions = json.loads(path.read_text(encoding="utf-8"))
    shown = tuple(versions[name] for name in _SHOWN)
    report = Path(str(path).removesuffix(".json") + ".xml")
    if not report.exists():
        return (*shown, "-", "did not run", "-", "-")
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    total, failed, skipped = (
        sum(int(suite.get(name, 0)) for name in names) for names in (("tests",), ("failures", "errors"), ("skipped",))
    )
    return (*shown, str(total - failed - skipped), str(failed), str(skipped), f"{float(suite.get('time', 0)):.0f}")

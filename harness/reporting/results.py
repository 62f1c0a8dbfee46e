"""docs/results.md, the results folder and the page, from the recordings alone: no network, no decider.

    python -m harness results               # from harness/recordings
    python -m harness results --record      # ask the local deciders first
    python -m harness results --check       # fails when docs/results.md is not what the recordings say

docs/results.md holds no date, commit, host or live timing; results.json and the page do.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console

from ..errors import HarnessError
from ..measuring.options import OUT, Settings
from ..measuring.tables import Result, Table, markdown, merged, read, save
from ..recording.recorder import recorded, recording_path
from . import post, recordings
from .recordings import ELSEWHERE, LOCAL, RECORDINGS

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "results.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--record", action="store_true", help=f"ask {', '.join(LOCAL)} anew first")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the document is stale")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, metavar="DIR", help="default: %(default)s")
    parser.add_argument("--document", type=Path, default=DOCUMENT, metavar="FILE", help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="results folder (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Replay every recording and write document and results folder."""
    console = Console()
    if arguments.record:
        recordings.record(LOCAL, arguments.recordings, console)
    results = replayed(arguments.recordings, Settings())
    text = document(results, arguments.recordings)
    if arguments.check:
        current = arguments.document.exists() and arguments.document.read_text(encoding="utf-8") == text
        console.print(f"{arguments.document} is {'current' if current else 'stale; run python -m harness results'}")
        return int(not current)
    for old in read(arguments.out):  # results alone: the folder may hold other files of the user's
        (arguments.out / old.file_name).unlink(missing_ok=True)
    save(results, arguments.out)
    (arguments.out / "results.json").write_text(json.dumps(provenance(results), indent=1) + "\n", encoding="utf-8")
    arguments.document.parent.mkdir(parents=True, exist_ok=True)
    arguments.document.write_text(text, encoding="utf-8")
    console.print(f"wrote {arguments.document} and {len(results)} results to {arguments.out}")
    return 0


def replayed(folder: Path, settings: Settings) -> list[Result]:
    """Return every measurement of every recorded decider, from its recording.

    Raises:
        HarnessError: There is no recording.
        RunFailed: A recording lacks an answer.
    """
    present = [spec for spec in (*LOCAL, *ELSEWHERE) if recording_path(spec, folder).exists()]
    if not present:
        raise HarnessError(f"{folder}: no recordings; run python -m harness record")
    return recordings.measured([recorded(spec, folder, replay=True) for spec in present], settings)


def document(results: Sequence[Result], folder: Path) -> str:
    """Return docs/results.md."""
    run_here = list(dict.fromkeys(result.decider for result in results))
    absent = {spec: why for spec, why in ELSEWHERE.items() if not recording_path(spec, folder).exists()}
    models = list(dict.fromkeys((result.decider, result.model) for result in results))
    data = list(dict.fromkeys((result.data, result.data_sha256) for result in results))
    parts = [
        "# Results",
        "Written by `python -m harness results` from the answers in `harness/recordings/`; nothing here is typed. "
        "`make harness` writes it again, and the page with the plots, without a network. To measure anew: "
        "`python -m harness record`. What the commands measure, and how to use your own labels: "
        "[harness.md](harness.md).",
        "The sets are small, written for this project, and the development sets were looked at while it was built: "
        "read direction, not magnitude. Intervals say how far chance alone may carry a figure.",
        "## Who answered",
        _bullets(
            [f"`{decider}`: {model}. {WHO.get(decider, '')}".strip() for decider, model in models]
            + [
                f"`{spec}`: **not run here**; {why}. `python -m harness record --decider {spec} && "
                "python -m harness results`"
                for spec, why in absent.items()
            ]
        ),
        "Data: " + ", ".join(f"`harness/data/{name}.json` (SHA-256 {sha[:12]}…)" for name, sha in data) + ".",
        "## The post's findings",
        'The post is "Should the agent even look that up?". Its sentences, store and wordings are its own and its '
        "models were not run here, so its figures are not the same work as ours and stand here for the shape alone; "
        "in no table below do they stand beside ours.",
        "\n".join(post.lines(results, "strands-decider")),
    ]
    for measurement in recordings.MEASUREMENTS:
        mine = [result for result in results if result.command == measurement.name]
        if not mine:
            continue
        parts.append(f"## {measurement.title}")
        told = list(dict.fromkeys(sentence for result in mine for sentence in result.sentences))
        # Times are not the same twice; they are in the results folder and in the page.
        tables = [table for table in merged(mine) if not table.key.endswith("-time")]
        parts += [markdown(_with_absent(table, absent, measurement.name)) for table in tables]
        if told:
            parts.append(_bullets(told))
    parts.append(f"Deciders in the tables: {', '.join(run_here)}.")
    return "\n\n".join(parts) + "\n"


WHO = {
    "embedded": "The package's own model. It answers its own questions and reads no wording.",
    "cosine": "The plain embedding threshold: nearness of text and message by the embedded model's sentence encoder, "
    "which was tuned on this task; reads no question.",
    "sparrow": "sparrow-decider, 2 MB, from PyPI; reads any wording. Its authors say of yes-or-no questions: near "
    "chance.",
    "stock": "Yes to everything: what the stock session manager does.",
}


def _with_absent(table: Table, absent: dict[str, str], command: str) -> Table:
    """Return a table with a row for each decider that was not run, where it has one row per decider or wording."""
    if table.columns[0] != "decider" or (command in ("gate", "validator") and "separation" not in table.key):
        return table
    if any(word in table.key for word in ("namespaces", "recall", "kept", "drift")):
        return table
    rows = tuple((spec, "not run here", *[""] * (len(table.columns) - 2)) for spec in absent)
    return table.model_copy(update={"rows": table.rows + rows})


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def provenance(results: Sequence[Result]) -> dict[str, Any]:
    """Return when, where and with what the results were made: for results.json and the page."""
    packages = ("strands-gated-memory", "strands-agents", "bedrock-agentcore", "scikit-learn", "scipy", "numpy")
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain")),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in packages},
        "timing": {f"{r.command}, {r.data}, {r.decider}": r.timing for r in results},
        "results": [result.file_name for result in results],
    }


def _git(*arguments: str) -> str | None:
    try:
        found = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None

"""The recorded answers that docs/results.md is made of, and the command that records them.

python -m harness record                              # embedded, cosine, sparrow and stock
python -m harness record --decider strands-decider    # one more; then `python -m harness results`
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from ..data.datasets import shipped
from ..measuring import conversation, gate, renderer, router, selection, validator
from ..measuring.options import Settings
from ..measuring.tables import Result
from ..recording.recorder import RecordingDecider, recorded

RECORDINGS = Path(__file__).parents[1] / "recordings"
MEASUREMENTS = tuple(module.MEASUREMENT for module in (gate, validator, router, selection, renderer, conversation))
"""In the order of docs/results.md."""
LOCAL = ("embedded", "cosine", "sparrow", "stock")
"""Deciders that run here: no key, no server, no GPU."""
ELSEWHERE = {
    "strands-decider": "needs a GPU, or patience, and a download of 4.6 GB: `pip install '.[strands-decider]'`",
    "jev": "needs TYPESAFE_API_KEY; sends the sentences of harness/data to that company",
    "openai": "needs OPENAI_API_KEY; sends the sentences of harness/data to that company",
}
"""Deciders that were not run here, and what they need."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--decider", action="append", metavar="SPEC", help=f"repeatable (default: {', '.join(LOCAL)})")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, metavar="DIR", help="default: %(default)s")


def run(arguments: argparse.Namespace) -> int:
    """Record, each decider anew."""
    record(arguments.decider or LOCAL, arguments.recordings, Console())
    return 0


def record(deciders: Sequence[str], folder: Path, console: Console) -> None:
    """Ask each decider everything; a file is replaced once all its answers are there.

    Raises:
        RunFailed: A decider failed; its file is left as it was.
        ConfigurationError: A decider cannot be made.
    """
    for spec in deciders:
        decider = recorded(spec, folder, replay=False, fresh=True)
        decider.warm()
        measured([decider], Settings(resamples=2))  # figures are not looked at here
        decider.close()
        console.print(
            f"{spec}: {decider.asked} answers of {decider.model_id} recorded, {decider.abstained} abstentions"
        )


def measured(deciders: Sequence[RecordingDecider], settings: Settings) -> list[Result]:
    """Return every measurement of every decider on the shipped data."""
    work = [
        (measurement, shipped(name), decider)
        for measurement in MEASUREMENTS
        for name in measurement.data
        for decider in deciders
    ]
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        results = [
            measurement.evaluate(data, decider, settings)
            for measurement, data, decider in progress.track(work, description="measuring")
        ]
    return [result for result in results if result is not None]

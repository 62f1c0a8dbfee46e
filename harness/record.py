"""Ask deciders everything that docs/results.md is made of, and keep the answers in harness/recordings.

python -m harness record                              # embedded, cosine, sparrow and stock
python -m harness record --decider strands-decider    # one more; then `python -m harness results`
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from .options import Settings, recorded
from .results import LOCAL, RECORDINGS, evaluations
from .tables import Result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--decider", action="append", metavar="SPEC", help=f"repeatable (default: {', '.join(LOCAL)})")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, metavar="DIR", help="default: %(default)s")


def run(arguments: argparse.Namespace) -> int:
    """Record, each decider anew."""
    record(arguments.decider or list(LOCAL), arguments.recordings, Console())
    return 0


def record(deciders: list[str], folder: Path, console: Console) -> list[Result]:
    """Ask each decider everything; a file is replaced once all its answers are there.

    Raises:
        RunFailed: A decider failed; its file is left as it was.
        ConfigurationError: A decider cannot be made.
    """
    settings = Settings(resamples=2)  # figures are not looked at here
    results: list[Result] = []
    for spec in deciders:
        decider = recorded(spec, folder, replay=False, fresh=True)
        decider.warm()
        for evaluate, datasets in evaluations():
            results += [found for data in datasets if (found := evaluate(data, decider, settings)) is not None]
        decider.close()
        console.print(
            f"{spec}: {decider.asked} answers of {decider.model_id} recorded, {decider.abstained} abstentions"
        )
    return results

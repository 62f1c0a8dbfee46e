"""What every measuring command does around its own measurement."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from rich.console import Console

from .datasets import Dataset
from .errors import HarnessError
from .options import Settings, datasets_of, deciders_of, refuse_errors, settings_of
from .recording import RecordingDecider
from .tables import Result, merged, save, show

Evaluate = Callable[[Dataset, RecordingDecider, Settings], Result | None]
"""Measures one data set with one decider; None when the data set has nothing for it."""


def measure(arguments: argparse.Namespace, default: Sequence[str], evaluate: Evaluate, needs: str) -> int:
    """Measure every data set with every decider, print the tables, keep the results.

    Args:
        arguments: With the common options.
        default: The shipped data sets to take when none is named.
        evaluate: The measurement.
        needs: What a data file must hold, for the message when none does.

    Raises:
        HarnessError: No data set has anything to measure.
        RunFailed: A decider failed and errors are not allowed.
    """
    # A file or a pipe has no width: tables keep their words whole there.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    settings = settings_of(arguments)
    datasets = datasets_of(arguments, default)
    deciders = deciders_of(arguments)
    results: list[Result] = []
    try:
        for data in datasets:
            found = [result for decider in deciders if (result := evaluate(data, decider, settings))]
            results += found
            show(console, merged(found), [sentence for result in found for sentence in result.sentences])
    finally:
        for decider in deciders:
            decider.close()
    if not results:
        raise HarnessError(f"{', '.join(str(data.path) for data in datasets)}: holds no {needs}")
    save(results, arguments.out)
    refuse_errors(deciders, allow=arguments.allow_errors)
    return 0

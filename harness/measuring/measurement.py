"""A measurement: a command, the data it is taken on, and its place in docs/results.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ..data.datasets import Dataset
from ..errors import HarnessError
from ..recording.recorder import RecordingDecider
from .options import Settings, add_common, datasets_of, deciders_of, refuse_errors, settings_of
from .tables import Result, merged, save, show

Evaluate = Callable[[Dataset, RecordingDecider, Settings], Result | None]
"""Measures one data set with one decider; None when the data set has nothing for it."""


@dataclass(frozen=True)
class Measurement:
    """What a measuring module offers to the command line and to docs/results.md."""

    name: str
    """The command's."""
    title: str
    """The heading in docs/results.md and on the page."""
    data: tuple[str, ...]
    """The shipped data sets that are taken when none is named."""
    needs: str
    """What a data file must hold, for the message when none does."""
    evaluate: Evaluate
    wordings: bool = False
    """Whether wordings of the user's own are compared."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's options."""
        add_common(parser)
        if self.wordings:
            parser.add_argument(
                "--wordings", type=Path, metavar="FILE", help='your own wordings: {"gate": […], "validator": […]}'
            )

    def run(self, arguments: argparse.Namespace) -> int:
        """Measure every data set with every decider, print the tables, keep the results.

        Raises:
            HarnessError: No data set has anything to measure.
            RunFailed: A decider failed and errors are not allowed.
        """
        # A file or a pipe has no width: tables keep their words whole there.
        console = Console() if sys.stdout.isatty() else Console(width=160)
        settings = settings_of(arguments)
        datasets = datasets_of(arguments, self.data)
        deciders = deciders_of(arguments)
        results: list[Result] = []
        try:
            for data in datasets:
                measured = [
                    result for decider in deciders if (result := self.evaluate(data, decider, settings)) is not None
                ]
                results += measured
                show(console, merged(measured), [sentence for result in measured for sentence in result.sentences])
        finally:
            for decider in deciders:
                decider.close()
        if not results:
            raise HarnessError(f"{', '.join(str(data.path) for data in datasets)}: holds no {self.needs}")
        save(results, arguments.out)
        refuse_errors(deciders, allow=arguments.allow_errors)
        return 0

"""The options that the measuring commands share, and what they open."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..data.datasets import Dataset, load, shipped
from ..errors import HarnessError, RunFailed
from ..recording.recorder import RecordingDecider, recorded

OUT = Path("build/harness")
"""Where results and recordings go by default."""


@dataclass(frozen=True)
class Settings:
    """How a measurement is taken."""

    runs: int = 1
    """How often every question is asked."""
    seed: int = 0
    """Of the bootstrap and of the folds."""
    wordings: Path | None = None
    """A file of the user's own wordings."""
    resamples: int = 1000
    """Of the bootstrap."""
    allow_errors: bool = False
    """Whether a decider's error leaves its item out instead of ending the run."""

    @property
    def draw(self) -> dict[str, int]:
        """The bootstrap's arguments."""
        return {"seed": self.seed, "resamples": self.resamples}


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options every measuring command has."""
    parser.add_argument(
        "--decider",
        action="append",
        metavar="SPEC",
        help='who is asked; repeatable; any specification of the package, or "cosine", "sparrow", "stock" '
        "(default: embedded)",
    )
    parser.add_argument("--data", action="append", type=Path, metavar="FILE", help="labels (default: harness/data)")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="results folder (default: %(default)s)")
    parser.add_argument("--recordings", type=Path, metavar="DIR", help="answers folder (default: DIR/recordings)")
    parser.add_argument("--replay", action="store_true", help="take every answer from the recordings; ask nobody")
    parser.add_argument("--runs", type=_positive, default=1, metavar="N", help="ask everything N times, show the drift")
    parser.add_argument("--allow-errors", action="store_true", help="go on with decider errors; tables are stamped")
    parser.add_argument("--seed", type=_seed, default=0, help="of the bootstrap (default: %(default)s)")


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings that the options say."""
    return Settings(
        runs=arguments.runs,
        seed=arguments.seed,
        wordings=getattr(arguments, "wordings", None),
        allow_errors=arguments.allow_errors,
    )


def datasets_of(arguments: argparse.Namespace, default: Sequence[str]) -> list[Dataset]:
    """Return the data that the options say; by default the shipped files of these names."""
    return [load(path) for path in arguments.data] if arguments.data else [shipped(name) for name in default]


def deciders_of(arguments: argparse.Namespace) -> list[RecordingDecider]:
    """Return the deciders that the options say, each recording or replaying its answers.

    Raises:
        HarnessError: One is named twice, or there is no recording to replay.
        ConfigurationError: One cannot be made.
    """
    specs = arguments.decider or ["embedded"]
    if len(set(specs)) < len(specs):
        raise HarnessError(f"--decider names one twice: {', '.join(specs)}")
    folder = arguments.recordings or arguments.out / "recordings"
    return [recorded(spec, folder, replay=arguments.replay) for spec in specs]


def refuse_errors(deciders: Sequence[RecordingDecider], *, allow: bool) -> None:
    """Fail the run when a decider failed.

    Raises:
        RunFailed: There were errors and `allow` is false.
    """
    failed = [decider for decider in deciders if decider.errors]
    if failed and not allow:
        told = "; ".join(f"{decider.name}: {decider.error_text()}" for decider in failed)
        raise RunFailed(
            f"decider errors, so these figures are not a measurement ({told}); "
            "mend it, or pass --allow-errors to see them all the same"
        )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, got {text!r}")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2**32 - 1, got {text!r}")
    return int(text)

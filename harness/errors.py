"""What the harness stops for. Anything else is a bug and shows its traceback."""

from __future__ import annotations


class HarnessError(Exception):
    """The input is wrong. The message says what, where, and what to do; exit status 2."""


class RunFailed(Exception):
    """The run is not worth its figures: a decider failed, or was not asked what is replayed; exit status 1."""

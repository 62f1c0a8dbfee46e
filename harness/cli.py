"""The command line: finds the command's module in a table and imports that one alone.

A command is a module, or its `MEASUREMENT`, with `add_arguments(parser)` and `run(arguments) -> int`. Its exit status:
0; 1 when a decider failed and `--allow-errors` was not given; 2 with one line on stderr when the input is wrong.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from strands_gated_memory.errors import ConfigurationError

from .errors import HarnessError, RunFailed

COMMANDS: Mapping[str, tuple[str, str]] = {
    "gate": ("measuring.gate", "is a lookup worth making? five wordings in one request"),
    "router": ("measuring.router", "which namespaces are worth searching?"),
    "validator": ("measuring.validator", "does this record belong? separation and ranking, five wordings"),
    "selection": ("measuring.selection", "threshold, ranking and hybrid under drift"),
    "renderer": ("measuring.renderer", "the same fact as prose and as JSON, raw and rendered"),
    "conversation": ("measuring.conversation", "the arms over a whole conversation"),
    "store": ("data.stores", "build, seed, wait for, dump and drop a memory"),
    "label": ("data.labels", "traces to labels, in the terminal"),
    "fit": ("tuning.fit", "thresholds and heads from labels"),
    "replay": ("tuning.replay", "a policy over recorded traces"),
    "record": ("reporting.recordings", "ask deciders everything that docs/results.md needs"),
    "results": ("reporting.results", "write docs/results.md from recordings"),
    "report": ("reporting.page", "one HTML page from a results folder"),
}
"""Module and one line of help per command."""
EARLIER_NAMES = {"route": "router", "shape": "renderer"}
"""Commands that are named after their stage now; scripts may still use the earlier one."""


class Command(Protocol):
    """What a command's module holds."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...  # noqa: D102
    def run(self, arguments: argparse.Namespace) -> int: ...  # noqa: D102


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        print(_overview())
        return 0 if given else 2
    name, *rest = given
    name = EARLIER_NAMES.get(name, name)
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        print(f"no command {name!r}{f'; did you mean {near[0]!r}?' if near else ''}\n\n{_overview()}", file=sys.stderr)
        return 2
    module, about = COMMANDS[name]
    try:
        command = _load(f"harness.{module}")
        parser = argparse.ArgumentParser(prog=f"python -m harness {name}", description=about)
        command.add_arguments(parser)
        return command.run(parser.parse_args(rest))
    except (HarnessError, RunFailed, ConfigurationError, OSError) as error:  # OSError: of files and folders
        print(f"harness {name}: {error}", file=sys.stderr)
        return 1 if isinstance(error, RunFailed) else 2


def _load(module: str) -> Command:
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise HarnessError(
            f"the harness needs {error.name}; run: pip install -e '.[harness]' (from a clone)"
        ) from error
    return cast(Command, getattr(found, "MEASUREMENT", found))


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {about}" for name, (_, about) in COMMANDS.items()]
    return "\n".join(["usage: python -m harness <command> [options]", "", *lines, "", "Options: <command> --help"])
